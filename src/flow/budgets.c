/* SPDX-License-Identifier: Apache-2.0 */

/* What runs may use together: reserved before the intent, settled after the outcome; and what the
 * operator says about it. */

#include "flow/govern-parts.h"

#include "flow/budget/budget.h"
#include "flow/decide/decide.h"
#include "flow/equip/equip.h"
#include "flow/execute/execute.h"
#include "flow/record/record.h"
#include "lib/base/crash.h"
#include "lib/base/limits.h"
#include "lib/json/json.h"

#include <string.h>
#include <unistd.h>

static int open_budgets(struct govern *govern, struct err *err)
{
    if (govern->budgets)
        return 0;
    return govern->only_looks ? budgets_open_copy(govern->state_dir, &govern->budgets, err)
                              : budgets_open(govern->state_dir, &govern->budgets, err);
}

/* ---- what the ledger says of runs that have something reserved ---- */

struct last_receipt {
    enum budget_end end;
    struct budget_used used;
    bool is_known;
    bool is_over;
};

static uint64_t number_at(const struct json *object, const char *key)
{
    const struct json *value = object ? json_get(object, key) : NULL;
    int64_t number;

    return value && json_is_int(value, &number) && number > 0 ? (uint64_t)number : 0;
}

/* Newest first: an outcome, or a denial, is the last word about a run. An outcome that does not say
 * how long it took is of one whose Brig died. */
static int on_receipt(void *context, const struct json *receipt, struct err *err)
{
    struct last_receipt *last = context;
    const struct json *outcome = json_get(receipt, "outcome");
    struct str kind = {0};

    (void)err;
    if (last->is_known)
        return 0;
    last->is_known = true;
    (void)json_is_text(json_get(receipt, "kind"), &kind);
    last->is_over = !str_is(kind, "intent");
    if (str_is(kind, "denial"))
        last->end = BUDGET_RELEASE;
    if (!str_is(kind, "outcome") || !number_at(outcome, "duration_us"))
        return 0;
    last->end = BUDGET_CHARGE;
    last->used.wall_us = number_at(outcome, "duration_us");
    last->used.cpu_us = number_at(outcome, "cpu_us");
    last->used.egress_bytes = number_at(json_get(outcome, "egress"), "bytes_in") +
                              number_at(json_get(outcome, "egress"), "bytes_out");
    if (json_get(outcome, "egress") && json_get(json_get(outcome, "egress"), "lost"))
        last->used.egress_bytes = number_at(json_get(receipt, "budget"), "egress_bytes");
    return 0;
}

/* One that has no receipt, and whose process is gone, never ran. One that has an intent only is
 * still to be told the end of. */
static int settle_left(struct govern *govern, struct record *record,
                       const struct budget_open_run *left, size_t *settled, struct err *err)
{
    struct last_receipt last = {.end = BUDGET_CHARGE_ALL};
    struct record_query query = {.run_id = left->run_id};

    if (record_list(record, &query, on_receipt, &last, err) < 0)
        return -1;
    if (last.is_known ? !last.is_over : left->has_owner)
        return 0;
    ++*settled;
    return budgets_settle(govern->budgets, left->run_id, last.is_known ? last.end : BUDGET_RELEASE,
                          &last.used, err);
}

/* *settled: how many were. */
static int sweep(struct govern *govern, size_t *settled, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(RUN_MEMORY_MAX);
    AUTO(record) struct record *record = NULL;
    struct budget_open_run *left = NULL;
    size_t n = 0;

    *settled = 0;
    if (open_budgets(govern, err) < 0 ||
        budgets_open_runs(govern->budgets, &mem, &left, &n, err) < 0)
        return -1;
    if (n && govern_read_ledger(govern, &record, err) < 0)
        return -1;
    for (size_t i = 0; i < n; i++)
        if (settle_left(govern, record, &left[i], settled, err) < 0)
            return -1;
    return 0;
}

void govern_end_session(struct govern *govern, const char *sandbox)
{
    struct err err;

    if (!govern->budgets && !budgets_exist(govern->state_dir))
        return;
    if (open_budgets(govern, &err) < 0 || budgets_end_session(govern->budgets, sandbox, &err) < 0)
        return; /* then it is forgotten when it is old */
}

/* ---- one run ---- */

