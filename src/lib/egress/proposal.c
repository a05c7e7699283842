/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/egress/proposal.h"

#include <string.h>

#include "lib/base/text.h"
#include "lib/egress/rules-private.h"
#include "lib/egress/suggest.h"

/* ---- reading ---- */

struct take {
    struct arena *mem;
    struct err *err;
};

static const char *escaped(struct take *take, struct str text)
{
    struct shown room;

    return arena_text(take->mem, str_of(show(&room, text)));
}

/* Every key of the map is one of these. */
static int know_keys(struct take *take, const struct json *map, const char *what,
                     const char *const *keys)
{
    if (!map || map->kind != JSON_OBJECT)
        return err_set(take->err, ERR_INVALID, "%s must be an object", what);
    json_each(member, map)
    {
        size_t i = 0;

        while (keys[i] && !str_is(member->key, keys[i]))
            i++;
        if (!keys[i])
            return err_set(take->err, ERR_INVALID,
                           "\"%s\" of %s cannot be proposed; a person can write it into the policy",
                           escaped(take, member->key), what);
    }
    return 0;
}

static int know_list(struct take *take, const struct json *list, const char *what, size_t most)
{
    if (!list || list->kind != JSON_ARRAY || list->n == 0 || list->n > most)
        return err_set(take->err, ERR_INVALID, "\"%s\" must be a list of 1 to %zu", what, most);
    return 0;
}

static bool is_visible(struct str text)
{
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] <= ' ' || text.p[i] >= 0x7f)
            return false;
    return text.n > 0;
}

static int take_text(struct take *take, const struct json *map, const char *key, size_t most,
                     struct str *out)
{
    struct str text;

    if (!json_is_text(json_get(map, key), &text) || !is_visible(text) || text.n > most)
        return err_set(take->err, ERR_INVALID,
                       "\"%s\" must be a text of 1 to %zu visible ASCII characters", key, most);
    *out = arena_str(take->mem, text);
    return 0;
}

/* ---- programs ---- */

static int take_binary(struct take *take, const struct json *map, struct proposal_binary *out)
{
    static const char *const keys[] = {"path", "interpreter", NULL};
    const struct json *interpreter = json_get(map, "interpreter");

    if (know_keys(take, map, "a binary", keys) < 0 ||
        take_text(take, map, "path", PROPOSAL_BINARY_MAX, &out->path) < 0)
        return -1;
    if (out->path.p[0] != '/' || memmem(out->path.p, out->path.n, "/../", 4) ||
        memmem(out->path.p, out->path.n, "//", 2) || str_ends(out->path, "/.."))
        return err_set(take->err, ERR_INVALID, "binary %s is no absolute path",
                       escaped(take, out->path));
    for (size_t i = 0; i < out->path.n; i++)
        if (strchr("*?[]{}\\", out->path.p[i]))
            return err_set(take->err, ERR_INVALID,
                           "binary %s is a pattern; name each program by its path",
                           escaped(take, out->path));
    if (interpreter && !json_is_bool(interpreter, &out->interpreter))
        return err_set(take->err, ERR_INVALID, "\"interpreter\" must be true or false");
    if (is_interpreter(out->path) && !out->interpreter)
        return err_set(take->err, ERR_INVALID,
                       "binary %s runs what it is told, and needs \"interpreter\": true",
                       escaped(take, out->path));
    return 0;
}

static int take_binaries(struct take *take, const struct json *list, struct proposal *out)
{
    if (know_list(take, list, "binaries", PROPOSAL_BINARIES_MAX) < 0)
        return -1;
    json_each(item, list)
    {
        if (take_binary(take, item, &out->binaries[out->binary_n++]) < 0)
            return -1;
    }
    return 0;
}

/* ---- places ---- */

