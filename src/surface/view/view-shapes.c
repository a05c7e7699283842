/* SPDX-License-Identifier: Apache-2.0 */

/* The objects of this folder by their members. Whoever adds one there adds it here: tests/flow/
 * serve-schemas.bats holds real answers against these, and what is not here is a fault there. */

#include "surface/view/view.h"

#include <string.h>

/* Tables are written as tables. */
/* clang-format off */

/* A member, what it is, and whether it is always there. */
#define TEXT(member) .name = (member), .kind = SHAPE_TEXT
#define BYTES(member) .name = (member), .kind = SHAPE_BYTES
#define INT(member) .name = (member), .kind = SHAPE_INT
#define BOOL(member) .name = (member), .kind = SHAPE_BOOL
#define TEXTS(member) .name = (member), .kind = SHAPE_TEXTS
#define ANY(member) .name = (member), .kind = SHAPE_ANY
#define ONE(member, shape) .name = (member), .kind = SHAPE_ONE, .of = &view_shapes[AT_##shape]
#define LIST(member, shape) .name = (member), .kind = SHAPE_LIST, .of = &view_shapes[AT_##shape]
#define MAP(member, shape) .name = (member), .kind = SHAPE_MAP, .of = &view_shapes[AT_##shape]
#define ALSO(shape) .name = "", .kind = SHAPE_ALSO, .of = &view_shapes[AT_##shape]

enum {
    AT_VERSION,
    AT_CALLER,
    AT_SANDBOX,
    AT_SANDBOX_MADE,
    AT_SANDBOXES,
    AT_DONE,
    AT_CHANGE,
    AT_POSTURE,
    AT_RUN_LIMIT,
    AT_PROTECTED_CHANGE,
    AT_EGRESS_COUNTS,
    AT_RUN,
    AT_DETACHED,
    AT_EXEC,
    AT_PROCESS,
    AT_EXECS,
    AT_MOVED,
    AT_FILE_ENTRY,
    AT_FILE_STAT,
    AT_LISTING,
    AT_SNAPSHOT,
    AT_SNAPSHOTS,
    AT_SNAPSHOT_MADE,
    AT_SNAPSHOT_REMOVED,
    AT_SNAPSHOT_INTACT,
    AT_FORKS,
    AT_IMAGE_LAYER,
    AT_IMAGE,
    AT_IMAGE_ADDED,
    AT_IMAGES,
    AT_IMAGE_REMOVED,
    AT_IMAGE_INTACT,
    AT_RECEIPTS,
    AT_TRUSTED_KEY,
    AT_FAULT,
    AT_VERIFICATION,
    AT_TOKEN,
    AT_TOKENS,
    AT_TOKEN_MADE,
    AT_TOKEN_REVOKED,
    AT_SECRET_BINDING,
    AT_SECRET,
    AT_SECRETS,
    AT_SECRET_DONE,
    AT_SECRET_GONE,
    AT_POLICY_ERROR,
    AT_POLICY_CHECK,
    AT_POLICY,
    AT_HINDRANCE,
    AT_SEEN_COMMAND,
    AT_DECISION,
    AT_LIMIT,
    AT_REFUSAL,
    AT_PROTECTED_PLACE,
    AT_PROTECTED_NAME,
    AT_PROTECTED,
    AT_INSIDE_USER,
    AT_KEPT_POLICY,
    AT_EXPLANATION,
    AT_RECREATED,
    AT_CHECK,
    AT_PREFLIGHT,
    AT_FINDING,
    AT_PROVIDER_LIMIT,
    AT_PROVIDER,
    AT_DOCTOR,
    AT_PREVIEW,
    AT_FROZEN,
    AT_FROZEN_LIST,
    AT_FREEZE_DONE,
    AT_APPROVAL,
    AT_APPROVAL_WORD,
    AT_APPROVALS,
    AT_APPROVAL_DONE,
    AT_BUDGET_AMOUNT,
    AT_BUDGET,
    AT_BUDGET_PRICES,
    AT_BUDGETS,
    AT_ADVISORY_SPAN,
    AT_ADVISORY_POSITION,
    AT_ADVISORY_FINDING,
    AT_ADVISORY_CHECK,
    AT_ADVISORY_COUNTS,
    AT_ADVISORY_SESSION,
    AT_ADVISORY_BROKEN,
    AT_ADVISORY_SESSIONS,
    AT_ADVISORY_TURN,
    AT_ADVISORY_SHOWN,
    AT_ADVISORY_VIEW,
    AT_ADVISORY_ENVELOPE,
    AT_ADVISORY_ENVELOPES,
    AT_ADVISORY_EVENTS,
    AT_ADVISORY_ACTION,
    AT_ADVISORY_TARGET,
    AT_ADVISORY_READING,
    AT_ADVISORY_ACTION_SHOWN,
    AT_ADVISORY_ACTION_ASKED,
    AT_ADVISORY_ACTION_DONE,
    AT_ADVISORY_ACTIONS,
    AT_ADVISORY_HIT,
    AT_ADVISORY_JUDGED,
    AT_ADVISORY_DIFFERENCE,
    AT_ADVISORY_REPLAY,
    AT_GATE_CONDITION,
    AT_GATE_RUN,
    AT_GATE_WINDOW,
    AT_GATE_WORD,
    AT_GATE_SIGNATURES,
    AT_GATE,
    AT_USAGE,
    AT_USAGES,
    AT_POLICY_CHANGE,
};

/* clang-format off */

static const struct shape_member version[] = {
    {TEXT("version")}, {TEXT("commit")}, {TEXT("build_time")}, {TEXT("go_version")}, {0},
};

