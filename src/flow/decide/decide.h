/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lib/base/buf.h"
#include "lib/base/text.h"

struct net_rules;
struct run;
struct suggest;

/* A policy: read once, checked completely, never changed. docs/policy.md is its reference. */
struct policy;

void policy_free(struct policy *policy);
AUTO_TYPE(policy)

/* Nothing loads partly: -1 leaves *out alone, says in *where which place is wrong (line 0: no
 * particular one) and in err what, beginning with "line 12, column 5: ". */
int policy_parse(struct str text, struct policy **out, struct mark *where,
                 struct err *err) MUST_CHECK;

/* From a file; err then begins with the path. */
int policy_open(const char *path, struct policy **out, struct err *err) MUST_CHECK;

/* Where a policy file is wrong, with the text mark_show() wants to draw its caret. */
struct policy_problem {
    struct mark mark;
    struct buf text;
};

void policy_problem_done(struct policy_problem *problem);
#define AUTO_POLICY_PROBLEM __attribute__((cleanup(policy_problem_done)))

/* policy_open() for those who want to show the place; *problem starts zeroed and is filled on
 * failure, as far as the file could be read. */
int policy_open_showing(const char *path, struct policy **out, struct policy_problem *problem,
                        struct err *err) MUST_CHECK;

/* The default that ships inside the program: policies/default.yaml. */
int policy_builtin(struct policy **out, struct err *err) MUST_CHECK;

/* "sha256:" and 64 hex digits over the RFC 8785 form of what was read: comments, layout and the
 * order of keys make no difference. */
const char *policy_hash(const struct policy *policy);

/* The network sections as lib/egress compiles them: canonical JSON in which everything that can
 * decide has its "line". Empty when the policy has no network rules. */
struct str policy_network_text(const struct policy *policy);

/* What was refused (lib/egress/suggest.h), put into the text of a policy (empty: the built-in one)
 * as the narrowest rules that allow it; *out is the whole policy then, and the rules those of the
 * text as it is and as it would be, the caller's to free. What cannot be had is left, with the
 * reason. Nothing is changed. */
int policy_suggest(struct str text, struct suggest *suggest, struct buf *out,
                   struct net_rules **before, struct net_rules **after, struct err *err) MUST_CHECK;

/* The same with an entry that somebody inside asked for (lib/egress/proposal.h). -1: it cannot
 * stand there, and err says why. */
struct proposal;
int policy_propose(struct str text, const struct proposal *proposal, struct buf *out,
                   struct net_rules **before, struct net_rules **after, struct err *err) MUST_CHECK;
/* Whether it could stand in some policy, as far as that can be told without one. */
int policy_proposal_check(const struct proposal *proposal, struct err *err) MUST_CHECK;

size_t policy_rule_count(const struct policy *policy);
/* The first control of this policy that this version cannot enforce, or NULL. */
const char *policy_not_enforceable(const struct policy *policy);

/* Fills run->verdict, run->demand and run->policy_hash. The verdict is DENY until every rule has
 * been looked at, and stays DENY on failure. What it points to lives in the run. */
int decide_run(const struct policy *policy, struct run *run, struct err *err) MUST_CHECK;