static bool is_counted(const struct run *run)
{
    return run->action.kind == ACTION_RUN || run->action.kind == ACTION_EXEC ||
           run->action.kind == ACTION_ELEVATE;
}

/* All the processors there are, where nothing keeps it from them. */
static uint64_t cpu_millis(const struct run *run)
{
    const struct limit *limit = &run->plan.limits.of[LIMIT_CPU];
    long all = sysconf(_SC_NPROCESSORS_ONLN);

    return limit->means != MEANS_NONE && limit->value ? limit->value
                                                      : (uint64_t)(all > 0 ? all : 1) * 1000;
}

/* And all the memory, likewise. */
static uint64_t memory_bytes(const struct run *run)
{
    const struct limit *limit = &run->plan.limits.of[LIMIT_MEMORY];
    long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);

    if (limit->means != MEANS_NONE && limit->value)
        return limit->value;
    return pages > 0 && page_bytes > 0 ? (uint64_t)pages * (uint64_t)page_bytes : GIB;
}

static uint64_t wall_us(const struct run *run)
{
    uint64_t own_ms = run->action.wall_ms;

    if (!own_ms && run->action.detach)
        return BUDGET_NO_END;
    if (!own_ms)
        own_ms = run->plan.limits.of[LIMIT_WALL].value;
    return own_ms < BUDGET_NO_END / 1000 ? own_ms * 1000 : BUDGET_NO_END;
}

static struct budget_ask ask_of(const struct run *run, bool has_network)
{
    return (struct budget_ask){
        .run_id = run->id,
        .of = {run->action.principal ? run->action.principal : "",
               run->action.tenant ? run->action.tenant : "default",
               run->action.kind == ACTION_EXEC ? run->sandbox_id : run->id},
        .limits = run->demand.budgets,
        .limit_n = run->demand.budget_n,
        .wall_us = wall_us(run),
        .cpu_millis = cpu_millis(run),
        .memory_bytes = memory_bytes(run),
        .has_network = has_network,
        .is_uncounted = run->action.keep_background || (run->action.detach && has_network),
        .is_unmetered = run->action.kind == ACTION_ELEVATE,
    };
}

static void refuse_by_error(struct run *run, const struct err *err)
{
    run->verdict = (struct verdict){.kind = VERDICT_DENY,
                                    .reason = REASON_BUDGET_ERROR,
                                    .text = arena_text(&run->mem, str_of(err->text))};
}

static void take_answer(struct run *run, const struct budget_answer *answer)
{
    if (answer->is_refused) {
        run->verdict =
            (struct verdict){.kind = VERDICT_DENY,
                             .reason = answer->is_uncountable ? REASON_POLICY_NOT_ENFORCEABLE
                                                              : REASON_BUDGET_EXCEEDED,
                             .text = answer->by};
        return;
    }
    run->budget.is_held = answer->is_held;
    run->budget.egress_bytes = answer->egress_bytes;
    run->budget.by = answer->by;
    run->budget.egress_by = answer->egress_by;
    if (!answer->is_cut)
        return;
    run->budget.wall_ms = answer->wall_us / 1000;
    /* Nobody of ours is there to look at the time of one that goes on alone. */
    if (run->action.detach)
        run->action.wall_ms = run->budget.wall_ms;
}

/* What others have left may be what is missing: then it is asked once more. */
static int reserve(struct govern *govern, struct run *run, const struct budget_ask *ask,
                   struct budget_answer *out, struct err *err)
{
    size_t settled;

    if (open_budgets(govern, err) < 0 ||
        budgets_reserve(govern->budgets, &run->mem, ask, out, err) < 0)
        return -1;
    if (out->is_uncountable || !(out->is_refused || out->is_cut))
        return 0;
    if (sweep(govern, &settled, err) < 0)
        return -1;
    if (settled == 0)
        return 0;
    if (out->is_held && budgets_settle(govern->budgets, run->id, BUDGET_RELEASE, NULL, err) < 0)
        return -1;
    return budgets_reserve(govern->budgets, &run->mem, ask, out, err);
}

bool govern_has_budget(const struct govern *govern, const struct run *run)
{
    return is_counted(run) &&
           (run->demand.budget_n || govern->budgets || budgets_exist(govern->state_dir));
}

