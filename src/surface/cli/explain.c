/* SPDX-License-Identifier: Apache-2.0 */

/* brig sandbox explain, recreate: what a kept sandbox was made of, told and made again. */

#include "surface/cli/sandbox.h"

#include "lib/json/json.h"
#include "model/run.h"
#include "surface/view/view.h"

#include <string.h>

static void print_words(const struct invocation *inv, const char *title, struct words words)
{
    for (size_t i = 0; i < words.n; i++) {
        (void)fprintf(inv->out, "%-10s ", i == 0 ? title : "");
        print_escaped(inv->out, str_of(words.v[i]));
        (void)fputc('\n', inv->out);
    }
}

static void print_limits(const struct invocation *inv, const struct run *run)
{
    for (enum limit_kind kind = 0; kind < LIMIT_COUNT; kind++) {
        const struct limit *limit = &run->plan.limits.of[kind];

        (void)fprintf(inv->out, "%-10s %s: %llu %s, held by %s, from %s\n",
                      kind == 0 ? "limits" : "", limit_name(kind), (unsigned long long)limit->value,
                      limit_unit(kind), limit_means_name(limit->means),
                      limit_origin_name(limit->origin));
    }
}

static void print_protected(const struct invocation *inv, const struct run *run)
{
    bool first = true;

    if (run->plan.allow_protected)
        (void)fprintf(inv->out, "%-10s nothing: it was allowed to change all of it\n", "protected");
    for (size_t i = 0; i < run->plan.mount_n; i++) {
        const struct plan_mount *mount = &run->plan.mounts[i];

        if (mount->kind != MOUNT_PROTECTED || mount->access != MOUNT_RO)
            continue;
        (void)fprintf(inv->out, "%-10s ", first ? "protected" : "");
        print_escaped(inv->out, str_of(mount->target));
        (void)fprintf(inv->out, ": %s\n", mount->why);
        first = false;
    }
}

static void print_egress(struct invocation *inv, const struct view_explanation *e)
{
    const char *network = e->state->network ? e->state->network : "none";

    (void)fprintf(inv->out, "%-10s ", "egress");
    if (strcmp(network, "lost") == 0)
        (void)fprintf(inv->out, "lost: the program that held its rules has ended, so there is no "
                                "network; recreate it\n");
    else if (e->config->network_hash)
        (void)fprintf(inv->out, "by its policy's network rules, %s\n", e->config->network_hash);
    else
        (void)fprintf(inv->out, "none\n");
}

static void print_explanation(struct invocation *inv, const struct view_explanation *e)
{
    const struct request *request = &e->config->request;

    (void)fprintf(inv->out, "%-10s %s, %s\n", "sandbox", e->config->id, kept_state_name(e->state));
    if (*request->name)
        print_words(inv, "name", (struct words){&request->name, 1});
    print_words(inv, "labels", request->labels);
    (void)fprintf(inv->out, "%-10s %s by %s, scope %s\n", "made", e->config->created_at,
                  request->principal, request->scope ? request->scope : "session");
    (void)fprintf(inv->out, "%-10s %s%s\n", "ends", view_expiry(&inv->mem, e->state->left_ms),
                  request->lifetime.idle_ms ? ", or earlier when idle" : "");
    (void)fprintf(inv->out, "%-10s %s, %s\n", "image", request->image, e->config->image_digest);
    (void)fprintf(inv->out, "%-10s ", "user");
    print_escaped(inv->out, str_of(e->run->plan.user_name));
    (void)fprintf(inv->out, " (%u:%u), from %s\n", e->run->plan.inside_uid, e->run->plan.inside_gid,
                  view_user_origin(e));
    if (request->workspace)
        print_words(inv, "workspace", (struct words){&request->workspace, 1});
    print_words(inv, "mounts", request->mounts);
    print_protected(inv, e->run);
    print_limits(inv, e->run);
    print_egress(inv, e);
    (void)fprintf(inv->out, "%-10s %s\n", "sockets",
                  !e->run->plan.sockets_none        ? "any"
                  : e->config->request.sockets_none ? "none (--sockets none)"
                                                    : "none (the profile's sockets: none)");
    (void)fprintf(inv->out, "%-10s %s, %s\n", "policy",
                  request->policy_text ? "kept with it" : "built in: run anything, no network",
                  e->config->policy_hash);
    (void)fprintf(inv->out, "%-10s %s\n", "drift",
                  e->drift ? "yes: this machine would make another one today; recreate it"
                           : "none");
    for (size_t i = 0; i < view_refusal_n; i++)
        (void)fprintf(inv->out, "%-10s %s\n%-10s   to change it: %s\n", i == 0 ? "no" : "",
                      view_refusals[i].what, "", view_refusals[i].change);
}

