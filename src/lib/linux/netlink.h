/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Requests to the kernel over netlink, several in one buffer, each with its answer awaited.
 *
 *     struct netlink nl = NETLINK(4096);
 *     netlink_begin(&nl, RTM_NEWROUTE, NLM_F_CREATE, &head, sizeof head);
 *     netlink_add(&nl, RTA_OIF, &lo, sizeof lo);
 *     if (netlink_exchange(&nl, fd, "the route", err) < 0) ...
 *
 * Writing never fails by itself: what does not fit makes the exchange fail. */

#include "lib/base/buf.h"

struct netlink {
    struct buf out;
    size_t at;      /* of the message that is being written */
    uint32_t asked; /* messages that are answered */
    bool full;
};

#define NETLINK(ceiling) ((struct netlink){.out = BUF(ceiling)})
void netlink_done(struct netlink *nl);
#define AUTO_NETLINK __attribute__((cleanup(netlink_done)))

/* One that is answered; and one that is not, as those around a batch are. */
void netlink_begin(struct netlink *nl, uint16_t type, uint16_t flags, const void *head, size_t n);
void netlink_begin_quiet(struct netlink *nl, uint16_t type, const void *head, size_t n);

/* Attributes of the message begun last. */
void netlink_add(struct netlink *nl, uint16_t type, const void *bytes, size_t n);
void netlink_add_text(struct netlink *nl, uint16_t type, const char *text); /* with its NUL */
void netlink_add_be32(struct netlink *nl, uint16_t type, uint32_t value);   /* as nftables has it */
/* One that holds others: where it begins, for its end. */
size_t netlink_nest(struct netlink *nl, uint16_t type);
void netlink_nest_end(struct netlink *nl, size_t at);

/* A socket of the current network namespace. */
int netlink_open(int protocol, int *out, struct err *err) MUST_CHECK;
/* Sends all of it. 0: every message was answered with success. -1: err->os is what the kernel
 * minded first. */
int netlink_exchange(struct netlink *nl, int fd, const char *what, struct err *err) MUST_CHECK;
