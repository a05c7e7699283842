/* SPDX-License-Identifier: Apache-2.0 */

/* What a run's receipt says. Members that do not apply are left out; docs/formats/receipt.md
 * names them all. Arguments, environment and the particulars of a verdict stay outside: they may
 * hold secrets, and request_hash binds them. */

#include "flow/record/receipt.h"

#include <assert.h>
#include <string.h>

#include "lib/base/limits.h"

void receipt_done(struct receipt *receipt)
{
    buf_done(&receipt->body);
}

/* Counters of the kernel fit; a value that does not is cut rather than written inexactly. */
static void put_count(struct arena *mem, struct json *object, const char *key, uint64_t value)
{
    json_put_int(mem, object, key, value > SEQ_MAX ? SEQ_MAX : (int64_t)value);
}

static void put_if(struct arena *mem, struct json *object, const char *key, const char *text)
{
    if (text && *text)
        json_put_bytes(mem, object, key, str_of(text));
}

/* What is planned has been seen by nobody, whatever kind of evidence the plan counts on. */
static const char *evidence_name(enum evidence evidence, enum receipt_role role)
{
    if (role == ROLE_OPENS)
        return "planned";
    switch (evidence) {
    case EVIDENCE_NONE:
        return "none";
    case EVIDENCE_CLAIMED:
        return "claimed";
    case EVIDENCE_OBSERVED:
        return "observed";
    }
    return "none";
}

static struct json *failed_checks(struct arena *mem, const struct checks *checks)
{
    struct json *names = json_array(mem);

    for (size_t i = 0; i < checks->n; i++)
        if (!checks->of[i].passed)
            json_push(names, json_text(mem, str_of(checks->of[i].name)));
    return names;
}

static struct json *posture_json(struct arena *mem, const struct posture *posture,
                                 const struct checks *checks, enum receipt_role role)
{
    struct json *json = json_object(mem);

    json_put(json, "degraded", failed_checks(mem, checks));
    put_if(mem, json, "egress_policy_hash", posture->egress_policy_hash);
    json_put_text(mem, json, "evidence", evidence_name(posture->evidence, role));
    put_if(mem, json, "image_digest", posture->image_digest);
    put_if(mem, json, "mounts_hash", posture->mounts_hash);
    put_if(mem, json, "preimage_hash", posture->preimage_hash);
    put_if(mem, json, "provider_version", posture->provider_version);
    put_if(mem, json, "resource_limits_hash", posture->resource_limits_hash);
    put_if(mem, json, "sandbox_spec_hash", posture->sandbox_spec_hash);
    return json;
}

/* Each limit, and by what it is held: a limit nobody holds says so. */
static struct json *enforcement_json(struct arena *mem, const struct limits *limits)
{
    struct json *json = json_object(mem);

    for (int kind = 0; kind < LIMIT_COUNT; kind++) {
        const struct limit *limit = &limits->of[kind];
        struct json *one;

        if (!limit->value)
            continue;
        one = json_object(mem);
        json_put_text(mem, one, "means", limit_means_name(limit->means));
        json_put_text(mem, one, "origin", limit_origin_name(limit->origin));
        put_count(mem, one, "value", limit->value);
        json_put(json, limit_name((enum limit_kind)kind), one);
    }
    return json;
}

static void put_stream(struct arena *mem, struct json *json, const char *bytes_key,
                       const char *hash_key, const struct stream_result *stream)
{
    put_count(mem, json, bytes_key, stream->bytes);
    put_if(mem, json, hash_key, stream->hash);
}

static struct json *egress_json(struct arena *mem, const struct egress_counts *counts)
{
    struct json *json = json_object(mem);

    put_count(mem, json, "bytes_in", counts->bytes_in);
    put_count(mem, json, "bytes_out", counts->bytes_out);
    if (counts->lost)
        json_put_bool(mem, json, "lost", true);
    put_count(mem, json, "refused", counts->refused);
    put_count(mem, json, "requests", counts->requests);
    if (counts->spent)
        json_put_bool(mem, json, "spent", true);
    return json;
}

