/* SPDX-License-Identifier: Apache-2.0 */
/* A proposal told: as JSON, as lines of a policy, and as what it comes to. */
#include "lib/egress/proposal.h"

#include <string.h>

#include "lib/base/limits.h"
#include "lib/egress/suggest.h"

#define LINE_MAX_BYTES (64 * KIB)
#define TELL_MEMORY (1 * MIB)

/* ---- as JSON ---- */

static struct json *binary_json(struct arena *mem, const struct proposal_binary *binary)
{
    struct json *map = json_object(mem);

    json_put(map, "path", json_text(mem, binary->path));
    if (binary->interpreter)
        json_put_bool(mem, map, "interpreter", true);
    return map;
}

static struct json *rules_json(struct arena *mem, const struct proposal_endpoint *endpoint)
{
    struct json *list = json_array(mem);

    for (size_t i = 0; i < endpoint->rule_n; i++) {
        struct json *rule = json_object(mem), *allow = json_object(mem);

        json_put(allow, "method", json_text(mem, endpoint->rules[i].method));
        json_put(allow, "path", json_text(mem, endpoint->rules[i].path));
        json_put(rule, "allow", allow);
        json_push(list, rule);
    }
    return list;
}

/* "tcp" is for names; an address without a protocol is the same wire. */
static void put_protocol(struct arena *mem, struct json *map,
                         const struct proposal_endpoint *endpoint)
{
    struct net_host host;

    net_host_read(endpoint->host, &host);
    if (!endpoint->is_wire) {
        json_put_text(mem, map, "protocol", "rest");
        json_put_text(mem, map, "enforcement", "enforce");
    } else if (host.kind == NET_HOST_NAME) {
        json_put_text(mem, map, "protocol", "tcp");
    }
}

static struct json *endpoint_json(struct arena *mem, const struct proposal_endpoint *endpoint)
{
    struct json *map = json_object(mem), *ports = json_array(mem);

    json_put(map, "host", json_text(mem, endpoint->host));
    for (size_t i = 0; i < endpoint->port_n; i++)
        json_push(ports, json_int(mem, endpoint->ports[i]));
    json_put(map, "ports", ports);
    put_protocol(mem, map, endpoint);
    if (endpoint->access.n)
        json_put(map, "access", json_text(mem, endpoint->access));
    if (endpoint->rule_n)
        json_put(map, "rules", rules_json(mem, endpoint));
    return map;
}

struct json *proposal_json(struct arena *mem, const struct proposal *proposal)
{
    struct json *map = json_object(mem), *binaries = json_array(mem), *endpoints = json_array(mem);

    for (size_t i = 0; i < proposal->binary_n; i++)
        json_push(binaries, binary_json(mem, &proposal->binaries[i]));
    for (size_t i = 0; i < proposal->endpoint_n; i++)
        json_push(endpoints, endpoint_json(mem, &proposal->endpoints[i]));
    json_put(map, "binaries", binaries);
    json_put(map, "endpoints", endpoints);
    return map;
}

/* ---- as lines ---- */

/* What YAML reads like JSON is written as JSON, an item a line. */
static int write_list(const struct json *list, const char *key, unsigned indent, struct buf *out,
                      struct err *err)
{
    if (buf_addf(out, err, "%*s%s:\n", (int)indent, "", key) < 0)
        return -1;
    json_each(item, list)
    {
        AUTO_BUF struct buf line = BUF(LINE_MAX_BYTES);

        if (json_compact(item, &line, err) < 0 ||
            buf_addf(out, err, "%*s- %s\n", (int)indent + 2, "", buf_text(&line)) < 0)
            return -1;
    }
    return 0;
}

int proposal_write(const struct proposal *proposal, unsigned indent, struct buf *out,
                   struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(TELL_MEMORY);
    const struct json *entry = proposal_json(&mem, proposal);

    if (buf_addf(out, err, "%*s" STR_FMT ":\n", (int)indent, "", STR_ARG(proposal->name)) < 0 ||
        write_list(json_get(entry, "binaries"), "binaries", indent + 2, out, err) < 0)
        return -1;
    return write_list(json_get(entry, "endpoints"), "endpoints", indent + 2, out, err);
}

/* Both are texts of one form and length, so where one ends is not in doubt. */
void proposal_digest(struct str record_digest, struct str rules_hash, char out[HASH_TEXT_BYTES])
{
    char text[64 + 2 * HASH_TEXT_BYTES];

    (void)snprintf(text, sizeof text, "brig/proposal-approval/1\n" STR_FMT "\n" STR_FMT "\n",
                   STR_ARG(record_digest), STR_ARG(rules_hash));
    hash_text_of(str_of(text), out);
}

/* ---- as what it comes to ---- */

