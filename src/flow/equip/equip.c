/* SPDX-License-Identifier: Apache-2.0 */
#include "flow/equip/equip.h"

#include "flow/equip/memory.h"
#include "lib/base/limits.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define HOSTNAME "sandbox"

int equip_open(const char *state_dir, const char *profile_path, struct equip **out, struct err *err)
{
    AUTO(equip) struct equip *equip = xcalloc(1, sizeof *equip);

    equip->mem = ARENA(POLICY_MEMORY_MAX);
    equip->state_dir = arena_text(&equip->mem, str_of(state_dir));
    equip->memory = equip->memory_owned = plan_memory_new();
    if (profile_path && profile_open(&equip->mem, profile_path, &equip->profile, err) < 0)
        return -1;
    *out = TAKE(equip);
    return 0;
}

int equip_open_with(const char *state_dir, const char *profile_text, struct equip **out,
                    struct err *err)
{
    AUTO(equip) struct equip *equip = NULL;
    struct mark where;

    if (equip_open(state_dir, NULL, &equip, err) < 0)
        return -1;
    if (profile_text &&
        profile_parse(&equip->mem, str_of(profile_text), &equip->profile, &where, err) < 0)
        return err_in(err, "the profile of the sandbox");
    *out = TAKE(equip);
    return 0;
}

void equip_free(struct equip *equip)
{
    if (!equip)
        return;
    plan_memory_free(equip->memory_owned);
    arena_done(&equip->mem);
    free(equip);
}

void equip_recall(struct equip *equip, struct plan_memory *memory)
{
    equip->memory = memory;
}

const char *equip_provider(const struct equip *equip)
{
    return equip->profile.provider;
}

int refuse(struct run *run, enum reason reason, const char *fmt, ...)
{
    char text[512];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    run->verdict = (struct verdict){
        .kind = VERDICT_DENY, .reason = reason, .text = arena_text(&run->mem, str_of(text))};
    return 0;
}

bool env_has(const struct words *env, const char *variable)
{
    size_t name_n = strcspn(variable, "=") + 1;

    for (size_t i = 0; i < env->n; i++)
        if (strncmp(env->v[i], variable, name_n) == 0)
            return true;
    return false;
}

/* The whole environment of the command. The caller's own variables come last and win, except
 * where they would steer the loader: those were refused by admit. */
static void plan_environment(struct run *run)
{
    const char *const base[] = {
        arena_printf(&run->mem, "HOME=%s", run->plan.home),
        "LANG=C.UTF-8",
        arena_printf(&run->mem, "LOGNAME=%s", run->plan.user_name),
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "SHELL=/bin/sh",
        arena_printf(&run->mem, "USER=%s", run->plan.user_name),
    };
    const struct words *asked = &run->action.env;
    const struct words *network = &run->plan.egress.env;
    const char **env =
        arena_array(&run->mem, const char *, COUNT(base) + network->n + asked->n + 2);
    size_t n = 0;

    /* A released script is that script, and not what somebody lays beside it. */
    if (run->demand.requires_release)
        env[n++] = "PYTHONSAFEPATH=1";

    for (size_t i = 0; i < COUNT(base); i++)
        if (!env_has(asked, base[i]))
            env[n++] = base[i];
    for (size_t i = 0; i < network->n; i++)
        if (!env_has(asked, network->v[i]))
            env[n++] = network->v[i];
    for (size_t j = 0; j < asked->n; j++)
        env[n++] = asked->v[j];
    run->plan.env = (struct words){env, n};
}

static void plan_identity(struct equip *equip, struct run *run)
{
    struct plan *plan = &run->plan;

    plan->image = run->action.image;
    plan->hostname = HOSTNAME;
    plan->provider_version_pin = equip->profile.provider_version;
    plan->image_digest_pin = equip->profile.image_digest;
    plan->demand_observed = equip->profile.demand_observed;
    plan->sockets_none =
        run->action.sockets_none || run->action.advisory || equip->profile.sockets_none;
    plan->exec_once = run->action.advisory;
    plan->allow_protected = run->action.allow_protected || equip->profile.allow_protected;
}

static int refuse_unenforceable(struct run *run)
{
    if (run->demand.not_enforceable)
        return refuse(run, REASON_POLICY_NOT_ENFORCEABLE, "%s", run->demand.not_enforceable);
    return 0;
}

/* Who runs where: the image or the host, the user in it, what was asked for on top, and who may do
 * what. */
static int plan_root(struct equip *equip, struct run *run, struct err *err)
{
    struct image image;
    bool host = is_host_image(run);

    if (!host && image_open(equip->state_dir, run, &image, err) < 0)
        return refuse(
            run, err->code == ERR_INTEGRITY ? REASON_PREFLIGHT_IMAGE_DIGEST : REASON_PLAN_INVALID,
            "%s", err->text);
    if (plan_user(host ? NULL : &image, run) < 0 || is_refused(run))
        return 0;
    plan_environment(run);
    if (!host)
        image_environment(run, &image);
    if (plan_mounts(equip->memory, equip->state_dir, host ? NULL : &image, run, err) < 0)
        return -1;
    return is_refused(run) ? 0 : plan_paths(run, err);
}

static int plan_nothing(struct run *run)
{
    if (plan_user(NULL, run) < 0 || is_refused(run))
        return 0;
    plan_environment(run);
    return 0;
}

int equip_limits(struct equip *equip, struct run *run, struct err *err)
{
    return plan_limits(&equip->profile, run, err);
}

int equip_plan(struct equip *equip, struct run *run, struct err *err)
{
    char digest[MODEL_HASH_BYTES];

    plan_identity(equip, run);
    if (refuse_unenforceable(run) < 0 || is_refused(run))
        return 0;
    if (plan_limits(&equip->profile, run, err) < 0 || plan_network(equip->state_dir, run, err) < 0)
        return -1;
    if (is_refused(run))
        return 0;
    if ((run->offer.runs_nothing ? plan_nothing(run) : plan_root(equip, run, err)) < 0 ||
        is_refused(run))
        return is_refused(run) ? 0 : -1;
    if (image_digest(equip->memory, equip->state_dir, run, digest, err) < 0)
        return -1;
    plan_facts(run);
    run->intended.image_digest = arena_text(&run->mem, str_of(digest));
    return memory_posture(equip->memory, run, err);
}
