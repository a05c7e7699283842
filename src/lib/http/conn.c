/* SPDX-License-Identifier: Apache-2.0 */

/* One connection.
 *
 *     idle ── first byte ──> head ── complete ──> exchange ── answered ──> idle
 *                             │                      │ └─ body left ──> drain ──> idle
 *                             └──── a fault, or "close" ────> linger ──> closed
 *
 * conn_process() is the only place that moves along these arrows. It runs after every event, does
 * everything that can be done without waiting, and leaves with a deadline for what it waits for.
 * A handler called from inside it may answer: that only marks the exchange, the loop sees it.
 *
 * Closing is libuv's: the memory stays until its callback, which is also where a handler hears
 * that its exchange is gone. So no call of a handler's can pull the connection away under it. */

#include "lib/http/server-private.h"

#include <string.h>
#include <sys/socket.h>

#include "lib/base/memory.h"

/* A head begins where the longest one and a good piece of body behind it have room. */
#define HEAD_ROOM (2 * HTTP_HEAD_MAX)
#define SENDER_TURNS 4

/* ---- closing ---- */

static void on_closed(uv_handle_t *handle)
{
    struct conn *conn = (struct conn *)handle;
    struct http_server *server = conn->server;
    struct http_exchange *x = &conn->x;

    if (x->id != 0) {
        if (x->raw != NULL)
            x->raw->gone(x->raw_data);
        if (server->handler->on_gone != NULL)
            server->handler->on_gone(server->owner, x, conn->why);
        x->id = 0;
    }
    if (conn->room != NULL)
        room_give(server, conn->room);
    tls_close(conn->tls);
    buf_done(&conn->wire);
    buf_done(&conn->flying);
    server_conn_closed(server, conn);
    free(conn);
}

void conn_close(struct conn *conn, enum http_gone why)
{
    if (conn->state == CONN_CLOSED)
        return;
    conn->state = CONN_CLOSED;
    conn->why = why;
    conn->deadline_ms = 0;
    uv_close(&conn->io.handle, on_closed);
}

/* ---- reading ---- */

static void on_room(uv_handle_t *handle, size_t suggested, uv_buf_t *out)
{
    struct conn *conn = (struct conn *)handle;
    struct room *room;

    (void)suggested;
    if (conn->tls != NULL || conn->state == CONN_LINGER) {
        if (conn->server->scratch == NULL)
            conn->server->scratch = xmalloc(HTTP_INPUT_BYTES);
        *out = uv_buf_init(conn->server->scratch, HTTP_INPUT_BYTES);
        return;
    }
    if (conn->room == NULL)
        conn->room = room_take(conn->server);
    room = conn->room;
    *out = uv_buf_init(room->bytes + room->end, (unsigned)(sizeof(room->bytes) - room->end));
}

/* Decrypted bytes into the room. True when it was too small for them all. */
static bool pull(struct conn *conn)
{
    struct room *room;
    int n = 1;

    if (conn->tls == NULL || conn->state == CONN_LINGER || conn->state == CONN_CLOSED)
        return false;
    if (conn->room == NULL)
        conn->room = room_take(conn->server);
    room = conn->room;
    while (n > 0 && room->end < sizeof(room->bytes)) {
        n = tls_read(conn->tls, room->bytes + room->end, sizeof(room->bytes) - room->end);
        room->end += n > 0 ? (size_t)n : 0;
    }
    if (n < -1)
        conn_close(conn, HTTP_GONE_CLIENT);
    else if (n == -1)
        conn->eof = true;
    return n > 0;
}

static void set_reading(struct conn *conn, bool wanted);

static void on_lingering(struct conn *conn, ssize_t n)
{
    if (n > 0)
        conn->lingered += (uint64_t)n;
    if (n < 0)
        conn_close(conn, HTTP_GONE_CLIENT);
    else if (conn->lingered > HTTP_LINGER_MAX)
        set_reading(conn, false); /* closing would take back the answer it has not read yet */
}