static const char *protected_name(enum protected_kind kind)
{
    switch (kind) {
    case PROTECTED_NEW:
        return "new";
    case PROTECTED_CHANGED:
        return "changed";
    case PROTECTED_REMOVED:
        return "removed";
    }
    return "changed";
}

/* Only where something could be written: elsewhere there was nothing to look at. */
static void put_protected(struct arena *mem, struct json *json,
                          const struct protected_changes *changes)
{
    struct json *list = json_array(mem);

    if (!changes->looked)
        return;
    for (size_t i = 0; i < changes->n; i++) {
        struct json *one = json_object(mem);

        json_put_text(mem, one, "change", protected_name(changes->of[i].kind));
        put_if(mem, one, "hash", changes->of[i].hash);
        json_put_bytes(mem, one, "path", str_of(changes->of[i].path));
        json_push(list, one);
    }
    json_put(json, "protected_changes", list);
    put_count(mem, json, "protected_changes_count", changes->count);
    json_put_bool(mem, json, "protected_complete", !changes->incomplete);
}

static struct json *outcome_json(struct arena *mem, const struct outcome *outcome)
{
    struct json *json = json_object(mem);

    put_count(mem, json, "cpu_us", outcome->cpu_us);
    put_count(mem, json, "disk_read_bytes", outcome->read_bytes);
    put_count(mem, json, "disk_written_bytes", outcome->written_bytes);
    put_count(mem, json, "duration_us", outcome->duration_us);
    json_put(json, "egress", egress_json(mem, &outcome->egress));
    json_put_bool(mem, json, "ended", outcome->ended);
    if (outcome->ended && outcome->signal == 0)
        json_put_int(mem, json, "exit_code", outcome->exit_code);
    if (outcome->execs_refused)
        put_count(mem, json, "execs_refused", outcome->execs_refused);
    put_if(mem, json, "failure", outcome->failure);
    json_put_bool(mem, json, "oom_killed", outcome->oom_killed);
    put_if(mem, json, "output_hash", outcome->output_hash);
    put_count(mem, json, "peak_memory_bytes", outcome->peak_memory_bytes);
    json_put_int(mem, json, "signal", outcome->signal);
    json_put_bool(mem, json, "started", outcome->started);
    put_protected(mem, json, &outcome->protected_changes);
    put_stream(mem, json, "stderr_bytes", "stderr_hash", &outcome->err);
    put_count(mem, json, "stdin_bytes", outcome->stdin_bytes);
    put_if(mem, json, "stdin_hash", outcome->stdin_hash);
    put_stream(mem, json, "stdout_bytes", "stdout_hash", &outcome->out);
    json_put_bool(mem, json, "timed_out", outcome->timed_out);
    json_put_bool(mem, json, "truncated", outcome->out.truncated || outcome->err.truncated);
    return json;
}

/* The kernel refuses a process beyond RLIMIT_NPROC and keeps no count of it: whether that happened
 * is known only when a look saw as many as there may be (decision 0022). */
static void put_unseen(struct arena *mem, const struct run *run, struct json *json)
{
    struct json *list = json_array(mem);

    if (!run->outcome.started || run->outcome.reason == REASON_LIMIT_PIDS ||
        run->plan.limits.of[LIMIT_PIDS].means != MEANS_RLIMIT)
        return;
    json_push(list, json_text(mem, str_of(limit_name(LIMIT_PIDS))));
    json_put(json, "limits_unseen", list);
}

/* What passed between this machine and a kept sandbox. */
static struct json *files_json(struct arena *mem, const struct run *run)
{
    const struct moved *moved = &run->outcome.moved;
    struct json *json = json_object(mem);

    put_count(mem, json, "bytes", moved->bytes);
    put_count(mem, json, "entries", moved->entries);
    put_if(mem, json, moved->is_tree ? "tree_hash" : "hash", moved->hash);
    put_if(mem, json, "other", run->action.other);
    put_if(mem, json, "path", run->action.path);
    put_count(mem, json, "skipped", moved->skipped);
    put_if(mem, json, "verb", run->action.verb);
    if (moved->conflicts)
        put_count(mem, json, "conflicts", moved->conflicts);
    return json;
}

