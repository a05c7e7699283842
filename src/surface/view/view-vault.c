/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/vault/vault.h"

#include "lib/json/json.h"
#include "surface/view/view.h"

static struct json *view_binding(struct arena *mem, const struct vault_binding *binding)
{
    struct json *object = json_object(mem);
    char slot[VAULT_SLOT_TEXT_BYTES];

    vault_slot_text(&binding->slot, slot);
    json_put_text(mem, object, "id", binding->id);
    json_put_text(mem, object, "tenant", binding->tenant);
    json_put_text(mem, object, "subject", binding->subject);
    json_put_text(mem, object, "pack", binding->pack);
    json_put_text(mem, object, "scheme", binding->scheme);
    json_put_text(mem, object, "host", binding->host);
    json_put_int(mem, object, "port", binding->port);
    json_put_text(mem, object, "method", binding->method);
    json_put_text(mem, object, "path", binding->path);
    json_put_text(mem, object, "slot", slot);
    return object;
}

struct json *view_secret(struct arena *mem, const struct vault_record *record)
{
    struct json *object = json_object(mem), *bindings = json_array(mem);

    json_put_text(mem, object, "name", record->name);
    json_put_int(mem, object, "version", (int64_t)record->version);
    json_put_text(mem, object, "created_at", view_moment(mem, record->created_at));
    json_put_text(mem, object, "changed_at", view_moment(mem, record->changed_at));
    for (size_t i = 0; i < record->binding_n; i++)
        json_push(bindings, view_binding(mem, &record->bindings[i]));
    json_put(object, "bindings", bindings);
    return object;
}
