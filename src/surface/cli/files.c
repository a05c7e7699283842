/* SPDX-License-Identifier: Apache-2.0 */

/* brig sandbox files VERB, brig sandbox cp: the files of a kept sandbox. */

#include "surface/cli/sandbox.h"

#include "lib/base/clock.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/base/text.h"
#include "lib/json/json.h"
#include "model/run.h"
#include "surface/view/view.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LISTING_MEMORY_MAX (1 * GIB) /* a hundred thousand entries as JSON; taken as needed */
#define CAT_JSON_MAX (32 * MIB)
#define PROGRESS_AFTER_US 1000000U
#define PROGRESS_EVERY_US 200000U

/* One call, from the words to the receipt. */
struct files_call {
    struct invocation *inv;
    const char *path;
    const char *other;
    bool recursive;
    struct arena mem;    /* of listings */
    struct json *result; /* what --json prints besides the usual members, or NULL */
    struct files *files;
    uint64_t began_us;
    uint64_t shown_us;
    bool shown;
};

/* ---- progress ---- */

static void on_moved(void *context, const struct moved *moved)
{
    struct files_call *call = context;
    uint64_t now = clock_us();

    if (now - call->began_us < PROGRESS_AFTER_US || now - call->shown_us < PROGRESS_EVERY_US)
        return;
    call->shown_us = now;
    call->shown = true;
    (void)fprintf(call->inv->err, "\r%llu.%llu MiB, %llu files\x1b[K",
                  (unsigned long long)(moved->bytes / MIB),
                  (unsigned long long)(moved->bytes % MIB * 10 / MIB),
                  (unsigned long long)moved->entries);
    (void)fflush(call->inv->err);
}

static void clear_progress(const struct files_call *call)
{
    if (call->shown)
        (void)fputs("\r\x1b[K", call->inv->err);
}

/* ---- showing ---- */

