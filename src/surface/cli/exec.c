/* SPDX-License-Identifier: Apache-2.0 */

/* brig sandbox exec: one governed run, from the command line to its exit status. */

#include "surface/cli/sandbox.h"

#include "lib/json/json.h"
#include "model/run.h"

#include <string.h>
#include <unistd.h>

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
}

static void put_protected(struct arena *mem, struct json *object,
                          const struct protected_changes *changes)
{
    struct json *list = json_array(mem);

    if (!changes->looked)
        return;
    for (size_t i = 0; i < changes->n; i++) {
        struct json *one = json_object(mem);

        json_put_bytes(mem, one, "path", str_of(changes->of[i].path));
        json_put_text(mem, one, "hash", changes->of[i].hash);
        json_push(list, one);
    }
    json_put(object, "protected_changes", list);
    json_put_int(mem, object, "protected_changes_count", (int64_t)changes->count);
    json_put_bool(mem, object, "protected_complete", !changes->incomplete);
}

static struct json *result_json(struct invocation *inv, const struct run *run)
{
    struct arena *mem = &inv->mem;
    struct json *object = json_object(mem);
    bool denied = run->verdict.kind != VERDICT_ALLOW;
    enum reason reason =
        denied || run->outcome.reason == REASON_NONE ? run->verdict.reason : run->outcome.reason;
    const char *text = denied ? run->verdict.text : run->outcome.failure;
    const struct receipt_ref *last = run->closing.id[0] ? &run->closing : &run->intent;

    json_put_text(mem, object, "verdict", verdict_name(run->verdict.kind));
    json_put_text(mem, object, "reason_code", reason_code(reason));
    json_put_bytes(mem, object, "reason", str_of(text ? text : reason_text(reason)));
    if (run->verdict.rule)
        json_put_bytes(mem, object, "rule", str_of(run->verdict.rule));
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

void terminal_raw(struct raw_terminal *terminal)
{
    struct termios raw;

    if (tcgetattr(STDIN_FILENO, &terminal->before) < 0)
        return; /* not a terminal: the command gets one all the same */
    raw = terminal->before;
    cfmakeraw(&raw);
    terminal->changed = tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
}

void terminal_restore(const struct raw_terminal *terminal)
{
    if (terminal->changed)
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &terminal->before);
}

/* What belongs to the sandbox is as it was made; what belongs to a kept one makes no sense for
 * one that ends with its command. */
static int check_flags(const struct invocation *inv, struct err *err)
{
    static const char *const of_sandbox[] = {
        "--provider", "--profile",   "--image",          "--policy", "--cpu",
        "--memory",   "--pids",      "--disk",           "--inodes", "--mount",
        "--network",  "--workspace", "--allow-protected"};

    for (size_t i = 0; inv->subject && i < inv->value_n; i++)
        for (size_t j = 0; j < COUNT(of_sandbox); j++)
            if (strcmp(inv->values[i].option->name, of_sandbox[j]) == 0)
                return err_set(err, ERR_INVALID,
                               "%s belongs to the sandbox, which is as it was made; make another "
                               "one with \"%s sandbox create %s ...\"",
                               of_sandbox[j], inv->program, of_sandbox[j]);
    if (!inv->subject && (option_flag(inv, "--keep") || option_flag(inv, "--detach")))
        return err_set(err, ERR_INVALID, "%s is for a kept sandbox; this one ends with its command",
                       option_flag(inv, "--keep") ? "--keep" : "--detach");
    return 0;
}

static int run_in_kept(struct sandbox_call *call, const struct streams *streams, struct run *run,
                       struct err *err)
{
    call->request.sandbox = call->sandbox;
    return govern_exec(call->govern, &call->request, streams, run, err);
}

/* It runs on; what there is to say of its end comes with its outcome. */
static int print_detached(struct invocation *inv, const struct run *run)
{
    struct json *object = json_object(&inv->mem);

    if (!inv->json) {
        (void)fprintf(inv->out, "%s\n", run->id);
        return 0;
    }
    json_put_text(&inv->mem, object, "exec_id", run->id);
    json_put_text(&inv->mem, object, "sandbox_id", run->sandbox_id);
    json_put_text(&inv->mem, object, "verdict", verdict_name(run->verdict.kind));
    json_put_text(&inv->mem, object, "intent_receipt_id", run->intent.id);
    json_put_text(&inv->mem, object, "decision_id", run->decision_id);
    put_posture(&inv->mem, object, run);
    return cli_json(inv, object);
}

int run_sandbox_exec(struct invocation *inv)
{
    AUTO_SANDBOX_CALL struct sandbox_call call = {0};
    struct streams streams = {.in_fd = STDIN_FILENO, .out_fd = -1, .err_fd = -1};
    struct raw_terminal terminal = {.changed = false};
    struct run run;
    struct err err;
    int status;
    int failed;

    if (check_flags(inv, &err) < 0)
        return cli_error(inv, &err);
    if (sandbox_call_open(inv, &call, &status) < 0)
        return status;
    call.request.stdin_stream = true;
    streams.keep = inv->json;
    if (!inv->json) {
        streams.out_fd = STDOUT_FILENO;
        streams.err_fd = STDERR_FILENO;
    }
    if (option_flag(inv, "--detach")) {
        call.request.stdin_stream = false;
        call.request.detach = true;
        streams.in_fd = -1;
    }
    run_init(&run);
    if (call.request.tty && streams.in_fd >= 0)
        terminal_raw(&terminal);
    failed = inv->subject ? run_in_kept(&call, &streams, &run, &err)
                          : govern_run(call.govern, &call.request, &streams, &run, &err);
    terminal_restore(&terminal);
    if (failed) {
        status = cli_error(inv, &err);
    } else if (run.outcome.detached) {
        status = print_detached(inv, &run);
    } else {
        status = sandbox_status(inv, &run);
        sandbox_warn_protected(inv, &run);
        if (inv->json && cli_json(inv, result_json(inv, &run)) != 0)
            status = cli_status(inv, ERR_OS);
        /* Quiet is for those who want the command's words only; a denial has no others. */
        else if (!inv->json && (!option_flag(inv, "--quiet") || run.verdict.kind != VERDICT_ALLOW))
            sandbox_closing_line(inv, &run);
    }
    run_done(&run);
    return status;
}