static const struct shape_member caller[] = {
    {TEXT("tenant")},
    {TEXT("principal")},
    {TEXT("scopes")},
    {0},
};

static const struct shape_member sandbox[] = {
    {TEXT("sandbox_id")},
    {TEXT("name")},
    {TEXT("state")},
    {TEXT("provider")},
    {TEXT("image")},
    {TEXT("image_digest")},
    {TEXT("base_snapshot_id")},
    {TEXT("config_hash")},
    {TEXT("policy_hash")},
    {TEXT("preflight_hash")},
    {TEXT("network")},
    {TEXT("created_at")},
    {TEXT("expires_at")},
    {TEXT("principal")},
    {TEXTS("labels")},
    {TEXT("scope")},
    {TEXTS("mounts")},
    {TEXT("workspace"), .optional = true},
    {TEXT("user"), .optional = true},
    {INT("pid")},
    {INT("processes")},
    {INT("cpu_us")},
    {INT("memory_bytes")},
    {INT("peak_memory_bytes")},
    {INT("disk_bytes")},
    {INT("disk_read_bytes")},
    {INT("disk_written_bytes")},
    {0},
};

static const struct shape_member sandbox_made[] = {
    {ALSO(SANDBOX)},
    {TEXT("receipt_id")},
    {0},
};

static const struct shape_member sandboxes[] = {
    {LIST("sandboxes", SANDBOX)},
    {TEXT("next_after"), .optional = true},
    {0},
};

static const struct shape_member done[] = {
    {TEXT("action")},
    {BOOL("done")},
    {BYTES("failure"), .optional = true},
    {TEXT("receipt_id")},
    {INT("duration_us")},
    {0},
};

static const struct shape_member change[] = {
    {TEXT("sandbox_id")},
    {ALSO(DONE)},
    {0},
};

static const struct shape_member posture[] = {
    {TEXT("provider")},
    {TEXT("provider_version")},
    {TEXT("sandbox_spec_hash")},
    {TEXT("image_digest")},
    {TEXT("mounts_hash")},
    {TEXT("egress_policy_hash")},
    {TEXT("resource_limits_hash")},
    {TEXT("preflight_hash")},
    {TEXT("policy_hash")},
    {0},
};

static const struct shape_member run_limit[] = {
    {INT("value")},
    {TEXT("means")},
    {TEXT("origin")},
    {0},
};

static const struct shape_member protected_change[] = {
    {BYTES("path")},
    {TEXT("hash")},
    {0},
};

static const struct shape_member egress_counts[] = {
    {INT("requests")},
    {INT("refused")},
    {INT("bytes_out")},
    {INT("bytes_in")},
    {BOOL("lost"), .optional = true},
    {BOOL("spent"), .optional = true},
    {0},
};

static const struct shape_member run[] = {
    {TEXT("verdict")},
    {TEXT("reason_code")},
    {BYTES("reason")},
    {TEXT("outcome_reason_code")},
    {TEXT("policy_layer"), .optional = true},
    {BYTES("rule"), .optional = true},
    {TEXT("effect_class"), .optional = true},
    {TEXT("effect_risk"), .optional = true},
    {TEXT("approval_id"), .optional = true},
    {TEXT("receipt_id")},
    {TEXT("intent_receipt_id")},
    {TEXT("decision_id")},
    {TEXT("run_id")},
    {ALSO(POSTURE)},
    {MAP("limits",               RUN_LIMIT)},
    {INT("exit_code"),                .nullable = true},
    {INT("signal"),                           .nullable = true},
    {BOOL("timed_out")},
    {BOOL("oom_killed")},
    {BYTES("stdout")},
    {BYTES("stderr")},
    {INT("stdout_bytes")},
    {INT("stderr_bytes")},
    {BOOL("truncated")},
    {TEXT("stdout_hash")},
    {TEXT("stderr_hash")},
    {TEXT("output_hash")},
    {INT("duration_ms")},
    {INT("cpu_us")},
    {INT("peak_memory_bytes")},
    {INT("disk_read_bytes")},
    {INT("disk_written_bytes")},
    {ONE("egress", EGRESS_COUNTS)},
    {LIST("protected_changes",                                PROTECTED_CHANGE), .optional = true},
    {INT("protected_changes_count"), .optional = true},
    {BOOL("protected_complete"), .optional = true},
    {INT("lamport_clock")},
    {TEXT("timestamp")},
    {0},
};

static const struct shape_member detached[] = {
    {TEXT("exec_id")},
    {TEXT("sandbox_id")},
    {TEXT("verdict")},
    {TEXT("intent_receipt_id")},
    {TEXT("decision_id")},
    {ALSO(POSTURE)},
    {0},
};

static const struct shape_member exec[] = {
    {TEXT("exec_id")},
    {TEXT("state")},
    {BOOL("detached")},
    {TEXT("began_at")},
    {INT("stdout_bytes"), .optional = true},
    {INT("stderr_bytes"), .optional = true},
    {INT("exit_code"), .optional = true, .nullable = true},
    {INT("signal"), .optional = true, .nullable = true},
    {0},
};

static const struct shape_member process[] = {
    {INT("pid")},
    {TEXT("exec")},
    {TEXT("state")},
    {INT("cpu_us")},
    {INT("memory_bytes")},
    {BYTES("command")},
    {0},
};

static const struct shape_member execs[] = {
    {TEXT("sandbox_id")},
    {LIST("execs", EXEC)},
    {LIST("processes", PROCESS)},
    {0},
};

