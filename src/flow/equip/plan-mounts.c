/* SPDX-License-Identifier: Apache-2.0 */

/* The mounts of a run: the host root, then what the caller asked for.
 *
 * A source is opened once and judged by what the descriptor is (mount-places.c). The descriptor
 * (or, for an ordinary user, device and inode) is what box mounts. */

#include "flow/equip/memory.h"
#include "flow/equip/workspace.h"

#include "lib/base/io.h"
#include "lib/base/limits.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Inside, these are Brig's own; nothing can be put over or below them. */
static const char *const own_targets[] = {"/usr",   "/bin",    "/sbin", "/lib", "/lib32",
                                          "/lib64", "/libx32", "/etc",  "/dev", "/proc",
                                          "/sys",   "/run",    "/tmp",  "/var", "/sandbox/tmp"};

bool is_plain_target(const char *target)
{
    if (target[0] != '/' || target[1] == '\0' || strlen(target) >= PATH_BYTES_MAX)
        return false;
    for (const char *p = target; *p; p++)
        if (p[0] == '/' && (p[1] == '/' || p[1] == '\0' ||
                            (p[1] == '.' && (p[2] == '/' || p[2] == '\0' ||
                                             (p[2] == '.' && (p[3] == '/' || p[3] == '\0'))))))
            return false;
    return true;
}

static int refuse_target(struct run *run, const struct mount_list *list, const char *target)
{
    if (!is_plain_target(target))
        return refuse(run, REASON_MOUNT_FORBIDDEN,
                      "mount target \"%.200s\": write an absolute path without . or ..", target);
    for (size_t i = 0; i < COUNT(own_targets); i++)
        if (path_is_within(target, own_targets[i]) || path_is_within(own_targets[i], target))
            return refuse(run, REASON_MOUNT_FORBIDDEN,
                          "mount target %.200s: %s is Brig's own; use /workspace, /mnt, /opt, "
                          "/srv or /sandbox/input",
                          target, own_targets[i]);
    if ((run->action.workspace == WORKSPACE_NONE || run->action.workspace == WORKSPACE_MIRROR) &&
        path_is_within(target, WORKSPACE_TARGET))
        return refuse(run, REASON_MOUNT_FORBIDDEN,
                      "mount target %.200s: --workspace says that %s there", target,
                      run->action.workspace == WORKSPACE_NONE ? "nothing is" : "a copy is");
    for (size_t i = 0; i < list->n; i++)
        if (list->of[i].from_user && (path_is_within(target, list->of[i].target) ||
                                      path_is_within(list->of[i].target, target)))
            return refuse(run, REASON_MOUNT_FORBIDDEN, "mount target %.200s overlaps with %.200s",
                          target, list->of[i].target);
    return 0;
}

/* A later mount on the same place replaces an empty folder or a layer of the host root. */
static void make_room(struct mount_list *list, const char *target)
{
    size_t kept = 0;

    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->of[i].target, target) != 0)
            list->of[kept++] = list->of[i];
    list->n = kept;
}

/* Closes a source that is not going to be mounted. */
static int refuse_source(struct run *run, struct source *source, const char *asked, const char *why)
{
    source_close(source);
    return refuse(run, REASON_MOUNT_FORBIDDEN, "mount source %.200s%.400s", asked, why);
}

/* Whether it may be handed out; the reason when it may not. */
static const char *why_not(struct run *run, const char *state_dir, struct str table,
                           const struct source *source)
{
    const char *place = NULL;

    if (!S_ISDIR(source->st.st_mode) && !S_ISREG(source->st.st_mode))
        return ": only folders and files can be mounted";
    place = source_forbidden(run, state_dir, table, source);
    if (place)
        return arena_printf(&run->mem,
                            " is, contains or lies in %.200s, which is never handed out; mount the "
                            "project folder itself",
                            place);
    place = source_socket(run, source);
    if (place)
        return arena_printf(&run->mem,
                            " would let the command talk to a program of this machine, at %.200s; "
                            "end that program or mount another folder",
                            place);
    return NULL;
}

/* What an advisory session shows of itself: the copy of the agent's program, and what people
 * confirmed. Nothing else of the state directory is ever shown. */
