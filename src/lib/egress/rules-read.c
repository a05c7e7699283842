/* SPDX-License-Identifier: Apache-2.0 */
/* Rules from the canonical JSON that flow/decide writes (policy_network_text):
 *
 *     {"network_policies": {KEY: {"name", "line", "binaries": [...], "endpoints": [...]}},
 *      "network_peers": {...},                                        (rules-peers.c)
 *      "secrets": [...]}                                              (rules-secrets.c)
 *
 * The keys are those of the policy reference, with "line" where something can decide. What people
 * get wrong has been told to them with line and column by flow/decide; here anything unknown or
 * out of bounds refuses the whole text, so that a reader and a writer of different versions never
 * agree by accident. */
#include "lib/egress/rules-private.h"

#include <stdio.h>
#include <string.h>

/* ---- members ---- */

int read_bad(struct reading *in, const struct json *at, const char *what)
{
    struct shown key;

    return err_set(in->err, ERR_INVALID, "network rules: \"%s\" %s", show(&key, at->key), what);
}

int read_known(struct reading *in, const struct json *map, const char *const *keys)
{
    json_each(member, map)
    {
        size_t i = 0;

        while (keys[i] && !str_is(member->key, keys[i]))
            i++;
        if (!keys[i])
            return read_bad(in, member, "is not known here");
    }
    return 0;
}

int read_member(struct reading *in, const struct json *map, const char *key, enum json_kind kind,
                const struct json **out)
{
    const struct json *value = json_get(map, key);

    *out = value && value->kind == JSON_NULL ? NULL : value;
    return !*out || value->kind == kind ? 0 : read_bad(in, value, "is of the wrong kind");
}

int read_text(struct reading *in, const struct json *map, const char *key, struct str *out)
{
    const struct json *value;

    if (read_member(in, map, key, JSON_STRING, &value) < 0)
        return -1;
    *out = value ? arena_str(in->mem, value->text) : (struct str){"", 0};
    return 0;
}

int read_bool(struct reading *in, const struct json *map, const char *key, bool *out)
{
    const struct json *value;

    if (read_member(in, map, key, JSON_BOOL, &value) < 0)
        return -1;
    *out = value && value->boolean;
    return 0;
}

/* 0 when absent. */
int read_count(struct reading *in, const struct json *map, const char *key, uint64_t low,
               uint64_t *out)
{
    const struct json *value;
    int64_t number = 0;

    if (read_member(in, map, key, JSON_NUMBER, &value) < 0)
        return -1;
    if (value && (!json_is_int(value, &number) || number < (int64_t)low))
        return read_bad(in, value, "is out of range");
    *out = (uint64_t)number;
    return 0;
}

int read_lines(struct reading *in, const struct json *map, unsigned *out)
{
    uint64_t line;

    if (read_count(in, map, "line", 0, &line) < 0)
        return -1;
    *out = line > UINT32_MAX ? 0 : (unsigned)line;
    return 0;
}

/* One of the words of a list that ends in NULL; absent is the first. */
static int read_word(struct reading *in, const struct json *map, const char *key,
                     const char *const *words, unsigned *out)
{
    const struct json *value;

    if (read_member(in, map, key, JSON_STRING, &value) < 0)
        return -1;
    for (*out = 0; value && words[*out]; (*out)++)
        if (str_is(value->text, words[*out]))
            return 0;
    return value ? read_bad(in, value, "is a word that is not known") : 0;
}

/* ---- where ---- */

static struct str lower(struct arena *mem, struct str s)
{
    char *copy = arena_text(mem, s);

    for (size_t i = 0; i < s.n; i++)
        if (copy[i] >= 'A' && copy[i] <= 'Z')
            copy[i] = (char)(copy[i] | 0x20);
    return (struct str){copy, s.n};
}

