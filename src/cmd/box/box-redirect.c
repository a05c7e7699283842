/* SPDX-License-Identifier: Apache-2.0 */

/* TCP that leaves for one of some ports, led to the catch-all listener by nftables: what
 *
 *     table inet brig {
 *         set ports { type inet_service; elements = { 80, 443 } }
 *         chain out {
 *             type nat hook output priority -100;
 *             meta nfproto ipv4 @nh,128,8 127 accept          127.0.0.0/8
 *             meta nfproto ipv6 ip6 daddr ::1 accept
 *             meta nfproto ipv4 ip daddr 198.18.0.1 accept    names have a listener there
 *             meta l4proto tcp tcp dport @ports redirect to :15001
 *         }
 *     }
 *
 * says, in one batch: all of it or nothing. */

#include "cmd/box/box-egress.h"

#include "lib/egress/handover.h"

#include <arpa/inet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <netinet/in.h>

#define TABLE "brig"
#define CHAIN "out"
#define SET "ports"
#define SET_ID 1
#define TYPE_INET_SERVICE 13 /* what nft shows the elements as */
#define PRIORITY_DSTNAT ((uint32_t)-100)
#define IPV4_DESTINATION 16 /* where it stands in a header */
#define IPV6_DESTINATION 24
#define TCP_DESTINATION 2

static void begin(struct netlink *nl, uint16_t what, uint16_t flags)
{
    const struct nfgenmsg head = {.nfgen_family = NFPROTO_INET, .version = NFNETLINK_V0};

    netlink_begin(nl, (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | what), flags, &head, sizeof head);
}

static void around(struct netlink *nl, uint16_t type)
{
    const struct nfgenmsg head = {.version = NFNETLINK_V0, .res_id = htons(NFNL_SUBSYS_NFTABLES)};

    netlink_begin_quiet(nl, type, &head, sizeof head);
}

static void add_value(struct netlink *nl, uint16_t type, const void *bytes, size_t n)
{
    size_t nest = netlink_nest(nl, type);

    netlink_add(nl, NFTA_DATA_VALUE, bytes, n);
    netlink_nest_end(nl, nest);
}

/* ---- expressions of a rule, each a step with registers ---- */

struct expression {
    size_t element, data;
};

static struct expression expression_begin(struct netlink *nl, const char *name)
{
    struct expression made = {.element = netlink_nest(nl, NFTA_LIST_ELEM)};

    netlink_add_text(nl, NFTA_EXPR_NAME, name);
    made.data = netlink_nest(nl, NFTA_EXPR_DATA);
    return made;
}

static void expression_end(struct netlink *nl, struct expression of)
{
    netlink_nest_end(nl, of.data);
    netlink_nest_end(nl, of.element);
}

static void compare(struct netlink *nl, const void *bytes, size_t n)
{
    struct expression of = expression_begin(nl, "cmp");

    netlink_add_be32(nl, NFTA_CMP_SREG, NFT_REG_1);
    netlink_add_be32(nl, NFTA_CMP_OP, NFT_CMP_EQ);
    add_value(nl, NFTA_CMP_DATA, bytes, n);
    expression_end(nl, of);
}

/* A fact about the packet that is one byte. */
static void match_meta(struct netlink *nl, uint32_t key, uint8_t value)
{
    struct expression of = expression_begin(nl, "meta");

    netlink_add_be32(nl, NFTA_META_DREG, NFT_REG_1);
    netlink_add_be32(nl, NFTA_META_KEY, key);
    expression_end(nl, of);
    compare(nl, &value, sizeof value);
}

static void load(struct netlink *nl, uint32_t base, uint32_t offset, uint32_t n)
{
    struct expression of = expression_begin(nl, "payload");

    netlink_add_be32(nl, NFTA_PAYLOAD_DREG, NFT_REG_1);
    netlink_add_be32(nl, NFTA_PAYLOAD_BASE, base);
    netlink_add_be32(nl, NFTA_PAYLOAD_OFFSET, offset);
    netlink_add_be32(nl, NFTA_PAYLOAD_LEN, n);
    expression_end(nl, of);
}

static void look_up(struct netlink *nl)
{
    struct expression of = expression_begin(nl, "lookup");

    netlink_add_text(nl, NFTA_LOOKUP_SET, SET);
    netlink_add_be32(nl, NFTA_LOOKUP_SREG, NFT_REG_1);
    netlink_add_be32(nl, NFTA_LOOKUP_SET_ID, SET_ID);
    expression_end(nl, of);
}

