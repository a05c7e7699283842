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
 * counted; or DENY, and it is not. now_ms is of a clock that never goes back. */
void net_budget_request(struct net_budget *budget, const struct net_rules *rules,
                        const struct net_verdict *by, uint64_t now_ms, struct net_verdict *out);

/* Bytes that are about to pass, both ways; 0 for none. DENY when they would be too many: then they
 * must not pass, and the connection ends. */
void net_budget_bytes(struct net_budget *budget, const struct net_rules *rules,
                      const struct net_verdict *by, uint64_t bytes_out, uint64_t bytes_in,
                      struct net_verdict *out);

/* How many bytes may still pass before net_budget_bytes() would deny; UINT64_MAX: no limit. */
void net_budget_left(struct net_budget *budget, const struct net_rules *rules,
                     const struct net_verdict *by, uint64_t *bytes_out, uint64_t *bytes_in);
