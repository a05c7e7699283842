/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a sandbox has used of what its rules give it: requests, bytes, and how fast. Rules declare
 * ("budget" and "rate" of an endpoint), this counts. One for each sandbox; it outlives a change of
 * rules, and an endpoint that is still there goes on where it was. */

#include "lib/egress/rules.h"

struct net_budget;

struct net_budget *net_budget_new(void);
void net_budget_free(struct net_budget *budget);
AUTO_TYPE(net_budget)

/* One request (of a tunnel: one connection) by the endpoint that a verdict named. ALLOW, and it is
 * counted; or DENY, and it is not: also when no more bytes may pass. now_ms is of a clock that
 * never goes back. */
void net_budget_request(struct net_budget *budget, const struct net_rules *rules,
                        const struct net_verdict *by, uint64_t now_ms, struct net_verdict *out);

/* Out of which the bytes of a request, or of a tunnel, are paid: good for as long as that lasts,
 * whatever becomes of the rules meanwhile. All zero, nothing may pass. */
struct net_purse {
    bool is_open;       /* there is no limit */
    uint64_t counter;   /* else: its number, from 1, and */
    uint64_t limit_out; /* 0: none */
    uint64_t limit_in;
};

void net_budget_purse(struct net_budget *budget, const struct net_rules *rules,
                      const struct net_verdict *by, struct net_purse *out);

/* Bytes that are about to pass, both ways; 0 for none. DENY when they would be too many: then they
 * must not pass, and the connection ends. The verdict names no entry. */
void net_budget_bytes(struct net_budget *budget, const struct net_purse *purse, uint64_t bytes_out,
                      uint64_t bytes_in, struct net_verdict *out);

/* How many bytes may still pass before net_budget_bytes() would deny; UINT64_MAX: no limit. */
void net_budget_left(const struct net_budget *budget, const struct net_purse *purse,
                     uint64_t *bytes_out, uint64_t *bytes_in);
