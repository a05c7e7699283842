/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Why a run was allowed, refused or ended: one code, one sentence for a person.
 * The codes are part of the receipt format; they are added, never renamed. */
#define REASONS(X)                                                                                 \
    X(NONE, "", "")                                                                                \
    X(POLICY_ALLOW, "POLICY_ALLOW", "a rule of the policy allows it")                              \
    X(POLICY_DEFAULT_ALLOW, "POLICY_DEFAULT_ALLOW", "no rule matched and the default is allow")    \
    X(POLICY_DENY, "POLICY_DENY", "a rule of the policy denies it")                                \
    X(POLICY_DEFAULT_DENY, "POLICY_DEFAULT_DENY", "no rule of the policy allows it")               \
    X(POLICY_ASK, "POLICY_ASK", "a person must confirm it")                                        \
    X(ELEVATED_ASK, "ELEVATED_ASK", "it would run without walls, and a person must confirm that")  \
    X(ELEVATED_FORBIDDEN, "ELEVATED_FORBIDDEN", "it may not run without walls")                    \
    X(APPROVAL_CONFIRMED, "APPROVAL_CONFIRMED", "a person confirmed exactly this")                 \
    X(APPROVAL_REJECTED, "APPROVAL_REJECTED", "a person rejected it")                              \
    X(APPROVAL_FAILED, "APPROVAL_FAILED", "a person's word could not be asked for or given")       \
    X(APPROVAL_TARGET_CHANGED, "APPROVAL_TARGET_CHANGED",                                          \
      "what was confirmed is not what is there now")                                               \
    X(POLICY_INVALID, "POLICY_INVALID", "the policy could not be loaded")                          \
    X(POLICY_NOT_ENFORCEABLE, "POLICY_NOT_ENFORCEABLE",                                            \
      "the policy asks for a control that cannot be enforced here")                                \
    X(POLICY_UNSIGNED, "POLICY_UNSIGNED", "only signed policies count here, and this is none")     \
    X(BUNDLE_UNTRUSTED, "BUNDLE_UNTRUSTED", "nobody here trusts whoever signed the policy")        \
    X(BUNDLE_EXPIRED, "BUNDLE_EXPIRED", "the signed policy is over")                               \
    X(BUNDLE_ROLLBACK, "BUNDLE_ROLLBACK", "a later version of the signed policy was applied")      \
    X(PDP_DENY, "PDP_DENY", "the outside decider says no")                                         \
    X(PDP_ASK, "PDP_ASK", "the outside decider wants a person to confirm it")                      \
    X(PDP_ERROR, "PDP_ERROR", "the outside decider gave no good answer")                           \
    X(DECISION_ERROR, "DECISION_ERROR", "no verdict could be reached")                             \
    X(SYSTEM_FROZEN, "SYSTEM_FROZEN", "new effects are frozen")                                    \
    X(REQUEST_INVALID, "REQUEST_INVALID", "the request is not well-formed")                        \
    X(PROVIDER_UNKNOWN, "PROVIDER_UNKNOWN", "there is no such provider")                           \
    X(PROVIDER_UNAVAILABLE, "PROVIDER_UNAVAILABLE", "the provider cannot be used here")            \
    X(LIMIT_NOT_ENFORCEABLE, "LIMIT_NOT_ENFORCEABLE", "a limit that was asked for cannot be held") \
    X(LIMIT_ABOVE_POLICY, "LIMIT_ABOVE_POLICY",                                                    \
      "a limit that was asked for is above the policy's")                                          \
    X(MOUNT_FORBIDDEN, "MOUNT_FORBIDDEN", "a mount that was asked for is not allowed")             \
    X(PLAN_INVALID, "PLAN_INVALID", "no plan could be made")                                       \
    X(SANDBOX_FAILED, "SANDBOX_FAILED", "the sandbox could not be built")                          \
    X(PREFLIGHT_PROVIDER_VERSION, "PREFLIGHT_PROVIDER_VERSION",                                    \
      "the provider is not the version that was pinned")                                           \
    X(PREFLIGHT_IMAGE_DIGEST, "PREFLIGHT_IMAGE_DIGEST", "the image is not the one planned")        \
    X(PREFLIGHT_EGRESS_POLICY, "PREFLIGHT_EGRESS_POLICY",                                          \
      "the network of the sandbox is not the one planned")                                         \
    X(PREFLIGHT_MOUNT_POLICY, "PREFLIGHT_MOUNT_POLICY", "the mounts are not those planned")        \
    X(PREFLIGHT_RESOURCE_LIMITS, "PREFLIGHT_RESOURCE_LIMITS", "the limits are not those planned")  \
    X(PREFLIGHT_ISOLATION, "PREFLIGHT_ISOLATION", "a wall of the sandbox does not stand")          \
    X(COMMAND_NOT_FOUND, "COMMAND_NOT_FOUND", "the command does not exist in the sandbox")         \
    X(COMMAND_NOT_EXECUTABLE, "COMMAND_NOT_EXECUTABLE", "the command cannot be executed")          \
    X(LIMIT_TIME, "LIMIT_TIME", "the time limit ended it")                                         \
    X(LIMIT_MEMORY, "LIMIT_MEMORY", "the memory limit was reached")                                \
    X(LIMIT_PIDS, "LIMIT_PIDS", "the process limit was reached")                                   \
    X(LIMIT_DISK, "LIMIT_DISK", "the disk limit ended it")                                         \
    X(LIMIT_INODES, "LIMIT_INODES", "the file count limit ended it")                               \
    X(BUDGET_EXCEEDED, "BUDGET_EXCEEDED", "what may be used together is used up")                  \
    X(BUDGET_ERROR, "BUDGET_ERROR", "what is left of a budget could not be told")                  \
    X(BUDGET_FAILED, "BUDGET_FAILED", "a budget could not be changed")                             \
    X(CANCELLED, "CANCELLED", "the caller cancelled it")                                           \
    X(SANDBOX_CREATE, "SANDBOX_CREATE",                                                            \
      "making a sandbox runs nothing; each of its commands is decided by itself")                  \
    X(SANDBOX_UNKNOWN, "SANDBOX_UNKNOWN", "there is no such sandbox")                              \
    X(SANDBOX_DRIFT, "SANDBOX_DRIFT", "the sandbox is not what would be made today")               \
    X(SANDBOX_PAUSED, "SANDBOX_PAUSED", "the sandbox is paused")                                   \
    X(SANDBOX_DESTROYED, "SANDBOX_DESTROYED", "the sandbox was destroyed")                         \
    X(SANDBOX_EXPIRED, "SANDBOX_EXPIRED", "its time to live was over")                             \
    X(SANDBOX_IDLE, "SANDBOX_IDLE", "nothing ran in it for as long as was agreed")                 \
    X(SNAPSHOT_FAILED, "SNAPSHOT_FAILED", "a snapshot could not be made, used or removed")         \
    X(IMAGE_FAILED, "IMAGE_FAILED", "an image could not be got, written or removed")               \
    X(IMAGE_REFUSED, "IMAGE_REFUSED",                                                              \
      "the image is not what was asked for, or the way to it is not allowed")                      \
    X(TOKEN_FAILED, "TOKEN_FAILED", "a token could not be made or revoked")                        \
    X(POLICY_FAILED, "POLICY_FAILED", "the standing policy could not be changed")                  \
    X(FREEZE_FAILED, "FREEZE_FAILED", "it could not be frozen or unfrozen")                        \
    X(VAULT_FAILED, "VAULT_FAILED", "the vault could not be changed")                              \
    X(SECRET_BOUND, "SECRET_BOUND", "a binding of the secret names this request")                  \
    X(ADVISORY_FAILED, "ADVISORY_FAILED",                                                          \
      "an advisory session, an action of one or the gate could not be changed")                    \
    X(ADVISORY_ONLY, "ADVISORY_ONLY", "under this policy agents may only advise")                  \
    X(RELEASE_REQUIRED, "RELEASE_REQUIRED",                                                        \
      "the policy wants an agent that two custodians released, and this one is not")               \
    X(FILE_FAILED, "FILE_FAILED", "a file could not be read or changed")                           \
    X(PORT_FAILED, "PORT_FAILED", "a port could not be opened")                                    \
    X(NOT_APPROVED, "NOT_APPROVED",                                                                \
      "it is not what was approved, or the approval is used or over")                              \
    X(APPROVAL_AMBIGUOUS, "APPROVAL_AMBIGUOUS",                                                    \
      "two different commands that are written the same were approved: neither runs")              \
    X(ARGS_HASH_MISMATCH, "ARGS_HASH_MISMATCH", "the arguments are not those the hash is over")    \
    X(UPSTREAM_MISSING, "UPSTREAM_MISSING", "no upstream is configured for other models")          \
    X(UPSTREAM_FAILED, "UPSTREAM_FAILED",                                                          \
      "the upstream could not be asked, or gave no good answer")                                   \
    X(KEEPER_UNAVAILABLE, "KEEPER_UNAVAILABLE",                                                    \
      "nobody can sign receipts at the moment, and nothing runs without one")                      \
    X(NO_SPACE, "NO_SPACE", "a disk, a quota or a table of the kernel is full")                    \
    X(DAEMON_STOPPING, "DAEMON_STOPPING", "the daemon is stopping and begins nothing")             \
    X(RUN_ABANDONED, "RUN_ABANDONED", "whoever it ran for was gone before it ended")               \
    X(MOCK, "MOCK", "the mock provider runs nothing")

enum reason {
#define X(id, code, text) REASON_##id,
    REASONS(X)
#undef X
        REASON_COUNT
};

const char *reason_code(enum reason reason);
const char *reason_text(enum reason reason);
