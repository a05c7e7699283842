/* SPDX-License-Identifier: Apache-2.0 */

/* Bringing changes back to the folder of this machine.
 *
 * Every name is resolved beneath the folder and through no link. A file is written beside its place
 * without a name, must have the content that was decided on, and then takes its place at once; what
 * it replaces must still be what was looked at. A change that cannot be made is noted and the
 * others go on: whoever dies in between leaves some of them made, and the next look finds those the
 * same on both sides. */

#include "flow/execute/mirror.h"

#include "lib/linux/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1U
#endif
#define TEMP_BYTES 40

int entry_open(int root_fd, const char *path)
{
    const char *name = NULL;
    AUTO_FD int dir_fd = entry_parent(root_fd, path, &name);
    AUTO_FD int fd = -1;
    struct stat st;

    if (dir_fd < 0)
        return -1;
    fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? TAKE_FD(fd) : -1;
}

static int name_temp(char out[TEMP_BYTES], struct err *err)
{
    unsigned long long random = 0;

    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
        return err_os(err, "taking random bytes");
    (void)snprintf(out, TEMP_BYTES, ".brig-sync-%016llx", random);
    return 0;
}

/* What lies there must still be what was decided about. */
static int check_place(int dir_fd, const char *name, const struct mirror_pending *pending,
                       struct err *err)
{
    struct stat st;

    if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
        if (errno == ENOENT && pending->host.type == 0)
            return 0;
    } else if (pending->host.type && st.st_ino == pending->seen.st_ino &&
               st.st_dev == pending->seen.st_dev && same_moment(&st, &pending->seen)) {
        return 0;
    } else if (pending->host.type == 'd' && S_ISDIR(st.st_mode)) {
        return 0; /* its times change with what is in it */
    }
    return err_set(err, ERR_CONFLICT, "it changed here meanwhile");
}

/* Takes its place at once. */
static int put_in_place(int dir_fd, const char *temp, const char *name,
                        const struct mirror_pending *pending, struct err *err)
{
    bool replace = pending->host.type != 0;

    if (check_place(dir_fd, name, pending, err) < 0 ||
        syscall(SYS_renameat2, dir_fd, temp, dir_fd, name, replace ? 0U : RENAME_NOREPLACE) < 0) {
        if (err->code != ERR_CONFLICT)
            (void)err_os(err, "putting it in place");
        (void)unlinkat(dir_fd, temp, 0); /* ours, made just now */
        return -1;
    }
    return 0;
}

/* New things belong to whoever owns the folder they lie in, changed ones to whom they belonged. */
static int own(const struct mirror_pending *pending, int dir_fd, int fd, struct err *err)
{
    struct stat st = pending->seen;

    if (geteuid() != 0)
        return 0;
    if (pending->host.type == 0 && fstat(dir_fd, &st) < 0)
        return err_os(err, "looking at the folder");
    return fchown(fd, st.st_uid, st.st_gid) < 0 ? err_os(err, "giving it its owner") : 0;
}

static int write_copy(struct mirror *mirror, const struct mirror_pending *pending, int dir_fd,
                      int to, struct err *err)
{
    AUTO_FD int from = entry_open(mirror->inside_fd, pending->is->path);
    struct timespec times[] = {{.tv_nsec = UTIME_OMIT}, {0}};
    char hash[HASH_TEXT_BYTES];
    struct stat st;

    if (from < 0 || fstat(from, &st) < 0)
        return err_set(err, ERR_CONFLICT, "it is gone inside");
    if (copy_content(mirror->files, from, to, st.st_size, hash, err) < 0)
        return -1;
    if (strcmp(hash, pending->is->hash) != 0)
        return err_set(err, ERR_CONFLICT, "it changed inside while it was copied");
    times[1] = st.st_mtim;
    if (own(pending, dir_fd, to, err) < 0)
        return -1;
    if (fchmod(to, pending->is->mode) < 0 || futimens(to, times) < 0)
        return err_os(err, "finishing it");
    return 0;
}

