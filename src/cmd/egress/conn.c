/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/egress/conn-private.h"

#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "cmd/egress/intercept.h"
#include "cmd/egress/wanted.h"
#include "lib/base/clock.h"
#include "lib/base/memory.h"

#define ROUNDS_MAX 64 /* of moving and sending, before others get their turn */

/* ---- its life ---- */

static void on_client(struct watch *watch, uint32_t events);
static void on_deadline(struct timer *timer);

struct conn *conn_next(struct conn *conn)
{
    return conn->next;
}

struct str conn_binary(const struct conn *conn)
{
    return conn->caller ? conn->caller->who.exe.path : (struct str){"", 0};
}

struct net_knock conn_knock(const struct conn *conn)
{
    static const struct net_caller nobody;

    return (struct net_knock){.host = str_of(conn->host),
                              .port = conn->port,
                              .via = conn->via,
                              .caller = conn->caller ? &conn->caller->who : &nobody,
                              .dialled = conn->has_dialled ? &conn->dialled : NULL};
}

void conn_wait(struct conn *conn, uint64_t ms)
{
    uint64_t now = conn->hub->loop.now_ms;
    uint64_t left = conn->ends_ms > now ? conn->ends_ms - now : 0;

    loop_after(&conn->hub->loop, &conn->timer, ms < left ? ms : left);
}

void conn_count(struct conn *conn)
{
    struct counts more = {.bytes_out = conn->server.bytes_out - conn->counted_out,
                          .bytes_in = conn->server.bytes_in - conn->counted_in};

    conn->counted_out = conn->server.bytes_out;
    conn->counted_in = conn->server.bytes_in;
    if (more.bytes_out || more.bytes_in)
        sandbox_count(conn->sandbox, conn->way.entry ? conn->way.entry : "", &more);
    if (conn->peer && (more.bytes_out || more.bytes_in)) /* what went out here came in there */
        sandbox_count(conn->peer, conn->peer_rule,
                      &(struct counts){.bytes_out = more.bytes_in, .bytes_in = more.bytes_out});
}

static void stop_lookup(struct conn *conn)
{
    if (!conn->lookup.at)
        return;
    conn->sandbox->lookup_n--;
    lookup_cancel(&conn->hub->resolver, &conn->lookup);
}

static void unlink_conn(struct conn *conn)
{
    *conn->at = conn->next;
    if (conn->next)
        conn->next->at = conn->at;
    conn->sandbox->conn_n--;
    conn->hub->conn_n--;
}

static void close_with(struct conn *conn, bool reset)
{
    struct hub *hub = conn->hub;

    conn_count(conn);
    peer_leave(conn);
    local_done(conn);
    loop_cancel(&hub->loop, &conn->timer);
    stop_lookup(conn);
    ws_free(conn);
    exchange_free(conn->exchange);
    values_free(conn);
    tunnel_free(conn->tunnel);
    intercept_free(conn->intercept);
    side_close(&hub->loop, &conn->client, reset);
    side_close(&hub->loop, &conn->server, reset);
    unlink_conn(conn);
    caller_free(conn->caller);
    free(conn);
    entrances_have_room(hub);
}

/* Whoever is cut off hears a reset: an end would look like the server's word. */
void conn_close(struct conn *conn)
{
    close_with(conn, true);
}

static struct conn *conn_new(struct entrance *entrance, int fd, struct caller *caller)
{
    struct sandbox *sandbox = entrance->sandbox;
    struct conn *conn = xcalloc(1, sizeof *conn);

    conn->sandbox = sandbox;
    conn->hub = sandbox->hub;
    conn->caller = caller;
    conn->server.watch.fd = -1;
    conn->timer.on = on_deadline;
    conn->ends_ms = conn->hub->loop.now_ms + CONNECTION_MS;
    side_open(&conn->client, fd, on_client);
    conn->next = sandbox->conns;
    conn->at = &sandbox->conns;
    if (conn->next)
        conn->next->at = &conn->next;
    sandbox->conns = conn;
    sandbox->conn_n++;
    conn->hub->conn_n++;
    return conn;
}