static void meet_budget(struct govern *govern, struct run *run, bool only_look)
{
    struct budget_answer answer;
    struct budget_ask ask;
    struct err err;

    if (run->verdict.kind == VERDICT_DENY || !govern_has_budget(govern, run))
        return;
    ask = ask_of(run, plan_has_network(&run->plan.egress) && !run->offer.runs_nothing);
    ask.only_look = only_look;
    if (reserve(govern, run, &ask, &answer, &err) < 0)
        refuse_by_error(run, &err);
    else if (!only_look || answer.is_refused)
        take_answer(run, &answer);
    CRASH_POINT(only_look ? "budget-looked" : "budget-reserved");
}

void govern_look_at_budget(struct govern *govern, struct run *run)
{
    meet_budget(govern, run, true);
}

/* Before there is a plan: by the rules alone. */
static bool may_network(const struct run *run)
{
    return run->action.network != NETWORK_NONE && run->demand.network_rules.n;
}

void govern_foresee_budget(struct govern *govern, struct run *run)
{
    struct budget_answer answer;
    struct budget_ask ask;
    struct err err;
    int failed;

    if (run->verdict.kind == VERDICT_DENY || !govern_has_budget(govern, run))
        return;
    ask = ask_of(run, may_network(run));
    ask.only_look = true;
    failed = govern->budgets || budgets_exist(govern->state_dir)
                 ? reserve(govern, run, &ask, &answer, &err)
                 : budgets_reserve(NULL, &run->mem, &ask, &answer, &err);
    if (failed)
        refuse_by_error(run, &err);
    else if (answer.is_refused)
        take_answer(run, &answer);
}

void govern_reserve_budget(struct govern *govern, struct run *run)
{
    if (is_allowed(run))
        meet_budget(govern, run, false);
}

/* Where nobody knows how much passed, it was all that could.
 * What cannot be written now is found by whoever is refused because of it. */
void govern_settle_budget(struct govern *govern, struct run *run)
{
    const struct outcome *outcome = &run->outcome;
    const struct egress_counts *egress = &outcome->egress;
    const struct budget_used used = {outcome->duration_us, outcome->cpu_us, outcome->cpu_is_whole,
                                     egress->lost ? run->budget.egress_bytes
                                                  : egress->bytes_in + egress->bytes_out};
    bool ran = is_allowed(run) && run->intent.id[0];
    struct err err;

    if (!run->budget.is_held || outcome->detached)
        return;
    CRASH_POINT("budget-unsettled");
    if (budgets_settle(govern->budgets, run->id, ran ? BUDGET_CHARGE : BUDGET_RELEASE, &used,
                       &err) == 0)
        run->budget.is_held = false;
}

/* ---- what it costs, before there is a plan ---- */

/* The limits its plan will have, in a run that goes nowhere: the provider's answer is not the run's
 * until it is decided. One without walls has a time limit and no other. */
static int look_ahead(struct govern *govern, const struct run *run, struct run *ahead,
                      struct err *err)
{
    ahead->action = run->action;
    ahead->demand = run->demand;
    ahead->verdict.kind = VERDICT_ALLOW;
    if (run->action.kind == ACTION_ELEVATE) {
        ahead->plan.limits.of[LIMIT_WALL] = run_limit_elevated(run, LIMIT_WALL);
        return 0;
    }
    if (execute_offer(govern->execute, ahead, err) < 0 ||
        equip_limits(govern->equip, ahead, err) < 0)
        return -1;
    if (!is_allowed(ahead))
        return err_set(err, ERR_FORBIDDEN, "%s", ahead->verdict.text);
    govern_give_time(ahead);
    return 0;
}

static int most_of(struct govern *govern, const struct run *run, struct run *ahead, uint64_t *out,
                   struct err *err)
{
    struct budget_ask ask;

    if (!is_counted(run))
        return err_set(err, ERR_UNAVAILABLE, "it is no run, and has no limits");
    if (!govern->budgets && !budgets_exist(govern->state_dir))
        return err_set(err, ERR_UNAVAILABLE,
                       "nothing has a price; \"brig budget price\" sets them");
    if (look_ahead(govern, run, ahead, err) < 0 || open_budgets(govern, err) < 0)
        return -1;
    ask = ask_of(ahead, may_network(run));
    return budgets_cost(govern->budgets, &ask, out, err);
}

