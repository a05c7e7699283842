/* SPDX-License-Identifier: Apache-2.0 */

/* One request to a server inside, both ways at once: it may answer before it has read all, and the
 * two sides wait for each other. */

#include "surface/api/proxy.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/limits.h"
#include "surface/api/stream.h"

#define PIECE_BYTES (32 * KIB)
#define IDLE_MS (10 * 60 * 1000)     /* without a byte either way */
#define SOCKET_IDLE_MS (3600 * 1000) /* the same when it has become a WebSocket */

enum phase {
    PHASE_HEAD, /* of the answer is still to come */
    PHASE_BODY,
    PHASE_RAW, /* a WebSocket: bytes */
    PHASE_DONE,
};

struct relay {
    struct call *call;
    uint16_t port;
    int socket;
    int out_fd; /* to the client, once the answer has begun; -1 */
    enum phase phase;
    bool up_ended; /* nothing more goes in */
    struct buf up; /* on its way in */
    size_t up_at;
    char in[HTTP_INPUT_BYTES]; /* from inside, not yet understood */
    size_t in_n;
    struct str rest;    /* of it, not yet looked at */
    struct str pending; /* of it, for the client */
    bool in_ended;
    struct http_scan scan;
    struct http_body body;
};

/* ---- in ---- */

static int add_up(struct relay *relay, const char *bytes, size_t n, struct err *err)
{
    bool is_chunked = relay->call->passed->framing == HTTP_CHUNKED;
    char head[HTTP_CHUNK_HEAD_BYTES];

    if (is_chunked && n && buf_add(&relay->up, head, http_chunk_head(n, head), err) < 0)
        return -1;
    if (n)
        return buf_add(&relay->up, bytes, n, err) < 0 ||
                       (is_chunked && buf_add(&relay->up, "\r\n", 2, err) < 0)
                   ? -1
                   : 0;
    relay->up_ended = true;
    return is_chunked ? buf_add_text(&relay->up, HTTP_LAST_CHUNK, err) : 0;
}

static int read_client(struct relay *relay, struct err *err)
{
    char piece[PIECE_BYTES];
    ssize_t n = read(relay->call->body_fd, piece, sizeof piece);

    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : err_os(err, "reading the request");
    return add_up(relay, piece, (size_t)n, err);
}

static void write_inside(struct relay *relay)
{
    ssize_t n = send(relay->socket, relay->up.p + relay->up_at, relay->up.n - relay->up_at,
                     MSG_NOSIGNAL | MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n < 0) {
        /* It reads no more; what it has to say may still come. */
        relay->up_ended = true;
        relay->up_at = relay->up.n;
    } else {
        relay->up_at += (size_t)n;
    }
    if (relay->up_at == relay->up.n) {
        buf_clear(&relay->up);
        relay->up_at = 0;
        if (relay->up_ended && relay->phase == PHASE_RAW)
            (void)shutdown(relay->socket, SHUT_WR);
    }
}

/* ---- out ---- */

static int begin_stream(struct relay *relay, const struct http_head *head, struct err *err)
{
    struct call *call = relay->call;
    const struct stream_config config = {
        .frame = FRAME_RAW,
        .type = call->type,
        .sources = 1,
        .status = head->status,
        .length =
            head->framing == HTTP_LENGTH && call->passed->method != HTTP_HEAD ? head->length : 0,
    };
    int fds[STREAM_SOURCES];

    if (stream_open(call, &config, fds, err) < 0)
        return -1;
    relay->out_fd = fds[0];
    (void)fcntl(relay->out_fd, F_SETFL, O_NONBLOCK);
    return 0;
}

static int begin_answer(struct relay *relay, const struct http_head *head, struct err *err)
{
    struct call *call = relay->call;

    if (head->status == 101 && !call->passed->is_socket)
        return err_set(err, ERR_UNAVAILABLE, "the server inside changed to another protocol");
    proxy_answer(call, head, relay->port);
    if (head->framing == HTTP_NO_BODY && head->status != 101) {
        relay->phase = PHASE_DONE;
        return call_answer_bytes(call, head->status, call->type, STR_LIT(""), err);
    }
    http_body_init(&relay->body, head, UINT64_MAX);
    relay->phase = head->status == 101 ? PHASE_RAW : PHASE_BODY;
    return begin_stream(relay, head, err);
}

/* Heads that only say "go on" are ours to skip. */
static int read_head(struct relay *relay, struct err *err)
{
    for (;;) {
        struct http_head head;
        struct str in = {relay->in, relay->in_n};
        int n = http_answer_read(&relay->scan, in, relay->call->passed->method, &head);

        if (n < 0 || (n == 0 && (relay->in_ended || relay->in_n == sizeof relay->in)))
            return err_set(err, ERR_UNAVAILABLE,
                           "what listens at port %u inside does not answer "
                           "in HTTP",
                           relay->port);
        if (n == 0)
            return 0;
        if (head.status >= 200 || head.status == 101) {
            relay->rest = (struct str){relay->in + n, relay->in_n - (size_t)n};
            return begin_answer(relay, &head, err);
        }
        memmove(relay->in, relay->in + n, relay->in_n - (size_t)n);
        relay->in_n -= (size_t)n;
        relay->scan = (struct http_scan){0};
    }
}

