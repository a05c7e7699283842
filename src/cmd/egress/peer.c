/* SPDX-License-Identifier: Apache-2.0 */

/* From one sandbox into another: found, asked whether it lets the caller in, and dialled inside.
 *
 * A socket belongs to the network namespace it was made in, and egress cannot enter one. But what
 * a listener accepts belongs to the listener's, and connect() to nowhere makes it a socket like
 * new. So box leaves two sockets of its namespace here: SEED connects to MINT, what MINT accepts is
 * a fresh socket of the sandbox, and SEED is ready for the next one. Nothing inside takes part in
 * it, and nothing that is not handed over has a right to it. */

#include "cmd/egress/conn-private.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

/* ---- a socket of another namespace ---- */

static void disconnect(int fd)
{
    static const struct sockaddr nowhere = {.sa_family = AF_UNSPEC};

    (void)connect(fd, &nowhere, sizeof nowhere); /* one that is none already stays so */
}

/* A seed that does not arrive (the sandbox can crowd its own listener) is called back. */
static bool begin_minting(struct sandbox *sandbox)
{
    static const uint32_t address = EGRESS_MINT_ADDRESS;
    struct mint *mint = &sandbox->mint;
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = htons(EGRESS_MINT_PORT),
                                   .sin_addr.s_addr = htonl(address)};

    if (mint->is_busy && sandbox->hub->loop.now_ms < mint->ends_ms)
        return true;
    disconnect(mint->seed_fd);
    mint->ends_ms = sandbox->hub->loop.now_ms + DIAL_ONE_MS;
    mint->is_busy = connect(mint->seed_fd, (const struct sockaddr *)&to, sizeof to) == 0 ||
                    errno == EINPROGRESS;
    return mint->is_busy;
}

static bool is_seed(const struct mint *mint, const struct sockaddr_in *from)
{
    struct sockaddr_in seed = {0};
    socklen_t n = sizeof seed;

    return mint->is_busy && getsockname(mint->seed_fd, (struct sockaddr *)&seed, &n) == 0 &&
           seed.sin_family == AF_INET && seed.sin_port == from->sin_port &&
           seed.sin_addr.s_addr == from->sin_addr.s_addr;
}

