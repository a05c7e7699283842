/* SPDX-License-Identifier: Apache-2.0 */

/* The Landlock rules of a run: what may be done beneath which path. Mounts are the first wall;
 * these say the same again, and what filesystem_policy narrows. */

#include "flow/equip/parts.h"

#include <dirent.h>
#include <string.h>

#define IMAGE_FOLDERS_MAX 512

struct path_list {
    struct plan_path *of;
    size_t n;
    size_t max;
};

static struct plan_path *path_add(struct path_list *list, const char *path)
{
    list->of[list->n] = (struct plan_path){.path = path};
    return &list->of[list->n++];
}

static bool is_covered(const struct words *folders, const char *path)
{
    for (size_t i = 0; i < folders->n; i++)
        if (path_is_within(path, folders->v[i]))
            return true;
    return false;
}

/* What every program needs to start: the system's own folders, its devices, its /proc, and the
 * folders a sandbox always has. Binds from /etc are data, not programs. */
static void allow_base(const struct plan_mount *mount, struct path_list *list)
{
    struct plan_path *path;

    switch (mount->kind) {
    case MOUNT_BIND:
        path = path_add(list, mount->target);
        path->write = mount->access == MOUNT_RW || mount->is_device;
        path->device = mount->is_device;
        path->exec = !mount->is_device && strncmp(mount->target, "/etc/", 5) != 0;
        return;
    case MOUNT_LAYER:
        if (mount->lower_n && strcmp(mount->target, "/") == 0)
            return; /* folder by folder: see allow_image */
        path = path_add(list, mount->target);
        path->write = true;
        path->exec = true;
        return;
    case MOUNT_DEVPTS:
        path = path_add(list, mount->target);
        path->write = true;
        path->device = true;
        return;
    case MOUNT_TMPFS:
        if (strcmp(mount->target, WORKSPACE_TARGET) == 0)
            (void)path_add(list, mount->target);
        else if (strcmp(mount->target, "/run") != 0 && mount->access == MOUNT_RW)
            path_add(list, mount->target)->write = true;
        return;
    case MOUNT_FOLDER:
        path = path_add(list, mount->target);
        path->write = path->exec = mount->access == MOUNT_RW;
        return;
    case MOUNT_PROC:
    case MOUNT_FILE:
        (void)path_add(list, mount->target);
        return;
    case MOUNT_NESTED:
    case MOUNT_PROTECTED:
    case MOUNT_READONLY:
    case MOUNT_MASK:
    case MOUNT_SYMLINK:
        return;
    }
}

static bool is_listed(const struct path_list *list, const char *path)
{
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->of[i].path, path) == 0)
            return true;
    return false;
}

/* Every folder of an image's root, but not the root itself: /proc, /dev and /run are not the
 * image's, and a rule on / would cover them. What a layer names and another one removed is left
 * out by box. */
static int allow_image(struct run *run, const struct plan_mount *root, struct path_list *list,
                       struct err *err)
{
    static const char *const ours[] = {".", "..", "proc", "dev", "run", "sys"};

    /* The image's own: nothing a sandbox wrote gets it a rule. */
    for (size_t i = root->base_n; i < root->lower_n; i++) {
        DIR *dir = opendir(root->lowers[i].path);
        const struct dirent *entry;

        if (!dir)
            return err_os(err, "opening a layer of the image");
        while (list->n < list->max && (entry = readdir(dir)) != NULL) {
            const char *path = arena_printf(&run->mem, "/%s", entry->d_name);
            bool skipped = strncmp(entry->d_name, ".wh.", 4) == 0 || is_listed(list, path);

            for (size_t j = 0; j < COUNT(ours); j++)
                skipped |= strcmp(entry->d_name, ours[j]) == 0;
            if (!skipped)
                *path_add(list, path) =
                    (struct plan_path){.path = path, .write = true, .exec = true, .optional = true};
        }
        (void)closedir(dir);
    }
    return 0;
}

/* A mount the caller asked for must be within what the policy lists. */
static int check_listed(struct run *run, const struct plan_mount *mount)
{
    const struct demand *demand = &run->demand;
    bool write = mount->access == MOUNT_RW;
    bool workdir = demand->include_workdir && path_is_within(mount->target, run->plan.workdir);

    if (workdir || is_covered(&demand->read_write, mount->target) ||
        (!write && is_covered(&demand->read_only, mount->target)))
        return 0;
    return refuse(run, REASON_MOUNT_FORBIDDEN,
                  "mount target %.200s: filesystem_policy lists it neither as read_write%s; add it "
                  "there or mount it elsewhere",
                  mount->target, write ? "" : " nor as read_only");
}

