/* SPDX-License-Identifier: Apache-2.0 */

/* Packing: folders become one layer of an image of its own. */

#include "cmd/image/pack.h"
#include "cmd/image/extract.h"
#include "cmd/image/layout.h"
#include "cmd/image/scrub.h"

#include "lib/image/wire.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#define WHITEOUT ".wh."
#define OPAQUE ".wh..wh..opq"
#define OVERLAY_XATTR "user.overlay."
#define OPAQUE_XATTR OVERLAY_XATTR "opaque"
#define OCI_MANIFEST "application/vnd.oci.image.manifest.v1+json"
#define OCI_CONFIG "application/vnd.oci.image.config.v1+json"
#define OCI_LAYER "application/vnd.oci.image.layer.v1.tar"
#define NOTE_PATH_MAX 512

/* ---- the report ---- */

void pack_note(struct packer *p, const char *rule, const char *action, uint64_t count)
{
    AUTO_BUF struct buf shown = BUF(8 * PATH_BYTES_MAX);
    struct arena *mem = &p->job->mem;
    struct json *item;
    struct str path;
    struct err ignored;

    if (text_escape(str_of(p->path), &shown, &ignored) < 0)
        buf_clear(&shown);
    path = buf_str(&shown);
    if (path.n > NOTE_PATH_MAX)
        path.n = NOTE_PATH_MAX;
    path.n = str_utf8_prefix(path); /* it may have been cut inside a character */
    /* JSON writes a backslash as two, and the members around it take their room. */
    p->report.bytes += 2 * path.n + strlen(rule) + 80;
    if (p->report.list->n == IMAGE_LEFT_OUT_MAX || p->report.bytes > IMAGE_LEFT_OUT_BYTES_MAX) {
        p->report.not_listed++;
        return;
    }
    item = json_object(mem);
    json_put(item, "path", json_text(mem, path));
    json_put_text(mem, item, "rule", rule);
    json_put_text(mem, item, "action", action);
    json_put_int(mem, item, "count", (int64_t)count);
    json_push(p->report.list, item);
}

static int skip_special(struct packer *p, const char *rule)
{
    p->report.specials++;
    pack_note(p, rule, "dropped", 1);
    return 0;
}

/* ---- writing the layer ---- */

static la_ssize_t on_write(struct archive *archive, void *context, const void *bytes, size_t n)
{
    struct packer *p = context;

    if (n > IMAGE_BLOB_MAX - p->blob.n)
        (void)err_set(&p->why, ERR_LIMIT, "the layer would have more than %lu bytes",
                      IMAGE_BLOB_MAX);
    else if (blob_add(&p->blob, bytes, n, &p->why) == 0)
        return (la_ssize_t)n;
    p->failed = true;
    archive_set_error(archive, EIO, "%s", p->why.text);
    return -1;
}

static int tar_failed(struct packer *p, struct err *err)
{
    if (!p->failed)
        return err_set(err, ERR_OS, "writing the layer: %.200s", archive_error_string(p->tar));
    *err = p->why;
    return -1;
}

/* Attributes of the sandbox's own; those of the overlay are told in the layer's way, and two of
 * them say that the contents are elsewhere. */
static int add_xattr(struct packer *p, int fd, const char *name, struct archive_entry *entry,
                     struct err *err)
{
    AUTO_FREE char *value = NULL;
    ssize_t n;

    if (strcmp(name, OVERLAY_XATTR "redirect") == 0 || strcmp(name, OVERLAY_XATTR "metacopy") == 0)
        return err_set(err, ERR_UNAVAILABLE,
                       "the overlay keeps its contents elsewhere, which cannot be packed");
    if (strncmp(name, "user.", 5) != 0 || str_starts(str_of(name), OVERLAY_XATTR))
        return 0;
    value = xmalloc(IMAGE_XATTR_MAX);
    n = fgetxattr(fd, name, value, IMAGE_XATTR_MAX);
    if (n < 0)
        return err_os(err, "reading an attribute");
    if (p->filter && scrub_has_secret((struct str){value, (size_t)n})) {
        pack_note(p, "attribute", "replaced", 1);
        return 0;
    }
    archive_entry_xattr_add_entry(entry, name, value, (size_t)n);
    return 0;
}

