/* SPDX-License-Identifier: Apache-2.0 */

/* Importing: OCI layouts, as a directory or a tar, and what "docker save" writes.
 *
 * A tar is read once, front to back: every file in it becomes a blob by its digest, then the
 * documents say which of them are the image. What is left over goes with the next sweep. From a
 * directory only what the documents name is read. */

#include "cmd/image/extract.h"

#include "lib/base/limits.h"
#include "lib/image/wire.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define CHUNK (256 * KIB)
#define BLOBS "blobs/sha256/"
#define INDEX_DEPTH_MAX 4
#define LINKS_MAX 8
#define OCI_MANIFEST "application/vnd.oci.image.manifest.v1+json"
#define OCI_CONFIG "application/vnd.oci.image.config.v1+json"
#define OCI_LAYER "application/vnd.oci.image.layer.v1.tar"

struct staged {
    const char *name;
    const char *link; /* of a symbolic or hard link: where it leads; else NULL */
    char digest[HASH_TEXT_BYTES];
    uint64_t size;
};

struct stage {
    struct job *job;
    struct archive *tar;
    struct staged *files;
    size_t n;
    uint64_t bytes;
};

/* ---- reading a tar ---- */

static int open_tar(struct stage *stage, struct err *err)
{
    stage->tar = archive_read_new();
    if (!stage->tar || archive_read_support_filter_gzip(stage->tar) != ARCHIVE_OK ||
        archive_read_support_filter_zstd(stage->tar) != ARCHIVE_OK ||
        archive_read_support_format_tar(stage->tar) != ARCHIVE_OK)
        return err_set(err, ERR_UNAVAILABLE, "libarchive without tar, gzip and zstd");
    if (archive_read_open_fd(stage->tar, IMAGE_FD_EXTRA, CHUNK) != ARCHIVE_OK)
        return err_set(err, ERR_INVALID, "not a tar archive: %.200s",
                       archive_error_string(stage->tar));
    return 0;
}

static int count_bytes(struct stage *stage, size_t n, struct err *err)
{
    uint64_t read_bytes = (uint64_t)archive_filter_bytes(stage->tar, -1);

    stage->bytes += n;
    if (stage->bytes > IMAGE_UNPACKED_MAX)
        return err_set(err, ERR_LIMIT, "the archive holds more than %lu bytes", IMAGE_UNPACKED_MAX);
    if (stage->bytes > IMAGE_RATIO_FREE && stage->bytes / IMAGE_RATIO_MAX > read_bytes + 1)
        return err_set(err, ERR_LIMIT,
                       "the archive becomes more than %d times as large when unpacked, which is a "
                       "decompression bomb",
                       IMAGE_RATIO_MAX);
    event_progress(stage->job, "reading the archive", read_bytes, 0);
    return job_in_time(stage->job, err);
}

/* Holes are written out: the digest is that of the whole file. */
static int copy_entry(struct stage *stage, struct blob_writer *w, struct err *err)
{
    AUTO_FREE char *chunk = xmalloc(CHUNK);
    la_ssize_t n;

    while ((n = archive_read_data(stage->tar, chunk, CHUNK)) > 0)
        if (blob_add(w, chunk, (size_t)n, err) < 0 || count_bytes(stage, (size_t)n, err) < 0)
            return -1;
    if (n < 0)
        return err_set(err, ERR_INTEGRITY, "%.200s", archive_error_string(stage->tar));
    return 0;
}

static int stage_file(struct stage *stage, struct archive_entry *entry, struct staged *file,
                      struct err *err)
{
    AUTO_BLOB struct blob_writer w = {.job = NULL};
    const char *wanted = NULL;

