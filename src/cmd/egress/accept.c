/* SPDX-License-Identifier: Apache-2.0 */

/* Connections as they come in: whose they are, where they meant to go, and what happens when there
 * is no descriptor left for one. */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netfilter_ipv4.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "cmd/egress/conn.h"

#define IP6T_ORIGINAL_DST                                                                          \
    80 /* <linux/netfilter_ipv6/ip6_tables.h> does not go with the C library */

/* ---- where it comes from and was going ---- */

static bool put_end(const struct sockaddr_storage *addr, unsigned char out[16], uint16_t *port)
{
    struct sockaddr_in in;
    struct sockaddr_in6 in6;

    if (addr->ss_family == AF_INET) {
        memcpy(&in, addr, sizeof in);
        memcpy(out, &in.sin_addr, 4);
        *port = ntohs(in.sin_port);
        return true;
    }
    if (addr->ss_family != AF_INET6)
        return false;
    memcpy(&in6, addr, sizeof in6);
    memcpy(out, &in6.sin6_addr, 16);
    *port = ntohs(in6.sin6_port);
    return true;
}

/* Before the redirect, as the socket inside has it. Without one it is where it arrived. */
static bool destination(const struct entrance *entrance, int fd, struct sockaddr_storage *out)
{
    socklen_t n = sizeof *out;

    if (entrance->kind == HANDOVER_CATCH_ALL_4 &&
        getsockopt(fd, SOL_IP, SO_ORIGINAL_DST, out, &n) == 0)
        return true;
    if (entrance->kind == HANDOVER_CATCH_ALL_6 &&
        getsockopt(fd, SOL_IPV6, IP6T_ORIGINAL_DST, out, &n) == 0)
        return true;
    n = sizeof *out;
    return getsockname(fd, (struct sockaddr *)out, &n) == 0;
}

static bool tuple_of(const struct entrance *entrance, int fd, const struct sockaddr_storage *from,
                     struct tuple *out)
{
    struct sockaddr_storage to = {0};

    *out = (struct tuple){.family = from->ss_family};
    return destination(entrance, fd, &to) && to.ss_family == from->ss_family &&
           put_end(from, out->from, &out->from_port) && put_end(&to, out->to, &out->to_port);
}

/* ---- whose it is ---- */

/* What box said comes first: it spoke before the connection was made. False: box is gone. */
static bool find_caller(struct sandbox *sandbox, const struct tuple *tuple, struct caller **out)
{
    uint64_t cookie;
    struct err err;

    *out = NULL;
    if (!sandbox_hear(sandbox))
        return false;
    if (tuple_cookie(sandbox->diag_fd, tuple, &cookie, &err) == 0)
        *out = callers_claim(sandbox->callers, cookie, sandbox->hub->loop.now_ms);
    return true;
}

/* ---- too many ---- */

static void reset(int fd)
{
    const struct linger at_once = {.l_onoff = 1};

    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    (void)close(fd);
}

static void count_shed(struct sandbox *sandbox)
{
    sandbox_refuse(sandbox, "",
                   &(struct refusal){
                       .host = {"", 0},
                         .reason = "EGRESS_BUSY"
    });
}

/* Whether somebody knocked, who was told no. */
static bool turn_away(struct entrance *entrance)
{
    int fd = accept4(entrance->watch.fd, NULL, NULL, SOCK_CLOEXEC);

    if (fd < 0)
        return false;
    reset(fd);
    count_shed(entrance->sandbox);
    return true;
}

/* The reserve is given up for a moment, so that who knocks hears a no instead of nothing. Then the
 * listener rests until a connection ends: waiting for one that cannot be served would only burn
 * time. */
static void shed(struct entrance *entrance)
{
    struct hub *hub = entrance->sandbox->hub;
    struct err err;

    if (hub->reserve_fd >= 0)
        (void)close(TAKE_FD(hub->reserve_fd));
    for (unsigned i = 0; i < ACCEPTS_AT_ONCE && turn_away(entrance); i++)
        continue;
    hub->reserve_fd = dup(hub->lock_fd);
    if (loop_watch(&hub->loop, &entrance->watch, 0, &err) == 0) /* else it is asked at once */
        loop_after(&hub->loop, &hub->shed, SHED_PAUSE_MS);
}

void entrances_resume(struct hub *hub)
{
    struct err err;

    for (struct sandbox *s = hub->sandboxes; s; s = s->next)
        for (unsigned i = 0; s->has_listeners && i < HANDOVER_DIAG; i++)
            if (loop_watch(&hub->loop, &s->entrances[i].watch, EPOLLIN, &err) < 0)
                loop_after(&hub->loop, &hub->shed, SHED_PAUSE_MS);
    for (struct sandbox *s = hub->sandboxes; s; s = s->next)
        if (s->has_listeners && loop_watch(&hub->loop, &s->mint.watch, EPOLLIN, &err) < 0)
            loop_after(&hub->loop, &hub->shed, SHED_PAUSE_MS);
}

void entrances_have_room(struct hub *hub)
{
    if (!hub->shed.at)
        return;
    loop_cancel(&hub->loop, &hub->shed);
    entrances_resume(hub);
}

/* ---- one after the other ---- */

/* False: the sandbox is gone, and its entrances with it. */
static bool take(struct entrance *entrance, int fd, const struct sockaddr_storage *from)
{
    struct sandbox *sandbox = entrance->sandbox;
    struct caller *caller = NULL;
    struct tuple tuple;
    const int yes = 1;

    if (sandbox->conn_n >= SANDBOX_CONNECTIONS_MAX ||
        sandbox->hub->conn_n >= sandbox->hub->conn_max || !tuple_of(entrance, fd, from, &tuple)) {
        reset(fd);
        count_shed(sandbox);
        return true;
    }
    if (entrance->kind != HANDOVER_NAMES_TCP && !find_caller(sandbox, &tuple, &caller)) {
        reset(fd);
        sandbox_close(sandbox);
        return false;
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    conn_open(entrance, fd, &tuple, caller);
    return true;
}

void entrance_accept(struct watch *watch, uint32_t events)
{
    struct entrance *entrance =
        (struct entrance *)((char *)watch - offsetof(struct entrance, watch));

    (void)events;
    for (unsigned i = 0; i < ACCEPTS_AT_ONCE; i++) {
        struct sockaddr_storage from = {0};
        socklen_t n = sizeof from;
        int fd = accept4(watch->fd, (struct sockaddr *)&from, &n, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM))
            shed(entrance);
        if (fd < 0 || !take(entrance, fd, &from))
            return;
    }
}