static int add_xattrs(struct packer *p, int fd, struct archive_entry *entry, struct err *err)
{
    AUTO_FREE const char **names = NULL;
    AUTO_FREE char *space = NULL;
    size_t count = 0;

    if (xattr_names(fd, &space, &names, &count, err) < 0)
        return -1;
    for (size_t i = 0; i < count; i++)
        if (add_xattr(p, fd, names[i], entry, err) < 0)
            return -1;
    return 0;
}

int pack_entry(struct packer *p, int fd, const struct stat *st, struct archive_entry **out,
               struct err *err)
{
    struct archive_entry *entry;

    if (++p->entries > IMAGE_ENTRIES_MAX)
        return err_set(err, ERR_LIMIT, "more than %d entries", IMAGE_ENTRIES_MAX);
    if (p->bytes + (uint64_t)st->st_size > IMAGE_UNPACKED_MAX)
        return err_set(err, ERR_LIMIT, "more than %lu bytes", IMAGE_UNPACKED_MAX);
    entry = archive_entry_new();
    archive_entry_copy_pathname(entry, p->path);
    archive_entry_set_filetype(entry, st->st_mode & S_IFMT);
    archive_entry_set_perm(entry, st->st_mode & (S_ISDIR(st->st_mode) ? 01777 : 0777));
    archive_entry_set_mtime(entry, st->st_mtim.tv_sec, st->st_mtim.tv_nsec);
    if (fd >= 0 && add_xattrs(p, fd, entry, err) < 0) {
        archive_entry_free(entry);
        return -1;
    }
    *out = entry;
    return 0;
}

int pack_header(struct packer *p, struct archive_entry *entry, struct err *err)
{
    int status = archive_write_header(p->tar, entry);

    archive_entry_free(entry);
    /* A warning is a name that is not UTF-8, which is written as it is. */
    return status == ARCHIVE_OK || status == ARCHIVE_WARN ? 0 : tar_failed(p, err);
}

int pack_data(struct packer *p, const void *bytes, size_t n, struct err *err)
{
    return archive_write_data(p->tar, bytes, n) == (la_ssize_t)n ? 0 : tar_failed(p, err);
}

/* ---- the kinds of entries ---- */

/* An empty file whose name says what is not there. */
static int pack_mark(struct packer *p, size_t folder_n, const char *mark, const char *name,
                     struct err *err)
{
    struct stat st = {.st_mode = S_IFREG | 0600};
    struct archive_entry *entry = NULL;
    char whole[sizeof p->path];

    (void)strcpy(whole, p->path);
    (void)snprintf(p->path + folder_n, sizeof p->path - folder_n, "%s%s%s", folder_n ? "/" : "",
                   mark, name);
    if (pack_entry(p, -1, &st, &entry, err) < 0 || pack_header(p, entry, err) < 0)
        return -1;
    (void)strcpy(p->path, whole);
    return 0;
}

static int pack_symlink(struct packer *p, int at, const char *name, const struct stat *st,
                        struct err *err)
{
    struct archive_entry *entry = NULL;
    char target[PATH_BYTES_MAX + 1];
    ssize_t n = readlinkat(at, name, target, sizeof target);

    if (n < 0)
        return err_os(err, "reading a link");
    if ((size_t)n >= PATH_BYTES_MAX)
        return skip_special(p, "link-too-long");
    target[n] = '\0';
    if (p->filter && scrub_has_secret((struct str){target, (size_t)n})) {
        p->report.dropped++;
        pack_note(p, "link", "dropped", 1);
        return 0;
    }
    if (pack_entry(p, -1, st, &entry, err) < 0)
        return -1;
    archive_entry_copy_symlink(entry, target);
    archive_entry_set_size(entry, 0);
    return pack_header(p, entry, err);
}

static int is_opaque(int fd, bool *out, struct err *err)
{
    char value[8];
    ssize_t n = fgetxattr(fd, OPAQUE_XATTR, value, sizeof value);

    if (n < 0 && errno != ENODATA && errno != EOPNOTSUPP)
        return err_os(err, "reading an attribute");
    *out = n == 1 && value[0] == 'y';
    return 0;
}

