/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/snapshot/store-private.h"

#include "lib/base/crash.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

/* Its own set over those below. */
static int add_set(struct arena *mem, struct snapshot *snapshot, struct err *err)
{
    const char **stack = arena_array(mem, const char *, snapshot->stack.n + 2);

    if (snapshot->stack.n + 1 > SNAPSHOT_STACK_MAX)
        return err_set(err, ERR_LIMIT,
                       "more than %d snapshots on each other; \"brig snapshot "
                       "tend\" makes them one",
                       SNAPSHOT_STACK_MAX);
    stack[0] = arena_printf(mem, "%s/layers", snapshot->id);
    for (size_t i = 0; i < snapshot->stack.n; i++)
        stack[i + 1] = snapshot->stack.v[i];
    snapshot->stack = (struct words){stack, snapshot->stack.n + 1};
    return 0;
}

static int make_folder(const struct snapshot_store *store, struct snapshot *snapshot,
                       struct err *err)
{
    char path[64];

    if (mkdirat(store->dir_fd, snapshot->id, 0700) < 0)
        return err_os(err, "creating %s/%s", store->dir, snapshot->id);
    (void)snprintf(path, sizeof path, "%.20s/hold", snapshot->id);
    snapshot->lock_fd = openat(store->dir_fd, path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (snapshot->lock_fd < 0 || flock(snapshot->lock_fd, LOCK_EX | LOCK_NB) < 0)
        return err_os(err, "locking %s/%s", store->dir, path);
    (void)snprintf(path, sizeof path, "%.20s/layers", snapshot->id);
    if (mkdirat(store->dir_fd, path, 0700) < 0)
        return err_os(err, "creating %s/%s", store->dir, path);
    return 0;
}

int snapshot_begin(struct snapshot_store *store, struct arena *mem, struct snapshot *snapshot,
                   struct err *err)
{
    snapshot->lock_fd = -1;
    if (add_set(mem, snapshot, err) < 0)
        return -1;
    /* A sweeper that comes between the folder and its lock removes it: then there is none. */
    if (make_folder(store, snapshot, err) < 0 ||
        (!snapshot->live && snapshot_record_write(store, snapshot, "pending", err) < 0)) {
        snapshot_drop(store, snapshot);
        return -1;
    }
    CRASH_POINT("snapshot begun");
    return 0;
}

/* A folder gets another parent only from somebody who may write to it, and a sandbox can take that
 * right from its own: then it is given for the moment. */
static int move_folder(int from_fd, const char *from, int to_fd, const char *to)
{
    struct stat st;

    if (renameat(from_fd, from, to_fd, to) == 0)
        return 0;
    if (errno != EACCES || fstatat(from_fd, from, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
        fchmodat(from_fd, from, (st.st_mode & 07777) | 0700, 0) < 0 ||
        renameat(from_fd, from, to_fd, to) < 0)
        return -1;
    return fchmodat(to_fd, to, st.st_mode & 07777, 0);
}

int snapshot_move(struct snapshot_store *store, const struct snapshot *snapshot, int dir_fd,
                  const char *from, const char *name, struct err *err)
{
    char path[128];

    (void)snprintf(path, sizeof path, "%.20s/layers/%.64s", snapshot->id, name);
    if (move_folder(dir_fd, from, store->dir_fd, path) < 0)
        return err_os(err, "moving the layer %s into a snapshot", name);
    CRASH_POINT("snapshot layer moved");
    return 0;
}

int snapshot_make_layer(struct snapshot_store *store, const struct snapshot *snapshot,
                        const char *name, unsigned mode, uid_t uid, gid_t gid, int *out_fd,
                        struct err *err)
{
    char path[128];
    AUTO_FD int fd = -1;

    (void)snprintf(path, sizeof path, "%.20s/layers/%.64s", snapshot->id, name);
    if (mkdirat(store->dir_fd, path, 0700) < 0)
        return err_os(err, "creating %s/%s", store->dir, path);
    fd = openat(store->dir_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || (geteuid() == 0 && fchown(fd, uid, gid) < 0) || fchmod(fd, mode) < 0)
        return err_os(err, "preparing %s/%s", store->dir, path);
    *out_fd = TAKE_FD(fd);
    return 0;
}

int snapshot_copy(struct snapshot_store *store, struct snapshot *snapshot, const int *dir_fds,
                  struct err *err)
{
    const char *arguments[SNAPSHOT_STACK_MAX + 2] = {"copy"};
    int fds[SNAPSHOT_STACK_MAX + 1];
    struct tree_result result;
    AUTO_FD int set_fd = -1;
    char set[64];

    if (snapshot->names.n > SNAPSHOT_STACK_MAX)
        return err_set(err, ERR_LIMIT, "more than %d layers", SNAPSHOT_STACK_MAX);
    (void)snprintf(set, sizeof set, "%.20s/layers", snapshot->id);
    if (snapshot_set_open(store, set, &set_fd, err) < 0)
        return -1;
    fds[0] = set_fd;
    for (size_t i = 0; i < snapshot->names.n; i++) {
        arguments[i + 1] = snapshot->names.v[i];
        fds[i + 1] = dir_fds[i];
    }
    if (layers_run(arguments, fds, snapshot->names.n + 1, &result, err) < 0)
        return err_in(err, "copying the sandbox");
    snapshot->bytes = result.bytes;
    snapshot->entries = result.entries;
    CRASH_POINT("snapshot copied");
    return 0;
}

int snapshot_commit(struct snapshot_store *store, struct snapshot *snapshot, struct err *err)
{
    char path[64];
    AUTO_FD int set_fd = -1;

    (void)snprintf(path, sizeof path, "%.20s/layers", snapshot->id);
    if (snapshot_set_open(store, path, &set_fd, err) < 0)
        return -1;
    if (fsync(set_fd) < 0)
        return err_os(err, "syncing %s/%s", store->dir, path);
    if (snapshot_record_write(store, snapshot, "record", err) < 0)
        return -1;
    CRASH_POINT("snapshot recorded");
    (void)snprintf(path, sizeof path, "%.20s/pending", snapshot->id);
    (void)unlinkat(store->dir_fd, path, 0); /* of no meaning any more */
    (void)close(TAKE_FD(snapshot->lock_fd));
    return 0;
}

void snapshot_drop(struct snapshot_store *store, struct snapshot *snapshot)
{
    struct err ignored; /* the next sweep finds it */

    if (snapshot->lock_fd >= 0) {
        (void)!dir_remove(store->dir_fd, snapshot->id, &ignored);
        (void)close(TAKE_FD(snapshot->lock_fd));
    }
    snapshot->id = NULL; /* nobody is told of one that is not there */
}
