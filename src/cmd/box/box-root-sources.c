/* SPDX-License-Identifier: Apache-2.0 */

/* Sources are taken as detached copies of their mounts before anything is covered, so nothing of
 * the host has to stay visible while the root is put together, and what was validated is what is
 * mounted: root hands over descriptors; an ordinary user's sources are opened again here, in the
 * mount namespace they will be used in, and must be the same device and inode the caller saw. */

#include "cmd/box/box-root.h"

#include "lib/base/buf.h"
#include "lib/base/limits.h"
#include "lib/linux/process.h"
#include "lib/linux/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define OVERLAY_OPTIONS_MAX 4000 /* the kernel takes one page */

int tree_clone(int dir_fd, const char *path, unsigned flags)
{
    return (int)syscall(SYS_open_tree, dir_fd, path,
                        OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | (unsigned)AT_RECURSIVE | flags);
}

int tree_set(int fd, uint64_t set, uint64_t propagation, int userns_fd)
{
    struct mount_attr attr = {.attr_set = set, .propagation = propagation};

    if (userns_fd >= 0) {
        attr.attr_set |= MOUNT_ATTR_IDMAP;
        attr.userns_fd = (__u64)(unsigned)userns_fd;
    }
    return (int)syscall(SYS_mount_setattr, fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr,
                        sizeof attr);
}

int tree_attach(int tree_fd, int target_fd)
{
    return (int)syscall(SYS_move_mount, tree_fd, "", target_fd, "",
                        MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
}

const struct box_mount *mount_at(const struct box *box, uint32_t i)
{
    return (const struct box_mount *)plan_array(box->plan, box->plan->mounts) + i;
}

bool source_needed(const struct box_mount *mount)
{
    return mount->kind == MOUNT_BIND || mount->kind == MOUNT_LAYER;
}

int source_check(const struct box_mount *mount, int fd, const char *path, struct err *err)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return err_os(err, "looking at %s", path);
    if (st.st_dev != mount->device || st.st_ino != mount->inode)
        return err_set(err, ERR_INTEGRITY, "%s is not what was checked; it was exchanged meanwhile",
                       path);
    return 0;
}

/* A user namespace that maps the owner of a source to the sandbox's user, for an idmapped mount.
 * It is needed only as a descriptor, so a child that does nothing carries it. */
static int open_idmap(const struct box_plan *plan, const struct box_mount *mount, int *out,
                      struct err *err)
{
    struct clone_request request = {.flags = CLONE_NEWUSER, .cgroup_fd = -1};
    AUTO_FD int pidfd = -1;
    char path[64];
    pid_t pid = sys_clone(&request, &pidfd);
    int failed;

    if (pid < 0)
        return err_os(err, "making a user namespace for an id map");
    if (pid == 0) {
        (void)pause();
        _exit(0);
    }
    (void)snprintf(path, sizeof path, "/proc/%d/ns/user", (int)pid);
    failed = idmap_write(pid, mount->idmap_uid, plan->host_uid, mount->idmap_gid, plan->host_gid, 0,
                         err);
    if (!failed) {
        *out = open(path, O_RDONLY | O_CLOEXEC);
        if (*out < 0)
            failed = err_os(err, "opening the id map");
    }
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
    return failed;
}

/* Opens what the plan names by path, in our own mount namespace, and makes sure it is that. */
static int open_checked(const char *path, uint64_t device, uint64_t inode, int *out,
                        struct err *err)
{
    AUTO_FD int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    struct box_mount identity = {.device = device, .inode = inode};

    if (fd < 0)
        return err_os(err, "opening %s", path);
    if (source_check(&identity, fd, path, err) < 0)
        return -1;
    *out = TAKE_FD(fd);
    return 0;
}

/* "lowerdir=...,upperdir=...,workdir=..." through descriptors: no length or character of a path
 * can disturb it. The descriptors stay open until the process ends; they are close-on-exec. */
static int overlay_options(const struct box *box, const struct box_mount *mount, struct buf *out,
                           struct err *err)
{
    const struct box_lower *lowers = plan_array(box->plan, mount->lowers);
    const char *layer = plan_text(box->plan, mount->source);
    char work[PATH_BYTES_MAX + sizeof LAYER_WORK];
    int layer_fd = -1, work_fd;
    int fd = -1;

