/* SPDX-License-Identifier: Apache-2.0 */

/* brig advisory replay, export: sessions judged anew, and as a dataset. */

#include "flow/advise/advise.h"

#include "lib/base/io.h"
#include "lib/json/json.h"
#include "surface/cli/sandbox.h"
#include "surface/view/view.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define REPLAY_LAST_DEFAULT 10
#define DIFFERS_STATUS 1
#define LISTED_MAX 10000 /* differences as JSON; the rest is counted */

/* ---- which ---- */

static int choose(struct invocation *inv, struct sandbox_call *call, struct advise_choice *choice,
                  struct err *err)
{
    choice->run_id = inv->operands.n ? inv->operands.v[0] : NULL;
    choice->agent_id = option_text(inv, "--agent-id");
    if (choice->run_id && choice->agent_id)
        return err_set(err, ERR_INVALID, "name a session or --agent-id, not both");
    if (govern_advise_choose(call->govern, &inv->mem, choice, err) < 0)
        return -1;
    if (choice->agent_id && choice->run_n + choice->open_n == 0)
        return err_set(err, ERR_NOT_FOUND, "agent \"%.100s\" has no advisory session",
                       choice->agent_id);
    if (choice->open_n)
        (void)fprintf(inv->err, "left out: %zu that have no end yet (\"brig advisory end\")\n",
                      choice->open_n);
    return 0;
}

/* ---- replay ---- */

struct replaying {
    struct invocation *inv;
    const char *run_id;
    struct json *list;
};

static unsigned count_in(const struct advise_judged *judged, const struct advise_hit *wanted)
{
    for (size_t i = 0; i < judged->hit_n; i++)
        if (strcmp(judged->hits[i].category, wanted->category) == 0 &&
            strcmp(judged->hits[i].rule, wanted->rule) == 0)
            return judged->hits[i].n;
    return 0;
}

/* Of one list what the other has in another number; what both lack is printed by nobody. */
static void print_hits(FILE *to, const struct advise_judged *of, const struct advise_judged *other,
                       bool is_before)
{
    for (size_t i = 0; i < of->hit_n; i++) {
        unsigned n = count_in(other, &of->hits[i]);

        if (n == of->hits[i].n || (!is_before && n > 0))
            continue;
        (void)fprintf(to, "  %s %s  %u → %u\n", of->hits[i].category, of->hits[i].rule,
                      is_before ? of->hits[i].n : n, is_before ? n : of->hits[i].n);
    }
}

static int on_difference(void *context, const struct advise_difference *it, struct err *err)
{
    struct replaying *replaying = context;
    FILE *out = replaying->inv->out;

    (void)err;
    if (replaying->inv->json) {
        if (replaying->list->n < LISTED_MAX)
            json_push(replaying->list,
                      view_difference(&replaying->inv->mem, replaying->run_id, it));
        return 0;
    }
    if (!it->is_judged) {
        (void)fprintf(out, "%s turn %llu: what was said is not stored; not judged\n",
                      replaying->run_id, (unsigned long long)it->turn);
        return 0;
    }
    (void)fprintf(out, "%s turn %llu: %s → %s, drift %s → %s, compliance %u → %u %%%s\n",
                  replaying->run_id, (unsigned long long)it->turn, it->before.verdict,
                  it->after.verdict, it->before.drift, it->after.drift, it->before.compliance,
                  it->after.compliance,
                  it->before.is_valid == it->after.is_valid ? ""
                  : it->after.is_valid                      ? ", an envelope now"
                                                            : ", no envelope now");
    print_hits(out, &it->before, &it->after, true);
    print_hits(out, &it->after, &it->before, false);
    return 0;
}

static void print_sum(struct invocation *inv, const struct advise_replay *replay, size_t sessions)
{
    (void)fprintf(inv->out, "%llu answers of %zu sessions by the rules \"%s\": %llu differ\n",
                  (unsigned long long)replay->turns, sessions,
                  replay->strict_seed ? "strict-seed" : "default",
                  (unsigned long long)replay->differ);
    if (replay->not_stored)
        (void)fprintf(inv->out, "  %llu are not stored and were not judged\n",
                      (unsigned long long)replay->not_stored);
    if (replay->not_whole)
        (void)fprintf(inv->out, "  %llu are stored in part, being too long to be an envelope\n",
                      (unsigned long long)replay->not_whole);
    for (int i = 0; i < ADVISORY_CATEGORY_COUNT; i++)
        if (replay->before[i] != replay->after[i])
            (void)fprintf(
                inv->out, "  %s  %llu → %llu\n", advisory_category_name((enum advisory_category)i),
                (unsigned long long)replay->before[i], (unsigned long long)replay->after[i]);
}

static int print_replay(struct replaying *replaying, const struct advise_replay *replay,
                        const struct advise_choice *choice)
{
    struct invocation *inv = replaying->inv;
    int status = replay->differ || replay->not_stored ? DIFFERS_STATUS : 0;

    if (!inv->json) {
        print_sum(inv, replay, choice->run_n);
        return status;
    }
    return cli_json(inv,
                    view_replay(&inv->mem, replay, choice->run_n, choice->open_n, replaying->list))
               ? 71
               : status;
}

static int replay_all(struct replaying *replaying, struct govern *govern,
                      const struct advise_choice *choice, struct advise_replay *replay,
                      struct err *err)
{
    for (size_t i = 0; i < choice->run_n; i++) {
        AUTO(advise) struct advise *advise = NULL;

        replaying->run_id = choice->runs[i].id;
        if (govern_advise_believed(govern, &choice->runs[i], &advise, err) < 0 ||
            advise_replay(advise, replay, err) < 0)
            return -1;
    }
    return 0;
}