static int read_host(struct reading *in, const struct json *map, struct endpoint *out)
{
    const struct json *value, *sandbox;
    struct net_host host;
    struct str text;

    if (read_member(in, map, "host", JSON_STRING, &value) < 0 ||
        read_member(in, map, "sandbox", JSON_STRING, &sandbox) < 0)
        return -1;
    if (sandbox) {
        text = str_of(arena_printf(in->mem, STR_FMT SANDBOX_SUFFIX, STR_ARG(sandbox->text)));
        out->is_sandbox = true;
    } else if (!value || value->text.n == 0) {
        out->host = (struct str){"", 0};
        return 0;
    } else {
        text = value->text;
    }
    net_host_read(text, &host);
    if (host.kind == NET_HOST_ADDRESS) {
        out->host_kind = HOST_ADDRESS;
        out->addr = host.addr;
        out->host = arena_str(in->mem, (struct str){host.text, host.n});
        return net_range_is_never(net_range_of(&host.addr))
                   ? read_bad(in, value, "can never be allowed")
                   : 0;
    }
    out->host = lower(in->mem, text);
    out->host_kind = memchr(text.p, '*', text.n) ? HOST_PATTERN : HOST_NAME;
    if (net_pattern_fault(out->host))
        return read_bad(in, sandbox ? sandbox : value, net_pattern_fault(out->host));
    /* Names of sandboxes are not anybody's to resolve. */
    if (!sandbox && str_ends(out->host, SANDBOX_SUFFIX))
        return read_bad(in, value, "is a sandbox's name; write \"sandbox\"");
    return net_name_is_never(out->host) ? read_bad(in, value, "can never be allowed") : 0;
}

int read_ports(struct reading *in, const struct json *map, const uint16_t **out, size_t *n)
{
    const struct json *one, *list;
    uint16_t *ports;
    int64_t port;

    if (read_member(in, map, "port", JSON_NUMBER, &one) < 0 ||
        read_member(in, map, "ports", JSON_ARRAY, &list) < 0)
        return -1;
    if (!one == !list || (list && list->n == 0))
        return read_bad(in, map, "needs one of port and ports");
    *n = one ? 1 : list->n;
    ports = arena_array(in->mem, uint16_t, *n);
    *out = ports;
    for (const struct json *item = one ? one : list->first; item; item = one ? NULL : item->next) {
        if (!json_is_int(item, &port) || port < 1 || port > UINT16_MAX)
            return read_bad(in, map, "has a port out of range");
        *ports++ = (uint16_t)port;
    }
    return 0;
}

static int read_blocks(struct reading *in, const struct json *map, struct endpoint *out)
{
    const struct json *list;
    struct net_block *blocks;

    if (read_member(in, map, "allowed_ips", JSON_ARRAY, &list) < 0)
        return -1;
    if (!list)
        return 0;
    blocks = arena_array(in->mem, struct net_block, list->n);
    out->blocks = blocks;
    json_each(item, list)
    {
        struct str text;

        if (!json_is_text(item, &text) || !net_block_read(text, &blocks[out->block_n]) ||
            net_block_forbidden(&blocks[out->block_n]))
            return read_bad(in, list, "has a network that cannot be allowed");
        out->block_n++;
    }
    return 0;
}

/* ---- what ---- */

static int read_modes(struct reading *in, const struct json *map, struct endpoint *out)
{
    static const char *const protocols[] = {"",    "tcp",      "rest", "websocket", "graphql",
                                            "mcp", "json-rpc", "sql",  NULL};
    static const char *const accesses[] = {"", "read-only", "read-write", "full", NULL};
    static const char *const tls[] = {"", "skip", "auto", "terminate", "passthrough", NULL};
    static const char *const enforcements[] = {"enforce", "audit", NULL};
    static const char *const shapes[] = {"flag", "deny", "ignore", NULL};
    unsigned protocol, access, tls_word, enforcement, shape;

    if (read_word(in, map, "protocol", protocols, &protocol) < 0 ||
        read_word(in, map, "access", accesses, &access) < 0 ||
        read_word(in, map, "tls", tls, &tls_word) < 0 ||
        read_word(in, map, "enforcement", enforcements, &enforcement) < 0 ||
        read_word(in, map, "secret_shapes", shapes, &shape) < 0)
        return -1;
    out->protocol = (enum net_protocol)protocol;
    out->access = (enum access)access;
    out->tls_skip = tls_word == 1;
    out->audit = enforcement == 1;
    out->shapes = (enum secret_shapes)shape;
    /* Nobody here reads what databases say, so a rule about it would promise nothing. */
    if (out->protocol == NET_PROTOCOL_SQL)
        return read_bad(in, json_get(map, "protocol"), "is sql, which is not enforceable");
    return 0;
}

