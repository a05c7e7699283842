/* SPDX-License-Identifier: Apache-2.0 */

/* The ledger as HELM's SDK reads it: sessions, and receipts of twelve members. */

#include "surface/helm/helm-private.h"

#include <string.h>

#include "flow/record/record.h"
#include "lib/base/limits.h"
#include "lib/json/json.h"

#define SESSIONS_DEFAULT 50
#define SESSIONS_MAX 1000
#define RECEIPTS_MAX 10000

/* ---- one receipt ---- */

static const char *text_at(struct arena *mem, const struct json *receipt, const char *pointer)
{
    struct str text = {0};

    return json_is_text(json_at(receipt, pointer), &text) ? arena_text(mem, text) : "";
}

struct json *helm_receipt(struct arena *mem, const struct json *receipt)
{
    struct json *object = json_object(mem);
    const char *status = text_at(mem, receipt, "/status");
    const char *reason = helm_reason(text_at(mem, receipt, "/reason_code"));
    int64_t clock = 0;

    (void)json_is_int(json_get(receipt, "lamport_clock"), &clock);
    if (strcmp(status, "APPROVED") != 0 && strcmp(reason, "ALLOW") == 0)
        reason = "DENY_POLICY_VIOLATION";
    json_put_text(mem, object, "receipt_id", text_at(mem, receipt, "/receipt_id"));
    json_put_text(mem, object, "decision_id", text_at(mem, receipt, "/decision_id"));
    json_put_text(mem, object, "effect_id", text_at(mem, receipt, "/effect_id"));
    json_put_text(mem, object, "status", status);
    json_put_text(mem, object, "reason_code", reason);
    json_put_text(mem, object, "output_hash", text_at(mem, receipt, "/outcome/output_hash"));
    json_put_text(mem, object, "blob_hash", text_at(mem, receipt, "/request_hash"));
    json_put_text(mem, object, "prev_hash", text_at(mem, receipt, "/prev_hash"));
    json_put_int(mem, object, "lamport_clock", clock);
    json_put_text(mem, object, "signature", text_at(mem, receipt, "/signature"));
    json_put_text(mem, object, "timestamp", text_at(mem, receipt, "/timestamp"));
    json_put_text(mem, object, "principal", text_at(mem, receipt, "/principal"));
    return object;
}

/* ---- sessions ---- */

struct page_query {
    uint64_t limit;
    uint64_t offset;
};

/* clang-format off */
static const struct field page_query[] = {
    {"limit", FIELD_COUNT, offsetof(struct page_query, limit), .min = 1, .max = SESSIONS_MAX},
    {"offset", FIELD_COUNT, offsetof(struct page_query, offset), .max = 1000000000},
    {0},
};
/* clang-format on */

struct listing {
    struct call *call;
    struct json *list;
};

static int on_session(void *context, const struct record_session *session, struct err *err)
{
    struct listing *listing = context;
    struct arena *mem = &listing->call->mem;
    struct json *object = json_object(mem);

    (void)err;
    json_put(object, "session_id", json_text(mem, session->id));
    json_put(object, "created_at", json_text(mem, session->began_at));
    json_put_int(mem, object, "receipt_count", (int64_t)session->receipts);
    json_put_int(mem, object, "last_lamport_clock", (int64_t)session->lamport_clock);
    json_push(listing->list, object);
    return 0;
}

static int sessions(struct call *call, const void *body, const void *query, struct err *err)
{
    AUTO(record) struct record *record = NULL;
    const struct page_query *page = query;
    struct listing listing = {call, json_array(&call->mem)};

    (void)body;
    if (record_open(tenant_state_dir(call->tenant), &record, err) < 0 ||
        record_sessions(record, page->limit ? page->limit : SESSIONS_DEFAULT, page->offset,
                        on_session, &listing, err) < 0)
        return -1;
    return call_answer(call, 200, listing.list, err);
}

static int on_receipt(void *context, const struct json *receipt, struct err *err)
{
    struct listing *listing = context;

    if (listing->list->n == RECEIPTS_MAX)
        return err_set(err, ERR_LIMIT,
                       "more than %d receipts: export the session as evidence instead",
                       RECEIPTS_MAX);
    json_push(listing->list, helm_receipt(&listing->call->mem, receipt));
    return 0;
}

static int receipts(struct call *call, const void *body, const void *query, struct err *err)
{
    AUTO(record) struct record *record = NULL;
    struct listing listing = {call, json_array(&call->mem)};

    (void)body;
    (void)query;
    if (record_open(tenant_state_dir(call->tenant), &record, err) < 0 ||
        record_of_session(record, call->params[0], 0, on_receipt, &listing, err) < 0)
        return -1;
    if (listing.list->n == 0)
        return err_set(err, ERR_NOT_FOUND, "there is no such session");
    return call_answer(call, 200, listing.list, err);
}

/* By hash, with or without "sha256:", or by id. */
static int receipt(struct call *call, const void *body, const void *query, struct err *err)
{
    AUTO(record) struct record *record = NULL;
    const char *name = call->params[0];
    const struct json *found = NULL;
    struct hash hash;
    int failed;

    (void)body;
    (void)query;
    if (record_open(tenant_state_dir(call->tenant), &record, err) < 0)
        return -1;
    failed = hash_from_text(str_of(name), &hash) || hex_decode(str_of(name), hash.b, sizeof hash.b)
                 ? record_by_hash(record, &call->mem, &hash, &found, err)
                 : record_show(record, &call->mem, name, &found, err);
    return failed < 0 ? -1 : call_answer(call, 200, helm_receipt(&call->mem, found), err);
}

/* clang-format off */
const struct route helm_routes_proof[] = {
    {.method = HTTP_GET,
     .path = "/api/v1/proofgraph/sessions",
     .kind = ROUTE_LOOK,
     .scope = SCOPE_RECEIPTS,
     .query = page_query,
     .query_size = sizeof(struct page_query),
     .name = "helmListSessions",
     .summary = "Sessions of the ledger, last used first.",
     .answer = "A page of them.",
     .refusal = HELM_REFUSAL,
     .handle = sessions},
    {.method = HTTP_GET,
     .path = "/api/v1/proofgraph/sessions/{id}/receipts",
     .kind = ROUTE_LOOK,
     .scope = SCOPE_RECEIPTS,
     .name = "helmListReceipts",
     .summary = "The receipts of a session, oldest first.",
     .answer = "Receipts of twelve members.",
     .refusal = HELM_REFUSAL,
     .handle = receipts},
    {.method = HTTP_GET,
     .path = "/api/v1/proofgraph/receipts/{hash}",
     .kind = ROUTE_LOOK,
     .scope = SCOPE_RECEIPTS,
     .name = "helmGetReceipt",
     .summary = "One receipt, by its hash or id.",
     .answer = "A receipt of twelve members.",
     .refusal = HELM_REFUSAL,
     .handle = receipt},
    {0},
};
/* clang-format on */
