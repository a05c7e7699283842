/* SPDX-License-Identifier: Apache-2.0 */
/* What may be said at an endpoint: its rules, and the options of single protocols. */
#include "lib/egress/rules-private.h"

#include <math.h>
#include <string.h>

#define BODY_BYTES_DEFAULT (64 * KIB)

/* ---- patterns ---- */

int read_glob(struct reading *in, struct str text, enum glob_kind kind, const struct glob **out)
{
    return glob_new(in->mem, text, kind, out, in->err) < 0 ? err_in(in->err, "network rules") : 0;
}

int read_globs(struct reading *in, const struct json *list, struct matcher *out)
{
    out->any = arena_array(in->mem, const struct glob *, list->n);
    json_each(item, list)
    {
        struct str text;

        if (!json_is_text(item, &text))
            return read_bad(in, list, "has a pattern that is no text");
        if (read_glob(in, text, GLOB_WORD, &out->any[out->n++]) < 0)
            return -1;
    }
    return out->n ? 0 : read_bad(in, list, "is empty");
}

int read_matcher(struct reading *in, const struct json *value, struct matcher *out)
{
    static const char *const keys[] = {"glob", "any", NULL};
    const struct json *any;
    struct str glob;

    if (json_is_text(value, &glob)) {
        out->any = arena_array(in->mem, const struct glob *, 1);
        out->n = 1;
        return read_glob(in, glob, GLOB_WORD, &out->any[0]);
    }
    if (value->kind != JSON_OBJECT)
        return read_bad(in, value, "is neither a pattern nor a map");
    if (read_known(in, value, keys) < 0 || read_member(in, value, "any", JSON_ARRAY, &any) < 0)
        return -1;
    if (any)
        return json_get(value, "glob") ? read_bad(in, value, "has glob and any")
                                       : read_globs(in, any, out);
    return json_get(value, "glob") ? read_matcher(in, json_get(value, "glob"), out)
                                   : read_bad(in, value, "is empty");
}

bool matcher_has(const struct matcher *matcher, struct str text)
{
    for (size_t i = 0; i < matcher->n; i++)
        if (glob_match(matcher->any[i], text))
            return true;
    return false;
}

/* ---- wanted values ---- */

static int read_equal(struct reading *in, const struct json *value, struct want *out)
{
    AUTO_BUF struct buf text = BUF(GLOB_TEXT_MAX);

    if (value->kind == JSON_ARRAY || value->kind == JSON_OBJECT)
        return read_bad(in, value, "is no single value");
    if (json_canonical(value, &text, in->err) < 0)
        return -1;
    out->kind = WANT_EQUAL;
    out->equal = arena_str(in->mem, buf_str(&text));
    return 0;
}

static int read_range(struct reading *in, const struct json *map, struct want *out)
{
    const struct json *low, *high;

    if (read_member(in, map, "min", JSON_NUMBER, &low) < 0 ||
        read_member(in, map, "max", JSON_NUMBER, &high) < 0)
        return -1;
    out->kind = WANT_RANGE;
    out->low = low ? strtod(arena_text(in->mem, low->text), NULL) : -HUGE_VAL;
    out->high = high ? strtod(arena_text(in->mem, high->text), NULL) : HUGE_VAL;
    return 0;
}

static int read_want(struct reading *in, const struct json *value, bool is_document,
                     struct want *out)
{
    static const char *const keys[] = {"glob", "any", "equals", "min", "max", "absent", NULL};
    bool absent;

    out->key = arena_str(in->mem, value->key);
    if (!is_document || value->kind != JSON_OBJECT)
        return read_matcher(in, value, &out->matcher);
    if (out->key.n && out->key.p[0] != '/')
        return read_bad(in, value, "is no JSON pointer");
    if (read_known(in, value, keys) < 0 || read_bool(in, value, "absent", &absent) < 0)
        return -1;
    if (absent) {
        out->kind = WANT_ABSENT;
        return 0;
    }
    if (json_get(value, "equals"))
        return read_equal(in, json_get(value, "equals"), out);
    if (json_get(value, "min") || json_get(value, "max"))
        return read_range(in, value, out);
    return read_matcher(in, value, &out->matcher);
}

static int read_wants(struct reading *in, const struct json *map, const char *key, bool is_document,
                      struct want **out)
{
    const struct json *wants;