/* What was copied in when a sandbox with a mirrored workspace was made. */
static struct json *mirror_json(struct arena *mem, const struct run *run)
{
    const struct moved *moved = &run->outcome.moved;
    struct json *json = json_object(mem);

    put_count(mem, json, "bytes", moved->bytes);
    put_count(mem, json, "entries", moved->entries);
    put_if(mem, json, "other", run->plan.mirror_source);
    json_put_text(mem, json, "path", WORKSPACE_TARGET);
    put_count(mem, json, "skipped", moved->skipped);
    put_if(mem, json, "tree_hash", moved->hash);
    put_count(mem, json, "unsteady", moved->unsteady);
    return json;
}

static struct json *port_json(struct arena *mem, const struct run *run)
{
    const struct moved *moved = &run->outcome.moved;
    struct json *json = json_object(mem);

    put_count(mem, json, "bytes_in", moved->bytes);
    put_count(mem, json, "bytes_out", moved->bytes_out);
    put_count(mem, json, "connections", moved->entries);
    put_count(mem, json, "port", run->action.port);
    put_count(mem, json, "refused", moved->skipped);
    put_if(mem, json, "until", run->action.other ? run->action.other : "");
    put_if(mem, json, "verb", run->action.verb ? run->action.verb : "");
    return json;
}

static struct json *snapshot_json(struct arena *mem, const struct run *run)
{
    const struct outcome *outcome = &run->outcome;
    struct json *json = json_object(mem);

    json_put_text(mem, json, "id", outcome->snapshot.id);
    if (run->action.kind == ACTION_SNAPSHOT_EXPORT) {
        put_count(mem, json, "dropped", outcome->snapshot.dropped);
        json_put_bool(mem, json, "filtered", strcmp(run->action.verb, "everything") != 0);
        put_count(mem, json, "replaced", outcome->snapshot.replaced);
    }
    if (run->action.path)
        json_put_bytes(mem, json, "path", str_of(run->action.path));
    if (outcome->snapshot.digest)
        json_put_text(mem, json, "image_digest", outcome->snapshot.digest);
    if (run->action.kind == ACTION_RESTORE || run->action.kind == ACTION_SNAPSHOT_REMOVE)
        return json;
    put_count(mem, json, "bytes", outcome->moved.bytes);
    put_count(mem, json, "entries", outcome->moved.entries);
    if (run->action.kind != ACTION_SNAPSHOT)
        return json;
    put_count(mem, json, "held_us", outcome->snapshot.held_us);
    json_put_bool(mem, json, "live", outcome->snapshot.live);
    return json;
}

static bool is_about_image(const struct run *run)
{
    return run->action.kind == ACTION_IMAGE_PULL || run->action.kind == ACTION_IMAGE_IMPORT ||
           run->action.kind == ACTION_IMAGE_REMOVE || run->action.kind == ACTION_IMAGE_EXPORT;
}

static struct json *image_json(struct arena *mem, const struct run *run)
{
    struct json *json = json_object(mem);

    put_if(mem, json, "digest", run->outcome.image.digest);
    put_if(mem, json, "reference", run->outcome.image.reference);
    return json;
}

static struct json *token_json(struct arena *mem, const struct run *run)
{
    struct json *json = json_object(mem);

    if (run->outcome.token.expires_at)
        json_put_int(mem, json, "expires_at", run->outcome.token.expires_at);
    json_put_text(mem, json, "id", run->outcome.token.id);
    json_put_text(mem, json, "principal", run->outcome.token.principal);
    json_put_text(mem, json, "scopes", run->outcome.token.scopes);
    json_put_text(mem, json, "tenant", run->outcome.token.tenant);
    return json;
}

static struct json *approval_json(struct arena *mem, const struct run *run)
{
    struct json *json = json_object(mem);

