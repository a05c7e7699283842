/* SPDX-License-Identifier: Apache-2.0 */
/* Rules inside an endpoint: which fields belong to which protocol, and what they may say. */
#include "flow/decide/load.h"

#include <string.h>

struct rule_in {
    const struct json *method;
    const struct json *path;
    const struct json *query;
    const struct json *operation_type;
    const struct json *operation_name;
    const struct json *fields;
    const struct json *tool;
    const struct json *params;
    const struct json *command;
    const struct json *body;
    const struct json *arguments;
    const struct json *strict;
};

#define IN(protocol) (1U << PROTOCOL_##protocol)

/* The fields of a rule and the protocols they belong to. */
static const struct {
    struct field field;
    unsigned protocols;
} rule_keys[] = {
#define KEY(key, takes)                                                                            \
    {                                                                                              \
#key, offsetof(struct rule_in, key), takes, false                                          \
    }
    {KEY(method,         TAKES_TEXT),             IN(REST) | IN(WEBSOCKET) | IN(MCP) | IN(JSON_RPC)},
    {KEY(path,           TAKES_TEXT),             IN(REST) | IN(WEBSOCKET)                         },
    {KEY(query,          TAKES_MAP),              IN(REST) | IN(WEBSOCKET)                         },
    {KEY(operation_type, TAKES_TEXT),             IN(GRAPHQL) | IN(WEBSOCKET)                      },
    {KEY(operation_name, TAKES_TEXT),             IN(GRAPHQL) | IN(WEBSOCKET)                      },
    {KEY(fields,         TAKES_LIST),             IN(GRAPHQL) | IN(WEBSOCKET)                      },
    {KEY(tool,           TAKES_TEXT | TAKES_MAP), IN(MCP)                                          },
    {KEY(params,         TAKES_MAP),              IN(MCP)                                          },
    {KEY(command,        TAKES_TEXT),             IN(SQL)                                          },
    {KEY(body,           TAKES_MAP),              IN(REST)                                         },
    {KEY(arguments,      TAKES_MAP),              IN(MCP)                                          },
    {KEY(strict,         TAKES_BOOL),             IN(REST) | IN(WEBSOCKET) | IN(MCP)               },
#undef KEY
};

const char *protocol_name(enum protocol protocol)
{
    static const char *const names[] = {
        [PROTOCOL_NONE] = "none",         [PROTOCOL_TCP] = "tcp",
        [PROTOCOL_REST] = "rest",         [PROTOCOL_WEBSOCKET] = "websocket",
        [PROTOCOL_GRAPHQL] = "graphql",   [PROTOCOL_MCP] = "mcp",
        [PROTOCOL_JSON_RPC] = "json-rpc", [PROTOCOL_SQL] = "sql",
    };

    return names[protocol];
}

static bool is_token(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              (c && strchr("!#$%&'*+-.^_`|~", c))))
            return false;
    }
    return s.n > 0;
}

static bool has_wildcard(struct str s)
{
    return memchr(s.p, '*', s.n) || memchr(s.p, '?', s.n) || memchr(s.p, '[', s.n);
}

/* ---- matchers: a pattern, or {any: [pattern, …]} ---- */

static int check_any(struct load *load, const struct json *list, const char *what)
{
    if (list->n == 0)
        return load_bad(load, list->mark, "%s: \"any\" must not be empty", what);
    if (load_count(load, list, what) < 0)
        return -1;
    json_each(item, list)
    {
        if (load_glob(load, item, GLOB_WORD, what) < 0)
            return -1;
    }
    return 0;
}

static int check_matcher(struct load *load, const struct json *value, const char *what)
{
    struct {
        const struct json *glob;
        const struct json *any;
    } in = {0};
    static const struct field fields[] = {
        {"glob", 0,                           TAKES_TEXT, false},
        {"any",  sizeof(const struct json *), TAKES_LIST, false},
    };

    if (load_kind(load, value, TAKES_TEXT | TAKES_MAP, what) < 0)
        return -1;
    if (value->kind == JSON_STRING)
        return load_glob(load, value, GLOB_WORD, what);
    if (load_map(load, value, fields, COUNT(fields), &in) < 0)
        return -1;
    if (!in.glob == !in.any)
        return load_bad(load, value->mark, "%s has exactly one of \"glob\" and \"any\"", what);
    return in.glob ? load_glob(load, in.glob, GLOB_WORD, what) : check_any(load, in.any, what);
}

static int check_matchers(struct load *load, const struct json *map, const char *what)
{
    if (load_count(load, map, what) < 0)
        return -1;
    json_each(item, map)
    {
        if (check_matcher(load, item,
                          arena_printf(load->mem, "%s \"%s\"", what, shown(load, item->key))) < 0)
            return -1;
    }
    return 0;
}

