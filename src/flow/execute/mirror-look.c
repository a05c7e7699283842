/* SPDX-License-Identifier: Apache-2.0 */

/* What changed in a mirrored workspace, by three lists: the base (what both sides had when they
 * were last the same), what is inside now, and what is on this machine now where the two differ.
 *
 *     inside as in the base            nothing to do, whatever became of it on this machine
 *     on this machine as inside        nothing to do any more
 *     on this machine as in the base   the change can be made here
 *     otherwise                        both have changed: a conflict, left alone
 *
 * Everything inside is somebody else's choice. It is read by descriptor from the one folder the
 * sandbox's keeper hands out, name by name, following no link and opening nothing special, while
 * the sandbox holds still. */

#include "flow/execute/mirror.h"

#include "lib/base/clock.h"
#include "lib/linux/fd-pass.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define HOLD_TRIES 4U

/* ---- one change ---- */

static const struct mirror_entry *shown(const struct mirror_pending *pending)
{
    return pending->is ? pending->is : pending->was;
}

static unsigned depth_of(const char *path)
{
    unsigned depth = 0;

    for (; *path; path++)
        depth += *path == '/';
    return depth;
}

/* "data/bare/hooks" where data/bare has what every git folder has. */
static bool is_in_bare(const struct mirror *mirror, const char *path)
{
    static const char *const parts[] = {"hooks", "config", "config.worktree", "info", "commondir"};
    static const char *const marks[] = {"HEAD", "objects", "refs"};
    char folder[PATH_BYTES_MAX + 16];

    for (const char *at = path; at && *at; at = strchr(at, '/'), at = at ? at + 1 : NULL) {
        size_t part_n = strcspn(at, "/");
        size_t n = (size_t)(at - path);
        bool all = false;

        for (size_t i = 0; i < COUNT(parts); i++)
            all |= strlen(parts[i]) == part_n && memcmp(parts[i], at, part_n) == 0;
        for (size_t i = 0; all && i < COUNT(marks); i++) {
            (void)snprintf(folder, sizeof folder, "%.*s%s", (int)n, path, marks[i]);
            all = tree_find(&mirror->inside, folder) != NULL;
        }
        if (all)
            return true;
    }
    return false;
}

static enum mirror_why judge(const struct mirror *mirror, const struct mirror_pending *pending)
{
    const struct mirror_options *options = mirror->options;
    const struct mirror_entry *is = pending->is;
    const struct mirror_entry nothing = {.type = 0};
    const struct mirror_entry *was = pending->was ? pending->was : &nothing;

    if (is && is->type == 's')
        return MIRROR_SPECIAL;
    if (is && is->type == 'x')
        return MIRROR_CLOSED;
    if (is && is->type == 'l' && !file_link_stays(str_of(is->target), depth_of(is->path)))
        return MIRROR_OUTWARD;
    if (options->is_protected(options->context, shown(pending)->path, shown(pending)->type) ||
        is_in_bare(mirror, shown(pending)->path))
        return MIRROR_PROTECTED;
    if (pending->host.type == 0 && was->type == 0)
        return MIRROR_CLEAR;
    return pending->host.type && was->type && entry_same(&pending->host, was) ? MIRROR_CLEAR
                                                                              : MIRROR_CONFLICT;
}

/* This machine has come to the same by itself, or by an earlier attempt. */
static bool is_there_already(const struct mirror_pending *pending)
{
    if (!pending->is)
        return pending->host.type == 0;
    if (!pending->was && pending->is->type == 'd' && pending->host.type == 'd')
        return true;
    return pending->host.type && entry_same(&pending->host, pending->is);
}

static int add_change(struct mirror *mirror, const struct mirror_entry *was,
                      const struct mirror_entry *is, struct err *err)
{
    struct mirror_pending pending = {.was = was, .is = is};
    const struct mirror_entry *entry = shown(&pending);

    if (entry_read(mirror->files, mirror->host_fd, &mirror->inside.mem, entry->path, &pending.host,
                   &pending.seen, err) < 0)
        return -1;
    if (mirror->n == mirror->cap) {
        mirror->cap = mirror->cap ? mirror->cap * 2 : 64;
        mirror->changes = xrealloc(mirror->changes, mirror->cap * sizeof *mirror->changes);
        mirror->pending = xrealloc(mirror->pending, mirror->cap * sizeof *mirror->pending);
    }
    mirror->pending[mirror->n] = pending;
    mirror->changes[mirror->n] = (struct mirror_change){
        .path = arena_text(mirror->mem, str_of(entry->path)),
        .kind = !was ? MIRROR_ADDED
                : is ? MIRROR_CHANGED
                     : MIRROR_REMOVED,
        .why = judge(mirror, &pending),
        .type = entry->type,
        .note = "",
    };
    if (is_there_already(&pending)) {
        mirror->pending[mirror->n].settled = true;
        mirror->changes[mirror->n].done = true;
        mirror->changes[mirror->n].why = MIRROR_CLEAR;
    }
    mirror->n++;
    return copy_go_on(mirror->files, 0, err);
}

