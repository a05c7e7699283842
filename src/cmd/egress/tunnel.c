/* SPDX-License-Identifier: Apache-2.0 */

/* Bytes both ways, unseen. The first ones go through memory, since most connections are short and
 * because of a client's first bytes: if they are TLS, the name in them must be the one that was
 * allowed. A direction that carries much gets a pipe, and the kernel moves the rest. */

#include "cmd/egress/conn-private.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "cmd/egress/first.h"
#include "lib/base/memory.h"
#include "lib/tls/tls.h"

/* ---- pipes that are free ---- */

static int kept[PIPES_KEPT][2];
static size_t kept_n;

static bool pipe_get(int out[2])
{
    if (kept_n) {
        memcpy(out, kept[--kept_n], sizeof kept[0]);
        return true;
    }
    if (pipe2(out, O_CLOEXEC | O_NONBLOCK) < 0) {
        out[0] = out[1] = -1;
        return false;
    }
    (void)fcntl(out[1], F_SETPIPE_SZ, (int)PIPE_BYTES); /* a user has so much of it; less does */
    return true;
}

/* One that still has bytes of somebody in it is not given to another. */
static void pipe_put(struct tunnel_way *way)
{
    if (way->pipe[0] < 0)
        return;
    if (way->in_pipe == 0 && kept_n < PIPES_KEPT) {
        memcpy(kept[kept_n++], way->pipe, sizeof kept[0]);
    } else {
        (void)close(way->pipe[0]);
        (void)close(way->pipe[1]);
    }
    way->pipe[0] = way->pipe[1] = -1;
}

/* ---- its life ---- */

void tunnel_free(struct tunnel *tunnel)
{
    if (!tunnel)
        return;
    pipe_put(&tunnel->out);
    pipe_put(&tunnel->in);
    free(tunnel);
}

enum step tunnel_begin(struct conn *conn)
{
    struct tunnel *tunnel = xcalloc(1, sizeof *tunnel);

    tunnel->out = (struct tunnel_way){
        .from = &conn->client, .to = &conn->server, .pipe = {-1, -1}
    };
    tunnel->in = (struct tunnel_way){
        .from = &conn->server, .to = &conn->client, .pipe = {-1, -1}
    };
    conn->tunnel = tunnel;
    conn->phase = PHASE_TUNNEL;
    conn_wait(conn, TUNNEL_IDLE_MS);
    return STEP_AGAIN;
}

static const struct tunnel_way *way_from(const struct conn *conn, const struct side *side)
{
    return side == &conn->client ? &conn->tunnel->out : &conn->tunnel->in;
}

bool tunnel_pipes(const struct conn *conn, const struct side *side)
{
    return conn->phase == PHASE_TUNNEL && way_from(conn, side)->pipe[0] >= 0;
}

bool tunnel_has_room(const struct conn *conn, const struct side *side)
{
    return way_from(conn, side)->in_pipe == 0 && !side->ended;
}

/* ---- the first bytes ---- */

/* The rule meant an address, whatever names lead to it. */
static bool is_for_address(const struct conn *conn)
{
    struct net_host host;

    net_host_read(str_of(conn->host), &host);
    return host.kind == NET_HOST_ADDRESS || conn->way.flags & NET_FLAG_ANY_PRIVATE;
}

/* Why a hello goes nowhere; NULL: it may. A name that only the server can read is none, and the one
 * outside it says nothing. Without any name a server of many takes the one that is said inside. */
static const char *fault_of(const struct conn *conn, const struct tls_hello *hello)
{
    if (!hello->encrypted_hello && hello->name[0])
        return strcmp(hello->name, conn->host) == 0
                   ? NULL
                   : "the name in the TLS hello (SNI) is not the host that was asked for";
    if (is_for_address(conn))
        return NULL;
    return hello->encrypted_hello
               ? "the name in the TLS hello is encrypted (ECH), so nobody can see whether it is "
                 "the host that was asked for; switch that off in the client"
               : "the TLS hello has no name (SNI) in it; let the client send the host's, or give "
                 "the endpoint allowed_ips";
}

/* 1: they may go on, 0: more are needed, -1: refused, and *fault says why. */
static int look(struct conn *conn, const char **fault)
{
    struct str in = bytes_str(&conn->client.in);
    struct tls_hello hello;
    int got;

    if (conn->secure || first_kind_of(in) != FIRST_TLS)
        return in.n == 0 || (first_kind_of(in) == FIRST_MORE && in.p[0] == 22) ? 0 : 1;
    *fault = "what begins like a TLS hello is none";
    got = tls_hello_read(in, &hello);
    if (got <= 0)
        return got;
    *fault = fault_of(conn, &hello);
    return *fault ? -1 : 1;
}

/* ---- moving ---- */

static bool move_bytes(struct tunnel_way *way)
{
    struct str in = bytes_str(&way->from->in);
    size_t n;

    if (in.n > way->left) {
        way->too_much = true;
        return false;
    }
    n = bytes_put(&way->to->out, in.p, in.n);
    bytes_take(&way->from->in, n);
    way->total += n;
    way->passed += n;
    return n > 0;
}