static int take_host(struct take *take, const struct json *map, struct proposal_endpoint *out)
{
    struct net_host host;
    const char *fault;

    if (take_text(take, map, "host", NET_NAME_BYTES_MAX, &out->host) < 0)
        return -1;
    if (memchr(out->host.p, '*', out->host.n) || memchr(out->host.p, '?', out->host.n))
        return err_set(take->err, ERR_INVALID, "host %s is a pattern; name each host",
                       escaped(take, out->host));
    fault = suggest_host_fault(out->host);
    if (fault)
        return err_set(take->err, ERR_INVALID, "host %s: %s", escaped(take, out->host), fault);
    net_host_read(out->host, &host);
    out->host = arena_str(take->mem, (struct str){host.text, host.n});
    return 0;
}

static int take_port(struct take *take, const struct json *value, struct proposal_endpoint *out)
{
    int64_t port;

    if (!json_is_int(value, &port) || port < 1 || port > UINT16_MAX)
        return err_set(take->err, ERR_INVALID, "a port is a number from 1 to 65535");
    if (net_port_is_never((uint16_t)port))
        return err_set(take->err, ERR_INVALID,
                       "port %u is one of cluster control planes, and can never be allowed",
                       (unsigned)port);
    out->ports[out->port_n++] = (uint16_t)port;
    return 0;
}

static int take_ports(struct take *take, const struct json *map, struct proposal_endpoint *out)
{
    const struct json *port = json_get(map, "port"), *ports = json_get(map, "ports");

    if (!port == !ports)
        return err_set(take->err, ERR_INVALID, "an endpoint needs \"port\" or \"ports\"");
    if (port)
        return take_port(take, port, out);
    if (know_list(take, ports, "ports", PROPOSAL_PORTS_MAX) < 0)
        return -1;
    json_each(item, ports)
    {
        if (take_port(take, item, out) < 0)
            return -1;
    }
    return 0;
}

static bool is_method(struct str method)
{
    if (str_is(method, "*"))
        return true;
    for (size_t i = 0; i < method.n; i++)
        if ((method.p[i] < 'A' || method.p[i] > 'Z') && method.p[i] != '-')
            return false;
    return method.n > 0;
}

static int take_rule(struct take *take, const struct json *map, struct proposal_rule *out)
{
    static const char *const outer[] = {"allow", NULL}, *const inner[] = {"method", "path", NULL};
    const struct json *allow;

    if (know_keys(take, map, "a rule", outer) < 0)
        return -1;
    allow = json_get(map, "allow");
    if (know_keys(take, allow, "\"allow\"", inner) < 0 ||
        take_text(take, allow, "method", 32, &out->method) < 0 ||
        take_text(take, allow, "path", PROPOSAL_PATH_MAX, &out->path) < 0)
        return -1;
    if (!is_method(out->method))
        return err_set(take->err, ERR_INVALID, "method %s is no word of HTTP in capitals",
                       escaped(take, out->method));
    if (out->path.p[0] != '/' && !str_is(out->path, "**"))
        return err_set(take->err, ERR_INVALID, "path %s must begin with \"/\" or be \"**\"",
                       escaped(take, out->path));
    return 0;
}

static int take_requests(struct take *take, const struct json *map, struct proposal_endpoint *out)
{
    static const char *const words[] = {"read-only", "read-write", "full"};
    const struct json *rules = json_get(map, "rules"), *access = json_get(map, "access");

    if (!rules == !access)
        return err_set(take->err, ERR_INVALID, "protocol rest needs \"rules\" or \"access\"");
    if (access) {
        if (take_text(take, map, "access", 16, &out->access) < 0)
            return -1;
        for (size_t i = 0; i < COUNT(words); i++)
            if (str_is(out->access, words[i]))
                return 0;
        return err_set(take->err, ERR_INVALID, "\"access\" is read-only, read-write or full");
    }
    if (know_list(take, rules, "rules", PROPOSAL_RULES_MAX) < 0)
        return -1;
    json_each(item, rules)
    {
        if (take_rule(take, item, &out->rules[out->rule_n++]) < 0)
            return -1;
    }
    return 0;
}

