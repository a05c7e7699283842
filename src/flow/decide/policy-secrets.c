/* SPDX-License-Identifier: Apache-2.0 */
/* The section secrets: which of the vault's secrets may go out, and into what.
 *
 * It takes away only. What a secret is bound to is said to the vault (docs/vault.md), and both have
 * to say yes; egress, which compiles this text, asks the vault only for what is listed here. */
#include "flow/decide/load.h"

#include "lib/egress/rules.h"

static int load_secret(struct load *load, const struct json *map)
{
    struct secret {
        const struct json *name;
        const struct json *host;
        const struct json *port;
        const struct json *scheme;
        const struct json *method;
        const struct json *path;
        const struct json *slot;
    } in = {0};
    static const struct field fields[] = {
        {"name",   offsetof(struct secret, name),   TAKES_TEXT,   true },
        {"host",   offsetof(struct secret, host),   TAKES_TEXT,   true },
        {"port",   offsetof(struct secret, port),   TAKES_NUMBER, false},
        {"scheme", offsetof(struct secret, scheme), TAKES_TEXT,   false},
        {"method", offsetof(struct secret, method), TAKES_TEXT,   false},
        {"path",   offsetof(struct secret, path),   TAKES_TEXT,   false},
        {"slot",   offsetof(struct secret, slot),   TAKES_TEXT,   true },
    };
    int64_t port;
    struct err err;

    if (load_kind(load, map, TAKES_MAP, "an entry of \"secrets\"") < 0 ||
        load_map(load, map, fields, COUNT(fields), &in) < 0 ||
        (in.port && load_int(load, in.port, 1, 65535, "\"port\"", &port) < 0))
        return -1;
    if (net_secret_check(map, &err) < 0)
        return load_bad(load, map->mark, "secret \"%s\": %s", shown(load, in.name->text), err.text);
    return 0;
}

int load_secrets(struct load *load, const struct json *section)
{
    if (load_count(load, section, "\"secrets\"") < 0)
        return -1;
    json_each(item, section)
    {
        if (load_secret(load, item) < 0)
            return -1;
    }
    return 0;
}
