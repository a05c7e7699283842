/* SPDX-License-Identifier: Apache-2.0 */
/* Who may connect where, and which address may be dialled for it. */
#include "lib/egress/rules-private.h"

#include <string.h>

/* etcd, the Kubernetes API and kubelets: whoever reaches one of those runs things elsewhere. */
static const uint16_t control_ports[] = {2379, 2380, 6443, 10250, 10255};

bool net_port_is_never(uint16_t port)
{
    for (size_t i = 0; i < COUNT(control_ports); i++)
        if (port == control_ports[i])
            return true;
    return false;
}

/* ---- before any rule ---- */

static bool check_caller(const struct net_caller *caller, struct net_verdict *out)
{
    struct shown exe;

    if (!caller || !(caller->flags & NET_CALLER_KNOWN) || caller->exe.path.n == 0) {
        verdict_deny(out, NET_REASON_CALLER, NULL,
                     "it is not known which program asks, so no rule can mean it; connect again, "
                     "from the program itself");
        return false;
    }
    if (caller->flags & NET_CALLER_AMBIGUOUS) {
        verdict_deny(out, NET_REASON_CALLER, NULL,
                     "several different programs share this socket, so no rule can mean one of "
                     "them; open it in the program that uses it");
        return false;
    }
    if (caller->flags & NET_CALLER_REPLACED) {
        verdict_deny(out, NET_REASON_CALLER_CHANGED, NULL,
                     "%s is not the file it was when it first connected; make a new sandbox for "
                     "the new one",
                     show(&exe, caller->exe.path));
        return false;
    }
    return true;
}

static bool check_host(const struct net_knock *knock, const struct net_host *host,
                       struct net_verdict *out)
{
    struct shown written, plain;
    struct str text = {host->text, host->n};

    if (host->kind == NET_HOST_BAD) {
        verdict_deny(out, NET_REASON_HOST_FORM, NULL, "host \"%s\" %s", show(&written, knock->host),
                     host->fault);
        return false;
    }
    if (host->is_odd) {
        verdict_deny(out, NET_REASON_HOST_FORM, NULL,
                     "host \"%s\" is an unusual way to write \"%s\"; use the plain one",
                     show(&written, knock->host), show(&plain, text));
        return false;
    }
    if (host->kind == NET_HOST_NAME && net_name_is_never(text)) {
        verdict_deny(out, NET_REASON_ADDRESS, NULL, "host \"%s\" can never be allowed",
                     show(&plain, text));
        return false;
    }
    if (host->kind == NET_HOST_ADDRESS && net_range_is_never(net_range_of(&host->addr))) {
        verdict_deny(out, NET_REASON_ADDRESS, NULL, "address %s can never be allowed (%s)",
                     show(&plain, text), net_range_name(net_range_of(&host->addr)));
        return false;
    }
    return true;
}

static bool check_port(const struct net_knock *knock, struct net_verdict *out)
{
    if (!net_port_is_never(knock->port))
        return true;
    verdict_deny(out, NET_REASON_CONTROL_PORT, NULL,
                 "port %u belongs to the control plane of clusters and can never be allowed",
                 knock->port);
    return false;
}

/* ---- which endpoints ---- */

static bool has_port(const struct endpoint *endpoint, uint16_t port)
{
    for (size_t i = 0; i < endpoint->port_n; i++)
        if (endpoint->ports[i] == port)
            return true;
    return false;
}

/* allowed_ips replace the block of private addresses; without them only a literal address in the
 * rule itself opens one. */
static bool admits_address(const struct endpoint *endpoint, const struct net_addr *addr)
{
    enum net_range range = net_range_of(addr);

    if (endpoint->is_sandbox)
        return false; /* goes to a sandbox, never to an address */
    if (net_range_is_never(range))
        return false;
    for (size_t i = 0; i < endpoint->block_n; i++)
        if (net_block_has(&endpoint->blocks[i], addr))
            return true;
    if (endpoint->block_n)
        return false;
    return !net_range_is_private(range) ||
           (endpoint->host_kind == HOST_ADDRESS && net_addr_is_same(&endpoint->addr, addr));
}