static const struct shape_member moved[] = {
    {TEXT("sandbox_id")},
    {TEXT("verb")},
    {BYTES("path")},
    {INT("bytes")},
    {INT("count")},
    {INT("skipped")},
    {TEXT("hash"), .optional = true},
    {TEXT("tree_hash"), .optional = true},
    {TEXT("receipt_id")},
    {INT("duration_us")},
    {0},
};

static const struct shape_member file_entry[] = {
    {BYTES("name")},
    {TEXT("type")},
    {TEXT("mode")},
    {INT("size")},
    {TEXT("mtime")},
    {INT("uid")},
    {INT("gid")},
    {BYTES("target"), .optional = true},
    {0},
};

static const struct shape_member file_stat[] = {
    {ALSO(FILE_ENTRY)},
    {ALSO(MOVED)},
    {0},
};

static const struct shape_member listing[] = {
    {LIST("entries", FILE_ENTRY)},
    {BOOL("truncated")},
    {ALSO(MOVED)},
    {0},
};

static const struct shape_member snapshot[] = {
    {TEXT("snapshot_id")}, {TEXT("name")},          {TEXT("digest")},
    {TEXT("sandbox_id")},  {TEXT("created_at")},    {TEXT("principal")},
    {TEXT("image")},       {TEXT("image_digest")},  {TEXTS("layers")},
    {TEXTS("stack")},      {BOOL("live")},          {INT("held_us")},
    {INT("bytes_copied")}, {INT("entries_copied")}, {0},
};

static const struct shape_member snapshots[] = {
    {LIST("snapshots", SNAPSHOT)},
    {0},
};

static const struct shape_member snapshot_made[] = {
    {TEXT("sandbox_id")},
    {TEXT("snapshot_id"), .optional = true},
    {BOOL("live")},
    {INT("held_us")},
    {INT("bytes_copied")},
    {INT("entries_copied")},
    {ALSO(DONE)},
    {0},
};

static const struct shape_member snapshot_removed[] = {
    {TEXT("snapshot_id")},
    {BOOL("freed")},
    {ALSO(DONE)},
    {0},
};

static const struct shape_member snapshot_intact[] = {
    {TEXT("snapshot_id")},
    {TEXT("digest")},
    {BOOL("intact")},
    {0},
};

static const struct shape_member forks[] = {
    {TEXT("snapshot_id")},
    {LIST("sandboxes", SANDBOX)},
    {0},
};

static const struct shape_member image_layer[] = {
    {TEXT("diff_id")},   {TEXT("blob")},    {TEXT("media_type")},
    {INT("blob_bytes")}, {TEXT("seal")},    {INT("bytes")},
    {INT("entries")},    {INT("left_out")}, {0},
};

static const struct shape_member image[] = {
    {TEXTS("names")},
    {TEXT("image_digest")},
    {TEXT("config_digest")},
    {TEXT("index_digest"), .optional = true},
    {TEXT("media_type")},
    {TEXT("os")},
    {TEXT("architecture")},
    {TEXT("added")},
    {INT("bytes")},
    {TEXTS("env")},
    {TEXTS("entrypoint")},
    {TEXTS("command")},
    {TEXT("workdir")},
    {TEXT("user")},
    {LIST("layers",                     IMAGE_LAYER)},
    {0},
};

static const struct shape_member image_added[] = {
    {ALSO(IMAGE)},
    {TEXT("receipt_id")},
    {0},
};

static const struct shape_member images[] = {
    {LIST("images", IMAGE)},
    {0},
};

static const struct shape_member image_removed[] = {
    {TEXT("removed")},
    {BOOL("freed")},
    {TEXT("receipt_id")},
    {0},
};

static const struct shape_member image_intact[] = {
    {TEXT("image_digest")},
    {BOOL("intact")},
    {0},
};

static const struct shape_member receipts[] = {
    {ANY("receipts")},
    {0},
};

static const struct shape_member trusted_key[] = {
    {TEXT("key_id")},
    {BYTES("why")},
    {0},
};

static const struct shape_member fault[] = {
    {TEXT("kind")},
    {INT("seq")},
    {TEXT("receipt_id"), .optional = true},
    {INT("line"), .optional = true},
    {BYTES("text")},
    {0},
};

static const struct shape_member verification[] = {
    {BOOL("ok")},
    {TEXT("integrity")},
    {TEXT("completeness")},
    {INT("entries")},
    {INT("open_runs")},
    {INT("last_seq")},
    {TEXT("last_hash")},
    {ONE("trusted_key",    TRUSTED_KEY)},
    {INT("head_seq"), .optional = true},
    {ONE("fault",FAULT), .optional = true},
    {0},
};

static const struct shape_member token[] = {
    {TEXT("token_id")},
    {TEXT("tenant")},
    {TEXT("principal")},
    {TEXTS("scopes")},
    {INT("requests_per_second")},
    {INT("requests_at_once")},
    {TEXT("created_at")},
    {TEXT("expires_at")},
    {TEXT("used_at")},
    {TEXT("revoked_at")},
    {TEXT("made_by")},
    {0},
};

static const struct shape_member tokens[] = {
    {LIST("tokens", TOKEN)},
    {0},
};

static const struct shape_member token_made[] = {
    {ALSO(TOKEN)},
    {TEXT("token")},
    {TEXT("receipt_id")},
    {0},
};

static const struct shape_member token_revoked[] = {
    {ALSO(TOKEN)},
    {TEXT("receipt_id")},
    {0},
};

