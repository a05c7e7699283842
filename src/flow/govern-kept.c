/* SPDX-License-Identifier: Apache-2.0 */

/* Sandboxes that stay: made, used by command after command, changed, and ended; by the steps of
 * govern.c. */

#include "flow/govern-parts.h"

#include "flow/admit/admit.h"
#include "flow/equip/equip.h"
#include "flow/execute/execute.h"
#include "flow/intercept/intercept.h"
#include "flow/record/record.h"

#include <string.h>

struct execute *govern_execute(struct govern *govern)
{
    return govern->execute;
}

/* Steps 1 to 3 for a sandbox that is to stay. */
static int plan_kept(struct govern *govern, enum action_kind kind, const struct request *request,
                     struct run *run, struct err *err)
{
    struct request made = *request;

    made.kind = kind;
    made.argv = govern_no_command;
    if (admit_run(&made, run, err) < 0)
        return -1;
    govern_judge(govern, run);
    return 0;
}

int govern_create(struct govern *govern, const struct request *request, struct run *run,
                  struct err *err)
{
    struct streams none = {.in_fd = -1, .out_fd = -1, .err_fd = -1};
    struct request fresh = *request;
    bool filtered = false;

    fresh.held = (struct words){0}; /* of one that stood before */
    if (govern_own_base(govern, request, &run->mem, &fresh.base, &filtered, err) < 0 ||
        plan_kept(govern, ACTION_CREATE, &fresh, run, err) < 0 ||
        govern_carry_out(govern, &fresh, run, &none, err) < 0)
        return -1;
    return filtered ? govern_forget_base(govern, &fresh, err) : 0;
}

int govern_prepare(struct govern *govern, const struct request *request, struct run *run,
                   struct err *err)
{
    struct streams none = {.in_fd = -1, .out_fd = -1, .err_fd = -1};

    if (plan_kept(govern, ACTION_PREPARE, request, run, err) < 0)
        return -1;
    return govern_carry_out(govern, request, run, &none, err);
}

bool govern_wants_refill(const struct govern *govern)
{
    return execute_wants_refill(govern->execute);
}

int govern_rehearse(struct govern *govern, const struct request *request, struct run *run,
                    struct config *config, struct err *err)
{
    if (plan_kept(govern, ACTION_CREATE, request, run, err) < 0)
        return -1;
    *config = (struct config){0};
    if (!is_allowed(run))
        return 0;
    if (govern_write_config(request, run, err) < 0)
        return -1;
    return config_read(&run->mem, str_of(run->action.config), config, err);
}

/* What it was made from, and what belongs to this command. */
static int join_request(struct run *run, const struct config *config, const struct request *request,
                        struct request *out, struct err *err)
{
    size_t n = 0;
    const char **env;

    *out = config->request;
    out->base = config->base;
    out->kind = ACTION_EXEC;
    out->sandbox = request->sandbox;
    out->principal = request->principal;
    out->made_by = request->made_by;
    out->argv = request->argv;
    out->tty = request->tty;
    out->tty_rows = request->tty_rows;
    out->tty_columns = request->tty_columns;
    out->stdin_stream = request->stdin_stream;
    out->keep_background = request->keep_background;
    /* Time is the command's own; everything else is held for the sandbox as a whole. */
    out->wall_ms = request->limits[LIMIT_WALL];
    out->detach = request->detach;
    out->approval_wait_ms = request->approval_wait_ms;
    out->watch = request->watch;
    if (request->workdir)
        out->workdir = request->workdir;
    if (request->mounts.n)
        return err_set(err, ERR_INVALID,
                       "a sandbox keeps the mounts it was made with; make another one");
    env = arena_array(&run->mem, const char *, config->request.env.n + request->env.n + 1);
    for (size_t i = 0; i < config->request.env.n; i++) {
        size_t name_n = strcspn(config->request.env.v[i], "=");
        bool replaced = false;

        for (size_t j = 0; j < request->env.n; j++)
            replaced |= strcspn(request->env.v[j], "=") == name_n &&
                        strncmp(request->env.v[j], config->request.env.v[i], name_n) == 0;
        if (!replaced)
            env[n++] = config->request.env.v[i];
    }
    for (size_t j = 0; j < request->env.n; j++)
        env[n++] = request->env.v[j];
    out->env = (struct words){env, n};
    return 0;
}

/* The plan must still be the one the sandbox was made by: a machine that has changed since would
 * make another one. */
void govern_check_drift(struct run *run, const struct config *config)
{
    if (run->verdict.kind == VERDICT_DENY ||
        strcmp(run->planned.preimage_hash, config->preimage_hash) == 0)
        return;
    run->verdict = (struct verdict){
        .kind = VERDICT_DENY,
        .reason = REASON_SANDBOX_DRIFT,
        .text = "this machine would make another sandbox today than when it was made; destroy it "
                "and create it again",
    };
}

/* One that goes on alone has the time that somebody said, and never more than a layer allows. */
void govern_give_time(struct run *run)
{
    const struct limit *limit = &run->plan.limits.of[LIMIT_WALL];

    if (run->action.detach && !run->action.wall_ms)
        run->action.wall_ms =
            limit->origin != ORIGIN_DEFAULT ? limit->value : run_limit_most(run, LIMIT_WALL);
}

