/* SPDX-License-Identifier: Apache-2.0 */

/* The stop button: pressed for everybody by those of the default tenant, for their own by the
 * others. */

#include "lib/access/freeze.h"

#include "surface/api/api-private.h"
#include "surface/api/tables.h"

#include <stdio.h>
#include <string.h>

#include "model/run.h"
#include "surface/view/view.h"

struct freeze_body {
    const char *tenant;
    const char *principal;
    const char *reason;
};

/* clang-format off */
static const struct field freeze_fields[] = {
    {"tenant", FIELD_TEXT, offsetof(struct freeze_body, tenant), .max = TENANT_BYTES - 1,
     .help = "Whose new effects are refused; without it those of every tenant."},
    {"principal", FIELD_TEXT, offsetof(struct freeze_body, principal), .max = PRINCIPAL_BYTES - 1,
     .help = "Only those of this one, and of tokens it has made."},
    {"reason", FIELD_TEXT, offsetof(struct freeze_body, reason), .max = FREEZE_REASON_BYTES - 1},
    {0},
};

static const struct field unfreeze_fields[] = {
    {"tenant", FIELD_TEXT, offsetof(struct freeze_body, tenant), .max = TENANT_BYTES - 1},
    {"principal", FIELD_TEXT, offsetof(struct freeze_body, principal), .max = PRINCIPAL_BYTES - 1},
    {0},
};
/* clang-format on */

static bool reaches_all(const struct call *call)
{
    return strcmp(call->caller.tenant, TENANT_DEFAULT) == 0;
}

static int read_entry(const struct call *call, const struct freeze_body *wanted, struct frozen *out,
                      struct err *err)
{
    const char *tenant = wanted->tenant ? wanted->tenant : "";

    *out = (struct frozen){0};
    if (!reaches_all(call)) {
        if (*tenant && strcmp(tenant, call->caller.tenant) != 0)
            return err_set(err, ERR_FORBIDDEN, "this token may freeze its own tenant only");
        tenant = call->caller.tenant;
    }
    if (*tenant && !is_tenant_name(str_of(tenant)))
        return err_set(err, ERR_INVALID, "that is not the name of a tenant");
    (void)snprintf(out->tenant, sizeof out->tenant, "%s", tenant);
    (void)snprintf(out->principal, sizeof out->principal, "%s",
                   wanted->principal ? wanted->principal : "");
    (void)snprintf(out->reason, sizeof out->reason, "%s", wanted->reason ? wanted->reason : "");
    return 0;
}

static int change(struct call *call, const struct freeze_body *wanted, enum action_kind kind,
                  struct err *err)
{
    struct request request = call_request(call, kind);
    struct frozen entry;
    struct json *answer;
    struct lent lent;
    struct run run;
    int failed;

    if (read_entry(call, wanted, &entry, err) < 0 || call_govern(call, &lent, err) < 0)
        return -1;
    run_init(&run);
    failed = kind == ACTION_FREEZE
                 ? govern_freeze(lent.govern, &request, call->api->state_dir, &entry, &run, err)
                 : govern_unfreeze(lent.govern, &request, call->api->state_dir, &entry, &run, err);
    call_release(call, &lent);
    if (!failed) {
        answer = view_frozen(&call->mem, &entry);
        json_put_text(&call->mem, answer, "receipt_id", run.closing.id);
        failed = call_answer(call, 200, answer, err);
    }
    run_done(&run);
    return failed;
}

static int freeze(struct call *call, const void *body, const void *query, struct err *err)
{
    (void)query;
    return change(call, body, ACTION_FREEZE, err);
}

/* A token that could thaw whom it speaks for, or who acts through it, would be no colder than
 * before. Whoever comes without one owns the machine. */
static int refuse_own(struct call *call, const struct freeze_body *wanted, struct err *err)
{
    bool is_maker = false;

    if (!*call->caller.token || !wanted->principal)
        return 0;
    if (strcmp(wanted->principal, call->caller.principal) == 0)
        return err_set(err, ERR_FORBIDDEN, "%.64s is frozen, and cannot take that back",
                       wanted->principal);
    if (call_is_made_by(call, wanted->principal, &is_maker, err) < 0)
        return -1;
    if (is_maker)
        return err_set(err, ERR_FORBIDDEN,
                       "%.64s is frozen, and made this token, or one it was made with; it cannot "
                       "take that back",
                       wanted->principal);
    return 0;
}

static int unfreeze(struct call *call, const void *body, const void *query, struct err *err)
{
    (void)body;
    if (refuse_own(call, query, err) < 0)
        return -1;
    return change(call, query, ACTION_UNFREEZE, err);
}

struct listing {
    struct call *call;
    struct json *list;
};

static int on_entry(void *context, const struct frozen *entry, struct err *err)
{
    struct listing *listing = context;
    const struct call *call = listing->call;

    (void)err;
    if (reaches_all(call) || strcmp(entry->tenant, call->caller.tenant) == 0)
        json_push(listing->list, view_frozen(&listing->call->mem, entry));
    return 0;
}

static int list(struct call *call, const void *body, const void *query, struct err *err)
{
    struct listing listing = {call, json_array(&call->mem)};
    struct json *answer = json_object(&call->mem);

    (void)body;
    (void)query;
    if (freeze_each(call->api->state_dir, on_entry, &listing, err) < 0)
        return -1;
    json_put(answer, "frozen", listing.list);
    return call_answer(call, 200, answer, err);
}

/* clang-format off */
const struct route routes_freeze[] = {
    {.method = HTTP_GET,
     .path = "/v1/freeze",
     .kind = ROUTE_LOOK,
     .scope = SCOPE_ADMIN,
     .name = "listFrozen",
     .summary = "Whose new effects are refused.",
     .answer = "Each entry with who made it, when and why.",
     .handle = list},
    {.method = HTTP_POST,
     .path = "/v1/freeze",
     .kind = ROUTE_LOOK,
     .scope = SCOPE_ADMIN,
     .body = BODY_JSON,
     .fields = freeze_fields,
     .body_size = sizeof(struct freeze_body),
     .name = "freeze",
     .summary = "Refuse new effects of a principal, a tenant or everybody.",
     .answer = "The entry, and the receipt of it. What runs already goes on.",
     .handle = freeze},
    {.method = HTTP_DELETE,
     .path = "/v1/freeze",
     .kind = ROUTE_LOOK,
     .scope = SCOPE_ADMIN,
     .query = unfreeze_fields,
     .query_size = sizeof(struct freeze_body),
     .name = "unfreeze",
     .summary = "Take back exactly one such refusal.",
     .answer = "The entry as it was. 403: it names the token's own principal or who made it, or the default tenant made it "
               "and the token is another one's.",
     .handle = unfreeze},
    {0},
};
/* clang-format on */