/* ---- fields ---- */

static int check_path(struct load *load, const struct json *path)
{
    if (load_glob(load, path, GLOB_PATH, "\"path\"") < 0)
        return -1;
    if (path->text.p[0] != '/' && !str_is(path->text, "**"))
        return load_bad(load, path->mark, "path \"%s\" must begin with \"/\" or be \"**\"",
                        shown(load, path->text));
    return 0;
}

static int check_http(struct load *load, const struct rule_in *in, enum protocol protocol)
{
    static const char *const websocket_methods[] = {"GET", "WEBSOCKET_TEXT", "*", NULL};
    size_t at;

    if (in->method && protocol == PROTOCOL_WEBSOCKET &&
        load_choice(load, in->method, websocket_methods, "\"method\"", &at) < 0)
        return -1;
    if (in->method && !str_is(in->method->text, "*") &&
        (!is_token(in->method->text) || has_wildcard(in->method->text)))
        return load_bad(load, in->method->mark, "method \"%s\" must be a method or \"*\"",
                        shown(load, in->method->text));
    if ((in->path && check_path(load, in->path) < 0) ||
        (in->query && check_matchers(load, in->query, "query") < 0))
        return -1;
    return in->body ? load_document(load, in->body, "\"body\"") : 0;
}

static int check_graphql(struct load *load, const struct rule_in *in)
{
    static const char *const types[] = {"query", "mutation", "subscription", "*", NULL};
    size_t at;

    if ((in->operation_type &&
         load_choice(load, in->operation_type, types, "\"operation_type\"", &at) < 0) ||
        (in->operation_name &&
         load_glob(load, in->operation_name, GLOB_WORD, "\"operation_name\"") < 0) ||
        (in->fields && check_any(load, in->fields, "\"fields\"") < 0))
        return -1;
    return 0;
}

static int check_mcp(struct load *load, const struct rule_in *in)
{
    static const struct field params_fields[] = {
        {"name", 0, TAKES_TEXT | TAKES_MAP, true},
    };
    const struct json *name = NULL;
    bool of_tools = !in->method || str_starts(in->method->text, "tools/");

    if (in->method && load_glob(load, in->method, GLOB_WORD, "\"method\"") < 0)
        return -1;
    if (in->method && has_wildcard(in->method->text) && !of_tools)
        return load_bad(load, in->method->mark,
                        "method \"%s\": wildcards are possible in \"tools/...\" only",
                        shown(load, in->method->text));
    if (in->tool && in->params)
        return load_bad(load, in->params->key_mark,
                        "\"tool\" and \"params\" cannot stand in one rule");
    if ((in->tool || in->params) && !of_tools)
        return load_bad(load, in->method->mark, "a rule with a tool needs method \"tools/call\"");
    if (in->params && (load_map(load, in->params, params_fields, 1, &name) < 0 ||
                       check_matcher(load, name, "params \"name\"") < 0))
        return -1;
    if (in->tool && check_matcher(load, in->tool, "\"tool\"") < 0)
        return -1;
    if (in->arguments && !in->tool && !in->params)
        return load_bad(load, in->arguments->key_mark,
                        "\"arguments\" needs the \"tool\" whose they are");
    return in->arguments ? load_document(load, in->arguments, "\"arguments\"") : 0;
}

static int check_json_rpc(struct load *load, const struct rule_in *in)
{
    if (!in->method)
        return 0;
    if (load_text(load, in->method, 256, "\"method\"") < 0)
        return -1;
    if (!str_is(in->method->text, "*") && has_wildcard(in->method->text))
        return load_bad(load, in->method->mark, "method \"%s\" must be exact, or \"*\"",
                        shown(load, in->method->text));
    return 0;
}

static int check_sql(struct load *load, const struct rule_in *in)
{
    if (in->command && !str_is(in->command->text, "*") && !is_token(in->command->text))
        return load_bad(load, in->command->mark, "command \"%s\" must be an SQL verb or \"*\"",
                        shown(load, in->command->text));
    return 0;
}

static int check_fields(struct load *load, const struct rule_in *in, enum protocol protocol)
{
    switch (protocol) {
    case PROTOCOL_NONE:
    case PROTOCOL_TCP:
        return 0; /* no rules there: the endpoint has complained already */
    case PROTOCOL_REST:
        return check_http(load, in, protocol);
    case PROTOCOL_WEBSOCKET:
        return check_http(load, in, protocol) < 0 ? -1 : check_graphql(load, in);
    case PROTOCOL_GRAPHQL:
        return check_graphql(load, in);
    case PROTOCOL_MCP:
        return check_mcp(load, in);
    case PROTOCOL_JSON_RPC:
        return check_json_rpc(load, in);
    case PROTOCOL_SQL:
        return check_sql(load, in);
    }
    return -1;
}