static const struct shape_member secret_binding[] = {
    {TEXT("id")},
    {TEXT("tenant")},
    {TEXT("subject")},
    {TEXT("pack")},
    {TEXT("scheme")},
    {TEXT("host")},
    {INT("port")},
    {TEXT("method")},
    {TEXT("path")},
    {TEXT("slot")},
    {0},
};

static const struct shape_member secret[] = {
    {TEXT("name")},
    {INT("version")},
    {TEXT("created_at")},
    {TEXT("changed_at")},
    {LIST("bindings", SECRET_BINDING)},
    {0},
};

static const struct shape_member secrets[] = {
    {LIST("secrets", SECRET)},
    {0},
};

static const struct shape_member secret_done[] = {
    {ALSO(SECRET)},
    {TEXT("receipt_id")},
    {0},
};

static const struct shape_member secret_gone[] = {
    {TEXT("name")},
    {TEXT("receipt_id")},
    {0},
};

static const struct shape_member advisory_span[] = {
    {INT("start")},
    {INT("end")},
    {0},
};

static const struct shape_member advisory_position[] = {
    {INT("line")},
    {INT("column")},
    {INT("byte")},
    {0},
};

static const struct shape_member advisory_finding[] = {
    {TEXT("category")},
    {TEXT("rule")},
    {TEXT("verdict")},
    {TEXT("drift")},
    {TEXT("severity")},
    {ONE("span", ADVISORY_SPAN)},
    {TEXT("where")},
    {TEXT("excerpt")},
    {0},
};

static const struct shape_member advisory_check[] = {
    {TEXT("kind")},
    {TEXT("verdict")},
    {INT("exit_code")},
    {TEXTS("category")},
    {TEXT("rule")},
    {ONE("span", ADVISORY_SPAN)},
    {BYTES("normalized")},
    {TEXT("advisory_text")},
    {BOOL("confusable")},
    {TEXT("drift")},
    {TEXT("severity")},
    {LIST("findings", ADVISORY_FINDING)},
    {INT("unlisted")},
    {BOOL("valid")},
    {BYTES("fault"), .optional = true},
    {ONE("position", ADVISORY_POSITION), .optional = true},
    {INT("compliance"), .optional = true},
    {INT("drift_thousandths"), .optional = true},
    {TEXT("client_view"), .optional = true},
    {0},
};

static const struct shape_member advisory_counts[] = {
    {INT("attempted_agency")},
    {INT("unsafe_command")},
    {INT("path_violation")},
    {INT("unsupported_file_operation")},
    {INT("attempted_shell_execution")},
    {INT("quiescence_breach")},
    {INT("hallucinated_permission")},
    {INT("structural_violation")},
    {INT("epistemic_collapse")},
    {INT("epistemic_laundering")},
    {0},
};

static const struct shape_member advisory_session[] = {
    {TEXT("run_id")},
    {TEXT("agent_id")},
    {TEXT("agent_version")},
    {TEXT("evidence")},
    {TEXT("channel")},
    {TEXT("profile")},
    {TEXT("requester")},
    {TEXT("constitution_sha256")},
    {BOOL("constitution_first")},
    {INT("created_at")},
    {INT("turns_max")},
    {ONE("counts", ADVISORY_COUNTS)},
    {TEXT("drift")},
    {INT("compliance")},
    {INT("labels_low")},
    {INT("envelopes_invalid")},
    {INT("prompts")},
    {INT("turns")},
    {INT("events")},
    {TEXT("head_hash")},
    {BOOL("ended")},
    {TEXT("ended_by")},
    {BOOL("lost")},
    {TEXT("chain")},
    {0},
};

static const struct shape_member advisory_broken[] = {
    {TEXT("run_id")},
    {TEXT("chain")},
    {0},
};

static const struct shape_member advisory_sessions[] = {
    {LIST("sessions", ADVISORY_SESSION)},
    {LIST("broken", ADVISORY_BROKEN)},
    {TEXT("next_after")},
    {0},
};

static const struct shape_member advisory_turn[] = {
    {INT("turn")},
    {TEXT("verdict")},
    {BOOL("valid")},
    {TEXT("client_view")},
    {LIST("findings", ADVISORY_FINDING)},
    {INT("unlisted")},
    {TEXT("drift")},
    {TEXT("severity")},
    {INT("compliance")},
    {INT("first_event")},
    {INT("last_event")},
    {BOOL("over")},
    {0},
};

static const struct shape_member advisory_shown[] = {
    {INT("turn")},
    {TEXT("client_view")},
    {0},
};

static const struct shape_member advisory_view[] = {
    {LIST("turns", ADVISORY_SHOWN)},
    {INT("next_after")},
    {0},
};

static const struct shape_member advisory_envelope[] = {
    {INT("turn")},
    {BOOL("valid")},
    {BOOL("stored")},
    {BOOL("whole")},
    {ANY("envelope")},
    {0},
};

static const struct shape_member advisory_envelopes[] = {
    {LIST("turns", ADVISORY_ENVELOPE)},
    {INT("next_after")},
    {0},
};

static const struct shape_member advisory_events[] = {
    {ANY("events")},
    {INT("next_after")},
    {0},
};

static const struct shape_member advisory_action[] = {
    {TEXT("request_id")},
    {TEXT("state")},
    {TEXT("digest")},
    {TEXT("drift")},
    {TEXT("request")},
    {INT("created_at")},
    {INT("expires_at")},
    {TEXT("decided_by")},
    {BOOL("done")},
    {TEXT("why")},
    {0},
};

static const struct shape_member advisory_target[] = {
    {BOOL("exists")},
    {INT("size_bytes"), .optional = true},
    {TEXT("sha256"), .optional = true},
    {TEXT("refused"), .optional = true},
    {0},
};