int run_advisory_replay(struct invocation *inv)
{
    AUTO_SANDBOX_CALL struct sandbox_call call = {0};
    const char *profile = option_text(inv, "--profile");
    struct advise_choice choice = {.last = option_number(inv, "--last")};
    struct replaying replaying = {.inv = inv, .list = json_array(&inv->mem)};
    struct advise_replay replay = {.on_difference = on_difference, .context = &replaying};
    struct err err;
    int status;

    replay.strict_seed = profile && strcmp(profile, "strict-seed") == 0;
    if (choice.last == 0)
        choice.last = REPLAY_LAST_DEFAULT;
    if (!inv->operands.n && !option_text(inv, "--agent-id")) {
        (void)err_set(&err, ERR_INVALID, "name a session, or an agent with --agent-id");
        return cli_error(inv, &err);
    }
    if (sandbox_call_open_with(inv, NULL, &call, &status) < 0)
        return status;
    if (choose(inv, &call, &choice, &err) < 0 ||
        replay_all(&replaying, call.govern, &choice, &replay, &err) < 0)
        return cli_error(inv, &err);
    return print_replay(&replaying, &replay, &choice);
}

/* ---- export ---- */

/* A name of its own until it is whole. */
struct target {
    const char *path; /* NULL: standard output */
    const char *part; /* exists, or NULL */
    FILE *file;
};

static void target_done(struct target *target)
{
    if (target->path && target->file)
        (void)fclose(target->file);
    if (target->part)
        (void)unlink(target->part);
}

static int refuse_taken(const char *path, struct err *err)
{
    return err_set(err, ERR_CONFLICT, "%s is there already; --force writes over it", path);
}

static int target_open(struct invocation *inv, struct target *target, struct err *err)
{
    const char *part;
    AUTO_FD int fd = -1;

    target->path = option_text(inv, "--output");
    target->file = inv->out;
    if (!target->path)
        return 0;
    target->file = NULL;
    if (!option_flag(inv, "--force") &&
        faccessat(AT_FDCWD, target->path, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return refuse_taken(target->path, err);
    part = arena_printf(&inv->mem, "%s.part-%ld", target->path, (long)getpid());
    fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return err_os(err, "making %s", part);
    target->part = part;
    target->file = fdopen(fd, "we");
    if (!target->file)
        return err_os(err, "writing %s", part);
    (void)TAKE_FD(fd);
    return 0;
}

static int target_keep(struct invocation *inv, struct target *target, struct err *err)
{
    unsigned flags = option_flag(inv, "--force") ? 0 : RENAME_NOREPLACE;
    bool failed = fflush(target->file) != 0 || ferror(target->file);

    if (failed)
        return err_os(err, "writing the dataset");
    if (!target->path)
        return 0;
    if (fsync(fileno(target->file)) < 0)
        return err_os(err, "keeping %s", target->part);
    if (renameat2(AT_FDCWD, target->part, AT_FDCWD, target->path, flags) < 0)
        return errno == EEXIST ? refuse_taken(target->path, err)
                               : err_os(err, "naming %s", target->path);
    target->part = NULL;
    return 0;
}

static int write_line(void *context, struct str line, struct err *err)
{
    FILE *file = context;

    return fwrite(line.p, 1, line.n, file) == line.n && fputc('\n', file) != EOF
               ? 0
               : err_os(err, "writing the dataset");
}

/* All of them are looked at before the first line is written: what goes to standard output cannot
 * be taken back. */
static int export_all(struct govern *govern, const struct advise_choice *choice,
                      struct advise_dataset *dataset, struct err *err)
{
    for (int writes = 0; writes < 2; writes++)
        for (size_t i = 0; i < choice->run_n; i++) {
            AUTO(advise) struct advise *advise = NULL;

            if (govern_advise_believed(govern, &choice->runs[i], &advise, err) < 0 ||
                (writes && advise_export(advise, dataset, err) < 0))
                return -1;
        }
    return 0;
}

static int print_export(struct invocation *inv, const struct target *target, size_t sessions,
                        const struct advise_dataset *dataset)
{
    struct json *doc = json_object(&inv->mem);

    if (!target->path)
        return 0;
    if (!inv->json)
        return fprintf(inv->out, "%s: %zu sessions, %llu turns, %llu events\n", target->path,
                       sessions, (unsigned long long)dataset->turns,
                       (unsigned long long)dataset->events) < 0;
    json_put_int(&inv->mem, doc, "events", (int64_t)dataset->events);
    json_put_text(&inv->mem, doc, "file", target->path);
    json_put_int(&inv->mem, doc, "sessions", (int64_t)sessions);
    json_put_int(&inv->mem, doc, "turns", (int64_t)dataset->turns);
    return cli_json(inv, doc);
}

int run_advisory_export(struct invocation *inv)
{
    AUTO_SANDBOX_CALL struct sandbox_call call = {0};
    __attribute__((cleanup(target_done))) struct target target = {0};
    struct advise_choice choice = {.last = option_number(inv, "--last")};
    struct advise_dataset dataset = {.write = write_line};
    struct err err;
    int status;

    if (sandbox_call_open_with(inv, NULL, &call, &status) < 0)
        return status;
    if (choose(inv, &call, &choice, &err) < 0 || target_open(inv, &target, &err) < 0)
        return cli_error(inv, &err);
    dataset.context = target.file;
    if (export_all(call.govern, &choice, &dataset, &err) < 0 || target_keep(inv, &target, &err) < 0)
        return cli_error(inv, &err);
    return print_export(inv, &target, choice.run_n, &dataset);
}