    put_if(mem, json, "approval_id", run->outcome.approval.id);
    put_if(mem, json, "comment", run->outcome.approval.comment);
    put_if(mem, json, "custodian", run->outcome.approval.custodian);
    put_if(mem, json, "custodian_key_id", run->outcome.approval.key_id);
    put_if(mem, json, "custodian_signature", run->outcome.approval.signature);
    put_if(mem, json, "digest", run->outcome.approval.digest);
    put_if(mem, json, "requester", run->outcome.approval.requester);
    if (run->outcome.approval.quorum > 1) {
        json_put_int(mem, json, "confirmations", run->outcome.approval.confirmations);
        json_put_int(mem, json, "quorum", run->outcome.approval.quorum);
    }
    return json;
}

static struct json *policy_json(struct arena *mem, const struct run *run)
{
    struct json *json = json_object(mem);

    const char *network_hash = run->outcome.policy.network_hash;

    put_if(mem, json, "key_id", run->outcome.policy.key_id);
    put_if(mem, json, "layer", run->outcome.policy.layer);
    put_if(mem, json, "policy_hash", run->outcome.policy.hash);
    json_put_bool(mem, json, "standing", run->outcome.policy.is_standing);
    if (!network_hash)
        return json;
    put_count(mem, json, "entries_added", run->outcome.policy.added);
    put_count(mem, json, "entries_changed", run->outcome.policy.changed);
    put_count(mem, json, "entries_removed", run->outcome.policy.removed);
    json_put_text(mem, json, "network_hash", network_hash);
    return json;
}

static struct json *freeze_json(struct arena *mem, const struct run *run)
{
    struct json *json = json_object(mem);

    json_put_text(mem, json, "principal", run->outcome.freeze.principal);
    json_put_text(mem, json, "tenant", run->outcome.freeze.tenant);
    json_put_text(mem, json, "why", run->outcome.freeze.why);
    return json;
}

/* The value is nowhere. */
static struct json *vault_json(struct arena *mem, const struct run *run)
{
    struct json *json = json_object(mem);

    put_if(mem, json, "at", run->outcome.vault.at);
    put_if(mem, json, "binding", run->outcome.vault.binding);
    put_if(mem, json, "host", run->outcome.vault.host);
    put_if(mem, json, "master", run->outcome.vault.master);
    put_if(mem, json, "method", run->outcome.vault.method);
    put_if(mem, json, "name", run->outcome.vault.name);
    put_if(mem, json, "pack", run->outcome.vault.pack);
    put_if(mem, json, "path", run->outcome.vault.path);
    if (run->outcome.vault.port)
        json_put_int(mem, json, "port", run->outcome.vault.port);
    put_if(mem, json, "scheme", run->outcome.vault.scheme);
    put_if(mem, json, "slot", run->outcome.vault.slot);
    if (run->outcome.vault.version)
        put_count(mem, json, "version", run->outcome.vault.version);
    return json;
}

static struct json *limit_json(struct arena *mem, const struct budget_limit *limit)
{
    struct json *json = json_object(mem);

    for (int i = 0; i < BUDGET_KINDS; i++)
        if (limit->of[i])
            put_count(mem, json, budget_kind_name((enum budget_kind)i), limit->of[i]);
    if (limit->egress_run)
        put_count(mem, json, "egress_run", limit->egress_run);
    put_if(mem, json, "name", limit->name);
    json_put_text(mem, json, "per", budget_scope_name(limit->scope));
    put_count(mem, json, "within_s", limit->window_s);
    return json;
}

static struct json *budget_json(struct arena *mem, const struct run *run)
{
    struct json *json = json_object(mem);

    if (run->outcome.budget.limit)
        json_put(json, "limit", limit_json(mem, run->outcome.budget.limit));
    put_if(mem, json, "name", run->outcome.budget.name);
    put_if(mem, json, "per", run->outcome.budget.scope);
    if (strcmp(run->outcome.budget.verb, "price") == 0) {
        put_count(mem, json, "price_gib_second", run->outcome.budget.prices[2]);
        put_count(mem, json, "price_run", run->outcome.budget.prices[0]);
        put_count(mem, json, "price_vcpu_second", run->outcome.budget.prices[1]);
    }
    json_put_text(mem, json, "verb", run->outcome.budget.verb);
    return json;
}