static const struct shape_member advisory_reading[] = {
    {TEXT("type")},
    {TEXT("operation")},
    {TEXT("target")},
    {TEXT("destination"), .optional = true},
    {TEXT("content_sha256"), .optional = true},
    {INT("content_bytes"), .optional = true},
    {TEXT("risk")},
    {ONE("target_now", ADVISORY_TARGET)},
    {BOOL("as_asked")},
    {0},
};

static const struct shape_member advisory_action_shown[] = {
    {ALSO(ADVISORY_ACTION)},
    {ONE("reading", ADVISORY_READING), .optional = true},
    {TEXT("fault"), .optional = true},
    {0},
};

static const struct shape_member advisory_action_asked[] = {
    {ALSO(ADVISORY_ACTION)},
    {LIST("findings", ADVISORY_FINDING)},
    {0},
};

static const struct shape_member advisory_action_done[] = {
    {ALSO(ADVISORY_ACTION)},
    {TEXT("receipt_id")},
    {0},
};

static const struct shape_member advisory_actions[] = {
    {LIST("actions", ADVISORY_ACTION_SHOWN)},
    {TEXT("next_after")},
    {0},
};

static const struct shape_member advisory_hit[] = {
    {TEXT("category")},
    {TEXT("rule")},
    {INT("n")},
    {0},
};

static const struct shape_member advisory_judged[] = {
    {TEXT("verdict")},
    {TEXT("drift")},
    {BOOL("valid")},
    {INT("compliance")},
    {INT("unlisted")},
    {LIST("findings", ADVISORY_HIT)},
    {0},
};

/* after is an AdvisoryJudged, or null. */
static const struct shape_member advisory_difference[] = {
    {TEXT("run_id")},
    {INT("turn")},
    {INT("seq")},
    {BOOL("stored")},
    {ONE("before", ADVISORY_JUDGED)},
    {ANY("after")},
    {0},
};

static const struct shape_member advisory_replay[] = {
    {TEXT("profile")},
    {INT("sessions")},
    {INT("left_out")},
    {INT("turns")},
    {INT("differ")},
    {INT("not_stored")},
    {INT("not_whole")},
    {ONE("before", ADVISORY_COUNTS)},
    {ONE("after", ADVISORY_COUNTS)},
    {LIST("differences", ADVISORY_DIFFERENCE)},
    {0},
};

static const struct shape_member gate_condition[] = {
    {TEXT("name")},
    {BOOL("passed")},
    {TEXTS("evidence")},
    {0},
};

static const struct shape_member gate_run[] = {
    {TEXT("run_id")},
    {TEXT("channel")},
    {TEXT("profile")},
    {TEXT("ended_by")},
    {TEXT("head_hash")},
    {INT("events")},
    {INT("turns")},
    {0},
};

static const struct shape_member gate_window[] = {
    {TEXT("first")},
    {TEXT("last")},
    {INT("started_at")},
    {0},
};

static const struct shape_member gate_word[] = {
    {TEXT("custodian")},
    {INT("expires_at")},
    {TEXT("gate_report_sha256")},
    {TEXT("signature")},
    {TEXT("why_not")},
    {0},
};

static const struct shape_member gate_signatures[] = {
    {TEXT("name")},
    {BOOL("passed")},
    {LIST("words", GATE_WORD)},
    {0},
};

static const struct shape_member gate[] = {
    {INT("v")},
    {TEXT("agent_id")},
    {TEXT("agent_version")},
    {TEXT("constitution_sha256")},
    {TEXT("evidence")},
    {INT("n")},
    {ONE("window", GATE_WINDOW)},
    {LIST("runs", GATE_RUN)},
    {LIST("conditions", GATE_CONDITION)},
    {TEXT("gate_report_sha256")},
    {ONE("signatures", GATE_SIGNATURES)},
    {BOOL("met")},
    {BOOL("released")},
    {TEXT("why_not")},
    {0},
};

static const struct shape_member policy_error[] = {
    {TEXT("code")},
    {BYTES("message")},
    {INT("line"), .optional = true},
    {INT("column"), .optional = true},
    {0},
};

static const struct shape_member policy_check[] = {
    {BOOL("valid")},
    {TEXT("policy_hash"), .optional = true},
    {INT("rules"), .optional = true},
    {TEXT("not_enforceable"), .optional = true},
    {ONE("error", POLICY_ERROR), .optional = true},
    {0},
};

static const struct shape_member policy[] = {
    {ALSO(POLICY_CHECK)},
    {TEXT("source")},
    {BYTES("text"), .optional = true},
    {0},
};

static const struct shape_member hindrance[] = {
    {TEXT("reason_code")},
    {BYTES("reason")},
    {TEXT("policy_layer"), .optional = true},
    {0},
};

static const struct shape_member seen_command[] = {
    {INT("start")},
    {INT("end")},
    {TEXT("known")},
    {BOOL("hides")},
    {ANY("words")}, /* texts; what is none is an object with bytes_b64 */
    {INT("words_count")},
    {BYTES("within"), .optional = true},
    {0},
};

static const struct shape_member decision[] = {
    {TEXT("verdict")},
    {TEXT("reason_code")},
    {BYTES("reason")},
    {TEXT("policy_layer"), .optional = true},
    {BYTES("rule"), .optional = true},
    {INT("line"), .optional = true},
    {TEXT("effect_class"), .optional = true},
    {TEXT("effect_risk"), .optional = true},
    {TEXT("policy_hash")},
    {TEXT("not_enforceable"), .optional = true},
    {TEXT("requires_release"), .optional = true},
    {INT("release_runs"), .optional = true},
    {LIST("seen", SEEN_COMMAND)},
    {INT("seen_count")},
    {LIST("would_be_refused", HINDRANCE)},
    {0},
};

