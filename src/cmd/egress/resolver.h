/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Looking names up outside, with the resolver of this machine: /etc/hosts, resolv.conf and whatever
 * else it is told to ask.
 *
 * That is a library that opens files and parses what strangers answer, and it blocks. So it runs in
 * a process of its own (resolver-child.c), which is given names and gives addresses, and is
 * replaced by its parent when it falls. */

#include "cmd/egress/ceilings.h"
#include "cmd/egress/loop.h"
#include "lib/net/addr.h"

#define RESOLVER_NAME_BYTES 256

/* What the two say to each other, one message each, both of one build. */
struct resolver_question {
    uint64_t serial;
    char name[RESOLVER_NAME_BYTES];
};

struct resolver_answer {
    uint64_t serial;
    uint32_t n;
    int32_t failed; /* EAI_*, or 0 */
    struct net_addr addrs[ADDRESSES_MAX];
};

/* Starts it: the pid of its parent process, and our end of the pair. Before the walls. */
int resolver_start(int *out_fd, struct err *err) MUST_CHECK;

/* ---- asking ---- */

/* One lookup on its way; part of its owner. All zero: none. */
struct lookup {
    struct lookup *next;
    struct lookup **at; /* NULL: none */
    uint64_t serial;
    char name[RESOLVER_NAME_BYTES];
    /* n addresses, or 0 and why. Not called after lookup_cancel(). */
    void (*on)(struct lookup *lookup, const struct net_addr *addrs, size_t n, const char *why);
};

struct kept_name {
    char name[RESOLVER_NAME_BYTES];
    uint64_t until_ms;
    uint32_t n;
    struct net_addr addrs[ADDRESSES_MAX];
};

struct resolver {
    struct loop *loop;
    struct watch watch;
    struct lookup *waiting;
    size_t waiting_n;
    uint64_t serial;
    struct kept_name *kept; /* LOOKUP_KEPT of them, by hash of the name */
};

int resolver_init(struct resolver *resolver, struct loop *loop, int fd, struct err *err) MUST_CHECK;

/* Calls back later, or at once when the name was looked up a moment ago; the owner bounds the wait.
 * -1: too many are waiting, or the resolver is gone. */
int resolver_ask(struct resolver *resolver, struct lookup *lookup, const char *name,
                 struct err *err) MUST_CHECK;
void lookup_cancel(struct resolver *resolver, struct lookup *lookup);
