/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lib/base/str.h"

/* What several runs together may use: so much in a stretch of time, for somebody. */

/* For whom it is.
 *
 *    principal  whoever asks
 *    tenant     all of a tenant's together
 *    session    what belongs together: the commands of one kept sandbox, else one run */
enum budget_scope {
    BUDGET_PRINCIPAL,
    BUDGET_TENANT,
    BUDGET_SESSION,
    BUDGET_SCOPE_COUNT,
};
const char *budget_scope_name(enum budget_scope scope);

/* What is counted, and in what.
 *
 *    id      name      unit */
#define BUDGET_KIND_TABLE(X)                                                                       \
    X(RUNS, "runs", "commands")                                                                    \
    X(WALL, "wall", "microseconds")                                                                \
    X(CPU, "cpu", "microseconds of one processor")                                                 \
    X(EGRESS, "egress", "bytes, both ways")                                                        \
    X(COST, "cost", "millionths of a currency")

enum budget_kind {
#define X(id, name, unit) BUDGET_##id,
    BUDGET_KIND_TABLE(X)
#undef X
        BUDGET_KINDS
};
const char *budget_kind_name(enum budget_kind kind);

/* Above it nothing is counted: far enough from what 64 bits hold that no sum of two overflows. */
#define BUDGET_MOST (1ULL << 53)

#define BUDGET_WINDOW_MAX_S (366ULL * 86400)
#define BUDGETS_MAX 64 /* of one policy, or of one operator */

struct budget_limit {
    enum budget_scope scope;
    const char *name;          /* only of this one; NULL: of each */
    uint64_t window_s;         /* 0: as long as a session lasts */
    uint64_t of[BUDGET_KINDS]; /* 0: no limit */
    uint64_t egress_run;       /* what one run may have of it at once; 0: all that is left */
    unsigned line;             /* where it stands; 0: the operator's own */
    const char *layer;         /* in which layer of the policy: "policy", "ceiling"; or NULL */
};

/* As people write it: "100", "30m", "1G", "5.00". False: it is none, 0, or more than there can be.
 */
bool budget_amount_parse(enum budget_kind kind, struct str text, uint64_t *out);
const char *budget_amount_advice(enum budget_kind kind); /* "a duration like 30m" */
/* A cost, in millionths: as above, and it may be 0. */
bool cost_parse(struct str text, uint64_t *out);
/* "1h", "30d", "90s": whole seconds up to BUDGET_WINDOW_MAX_S. */
bool budget_window_parse(struct str text, uint64_t *out_s);
