/* SPDX-License-Identifier: Apache-2.0 */

/* Exporting: a tar of an OCI layout, the same bytes for the same image and name. */

#include "cmd/image/worker.h"

#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/image/wire.h"

#include <archive.h>
#include <archive_entry.h>
#include <string.h>
#include <sys/stat.h>

#define CHUNK (256 * KIB)
#define LAYOUT "{\"imageLayoutVersion\":\"1.0.0\"}"

struct exporter {
    struct job *job;
    struct archive *tar;
    const char *written[2 * IMAGE_LAYERS_MAX + 2]; /* a layer may occur twice */
    size_t n;
};

static int begin_entry(struct exporter *x, const char *name, mode_t type, uint64_t size,
                       struct err *err)
{
    struct archive_entry *entry = archive_entry_new();
    int status;

    archive_entry_set_pathname(entry, name);
    archive_entry_set_filetype(entry, type);
    archive_entry_set_perm(entry, type == AE_IFDIR ? 0755 : 0644);
    archive_entry_set_size(entry, (int64_t)size);
    archive_entry_set_mtime(entry, 0, 0);
    status = archive_write_header(x->tar, entry);
    archive_entry_free(entry);
    return status == ARCHIVE_OK
               ? 0
               : err_set(err, ERR_OS, "writing the archive: %.200s", archive_error_string(x->tar));
}

static int add_bytes(struct exporter *x, const void *bytes, size_t n, struct err *err)
{
    if (archive_write_data(x->tar, bytes, n) == (la_ssize_t)n)
        return 0;
    return err_set(err, ERR_OS, "writing the archive: %.200s", archive_error_string(x->tar));
}

static int add_text(struct exporter *x, const char *name, struct str text, struct err *err)
{
    return begin_entry(x, name, AE_IFREG, text.n, err) < 0 ? -1 : add_bytes(x, text.p, text.n, err);
}

/* Checked once more on the way out. */
static int add_blob(struct exporter *x, const char *digest, struct err *err)
{
    AUTO_FREE char *chunk = xmalloc(CHUNK);
    char seen[HASH_TEXT_BYTES];
    struct hasher hasher;
    struct hash hash;
    struct stat st;
    AUTO_FD int fd = -1;
    uint64_t done = 0;
    ssize_t n = 0;

    for (size_t i = 0; i < x->n; i++)
        if (strcmp(x->written[i], digest) == 0)
            return 0;
    x->written[x->n++] = digest;
    if (blob_open(x->job, digest, &fd, err) < 0)
        return -1;
    if (fstat(fd, &st) < 0)
        return err_os(err, "looking at a blob");
    if (begin_entry(x, arena_printf(&x->job->mem, "blobs/sha256/%s", digest + strlen("sha256:")),
                    AE_IFREG, (uint64_t)st.st_size, err) < 0)
        return -1;
    hasher_init(&hasher);
    while ((n = read(fd, chunk, CHUNK)) > 0) {
        hasher_add(&hasher, chunk, (size_t)n);
        done += (uint64_t)n;
        event_progress(x->job, "writing", done, (uint64_t)st.st_size);
        if (add_bytes(x, chunk, (size_t)n, err) < 0 || job_in_time(x->job, err) < 0)
            return -1;
    }
    if (n < 0)
        return err_os(err, "reading a blob");
    hasher_end(&hasher, &hash);
    hash_text(&hash, seen);
    return strcmp(seen, digest) == 0
               ? 0
               : err_set(err, ERR_INTEGRITY, "blob %s has become %s in the store", digest, seen);
}

static struct json *index_json(struct job *job, const struct json *image)
{
    struct arena *mem = &job->mem;
    struct json *root = json_object(mem), *list = json_array(mem), *item = json_object(mem);
    struct json *platform = json_object(mem), *notes = json_object(mem);
    struct str text = STR_LIT("");
    const char *name = request_text(job, "name");
    int64_t size = 0;

    (void)json_is_text(json_get(image, "media_type"), &text);
    json_put(item, "mediaType", json_text(mem, text));
    (void)json_is_text(json_get(image, "digest"), &text);
    json_put(item, "digest", json_text(mem, text));
    (void)json_is_int(json_get(image, "manifest_bytes"), &size);
    json_put_int(mem, item, "size", size);
    (void)json_is_text(json_get(image, "architecture"), &text);
    json_put(platform, "architecture", json_text(mem, text));
    json_put_text(mem, platform, "os", "linux");
    json_put(item, "platform", platform);
    if (name && *name) {
        json_put_text(mem, notes, "io.containerd.image.name", name);
        json_put(item, "annotations", notes);
    }
    json_push(list, item);
    json_put_int(mem, root, "schemaVersion", 2);
    json_put_text(mem, root, "mediaType", "application/vnd.oci.image.index.v1+json");
    json_put(root, "manifests", list);
    return root;
}

static const char *member(struct job *job, const struct json *object, const char *key)
{
    struct str text = STR_LIT("sha256:");

    (void)json_is_text(json_get(object, key), &text);
    return arena_text(&job->mem, text);
}

static int write_all_of(struct exporter *x, const struct json *image, struct err *err)
{
    AUTO_BUF struct buf index = BUF(IMAGE_DOCUMENT_MAX);

    if (json_canonical(index_json(x->job, image), &index, err) < 0 ||
        add_text(x, "oci-layout", STR_LIT(LAYOUT), err) < 0 ||
        add_text(x, "index.json", buf_str(&index), err) < 0 ||
        begin_entry(x, "blobs/", AE_IFDIR, 0, err) < 0 ||
        begin_entry(x, "blobs/sha256/", AE_IFDIR, 0, err) < 0 ||
        add_blob(x, member(x->job, image, "digest"), err) < 0 ||
        add_blob(x, member(x->job, image, "config"), err) < 0)
        return -1;
    json_each(layer, json_get(image, "layers")) if (add_blob(x, member(x->job, layer, "blob"),
                                                             err) < 0) return -1;
    if (archive_write_close(x->tar) != ARCHIVE_OK)
        return err_set(err, ERR_OS, "writing the archive: %.200s", archive_error_string(x->tar));
    return event_done(x->job, json_object(&x->job->mem), err);
}

int run_export(struct job *job, struct err *err)
{
    const struct json *image = json_get(job->request, "image");
    struct exporter x = {.job = job, .tar = archive_write_new()};
    int failed;

    if (!image || !json_get(image, "layers"))
        return err_set(err, ERR_INTERNAL, "an export of nothing");
    if (!x.tar || archive_write_set_format_pax_restricted(x.tar) != ARCHIVE_OK ||
        archive_write_open_fd(x.tar, IMAGE_FD_EXTRA) != ARCHIVE_OK)
        failed = err_set(err, ERR_UNAVAILABLE, "libarchive cannot write a tar");
    else
        failed = write_all_of(&x, image, err);
    if (x.tar)
        (void)archive_write_free(x.tar);
    return failed;
}
