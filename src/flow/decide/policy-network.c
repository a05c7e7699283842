/* SPDX-License-Identifier: Apache-2.0 */
/* The section network_policies, as OpenShell's version 1 has it: read completely, checked
 * completely, and kept as the text that egress compiles. */
#include "flow/decide/load.h"

#include <string.h>

#define SIGNING_WORD_MAX 63

struct endpoint {
    const struct json *host;
    const struct json *port;
    const struct json *ports;
    const struct json *path;
    const struct json *protocol;
    const struct json *tls;
    const struct json *enforcement;
    const struct json *access;
    const struct json *rules;
    const struct json *deny_rules;
    const struct json *allowed_ips;
    const struct json *allow_encoded_slash;
    const struct json *websocket_credential_rewrite;
    const struct json *request_body_credential_rewrite;
    const struct json *allow_uninspected_credentials;
    const struct json *credential_signing;
    const struct json *signing_service;
    const struct json *signing_region;
    const struct json *credential_binding;
    const struct json *persisted_queries;
    const struct json *graphql_persisted_queries;
    const struct json *graphql_max_body_bytes;
    const struct json *json_rpc;
    const struct json *mcp;
    const struct json *advisor_proposed;
    const struct json *provider_credentialed;
    const struct json *sandbox;
    const struct json *max_body_bytes;
    const struct json *secret_shapes;
    const struct json *budget;
    const struct json *rate;
    const struct json *response;
};

#define P(name) (1U << PROTOCOL_##name)
#define NOT_TCP (P(NONE) | P(REST) | P(WEBSOCKET) | P(GRAPHQL) | P(MCP) | P(JSON_RPC) | P(SQL))
#define INSPECTED (NOT_TCP & ~P(NONE))
#define EVERY (NOT_TCP | P(TCP))

/* The keys of an endpoint and the protocols they can stand with. */
static const struct {
    struct field field;
    unsigned protocols;
} endpoint_keys[] = {
#define KEY(key, takes)                                                                            \
    {                                                                                              \
#key, offsetof(struct endpoint, key), takes, false                                         \
    }
    {KEY(host,                            TAKES_TEXT),   EVERY                    },
    {KEY(port,                            TAKES_NUMBER), EVERY                    },
    {KEY(ports,                           TAKES_LIST),   EVERY                    },
    {KEY(path,                            TAKES_TEXT),   NOT_TCP                  },
    {KEY(protocol,                        TAKES_TEXT),   EVERY                    },
    {KEY(tls,                             TAKES_TEXT),   EVERY                    },
    {KEY(enforcement,                     TAKES_TEXT),   NOT_TCP                  },
    {KEY(access,                          TAKES_TEXT),   NOT_TCP                  },
    {KEY(rules,                           TAKES_LIST),   INSPECTED                },
    {KEY(deny_rules,                      TAKES_LIST),   INSPECTED                },
    {KEY(allowed_ips,                     TAKES_LIST),   EVERY                    },
    {KEY(allow_encoded_slash,             TAKES_BOOL),   NOT_TCP                  },
    {KEY(websocket_credential_rewrite,    TAKES_BOOL),   P(REST) | P(WEBSOCKET)   },
    {KEY(request_body_credential_rewrite, TAKES_BOOL),   P(REST)                  },
    {KEY(allow_uninspected_credentials,   TAKES_BOOL),   EVERY                    },
    {KEY(credential_signing,              TAKES_TEXT),   NOT_TCP                  },
    {KEY(signing_service,                 TAKES_TEXT),   NOT_TCP                  },
    {KEY(signing_region,                  TAKES_TEXT),   NOT_TCP                  },
    {KEY(credential_binding,              TAKES_MAP),    EVERY                    },
    {KEY(persisted_queries,               TAKES_TEXT),   P(GRAPHQL) | P(WEBSOCKET)},
    {KEY(graphql_persisted_queries,       TAKES_MAP),    P(GRAPHQL) | P(WEBSOCKET)},
    {KEY(graphql_max_body_bytes,          TAKES_NUMBER), P(GRAPHQL) | P(WEBSOCKET)},
    {KEY(json_rpc,                        TAKES_MAP),    P(JSON_RPC)              },
    {KEY(mcp,                             TAKES_MAP),    P(MCP)                   },
    {KEY(advisor_proposed,                TAKES_BOOL),   0                        },
    {KEY(provider_credentialed,           TAKES_BOOL),   0                        },
    {KEY(sandbox,                         TAKES_TEXT),   EVERY                    },
    {KEY(max_body_bytes,                  TAKES_SIZE),   P(REST)                  },
    {KEY(secret_shapes,                   TAKES_TEXT),   INSPECTED                },
    {KEY(budget,                          TAKES_MAP),    EVERY                    },
    {KEY(rate,                            TAKES_MAP),    EVERY                    },
    {KEY(response,                        TAKES_MAP),    INSPECTED                },
#undef KEY
};