static void time_text(int64_t seconds, char out[32])
{
    struct tm utc;
    time_t at = (time_t)seconds;

    if (!gmtime_r(&at, &utc) || strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", &utc) == 0)
        (void)strcpy(out, "-");
}

static void print_text(FILE *to, struct str text)
{
    AUTO_BUF struct buf shown = BUF(64 * KIB);
    struct err ignored; /* a name too long to show is left out */

    if (text_escape(text, &shown, &ignored) == 0)
        (void)fputs(buf_text(&shown), to);
}

static void print_entry(FILE *to, const struct file_entry *entry)
{
    char when[32];

    time_text(entry->mtime_s, when);
    (void)fprintf(to, "%-9s %04o %12llu %s ", view_file_type(entry->mode), entry->mode & 07777U,
                  (unsigned long long)entry->size, when);
    print_text(to, entry->name);
    if (S_ISLNK(entry->mode)) {
        (void)fputs(" -> ", to);
        print_text(to, entry->target);
    }
    (void)fputc('\n', to);
}

/* ---- the verbs ---- */

static int do_ls(void *context, struct files *files, struct err *err)
{
    struct files_call *call = context;
    struct file_listing listing;

    if (files_list(files, &call->mem, call->path, &listing, err) < 0)
        return -1;
    if (!call->inv->json) {
        for (size_t i = 0; i < listing.n; i++)
            print_entry(call->inv->out, &listing.entries[i]);
        if (listing.more)
            (void)fprintf(call->inv->err, "%s: there are more entries than are shown\n",
                          call->inv->program);
        return 0;
    }
    call->result = view_listing(&call->mem, &listing);
    return 0;
}

static int do_stat(void *context, struct files *files, struct err *err)
{
    struct files_call *call = context;
    struct file_entry entry;

    if (files_stat(files, &call->mem, call->path, false, &entry, err) < 0)
        return -1;
    if (call->inv->json)
        call->result = view_file(&call->mem, &entry);
    else
        print_entry(call->inv->out, &entry);
    return 0;
}

static int cat_to_json(struct files_call *call, struct files *files, struct err *err)
{
    AUTO_FD int fd = memfd_create("content", MFD_CLOEXEC);
    AUTO_BUF struct buf content = BUF(CAT_JSON_MAX);

    if (fd < 0)
        return err_os(err, "making room for the content");
    if (files_cat(files, call->path, fd, err) < 0)
        return -1;
    if (lseek(fd, 0, SEEK_SET) < 0 || read_all(fd, &content, err) < 0)
        return err_in(err, "%.200s: leave out --json for large files", call->path);
    call->result = json_object(&call->mem);
    json_put_bytes(&call->mem, call->result, "content", buf_str(&content));
    return 0;
}

static int do_cat(void *context, struct files *files, struct err *err)
{
    struct files_call *call = context;

    if (call->inv->json)
        return cat_to_json(call, files, err);
    return files_cat(files, call->path, STDOUT_FILENO, err);
}

static int do_write(void *context, struct files *files, struct err *err)
{
    struct files_call *call = context;

    return files_write(files, call->path, STDIN_FILENO, err);
}

static int do_rm(void *context, struct files *files, struct err *err)
{
    struct files_call *call = context;

    return files_remove(files, call->path, call->recursive, err);
}

static int do_mv(void *context, struct files *files, struct err *err)
{
    struct files_call *call = context;

    return files_move(files, call->path, call->other, err);
}

static int do_mkdir(void *context, struct files *files, struct err *err)
{
    struct files_call *call = context;

    return files_make_dir(files, call->path, call->recursive, err);
}

static int on_change(void *context, const struct file_change *change, struct err *err)
{
    struct files_call *call = context;
    AUTO_ARENA struct arena mem = ARENA(MIB);
    AUTO_BUF struct buf line = BUF(64 * KIB);
    struct json *event = json_object(&mem);
    char now[TIMESTAMP_BYTES];

    clock_timestamp(now);
    json_put_text(&mem, event, "event", change->name);
    if (change->entry.n)
        json_put_bytes(&mem, event, "name", change->entry);
    json_put_text(&mem, event, "timestamp", now);
    if (json_compact(event, &line, err) < 0)
        return -1;
    (void)fprintf(call->inv->out, "%s\n", buf_text(&line));
    return fflush(call->inv->out) == 0 ? 0 : err_os(err, "writing to standard output");
}

static int do_watch(void *context, struct files *files, struct err *err)
{
    struct files_call *call = context;

    return files_watch(files, call->path, option_number(call->inv, "--timeout"), on_change, call,
                       err);
}

static int do_fetch(void *context, struct files *files, struct err *err)
{
    struct files_call *call = context;

    if (strcmp(call->other, "-") == 0)
        return call->recursive ? files_tar_out(files, call->path, STDOUT_FILENO, err)
                               : files_cat(files, call->path, STDOUT_FILENO, err);
    return files_fetch(files, call->path, call->other, call->recursive, err);
}

static int do_push(void *context, struct files *files, struct err *err)
{
    struct files_call *call = context;

    if (strcmp(call->other, "-") == 0)
        return call->recursive ? files_tar_in(files, call->path, STDIN_FILENO, err)
                               : files_write(files, call->path, STDIN_FILENO, err);
    return files_push(files, call->other, call->path, call->recursive, err);
}

struct verb {
    const char *name;
    size_t paths;
    bool on_stdout; /* its result is content or events, so everything else goes elsewhere */
    int (*run)(void *context, struct files *files, struct err *err);
};

static const struct verb verbs[] = {
    {"ls",    1, true,  do_ls   },
    {"cat",   1, true,  do_cat  },
    {"write", 1, false, do_write},
    {"rm",    1, false, do_rm   },
    {"mv",    2, false, do_mv   },
    {"mkdir", 1, false, do_mkdir},
    {"stat",  1, true,  do_stat },
    {"watch", 1, true,  do_watch},
};

static const struct verb fetch_verb = {"cp-out", 1, false, do_fetch};
static const struct verb push_verb = {"cp-in", 1, false, do_push};

/* ---- one call ---- */

static int print_result(struct files_call *call, const struct run *run)
{
    struct json *object = call->result ? call->result : json_object(&call->mem);

    view_put_moved(&call->mem, object, run);
    return cli_json(call->inv, object);
}

static int report(struct files_call *call, const struct verb *verb, const struct run *run)
{
    struct invocation *inv = call->inv;
    const struct moved *moved = &run->outcome.moved;
    struct err err;

    if (run->verdict.kind != VERDICT_ALLOW)
        return sandbox_refused(inv, run);
    if (run->outcome.reason != REASON_NONE) {
        (void)err_set(&err, run->outcome.failure_code, "%.480s", run->outcome.failure);
        return cli_error_with(inv, &err, run->outcome.reason, NULL);
    }
    if (moved->skipped && !inv->json)
        (void)fprintf(inv->err,
                      "%s: %llu left out: special files, and links that lead out of the copy\n",
                      inv->program, (unsigned long long)moved->skipped);
    if (inv->json && strcmp(verb->name, "watch") != 0)
        return print_result(call, run);
    if (!inv->json && !verb->on_stdout)
        (void)fprintf(inv->err, "%s: %s %llu bytes, %llu entries; receipt %s\n", inv->program,
                      verb->name, (unsigned long long)moved->bytes,
                      (unsigned long long)moved->entries, run->closing.id);
    return 0;
}

static int run_verb(struct files_call *call, const struct verb *verb, const char *sandbox,
                    const char *recorded_other)
{
    struct invocation *inv = call->inv;
    AUTO_SANDBOX_CALL struct sandbox_call opened = {0};
    struct files_work work = {.run = verb->run, .context = call};
    struct run run;
    struct err err;
    int status;

    if (sandbox_call_open(inv, &opened, &status) < 0)
        return status;
    opened.request.kind = ACTION_FILES;
    opened.request.verb = verb->name;
    opened.request.path = call->path;
    opened.request.other = recorded_other;
    call->began_us = clock_us();
    if (!inv->json && isatty(fileno(inv->err)))
        work.progress = (struct files_progress){on_moved, call};
    run_init(&run);
    if (sandbox_find(inv, opened.govern, sandbox, &opened.request.sandbox, &err) < 0 ||
        govern_files(opened.govern, &opened.request, &work, &run, &err) < 0) {
        status = cli_error(inv, &err);
    } else {
        clear_progress(call);
        status = report(call, verb, &run);
    }
    run_done(&run);
    return status;
}

static const struct verb *verb_named(const char *name)
{
    for (size_t i = 0; i < COUNT(verbs); i++)
        if (strcmp(verbs[i].name, name) == 0)
            return &verbs[i];
    return NULL;
}

int run_sandbox_files(struct invocation *inv)
{
    AUTO_ARENA struct arena mem = ARENA(LISTING_MEMORY_MAX);
    const char *const *words = inv->operands.v;
    const struct verb *verb = verb_named(words[0]);
    struct files_call call = {.inv = inv, .recursive = option_flag(inv, "--recursive")};
    struct err err;
    int status;

    if (!verb)
        (void)err_set(&err, ERR_INVALID,
                      "\"%.40s\" is none of: ls cat write rm mv mkdir stat watch", words[0]);
    else if (inv->operands.n != 2 + verb->paths)
        (void)err_set(&err, ERR_INVALID, "%s takes an ID and %zu path%s: %s sandbox files %s ID %s",
                      verb->name, verb->paths, verb->paths == 1 ? "" : "s", inv->program,
                      verb->name, verb->paths == 1 ? "PATH" : "PATH PATH");
    if (!verb || inv->operands.n != 2 + verb->paths)
        return cli_error(inv, &err);
    call.path = words[2];
    call.other = verb->paths > 1 ? words[3] : NULL;
    call.mem = mem;
    status = run_verb(&call, verb, words[1], call.other);
    mem = call.mem; /* which has grown, and is released here */
    return status;
}

/* ---- cp ---- */

/* "ID:PATH"; a path of this machine that has a colon is written with a slash in front of it. */
static const char *inside_path(struct invocation *inv, const char *text, const char **id)
{
    const char *colon = strchr(text, ':');
    const char *slash = strchr(text, '/');

    if (!colon || colon == text || (slash && slash < colon))
        return NULL;
    *id = arena_text(&inv->mem, (struct str){text, (size_t)(colon - text)});
    return colon[1] ? colon + 1 : ".";
}

int run_sandbox_cp(struct invocation *inv)
{
    AUTO_ARENA struct arena mem = ARENA(LISTING_MEMORY_MAX);
    struct files_call call = {.inv = inv, .recursive = option_flag(inv, "--recursive")};
    const char *id = NULL;
    const char *from = inside_path(inv, inv->operands.v[0], &id);
    const char *to = inside_path(inv, inv->operands.v[1], &id);
    struct err err;
    int status;

    if (!from == !to) {
        (void)err_set(&err, ERR_INVALID, "exactly one side is ID:PATH: %s sandbox cp %s",
                      inv->program, inv->command->operands);
        return cli_error(inv, &err);
    }
    call.path = from ? from : to;
    call.other = from ? inv->operands.v[1] : inv->operands.v[0];
    if (inv->json && from && strcmp(call.other, "-") == 0) {
        (void)err_set(&err, ERR_INVALID, "--json and \"-\" both want standard output");
        return cli_error(inv, &err);
    }
    call.mem = mem;
    status = run_verb(&call, from ? &fetch_verb : &push_verb, id, call.other);
    mem = call.mem; /* which has grown, and is released here */
    return status;
}
