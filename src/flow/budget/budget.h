/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What runs may use together, and what they have used (STATE/budget.db).
 *
 * An account counts what one principal, tenant or session uses in a window of one length. A run
 * *reserves* from every account that a limit concerns before its intent is written, all or nothing
 * in one transaction, and what it has really used is *settled* once its outcome is. What is left is
 * always the limit, less what was used, less what is reserved: however many ask at once, no more is
 * given out than there is.
 *
 *     reserve ──▶ intent ──▶ … ──▶ outcome ──▶ settle
 *        │           │                 │
 *        ▼           ▼                 ▼          whoever dies here leaves the reservation:
 *     released    waits for        settled from
 *                 the outcome      the ledger
 *
 * A window begins with the first run that meets it and ends after its length; the next run begins
 * another one. Time is that of the machine's clock, but never earlier than it has been before: a
 * clock that is set back renews nothing.
 *
 * An account is kept while its window lasts, or its session; there are at most BUDGET_ACCOUNTS_MAX.
 *
 * Several processes may use one store; a struct budgets is for one thread. */

#include "lib/base/err.h"
#include "lib/base/memory.h"
#include "model/budget.h"

#include <stdbool.h>

struct budgets;
/* Whether anybody ever limited anything here, or nobody can tell. Costs a look for two files. */
bool budgets_exist(const char *state_dir);
/* ERR_INTEGRITY: it was there and is gone: nobody can tell what was used or limited. */
int budgets_open(const char *state_dir, struct budgets **out, struct err *err) MUST_CHECK;
/* For who only looks: whatever is settled in it is settled nowhere else. */
int budgets_open_copy(const char *state_dir, struct budgets **out, struct err *err) MUST_CHECK;
/* Begins anew where it is gone: nothing is limited, and nothing was used. ERR_CONFLICT: it is
 * there.
 */
int budgets_renew(const char *state_dir, struct budgets **out, struct err *err) MUST_CHECK;
void budgets_free(struct budgets *budgets);
AUTO_TYPE(budgets)

/* ---- one run ---- */

/* Millionths of a currency; 0: costs nothing, or nobody knows. */
struct budget_prices {
    uint64_t run;
    uint64_t vcpu_second; /* of what a run may use, whether or not it does */
    uint64_t gib_second;
};
#define BUDGET_PRICE_MAX 1000000000ULL

#define BUDGET_NO_END (UINT64_MAX / 2) /* of wall_us */
#define BUDGET_ACCOUNTS_MAX 65536

struct budget_ask {
    const char *run_id;
    const char *of[BUDGET_SCOPE_COUNT]; /* principal, tenant, session */
    const struct budget_limit *limits;  /* of the policy, besides the operator's */
    size_t limit_n;
    uint64_t wall_us; /* its own limit, or BUDGET_NO_END */
    uint64_t cpu_millis;
    uint64_t memory_bytes;
    bool has_network;
    bool is_uncounted; /* what it leaves behind goes on, and nobody counts that */
    bool is_unmetered; /* its bytes pass, and nobody counts those */
    bool only_look;    /* whether it would do; nothing is reserved */
};

struct budget_answer {
    bool is_refused;
    bool is_held;          /* a limit concerns it */
    bool is_uncountable;   /* refused, because a limit cannot be held */
    bool is_cut;           /* wall_us is less than was asked for */
    uint64_t wall_us;      /* the time it has */
    uint64_t egress_bytes; /* what may pass; 0: no such bound */
    const char *by;        /* whose budget refuses or cuts it: a sentence, in mem */
    const char *egress_by; /* whose says how much may pass, likewise */
};
/* With only_look, budgets may be NULL: of what nobody has used or limited yet. */
int budgets_reserve(struct budgets *budgets, struct arena *mem, const struct budget_ask *ask,
                    struct budget_answer *out, struct err *err) MUST_CHECK;

/* What budgets_reserve() would reserve of a cost for it, cut by nothing. -1: nobody knows, because
 * nothing has a price, the run has no end, or it is not counted. */
int budgets_cost(struct budgets *budgets, const struct budget_ask *ask, uint64_t *out,
                 struct err *err) MUST_CHECK;

/* What it has used; twice is once. */
enum budget_end {
    BUDGET_CHARGE_ALL, /* nobody knows: what was reserved */
    BUDGET_CHARGE,     /* what *used says; runs and cost are known here */
    BUDGET_RELEASE,    /* nothing: it did not run */
};
struct budget_used {
    uint64_t wall_us;
    uint64_t cpu_us;
    bool cpu_is_whole; /* else it is charged what its processors could give in wall_us */
    uint64_t egress_bytes;
};
int budgets_settle(struct budgets *budgets, const char *run_id, enum budget_end end,
                   const struct budget_used *used, struct err *err) MUST_CHECK;

/* Runs that have something reserved. has_owner: the process that did it is still there. */
struct budget_open_run {
    const char *run_id;
    bool has_owner;
};
int budgets_open_runs(struct budgets *budgets, struct arena *mem, struct budget_open_run **out,
                      size_t *n, struct err *err) MUST_CHECK;

/* ---- the operator's limits ---- */

/* Sets the limit of this scope, name and window, or (all zero) takes it away: ERR_NOT_FOUND when
 * there is none. No policy can widen it. */
int budgets_limit(struct budgets *budgets, const struct budget_limit *limit,
                  struct err *err) MUST_CHECK;
int budgets_limits(struct budgets *budgets, struct arena *mem, struct budget_limit **out, size_t *n,
                   struct err *err) MUST_CHECK;
int budgets_price(struct budgets *budgets, const struct budget_prices *prices,
                  struct err *err) MUST_CHECK;
int budgets_prices(struct budgets *budgets, struct budget_prices *out, struct err *err) MUST_CHECK;
/* A session is over: what it used is not asked for again. */
int budgets_end_session(struct budgets *budgets, const char *session, struct err *err) MUST_CHECK;
/* Forgets what was used: of one of a scope, or (name NULL) of all; then also how late it has been.
 * What is reserved stays. */
int budgets_reset(struct budgets *budgets, enum budget_scope scope, const char *name,
                  struct err *err) MUST_CHECK;

/* ---- looking ---- */

struct budget_account {
    enum budget_scope scope;
    const char *name;
    uint64_t window_s;
    int64_t began_at;  /* seconds since 1970 */
    int64_t renews_at; /* 0: never */
    uint64_t used[BUDGET_KINDS];
    uint64_t held[BUDGET_KINDS];
};
/* As they are now, the latest first: what is over counts as renewed. At most BUDGET_ACCOUNTS_SHOWN.
 */
#define BUDGET_ACCOUNTS_SHOWN 1000
int budgets_accounts(struct budgets *budgets, struct arena *mem, struct budget_account **out,
                     size_t *n, struct err *err) MUST_CHECK;

/* "30m", "1.5G", "3.50": as limits are written. */
const char *budget_window_text(struct arena *mem, uint64_t window_s); /* "30d", "the session" */
const char *budget_amount_text(struct arena *mem, enum budget_kind kind, uint64_t amount);
