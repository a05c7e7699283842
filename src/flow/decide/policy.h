/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A policy after loading. Everything lives in its arena. */

#include "flow/decide/decide.h"
#include "lib/base/glob.h"
#include "lib/base/limits.h"
#include "lib/crypto/crypto.h"
#include "lib/expr/expr.h"
#include "model/run.h"

/* How the first word of a rule names a program. */
struct program {
    bool has_slash;
    const struct glob *word; /* the pattern as written */
    const struct glob *path; /* has_slash: for allow, `*` stays within a component */
    const struct glob *site; /* has_slash: for deny and ask, with /usr/bin read as /bin */
    const struct glob *base; /* has_slash: for deny and ask, what stands behind the last slash */
};

/* One place in a rule: any number of words, or one word that matches one of the patterns. */
struct place {
    bool rest; /* ** */
    const struct glob *const *any;
    const bool *has_slash; /* of each pattern */
    size_t n;
};

/* Some text is one of these; none: it does not matter. */
struct patterns {
    const struct glob *const *of;
    size_t n;
};

struct path_pattern {
    const struct glob *glob;
    const struct glob
        *folder; /* deny, ask: of a pattern that ends in slash and **, what is before it */
};

/* What must hold besides the words. A member that is empty does not matter. */
struct conditions {
    struct patterns principal;
    struct patterns tenant;
    struct patterns provider;
    struct patterns tool;
    struct patterns env;
    const struct path_pattern *paths;
    size_t path_n;
    const struct effect *const *effects;
    size_t effect_n;
    unsigned effect_risks; /* a bit for each of E0 to E4: of "effect", */
    unsigned risks;        /* and of "risk" */
    bool has_time;
    unsigned after, before; /* minutes of the day, UTC; over midnight when after is later */
    unsigned days;          /* a bit for each, Sunday is the first */
    bool has_cost;
    bool cost_below, cost_equal, cost_above; /* than this, in millionths, holds */
    uint64_t cost;
    const struct expr *when;
};

struct rule {
    enum verdict_kind kind;
    const char *name;
    const char *reason; /* or NULL */
    unsigned line;
    const struct approvers *approvers; /* ask: whose word it needs; NULL: those of "default" */
    bool literal;                      /* no wildcard anywhere: it spells out one command */
    const struct program *programs;
    size_t program_n; /* 0: the first place is **, or there are no words */
    const struct place *places;
    size_t place_n;                      /* 0: over every command */
    const struct conditions *conditions; /* or NULL */
};

/* As what a text was read: the policy, or something that only takes away from one. */
enum policy_role {
    ROLE_POLICY,
    ROLE_CEILING,
    ROLE_OVERLAY,
};

/* A group of approvals: who confirms, and how. */
struct approvers {
    unsigned line;
    struct approval_terms terms;
};

struct policy {
    struct arena mem;
    enum policy_role role;
    char own_hash[HASH_TEXT_BYTES]; /* of this text alone */
    char hash[HASH_TEXT_BYTES];     /* of it and its overlays */

    struct policy *overlays[POLICY_OVERLAYS_MAX]; /* that lie on it; owned */
    size_t overlay_n;
    const struct external *external; /* a decider outside that is asked, too; or NULL */
    bool network_none;               /* a layer that closes the network */
    bool wants_bundles;              /* a ceiling below which only signed policies count */
    struct policy_bundle bundle;     /* version 0: not signed */

    bool has_commands;
    bool has_default;
    enum verdict_kind fallback;
    unsigned fallback_line;
    unsigned commands_line;
    struct rule *rules;
    size_t rule_n;
    const struct rule_index *index;
    bool restricts; /* some rule denies or asks */
    struct approvers *approvers;
    size_t approvers_n;

    const struct elevated_rule *elevated;
    size_t elevated_n;

    struct demand demand;
    unsigned not_enforceable_line;
};