static const struct shape_member limit[] = {
    {INT("value")},
    {TEXT("unit")},
    {TEXT("means")},
    {TEXT("origin")},
    {TEXT("why"), .optional = true},
    {0},
};

static const struct shape_member refusal[] = {
    {TEXT("what")},
    {TEXT("change")},
    {0},
};

static const struct shape_member protected_place[] = {
    {BYTES("path")},
    {TEXT("why")},
    {0},
};

static const struct shape_member protected_name[] = {
    {TEXT("name")},
    {TEXT("why")},
    {0},
};

static const struct shape_member protected[] = {
    {BOOL("allowed")},
    {LIST("names", PROTECTED_NAME)},
    {LIST("places", PROTECTED_PLACE)},
    {0},
};

static const struct shape_member inside_user[] = {
    {INT("gid")}, {BYTES("name")}, {TEXT("origin")}, {INT("uid")}, {0},
};

static const struct shape_member kept_policy[] = {
    {TEXT("hash")},
    {TEXT("source")},
    {TEXT("text"), .optional = true},
    {0},
};

static const struct shape_member explanation[] = {
    {TEXT("sandbox_id")},
    {TEXT("name")},
    {TEXT("state")},
    {TEXT("principal")},
    {TEXT("scope")},
    {TEXTS("labels")},
    {TEXT("created_at")},
    {TEXT("expires_at")},
    {INT("idle_ms")},
    {INT("lifetime_ms")},
    {TEXT("provider")},
    {TEXT("provider_version")},
    {TEXT("image")},
    {TEXT("image_digest")},
    {TEXT("config_hash")},
    {BOOL("drift")},
    {ONE("user", INSIDE_USER)},
    {TEXTS("mounts")},
    {TEXT("workspace")},
    {ONE("protected", PROTECTED)},
    {MAP("limits", LIMIT)},
    {TEXT("egress")},
    {TEXT("egress_policy_hash"), .optional = true},
    {TEXT("sockets")},
    {ONE("policy", KEPT_POLICY)},
    {LIST("refusals", REFUSAL)},
    {0},
};

static const struct shape_member recreated[] = {
    {TEXT("old_sandbox_id")},
    {TEXT("sandbox_id")},
    {TEXT("receipt_id")},
    {0},
};

static const struct shape_member check[] = {
    {TEXT("name")},   {BYTES("expected")},   {BYTES("observed")},
    {TEXT("result")}, {TEXT("reason_code")}, {0},
};

static const struct shape_member preflight[] = {
    {TEXT("provider")},
    {BOOL("pass")},
    {TEXT("verdict")},
    {TEXT("reason_code")},
    {BYTES("reason")},
    {TEXT("evidence")},
    {TEXT("provider_version")},
    {TEXT("sandbox_spec_hash")},
    {TEXT("image_digest")},
    {TEXT("mounts_hash")},
    {TEXT("egress_policy_hash")},
    {TEXT("resource_limits_hash")},
    {TEXT("preflight_hash")},
    {LIST("checks", CHECK)},
    {TEXT("receipt_id")},
    {0},
};

static const struct shape_member finding[] = {
    {TEXT("area")},
    {TEXT("name")},
    {TEXT("result")},
    {BYTES("seen")},
    {BYTES("fix"), .optional = true},
    {0},
};

static const struct shape_member provider_limit[] = {
    {TEXT("held_by")},
    {BYTES("why"), .optional = true},
    {0},
};

static const struct shape_member provider[] = {
    {TEXT("name")},
    {BOOL("usable")},
    {TEXT("version"), .optional = true},
    {TEXT("isolation"), .optional = true},
    {BOOL("runs_nothing"), .optional = true},
    {MAP("limits", PROVIDER_LIMIT), .optional = true},
    {BYTES("why"), .optional = true},
    {0},
};

static const struct shape_member doctor[] = {
    {BOOL("usable")},
    {LIST("findings", FINDING)},
    {LIST("providers", PROVIDER)},
    {0},
};

static const struct shape_member preview[] = {
    {TEXT("sandbox_id")}, {INT("port")}, {TEXT("path")}, {TEXT("url")}, {TEXT("expires_at")},
    {TEXT("receipt_id")}, {0},
};

static const struct shape_member frozen[] = {
    {TEXT("tenant"), .optional = true},
    {TEXT("principal"), .optional = true},
    {BOOL("everything")},
    {TEXT("since"), .optional = true},
    {TEXT("by"), .optional = true},
    {TEXT("reason"), .optional = true},
    {0},
};

static const struct shape_member frozen_list[] = {
    {LIST("frozen", FROZEN)},
    {0},
};

static const struct shape_member freeze_done[] = {
    {ALSO(FROZEN)},
    {TEXT("receipt_id")},
    {0},
};

static const struct shape_member approval[] = {
    {TEXT("approval_id")},
    {INT("seq")},
    {TEXT("state")},
    {TEXT("requester")},
    {TEXT("digest")},
    {TEXT("asked_at")},
    {TEXT("expires_at")},
    {TEXT("decided_at"), .optional = true},
    {TEXT("decided_by"), .optional = true},
    {BYTES("comment"), .optional = true},
    {TEXT("group"), .optional = true},
    {TEXTS("may_confirm"), .optional = true},
    {ANY("may_confirm_also"), .optional = true},
    {INT("quorum")},
    {INT("confirmations")},
    {BOOL("reason_required")},
    {LIST("words", APPROVAL_WORD), .optional = true},
    {ANY("subject")},
    {0},
};