/* The next piece for the client, if there is one. */
static int next_piece(struct relay *relay, struct err *err)
{
    if (relay->phase == PHASE_RAW) {
        relay->pending = relay->rest;
        relay->rest.n = 0;
        if (!relay->pending.n && relay->in_ended)
            relay->phase = PHASE_DONE;
        return 0;
    }
    switch (http_body_next(&relay->body, &relay->rest, &relay->pending)) {
    case HTTP_BODY_DATA:
        return 0;
    case HTTP_BODY_END:
        relay->phase = PHASE_DONE;
        return 0;
    case HTTP_BODY_REFUSED:
        return err_set(err, ERR_UNAVAILABLE, "the answer from inside is malformed");
    case HTTP_BODY_MORE:
        break;
    }
    relay->pending.n = 0;
    if (!relay->in_ended)
        return 0;
    relay->phase = PHASE_DONE;
    return http_body_close(&relay->body) == 0
               ? 0
               : err_set(err, ERR_UNAVAILABLE, "the answer from inside broke off");
}

/* 1: the client takes no more. */
static int write_client(struct relay *relay)
{
    ssize_t n = write(relay->out_fd, relay->pending.p, relay->pending.n);

    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : 1;
    relay->pending.p += n;
    relay->pending.n -= (size_t)n;
    return 0;
}

static int read_inside(struct relay *relay, struct err *err)
{
    size_t kept = relay->phase == PHASE_HEAD ? relay->in_n : 0;
    ssize_t n = recv(relay->socket, relay->in + kept, sizeof relay->in - kept, MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0)
        relay->in_ended = true; /* also when it was reset: its framing says whether all came */
    relay->in_n = kept + (n > 0 ? (size_t)n : 0);
    relay->rest = (struct str){relay->in, relay->in_n};
    return relay->phase == PHASE_HEAD ? read_head(relay, err) : 0;
}

/* ---- both ---- */

enum { WAIT_ORDERS, WAIT_BODY, WAIT_SOCKET, WAIT_CLIENT, WAIT_COUNT };

static int wait_for_any(const struct relay *relay, struct pollfd fds[WAIT_COUNT], struct err *err)
{
    bool reads = !relay->pending.n && !relay->rest.n && !relay->in_ended;
    bool writes = relay->up.n > relay->up_at;
    short on_socket =
        (short)((reads || relay->phase == PHASE_HEAD ? POLLIN : 0) | (writes ? POLLOUT : 0));
    int idle_ms = relay->phase == PHASE_RAW ? SOCKET_IDLE_MS : IDLE_MS;
    int got;

    fds[WAIT_ORDERS] = (struct pollfd){.fd = relay->call->orders[0], .events = POLLIN};
    fds[WAIT_BODY] = (struct pollfd){.fd = !relay->up_ended && !writes ? relay->call->body_fd : -1,
                                     .events = POLLIN};
    fds[WAIT_SOCKET] = (struct pollfd){.fd = on_socket ? relay->socket : -1, .events = on_socket};
    fds[WAIT_CLIENT] =
        (struct pollfd){.fd = relay->out_fd, .events = (short)(relay->pending.n ? POLLOUT : 0)};
    while ((got = poll(fds, WAIT_COUNT, idle_ms)) < 0 && errno == EINTR)
        continue;
    if (got < 0)
        return err_os(err, "waiting for either side");
    if (got == 0)
        return err_set(err, ERR_TIMEOUT, "neither side has sent anything for too long");
    return 0;
}

/* 1: the client has left. */
static int step(struct relay *relay, struct err *err)
{
    struct pollfd fds[WAIT_COUNT];

    if (wait_for_any(relay, fds, err) < 0)
        return -1;
    if (fds[WAIT_ORDERS].revents || (fds[WAIT_CLIENT].revents & (POLLERR | POLLHUP)))
        return 1;
    if (fds[WAIT_BODY].revents && read_client(relay, err) < 0)
        return -1;
    if (relay->up.n > relay->up_at)
        write_inside(relay);
    if ((fds[WAIT_SOCKET].revents & (POLLIN | POLLERR | POLLHUP)) && !relay->pending.n &&
        !relay->rest.n && read_inside(relay, err) < 0)
        return -1;
    while (relay->phase == PHASE_BODY || relay->phase == PHASE_RAW) {
        if (!relay->pending.n && next_piece(relay, err) < 0)
            return -1;
        if (!relay->pending.n)
            break;
        if (write_client(relay))
            return 1;
        if (relay->pending.n)
            break;
    }
    return 0;
}

int proxy_relay(struct call *call, int socket, uint16_t port, struct err *err)
{
    struct relay *relay = xcalloc(1, sizeof *relay);
    int failed;

    relay->call = call;
    relay->port = port;
    relay->socket = socket;
    relay->out_fd = -1;
    relay->up = BUF(HTTP_INPUT_BYTES + 2 * PIECE_BYTES);
    relay->up_ended = call->passed->framing == HTTP_NO_BODY && !call->passed->is_socket;
    (void)fcntl(call->body_fd, F_SETFL, O_NONBLOCK);
    failed = proxy_ask(call, port, &relay->up, err);
    while (!failed && relay->phase != PHASE_DONE)
        failed = step(relay, err);
    if (relay->out_fd >= 0)
        (void)close(relay->out_fd);
    (void)close(relay->socket);
    buf_done(&relay->up);
    free(relay);
    /* A client that left wants no answer. */
    return failed < 0 ? -1 : 0;
}