/* ---- rules ---- */

static int read_rule(struct load *load, const struct json *map, enum protocol protocol,
                     struct rule_in *out)
{
    struct field fields[COUNT(rule_keys)];

    for (size_t i = 0; i < COUNT(rule_keys); i++)
        fields[i] = rule_keys[i].field;
    if (load_map(load, map, fields, COUNT(fields), out) < 0)
        return -1;
    json_each(member, map)
    {
        for (size_t i = 0; i < COUNT(rule_keys); i++)
            if (str_is(member->key, fields[i].key) && !(rule_keys[i].protocols & 1U << protocol))
                return load_bad(load, member->key_mark,
                                "\"%s\" does not belong in a rule for protocol %s", fields[i].key,
                                protocol_name(protocol));
    }
    if (map->n == 0 || (map->n == 1 && out->strict))
        return load_bad(load, map->mark, "an empty rule says nothing");
    if (protocol == PROTOCOL_WEBSOCKET && (out->method || out->path || out->query) &&
        (out->operation_type || out->operation_name || out->fields))
        return load_bad(load, map->mark,
                        "a websocket rule is about the upgrade or about GraphQL, not both");
    return check_fields(load, out, protocol);
}

/* What an allow rule must say: a field left out would otherwise read as "any". */
static int check_allow_complete(struct load *load, const struct json *map, const struct rule_in *in,
                                enum protocol protocol)
{
    bool graphql = in->operation_type || in->operation_name || in->fields;
    const char *missing = NULL;

    if (protocol == PROTOCOL_REST || (protocol == PROTOCOL_WEBSOCKET && !graphql))
        missing = !in->method ? "method" : !in->path ? "path" : NULL;
    else if (protocol == PROTOCOL_GRAPHQL || protocol == PROTOCOL_WEBSOCKET)
        missing = in->operation_type ? NULL : "operation_type";
    else if (protocol == PROTOCOL_MCP)
        missing = in->method || in->tool || in->params ? NULL : "method";
    else if (protocol == PROTOCOL_JSON_RPC)
        missing = in->method ? NULL : "method";
    else if (protocol == PROTOCOL_SQL)
        missing = in->command ? NULL : "command";
    if (missing)
        return load_bad(load, map->mark, "an allow rule for protocol %s needs \"%s\"",
                        protocol_name(protocol), missing);
    return 0;
}

static bool covers_tools_call(const struct rule_in *in)
{
    return !in->tool && !in->params && in->method &&
           (str_is(in->method->text, "tools/call") ||
            (str_starts(in->method->text, "tools/") && has_wildcard(in->method->text)));
}

int load_allow_rules(struct load *load, const struct json *list, enum protocol protocol)
{
    static const struct field fields[] = {
        {"allow", 0, TAKES_MAP, true},
    };
    const struct json *every_tool = NULL, *some_tool = NULL;

    if (list->n == 0)
        return load_bad(load, list->mark, "\"rules\" must not be empty; leave the key away");
    if (load_count(load, list, "\"rules\"") < 0)
        return -1;
    json_each(item, list)
    {
        const struct json *allow = NULL;
        struct rule_in in = {0};

        if (load_kind(load, item, TAKES_MAP, "a rule") < 0 ||
            load_map(load, item, fields, COUNT(fields), &allow) < 0 ||
            read_rule(load, allow, protocol, &in) < 0 ||
            check_allow_complete(load, allow, &in, protocol) < 0)
            return -1;
        if (covers_tools_call(&in))
            every_tool = allow;
        if (in.tool || in.params)
            some_tool = allow;
    }
    if (every_tool && some_tool)
        return load_bad(load, every_tool->mark,
                        "this rule allows every tool, so the rule for single tools in line %u "
                        "would restrict nothing; keep one of them",
                        some_tool->mark.line);
    return 0;
}

int load_deny_rules(struct load *load, const struct json *list, enum protocol protocol)
{
    if (list->n == 0)
        return load_bad(load, list->mark, "\"deny_rules\" must not be empty; leave the key away");
    if (load_count(load, list, "\"deny_rules\"") < 0)
        return -1;
    json_each(item, list)
    {
        struct rule_in in = {0};

        if (load_kind(load, item, TAKES_MAP, "a rule") < 0 ||
            read_rule(load, item, protocol, &in) < 0)
            return -1;
        if (in.strict)
            return load_bad(load, in.strict->key_mark, "\"strict\" is for allow rules");
    }
    return 0;
}
