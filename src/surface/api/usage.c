/* SPDX-License-Identifier: Apache-2.0 */

/* What the tenant used. */

#include "surface/api/call.h"
#include "surface/api/tables.h"

#include "surface/view/view.h"

#define LIST_MAX 10000
#define LIST_DEFAULT 1000

struct usage_ask {
    const char *since;
    const char *principal;
    uint64_t limit;
};

/* clang-format off */
static const struct field usage_fields[] = {
    {"since", FIELD_TEXT, offsetof(struct usage_ask, since), .max = 10,
     .help = "A day, 2026-11-16: only from it on."},
    {"principal", FIELD_TEXT, offsetof(struct usage_ask, principal), .max = PRINCIPAL_BYTES - 1},
    {"limit", FIELD_COUNT, offsetof(struct usage_ask, limit), .min = 1, .max = LIST_MAX},
    {0},
};
/* clang-format on */

struct listing {
    struct call *call;
    struct json *list;
};

static int on_usage(void *context, const struct usage *usage, struct err *err)
{
    struct listing *listing = context;

    (void)err;
    json_push(listing->list, view_usage(&listing->call->mem, usage));
    return 0;
}

static int show(struct call *call, const void *body, const void *query, struct err *err)
{
    const struct usage_ask *wanted = query;
    struct listing listing = {call, json_array(&call->mem)};
    struct json *answer = json_object(&call->mem);
    struct usage_query asked = {wanted->since, wanted->principal,
                                wanted->limit ? (unsigned)wanted->limit : LIST_DEFAULT};
    struct lent lent;
    int failed;

    (void)body;
    if (call_govern(call, &lent, err) < 0)
        return -1;
    failed = govern_usage(lent.govern, &asked, on_usage, &listing, err);
    call_release(call, &lent);
    if (failed)
        return -1;
    json_put(answer, "usage", listing.list);
    return call_answer(call, 200, answer, err);
}

/* clang-format off */
const struct route routes_usage[] = {
    {.method = HTTP_GET,
     .path = "/v1/usage",
     .kind = ROUTE_LOOK,
     .scope = SCOPE_READ,
     .query = usage_fields,
     .query_size = sizeof(struct usage_ask),
     .name = "showUsage",
     .summary = "What was used, by day and principal.",
     .answer = "Sums over the ledger: commands, sandboxes, refusals, time, processor time, bytes.",
     .handle = show},
    {0},
};
/* clang-format on */