    if (archive_entry_size(entry) < 0 || (uint64_t)archive_entry_size(entry) > IMAGE_BLOB_MAX)
        return err_set(err, ERR_LIMIT, "a file of more than %lu bytes", IMAGE_BLOB_MAX);
    file->size = (uint64_t)archive_entry_size(entry);
    if (str_starts(str_of(file->name), BLOBS))
        wanted = arena_printf(&stage->job->mem, "sha256:%s", file->name + strlen(BLOBS));
    if (blob_begin(stage->job, file->size, &w, err) < 0 || copy_entry(stage, &w, err) < 0)
        return -1;
    return blob_end(&w, wanted, &file->size, file->digest, err);
}

/* Old versions of docker store a layer that occurs twice as a link to the first. */
static const char *link_target(struct stage *stage, const char *name, struct archive_entry *entry)
{
    const char *hard = archive_entry_hardlink(entry), *soft = archive_entry_symlink(entry);
    const char *slash = strrchr(name, '/');
    char folder[PATH_BYTES_MAX];

    if (hard)
        return arena_text(&stage->job->mem, str_of(hard));
    if (!soft || soft[0] == '/')
        return "";
    /* Relative to the link's folder; "../x" leads one up, which is all that is written. */
    (void)strcpy(folder, slash ? name : "");
    if (slash)
        folder[slash - name] = '\0';
    while (strncmp(soft, "../", 3) == 0 && *folder) {
        char *up = strrchr(folder, '/');

        *(up ? up : folder) = '\0';
        soft += 3;
    }
    return arena_printf(&stage->job->mem, "%s%s%s", folder, *folder ? "/" : "", soft);
}

static int stage_entry(struct stage *stage, struct archive_entry *entry, struct err *err)
{
    const char *given = archive_entry_pathname(entry);
    struct staged *file = &stage->files[stage->n];
    char path[PATH_BYTES_MAX];
    mode_t type = archive_entry_filetype(entry);

    if (!given || layer_path(str_of(given), path, err) < 0)
        return given ? err_in(err, "archive entry \"%.100s\"", given)
                     : err_set(err, ERR_INVALID, "an archive entry without a name");
    if (S_ISDIR(type))
        return 0;
    if (stage->n == IMAGE_SOURCE_FILES_MAX)
        return err_set(err, ERR_LIMIT, "more than %d files in the archive", IMAGE_SOURCE_FILES_MAX);
    file->name = arena_text(&stage->job->mem, str_of(path));
    if (archive_entry_hardlink(entry) || S_ISLNK(type))
        file->link = link_target(stage, path, entry);
    else if (!S_ISREG(type))
        return err_set(err, ERR_INVALID, "archive entry \"%.100s\": not a file", path);
    else if (stage_file(stage, entry, file, err) < 0)
        return err_in(err, "archive entry \"%.100s\"", path);
    stage->n++;
    return 0;
}

static int stage_all(struct stage *stage, struct err *err)
{
    struct archive_entry *entry = NULL;

    for (;;) {
        int status = archive_read_next_header(stage->tar, &entry);

        if (status == ARCHIVE_EOF)
            return 0;
        if (status != ARCHIVE_OK && status != ARCHIVE_WARN)
            return err_set(err, ERR_INTEGRITY, "%.200s", archive_error_string(stage->tar));
        if (stage_entry(stage, entry, err) < 0)
            return -1;
    }
}

/* The last entry of a name counts, as in every tar. */
static const struct staged *find_staged(const struct stage *stage, const char *name)
{
    for (int hops = 0; hops < LINKS_MAX; hops++) {
        const struct staged *found = NULL;

        for (size_t i = 0; i < stage->n; i++)
            if (strcmp(stage->files[i].name, name) == 0)
                found = &stage->files[i];
        if (!found || !found->link)
            return found;
        name = found->link;
    }
    return NULL;
}

/* ---- an OCI layout ---- */

static int fetch_staged(struct source *source, const struct image_descriptor *blob,
                        const char *what, struct err *err)
{
    const struct stage *stage = source->context;

    if (blob_exists(stage->job, blob))
        return 0;
    return err_set(err, ERR_INTEGRITY, "%s: the archive has no blob %s of %llu bytes", what,
                   blob->digest, (unsigned long long)blob->size);
}

