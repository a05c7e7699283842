/* SPDX-License-Identifier: Apache-2.0 */

/* admit → decide → equip → execute → record, and nothing beside it.
 *
 *   1. What is asked, by whom: admit. A request that is none has no run.
 *   2. Whether it may happen: decide. No verdict is a denial.
 *   3. With what: the provider says what it can do here, equip plans or refuses.
 *   4. The box begins to be built while the intent becomes durable. A crash from here on leaves
 *      an intent without an outcome, which the next start finds; never an effect without an
 *      intent, because nothing of the caller's runs before step 6.
 *   5. The box stands, parked. What it is decides: any difference to the plan is a denial.
 *   6. Released, run, ended, gone.
 *   7. The outcome becomes durable. */

#include "flow/govern.h"

#include "flow/decide/decide.h"
#include "flow/equip/equip.h"
#include "flow/record/record.h"
#include "lib/base/memory.h"

struct govern {
    const struct policy *policy;
    struct record *record;
    struct equip *equip;
    struct execute *execute;
};

/* A run whose Brig died before the intent was written has no receipt, and had no effect. */
static int on_dead_run(void *context, const char *run_id, struct err *err)
{
    struct govern *govern = context;

    if (record_abandoned(govern->record, run_id, err) < 0 && err->code != ERR_NOT_FOUND)
        return -1;
    return 0;
}

int govern_open(const struct govern_config *config, struct govern **out, struct err *err)
{
    AUTO(govern) struct govern *govern = xcalloc(1, sizeof *govern);

    govern->policy = config->policy;
    if (equip_open(config->state_dir, config->profile_path, &govern->equip, err) < 0)
        return -1;
    if (record_open(config->state_dir, &govern->record, err) < 0 ||
        execute_open(config->state_dir, &govern->execute, err) < 0)
        return -1;
    if (execute_sweep(govern->execute, on_dead_run, govern, err) < 0)
        return err_in(err, "clearing up after an earlier run");
    *out = TAKE(govern);
    return 0;
}

void govern_free(struct govern *govern)
{
    if (!govern)
        return;
    execute_free(govern->execute);
    equip_free(govern->equip);
    record_free(govern->record);
    free(govern);
}

const char *govern_provider(const struct govern *govern)
{
    return equip_provider(govern->equip);
}

/* An error on the way to a verdict is a denial that names it. */
static void refuse_by(struct run *run, enum reason reason, const struct err *err)
{
    run->verdict = (struct verdict){
        .kind = VERDICT_DENY,
        .reason = reason,
        .text = arena_text(&run->mem, str_of(err->text)),
    };
}

static bool is_allowed(const struct run *run)
{
    return run->verdict.kind == VERDICT_ALLOW;
}

/* Steps 2 and 3. */
static void judge(struct govern *govern, struct run *run)
{
    struct err err;

    if (decide_run(govern->policy, run, &err) < 0)
        refuse_by(run, REASON_DECISION_ERROR, &err);
    if (is_allowed(run) && execute_offer(govern->execute, run, &err) < 0)
        refuse_by(run,
                  err.code == ERR_NOT_FOUND ? REASON_PROVIDER_UNKNOWN : REASON_PROVIDER_UNAVAILABLE,
                  &err);
    if (is_allowed(run) && equip_plan(govern->equip, run, &err) < 0)
        refuse_by(run, REASON_PLAN_INVALID, &err);
}

/* Step 4. What failed to begin still gets its intent: it was attempted. */
static int commit_to(struct govern *govern, struct run *run, bool *begun, struct err *err)
{
    struct err build_err;

    *begun = is_allowed(run) && execute_begin(govern->execute, run, &build_err) == 0;
    if (record_intent(govern->record, run, err) < 0) {
        execute_drop(govern->execute, run);
        return err_in(err, "not running what cannot be recorded");
    }
    if (is_allowed(run) && !*begun)
        refuse_by(run, REASON_SANDBOX_FAILED, &build_err);
    return 0;
}

/* Step 5. */
static void preflight(struct govern *govern, struct run *run)
{
    struct err err;

    if (execute_park(govern->execute, run, &err) < 0)
        refuse_by(run, err.code == ERR_CONFLICT ? REASON_CANCELLED : REASON_SANDBOX_FAILED, &err);
    else if (equip_compare(govern->equip, run, &err) < 0)
        refuse_by(run, REASON_PREFLIGHT_ISOLATION, &err);
}

/* Step 7; the run that was denied before its intent has said all there is to say. */
static int conclude(struct govern *govern, struct run *run, struct err *err)
{
    if (record_close(govern->record, run, err) < 0)
        return err_in(err, "the run has ended, but its outcome could not be recorded");
    return 0;
}

int govern_preflight(struct govern *govern, const struct request *request, struct run *run,
                     struct err *err)
{
    bool begun = false;
    bool planned;

    if (admit_run(request, run, err) < 0)
        return -1;
    judge(govern, run);
    planned = is_allowed(run);
    if (commit_to(govern, run, &begun, err) < 0)
        return -1;
    if (!planned)
        return 0;
    if (begun)
        preflight(govern, run);
    execute_drop(govern->execute, run);
    run->outcome.ended = true;
    return conclude(govern, run, err);
}

int govern_run(struct govern *govern, const struct request *request, const struct streams *streams,
               struct run *run, struct err *err)
{
    struct err failure;
    bool begun = false;
    bool planned;

    if (admit_run(request, run, err) < 0)
        return -1;
    judge(govern, run);
    planned = is_allowed(run);
    if (commit_to(govern, run, &begun, err) < 0)
        return -1;
    if (!planned)
        return 0;
    if (begun)
        preflight(govern, run);
    if (!is_allowed(run)) {
        execute_drop(govern->execute, run);
    } else if (execute_release(govern->execute, run, streams, &failure) < 0) {
        run->outcome.reason = REASON_SANDBOX_FAILED;
        run->outcome.failure = arena_text(&run->mem, str_of(failure.text));
    }
    return conclude(govern, run, err);
}
