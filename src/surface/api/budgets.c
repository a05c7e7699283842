/* SPDX-License-Identifier: Apache-2.0 */

/* What the tenant may use together, and how it stands. Limits are the operator's to set, at the
 * command line: nothing that comes over a network can widen one. */

#include "surface/api/call.h"
#include "surface/api/tables.h"

#include "surface/view/view.h"

struct budgets_ask {
    const char *principal;
};

/* clang-format off */
static const struct field budgets_fields[] = {
    {"principal", FIELD_TEXT, offsetof(struct budgets_ask, principal), .max = PRINCIPAL_BYTES - 1,
     .help = "Only what is for this one."},
    {0},
};
/* clang-format on */

static int show(struct call *call, const void *body, const void *query, struct err *err)
{
    const struct budgets_ask *wanted = query;
    struct budget_state state;
    struct json *answer = NULL;
    struct lent lent;

    (void)body;
    if (call_govern(call, &lent, err) < 0)
        return -1;
    /* What the policy limits lives as long as the governor is lent. */
    if (govern_budgets(lent.govern, &call->mem, &state, err) == 0)
        answer = view_budgets(&call->mem, &state, wanted->principal);
    call_release(call, &lent);
    return answer ? call_answer(call, 200, answer, err) : -1;
}

/* clang-format off */
const struct route routes_budgets[] = {
    {.method = HTTP_GET,
     .path = "/v1/budgets",
     .kind = ROUTE_LOOK,
     .scope = SCOPE_READ,
     .query = budgets_fields,
     .query_size = sizeof(struct budgets_ask),
     .name = "showBudgets",
     .summary = "What may be used together, and what is left of it.",
     .answer = "Each limit with what is used and reserved: runs, microseconds, bytes, millionths.",
     .handle = show},
    {0},
};
/* clang-format on */
