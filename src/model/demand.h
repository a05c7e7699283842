/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lib/base/str.h"
#include "model/budget.h"
#include "model/limits.h"

#define RELEASE_RUNS 10 /* that speak for an agent, where nobody says another number */
#define RELEASE_RUNS_MAX 1000

/* What the policy demands of the plan: filled by decide, honoured by equip or refused there.
 * Zero demands nothing and grants nothing. */
struct demand {
    struct limits limits; /* value 0: the policy does not say */
    /* What another layer than the policy allows at most, whoever asks; 0: it does not say. */
    uint64_t most[LIMIT_COUNT];

    bool has_filesystem; /* the policy lists paths; what it does not list is not accessible */
    bool include_workdir;
    struct words read_only;
    struct words read_write;
    bool landlock_best_effort; /* a listed path that does not exist is left out, not refused */

    uint32_t run_as_uid; /* 0: not said; policies cannot ask for 0 */
    uint32_t run_as_gid;

    /* The network rules as egress compiles them, canonical JSON; empty: the policy has none. */
    struct str network_rules;

    /* What runs under it may use together. */
    const struct budget_limit *budgets;
    size_t budget_n;

    bool advisory_only;           /* nothing runs under it but agents that advise */
    const char *requires_release; /* the agent that must have been released to run; NULL: any may */
    unsigned release_runs;        /* over so many runs at least */

    /* Controls we understand and validate but cannot enforce in this version, as one sentence
     * with the line, e.g. "line 12: budget is not enforceable yet". NULL: none.
     * A run under such a policy is refused. */
    const char *not_enforceable;
};
