/* SPDX-License-Identifier: Apache-2.0 */

/* What a plan makes of protected files: mounts over the places where they are, for every folder
 * that the run may write. What is not there cannot be mounted over; for that there is the guard. */

#include "flow/equip/workspace.h"

#include "lib/base/limits.h"
#include "lib/linux/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>

static bool is_writable_folder(const struct plan_mount *mount)
{
    return mount->kind == MOUNT_BIND && mount->from_user && mount->access == MOUNT_RW &&
           !mount->is_file;
}

/* A source that is, or lies in, something protected: there is nothing of it that could be written.
 */
static int check_source(struct run *run, const struct plan_mount *mount)
{
    const struct protected_rule *rule = rule_covering(mount->source);

    if (!rule || run->plan.allow_protected || !mount->from_user || mount->kind != MOUNT_BIND ||
        mount->access != MOUNT_RW)
        return 0;
    return refuse(run, REASON_MOUNT_FORBIDDEN,
                  "mount source %.200s: %s (%s), so it is not handed out for writing; mount it ro, "
                  "or say --allow-protected",
                  mount->source, rule->why, rule->name);
}

/* A descriptor the folder can be listed by: that of the plan is only good for naming it. */
static int open_root(const struct plan_mount *mount, int *out, struct err *err)
{
    *out = sys_openat2(mount->fd, ".", O_RDONLY | O_DIRECTORY, RESOLVE_BENEATH);
    return *out < 0 ? err_os(err, "opening %s", mount->source) : 0;
}

static const char *target_of(struct run *run, const struct plan_mount *mount, const char *path)
{
    return arena_printf(&run->mem, "%s/%s", mount->target, path);
}

static void add_place(struct run *run, struct mount_list *list, const struct plan_mount *below,
                      const struct place *place)
{
    struct plan_mount *mount =
        mount_add(&run->mem, list, MOUNT_PROTECTED, target_of(run, below, place->path));

    mount->source = arena_printf(&run->mem, "%s/%s", below->source, place->path);
    mount->access = place->pinned ? MOUNT_RW : MOUNT_RO;
    mount->is_file = place->is_file;
    mount->device = place->device;
    mount->inode = place->inode;
    mount->why = arena_text(&run->mem, str_of(place->why));
}

struct budget {
    size_t mounts;
    size_t bytes;
};

static int add_places(struct run *run, struct mount_list *list, struct plan_mount below,
                      const struct scan *scan, struct budget *budget)
{
    for (size_t i = 0; i < scan->place_n; i++) {
        budget->mounts++;
        budget->bytes += strlen(below.target) + strlen(scan->places[i].path) + 1;
        add_place(run, list, &below, &scan->places[i]);
    }
    if (budget->mounts > PROTECTED_MOUNTS_MAX || budget->bytes > PROTECTED_MOUNT_BYTES_MAX)
        return refuse(run, REASON_MOUNT_FORBIDDEN,
                      "%.200s has more than %d files and folders that tools of this machine run by "
                      "themselves; mount a smaller folder, mount it ro, or say --allow-protected",
                      below.source, PROTECTED_MOUNTS_MAX);
    return 0;
}

/* Finds them now, and remembers how they are. */
static int look_below(struct run *run, struct mount_list *list, struct plan_mount below,
                      struct budget *budget, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(PROTECTED_MEMORY_MAX);
    AUTO_FD int root_fd = -1;
    AUTO_SCAN struct scan scan = {.mem = &mem, .root = below.source};

    if (open_root(&below, &root_fd, err) < 0)
        return -1;
    scan.root_fd = root_fd;
    if (scan_run(&scan, err) < 0)
        return -1;
    if (scan.stopped && !run->plan.allow_protected)
        return refuse(run, REASON_MOUNT_FORBIDDEN,
                      "%.200s could not be looked through for files that tools of this machine run "
                      "by themselves: %s; mount a smaller folder, mount it ro, or say "
                      "--allow-protected",
                      below.source, scan.stopped);
    if (!run->plan.guard)
        run->plan.guard = guard_new(run);
    if (!guard_add(run->plan.guard, &below, &scan))
        return refuse(run, REASON_MOUNT_FORBIDDEN,
                      "there are too many protected files below the folders that may be written; "
                      "mount less of them rw");
    return run->plan.allow_protected ? 0 : add_places(run, list, below, &scan, budget);
}