static void deny_binary(const struct net_knock *knock, enum binary_match best,
                        const struct endpoint *by, struct net_verdict *out)
{
    const struct net_caller *caller = knock->caller;
    struct shown exe, host, parent = {""};

    (void)show(&exe, caller->exe.path);
    (void)show(&host, knock->host);
    if (caller->ancestor_n)
        (void)show(&parent, caller->ancestors[0].path);
    switch (best) {
    case BINARY_INTERPRETER:
        verdict_deny(out, NET_REASON_INTERPRETER, by,
                     "%s runs what it is told, so naming it is not enough; if it may reach %s with "
                     "whatever it runs, add \"interpreter: true\" to it in entry %s",
                     exe.text, host.text, by->entry->name);
        return;
    case BINARY_WRITABLE:
        verdict_deny(out, NET_REASON_BINARY, by,
                     "%s lies where the sandbox can write, so it could be anything; name its "
                     "\"hash\" in entry %s, or add \"writable: true\"",
                     exe.text, by->entry->name);
        return;
    case BINARY_LOST:
        verdict_deny(
            out, NET_REASON_CALLER, by,
            "%s could be allowed for what started it, but not all of its parents are known",
            exe.text);
        return;
    case BINARY_OTHER:
    case BINARY_MATCHES:
        break;
    }
    verdict_deny(out, NET_REASON_BINARY, by,
                 "entry %s allows %s port %u, but not for %s%s%s; name that path in its "
                 "\"binaries\" (a link is not followed: write the file it leads to)",
                 by->entry->name, host.text, knock->port, exe.text,
                 parent.text[0] ? ", started by " : "", parent.text);
}

static void deny_nothing_found(const struct net_rules *rules, const struct net_knock *knock,
                               const struct endpoint *by_host, struct net_verdict *out)
{
    struct shown host;

    if (rules->endpoint_n == 0)
        verdict_deny(out, NET_REASON_NO_RULES, NULL,
                     "this policy allows no network; to open %s port %u, add an entry to "
                     "network_policies",
                     show(&host, knock->host), knock->port);
    else if (by_host)
        verdict_deny(out, NET_REASON_PORT, by_host,
                     "entry %s names %s, but not port %u; add it to \"ports\"",
                     by_host->entry->name, show(&host, knock->host), knock->port);
    else
        verdict_deny(out, NET_REASON_NO_RULE, NULL,
                     "no rule names %s; to open it, add an endpoint with this host and port %u",
                     show(&host, knock->host), knock->port);
}

static bool address_is_open(const struct endpoint *endpoint, const struct net_host *host,
                            const struct net_knock *knock)
{
    if (host->kind == NET_HOST_ADDRESS && !admits_address(endpoint, &host->addr))
        return false;
    return !knock->dialled || admits_address(endpoint, knock->dialled);
}

/* A pattern that happens to be wide enough, or no host at all, does not mean other sandboxes. */
static bool is_of_kind(const struct endpoint *endpoint, const struct net_host *host)
{
    return endpoint->is_sandbox || host->kind != NET_HOST_NAME ||
           !net_host_is_sandbox((struct str){host->text, host->n});
}

/* Keeps those of *found that match the rest of the knock. */
static bool narrow(const struct net_rules *rules, const struct net_knock *knock,
                   const struct net_host *host, struct found *found, struct net_verdict *out)
{
    const struct endpoint *by_host = NULL, *by_binary = NULL, *by_address = NULL;
    enum binary_match best = BINARY_OTHER;
    size_t kept = 0;
    struct shown shown;

    for (size_t i = 0; i < found->n; i++) {
        const struct endpoint *endpoint = found->v[i];
        enum binary_match match;

        if (!is_of_kind(endpoint, host))
            continue;
        if (!has_port(endpoint, knock->port)) {
            by_host = by_host || endpoint->host_kind == HOST_ANY ? by_host : endpoint;
            continue;
        }
        match = entry_match(endpoint->entry, knock->caller);
        if (match != BINARY_MATCHES) {
            by_binary = by_binary && match <= best ? by_binary : endpoint;
            best = match > best ? match : best;
            continue;
        }
        if (!address_is_open(endpoint, host, knock)) {
            by_address = endpoint;
            continue;
        }
        found->v[kept++] = endpoint;
    }
    found->n = kept;
    if (kept)
        return true;
    if (by_address)
        verdict_deny(out, NET_REASON_PRIVATE, by_address,
                     "entry %s does not open this address of %s; list it in \"allowed_ips\" if it "
                     "may be reached",
                     by_address->entry->name, show(&shown, knock->host));
    else if (by_binary)
        deny_binary(knock, best, by_binary, out);
    else
        deny_nothing_found(rules, knock, by_host, out);
    return false;
}

