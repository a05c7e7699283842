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
    AT_APPROVALS,
    AT_APPROVAL_DONE,
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
    {0},
};

static const struct shape_member run[] = {
    {TEXT("verdict")},
    {TEXT("reason_code")},
    {BYTES("reason")},
    {TEXT("outcome_reason_code")},
    {BYTES("rule"), .optional = true},
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

static const struct shape_member decision[] = {
    {TEXT("verdict")},
    {TEXT("reason_code")},
    {BYTES("reason")},
    {BYTES("rule"), .optional = true},
    {INT("line"), .optional = true},
    {TEXT("policy_hash")},
    {TEXT("not_enforceable"), .optional = true},
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
    {ANY("subject")},
    {0},
};

static const struct shape_member approvals[] = {
    {LIST("approvals", APPROVAL)},
    {INT("next_after")},
    {0},
};

static const struct shape_member approval_done[] = {
    {ALSO(APPROVAL)},
    {TEXT("receipt_id")},
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
    [AT_APPROVALS] = {"Approvals", approvals},
    [AT_APPROVAL_DONE] = {"ApprovalDone", approval_done},
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