/* The subject makes the call open the policy and the profile the sandbox was made with. */
static int open_call(struct invocation *inv, struct sandbox_call *call, int *status)
{
    inv->subject = inv->operands.v[0];
    return sandbox_call_open(inv, call, status);
}

struct looked {
    struct config config;
    struct kept_state state;
    struct view_explanation explanation;
};

static int look(struct invocation *inv, struct sandbox_call *call, struct run *run,
                struct looked *out, struct err *err)
{
    struct config today;

    if (sandbox_look(inv, call->govern, call->sandbox, &out->config, &out->state, err) < 0 ||
        govern_rehearse(call->govern, &out->config.request, run, &today, err) < 0)
        return -1;
    execute_forget(run);
    out->explanation = (struct view_explanation){
        .config = &out->config,
        .state = &out->state,
        .run = run,
        .drift = !today.id || strcmp(today.preimage_hash, out->config.preimage_hash) != 0,
    };
    return 0;
}

int run_sandbox_explain(struct invocation *inv)
{
    AUTO_SANDBOX_CALL struct sandbox_call call = {0};
    struct looked looked;
    struct run run;
    struct err err;
    int status;

    if (open_call(inv, &call, &status) < 0)
        return status;
    run_init(&run);
    status = 0;
    if (look(inv, &call, &run, &looked, &err) < 0)
        status = cli_error(inv, &err);
    else if (inv->json)
        status = cli_json(inv, view_explain(&inv->mem, &looked.explanation));
    else
        print_explanation(inv, &looked.explanation);
    run_done(&run);
    return status;
}

/* ---- recreate ---- */

static int destroy(struct sandbox_call *call, struct err *err)
{
    struct request request = call->request;
    struct run run;
    int failed;

    request.kind = ACTION_DESTROY;
    request.sandbox = call->sandbox;
    run_init(&run);
    failed = govern_change(call->govern, &request, &run, err);
    if (!failed && run.outcome.reason != REASON_NONE)
        failed = err_set(err, ERR_UNAVAILABLE, "destroying %s: %.400s", call->sandbox,
                         run.outcome.failure ? run.outcome.failure : "it failed");
    run_done(&run);
    return failed;
}

static int report(struct invocation *inv, struct sandbox_call *call, const struct run *run,
                  struct err *err)
{
    struct json *object;

    if (!inv->json) {
        (void)fprintf(inv->err, "%s: %s is gone, %s is made as it was\n", inv->program,
                      call->sandbox, run->sandbox_id);
        return sandbox_print(inv, call->govern, run->sandbox_id, err);
    }
    object = json_object(&inv->mem);
    json_put_text(&inv->mem, object, "old_sandbox_id", call->sandbox);
    json_put_text(&inv->mem, object, "sandbox_id", run->sandbox_id);
    json_put_text(&inv->mem, object, "receipt_id", run->closing.id);
    return cli_json(inv, object) == 0 ? 0 : err_set(err, ERR_OS, "writing the answer");
}

int run_sandbox_recreate(struct invocation *inv)
{
    AUTO_SANDBOX_CALL struct sandbox_call call = {0};
    struct looked looked;
    struct run today, run;
    struct err err;
    int status;

    if (open_call(inv, &call, &status) < 0)
        return status;
    run_init(&today);
    run_init(&run);
    if (look(inv, &call, &today, &looked, &err) < 0)
        status = cli_error(inv, &err);
    else if (today.verdict.kind != VERDICT_ALLOW)
        status = sandbox_refused(inv, &today);
    else if (destroy(&call, &err) < 0 ||
             govern_create(call.govern, &looked.config.request, &run, &err) < 0)
        status = cli_error(inv, &err);
    else if (run.verdict.kind != VERDICT_ALLOW || run.outcome.reason == REASON_SANDBOX_FAILED)
        status = sandbox_refused(inv, &run);
    else
        status = report(inv, &call, &run, &err) < 0 ? cli_error(inv, &err) : 0;
    run_done(&run);
    run_done(&today);
    return status;
}