/* Whoever else comes is of the sandbox itself, and has no business here. -1: none yet. */
static int take_minted(struct sandbox *sandbox)
{
    struct mint *mint = &sandbox->mint;

    for (unsigned i = 0; i < ACCEPTS_AT_ONCE; i++) {
        struct sockaddr_in from = {0};
        socklen_t n = sizeof from;
        int fd =
            accept4(mint->watch.fd, (struct sockaddr *)&from, &n, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (fd < 0)
            return -1;
        if (is_seed(mint, &from)) {
            disconnect(fd);
            disconnect(mint->seed_fd);
            mint->is_busy = false;
            return fd;
        }
        (void)close(fd);
    }
    return -1;
}

/* ---- who waits for one ---- */

static struct conn *next_waiting(struct sandbox *sandbox)
{
    struct conn *waiting = NULL;

    for (struct conn *conn = sandbox->guests; conn; conn = conn->guest_next)
        if (conn->phase == PHASE_DIAL && conn->server.watch.fd < 0)
            waiting = conn; /* the last is the one that came first */
    return waiting;
}

/* Without descriptors the listener rests as the others do. */
static void rest(struct sandbox *sandbox)
{
    struct hub *hub = sandbox->hub;
    struct err err;

    if (loop_watch(&hub->loop, &sandbox->mint.watch, 0, &err) == 0)
        loop_after(&hub->loop, &hub->shed, SHED_PAUSE_MS);
}

static bool is_out_of_descriptors(void)
{
    return errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
}

static void on_mint(struct watch *watch, uint32_t events)
{
    struct mint *mint = (struct mint *)((char *)watch - offsetof(struct mint, watch));
    struct sandbox *sandbox = (struct sandbox *)((char *)mint - offsetof(struct sandbox, mint));
    struct conn *waiting;

    (void)events;
    if (mint->ready_fd < 0)
        mint->ready_fd = take_minted(sandbox);
    if (mint->ready_fd < 0) {
        if (is_out_of_descriptors())
            rest(sandbox);
        return;
    }
    waiting = next_waiting(sandbox);
    if (waiting)
        conn_drive(waiting);
}

int mint_open(struct sandbox *sandbox, int mint_fd, int seed_fd, struct err *err)
{
    sandbox->mint.watch = (struct watch){.fd = mint_fd, .on = on_mint};
    sandbox->mint.seed_fd = seed_fd;
    return loop_watch(&sandbox->hub->loop, &sandbox->mint.watch, EPOLLIN, err);
}

void mint_close(struct sandbox *sandbox)
{
    struct mint *mint = &sandbox->mint;

    if (mint->watch.fd >= 0) {
        loop_forget(&sandbox->hub->loop, &mint->watch);
        (void)close(TAKE_FD(mint->watch.fd));
    }
    if (mint->seed_fd >= 0)
        (void)close(TAKE_FD(mint->seed_fd));
    if (mint->ready_fd >= 0)
        (void)close(TAKE_FD(mint->ready_fd));
}

enum step peer_socket(struct conn *conn, int *out)
{
    struct mint *mint = &conn->peer->mint;
    int fd = TAKE_FD(mint->ready_fd);

    if (fd < 0 && begin_minting(conn->peer))
        fd = take_minted(conn->peer);
    if (fd < 0 && !mint->is_busy)
        return STEP_CLOSE;
    if (fd < 0) {
        conn_wait(conn, DIAL_ONE_MS);
        return STEP_WAIT;
    }
    *out = fd;
    return STEP_AGAIN;
}

/* This one has its socket: the next one's is begun, and its coming drives whom it is for. */
void peer_next(struct sandbox *sandbox)
{
    if (next_waiting(sandbox))
        (void)begin_minting(sandbox);
}

/* ---- who it is ---- */

static bool is_called(const struct sandbox *sandbox, struct str label)
{
    return str_is(label, sandbox->id) ||
           (net_is_sandbox_name(str_of(sandbox->who.name)) && str_is(label, sandbox->who.name));
}

/* Of the same tenant, with its listeners here. How many there are. */
static size_t find(const struct conn *conn, struct str label, struct sandbox **out)
{
    size_t n = 0;

    for (struct sandbox *s = conn->hub->sandboxes; s; s = s->next)
        if (s->has_listeners && strcmp(s->who.tenant, conn->sandbox->who.tenant) == 0 &&
            is_called(s, label)) {
            *out = s;
            n++;
        }
    return n;
}

/* As the other side knows it. */
static struct net_guest guest_of(const struct conn *conn)
{
    return (struct net_guest){str_of(conn->sandbox->id), str_of(conn->sandbox->who.name),
                              conn->port};
}

static const char *host_of(const struct sandbox *sandbox, char out[SAID_HOST_MAX + 1])
{
    const char *name = sandbox->who.name;

    (void)snprintf(out, SAID_HOST_MAX + 1, "%.100s.sandbox.internal",
                   net_is_sandbox_name(str_of(name)) ? name : sandbox->id);
    return out;
}

/* ---- whether it lets us in ---- */

/* The one that is reached has it in its own counts and events. */
static void tell_host(const struct conn *conn, struct sandbox *to, const struct net_verdict *said)
{
    char host[SAID_HOST_MAX + 1];
    struct event event = {.class = EVENT_CONNECTION,
                          .allowed = said->kind == NET_ALLOW,
                          .host = str_of(host_of(conn->sandbox, host)),
                          .port = conn->port,
                          .rule = said->entry,
                          .reason = net_reason_code(said->reason)};

    if (event.allowed)
        sandbox_count(to, said->entry, &(struct counts){.connections = 1, .requests = 1});
    else
        sandbox_refuse(
            to, said->entry,
            &(struct refusal){.host = event.host, .port = conn->port, .reason = event.reason});
    sandbox_event(to, &event);
}

static void enter(struct conn *conn, struct sandbox *to, const char *rule)
{
    conn->peer = to;
    conn->peer_rule = rule;
    conn->guest_next = to->guests;
    conn->guest_at = &to->guests;
    if (conn->guest_next)
        conn->guest_next->guest_at = &conn->guest_next;
    to->guests = conn;
    to->guest_n++;
}

void peer_leave(struct conn *conn)
{
    if (!conn->peer)
        return;
    *conn->guest_at = conn->guest_next;
    if (conn->guest_next)
        conn->guest_next->guest_at = conn->guest_at;
    conn->peer->guest_n--;
    conn->peer = NULL;
    conn->server.meters.of[1] = NULL;
}

static enum step knock_at(struct conn *conn, struct sandbox *to)
{
    struct net_guest guest = guest_of(conn);
    struct net_verdict verdict;

    if (to->guest_n >= GUESTS_MAX)
        return conn_fail(conn, 503, "EGRESS_BUSY",
                         "too many connections lead into the other sandbox; try again");
    net_rules_guest(to->rules, &guest, &verdict);
    tell_host(conn, to, &verdict);
    if (verdict.kind != NET_ALLOW) {
        verdict.entry = conn->way.entry; /* here it is our own rule that led there */
        return conn_refuse(conn, &verdict);
    }
    enter(conn, to, verdict.entry);
    conn->found_at = 0;
    conn->found_n = 1;
    conn->dial_ends_ms = conn->hub->loop.now_ms + DIAL_MS;
    conn->phase = PHASE_DIAL;
    return STEP_AGAIN;
}

enum step peer_admit(struct conn *conn)
{
    struct sandbox *to = NULL;
    size_t n = find(conn, net_sandbox_label(str_of(conn->host)), &to);

    peer_leave(conn);
    if (n == 0)
        return conn_fail(conn, 502, "EGRESS_PEER_UNKNOWN",
                         "no sandbox of this tenant that runs, and has a network, is called so");
    if (n > 1)
        return conn_fail(conn, 403, "EGRESS_PEER_AMBIGUOUS",
                         "several sandboxes are called so; use the id of the one that is meant");
    if (to == conn->sandbox)
        return conn_fail(conn, 403, "EGRESS_PEER_SELF",
                         "this is the sandbox itself; use 127.0.0.1");
    return knock_at(conn, to);
}

/* ---- other rules ---- */

void peer_judge_again(struct conn *conn)
{
    struct net_guest guest = guest_of(conn);
    struct net_verdict verdict;

    net_rules_guest(conn->peer->rules, &guest, &verdict);
    if (verdict.kind == NET_ALLOW) {
        conn->peer_rule = verdict.entry;
        return;
    }
    conn->peer_rule = "";
    sandbox_refuse(conn->sandbox, conn->way.entry ? conn->way.entry : "",
                   &(struct refusal){.host = str_of(conn->host),
                                     .port = conn->port,
                                     .binary = conn_binary(conn),
                                     .reason = net_reason_code(NET_REASON_LOST)});
    conn_close(conn);
}

struct conn *peer_next_guest(struct conn *conn)
{
    return conn->guest_next;
}
