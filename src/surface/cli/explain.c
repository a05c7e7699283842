/* SPDX-License-Identifier: Apache-2.0 */

/* brig sandbox explain, recreate: what a kept sandbox was made of, told and made again. */

#include "surface/cli/sandbox.h"

#include "flow/equip/equip.h"
#include "lib/json/json.h"
#include "model/run.h"
#include "surface/view/view.h"

#include <string.h>

/* What it cannot do, and what would change that. */
static const struct {
    const char *what;
    const char *change;
} refusals[] = {
    {"no network but its own loopback",
     "nothing in this version: network rules cannot be enforced yet"                                                                                             },
    {"no files of this machine but system directories, read-only",
     "sandbox create --workspace DIR[:rw], --mount SRC:DST[:rw]"                                                                                                 },
    {"no changes to files that tools of this machine run by themselves, below what may be written",
     "sandbox create --allow-protected; the profile's allow_protected: true"                                                                                     },
    {"no variables of your environment",
     "sandbox create --env NAME, or sandbox exec ID --env NAME"                                                                                                  },
    {"no commands the policy does not allow",                                                       "sandbox create --policy FILE: commands, default"            },
    {"no more than its limits",
     "sandbox create --memory, --cpu, --pids, --disk, --inodes; the policy's and the profile's limits"                                                           },
    {"no life beyond its time",                                                                     "sandbox extend ID; sandbox create --ttl, --idle, --lifetime"},
    {"no root, no capabilities, no set-id programs, no new privileges",                             "nothing: never"                                             },
    {"no other user's processes, files or sockets",                                                 "nothing: never"                                             },
};

struct explanation {
    struct config config;
    struct kept_state state;
    const struct run *run; /* as it would be made today */
    bool drift;
};

static struct json *limits_json(struct arena *mem, const struct run *run)
{
    struct json *list = json_object(mem);

    for (enum limit_kind kind = 0; kind < LIMIT_COUNT; kind++) {
        const struct limit *limit = &run->plan.limits.of[kind];
        struct json *entry = json_object(mem);

        json_put_int(mem, entry, "value", (int64_t)limit->value);
        json_put_text(mem, entry, "unit", limit_unit(kind));
        json_put_text(mem, entry, "means", limit_means_name(limit->means));
        json_put_text(mem, entry, "origin", limit_origin_name(limit->origin));
        if (run->offer.why[kind])
            json_put_text(mem, entry, "why", run->offer.why[kind]);
        json_put(list, limit_name(kind), entry);
    }
    return list;
}

static struct json *refusals_json(struct arena *mem)
{
    struct json *list = json_array(mem);

    for (size_t i = 0; i < COUNT(refusals); i++) {
        struct json *entry = json_object(mem);

        json_put_text(mem, entry, "what", refusals[i].what);
        json_put_text(mem, entry, "change", refusals[i].change);
        json_push(list, entry);
    }
    return list;
}

/* What is protected in this one, and why; and by which names it is found. */
static struct json *protected_json(struct arena *mem, const struct run *run)
{
    struct json *object = json_object(mem);
    struct json *places = json_array(mem);
    struct json *names = json_array(mem);
    size_t n = 0;
    const struct protected_rule *rules = equip_protected_rules(&n);

    for (size_t i = 0; i < run->plan.mount_n; i++) {
        const struct plan_mount *mount = &run->plan.mounts[i];
        struct json *entry = json_object(mem);

        if (mount->kind != MOUNT_PROTECTED || mount->access != MOUNT_RO)
            continue;
        json_put_bytes(mem, entry, "path", str_of(mount->target));
        json_put_text(mem, entry, "why", mount->why);
        json_push(places, entry);
    }
    for (size_t i = 0; i < n; i++) {
        struct json *entry = json_object(mem);

        json_put_text(mem, entry, "name",
                      rules[i].holder ? arena_printf(mem, "%s/%s", rules[i].holder, rules[i].name)
                                      : rules[i].name);
        json_put_text(mem, entry, "why", rules[i].why);
        json_push(names, entry);
    }
    json_put_bool(mem, object, "allowed", run->plan.allow_protected);
    json_put(object, "names", names);
    json_put(object, "places", places);
    return object;
}

