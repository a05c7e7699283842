/* SPDX-License-Identifier: Apache-2.0 */

/* Tokens: made, listed and revoked by those who may; of every tenant by those of the default one,
 * of their own by the others. */

#include "surface/api/api-private.h"
#include "surface/api/tables.h"

#include <string.h>
#include <time.h>

#include "lib/base/limits.h"
#include "model/run.h"
#include "surface/view/view.h"

struct token_body {
    const char *tenant;
    const char *principal;
    struct words scopes;
    uint64_t expires_in_s;
    uint64_t per_second;
    uint64_t at_once;
};

/* clang-format off */
static const struct field token_fields[] = {
    {"tenant", FIELD_TEXT, offsetof(struct token_body, tenant), .max = TENANT_BYTES - 1},
    {"principal", FIELD_TEXT, offsetof(struct token_body, principal), .max = PRINCIPAL_BYTES - 1},
    {"scopes", FIELD_WORDS, offsetof(struct token_body, scopes), .required = true,
     .max = SCOPE_COUNT},
    {"expires_in_s", FIELD_COUNT, offsetof(struct token_body, expires_in_s), .min = 1,
     .max = 315360000},
    {"requests_per_second", FIELD_COUNT, offsetof(struct token_body, per_second), .min = 1,
     .max = 1000000},
    {"requests_at_once", FIELD_COUNT, offsetof(struct token_body, at_once), .min = 1,
     .max = 1000000},
    {0},
};
/* clang-format on */

/* NULL: all of them. */
static const char *reach(const struct call *call)
{
    return strcmp(call->caller.tenant, TENANT_DEFAULT) == 0 ? NULL : call->caller.tenant;
}

static int read_ask(const struct call *call, const struct token_body *wanted, struct token *out,
                    struct err *err)
{
    const char *tenant = wanted->tenant ? wanted->tenant : call->caller.tenant;
    unsigned scope = 0;

    *out = (struct token){.per_second = (unsigned)wanted->per_second,
                          .at_once = (unsigned)wanted->at_once};
    if (reach(call) && strcmp(tenant, reach(call)) != 0)
        return err_set(err, ERR_FORBIDDEN, "this token may make tokens of its own tenant only");
    memcpy(out->tenant, tenant, strlen(tenant) + 1);
    if (wanted->principal)
        memcpy(out->principal, wanted->principal, strlen(wanted->principal) + 1);
    for (size_t i = 0; i < wanted->scopes.n; i++) {
        if (scope_parse(str_of(wanted->scopes.v[i]), &scope, err) < 0)
            return -1;
        out->scopes |= scope;
    }
    if (out->scopes & ~call->caller.scopes)
        return err_set(err, ERR_FORBIDDEN, "nobody can give away a scope he does not have");
    if (wanted->expires_in_s)
        out->expires_at = (int64_t)time(NULL) + (int64_t)wanted->expires_in_s;
    return 0;
}

static int open_both(struct call *call, struct lent *lent, struct access **access, struct err *err)
{
    /* The list is the daemon's, the receipt goes to the tenant that acted. */
    if (access_open(call->api->state_dir, access, err) < 0)
        return -1;
    return call_govern(call, lent, err);
}

static int create(struct call *call, const void *body, const void *query, struct err *err)
{
    AUTO(access) struct access *access = NULL;
    struct request request = call_request(call, ACTION_TOKEN_CREATE);
    char text[TOKEN_TEXT_BYTES];
    struct token ask, token;
    struct json *answer;
    struct lent lent;
    struct run run;
    int failed;

    (void)query;
    if (read_ask(call, body, &ask, err) < 0 || open_both(call, &lent, &access, err) < 0)
        return -1;
    run_init(&run);
    failed = govern_token_issue(lent.govern, &request, access, &ask, &run, &token, text, err);
    call_release(call, &lent);
    if (!failed) {
        answer = view_token(&call->mem, &token);
        json_put_text(&call->mem, answer, "token", text);
        json_put_text(&call->mem, answer, "receipt_id", run.closing.id);
        failed = call_answer(call, 201, answer, err);
    }
    explicit_bzero(text, sizeof text);
    run_done(&run);
    return failed;
}

struct listing {
    struct arena *mem;
    struct json *list;
};

static int on_token(void *context, const struct token *token, struct err *err)
{
    struct listing *listing = context;

    (void)err;
    json_push(listing->list, view_token(listing->mem, token));
    return 0;
}

static int list(struct call *call, const void *body, const void *query, struct err *err)
{
    AUTO(access) struct access *access = NULL;
    struct listing listing = {&call->mem, json_array(&call->mem)};
    struct json *answer = json_object(&call->mem);

    (void)body;
    (void)query;
    if (access_open(call->api->state_dir, &access, err) < 0 ||
        access_each(access, reach(call), on_token, &listing, err) < 0)
        return -1;
    json_put(answer, "tokens", listing.list);
    return call_answer(call, 200, answer, err);
}

static int revoke_token(struct call *call, const void *body, const void *query, struct err *err)
{
    AUTO(access) struct access *access = NULL;
    struct request request = call_request(call, ACTION_TOKEN_REVOKE);
    struct json *answer;
    struct token token;
    struct lent lent;
    struct run run;
    int failed;

    (void)body;
    (void)query;
    if (open_both(call, &lent, &access, err) < 0)
        return -1;
    run_init(&run);
    failed = govern_token_revoke(lent.govern, &request, access, call->params[0], reach(call), &run,
                                 &token, err);
    call_release(call, &lent);
    if (!failed) {
        answer = view_token(&call->mem, &token);
        json_put_text(&call->mem, answer, "receipt_id", run.closing.id);
        failed = call_answer(call, 200, answer, err);
    }
    run_done(&run);
    return failed;
}

/* clang-format off */
const struct route routes_tokens[] = {
    {.method = HTTP_GET,
     .path = "/v1/tokens",
     .kind = ROUTE_LOOK,
     .scope = SCOPE_ADMIN,
     .name = "listTokens",
     .summary = "The tokens there are.",
     .answer = "Whom each stands for and what it may do; never its words.",
     .handle = list},
    {.method = HTTP_POST,
     .path = "/v1/tokens",
     .kind = ROUTE_LOOK,
     .scope = SCOPE_ADMIN,
     .creates = true,
     .body = BODY_JSON,
     .fields = token_fields,
     .body_size = sizeof(struct token_body),
     .name = "createToken",
     .summary = "Make a token.",
     .answer = "The token, and this once its words.",
     .handle = create},
    {.method = HTTP_DELETE,
     .path = "/v1/tokens/{id}",
     .kind = ROUTE_LOOK,
     .scope = SCOPE_ADMIN,
     .name = "revokeToken",
     .summary = "End a token for good.",
     .answer = "The token as it was.",
     .handle = revoke_token},
    {0},
};
/* clang-format on */
