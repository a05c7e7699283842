/* SPDX-License-Identifier: Apache-2.0 */

/* The part of a root that sandboxes of the same plan share, and the part that is made ahead. */

#include "cmd/box/box-root.h"

#include <fcntl.h>

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
        if (root_is_ahead(mount_at(&box, i)) && root_attach(&box, root_fd, i, err) < 0)
            return -1;
    }
    return 0;
}

/* Images are layered by each sandbox itself. */
bool root_has_template(const struct box_plan *plan)
{
    return !plan_has_overlays(plan);
}

int root_open_proc(struct box *box, struct err *err)
{
    for (uint32_t i = 0; i < box->plan->mount_n; i++)
        if (mount_at(box, i)->kind == MOUNT_PROC && box->tree_fds[i] < 0 &&
            root_mount_proc(&box->tree_fds[i], err) < 0)
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
        return root_attach(box, root_fd, i, err);
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
        return target_make(root_fd, mount, target, &target_fd, err);
    }
    return 0;
}

static int open_shared_sources(struct box *box, struct err *err)
{
    for (uint32_t i = 0; i < box->plan->mount_n; i++)
        if (source_needed(mount_at(box, i)) && root_is_shared(mount_at(box, i)) &&
            source_open(box, i, err) < 0)
            return -1;
    return 0;
}

int root_build_template(struct box *box, struct err *err)
{
    AUTO_FD int root_fd = -1;

    if (root_separate(err) < 0 || open_shared_sources(box, err) < 0 ||
        root_stage(box, &root_fd, err) < 0)
        return -1;
    for (uint32_t i = 0; i < box->plan->mount_n; i++)
        if (attach_shared(box, root_fd, i, err) < 0)
            return -1;
    return root_enter(root_fd, err) < 0 ? -1 : root_seal(box, err);
}
