/* SPDX-License-Identifier: Apache-2.0 */

/* brig sandbox diff, sync: what changed in a mirrored workspace, shown and brought back. */

#include "surface/cli/sandbox.h"

#include "flow/equip/equip.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/base/text.h"
#include "lib/json/json.h"
#include "model/run.h"

#include <string.h>
#include <unistd.h>

struct call {
    struct invocation *inv;
    struct execute *execute;
    const char *sandbox;
    const char *folder; /* of this machine */
    struct mirror_options options;
    struct words places; /* protected ones that the folder has */
    struct mirror_result result;
    struct buf patch;
    bool patch_cut;
    struct arena mem;
};

static const char *const letters[] = {
    [MIRROR_ADDED] = "A", [MIRROR_CHANGED] = "M", [MIRROR_REMOVED] = "D"};
static const char *const kinds[] = {
    [MIRROR_ADDED] = "added", [MIRROR_CHANGED] = "changed", [MIRROR_REMOVED] = "removed"};
static const struct {
    const char *name;
    const char *text;
} ways[] = {
    [MIRROR_CLEAR] = {"",           ""                                          },
    [MIRROR_CONFLICT] = {"conflict",   "changed here, too"                         },
    [MIRROR_PROTECTED] = {"protected",  "tools of this machine run it by themselves"},
    [MIRROR_OUTWARD] = {"leads_out",  "a link that leads out of the workspace"    },
    [MIRROR_SPECIAL] = {"special",    "no file, folder or link"                   },
    [MIRROR_CLOSED] = {"unreadable", "it cannot be read, or changes all the time"},
    [MIRROR_FAILED] = {"failed",     "it could not be written here"              },
};

