/* SPDX-License-Identifier: Apache-2.0 */

/* The vault of the caller's tenant. Values are taken and never given: no route answers with one. */

#include "lib/vault/vault.h"

#include "surface/api/api-private.h"
#include "surface/api/tables.h"

#include <stdio.h>
#include <string.h>

#include "lib/crypto/secret.h"
#include "model/run.h"
#include "surface/view/view.h"

struct value_body {
    struct str value;
};

struct binding_body {
    const char *host, *slot, *scheme, *method, *path, *subject, *pack;
    uint64_t port;
};

/* clang-format off */
static const struct field value_fields[] = {
    {"value", FIELD_BYTES, offsetof(struct value_body, value), .required = true,
     .max = VAULT_VALUE_MAX, .help = "It is never shown again."},
    {0},
};

static const struct field binding_fields[] = {
    {"host", FIELD_TEXT, offsetof(struct binding_body, host), .required = true, .max = VAULT_HOST_BYTES - 1},
    {"slot", FIELD_TEXT, offsetof(struct binding_body, slot), .required = true, .max = VAULT_SLOT_TEXT_BYTES - 1,
     .help = "header:NAME, query:KEY, body:/POINTER, basic:user, basic:password, "
             "sigv4:SERVICE/REGION or websocket:/POINTER."},
    {"scheme", FIELD_TEXT, offsetof(struct binding_body, scheme), .choices = "https http"},
    {"port", FIELD_COUNT, offsetof(struct binding_body, port), .min = 1, .max = 65535},
    {"method", FIELD_TEXT, offsetof(struct binding_body, method), .max = VAULT_METHOD_BYTES - 1},
    {"path", FIELD_TEXT, offsetof(struct binding_body, path), .max = VAULT_PATH_BYTES - 1},
    {"subject", FIELD_TEXT, offsetof(struct binding_body, subject), .max = VAULT_WHO_BYTES - 1},
    {"pack", FIELD_TEXT, offsetof(struct binding_body, pack), .max = VAULT_WHO_BYTES - 1},
    {0},
};
/* clang-format on */

static int open_vault(const struct call *call, struct vault **out, struct err *err)
{
    return vault_open(tenant_state_dir(call->tenant), (struct str){0}, out, err);
}

static struct json *answer_of(struct arena *mem, const struct vault_change *change,
                              const struct vault_record *record, const struct run *run)
{
    struct json *answer;

    if (change->action == ACTION_VAULT_REMOVE) {
        answer = json_object(mem);
        json_put_text(mem, answer, "name", change->name);
    } else {
        answer = view_secret(mem, record);
    }
    json_put_text(mem, answer, "receipt_id", run->closing.id);
    return answer;
}

static int change_vault(struct call *call, const struct vault_change *change, int status,
                        struct err *err)
{
    AUTO(vault) struct vault *vault = NULL;
    struct request request = call_request(call, change->action);
    struct vault_record record = {0};
    struct lent lent;
    struct run run;
    int failed;

    if (open_vault(call, &vault, err) < 0 || call_govern(call, &lent, err) < 0)
        return -1;
    run_init(&run);
    failed = govern_vault(lent.govern, &request, vault, change, &run, &record, err);
    call_release(call, &lent);
    if (!failed)
        failed = call_answer(call, status, answer_of(&call->mem, change, &record, &run), err);
    run_done(&run);
    return failed;
}

static int set_value(struct call *call, const void *body, enum action_kind action, struct err *err)
{
    const struct value_body *wanted = body;
    const struct vault_change change = {
        .action = action, .name = call->params[0], .value = wanted->value};
    int failed = change_vault(call, &change, 200, err);

    secret_wipe((char *)(uintptr_t)wanted->value.p, wanted->value.n); /* it lies in our arena */
    return failed;
}

static int set(struct call *call, const void *body, const void *query, struct err *err)
{
    (void)query;
    return set_value(call, body, ACTION_VAULT_SET, err);
}

static int rotate(struct call *call, const void *body, const void *query, struct err *err)
{
    (void)query;
    return set_value(call, body, ACTION_VAULT_ROTATE, err);
}

static void put(char *to, size_t size, const char *text)
{
    (void)snprintf(to, size, "%s", text ? text : ""); /* bounded by the fields */
}

/* A tenant binds for itself: whose requests are meant is not asked. */
static int bind_secret(struct call *call, const void *body, const void *query, struct err *err)
{
    const struct binding_body *wanted = body;
    struct vault_binding b = {.port = (unsigned)wanted->port};
    const struct vault_change change = {
        .action = ACTION_VAULT_BIND, .name = call->params[0], .binding = &b};

    (void)query;
    put(b.tenant, sizeof b.tenant, call->caller.tenant);
    put(b.host, sizeof b.host, wanted->host);
    put(b.scheme, sizeof b.scheme, wanted->scheme);
    put(b.method, sizeof b.method, wanted->method);
    put(b.path, sizeof b.path, wanted->path);
    put(b.subject, sizeof b.subject, wanted->subject);
    put(b.pack, sizeof b.pack, wanted->pack);
    if (vault_slot_parse(str_of(wanted->slot), &b.slot, err) < 0 ||
        vault_binding_check(&b, err) < 0)
        return -1;
    return change_vault(call, &change, 201, err);
}

