/* SPDX-License-Identifier: Apache-2.0 */

/* brig sandbox preflight: builds the sandbox a run would get, runs nothing in it, and shows each
 * check with what was expected and what was seen. */

#include "surface/cli/sandbox.h"

#include "lib/json/json.h"
#include "model/run.h"

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

static struct json *result_json(struct invocation *inv, const struct run *run)
{
    struct arena *mem = &inv->mem;
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

static void print_checks(const struct invocation *inv, const struct run *run)
{
    for (size_t i = 0; i < run->checks.n; i++) {
        const struct check *check = &run->checks.of[i];

        (void)fprintf(inv->out, "%-4s  %-26s %s", check->passed ? "pass" : "FAIL", check->name,
                      check->observed);
        if (!check->passed)
            (void)fprintf(inv->out, "\n      %-26s %s (%s)", "expected", check->expected,
                          reason_code(check->reason));
        (void)fputc('\n', inv->out);
    }
    for (enum limit_kind kind = 0; kind < LIMIT_COUNT; kind++) {
        const struct limit *limit = &run->plan.limits.of[kind];

        (void)fprintf(inv->out, "      %-26s %llu, held by %s\n", limit_name(kind),
                      (unsigned long long)limit->value, limit_means_name(limit->means));
    }
}

int run_sandbox_preflight(struct invocation *inv)
{
    AUTO_SANDBOX_CALL struct sandbox_call call = {0};
    struct run run;
    struct err err;
    int status;

    if (sandbox_call_open(inv, &call, &status) < 0)
        return status;
    run_init(&run);
    if (govern_preflight(call.govern, &call.request, &run, &err) < 0) {
        status = cli_error(inv, &err);
    } else {
        status = run.verdict.kind == VERDICT_ALLOW ? 0 : cli_status_denied(inv);
        if (inv->json) {
            if (cli_json(inv, result_json(inv, &run)) != 0)
                status = cli_status(inv, ERR_OS);
        } else {
            print_checks(inv, &run);
            sandbox_closing_line(inv, &run);
        }
    }
    run_done(&run);
    return status;
}
