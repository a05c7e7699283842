/* SPDX-License-Identifier: Apache-2.0 */
/* Which secrets of the vault may go out under these rules.
 *
 *     {"secrets": [{"line", "name", "host", "port", "scheme", "method", "path", "slot"}]}
 *
 * An entry is written and compared like a binding of the vault, so that the two can never read the
 * same words differently. Without the list what the vault has bound is all there is to say; with
 * one, also an empty one, a secret that no entry lists does not go. */
#include "lib/egress/rules-private.h"

#include <string.h>

/* ---- reading ---- */

static int copy_text(const struct json *map, const char *key, char *out, size_t size,
                     struct err *err)
{
    const struct json *value = json_get(map, key);

    if (!value)
        return 0;
    if (value->kind != JSON_STRING || value->text.n == 0 || value->text.n >= size ||
        memchr(value->text.p, '\0', value->text.n))
        return err_set(err, ERR_INVALID, "\"%s\" is a text of 1 to %zu bytes", key, size - 1);
    memcpy(out, value->text.p, value->text.n);
    return 0;
}

static int copy_port(const struct json *map, unsigned *out, struct err *err)
{
    const struct json *value = json_get(map, "port");
    int64_t port;

    if (!value)
        return 0;
    if (!json_is_int(value, &port) || port < 1 || port > UINT16_MAX)
        return err_set(err, ERR_INVALID, "\"port\" is out of range");
    *out = (unsigned)port;
    return 0;
}

static int read_secret(const struct json *map, struct rule_secret *out, struct err *err)
{
    struct vault_binding *binding = &out->binding;
    const struct json *slot = json_get(map, "slot");

    if (copy_text(map, "name", out->name, sizeof out->name, err) < 0 ||
        copy_text(map, "host", binding->host, sizeof binding->host, err) < 0 ||
        copy_text(map, "scheme", binding->scheme, sizeof binding->scheme, err) < 0 ||
        copy_text(map, "method", binding->method, sizeof binding->method, err) < 0 ||
        copy_text(map, "path", binding->path, sizeof binding->path, err) < 0 ||
        copy_port(map, &binding->port, err) < 0)
        return -1;
    if (!vault_is_name(str_of(out->name)))
        return err_set(err, ERR_INVALID, "that is not the name of a secret");
    if (!slot || slot->kind != JSON_STRING)
        return err_set(err, ERR_INVALID, "\"slot\" is needed");
    if (vault_slot_parse(slot->text, &binding->slot, err) < 0)
        return -1;
    return vault_binding_check(binding, err);
}

int net_secret_check(const struct json *map, struct err *err)
{
    struct rule_secret secret = {0};

    return read_secret(map, &secret, err);
}

int read_secrets(struct reading *in, const struct json *list)
{
    static const char *const keys[] = {"line",   "name", "host", "port", "scheme",
                                       "method", "path", "slot", NULL};
    struct net_rules *rules = in->rules;

    rules->limits_secrets = true;
    rules->secrets = arena_array(in->mem, struct rule_secret, list->n + 1);
    json_each(item, list)
    {
        struct rule_secret *secret = &rules->secrets[rules->secret_n++];

        if (item->kind != JSON_OBJECT)
            return read_bad(in, list, "has an entry that is none");
        if (read_known(in, item, keys) < 0 || read_lines(in, item, &secret->line) < 0)
            return -1;
        if (read_secret(item, secret, in->err) < 0)
            return err_in(in->err, "network rules: secrets");
    }
    return 0;
}

/* ---- asking ---- */

/* Whose sandbox it is, and whose secret, is the vault's to compare. */
static bool lists(const struct rule_secret *secret, const struct vault_question *question)
{
    struct vault_question here = *question;

    here.tenant = secret->binding.tenant;
    return strcmp(secret->name, question->name) == 0 &&
           vault_binding_fits(&secret->binding, &here, true);
}

bool net_rules_secret(const struct net_rules *rules, const struct vault_question *question)
{
    for (size_t i = 0; i < rules->secret_n; i++)
        if (lists(&rules->secrets[i], question))
            return true;
    return !rules->limits_secrets;
}
