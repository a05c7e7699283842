/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/snapshot/store-private.h"

#include "lib/base/io.h"
#include "lib/base/limits.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

int snapshot_store_open(const char *state_dir, struct snapshot_store **out, struct err *err)
{
    AUTO(snapshot_store) struct snapshot_store *store = xcalloc(1, sizeof *store);

    store->dir_fd = -1;
    store->state_dir = xstrdup(state_dir);
    if (asprintf(&store->dir, "%s/snapshots", state_dir) < 0) {
        store->dir = NULL;
        return err_os(err, "naming the store of snapshots");
    }
    if (dir_make_apart(AT_FDCWD, store->dir, err) < 0)
        return -1;
    store->dir_fd = open(store->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (store->dir_fd < 0)
        return err_os(err, "opening %s", store->dir);
    *out = TAKE(store);
    return 0;
}

bool snapshot_store_exists(const char *state_dir)
{
    char path[PATH_BYTES_MAX];

    (void)snprintf(path, sizeof path, "%.4000s/snapshots", state_dir);
    return access(path, F_OK) == 0;
}

void snapshot_store_free(struct snapshot_store *store)
{
    if (!store)
        return;
    if (store->dir_fd >= 0)
        (void)close(store->dir_fd);
    free(store->dir);
    free(store->state_dir);
    free(store);
}

/* ---- finding ---- */

int snapshot_list(struct snapshot_store *store, struct arena *mem, struct snapshot **out, size_t *n,
                  struct err *err)
{
    size_t all = 0, kept = 0;

    if (snapshot_record_list(store, mem, out, &all, err) < 0)
        return -1;
    for (size_t i = 0; i < all; i++)
        if (!(*out)[i].removed)
            (*out)[kept++] = (*out)[i];
    *n = kept;
    return 0;
}

int snapshot_get(struct snapshot_store *store, struct arena *mem, const char *id,
                 struct snapshot *out, struct err *err)
{
    return snapshot_record_read(store, mem, id, out, err);
}

int snapshot_find(struct snapshot_store *store, struct arena *mem, const char *wanted,
                  struct snapshot *out, struct err *err)
{
    struct snapshot *list = NULL;
    const struct snapshot *found = NULL;
    size_t n = 0;

    if (snapshot_is_id(wanted) && snapshot_record_read(store, mem, wanted, out, err) == 0 &&
        !out->removed)
        return 0;
    if (snapshot_list(store, mem, &list, &n, err) < 0)
        return -1;
    for (size_t i = 0; i < n; i++)
        if (*wanted && (strcmp(list[i].name, wanted) == 0 || strcmp(list[i].digest, wanted) == 0))
            found = &list[i];
    if (!found)
        return err_set(err, ERR_NOT_FOUND,
                       "there is no snapshot \"%.100s\"; \"brig snapshot list\" shows those there "
                       "are",
                       wanted);
    *out = *found;
    return 0;
}

/* ---- standing on one ---- */

const char *snapshot_set_id(struct arena *mem, const char *set)
{
    return arena_text(mem, (struct str){set, strcspn(set, "/")});
}

int snapshot_set_open(const struct snapshot_store *store, const char *set, int *out,
                      struct err *err)
{
    *out = openat(store->dir_fd, set, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return *out < 0 ? err_os(err, "opening %s/%s", store->dir, set) : 0;
}

int snapshot_lowers(struct snapshot_store *store, struct arena *mem,
                    const struct snapshot *snapshot, const char *layer,
                    const struct snapshot_lower **out, size_t *n, struct err *err)
{
    struct snapshot_lower *lowers = arena_array(mem, struct snapshot_lower, snapshot->stack.n + 1);

    *n = 0;
    for (size_t i = 0; i < snapshot->stack.n; i++) {
        const char *set = snapshot->stack.v[i];
        const char *path = arena_printf(mem, "%s/%s", set, layer);
        struct stat st;

        if (fstatat(store->dir_fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0) {
            if (errno == ENOENT)
                continue; /* nothing was written to it then */
            return err_os(err, "looking at %s/%s", store->dir, path);
        }
        if (!S_ISDIR(st.st_mode))
            return err_set(err, ERR_INTEGRITY, "%s/%s is no folder", store->dir, path);
        lowers[(*n)++] = (struct snapshot_lower){arena_printf(mem, "%s/%s", store->dir, path),
                                                 st.st_dev, st.st_ino};
    }
    *out = lowers;
    return 0;
}

static int hold_one(const struct snapshot_store *store, const char *set, int *out, struct err *err)
{
    char path[64];
    AUTO_FD int fd = -1;
    struct stat st;

    (void)snprintf(path, sizeof path, "%.20s/hold", set);
    fd = openat(store->dir_fd, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    /* Whoever has it locked for himself is about to remove it. */
    if (fd < 0 || flock(fd, LOCK_SH | LOCK_NB) < 0 || fstat(fd, &st) < 0 || !st.st_nlink)
        return err_set(err, ERR_NOT_FOUND, "snapshot %.20s has just been removed", set);
    *out = TAKE_FD(fd);
    return 0;
}

int snapshot_hold(struct snapshot_store *store, const struct snapshot *snapshot, int *fds,
                  size_t *n, struct err *err)
{
    *n = 0;
    for (size_t i = 0; i < snapshot->stack.n; i++) {
        if (hold_one(store, snapshot->stack.v[i], &fds[*n], err) < 0) {
            while (*n)
                (void)close(fds[--*n]);
            return -1;
        }
        ++*n;
    }
    return 0;
}

int snapshot_hold_alone(const struct snapshot_store *store, const char *id)
{
    char path[64];
    AUTO_FD int fd = -1;

    (void)snprintf(path, sizeof path, "%.20s/hold", id);
    fd = openat(store->dir_fd, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
        return -1;
    return TAKE_FD(fd);
}

/* ---- removing ---- */

static bool is_below_another(const struct snapshot *list, size_t n, const struct snapshot *one)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; &list[i] != one && list[i].id && j < list[i].stack.n; j++)
            if (strncmp(list[i].stack.v[j], one->id, strlen(one->id)) == 0)
                return true;
    return false;
}

/* The record goes first: half a snapshot is none. */
static int erase(struct snapshot_store *store, const char *id, struct err *err)
{
    char path[64];

    (void)snprintf(path, sizeof path, "%.20s/record", id);
    if (unlinkat(store->dir_fd, path, 0) < 0 && errno != ENOENT)
        return err_os(err, "removing %s/%s", store->dir, path);
    return dir_remove(store->dir_fd, id, err);
}

/* A removed one can free those below it, which were removed before: until nothing changes. */
static int sweep_removed(struct snapshot_store *store, struct snapshot *list, size_t n,
                         struct err *err)
{
    bool again = true;

    while (again) {
        again = false;
        for (size_t i = 0; i < n; i++) {
            AUTO_FD int lock_fd = -1;

            if (!list[i].id || !list[i].removed || is_below_another(list, n, &list[i]))
                continue;
            lock_fd = snapshot_hold_alone(store, list[i].id);
            if (lock_fd < 0)
                continue; /* a sandbox stands on it */
            if (erase(store, list[i].id, err) < 0)
                return -1;
            list[i].id = NULL;
            again = true;
        }
    }
    return 0;
}

/* Its maker died. When every layer had been moved here it is complete but for its record. */
static int sweep_unfinished(struct snapshot_store *store, const char *id, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(RUN_MEMORY_MAX);
    AUTO_BUF struct buf text = BUF(SNAPSHOT_RECORD_MAX);
    AUTO_FD int lock_fd = snapshot_hold_alone(store, id);
    const struct json *root = NULL, *names;
    const char *pending = arena_printf(&mem, "%s/pending", id);
    const char *record = arena_printf(&mem, "%s/record", id);
    bool complete = true;
    struct mark where;
    struct err absent;
    struct stat st;

    if (lock_fd < 0 && fstatat(store->dir_fd, arena_printf(&mem, "%s/hold", id), &st, 0) == 0)
        return 0; /* its maker lives */
    if (file_read(store->dir_fd, pending, &text, &absent) < 0 ||
        json_parse(&mem, buf_str(&text), &root, &where, &absent) < 0)
        return dir_remove(store->dir_fd, id, err);
    names = json_get(root, "layers");
    complete = names && names->n;
    for (const struct json *name = complete ? names->first : NULL; name; name = name->next)
        complete =
            complete && fstatat(store->dir_fd,
                                arena_printf(&mem, "%s/layers/" STR_FMT, id, STR_ARG(name->text)),
                                &st, AT_SYMLINK_NOFOLLOW) == 0;
    if (!complete)
        return dir_remove(store->dir_fd, id, err);
    if (renameat(store->dir_fd, pending, store->dir_fd, record) < 0)
        return err_os(err, "completing %s/%s", store->dir, id);
    return 0;
}

int snapshot_sweep(struct snapshot_store *store, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(RUN_MEMORY_MAX);
    struct snapshot *list = NULL;
    DIR *dir = opendir(store->dir);
    const struct dirent *entry;
    size_t n = 0;
    int failed = 0;

    if (!dir)
        return err_os(err, "opening %s", store->dir);
    while (!failed && (entry = readdir(dir)) != NULL) {
        char path[64];

        (void)snprintf(path, sizeof path, "%.20s/record", entry->d_name);
        if (snapshot_is_id(entry->d_name) && faccessat(store->dir_fd, path, F_OK, 0) < 0)
            failed = sweep_unfinished(store, entry->d_name, err);
    }
    (void)closedir(dir);
    if (failed || snapshot_record_list(store, &mem, &list, &n, err) < 0)
        return -1;
    return sweep_removed(store, list, n, err);
}

int snapshot_remove(struct snapshot_store *store, const struct snapshot *snapshot, bool *freed,
                    struct err *err)
{
    struct snapshot removed = *snapshot;
    struct stat st;

    removed.removed = true;
    if (snapshot_record_write(store, &removed, "record", err) < 0 || snapshot_sweep(store, err) < 0)
        return -1;
    *freed = fstatat(store->dir_fd, snapshot->id, &st, AT_SYMLINK_NOFOLLOW) < 0;
    return 0;
}