    if (buf_add_text(out, "userxattr,lowerdir=", err) < 0)
        return -1;
    for (uint32_t i = 0; i < mount->lower_n; i++)
        if (open_checked(plan_text(box->plan, lowers[i].path), lowers[i].device, lowers[i].inode,
                         &fd, err) < 0 ||
            buf_addf(out, err, "%s/proc/self/fd/%d", i ? ":" : "", fd) < 0)
            return -1;
    if (open_checked(layer, mount->device, mount->inode, &layer_fd, err) < 0)
        return -1;
    /* Beside the layer, in a folder nobody but our caller can write to. */
    (void)snprintf(work, sizeof work, "%.4095s" LAYER_WORK, layer);
    work_fd = open(work, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (work_fd < 0)
        return err_os(err, "opening %.200s", work);
    return buf_addf(out, err, ",upperdir=/proc/self/fd/%d,workdir=/proc/self/fd/%d", layer_fd,
                    work_fd);
}

static bool is_same_layer(const struct box *box, uint32_t i, uint32_t j)
{
    const struct box_mount *one = mount_at(box, i), *other = mount_at(box, j);

    return other->kind == MOUNT_LAYER && other->lower_n && one->device == other->device &&
           one->inode == other->inode;
}

/* Mounted at the stage, taken from there as a detached copy for each place that shows it, and the
 * stage cleared again. One upper folder can be in one overlay only. */
static int open_overlay(struct box *box, uint32_t i, struct err *err)
{
    const struct box_mount *mount = mount_at(box, i);
    const char *target = plan_text(box->plan, mount->target);
    AUTO_BUF struct buf options = BUF(OVERLAY_OPTIONS_MAX);

    if (box->tree_fds[i] >= 0)
        return 0; /* taken together with an earlier one */
    if (overlay_options(box, mount, &options, err) < 0)
        return -1;
    if (syscall(SYS_mount, "overlay", STAGE, "overlay", NOSUID_NODEV, buf_text(&options)) < 0)
        return err_os(err, "layering %s", target);
    for (uint32_t j = i; j < box->plan->mount_n; j++) {
        AUTO_FD int tree = -1;

        if (!is_same_layer(box, i, j))
            continue;
        tree = tree_clone(AT_FDCWD, STAGE, 0);
        if (tree < 0 || tree_set(tree, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, PRIVATE, -1) < 0)
            return err_os(err, "taking the layers of %s", target);
        box->tree_fds[j] = TAKE_FD(tree);
    }
    if (syscall(SYS_umount2, STAGE, DETACH) < 0)
        return err_os(err, "clearing the stage of %s", target);
    return 0;
}

int root_separate(struct err *err)
{
    if (syscall(SYS_mount, NULL, "/", NULL, REC_PRIVATE, NULL) < 0)
        return err_os(err, "separating our mounts from the host's");
    return 0;
}

bool plan_has_overlays(const struct box_plan *plan)
{
    const struct box_mount *mounts = plan_array(plan, plan->mounts);

    for (uint32_t i = 0; i < plan->mount_n; i++)
        if (mounts[i].lower_n)
            return true;
    return false;
}

int source_open(struct box *box, uint32_t i, struct err *err)
{
    const struct box_mount *mount = mount_at(box, i);
    const char *path = plan_text(box->plan, mount->source);
    AUTO_FD int opened = -1;
    AUTO_FD int userns_fd = -1;
    AUTO_FD int tree = -1;
    int from = mount->fd;
    uint64_t flags = MOUNT_ATTR_NOSUID;

    if (from < 0) {
        opened = open(path, O_PATH | O_CLOEXEC | O_NOFOLLOW);
        if (opened < 0)
            return err_os(err, "opening %s", path);
        from = opened;
    }
    if (source_check(mount, from, path, err) < 0)
        return -1;
    tree = tree_clone(from, "", AT_EMPTY_PATH);
    if (tree < 0)
        return err_os(err, "taking the mount of %s", path);
    if (!mount->is_device)
        flags |= MOUNT_ATTR_NODEV;
    if (!mount->writable && !box_lacks("read-only mounts"))
        flags |= MOUNT_ATTR_RDONLY;
    if (mount->noexec)
        flags |= MOUNT_ATTR_NOEXEC;
    if (mount->idmapped && open_idmap(box->plan, mount, &userns_fd, err) < 0)
        return -1;
    if (tree_set(tree, flags, PRIVATE, userns_fd) < 0)
        return err_os(err, "setting the flags of %s", path);
    box->tree_fds[i] = TAKE_FD(tree);
    return 0;
}

static int open_sources(struct box *box, bool early, bool overlays, struct err *err)
{
    for (uint32_t i = 0; i < box->plan->mount_n; i++) {
        const struct box_mount *mount = mount_at(box, i);
        bool handed_over = box->plan->started_by_root && mount->fd >= 0;

        if (!source_needed(mount) || handed_over != early || (mount->lower_n > 0) != overlays ||
            (box->prepared && root_is_shared(mount)))
            continue;
        if ((overlays ? open_overlay(box, i, err) : source_open(box, i, err)) < 0)
            return -1;
    }
    return 0;
}

/* Root opens what the caller handed over while it still is root on the host; everything else is
 * opened inside the new mount namespace. What the caller opened lies in its own mount namespace
 * and is taken there; only then outer enters one of its own, where the overlays it mounts on the
 * way do not show on the host. */
int root_open_sources(struct box *box, bool before_namespaces, struct err *err)
{
    bool leave = before_namespaces && box->plan->started_by_root && plan_has_overlays(box->plan);

    if (open_sources(box, before_namespaces, false, err) < 0)
        return -1;
    if (leave && unshare(CLONE_NEWNS) < 0)
        return err_os(err, "entering a mount namespace");
    if (leave && root_separate(err) < 0)
        return -1;
    return open_sources(box, before_namespaces, true, err);
}