static int unbind_secret(struct call *call, const void *body, const void *query, struct err *err)
{
    const struct vault_change change = {
        .action = ACTION_VAULT_UNBIND, .name = call->params[0], .binding_id = call->params[1]};

    (void)body;
    (void)query;
    return change_vault(call, &change, 200, err);
}

static int remove_secret(struct call *call, const void *body, const void *query, struct err *err)
{
    const struct vault_change change = {.action = ACTION_VAULT_REMOVE, .name = call->params[0]};

    (void)body;
    (void)query;
    return change_vault(call, &change, 200, err);
}

static int list(struct call *call, const void *body, const void *query, struct err *err)
{
    AUTO(vault) struct vault *vault = NULL;
    struct json *answer = json_object(&call->mem), *items = json_array(&call->mem);
    struct vault_record *records = NULL;
    size_t n = 0;

    (void)body;
    (void)query;
    if (open_vault(call, &vault, err) < 0 || vault_list(vault, &call->mem, &records, &n, err) < 0)
        return -1;
    for (size_t i = 0; i < n; i++)
        json_push(items, view_secret(&call->mem, &records[i]));
    json_put(answer, "secrets", items);
    return call_answer(call, 200, answer, err);
}

static int show(struct call *call, const void *body, const void *query, struct err *err)
{
    AUTO(vault) struct vault *vault = NULL;
    struct vault_record record;

    (void)body;
    (void)query;
    if (open_vault(call, &vault, err) < 0 ||
        vault_show(vault, &call->mem, call->params[0], &record, err) < 0)
        return -1;
    return call_answer(call, 200, view_secret(&call->mem, &record), err);
}

/* clang-format off */
const struct route routes_vault[] = {
    {.method = HTTP_GET,
     .path = "/v1/vault",
     .kind = ROUTE_LOOK,
     .scope = SCOPE_VAULT,
     .name = "listSecrets",
     .summary = "The secrets there are.",
     .answer = "Each with what it is bound to; never its value.",
     .handle = list},
    {.method = HTTP_GET,
     .path = "/v1/vault/{name}",
     .kind = ROUTE_LOOK,
     .scope = SCOPE_VAULT,
     .name = "showSecret",
     .summary = "One secret.",
     .answer = "What it is bound to; never its value.",
     .handle = show},
    {.method = HTTP_PUT,
     .path = "/v1/vault/{name}",
     .kind = ROUTE_LOOK,
     .scope = SCOPE_VAULT,
     .body = BODY_JSON,
     .fields = value_fields,
     .body_size = sizeof(struct value_body),
     .name = "setSecret",
     .summary = "Put a secret into the vault, or another value of it.",
     .answer = "The secret, without its value.",
     .handle = set},
    {.method = HTTP_POST,
     .path = "/v1/vault/{name}/rotate",
     .kind = ROUTE_LOOK,
     .scope = SCOPE_VAULT,
     .body = BODY_JSON,
     .fields = value_fields,
     .body_size = sizeof(struct value_body),
     .name = "rotateSecret",
     .summary = "Give a secret that is there another value.",
     .answer = "The secret, without its value.",
     .handle = rotate},
    {.method = HTTP_POST,
     .path = "/v1/vault/{name}/bindings",
     .kind = ROUTE_LOOK,
     .scope = SCOPE_VAULT,
     .body = BODY_JSON,
     .fields = binding_fields,
     .body_size = sizeof(struct binding_body),
     .name = "bindSecret",
     .summary = "Say which requests a secret may go into.",
     .answer = "The secret with all its bindings.",
     .handle = bind_secret},
    {.method = HTTP_DELETE,
     .path = "/v1/vault/{name}/bindings/{binding}",
     .kind = ROUTE_LOOK,
     .scope = SCOPE_VAULT,
     .name = "unbindSecret",
     .summary = "Take a binding away.",
     .answer = "The secret with the bindings that are left.",
     .handle = unbind_secret},
    {.method = HTTP_DELETE,
     .path = "/v1/vault/{name}",
     .kind = ROUTE_LOOK,
     .scope = SCOPE_VAULT,
     .name = "removeSecret",
     .summary = "Remove a secret and its bindings.",
     .answer = "Its name and the receipt.",
     .handle = remove_secret},
    {0},
};
/* clang-format on */