/* Who wanted it so; the policy comes before the image, and contradicts nobody who asked. */
static const char *user_origin(const struct explanation *e)
{
    const struct demand *demand = &e->run->demand;

    if (e->config.request.user)
        return "--user";
    if (demand->run_as_uid || demand->run_as_gid)
        return "the policy's process section";
    return plan_is_usual_user(&e->run->plan) ? "the default" : "USER of the image";
}

static struct json *user_json(struct arena *mem, const struct explanation *e)
{
    struct json *object = json_object(mem);

    json_put_int(mem, object, "gid", e->run->plan.inside_gid);
    json_put_bytes(mem, object, "name", str_of(e->run->plan.user_name));
    json_put_text(mem, object, "origin", user_origin(e));
    json_put_int(mem, object, "uid", e->run->plan.inside_uid);
    return object;
}

static struct json *explanation_json(struct arena *mem, const struct explanation *e)
{
    const struct request *request = &e->config.request;
    struct json *object = json_object(mem);
    struct json *policy = json_object(mem);

    json_put_text(mem, object, "sandbox_id", e->config.id);
    json_put_text(mem, object, "name", request->name);
    json_put_text(mem, object, "state", kept_state_name(&e->state));
    json_put_text(mem, object, "principal", request->principal);
    json_put_text(mem, object, "scope", request->scope ? request->scope : "session");
    json_put(object, "labels", view_words(mem, request->labels));
    json_put_text(mem, object, "created_at", e->config.created_at);
    json_put_text(mem, object, "expires_at", view_expiry(mem, e->state.left_ms));
    json_put_int(mem, object, "idle_ms", (int64_t)request->lifetime.idle_ms);
    json_put_int(mem, object, "lifetime_ms", (int64_t)request->lifetime.max_ms);
    json_put_text(mem, object, "provider", request->provider);
    json_put_text(mem, object, "provider_version", e->run->planned.provider_version);
    json_put_text(mem, object, "image", request->image);
    json_put_text(mem, object, "image_digest", e->config.image_digest);
    json_put_text(mem, object, "config_hash", e->config.config_hash);
    json_put_bool(mem, object, "drift", e->drift);
    json_put(object, "user", user_json(mem, e));
    json_put(object, "mounts", view_words(mem, request->mounts));
    json_put_text(mem, object, "workspace", request->workspace ? request->workspace : "");
    json_put(object, "protected", protected_json(mem, e->run));
    json_put(object, "limits", limits_json(mem, e->run));
    json_put_text(mem, object, "egress", "none");
    json_put_text(mem, object, "sockets", e->run->plan.sockets_none ? "none" : "any");
    json_put_text(mem, policy, "hash", e->config.policy_hash);
    json_put_text(mem, policy, "source", request->policy_text ? "file" : "built-in");
    if (request->policy_text)
        json_put_text(mem, policy, "text", request->policy_text);
    json_put(object, "policy", policy);
    json_put(object, "refusals", refusals_json(mem));
    return object;
}

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