struct telling {
    const struct net_rules *now;
    void (*on_grant)(void *ctx, const struct proposal_grant *grant);
    void *ctx;
};

static bool is_pattern(struct str path)
{
    for (size_t i = 0; i < path.n; i++)
        if (strchr("*?[{\\", path.p[i]))
            return true;
    return false;
}

/* Asked of the rules, with a query and without. Of a pattern a part may be new whatever one path
 * of it is, so a pattern is new. */
static bool is_allowed(const struct net_rules *now, const struct proposal_grant *grant)
{
    const struct net_caller caller = {.flags = NET_CALLER_KNOWN | NET_CALLER_COMPLETE,
                                      .exe.path = grant->binary};
    const struct net_knock knock = {.host = grant->host, .port = grant->port, .caller = &caller};
    struct net_request request = {.scheme = grant->port == 80 ? STR_LIT("http") : STR_LIT("https"),
                                  .method = grant->method,
                                  .path = grant->path};
    struct net_verdict verdict;

    net_rules_connect(now, &knock, &verdict);
    if (verdict.kind == NET_TUNNEL)
        return true;
    if (verdict.kind != NET_INSPECT || grant->method.n == 0 || str_is(grant->method, "*") ||
        is_pattern(grant->path))
        return false;
    for (unsigned i = 0; i < 2; i++) {
        request.has_query = i == 1;
        request.query = i == 1 ? STR_LIT("any=thing") : (struct str){"", 0};
        net_rules_request(now, &knock, &request, &verdict);
        if (verdict.kind != NET_ALLOW)
            return false;
    }
    return true;
}

static void tell(const struct telling *telling, struct proposal_grant grant, const char *method,
                 struct str path)
{
    if (method)
        grant.method = str_of(method);
    grant.path = path;
    grant.is_known = is_allowed(telling->now, &grant);
    telling->on_grant(telling->ctx, &grant);
}

static void tell_access(const struct telling *telling, struct proposal_grant grant,
                        struct str access)
{
    static const char *const methods[] = {"GET", "OPTIONS", "POST", "PUT", "PATCH"};
    size_t n = str_is(access, "read-only") ? 2 : COUNT(methods);

    if (str_is(access, "full")) {
        tell(telling, grant, "*", STR_LIT("**"));
        return;
    }
    for (size_t i = 0; i < n; i++)
        tell(telling, grant, methods[i], STR_LIT("**"));
}

static void tell_endpoint(const struct telling *telling, struct proposal_grant grant,
                          const struct proposal_endpoint *endpoint)
{
    if (endpoint->is_wire) {
        tell(telling, grant, "", (struct str){"", 0});
        return;
    }
    if (endpoint->access.n)
        tell_access(telling, grant, endpoint->access);
    for (size_t i = 0; i < endpoint->rule_n; i++) {
        grant.method = endpoint->rules[i].method;
        tell(telling, grant, NULL, endpoint->rules[i].path);
    }
}

void proposal_each_grant(const struct proposal *proposal, const struct net_rules *now,
                         void (*on_grant)(void *ctx, const struct proposal_grant *grant), void *ctx)
{
    const struct telling telling = {now, on_grant, ctx};

    for (size_t b = 0; b < proposal->binary_n; b++)
        for (size_t e = 0; e < proposal->endpoint_n; e++)
            for (size_t p = 0; p < proposal->endpoints[e].port_n; p++) {
                const struct proposal_grant grant = {.binary = proposal->binaries[b].path,
                                                     .host = proposal->endpoints[e].host,
                                                     .port = proposal->endpoints[e].ports[p]};

                tell_endpoint(&telling, grant, &proposal->endpoints[e]);
            }
}

/* ---- what to mind ---- */

static unsigned endpoint_warnings(const struct proposal_endpoint *endpoint)
{
    unsigned bits = endpoint->is_wire ? 1U << SUGGEST_WARN_AT_WIRE : 0;

    if (endpoint->access.n)
        bits |= 1U << SUGGEST_WARN_AT_WIDE;
    for (size_t i = 0; i < endpoint->rule_n; i++)
        if (str_is(endpoint->rules[i].method, "*") ||
            memmem(endpoint->rules[i].path.p, endpoint->rules[i].path.n, "**", 2))
            bits |= 1U << SUGGEST_WARN_AT_WIDE;
    return bits;
}

unsigned proposal_warnings(const struct proposal *proposal)
{
    unsigned bits = 0;

    for (size_t e = 0; e < proposal->endpoint_n; e++) {
        bits |= endpoint_warnings(&proposal->endpoints[e]);
        for (size_t p = 0; p < proposal->endpoints[e].port_n; p++)
            for (size_t b = 0; b < proposal->binary_n; b++)
                bits |= suggest_place_warnings(proposal->binaries[b].path,
                                               proposal->endpoints[e].ports[p]);
    }
    return bits;
}
