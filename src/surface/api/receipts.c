/* SPDX-License-Identifier: Apache-2.0 */

/* The ledger of the caller's tenant: read, checked. */

#include "surface/api/call.h"
#include "surface/api/tables.h"

#include <string.h>
#include <unistd.h>

#include "flow/record/record.h"
#include "lib/base/limits.h"
#include "surface/api/stream.h"
#include "surface/view/view.h"

#define LIST_DEFAULT 50
#define LIST_MAX 1000

struct list_query {
    uint64_t limit;
    uint64_t before_seq;
    const char *run_id;
};

/* clang-format off */
static const struct field list_query_fields[] = {
    {"limit", FIELD_COUNT, offsetof(struct list_query, limit), .min = 1, .max = LIST_MAX},
    {"before_seq", FIELD_COUNT, offsetof(struct list_query, before_seq), .min = 1,
     .help = "Only earlier ones: the next page."},
    {"run_id", FIELD_TEXT, offsetof(struct list_query, run_id), .max = ID_BYTES},
    {0},
};
/* clang-format on */

static int open_ledger(struct call *call, struct record **out, struct err *err)
{
    return record_open(tenant_state_dir(call->tenant), out, err);
}

/* ---- list, show ---- */

/* Receipts live during the call only: what is listed is kept as text. */
struct listing {
    struct buf *out;
    size_t n;
};

static int on_receipt(void *context, const struct json *receipt, struct err *err)
{
    struct listing *listing = context;

    if (listing->n++ && buf_add_byte(listing->out, ',', err) < 0)
        return -1;
    return json_compact(receipt, listing->out, err);
}

static int list(struct call *call, const void *body, const void *query, struct err *err)
{
    AUTO(record) struct record *record = NULL;
    const struct list_query *wanted = query;
    struct listing listing = {.out = &call->answer};
    struct record_query page = {
        .limit = wanted->limit ? (unsigned)wanted->limit : LIST_DEFAULT,
        .before_seq = wanted->before_seq,
        .run_id = wanted->run_id,
    };

    (void)body;
    call->status = 200;
    call->type = "application/json";
    if (open_ledger(call, &record, err) < 0 ||
        buf_add_text(&call->answer, "{\"receipts\":[", err) < 0 ||
        record_list(record, &page, on_receipt, &listing, err) < 0)
        return -1;
    return buf_add_text(&call->answer, "]}", err);
}

static int show(struct call *call, const void *body, const void *query, struct err *err)
{
    AUTO(record) struct record *record = NULL;
    const struct json *receipt = NULL;
    struct public_key key;
    int doubtful;

    (void)body;
    (void)query;
    if (open_ledger(call, &record, err) < 0 ||
        record_own_key(tenant_state_dir(call->tenant), &key, err) < 0)
        return -1;
    doubtful = record_show_checked(record, &key, &call->mem, call->params[0], &receipt, err);
    if (doubtful < 0)
        return -1;
    if (!doubtful)
        return call_answer(call, 200, receipt, err);
    call->details = view_doubted(&call->mem, receipt);
    return -1;
}

/* ---- verify, head, export ---- */

struct verify_body {
    const char *head;
};

/* clang-format off */
static const struct field verify_fields[] = {
    {"head", FIELD_TEXT, offsetof(struct verify_body, head), .max = RECEIPT_TEXT_MAX,
     .help = "A signed head kept elsewhere: proves that nothing up to it was cut off."},
    {0},
};
/* clang-format on */

static int verify(struct call *call, const void *body, const void *query, struct err *err)
{
    AUTO(record) struct record *record = NULL;
    const struct verify_body *wanted = body;
    struct record_trust trust = {.why = "the key of this tenant"};
    struct record_check check = {.trust = &trust};
    struct record_report report;
    struct record_head head;

    (void)query;
    if (open_ledger(call, &record, err) < 0 ||
        record_own_key(tenant_state_dir(call->tenant), &trust.key, err) < 0)
        return -1;
    if (wanted->head) {
        if (record_head_read(str_of(wanted->head), &trust, &head, err) < 0)
            return -1;
        check.head = &head;
    }
    if (record_verify(record, &check, &report, err) < 0)
        return -1;
    return call_answer(call, 200, view_verification(&call->mem, &check, &report), err);
}

static int head(struct call *call, const void *body, const void *query, struct err *err)
{
    AUTO(record) struct record *record = NULL;

    (void)body;
    (void)query;
    call->status = 200;
    call->type = "application/json";
    return open_ledger(call, &record, err) < 0 ? -1 : record_head(record, &call->answer, err);
}

static int export(struct call *call, const void *body, const void *query, struct err *err)
{
    AUTO(record) struct record *record = NULL;
    const struct stream_config config = {
        .frame = FRAME_RAW, .type = "application/x-ndjson", .sources = 1};
    int fds[STREAM_SOURCES];
    uint64_t n = 0;
    int failed;

    (void)body;
    (void)query;
    if (open_ledger(call, &record, err) < 0 || stream_open(call, &config, fds, err) < 0)
        return -1;
    failed = record_export(record, fds[0], &n, err);
    (void)close(fds[0]);
    return failed;
}

/* clang-format off */
const struct route routes_receipts[] = {
    {.method = HTTP_GET,
     .path = "/v1/receipts",
     .kind = ROUTE_LOOK,
     .scope = SCOPE_RECEIPTS,
     .query = list_query_fields,
     .query_size = sizeof(struct list_query),
     .name = "listReceipts",
     .summary = "Receipts, newest first.",
     .answer = "A page of them, whole.",
     .handle = list},
    {.method = HTTP_POST,
     .path = "/v1/receipts/verify",
     .kind = ROUTE_LOOK,
     .scope = SCOPE_RECEIPTS,
     .body = BODY_JSON,
     .fields = verify_fields,
     .body_size = sizeof(struct verify_body),
     .name = "verifyReceipts",
     .summary = "Check every hash, signature and link of the ledger.",
     .answer = "Integrity and completeness, and the first bad entry.",
     .handle = verify},
    {.method = HTTP_GET,
     .path = "/v1/receipts/head",
     .kind = ROUTE_LOOK,
     .scope = SCOPE_RECEIPTS,
     .name = "getReceiptsHead",
     .summary = "A signed head of the ledger, to be kept elsewhere.",
     .answer = "The head.",
     .handle = head},
    {.method = HTTP_GET,
     .path = "/v1/receipts/export",
     .kind = ROUTE_RUN,
     .scope = SCOPE_RECEIPTS,
     .name = "exportReceipts",
     .summary = "All receipts, oldest first, a line each.",
     .answer = "Lines of JSON as \"brig verify\" reads them.",
     .handle = export},
    {.method = HTTP_GET,
     .path = "/v1/receipts/{id}",
     .kind = ROUTE_LOOK,
     .scope = SCOPE_RECEIPTS,
     .name = "getReceipt",
     .summary = "One receipt, by id, the beginning of one, or sequence number.",
     .answer = "The receipt. 500 with the code integrity: it is not what was signed, or does not follow the one before it; "
               "the details have it, as receipt.",
     .handle = show},
    {0                                 },
};
/* clang-format on */
