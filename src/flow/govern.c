/* SPDX-License-Identifier: Apache-2.0 */

/* admit → decide → equip → execute → record, and nothing beside it.
 *
 *   1. What is asked, by whom: admit. A request that is none has no run.
 *   2. Whether it may happen: decide. No verdict is a denial.
 *   3. With what: the provider says what it can do here, equip plans or refuses. A person is asked
 *      if one must be, and what the run may use of what is for many is reserved.
 *   4. The box begins to be built while the intent becomes durable. A crash from here on leaves
 *      an intent without an outcome, which the next start finds; never an effect without an
 *      intent, because nothing of the caller's runs before step 6.
 *   5. The box stands, parked. What it is decides: any difference to the plan is a denial.
 *   6. Released, run, ended, gone.
 *   7. The outcome becomes durable, and what was used is settled. */

#include "flow/govern-parts.h"

#include "flow/approve/approve.h"
#include "flow/budget/budget.h"
#include "flow/decide/decide.h"
#include "flow/equip/equip.h"
#include "flow/intercept/intercept.h"
#include "flow/record/record.h"
#include "lib/access/freeze.h"
#include "lib/base/clock.h"
#include "lib/base/limits.h"
#include "lib/base/memory.h"

#include <string.h>

const struct words govern_no_command = {
    (const char *const[]){"brig-sandbox", NULL},
      1
};

struct govern_shared *govern_shared_new(const char *state_dir, const char *root_dir)
{
    struct govern_shared *shared = xcalloc(1, sizeof *shared);

    (void)pthread_mutex_init(&shared->lock, NULL);
    shared->state_dir = xstrdup(state_dir);
    shared->plans = plan_memory_new();
    shared->offers = offer_memory_new();
    shared->root_dir = xstrdup(root_dir ? root_dir : state_dir);
    shared->freezer = freezer_new(shared->root_dir);
    return shared;
}

void govern_shared_free(struct govern_shared *shared)
{
    if (!shared)
        return;
    record_free(shared->record);
    plan_memory_free(shared->plans);
    offer_memory_free(shared->offers);
    freezer_free(shared->freezer);
    (void)pthread_mutex_destroy(&shared->lock);
    free(shared->state_dir);
    free(shared->root_dir);
    free(shared);
}

/* Opening the ledger takes as long as making a network namespace. Nothing needs it before the
 * first receipt, and by then a box is being built in another process. */
int govern_ready(struct govern *govern, struct err *err)
{
    struct govern_shared *shared = govern->shared;
    int failed = 0;

    if (govern->record)
        return 0;
    (void)pthread_mutex_lock(&shared->lock);
    if (!shared->record)
        failed = record_open(shared->state_dir, &shared->record, err);
    govern->record = shared->record;
    (void)pthread_mutex_unlock(&shared->lock);
    return failed;
}

int govern_read_ledger(struct govern *govern, struct record **out, struct err *err)
{
    return record_open_to_read(govern->shared->state_dir, out, err);
}

/* A kept sandbox that ended by itself: an end nobody asked for, told as if Brig had. */
int govern_record_end(struct govern *govern, const struct dead *dead, struct err *err)
{
    struct run run;
    struct request request = {.kind = ACTION_DESTROY,
                              .sandbox = dead->id,
                              .principal = "brig",
                              .tenant = "default",
                              .provider = "local"};
    int failed;

    run_init(&run);
    failed = admit_change(&request, &run, err);
    run.verdict = (struct verdict){.kind = VERDICT_ALLOW, .reason = dead->reason};
    run.outcome = (struct outcome){.ended = true, .reason = dead->reason};
    if (!failed)
        failed = execute_claim(govern->execute, &run, err);
    if (!failed)
        failed = record_intent(govern->record, &run, err);
    if (!failed) {
        equip_look_again(govern->equip, &run);
        failed = record_close(govern->record, &run, err);
    }
    if (!failed) {
        equip_guard_drop(govern->equip, dead->id);
        govern_end_session(govern, dead->id);
    }
    execute_unclaim(govern->execute);
    run_done(&run);
    return failed;
}

/* A run whose Brig died before the intent was written has no receipt, and had no effect. */
static int on_dead(void *context, const struct dead *dead, struct err *err)
{
    struct govern *govern = context;

    if (govern_ready(govern, err) < 0)
        return -1;
    if ((dead->outcome ? record_ended(govern->record, dead->id, dead->outcome, err)
                       : record_abandoned(govern->record, dead->id, err)) < 0 &&
        err->code != ERR_NOT_FOUND)
        return -1;
    return dead->kept ? govern_record_end(govern, dead, err) : 0;
}

