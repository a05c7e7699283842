/* SPDX-License-Identifier: Apache-2.0 */

/* Before anything runs: whether a policy is one, and whether a sandbox is what it should be. */

#include "surface/view/view.h"

#include "flow/decide/decide.h"
#include "lib/json/json.h"
#include "model/run.h"

struct json *view_policy(struct arena *mem, const struct policy *policy)
{
    struct json *entry = json_object(mem);

    json_put_bool(mem, entry, "valid", policy != NULL);
    if (!policy)
        return entry;
    json_put_text(mem, entry, "policy_hash", policy_hash(policy));
    json_put_int(mem, entry, "rules", (int64_t)policy_rule_count(policy));
    if (policy_not_enforceable(policy))
        json_put_text(mem, entry, "not_enforceable", policy_not_enforceable(policy));
    return entry;
}

struct json *view_hindrances(struct arena *mem, const struct verdict *refusals, size_t n)
{
    struct json *list = json_array(mem);

    for (size_t i = 0; i < n; i++) {
        const struct verdict *verdict = &refusals[i];
        struct json *one = json_object(mem);

        json_put_text(mem, one, "reason_code", reason_code(verdict->reason));
        json_put_bytes(mem, one, "reason",
                       str_of(verdict->text ? verdict->text : reason_text(verdict->reason)));
        if (verdict->layer)
            json_put_text(mem, one, "policy_layer", verdict->layer);
        json_push(list, one);
    }
    return list;
}

struct json *view_policy_change(struct arena *mem, const struct run *run)
{
    struct json *object = json_object(mem);

    json_put_text(mem, object, "policy_hash", run->outcome.policy.hash);
    json_put_bool(mem, object, "standing", run->outcome.policy.is_standing);
    json_put_text(mem, object, "receipt_id", run->closing.id);
    if (!run->outcome.policy.network_hash)
        return object;
    json_put_text(mem, object, "sandbox_id", run->sandbox_id);
    json_put_text(mem, object, "network_hash", run->outcome.policy.network_hash);
    json_put_int(mem, object, "entries_added", (int64_t)run->outcome.policy.added);
    json_put_int(mem, object, "entries_changed", (int64_t)run->outcome.policy.changed);
    json_put_int(mem, object, "entries_removed", (int64_t)run->outcome.policy.removed);
    return object;
}

struct json *view_policy_error(struct arena *mem, unsigned line, unsigned column,
                               const struct err *err)
{
    struct json *error = json_object(mem);

    json_put_text(mem, error, "code", err_name(err->code));
    json_put_bytes(mem, error, "message", str_of(err->text));
    if (line) {
        json_put_int(mem, error, "line", line);
        json_put_int(mem, error, "column", column);
    }
    return error;
}

static struct json *checks_json(struct arena *mem, const struct run *run)
{
    struct json *list = json_array(mem);

    for (size_t i = 0; i < run->checks.n; i++) {
        const struct check *check = &run->checks.of[i];
        struct json *entry = json_object(mem);

        json_put_text(mem, entry, "name", check->name);
        json_put_bytes(mem, entry, "expected", str_of(check->expected));
        json_put_bytes(mem, entry, "observed", str_of(check->observed));
        json_put_text(mem, entry, "result", check->passed ? "pass" : "fail");
        json_put_text(mem, entry, "reason_code", reason_code(check->reason));
        json_push(list, entry);
    }
    return list;
}

struct json *view_preflight(struct arena *mem, const struct run *run)
{
    struct json *object = json_object(mem);
    bool passed = run->verdict.kind == VERDICT_ALLOW;
    const struct posture *posture = &run->observed;

    json_put_text(mem, object, "provider", run->action.provider);
    json_put_bool(mem, object, "pass", passed);
    json_put_text(mem, object, "verdict", verdict_name(run->verdict.kind));
    json_put_text(mem, object, "reason_code", reason_code(run->verdict.reason));
    json_put_bytes(
        mem, object, "reason",
        str_of(run->verdict.text ? run->verdict.text : reason_text(run->verdict.reason)));
    json_put_text(mem, object, "evidence",
                  posture->evidence == EVIDENCE_OBSERVED  ? "observed"
                  : posture->evidence == EVIDENCE_CLAIMED ? "claimed"
                                                          : "none");
    json_put_text(mem, object, "provider_version", posture->provider_version);
    json_put_text(mem, object, "sandbox_spec_hash", posture->sandbox_spec_hash);
    json_put_text(mem, object, "image_digest", posture->image_digest);
    json_put_text(mem, object, "mounts_hash", posture->mounts_hash);
    json_put_text(mem, object, "egress_policy_hash", posture->egress_policy_hash);
    json_put_text(mem, object, "resource_limits_hash", posture->resource_limits_hash);
    json_put_text(mem, object, "preflight_hash", posture->preimage_hash);
    json_put(object, "checks", checks_json(mem, run));
    json_put_text(mem, object, "receipt_id", run->closing.id[0] ? run->closing.id : run->intent.id);
    return object;
}