static int pack_folder(struct packer *p, int fd, unsigned depth, struct err *err);

static int pack_named(struct packer *p, int at, size_t folder_n, const char *name, unsigned depth,
                      struct err *err)
{
    AUTO_FD int fd = -1;
    struct stat st;

    if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return err_os(err, "looking at an entry");
    if (S_ISCHR(st.st_mode) && st.st_rdev == makedev(0, 0))
        return pack_mark(p, folder_n, WHITEOUT, name, err);
    if (str_starts(str_of(name), WHITEOUT))
        return skip_special(p, "whiteout-name"); /* it would take something else away */
    if (S_ISREG(st.st_mode))
        return pack_file(p, at, name, &st, err);
    if (S_ISLNK(st.st_mode))
        return pack_symlink(p, at, name, &st, err);
    if (!S_ISDIR(st.st_mode))
        return skip_special(p, "special");
    fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return err_os(err, "opening a folder");
    return pack_folder(p, fd, depth + 1, err);
}

/* Where another tree begins, this one's entry lies hidden below it. */
static bool is_other_tree(const struct packer *p)
{
    for (size_t i = 0; i < p->job->tree_n; i++)
        if (i != p->tree && strcmp(p->job->trees[i].prefix, p->path) == 0)
            return true;
    return false;
}

static int pack_contents(struct packer *p, int fd, unsigned depth, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(IMAGE_MEMORY_MAX);
    AUTO_FREE const char **names = NULL;
    size_t n = 0, length = strlen(p->path);

    if (folder_names(fd, &mem, &names, &n, err) < 0)
        return -1;
    for (size_t i = 0; i < n; i++) {
        if (length + strlen(names[i]) + sizeof WHITEOUT + 2 > PATH_BYTES_MAX)
            return err_set(err, ERR_LIMIT, "a path of more than %d bytes", PATH_BYTES_MAX);
        (void)snprintf(p->path + length, sizeof p->path - length, "%s%s", length ? "/" : "",
                       names[i]);
        event_progress(p->job, "packing", p->bytes, 0);
        if (!is_other_tree(p) && pack_named(p, fd, length, names[i], depth, err) < 0)
            return -1;
        p->path[length] = '\0';
    }
    return job_in_time(p->job, err);
}

static int pack_folder(struct packer *p, int fd, unsigned depth, struct err *err)
{
    struct archive_entry *entry = NULL;
    bool opaque = false;
    struct stat st;

    if (depth > IMAGE_DEPTH_MAX)
        return err_set(err, ERR_LIMIT, "folders in folders, more than %d deep", IMAGE_DEPTH_MAX);
    if (p->filter && scrub_is_dropped_folder(str_of(p->path))) {
        p->report.dropped++;
        pack_note(p, scrub_rule_name(SCRUB_FILE_NAME), "dropped", 1);
        return 0;
    }
    if (fstat(fd, &st) < 0)
        return err_os(err, "looking at a folder");
    st.st_size = 0;
    /* The root of the layer is whatever it is laid upon. */
    if (*p->path && (pack_entry(p, fd, &st, &entry, err) < 0 || pack_header(p, entry, err) < 0))
        return -1;
    if (is_opaque(fd, &opaque, err) < 0 ||
        (opaque && *p->path && pack_mark(p, strlen(p->path), OPAQUE, "", err) < 0))
        return -1;
    return pack_contents(p, fd, depth, err);
}

/* ---- hard links to what the filter drops by name ---- */

