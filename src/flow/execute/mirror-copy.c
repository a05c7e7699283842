/* SPDX-License-Identifier: Apache-2.0 */

/* A folder of this machine copied into the layer of a sandbox that is being made.
 *
 * The folder goes on changing while it is copied. A file that does is copied again, a few times;
 * one that never holds still is left out and named, so that nobody works on half of one state and
 * half of another. What vanishes meanwhile was not there. */

#include "flow/execute/mirror.h"
#include "flow/execute/orders.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define NAMED_MAX 8U /* files that never held still */

struct fill {
    struct run *run;
    struct files files; /* for its signals and counters only */
    struct mirror_base *base;
    struct stat top;
    uint64_t bytes_max;
    uint64_t entries_max;
    bool on_snapshot;
    struct buf unsteady;
    char path[PATH_BYTES_MAX];
    struct err *err;
};

/* Started by root we may read more than the folder's owner may. */
static bool is_open_to_owner(const struct fill *fill, const struct stat *st)
{
    return !fill->run->offer.started_by_root || st->st_uid == fill->top.st_uid ||
           st->st_mode & S_IROTH;
}

static int give(const struct fill *fill, int dir_fd, const char *name)
{
    const struct offer *offer = &fill->run->offer;

    if (offer->started_by_root && fchownat(dir_fd, name, offer->host_uid, offer->host_gid,
                                           AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) < 0)
        return err_os(fill->err, "giving %.300s to the sandbox", fill->path);
    return 0;
}

static int check_room(const struct fill *fill, uint64_t more)
{
    const struct moved *moved = &fill->run->outcome.moved;

    if (moved->bytes + more > fill->bytes_max)
        return err_set(fill->err, ERR_LIMIT,
                       "the workspace has more than the %llu bytes the sandbox may take on disk; "
                       "give it more with --disk",
                       (unsigned long long)fill->bytes_max);
    if (moved->entries >= fill->entries_max)
        return err_set(fill->err, ERR_LIMIT,
                       "the workspace has more than the %llu files the sandbox may have; give it "
                       "more with --inodes",
                       (unsigned long long)fill->entries_max);
    return 0;
}

static int note(struct fill *fill, const struct mirror_entry *entry)
{
    fill->run->outcome.moved.entries++;
    tree_note(&fill->base->tree, entry);
    return tree_add(&fill->base->tree, entry, fill->err);
}

static int note_unsteady(struct fill *fill)
{
    struct moved *moved = &fill->run->outcome.moved;
    struct err ignored; /* a list that is full says how many there are all the same */

    if (moved->unsteady++ < NAMED_MAX)
        (void)!buf_addf(&fill->unsteady, &ignored, "%s%s", fill->unsteady.n ? ", " : "",
                        fill->path);
    return 0;
}

/* 0: copied, with its hash; 1: it never held still. */
static int copy_steady(struct fill *fill, int from, int to, struct stat *st,
                       char hash[HASH_TEXT_BYTES])
{
    uint64_t before = fill->run->outcome.moved.bytes;

    for (unsigned tries = 0; tries < MIRROR_TRIES; tries++) {
        struct stat after;

        fill->run->outcome.moved.bytes = before;
        if (fstat(from, st) < 0)
            return err_os(fill->err, "looking at %.300s", fill->path);
        if (check_room(fill, (uint64_t)st->st_blocks * 512U) < 0)
            return -1;
        if (copy_content(&fill->files, from, to, st->st_size, hash, fill->err) < 0) {
            if (fill->err->code != ERR_CONFLICT || fill->files.cancelled)
                return -1;
            continue; /* it became shorter */
        }
        if (fstat(from, &after) < 0)
            return err_os(fill->err, "looking at %.300s", fill->path);
        if (same_moment(st, &after))
            return 0;
    }
    fill->run->outcome.moved.bytes = before;
    return 1;
}

