/* SPDX-License-Identifier: Apache-2.0 */
/* Other sandboxes: what they are called, and which of them may come in.
 *
 *     {"network_peers": {KEY: {"line", "sandbox": PATTERN, "port" or "ports"}}}
 *
 * Two have to say yes to a connection between sandboxes: the rules of the one that connects, by an
 * endpoint, and those of the one that is reached, by this section. Absent, nobody comes in. */
#include "lib/egress/handover.h"
#include "lib/egress/rules-private.h"

#include <string.h>

/* ---- what they are called ---- */

bool net_host_is_sandbox(struct str host)
{
    return str_ends(host, SANDBOX_SUFFIX) || str_is(host, &SANDBOX_SUFFIX[1]);
}

struct str net_sandbox_label(struct str host)
{
    return str_ends(host, SANDBOX_SUFFIX)
               ? (struct str){host.p, host.n - (sizeof SANDBOX_SUFFIX - 1)}
               : (struct str){"", 0};
}

bool net_is_sandbox_name(struct str name)
{
    if (name.n == 0 || name.n > NET_LABEL_BYTES_MAX || name.p[0] == '-' ||
        name.p[name.n - 1] == '-')
        return false;
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];

        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'))
            return false;
    }
    return true;
}

/* ---- reading ---- */

bool net_port_is_own(uint16_t port)
{
    return port == EGRESS_PROXY_PORT || port == EGRESS_CATCH_ALL_PORT || port == EGRESS_MINT_PORT;
}

static int read_peer(struct reading *in, const struct json *map, struct peer *out)
{
    static const char *const keys[] = {"line", "sandbox", "port", "ports", NULL};

    if (map->kind != JSON_OBJECT)
        return read_bad(in, map, "is no entry");
    out->rule = arena_printf(in->mem, "network_peers." STR_FMT, STR_ARG(map->key));
    if (read_known(in, map, keys) < 0 || read_lines(in, map, &out->line) < 0 ||
        read_text(in, map, "sandbox", &out->sandbox) < 0 ||
        read_ports(in, map, &out->ports, &out->port_n) < 0)
        return -1;
    if (out->sandbox.n == 0 || memchr(out->sandbox.p, '.', out->sandbox.n) ||
        memmem(out->sandbox.p, out->sandbox.n, "**", 2))
        return read_bad(in, map, "needs the name of a sandbox, or a pattern of one");
    for (size_t i = 0; i < out->port_n; i++)
        if (net_port_is_own(out->ports[i]))
            return read_bad(in, map, "opens a port of egress itself");
    return 0;
}

int read_peers(struct reading *in, const struct json *map)
{
    struct net_rules *rules = in->rules;

    if (map->n > NET_RULES_ENDPOINTS_MAX)
        return err_set(in->err, ERR_LIMIT, "more than %d peers", NET_RULES_ENDPOINTS_MAX);
    rules->peers = arena_array(in->mem, struct peer, map->n);
    json_each(member, map)
    {
        if (read_peer(in, member, &rules->peers[rules->peer_n++]) < 0)
            return -1;
    }
    return 0;
}

/* ---- who may come in ---- */

static bool has_port(const struct peer *peer, uint16_t port)
{
    for (size_t i = 0; i < peer->port_n; i++)
        if (peer->ports[i] == port)
            return true;
    return false;
}

/* Ids are drawn by lot: a pattern that fits one by chance does not mean it. */
static bool names(const struct peer *peer, const struct net_guest *guest)
{
    return str_is(peer->sandbox, "*") || str_eq(peer->sandbox, guest->id) ||
           (net_is_sandbox_name(guest->name) && net_pattern_match(peer->sandbox, guest->name));
}

static void decided_by(struct net_verdict *out, const struct peer *peer)
{
    out->entry = peer->rule;
    out->line = peer->line;
}

void net_rules_guest(const struct net_rules *rules, const struct net_guest *guest,
                     struct net_verdict *out)
{
    const struct peer *by_name = NULL;

    for (size_t i = 0; i < rules->peer_n; i++) {
        const struct peer *peer = &rules->peers[i];

        if (!names(peer, guest))
            continue;
        by_name = by_name ? by_name : peer;
        if (has_port(peer, guest->port)) {
            verdict_allow(out, NET_ALLOW, NULL);
            decided_by(out, peer);
            return;
        }
    }
    if (!by_name) {
        verdict_deny(out, NET_REASON_PEER, NULL,
                     "the sandbox that is reached does not let this one in; its policy has to name "
                     "it, and port %u, in \"network_peers\"",
                     guest->port);
        return;
    }
    verdict_deny(out, NET_REASON_PEER, NULL,
                 "the sandbox that is reached lets this one in, but not at port %u; its policy has "
                 "to name the port in \"network_peers\"",
                 guest->port);
    decided_by(out, by_name);
}
