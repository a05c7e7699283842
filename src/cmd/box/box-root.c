/* SPDX-License-Identifier: Apache-2.0 */

/* The file system of a sandbox: a small tmpfs as root, and on it, one after the other, what the
 * plan lists.
 *
 * Sources are taken as detached copies of their mounts before anything is covered, so nothing of
 * the host has to stay visible while the root is put together, and what was validated is what is
 * mounted: root hands over descriptors; an ordinary user's sources are opened again here, in the
 * mount namespace they will be used in, and must be the same device and inode the caller saw.
 *
 * Targets are made and opened beneath the new root without following any link. */

#include "cmd/box/box.h"

#include "lib/base/buf.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/linux/process.h"
#include "lib/linux/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define STAGE "/tmp" /* covered in our own mount namespace only */

/* Of <sys/mount.h>, which this C library cannot include together with <linux/mount.h>. */
#define REC_PRIVATE (16384UL | 1UL << 18)
#define PRIVATE (1UL << 18)
#define BIND 4096UL
#define DETACH 2
#define NOSUID_NODEV 6UL
#define OVERLAY_OPTIONS_MAX 4000 /* the kernel takes one page */

static int tree_clone(int dir_fd, const char *path, unsigned flags)
{
    return (int)syscall(SYS_open_tree, dir_fd, path,
                        OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | (unsigned)AT_RECURSIVE | flags);
}

static int tree_set(int fd, uint64_t set, uint64_t propagation, int userns_fd)
{
    struct mount_attr attr = {.attr_set = set, .propagation = propagation};

    if (userns_fd >= 0) {
        attr.attr_set |= MOUNT_ATTR_IDMAP;
        attr.userns_fd = (__u64)(unsigned)userns_fd;
    }
    return (int)syscall(SYS_mount_setattr, fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr,
                        sizeof attr);
}

static int tree_attach(int tree_fd, int target_fd)
{
    return (int)syscall(SYS_move_mount, tree_fd, "", target_fd, "",
                        MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
}

static const struct box_mount *mount_at(const struct box *box, uint32_t i)
{
    return (const struct box_mount *)plan_array(box->plan, box->plan->mounts) + i;
}

static bool has_source(const struct box_mount *mount)
{
    return mount->kind == MOUNT_BIND || mount->kind == MOUNT_LAYER;
}

static int check_identity(const struct box_mount *mount, int fd, const char *path, struct err *err)
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
    if (check_identity(&identity, fd, path, err) < 0)
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

static int separate_mounts(struct err *err)
{
    if (syscall(SYS_mount, NULL, "/", NULL, REC_PRIVATE, NULL) < 0)
        return err_os(err, "separating our mounts from the host's");
    return 0;
}

static bool has_overlays(const struct box_plan *plan)
{
    const struct box_mount *mounts = plan_array(plan, plan->mounts);

    for (uint32_t i = 0; i < plan->mount_n; i++)
        if (mounts[i].lower_n)
            return true;
    return false;
}

static int open_source(struct box *box, uint32_t i, struct err *err)
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
    if (check_identity(mount, from, path, err) < 0)
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

        if (!has_source(mount) || handed_over != early || (mount->lower_n > 0) != overlays ||
            (box->prepared && root_is_shared(mount)))
            continue;
        if ((overlays ? open_overlay(box, i, err) : open_source(box, i, err)) < 0)
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
    bool leave = before_namespaces && box->plan->started_by_root && has_overlays(box->plan);

    if (open_sources(box, before_namespaces, false, err) < 0)
        return -1;
    if (leave && unshare(CLONE_NEWNS) < 0)
        return err_os(err, "entering a mount namespace");
    if (leave && separate_mounts(err) < 0)
        return -1;
    return open_sources(box, before_namespaces, true, err);
}

/* ---- file systems of our own ---- */

struct fs_option {
    const char *key;
    const char *value; /* NULL: a flag */
};