static void put_moved(struct arena *mem, const struct run *run, struct json *outcome)
{
    if (run->outcome.token.id)
        json_put(outcome, "token", token_json(mem, run));
    if (run->outcome.approval.id || run->outcome.approval.custodian)
        json_put(outcome, "approval", approval_json(mem, run));
    if (run->outcome.policy.hash)
        json_put(outcome, "policy", policy_json(mem, run));
    if (run->outcome.freeze.tenant)
        json_put(outcome, "freeze", freeze_json(mem, run));
    if (run->outcome.budget.verb)
        json_put(outcome, "budget", budget_json(mem, run));
    if (run->outcome.vault.name || run->outcome.vault.master)
        json_put(outcome, "vault", vault_json(mem, run));
    if (run->action.kind == ACTION_FILES)
        json_put(outcome, "files", files_json(mem, run));
    if (run->action.kind == ACTION_CREATE && run->plan.mirror_source)
        json_put(outcome, "mirror", mirror_json(mem, run));
    if (run->action.kind == ACTION_PORT)
        json_put(outcome, "port", port_json(mem, run));
    if (run->outcome.snapshot.id)
        json_put(outcome, "snapshot", snapshot_json(mem, run));
    if (is_about_image(run))
        json_put(outcome, "image", image_json(mem, run));
}

/* Made by whoever it is about; a node stands in one place only, so it is put here as another one.
 */
static struct json *advisory_json(struct arena *mem, const struct json *about)
{
    struct json *json = json_object(mem);

    json_each(member, about) json_copy_member(mem, json, member);
    return json;
}

static const char *status_of(enum verdict_kind verdict)
{
    switch (verdict) {
    case VERDICT_DENY:
        return "DENIED";
    case VERDICT_ASK:
        return "PENDING";
    case VERDICT_ALLOW:
        return "APPROVED";
    }
    return "DENIED";
}

static void put_decision(struct arena *mem, const struct run *run, struct json *json,
                         enum reason reason)
{
    if (run->approval.id) {
        struct json *approval = json_object(mem);

        json_put_text(mem, approval, "approval_id", run->approval.id);
        put_if(mem, approval, "by", run->approval.by);
        json_put_text(mem, approval, "digest", run->approval.digest);
        json_put(json, "approval", approval);
    }
    /* What it could have less of than its own limits say, and because of whom. */
    if (run->budget.wall_ms || run->budget.egress_bytes) {
        struct json *budget = json_object(mem);

        put_if(mem, budget, "by", run->budget.by);
        put_if(mem, budget, "egress_by", run->budget.egress_by);
        if (run->budget.egress_bytes)
            put_count(mem, budget, "egress_bytes", run->budget.egress_bytes);
        if (run->budget.wall_ms)
            put_count(mem, budget, "wall_ms", run->budget.wall_ms);
        json_put(json, "budget", budget);
    }
    json_put_text(mem, json, "decision_id", run->decision_id);
    if (run->effect.id) {
        json_put_text(mem, json, "effect_class", run->effect.id);
        json_put_text(mem, json, "effect_risk", arena_printf(mem, "E%u", run->effect.risk));
    }
    put_if(mem, json, "policy_hash", run->policy_hash);
    put_if(mem, json, "policy_layer", run->verdict.layer);
    json_put_text(mem, json, "reason_code", reason_code(reason));
    put_if(mem, json, "rule", run->verdict.rule);
    if (run->verdict.line)
        json_put_int(mem, json, "rule_line", run->verdict.line);
    json_put_text(mem, json, "status", status_of(run->verdict.kind));
    json_put_text(mem, json, "verdict", verdict_name(run->verdict.kind));
}