/* Both lists are sorted. */
int mirror_look(struct mirror *mirror, struct err *err)
{
    const struct mirror_tree *base = &mirror->base.tree, *inside = &mirror->inside;
    size_t i = 0, j = 0;

    while (i < base->n || j < inside->n) {
        const struct mirror_entry *was = i < base->n ? &base->of[i] : NULL;
        const struct mirror_entry *is = j < inside->n ? &inside->of[j] : NULL;
        int order = !was ? 1 : !is ? -1 : strcmp(was->path, is->path);

        if (order != 0 || !entry_same(was, is))
            if (add_change(mirror, order <= 0 ? was : NULL, order >= 0 ? is : NULL, err) < 0)
                return -1;
        i += order <= 0;
        j += order >= 0;
    }
    return 0;
}

bool mirror_may(const struct mirror *mirror, const struct mirror_change *change)
{
    switch (change->why) {
    case MIRROR_CLEAR:
        return true;
    case MIRROR_CONFLICT:
        return mirror->options->theirs;
    case MIRROR_PROTECTED:
        return mirror->options->include_protected;
    case MIRROR_OUTWARD:
        return mirror->options->include_links;
    case MIRROR_SPECIAL:
    case MIRROR_CLOSED:
    case MIRROR_FAILED:
        return false;
    }
    return false;
}

/* ---- from the sandbox to the result ---- */

static int open_inside(struct files *files, int *out, struct err *err)
{
    static struct file_request request;
    struct box_message answer;
    AUTO_FD int fd = -1;
    struct stat st;

    if (file_request_fill(&request, FILE_WORKSPACE, 0, "", "", err) < 0)
        return -1;
    if (send(files->fd, &request, sizeof request, MSG_NOSIGNAL) != (ssize_t)sizeof request)
        return err_set(err, ERR_UNAVAILABLE, "the sandbox ended");
    if (files_wait(files, files->fd, POLLIN, WORKSPACE_WAIT_MS, err) < 0)
        return -1;
    if (fds_receive(files->fd, &answer, sizeof answer, &fd, 1, err) != (int)sizeof answer ||
        answer.kind != BOX_FILE || fd < 0 || fstat(fd, &st) < 0 || !S_ISDIR(st.st_mode))
        return err_set(err, ERR_UNAVAILABLE, "the sandbox did not hand out its workspace");
    *out = TAKE_FD(fd);
    return 0;
}