static int read_path(struct reading *in, const struct json *map, struct endpoint *out)
{
    if (read_text(in, map, "path", &out->path_text) < 0)
        return -1;
    if (out->path_text.n == 0 || str_is(out->path_text, "**"))
        return 0;
    for (size_t i = 0; i < out->path_text.n; i++)
        out->path_rank += out->path_text.p[i] != '*';
    return read_glob(in, out->path_text, GLOB_PATH, &out->path);
}

static int read_flags(struct reading *in, const struct json *map, struct endpoint *out)
{
    if (read_bool(in, map, "allow_encoded_slash", &out->encoded_slash) < 0 ||
        read_bool(in, map, "websocket_credential_rewrite", &out->ws_rewrite) < 0 ||
        read_bool(in, map, "request_body_credential_rewrite", &out->body_rewrite) < 0)
        return -1;
    return 0;
}

static int read_signing(struct reading *in, const struct json *map, struct endpoint *out)
{
    static const char *const words[] = {"", "sigv4", "sigv4:body", "sigv4:no_body", NULL};
    struct str service, region;
    unsigned at;

    if (read_word(in, map, "credential_signing", words, &at) < 0 ||
        read_text(in, map, "signing_service", &service) < 0 ||
        read_text(in, map, "signing_region", &region) < 0)
        return -1;
    out->signing = (enum net_signing)at;
    if (at && (service.n == 0 || service.n + region.n + 2 > sizeof out->signing_scope))
        return read_bad(in, json_get(map, "credential_signing"), "has no service of that length");
    (void)snprintf(out->signing_scope, sizeof out->signing_scope, STR_FMT "/" STR_FMT,
                   STR_ARG(service), STR_ARG(region));
    return 0;
}

static int read_allowance(struct reading *in, const struct json *map, struct endpoint *out)
{
    static const char *const budget_keys[] = {"requests", "bytes_out", "bytes_in", NULL};
    static const char *const rate_keys[] = {"requests", "per_ms", NULL};
    static const char *const response_keys[] = {"max_bytes", "types", NULL};
    const struct json *budget, *rate, *response, *types;
    struct allowance *to = &out->allowance;

    if (read_member(in, map, "budget", JSON_OBJECT, &budget) < 0 ||
        read_member(in, map, "rate", JSON_OBJECT, &rate) < 0 ||
        read_member(in, map, "response", JSON_OBJECT, &response) < 0)
        return -1;
    if (budget && (read_known(in, budget, budget_keys) < 0 ||
                   read_count(in, budget, "requests", 1, &to->requests) < 0 ||
                   read_count(in, budget, "bytes_out", 1, &to->bytes_out) < 0 ||
                   read_count(in, budget, "bytes_in", 1, &to->bytes_in) < 0))
        return -1;
    if (rate && (read_known(in, rate, rate_keys) < 0 ||
                 read_count(in, rate, "requests", 1, &to->rate_requests) < 0 ||
                 read_count(in, rate, "per_ms", 1, &to->rate_ms) < 0))
        return -1;
    if (!response)
        return 0;
    if (read_known(in, response, response_keys) < 0 ||
        read_count(in, response, "max_bytes", 1, &out->response_max) < 0 ||
        read_member(in, response, "types", JSON_ARRAY, &types) < 0)
        return -1;
    return types ? read_globs(in, types, &out->response_types) : 0;
}

