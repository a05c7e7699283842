/* SPDX-License-Identifier: Apache-2.0 */

/* Protected files as they were, to be looked at again when something could have changed them: what
 * is new, changed or gone is named in the receipt. A file that was not there at the start cannot be
 * protected in advance, and one may be reached by another name.
 *
 * Of a run this lives in memory. Of a sandbox that stays it is kept in
 *
 *     STATE/guards/ID     records that end with NUL:
 *         "root" device inode source target      a folder that may be written
 *         "file" hash path                       and what is in it, sorted by path
 *
 * and moves on with every look, so that each change is told once. It outlives the sandbox until its
 * end is recorded, because a process left behind may be the one who changed something. */

#include "flow/equip/workspace.h"

#include "lib/base/io.h"
#include "lib/base/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define GUARD_ROOTS_MAX (MOUNTS_MAX + 1) /* and the workspace */
#define GUARD_TEXT_MAX (2 * PROTECTED_BYTES_MAX + 128UL * PROTECTED_FILES_MAX)

struct guard_root {
    const char *source;
    const char *target;
    uint64_t device;
    uint64_t inode;
    struct trace *traces; /* sorted by path */
    size_t trace_n;
};

struct guard {
    struct arena *mem;
    struct guard_root roots[GUARD_ROOTS_MAX];
    size_t root_n;
    size_t files;
    size_t bytes;
};

struct guard *guard_new(struct run *run)
{
    struct guard *guard = arena_new(&run->mem, struct guard);

    guard->mem = &run->mem;
    return guard;
}

static void take_traces(struct guard *guard, struct guard_root *root, const struct scan *scan)
{
    root->traces = arena_array(guard->mem, struct trace, scan->trace_n + 1);
    for (size_t i = 0; i < scan->trace_n; i++) {
        root->traces[i] = scan->traces[i];
        root->traces[i].path = arena_text(guard->mem, str_of(scan->traces[i].path));
    }
    root->trace_n = scan->trace_n;
}

bool guard_add(struct guard *guard, const struct plan_mount *mount, const struct scan *scan)
{
    struct guard_root *root = &guard->roots[guard->root_n];

    guard->files += scan->trace_n;
    guard->bytes += scan->bytes;
    if (guard->root_n == GUARD_ROOTS_MAX || guard->files > PROTECTED_FILES_MAX ||
        guard->bytes > PROTECTED_BYTES_MAX)
        return false;
    guard->root_n++;
    *root = (struct guard_root){.source = mount->source,
                                .target = mount->target,
                                .device = mount->device,
                                .inode = mount->inode};
    take_traces(guard, root, scan);
    return true;
}

/* ---- kept ---- */

static const char *guard_path(struct equip *equip, struct arena *mem, const char *sandbox)
{
    return arena_printf(mem, "%s/guards/%s", equip->state_dir, sandbox);
}

static int add_field(struct buf *out, const char *text, struct err *err)
{
    return buf_add(out, text, strlen(text) + 1, err);
}

static int add_root(struct buf *out, const struct guard_root *root, struct err *err)
{
    char device[32], inode[32];

    (void)snprintf(device, sizeof device, "%llu", (unsigned long long)root->device);
    (void)snprintf(inode, sizeof inode, "%llu", (unsigned long long)root->inode);
    if (add_field(out, "root", err) < 0 || add_field(out, device, err) < 0 ||
        add_field(out, inode, err) < 0 || add_field(out, root->source, err) < 0 ||
        add_field(out, root->target, err) < 0)
        return -1;
    for (size_t i = 0; i < root->trace_n; i++)
        if (add_field(out, "file", err) < 0 || add_field(out, root->traces[i].hash, err) < 0 ||
            add_field(out, root->traces[i].path, err) < 0)
            return -1;
    return 0;
}

static int guard_write(struct equip *equip, const struct guard *guard, const char *sandbox,
                       struct err *err)
{
    AUTO_BUF struct buf text = BUF(GUARD_TEXT_MAX);
    AUTO_ARENA struct arena mem = ARENA(RUN_MEMORY_MAX);

    for (size_t i = 0; i < guard->root_n; i++)
        if (add_root(&text, &guard->roots[i], err) < 0)
            return -1;
    if (dir_make(arena_printf(&mem, "%s/guards", equip->state_dir), 0700, err) < 0)
        return -1;
    return file_replace(guard_path(equip, &mem, sandbox), text.p, text.n, 0600, err);
}

static const char *take_field(struct arena *mem, struct str *rest)
{
    return arena_text(mem, str_cut(rest, '\0'));
}

static bool read_root(struct guard *guard, struct str *rest)
{
    struct guard_root *root = &guard->roots[guard->root_n];
    size_t room = PROTECTED_FILES_MAX - guard->files;

    if (guard->root_n == GUARD_ROOTS_MAX || !str_u64(str_cut(rest, '\0'), &root->device) ||
        !str_u64(str_cut(rest, '\0'), &root->inode))
        return false;
    root->source = take_field(guard->mem, rest);
    root->target = take_field(guard->mem, rest);
    root->traces = arena_array(guard->mem, struct trace, room + 1);
    while (rest->n >= 5 && memcmp(rest->p, "file", 5) == 0 && root->trace_n < room) {
        struct trace *trace = &root->traces[root->trace_n++];
        struct str hash;

        (void)str_cut(rest, '\0');
        hash = str_cut(rest, '\0');
        if (hash.n >= sizeof trace->hash)
            return false;
        memcpy(trace->hash, hash.p, hash.n);
        trace->path = take_field(guard->mem, rest);
    }
    guard->files += root->trace_n;
    guard->root_n++;
    return true;
}

