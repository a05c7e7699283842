/* SPDX-License-Identifier: Apache-2.0 */

/* POST /api/v1/kernel/approve: a custodian's signed word on what waits for one. The signature is
 * the authority: only keys that were enrolled count, so without custodians nobody approves. */

#include "flow/approve/approve.h"

#include "surface/helm/helm-private.h"

#include <string.h>

#include "flow/record/record.h"
#include "lib/base/limits.h"
#include "lib/json/json.h"

struct approve_body {
    const char *intent_hash;
    struct str signature;
    struct str public_key;
    const char *challenge_response;
};

/* clang-format off */
static const struct field approve_fields[] = {
    {"intent_hash", FIELD_TEXT, offsetof(struct approve_body, intent_hash), .required = true,
     .max = HASH_TEXT_BYTES, .help = "The digest of what waits."},
    {"signature", FIELD_BYTES, offsetof(struct approve_body, signature), .required = true,
     .help = "Ed25519, 64 bytes, as a custodian signs a confirmation."},
    {"public_key", FIELD_BYTES, offsetof(struct approve_body, public_key), .required = true,
     .help = "Of an enrolled custodian, 32 bytes."},
    {"challenge_response", FIELD_TEXT, offsetof(struct approve_body, challenge_response),
     .max = APPROVAL_COMMENT_MAX, .help = "Kept as the comment."},
    {0},
};
/* clang-format on */

/* ---- which one ---- */

static int find_pending(struct call *call, struct approvals *approvals, const char *intent_hash,
                        const char **out, struct err *err)
{
    char digest[HASH_TEXT_BYTES];
    struct approval approval;
    struct hash hash;

    if (!hash_from_text(str_of(intent_hash), &hash) &&
        !hex_decode(str_of(intent_hash), hash.b, sizeof hash.b))
        return err_set(err, ERR_INVALID, "/intent_hash must be sha256: and 64 hex digits");
    hash_text(&hash, digest);
    if (approvals_by_digest(approvals, &call->mem, digest, &approval, err) < 0)
        return -1;
    *out = approval.id;
    return 0;
}

/* ---- whose word ---- */

static int read_word(struct call *call, const struct approve_body *wanted,
                     struct approval_word *out, struct err *err)
{
    AUTO(approvals) struct approvals *approvals = NULL;
    struct custodian custodian;
    struct public_key key;

    if (wanted->signature.n != sizeof out->signature.b || wanted->public_key.n != sizeof key.b)
        return err_set(err, ERR_INVALID, "a signature has %zu bytes, a public key %zu",
                       sizeof out->signature.b, sizeof key.b);
    *out = (struct approval_word){.confirm = true, .comment = wanted->challenge_response};
    memcpy(out->signature.b, wanted->signature.p, sizeof out->signature.b);
    memcpy(key.b, wanted->public_key.p, sizeof key.b);
    if (approvals_open(tenant_state_dir(call->tenant), &approvals, err) < 0 ||
        find_pending(call, approvals, wanted->intent_hash, &out->id, err) < 0)
        return -1;
    if (custodian_by_key(approvals, &call->mem, &key, &custodian, err) < 0)
        return err->code == ERR_NOT_FOUND
                   ? err_set(err, ERR_FORBIDDEN, "this key is not that of a custodian")
                   : -1;
    out->custodian = arena_text(&call->mem, str_of(custodian.name));
    return 0;
}

/* ---- the call ---- */

static int answer(struct call *call, const struct run *run, struct err *err)
{
    AUTO(record) struct record *record = NULL;
    const struct json *receipt = NULL;

    if (record_open(tenant_state_dir(call->tenant), &record, err) < 0 ||
        record_show(record, &call->mem, run->closing.id, &receipt, err) < 0 ||
        call_answer(call, 200, helm_receipt(&call->mem, receipt), err) < 0)
        return -1;
    helm_headers(call, run, 0);
    return 0;
}

static int give_word(struct call *call, const struct approval_word *word, struct err *err)
{
    struct request request = call_request(call, ACTION_APPROVE);
    struct approval approval;
    struct lent lent;
    struct run run;
    int failed;

    if (call_govern(call, &lent, err) < 0)
        return -1;
    run_init(&run);
    helm_session(call, &run);
    failed = govern_approve(lent.govern, &request, word, &run, &approval, err);
    call_release(call, &lent);
    if (!failed)
        failed = answer(call, &run, err);
    run_done(&run);
    return failed;
}

static int approve(struct call *call, const void *body, const void *query, struct err *err)
{
    const struct request request = {.kind = ACTION_APPROVE};
    struct approval_word word;
    struct err why;

    (void)query;
    if (read_word(call, body, &word, &why) == 0 && give_word(call, &word, &why) == 0)
        return 0;
    /* A word that does not count is recorded like any other refusal. */
    if (why.code == ERR_FORBIDDEN)
        return helm_refuse(call, &request, 403, REASON_NOT_APPROVED, &why, err);
    *err = why;
    return -1;
}

/* clang-format off */
const struct route helm_routes_approve[] = {
    {.method = HTTP_POST,
     .path = "/api/v1/kernel/approve",
     .kind = ROUTE_LOOK,
     .scope = SCOPE_READ,
     .body = BODY_JSON,
     .fields = approve_fields,
     .body_size = sizeof(struct approve_body),
     .name = "helmApprove",
     .summary = "Confirm what waits for a person, signed by a custodian.",
     .answer = "The receipt of the confirmation, of twelve members.",
     .refusal = HELM_REFUSAL,
     .handle = approve},
    {0},
};
/* clang-format on */
