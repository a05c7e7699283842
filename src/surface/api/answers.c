/* SPDX-License-Identifier: Apache-2.0 */

/* What each route answers when all is well. The document and the reference are made of these rows,
 * and tests/flow/serve-schemas.bats holds real answers against them. */

#include "surface/api/answers.h"

#include <string.h>

/* Tables are written as tables. */
/* clang-format off */

const struct answer answers[] = {
    {"health", 200, NULL, "text/plain"},
    {"getVersion", 200, "Version", NULL},
    {"whoAmI", 200, "Caller", NULL},
    {"getMetrics", 200, NULL, "text/plain"},
    {"getOpenApi", 200, "", "application/json"},
    {"listSandboxes", 200, "Sandboxes", NULL},
    {"createSandbox", 201, "SandboxMade", NULL},
    {"getSandbox", 200, "Sandbox", NULL},
    {"destroySandbox", 200, "Change", NULL},
    {"pauseSandbox", 200, "Change", NULL},
    {"resumeSandbox", 200, "Change", NULL},
    {"extendSandbox", 200, "Change", NULL},
    {"explainSandbox", 200, "Explanation", NULL},
    {"recreateSandbox", 201, "Recreated", NULL},
    {"preflight", 200, "Preflight", NULL},
    {"run", 200, "Run", NULL},
    {"run", 200, NULL, "application/x-ndjson"},
    {"run", 200, NULL, "text/event-stream"},
    {"run", 200, NULL, "application/octet-stream"},
    {"exec", 200, "Run", NULL},
    {"exec", 200, NULL, "application/x-ndjson"},
    {"exec", 200, NULL, "text/event-stream"},
    {"exec", 200, NULL, "application/octet-stream"},
    {"exec", 202, "Detached", NULL},
    {"execSocket", 101, NULL, NULL},
    {"listExecs", 200, "Execs", NULL},
    {"getExec", 200, "Exec", NULL},
    {"followExec", 200, NULL, "application/x-ndjson"},
    {"followExec", 200, NULL, "text/event-stream"},
    {"signalExec", 200, "Exec", NULL},
    {"readFile", 200, NULL, "application/octet-stream"},
    {"readFile", 206, NULL, "application/octet-stream"},
    {"readFile", 304, NULL, NULL},
    {"writeFile", 200, "Moved", NULL},
    {"removeFile", 200, "Moved", NULL},
    {"listFiles", 200, "Listing", NULL},
    {"statFile", 200, "FileStat", NULL},
    {"makeFolder", 200, "Moved", NULL},
    {"moveFile", 200, "Moved", NULL},
    {"watchFiles", 200, NULL, "application/x-ndjson"},
    {"packFolder", 200, NULL, "application/x-tar"},
    {"unpackFolder", 200, "Moved", NULL},
    {"listSnapshots", 200, "Snapshots", NULL},
    {"listSandboxSnapshots", 200, "Snapshots", NULL},
    {"createSnapshot", 201, "SnapshotMade", NULL},
    {"restoreSandbox", 200, "SnapshotMade", NULL},
    {"forkSandbox", 201, "Forks", NULL},
    {"forkSnapshot", 201, "Forks", NULL},
    {"importSnapshot", 201, "SnapshotMade", NULL},
    {"getSnapshot", 200, "Snapshot", NULL},
    {"removeSnapshot", 200, "SnapshotRemoved", NULL},
    {"verifySnapshot", 200, "SnapshotIntact", NULL},
    {"exportSnapshot", 200, NULL, "application/x-tar"},
    {"listImages", 200, "Images", NULL},
    {"removeImage", 200, "ImageRemoved", NULL},
    {"getImage", 200, "Image", NULL},
    {"pullImage", 201, "ImageAdded", NULL},
    {"pullImage", 200, NULL, "application/x-ndjson"},
    {"pullImage", 200, NULL, "text/event-stream"},
    {"importImage", 201, "ImageAdded", NULL},
    {"importImage", 200, NULL, "application/x-ndjson"},
    {"importImage", 200, NULL, "text/event-stream"},
    {"exportImage", 200, NULL, "application/x-tar"},
    {"verifyImage", 200, "ImageIntact", NULL},
    {"doctor", 200, "Doctor", NULL},
    {"getPolicy", 200, "Policy", NULL},
    {"checkPolicy", 200, "PolicyCheck", NULL},
    {"explainPolicy", 200, "Decision", NULL},
    {"previewPort", 201, "Preview", NULL},
    {"reachPort", 200, NULL, "*/*"},
    {"viewPreview", 200, NULL, "*/*"},
    {"listReceipts", 200, "Receipts", NULL},
    {"tailReceipts", 200, NULL, "application/x-ndjson"},
    {"tailReceipts", 200, NULL, "text/event-stream"},
    {"verifyReceipts", 200, "Verification", NULL},
    {"getReceiptsHead", 200, "", "application/json"},
    {"exportReceipts", 200, NULL, "application/x-ndjson"},
    {"getReceipt", 200, "", "application/json"},
    {"listTokens", 200, "Tokens", NULL},
    {"createToken", 201, "TokenMade", NULL},
    {"revokeToken", 200, "TokenRevoked", NULL},
    {"listFrozen", 200, "FrozenList", NULL},
    {"freeze", 200, "FreezeDone", NULL},
    {"unfreeze", 200, "FreezeDone", NULL},
    {"listSecrets", 200, "Secrets", NULL},
    {"showSecret", 200, "Secret", NULL},
    {"setSecret", 200, "SecretDone", NULL},
    {"rotateSecret", 200, "SecretDone", NULL},
    {"bindSecret", 201, "SecretDone", NULL},
    {"unbindSecret", 200, "SecretDone", NULL},
    {"removeSecret", 200, "SecretGone", NULL},
    {"listApprovals", 200, "Approvals", NULL},
    {"showApproval", 200, "Approval", NULL},
    {"confirmApproval", 200, "ApprovalDone", NULL},
    {"rejectApproval", 200, "ApprovalDone", NULL},
    {"showUsage", 200, "Usages", NULL},
    {"applyPolicy", 200, "PolicyChange", NULL},
    {"resetPolicy", 200, "PolicyChange", NULL},
    {"applySandboxPolicy", 200, "PolicyChange", NULL},
    {0},
};

/* clang-format on */

const struct answer *answer_next(const char *route, const struct answer *before)
{
    for (const struct answer *answer = before ? before + 1 : answers; answer->route; answer++)
        if (strcmp(answer->route, route) == 0)
            return answer;
    return NULL;
}

const char *answer_type(const struct answer *answer)
{
    return answer->type ? answer->type : answer->shape ? "application/json" : NULL;
}