static int fetch_from_folder(struct source *source, const struct image_descriptor *blob,
                             const char *what, struct err *err)
{
    struct job *job = source->context;
    char digest[HASH_TEXT_BYTES];
    AUTO_FD int fd = -1;

    if (blob_exists(job, blob))
        return 0;
    if (event_open(job, arena_printf(&job->mem, BLOBS "%s", blob->digest + strlen("sha256:")), &fd,
                   err) < 0)
        return err_in(err, "%s", what);
    if (blob_copy(job, fd, blob->size, blob->digest, what, digest, err) < 0)
        return -1;
    return blob_exists(job, blob)
               ? 0
               : err_set(err, ERR_INTEGRITY, "%s: shorter than the manifest says", what);
}

/* From index.json down to the manifest of this machine's platform. */
static int import_layout(struct job *job, struct source *source, struct str index, struct err *err)
{
    AUTO_BUF struct buf text = BUF(IMAGE_DOCUMENT_MAX);
    const char *architecture = request_text(job, "architecture"), *name = NULL;
    struct image_descriptor chosen;
    enum image_document kind;

    if (image_layout_choose(&job->mem, index, architecture, &chosen, &source->name, err) < 0)
        return -1;
    for (int depth = 0; depth < INDEX_DEPTH_MAX; depth++) {
        if (chosen.size > IMAGE_DOCUMENT_MAX)
            return err_set(err, ERR_LIMIT, "a manifest of more than %lu bytes", IMAGE_DOCUMENT_MAX);
        buf_clear(&text);
        if (source->fetch(source, &chosen, "manifest", err) < 0 ||
            blob_read(job, chosen.digest, &text, err) < 0 ||
            image_document_kind(buf_str(&text), chosen.media_type, &kind, err) < 0)
            return -1;
        if (kind == IMAGE_DOCUMENT_MANIFEST)
            return source->use(job, source, chosen.digest, err);
        (void)strcpy(source->index, chosen.digest);
        if (image_layout_choose(&job->mem, buf_str(&text), architecture, &chosen, &name, err) < 0)
            return -1;
    }
    return err_set(err, ERR_LIMIT, "indexes in indexes, more than %d deep", INDEX_DEPTH_MAX);
}

/* ---- docker save ---- */

static struct json *descriptor_json(struct arena *mem, const char *type, const struct staged *file)
{
    struct json *item = json_object(mem);

    json_put_text(mem, item, "mediaType", type);
    json_put_text(mem, item, "digest", file->digest);
    json_put_int(mem, item, "size", (int64_t)file->size);
    return item;
}

static int layer_type(const struct job *job, const struct staged *file, const char **out,
                      struct err *err)
{
    unsigned char head[4] = {0};
    AUTO_FD int fd = -1;

    if (blob_open(job, file->digest, &fd, err) < 0)
        return -1;
    if (read(fd, head, sizeof head) < 0)
        return err_os(err, "reading a layer");
    *out = memcmp(head, "\x1f\x8b", 2) == 0           ? OCI_LAYER "+gzip"
           : memcmp(head, "\x28\xb5\x2f\xfd", 4) == 0 ? OCI_LAYER "+zstd"
                                                      : OCI_LAYER;
    return 0;
}

/* There is no manifest in such an archive: one is written, always the same for the same image. */
static int import_docker(struct stage *stage, struct source *source, const struct staged *list,
                         struct err *err)
{
    AUTO_BUF struct buf text = BUF(IMAGE_DOCUMENT_MAX);
    AUTO_BUF struct buf made = BUF(IMAGE_DOCUMENT_MAX);
    struct arena *mem = &stage->job->mem;
    struct json *root = json_object(mem), *layers = json_array(mem);
    struct image_docker_archive archive;
    const struct staged *file;
    char digest[HASH_TEXT_BYTES];