static void accept_it(struct netlink *nl)
{
    struct expression of = expression_begin(nl, "immediate");
    size_t data, verdict;

    netlink_add_be32(nl, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
    data = netlink_nest(nl, NFTA_IMMEDIATE_DATA);
    verdict = netlink_nest(nl, NFTA_DATA_VERDICT);
    netlink_add_be32(nl, NFTA_VERDICT_CODE, NF_ACCEPT);
    netlink_nest_end(nl, verdict);
    netlink_nest_end(nl, data);
    expression_end(nl, of);
}

static void redirect(struct netlink *nl, uint16_t port)
{
    uint16_t wire = htons(port);
    struct expression of = expression_begin(nl, "immediate");

    netlink_add_be32(nl, NFTA_IMMEDIATE_DREG, NFT_REG_1);
    add_value(nl, NFTA_IMMEDIATE_DATA, &wire, sizeof wire);
    expression_end(nl, of);
    of = expression_begin(nl, "redir");
    netlink_add_be32(nl, NFTA_REDIR_REG_PROTO_MIN, NFT_REG_1);
    expression_end(nl, of);
}

/* ---- the rules ---- */

static size_t rule_begin(struct netlink *nl)
{
    begin(nl, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND);
    netlink_add_text(nl, NFTA_RULE_TABLE, TABLE);
    netlink_add_text(nl, NFTA_RULE_CHAIN, CHAIN);
    return netlink_nest(nl, NFTA_RULE_EXPRESSIONS);
}

static void leave_alone(struct netlink *nl, uint8_t family, uint32_t offset, const void *bytes,
                        size_t n)
{
    size_t rule = rule_begin(nl);

    match_meta(nl, NFT_META_NFPROTO, family);
    load(nl, NFT_PAYLOAD_NETWORK_HEADER, offset, (uint32_t)n);
    compare(nl, bytes, n);
    accept_it(nl);
    netlink_nest_end(nl, rule);
}

static void lead_to_egress(struct netlink *nl)
{
    size_t rule = rule_begin(nl);

    match_meta(nl, NFT_META_L4PROTO, IPPROTO_TCP);
    load(nl, NFT_PAYLOAD_TRANSPORT_HEADER, TCP_DESTINATION, sizeof(uint16_t));
    look_up(nl);
    redirect(nl, EGRESS_CATCH_ALL_PORT);
    netlink_nest_end(nl, rule);
}

static void add_chain(struct netlink *nl)
{
    size_t hook;

    begin(nl, NFT_MSG_NEWCHAIN, NLM_F_CREATE);
    netlink_add_text(nl, NFTA_CHAIN_TABLE, TABLE);
    netlink_add_text(nl, NFTA_CHAIN_NAME, CHAIN);
    hook = netlink_nest(nl, NFTA_CHAIN_HOOK);
    netlink_add_be32(nl, NFTA_HOOK_HOOKNUM, NF_INET_LOCAL_OUT);
    netlink_add_be32(nl, NFTA_HOOK_PRIORITY, PRIORITY_DSTNAT);
    netlink_nest_end(nl, hook);
    netlink_add_text(nl, NFTA_CHAIN_TYPE, "nat");
}

static void add_set(struct netlink *nl, const uint16_t *ports, size_t n)
{
    size_t list;

    begin(nl, NFT_MSG_NEWSET, NLM_F_CREATE);
    netlink_add_text(nl, NFTA_SET_TABLE, TABLE);
    netlink_add_text(nl, NFTA_SET_NAME, SET);
    netlink_add_be32(nl, NFTA_SET_KEY_TYPE, TYPE_INET_SERVICE);
    netlink_add_be32(nl, NFTA_SET_KEY_LEN, sizeof(uint16_t));
    netlink_add_be32(nl, NFTA_SET_ID, SET_ID);
    begin(nl, NFT_MSG_NEWSETELEM, NLM_F_CREATE);
    netlink_add_text(nl, NFTA_SET_ELEM_LIST_TABLE, TABLE);
    netlink_add_text(nl, NFTA_SET_ELEM_LIST_SET, SET);
    list = netlink_nest(nl, NFTA_SET_ELEM_LIST_ELEMENTS);
    for (size_t i = 0; i < n; i++) {
        uint16_t wire = htons(ports[i]);
        size_t element = netlink_nest(nl, NFTA_LIST_ELEM);

        add_value(nl, NFTA_SET_ELEM_KEY, &wire, sizeof wire);
        netlink_nest_end(nl, element);
    }
    netlink_nest_end(nl, list);
}

void redirect_write(struct netlink *nl, const uint16_t *ports, size_t n)
{
    static const struct in6_addr loopback = IN6ADDR_LOOPBACK_INIT;
    static const uint8_t loopback_net = IN_LOOPBACKNET;
    const uint32_t names = htonl(EGRESS_NAMES_ADDRESS);

    around(nl, NFNL_MSG_BATCH_BEGIN);
    begin(nl, NFT_MSG_NEWTABLE, NLM_F_CREATE);
    netlink_add_text(nl, NFTA_TABLE_NAME, TABLE);
    add_set(nl, ports, n);
    add_chain(nl);
    leave_alone(nl, NFPROTO_IPV4, IPV4_DESTINATION, &loopback_net, sizeof loopback_net);
    leave_alone(nl, NFPROTO_IPV6, IPV6_DESTINATION, &loopback, sizeof loopback);
    leave_alone(nl, NFPROTO_IPV4, IPV4_DESTINATION, &names, sizeof names);
    lead_to_egress(nl);
    around(nl, NFNL_MSG_BATCH_END);
}