static bool is_of_session(struct run *run, const char *state_dir, const struct mount_ask *ask,
                          const struct source *source)
{
    static const struct {
        const char *target;
        const char *name; /* in the session's folder */
    } shown[] = {
        {ADVISORY_AGENT_TARGET,  "agent"         },
        {ADVISORY_OUTPUT_TARGET, "sandbox/output"},
    };
    AUTO_FREE char *real = realpath(state_dir, NULL);
    const char *path = path_of(&run->mem, source->fd);
    struct str rest = str_of(path ? path : "");
    const char *folder = arena_printf(&run->mem, "%s/advisory/", real ? real : "");

    if (!run->action.advisory || ask->access != MOUNT_RO || !real || !str_starts(rest, folder))
        return false;
    rest.p += strlen(folder);
    rest.n -= strlen(folder);
    (void)str_cut(&rest, '/');
    for (size_t i = 0; i < COUNT(shown); i++)
        if (strcmp(ask->target, shown[i].target) == 0 && str_is(rest, shown[i].name))
            return true;
    return false;
}

static int add_asked(const char *state_dir, struct str table, struct run *run,
                     struct mount_list *list, const struct mount_ask *ask, struct err *err)
{
    struct source source = {-1, -1, {0}};
    const char *why;
    struct plan_mount *mount;

    if (refuse_target(run, list, ask->target) < 0 || is_refused(run))
        return 0;
    if (source_open(run, ask->source, &source, err) < 0) {
        source_close(&source);
        return refuse(run, REASON_MOUNT_FORBIDDEN, "%s", err->text);
    }
    why = is_of_session(run, state_dir, ask, &source) ? NULL
                                                      : why_not(run, state_dir, table, &source);
    if (why)
        return refuse_source(run, &source, ask->source, why);
    (void)close(source.folder_fd);
    make_room(list, ask->target);
    mount = mount_add(&run->mem, list, MOUNT_BIND, ask->target);
    mount->source = path_of(&run->mem, source.fd);
    mount->access = ask->access;
    mount->from_user = true;
    mount->is_file = !S_ISDIR(source.st.st_mode);
    mount->device = source.st.st_dev;
    mount->inode = source.st.st_ino;
    mount->fd = source.fd; /* kept for box; the run's end closes it */
    mount->idmapped = run->offer.started_by_root;
    mount->owner_uid = source.st.st_uid;
    mount->owner_gid = source.st.st_gid;
    return mount->source ? 0 : err_set(err, ERR_OS, "%s has no path", ask->source);
}

/* What is mounted below a source comes along, so it is judged like one. */
static int judge_nested(const char *state_dir, struct str table, struct run *run,
                        const char *mount_point, struct err *err)
{
    struct source source = {-1, -1, {0}};
    const char *why;

    if (source_open(run, mount_point, &source, err) < 0) {
        source_close(&source);
        return refuse(run, REASON_MOUNT_FORBIDDEN, "%s", err->text);
    }
    why = why_not(run, state_dir, table, &source);
    if (why)
        return refuse_source(run, &source, mount_point, why);
    source_close(&source);
    return 0;
}

/* Mounts that lie below a folder we bind come along, with the flags we set on the whole tree. */
static int add_nested(const char *state_dir, struct str table, struct run *run,
                      struct mount_list *list, const char *mount_point, struct err *err)
{
    for (size_t i = 0; i < list->n; i++) {
        const struct plan_mount parent = list->of[i];
        struct plan_mount *nested;

        if (parent.kind != MOUNT_BIND || parent.is_file ||
            strcmp(mount_point, parent.source) == 0 || !path_is_within(mount_point, parent.source))
            continue;
        if (parent.from_user &&
            (judge_nested(state_dir, table, run, mount_point, err) < 0 || is_refused(run)))
            return is_refused(run) ? 0 : -1;
        nested = mount_add(
            &run->mem, list, MOUNT_NESTED,
            arena_printf(&run->mem, "%s%s", parent.target, mount_point + strlen(parent.source)));
        nested->source = arena_text(&run->mem, str_of(mount_point));
        nested->access = parent.access;
    }
    return 0;
}

static int find_nested(const char *state_dir, struct str table, struct run *run,
                       struct mount_list *list, struct err *err)
{
    struct str rest = table;

    while (rest.n && !is_refused(run)) {
        struct str line = str_cut(&rest, '\n');

        for (unsigned field = 0; field < 4; field++)
            (void)str_cut(&line, ' ');
        if (add_nested(state_dir, table, run, list, arena_text(&run->mem, str_cut(&line, ' ')),
                       err) < 0)
            return -1;
    }
    return 0;
}

/* Whatever an image has there is covered: an empty folder that stays empty. */
static void add_no_workspace(struct run *run, struct mount_list *list)
{
    struct plan_mount *mount;

    make_room(list, WORKSPACE_TARGET);
    mount = mount_add(&run->mem, list, MOUNT_TMPFS, WORKSPACE_TARGET);
    mount->access = MOUNT_RO;
    mount->noexec = true;
    mount->size_bytes = 4096;
}

