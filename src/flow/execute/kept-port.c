/* SPDX-License-Identifier: Apache-2.0 */

/* A port of a kept sandbox on a loopback port of this machine.
 *
 * We listen; for each connection a process inside connects to the port there and hands us the
 * socket; we pass bytes both ways. Nothing inside can open a connection to us: it only ever
 * answers ours. One poll for everything; a side that does not read makes the other one wait. */

#include "flow/execute/files.h"
#include "flow/execute/orders.h"

#include "lib/base/clock.h"
#include "lib/linux/fd-pass.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define LINKS_MAX 64
#define HELD_BYTES 16384U
#define BACKLOG 64

/* One direction of a connection. */
struct way {
    int from, to;
    size_t at, n;
    bool ended; /* nothing more comes */
    bool shut;  /* and the other side knows */
    uint64_t *count;
    char held[HELD_BYTES];
};

struct link {
    bool used;
    bool waiting; /* for the socket from inside */
    int outside, inside;
    struct way in, out;
};

struct port {
    int listen_fd;
    int keeper_fd;
    int signals_fd;
    sigset_t before;
    struct run *run;
    struct link links[LINKS_MAX];
};

static int open_listener(const char *listen_text, int *out, struct err *err)
{
    struct sockaddr_storage address;
    AUTO_FD int fd = -1;
    int on = 1;

    if (port_listen_parse(str_of(listen_text), &address, err) < 0)
        return -1;
    fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0 ||
        bind(fd, (const struct sockaddr *)&address,
             address.ss_family == AF_INET ? sizeof(struct sockaddr_in)
                                          : sizeof(struct sockaddr_in6)) < 0 ||
        listen(fd, BACKLOG) < 0)
        return err_os(err, "listening at %.60s", listen_text);
    *out = TAKE_FD(fd);
    return 0;
}

static int tell_address(int fd, const struct port_call *call, struct err *err)
{
    struct sockaddr_storage address;
    socklen_t n = sizeof address;
    char text[INET6_ADDRSTRLEN];
    struct sockaddr_in four;
    struct sockaddr_in6 six;

    if (getsockname(fd, (struct sockaddr *)&address, &n) < 0)
        return err_os(err, "asking where we listen");
    memcpy(&four, &address, sizeof four);
    memcpy(&six, &address, sizeof six);
    if (address.ss_family == AF_INET) {
        (void)inet_ntop(AF_INET, &four.sin_addr, text, sizeof text);
        return call->on_open(call->context, text, ntohs(four.sin_port), err);
    }
    (void)inet_ntop(AF_INET6, &six.sin6_addr, text, sizeof text);
    return call->on_open(call->context, text, ntohs(six.sin6_port), err);
}

/* ---- one connection ---- */

static void close_link(struct link *link)
{
    if (link->outside >= 0)
        (void)close(link->outside);
    if (link->inside >= 0)
        (void)close(link->inside);
    *link = (struct link){.outside = -1, .inside = -1};
}

static void begin_way(struct way *way, int from, int to, uint64_t *count)
{
    way->from = from;
    way->to = to;
    way->at = way->n = 0;
    way->ended = way->shut = false;
    way->count = count;
}

static bool wants_bytes(const struct way *way)
{
    return way->n == 0 && !way->ended;
}

/* False: the connection is broken. */
static bool take_bytes(struct way *way)
{
    ssize_t n = recv(way->from, way->held, sizeof way->held, MSG_DONTWAIT);

    if (n < 0)
        return errno == EAGAIN || errno == EINTR;
    way->ended = n == 0;
    way->at = 0;
    way->n = (size_t)n;
    return true;
}

static bool give_bytes(struct way *way)
{
    if (way->n) {
        ssize_t n = send(way->to, way->held + way->at, way->n, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n < 0)
            return errno == EAGAIN || errno == EINTR;
        *way->count += (uint64_t)n;
        way->at += (size_t)n;
        way->n -= (size_t)n;
    }
    if (way->n == 0 && way->ended && !way->shut) {
        way->shut = true;
        (void)shutdown(way->to, SHUT_WR); /* gone already is as good */
    }
    return true;
}

static bool act(struct way *way, short from_events)
{
    if (wants_bytes(way) && from_events && !take_bytes(way))
        return false;
    return !(way->n || way->ended) || give_bytes(way);
}

static struct pollfd poll_of(int fd, const struct way *reads, const struct way *writes)
{
    short events = (short)((wants_bytes(reads) ? POLLIN : 0) | (writes->n ? POLLOUT : 0));