static const char *const protocol_words[] = {
    [PROTOCOL_NONE] = "",
    [PROTOCOL_TCP] = "tcp",
    [PROTOCOL_REST] = "rest",
    [PROTOCOL_WEBSOCKET] = "websocket",
    [PROTOCOL_GRAPHQL] = "graphql",
    [PROTOCOL_MCP] = "mcp",
    [PROTOCOL_JSON_RPC] = "json-rpc",
    [PROTOCOL_SQL] = "sql",
    NULL,
};

static bool is_set(const struct json *flag)
{
    return flag && flag->boolean;
}

static bool says(const struct json *value, const char *word)
{
    return value && str_is(value->text, word);
}

/* ---- where it goes: host, ports, addresses ---- */

static int check_ports(struct load *load, const struct json *map, const struct endpoint *in)
{
    int64_t port;

    if (in->port && in->ports)
        return load_bad(load, in->ports->key_mark, "\"port\" and \"ports\" exclude each other");
    if (in->port)
        return load_int(load, in->port, 1, 65535, "\"port\"", &port);
    if (!in->ports || in->ports->n == 0)
        return load_bad(load, in->ports ? in->ports->mark : map->mark,
                        "an endpoint needs \"port\" or \"ports\"");
    if (load_count(load, in->ports, "\"ports\"") < 0)
        return -1;
    json_each(item, in->ports)
    {
        if (load_int(load, item, 1, 65535, "a port", &port) < 0)
            return -1;
    }
    return 0;
}

static int check_destination(struct load *load, const struct json *map, const struct endpoint *in,
                             enum protocol protocol)
{
    bool has_host = in->host && in->host->text.n;
    bool has_ips = in->allowed_ips && in->allowed_ips->n;
    bool is_address = false;

    if (in->sandbox && (has_host || in->allowed_ips))
        return load_bad(load, in->sandbox->key_mark,
                        "\"sandbox\" stands in place of \"host\" and \"allowed_ips\"");
    if (in->sandbox)
        return load_sandbox_name(load, in->sandbox) < 0 ? -1 : check_ports(load, map, in);
    if (!has_host && (!has_ips || protocol == PROTOCOL_TCP))
        return load_bad(load, in->host ? in->host->mark : map->mark, "an endpoint needs \"host\"%s",
                        protocol == PROTOCOL_TCP ? "" : " (or, without one, \"allowed_ips\")");
    if (has_host && load_host(load, in->host, &is_address) < 0)
        return -1;
    if (is_address && protocol == PROTOCOL_TCP)
        return load_bad(load, in->host->mark,
                        "host \"%s\": protocol tcp needs a name, not an address",
                        shown(load, in->host->text));
    if (has_ips && load_count(load, in->allowed_ips, "\"allowed_ips\"") < 0)
        return -1;
    if (has_ips)
        json_each(item, in->allowed_ips)
        {
            if (load_allowed_ip(load, item) < 0)
                return -1;
        }
    return check_ports(load, map, in);
}

/* ---- what may be said there ---- */