static int copy_file(struct fill *fill, int from_dir, int to_dir, const char *name)
{
    AUTO_FD int from =
        openat(from_dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    AUTO_FD int to = -1;
    struct mirror_entry entry = {.path = fill->path, .target = "", .type = 'f'};
    struct timespec times[] = {{.tv_nsec = UTIME_OMIT}, {0}};
    struct stat st;
    int unsteady;

    if (from < 0 || fstat(from, &st) < 0 || !S_ISREG(st.st_mode) || !is_open_to_owner(fill, &st)) {
        fill->run->outcome.moved.skipped += from >= 0 || errno != ENOENT;
        return 0;
    }
    to = openat(to_dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (to < 0)
        return err_os(fill->err, "copying %.300s", fill->path);
    unsteady = copy_steady(fill, from, to, &st, entry.hash);
    if (unsteady < 0)
        return err_in(fill->err, "copying %.200s", fill->path);
    if (unsteady) {
        if (unlinkat(to_dir, name, 0) < 0)
            return err_os(fill->err, "taking %.300s back", fill->path);
        return note_unsteady(fill);
    }
    entry.mode = st.st_mode & COPY_MODE_MAX;
    entry.size = (uint64_t)st.st_size;
    times[1] = st.st_mtim;
    if (give(fill, to, "") < 0)
        return -1;
    if (fchmod(to, entry.mode) < 0 || futimens(to, times) < 0)
        return err_os(fill->err, "finishing %.300s", fill->path);
    return note(fill, &entry);
}

static int copy_link(struct fill *fill, int from_dir, int to_dir, const char *name)
{
    char target[PATH_BYTES_MAX];
    struct mirror_entry entry = {.path = fill->path, .target = target, .type = 'l'};
    ssize_t n = readlinkat(from_dir, name, target, sizeof target - 1);

    if (n <= 0)
        return 0; /* gone, or another thing now */
    target[n] = '\0';
    if (check_room(fill, 0) < 0)
        return -1;
    if (symlinkat(target, to_dir, name) < 0)
        return err_os(fill->err, "copying %.300s", fill->path);
    return give(fill, to_dir, name) < 0 ? -1 : note(fill, &entry);
}

static int copy_folder(struct fill *fill, int from, int to, size_t n, unsigned depth);

static int copy_below(struct fill *fill, int from_dir, int to_dir, const char *name, size_t n,
                      const struct stat *st, unsigned depth)
{
    AUTO_FD int from = openat(from_dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    AUTO_FD int to = -1;
    struct mirror_entry entry = {
        .path = fill->path, .target = "", .type = 'd', .mode = st->st_mode & COPY_MODE_MAX};
    struct timespec times[] = {{.tv_nsec = UTIME_OMIT}, st->st_mtim};

    if (from < 0 || !is_open_to_owner(fill, st)) {
        fill->run->outcome.moved.skipped += from >= 0 || errno != ENOENT;
        return 0;
    }
    if (check_room(fill, 0) < 0)
        return -1;
    if (mkdirat(to_dir, name, 0700) < 0)
        return err_os(fill->err, "copying %.300s", fill->path);
    to = openat(to_dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (to < 0)
        return err_os(fill->err, "opening the copy of %.300s", fill->path);
    if (note(fill, &entry) < 0 ||
        copy_folder(fill, from, to, n + strlen(name) + (n > 0), depth + 1) < 0 ||
        give(fill, to, "") < 0)
        return -1;
    if (fchmod(to, entry.mode) < 0 || futimens(to, times) < 0)
        return err_os(fill->err, "finishing %.300s", fill->path);
    return 0;
}

static int copy_entry(struct fill *fill, int from, int to, const char *name, size_t n,
                      unsigned depth)
{
    struct stat st;

    if (n + strlen(name) + 2 > sizeof fill->path)
        return err_set(fill->err, ERR_LIMIT, "a path of more than %d bytes", PATH_BYTES_MAX - 1);
    (void)snprintf(fill->path + n, sizeof fill->path - n, "%s%s", n ? "/" : "", name);
    if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : err_os(fill->err, "looking at %.300s", fill->path);
    if (S_ISREG(st.st_mode))
        return copy_file(fill, from, to, name);
    if (S_ISLNK(st.st_mode))
        return copy_link(fill, from, to, name);
    if (S_ISDIR(st.st_mode))
        return copy_below(fill, from, to, name, n, &st, depth);
    fill->run->outcome.moved.skipped++;
    return 0;
}

static int copy_folder(struct fill *fill, int from, int to, size_t n, unsigned depth)
{
    AUTO_NAMES struct folder_names names = {0};

    if (depth > WORKSPACE_DEPTH_MAX)
        return err_set(fill->err, ERR_LIMIT, "more than %d folders inside each other",
                       WORKSPACE_DEPTH_MAX);
    if (folder_names(from, fill->entries_max, &names, fill->err) < 0)
        return err_in(fill->err, "%.300s", fill->path);
    for (size_t i = 0; i < names.n; i++) {
        if (copy_go_on(&fill->files, 0, fill->err) < 0 ||
            copy_entry(fill, from, to, names.of[i], n, depth) < 0)
            return -1;
        fill->path[n] = '\0';
    }
    return 0;
}

static int fill_layer(struct fill *fill, int to, const char *run_dir)
{
    AUTO_FD int from = openat(fill->run->plan.mirror_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct mirror_entry top = {.path = "", .target = "", .type = 'd'};
    struct moved *moved = &fill->run->outcome.moved;
    struct hash hash;

    if (from < 0 || fstat(from, &fill->top) < 0)
        return err_os(fill->err, "opening %.300s", fill->run->plan.mirror_source);
    fill->base->device = fill->top.st_dev;
    fill->base->inode = fill->top.st_ino;
    fill->base->source = fill->run->plan.mirror_source;
    top.mode = fill->top.st_mode & COPY_MODE_MAX;
    tree_note(&fill->base->tree, &top);
    /* On a snapshot its workspace comes along. What both sides once had in common is not known
     * then, so the base is empty: nothing of this machine is overwritten without being asked. */
    if (!fill->on_snapshot && copy_folder(fill, from, to, 0, 0) < 0)
        return -1;
    tree_sort(&fill->base->tree);
    hasher_end(&fill->base->tree.tree, &hash);
    hash_text(&hash, moved->hash);
    moved->is_tree = true;
    moved->left_out = arena_text(&fill->run->mem, buf_str(&fill->unsteady));
    return base_write(run_dir, fill->base, fill->err);
}

int mirror_fill(struct run *run, struct local *local, struct err *err)
{
    AUTO_FD int to = -1;
    struct mirror_base base = {0};
    struct fill fill = {
        .run = run,
        .base = &base,
        .files = {.fd = -1, .signals_fd = local->signals_fd, .moved = &run->outcome.moved},
        .bytes_max = run->plan.limits.of[LIMIT_DISK].value,
        .entries_max = run->plan.limits.of[LIMIT_INODES].value,
        .unsteady = BUF(NAMED_MAX * PATH_BYTES_MAX),
        .err = err
    };
    int layer = layer_fd(local, MIRROR_LAYER, err);
    int failed;

    if (layer < 0)
        return -1;
    for (size_t i = 0; i < run->plan.mount_n; i++)
        fill.on_snapshot |= strcmp(run->plan.mounts[i].source, MIRROR_LAYER) == 0 &&
                            run->plan.mounts[i].lower_n > 0;
    to = openat(layer, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (to < 0)
        return err_os(err, "opening the layer of the workspace");
    tree_init(&base.tree);
    failed = fill_layer(&fill, to, local->run_dir);
    tree_done(&base.tree);
    buf_done(&fill.unsteady);
    if (failed && fill.files.cancelled) {
        struct signalfd_siginfo info = {.ssi_signo = SIGTERM};

        (void)!read(local->signals_fd, &info, sizeof info); /* somebody else may have read it */
        local->cancelled_by = (int)info.ssi_signo;
        local->cancel_reason = order_reason(&info);
    }
    return failed ? err_in(err, "copying the workspace") : 0;
}
