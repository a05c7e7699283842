/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to decide: policies on top of each other (layers.c). */

#include "flow/decide/policy.h"

/* What one layer alone says to a command (decide.c). */
struct verdict judge_action(const struct policy *policy, struct run *run);
bool action_brings_path(const struct action *action);
int64_t decide_now(const struct run *run); /* that rules about time see */

/* The policy hash: that of the only layer, or one over the hashes of all (docs/policy.md). */
void layers_hash(const struct policy *ceiling, const struct policy *policy,
                 char out[HASH_TEXT_BYTES]);

/* Several texts in one (policy-stack.c): whether it is such a text, and what is in it. The
 * policy's text is empty when it is the built-in one. */
struct stack_parts {
    struct str policy;
    struct str overlays[POLICY_OVERLAYS_MAX];
    size_t overlay_n;
};
bool is_stack_text(struct str text);
int stack_read(struct arena *mem, struct str text, struct stack_parts *out,
               struct err *err) MUST_CHECK;

/* The same of a bundle (policy-bundle.c), checked against its own key. ERR_INTEGRITY: altered. */
bool is_bundle_text(struct str text);
int bundle_read(struct arena *mem, struct str text, struct policy_bundle *out,
                struct stack_parts *parts, struct err *err) MUST_CHECK;

/* A text in which nothing but one policy is (policy-load.c). */
int policy_parse_plain(struct str text, enum policy_role role, struct policy **out,
                       struct mark *where, struct err *err) MUST_CHECK;