/* A connection that was redirected is meant for the name whose address it dialled, or for that
 * address. */
static bool aim_redirected(struct conn *conn, const struct tuple *tuple)
{
    char text[NET_ADDR_TEXT_BYTES];
    struct net_addr addr;
    const char *name = NULL;

    if (tuple->family == AF_INET && names_is_ours(tuple->to)) {
        name = conn->sandbox->names ? names_find(conn->sandbox->names, tuple->to) : NULL;
        if (!name)
            return false; /* of an earlier time, or made up */
        return conn_aim(conn, str_of(name), tuple->to_port, NET_VIA_TRANSPARENT);
    }
    if (tuple->family == AF_INET)
        addr = net_addr_v4(tuple->to);
    else
        memcpy(addr.b, tuple->to, sizeof addr.b);
    return conn_aim(conn, net_addr_text(&addr, text), tuple->to_port, NET_VIA_TRANSPARENT);
}

void conn_open(struct entrance *entrance, int fd, const struct tuple *tuple, struct caller *caller)
{
    struct conn *conn = conn_new(entrance, fd, caller);
    enum step step = STEP_WAIT;

    conn->phase = entrance->kind == HANDOVER_NAMES_TCP ? PHASE_NAMES : PHASE_FIRST;
    conn_wait(conn, FIRST_MS);
    (void)side_fill(&conn->client); /* most have spoken by now: that saves waiting to be told so */
    if (entrance->kind == HANDOVER_CATCH_ALL_4 || entrance->kind == HANDOVER_CATCH_ALL_6) {
        conn->driving = true;
        step = aim_redirected(conn, tuple)
                   ? conn_open_fixed(conn)
                   : conn_fail(conn, 403, "EGRESS_ADDRESS", "no name was given this address");
        conn->driving = false;
    }
    if (step == STEP_CLOSE)
        conn_close(conn);
    else
        conn_drive(conn);
}

void conn_judge_again(struct conn *conn)
{
    struct net_knock knock = conn_knock(conn);

    if (!conn->fixed && !conn->exchange)
        return; /* waits for its next request, which is judged */
    if (conn->phase == PHASE_MESSAGES) {
        ws_judge_again(conn);
        return;
    }
    if (conn->is_local || conn->phase == PHASE_LOCAL)
        return; /* with us; it may wait for just this */
    if (net_rules_still_allows(conn->sandbox->rules, &knock, &conn->way)) {
        net_rules_connect(conn->sandbox->rules, &knock, &conn->way);
        conn_change_rules(conn);
        return;
    }
    conn->way.entry = "";
    sandbox_refuse(conn->sandbox, "",
                   &(struct refusal){.host = str_of(conn->host),
                                     .port = conn->port,
                                     .binary = conn_binary(conn),
                                     .reason = net_reason_code(NET_REASON_LOST)});
    conn_close(conn);
}

/* ---- going on ---- */

/* What still comes is thrown away, until the other side has ended too: with bytes unread a close
 * is a reset, and a reset may overtake our last words. */
static enum step step_last(struct conn *conn)
{
    bytes_done(&conn->client.in);
    if (conn->client.broken || (conn->client.ended && side_is_flushed(&conn->client)))
        return STEP_CLOSE;
    return STEP_WAIT;
}

enum step conn_last(struct conn *conn)
{
    stop_lookup(conn);
    conn_count(conn);
    side_close(&conn->hub->loop, &conn->server, false);
    conn->client.shut = true;
    conn->phase = PHASE_LAST;
    conn_wait(conn, LAST_MS);
    return STEP_AGAIN;
}