    if (blob_read(stage->job, list->digest, &text, err) < 0 ||
        image_docker_archive_parse(mem, buf_str(&text), &archive, err) < 0)
        return -1;
    file = find_staged(stage, archive.config);
    if (!file)
        return err_set(err, ERR_INVALID, "the archive lacks \"%.150s\"", archive.config);
    json_put_int(mem, root, "schemaVersion", 2);
    json_put_text(mem, root, "mediaType", OCI_MANIFEST);
    json_put(root, "config", descriptor_json(mem, OCI_CONFIG, file));
    for (size_t i = 0; i < archive.layers.n; i++) {
        const char *type = NULL;

        file = find_staged(stage, archive.layers.v[i]);
        if (!file)
            return err_set(err, ERR_INVALID, "the archive lacks \"%.150s\"", archive.layers.v[i]);
        if (layer_type(stage->job, file, &type, err) < 0)
            return -1;
        json_push(layers, descriptor_json(mem, type, file));
    }
    json_put(root, "layers", layers);
    source->name = archive.repo_tag;
    if (json_canonical(root, &made, err) < 0 ||
        blob_put(stage->job, buf_str(&made), digest, err) < 0)
        return -1;
    return source->use(stage->job, source, digest, err);
}

/* ---- which of them ---- */

static int import_tar(struct stage *stage, struct source *source, struct err *err)
{
    AUTO_BUF struct buf text = BUF(IMAGE_DOCUMENT_MAX);
    const struct staged *index, *list;

    if (open_tar(stage, err) < 0 || stage_all(stage, err) < 0)
        return -1;
    index = find_staged(stage, "index.json");
    list = find_staged(stage, "manifest.json");
    if (index && find_staged(stage, "oci-layout")) {
        if (index->size > IMAGE_DOCUMENT_MAX)
            return err_set(err, ERR_LIMIT, "index.json has more than %lu bytes",
                           IMAGE_DOCUMENT_MAX);
        return blob_read(stage->job, index->digest, &text, err) < 0
                   ? -1
                   : import_layout(stage->job, source, buf_str(&text), err);
    }
    if (list)
        return import_docker(stage, source, list, err);
    return err_set(err, ERR_INVALID,
                   "neither an OCI layout (oci-layout, index.json) nor what \"docker save\" "
                   "writes (manifest.json)");
}

static int import_folder(struct job *job, struct err *err)
{
    AUTO_BUF struct buf text = BUF(IMAGE_DOCUMENT_MAX);
    struct source source = {.fetch = fetch_from_folder, .use = assemble, .context = job};
    char digest[HASH_TEXT_BYTES];
    AUTO_FD int layout = -1;
    AUTO_FD int index = -1;

    if (event_open(job, "oci-layout", &layout, err) < 0 ||
        event_open(job, "index.json", &index, err) < 0)
        return err_in(err, "not an OCI layout");
    if (blob_copy(job, index, IMAGE_DOCUMENT_MAX, NULL, "index.json", digest, err) < 0 ||
        blob_read(job, digest, &text, err) < 0)
        return -1;
    return import_layout(job, &source, buf_str(&text), err);
}

int import_archive(struct job *job,
                   int (*use)(struct job *job, struct source *source, const char *manifest,
                              struct err *err),
                   struct err *err)
{
    struct stage stage = {.job = job};
    struct source source = {.fetch = fetch_staged, .use = use, .context = &stage};
    int failed;

    stage.files = arena_array(&job->mem, struct staged, IMAGE_SOURCE_FILES_MAX + 1);
    failed = import_tar(&stage, &source, err);
    if (stage.tar)
        (void)archive_read_free(stage.tar);
    return failed;
}

int run_import(struct job *job, struct err *err)
{
    return request_flag(job, "folder") ? import_folder(job, err)
                                       : import_archive(job, assemble, err);
}
