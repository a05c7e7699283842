/* SPDX-License-Identifier: Apache-2.0 */

/* content/layers: a tree HEX and its list HEX.list, by diff id. The list is there before the tree
 * is, so a tree under its final name is a complete one. */

#include "cmd/image/worker.h"

#include "lib/base/crash.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define NAME_BYTES (2 * HASH_BYTES + 8)

static void list_name(const char *digits, char out[NAME_BYTES])
{
    (void)snprintf(out, NAME_BYTES, "%s.list", digits);
}

static void fill(struct image_layer *out, const struct seal *seal, uint64_t left_out)
{
    hash_text(&seal->hash, out->seal);
    out->entries = seal->entries;
    out->bytes = seal->bytes;
    out->left_out = left_out;
}

/* One that is there already is read again: what is named by a new image is sealed as it is now,
 * and brig compares that with what other images were promised. */
static int reuse(struct job *job, const char *digits, struct image_layer *out, struct err *err)
{
    AUTO_FD int root =
        openat(job->layers_fd, digits, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    AUTO_FD int list = -1;
    char name[NAME_BYTES];
    struct seal seal;

    list_name(digits, name);
    list = openat(job->layers_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (root < 0 || list < 0)
        return err_os(err, "opening a layer of the store");
    if (seal_tree(job, root, -1, list, &seal, err) < 0)
        return err_in(err, "layer sha256:%s in the store", digits);
    fill(out, &seal, 0);
    return 0;
}

/* Contents, list and names, in this order, reach the disk before the name a reader trusts. */
static int keep(struct job *job, const char *temporary, const char *temporary_list,
                const char *digits, struct err *err)
{
    char list[NAME_BYTES];

    list_name(digits, list);
    if (syncfs(job->temp_fd) < 0)
        return err_os(err, "syncing a layer");
    CRASH_POINT("image-layer-synced");
    if (renameat(job->temp_fd, temporary_list, job->layers_fd, list) < 0)
        return err_os(err, "keeping the list of a layer");
    CRASH_POINT("image-list-kept");
    if (renameat(job->temp_fd, temporary, job->layers_fd, digits) < 0 && errno != ENOTEMPTY &&
        errno != EEXIST) /* another brig was faster with the same layer */
        return err_os(err, "keeping a layer");
    if (fsync(job->layers_fd) < 0)
        return err_os(err, "syncing the layers");
    CRASH_POINT("image-layer-kept");
    return 0;
}

struct workplace {
    char tree[ID_BYTES];
    char list[ID_BYTES];
    int root_fd;
    int list_fd;
};

static int open_workplace(struct job *job, struct workplace *w, struct err *err)
{
    id_new(w->tree);
    id_new(w->list);
    w->root_fd = w->list_fd = -1;
    if (mkdirat(job->temp_fd, w->tree, 0755) < 0)
        return err_os(err, "creating a folder for the layer");
    w->root_fd = openat(job->temp_fd, w->tree, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    w->list_fd =
        openat(job->temp_fd, w->list, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    return w->root_fd < 0 || w->list_fd < 0 ? err_os(err, "creating a place for the layer") : 0;
}

/* What was moved to its place is not here any more; what cannot be removed is for the sweep. */
static void close_workplace(struct job *job, struct workplace *w)
{
    struct err ignored;
    int left = dir_remove(job->temp_fd, w->tree, &ignored);

    (void)left;
    (void)unlinkat(job->temp_fd, w->list, 0);
    if (w->root_fd >= 0)
        (void)close(w->root_fd);
    if (w->list_fd >= 0)
        (void)close(w->list_fd);
}

static int unpack_into(struct job *job, const struct image_descriptor *blob, const char *diff_id,
                       const struct workplace *w, struct image_layer *out, struct err *err)
{
    struct unpack_report report;
    char seen[HASH_TEXT_BYTES];
    AUTO_FD int fd = -1;
    struct seal seal;

    if (blob_open(job, blob->digest, &fd, err) < 0 ||
        unpack_layer(job, fd, blob->size, w->root_fd, request_flag(job, "skip_devices"), &report,
                     err) < 0)
        return -1;
    hash_text(&report.diff_id, seen);
    if (strcmp(seen, diff_id) != 0)
        return err_set(err, ERR_INTEGRITY,
                       "unpacked it is %s, the configuration of the image says %s", seen, diff_id);
    if (seal_tree(job, w->root_fd, w->list_fd, -1, &seal, err) < 0)
        return -1;
    fill(out, &seal, report.left_out);
    return keep(job, w->tree, w->list, diff_id + strlen("sha256:"), err);
}

int layer_provide(struct job *job, const struct image_descriptor *blob, const char *diff_id,
                  struct image_layer *out, struct err *err)
{
    const char *digits = diff_id + strlen("sha256:");
    struct image_layer layer = {.media_type = blob->media_type, .blob_bytes = blob->size};
    struct workplace w;
    struct stat st;
    int failed;

    (void)strcpy(layer.diff_id, diff_id);
    (void)strcpy(layer.blob, blob->digest);
    if (fstatat(job->layers_fd, digits, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        failed = reuse(job, digits, &layer, err);
    } else {
        failed =
            open_workplace(job, &w, err) < 0 || unpack_into(job, blob, diff_id, &w, &layer, err) < 0
                ? err_in(err, "layer %s", blob->digest)
                : 0;
        close_workplace(job, &w);
    }
    if (failed)
        return -1;
    *out = layer;
    return 0;
}