/* And secrets that were handed out meanwhile get their receipts. */
int govern_sweep(struct govern *govern, struct err *err)
{
    size_t uses;

    if (execute_sweep(govern->execute, on_dead, govern, err) < 0)
        return err_in(err, "clearing up after an earlier run");
    return govern_vault_uses(govern, &uses, err);
}

/* What others left is found by the first; whoever has many of them sweeps now and then. A sweep
 * looks at every sandbox there is, and a hundred at once would do so a hundred times. */
static bool is_first(struct govern_shared *shared)
{
    bool first;

    (void)pthread_mutex_lock(&shared->lock);
    first = !shared->is_swept;
    shared->is_swept = true;
    (void)pthread_mutex_unlock(&shared->lock);
    return first;
}

int govern_open(const struct govern_config *config, struct govern **out, struct err *err)
{
    AUTO(govern) struct govern *govern = xcalloc(1, sizeof *govern);

    govern->policy = config->policy;
    govern->state_dir = xstrdup(config->state_dir);
    if (!config->shared)
        govern->shared_owned = govern_shared_new(config->state_dir, NULL);
    govern->shared = config->shared ? config->shared : govern->shared_owned;
    if (config->profile_path
            ? equip_open(config->state_dir, config->profile_path, &govern->equip, err) < 0
            : equip_open_with(config->state_dir, config->profile_text, &govern->equip, err) < 0)
        return -1;
    if (execute_open(config->state_dir, &govern->execute, err) < 0)
        return -1;
    execute_use(govern->execute, config->spawner);
    execute_recall(govern->execute, govern->shared->offers);
    equip_recall(govern->equip, govern->shared->plans);
    govern->intercept = intercept_new(config->state_dir);
    if (is_first(govern->shared) && govern_sweep(govern, err) < 0)
        return -1;
    *out = TAKE(govern);
    return 0;
}

int govern_open_to_look(const struct govern_config *config, const char *root_dir,
                        struct govern **out, struct err *err)
{
    struct govern_config looking = *config;

    looking.shared = govern_shared_new(config->state_dir, root_dir);
    looking.shared->is_swept = true; /* by somebody who may tell what he finds */
    if (govern_open(&looking, out, err) < 0) {
        govern_shared_free(looking.shared);
        return -1;
    }
    (*out)->shared_owned = looking.shared;
    (*out)->only_looks = true;
    return 0;
}

void govern_free(struct govern *govern)
{
    if (!govern)
        return;
    intercept_free(govern->intercept);
    execute_free(govern->execute);
    equip_free(govern->equip);
    govern_shared_free(govern->shared_owned);
    approvals_free(govern->approvals);
    ceiling_done(&govern->ceiling);
    budgets_free(govern->budgets);
    govern_forget_target(govern);
    free(govern->state_dir);
    free(govern);
}

const char *govern_provider(const struct govern *govern)
{
    return equip_provider(govern->equip);
}

void govern_refuse_by(struct run *run, enum reason reason, const struct err *err)
{
    run->verdict = (struct verdict){
        .kind = VERDICT_DENY,
        .reason = reason,
        .text = arena_text(&run->mem, str_of(err->text)),
    };
}

/* Whom the entry names, and how that concerns who asks. */
static const char *frozen_text(struct run *run, const struct frozen *by)
{
    if (!by->principal[0])
        return by->tenant[0] ? "the tenant" : "everything";
    if (strcmp(by->principal, run->action.principal) == 0)
        return by->principal;
    return arena_printf(&run->mem, "%s, who made this token, or one it was made with,",
                        by->principal);
}

bool govern_is_frozen(struct govern *govern, struct run *run)
{
    const struct action *action = &run->action;
    const struct actor actor = {action->tenant, action->principal, action->made_by};
    struct frozen by;

    if (action_thaws(action->kind) || action->is_refusal ||
        !freezer_stops(govern->shared->freezer, &actor, &by))
        return false;
    run->verdict = (struct verdict){
        .kind = VERDICT_DENY,
        .reason = REASON_SYSTEM_FROZEN,
        .text = arena_printf(&run->mem, "%s is frozen%s%s: \"brig freeze --status\" tells by whom",
                             frozen_text(run, &by), by.reason[0] ? ", " : "", by.reason),
    };
    return true;
}

