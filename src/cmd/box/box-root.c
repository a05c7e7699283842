/* SPDX-License-Identifier: Apache-2.0 */

/* The file system of a sandbox: a small tmpfs as root, and on it, one after the other, what the
 * plan lists. Sources (box-root-sources.c) were taken before anything is covered; targets
 * (box-root-targets.c) are made beneath the new root. */

#include "cmd/box/box-root.h"

#include "lib/linux/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

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

int root_mount_proc(int *out, struct err *err)
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

int root_attach(struct box *box, int root_fd, uint32_t i, struct err *err)
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
        return target_link(root_fd, target, plan_text(box->plan, mount->source), err);
    case MOUNT_FOLDER:
        return target_make(root_fd, mount, target, &target_fd, err);
    case MOUNT_FILE:
        return target_file(root_fd, target, plan_text(box->plan, mount->source), err);
    case MOUNT_TMPFS:
        failed = mount_tmpfs(mount, &tree, err);
        break;
    case MOUNT_PROC:
        failed = tree >= 0 ? 0 : root_mount_proc(&tree, err);
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
    if (failed < 0 || target_make(root_fd, mount, target, &target_fd, err) < 0)
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

int root_stage(struct box *box, int *out, struct err *err)
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
int root_enter(int root_fd, struct err *err)
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
    if (source_check(mount, target_fd, target, err) < 0)
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
int root_seal(const struct box *box, struct err *err)
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

/* The root is a copy of the template's: only what is ours is missing. */
static int complete_root(struct box *box, struct err *err)
{
    AUTO_FD int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (root_fd < 0)
        return err_os(err, "opening the root");
    for (uint32_t i = 0; i < box->plan->mount_n; i++)
        if (root_attach(box, root_fd, i, err) < 0)
            return -1;
    return mask_all(box, err) < 0 ? -1 : protect_all(box, err);
}

int root_build(struct box *box, struct err *err)
{
    AUTO_FD int root_fd = -1;

    if (box->prepared)
        return complete_root(box, err);

    if (root_separate(err) < 0 || root_open_sources(box, false, err) < 0)
        return -1;
    if (root_stage(box, &root_fd, err) < 0)
        return -1;
    for (uint32_t i = root_is_layered(box->plan); i < box->plan->mount_n; i++)
        if (root_attach(box, root_fd, i, err) < 0)
            return -1;
    if (root_enter(root_fd, err) < 0 || mask_all(box, err) < 0 || protect_all(box, err) < 0)
        return -1;
    return root_seal(box, err);
}
