/* SPDX-License-Identifier: Apache-2.0 */
#include "model/run.h"

#include <string.h>

#include "lib/base/limits.h"

const char *const provider_names[] = {"local",  "mock",    "gvisor",     "microvm",
                                      "docker", "ssh",     "kubernetes", "opensandbox",
                                      "e2b",    "daytona", NULL};

static const struct {
    const char *name;
    const char *unit;
    uint64_t value;
} limit_faces[] = {
#define X(id, name, unit, value) [LIMIT_##id] = {name, unit, value},
    LIMIT_KINDS(X)
#undef X
};

static const struct {
    const char *code;
    const char *text;
} reason_faces[] = {
#define X(id, code, text) [REASON_##id] = {code, text},
    REASONS(X)
#undef X
};

const char *limit_name(enum limit_kind kind)
{
    return limit_faces[kind].name;
}

const char *limit_unit(enum limit_kind kind)
{
    return limit_faces[kind].unit;
}

uint64_t limit_default(enum limit_kind kind)
{
    return limit_faces[kind].value;
}

const char *limit_means_name(enum limit_means means)
{
    static const char *const names[] = {
        [MEANS_NONE] = "none",     [MEANS_WATCH] = "watch",   [MEANS_AFFINITY] = "affinity",
        [MEANS_RLIMIT] = "rlimit", [MEANS_CGROUP] = "cgroup", [MEANS_RELAY] = "relay",
    };

    return names[means];
}

const char *limit_origin_name(enum limit_origin origin)
{
    static const char *const names[] = {
        [ORIGIN_DEFAULT] = "default",
        [ORIGIN_POLICY] = "policy",
        [ORIGIN_PROFILE] = "profile",
        [ORIGIN_FLAG] = "flag",
    };

    return names[origin];
}

const char *reason_code(enum reason reason)
{
    return reason_faces[reason].code;
}

const char *reason_text(enum reason reason)
{
    return reason_faces[reason].text;
}

const char *verdict_name(enum verdict_kind kind)
{
    static const char *const names[] = {
        [VERDICT_DENY] = "DENY",
        [VERDICT_ASK] = "ASK",
        [VERDICT_ALLOW] = "ALLOW",
    };

    return names[kind];
}

const char *network_name(enum network_ask ask)
{
    static const char *const names[] = {
        [NETWORK_NONE] = "none",
        [NETWORK_POLICY] = "policy",
        [NETWORK_DEFAULT] = "default",
    };

    return names[ask];
}

const char *action_name(enum action_kind kind)
{
    static const char *const names[] = {
        [ACTION_RUN] = "run",
        [ACTION_CREATE] = "create",
        [ACTION_EXEC] = "exec",
        [ACTION_PAUSE] = "pause",
        [ACTION_RESUME] = "resume",
        [ACTION_EXTEND] = "extend",
        [ACTION_DESTROY] = "destroy",
        [ACTION_FILES] = "files",
        [ACTION_PORT] = "port",
        [ACTION_SNAPSHOT] = "snapshot",
        [ACTION_RESTORE] = "restore",
        [ACTION_SNAPSHOT_REMOVE] = "snapshot-remove",
        [ACTION_SNAPSHOT_EXPORT] = "snapshot-export",
        [ACTION_SNAPSHOT_IMPORT] = "snapshot-import",
        [ACTION_IMAGE_PULL] = "image-pull",
        [ACTION_IMAGE_IMPORT] = "image-import",
        [ACTION_IMAGE_REMOVE] = "image-remove",
        [ACTION_IMAGE_EXPORT] = "image-export",
        [ACTION_TOKEN_CREATE] = "token-create",
        [ACTION_TOKEN_REVOKE] = "token-revoke",
        [ACTION_APPROVE] = "approve",
        [ACTION_REJECT] = "reject",
        [ACTION_ENROLL] = "enroll",
        [ACTION_DISMISS] = "dismiss",
        [ACTION_POLICY] = "policy",
        [ACTION_FREEZE] = "freeze",
        [ACTION_UNFREEZE] = "unfreeze",
        [ACTION_PROPOSE] = "propose",
        [ACTION_TOOL] = "tool",
        [ACTION_PREPARE] = "prepare",
        [ACTION_VAULT_SET] = "vault-set",
        [ACTION_VAULT_ROTATE] = "vault-rotate",
        [ACTION_VAULT_BIND] = "vault-bind",
        [ACTION_VAULT_UNBIND] = "vault-unbind",
        [ACTION_VAULT_REMOVE] = "vault-remove",
        [ACTION_VAULT_REKEY] = "vault-rekey",
        [ACTION_SECRET_USE] = "secret-use",
        [ACTION_BUDGET] = "budget",
        [ACTION_ELEVATE] = "elevate",
        [ACTION_ADVISE] = "advise",
        [ACTION_ADVISE_ACT] = "advise-act",
        [ACTION_GATE_SIGN] = "gate-sign",
        [ACTION_GATE_RELEASE] = "gate-release",
        [ACTION_GATE_REVOKE] = "gate-revoke",
        [ACTION_APPROVAL_EXPIRE] = "approval-expire",
        [ACTION_APPROVALS_RENEW] = "approvals-renew",
    };

    return names[kind];
}