static void put_names(struct arena *mem, const struct run *run, struct json *json)
{
    if (run->action.kind != ACTION_RUN)
        json_put_text(mem, json, "action", action_name(run->action.kind));
    if (run->action.base && run->action.kind != ACTION_EXEC)
        json_put_text(mem, json, "base_snapshot_id", run->action.base);
    json_put_text(mem, json, "effect_id", run->effect_id);
    if (is_about_image(run) && *run->action.image)
        json_put_bytes(mem, json, "image", str_of(run->action.image));
    put_if(mem, json, "args_hash", run->action.args_hash);
    put_if(mem, json, "principal", run->action.principal);
    put_if(mem, json, "tool", run->action.tool);
    put_if(mem, json, "provider", run->action.provider);
    put_if(mem, json, "request_hash", run->action.request_hash);
    json_put_text(mem, json, "run_id", run->id);
    json_put_text(mem, json, "sandbox_id", run->sandbox_id);
    json_put_text(mem, json, "session_id", run->session_id);
    put_if(mem, json, "tenant", run->action.tenant);
    if (run->action.provider && strcmp(run->action.provider, "mock") == 0) {
        json_put_text(mem, json, "isolation", "none");
        json_put_bool(mem, json, "mock", true);
    }
    if (run->action.kind == ACTION_ELEVATE) {
        json_put_bool(mem, json, "elevated", true);
        json_put_text(mem, json, "isolation", "none");
    }
}

static void put_enforcement(struct arena *mem, const struct run *run, struct json *json,
                            enum receipt_role role)
{
    const struct posture *posture = role == ROLE_OPENS ? &run->planned : &run->observed;
    struct json *limits = enforcement_json(mem, &run->plan.limits);

    if (posture->preimage_hash[0] || run->checks.n)
        json_put(json, "posture", posture_json(mem, posture, &run->checks, role));
    if (limits->n)
        json_put(json, "limits", limits);
    if (run->plan.allow_protected)
        json_put_bool(mem, json, "allow_protected", true);
    if (run->plan.inside_uid && !plan_is_usual_user(&run->plan)) {
        json_put_int(mem, json, "inside_gid", run->plan.inside_gid);
        json_put_int(mem, json, "inside_uid", run->plan.inside_uid);
    }
}

static const char *kind_of(const struct run *run, enum receipt_role role)
{
    if (run->verdict.kind != VERDICT_ALLOW)
        return "denial";
    if (action_is_question(run->action.kind))
        return "decision";
    if (run->action.kind == ACTION_SECRET_USE)
        return "secret_use";
    return role == ROLE_OPENS ? "intent" : "outcome";
}

void receipt_of_run(struct arena *mem, const struct run *run, enum receipt_role role,
                    struct receipt *out)
{
    bool opens = role == ROLE_OPENS;
    enum reason reason = run->verdict.reason;
    struct json *json = json_object(mem);

    /* How it ended says more than why it was allowed. */
    if (!opens && run->verdict.kind == VERDICT_ALLOW && run->outcome.reason != REASON_NONE)
        reason = run->outcome.reason;
    put_names(mem, run, json);
    put_decision(mem, run, json, reason);
    put_enforcement(mem, run, json, role);
    if (run->action.kind == ACTION_SECRET_USE)
        json_put(json, "secret", vault_json(mem, run));
    if (run->outcome.advisory)
        json_put(json, "advisory", advisory_json(mem, run->outcome.advisory));
    if (!opens) {
        json_put_text(mem, json, "intent_id", run->intent.id);
        if (run->verdict.kind == VERDICT_ALLOW) {
            struct json *outcome = outcome_json(mem, &run->outcome);

            put_unseen(mem, run, outcome);
            put_moved(mem, run, outcome);
            json_put(json, "outcome", outcome);
        }
    }
    *out = (struct receipt){.role = role,
                            .kind = kind_of(run, role),
                            .run_id = run->id,
                            .json = json,
                            .body = BUF(RECEIPT_TEXT_MAX)};
}

/* What an abandoned run's outcome has of its own; everything else is as the intent said. The
 * posture is left out: what was planned has not been observed. */
static bool is_own_member(struct str key)
{
    static const char *const own[] = {
        "key_id",      "kind",       "lamport_clock", "posture",   "prev_hash",
        "reason_code", "receipt_id", "seq",           "timestamp", "v"};

    for (size_t i = 0; i < COUNT(own); i++)
        if (str_is(key, own[i]))
            return true;
    return false;
}

void receipt_of_abandoned(struct arena *mem, const struct json *intent, const struct outcome *known,
                          struct receipt *out)
{
    struct json *json = json_object(mem);
    struct json *outcome = known ? outcome_json(mem, known) : json_object(mem);
    enum reason reason = known ? known->reason : REASON_RUN_ABANDONED;
    struct str text = {0};