static void on_bytes(struct conn *conn, const char *bytes, size_t n)
{
    conn->fresh = false;
    if (conn->tls == NULL) {
        conn->room->end += n;
    } else if (tls_feed(conn->tls, bytes, n) < 0) {
        conn_close(conn, HTTP_GONE_CLIENT);
        return;
    }
    conn_process(conn);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buffer)
{
    struct conn *conn = (struct conn *)stream;

    if (conn->state == CONN_CLOSED || n == 0)
        return;
    if (conn->state == CONN_LINGER) {
        on_lingering(conn, n);
        return;
    }
    if (n > 0) {
        on_bytes(conn, buffer->base, (size_t)n);
        return;
    }
    if (n != UV_EOF) {
        conn_close(conn, HTTP_GONE_CLIENT);
        return;
    }
    conn->eof = true;
    conn_process(conn);
}

static void set_reading(struct conn *conn, bool wanted)
{
    if (conn->state == CONN_CLOSED || conn->is_reading == wanted)
        return;
    if (!wanted)
        (void)uv_read_stop(&conn->io.stream); /* always succeeds */
    else if (uv_read_start(&conn->io.stream, on_room, on_read) < 0) {
        conn_close(conn, HTTP_GONE_CLIENT);
        return;
    }
    conn->is_reading = wanted;
}

/* ---- answering for the handler ---- */

static void linger(struct conn *conn)
{
    int fd = -1;

    if (conn->tls != NULL) {
        tls_goodbye(conn->tls);
        conn_flush(conn);
        if (conn->state == CONN_CLOSED || conn->is_flying)
            return; /* comes back here when it is written */
    }
    conn->state = CONN_LINGER;
    conn->deadline_ms = uv_now(conn->server->loop) + conn->server->limits.linger_ms;
    if (conn->eof || uv_fileno(&conn->io.handle, &fd) < 0 || shutdown(fd, SHUT_WR) < 0) {
        conn_close(conn, HTTP_GONE_CLIENT);
        return;
    }
    if (conn->room != NULL) {
        room_give(conn->server, conn->room);
        conn->room = NULL;
    }
    set_reading(conn, true);
    server_due(conn->server, conn->deadline_ms);
}

/* The exchange is over, well or not; the connection may go on. */
static void end_exchange(struct conn *conn, enum http_gone why)
{
    struct http_server *server = conn->server;
    struct http_exchange *x = &conn->x;

    if (x->id == 0)
        return;
    if (x->raw != NULL)
        x->raw->gone(x->raw_data);
    if (server->handler->on_gone != NULL)
        server->handler->on_gone(server->owner, x, why);
    x->id = 0;
    x->raw = NULL;
}

void conn_refuse(struct conn *conn, enum http_fault fault, enum http_gone why)
{
    bool was_busy = conn->busy;

    if (conn->state == CONN_CLOSED || conn->state == CONN_LINGER)
        return;
    conn->server->counts.refused++;
    if (conn->x.id != 0 && conn->x.begun) {
        conn_close(conn, why); /* in the middle of an answer there is no other word */
        return;
    }
    if (conn->room == NULL)
        conn->room = room_take(conn->server);
    if (conn->x.id == 0)
        conn->x.head_only = false;
    conn->close_after = true;
    conn->busy = true;
    exchange_write_fault(&conn->x, fault);
    end_exchange(conn, why);
    conn->busy = was_busy;
    conn->state = CONN_IDLE; /* nothing is read any more: close_after */
    if (!was_busy)
        conn_process(conn);
}

/* ---- the states ---- */

static struct str unread(const struct conn *conn)
{
    const struct room *room = conn->room;

    return room ? (struct str){room->bytes + room->start, room->end - room->start}
                : (struct str){"", 0};
}

static void move_down(struct room *room, size_t to)
{
    size_t n = room->end - room->start;

    memmove(room->bytes + to, room->bytes + room->start, n);
    room->start = to;
    room->end = to + n;
}