static int read_endpoint(struct reading *in, const struct json *map, struct endpoint *out)
{
    static const char *const keys[] = {
        "line",
        "host",
        "sandbox",
        "port",
        "ports",
        "path",
        "protocol",
        "tls",
        "enforcement",
        "access",
        "rules",
        "deny_rules",
        "allowed_ips",
        "allow_encoded_slash",
        "websocket_credential_rewrite",
        "request_body_credential_rewrite",
        "allow_uninspected_credentials",
        "credential_signing",
        "signing_service",
        "signing_region",
        "credential_binding",
        "persisted_queries",
        "graphql_persisted_queries",
        "graphql_max_body_bytes",
        "json_rpc",
        "mcp",
        "max_body_bytes",
        "secret_shapes",
        "budget",
        "rate",
        "response",
        NULL,
    };

    if (map->kind != JSON_OBJECT)
        return read_bad(in, map, "is no endpoint");
    if (read_known(in, map, keys) < 0 || read_lines(in, map, &out->line) < 0 ||
        read_modes(in, map, out) < 0 || read_host(in, map, out) < 0 ||
        read_ports(in, map, &out->ports, &out->port_n) < 0 || read_blocks(in, map, out) < 0 ||
        read_path(in, map, out) < 0 || read_flags(in, map, out) < 0 ||
        read_signing(in, map, out) < 0 || read_allowance(in, map, out) < 0 ||
        read_rules(in, map, out) < 0)
        return -1;
    if (out->host_kind == HOST_ANY && out->block_n == 0)
        return read_bad(in, map, "has neither host nor allowed_ips");
    return 0;
}

/* ---- entries ---- */

static int read_binary(struct reading *in, const struct json *map, struct binary *out)
{
    static const char *const keys[] = {"path",     "harness", "children", "interpreter",
                                       "writable", "hash",    "script",   NULL};
    struct str hash, script;

    if (map->kind != JSON_OBJECT)
        return read_bad(in, map, "is no binary");
    if (read_known(in, map, keys) < 0 || read_text(in, map, "path", &out->text) < 0 ||
        read_bool(in, map, "children", &out->children) < 0 ||
        read_bool(in, map, "interpreter", &out->interpreter) < 0 ||
        read_bool(in, map, "writable", &out->writable) < 0 ||
        read_text(in, map, "hash", &hash) < 0 || read_text(in, map, "script", &script) < 0 ||
        read_glob(in, out->text, GLOB_PATH, &out->path) < 0)
        return -1;
    out->has_hash = hash.n > 0;
    if (out->text.n == 0 || (out->has_hash && !hash_from_text(hash, &out->hash)))
        return read_bad(in, map, "has a binary without a path, or with a malformed hash");
    return script.n ? read_glob(in, script, GLOB_PATH, &out->script) : 0;
}

static int read_entry(struct reading *in, const struct json *map, struct entry *out)
{
    static const char *const keys[] = {"name", "line", "binaries", "endpoints", NULL};
    const struct json *binaries, *endpoints;

    if (map->kind != JSON_OBJECT)
        return read_bad(in, map, "is no entry");
    out->key = arena_str(in->mem, map->key);
    out->name = arena_text(in->mem, map->key);
    if (read_known(in, map, keys) < 0 || read_lines(in, map, &out->line) < 0 ||
        read_member(in, map, "binaries", JSON_ARRAY, &binaries) < 0 ||
        read_member(in, map, "endpoints", JSON_ARRAY, &endpoints) < 0)
        return -1;
    if (binaries) {
        out->binaries = arena_array(in->mem, struct binary, binaries->n);
        json_each(item, binaries)
        {
            if (read_binary(in, item, &out->binaries[out->binary_n++]) < 0)
                return -1;
        }
    }
    if (!endpoints)
        return 0;
    out->endpoints = arena_array(in->mem, struct endpoint, endpoints->n);
    json_each(item, endpoints)
    {
        struct endpoint *endpoint = &out->endpoints[out->endpoint_n++];

        endpoint->entry = out;
        if (read_endpoint(in, item, endpoint) < 0)
            return err_in(in->err, "entry " STR_FMT ", line %u", STR_ARG(out->key), endpoint->line);
    }
    return 0;
}