/* The folder it was copied from, or nothing. */
static int open_host(struct mirror *mirror, struct err *err)
{
    const struct mirror_base *base = &mirror->base;
    struct stat st;

    mirror->host_fd = open(base->source, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (mirror->host_fd < 0 || fstat(mirror->host_fd, &st) < 0)
        return err_os(err, "opening %.300s", base->source);
    if (st.st_dev != base->device || st.st_ino != base->inode)
        return err_set(err, ERR_CONFLICT,
                       "%.300s is another folder than the one that was copied; nothing is brought "
                       "back there",
                       base->source);
    return 0;
}

static int show_files(struct mirror *mirror, struct err *err)
{
    const struct mirror_options *options = mirror->options;

    for (size_t i = 0; options->on_file && i < mirror->n; i++) {
        const struct mirror_pending *pending = &mirror->pending[i];
        bool inside = pending->is && pending->is->type == 'f';
        AUTO_FD int host_fd = -1, inside_fd = -1;

        if (mirror->changes[i].done || (!inside && pending->host.type != 'f'))
            continue;
        if (inside)
            inside_fd = entry_open(mirror->inside_fd, pending->is->path);
        if (pending->host.type == 'f')
            host_fd = entry_open(mirror->host_fd, mirror->changes[i].path);
        if (options->on_file(options->context, &mirror->changes[i], host_fd, inside_fd, err) < 0)
            return -1;
    }
    return 0;
}

static void count(struct mirror *mirror, struct mirror_result *out)
{
    struct moved *moved = mirror->files->moved;
    size_t kept = 0;
    struct mirror_change *list = arena_array(mirror->mem, struct mirror_change, mirror->n + 1);

    for (size_t i = 0; i < mirror->n; i++) {
        const struct mirror_change *change = &mirror->changes[i];

        if (mirror->pending[i].settled && change->done && !change->note[0])
            continue; /* it was so before we came */
        list[kept++] = *change;
        out->done += change->done;
        out->conflicts += !change->done && change->why == MIRROR_CONFLICT;
        out->held_back +=
            !change->done && change->why != MIRROR_CONFLICT && change->why != MIRROR_CLEAR;
    }
    out->changes = list;
    out->n = kept;
    moved->entries = mirror->options->apply ? out->done : kept;
    moved->conflicts = out->conflicts;
    moved->skipped = out->held_back;
}

static int look_and_apply(struct mirror *mirror, const char *run_dir, struct mirror_result *out,
                          struct err *err)
{
    struct hash hash;

    if (tree_read(mirror->files, mirror->inside_fd, &mirror->inside, err) < 0)
        return err_in(err, "reading the workspace inside");
    hasher_end(&mirror->inside.tree, &hash);
    hash_text(&hash, mirror->files->moved->hash);
    mirror->files->moved->is_tree = true;
    if (mirror_look(mirror, err) < 0 || show_files(mirror, err) < 0)
        return -1;
    if (mirror->options->apply && mirror_apply(mirror, err) < 0)
        return -1;
    count(mirror, out);
    return mirror->options->apply ? mirror_move_base(mirror, run_dir, err) : 0;
}

/* The end of the connection lets the sandbox go on, whatever becomes of us. */
static int while_still(struct mirror *mirror, const char *run_dir, struct mirror_result *out,
                       struct err *err)
{
    struct box_message order = {.kind = BOX_HOLD}, answer;
    AUTO_FD int hold_fd = -1;
    int failed = -1;

    /* Where there is no freezer, a process stopped between vfork and exec leaves its parent
     * waiting, which does not look stopped. It went on when the hold was given up, and is elsewhere
     * now. */
    for (unsigned tries = 0; failed && tries < HOLD_TRIES; tries++) {
        failed = kept_ask(run_dir, &order, &answer, NULL, 0, &hold_fd, err);
        if (failed && err->code != ERR_TIMEOUT)
            break;
    }
    if (failed)
        return err_in(err, "having the sandbox hold still");
    return look_and_apply(mirror, run_dir, out, err);
}

static void mirror_done(struct mirror *mirror)
{
    tree_done(&mirror->base.tree);
    tree_done(&mirror->inside);
    free(mirror->changes);
    free(mirror->pending);
    if (mirror->inside_fd >= 0)
        (void)close(mirror->inside_fd);
    if (mirror->host_fd >= 0)
        (void)close(mirror->host_fd);
}

static int read_base(const char *run_dir, struct mirror_base *base, struct err *err)
{
    if (base_read(run_dir, base, err) == 0)
        return 0;
    if (err->code == ERR_NOT_FOUND)
        (void)err_set(err, ERR_NOT_FOUND,
                      "this sandbox has no mirrored workspace; make one with \"sandbox create "
                      "--workspace DIR:mirror\"");
    return -1;
}

int files_mirror(struct files *files, struct execute *execute, const char *sandbox,
                 const struct mirror_options *options, struct arena *mem, struct mirror_result *out,
                 struct err *err)
{
    __attribute__((cleanup(mirror_done))) struct mirror mirror = {
        .files = files, .options = options, .mem = mem, .inside_fd = -1, .host_fd = -1};
    char run_dir[RUN_DIR_BYTES];

    *out = (struct mirror_result){0};
    tree_init(&mirror.inside);
    if (kept_open(execute, sandbox, run_dir, err) < 0 ||
        read_base(run_dir, &mirror.base, err) < 0 || open_host(&mirror, err) < 0 ||
        open_inside(files, &mirror.inside_fd, err) < 0)
        return -1;
    out->folder = arena_text(mem, str_of(mirror.base.source));
    return while_still(&mirror, run_dir, out, err);
}

int execute_mirror_folder(struct execute *execute, struct arena *mem, const char *sandbox,
                          const char **out, struct err *err)
{
    struct mirror_base base = {0};
    char run_dir[RUN_DIR_BYTES];
    int failed;

    tree_init(&base.tree);
    failed = kept_open(execute, sandbox, run_dir, err) < 0 ? -1 : read_base(run_dir, &base, err);
    if (!failed)
        *out = arena_text(mem, str_of(base.source));
    tree_done(&base.tree);
    return failed;
}
