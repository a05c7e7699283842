/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The addresses of this machine, which no sandbox may reach through us. The kernel tells when they
 * change. */

#include "cmd/egress/ceilings.h"
#include "lib/base/err.h"
#include "lib/net/addr.h"

struct own {
    int fd; /* NETLINK_ROUTE */
    bool known;
    uint32_t serial;
    size_t n;
    struct net_addr addrs[OWN_ADDRESSES_MAX];
};

int own_open(struct own *own, struct err *err) MUST_CHECK;
/* What they are now. -1: they cannot be told, so nothing can be dialled. */
int own_look(struct own *own, struct err *err) MUST_CHECK;
