/* SPDX-License-Identifier: Apache-2.0 */
#include "surface/view/view.h"

#include "lib/json/json.h"
#include "model/run.h"

/* Keys of the object that bind the run to its sandbox, in the order of the receipt's preimage. */
static void put_posture(struct arena *mem, struct json *object, const struct run *run)
{
    /* What was observed, or, when nothing stood, what was planned. */
    const struct posture *posture = run->observed.preimage_hash[0] ? &run->observed : &run->planned;

    json_put_text(mem, object, "provider", run->action.provider);
    json_put_text(mem, object, "provider_version", posture->provider_version);
    json_put_text(mem, object, "sandbox_spec_hash", posture->sandbox_spec_hash);
    json_put_text(mem, object, "image_digest", posture->image_digest);
    json_put_text(mem, object, "mounts_hash", posture->mounts_hash);
    json_put_text(mem, object, "egress_policy_hash", posture->egress_policy_hash);
    json_put_text(mem, object, "resource_limits_hash", posture->resource_limits_hash);
    json_put_text(mem, object, "preflight_hash", posture->preimage_hash);
    json_put_text(mem, object, "policy_hash", run->policy_hash);
}

static void put_limits(struct arena *mem, struct json *object, const struct run *run)
{
    struct json *limits = json_object(mem);

    for (enum limit_kind kind = 0; kind < LIMIT_COUNT; kind++) {
        const struct limit *limit = &run->plan.limits.of[kind];
        struct json *entry = json_object(mem);

        json_put_int(mem, entry, "value", (int64_t)limit->value);
        json_put_text(mem, entry, "means", limit_means_name(limit->means));
        json_put_text(mem, entry, "origin", limit_origin_name(limit->origin));
        json_put(limits, limit_name(kind), entry);
    }
    json_put(object, "limits", limits);
}

static void put_egress(struct arena *mem, struct json *object, const struct egress_counts *counts)
{
    struct json *egress = json_object(mem);

    json_put_int(mem, egress, "requests", (int64_t)counts->requests);
    json_put_int(mem, egress, "refused", (int64_t)counts->refused);
    json_put_int(mem, egress, "bytes_out", (int64_t)counts->bytes_out);
    json_put_int(mem, egress, "bytes_in", (int64_t)counts->bytes_in);
    if (counts->lost)
        json_put_bool(mem, egress, "lost", true);
    if (counts->spent)
        json_put_bool(mem, egress, "spent", true);
    json_put(object, "egress", egress);
}

static void put_outcome(struct arena *mem, struct json *object, const struct run *run)
{
    const struct outcome *outcome = &run->outcome;
    bool denied = run->verdict.kind != VERDICT_ALLOW;

    json_put(object, "exit_code",
             denied || outcome->signal ? json_null(mem) : json_int(mem, outcome->exit_code));
    json_put(object, "signal", outcome->signal ? json_int(mem, outcome->signal) : json_null(mem));
    json_put_bool(mem, object, "timed_out", outcome->timed_out);
    json_put_bool(mem, object, "oom_killed", outcome->oom_killed);
    json_put_bytes(mem, object, "stdout", outcome->out.kept);
    json_put_bytes(mem, object, "stderr", outcome->err.kept);
    json_put_int(mem, object, "stdout_bytes", (int64_t)outcome->out.bytes);
    json_put_int(mem, object, "stderr_bytes", (int64_t)outcome->err.bytes);
    json_put_bool(mem, object, "truncated", outcome->out.truncated || outcome->err.truncated);
    json_put_text(mem, object, "stdout_hash", outcome->out.hash);
    json_put_text(mem, object, "stderr_hash", outcome->err.hash);
    json_put_text(mem, object, "output_hash", outcome->output_hash);
    json_put_int(mem, object, "duration_ms", (int64_t)(outcome->duration_us / 1000U));
    json_put_int(mem, object, "cpu_us", (int64_t)outcome->cpu_us);
    json_put_int(mem, object, "peak_memory_bytes", (int64_t)outcome->peak_memory_bytes);
    json_put_int(mem, object, "disk_read_bytes", (int64_t)outcome->read_bytes);
    json_put_int(mem, object, "disk_written_bytes", (int64_t)outcome->written_bytes);
    put_egress(mem, object, &outcome->egress);
}

