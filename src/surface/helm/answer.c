/* SPDX-License-Identifier: Apache-2.0 */

/* What HELM's clients look at: headers, reason codes, errors. */

#include "surface/helm/helm-private.h"

#include <stdio.h>
#include <string.h>

#include "lib/crypto/crypto.h"
#include "lib/json/json.h"
#include "surface/view/view.h"

/* Ours on the left, those of HELM's registry on the right; what is not here is a matter of policy.
 */
static const struct {
    enum reason reason;
    const char *helm;
} words[] = {
    {REASON_POLICY_ALLOW,            "ALLOW"                 },
    {REASON_POLICY_DEFAULT_ALLOW,    "ALLOW"                 },
    {REASON_SANDBOX_CREATE,          "ALLOW"                 },
    {REASON_MOCK,                    "ALLOW"                 },
    {REASON_APPROVAL_CONFIRMED,      "ALLOW"                 },
    {REASON_APPROVAL_REJECTED,       "DENY_POLICY_VIOLATION" },
    {REASON_APPROVAL_FAILED,         "DENY_APPROVAL_TIMEOUT" },
    {REASON_POLICY_ASK,              "DENY_APPROVAL_REQUIRED"},
    {REASON_NOT_APPROVED,            "DENY_APPROVAL_REQUIRED"},
    {REASON_APPROVAL_TARGET_CHANGED, "DENY_APPROVAL_REQUIRED"},
    {REASON_PDP_ASK,                 "DENY_APPROVAL_REQUIRED"},
    {REASON_BUDGET_EXCEEDED,         "DENY_BUDGET_EXCEEDED"  },
    {REASON_BUNDLE_UNTRUSTED,        "DENY_TRUST_KEY_REVOKED"},
    {REASON_REQUEST_INVALID,         "DENY_SCHEMA_MISMATCH"  },
    {REASON_ARGS_HASH_MISMATCH,      "DENY_SCHEMA_MISMATCH"  },
    {REASON_SANDBOX_UNKNOWN,         "DENY_TOOL_NOT_FOUND"   },
    {REASON_COMMAND_NOT_FOUND,       "DENY_TOOL_NOT_FOUND"   },
    {REASON_SANDBOX_FAILED,          "DENY_SANDBOX_TRAP"     },
    {REASON_SANDBOX_DRIFT,           "DENY_SANDBOX_TRAP"     },
    {REASON_PREFLIGHT_ISOLATION,     "DENY_SANDBOX_TRAP"     },
    {REASON_PREFLIGHT_MOUNT_POLICY,  "DENY_SANDBOX_TRAP"     },
    {REASON_PREFLIGHT_EGRESS_POLICY, "DENY_SANDBOX_TRAP"     },
    {REASON_LIMIT_TIME,              "DENY_TIME_LIMIT"       },
    {REASON_LIMIT_MEMORY,            "DENY_MEMORY_LIMIT"     },
    {REASON_DECISION_ERROR,          "ERROR_INTERNAL"        },
    {REASON_PDP_ERROR,               "ERROR_INTERNAL"        },
    {REASON_BUDGET_ERROR,            "ERROR_INTERNAL"        },
    {REASON_RUN_ABANDONED,           "ERROR_INTERNAL"        },
    {REASON_UPSTREAM_MISSING,        "ERROR_INTERNAL"        },
    {REASON_UPSTREAM_FAILED,         "ERROR_INTERNAL"        },
};

const char *helm_reason(const char *code)
{
    if (!*code)
        return "ALLOW";
    for (size_t i = 0; i < COUNT(words); i++)
        if (strcmp(reason_code(words[i].reason), code) == 0)
            return words[i].helm;
    return "DENY_POLICY_VIOLATION";
}

const char *helm_verdict_reason(const struct verdict *verdict)
{
    const char *reason = helm_reason(reason_code(verdict->reason));

    if (verdict->kind == VERDICT_ALLOW)
        return "ALLOW";
    return strcmp(reason, "ALLOW") == 0 ? "DENY_POLICY_VIOLATION" : reason;
}

const char *helm_sentence(const struct verdict *verdict)
{
    return verdict->text ? verdict->text : reason_text(verdict->reason);
}

void helm_session(const struct call *call, struct run *run)
{
    (void)snprintf(run->session_id, sizeof run->session_id, "%s",
                   *call->caller.token ? call->caller.token : "peer");
}

/* Only two words of HELM's clients mean no; every refusal is the first of them. */
static const char *status_word(const struct run *run)
{
    return run->verdict.kind == VERDICT_ALLOW ? "APPROVED" : "DENIED";
}

void helm_headers_begun(struct call *call, const struct run *run)
{
    const struct receipt_ref *receipt = run->closing.id[0] ? &run->closing : &run->intent;
    char number[32];

    call_header(call, "x-helm-receipt-id", receipt->id);
    call_header(call, HELM_STATUS, status_word(run));
    (void)snprintf(number, sizeof number, "%llu", (unsigned long long)receipt->lamport_clock);
    call_header(call, "x-helm-lamport-clock", number);
    call_header(call, "x-helm-reason-code", helm_verdict_reason(&run->verdict));
    call_header(call, "x-helm-decision-id", run->decision_id);
    call_header(call, "x-helm-proofgraph-node", receipt->hash);
    call_header(call, "x-helm-signature", receipt->signature);
}

void helm_headers(struct call *call, const struct run *run, size_t tool_calls)
{
    char hash[HASH_TEXT_BYTES], number[32];

    helm_headers_begun(call, run);
    hash_text_of(buf_str(&call->answer), hash);
    call_header(call, "x-helm-output-hash", hash);
    (void)snprintf(number, sizeof number, "%zu", tool_calls);
    call_header(call, "x-helm-tool-calls", number);
}

int helm_fail(struct call *call, int status, const struct err *err, const char *reason,
              const struct run *run, struct err *out)
{
    struct json *details = run ? json_object(&call->mem) : NULL;
    struct json *answer;

    if (run) {
        json_put_text(&call->mem, details, "receipt_id",
                      run->closing.id[0] ? run->closing.id : run->intent.id);
        json_put_text(&call->mem, details, "reason_code", reason_code(run->verdict.reason));
    }
    answer = view_error(&call->mem, err, REASON_NONE, details);
    json_put_text(&call->mem, answer->first, "reason_code", reason);
    if (call_answer(call, status, answer, out) < 0)
        return -1;
    call->failed = true;
    if (run)
        helm_headers(call, run, 0);
    else
        call_header(call, "x-helm-reason-code", reason);
    return 0;
}