    if (read_member(in, map, key, JSON_OBJECT, &wants) < 0)
        return -1;
    if (!wants)
        return 0;
    json_each(item, wants)
    {
        struct want *want = arena_new(in->mem, struct want);

        if (read_want(in, item, is_document, want) < 0)
            return -1;
        *out = want;
        out = &want->next;
    }
    return 0;
}

/* ---- one rule ---- */

/* "%2f" and "%2F" are the same; paths are compared with upper-case digits. */
static struct str upper_escapes(struct arena *mem, struct str s)
{
    char *copy = arena_text(mem, s);

    for (size_t i = 0; i + 2 < s.n; i++)
        if (copy[i] == '%')
            for (size_t k = i + 1; k < i + 3; k++)
                if (copy[k] >= 'a' && copy[k] <= 'f')
                    copy[k] = (char)(copy[k] - 0x20);
    return (struct str){copy, s.n};
}

/* In a policy the case of a method does not matter; in a request it does. */
static struct str upper(struct arena *mem, struct str s)
{
    char *copy = arena_text(mem, s);

    for (size_t i = 0; i < s.n; i++)
        if (copy[i] >= 'a' && copy[i] <= 'z')
            copy[i] = (char)(copy[i] - 0x20);
    return (struct str){copy, s.n};
}

static int read_http_fields(struct reading *in, const struct json *map, enum net_protocol protocol,
                            struct rule *out)
{
    struct str path;

    if (read_text(in, map, "method", &out->method) < 0 || read_text(in, map, "path", &path) < 0 ||
        read_wants(in, map, "query", false, &out->query) < 0 ||
        read_wants(in, map, "body", true, &out->body) < 0 ||
        read_wants(in, map, "arguments", true, &out->arguments) < 0)
        return -1;
    if (path.n && read_glob(in, upper_escapes(in->mem, path), GLOB_PATH, &out->path) < 0)
        return -1;
    if (protocol == NET_PROTOCOL_MCP && out->method.n)
        return read_glob(in, out->method, GLOB_WORD, &out->method_glob);
    if (protocol == NET_PROTOCOL_REST || protocol == NET_PROTOCOL_WEBSOCKET)
        out->method = upper(in->mem, out->method);
    return 0;
}

static int read_graphql_fields(struct reading *in, const struct json *map, struct rule *out)
{
    const struct json *fields;
    struct str name;

    if (read_text(in, map, "operation_type", &out->operation_type) < 0 ||
        read_text(in, map, "operation_name", &name) < 0 ||
        read_member(in, map, "fields", JSON_ARRAY, &fields) < 0 ||
        (name.n && read_glob(in, name, GLOB_WORD, &out->operation_name) < 0) ||
        (fields && read_globs(in, fields, &out->fields) < 0))
        return -1;
    out->has_graphql = out->operation_type.n || name.n || fields;
    return 0;
}

static int read_tool(struct reading *in, const struct json *map, struct rule *out)
{
    static const char *const keys[] = {"name", NULL};
    const struct json *tool = json_get(map, "tool"), *params;

    if (read_member(in, map, "params", JSON_OBJECT, &params) < 0 ||
        (params && read_known(in, params, keys) < 0))
        return -1;
    if (!tool && params)
        tool = json_get(params, "name");
    return tool ? read_matcher(in, tool, &out->tool) : 0;
}

static int read_rule(struct reading *in, const struct json *map, enum net_protocol protocol,
                     struct rule **out)
{
    static const char *const keys[] = {
        "line",           "method",         "path",   "query", "body",   "arguments", "strict",
        "operation_type", "operation_name", "fields", "tool",  "params", NULL};
    struct rule *rule = arena_new(in->mem, struct rule);

    if (map->kind != JSON_OBJECT)
        return read_bad(in, map, "is no rule");
    if (read_known(in, map, keys) < 0 || read_lines(in, map, &rule->line) < 0 ||
        read_bool(in, map, "strict", &rule->is_strict) < 0 ||
        read_http_fields(in, map, protocol, rule) < 0 || read_graphql_fields(in, map, rule) < 0 ||
        read_tool(in, map, rule) < 0)
        return -1;
    *out = rule;
    return 0;
}

static int read_allow_rules(struct reading *in, const struct json *list, struct endpoint *endpoint)
{
    struct rule **at = &endpoint->allow;

    json_each(item, list)
    {
        const struct json *allow;

        if (item->kind != JSON_OBJECT)
            return read_bad(in, list, "has something that is no rule");
        if (read_member(in, item, "allow", JSON_OBJECT, &allow) < 0 || !allow || item->n != 1)
            return read_bad(in, list, "has a rule without \"allow\", or with more");
        if (read_rule(in, allow, endpoint->protocol, at) < 0)
            return -1;
        at = &(*at)->next;
    }
    return 0;
}