/* Steps 1 to 3 for a command in one. */
static int plan_exec(struct govern *govern, const struct request *request, struct run *run,
                     struct request *joined, struct err *err)
{
    struct config config;
    const char *text = NULL;

    if (execute_turn(govern->execute, request->sandbox, false, err) < 0 ||
        execute_kept_config(govern->execute, &run->mem, request->sandbox, &text, err) < 0 ||
        config_read(&run->mem, str_of(text), &config, err) < 0 ||
        join_request(run, &config, request, joined, err) < 0 || admit_run(joined, run, err) < 0)
        return -1;
    govern_judge(govern, run);
    govern_check_drift(run, &config);
    govern_give_time(run);
    return 0;
}

int govern_exec(struct govern *govern, const struct request *request, const struct streams *streams,
                struct run *run, struct err *err)
{
    struct request joined;

    if (plan_exec(govern, request, run, &joined, err) < 0)
        return -1;
    if (request->within_ms)
        run->action.wall_ms = request->within_ms;
    return govern_carry_out(govern, &joined, run, streams, err);
}

static const char *keep(struct run *run, const char *text)
{
    return text ? arena_text(&run->mem, str_of(text)) : NULL;
}

/* What became of the plan is the answer to the question. */
static void answer_by(struct run *question, const struct run *planned)
{
    const struct verdict *verdict = &planned->verdict;

    question->verdict = (struct verdict){
        .kind = verdict->kind,
        .reason = verdict->reason,
        .rule = keep(question, verdict->rule),
        .line = verdict->line,
        .text = keep(question, verdict->text),
        .layer = keep(question, verdict->layer),
    };
    question->approval.id = keep(question, planned->approval.id);
    question->approval.digest = keep(question, planned->approval.digest);
    question->approval.by = keep(question, planned->approval.by);
    question->approval.is_hidden = planned->approval.is_hidden;
}

void govern_seek_word_ahead(struct govern *govern, const struct request *request,
                            struct run *question)
{
    struct request ask = *request, joined;
    struct run planned;
    struct err err;

    if (question->verdict.kind != VERDICT_ASK)
        return;
    ask.watch = (struct run_watch){0}; /* it is not run, and the question has its own end */
    ask.limits[LIMIT_WALL] = request->wall_ms;
    run_init(&planned);
    planned.is_consulted = true; /* who was asked about the question is asked again when it runs */
    if (plan_exec(govern, &ask, &planned, &joined, &err) < 0) {
        govern_refuse_by(question,
                         err.code == ERR_NOT_FOUND ? REASON_SANDBOX_UNKNOWN : REASON_PLAN_INVALID,
                         &err);
    } else {
        if (is_allowed(&planned))
            planned.verdict = question->verdict; /* the stricter one holds */
        govern_look_at_budget(govern, &planned); /* nobody is asked in vain */
        govern_seek_word(govern, &planned);
        answer_by(question, &planned);
    }
    govern_forget_target(govern);
    execute_forget(&planned);
    execute_turn_end(govern->execute);
    run_done(&planned);
}

/* What else ends with a sandbox: its making, if nobody lived to tell, and detached commands. */
static int conclude_destroy(struct govern *govern, struct run *run, struct err *err)
{
    if (record_abandoned(govern->record, run->sandbox_id, err) < 0 && err->code != ERR_NOT_FOUND)
        return err_in(err, "the sandbox is gone; the end of its making could not be recorded");
    equip_look_again(govern->equip, run);
    if (govern_conclude(govern, run, err) < 0)
        return -1;
    equip_guard_drop(govern->equip, run->sandbox_id);
    govern_end_session(govern, run->sandbox_id);
    execute_unclaim(govern->execute);
    if (govern_sweep_snapshots(govern, err) < 0)
        return err_in(err, "the sandbox is gone; what it stood on is not");
    return govern_sweep(govern, err);
}

/* What a sandbox did over all its time is known only as long as it stands. */
static void count_all(struct govern *govern, struct run *run)
{
    struct config config;
    const char *text = NULL;
    struct err err; /* one whose config is damaged can still be ended */

    if (execute_kept_config(govern->execute, &run->mem, run->sandbox_id, &text, &err) == 0 &&
        config_read(&run->mem, str_of(text), &config, &err) == 0 && config.network_hash)
        intercept_total(govern->intercept, run);
}

int govern_change(struct govern *govern, const struct request *request, struct run *run,
                  struct err *err)
{
    struct kept_state state;
    struct err failure;

    if (admit_change(request, run, err) < 0 ||
        execute_kept_state(govern->execute, request->sandbox, &state, err) < 0 ||
        govern_intend(govern, run, err) < 0)
        return -1;
    if (request->kind == ACTION_DESTROY)
        count_all(govern, run);
    if (execute_change(govern->execute, run, &failure) < 0) {
        run->outcome.reason = REASON_SANDBOX_FAILED;
        run->outcome.failure = arena_text(&run->mem, str_of(failure.text));
    } else if (request->kind == ACTION_DESTROY) {
        return conclude_destroy(govern, run, err);
    }
    return govern_conclude(govern, run, err);
}