static enum step (*const steps[])(struct conn *conn) = {
    [PHASE_FIRST] = step_first,
    [PHASE_SOCKS_GREETING] = step_socks_greeting,
    [PHASE_SOCKS_REQUEST] = step_socks_request,
    [PHASE_NAMES] = step_names,
    [PHASE_HEAD] = step_head,
    [PHASE_HELD] = step_held,
    [PHASE_BOUND] = step_bound,
    [PHASE_HELLO] = step_hello,
    [PHASE_SHAKE_SERVER] = step_shake_server,
    [PHASE_SHAKE_CLIENT] = step_shake_client,
    [PHASE_H2] = step_h2,
    [PHASE_LOOKUP] = step_lookup,
    [PHASE_DIAL] = step_dial,
    [PHASE_REVEAL] = step_reveal,
    [PHASE_EXCHANGE] = step_exchange,
    [PHASE_MESSAGES] = step_messages,
    [PHASE_TUNNEL] = step_tunnel,
    [PHASE_LOCAL] = step_local,
    [PHASE_LAST] = step_last,
};

/* In these the client's bytes are wanted. */
static bool reads_client(const struct conn *conn)
{
    switch (conn->phase) {
    case PHASE_FIRST:
    case PHASE_SOCKS_GREETING:
    case PHASE_SOCKS_REQUEST:
    case PHASE_NAMES:
    case PHASE_HEAD:
    case PHASE_HELD:
    case PHASE_HELLO:
    case PHASE_SHAKE_CLIENT:
    case PHASE_H2:
    case PHASE_MESSAGES:
    case PHASE_TUNNEL:
    case PHASE_LAST:
        return true;
    case PHASE_EXCHANGE:
        return !conn->exchange->body_sent;
    case PHASE_LOCAL:
        return !conn->exchange->local_out.n && !conn->exchange->waits_for[0];
    case PHASE_LOOKUP:
    case PHASE_DIAL:
    case PHASE_SHAKE_SERVER:
    case PHASE_BOUND:
    case PHASE_REVEAL:
        break;
    }
    return false;
}

/* Over TLS a server speaks before it is asked: it hands out what the next connection takes its
 * session up with, once only. Where nobody listened that one would begin from nothing. */
static bool hears_tickets(const struct conn *conn)
{
    return conn->server.tls && (conn->phase == PHASE_SHAKE_CLIENT || conn->phase == PHASE_HEAD);
}

static bool reads_server(const struct conn *conn)
{
    return conn->phase == PHASE_EXCHANGE || conn->phase == PHASE_TUNNEL ||
           conn->phase == PHASE_SHAKE_SERVER || conn->phase == PHASE_H2 ||
           conn->phase == PHASE_MESSAGES || hears_tickets(conn);
}

/* One that is not watched any more is read whenever there is room. */
static bool read_hung(struct conn *conn, struct side *side, bool reads)
{
    if (!side->hung || !reads)
        return false;
    return tunnel_pipes(conn, side) ? tunnel_has_room(conn, side) : side_fill(side);
}

void conn_hang(struct conn *conn, struct side *side)
{
    side->hung = true;
    loop_forget(&conn->hub->loop, &side->watch);
    if (!tunnel_pipes(conn, side))
        (void)side_fill(side);
}

/* The server's side had more to pass than a budget leaves the run. */
static bool is_spent(const struct conn *conn)
{
    return conn->server.is_spent && conn->phase != PHASE_LAST;
}

/* Steps until they wait, then everything is sent that can be; room that this made may let them go
 * on. What is read is at most what came with the event, so this ends. */
static enum step go_on(struct conn *conn)
{
    conn->client.is_due = conn->server.is_due = false;
    for (unsigned round = 0; round < ROUNDS_MAX; round++) {
        enum step step;
        bool moved;

        do
            step = is_spent(conn) ? conn_refuse_spent(conn) : steps[conn->phase](conn);
        while (step == STEP_AGAIN);
        if (step == STEP_CLOSE)
            return step;
        moved = side_flush(&conn->client);
        moved = side_flush(&conn->server) || moved;
        moved = side_decode(&conn->client) || moved;
        moved = side_decode(&conn->server) || moved;
        moved = read_hung(conn, &conn->server, reads_server(conn)) || moved;
        moved = read_hung(conn, &conn->client, reads_client(conn)) || moved;
        if (!moved && !is_spent(conn))
            return STEP_WAIT;
    }
    conn->client.is_due = conn->server.is_due = true;
    return STEP_WAIT;
}