/* Without a name as long as it is not complete, where the file system can do that. */
static int open_copy(int dir_fd, const char *temp, bool *named, struct err *err)
{
    int fd = openat(dir_fd, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);

    *named = fd < 0;
    if (fd < 0)
        fd = openat(dir_fd, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    return fd < 0 ? err_os(err, "making it") : fd;
}

/* A new file gets its only name when it is complete: whoever is killed leaves nothing beside it. */
static int link_new(const char *link, int dir_fd, const char *name,
                    const struct mirror_pending *pending, struct err *err)
{
    if (check_place(dir_fd, name, pending, err) < 0)
        return -1;
    if (linkat(AT_FDCWD, link, dir_fd, name, AT_SYMLINK_FOLLOW) == 0)
        return 0;
    return errno == EEXIST ? err_set(err, ERR_CONFLICT, "it changed here meanwhile")
                           : err_os(err, "naming it");
}

static int apply_file(struct mirror *mirror, const struct mirror_pending *pending, int dir_fd,
                      const char *name, struct err *err)
{
    AUTO_FD int to = -1;
    char temp[TEMP_BYTES], link[64];
    bool named = false;

    if (name_temp(temp, err) < 0)
        return -1;
    to = open_copy(dir_fd, temp, &named, err);
    if (to < 0)
        return -1;
    if (write_copy(mirror, pending, dir_fd, to, err) < 0) {
        if (named)
            (void)unlinkat(dir_fd, temp, 0); /* ours, made just now */
        return -1;
    }
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", to);
    if (!named && pending->host.type == 0)
        return link_new(link, dir_fd, name, pending, err);
    if (!named && linkat(AT_FDCWD, link, dir_fd, temp, AT_SYMLINK_FOLLOW) < 0)
        return err_os(err, "naming it");
    return put_in_place(dir_fd, temp, name, pending, err);
}

static int apply_link(const struct mirror_pending *pending, int dir_fd, const char *name,
                      struct err *err)
{
    char temp[TEMP_BYTES];
    struct stat st;

    if (name_temp(temp, err) < 0)
        return -1;
    if (symlinkat(pending->is->target, dir_fd, temp) < 0)
        return err_os(err, "making it");
    if (geteuid() == 0 && fstat(dir_fd, &st) == 0)
        (void)!fchownat(dir_fd, temp, st.st_uid, st.st_gid, AT_SYMLINK_NOFOLLOW);
    return put_in_place(dir_fd, temp, name, pending, err);
}

static int apply_folder(const struct mirror_pending *pending, int dir_fd, const char *name,
                        struct err *err)
{
    AUTO_FD int fd = -1;

    if (pending->host.type != 'd' && mkdirat(dir_fd, name, 0700) < 0)
        return err_os(err, "making it");
    fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return err_os(err, "opening it");
    return own(pending, dir_fd, fd, err);
}

static int remove_entry(const struct mirror_pending *pending, int dir_fd, const char *name,
                        struct err *err)
{
    if (check_place(dir_fd, name, pending, err) < 0)
        return -1;
    if (unlinkat(dir_fd, name, pending->host.type == 'd' ? AT_REMOVEDIR : 0) == 0)
        return 0;
    if (errno == ENOTEMPTY || errno == EEXIST)
        return err_set(err, ERR_CONFLICT, "there are files of this machine in it");
    return err_os(err, "removing it");
}

/* Noted with the change; only being told to stop ends it all. */
static int note_failure(struct mirror *mirror, size_t i, const struct err *failure, struct err *err)
{
    struct mirror_change *change = &mirror->changes[i];

    if (mirror->files->cancelled) {
        *err = *failure;
        return -1;
    }
    change->why = failure->code == ERR_CONFLICT ? MIRROR_CONFLICT : MIRROR_FAILED;
    change->note = arena_text(mirror->mem, str_of(failure->text));
    return 0;
}

static bool is_replaced(const struct mirror_pending *pending)
{
    return pending->is && pending->host.type &&
           (pending->host.type == 'd') != (pending->is->type == 'd');
}

/* From the end: what is in a folder goes before it. */
static int apply_removals(struct mirror *mirror, struct err *err)
{
    for (size_t i = mirror->n; i-- > 0;) {
        struct mirror_pending *pending = &mirror->pending[i];
        struct mirror_change *change = &mirror->changes[i];
        const char *name = NULL;
        struct err failure;
        AUTO_FD int dir_fd = -1;

        if (change->done || !mirror_may(mirror, change) ||
            (change->kind != MIRROR_REMOVED && !is_replaced(pending)))
            continue;
        dir_fd = entry_parent(mirror->host_fd, change->path, &name);
        if (dir_fd < 0 ? err_os(&failure, "reaching it") < 0
                       : pending->host.type && remove_entry(pending, dir_fd, name, &failure) < 0) {
            if (note_failure(mirror, i, &failure, err) < 0)
                return -1;
            continue;
        }
        pending->host.type = 0;
        if (change->kind == MIRROR_REMOVED)
            change->done = pending->settled = true;
    }
    return 0;
}

static int apply_one(struct mirror *mirror, const struct mirror_pending *pending, struct err *err)
{
    const char *name = NULL;
    AUTO_FD int dir_fd = entry_parent(mirror->host_fd, pending->is->path, &name);

    if (dir_fd < 0)
        return err_os(err, "reaching the folder it lies in");
    switch (pending->is->type) {
    case 'f':
        return apply_file(mirror, pending, dir_fd, name, err);
    case 'l':
        return apply_link(pending, dir_fd, name, err);
    case 'd':
        return apply_folder(pending, dir_fd, name, err);
    default:
        return err_set(err, ERR_INVALID, "it is no file, folder or link");
    }
}

static int apply_additions(struct mirror *mirror, struct err *err)
{
    for (size_t i = 0; i < mirror->n; i++) {
        struct mirror_pending *pending = &mirror->pending[i];
        struct mirror_change *change = &mirror->changes[i];
        struct err failure = {0};

        if (change->done || !pending->is || !mirror_may(mirror, change) || change->note[0])
            continue;
        if (apply_one(mirror, pending, &failure) < 0) {
            if (note_failure(mirror, i, &failure, err) < 0)
                return -1;
            continue;
        }
        change->done = pending->settled = true;
        change->note = "applied";
    }
    return 0;
}

/* Last of all: a folder may be meant to be read-only. */
static void apply_folder_modes(struct mirror *mirror)
{
    for (size_t i = mirror->n; i-- > 0;) {
        const struct mirror_pending *pending = &mirror->pending[i];
        const char *name = NULL;
        AUTO_FD int dir_fd = -1, fd = -1;

        if (!mirror->changes[i].done || !pending->is || pending->is->type != 'd' ||
            !mirror->changes[i].note[0])
            continue;
        dir_fd = entry_parent(mirror->host_fd, pending->is->path, &name);
        if (dir_fd >= 0)
            fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0 && fchmod(fd, pending->is->mode) < 0)
            mirror->changes[i].note = "applied, but not its mode";
    }
}

