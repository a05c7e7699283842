/* SPDX-License-Identifier: Apache-2.0 */

/* What a run would come to, told without one: the rules, and whatever else would stop it.
 *
 * Each step is the one a run takes, in its order (govern.c), so that the verdict is what a run
 * would get now. Only what stands on nothing but the request and the machine is looked at: whether
 * the sandbox could be built is what a preflight is for. Nothing is reserved, recorded or begun,
 * what does not exist is not made, and what a run would settle or remember on the way is settled in
 * a copy, and forgotten (govern.only_looks). */

#include "flow/govern-parts.h"

#include "flow/consult/consult.h"
#include "flow/decide/decide.h"
#include "flow/equip/equip.h"
#include "flow/record/record.h"

#include <assert.h>
#include <string.h>

/* The verdict of now is a refusal besides the rules. */
static void note(struct prospect *prospect, const struct run *run)
{
    assert(prospect->refusal_n < PROSPECT_REFUSALS_MAX);
    prospect->refusals[prospect->refusal_n++] = run->verdict;
}

static void note_decider(struct prospect *prospect, const struct policy *policy, const char *layer)
{
    const struct external *external = policy ? policy_external(policy) : NULL;

    if (external)
        prospect->deciders[prospect->decider_n++] = (struct prospect_decider){layer, external};
}

static int judge(struct govern *govern, struct prospect *prospect, struct run *run, struct err *err)
{
    int failed;

    if (prospect->has_cost)
        run->cost_source = (struct cost_source){cost_as_said, &prospect->cost};
    failed = prospect->visit ? decide_explain(govern->ceiling.policy, govern->policy, run,
                                              prospect->visit, prospect->context, err)
                             : decide_under(govern->ceiling.policy, govern->policy, run, err);
    run->cost_source = (struct cost_source){0};
    return failed;
}

/* What is stronger than any rule: *rules is what they say by themselves. */
static int judge_first(struct govern *govern, struct prospect *prospect, struct run *run,
                       struct verdict *rules, struct err *err)
{
    enum reason why;
    struct err wrong;
    bool counts = govern_policy_counts(govern, govern->policy, false, &run->mem, &why, &wrong) == 0;

    if (judge(govern, prospect, run, err) < 0)
        return -1;
    *rules = run->verdict;
    if (!counts) {
        govern_refuse_uncounted(run, why, &wrong);
        note(prospect, run);
    }
    if (govern_is_frozen(govern, run))
        note(prospect, run);
    return 0;
}

/* ---- what comes behind the rules ---- */

static void meet_mode(struct govern *govern, struct run *run)
{
    (void)govern;
    govern_check_mode(run);
}

static bool is_driven(const char *provider)
{
    const char *const *names = execute_providers();

    while (*names && strcmp(*names, provider) != 0)
        names++;
    return *names != NULL;
}

/* A release is for a program, which is found along the mounts of a plan; a budget is for a time,
 * which its limits say. That nobody drives it is seen without looking at the machine. */
static void meet_provider(struct govern *govern, struct run *run)
{
    bool needs_plan = run->demand.requires_release || govern_has_budget(govern, run);
    struct err err;

    if (!needs_plan && is_driven(run->action.provider))
        return;
    if (govern_offer(govern, run) &&
        (run->demand.requires_release ? equip_plan(govern->equip, run, &err)
                                      : equip_limits(govern->equip, run, &err)) < 0)
        govern_refuse_by(run, REASON_PLAN_INVALID, &err);
}

/* Opening a ledger makes one. */
static void meet_release(struct govern *govern, struct run *run)
{
    struct err err;

    if (!run->demand.requires_release)
        return;
    if (record_exists(govern->state_dir)) {
        govern_check_release(govern, run);
        return;
    }
    (void)err_set(&err, ERR_FORBIDDEN, "agent %.128s: it was not released, or that was revoked",
                  run->demand.requires_release);
    govern_refuse_by(run, REASON_RELEASE_REQUIRED, &err);
}

/* Each as if the ones before it had not refused, but for those without which it has nothing to
 * look at. */
static const struct {
    void (*meet)(struct govern *govern, struct run *run);
    bool is_last_word; /* a refusal leaves nothing to look at */
    bool of_tools;     /* they are asked about, and run elsewhere (govern_consider()) */
} steps[] = {
    {meet_mode,             true,  false},
    {meet_provider,         true,  false},
    {meet_release,          false, true },
    {govern_foresee_budget, false, false},
};

static void meet_all(struct govern *govern, struct prospect *prospect, struct run *run)
{
    const struct verdict so_far = run->verdict;
    struct verdict first = so_far;

    for (size_t i = 0; i < COUNT(steps); i++) {
        bool refuses;

        if (run->action.tool && !steps[i].of_tools)
            continue;
        run->verdict = so_far;
        steps[i].meet(govern, run);
        refuses = run->verdict.kind == VERDICT_DENY;
        if (refuses) {
            note(prospect, run);
            if (first.kind != VERDICT_DENY)
                first = run->verdict;
        }
        if (refuses && steps[i].is_last_word)
            break;
    }
    run->verdict = first;
    execute_forget(run);
}

/* A command that is a tool's, or the call of one as rules see it. */
static int admit(const struct request *request, struct run *run, struct err *err)
{
    if (admit_run(request, run, err) < 0)
        return -1;
    if (request->tool)
        run->action.tool = arena_text(&run->mem, str_of(request->tool));
    return 0;
}

int govern_explain(struct govern *govern, const struct request *request, struct prospect *prospect,
                   struct run *run, struct err *err)
{
    struct verdict rules, stopped;
    bool is_stopped;

    prospect->refusal_n = prospect->decider_n = 0;
    if (admit(request, run, err) < 0 || judge_first(govern, prospect, run, &rules, err) < 0)
        return -1;
    note_decider(prospect, govern->ceiling.policy, "ceiling");
    note_decider(prospect, govern->policy, "policy");
    if (prospect->ask_deciders)
        for (size_t i = 0; i < prospect->decider_n; i++)
            consult_run(prospect->deciders[i].external, prospect->deciders[i].layer, run);
    is_stopped = prospect->refusal_n > 0;
    stopped = run->verdict;
    if (is_stopped)
        run->verdict = rules;
    if (run->verdict.kind != VERDICT_DENY)
        meet_all(govern, prospect, run);
    if (is_stopped)
        run->verdict = stopped;
    return 0;
}