static void print_explanation(struct invocation *inv, const struct explanation *e)
{
    const struct request *request = &e->config.request;

    (void)fprintf(inv->out, "%-10s %s, %s\n", "sandbox", e->config.id, kept_state_name(&e->state));
    if (*request->name)
        print_words(inv, "name", (struct words){&request->name, 1});
    print_words(inv, "labels", request->labels);
    (void)fprintf(inv->out, "%-10s %s by %s, scope %s\n", "made", e->config.created_at,
                  request->principal, request->scope ? request->scope : "session");
    (void)fprintf(inv->out, "%-10s %s%s\n", "ends", view_expiry(&inv->mem, e->state.left_ms),
                  request->lifetime.idle_ms ? ", or earlier when idle" : "");
    (void)fprintf(inv->out, "%-10s %s, %s\n", "image", request->image, e->config.image_digest);
    (void)fprintf(inv->out, "%-10s ", "user");
    print_escaped(inv->out, str_of(e->run->plan.user_name));
    (void)fprintf(inv->out, " (%u:%u), from %s\n", e->run->plan.inside_uid, e->run->plan.inside_gid,
                  user_origin(e));
    if (request->workspace)
        print_words(inv, "workspace", (struct words){&request->workspace, 1});
    print_words(inv, "mounts", request->mounts);
    print_protected(inv, e->run);
    print_limits(inv, e->run);
    (void)fprintf(inv->out, "%-10s none\n", "egress");
    (void)fprintf(inv->out, "%-10s %s\n", "sockets",
                  !e->run->plan.sockets_none       ? "any"
                  : e->config.request.sockets_none ? "none (--sockets none)"
                                                   : "none (the profile's sockets: none)");
    (void)fprintf(inv->out, "%-10s %s, %s\n", "policy",
                  request->policy_text ? "kept with it" : "built in: run anything, no network",
                  e->config.policy_hash);
    (void)fprintf(inv->out, "%-10s %s\n", "drift",
                  e->drift ? "yes: this machine would make another one today; recreate it"
                           : "none");
    for (size_t i = 0; i < COUNT(refusals); i++)
        (void)fprintf(inv->out, "%-10s %s\n%-10s   to change it: %s\n", i == 0 ? "no" : "",
                      refusals[i].what, "", refusals[i].change);
}

/* The subject makes the call open the policy and the profile the sandbox was made with. */
static int open_call(struct invocation *inv, struct sandbox_call *call, int *status)
{
    inv->subject = inv->operands.v[0];
    return sandbox_call_open(inv, call, status);
}

static int look(struct invocation *inv, struct sandbox_call *call, struct run *run,
                struct explanation *out, struct err *err)
{
    struct config today;

    if (sandbox_look(inv, call->govern, call->sandbox, &out->config, &out->state, err) < 0 ||
        govern_rehearse(call->govern, &out->config.request, run, &today, err) < 0)
        return -1;
    execute_forget(run);
    out->run = run;
    out->drift = !today.id || strcmp(today.preimage_hash, out->config.preimage_hash) != 0;
    return 0;
}

int run_sandbox_explain(struct invocation *inv)
{
    AUTO_SANDBOX_CALL struct sandbox_call call = {0};
    struct explanation explanation;
    struct run run;
    struct err err;
    int status;

    if (open_call(inv, &call, &status) < 0)
        return status;
    run_init(&run);
    status = 0;
    if (look(inv, &call, &run, &explanation, &err) < 0)
        status = cli_error(inv, &err);
    else if (inv->json)
        status = cli_json(inv, explanation_json(&inv->mem, &explanation));
    else
        print_explanation(inv, &explanation);
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
    struct explanation explanation;
    struct run today, run;
    struct err err;
    int status;

    if (open_call(inv, &call, &status) < 0)
        return status;
    run_init(&today);
    run_init(&run);
    if (look(inv, &call, &today, &explanation, &err) < 0)
        status = cli_error(inv, &err);
    else if (today.verdict.kind != VERDICT_ALLOW)
        status = sandbox_refused(inv, &today);
    else if (destroy(&call, &err) < 0 ||
             govern_create(call.govern, &explanation.config.request, &run, &err) < 0)
        status = cli_error(inv, &err);
    else if (run.verdict.kind != VERDICT_ALLOW || run.outcome.reason == REASON_SANDBOX_FAILED)
        status = sandbox_refused(inv, &run);
    else
        status = report(inv, &call, &run, &err) < 0 ? cli_error(inv, &err) : 0;
    run_done(&run);
    run_done(&today);
    return status;
}