static int arm(struct conn *conn, struct err *err)
{
    struct loop *loop = &conn->hub->loop;

    if (conn->phase == PHASE_TUNNEL)
        return tunnel_arm(conn, err);
    if (side_arm(loop, &conn->client, reads_client(conn), err) < 0)
        return -1;
    if (conn->phase == PHASE_DIAL)
        return 0; /* it waits for its outcome */
    /* Nobody looks at it before the next request, which goes to another. */
    if (hears_tickets(conn) && conn->server.broken && !conn->server.hung)
        conn_hang(conn, &conn->server);
    return side_arm(loop, &conn->server, reads_server(conn), err);
}

void conn_drive(struct conn *conn)
{
    struct err err;
    enum step step;

    conn->driving = true;
    step = go_on(conn);
    conn->driving = false;
    if (step == STEP_CLOSE) {
        /* After our last words an end is an end; anything else was cut off. */
        close_with(conn, conn->phase != PHASE_LAST || !conn->client.has_shut);
        return;
    }
    if (arm(conn, &err) < 0)
        conn_close(conn);
}

static void on_client(struct watch *watch, uint32_t events)
{
    struct conn *conn = (struct conn *)((char *)watch - offsetof(struct conn, client.watch));

    if (events & EPOLLIN && tunnel_pipes(conn, &conn->client)) {
        /* the step moves them */
    } else if (events & EPOLLIN && reads_client(conn)) {
        (void)side_fill(&conn->client);
    } else if (events & EPOLLHUP && !(events & EPOLLERR) &&
               (conn->phase == PHASE_TUNNEL || conn->phase == PHASE_MESSAGES)) {
        conn_hang(conn, &conn->client); /* it has said and heard all; the server may not have */
    } else if (events & (EPOLLERR | EPOLLHUP)) {
        conn_close(conn); /* nobody is left to hear an answer */
        return;
    }
    conn_drive(conn);
}

/* What a connection that took too long is told. */
static enum step give_up(struct conn *conn)
{
    switch (conn->phase) {
    case PHASE_LOOKUP:
        return conn_fail(conn, 504, "EGRESS_LOOKUP_TIMEOUT", "looking the host up took too long");
    case PHASE_DIAL:
        conn->found_at++; /* the next address, if time is left */
        side_close(&conn->hub->loop, &conn->server, false);
        return STEP_AGAIN;
    case PHASE_HEAD:
        if (conn->client.in.n == 0)
            return STEP_CLOSE; /* idle between requests */
        return conn_fail(conn, 408, "EGRESS_HEAD_TIMEOUT",
                         "the request's head did not arrive in time");
    case PHASE_HELD:
        return conn_fail(conn, 408, "EGRESS_BODY_TIMEOUT", "the request's body stopped arriving");
    case PHASE_EXCHANGE:
        if (conn->exchange->answered)
            return STEP_CLOSE;
        return conn_fail(conn, 504, "EGRESS_ANSWER_TIMEOUT", "the server did not answer in time");
    case PHASE_SHAKE_SERVER:
        return intercept_give_up(conn);
    case PHASE_MESSAGES:
        return ws_give_up(conn);
    case PHASE_LOCAL:
        return local_give_up(conn);
    case PHASE_BOUND:
    case PHASE_REVEAL:
        return conn_fail(conn, 504, "VAULT_TIMEOUT", "the keeper of the vault does not answer");
    case PHASE_FIRST:
    case PHASE_SOCKS_GREETING:
    case PHASE_SOCKS_REQUEST:
    case PHASE_NAMES:
    case PHASE_HELLO:
    case PHASE_SHAKE_CLIENT:
    case PHASE_H2:
    case PHASE_TUNNEL:
    case PHASE_LAST:
        break;
    }
    return STEP_CLOSE;
}

static void on_deadline(struct timer *timer)
{
    struct conn *conn = (struct conn *)((char *)timer - offsetof(struct conn, timer));

    if (give_up(conn) == STEP_CLOSE)
        conn_close(conn);
    else
        conn_drive(conn);
}
