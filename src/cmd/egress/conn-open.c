/* SPDX-License-Identifier: Apache-2.0 */

/* From a host to a connection: judged, looked up, each address judged, dialled.
 *
 * The order is the promise: nothing is looked up for who may not connect, and the address that was
 * judged is the one that is dialled. */

#include "cmd/egress/conn-private.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "cmd/egress/first.h"
#include "cmd/egress/intercept.h"
#include "cmd/egress/pool.h"

/* ---- where to ---- */

bool conn_aim(struct conn *conn, struct str host, uint16_t port, enum net_via via)
{
    struct net_host read;

    net_host_read(host, &read);
    conn->port = port;
    conn->via = via;
    conn->has_dialled = false;
    if (read.kind == NET_HOST_BAD || read.is_odd || read.n >= sizeof conn->host) {
        /* As it was said, for the refusal: the rules read it again and say why. */
        (void)snprintf(conn->host, sizeof conn->host, "%.*s", (int)(host.n < 200 ? host.n : 200),
                       host.p);
        return read.kind != NET_HOST_BAD && host.n < sizeof conn->host;
    }
    (void)snprintf(conn->host, sizeof conn->host, "%.*s", (int)read.n, read.text);
    return true;
}

enum step conn_open_fixed(struct conn *conn)
{
    struct net_knock knock = conn_knock(conn);
    struct net_verdict verdict;

    conn->fixed = true;
    if (local_is_meant(conn) && conn->via == NET_VIA_TRANSPARENT) {
        conn->is_local = true;
        conn->phase = PHASE_FIRST;
        return STEP_AGAIN;
    }
    net_rules_connect(conn->sandbox->rules, &knock, &conn->way);
    if (conn->way.kind != NET_TUNNEL && conn->way.kind != NET_INSPECT)
        return conn_refuse(conn, &conn->way);
    if (conn->way.kind == NET_TUNNEL && !conn_may_spend(conn, &conn->way, &conn->purse, &verdict))
        return conn_refuse(conn, &verdict);
    sandbox_count(conn->sandbox, conn->way.entry, &(struct counts){.connections = 1});
    /* Whoever was redirected waits for nothing: what it says comes first, unless it may say
     * anything. */
    if (conn->herald == HERALD_NONE && conn->way.kind == NET_INSPECT) {
        conn->phase = PHASE_FIRST;
        return STEP_AGAIN;
    }
    conn->phase = PHASE_LOOKUP;
    conn->looked_up = false;
    return STEP_AGAIN;
}

static struct pool_key key_of(struct conn *conn)
{
    return (struct pool_key){conn->sandbox, conn->way.entry, conn->host, conn->port, conn->secure};
}

static void on_server(struct watch *watch, uint32_t events);

enum step conn_open_exchange(struct conn *conn)
{
    struct pool_key key = key_of(conn);

    if (conn->server.watch.fd >= 0 && !conn->server.ended && !conn->server.broken)
        return conn_opened(conn);
    side_close(&conn->hub->loop, &conn->server, false);
    conn_count(conn);
    peer_leave(conn);
    conn->counted_in = conn->counted_out = 0;
    if (!conn->exchange->has_retried && pool_get(&key, &conn->dialled, &conn->server)) {
        conn->server.watch.on = on_server;
        conn->counted_in = conn->server.bytes_in;
        conn->counted_out = conn->server.bytes_out;
        conn->has_dialled = true;
        conn->reused = true;
        return conn_opened(conn);
    }
    conn->phase = PHASE_LOOKUP;
    conn->looked_up = false;
    return STEP_AGAIN;
}

/* ---- its addresses ---- */

static void on_found(struct lookup *lookup, const struct net_addr *addrs, size_t n, const char *why)
{
    struct conn *conn = (struct conn *)((char *)lookup - offsetof(struct conn, lookup));

    (void)why;
    conn->looked_up = true;
    conn->found_n = n;
    if (n)
        memcpy(conn->found, addrs, n * sizeof *addrs);
    if (conn->driving)
        return;
    conn->sandbox->lookup_n--;
    conn_drive(conn);
}

static enum step ask_resolver(struct conn *conn)
{
    struct err err;