bool find_endpoints(const struct net_rules *rules, const struct net_knock *knock,
                    struct found *found, struct net_verdict *out)
{
    struct net_host host;
    struct shown shown;

    net_host_read(knock->host, &host);
    if (!check_caller(knock->caller, out) || !check_host(knock, &host, out) ||
        !check_port(knock, out))
        return false;
    index_find(rules, &host, found);
    if (found->too_many) {
        verdict_deny(out, NET_REASON_AMBIGUOUS, NULL,
                     "more than %d endpoints match %s; write fewer, wider ones", FOUND_MAX,
                     show(&shown, knock->host));
        return false;
    }
    return narrow(rules, knock, &host, found, out);
}

/* ---- the two questions ---- */

static bool is_opaque(const struct endpoint *endpoint)
{
    return endpoint->tls_skip || endpoint->protocol == NET_PROTOCOL_NONE ||
           endpoint->protocol == NET_PROTOCOL_TCP;
}

void net_rules_connect(const struct net_rules *rules, const struct net_knock *knock,
                       struct net_verdict *out)
{
    const struct endpoint *looked_into = NULL;
    struct found found;
    unsigned flags = 0;

    if (!find_endpoints(rules, knock, &found, out))
        return;
    for (size_t i = 0; i < found.n; i++) {
        const struct endpoint *endpoint = found.v[i];

        if (!is_opaque(endpoint) && !looked_into)
            looked_into = endpoint;
        flags |= endpoint->tls_skip ? NET_FLAG_TLS_SKIP : 0;
        flags |= endpoint->is_sandbox ? NET_FLAG_SANDBOX : 0;
        flags |= endpoint->block_n ? NET_FLAG_ANY_PRIVATE : 0;
    }
    /* Where one rule looks inside and another does not, somebody looks. */
    if (looked_into) {
        verdict_allow(out, NET_INSPECT, looked_into);
        flags &= ~(unsigned)NET_FLAG_TLS_SKIP;
    } else {
        verdict_allow(out, NET_TUNNEL, found.v[0]);
    }
    out->flags = flags;
    out->flags |= is_interpreter(knock->caller->exe.path) ? NET_FLAG_INTERPRETER : 0;
}

bool net_rules_opens_tls(const struct net_rules *rules)
{
    for (size_t i = 0; i < rules->endpoint_n; i++)
        if (!is_opaque(rules->endpoints[i]))
            return true;
    return rules->takes_proposals;
}

void net_rules_address(const struct net_rules *rules, const struct net_knock *knock,
                       const struct net_addr *addr, const struct net_addr *own, size_t own_n,
                       struct net_verdict *out)
{
    struct net_knock with = *knock;
    enum net_range range = net_range_of(addr);
    char text[NET_ADDR_TEXT_BYTES];
    struct found found;
    struct shown host;

    (void)net_addr_text(addr, text);
    if (net_range_is_never(range)) {
        verdict_deny(out, NET_REASON_ADDRESS, NULL, "%s is %s, which can never be allowed (%s)",
                     show(&host, knock->host), text, net_range_name(range));
        return;
    }
    for (size_t i = 0; i < own_n; i++)
        if (net_addr_is_same(&own[i], addr)) {
            verdict_deny(out, NET_REASON_ADDRESS, NULL,
                         "%s is %s, an address of this machine, which can never be allowed",
                         show(&host, knock->host), text);
            return;
        }
    with.dialled = addr;
    if (!find_endpoints(rules, &with, &found, out)) {
        if (out->reason == NET_REASON_PRIVATE)
            verdict_deny(out, NET_REASON_PRIVATE, rules->endpoints[out->endpoint],
                         "%s is %s (%s); to reach it, list it in \"allowed_ips\" of entry %s",
                         show(&host, knock->host), text, net_range_name(range),
                         rules->endpoints[out->endpoint]->entry->name);
        return;
    }
    verdict_allow(out, NET_ALLOW, found.v[0]);
}

bool net_rules_still_allows(const struct net_rules *rules, const struct net_knock *knock,
                            const struct net_verdict *was)
{
    struct net_verdict now;

    net_rules_connect(rules, knock, &now);
    /* A tunnel that should be looked into now has been seen by nobody; one that was looked into
     * and would be a tunnel goes on, judged request by request. */
    return now.kind == was->kind || (was->kind == NET_INSPECT && now.kind == NET_TUNNEL);
}
