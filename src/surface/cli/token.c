/* SPDX-License-Identifier: Apache-2.0 */

/* brig token: who may speak to the daemon, for which tenant, and what they may do. */

#include "surface/cli/sandbox.h"

#include "lib/access/access.h"
#include "lib/json/json.h"
#include "model/run.h"
#include "surface/view/view.h"

#include <string.h>
#include <time.h>

struct token_call {
    struct sandbox_call open;
    struct access *access;
};

static void token_call_done(struct token_call *call)
{
    access_free(call->access);
    sandbox_call_done(&call->open);
}

#define AUTO_TOKEN_CALL __attribute__((cleanup(token_call_done)))

static int token_call_open(struct invocation *inv, struct token_call *call, int *status)
{
    const char *state_dir = NULL;
    struct err err;

    if (sandbox_call_open(inv, &call->open, status) < 0)
        return -1;
    if (cli_state(inv, &state_dir, &err) == 0 && access_open(state_dir, &call->access, &err) == 0)
        return 0;
    *status = cli_error(inv, &err);
    return -1;
}

/* ---- telling ---- */

static const char *state_of(const struct token *token)
{
    if (token->revoked_at)
        return "revoked";
    return token->expires_at && token->expires_at <= (int64_t)time(NULL) ? "expired" : "valid";
}

/* ---- create ---- */

static int copy_option(struct invocation *inv, const char *option, const char *otherwise, char *out,
                       size_t size, struct err *err)
{
    const char *text = option_text(inv, option);

    if (!text)
        text = otherwise;
    if (strlen(text) >= size)
        return err_set(err, ERR_INVALID, "%s takes at most %zu characters", option, size - 1);
    memcpy(out, text, strlen(text) + 1);
    return 0;
}

static int read_scopes(struct invocation *inv, unsigned *out, struct err *err)
{
    struct words names = option_words(inv, "--scope");

    *out = names.n ? 0 : SCOPE_READ | SCOPE_RUN | SCOPE_RECEIPTS;
    for (size_t i = 0; i < names.n; i++) {
        unsigned scope = 0;

        if (scope_parse(str_of(names.v[i]), &scope, err) < 0)
            return err_in(err, "--scope %s", names.v[i]);
        *out |= scope;
    }
    return 0;
}

static int read_ask(struct invocation *inv, struct token *out, struct err *err)
{
    uint64_t lasts_ms = option_number(inv, "--expires");

    *out = (struct token){0};
    if (copy_option(inv, "--tenant", TENANT_DEFAULT, out->tenant, sizeof out->tenant, err) < 0 ||
        copy_option(inv, "--principal", "", out->principal, sizeof out->principal, err) < 0 ||
        read_scopes(inv, &out->scopes, err) < 0)
        return -1;
    out->per_second = (unsigned)option_number(inv, "--rate");
    out->at_once = (unsigned)option_number(inv, "--at-once");
    out->expires_at = lasts_ms ? (int64_t)time(NULL) + (int64_t)((lasts_ms + 999) / 1000) : 0;
    return 0;
}

static int print_made(struct invocation *inv, const struct token *token, const char *text,
                      const char *receipt)
{
    struct json *object;

    if (!inv->json) {
        (void)fprintf(inv->out, "%s\n", text);
        (void)fprintf(
            inv->err, "%s: token %s for tenant %s, scopes %s; it is shown this once (receipt %s)\n",
            inv->program, token->id, token->tenant, scopes_text(&inv->mem, token->scopes), receipt);
        return 0;
    }
    object = view_token(&inv->mem, token);
    json_put_text(&inv->mem, object, "token", text);
    json_put_text(&inv->mem, object, "receipt_id", receipt);
    return cli_json(inv, object);
}

int run_token_create(struct invocation *inv)
{
    AUTO_TOKEN_CALL struct token_call call = {0};
    char text[TOKEN_TEXT_BYTES];
    struct token ask, token;
    struct run run;
    struct err err;
    int status;

    if (read_ask(inv, &ask, &err) < 0)
        return cli_error(inv, &err);
    if (token_call_open(inv, &call, &status) < 0)
        return status;
    run_init(&run);
    if (govern_token_issue(call.open.govern, &call.open.request, call.access, &ask, &run, &token,
                           text, &err) < 0)
        status = cli_error(inv, &err);
    else
        status = print_made(inv, &token, text, run.closing.id);
    run_done(&run);
    explicit_bzero(text, sizeof text);
    return status;
}

/* ---- list ---- */

struct listing {
    struct invocation *inv;
    struct json *list;
    bool any;
};

static int on_token(void *context, const struct token *token, struct err *err)
{
    struct listing *listing = context;
    struct invocation *inv = listing->inv;

    (void)err;
    listing->any = true;
    if (inv->json)
        json_push(listing->list, view_token(&inv->mem, token));
    else
        (void)fprintf(inv->out, "%-12s  %-16s  %-24s  %-7s  %s\n", token->id, token->tenant,
                      token->principal, state_of(token), scopes_text(&inv->mem, token->scopes));
    return 0;
}

int run_token_list(struct invocation *inv)
{
    AUTO(access) struct access *access = NULL;
    struct listing listing = {.inv = inv, .list = json_array(&inv->mem)};
    struct json *result = json_object(&inv->mem);
    const char *state_dir = NULL;
    struct err err;

    if (cli_state(inv, &state_dir, &err) < 0 || access_open(state_dir, &access, &err) < 0 ||
        access_each(access, option_text(inv, "--tenant"), on_token, &listing, &err) < 0)
        return cli_error(inv, &err);
    if (!listing.any)
        cli_none(inv, "no tokens");
    json_put(result, "tokens", listing.list);
    return inv->json ? cli_json(inv, result) : 0;
}

/* ---- revoke ---- */

static int revoke_one(struct invocation *inv, struct token_call *call, const char *id,
                      struct json *list, struct err *err)
{
    struct token token;
    struct run run;
    int failed;

    run_init(&run);
    failed = govern_token_revoke(call->open.govern, &call->open.request, call->access, id, NULL,
                                 &run, &token, err);
    if (!failed && inv->json) {
        struct json *object = view_token(&inv->mem, &token);

        json_put_text(&inv->mem, object, "receipt_id", run.closing.id);
        json_push(list, object);
    } else if (!failed) {
        (void)fprintf(inv->out, "revoked %s (receipt %s)\n", token.id, run.closing.id);
    }
    run_done(&run);
    return failed;
}

static int cli_error_in(struct invocation *inv, struct err *err, const char *what)
{
    (void)err_in(err, "%s", what);
    return cli_error(inv, err);
}

int run_token_revoke(struct invocation *inv)
{
    AUTO_TOKEN_CALL struct token_call call = {0};
    struct json *list = json_array(&inv->mem);
    struct json *result = json_object(&inv->mem);
    struct err err;
    int status;

    if (token_call_open(inv, &call, &status) < 0)
        return status;
    for (size_t i = 0; i < inv->operands.n; i++)
        if (revoke_one(inv, &call, inv->operands.v[i], list, &err) < 0)
            return cli_error_in(inv, &err, inv->operands.v[i]);
    json_put(result, "tokens", list);
    return inv->json ? cli_json(inv, result) : 0;
}