static const struct shape_member approval_word[] = {
    {TEXT("by")},
    {BOOL("confirms")},
    {TEXT("at")},
    {BYTES("comment")},
    {0},
};

static const struct shape_member approvals[] = {
    {LIST("approvals", APPROVAL)},
    {INT("next_after")},
    {BOOL("more")},
    {0},
};

static const struct shape_member approval_done[] = {
    {ALSO(APPROVAL)},
    {TEXT("receipt_id")},
    {0},
};

static const struct shape_member budget_amount[] = {
    {TEXT("kind")},
    {INT("limit")},
    {INT("used")},
    {INT("reserved")},
    {0},
};

static const struct shape_member budget[] = {
    {TEXT("per")},
    {BYTES("name"), .optional = true},
    {INT("within_s")},
    {TEXT("set_by")},
    {INT("line"), .optional = true},
    {INT("egress_run"), .optional = true},
    {TEXT("began_at"), .optional = true},
    {TEXT("renews_at"), .optional = true},
    {LIST("amounts", BUDGET_AMOUNT)},
    {0},
};

static const struct shape_member budget_prices[] = {
    {INT("run")},
    {INT("vcpu_second")},
    {INT("gib_second")},
    {0},
};

static const struct shape_member budgets[] = {
    {LIST("budgets", BUDGET)},
    {ONE("prices", BUDGET_PRICES)},
    {0},
};

static const struct shape_member usage[] = {
    {TEXT("day")},
    {BYTES("principal")},
    {INT("commands")},
    {INT("sandboxes")},
    {INT("denied")},
    {INT("duration_us")},
    {INT("cpu_us")},
    {INT("output_bytes")},
    {INT("disk_written_bytes")},
    {0},
};

static const struct shape_member policy_change[] = {
    {TEXT("policy_hash")},
    {BOOL("standing")},
    {TEXT("receipt_id")},
    {TEXT("sandbox_id"), .optional = true},
    {TEXT("network_hash"), .optional = true},
    {INT("entries_added"), .optional = true},
    {INT("entries_changed"), .optional = true},
    {INT("entries_removed"), .optional = true},
    {0},
};

static const struct shape_member usages[] = {
    {LIST("usage", USAGE)},
    {0},
};