bool govern_offer(struct govern *govern, struct run *run)
{
    struct err err;

    if (run->verdict.kind != VERDICT_DENY && execute_offer(govern->execute, run, &err) < 0)
        govern_refuse_by(
            run, err.code == ERR_NOT_FOUND ? REASON_PROVIDER_UNKNOWN : REASON_PROVIDER_UNAVAILABLE,
            &err);
    return run->verdict.kind != VERDICT_DENY;
}

/* Steps 2 and 3. */
void govern_judge(struct govern *govern, struct run *run)
{
    struct err err;

    run_enter(run, STAGE_DECIDE);
    govern_decide(govern, run);
    (void)govern_is_frozen(govern, run); /* stronger than any rule */
    govern_consult(govern, run);
    if (run->verdict.kind != VERDICT_DENY)
        run_enter(run, STAGE_EQUIP);
    /* A person is asked about a plan, not about words. */
    if (govern_offer(govern, run) && intercept_ready(govern->intercept, run, &err) < 0)
        govern_refuse_by(run, REASON_PREFLIGHT_EGRESS_POLICY, &err);
    if (run->verdict.kind != VERDICT_DENY && equip_plan(govern->equip, run, &err) < 0)
        govern_refuse_by(run, REASON_PLAN_INVALID, &err);
    govern_check_release(govern, run);
}

/* The sandbox and its way out, if it has one: first who holds the rules, then what they hold for.
 */
static int begin(struct govern *govern, struct run *run, enum reason *why, struct err *err)
{
    if (intercept_begin(govern->intercept, run, err) < 0) {
        *why = REASON_PREFLIGHT_EGRESS_POLICY;
        return err_in(err, "network rules");
    }
    if (execute_begin(govern->execute, run, err) == 0)
        return 0;
    *why = err->code == ERR_CONFLICT && run->action.kind == ACTION_EXEC ? REASON_SANDBOX_PAUSED
                                                                        : REASON_SANDBOX_FAILED;
    return -1;
}

static void drop(struct govern *govern, struct run *run)
{
    execute_drop(govern->execute, run);
    intercept_end(govern->intercept, run, false);
}

/* Step 4. What failed to begin still gets its intent: it was attempted. */
static int commit_to(struct govern *govern, struct run *run, bool *begun, struct err *err)
{
    enum reason why = REASON_NONE;
    struct err build_err;

    run_enter(run, STAGE_INTEND);
    *begun = is_allowed(run) && begin(govern, run, &why, &build_err) == 0;
    if (govern_ready(govern, err) < 0) {
        drop(govern, run);
        return -1;
    }
    if (record_intent(govern->record, run, err) < 0) {
        drop(govern, run);
        return err_in(err, "not running what cannot be recorded");
    }
    if (is_allowed(run) && !*begun)
        govern_refuse_by(run, why, &build_err);
    return govern_stand_request(govern, run, err);
}

/* A sandbox that ends under a command looks like one that lost its walls; say what it is. */
static void refuse_if_gone(struct govern *govern, struct run *run)
{
    struct kept_state state;
    struct err err;

    if (run->action.kind == ACTION_EXEC && !is_allowed(run) &&
        execute_kept_state(govern->execute, run->action.sandbox, &state, &err) < 0 &&
        err.code == ERR_NOT_FOUND)
        govern_refuse_by(run, REASON_SANDBOX_UNKNOWN, &err);
}

/* Step 5, once. */
void govern_compare(struct govern *govern, struct run *run)
{
    struct err err;

    run_enter(run, STAGE_PARK);
    if (execute_park(govern->execute, run, &err) < 0)
        govern_refuse_by(run,
                         err.code == ERR_CONFLICT ? execute_cancel_reason(govern->execute)
                                                  : REASON_SANDBOX_FAILED,
                         &err);
    else
        intercept_observe(govern->intercept, run);
    if (is_allowed(run) && run->action.kind == ACTION_ELEVATE)
        govern_compare_elevated(run);
    else if (is_allowed(run) && equip_compare(govern->equip, run, &err) < 0)
        govern_refuse_by(run, REASON_PREFLIGHT_ISOLATION, &err);
    refuse_if_gone(govern, run);
}