    json_each(member, intent) if (!is_own_member(member->key)) json_copy_member(mem, json, member);
    if (json_is_text(json_get(intent, "receipt_id"), &text))
        json_put_text(mem, json, "intent_id", arena_text(mem, text));
    if (!known)
        json_put_bool(mem, outcome, "ended", false);
    json_put(json, "outcome", outcome);
    if (reason != REASON_NONE)
        json_put_text(mem, json, "reason_code", reason_code(reason));
    else
        json_each(member, intent) if (str_is(member->key, "reason_code"))
            json_copy_member(mem, json, member);
    text = (struct str){0};
    (void)json_is_text(json_get(intent, "run_id"), &text); /* the ledger found it by that name */
    *out = (struct receipt){.role = ROLE_CLOSES,
                            .kind = "outcome",
                            .run_id = arena_text(mem, text),
                            .json = json,
                            .body = BUF(RECEIPT_TEXT_MAX)};
}

void receipt_hash(struct str body, struct hash *out)
{
    struct hasher h;

    hasher_init(&h);
    hasher_add(&h, RECEIPT_DOMAIN, sizeof RECEIPT_DOMAIN); /* with its NUL */
    hasher_add(&h, body.p, body.n);
    hasher_end(&h, out);
}

/* "r", seven digits that grow with the sequence number, twelve random ones. Names that grow keep
 * the index of names growing at one end: a name costs one page that is in memory anyway, in a
 * small ledger as in a large one. */
static void name_receipt(uint64_t seq, char out[ID_BYTES])
{
    static const char digits[] = "0123456789abcdefghijklmnopqrstuv"; /* as bytes sort */
    char random[ID_BYTES];

    id_new(random);
    out[0] = 'r';
    for (int i = 7; i > 0; i--, seq >>= 5)
        out[i] = digits[seq & 31];
    memcpy(out + 8, random + 8, sizeof random - 8);
}

int receipt_seal(struct arena *mem, const char *key_id, struct chain_head *head,
                 struct receipt *receipt, struct err *err)
{
    struct receipt_ref *ref = &receipt->ref;
    struct json *json = receipt->json;
    char prev_hash[HASH_TEXT_BYTES];

    if (head->seq >= (uint64_t)SEQ_MAX || head->lamport_clock >= (uint64_t)SEQ_MAX)
        return err_set(err, ERR_LIMIT, "the ledger has no numbers left");
    ref->seq = head->seq + 1;
    ref->lamport_clock = head->lamport_clock + 1;
    name_receipt(ref->seq, ref->id);
    clock_timestamp(ref->timestamp);
    hash_text(&head->hash, prev_hash);

    json_put_text(mem, json, "key_id", key_id);
    json_put_text(mem, json, "kind", receipt->kind);
    json_put_int(mem, json, "lamport_clock", (int64_t)ref->lamport_clock);
    json_put_text(mem, json, "prev_hash", prev_hash);
    json_put_text(mem, json, "receipt_id", ref->id);
    json_put_int(mem, json, "seq", (int64_t)ref->seq);
    json_put_text(mem, json, "timestamp", ref->timestamp);
    json_put_int(mem, json, "v", RECEIPT_VERSION);
    if (json_canonical(json, &receipt->body, err) < 0)
        return err_in(err, "writing a receipt");
    receipt_hash(buf_str(&receipt->body), &receipt->hash);
    hash_text(&receipt->hash, ref->hash);
    *head = (struct chain_head){ref->seq, ref->lamport_clock, receipt->hash};
    return 0;
}

void receipt_complete(struct arena *mem, struct json *body, const struct hash *hash,
                      const struct signature *signature)
{
    char hash_hex[HASH_TEXT_BYTES];
    char signature_hex[2 * SIGNATURE_BYTES + 1];

    hash_text(hash, hash_hex);
    hex_encode(signature->b, sizeof signature->b, signature_hex);
    json_put_text(mem, body, "hash", hash_hex);
    json_put_text(mem, body, "signature", signature_hex);
}