/* How much is allowed is said exactly once, and by something the protocol can express. */
static int check_base(struct load *load, const struct json *map, const struct endpoint *in,
                      enum protocol protocol, bool mcp_profile)
{
    static const char *const access_words[] = {"read-only", "read-write", "full", NULL};
    size_t access = 0;

    if (in->access && load_choice(load, in->access, access_words, "\"access\"", &access) < 0)
        return -1;
    if (in->access && in->rules)
        return load_bad(load, in->access->key_mark, "\"access\" and \"rules\" exclude each other");
    if (in->access && (protocol == PROTOCOL_MCP || protocol == PROTOCOL_JSON_RPC))
        return load_bad(load, in->access->key_mark,
                        "\"access\" has no meaning for protocol %s; write \"rules\"",
                        protocol_name(protocol));
    /* Without a protocol nobody looks inside, so anything less than everything is a wish. */
    if (in->access && protocol == PROTOCOL_NONE && access != 2)
        return load_bad(load, in->access->key_mark,
                        "access \"%s\" needs a \"protocol\": without one nothing is inspected",
                        access_words[access]);
    if (protocol == PROTOCOL_NONE || protocol == PROTOCOL_TCP || in->access || in->rules ||
        mcp_profile)
        return 0;
    return load_bad(load, map->mark, "protocol %s needs %s", protocol_name(protocol),
                    protocol == PROTOCOL_MCP
                        ? "\"rules\", or \"mcp: {allow_all_known_mcp_methods: true}\""
                    : protocol == PROTOCOL_JSON_RPC ? "\"rules\""
                                                    : "\"access\" or \"rules\"");
}

static int check_modes(struct load *load, const struct endpoint *in, enum protocol protocol)
{
    static const char *const tls_words[] = {"", "auto", "skip", "terminate", "passthrough", NULL};
    static const char *const enforcement_words[] = {"enforce", "audit", NULL};
    size_t at;

    if ((in->tls && load_choice(load, in->tls, tls_words, "\"tls\"", &at) < 0) ||
        (in->enforcement &&
         load_choice(load, in->enforcement, enforcement_words, "\"enforcement\"", &at) < 0))
        return -1;
    if (protocol == PROTOCOL_SQL && says(in->enforcement, "enforce"))
        return load_bad(load, in->enforcement->mark,
                        "protocol sql cannot be enforced; only \"audit\" is possible");
    if (says(in->tls, "skip") &&
        (in->rules || in->deny_rules || (in->access && !says(in->access, "full"))))
        return load_bad(load, in->tls->mark,
                        "with tls \"skip\" nothing is inspected, so rules cannot hold");
    if (in->path && in->path->text.n) {
        if (load_glob(load, in->path, GLOB_PATH, "\"path\"") < 0)
            return -1;
        if (in->path->text.p[0] != '/' && !str_is(in->path->text, "**"))
            return load_bad(load, in->path->mark, "path \"%s\" must begin with \"/\" or be \"**\"",
                            shown(load, in->path->text));
    }
    return 0;
}

/* ---- credentials ---- */

static int check_credentials(struct load *load, const struct endpoint *in)
{
    static const char *const signing_words[] = {"sigv4", "sigv4:body", "sigv4:no_body", NULL};
    static const struct field binding_fields[] = {
        {"provider", 0, TAKES_TEXT, true},
    };
    const struct json *provider = NULL;
    size_t at;

    if (in->credential_signing &&
        load_choice(load, in->credential_signing, signing_words, "\"credential_signing\"", &at) < 0)
        return -1;
    if (in->credential_signing && is_set(in->request_body_credential_rewrite))
        return load_bad(load, in->credential_signing->key_mark,
                        "\"credential_signing\" and \"request_body_credential_rewrite\" exclude "
                        "each other");
    if (in->credential_signing && !in->signing_service)
        return load_bad(load, in->credential_signing->key_mark,
                        "\"credential_signing\" needs \"signing_service\"");
    if (!in->credential_signing && (in->signing_service || in->signing_region))
        return load_bad(load,
                        in->signing_service ? in->signing_service->key_mark
                                            : in->signing_region->key_mark,
                        "a signing service or region needs \"credential_signing\"");
    if ((in->signing_service &&
         load_text(load, in->signing_service, SIGNING_WORD_MAX, "\"signing_service\"") < 0) ||
        (in->signing_region &&
         load_text(load, in->signing_region, SIGNING_WORD_MAX, "\"signing_region\"") < 0))
        return -1;
    if (!in->credential_binding)
        return 0;
    if (load_map(load, in->credential_binding, binding_fields, COUNT(binding_fields), &provider) <
        0)
        return -1;
    return load_text(load, provider, NETWORK_KEY_BYTES_MAX, "\"provider\"");
}

