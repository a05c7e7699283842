/* SPDX-License-Identifier: Apache-2.0 */

/* brig freeze, brig unfreeze: the stop button. */

#include "lib/access/freeze.h"

#include "lib/json/json.h"
#include "model/run.h"
#include "surface/cli/remote.h"
#include "surface/cli/sandbox.h"
#include "surface/view/view.h"

#include <string.h>

static int copy_option(struct invocation *inv, const char *option, char *out, size_t size,
                       struct err *err)
{
    const char *text = option_text(inv, option);

    if (text && (!*text || strlen(text) >= size))
        return err_set(err, ERR_INVALID, "%s takes 1 to %zu bytes", option, size - 1);
    if (text)
        memcpy(out, text, strlen(text) + 1);
    return 0;
}

static int read_entry(struct invocation *inv, struct frozen *out, struct err *err)
{
    *out = (struct frozen){0};
    if (copy_option(inv, "--tenant", out->tenant, sizeof out->tenant, err) < 0 ||
        copy_option(inv, "--principal", out->principal, sizeof out->principal, err) < 0)
        return -1;
    if (out->tenant[0] && !is_tenant_name(str_of(out->tenant)))
        return err_set(err, ERR_INVALID, "--tenant %s: that is not the name of a tenant",
                       out->tenant);
    return 0;
}

static const char *whom(struct arena *mem, const struct json *doc)
{
    const char *tenant = doc_text(mem, doc, "tenant");
    const char *principal = doc_text(mem, doc, "principal");

    if (*tenant && *principal)
        return arena_printf(mem, "%s of tenant %s", principal, tenant);
    if (*tenant)
        return arena_printf(mem, "tenant %s", tenant);
    return *principal ? principal : "everything";
}

/* ---- --status ---- */

static void print_entry(struct invocation *inv, const struct json *doc)
{
    struct arena *mem = &inv->mem;
    const char *reason = doc_text(mem, doc, "reason");

    (void)fprintf(inv->out, "%s  ", doc_text(mem, doc, "since"));
    print_escaped(inv->out, str_of(whom(mem, doc)));
    (void)fputs(", by ", inv->out);
    print_escaped(inv->out, str_of(doc_text(mem, doc, "by")));
    (void)fputs(*reason ? ": " : "", inv->out);
    print_escaped(inv->out, str_of(reason));
    (void)fputc('\n', inv->out);
}

static int print_list(struct invocation *inv, const struct json *doc)
{
    const struct json *list = json_get(doc, "frozen");

    if (inv->json)
        return cli_json(inv, doc);
    for (const struct json *entry = list ? list->first : NULL; entry; entry = entry->next)
        print_entry(inv, entry);
    if (!list || !list->n)
        (void)fprintf(inv->err, "%s: nothing is frozen\n", inv->program);
    return 0;
}

struct listing {
    struct invocation *inv;
    struct json *list;
};

static int on_entry(void *context, const struct frozen *entry, struct err *err)
{
    struct listing *listing = context;

    (void)err;
    json_push(listing->list, view_frozen(&listing->inv->mem, entry));
    return 0;
}

static int print_status(struct invocation *inv)
{
    struct listing listing = {inv, json_array(&inv->mem)};
    struct json *result = json_object(&inv->mem);
    const char *state_dir = NULL;
    struct err err;

    if (cli_state(inv, &state_dir, &err) < 0 ||
        freeze_each(state_dir, on_entry, &listing, &err) < 0)
        return cli_error(inv, &err);
    json_put(result, "frozen", listing.list);
    return print_list(inv, result);
}

/* ---- whether anybody is called so ---- */

struct sought {
    const struct frozen *entry;
    bool is_found;
};

static int on_token(void *context, const struct token *token, struct err *err)
{
    struct sought *sought = context;
    const struct frozen *entry = sought->entry;

    (void)err;
    if ((!entry->tenant[0] || strcmp(entry->tenant, token->tenant) == 0) &&
        (!entry->principal[0] || strcmp(entry->principal, token->principal) == 0))
        sought->is_found = true;
    return 0;
}

/* Users of the machine and custodians come without a token, into the default tenant. */
static bool needs_token(const struct frozen *entry)
{
    const char *who = entry->principal;
    size_t digits = strncmp(who, "uid:", 4) == 0 ? strspn(who + 4, "0123456789") : 0;

    if (entry->tenant[0] && strcmp(entry->tenant, TENANT_DEFAULT) != 0)
        return true;
    return who[0] && strncmp(who, "custodian:", 10) != 0 && (digits == 0 || who[4 + digits]);
}

/* When that cannot be told, somebody is: nothing false is said of a freeze that holds. */
static bool is_known(const char *state_dir, const struct frozen *entry)
{
    AUTO(access) struct access *access = NULL;
    struct sought sought = {entry, false};
    struct err err;

    return !needs_token(entry) || access_open(state_dir, &access, &err) < 0 ||
           access_each(access, NULL, on_token, &sought, &err) < 0 || sought.is_found;
}

/* A wrong name freezes nobody, and that should not be found out later. */
static void tell_known(struct invocation *inv, const char *state_dir, const struct frozen *entry,
                       struct json *doc)
{
    bool known = is_known(state_dir, entry);