int mirror_apply(struct mirror *mirror, struct err *err)
{
    if (apply_removals(mirror, err) < 0 || apply_additions(mirror, err) < 0)
        return -1;
    apply_folder_modes(mirror);
    for (size_t i = 0; i < mirror->n; i++) {
        struct mirror_change *change = &mirror->changes[i];

        if (change->kind == MIRROR_REMOVED && change->done && !change->note[0])
            change->note = "removed";
        /* Left as it is here, for good: the base says that both have settled it. */
        if (!change->done && change->why == MIRROR_CONFLICT && mirror->options->ours &&
            !change->note[0]) {
            mirror->pending[i].settled = change->done = true;
            change->note = "kept as it is here";
        }
    }
    if (syncfs(mirror->host_fd) < 0)
        return err_os(err, "writing %.300s to disk", mirror->base.source);
    return 0;
}

/* ---- the base moves on ---- */

int mirror_move_base(struct mirror *mirror, const char *run_dir, struct err *err)
{
    struct mirror_base next = {
        .source = mirror->base.source, .device = mirror->base.device, .inode = mirror->base.inode};
    const struct mirror_tree *base = &mirror->base.tree;
    size_t at = 0;
    int failed = 0;

    tree_init(&next.tree);
    /* What did not change is in both; what did is in the changes, which are sorted like the base.
     */
    for (size_t i = 0; i < base->n && !failed; i++) {
        while (at < mirror->n && strcmp(mirror->changes[at].path, base->of[i].path) < 0)
            at++;
        if (at < mirror->n && strcmp(mirror->changes[at].path, base->of[i].path) == 0 &&
            mirror->pending[at].settled)
            continue;
        failed = tree_add(&next.tree, &base->of[i], err);
    }
    for (size_t i = 0; i < mirror->n && !failed; i++)
        if (mirror->pending[i].settled && mirror->pending[i].is)
            failed = tree_add(&next.tree, mirror->pending[i].is, err);
    tree_sort(&next.tree);
    if (!failed)
        failed = base_write(run_dir, &next, err);
    tree_done(&next.tree);
    return failed;
}
