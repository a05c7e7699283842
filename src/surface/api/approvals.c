/* SPDX-License-Identifier: Apache-2.0 */

/* What waits for a person, and that person's word. Requesters see their own. */

#include "flow/approve/approve.h"

#include "surface/api/call.h"
#include "surface/api/tables.h"

#include <string.h>

#include "lib/base/text.h"
#include "model/run.h"
#include "surface/view/view.h"

#define LIST_MAX 1000
#define LIST_DEFAULT 100

/* ---- looking ---- */

struct list_query {
    const char *state;
    uint64_t after;
    uint64_t limit;
    const char *requester;
};

/* clang-format off */
static const struct field list_fields[] = {
    {"state", FIELD_TEXT, offsetof(struct list_query, state),
     .choices = "pending confirmed rejected used expired any", .help = "pending by default."},
    {"after", FIELD_COUNT, offsetof(struct list_query, after), .help = "The seq of the last one seen."},
    {"limit", FIELD_COUNT, offsetof(struct list_query, limit), .min = 1, .max = LIST_MAX},
    {"requester", FIELD_TEXT, offsetof(struct list_query, requester), .max = PRINCIPAL_BYTES - 1,
     .help = "Only what this one has asked for."},
    {0},
};
/* clang-format on */

static bool may_see(const struct call *call, const struct approval *approval)
{
    return (call->caller.scopes & SCOPE_APPROVE) != 0 ||
           strcmp(call->caller.principal, approval->requester) == 0;
}

struct listing {
    struct call *call;
    struct json *list;
    uint64_t last;
};

static int on_approval(void *context, const struct approval *approval, struct err *err)
{
    struct listing *listing = context;

    (void)err;
    listing->last = approval->seq;
    json_push(listing->list, view_approval(&listing->call->mem, approval));
    return 0;
}

static int state_wanted(const char *text)
{
    if (!text)
        return APPROVAL_PENDING;
    for (int state = 0; state < APPROVAL_STATE_COUNT; state++)
        if (strcmp(approval_state_name((enum approval_state)state), text) == 0)
            return state;
    return -1;
}

static int list(struct call *call, const void *body, const void *query, struct err *err)
{
    AUTO(approvals) struct approvals *approvals = NULL;
    const struct list_query *wanted = query;
    struct listing listing = {call, json_array(&call->mem), wanted->after};
    struct json *answer = json_object(&call->mem);
    struct approvals_query page = {
        .state = state_wanted(wanted->state),
        .after_seq = wanted->after,
        .limit = wanted->limit ? (unsigned)wanted->limit : LIST_DEFAULT,
        .requester = wanted->requester,
    };
    bool sees_all = (call->caller.scopes & SCOPE_APPROVE) != 0;
    int more;

    (void)body;
    if (!sees_all && wanted->requester && strcmp(wanted->requester, call->caller.principal) != 0)
        page.limit = 0; /* nothing of others */
    if (!sees_all)
        page.requester = call->caller.principal;
    if (approvals_open(tenant_state_dir(call->tenant), &approvals, err) < 0)
        return -1;
    more = approvals_each(approvals, &page, on_approval, &listing, err);
    if (more < 0)
        return -1;
    json_put(answer, "approvals", listing.list);
    json_put_bool(&call->mem, answer, "more", more > 0);
    json_put_int(&call->mem, answer, "next_after", (int64_t)listing.last);
    return call_answer(call, 200, answer, err);
}

static int show(struct call *call, const void *body, const void *query, struct err *err)
{
    AUTO(approvals) struct approvals *approvals = NULL;
    struct approval approval;

    (void)body;
    (void)query;
    if (approvals_open(tenant_state_dir(call->tenant), &approvals, err) < 0 ||
        approvals_show(approvals, &call->mem, call->params[0], &approval, err) < 0)
        return -1;
    if (!may_see(call, &approval))
        return err_set(err, ERR_NOT_FOUND, "nothing of that id waits or waited for a person");
    return call_answer(call, 200, view_approval(&call->mem, &approval), err);
}

/* ---- a person's word ---- */

struct word_body {
    const char *comment;
    const char *custodian;
    const char *signature;
};