    return (struct pollfd){.fd = events ? fd : -1, .events = events};
}

static void act_on_link(struct link *link, short outside, short inside)
{
    if (!link->used || link->waiting || (!outside && !inside))
        return;
    if (!act(&link->in, outside) || !act(&link->out, inside) || (link->in.shut && link->out.shut))
        close_link(link);
}

/* ---- new ones ---- */

static struct link *free_link(struct port *port)
{
    for (size_t i = 0; i < LINKS_MAX; i++)
        if (!port->links[i].used)
            return &port->links[i];
    return NULL;
}

static void accept_one(struct port *port, struct err *err)
{
    struct link *link = free_link(port);
    struct box_message order = {.kind = BOX_CONNECT, .value = port->run->action.port};
    int fd = link ? accept4(port->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK) : -1;

    if (fd < 0)
        return; /* whoever it was is gone */
    order.pid = (int32_t)(link - port->links);
    if (send(port->keeper_fd, &order, sizeof order, MSG_NOSIGNAL | MSG_DONTWAIT) !=
        (ssize_t)sizeof order) {
        (void)err_os(err, "asking for a connection inside");
        (void)close(fd);
        port->run->outcome.moved.skipped++;
        return;
    }
    link->used = link->waiting = true;
    link->outside = fd;
}

static bool is_stream(int fd)
{
    int domain = 0;
    int type = 0;
    socklen_t n = sizeof domain;
    socklen_t m = sizeof type;

    return fd >= 0 && getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) == 0 &&
           getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &m) == 0 && type == SOCK_STREAM &&
           (domain == AF_INET || domain == AF_INET6) && fcntl(fd, F_SETFL, O_NONBLOCK) == 0;
}

static int take_socket(struct port *port, struct err *err)
{
    struct moved *moved = &port->run->outcome.moved;
    struct box_message answer;
    AUTO_FD int fd = -1;
    struct link *link;
    int got = fds_receive(port->keeper_fd, &answer, sizeof answer, &fd, 1, err);

    if (got < 0)
        return -1;
    if (got != (int)sizeof answer || answer.pid < 0 || answer.pid >= LINKS_MAX ||
        !port->links[answer.pid].waiting)
        return err_set(err, ERR_UNAVAILABLE, "the sandbox ended, or its keeper was killed");
    link = &port->links[answer.pid];
    link->waiting = false;
    if (answer.kind != BOX_CONNECT || !is_stream(fd)) {
        moved->skipped++;
        close_link(link);
        return 0;
    }
    moved->entries++;
    link->inside = TAKE_FD(fd);
    begin_way(&link->in, link->outside, link->inside, &moved->bytes);
    begin_way(&link->out, link->inside, link->outside, &moved->bytes_out);
    return 0;
}

/* ---- the loop ---- */

enum {
    WAIT_SIGNALS,
    WAIT_KEEPER,
    WAIT_LISTEN,
    WAIT_LINKS,
    WAIT_COUNT = WAIT_LINKS + 2 * LINKS_MAX
};

static void fill_polled(struct port *port, struct pollfd polled[WAIT_COUNT])
{
    polled[WAIT_SIGNALS] = (struct pollfd){.fd = port->signals_fd, .events = POLLIN};
    polled[WAIT_KEEPER] = (struct pollfd){.fd = port->keeper_fd, .events = POLLIN};
    polled[WAIT_LISTEN] =
        (struct pollfd){.fd = free_link(port) ? port->listen_fd : -1, .events = POLLIN};
    for (size_t i = 0; i < LINKS_MAX; i++) {
        const struct link *link = &port->links[i];
        struct pollfd none = {.fd = -1};
        bool open = link->used && !link->waiting;

        polled[WAIT_LINKS + 2 * i] = open ? poll_of(link->outside, &link->in, &link->out) : none;
        polled[WAIT_LINKS + 2 * i + 1] = open ? poll_of(link->inside, &link->out, &link->in) : none;
    }
}