static void begin_exchange(struct conn *conn, size_t head_length)
{
    struct http_server *server = conn->server;
    struct http_exchange *x = &conn->x;
    struct room *room = conn->room;

    room->start += head_length;
    conn->base = room->start;
    conn->state = CONN_EXCHANGE;
    memset(x, 0, sizeof(*x));
    x->conn = conn;
    x->id = ++server->serial << 20 | conn->slot;
    x->head_only = room->head.method == HTTP_HEAD;
    x->continue_due = room->head.expects_continue;
    http_body_init(&x->body, &room->head, server->limits.body_max);
    server->counts.requests++;
    server->handler->on_request(server->owner, x, &room->head);
}

static bool step_head(struct conn *conn)
{
    struct str in = unread(conn);
    int n;

    if (in.n == 0 || conn->close_after)
        return false;
    /* Who does not take the answers gets no further ones made. */
    if (conn_waiting(conn) > conn->server->limits.output_high)
        return false;
    if (conn->room->start > 0 && sizeof(conn->room->bytes) - conn->room->start < HEAD_ROOM) {
        move_down(conn->room, 0);
        in = unread(conn);
    }
    n = http_request_read(&conn->scan, in, &conn->room->head);
    if (n == 0) {
        if (conn->state == CONN_IDLE)
            conn->deadline_ms = 0; /* a new one, for the head */
        conn->state = CONN_HEAD;
        return false;
    }
    if (n < 0) {
        conn_refuse(conn, conn->scan.fault, HTTP_GONE_CLIENT);
        return false;
    }
    begin_exchange(conn, (size_t)n);
    return true;
}

/* The client waits for a word before it sends; not when it has begun already. */
static void send_continue(struct conn *conn)
{
    struct http_exchange *x = &conn->x;
    struct err err;

    if (!x->continue_due || x->begun || x->paused || unread(conn).n > 0)
        return;
    x->continue_due = false;
    if (buf_add_str(&conn->room->out, STR_LIT(HTTP_CONTINUE), &err) < 0)
        conn_close(conn, HTTP_GONE_CLIENT);
}

static void deliver(struct conn *conn, struct str piece)
{
    struct http_server *server = conn->server;

    if (conn->x.ended)
        return; /* thrown away */
    if (server->handler->on_body != NULL)
        server->handler->on_body(server->owner, &conn->x, piece);
}

static void deliver_end(struct conn *conn)
{
    struct http_server *server = conn->server;

    conn->x.body_ended = true;
    if (!conn->x.ended && server->handler->on_body_end != NULL)
        server->handler->on_body_end(server->owner, &conn->x);
}

/* One piece of the body. False: nothing more to be had now. */
static bool step_body(struct conn *conn)
{
    struct http_exchange *x = &conn->x;
    struct str in = unread(conn);
    struct str piece = {NULL, 0};
    enum http_body_event event = http_body_next(&x->body, &in, &piece);

    conn->room->start = conn->room->end - in.n;
    switch (event) {
    case HTTP_BODY_DATA:
        x->continue_due = false; /* it did not wait */
        deliver(conn, piece);
        return true;
    case HTTP_BODY_END:
        deliver_end(conn);
        return true;
    case HTTP_BODY_REFUSED:
        conn_refuse(conn, x->body.fault, HTTP_GONE_CLIENT);
        return false;
    case HTTP_BODY_MORE:
        break;
    }
    send_continue(conn);
    return false;
}

static bool step_raw(struct conn *conn)
{
    struct http_exchange *x = &conn->x;
    struct str in = unread(conn);

    if (x->ended) {
        conn->close_after = true;
        end_exchange(conn, HTTP_GONE_DONE);
        conn->state = CONN_IDLE;
        return false;
    }
    if (in.n == 0 || x->paused)
        return false;
    conn->room->start = conn->room->end;
    if (x->raw != NULL)
        x->raw->take(x->raw_data, in);
    else
        deliver(conn, in);
    return true;
}

static bool step_exchange(struct conn *conn)
{
    struct http_exchange *x = &conn->x;

    if (x->upgraded)
        return step_raw(conn);
    if (x->ended) {
        bool body_ended = x->body_ended;

        end_exchange(conn, HTTP_GONE_DONE);
        conn->state = body_ended ? CONN_IDLE : CONN_DRAIN;
        conn->scan = (struct http_scan){0};
        conn->base = 0;
        return !conn->close_after;
    }
    if (x->body_ended || x->paused)
        return false;
    return step_body(conn);
}

