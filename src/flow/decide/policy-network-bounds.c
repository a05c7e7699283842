/* SPDX-License-Identifier: Apache-2.0 */
/* What Brig has beyond OpenShell's endpoints: members of JSON documents, budgets, rates, limits of
 * answers, other sandboxes. */
#include "flow/decide/load.h"

#include "lib/net/addr.h"

#include <string.h>

#define COUNT_MAX ((int64_t)1 << 53)

int load_size(struct load *load, const struct json *value, const char *what, int64_t *out)
{
    uint64_t bytes;
    struct err err;

    if (value->kind == JSON_NUMBER)
        return load_int(load, value, 1, COUNT_MAX - 1, what, out);
    if (load_kind(load, value, TAKES_SIZE, what) < 0)
        return -1;
    if (size_parse(value->text, &bytes, &err) < 0)
        return load_bad(load, value->mark, "%s: %s", what, err.text);
    if (bytes == 0 || bytes >= (uint64_t)COUNT_MAX)
        return load_bad(load, value->mark, "%s is out of range", what);
    *out = (int64_t)bytes;
    return 0;
}

/* ---- budgets, rates, answers ---- */

static int load_budget(struct load *load, const struct json *map)
{
    struct budget {
        const struct json *requests;
        const struct json *bytes_out;
        const struct json *bytes_in;
    } in = {0};
    static const struct field fields[] = {
        {"requests",  offsetof(struct budget, requests),  TAKES_NUMBER, false},
        {"bytes_out", offsetof(struct budget, bytes_out), TAKES_SIZE,   false},
        {"bytes_in",  offsetof(struct budget, bytes_in),  TAKES_SIZE,   false},
    };
    int64_t number;

    if (load_map(load, map, fields, COUNT(fields), &in) < 0 ||
        (in.requests &&
         load_int(load, in.requests, 1, COUNT_MAX - 1, "\"requests\"", &number) < 0) ||
        (in.bytes_out && load_size(load, in.bytes_out, "\"bytes_out\"", &number) < 0) ||
        (in.bytes_in && load_size(load, in.bytes_in, "\"bytes_in\"", &number) < 0))
        return -1;
    return map->n ? 0 : load_bad(load, map->mark, "an empty budget limits nothing");
}

static int load_rate(struct load *load, const struct json *map)
{
    struct rate {
        const struct json *requests;
        const struct json *per;
    } in = {0};
    static const struct field fields[] = {
        {"requests", offsetof(struct rate, requests), TAKES_NUMBER, true},
        {"per",      offsetof(struct rate, per),      TAKES_TEXT,   true},
    };
    uint64_t per_ms;
    int64_t number;
    struct err err;

    if (load_map(load, map, fields, COUNT(fields), &in) < 0 ||
        load_int(load, in.requests, 1, 1000000, "\"requests\"", &number) < 0)
        return -1;
    if (duration_parse(in.per->text, &per_ms, &err) < 0)
        return load_bad(load, in.per->mark, "\"per\": %s", err.text);
    if (per_ms < 1000 || per_ms > 86400000)
        return load_bad(load, in.per->mark, "\"per\" is from 1s to 24h");
    return 0;
}

static int load_response(struct load *load, const struct json *map)
{
    struct response {
        const struct json *max_bytes;
        const struct json *types;
    } in = {0};
    static const struct field fields[] = {
        {"max_bytes", offsetof(struct response, max_bytes), TAKES_SIZE, false},
        {"types",     offsetof(struct response, types),     TAKES_LIST, false},
    };
    int64_t number;

    if (load_map(load, map, fields, COUNT(fields), &in) < 0 ||
        (in.max_bytes && load_size(load, in.max_bytes, "\"max_bytes\"", &number) < 0))
        return -1;
    if (!in.types)
        return in.max_bytes ? 0 : load_bad(load, map->mark, "an empty \"response\" limits nothing");
    if (in.types->n == 0)
        return load_bad(load, in.types->mark, "\"types\" must not be empty; leave the key away");
    if (load_count(load, in.types, "\"types\"") < 0)
        return -1;
    json_each(item, in.types)
    {
        if (load_glob(load, item, GLOB_WORD, "a type") < 0)
            return -1;
        if (!memchr(item->text.p, '/', item->text.n))
            return load_bad(load, item->mark, "type \"%s\" must be like text/plain or text/*",
                            shown(load, item->text));
    }
    return 0;
}