static int fs_mount(const char *type, const struct fs_option *options, size_t n, unsigned flags,
                    int *out, struct err *err)
{
    AUTO_FD int fs = (int)syscall(SYS_fsopen, type, FSOPEN_CLOEXEC);
    int fd;

    if (fs < 0)
        return err_os(err, "opening a %s", type);
    for (size_t i = 0; i < n; i++) {
        unsigned command = options[i].value ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG;

        if (syscall(SYS_fsconfig, fs, command, options[i].key, options[i].value, 0) < 0)
            return err_os(err, "setting %s of a %s", options[i].key, type);
    }
    if (syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return err_os(err, "creating a %s", type);
    fd = (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, flags);
    if (fd < 0)
        return err_os(err, "mounting a %s", type);
    *out = fd;
    return 0;
}

static int mount_tmpfs(const struct box_mount *mount, int *out, struct err *err)
{
    char size[32];
    struct fs_option options[] = {
        {"size",      size                             },
        {"nr_inodes", "65536"                          },
        {"mode",      mount->writable ? "1777" : "0755"},
    };
    unsigned flags = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;

    (void)snprintf(size, sizeof size, "%llu", (unsigned long long)mount->size_bytes);
    if (mount->noexec)
        flags |= MOUNT_ATTR_NOEXEC;
    return fs_mount("tmpfs", options, COUNT(options), flags, out, err);
}

static int mount_proc(int *out, struct err *err)
{
    return fs_mount("proc", NULL, 0, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, out,
                    err);
}

static int mount_devpts(int *out, struct err *err)
{
    static const struct fs_option options[] = {
        {"newinstance", NULL  },
        {"ptmxmode",    "0666"},
        {"mode",        "0620"}
    };

    return fs_mount("devpts", options, COUNT(options), MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, out,
                    err);
}

/* ---- targets ---- */

/* Opens the folder that holds the last name of `path`, never through a link, making folders on
 * the way. */
static int make_parent(int root_fd, const char *path, const char **name, int *out, struct err *err)
{
    AUTO_FD int at = fcntl(root_fd, F_DUPFD_CLOEXEC, 0);
    const char *part = path + strspn(path, "/");
    char piece[256];

    if (at < 0)
        return err_os(err, "starting at the new root");
    for (;;) {
        size_t n = strcspn(part, "/");
        const char *rest = part + n + strspn(part + n, "/");
        int next;

        if (*rest == '\0') {
            *name = part;
            *out = TAKE_FD(at);
            return 0;
        }
        if (n == 0 || n >= sizeof piece)
            return err_set(err, ERR_INVALID, "target %s", path);
        memcpy(piece, part, n);
        piece[n] = '\0';
        if (mkdirat(at, piece, 0755) < 0 && errno != EEXIST)
            return err_os(err, "creating %s of %s", piece, path);
        next = openat(at, piece, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (next < 0)
            return err_os(err, "opening %s of %s", piece, path);
        (void)close(at);
        at = next;
        part = rest;
    }
}

/* Opens `path` beneath the new root, never through a link. Returns the folder that holds the last
 * name, and that name. The folder is mostly there already, and then this is one call. */
static int open_parent(int root_fd, const char *path, const char **name, int *out, struct err *err)
{
    const char *part = path + strspn(path, "/");
    const char *last = strrchr(part, '/');
    size_t n = last ? (size_t)(last - part) : 0;
    char folder[PATH_BYTES_MAX];
    int fd;

    if (n >= sizeof folder)
        return err_set(err, ERR_INVALID, "target %s", path);
    memcpy(folder, n ? part : ".", n ? n : 1);
    folder[n ? n : 1] = '\0';
    fd = sys_openat2(root_fd, folder, O_PATH | O_DIRECTORY, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
    if (fd < 0)
        return make_parent(root_fd, path, name, out, err);
    *name = last ? last + 1 : part;
    *out = fd;
    return 0;
}

static int make_target(int root_fd, const struct box_mount *mount, const char *path, int *out,
                       struct err *err)
{
    AUTO_FD int parent = -1;
    const char *name = NULL;
    int fd;

    if (open_parent(root_fd, path, &name, &parent, err) < 0)
        return -1;
    if (mount->is_file) {
        fd = openat(parent, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
        if (fd >= 0)
            (void)close(fd);
        else if (errno != EACCES && errno != EROFS) /* it may exist in what was mounted before */
            return err_os(err, "creating %s", path);
    } else if (mkdirat(parent, name, 0755) < 0 && errno != EEXIST && errno != EROFS) {
        return err_os(err, "creating %s", path);
    }
    fd = openat(parent, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return err_os(err, "opening %s", path);
    *out = fd;
    return 0;
}

static int make_link(int root_fd, const char *path, const char *to, struct err *err)
{
    AUTO_FD int parent = -1;
    const char *name = NULL;

    if (open_parent(root_fd, path, &name, &parent, err) < 0)
        return -1;
    if (symlinkat(to, parent, name) < 0)
        return err_os(err, "linking %s", path);
    return 0;
}

static int make_file(int root_fd, const char *path, const char *text, struct err *err)
{
    AUTO_FD int parent = -1;
    AUTO_FD int fd = -1;
    const char *name = NULL;

    if (open_parent(root_fd, path, &name, &parent, err) < 0)
        return -1;
    /* An image may have something of that name, and it may be a link. */
    if (unlinkat(parent, name, 0) < 0 && errno != ENOENT)
        return err_os(err, "replacing %s", path);
    fd = openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0)
        return err_os(err, "creating %s", path);
    if (write_all(fd, text, strlen(text), err) < 0)
        return err_in(err, "%s", path);
    return 0;
}

static int attach(struct box *box, int root_fd, uint32_t i, struct err *err)
{
    const struct box_mount *mount = mount_at(box, i);
    const char *target = plan_text(box->plan, mount->target);
    AUTO_FD int tree = box->tree_fds[i];
    AUTO_FD int target_fd = -1;
    int failed = 0;

    box->tree_fds[i] = -1;
    if ((box->prepared && root_is_shared(mount)) || (box->mounts_ahead && root_is_ahead(mount)))
        return 0; /* came with the template, or with what was made ahead */
    switch ((enum mount_kind)mount->kind) {
    case MOUNT_SYMLINK:
        return make_link(root_fd, target, plan_text(box->plan, mount->source), err);
    case MOUNT_FOLDER:
        return make_target(root_fd, mount, target, &target_fd, err);
    case MOUNT_FILE:
        return make_file(root_fd, target, plan_text(box->plan, mount->source), err);
    case MOUNT_TMPFS:
        failed = mount_tmpfs(mount, &tree, err);
        break;
    case MOUNT_PROC:
        failed = tree >= 0 ? 0 : mount_proc(&tree, err);
        break;
    case MOUNT_DEVPTS:
        failed = mount_devpts(&tree, err);
        break;
    case MOUNT_BIND:
    case MOUNT_LAYER:
        break;
    case MOUNT_NESTED:
        return 0; /* is there already */
    case MOUNT_READONLY:
    case MOUNT_MASK:
    case MOUNT_PROTECTED:
        return 0; /* needs what it masks: done once the root is in place */
    }
    if (failed < 0 || make_target(root_fd, mount, target, &target_fd, err) < 0)
        return err_in(err, "%s", target);
    if (tree_attach(tree, target_fd) < 0)
        return err_os(err, "mounting %s", target);
    return 0;
}

/* Makes something below a mounted /proc read-only, or covers it with an empty file or folder: 1.
 * What the kernel does not have needs no mask: 0. */
static int mask(const struct box_mount *mount, const char *target, struct err *err)
{
    AUTO_FD int target_fd = open(target, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    AUTO_FD int tree = -1;
    uint64_t flags = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;

    if (target_fd < 0 && errno == ENOENT)
        return 0;
    if (target_fd < 0)
        return err_os(err, "opening %s", target);
    if (mount->kind == MOUNT_READONLY)
        tree = tree_clone(target_fd, "", AT_EMPTY_PATH);
    else
        tree = tree_clone(AT_FDCWD, mount->is_file ? "/dev/null" : "/var/empty", 0);
    if (tree < 0 || tree_set(tree, flags, 0, -1) < 0 || tree_attach(tree, target_fd) < 0)
        return err_os(err, "masking %s", target);
    return 1;
}

/* As an earlier mask of the same kind: a bind has the flags of what it shows, so this is one call
 * instead of six. Both lie in the /proc we mounted, where nobody else makes links. */
static int mask_again(const char *earlier, const char *target, struct err *err)
{
    if (syscall(SYS_mount, earlier, target, NULL, BIND, NULL) < 0 && errno != ENOENT)
        return err_os(err, "masking %s", target);
    return 0;
}

/* An image is the root itself: the plan then begins with it. */
static bool root_is_layered(const struct box_plan *plan)
{
    const struct box_mount *first = plan_array(plan, plan->mounts);

    return plan->mount_n > 0 && first->lower_n > 0 &&
           strcmp(plan_text(plan, first->target), "/") == 0;
}

static int stage_root(struct box *box, int *out, struct err *err)
{
    static const struct fs_option options[] = {
        {"size",      "4m"  },
        {"nr_inodes", "1024"},
        {"mode",      "0755"}
    };
    AUTO_FD int tree = root_is_layered(box->plan) ? TAKE_FD(box->tree_fds[0]) : -1;
    AUTO_FD int stage = open(STAGE, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (stage < 0)
        return err_os(err, "opening %s", STAGE);
    if (tree < 0 && fs_mount("tmpfs", options, COUNT(options), MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
                             &tree, err) < 0)
        return -1;
    if (tree_attach(tree, stage) < 0)
        return err_os(err, "mounting the new root");
    *out = TAKE_FD(tree);
    return 0;
}

/* The new root becomes / and the host's tree goes away, by the kernel's own idiom: stack the old
 * root over the new one and detach it from there. */
static int enter_root(int root_fd, struct err *err)
{
    if (fchdir(root_fd) < 0 || sys_pivot_root(".", ".") < 0)
        return err_os(err, "pivoting into the new root");
    if (syscall(SYS_umount2, ".", DETACH) < 0)
        return err_os(err, "letting go of the old root");
    if (chdir("/") < 0)
        return err_os(err, "entering the new root");
    return 0;
}

/* A place below a bind becomes a mount of its own: read-only, or as writable as it was, so that it
 * cannot be moved away with what lies in it. Whoever filled the folder may have put anything on the
 * way, so no link is followed, and what is found must be what was looked at. */
static int protect(const struct box_mount *mount, const char *target, struct err *err)
{
    AUTO_FD int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    AUTO_FD int target_fd = -1;
    AUTO_FD int tree = -1;
    uint64_t flags = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;

    if (root_fd < 0)
        return err_os(err, "opening the new root");
    target_fd = sys_openat2(root_fd, target + 1, O_PATH | O_NOFOLLOW,
                            RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
    if (target_fd < 0)
        return err_os(err, "opening %s, which is to be protected", target);
    if (check_identity(mount, target_fd, target, err) < 0)
        return -1;
    if (!mount->writable && !box_lacks("read-only mounts"))
        flags |= MOUNT_ATTR_RDONLY;
    tree = tree_clone(target_fd, "", AT_EMPTY_PATH);
    if (tree < 0 || tree_set(tree, flags, 0, -1) < 0 || tree_attach(tree, target_fd) < 0)
        return err_os(err, "protecting %s", target);
    return 0;
}

static int protect_all(const struct box *box, struct err *err)
{
    for (uint32_t i = 0; i < box->plan->mount_n && !box_lacks("protected files"); i++) {
        const struct box_mount *mount = mount_at(box, i);

        if (mount->kind == MOUNT_PROTECTED &&
            protect(mount, plan_text(box->plan, mount->target), err) < 0)
            return -1;
    }
    return 0;
}

static int mask_all(const struct box *box, struct err *err)
{
    const char *earlier[2] = {NULL, NULL}; /* of a folder, of a file */

    for (uint32_t i = 0; i < box->plan->mount_n && !box_lacks("masks"); i++) {
        const struct box_mount *mount = mount_at(box, i);
        const char *target = plan_text(box->plan, mount->target);
        bool covers = mount->kind == MOUNT_MASK;
        int done = 0;

        if (covers && earlier[mount->is_file != 0])
            done = mask_again(earlier[mount->is_file != 0], target, err);
        else if (covers || mount->kind == MOUNT_READONLY)
            done = mask(mount, target, err);
        if (done < 0)
            return -1;
        if (done > 0 && covers)
            earlier[mount->is_file != 0] = target;
    }
    return 0;
}

static int make_readonly(const char *path, struct err *err)
{
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};

    if (syscall(SYS_mount_setattr, AT_FDCWD, path, 0, &attr, sizeof attr) < 0)
        return err_os(err, "making %s read-only", path);
    return 0;
}

/* File systems of our own that were only written to be put together. */
static int seal_all(const struct box *box, struct err *err)
{
    if (box_lacks("sealed root"))
        return 0;
    for (uint32_t i = 0; i < box->plan->mount_n; i++) {
        const struct box_mount *mount = mount_at(box, i);

        if (mount->kind == MOUNT_TMPFS && !mount->writable &&
            make_readonly(plan_text(box->plan, mount->target), err) < 0)
            return -1;
    }
    return root_is_layered(box->plan) ? 0 : make_readonly("/", err);
}

/* ---- templates ---- */

bool root_is_shared(const struct box_mount *mount)
{
    switch ((enum mount_kind)mount->kind) {
    case MOUNT_BIND:
    case MOUNT_NESTED:
        return !mount->own;
    case MOUNT_SYMLINK:
    case MOUNT_FOLDER:
    case MOUNT_FILE:
        return true;
    case MOUNT_TMPFS:
        return !mount->writable;
    case MOUNT_LAYER:
    case MOUNT_PROC:
    case MOUNT_DEVPTS:
    case MOUNT_READONLY:
    case MOUNT_MASK:
    case MOUNT_PROTECTED:
        return false;
    }
    return false;
}

bool root_is_ahead(const struct box_mount *mount)
{
    return mount->kind == MOUNT_DEVPTS || (mount->kind == MOUNT_TMPFS && mount->writable);
}

int root_attach_ahead(const struct box_plan *plan, struct err *err)
{
    struct box box = {.plan = plan, .ahead = AHEAD_NONE};
    AUTO_FD int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (root_fd < 0)
        return err_os(err, "opening the root");
    for (uint32_t i = 0; i < plan->mount_n; i++) {
        box.tree_fds[i] = -1;
        if (root_is_ahead(mount_at(&box, i)) && attach(&box, root_fd, i, err) < 0)
            return -1;
    }
    return 0;
}

/* Images are layered by each sandbox itself. */
bool root_has_template(const struct box_plan *plan)
{
    return !has_overlays(plan);
}

int root_open_proc(struct box *box, struct err *err)
{
    for (uint32_t i = 0; i < box->plan->mount_n; i++)
        if (mount_at(box, i)->kind == MOUNT_PROC && box->tree_fds[i] < 0 &&
            mount_proc(&box->tree_fds[i], err) < 0)
            return -1;
    return 0;
}

/* What is each sandbox's own has its place made here: a template is read-only afterwards. */
static int attach_shared(struct box *box, int root_fd, uint32_t i, struct err *err)
{
    const struct box_mount *mount = mount_at(box, i);
    const char *target = plan_text(box->plan, mount->target);
    AUTO_FD int target_fd = -1;

    if (root_is_shared(mount))
        return attach(box, root_fd, i, err);
    switch ((enum mount_kind)mount->kind) {
    case MOUNT_READONLY:
    case MOUNT_MASK:
    case MOUNT_PROTECTED:
    case MOUNT_NESTED:
        return 0;
    case MOUNT_PROC:
    case MOUNT_BIND:
    case MOUNT_LAYER:
    case MOUNT_DEVPTS:
    case MOUNT_TMPFS:
    case MOUNT_SYMLINK:
    case MOUNT_FOLDER:
    case MOUNT_FILE:
        return make_target(root_fd, mount, target, &target_fd, err);
    }
    return 0;
}

static int open_shared_sources(struct box *box, struct err *err)
{
    for (uint32_t i = 0; i < box->plan->mount_n; i++)
        if (has_source(mount_at(box, i)) && root_is_shared(mount_at(box, i)) &&
            open_source(box, i, err) < 0)
            return -1;
    return 0;
}

int root_build_template(struct box *box, struct err *err)
{
    AUTO_FD int root_fd = -1;

    if (separate_mounts(err) < 0 || open_shared_sources(box, err) < 0 ||
        stage_root(box, &root_fd, err) < 0)
        return -1;
    for (uint32_t i = 0; i < box->plan->mount_n; i++)
        if (attach_shared(box, root_fd, i, err) < 0)
            return -1;
    return enter_root(root_fd, err) < 0 ? -1 : seal_all(box, err);
}

/* The root is a copy of the template's: only what is ours is missing. */
static int complete_root(struct box *box, struct err *err)
{
    AUTO_FD int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (root_fd < 0)
        return err_os(err, "opening the root");
    for (uint32_t i = 0; i < box->plan->mount_n; i++)
        if (attach(box, root_fd, i, err) < 0)
            return -1;
    return mask_all(box, err) < 0 ? -1 : protect_all(box, err);
}

int root_build(struct box *box, struct err *err)
{
    AUTO_FD int root_fd = -1;

    if (box->prepared)
        return complete_root(box, err);

    if (separate_mounts(err) < 0 || root_open_sources(box, false, err) < 0)
        return -1;
    if (stage_root(box, &root_fd, err) < 0)
        return -1;
    for (uint32_t i = root_is_layered(box->plan); i < box->plan->mount_n; i++)
        if (attach(box, root_fd, i, err) < 0)
            return -1;
    if (enter_root(root_fd, err) < 0 || mask_all(box, err) < 0 || protect_all(box, err) < 0)
        return -1;
    return seal_all(box, err);
}