static void put_protected(struct arena *mem, struct json *object,
                          const struct protected_changes *changes)
{
    static const char *const kinds[] = {
        [PROTECTED_NEW] = "new", [PROTECTED_CHANGED] = "changed", [PROTECTED_REMOVED] = "removed"};
    struct json *list = json_array(mem);

    if (!changes->looked)
        return;
    for (size_t i = 0; i < changes->n; i++) {
        struct json *one = json_object(mem);

        json_put_bytes(mem, one, "path", str_of(changes->of[i].path));
        json_put_text(mem, one, "change", kinds[changes->of[i].kind]);
        json_put_text(mem, one, "hash", changes->of[i].hash);
        json_push(list, one);
    }
    json_put(object, "protected_changes", list);
    json_put_int(mem, object, "protected_changes_count", (int64_t)changes->count);
    json_put_bool(mem, object, "protected_complete", !changes->incomplete);
}

struct json *view_run(struct arena *mem, const struct run *run)
{
    struct json *object = json_object(mem);
    bool denied = run->verdict.kind != VERDICT_ALLOW;
    enum reason reason =
        denied || run->outcome.reason == REASON_NONE ? run->verdict.reason : run->outcome.reason;
    const char *text = denied                                               ? run->verdict.text
                       : run->outcome.egress.spent && !run->outcome.failure ? run->budget.egress_by
                                                                            : run->outcome.failure;
    const struct receipt_ref *last = run->closing.id[0] ? &run->closing : &run->intent;

    json_put_text(mem, object, "verdict", verdict_name(run->verdict.kind));
    json_put_text(mem, object, "reason_code", reason_code(reason));
    json_put_bytes(mem, object, "reason", str_of(text ? text : reason_text(reason)));
    json_put_text(mem, object, "outcome_reason_code", reason_code(run->outcome.reason));
    if (run->verdict.layer)
        json_put_text(mem, object, "policy_layer", run->verdict.layer);
    if (run->verdict.rule)
        json_put_bytes(mem, object, "rule", str_of(run->verdict.rule));
    if (run->effect.id) {
        json_put_text(mem, object, "effect_class", run->effect.id);
        json_put_text(mem, object, "effect_risk", arena_printf(mem, "E%u", run->effect.risk));
    }
    if (run->approval.id)
        json_put_text(mem, object, "approval_id", run->approval.id);
    json_put_text(mem, object, "receipt_id", last->id);
    json_put_text(mem, object, "intent_receipt_id", run->intent.id);
    json_put_text(mem, object, "decision_id", run->decision_id);
    json_put_text(mem, object, "run_id", run->id);
    put_posture(mem, object, run);
    put_limits(mem, object, run);
    put_outcome(mem, object, run);
    put_protected(mem, object, &run->outcome.protected_changes);
    json_put_int(mem, object, "lamport_clock", (int64_t)last->lamport_clock);
    json_put_text(mem, object, "timestamp", last->timestamp);
    return object;
}

struct json *view_detached(struct arena *mem, const struct run *run)
{
    struct json *object = json_object(mem);

    json_put_text(mem, object, "exec_id", run->id);
    json_put_text(mem, object, "sandbox_id", run->sandbox_id);
    json_put_text(mem, object, "verdict", verdict_name(run->verdict.kind));
    json_put_text(mem, object, "intent_receipt_id", run->intent.id);
    json_put_text(mem, object, "decision_id", run->decision_id);
    put_posture(mem, object, run);
    return object;
}

void view_put_done(struct arena *mem, struct json *object, const struct run *run)
{
    bool failed = run->outcome.reason != REASON_NONE;

    json_put_text(mem, object, "action", action_name(run->action.kind));
    json_put_bool(mem, object, "done", !failed);
    if (failed)
        json_put_bytes(mem, object, "failure", str_of(run->outcome.failure));
    put_protected(mem, object, &run->outcome.protected_changes);
    json_put_text(mem, object, "receipt_id", run->closing.id);
    json_put_int(mem, object, "duration_us", (int64_t)run->outcome.duration_us);
}

struct json *view_change(struct arena *mem, const struct run *run)
{
    struct json *object = json_object(mem);

    json_put_text(mem, object, "sandbox_id", run->sandbox_id);
    view_put_done(mem, object, run);
    return object;
}