int govern_cost(void *context, const struct run *run, uint64_t *out, struct err *err)
{
    struct cost_ask *ask = context;
    struct run ahead;

    if (!ask->is_done) {
        run_init(&ahead);
        ask->failed = most_of(ask->govern, run, &ahead, &ask->most, &ask->err) < 0;
        run_done(&ahead);
        ask->is_done = true;
    }
    *err = ask->err;
    *out = ask->most;
    return ask->failed ? -1 : 0;
}

/* ---- the operator ---- */

struct budget_change {
    const char *verb;
    int (*make)(struct budgets *budgets, const void *what, struct err *err);
    const void *what;
};

static int change(struct govern *govern, const struct request *request,
                  const struct budget_change *change, struct run *run, struct err *err)
{
    struct deed deed;
    bool failed;

    if (deed_begin(&deed, govern, request, ACTION_BUDGET, run, err) < 0)
        return -1;
    failed = open_budgets(govern, err) < 0 || change->make(govern->budgets, change->what, err) < 0;
    if (!failed)
        run->outcome.budget.verb = change->verb;
    return deed_end(&deed, failed ? REASON_BUDGET_FAILED : REASON_NONE, err);
}

int govern_budget_renew(struct govern *govern, const struct request *request, struct run *run,
                        struct err *err)
{
    struct deed deed;
    bool failed;

    if (deed_begin(&deed, govern, request, ACTION_BUDGET, run, err) < 0)
        return -1;
    budgets_free(TAKE(govern->budgets));
    failed = budgets_renew(govern->state_dir, &govern->budgets, err) < 0;
    if (!failed)
        run->outcome.budget.verb = "renew";
    return deed_end(&deed, failed ? REASON_BUDGET_FAILED : REASON_NONE, err);
}

static int make_limit(struct budgets *budgets, const void *what, struct err *err)
{
    return budgets_limit(budgets, what, err);
}

static int make_price(struct budgets *budgets, const void *what, struct err *err)
{
    return budgets_price(budgets, what, err);
}

static int make_reset(struct budgets *budgets, const void *what, struct err *err)
{
    const struct budget_reset *reset = what;

    return budgets_reset(budgets, reset->scope, reset->name, err);
}

int govern_budget_limit(struct govern *govern, const struct request *request,
                        const struct budget_limit *limit, struct run *run, struct err *err)
{
    bool removes = true;
    struct budget_change made = {NULL, make_limit, limit};

    for (int i = 0; i < BUDGET_KINDS; i++)
        removes &= limit->of[i] == 0;
    made.verb = removes ? "remove" : "set";
    run->outcome.budget.limit = limit;
    return change(govern, request, &made, run, err);
}

int govern_budget_price(struct govern *govern, const struct request *request,
                        const struct budget_prices *prices, struct run *run, struct err *err)
{
    struct budget_change made = {"price", make_price, prices};

    run->outcome.budget.prices[0] = prices->run;
    run->outcome.budget.prices[1] = prices->vcpu_second;
    run->outcome.budget.prices[2] = prices->gib_second;
    return change(govern, request, &made, run, err);
}

int govern_budget_reset(struct govern *govern, const struct request *request,
                        const struct budget_reset *reset, struct run *run, struct err *err)
{
    struct budget_change made = {"reset", make_reset, reset};

    run->outcome.budget.scope = reset->name ? budget_scope_name(reset->scope) : NULL;
    run->outcome.budget.name = reset->name;
    return change(govern, request, &made, run, err);
}

int govern_budgets(struct govern *govern, struct arena *mem, struct budget_state *out,
                   struct err *err)
{
    size_t settled;

    *out = (struct budget_state){0};
    if (govern->policy)
        out->policy_limits = policy_budgets(govern->policy, &out->policy_limit_n);
    if (!govern->budgets && !budgets_exist(govern->state_dir))
        return 0;
    if (sweep(govern, &settled, err) < 0 ||
        budgets_limits(govern->budgets, mem, &out->limits, &out->limit_n, err) < 0 ||
        budgets_prices(govern->budgets, &out->prices, err) < 0)
        return -1;
    return budgets_accounts(govern->budgets, mem, &out->accounts, &out->account_n, err);
}