/* ---- options of single protocols ---- */

static int check_body_bytes(struct load *load, const struct json *value, const char *what)
{
    int64_t bytes;

    return value ? load_int(load, value, 1, UINT32_MAX, what, &bytes) : 0;
}

static int check_json_rpc(struct load *load, const struct json *map)
{
    static const struct field fields[] = {
        {"max_body_bytes", 0, TAKES_NUMBER, false},
    };
    const struct json *max_body_bytes = NULL;

    if (!map)
        return 0;
    if (load_map(load, map, fields, COUNT(fields), &max_body_bytes) < 0)
        return -1;
    return check_body_bytes(load, max_body_bytes, "\"max_body_bytes\"");
}

static int check_mcp(struct load *load, const struct json *map, bool *profile)
{
    struct mcp {
        const struct json *max_body_bytes;
        const struct json *strict_tool_names;
        const struct json *allow_all_known_mcp_methods;
    } in = {0};
    static const struct field fields[] = {
        {"max_body_bytes",              offsetof(struct mcp, max_body_bytes),              TAKES_NUMBER, false},
        {"strict_tool_names",           offsetof(struct mcp, strict_tool_names),           TAKES_BOOL,   false},
        {"allow_all_known_mcp_methods", offsetof(struct mcp, allow_all_known_mcp_methods),
         TAKES_BOOL,                                                                                     false},
    };

    *profile = false;
    if (!map)
        return 0;
    if (load_map(load, map, fields, COUNT(fields), &in) < 0)
        return -1;
    *profile = is_set(in.allow_all_known_mcp_methods);
    return check_body_bytes(load, in.max_body_bytes, "\"max_body_bytes\"");
}

static int check_registered_query(struct load *load, const struct json *map)
{
    static const char *const types[] = {"query", "mutation", "subscription", NULL};
    struct query {
        const struct json *operation_type;
        const struct json *operation_name;
        const struct json *fields;
    } in = {0};
    static const struct field fields[] = {
        {"operation_type", offsetof(struct query, operation_type), TAKES_TEXT, true },
        {"operation_name", offsetof(struct query, operation_name), TAKES_TEXT, false},
        {"fields",         offsetof(struct query, fields),         TAKES_LIST, false},
    };
    size_t at;

    if (load_kind(load, map, TAKES_MAP, "a registered query") < 0 ||
        load_map(load, map, fields, COUNT(fields), &in) < 0 ||
        load_choice(load, in.operation_type, types, "\"operation_type\"", &at) < 0 ||
        (in.operation_name &&
         load_text(load, in.operation_name, NETWORK_KEY_BYTES_MAX, "\"operation_name\"") < 0))
        return -1;
    if (in.fields)
        json_each(item, in.fields)
        {
            if (load_text(load, item, NETWORK_KEY_BYTES_MAX, "a field") < 0)
                return -1;
        }
    return 0;
}

static int check_graphql(struct load *load, const struct endpoint *in)
{
    static const char *const words[] = {"deny", "allow_registered", NULL};
    size_t at;

    if (in->persisted_queries &&
        load_choice(load, in->persisted_queries, words, "\"persisted_queries\"", &at) < 0)
        return -1;
    if (in->graphql_persisted_queries)
        json_each(item, in->graphql_persisted_queries)
        {
            if (check_registered_query(load, item) < 0)
                return -1;
        }
    return check_body_bytes(load, in->graphql_max_body_bytes, "\"graphql_max_body_bytes\"");
}

