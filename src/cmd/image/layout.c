/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/image/layout.h"

#include "lib/base/io.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#define CHUNK (256 * KIB)
#define LAYOUT "{\"imageLayoutVersion\":\"1.0.0\"}"
#define BLOB_NAME_BYTES (sizeof "blobs/sha256/" + HASH_TEXT_BYTES)

static int tar_failed(struct layout_writer *w, struct err *err)
{
    return err_set(err, ERR_OS, "writing the archive: %.200s", archive_error_string(w->tar));
}

int layout_open(struct job *job, int fd, struct layout_writer *out, struct err *err)
{
    out->job = job;
    out->tar = archive_write_new();
    if (!out->tar || archive_write_set_format_pax_restricted(out->tar) != ARCHIVE_OK ||
        archive_write_open_fd(out->tar, fd) != ARCHIVE_OK)
        return err_set(err, ERR_UNAVAILABLE, "libarchive cannot write a tar");
    return 0;
}

int layout_close(struct layout_writer *w, struct err *err)
{
    return archive_write_close(w->tar) == ARCHIVE_OK ? 0 : tar_failed(w, err);
}

void layout_done(struct layout_writer *w)
{
    if (w->tar)
        (void)archive_write_free(w->tar);
    w->tar = NULL;
}

static int begin_entry(struct layout_writer *w, const char *name, mode_t type, uint64_t size,
                       struct err *err)
{
    struct archive_entry *entry = archive_entry_new();
    int status;

    archive_entry_set_pathname(entry, name);
    archive_entry_set_filetype(entry, type);
    archive_entry_set_perm(entry, type == AE_IFDIR ? 0755 : 0644);
    archive_entry_set_size(entry, (int64_t)size);
    archive_entry_set_mtime(entry, 0, 0);
    status = archive_write_header(w->tar, entry);
    archive_entry_free(entry);
    return status == ARCHIVE_OK ? 0 : tar_failed(w, err);
}

static int add_bytes(struct layout_writer *w, const void *bytes, size_t n, struct err *err)
{
    return archive_write_data(w->tar, bytes, n) == (la_ssize_t)n ? 0 : tar_failed(w, err);
}

static int add_text(struct layout_writer *w, const char *name, struct str text, struct err *err)
{
    return begin_entry(w, name, AE_IFREG, text.n, err) < 0 ? -1 : add_bytes(w, text.p, text.n, err);
}

static void blob_name(const char *digest, char out[BLOB_NAME_BYTES])
{
    (void)snprintf(out, BLOB_NAME_BYTES, "blobs/sha256/%s", digest + strlen("sha256:"));
}

/* ---- index ---- */

static struct json *index_json(struct arena *mem, const struct layout_image *image)
{
    struct json *root = json_object(mem), *list = json_array(mem), *item = json_object(mem);
    struct json *platform = json_object(mem), *notes = json_object(mem);

    json_put_text(mem, item, "mediaType", image->media_type);
    json_put_text(mem, item, "digest", image->digest);
    json_put_int(mem, item, "size", image->manifest_bytes);
    json_put_text(mem, platform, "architecture", image->architecture);
    json_put_text(mem, platform, "os", "linux");
    json_put(item, "platform", platform);
    if (image->name && *image->name) {
        json_put_text(mem, notes, "io.containerd.image.name", image->name);
        json_put(item, "annotations", notes);
    }
    json_push(list, item);
    json_put_int(mem, root, "schemaVersion", 2);
    json_put_text(mem, root, "mediaType", "application/vnd.oci.image.index.v1+json");
    json_put(root, "manifests", list);
    return root;
}

int layout_begin(struct layout_writer *w, const struct layout_image *image, struct err *err)
{
    AUTO_BUF struct buf index = BUF(IMAGE_DOCUMENT_MAX);

    if (json_canonical(index_json(&w->job->mem, image), &index, err) < 0 ||
        add_text(w, "oci-layout", STR_LIT(LAYOUT), err) < 0 ||
        add_text(w, "index.json", buf_str(&index), err) < 0 ||
        begin_entry(w, "blobs/", AE_IFDIR, 0, err) < 0)
        return -1;
    return begin_entry(w, "blobs/sha256/", AE_IFDIR, 0, err);
}

/* ---- blobs ---- */

static int copy_blob(struct layout_writer *w, int fd, uint64_t size, struct hasher *hasher,
                     struct err *err)
{
    AUTO_FREE char *chunk = xmalloc(CHUNK);
    uint64_t done = 0;
    ssize_t n;

    while ((n = read(fd, chunk, CHUNK)) > 0 || (n < 0 && errno == EINTR)) {
        if (n < 0)
            continue;
        hasher_add(hasher, chunk, (size_t)n);
        done += (uint64_t)n;
        event_progress(w->job, "writing", done, size);
        if (add_bytes(w, chunk, (size_t)n, err) < 0 || job_in_time(w->job, err) < 0)
            return -1;
    }
    return n < 0 ? err_os(err, "reading a blob") : 0;
}

int layout_blob(struct layout_writer *w, const char *digest, int fd, struct err *err)
{
    char name[BLOB_NAME_BYTES], seen[HASH_TEXT_BYTES];
    struct hasher hasher;
    struct hash hash;
    struct stat st;

    if (fstat(fd, &st) < 0)
        return err_os(err, "looking at a blob");
    blob_name(digest, name);
    hasher_init(&hasher);
    if (begin_entry(w, name, AE_IFREG, (uint64_t)st.st_size, err) < 0 ||
        copy_blob(w, fd, (uint64_t)st.st_size, &hasher, err) < 0)
        return -1;
    hasher_end(&hasher, &hash);
    hash_text(&hash, seen);
    return strcmp(seen, digest) == 0
               ? 0
               : err_set(err, ERR_INTEGRITY, "blob %s has become %s in the store", digest, seen);
}

int layout_document(struct layout_writer *w, struct str text, struct err *err)
{
    char name[BLOB_NAME_BYTES], digest[HASH_TEXT_BYTES];

    hash_text_of(text, digest);
    blob_name(digest, name);
    return add_text(w, name, text, err);
}