static int relay_links(struct port *port, uint64_t wait_ms, struct err *err)
{
    uint64_t end_us = wait_ms ? clock_us() + wait_ms * 1000U : UINT64_MAX;
    struct pollfd polled[WAIT_COUNT];

    while (clock_us() < end_us) {
        uint64_t left_ms = end_us == UINT64_MAX ? 60000U : (end_us - clock_us()) / 1000U + 1;

        fill_polled(port, polled);
        if (poll(polled, WAIT_COUNT, (int)(left_ms < 60000U ? left_ms : 60000U)) < 0) {
            if (errno == EINTR)
                continue;
            return err_os(err, "waiting for connections");
        }
        if (polled[WAIT_SIGNALS].revents)
            return 0; /* asked to end */
        for (size_t i = 0; i < LINKS_MAX; i++)
            act_on_link(&port->links[i], polled[WAIT_LINKS + 2 * i].revents,
                        polled[WAIT_LINKS + 2 * i + 1].revents);
        if (polled[WAIT_KEEPER].revents && take_socket(port, err) < 0)
            return -1;
        if (polled[WAIT_LISTEN].revents)
            accept_one(port, err);
    }
    return 0;
}

static int open_port(struct execute *execute, struct port *port, const struct port_call *call,
                     struct err *err)
{
    struct box_message hello = {.kind = BOX_CONNECT};
    char run_dir[RUN_DIR_BYTES];

    if (kept_open(execute, port->run->action.sandbox, run_dir, err) < 0 ||
        open_listener(call->listen, &port->listen_fd, err) < 0 ||
        kept_connect(run_dir, "execs", &port->keeper_fd, err) < 0)
        return -1;
    if (send(port->keeper_fd, &hello, sizeof hello, MSG_NOSIGNAL) != (ssize_t)sizeof hello)
        return err_os(err, "asking the sandbox for its ports");
    return tell_address(port->listen_fd, call, err);
}

static int ask_for_socket(int keeper_fd, uint16_t port, unsigned wait_ms, int *out, struct err *err)
{
    struct box_message hello = {.kind = BOX_CONNECT};
    struct box_message order = {.kind = BOX_CONNECT, .value = port}, answer;
    struct pollfd wait = {.fd = keeper_fd, .events = POLLIN};
    AUTO_FD int fd = -1;
    int got;

    if (send(keeper_fd, &hello, sizeof hello, MSG_NOSIGNAL) != (ssize_t)sizeof hello ||
        send(keeper_fd, &order, sizeof order, MSG_NOSIGNAL) != (ssize_t)sizeof order)
        return err_os(err, "asking the sandbox for its ports");
    while ((got = poll(&wait, 1, (int)wait_ms)) < 0 && errno == EINTR)
        continue;
    if (got == 0)
        return err_set(err, ERR_UNAVAILABLE, "the sandbox did not answer in time");
    got = fds_receive(keeper_fd, &answer, sizeof answer, &fd, 1, err);
    if (got < 0)
        return -1;
    if (got != (int)sizeof answer || (answer.kind != BOX_CONNECT && answer.kind != BOX_FAILED))
        return err_set(err, ERR_UNAVAILABLE, "the sandbox ended, or its keeper was killed");
    if (answer.kind == BOX_FAILED || !is_stream(fd))
        return err_set(err, ERR_UNAVAILABLE, "nothing listens at port %u inside", port);
    *out = TAKE_FD(fd);
    return 0;
}

int execute_connect(struct execute *execute, const char *sandbox, uint16_t port, unsigned wait_ms,
                    int *out, struct err *err)
{
    char run_dir[RUN_DIR_BYTES];
    AUTO_FD int keeper_fd = -1;

    if (kept_open(execute, sandbox, run_dir, err) < 0 ||
        kept_connect(run_dir, "execs", &keeper_fd, err) < 0)
        return -1;
    return ask_for_socket(keeper_fd, port, wait_ms, out, err);
}

int execute_port(struct execute *execute, struct run *run, const struct port_call *call,
                 struct err *err)
{
    AUTO_FREE struct port *port = xcalloc(1, sizeof *port);
    int failed;

    port->run = run;
    port->listen_fd = port->keeper_fd = port->signals_fd = -1;
    for (size_t i = 0; i < LINKS_MAX; i++)
        port->links[i].outside = port->links[i].inside = -1;
    failed = orders_hold(execute, &port->before, &port->signals_fd, err);
    if (!failed)
        failed = open_port(execute, port, call, err);
    if (!failed)
        failed = relay_links(port, call->wait_ms, err);
    for (size_t i = 0; i < LINKS_MAX; i++)
        close_link(&port->links[i]);
    if (port->listen_fd >= 0)
        (void)close(port->listen_fd);
    if (port->keeper_fd >= 0)
        (void)close(port->keeper_fd);
    orders_release(execute, &port->before, port->signals_fd);
    return failed;
}
