/* SPDX-License-Identifier: Apache-2.0 */
#include "surface/helm/helm-private.h"
#include "test.h"

#include "model/run.h"

#include <string.h>

/* What HELM's clients tell apart, and what they must not take for an allowance. */
TEST(a_denial_has_the_word_of_helm_that_fits_it)
{
    static const struct {
        enum verdict_kind kind;
        enum reason reason;
        const char *word;
    } cases[] = {
        {VERDICT_ALLOW, REASON_POLICY_ALLOW,     "ALLOW"                 },
        {VERDICT_ASK,   REASON_POLICY_ASK,       "DENY_APPROVAL_REQUIRED"},
        {VERDICT_ASK,   REASON_PDP_ASK,          "DENY_APPROVAL_REQUIRED"},
        {VERDICT_DENY,  REASON_POLICY_DENY,      "DENY_POLICY_VIOLATION" },
        {VERDICT_DENY,  REASON_PDP_DENY,         "DENY_POLICY_VIOLATION" },
        {VERDICT_DENY,  REASON_SYSTEM_FROZEN,    "DENY_POLICY_VIOLATION" },
        {VERDICT_DENY,  REASON_PDP_ERROR,        "ERROR_INTERNAL"        },
        {VERDICT_DENY,  REASON_BUDGET_EXCEEDED,  "DENY_BUDGET_EXCEEDED"  },
        {VERDICT_DENY,  REASON_BUDGET_ERROR,     "ERROR_INTERNAL"        },
        {VERDICT_DENY,  REASON_BUNDLE_UNTRUSTED, "DENY_TRUST_KEY_REVOKED"},
        {VERDICT_DENY,  REASON_POLICY_ALLOW,     "DENY_POLICY_VIOLATION" },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct verdict verdict = {.kind = cases[i].kind, .reason = cases[i].reason};

        CHECK_TEXT(helm_verdict_reason(&verdict), cases[i].word);
    }
    for (enum reason reason = REASON_NONE; reason < REASON_COUNT; reason++) {
        const struct verdict denied = {.kind = VERDICT_DENY, .reason = reason};

        CHECK(strcmp(helm_verdict_reason(&denied), "ALLOW") != 0);
    }
}