    if (conn->lookup.at)
        return STEP_WAIT;
    conn->lookup.on = on_found;
    if (conn->sandbox->lookup_n >= LOOKUPS_SANDBOX_MAX ||
        resolver_ask(&conn->hub->resolver, &conn->lookup, conn->host, &err) < 0)
        return conn_fail(conn, 503, "EGRESS_BUSY", "too many names are being looked up; try again");
    if (conn->looked_up)
        return STEP_AGAIN;
    conn->sandbox->lookup_n++;
    conn_wait(conn, LOOKUP_MS);
    return STEP_WAIT;
}

/* Keeps those that may be dialled. The last refusal speaks for all when there is none. */
static enum step judge_addresses(struct conn *conn)
{
    struct net_knock knock = conn_knock(conn);
    struct net_verdict verdict = {0};
    struct err err;
    size_t kept = 0;

    if (own_look(&conn->hub->own, &err) < 0)
        return conn_fail(conn, 503, "EGRESS_OWN_ADDRESSES", err.text);
    for (size_t i = 0; i < conn->found_n; i++) {
        net_rules_address(conn->sandbox->rules, &knock, &conn->found[i], conn->hub->own.addrs,
                          conn->hub->own.n, &verdict);
        if (verdict.kind == NET_ALLOW)
            conn->found[kept++] = conn->found[i];
    }
    conn->found_n = kept;
    if (kept == 0)
        return conn_refuse(conn, &verdict);
    conn->found_at = 0;
    conn->dial_ends_ms = conn->hub->loop.now_ms + DIAL_MS;
    conn->phase = PHASE_DIAL;
    return STEP_AGAIN;
}

enum step step_lookup(struct conn *conn)
{
    struct net_host host;

    if (!conn_has_left(conn))
        return conn_refuse_spent(conn);
    if (net_host_is_sandbox(str_of(conn->host)))
        return peer_admit(conn);
    if (!conn->looked_up) {
        net_host_read(str_of(conn->host), &host);
        if (host.kind == NET_HOST_ADDRESS) {
            conn->found[0] = host.addr;
            conn->found_n = 1;
        } else {
            enum step step = ask_resolver(conn);

            if (!conn->looked_up)
                return step;
        }
        conn->looked_up = true;
    }
    if (conn->found_n == 0)
        return conn_fail(conn, 502, "EGRESS_NAME_NOT_FOUND",
                         "the host was allowed, but its name has no address");
    return judge_addresses(conn);
}

/* ---- dialling ---- */

static socklen_t socket_address(const struct net_addr *addr, uint16_t port,
                                struct sockaddr_storage *out)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};

    if (net_addr_is_v4(addr)) {
        memcpy(&in.sin_addr, addr->b + 12, 4);
        memcpy(out, &in, sizeof in);
        return sizeof in;
    }
    memcpy(&in6.sin6_addr, addr->b, sizeof addr->b);
    memcpy(out, &in6, sizeof in6);
    return sizeof in6;
}

/* Watched for its outcome; false: not this one. Takes the descriptor. */
static bool dial_with(struct conn *conn, int fd, const struct net_addr *addr)
{
    struct sockaddr_storage to = {0};
    socklen_t n = socket_address(addr, conn->port, &to);
    const int yes = 1;
    struct err err;

    side_open(&conn->server, fd, on_server);
    conn->server.meters = conn_meters(conn);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    if ((connect(fd, (struct sockaddr *)&to, n) < 0 && errno != EINPROGRESS) ||
        loop_watch(&conn->hub->loop, &conn->server.watch, EPOLLOUT, &err) < 0) {
        side_close(&conn->hub->loop, &conn->server, false);
        return false;
    }
    conn->dialled = *addr;
    return true;
}

static bool dial(struct conn *conn, const struct net_addr *addr)
{
    int family = net_addr_is_v4(addr) ? AF_INET : AF_INET6;
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    return fd >= 0 && dial_with(conn, fd, addr);
}

/* Its own 127.0.0.1, by a socket of its own namespace. */
static enum step dial_peer(struct conn *conn)
{
    static const unsigned char loopback[4] = {127, 0, 0, 1};
    const struct net_addr addr = net_addr_v4(loopback);
    struct sandbox *peer = conn->peer;
    enum step step;
    int fd = -1;