static bool lies_in(const char *path, const char *folder)
{
    size_t n = strlen(folder);

    return strncmp(path, folder, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

static bool is_protected(void *context, const char *path, char type)
{
    const struct call *call = context;

    for (size_t i = 0; i < call->places.n; i++)
        if (lies_in(path, call->places.v[i]))
            return true;
    return equip_protected_path(path, type);
}

/* ---- patches ---- */

/* False: there is none, or it is too large to show. */
static bool read_side(int fd, struct buf *out)
{
    struct err ignored;

    return fd >= 0 && read_all(fd, out, &ignored) == 0;
}

static int on_file(void *context, const struct mirror_change *change, int host_fd, int inside_fd,
                   struct err *err)
{
    struct call *call = context;
    AUTO_BUF struct buf from = BUF(MIRROR_PATCH_FILE_MAX), to = BUF(MIRROR_PATCH_FILE_MAX);
    bool has_from = read_side(host_fd, &from), has_to = read_side(inside_fd, &to);
    AUTO_BUF struct buf name = BUF(8 * PATH_BYTES_MAX);
    struct err full;

    if (call->patch_cut)
        return 0;
    if (text_escape(str_of(change->path), &name, err) < 0)
        return -1;
    if ((host_fd >= 0 && !has_from) || (inside_fd >= 0 && !has_to))
        call->patch_cut =
            buf_addf(&call->patch, &full, "File %s is too large to show\n", buf_text(&name)) < 0;
    else
        call->patch_cut = patch_write(&call->patch, buf_text(&name), has_from ? &from : NULL,
                                      has_to ? &to : NULL, &full) < 0;
    return 0;
}

/* Lines that come from inside drive no terminal. */
static void print_patch(struct call *call)
{
    struct str rest = buf_str(&call->patch);

    if (!isatty(fileno(call->inv->out))) {
        (void)fwrite(rest.p, 1, rest.n, call->inv->out);
        return;
    }
    while (rest.n) {
        struct str line = str_cut(&rest, '\n');

        for (size_t i = 0; i < line.n; i++)
            if ((unsigned char)line.p[i] < ' ' && line.p[i] != '\t')
                (void)fprintf(call->inv->out, "\\x%02x", (unsigned char)line.p[i]);
            else if ((unsigned char)line.p[i] == 0x7f)
                (void)fputs("\\x7f", call->inv->out);
            else
                (void)fputc(line.p[i], call->inv->out);
        (void)fputc('\n', call->inv->out);
    }
}

/* ---- showing ---- */

static void print_changes(struct call *call)
{
    const struct mirror_result *result = &call->result;
    FILE *out = call->inv->out;

    for (size_t i = 0; i < result->n && i < MIRROR_LISTED_MAX; i++) {
        const struct mirror_change *change = &result->changes[i];

        (void)fprintf(out, "%s  ", letters[change->kind]);
        print_escaped(out, str_of(change->path));
        if (change->type == 'd')
            (void)fputc('/', out);
        if (!change->done && change->why != MIRROR_CLEAR) {
            (void)fprintf(out, "  (%s: ", ways[change->why].name);
            print_escaped(out, str_of(change->note[0] ? change->note : ways[change->why].text));
            (void)fputc(')', out);
        }
        (void)fputc('\n', out);
    }
    if (result->n > MIRROR_LISTED_MAX)
        (void)fprintf(out, "and %zu more\n", result->n - MIRROR_LISTED_MAX);
}

static struct json *changes_json(struct call *call)
{
    struct arena *mem = &call->mem;
    struct json *list = json_array(mem);

    for (size_t i = 0; i < call->result.n && i < MIRROR_LISTED_MAX; i++) {
        const struct mirror_change *change = &call->result.changes[i];
        struct json *entry = json_object(mem);
        const char *type = change->type == 'f'   ? "file"
                           : change->type == 'd' ? "directory"
                           : change->type == 'l' ? "link"
                                                 : "other";

        json_put_bytes(mem, entry, "path", str_of(change->path));
        json_put_text(mem, entry, "change", kinds[change->kind]);
        json_put_text(mem, entry, "type", type);
        json_put_bool(mem, entry, "done", change->done);
        if (!change->done && change->why != MIRROR_CLEAR)
            json_put_text(mem, entry, "held_back", ways[change->why].name);
        if (change->note[0])
            json_put_bytes(mem, entry, "note", str_of(change->note));
        json_push(list, entry);
    }
    return list;
}

static int print_json(struct call *call, const struct run *run)
{
    struct arena *mem = &call->mem;
    struct json *object = json_object(mem);
    const struct mirror_result *result = &call->result;

    json_put_text(mem, object, "sandbox_id", run->sandbox_id);
    json_put_bytes(mem, object, "folder", str_of(result->folder));
    json_put(object, "changes", changes_json(call));
    json_put_int(mem, object, "count", (int64_t)result->n);
    json_put_int(mem, object, "done", (int64_t)result->done);
    json_put_int(mem, object, "conflicts", (int64_t)result->conflicts);
    json_put_int(mem, object, "held_back", (int64_t)result->held_back);
    json_put_bool(mem, object, "applied", call->options.apply);
    json_put_text(mem, object, "tree_hash", run->outcome.moved.hash);
    if (call->options.on_file)
        json_put_bytes(mem, object, "patch", buf_str(&call->patch));
    json_put_text(mem, object, "receipt_id", run->closing.id);
    return cli_json(call->inv, object);
}

static void print_summary(const struct call *call, const struct run *run)
{
    const struct mirror_result *result = &call->result;
    const struct invocation *inv = call->inv;

    (void)fprintf(inv->err, "%s: %zu changes", inv->program, result->n);
    if (call->options.apply)
        (void)fprintf(inv->err, ", %llu applied to ", (unsigned long long)result->done);
    else
        (void)fputs(" against ", inv->err);
    print_escaped(inv->err, str_of(result->folder));
    if (result->conflicts)
        (void)fprintf(inv->err, ", %llu conflicts", (unsigned long long)result->conflicts);
    if (result->held_back)
        (void)fprintf(inv->err, ", %llu held back", (unsigned long long)result->held_back);
    (void)fprintf(inv->err, "; receipt %s\n", run->closing.id);
    if (call->patch_cut)
        (void)fprintf(inv->err, "%s: the patch is too large to show all of it\n", inv->program);
}

static int report(struct call *call, const struct run *run)
{
    struct invocation *inv = call->inv;
    const struct mirror_result *result = &call->result;
    uint64_t left = result->n - result->done;
    struct err err;
    int status = 0;

    if (run->verdict.kind != VERDICT_ALLOW)
        return sandbox_refused(inv, run);
    if (run->outcome.reason != REASON_NONE) {
        (void)err_set(&err, run->outcome.failure_code, "%.480s", run->outcome.failure);
        return cli_error_with(inv, &err, run->outcome.reason, NULL);
    }
    if (inv->json) {
        status = print_json(call, run);
    } else {
        print_changes(call);
        print_patch(call);
        print_summary(call, run);
    }
    if (status == 0 && call->options.apply && left)
        status = cli_status(inv, ERR_CONFLICT);
    return status;
}

/* ---- one call ---- */

static int work(void *context, struct files *files, struct err *err)
{
    struct call *call = context;

    if (equip_protected_below(&call->mem, call->folder, &call->places, err) < 0)
        return -1;
    return files_mirror(files, call->execute, call->sandbox, &call->options, &call->mem,
                        &call->result, err);
}

/* The options are part of what is asked, so they are part of what is recorded. */
static const char *verb_of(struct call *call)
{
    const struct mirror_options *options = &call->options;

    if (!options->apply)
        return "diff";
    return arena_printf(&call->mem, "sync%s%s%s%s", options->theirs ? " --theirs" : "",
                        options->ours ? " --ours" : "",
                        options->include_protected ? " --include-protected" : "",
                        options->include_links ? " --include-links" : "");
}

static int run_call(struct call *call)
{
    struct invocation *inv = call->inv;
    AUTO_SANDBOX_CALL struct sandbox_call opened = {0};
    struct files_work files_work = {.run = work, .context = call};
    struct run run;
    struct err err;
    int status;

    call->options.is_protected = is_protected;
    call->options.context = call;
    if (sandbox_call_open(inv, &opened, &status) < 0)
        return status;
    call->execute = govern_execute(opened.govern);
    opened.request.kind = ACTION_FILES;
    opened.request.verb = verb_of(call);
    opened.request.path = WORKSPACE_TARGET;
    run_init(&run);
    if (sandbox_find(inv, opened.govern, inv->operands.v[0], &call->sandbox, &err) < 0 ||
        execute_mirror_folder(call->execute, &call->mem, call->sandbox, &call->folder, &err) < 0) {
        status = cli_error(inv, &err);
    } else {
        opened.request.sandbox = call->sandbox;
        opened.request.other = call->folder;
        status = govern_files(opened.govern, &opened.request, &files_work, &run, &err) < 0
                     ? cli_error(inv, &err)
                     : report(call, &run);
    }
    run_done(&run);
    buf_done(&call->patch);
    arena_done(&call->mem);
    return status;
}

int run_sandbox_diff(struct invocation *inv)
{
    struct call call = {
        .inv = inv, .mem = ARENA(MIRROR_MEMORY_MAX), .patch = BUF(MIRROR_PATCH_MAX)};

    if (option_flag(inv, "--patch"))
        call.options.on_file = on_file;
    return run_call(&call);
}

int run_sandbox_sync(struct invocation *inv)
{
    struct call call = {
        .inv = inv,
        .mem = ARENA(MIRROR_MEMORY_MAX),
        .patch = BUF(MIRROR_PATCH_MAX),
        .options = {.apply = option_flag(inv, "--apply"),
                    .theirs = option_flag(inv, "--theirs"),
                    .ours = option_flag(inv, "--ours"),
                    .include_protected = option_flag(inv, "--include-protected"),
                    .include_links = option_flag(inv, "--include-links")},
    };
    struct err err;

    if (call.options.theirs && call.options.ours) {
        (void)err_set(&err, ERR_INVALID, "--theirs and --ours: only one can win");
        return cli_error(inv, &err);
    }
    return run_call(&call);
}

void sandbox_warn_mirror(const struct invocation *inv, const struct run *run)
{
    const struct moved *moved = &run->outcome.moved;

    if (!run->plan.mirror_source)
        return;
    if (moved->skipped)
        (void)fprintf(inv->err,
                      "%s: %llu left out of the workspace: special files, and what its owner may "
                      "not read\n",
                      inv->program, (unsigned long long)moved->skipped);
    if (moved->unsteady) {
        (void)fprintf(
            inv->err,
            "%s: %llu files changed all the time while they were copied, and are left out "
            "of the workspace: ",
            inv->program, (unsigned long long)moved->unsteady);
        print_escaped(inv->err, str_of(moved->left_out));
        (void)fputc('\n', inv->err);
    }
}