/* ---- endpoints ---- */

static int check_protocol_keys(struct load *load, const struct json *map, enum protocol protocol)
{
    json_each(member, map)
    {
        for (size_t i = 0; i < COUNT(endpoint_keys); i++) {
            if (!str_is(member->key, endpoint_keys[i].field.key) ||
                endpoint_keys[i].protocols & 1U << protocol)
                continue;
            if (endpoint_keys[i].protocols == 0)
                return load_bad(load, member->key_mark, "\"%s\" cannot be written in a policy",
                                endpoint_keys[i].field.key);
            if (protocol == PROTOCOL_NONE)
                return load_bad(load, member->key_mark, "\"%s\" needs a \"protocol\"",
                                endpoint_keys[i].field.key);
            return load_bad(load, member->key_mark, "\"%s\" does not go with protocol %s",
                            endpoint_keys[i].field.key, protocol_name(protocol));
        }
    }
    return 0;
}

static int read_endpoint(struct load *load, const struct json *map, struct endpoint *in,
                         enum protocol *protocol)
{
    struct field fields[COUNT(endpoint_keys)];
    size_t at = 0;

    for (size_t i = 0; i < COUNT(endpoint_keys); i++)
        fields[i] = endpoint_keys[i].field;
    if (load_kind(load, map, TAKES_MAP, "an endpoint") < 0 ||
        load_map(load, map, fields, COUNT(fields), in) < 0 ||
        (in->protocol && load_choice(load, in->protocol, protocol_words, "\"protocol\"", &at) < 0))
        return -1;
    *protocol = (enum protocol)at;
    return check_protocol_keys(load, map, *protocol);
}

static int check_rules(struct load *load, const struct endpoint *in, enum protocol protocol)
{
    if (in->rules && load_allow_rules(load, in->rules, protocol) < 0)
        return -1;
    return in->deny_rules ? load_deny_rules(load, in->deny_rules, protocol) : 0;
}

/* Understood, and nobody holds them yet: a run that relies on one is refused by its name. */
static void note_later_keys(struct load *load, const struct endpoint *in, enum protocol protocol)
{
    if (protocol == PROTOCOL_SQL)
        load_not_enforceable(load, in->protocol->key_mark, "protocol sql");
    if (in->credential_binding)
        load_not_enforceable(load, in->credential_binding->key_mark, "credential_binding");
}

static int load_endpoint(struct load *load, const struct json *map)
{
    struct endpoint in = {0};
    enum protocol protocol;
    bool mcp_profile;

    if (read_endpoint(load, map, &in, &protocol) < 0 ||
        check_destination(load, map, &in, protocol) < 0 || check_modes(load, &in, protocol) < 0 ||
        check_mcp(load, in.mcp, &mcp_profile) < 0 || check_json_rpc(load, in.json_rpc) < 0 ||
        check_graphql(load, &in) < 0 || check_rules(load, &in, protocol) < 0 ||
        load_bounds(load, in.max_body_bytes, in.secret_shapes, in.budget, in.rate, in.response) <
            0 ||
        check_base(load, map, &in, protocol, mcp_profile) < 0 || check_credentials(load, &in) < 0)
        return -1;
    note_later_keys(load, &in, protocol);
    return 0;
}

/* ---- entries ---- */