static bool step_drain(struct conn *conn)
{
    struct str in = unread(conn);
    struct str piece;
    enum http_body_event event;

    if (conn->close_after)
        return false;
    while ((event = http_body_next(&conn->x.body, &in, &piece)) == HTTP_BODY_DATA)
        continue;
    if (conn->room != NULL)
        conn->room->start = conn->room->end - in.n;
    conn->close_after |= event == HTTP_BODY_REFUSED;
    if (event != HTTP_BODY_END)
        return false;
    conn->state = CONN_IDLE;
    return true;
}

static bool step(struct conn *conn)
{
    switch (conn->state) {
    case CONN_IDLE:
    case CONN_HEAD:
        return step_head(conn);
    case CONN_EXCHANGE:
        return step_exchange(conn);
    case CONN_DRAIN:
        return step_drain(conn);
    case CONN_LINGER:
    case CONN_CLOSED:
        break;
    }
    return false;
}

/* ---- after the steps ---- */

static bool has_to_tell(const struct conn *conn)
{
    return conn->state == CONN_EXCHANGE && conn->x.wants_writable &&
           conn_waiting(conn) <= HTTP_OUTPUT_LOW;
}

static void tell_writable(struct conn *conn)
{
    struct http_server *server = conn->server;

    conn->x.wants_writable = false;
    if (server->handler->on_writable != NULL)
        server->handler->on_writable(server->owner, &conn->x);
}

/* Makes the free part of the input contiguous; a head that is in use stays where it is. */
static void tidy_room(struct conn *conn)
{
    struct room *room = conn->room;
    size_t n = room->end - room->start;

    if (conn->x.id == 0)
        conn->base = 0;
    if (n == 0)
        room->start = room->end = conn->base;
    else if (room->start > conn->base && room->end > sizeof(room->bytes) / 2)
        move_down(room, conn->base);
}

static bool is_done_sending(const struct conn *conn)
{
    return conn_waiting(conn) == 0 && !conn->is_flying;
}

/* The other side has ended its direction. Answers that are complete still go out; whoever has
 * not answered has lost the client. */
static void after_eof(struct conn *conn)
{
    if (conn->state == CONN_EXCHANGE && !conn->x.ended)
        conn_close(conn, HTTP_GONE_CLIENT);
    else if (is_done_sending(conn))
        conn_close(conn, HTTP_GONE_CLIENT);
    else
        conn->close_after = true;
}

static void give_back_room(struct conn *conn)
{
    if (conn->room == NULL || conn->state != CONN_IDLE || unread(conn).n > 0 ||
        conn->room->out.n > 0)
        return;
    room_give(conn->server, conn->room);
    conn->room = NULL;
}

static unsigned wait_for(const struct conn *conn)
{
    const struct http_limits *limits = &conn->server->limits;

    if (!is_done_sending(conn))
        return limits->write_ms;
    switch (conn->state) {
    case CONN_IDLE:
        return conn->fresh ? limits->head_ms : limits->idle_ms;
    case CONN_HEAD:
        return limits->head_ms;
    case CONN_EXCHANGE:
        if (conn->x.raw != NULL)
            return conn->x.raw->wait_ms(conn->x.raw_data);
        if (conn->x.upgraded || conn->x.body_ended || conn->x.paused)
            return 0;
        return limits->body_ms;
    case CONN_DRAIN:
        return limits->body_ms;
    case CONN_LINGER:
        return limits->linger_ms;
    case CONN_CLOSED:
        break;
    }
    return 0;
}

/* A head has its time as a whole; everything else starts anew with each step forward. */
static void set_deadline(struct conn *conn)
{
    unsigned wait = wait_for(conn);

    bool waiting = !is_done_sending(conn);

    if (conn->state == CONN_HEAD && conn->deadline_ms != 0 && !waiting)
        return;
    if (waiting && conn->was_waiting && !conn->was_sent && conn->deadline_ms != 0)
        return;
    conn->was_sent = false;
    conn->was_waiting = waiting;
    conn->deadline_ms = wait == 0 ? 0 : uv_now(conn->server->loop) + wait;
    if (conn->deadline_ms != 0)
        server_due(conn->server, conn->deadline_ms);
}