/* clang-format off */
static const struct field word_fields[] = {
    {"comment", FIELD_TEXT, offsetof(struct word_body, comment), .max = APPROVAL_COMMENT_MAX},
    {"custodian", FIELD_TEXT, offsetof(struct word_body, custodian), .max = APPROVAL_NAME_MAX,
     .help = "Who says so, if not the token's principal; proven by the signature."},
    {"signature", FIELD_TEXT, offsetof(struct word_body, signature), .max = 2 * SIGNATURE_BYTES,
     .help = "128 hex digits: Ed25519 over SHA-256 of brig/approval/1, NUL, confirm or reject, NUL, "
             "approval_id, NUL, digest."},
    {0},
};
/* clang-format on */

static int read_word(struct call *call, const struct word_body *wanted, bool confirm,
                     struct approval_word *out, struct err *err)
{
    *out = (struct approval_word){.id = call->params[0],
                                  .confirm = confirm,
                                  .comment = wanted->comment,
                                  .custodian = wanted->custodian};
    if (!wanted->custodian != !wanted->signature)
        return err_set(err, ERR_INVALID, "/custodian and /signature belong together");
    if (wanted->signature &&
        !hex_decode(str_of(wanted->signature), out->signature.b, sizeof out->signature.b))
        return err_set(err, ERR_INVALID, "/signature: %d hex digits", 2 * SIGNATURE_BYTES);
    return 0;
}

static int give_word(struct call *call, const struct word_body *wanted, bool confirm,
                     struct err *err)
{
    struct request request = call_request(call, confirm ? ACTION_APPROVE : ACTION_REJECT);
    struct approval approval;
    struct approval_word word;
    struct json *answer;
    struct lent lent;
    struct run run;
    int failed;

    if (read_word(call, wanted, confirm, &word, err) < 0 || call_govern(call, &lent, err) < 0)
        return -1;
    run_init(&run);
    failed = govern_approve(lent.govern, &request, &word, &run, &approval, err);
    call_release(call, &lent);
    if (!failed) {
        answer = view_approval(&call->mem, &approval);
        json_put_text(&call->mem, answer, "receipt_id", run.closing.id);
        failed = call_answer(call, 200, answer, err);
    }
    run_done(&run);
    return failed;
}

static int confirm_one(struct call *call, const void *body, const void *query, struct err *err)
{
    (void)query;
    return give_word(call, body, true, err);
}

static int reject_one(struct call *call, const void *body, const void *query, struct err *err)
{
    (void)query;
    return give_word(call, body, false, err);
}

/* clang-format off */
const struct route routes_approvals[] = {
    {.method = HTTP_GET,
     .path = "/v1/approvals",
     .kind = ROUTE_LOOK,
     .scope = SCOPE_READ,
     .query = list_fields,
     .query_size = sizeof(struct list_query),
     .name = "listApprovals",
     .summary = "What waits, or waited, for a person.",
     .answer = "Oldest first, with all that would happen; without the scope approve only the caller's own. "
               "At most limit, and fewer when they are large. The next page begins after next_after; "
               "without more there is none.",
     .handle = list},
    {.method = HTTP_GET,
     .path = "/v1/approvals/{id}",
     .kind = ROUTE_LOOK,
     .scope = SCOPE_READ,
     .name = "showApproval",
     .summary = "One of them.",
     .answer = "What would happen, who asked, and what became of it.",
     .handle = show},
    {.method = HTTP_POST,
     .path = "/v1/approvals/{id}/confirm",
     .kind = ROUTE_LOOK,
     .scope = SCOPE_APPROVE,
     .body = BODY_JSON,
     .fields = word_fields,
     .body_size = sizeof(struct word_body),
     .name = "confirmApproval",
     .summary = "Let exactly that happen, once. Never by whoever asked.",
     .answer = "The approval as it stands now, and the receipt of it: confirmed, or still pending until as many "
               "different people as its quorum have. 403: it is whoever asked, acts with a token that one made, or is "
               "not among may_confirm. 409: it is no longer pending, or this one has confirmed it before, perhaps with "
               "another token that one principal made. 400: a comment is wanted (reason_required).",
     .handle = confirm_one},
    {.method = HTTP_POST,
     .path = "/v1/approvals/{id}/reject",
     .kind = ROUTE_LOOK,
     .scope = SCOPE_APPROVE,
     .body = BODY_JSON,
     .fields = word_fields,
     .body_size = sizeof(struct word_body),
     .name = "rejectApproval",
     .summary = "Refuse it.",
     .answer = "The approval as it stands now, and the receipt of it.",
     .handle = reject_one},
    {0},
};
/* clang-format on */
