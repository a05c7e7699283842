/* SPDX-License-Identifier: Apache-2.0 */

/* What a kept sandbox is, why, and what would change it. */

#include "surface/view/view.h"

#include "flow/admit/admit.h"
#include "flow/equip/equip.h"
#include "flow/execute/execute.h"
#include "lib/json/json.h"
#include "model/run.h"

/* What it cannot do, and what would change that. */
const struct view_refusal view_refusals[] = {
    {"no network but its own loopback and what its policy's network rules allow",
     "sandbox create --policy FILE: network_policies; policy apply --sandbox ID FILE"                                                                            },
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
const size_t view_refusal_n = COUNT(view_refusals);

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

    for (size_t i = 0; i < view_refusal_n; i++) {
        struct json *entry = json_object(mem);

        json_put_text(mem, entry, "what", view_refusals[i].what);
        json_put_text(mem, entry, "change", view_refusals[i].change);
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
const char *view_user_origin(const struct view_explanation *e)
{
    const struct demand *demand = &e->run->demand;

    if (e->config->request.user)
        return "--user";
    if (demand->run_as_uid || demand->run_as_gid)
        return "the policy's process section";
    return plan_is_usual_user(&e->run->plan) ? "the default" : "USER of the image";
}

static struct json *user_json(struct arena *mem, const struct view_explanation *e)
{
    struct json *object = json_object(mem);

    json_put_int(mem, object, "gid", e->run->plan.inside_gid);
    json_put_bytes(mem, object, "name", str_of(e->run->plan.user_name));
    json_put_text(mem, object, "origin", view_user_origin(e));
    json_put_int(mem, object, "uid", e->run->plan.inside_uid);
    return object;
}

struct json *view_explain(struct arena *mem, const struct view_explanation *e)
{
    const struct request *request = &e->config->request;
    struct json *object = json_object(mem);
    struct json *policy = json_object(mem);

    json_put_text(mem, object, "sandbox_id", e->config->id);
    json_put_text(mem, object, "name", request->name);
    json_put_text(mem, object, "state", kept_state_name(e->state));
    json_put_text(mem, object, "principal", request->principal);
    json_put_text(mem, object, "scope", request->scope ? request->scope : "session");
    json_put(object, "labels", view_words(mem, request->labels));
    json_put_text(mem, object, "created_at", e->config->created_at);
    json_put_text(mem, object, "expires_at", view_expiry(mem, e->state->left_ms));
    json_put_int(mem, object, "idle_ms", (int64_t)request->lifetime.idle_ms);
    json_put_int(mem, object, "lifetime_ms", (int64_t)request->lifetime.max_ms);
    json_put_text(mem, object, "provider", request->provider);
    json_put_text(mem, object, "provider_version", e->run->planned.provider_version);
    json_put_text(mem, object, "image", request->image);
    json_put_text(mem, object, "image_digest", e->config->image_digest);
    json_put_text(mem, object, "config_hash", e->config->config_hash);
    json_put_bool(mem, object, "drift", e->drift);
    json_put(object, "user", user_json(mem, e));
    json_put(object, "mounts", view_words(mem, request->mounts));
    json_put_text(mem, object, "workspace", request->workspace ? request->workspace : "");
    json_put(object, "protected", protected_json(mem, e->run));
    json_put(object, "limits", limits_json(mem, e->run));
    json_put_text(mem, object, "egress", e->state->network ? e->state->network : "none");
    if (e->config->network_hash)
        json_put_text(mem, object, "egress_policy_hash", e->config->network_hash);
    json_put_text(mem, object, "sockets", e->run->plan.sockets_none ? "none" : "any");
    json_put_text(mem, policy, "hash", e->config->policy_hash);
    json_put_text(mem, policy, "source", request->policy_text ? "file" : "built-in");
    if (request->policy_text)
        json_put_text(mem, policy, "text", request->policy_text);
    json_put(object, "policy", policy);
    json_put(object, "refusals", refusals_json(mem));
    return object;
}