/* A copy of a folder, in a layer of the sandbox's own: the folder is judged like a mount, but once,
 * when it is copied. */
static int add_mirror(const char *state_dir, struct str table, struct run *run,
                      struct mount_list *list, struct err *err)
{
    const char *asked = run->action.workspace_source;
    struct source source = {-1, -1, {0}};
    struct plan_mount *mount;
    const char *why;

    if (run->action.kind == ACTION_RUN)
        return refuse(run, REASON_REQUEST_INVALID,
                      "a mirrored workspace is synced back later, and this sandbox ends with its "
                      "command; make one that stays with \"sandbox create\", or use ro or rw");
    make_room(list, WORKSPACE_TARGET);
    mount = mount_add(&run->mem, list, MOUNT_LAYER, WORKSPACE_TARGET);
    mount->source = MIRROR_LAYER;
    mount->access = MOUNT_RW;
    if (run->action.kind != ACTION_CREATE)
        return 0;
    if (source_open(run, asked, &source, err) < 0) {
        source_close(&source);
        return refuse(run, REASON_MOUNT_FORBIDDEN, "%s", err->text);
    }
    why =
        S_ISDIR(source.st.st_mode) ? why_not(run, state_dir, table, &source) : ": it is no folder";
    if (why)
        return refuse_source(run, &source, asked, why);
    run->plan.mirror_source = path_of(&run->mem, source.fd);
    run->plan.mirror_fd = TAKE_FD(source.fd); /* the run's end closes it */
    source_close(&source);
    return run->plan.mirror_source ? 0 : err_set(err, ERR_OS, "%s has no path", asked);
}

static int plan_workdir(struct run *run, const struct image *image)
{
    const char *workdir = action_start(&run->action);

    if (workdir && !is_plain_target(workdir) && strcmp(workdir, "/") != 0)
        return refuse(run, REASON_REQUEST_INVALID,
                      "working directory \"%.200s\": write an absolute path without . or ..",
                      workdir);
    if (!workdir && image && is_plain_target(image->workdir))
        workdir = image->workdir;
    run->plan.workdir = workdir ? workdir : HOME_TARGET;
    return 0;
}

static int add_all_asked(const char *state_dir, struct str table, struct run *run,
                         struct mount_list *list, struct err *err)
{
    for (size_t i = 0; i < run->action.mount_n && !is_refused(run); i++)
        if (add_asked(state_dir, table, run, list, &run->action.mounts[i], err) < 0)
            return -1;
    if (is_refused(run))
        return 0;
    switch (run->action.workspace) {
    case WORKSPACE_UNSET:
    case WORKSPACE_BIND: /* it is one of the mounts */
        return 0;
    case WORKSPACE_NONE:
        add_no_workspace(run, list);
        return 0;
    case WORKSPACE_MIRROR:
        return add_mirror(state_dir, table, run, list, err);
    }
    return 0;
}

static int list_mounts(struct plan_memory *memory, const char *state_dir, const struct image *image,
                       struct run *run, struct mount_list *list, struct err *err)
{
    struct mount_view table;

    if (memory_table(memory, &run->mem, &table, err) < 0)
        return -1;
    if ((image ? image_root_mounts(run, image, list, err)
               : host_root_mounts(memory, &table, run, list, err)) < 0)
        return -1;
    if (is_refused(run))
        return 0;
    if (plan_trust(state_dir, run, list, err) < 0)
        return -1;
    if (is_refused(run))
        return 0;
    if (add_all_asked(state_dir, table.text, run, list, err) < 0)
        return -1;
    if (is_refused(run))
        return 0;
    if (plan_workdir(run, image) < 0 || is_refused(run))
        return 0;
    if (find_nested(state_dir, table.text, run, list, err) < 0 ||
        plan_base(state_dir, run, list, err) < 0)
        return -1;
    return is_refused(run) ? 0 : plan_protected(run, list, err);
}

int plan_mounts(struct plan_memory *memory, const char *state_dir, const struct image *image,
                struct run *run, struct err *err)
{
    struct mount_list list = {0};
    int failed = list_mounts(memory, state_dir, image, run, &list, err);

    /* Also of a plan that is refused: its sources are open, and the run's end closes them. */
    run->plan.mounts = list.of;
    run->plan.mount_n = list.n;
    return is_refused(run) ? 0 : failed;
}