/* Step 7; the run that was denied before its intent has said all there is to say. */
int govern_conclude(struct govern *govern, struct run *run, struct err *err)
{
    run_enter(run, STAGE_RECORD);
    if (record_close(govern->record, run, err) < 0)
        return err_in(err, "the run has ended, but its outcome could not be recorded");
    run_enter(run, STAGE_END);
    return 0;
}

int govern_preflight(struct govern *govern, const struct request *request, struct run *run,
                     struct err *err)
{
    bool begun = false;
    bool planned;

    if (admit_run(request, run, err) < 0)
        return -1;
    govern_judge(govern, run);
    planned = is_allowed(run);
    if (commit_to(govern, run, &begun, err) < 0)
        return -1;
    if (!planned) {
        execute_forget(run);
        return 0;
    }
    if (begun)
        govern_compare(govern, run);
    drop(govern, run);
    run->outcome.ended = true;
    return govern_conclude(govern, run, err);
}

/* What is kept to look again by exists exactly as long as the sandbox does. */
static void keep_guard(struct govern *govern, struct run *run)
{
    struct err err;

    if (run->action.kind == ACTION_CREATE && is_allowed(run) &&
        equip_guard_keep(govern->equip, run, &err) < 0)
        govern_refuse_by(run, REASON_SANDBOX_FAILED, &err);
}

static void use_guard(struct govern *govern, struct run *run)
{
    bool stands = is_allowed(run) && run->outcome.reason != REASON_SANDBOX_FAILED;

    if (run->action.kind == ACTION_ELEVATE)
        return;
    if (run->action.kind != ACTION_CREATE)
        equip_look_again(govern->equip, run);
    else if (!stands)
        equip_guard_drop(govern->equip, run->sandbox_id);
}

static struct words protected_places(struct run *run)
{
    const char **places = arena_array(&run->mem, const char *, run->plan.mount_n + 1);
    size_t n = 0;

    for (size_t i = 0; i < run->plan.mount_n; i++)
        if (run->plan.mounts[i].kind == MOUNT_PROTECTED)
            places[n++] = equip_protected_text(&run->mem, &run->plan.mounts[i]);
    return (struct words){places, n};
}

int govern_write_config(const struct request *request, struct run *run, struct err *err)
{
    AUTO_BUF struct buf config = BUF(JSON_TEXT_MAX);
    struct request made = *request;

    made.held = protected_places(run);
    if (config_write(&made, run, &config, err) < 0)
        return -1;
    run->action.config = arena_text(&run->mem, buf_str(&config));
    return 0;
}

/* A prepared sandbox, if there is one that is what was planned. */
static int take_prepared(struct govern *govern, const struct request *request, struct run *run,
                         struct err *err)
{
    if (is_allowed(run) && run->action.kind != ACTION_ELEVATE)
        (void)execute_take(govern->execute, run); /* without one it is built */
    return is_allowed(run) && run->action.kind == ACTION_CREATE
               ? govern_write_config(request, run, err)
               : 0;
}

/* One out of the pool that is not what was planned is ended, which is recorded, and another one is
 * begun, prepared or not. False: there is nothing more to try. */
static bool begin_another(struct govern *govern, const struct request *request,
                          const struct verdict *allowed, struct run *run)
{
    char id[ID_BYTES];
    struct dead dead = {.id = id, .kept = true, .reason = run->verdict.reason};
    struct err err;

    memcpy(id, run->sandbox_id, sizeof id);
    if (run->verdict.reason == REASON_CANCELLED || run->verdict.reason == REASON_RUN_ABANDONED ||
        !execute_untake(govern->execute, run))
        return false;
    run->verdict = *allowed;
    run->checks.n = 0;
    if (govern_record_end(govern, &dead, &err) == 0 &&
        take_prepared(govern, request, run, &err) == 0 &&
        execute_begin(govern->execute, run, &err) == 0)
        return true;
    govern_refuse_by(run, REASON_SANDBOX_FAILED, &err);
    return execute_has_taken(govern->execute);
}

/* Step 5, for as many prepared ones as it takes. */
static void stand(struct govern *govern, const struct request *request,
                  const struct verdict *allowed, struct run *run)
{
    do {
        if (is_allowed(run))
            govern_compare(govern, run);
    } while (!is_allowed(run) && execute_has_taken(govern->execute) &&
             begin_another(govern, request, allowed, run));
}