static int read_entries(struct reading *in, const struct json *map)
{
    struct net_rules *rules = in->rules;
    size_t at = 0;

    rules->entries = arena_array(in->mem, struct entry, map->n);
    json_each(member, map)
    {
        if (read_entry(in, member, &rules->entries[rules->entry_n++]) < 0)
            return -1;
    }
    for (size_t i = 0; i < rules->entry_n; i++)
        rules->endpoint_n += rules->entries[i].endpoint_n;
    if (rules->endpoint_n > NET_RULES_ENDPOINTS_MAX)
        return err_set(in->err, ERR_LIMIT, "more than %d endpoints", NET_RULES_ENDPOINTS_MAX);
    rules->endpoints = arena_array(in->mem, struct endpoint *, rules->endpoint_n);
    for (size_t i = 0; i < rules->entry_n; i++)
        for (size_t k = 0; k < rules->entries[i].endpoint_n; k++) {
            rules->endpoints[at] = &rules->entries[i].endpoints[k];
            rules->endpoints[at]->number = (unsigned)at;
            at++;
        }
    return 0;
}

static void collect_ports(struct net_rules *rules)
{
    uint64_t seen[(UINT16_MAX + 1) / 64] = {0};
    size_t n = rules->takes_proposals;

    if (rules->takes_proposals)
        seen[NET_LOCAL_PORT / 64] |= 1ULL << (NET_LOCAL_PORT % 64);
    for (size_t i = 0; i < rules->endpoint_n; i++)
        for (size_t k = 0; k < rules->endpoints[i]->port_n; k++) {
            uint16_t port = rules->endpoints[i]->ports[k];

            n += !(seen[port / 64] >> (port % 64) & 1);
            seen[port / 64] |= 1ULL << (port % 64);
        }
    rules->ports = arena_array(&rules->mem, uint16_t, n);
    for (unsigned port = 1; port <= UINT16_MAX; port++)
        if (seen[port / 64] >> (port % 64) & 1)
            rules->ports[rules->port_n++] = (uint16_t)port;
}

int net_rules_read(struct str canonical_json, struct net_rules **out, struct err *err)
{
    static const char *const keys[] = {"agent_proposals", "network_policies", "network_peers",
                                       "secrets", NULL};
    AUTO_ARENA struct arena scratch = ARENA(NET_RULES_MEMORY_MAX);
    AUTO(net_rules) struct net_rules *rules = xcalloc(1, sizeof *rules);
    struct reading in = {rules, &rules->mem, err};
    const struct json *root, *entries, *peers, *secrets;
    struct mark where;

    rules->mem = ARENA(NET_RULES_MEMORY_MAX);
    if (canonical_json.n > NET_RULES_TEXT_MAX)
        return err_set(err, ERR_LIMIT, "network rules of more than %lu bytes", NET_RULES_TEXT_MAX);
    if (json_parse(&scratch, canonical_json, &root, &where, err) < 0)
        return err_in(err, "network rules");
    if (root->kind != JSON_OBJECT)
        return err_set(err, ERR_INVALID, "network rules: no object");
    if (read_known(&in, root, keys) < 0 ||
        read_bool(&in, root, "agent_proposals", &rules->takes_proposals) < 0 ||
        read_member(&in, root, "network_policies", JSON_OBJECT, &entries) < 0 ||
        read_member(&in, root, "network_peers", JSON_OBJECT, &peers) < 0 ||
        read_member(&in, root, "secrets", JSON_ARRAY, &secrets) < 0 ||
        (entries && read_entries(&in, entries) < 0) || (peers && read_peers(&in, peers) < 0) ||
        (secrets && read_secrets(&in, secrets) < 0))
        return -1;
    hash_text_of(canonical_json, rules->hash);
    if (rules->takes_proposals)
        rules->text = arena_str(&rules->mem, canonical_json);
    collect_ports(rules);
    index_build(rules);
    *out = TAKE(rules);
    return 0;
}