static bool is_full(const struct conn *conn)
{
    return conn->room != NULL && conn->room->end == sizeof(conn->room->bytes);
}

/* Nothing was ever said, or nothing is on its way: there is nothing to wait for. */
static void say_goodbye(struct conn *conn)
{
    if (conn->server->stopping && conn->state == CONN_IDLE && unread(conn).n == 0 &&
        conn->tls == NULL)
        conn_close(conn, HTTP_GONE_STOPPED);
    else
        linger(conn);
}

/* Idle connections of a server that stops are closed; the others tell "close" in their answer. */
static void settle(struct conn *conn)
{
    bool is_between = conn->state == CONN_IDLE || conn->state == CONN_HEAD;

    if (conn->state == CONN_CLOSED || conn->state == CONN_LINGER)
        return;
    if (conn->server->stopping && is_between)
        conn->close_after = true;
    if (conn->eof && !conn->is_again)
        after_eof(conn);
    else if (conn->close_after && conn->state != CONN_EXCHANGE && is_done_sending(conn))
        say_goodbye(conn);
    if (conn->state == CONN_CLOSED || conn->state == CONN_LINGER)
        return;
    give_back_room(conn);
    set_reading(conn, !conn->eof && !is_full(conn));
    set_deadline(conn);
}

static void run_steps(struct conn *conn)
{
    uint64_t last = conn->server->counts.requests + HTTP_PIPELINE_MAX;
    bool has_more = true;

    while (has_more) {
        has_more = pull(conn);
        while (conn->state != CONN_CLOSED && step(conn)) {
            if (conn->server->counts.requests < last)
                continue;
            server_again(conn->server, conn);
            has_more = false;
            break;
        }
        if (conn->room != NULL)
            tidy_room(conn);
        has_more = has_more && !is_full(conn);
    }
}

void conn_process(struct conn *conn)
{
    if (conn->busy || conn->state == CONN_CLOSED || conn->state == CONN_LINGER)
        return;
    conn->busy = true;
    run_steps(conn);
    conn_flush(conn);
    /* A fast reader and a fast sender would never let go. */
    for (unsigned turn = 0; turn < SENDER_TURNS && has_to_tell(conn); turn++) {
        tell_writable(conn);
        run_steps(conn);
        conn_flush(conn);
    }
    if (has_to_tell(conn))
        server_again(conn->server, conn);
    conn->busy = false;
    settle(conn);
}

void conn_start(struct conn *conn)
{
    if (conn->tls != NULL)
        conn->state = CONN_HEAD; /* the handshake has the head's time */
    set_reading(conn, true);
    set_deadline(conn);
}

static void be_quiet(struct conn *conn)
{
    conn->server->counts.timeouts--; /* not yet */
    conn->busy = true;
    conn->x.raw->quiet(conn->x.raw_data);
    conn->busy = false;
    conn->deadline_ms = 0;
    conn_process(conn);
}

void conn_deadline_passed(struct conn *conn)
{
    conn->server->counts.timeouts++;
    if (conn->state == CONN_LINGER || !is_done_sending(conn)) {
        conn_close(conn, HTTP_GONE_TIMEOUT);
        return;
    }
    if (conn->state == CONN_HEAD && (conn->tls == NULL || tls_is_open(conn->tls)) && !conn->fresh)
        conn_refuse(conn, HTTP_FAULT_HEAD_TIMEOUT, HTTP_GONE_TIMEOUT);
    else if (conn->state == CONN_EXCHANGE && conn->x.raw != NULL)
        be_quiet(conn);
    else if (conn->state == CONN_EXCHANGE)
        conn_refuse(conn, HTTP_FAULT_BODY_TIMEOUT, HTTP_GONE_TIMEOUT);
    else
        conn_close(conn, HTTP_GONE_TIMEOUT);
}