/* Whether a path of the policy exists inside: at or below something the plan puts there. */
static bool exists_inside(const struct run *run, const char *path)
{
    const struct plan_mount *best = NULL;
    const char *source;

    for (size_t i = 0; i < run->plan.mount_n; i++) {
        const struct plan_mount *mount = &run->plan.mounts[i];

        if (path_is_within(mount->target, path) || strcmp(path, "/") == 0)
            return true;
        if (path_is_within(path, mount->target) &&
            (!best || strlen(mount->target) > strlen(best->target)))
            best = mount;
    }
    if (!best || best->kind == MOUNT_FILE || best->kind == MOUNT_FOLDER ||
        best->kind == MOUNT_LAYER || best->kind == MOUNT_TMPFS)
        return false;
    source = best->kind == MOUNT_BIND ? best->source : best->target;
    if (strlen(source) + strlen(path) >= 4096)
        return false;
    {
        char on_host[8192];

        (void)strcpy(on_host, source);
        (void)strcat(on_host, path + strlen(best->target));
        return access(on_host, F_OK) == 0;
    }
}

static int allow_listed(struct run *run, const struct words *paths, bool write,
                        struct path_list *list)
{
    for (size_t i = 0; i < paths->n; i++) {
        struct plan_path *path;

        if (!exists_inside(run, paths->v[i])) {
            if (run->demand.landlock_best_effort)
                continue;
            return refuse(run, REASON_POLICY_NOT_ENFORCEABLE,
                          "filesystem_policy lists %.300s, which does not exist in the sandbox; "
                          "remove it, mount it, or set landlock.compatibility: best_effort",
                          paths->v[i]);
        }
        path = path_add(list, paths->v[i]);
        path->write = write;
        path->exec = true;
    }
    return 0;
}

static int allow_policy(struct run *run, struct path_list *list)
{
    for (size_t i = 0; i < run->plan.mount_n; i++) {
        const struct plan_mount *mount = &run->plan.mounts[i];

        if (!mount->from_user)
            allow_base(mount, list);
        else if (check_listed(run, mount) < 0 || is_refused(run))
            return 0;
    }
    if (run->demand.include_workdir) {
        struct plan_path *path = path_add(list, run->plan.workdir);

        path->write = true;
        path->exec = true;
    }
    if (allow_listed(run, &run->demand.read_only, false, list) < 0 || is_refused(run))
        return 0;
    return allow_listed(run, &run->demand.read_write, true, list);
}

/* What may only advise writes nowhere but into its scratch folder, and of what it brings along one
 * file is a program; those of the system are what that one is loaded by. */
static void only_advise(const struct run *run, struct path_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        struct plan_path *path = &list->of[i];
        bool system = false;

        for (size_t j = 0; j < run->plan.mount_n; j++)
            system |= run->plan.mounts[j].kind == MOUNT_BIND && !run->plan.mounts[j].from_user &&
                      strcmp(run->plan.mounts[j].target, path->path) == 0;
        path->write =
            path->write && (path->device || strcmp(path->path, ADVISORY_SCRATCH_TARGET) == 0);
        path->exec = path->exec && !path->write &&
                     (system || run->plan.mounts[0].lower_n ||
                      strcmp(path->path, ADVISORY_AGENT_TARGET) == 0);
    }
}

int plan_paths(struct run *run, struct err *err)
{
    const struct demand *demand = &run->demand;
    size_t most =
        IMAGE_FOLDERS_MAX + run->plan.mount_n + demand->read_only.n + demand->read_write.n + 2;
    struct path_list list = {arena_array(&run->mem, struct plan_path, most), 0, IMAGE_FOLDERS_MAX};

    path_add(&list, "/")->list_only = true;
    if (run->plan.mounts[0].lower_n && !demand->has_filesystem &&
        allow_image(run, &run->plan.mounts[0], &list, err) < 0)
        return -1;
    if (demand->has_filesystem) {
        if (allow_policy(run, &list) < 0 || is_refused(run))
            return 0;
    } else {
        for (size_t i = 0; i < run->plan.mount_n; i++)
            allow_base(&run->plan.mounts[i], &list);
    }
    if (run->action.advisory)
        only_advise(run, &list);
    run->plan.paths = list.of;
    run->plan.path_n = list.n;
    return 0;
}