/* ---- a sandbox that stays keeps the places it was made with ---- */

/* "ro 2049 1234 /workspace/.git/hooks" */
const char *equip_protected_text(struct arena *mem, const struct plan_mount *mount)
{
    return arena_printf(mem, "%s %llu %llu %s", mount->access == MOUNT_RW ? "rw" : "ro",
                        (unsigned long long)mount->device, (unsigned long long)mount->inode,
                        mount->target);
}

static const struct plan_mount *mount_above(const struct mount_list *list, const char *target)
{
    for (size_t i = 0; i < list->n; i++)
        if (is_writable_folder(&list->of[i]) && path_is_within(target, list->of[i].target) &&
            strcmp(target, list->of[i].target) != 0)
            return &list->of[i];
    return NULL;
}

/* Who replaces a file on this machine, as editors and git do, takes the mount over it away with it,
 * inside as well. */
static int check_held(struct run *run, const struct plan_mount *above, const char *path,
                      const struct place *place)
{
    AUTO_FD int fd =
        sys_openat2(above->fd, path, O_PATH | O_NOFOLLOW, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
    struct stat st;

    if (fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == place->device && st.st_ino == place->inode)
        return 0;
    return refuse(
        run, REASON_SANDBOX_DRIFT,
        "%.200s/%.200s was replaced on this machine since the sandbox was made, which took "
        "its protection away; take out what you need and recreate the sandbox",
        above->source, path);
}

static int hold_one(struct run *run, struct mount_list *list, const char *text, struct err *err)
{
    struct str rest = str_of(text);
    struct str access = str_cut(&rest, ' ');
    struct str device = str_cut(&rest, ' ');
    struct str inode = str_cut(&rest, ' ');
    const char *target = arena_text(&run->mem, rest);
    const struct plan_mount *above = mount_above(list, target);
    struct plan_mount below;
    const struct protected_rule *rule = rule_covering(target);
    struct place place = {.pinned = str_is(access, "rw"),
                          .why = rule ? rule->why : "git runs it, or reads config from it"};

    if (!above || !str_u64(device, &place.device) || !str_u64(inode, &place.inode))
        return err_set(err, ERR_INTEGRITY, "the protected places of the sandbox are damaged");
    below = *above;
    place.path = target + strlen(below.target) + 1;
    if (check_held(run, &below, place.path, &place) < 0 || is_refused(run))
        return 0;
    add_place(run, list, &below, &place);
    return 0;
}

static int hold_all(struct run *run, struct mount_list *list, struct err *err)
{
    for (size_t i = 0; i < run->action.held->n && !is_refused(run); i++)
        if (hold_one(run, list, run->action.held->v[i], err) < 0)
            return -1;
    return 0;
}

int plan_protected(struct run *run, struct mount_list *list, struct err *err)
{
    struct budget budget = {0};
    size_t n = list->n;

    for (size_t i = 0; i < n; i++)
        if (check_source(run, &list->of[i]) < 0 || is_refused(run))
            return 0;
    if (run->action.held)
        return hold_all(run, list, err);
    for (size_t i = 0; i < n && !is_refused(run); i++)
        if (is_writable_folder(&list->of[i]) &&
            look_below(run, list, list->of[i], &budget, err) < 0)
            return -1;
    return 0;
}

int equip_protected_below(struct arena *mem, const char *folder, struct words *out, struct err *err)
{
    AUTO_ARENA struct arena own = ARENA(PROTECTED_MEMORY_MAX);
    AUTO_FD int root_fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    AUTO_SCAN struct scan scan = {.mem = &own, .root = folder, .root_fd = root_fd};
    const char **paths;
    size_t n = 0;

    if (root_fd < 0)
        return err_os(err, "opening %.300s", folder);
    if (scan_run(&scan, err) < 0)
        return -1;
    if (scan.stopped)
        return err_set(err, ERR_LIMIT,
                       "%.200s could not be looked through for files that tools of this machine "
                       "run by themselves: %s",
                       folder, scan.stopped);
    paths = arena_array(mem, const char *, scan.place_n + 1);
    for (size_t i = 0; i < scan.place_n; i++)
        if (!scan.places[i].pinned)
            paths[n++] = arena_text(mem, str_of(scan.places[i].path));
    *out = (struct words){paths, n};
    return 0;
}