static int load_binary(struct load *load, const struct json *map)
{
    struct binary {
        const struct json *path;
        const struct json *harness;
        const struct json *children;
        const struct json *interpreter;
        const struct json *writable;
        const struct json *hash;
        const struct json *script;
    } in = {0};
    static const struct field fields[] = {
        {"path",        offsetof(struct binary, path),        TAKES_TEXT,                           true },
        {"harness",     offsetof(struct binary, harness),     TAKES_BOOL | TAKES_TEXT | TAKES_NULL, false},
        {"children",    offsetof(struct binary, children),    TAKES_BOOL,                           false},
        {"interpreter", offsetof(struct binary, interpreter), TAKES_BOOL,                           false},
        {"writable",    offsetof(struct binary, writable),    TAKES_BOOL,                           false},
        {"hash",        offsetof(struct binary, hash),        TAKES_TEXT,                           false},
        {"script",      offsetof(struct binary, script),      TAKES_TEXT,                           false},
    };
    struct hash hash;

    if (load_kind(load, map, TAKES_MAP, "a binary") < 0 ||
        load_map(load, map, fields, COUNT(fields), &in) < 0 ||
        load_glob(load, in.path, GLOB_PATH, "\"path\"") < 0)
        return -1;
    if (in.path->text.p[0] != '/' && !str_is(in.path->text, "**"))
        return load_bad(load, in.path->mark, "binary \"%s\" must be an absolute path",
                        shown(load, in.path->text));
    if (memmem(in.path->text.p, in.path->text.n, "/../", 4) || str_ends(in.path->text, "/.."))
        return load_bad(load, in.path->mark, "binary \"%s\" must not contain \"..\"",
                        shown(load, in.path->text));
    if (in.hash && !hash_from_text(in.hash->text, &hash))
        return load_bad(load, in.hash->mark,
                        "\"hash\" is \"sha256:\" and 64 hex digits, as \"sha256sum\" prints them");
    if (in.script && !is_set(in.interpreter))
        return load_bad(load, in.script->key_mark, "\"script\" needs \"interpreter: true\"");
    return in.script ? load_glob(load, in.script, GLOB_PATH, "\"script\"") : 0;
}

static int load_list(struct load *load, const struct json *list, const char *what,
                     int (*load_item)(struct load *, const struct json *))
{
    if (!list)
        return 0;
    if (load_count(load, list, what) < 0)
        return -1;
    json_each(item, list)
    {
        if (load_item(load, item) < 0)
            return -1;
    }
    return 0;
}

static int load_entry(struct load *load, const struct json *map)
{
    struct entry {
        const struct json *name;
        const struct json *endpoints;
        const struct json *binaries;
    } in = {0};
    static const struct field fields[] = {
        {"name",      offsetof(struct entry, name),      TAKES_TEXT,              false},
        {"endpoints", offsetof(struct entry, endpoints), TAKES_LIST | TAKES_NULL, false},
        {"binaries",  offsetof(struct entry, binaries),  TAKES_LIST | TAKES_NULL, false},
    };
    const char *key = shown(load, map->key);

    if (map->key.n == 0 || map->key.n > NETWORK_KEY_BYTES_MAX)
        return load_bad(load, map->key_mark, "the name of a network policy has 1 to %d bytes",
                        NETWORK_KEY_BYTES_MAX);
    if (str_starts(map->key, "_provider_"))
        return load_bad(load, map->key_mark, "names that begin with \"_provider_\" are reserved");
    if (load_kind(load, map, TAKES_MAP, arena_printf(load->mem, "network policy \"%s\"", key)) <
            0 ||
        load_map(load, map, fields, COUNT(fields), &in) < 0 ||
        (in.name && load_text(load, in.name, NETWORK_KEY_BYTES_MAX, "\"name\"") < 0) ||
        load_list(load, in.endpoints, "\"endpoints\"", load_endpoint) < 0)
        return -1;
    return load_list(load, in.binaries, "\"binaries\"", load_binary);
}

/* An empty section is none. */
static const struct json *filled(const struct json *section)
{
    return section && section->n ? section : NULL;
}

int load_network(struct load *load, const struct json *section, const struct json *peers,
                 const struct json *proposals, const struct json *secrets)
{
    const struct json *entries = filled(section);

    if (entries && (load_list(load, entries, "network_policies", load_entry) < 0 ||
                    load_overlaps(load, entries) < 0))
        return -1;
    if (filled(peers) && load_peers(load, peers) < 0)
        return -1;
    if (secrets && load_secrets(load, secrets) < 0)
        return -1;
    if (!entries && !filled(peers) && !is_set(proposals))
        return 0;
    return load_network_text(load, entries, filled(peers), secrets, is_set(proposals));
}