bool action_thaws(enum action_kind kind)
{
    return kind == ACTION_PAUSE || kind == ACTION_DESTROY || kind == ACTION_TOKEN_REVOKE ||
           kind == ACTION_REJECT || kind == ACTION_FREEZE || kind == ACTION_UNFREEZE ||
           kind == ACTION_VAULT_UNBIND || kind == ACTION_VAULT_REMOVE || kind == ACTION_GATE_REVOKE;
}

bool action_keeps(enum action_kind kind)
{
    return kind == ACTION_CREATE || kind == ACTION_PREPARE;
}

bool action_is_question(enum action_kind kind)
{
    return kind == ACTION_PROPOSE || kind == ACTION_TOOL;
}

void run_init(struct run *run)
{
    *run = (struct run){
        .mem = ARENA(RUN_MEMORY_MAX),
        .plan = {.hold_fd = -1, .mirror_fd = -1, .egress = {.handover_fd = -1}}
    };
    id_new(run->id);
    id_new(run->decision_id);
    id_new(run->effect_id);
    id_new(run->session_id);
    run_enter(run, STAGE_ADMIT);
    memcpy(run->sandbox_id, run->id, sizeof run->id); /* its own, unless it joins a kept one */
}

const char *stage_name(enum stage stage)
{
    static const char *const names[STAGES] = {"admit", "decide",  "equip",  "approve", "intend",
                                              "park",  "execute", "record", "end"};

    return names[stage];
}

int cost_as_said(void *context, const struct run *run, uint64_t *out, struct err *err)
{
    (void)run;
    (void)err;
    *out = *(const uint64_t *)context;
    return 0;
}

void run_enter(struct run *run, enum stage stage)
{
    run->entered_us[stage] = clock_us();
}

static bool has_workspace(const struct action *action)
{
    if (action->workspace != WORKSPACE_UNSET)
        return true;
    for (size_t i = 0; i < action->mount_n; i++)
        if (strcmp(action->mounts[i].target, WORKSPACE_TARGET) == 0)
            return true;
    return false;
}

const char *action_start(const struct action *action)
{
    if (action->workdir)
        return action->workdir;
    return has_workspace(action) ? WORKSPACE_TARGET : NULL;
}

const char *run_start(const struct run *run)
{
    const struct action *action = &run->action;
    const char *start = run->plan.workdir ? run->plan.workdir : action_start(action);

    if (start)
        return start;
    if (action->kind == ACTION_TOOL)
        return WORKSPACE_TARGET;
    if (action->provider && strcmp(action->provider, PROVIDER_HOST) == 0)
        return "/";
    return !action->image || strcmp(action->image, IMAGE_HOST) == 0 ? HOME_TARGET : NULL;
}

uint64_t run_limit_most(const struct run *run, enum limit_kind kind)
{
    uint64_t policy = run->demand.limits.of[kind].value, layers = run->demand.most[kind];

    return policy && (!layers || policy < layers) ? policy : layers;
}

struct limit run_limit_elevated(const struct run *run, enum limit_kind kind)
{
    uint64_t most = run_limit_most(run, kind);

    if (run->action.limits.of[kind].value)
        return run->action.limits.of[kind];
    if (most && most < limit_default(kind))
        return (struct limit){.value = most, .origin = ORIGIN_POLICY};
    return (struct limit){.value = limit_default(kind), .origin = ORIGIN_DEFAULT};
}

void run_done(struct run *run)
{
    if (run->watch.tell)
        run->watch.tell(run->watch.context, run);
    arena_done(&run->mem);
    *run = (struct run){0};
}