/* From the socket into the pipe, as much as it takes; one byte more than may pass is too much. */
static bool fill_pipe(struct tunnel_way *way)
{
    uint64_t left = way->left - way->passed;
    size_t most = left < PIPE_BYTES ? (size_t)left + 1 : PIPE_BYTES;
    ssize_t n;

    if (way->from->ended)
        return false;
    most = side_most(way->from, most);
    n = most ? splice(way->from->watch.fd, NULL, way->pipe[1], NULL, most,
                      SPLICE_F_MOVE | SPLICE_F_NONBLOCK)
             : side_await_end(way->from);
    if (n > 0 && (uint64_t)n > left) {
        way->in_pipe += (size_t)n;
        way->too_much = true;
        return false;
    }
    if (n > 0) {
        way->passed += (uint64_t)n;
        way->in_pipe += (size_t)n;
        way->from->bytes_in += (uint64_t)n;
        meters_pay(&way->from->meters, (uint64_t)n);
        return true;
    }
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    way->from->ended = way->from->wire_ended = true;
    way->from->broken = way->from->broken || n < 0;
    return true;
}

static bool drain_pipe(struct tunnel_way *way)
{
    size_t most = side_most(way->to, way->in_pipe);
    ssize_t n;

    if (way->in_pipe == 0 || way->to->broken)
        return false;
    if (most == 0) {
        side_keep(way->to);
        return false;
    }
    n = splice(way->pipe[0], NULL, way->to->watch.fd, NULL, most,
               SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    if (n > 0) {
        way->in_pipe -= (size_t)n;
        way->to->bytes_out += (uint64_t)n;
        meters_pay(&way->to->meters, (uint64_t)n);
        return true;
    }
    if (n < 0 && errno != EAGAIN && errno != EINTR)
        way->to->broken = true;
    return false;
}

static bool move_pipe(struct tunnel_way *way)
{
    bool moved = false;

    for (unsigned i = 0; i < SPLICES_AT_ONCE && !way->too_much; i++) {
        bool filled = way->in_pipe < PIPE_BYTES && fill_pipe(way);

        if (way->too_much || (!drain_pipe(way) && !filled))
            break;
        moved = true;
    }
    return moved;
}

/* Once nothing of it is in memory any more. */
static void take_pipe(struct tunnel_way *way)
{
    if (way->pipe[0] < 0 && way->total > PIPE_AFTER_BYTES && !way->from->tls && !way->to->tls &&
        !way->from->ended && way->from->in.n == 0 && way->to->out.n == 0)
        (void)pipe_get(way->pipe); /* without one it goes on as before */
}

static bool move(struct tunnel_way *way)
{
    bool moved = way->pipe[0] >= 0 ? move_pipe(way) : move_bytes(way);

    take_pipe(way);
    if (!way->over && way->from->ended && way->from->in.n == 0 && way->in_pipe == 0) {
        way->over = true;
        way->to->shut = true; /* behind what is still to go */
    }
    return moved;
}

/* Both directions, as far as the budget goes. False: more came than it had. */
static bool move_paid(struct conn *conn, bool both, bool *moved, struct net_verdict *out)
{
    struct tunnel_way *to = &conn->tunnel->out, *from = &conn->tunnel->in;

    to->passed = from->passed = 0;
    net_budget_left(conn->sandbox->budget, &conn->purse, &to->left, &from->left);
    if (both)
        *moved = move(to);
    *moved = move(from) || *moved;
    if (!conn_pay(conn, &conn->purse, to->passed, from->passed, out))
        return false;
    if (!to->too_much && !from->too_much)
        return true;
    return conn_pay(conn, &conn->purse, to->too_much ? UINT64_MAX : 0,
                    from->too_much ? UINT64_MAX : 0, out);
}

enum step step_tunnel(struct conn *conn)
{
    struct tunnel *tunnel = conn->tunnel;
    struct net_verdict verdict;
    bool moved = false;

    if (!tunnel->looked && conn->client.in.n) {
        const char *fault = NULL;
        int looked = look(conn, &fault);

        if (looked < 0)
            return conn_fail(conn, 403, "EGRESS_SNI_MISMATCH", fault);
        tunnel->looked = looked > 0;
    }
    if (!move_paid(conn, tunnel->looked || conn->client.ended, &moved, &verdict))
        return conn_refuse(conn, &verdict);
    if (conn->client.broken || conn->server.broken)
        return STEP_CLOSE;
    if (tunnel->out.over && tunnel->in.over && side_is_flushed(&conn->client) &&
        side_is_flushed(&conn->server)) {
        (void)side_flush(&conn->client);
        (void)side_flush(&conn->server);
        conn->phase = PHASE_LAST; /* a plain end, for both */
        return STEP_CLOSE;
    }
    if (moved)
        conn_wait(conn, tunnel->out.over || tunnel->in.over ? TUNNEL_HALF_MS : TUNNEL_IDLE_MS);
    return STEP_WAIT;
}

/* ---- waiting ---- */

static bool wants_in(const struct tunnel_way *way)
{
    if (way->from->ended || way->from->wire_ended)
        return false;
    return way->pipe[0] >= 0 ? way->in_pipe == 0
                             : bytes_room(way->from->tls ? &way->from->raw : &way->from->in) > 0;
}

static int arm(struct conn *conn, struct side *side, const struct tunnel_way *from,
               const struct tunnel_way *to, struct err *err)
{
    uint32_t events = 0;

    if (side->broken || side->hung)
        return 0;
    if (wants_in(from))
        events |= EPOLLIN;
    if (to->in_pipe || !side_is_flushed(side))
        events |= EPOLLOUT;
    return loop_watch(&conn->hub->loop, &side->watch, events, err);
}

int tunnel_arm(struct conn *conn, struct err *err)
{
    struct tunnel *tunnel = conn->tunnel;

    if (arm(conn, &conn->client, &tunnel->out, &tunnel->in, err) < 0)
        return -1;
    return arm(conn, &conn->server, &tunnel->in, &tunnel->out, err);
}