/* Before anything is written, so that no other name of such a file comes first. */
static int find_dropped(struct packer *p, int fd, unsigned depth, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(IMAGE_MEMORY_MAX);
    AUTO_FREE const char **names = NULL;
    size_t n = 0, length = strlen(p->path);

    if (depth > IMAGE_DEPTH_MAX)
        return err_set(err, ERR_LIMIT, "folders in folders, more than %d deep", IMAGE_DEPTH_MAX);
    if (folder_names(fd, &mem, &names, &n, err) < 0 || job_in_time(p->job, err) < 0)
        return -1;
    for (size_t i = 0; i < n; i++) {
        AUTO_FD int below = -1;
        struct stat st;

        (void)snprintf(p->path + length, sizeof p->path - length, "%s%s", length ? "/" : "",
                       names[i]);
        if (fstatat(fd, names[i], &st, AT_SYMLINK_NOFOLLOW) < 0)
            return err_os(err, "looking at an entry");
        if (S_ISREG(st.st_mode) && st.st_nlink > 1 && scrub_is_dropped(str_of(p->path)) &&
            links_add(p->links, st.st_ino, "", err) < 0)
            return -1;
        if (S_ISDIR(st.st_mode)) {
            below = openat(fd, names[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            if (below < 0)
                return err_os(err, "opening a folder");
            if (find_dropped(p, below, depth + 1, err) < 0)
                return -1;
        }
        p->path[length] = '\0';
    }
    return 0;
}

/* ---- trees ---- */

static int by_prefix(const void *a, const void *b)
{
    const struct image_tree *one = a, *other = b;

    return strcmp(one->prefix, other->prefix);
}

static int check_trees(struct job *job, struct err *err)
{
    if (!job->tree_n)
        return err_set(err, ERR_INTERNAL, "no folder to pack");
    qsort(job->trees, job->tree_n, sizeof job->trees[0], by_prefix);
    return trees_check(job, err);
}

static int pack_tree(struct packer *p, size_t number, struct err *err)
{
    const struct image_tree *tree = &p->job->trees[number];
    int failed;

    p->tree = number;
    p->links = links_new();
    (void)snprintf(p->path, sizeof p->path, "%s", tree->prefix);
    failed = p->filter ? find_dropped(p, tree->fd, 0, err) : 0;
    if (!failed) {
        (void)snprintf(p->path, sizeof p->path, "%s", tree->prefix);
        failed = pack_folder(p, tree->fd, 0, err);
    }
    links_free(p->links);
    p->links = NULL;
    if (failed) {
        AUTO_BUF struct buf shown = BUF(8 * PATH_BYTES_MAX);
        struct err ignored;

        return text_escape(str_of(p->path), &shown, &ignored) < 0
                   ? -1
                   : err_in(err, "/%.200s", buf_text(&shown));
    }
    return 0;
}

static int pack_layer(struct packer *p, struct err *err)
{
    int status;

    /* Attributes the way other tools read them too, and only that way. */
    if (!p->tar || archive_write_set_format_pax(p->tar) != ARCHIVE_OK ||
        archive_write_set_format_option(p->tar, "pax", "xattrheader", "SCHILY") != ARCHIVE_OK ||
        archive_write_open(p->tar, p, NULL, on_write, NULL) != ARCHIVE_OK)
        return err_set(err, ERR_UNAVAILABLE, "libarchive cannot write a tar");
    for (size_t i = 0; i < p->job->tree_n; i++)
        if (pack_tree(p, i, err) < 0)
            return -1;
    status = archive_write_close(p->tar);
    return status == ARCHIVE_OK ? 0 : tar_failed(p, err);
}

/* ---- the image around it ---- */

static struct json *descriptor(struct arena *mem, const char *type, const char *digest,
                               uint64_t size)
{
    struct json *item = json_object(mem);

    json_put_text(mem, item, "mediaType", type);
    json_put_text(mem, item, "digest", digest);
    json_put_int(mem, item, "size", (int64_t)size);
    return item;
}

static struct json *config_json(struct job *job, const char *diff_id)
{
    struct arena *mem = &job->mem;
    struct json *root = json_object(mem), *files = json_object(mem), *ids = json_array(mem);

    json_push(ids, json_text(mem, str_of(diff_id)));
    json_put_text(mem, files, "type", "layers");
    json_put(files, "diff_ids", ids);
    json_put_text(mem, root, "architecture", request_text(job, "architecture"));
    json_put_text(mem, root, "os", "linux");
    json_put(root, "config", json_object(mem));
    json_put(root, "rootfs", files);
    return root;
}

static struct json *manifest_json(struct job *job, struct str config, const char *diff_id,
                                  uint64_t layer_bytes)
{
    struct arena *mem = &job->mem;
    const struct json *given = json_get(job->request, "notes");
    struct json *root = json_object(mem), *layers = json_array(mem), *notes = json_object(mem);
    char digest[HASH_TEXT_BYTES];

    hash_text_of(config, digest);
    json_put_int(mem, root, "schemaVersion", 2);
    json_put_text(mem, root, "mediaType", OCI_MANIFEST);
    json_put(root, "config", descriptor(mem, OCI_CONFIG, digest, config.n));
    json_push(layers, descriptor(mem, OCI_LAYER, diff_id, layer_bytes));
    json_put(root, "layers", layers);
    if (given && given->n) {
        json_each(note, given)
            json_put(notes, arena_text(mem, note->key), json_text(mem, note->text));
        json_put(root, "annotations", notes);
    }
    return root;
}

static int write_image(struct packer *p, const char *diff_id, char out_digest[HASH_TEXT_BYTES],
                       struct err *err)
{
    AUTO_LAYOUT struct layout_writer layout = {0};
    AUTO_BUF struct buf config = BUF(IMAGE_DOCUMENT_MAX);
    AUTO_BUF struct buf manifest = BUF(IMAGE_DOCUMENT_MAX);
    struct job *job = p->job;
    struct layout_image said = {.media_type = OCI_MANIFEST};

    if (json_canonical(config_json(job, diff_id), &config, err) < 0 ||
        json_canonical(manifest_json(job, buf_str(&config), diff_id, p->blob.n), &manifest, err) <
            0)
        return -1;
    hash_text_of(buf_str(&manifest), out_digest);
    said.digest = out_digest;
    said.manifest_bytes = (int64_t)manifest.n;
    said.architecture = request_text(job, "architecture");
    said.name = request_text(job, "name");
    if (lseek(p->blob.fd, 0, SEEK_SET) < 0)
        return err_os(err, "reading the layer");
    if (layout_open(job, IMAGE_FD_EXTRA, &layout, err) < 0 ||
        layout_begin(&layout, &said, err) < 0 ||
        layout_document(&layout, buf_str(&manifest), err) < 0 ||
        layout_document(&layout, buf_str(&config), err) < 0 ||
        layout_blob(&layout, diff_id, p->blob.fd, err) < 0)
        return -1;
    return layout_close(&layout, err);
}

static int answer(struct packer *p, const char *digest, const char *diff_id, struct err *err)
{
    struct arena *mem = &p->job->mem;
    struct json *result = json_object(mem);

    json_put_text(mem, result, "digest", digest);
    json_put_text(mem, result, "diff_id", diff_id);
    json_put_int(mem, result, "entries", (int64_t)p->entries);
    json_put_int(mem, result, "bytes", (int64_t)p->bytes);
    json_put_int(mem, result, "specials", (int64_t)p->report.specials);
    json_put_int(mem, result, "dropped", (int64_t)p->report.dropped);
    json_put_int(mem, result, "replaced", (int64_t)p->report.replaced);
    json_put_int(mem, result, "not_listed", (int64_t)p->report.not_listed);
    json_put(result, "left_out", p->report.list);
    return event_done(p->job, result, err);
}

static int pack_all(struct packer *p, struct err *err)
{
    char digest[HASH_TEXT_BYTES], diff_id[HASH_TEXT_BYTES];
    struct hash hash;

    if (check_trees(p->job, err) < 0 || blob_begin(p->job, IMAGE_BLOB_MAX, &p->blob, err) < 0 ||
        pack_layer(p, err) < 0)
        return -1;
    hasher_end(&p->blob.hasher, &hash);
    hash_text(&hash, diff_id);
    if (write_image(p, diff_id, digest, err) < 0)
        return -1;
    return answer(p, digest, diff_id, err);
}

int run_pack(struct job *job, struct err *err)
{
    struct packer *p = xcalloc(1, sizeof *p);
    int failed;

    p->job = job;
    p->filter = request_flag(job, "filter");
    p->tar = archive_write_new();
    p->chunk = xmalloc(PACK_CHUNK);
    p->report.list = json_array(&job->mem);
    failed = pack_all(p, err);
    if (p->tar)
        (void)archive_write_free(p->tar);
    blob_done(&p->blob); /* the layer is in the archive; here it was only collected */
    free(p->chunk);
    free(p);
    return failed;
}