/* NULL: there is nothing to guard, or what was kept cannot be read; then *damaged. */
static struct guard *guard_read(struct equip *equip, struct run *run, bool *damaged)
{
    AUTO_BUF struct buf text = BUF(GUARD_TEXT_MAX);
    const char *path = guard_path(equip, &run->mem, run->sandbox_id);
    struct guard *guard;
    struct str rest;
    struct err err;

    *damaged = false;
    if (access(path, F_OK) < 0 && errno == ENOENT)
        return NULL;
    *damaged = true;
    if (file_read(AT_FDCWD, path, &text, &err) < 0)
        return NULL;
    guard = guard_new(run);
    rest = buf_str(&text);
    while (rest.n)
        if (!str_is(str_cut(&rest, '\0'), "root") || !read_root(guard, &rest))
            return NULL;
    *damaged = false;
    return guard;
}

int equip_guard_keep(struct equip *equip, struct run *run, struct err *err)
{
    return run->plan.guard ? guard_write(equip, run->plan.guard, run->sandbox_id, err) : 0;
}

void equip_guard_drop(struct equip *equip, const char *sandbox)
{
    AUTO_ARENA struct arena mem = ARENA(RUN_MEMORY_MAX);

    (void)unlink(guard_path(equip, &mem, sandbox)); /* mostly there is none */
}

/* ---- looking again ---- */

struct findings {
    struct run *run;
    struct protected_change *of;
    size_t bytes;
};

static void add_change(struct findings *findings, const struct guard_root *root,
                       const struct trace *trace, enum protected_kind kind)
{
    struct protected_changes *changes = &findings->run->outcome.protected_changes;
    struct protected_change *change;

    changes->count++;
    findings->bytes += strlen(root->target) + strlen(trace->path) + 1;
    if (changes->n == PROTECTED_LISTED_MAX || findings->bytes > PROTECTED_LISTED_BYTES_MAX)
        return;
    change = &findings->of[changes->n++];
    change->path = arena_printf(&findings->run->mem, "%s/%s", root->target, trace->path);
    change->kind = kind;
    if (kind != PROTECTED_REMOVED)
        (void)strcpy(change->hash, trace->hash);
}

/* Both lists are sorted. */
static void compare_traces(struct findings *findings, const struct guard_root *root,
                           const struct scan *now)
{
    size_t i = 0, j = 0;

    while (i < root->trace_n || j < now->trace_n) {
        const struct trace *was = i < root->trace_n ? &root->traces[i] : NULL;
        const struct trace *is = j < now->trace_n ? &now->traces[j] : NULL;
        int order = !was ? 1 : !is ? -1 : strcmp(was->path, is->path);

        if (order < 0) {
            add_change(findings, root, was, PROTECTED_REMOVED);
            i++;
        } else if (order > 0) {
            add_change(findings, root, is, PROTECTED_NEW);
            j++;
        } else {
            if (strcmp(was->hash, is->hash) != 0)
                add_change(findings, root, is, PROTECTED_CHANGED);
            i++;
            j++;
        }
    }
}

static int look_at(struct findings *findings, struct guard *guard, struct guard_root *root,
                   struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(PROTECTED_MEMORY_MAX);
    AUTO_FD int root_fd = open(root->source, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    AUTO_SCAN struct scan scan = {.mem = &mem, .root = root->source, .root_fd = root_fd};
    struct stat st;

    if (root_fd < 0 || fstat(root_fd, &st) < 0)
        return err_os(err, "opening %s", root->source);
    if (st.st_dev != root->device || st.st_ino != root->inode)
        return err_set(err, ERR_CONFLICT, "%s is another folder now", root->source);
    if (scan_run(&scan, err) < 0)
        return -1;
    if (scan.stopped)
        findings->run->outcome.protected_changes.incomplete = true;
    compare_traces(findings, root, &scan);
    take_traces(guard, root, &scan);
    return 0;
}

void equip_look_again(struct equip *equip, struct run *run)
{
    bool kept = run->action.kind != ACTION_RUN;
    bool damaged = false;
    struct guard *guard = kept ? guard_read(equip, run, &damaged) : run->plan.guard;
    struct protected_changes *changes = &run->outcome.protected_changes;
    struct findings findings = {.run = run};
    struct err err; /* what cannot be looked at is said so */

    changes->looked = guard || damaged;
    changes->incomplete = damaged;
    if (!guard)
        return;
    changes->of = findings.of =
        arena_array(&run->mem, struct protected_change, PROTECTED_LISTED_MAX);
    for (size_t i = 0; i < guard->root_n; i++)
        if (look_at(&findings, guard, &guard->roots[i], &err) < 0)
            changes->incomplete = true;
    if (kept && changes->count && guard_write(equip, guard, run->sandbox_id, &err) < 0)
        changes->incomplete = true;
}
