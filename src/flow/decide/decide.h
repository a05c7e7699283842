/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lib/base/buf.h"
#include "lib/base/limits.h"
#include "lib/base/memory.h"
#include "lib/base/text.h"
#include "lib/crypto/crypto.h"

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

/* ---- layers (docs/policy.md, "Layers") ----
 *
 * A ceiling, and overlays of a policy: texts of the same form that only take away. Sections that
 * cannot are refused. */
int ceiling_parse(struct str text, struct policy **out, struct mark *where,
                  struct err *err) MUST_CHECK;
int overlay_parse(struct str text, struct policy **out, struct mark *where,
                  struct err *err) MUST_CHECK;
/* A policy (empty: the built-in one) and overlays as one text, which policy_parse() reads. */
int policy_stack_text(struct str policy, const struct str *overlays, size_t n, struct buf *out,
                      struct err *err) MUST_CHECK;
/* Another policy below the overlays that a text has; without any it is the policy alone. */
int policy_restack(struct arena *mem, struct str before, struct str policy, const char **out,
                   struct err *err) MUST_CHECK;

/* A policy that somebody has signed (docs/formats/policy-bundle.md). policy_parse() reads one like
 * any other policy and refuses it when a byte of it is not as it was signed; whether its key is
 * trusted, and whether it is still good, is to be asked of whoever keeps such things. */
#define BUNDLE_NAME_BYTES 129
struct policy_bundle {
    char name[BUNDLE_NAME_BYTES];
    int64_t version;
    int64_t created_at, expires_at; /* seconds since 1970 */
    char key_id[KEY_ID_BYTES];
    struct public_key key;
    char policy_hash[HASH_TEXT_BYTES]; /* as its maker says */
    char hash[HASH_TEXT_BYTES];        /* of the bundle */
};
const struct policy_bundle *policy_bundle(const struct policy *policy); /* NULL: it is not signed */
bool is_bundle_name(struct str name);
/* Of *ask name, version and times count. */
int policy_bundle_make(const struct policy_bundle *ask, struct str policy,
                       const struct str *overlays, size_t n, const struct signing_key *key,
                       struct buf *out, struct err *err) MUST_CHECK;
/* Whether a ceiling takes only signed policies. */
bool ceiling_wants_bundles(const struct policy *ceiling);

/* Whether there is nothing in the text but one policy: only such a text can be written on. */
bool policy_is_plain(struct str text);

/* The texts in a text: of the policy (empty: the built-in one) and of its overlays. */
struct policy_texts {
    struct str policy;
    struct str overlays[POLICY_OVERLAYS_MAX];
    size_t overlay_n;
};
int policy_texts(struct arena *mem, struct str text, struct policy_texts *out,
                 struct err *err) MUST_CHECK;
/* It and its overlays; returns how many. */
size_t policy_layers(const struct policy *policy, const struct policy *out[POLICY_LAYERS_MAX]);

/* Commands made of the rules of these policies: what each rule matches and just does not match,
 * what two of them are about together, and what none is about. Returns how many. */
typedef void sample_visitor(void *context, struct words command);
size_t policy_samples(const struct policy *const *policies, size_t n, struct arena *mem,
                      sample_visitor *visit, void *context);

/* Whether a rule of it, or of an overlay, goes by whether there is a network. */
bool policy_asks_for_network(const struct policy *policy);

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

/* The decider outside of Brig that it names, or NULL. Nobody has asked it yet. */
struct external;
const struct external *policy_external(const struct policy *policy);

size_t policy_rule_count(const struct policy *policy);
/* The first control of this policy that this version cannot enforce, or NULL. */
const char *policy_not_enforceable(const struct policy *policy);

/* What runs under it may use together. */
struct budget_limit;
const struct budget_limit *policy_budgets(const struct policy *policy, size_t *n);

/* A command that may run without walls once a person says so, spelled out word by word. Only the
 * standing policy is ever asked for one. */
struct elevated_rule {
    const char *name;
    unsigned line;
    struct words words;
    const char *user;   /* as whom, or NULL: whoever asks */
    const char *reason; /* or NULL */
};
/* Whether the program of that name is, behind all links, one that runs others. */
bool elevated_is_carrier(const char *program);
const struct elevated_rule *policy_elevated(const struct policy *policy, struct words argv);

/* Whose word something needs that no rule asks about: those of the group "default"; or NULL. */
struct approval_terms;
const struct approval_terms *policy_default_terms(const struct policy *policy, struct arena *mem);
/* Both, where two ask: whoever confirms must be one that each names. Either may be NULL. */
const struct approval_terms *approval_terms_meet(struct arena *mem, const struct approval_terms *a,
                                                 const struct approval_terms *b);

/* Fills run->verdict, run->demand and run->policy_hash. The verdict is DENY until every rule has
 * been looked at, and stays DENY on failure. What it points to lives in the run. */
int decide_run(const struct policy *policy, struct run *run, struct err *err) MUST_CHECK;
/* The same below the machine's ceiling (or NULL). The strictest of all layers holds; where there
 * are several, run->verdict.layer names it. */
int decide_under(const struct policy *ceiling, const struct policy *policy, struct run *run,
                 struct err *err) MUST_CHECK;

/* The same, and of every rule of every layer whether it matches the command, or what is seen inside
 * it, and if not why. */
struct rule_step {
    const char *layer;
    const char *rule;
    unsigned line;
    unsigned kind; /* enum verdict_kind */
    bool matched;
    const char *why;
    struct words command;
    const char *within; /* the carrier around it, or NULL */
};
typedef void rule_visitor(void *context, const struct rule_step *step);
int decide_explain(const struct policy *ceiling, const struct policy *policy, struct run *run,
                   rule_visitor *visit, void *context, struct err *err) MUST_CHECK;
