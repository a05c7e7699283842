/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The way out of a sandbox, as far as box makes it (docs/decisions/0032). */

#include "lib/egress/handover.h"
#include "lib/linux/netlink.h"

/* box-redirect.c: the whole batch; at most BOX_EGRESS_PORTS_MAX ports. */
#define REDIRECT_BYTES_MAX 65536
void redirect_write(struct netlink *nl, const uint16_t *ports, size_t n);

/* box-egress.c: in the current network namespace, whose `lo` is up: routes that make every address
 * ours, the redirect, and the listeners. The descriptors are the caller's. */
int egress_build(const uint16_t *ports, size_t n, int fds[HANDOVER_FD_COUNT],
                 struct err *err) MUST_CHECK;
/* Over the pair; ours are closed in any case. */
int egress_hand_over(int pair_fd, int fds[HANDOVER_FD_COUNT], struct err *err) MUST_CHECK;
