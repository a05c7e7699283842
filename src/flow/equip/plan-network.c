/* SPDX-License-Identifier: Apache-2.0 */

/* The way out of a sandbox, and who decides that there is one.
 *
 *     asked      policy has rules   policy has none
 *     none       closed             closed
 *     policy     by its rules       refused
 *     not said   by its rules       closed
 *
 * A policy's rules are its author's word about what may be reached, so they hold for whoever does
 * not ask for less. Nobody can ask for more. */

#include "flow/equip/parts.h"

#include "lib/crypto/crypto.h"
#include "lib/egress/rules.h"

#include <string.h>

/* Where box listens inside (decision 0032). */
#define PROXY "http://127.0.0.1:3128"
#define NOT_THERE "localhost,127.0.0.1,::1"

static const char *const proxy_variables[] = {
    "ALL_PROXY=" PROXY,    "HTTPS_PROXY=" PROXY,  "HTTP_PROXY=" PROXY,
    "NO_PROXY=" NOT_THERE, "all_proxy=" PROXY,    "https_proxy=" PROXY,
    "http_proxy=" PROXY,   "no_proxy=" NOT_THERE, "NODE_USE_ENV_PROXY=1",
};

/* What stands in the way of a network for this run, or NULL. */
static const char *obstacle(const struct run *run)
{
    if (!run->demand.network_rules.n)
        return "the policy has no network_policies; write some, or run without it for no network";
    if (run->plan.sockets_none)
        return "a sandbox without sockets has no network; leave one of the two out";
    if (!run->offer.holds_network)
        return "this provider cannot hold network rules; choose another one, or --network none";
    return NULL;
}

/* Compiled here as egress will: what it would refuse is refused before anything is built. */
static int plan_rules(const char *state_dir, struct run *run, struct err *err)
{
    AUTO(net_rules) struct net_rules *rules = NULL;
    struct plan_egress *egress = &run->plan.egress;
    const uint16_t *ports;
    uint16_t *copy;

    if (net_rules_read(run->demand.network_rules, &rules, err) < 0)
        return refuse(run, REASON_POLICY_NOT_ENFORCEABLE, "network_policies: %.400s", err->text);
    ports = net_rules_ports(rules, &egress->port_n);
    if (egress->port_n > PLAN_PORTS_MAX)
        return refuse(run, REASON_POLICY_NOT_ENFORCEABLE,
                      "network_policies names %zu ports; at most %d can be held", egress->port_n,
                      PLAN_PORTS_MAX);
    copy = arena_array(&run->mem, uint16_t, egress->port_n + 1);
    if (egress->port_n)
        memcpy(copy, ports, egress->port_n * sizeof *copy);
    egress->ports = copy;
    egress->rules = run->demand.network_rules;
    hash_text_of(egress->rules, egress->hash);
    egress->env = (struct words){proxy_variables, COUNT(proxy_variables)};
    /* An egress program that opens no TLS has no authority, and there is nobody to trust. */
    egress->opens_tls = net_rules_opens_tls(rules) && has_authority(state_dir);
    if (egress->opens_tls)
        plan_trust_variables(run);
    return 0;
}

int plan_network(const char *state_dir, struct run *run, struct err *err)
{
    const char *why = obstacle(run);

    if (run->action.network == NETWORK_NONE)
        return 0;
    if (run->action.network == NETWORK_POLICY && why)
        return refuse(run, REASON_POLICY_NOT_ENFORCEABLE, "--network policy: %s", why);
    /* Not asked for, and somebody asked for no sockets at all: that is less. */
    if (!run->demand.network_rules.n || run->plan.sockets_none)
        return 0;
    if (why)
        return refuse(run, REASON_POLICY_NOT_ENFORCEABLE, "network_policies: %s", why);
    if (run->action.kind == ACTION_PREPARE)
        return refuse(run, REASON_POLICY_NOT_ENFORCEABLE,
                      "sandboxes with network rules are not built ahead: rules are given to the "
                      "one they are for; fill the pool with --network none");
    return plan_rules(state_dir, run, err);
}