/* Step 6. */
static void release(struct govern *govern, struct run *run, const struct streams *streams)
{
    struct err failure;

    run_enter(run, STAGE_EXECUTE);
    if (execute_release(govern->execute, run, streams, &failure) < 0) {
        run->outcome.reason = REASON_SANDBOX_FAILED;
        run->outcome.failure = arena_text(&run->mem, str_of(failure.text));
    }
    intercept_collect(govern->intercept, run);
    if (run->outcome.egress.spent && run->outcome.reason == REASON_NONE)
        run->outcome.reason = REASON_BUDGET_EXCEEDED;
    intercept_end(govern->intercept, run,
                  action_keeps(run->action.kind) && run->outcome.reason != REASON_SANDBOX_FAILED);
}

/* Step 7. Secrets that went out with its requests follow it into the ledger. */
static int conclude_run(struct govern *govern, struct run *run, struct err *err)
{
    size_t uses;

    if (govern_conclude(govern, run, err) < 0)
        return -1;
    return plan_has_network(&run->plan.egress) ? govern_vault_uses(govern, &uses, err) : 0;
}

static int carry_out(struct govern *govern, const struct request *request, struct run *run,
                     const struct streams *streams, struct err *err)
{
    const struct verdict verdict = run->verdict;
    bool begun = false;
    struct err count_err;

    if (take_prepared(govern, request, run, err) < 0) {
        drop(govern, run);
        return -1;
    }
    if (commit_to(govern, run, &begun, err) < 0)
        return -1;
    if (verdict.kind != VERDICT_ALLOW) {
        execute_forget(run);
        return 0;
    }
    if (begun || execute_has_taken(govern->execute))
        stand(govern, request, &verdict, run);
    keep_guard(govern, run);
    govern_check_target(govern, run);
    if (is_allowed(run) && intercept_count(govern->intercept, run, &count_err) < 0)
        govern_refuse_by(run, REASON_PREFLIGHT_EGRESS_POLICY, &count_err);
    if (is_allowed(run))
        release(govern, run, streams);
    else
        drop(govern, run);
    use_guard(govern, run);
    return run->outcome.detached ? 0 : conclude_run(govern, run, err);
}

int govern_carry_out(struct govern *govern, const struct request *request, struct run *run,
                     const struct streams *streams, struct err *err)
{
    bool is_asked = run->verdict.kind == VERDICT_ASK;
    int failed;

    if (is_asked)
        govern_look_at_budget(govern, run); /* nobody is asked in vain */
    govern_seek_word(govern, run);
    if (is_allowed(run))
        (void)govern_is_frozen(govern, run); /* while a person was waited for, perhaps */
    if (is_asked && is_allowed(run))
        govern_check_layers(govern, run); /* the same, */
    if (is_asked && is_allowed(run))
        govern_check_release(govern, run); /* and the same */
    govern_reserve_budget(govern, run);
    failed = carry_out(govern, request, run, streams, err);
    govern_settle_budget(govern, run);
    govern_forget_target(govern);
    return failed;
}

int govern_run(struct govern *govern, const struct request *request, const struct streams *streams,
               struct run *run, struct err *err)
{
    if (admit_run(request, run, err) < 0)
        return -1;
    govern_judge(govern, run);
    return govern_carry_out(govern, request, run, streams, err);
}

/* Where our own files cannot be written it is the machine's fault, and nobody has said no. */
static int not_claimed(struct err *err)
{
    if (err->code == ERR_FORBIDDEN && err->os)
        err->code = ERR_UNAVAILABLE;
    return -1;
}

int govern_intend(struct govern *govern, struct run *run, struct err *err)
{
    if (govern_ready(govern, err) < 0)
        return -1;
    if (execute_claim(govern->execute, run, err) < 0)
        return not_claimed(err);
    run->verdict = (struct verdict){.kind = VERDICT_ALLOW, .reason = REASON_POLICY_DEFAULT_ALLOW};
    (void)govern_is_frozen(govern, run);
    run_enter(run, STAGE_INTEND);
    if (record_intent(govern->record, run, err) < 0)
        return err_in(err, "not doing what cannot be recorded");
    run_enter(run, STAGE_EXECUTE);
    if (is_allowed(run))
        return 0;
    execute_unclaim(govern->execute);
    return err_set(err, ERR_FROZEN, "%s (receipt %s)", run->verdict.text, run->intent.id);
}
