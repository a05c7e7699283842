/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/image/store-private.h"

#include "lib/base/clock.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>

#define LOCK_WAIT_US 4000000U
#define LOCK_PAUSE_NS 2000000L

int names_read(const struct image_store *store, struct arena *mem, struct image_name **out,
               size_t *n, struct err *err)
{
    AUTO_BUF struct buf text = BUF(IMAGE_NAMES_MAX);
    struct image_name *names;
    const struct json *root = NULL;
    struct mark where = {0, 0};
    size_t count = 0;

    if (file_read(store->dir_fd, "names.json", &text, err) < 0) {
        if (err->os != ENOENT)
            return -1;
        *out = arena_array(mem, struct image_name, 1);
        *n = 0;
        return 0;
    }
    if (json_parse(mem, buf_str(&text), &root, &where, err) < 0 || root->kind != JSON_OBJECT ||
        root->n > IMAGE_STORE_MAX)
        return err_set(err, ERR_INTEGRITY,
                       "%s/names.json is damaged; remove it and name the images again", store->dir);
    names = arena_array(mem, struct image_name, root->n + 1);
    json_each(item, root)
    {
        struct str digest = {NULL, 0};
        struct hash hash;

        if (!json_is_text(item, &digest) || !hash_from_text(digest, &hash) ||
            memchr(item->key.p, '\0', item->key.n))
            return err_set(err, ERR_INTEGRITY,
                           "%s/names.json is damaged; remove it and name the images again",
                           store->dir);
        names[count++] = (struct image_name){arena_text(mem, item->key), arena_text(mem, digest)};
    }
    *out = names;
    *n = count;
    return 0;
}

/* Held only while a small file is read and written again, so waiting for it is short. */
static int lock_names(const struct image_store *store, int *out_fd, struct err *err)
{
    AUTO_FD int fd = openat(store->dir_fd, "names.lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    uint64_t until = clock_us() + LOCK_WAIT_US;

    if (fd < 0)
        return err_os(err, "opening %s/names.lock", store->dir);
    while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        struct timespec pause = {0, LOCK_PAUSE_NS};

        if (errno != EWOULDBLOCK && errno != EINTR)
            return err_os(err, "locking %s/names.lock", store->dir);
        if (clock_us() > until)
            return err_set(err, ERR_TIMEOUT, "another program keeps %s/names.lock", store->dir);
        (void)nanosleep(&pause, NULL); /* flock has no deadline of its own */
    }
    *out_fd = TAKE_FD(fd);
    return 0;
}

static bool is_meant(const struct image_name *entry, const char *name, const char *digest)
{
    return name ? strcmp(entry->name, name) == 0 : strcmp(entry->digest, digest) == 0;
}

int names_change(const struct image_store *store, const char *name, const char *digest,
                 struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(IMAGE_MEMORY_MAX);
    AUTO_BUF struct buf text = BUF(IMAGE_NAMES_MAX);
    AUTO_FD int lock = -1;
    struct json *root = json_object(&mem);
    struct image_name *names = NULL;
    size_t n = 0;

    if (lock_names(store, &lock, err) < 0 || names_read(store, &mem, &names, &n, err) < 0)
        return -1;
    for (size_t i = 0; i < n; i++)
        if (!is_meant(&names[i], name, digest))
            json_put_text(&mem, root, names[i].name, names[i].digest);
    if (name && digest)
        json_put_text(&mem, root, name, digest);
    if (root->n > IMAGE_STORE_MAX)
        return err_set(err, ERR_LIMIT, "more than %d names of images; remove some",
                       IMAGE_STORE_MAX);
    if (json_canonical(root, &text, err) < 0)
        return err_in(err, "names of images");
    return file_replace(arena_printf(&mem, "%s/names.json", store->dir), text.p, text.n, 0600, err);
}