    step = conn->found_at < conn->found_n ? peer_socket(conn, &fd) : STEP_CLOSE;
    if (step == STEP_WAIT)
        return STEP_WAIT;
    if (step == STEP_AGAIN && dial_with(conn, fd, &addr)) {
        conn_wait(conn, DIAL_ONE_MS);
        peer_next(peer);
        return STEP_WAIT;
    }
    peer_next(peer);
    return conn_fail(conn, 502, "EGRESS_UNREACHABLE",
                     "the other sandbox lets this in, but nothing answers at its port");
}

enum step step_dial(struct conn *conn)
{
    uint64_t now = conn->hub->loop.now_ms;

    if (conn->server.watch.fd >= 0)
        return STEP_WAIT;
    if (conn->peer)
        return dial_peer(conn);
    for (; conn->found_at < conn->found_n && now < conn->dial_ends_ms; conn->found_at++) {
        conn_count(conn);
        conn->counted_in = conn->counted_out = 0;
        if (dial(conn, &conn->found[conn->found_at])) {
            uint64_t left = conn->dial_ends_ms - now;

            conn_wait(conn, left < DIAL_ONE_MS ? left : DIAL_ONE_MS);
            return STEP_WAIT;
        }
    }
    return conn_fail(conn, 502, "EGRESS_UNREACHABLE",
                     "the host was allowed, but none of its addresses can be reached");
}

static void end_dial(struct conn *conn, uint32_t events)
{
    int failed = 0;
    socklen_t n = sizeof failed;
    enum step step;

    if (getsockopt(conn->server.watch.fd, SOL_SOCKET, SO_ERROR, &failed, &n) < 0 || failed ||
        !(events & EPOLLOUT)) {
        side_close(&conn->hub->loop, &conn->server, false);
        conn->found_at++;
        conn_drive(conn);
        return;
    }
    conn->has_dialled = !conn->peer; /* a sandbox is no address */
    conn->reused = false;
    conn->driving = true;
    step = conn_opened(conn);
    conn->driving = false;
    if (step == STEP_CLOSE)
        conn_close(conn);
    else
        conn_drive(conn);
}

static void on_server(struct watch *watch, uint32_t events)
{
    struct conn *conn = (struct conn *)((char *)watch - offsetof(struct conn, server.watch));

    if (conn->phase == PHASE_DIAL) {
        end_dial(conn, events);
        return;
    }
    if (events & EPOLLIN && tunnel_pipes(conn, &conn->server)) {
        /* the step moves them */
    } else if (events & EPOLLIN) {
        (void)side_fill(&conn->server);
    } else if (events & (EPOLLERR | EPOLLHUP)) {
        conn_hang(conn, &conn->server);
    }
    conn_drive(conn);
}

/* ---- the way is open ---- */

static const char established[] = "HTTP/1.1 200 Connection established\r\n\r\n";

static bool herald(struct conn *conn)
{
    char reply[SOCKS_REPLY_BYTES];
    enum herald whom = conn->herald;

    conn->herald = HERALD_NONE;
    switch (whom) {
    case HERALD_CONNECT:
        return bytes_put(&conn->client.out, established, sizeof established - 1) ==
               sizeof established - 1;
    case HERALD_SOCKS:
        socks_reply_write(SOCKS_DONE, reply);
        return bytes_put(&conn->client.out, reply, sizeof reply) == sizeof reply;
    case HERALD_NONE:
        break;
    }
    return true;
}

static void tell_opened(struct conn *conn)
{
    struct event event = {.class = EVENT_CONNECTION,
                          .allowed = true,
                          .host = str_of(conn->host),
                          .port = conn->port,
                          .rule = conn->way.entry,
                          .binary = conn_binary(conn)};

    sandbox_event(conn->sandbox, &event);
}

enum step conn_opened(struct conn *conn)
{
    if (conn->secure && !conn->server.tls)
        return intercept_dialled(conn);
    conn_pay_from_here(conn);
    if (conn->exchange)
        return secret_put(conn);
    if (!herald(conn))
        return STEP_CLOSE;
    (void)side_flush(
        &conn->client); /* it waits for this; nothing passes before it is written down */
    tell_opened(conn);
    if (conn->way.kind == NET_TUNNEL)
        return tunnel_begin(conn);
    conn->phase = PHASE_FIRST;
    conn_wait(conn, FIRST_MS);
    return STEP_AGAIN;
}
