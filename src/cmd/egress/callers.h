/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Who called connect: what box said of each socket, until a connection claims it.
 *
 * Box speaks before the call goes on, so whoever accepts a connection finds its caller here, or
 * there is none: then it is refused. A socket that was connected twice by different programs has
 * none that could be named, and is refused too. */

#include "cmd/egress/loop.h"
#include "lib/egress/handover.h"
#include "lib/egress/rules.h"

struct callers;

/* One caller as the rules see it; owns its texts. */
struct caller {
    struct net_caller who;
    uint32_t pid;
};

struct callers *callers_new(void);
void callers_free(struct callers *callers);

void callers_add(struct callers *callers, const struct handover_caller *said, uint64_t now_ms);
/* The caller's to free with caller_free(); NULL when there is none that could be named. */
struct caller *callers_claim(struct callers *callers, uint64_t cookie, uint64_t now_ms);
void caller_free(struct caller *caller);

/* ---- whose connection it is ---- */

struct tuple {
    int family; /* AF_INET, AF_INET6 */
    unsigned char from[16];
    unsigned char to[16];
    uint16_t from_port;
    uint16_t to_port;
};

/* The cookie of the socket inside that has these ends, looked up through a NETLINK_SOCK_DIAG
 * socket of its namespace. -1: there is none, or the kernel does not say. */
int tuple_cookie(int diag_fd, const struct tuple *tuple, uint64_t *out, struct err *err) MUST_CHECK;