int load_bounds(struct load *load, const struct json *max_body_bytes,
                const struct json *secret_shapes, const struct json *budget,
                const struct json *rate, const struct json *response)
{
    static const char *const shapes[] = {"flag", "deny", "ignore", NULL};
    int64_t bytes;
    size_t at;

    if (max_body_bytes) {
        if (load_size(load, max_body_bytes, "\"max_body_bytes\"", &bytes) < 0)
            return -1;
        if (bytes > (int64_t)NET_BODY_MAX)
            return load_bad(load, max_body_bytes->mark, "\"max_body_bytes\" is at most %lu",
                            NET_BODY_MAX);
    }
    if ((secret_shapes && load_choice(load, secret_shapes, shapes, "\"secret_shapes\"", &at) < 0) ||
        (budget && load_budget(load, budget) < 0) || (rate && load_rate(load, rate) < 0))
        return -1;
    return response ? load_response(load, response) : 0;
}

/* ---- other sandboxes ---- */

int load_sandbox_name(struct load *load, const struct json *value)
{
    if (load_text(load, value, NET_LABEL_BYTES_MAX, "\"sandbox\"") < 0)
        return -1;
    for (size_t i = 0; i < value->text.n; i++) {
        char c = value->text.p[i];

        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '*'))
            return load_bad(load, value->mark,
                            "sandbox \"%s\" is a name or a pattern of a-z, 0-9, \"-\" and \"*\"",
                            shown(load, value->text));
    }
    if (memmem(value->text.p, value->text.n, "**", 2))
        return load_bad(load, value->mark, "sandbox \"%s\": write one \"*\"",
                        shown(load, value->text));
    return 0;
}

/* ---- documents ---- */

static int load_any(struct load *load, const struct json *any, const char *what)
{
    if (any->n == 0)
        return load_bad(load, any->mark, "\"any\" of %s must not be empty", what);
    if (load_count(load, any, what) < 0)
        return -1;
    json_each(item, any)
    {
        if (load_glob(load, item, GLOB_WORD, what) < 0)
            return -1;
    }
    return 0;
}

static int load_wanted(struct load *load, const struct json *value, const char *what)
{
    struct wanted {
        const struct json *glob;
        const struct json *any;
        const struct json *equals;
        const struct json *min;
        const struct json *max;
        const struct json *absent;
    } in = {0};
    static const struct field fields[] = {
        {"glob",   offsetof(struct wanted, glob),   TAKES_TEXT,                             false},
        {"any",    offsetof(struct wanted, any),    TAKES_LIST,                             false},
        {"equals", offsetof(struct wanted, equals), TAKES_BOOL | TAKES_NUMBER | TAKES_TEXT, false},
        {"min",    offsetof(struct wanted, min),    TAKES_NUMBER,                           false},
        {"max",    offsetof(struct wanted, max),    TAKES_NUMBER,                           false},
        {"absent", offsetof(struct wanted, absent), TAKES_BOOL,                             false},
    };
    int kinds;

    if (load_kind(load, value, TAKES_TEXT | TAKES_MAP, what) < 0)
        return -1;
    if (value->kind == JSON_STRING)
        return load_glob(load, value, GLOB_WORD, what);
    if (load_map(load, value, fields, COUNT(fields), &in) < 0)
        return -1;
    kinds = !!in.glob + !!in.any + !!in.equals + (in.min || in.max) + !!in.absent;
    if (kinds != 1)
        return load_bad(load, value->mark,
                        "%s has exactly one of \"glob\", \"any\", \"equals\", \"min\" and \"max\", "
                        "\"absent\"",
                        what);
    if (in.absent && !in.absent->boolean)
        return load_bad(load, in.absent->mark, "%s: \"absent\" can only be true", what);
    if (in.glob)
        return load_glob(load, in.glob, GLOB_WORD, what);
    return in.any ? load_any(load, in.any, what) : 0;
}

/* RFC 6901: "/a/b~1c"; an empty pointer is the whole document, which is no single value. */
static bool is_pointer(struct str s)
{
    if (s.n == 0 || s.p[0] != '/')
        return false;
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] == '\0' ||
            (s.p[i] == '~' && (i + 1 == s.n || (s.p[i + 1] != '0' && s.p[i + 1] != '1'))))
            return false;
    return true;
}

int load_document(struct load *load, const struct json *map, const char *what)
{
    if (map->n == 0)
        return load_bad(load, map->mark, "%s must not be empty; leave the key away", what);
    if (load_count(load, map, what) < 0)
        return -1;
    json_each(item, map)
    {
        const char *key = shown(load, item->key);

        if (!is_pointer(item->key))
            return load_bad(load, item->key_mark,
                            "%s: \"%s\" is no JSON pointer; the member \"model\" is \"/model\"",
                            what, key);
        if (load_wanted(load, item, arena_printf(load->mem, "%s \"%s\"", what, key)) < 0)
            return -1;
    }
    return 0;
}