static int read_deny_rules(struct reading *in, const struct json *list, struct endpoint *endpoint)
{
    struct rule **at = &endpoint->deny;

    json_each(item, list)
    {
        if (read_rule(in, item, endpoint->protocol, at) < 0)
            return -1;
        at = &(*at)->next;
    }
    return 0;
}

/* ---- options of protocols ---- */

static int read_registered(struct reading *in, const struct json *map, struct registered_query *out)
{
    static const char *const keys[] = {"operation_type", "operation_name", "fields", NULL};
    const struct json *fields;

    if (map->kind != JSON_OBJECT)
        return read_bad(in, map, "is no query");
    out->id = arena_str(in->mem, map->key);
    if (read_known(in, map, keys) < 0 ||
        read_text(in, map, "operation_type", &out->operation_type) < 0 ||
        read_text(in, map, "operation_name", &out->operation_name) < 0 ||
        read_member(in, map, "fields", JSON_ARRAY, &fields) < 0)
        return -1;
    if (!fields)
        return 0;
    out->fields = arena_array(in->mem, struct str, fields->n);
    json_each(item, fields)
    {
        if (item->kind != JSON_STRING)
            return read_bad(in, fields, "has a field that is no text");
        out->fields[out->field_n++] = arena_str(in->mem, item->text);
    }
    return 0;
}

static int read_graphql_options(struct reading *in, const struct json *map, struct endpoint *out)
{
    struct registered_query **at = &out->queries;
    const struct json *queries;
    struct str persisted;

    if (read_text(in, map, "persisted_queries", &persisted) < 0 ||
        read_member(in, map, "graphql_persisted_queries", JSON_OBJECT, &queries) < 0)
        return -1;
    out->registered_only = str_is(persisted, "allow_registered");
    if (queries)
        json_each(item, queries)
        {
            *at = arena_new(in->mem, struct registered_query);
            if (read_registered(in, item, *at) < 0)
                return -1;
            at = &(*at)->next;
        }
    return 0;
}

static int read_mcp_options(struct reading *in, const struct json *map, struct endpoint *out)
{
    static const char *const keys[] = {"max_body_bytes", "strict_tool_names",
                                       "allow_all_known_mcp_methods", NULL};
    const struct json *mcp, *strict;

    if (read_member(in, map, "mcp", JSON_OBJECT, &mcp) < 0)
        return -1;
    if (!mcp)
        return 0;
    if (read_known(in, mcp, keys) < 0 ||
        read_bool(in, mcp, "allow_all_known_mcp_methods", &out->mcp_profile) < 0 ||
        read_member(in, mcp, "strict_tool_names", JSON_BOOL, &strict) < 0)
        return -1;
    out->mcp_loose_names = strict && !strict->boolean;
    return 0;
}

/* The first that is written; each protocol has its own key for it. */
static int read_body_max(struct reading *in, const struct json *map, struct endpoint *out)
{
    const struct json *maps[] = {map, map, json_get(map, "json_rpc"), json_get(map, "mcp")};
    static const char *const keys[] = {"max_body_bytes", "graphql_max_body_bytes", "max_body_bytes",
                                       "max_body_bytes"};

    out->body_max = BODY_BYTES_DEFAULT;
    for (size_t i = 0; i < COUNT(maps); i++) {
        uint64_t bytes = 0;

        if (maps[i] && read_count(in, maps[i], keys[i], 1, &bytes) < 0)
            return -1;
        if (!bytes)
            continue;
        out->body_max = bytes < NET_BODY_MAX ? (size_t)bytes : NET_BODY_MAX;
        return 0;
    }
    return 0;
}

int read_rules(struct reading *in, const struct json *map, struct endpoint *endpoint)
{
    const struct json *allow, *deny;

    if (read_member(in, map, "rules", JSON_ARRAY, &allow) < 0 ||
        read_member(in, map, "deny_rules", JSON_ARRAY, &deny) < 0 ||
        (allow && read_allow_rules(in, allow, endpoint) < 0) ||
        (deny && read_deny_rules(in, deny, endpoint) < 0) ||
        read_graphql_options(in, map, endpoint) < 0 || read_mcp_options(in, map, endpoint) < 0)
        return -1;
    return read_body_max(in, map, endpoint);
}