static int take_endpoint(struct take *take, const struct json *map, struct proposal_endpoint *out)
{
    static const char *const keys[] = {"host",        "port",   "ports", "protocol",
                                       "enforcement", "access", "rules", NULL};
    const struct json *protocol = json_get(map, "protocol");
    const struct json *enforcement = json_get(map, "enforcement");

    if (know_keys(take, map, "an endpoint", keys) < 0 || take_host(take, map, out) < 0 ||
        take_ports(take, map, out) < 0)
        return -1;
    if (enforcement && !str_is(enforcement->text, "enforce"))
        return err_set(take->err, ERR_INVALID,
                       "\"enforcement\" of a proposal is \"enforce\" or left out");
    if (protocol && str_is(protocol->text, "rest"))
        return take_requests(take, map, out);
    if (protocol && protocol->text.n && !str_is(protocol->text, "tcp"))
        return err_set(take->err, ERR_INVALID,
                       "\"protocol\" of a proposal is \"rest\" (looked into) or \"tcp\" (a wire)");
    if (json_get(map, "rules") || json_get(map, "access"))
        return err_set(take->err, ERR_INVALID,
                       "\"rules\" and \"access\" need \"protocol\": \"rest\"");
    out->is_wire = true;
    return 0;
}

static int take_endpoints(struct take *take, const struct json *list, struct proposal *out)
{
    if (know_list(take, list, "endpoints", PROPOSAL_ENDPOINTS_MAX) < 0)
        return -1;
    json_each(item, list)
    {
        if (take_endpoint(take, item, &out->endpoints[out->endpoint_n++]) < 0)
            return -1;
    }
    return 0;
}

/* ---- entries ---- */

static bool is_name(struct str name)
{
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');

        if (!is_letter && (i == 0 || ((c < '0' || c > '9') && c != '_' && c != '-')))
            return false;
    }
    return name.n > 0 && name.n <= PROPOSAL_NAME_MAX;
}

int proposal_read_rule(struct arena *mem, struct str name, const struct json *rule,
                       struct proposal *out, struct err *err)
{
    static const char *const keys[] = {"name", "binaries", "endpoints", NULL};
    struct take take = {mem, err};

    *out = (struct proposal){0};
    if (!is_name(name))
        return err_set(err, ERR_INVALID,
                       "\"ruleName\" has 1 to %d letters, digits, \"_\" and \"-\", a letter first",
                       PROPOSAL_NAME_MAX);
    out->name = arena_str(mem, name);
    if (know_keys(&take, rule, "\"rule\"", keys) < 0 ||
        take_binaries(&take, json_get(rule, "binaries"), out) < 0)
        return -1;
    return take_endpoints(&take, json_get(rule, "endpoints"), out);
}

int proposal_read(struct arena *mem, const struct json *operation, struct proposal *out,
                  struct err *err)
{
    static const char *const outer[] = {"addRule", NULL};
    static const char *const inner[] = {"ruleName", "rule", NULL};
    struct take take = {mem, err};
    const struct json *add;
    struct str name = {"", 0};

    if (know_keys(&take, operation, "an operation", outer) < 0)
        return -1;
    add = json_get(operation, "addRule");
    if (know_keys(&take, add, "\"addRule\"", inner) < 0)
        return -1;
    (void)json_is_text(json_get(add, "ruleName"), &name); /* a name that is none is refused */
    return proposal_read_rule(mem, name, json_get(add, "rule"), out, err);
}

int proposal_request_read(struct arena *mem, struct str body, struct proposal_request *out,
                          struct err *err)
{
    static const char *const keys[] = {"intent_summary", "operations", NULL};
    struct take take = {mem, err};
    const struct json *root = NULL, *list;
    struct mark where;

    if (json_parse(mem, body, &root, &where, err) < 0)
        return err_in(err, "line %u, column %u", where.line, where.column);
    if (know_keys(&take, root, "the body", keys) < 0)
        return -1;
    list = json_get(root, "operations");
    if (!json_is_text(json_get(root, "intent_summary"), &out->intent) || out->intent.n == 0 ||
        out->intent.n > PROPOSAL_INTENT_MAX)
        return err_set(err, ERR_INVALID,
                       "\"intent_summary\" must say in 1 to %d bytes what this is for",
                       PROPOSAL_INTENT_MAX);
    if (know_list(&take, list, "operations", PROPOSAL_OPERATIONS_MAX) < 0)
        return -1;
    out->operations = list;
    return 0;
}
