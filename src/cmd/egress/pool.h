/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Connections to servers that were used and can be used again: by the same sandbox, under the same
 * rule, for the same host and port, and by nobody else. One that says anything while it waits, or
 * ends, is closed. */

#include "cmd/egress/hub.h"
#include "cmd/egress/side.h"

struct pool_key {
    struct sandbox *sandbox;
    const char *rule;
    const char *host;
    uint16_t port;
    bool tls;
};

/* Takes the side, which is left empty, or closes it. `dialled` is its other end. */
void pool_put(const struct pool_key *key, const struct net_addr *dialled, struct side *side);
/* The latest one that fits; false: there is none. */
bool pool_get(const struct pool_key *key, struct net_addr *dialled, struct side *out);
/* All of a sandbox. */
void pool_drop(struct hub *hub, struct sandbox *sandbox);
