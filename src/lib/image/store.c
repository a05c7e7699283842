/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/image/store-private.h"

#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/linux/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#define PREFIX "sha256:"
#define SHORT_DIGITS 12

/* ---- opening ---- */

static int open_content(struct image_store *store, struct err *err)
{
    struct stat st;

    if (dir_make_apart(store->dir_fd, "content", err) < 0)
        return err_in(err, "%s", store->dir);
    store->content_fd =
        openat(store->dir_fd, "content", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (store->content_fd < 0 || fstat(store->content_fd, &st) < 0)
        return err_os(err, "opening %s/content", store->dir);
    /* A kill after mkdir leaves an empty folder of root's: given away now. */
    if (st.st_uid == geteuid() && geteuid() != store->owner.uid &&
        fchown(store->content_fd, store->owner.uid, store->owner.gid) == 0)
        st.st_uid = store->owner.uid;
    if (st.st_uid != store->owner.uid)
        return err_set(
            err, ERR_CONFLICT,
            "%s/content belongs to user %u, sandboxes run as %u: set BRIG_UID_BASE back, "
            "or remove %s and get the images again",
            store->dir, st.st_uid, store->owner.uid, store->dir);
    return 0;
}

int image_store_open(const char *state_dir, const struct image_owner *owner,
                     struct image_store **out, struct err *err)
{
    AUTO(image_store) struct image_store *store = xcalloc(1, sizeof *store);

    store->dir_fd = store->content_fd = -1;
    store->owner = *owner;
    if (asprintf(&store->dir, "%s/images", state_dir) < 0) {
        store->dir = NULL;
        return err_os(err, "naming the image store");
    }
    if (dir_make(store->dir, 0700, err) < 0)
        return -1;
    store->dir_fd = open(store->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (store->dir_fd < 0)
        return err_os(err, "opening %s", store->dir);
    if (mkdirat(store->dir_fd, "records", 0700) < 0 && errno != EEXIST)
        return err_os(err, "creating %s/records", store->dir);
    if (open_content(store, err) < 0)
        return -1;
    *out = TAKE(store);
    return 0;
}

void image_store_free(struct image_store *store)
{
    if (!store)
        return;
    if (store->dir_fd >= 0)
        (void)close(store->dir_fd);
    if (store->content_fd >= 0)
        (void)close(store->content_fd);
    free(store->dir);
    free(store);
}

/* ---- finding ---- */

static void add_names(struct arena *mem, struct image *image, const struct image_name *names,
                      size_t n)
{
    const char **own = arena_array(mem, const char *, n + 1);
    size_t count = 0;

    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i].digest, image->digest) == 0)
            own[count++] = names[i].name;
    image->names = (struct words){own, count};
}

/* "sha256:HEX", or the beginning of its digits. */
static int find_digest(const struct image_store *store, struct arena *mem, struct str digits,
                       const char **out, struct err *err)
{
    const char **all = NULL, *found = NULL;
    size_t n = 0;

    if (image_record_list(store, mem, &all, &n, err) < 0)
        return -1;
    for (size_t i = 0; i < n; i++) {
        if (strncmp(all[i] + strlen(PREFIX), digits.p, digits.n) != 0)
            continue;
        if (found)
            return err_set(err, ERR_INVALID, "several images begin with " STR_FMT, STR_ARG(digits));
        found = all[i];
    }
    if (!found)
        return err_set(err, ERR_NOT_FOUND, "there is no image sha256:" STR_FMT, STR_ARG(digits));
    *out = found;
    return 0;
}

static bool is_digits(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!strchr("0123456789abcdef", s.p[i]))
            return false;
    return s.n >= SHORT_DIGITS && s.n <= 2 * HASH_BYTES;
}

static const char *find_name(const struct image_name *names, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i].name, name) == 0)
            return names[i].digest;
    return NULL;
}

/* Names before digits: "deadbeefcafe" may be either. */
static int find(const struct image_store *store, struct arena *mem, const char *name,
                const struct image_name *names, size_t n, const char **digest, struct err *err)
{
    struct str digits = str_of(name);
    struct image_ref ref;

    if (!str_starts(digits, PREFIX)) {
        if (image_ref_parse(mem, digits, &ref, err) < 0)
            return -1;
        *digest = find_name(names, n, image_ref_name(mem, &ref));
        if (*digest)
            return 0;
    } else {
        digits = str_of(name + strlen(PREFIX));
    }
    if (is_digits(digits))
        return find_digest(store, mem, digits, digest, err);
    return err_set(err, ERR_NOT_FOUND,
                   "there is no image \"%.200s\" here: get it with \"brig image pull %.200s\", or "
                   "see \"brig image list\"",
                   name, name);
}