const struct shape view_shapes[] = {
    [AT_VERSION] = {"Version", version},
    [AT_CALLER] = {"Caller", caller},
    [AT_SANDBOX] = {"Sandbox", sandbox},
    [AT_SANDBOX_MADE] = {"SandboxMade", sandbox_made},
    [AT_SANDBOXES] = {"Sandboxes", sandboxes},
    [AT_DONE] = {"Done", done},
    [AT_CHANGE] = {"Change", change},
    [AT_POSTURE] = {"Posture", posture},
    [AT_RUN_LIMIT] = {"RunLimit", run_limit},
    [AT_PROTECTED_CHANGE] = {"ProtectedChange", protected_change},
    [AT_EGRESS_COUNTS] = {"EgressCounts", egress_counts},
    [AT_RUN] = {"Run", run},
    [AT_DETACHED] = {"Detached", detached},
    [AT_EXEC] = {"Exec", exec},
    [AT_PROCESS] = {"Process", process},
    [AT_EXECS] = {"Execs", execs},
    [AT_MOVED] = {"Moved", moved},
    [AT_FILE_ENTRY] = {"FileEntry", file_entry},
    [AT_FILE_STAT] = {"FileStat", file_stat},
    [AT_LISTING] = {"Listing", listing},
    [AT_SNAPSHOT] = {"Snapshot", snapshot},
    [AT_SNAPSHOTS] = {"Snapshots", snapshots},
    [AT_SNAPSHOT_MADE] = {"SnapshotMade", snapshot_made},
    [AT_SNAPSHOT_REMOVED] = {"SnapshotRemoved", snapshot_removed},
    [AT_SNAPSHOT_INTACT] = {"SnapshotIntact", snapshot_intact},
    [AT_FORKS] = {"Forks", forks},
    [AT_IMAGE_LAYER] = {"ImageLayer", image_layer},
    [AT_IMAGE] = {"Image", image},
    [AT_IMAGE_ADDED] = {"ImageAdded", image_added},
    [AT_IMAGES] = {"Images", images},
    [AT_IMAGE_REMOVED] = {"ImageRemoved", image_removed},
    [AT_IMAGE_INTACT] = {"ImageIntact", image_intact},
    [AT_RECEIPTS] = {"Receipts", receipts},
    [AT_TRUSTED_KEY] = {"TrustedKey", trusted_key},
    [AT_FAULT] = {"Fault", fault},
    [AT_VERIFICATION] = {"Verification", verification},
    [AT_TOKEN] = {"Token", token},
    [AT_TOKENS] = {"Tokens", tokens},
    [AT_TOKEN_MADE] = {"TokenMade", token_made},
    [AT_TOKEN_REVOKED] = {"TokenRevoked", token_revoked},
    [AT_SECRET_BINDING] = {"SecretBinding", secret_binding},
    [AT_SECRET] = {"Secret", secret},
    [AT_SECRETS] = {"Secrets", secrets},
    [AT_SECRET_DONE] = {"SecretDone", secret_done},
    [AT_SECRET_GONE] = {"SecretGone", secret_gone},
    [AT_POLICY_ERROR] = {"PolicyError", policy_error},
    [AT_POLICY_CHECK] = {"PolicyCheck", policy_check},
    [AT_POLICY] = {"Policy", policy},
    [AT_HINDRANCE] = {"Hindrance", hindrance},
    [AT_SEEN_COMMAND] = {"SeenCommand", seen_command},
    [AT_DECISION] = {"Decision", decision},
    [AT_LIMIT] = {"Limit", limit},
    [AT_REFUSAL] = {"Refusal", refusal},
    [AT_PROTECTED_PLACE] = {"ProtectedPlace", protected_place},
    [AT_PROTECTED_NAME] = {"ProtectedName", protected_name},
    [AT_PROTECTED] = {"Protected", protected},
    [AT_INSIDE_USER] = {"InsideUser", inside_user},
    [AT_KEPT_POLICY] = {"KeptPolicy", kept_policy},
    [AT_EXPLANATION] = {"Explanation", explanation},
    [AT_RECREATED] = {"Recreated", recreated},
    [AT_CHECK] = {"Check", check},
    [AT_PREFLIGHT] = {"Preflight", preflight},
    [AT_FINDING] = {"Finding", finding},
    [AT_PROVIDER_LIMIT] = {"ProviderLimit", provider_limit},
    [AT_PROVIDER] = {"Provider", provider},
    [AT_DOCTOR] = {"Doctor", doctor},
    [AT_PREVIEW] = {"Preview", preview},
    [AT_FROZEN] = {"Frozen", frozen},
    [AT_FROZEN_LIST] = {"FrozenList", frozen_list},
    [AT_FREEZE_DONE] = {"FreezeDone", freeze_done},
    [AT_APPROVAL] = {"Approval", approval},
    [AT_APPROVAL_WORD] = {"ApprovalWord", approval_word},
    [AT_APPROVALS] = {"Approvals", approvals},
    [AT_APPROVAL_DONE] = {"ApprovalDone", approval_done},
    [AT_BUDGET_AMOUNT] = {"BudgetAmount", budget_amount},
    [AT_BUDGET] = {"Budget", budget},
    [AT_BUDGET_PRICES] = {"BudgetPrices", budget_prices},
    [AT_BUDGETS] = {"Budgets", budgets},
    [AT_ADVISORY_SPAN] = {"AdvisorySpan", advisory_span},
    [AT_ADVISORY_POSITION] = {"AdvisoryPosition", advisory_position},
    [AT_ADVISORY_FINDING] = {"AdvisoryFinding", advisory_finding},
    [AT_ADVISORY_CHECK] = {"AdvisoryCheck", advisory_check},
    [AT_ADVISORY_COUNTS] = {"AdvisoryCounts", advisory_counts},
    [AT_ADVISORY_SESSION] = {"AdvisorySession", advisory_session},
    [AT_ADVISORY_BROKEN] = {"AdvisoryBroken", advisory_broken},
    [AT_ADVISORY_SESSIONS] = {"AdvisorySessions", advisory_sessions},
    [AT_ADVISORY_TURN] = {"AdvisoryTurn", advisory_turn},
    [AT_ADVISORY_SHOWN] = {"AdvisoryShown", advisory_shown},
    [AT_ADVISORY_VIEW] = {"AdvisoryView", advisory_view},
    [AT_ADVISORY_ENVELOPE] = {"AdvisoryEnvelope", advisory_envelope},
    [AT_ADVISORY_ENVELOPES] = {"AdvisoryEnvelopes", advisory_envelopes},
    [AT_ADVISORY_EVENTS] = {"AdvisoryEvents", advisory_events},
    [AT_ADVISORY_ACTION] = {"AdvisoryAction", advisory_action},
    [AT_ADVISORY_TARGET] = {"AdvisoryTarget", advisory_target},
    [AT_ADVISORY_READING] = {"AdvisoryReading", advisory_reading},
    [AT_ADVISORY_ACTION_SHOWN] = {"AdvisoryActionShown", advisory_action_shown},
    [AT_ADVISORY_ACTION_ASKED] = {"AdvisoryActionAsked", advisory_action_asked},
    [AT_ADVISORY_ACTION_DONE] = {"AdvisoryActionDone", advisory_action_done},
    [AT_ADVISORY_ACTIONS] = {"AdvisoryActions", advisory_actions},
    [AT_ADVISORY_HIT] = {"AdvisoryHit", advisory_hit},
    [AT_ADVISORY_JUDGED] = {"AdvisoryJudged", advisory_judged},
    [AT_ADVISORY_DIFFERENCE] = {"AdvisoryDifference", advisory_difference},
    [AT_ADVISORY_REPLAY] = {"AdvisoryReplay", advisory_replay},
    [AT_GATE_CONDITION] = {"GateCondition", gate_condition},
    [AT_GATE_RUN] = {"GateRun", gate_run},
    [AT_GATE_WINDOW] = {"GateWindow", gate_window},
    [AT_GATE_WORD] = {"GateWord", gate_word},
    [AT_GATE_SIGNATURES] = {"GateSignatures", gate_signatures},
    [AT_GATE] = {"Gate", gate},
    [AT_USAGE] = {"Usage", usage},
    [AT_USAGES] = {"Usages", usages},
    [AT_POLICY_CHANGE] = {"PolicyChange", policy_change},
    {0},
};

/* clang-format on */

const struct shape *view_shape(const char *name)
{
    for (const struct shape *shape = view_shapes; shape->name; shape++)
        if (strcmp(shape->name, name) == 0)
            return shape;
    return NULL;
}