    json_put_bool(&inv->mem, doc, "known", known);
    if (known)
        return;
    (void)fprintf(inv->err, "%s: no token was ever made for ", inv->program);
    print_escaped(inv->err, str_of(whom(&inv->mem, doc)));
    (void)fputs(": is that the name? (\"brig token list\") It is frozen all the same\n", inv->err);
}

/* ---- pressing and releasing ---- */

static int print_done(struct invocation *inv, const struct json *doc, bool is_freeze)
{
    if (inv->json)
        return cli_json(inv, doc);
    (void)fputs(is_freeze ? "frozen: " : "no longer frozen: ", inv->out);
    print_escaped(inv->out, str_of(whom(&inv->mem, doc)));
    (void)fprintf(inv->out, "; receipt %s\n", doc_text(&inv->mem, doc, "receipt_id"));
    return 0;
}

static int change(struct invocation *inv, struct frozen *entry, enum action_kind kind)
{
    AUTO_SANDBOX_CALL struct sandbox_call call = {0};
    const char *state_dir = NULL;
    struct json *doc;
    struct run run;
    struct err err;
    int failed, status;

    if (cli_state(inv, &state_dir, &err) < 0)
        return cli_error(inv, &err);
    if (sandbox_call_open(inv, &call, &status) < 0)
        return status;
    run_init(&run);
    failed = kind == ACTION_FREEZE
                 ? govern_freeze(call.govern, &call.request, state_dir, entry, &run, &err)
                 : govern_unfreeze(call.govern, &call.request, state_dir, entry, &run, &err);
    if (failed) {
        status = cli_error(inv, &err);
    } else {
        doc = view_frozen(&inv->mem, entry);
        json_put_text(&inv->mem, doc, "receipt_id", run.closing.id);
        if (kind == ACTION_FREEZE)
            tell_known(inv, state_dir, entry, doc);
        status = print_done(inv, doc, kind == ACTION_FREEZE);
    }
    run_done(&run);
    return status;
}

int run_freeze(struct invocation *inv)
{
    struct frozen entry;
    struct err err;

    if (option_flag(inv, "--status"))
        return print_status(inv);
    if (read_entry(inv, &entry, &err) < 0 ||
        copy_option(inv, "--reason", entry.reason, sizeof entry.reason, &err) < 0)
        return cli_error(inv, &err);
    return change(inv, &entry, ACTION_FREEZE);
}

int run_unfreeze(struct invocation *inv)
{
    struct frozen entry;
    struct err err;

    if (read_entry(inv, &entry, &err) < 0)
        return cli_error(inv, &err);
    return change(inv, &entry, ACTION_UNFREEZE);
}

/* ---- by a daemon ---- */

static int put_option(struct invocation *inv, struct json *body, const char *key, const char *text)
{
    if (*text && !str_is_utf8(str_of(text)))
        return -1;
    if (*text)
        json_put_text(&inv->mem, body, key, text);
    return 0;
}

static int remote_change(struct invocation *inv, struct remote *remote, enum http_method method,
                         const char *target, const struct json *body)
{
    const struct json *doc = NULL;
    struct err err;

    if (remote_ask(inv, remote, method, target, body, &doc, &err) < 0)
        return remote_failed(inv, remote, &err);
    return print_done(inv, doc, method == HTTP_POST);
}

/* Only where there is no other way: the button works whatever becomes of the daemon beside us. */
int remote_freeze(struct invocation *inv, struct remote *remote)
{
    struct json *body = json_object(&inv->mem);
    const struct json *doc = NULL;
    struct frozen entry;
    struct err err;

    if (!remote->chosen)
        return REMOTE_NOT_DONE;
    if (option_flag(inv, "--status"))
        return remote_ask(inv, remote, HTTP_GET, "/v1/freeze", NULL, &doc, &err) < 0
                   ? remote_failed(inv, remote, &err)
                   : print_list(inv, doc);
    if (read_entry(inv, &entry, &err) < 0 ||
        copy_option(inv, "--reason", entry.reason, sizeof entry.reason, &err) < 0)
        return cli_error(inv, &err);
    if (put_option(inv, body, "tenant", entry.tenant) < 0 ||
        put_option(inv, body, "principal", entry.principal) < 0 ||
        put_option(inv, body, "reason", entry.reason) < 0)
        return REMOTE_NOT_DONE;
    return remote_change(inv, remote, HTTP_POST, "/v1/freeze", body);
}

int remote_unfreeze(struct invocation *inv, struct remote *remote)
{
    const char *target = "/v1/freeze";
    struct frozen entry;
    struct err err;

    if (!remote->chosen)
        return REMOTE_NOT_DONE;
    if (read_entry(inv, &entry, &err) < 0)
        return cli_error(inv, &err);
    if (entry.tenant[0])
        target = arena_printf(&inv->mem, "%s?tenant=%s", target, remote_escape(inv, entry.tenant));
    if (entry.principal[0])
        target = arena_printf(&inv->mem, "%s%cprincipal=%s", target, entry.tenant[0] ? '&' : '?',
                              remote_escape(inv, entry.principal));
    return remote_change(inv, remote, HTTP_DELETE, target, NULL);
}
