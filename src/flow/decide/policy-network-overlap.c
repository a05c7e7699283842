/* SPDX-License-Identifier: Apache-2.0 */
/* Endpoints for one host, port and path. Entries add up, so several may allow; but how the bytes
 * are read, whether TLS is opened and whether rules are enforced can only be one thing. */
#include "flow/decide/load.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct claim {
    struct str host;
    int64_t port;
    struct str path;
    size_t order;
    const struct json *endpoint;
    struct str protocol;
    bool skips_tls;
    bool audits;
};

struct claims {
    struct claim *of;
    size_t n;
};

static struct str text_of(const struct json *endpoint, const char *key)
{
    struct str text;

    return json_is_text(json_get(endpoint, key), &text) ? text : (struct str){"", 0};
}

static int compare_hosts(struct str a, struct str b)
{
    int order = strncasecmp(a.p, b.p, a.n < b.n ? a.n : b.n);

    return order ? order : a.n < b.n ? -1 : a.n > b.n;
}

static int compare_claims(const void *left, const void *right)
{
    const struct claim *a = left, *b = right;
    int order = compare_hosts(a->host, b->host);

    if (order)
        return order;
    if (a->port != b->port)
        return a->port < b->port ? -1 : 1;
    order = str_cmp(a->path, b->path);
    return order ? order : a->order < b->order ? -1 : a->order > b->order;
}

static struct str path_of(const struct json *endpoint)
{
    struct str path = text_of(endpoint, "path");

    return str_is(path, "**") ? (struct str){"", 0} : path;
}

static void claim_endpoint(struct claims *claims, const struct json *endpoint)
{
    const struct json *ports = json_get(endpoint, "ports"), *port = json_get(endpoint, "port");
    struct claim claim = {.host = text_of(endpoint, "host"),
                          .path = path_of(endpoint),
                          .endpoint = endpoint,
                          .protocol = text_of(endpoint, "protocol"),
                          .skips_tls = str_is(text_of(endpoint, "tls"), "skip"),
                          .audits = str_is(text_of(endpoint, "enforcement"), "audit")};

    /* Rules without a host meet everything, and those for sandboxes nothing else. */
    if (claim.host.n == 0)
        return;
    for (const struct json *item = port    ? port
                                   : ports ? ports->first
                                           : NULL;
         item; item = port ? NULL : item->next) {
        claim.order = claims->n;
        if (json_is_int(item, &claim.port))
            claims->of[claims->n++] = claim;
    }
}

static size_t count_ports(const struct json *section)
{
    size_t n = 0;

    json_each(entry, section)
    {
        const struct json *endpoints = json_get(entry, "endpoints");

        if (endpoints)
            json_each(endpoint, endpoints)
            {
                const struct json *ports = json_get(endpoint, "ports");

                n += ports ? ports->n : 1;
            }
    }
    return n;
}

static bool is_place(const struct claim *a, const struct claim *b)
{
    return a->port == b->port && compare_hosts(a->host, b->host) == 0;
}

/* What two of them disagree about, or NULL. Endpoints nobody looks into go with any other. */
static const char *difference(const struct claim *a, const struct claim *b)
{
    bool both = a->protocol.n && b->protocol.n;

    if (a->skips_tls != b->skips_tls && (a->protocol.n || b->protocol.n))
        return "tls";
    if (both && !str_eq(a->protocol, b->protocol))
        return "protocol";
    return both && a->audits != b->audits ? "enforcement" : NULL;
}

static int check_pair(struct load *load, const struct claim *first, const struct claim *a,
                      const struct claim *b)
{
    const struct claim *early = a->order < b->order ? a : b, *late = early == a ? b : a;
    const char *what;

    if (first->protocol.n && b->protocol.n &&
        str_is(first->protocol, "mcp") != str_is(b->protocol, "mcp")) {
        early = first->order < b->order ? first : b;
        late = early == first ? b : first;
        return load_bad(load, late->endpoint->mark,
                        "this host and port has protocol %s in line %u: one that speaks mcp can "
                        "speak nothing else",
                        shown(load, early->protocol), early->endpoint->mark.line);
    }
    if (a == b || !str_eq(a->path, b->path))
        return 0;
    what = difference(a, b);
    if (!what)
        return 0;
    return load_bad(
        load, late->endpoint->mark,
        "this endpoint and the one in line %u are for the same host, port and path, but "
        "differ in \"%s\"; make them alike, or give one another \"path\"",
        early->endpoint->mark.line, what);
}

int load_overlaps(struct load *load, const struct json *section)
{
    struct claims claims = {arena_array(load->mem, struct claim, count_ports(section) + 1), 0};
    const struct claim *first = NULL;

    json_each(entry, section)
    {
        const struct json *endpoints = json_get(entry, "endpoints");

        if (endpoints)
            json_each(endpoint, endpoints) claim_endpoint(&claims, endpoint);
    }
    qsort(claims.of, claims.n, sizeof claims.of[0], compare_claims);
    for (size_t i = 0; i < claims.n; i++) {
        const struct claim *claim = &claims.of[i];

        /* The first of a place that is looked into stands for all of them. */
        if (!first || !is_place(first, claim) || first->protocol.n == 0)
            first = claim;
        if (check_pair(load, first, i && is_place(&claims.of[i - 1], claim) ? claim - 1 : claim,
                       claim) < 0)
            return -1;
    }
    return 0;
}