int image_find(const struct image_store *store, struct arena *mem, const char *name,
               struct image *out, struct err *err)
{
    struct image_name *names = NULL;
    const char *digest = NULL;
    struct image image;
    size_t n = 0;

    if (names_read(store, mem, &names, &n, err) < 0 ||
        find(store, mem, name, names, n, &digest, err) < 0 ||
        image_record_read(store, mem, digest, &image, err) < 0)
        return -1;
    add_names(mem, &image, names, n);
    *out = image;
    return 0;
}

static int by_name(const void *a, const void *b)
{
    const struct image *one = a, *other = b;

    if (!one->names.n || !other->names.n)
        return (int)!one->names.n - (int)!other->names.n;
    return strcmp(one->names.v[0], other->names.v[0]);
}

int image_list(const struct image_store *store, struct arena *mem, struct image **out, size_t *n,
               struct err *err)
{
    struct image_name *names = NULL;
    const char **digests = NULL;
    struct image *images;
    size_t name_n = 0, count = 0;

    if (names_read(store, mem, &names, &name_n, err) < 0 ||
        image_record_list(store, mem, &digests, &count, err) < 0)
        return -1;
    images = arena_array(mem, struct image, count + 1);
    for (size_t i = 0; i < count; i++) {
        if (image_record_read(store, mem, digests[i], &images[i], err) < 0)
            return -1;
        add_names(mem, &images[i], names, name_n);
    }
    qsort(images, count, sizeof *images, by_name);
    *out = images;
    *n = count;
    return 0;
}

/* ---- checking ---- */

static int check_document(const struct image_store *store, const char *digest, const char *what,
                          struct err *err)
{
    AUTO_BUF struct buf text = BUF(IMAGE_DOCUMENT_MAX);
    char name[HASH_TEXT_BYTES + 32], seen[HASH_TEXT_BYTES];
    AUTO_FD int fd = -1;

    (void)snprintf(name, sizeof name, "blobs/sha256/%s", digest + strlen(PREFIX));
    fd = sys_openat2(store->content_fd, name, O_RDONLY | O_NONBLOCK | O_NOCTTY,
                     RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
    if (fd < 0)
        return err_set(err, ERR_INTEGRITY, "the %s %s is gone from the store", what, digest);
    if (read_all(fd, &text, err) < 0)
        return err_in(err, "%s %s", what, digest);
    hash_text_of(buf_str(&text), seen);
    if (strcmp(seen, digest) != 0)
        return err_set(err, ERR_INTEGRITY, "the %s %s has become %s in the store", what, digest,
                       seen);
    return 0;
}

int image_check(const struct image_store *store, const struct image *image, struct err *err)
{
    if (check_document(store, image->digest, "manifest", err) < 0 ||
        check_document(store, image->config, "configuration", err) < 0)
        return -1;
    for (size_t i = 0; i < image->layer_n; i++) {
        struct image_layer now = image->layers[i];
        const struct image_layer *then = &image->layers[i];

        if (layer_look(store, &now, err) < 0)
            return -1;
        if (now.device != then->device || now.inode != then->inode ||
            now.changed_s != then->changed_s || now.changed_ns != then->changed_ns)
            return err_set(err, ERR_INTEGRITY,
                           "layer %s was changed in the store after it was sealed; \"brig image "
                           "verify\" says how, removing and getting the image again mends it",
                           then->diff_id);
    }
    return 0;
}

int image_hold(const struct image_store *store, const struct image *image, int *out_fd,
               struct err *err)
{
    char name[HASH_TEXT_BYTES + 32];
    AUTO_FD int fd = -1;
    struct stat st;

    if (image_record_path(image->digest, name, sizeof name, err) < 0)
        return -1;
    fd = openat(store->dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    /* Whoever has it locked for himself is about to remove it. */
    if (fd < 0 || flock(fd, LOCK_SH | LOCK_NB) < 0 || fstat(fd, &st) < 0 || !st.st_nlink)
        return err_set(err, ERR_NOT_FOUND, "image %s has just been removed", image->digest);
    *out_fd = TAKE_FD(fd);
    return 0;
}
