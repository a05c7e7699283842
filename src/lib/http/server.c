/* SPDX-License-Identifier: Apache-2.0 */

/* Ceilings, deadlines, the end, and the way in for other threads. */

#include "lib/http/server-private.h"

#include <sys/resource.h>

#include "lib/base/memory.h"

/* An exchange's id is a number that is never used again, and the place of its connection. */
#define SLOT_BITS 20
#define SLOT_MASK ((1U << SLOT_BITS) - 1)

static void on_async(uv_async_t *async);
static void on_timer(uv_timer_t *timer);

/* ---- making ---- */

static unsigned or_default(unsigned chosen, unsigned otherwise)
{
    return chosen > 0 ? chosen : otherwise;
}

/* Connections never take the descriptors that the rest of the process needs. */
static unsigned connections_within_fds(unsigned wanted)
{
    struct rlimit fds = {0, 0};

    if (getrlimit(RLIMIT_NOFILE, &fds) < 0 || fds.rlim_cur == RLIM_INFINITY)
        return wanted;
    if (fds.rlim_cur <= 2UL * HTTP_FDS_RESERVED)
        return 1 + (unsigned)fds.rlim_cur / 2;
    fds.rlim_cur -= HTTP_FDS_RESERVED;
    return fds.rlim_cur < wanted ? (unsigned)fds.rlim_cur : wanted;
}

static struct http_limits fill_limits(const struct http_limits *given)
{
    struct http_limits l = given ? *given : (struct http_limits){0};

    l.body_max = l.body_max > 0 ? l.body_max : HTTP_BODY_DEFAULT_MAX;
    l.connections_max = connections_within_fds(or_default(l.connections_max, HTTP_CONNECTIONS_MAX));
    if (l.connections_max > SLOT_MASK - HTTP_OVERFLOW_MAX)
        l.connections_max = SLOT_MASK - HTTP_OVERFLOW_MAX;
    l.head_ms = or_default(l.head_ms, HTTP_HEAD_MS);
    l.body_ms = or_default(l.body_ms, HTTP_BODY_MS);
    l.idle_ms = or_default(l.idle_ms, HTTP_IDLE_MS);
    l.write_ms = or_default(l.write_ms, HTTP_WRITE_MS);
    l.linger_ms = or_default(l.linger_ms, HTTP_LINGER_MS);
    l.ws_ping_ms = or_default(l.ws_ping_ms, HTTP_WS_PING_MS);
    l.ws_close_ms = or_default(l.ws_close_ms, HTTP_WS_CLOSE_MS);
    l.output_high = l.output_high > 0 ? l.output_high : HTTP_OUTPUT_HIGH;
    l.output_max = l.output_max > 0 ? l.output_max : HTTP_OUTPUT_MAX;
    return l;
}

static void make_slots(struct http_server *server)
{
    server->slot_count = server->limits.connections_max + HTTP_OVERFLOW_MAX;
    server->slots = xcalloc(server->slot_count, sizeof(struct conn *));
    server->free_slots = xcalloc(server->slot_count, sizeof(unsigned));
    while (server->free_count < server->slot_count) {
        server->free_slots[server->free_count] = server->slot_count - 1 - server->free_count;
        server->free_count++;
    }
}

struct http_server *http_server_new(struct uv_loop_s *loop, const struct http_handler *handler,
                                    void *owner, const struct http_limits *limits)
{
    struct http_server *server = xcalloc(1, sizeof(*server));

    server->loop = loop;
    server->handler = handler;
    server->owner = owner;
    server->limits = fill_limits(limits);
    server->posts_end = &server->posts;
    make_slots(server);
    /* These fail only without memory or descriptors, at the start of a program. */
    if (uv_async_init(loop, &server->async, on_async) < 0 ||
        uv_timer_init(loop, &server->timer) < 0 || uv_mutex_init(&server->lock) < 0)
        abort();
    server->async.data = server->timer.data = server;
    server->open_handles = 2;
    return server;
}

static void free_rooms(struct http_server *server)
{
    while (server->rooms != NULL) {
        struct room *room = server->rooms;

        server->rooms = room->next;
        buf_done(&room->out);
        free(room);
    }
}

static void release(struct http_server *server)
{
    free_rooms(server);
    uv_mutex_destroy(&server->lock);
    free(server->slots);
    free(server->free_slots);
    free(server->scratch);
    free(server);
}

static void close_own(uv_handle_t *handle, uv_close_cb closed)
{
    if (!uv_is_closing(handle))
        uv_close(handle, closed);
}

static void nobody_waits(void *owner)
{
    (void)owner;
}

/* A server that was never stopped ends here, on a loop that still runs its last turns. */
static void stop_now(struct http_server *server)
{
    http_server_stop(server, 0, nobody_waits);
    while (!server->stopped)
        (void)uv_run(server->loop, UV_RUN_ONCE);
}

void http_server_free(struct http_server *server)
{
    if (server == NULL)
        return;
    if (!server->stopped)
        stop_now(server);
    release(server);
}

/* ---- rooms ---- */

struct room *room_take(struct http_server *server)
{
    struct room *room = server->rooms;

    if (room != NULL) {
        server->rooms = room->next;
        server->room_count--;
    } else {
        room = xmalloc(sizeof(*room));
        room->out = BUF(server->limits.output_max + HTTP_ANSWER_HEAD_MAX);
    }
    room->next = NULL;
    room->start = room->end = 0;
    room->head.header_count = 0;
    room->head.path = (struct str){NULL, 0};
    return room;
}

void room_give(struct http_server *server, struct room *room)
{
    /* One that had to hold much does not keep it for the next. */
    if (server->room_count >= HTTP_INPUTS_KEPT || room->out.cap > HTTP_OUTPUT_LOW) {
        buf_done(&room->out);
        free(room);
        return;
    }
    buf_clear(&room->out);
    room->next = server->rooms;
    server->rooms = room;
    server->room_count++;
}

/* ---- deadlines ---- */

/* One timer for all, set to the earliest; a connection that was due and moved its deadline on
 * costs nothing until then. */
void server_due(struct http_server *server, uint64_t deadline_ms)
{
    uint64_t now = uv_now(server->loop);
    uint64_t wait = deadline_ms > now ? deadline_ms - now : 0;

    if (server->sweep_ms != 0 && server->sweep_ms <= deadline_ms)
        return;
    if (wait < HTTP_TICK_MS)
        wait = HTTP_TICK_MS;
    if (server->sweep_ms != 0 && server->sweep_ms <= now + wait)
        return;
    server->sweep_ms = now + wait;
    (void)uv_timer_start(&server->timer, on_timer, wait, 0); /* fails only while closing */
}

static void on_timer(uv_timer_t *timer)
{
    struct http_server *server = timer->data;
    uint64_t now = uv_now(server->loop);
    uint64_t next = UINT64_MAX;
    bool cut = server->stopping && now >= server->stop_ms;

    server->sweep_ms = 0;
    for (struct conn *conn = server->conns, *after; conn != NULL; conn = after) {
        after = conn->after;
        if (cut)
            conn_close(conn, HTTP_GONE_STOPPED);
        else if (conn->deadline_ms != 0 && conn->deadline_ms <= now)
            conn_deadline_passed(conn);
        if (conn->deadline_ms != 0 && conn->deadline_ms < next)
            next = conn->deadline_ms;
    }
    if (server->stopping && !cut && server->stop_ms < next)
        next = server->stop_ms;
    if (next != UINT64_MAX)
        server_due(server, next);
}

/* ---- connections ---- */

static void take_slot(struct http_server *server, struct conn *conn)
{
    conn->slot = server->free_slots[--server->free_count];
    server->slots[conn->slot] = conn;
    conn->after = server->conns;
    if (server->conns != NULL)
        server->conns->before = conn;
    server->conns = conn;
    server->counts.connections++;
    server->counts.accepted++;
}

static void forget_again(struct http_server *server, struct conn *conn)
{
    struct conn **at = &server->again;

    while (conn->is_again && *at != NULL && *at != conn)
        at = &(*at)->again;
    if (conn->is_again && *at != NULL)
        *at = conn->again;
}

void server_conn_closed(struct http_server *server, struct conn *conn)
{
    forget_again(server, conn);
    server->slots[conn->slot] = NULL;
    server->free_slots[server->free_count++] = conn->slot;
    if (conn->before != NULL)
        conn->before->after = conn->after;
    else
        server->conns = conn->after;
    if (conn->after != NULL)
        conn->after->before = conn->before;
    server->counts.connections--;
    server_maybe_stopped(server);
}

static int init_stream(struct conn *conn, const struct listener *listener)
{
    if (listener->is_unix)
        return uv_pipe_init(listener->server->loop, &conn->io.pipe, 0);
    return uv_tcp_init(listener->server->loop, &conn->io.tcp);
}

static void on_turned_away(uv_handle_t *handle)
{
    free(handle);
}

/* Accepted in any case: a connection that stays in the queue would wake us again and again. */
static void turn_away(const struct listener *listener)
{
    struct conn *conn = xcalloc(1, sizeof(*conn));

    if (init_stream(conn, listener) < 0)
        abort(); /* cannot fail: no descriptor is made yet */
    (void)uv_accept((uv_stream_t *)(uintptr_t)&listener->io.stream, &conn->io.stream);
    uv_close(&conn->io.handle, on_turned_away);
}

static struct conn *conn_accept(struct listener *listener)
{
    struct http_server *server = listener->server;
    struct conn *conn = xcalloc(1, sizeof(*conn));

    if (init_stream(conn, listener) < 0)
        abort(); /* as above */
    conn->server = server;
    conn->x.conn = conn;
    conn->is_unix = listener->is_unix;
    conn->wire = conn->flying = BUF(server->limits.output_max + MIB);
    conn->fresh = true;
    take_slot(server, conn);
    if (uv_accept(&listener->io.stream, &conn->io.stream) < 0) {
        conn_close(conn, HTTP_GONE_CLIENT);
        return NULL;
    }
    if (!conn->is_unix)
        (void)uv_tcp_nodelay(&conn->io.tcp, 1); /* only costs latency */
    if (listener->tls != NULL)
        conn->tls = tls_open(listener->tls);
    return conn;
}

void server_on_connection(uv_stream_t *stream, int status)
{
    struct listener *listener = stream->data;
    struct http_server *server = listener->server;
    struct conn *conn;

    /* Out of descriptors: libuv has kept one for this, took the connection with it and closed
     * it; the next ones get in when there is room. */
    if (status < 0) {
        server->counts.overflow++;
        return;
    }
    if (server->free_count == 0 ||
        (listener->tls != NULL && server->counts.connections >= server->limits.connections_max)) {
        server->counts.overflow++;
        turn_away(listener);
        return;
    }
    conn = conn_accept(listener);
    if (conn == NULL)
        return;
    conn_start(conn);
    if (server->counts.connections > server->limits.connections_max) {
        server->counts.overflow++;
        conn_refuse(conn, HTTP_FAULT_TOO_MANY_CONNECTIONS, HTTP_GONE_CLIENT);
    }
}

/* ---- from other threads ---- */

void http_server_post(struct http_server *server, uint64_t id,
                      void (*run)(struct http_exchange *x, void *argument), void *argument)
{
    struct post *post = xmalloc(sizeof(*post));

    *post = (struct post){NULL, id, run, argument};
    uv_mutex_lock(&server->lock);
    *server->posts_end = post;
    server->posts_end = &post->next;
    uv_mutex_unlock(&server->lock);
    (void)uv_async_send(&server->async); /* fails only once it is closed, after on_stopped */
}

static struct post *take_posts(struct http_server *server)
{
    struct post *posts;

    uv_mutex_lock(&server->lock);
    posts = server->posts;
    server->posts = NULL;
    server->posts_end = &server->posts;
    uv_mutex_unlock(&server->lock);
    return posts;
}

/* What one call sends goes out together. */
static void run_post(struct http_server *server, const struct post *post)
{
    struct http_exchange *x = http_exchange_find(server, post->id);
    struct conn *conn = x ? x->conn : NULL;

    if (conn == NULL || conn->busy) {
        post->run(x, post->argument);
        return;
    }
    conn->busy = true;
    post->run(x, post->argument);
    conn->busy = false;
    conn_process(conn);
}

static void run_posts(struct http_server *server)
{
    struct post *posts = take_posts(server);

    while (posts != NULL) {
        struct post *post = posts;

        posts = post->next;
        run_post(server, post);
        free(post);
    }
}

void server_again(struct http_server *server, struct conn *conn)
{
    if (conn->is_again)
        return;
    conn->is_again = true;
    conn->again = server->again;
    server->again = conn;
    (void)uv_async_send(&server->async); /* as above */
}

static void on_async(uv_async_t *async)
{
    struct http_server *server = async->data;
    struct conn *conn;

    run_posts(server);
    conn = server->again;
    server->again = NULL;
    while (conn != NULL) {
        struct conn *next = conn->again;

        conn->is_again = false;
        conn->again = NULL;
        conn_process(conn);
        conn = next;
    }
    server_maybe_stopped(server);
}

/* ---- the end ---- */

static void on_own_closed(uv_handle_t *handle)
{
    struct http_server *server = handle->data;

    server->open_handles--;
    server_maybe_stopped(server);
}

/* In two steps: with the last connection gone the timer and the hand-over close, and when they
 * have, the owner hears it and may free the server at once. */
void server_maybe_stopped(struct http_server *server)
{
    if (!server->stopping || server->stopped || server->conns != NULL)
        return;
    if (server->open_handles > 2)
        return; /* listeners are closing */
    if (server->open_handles == 2 && !uv_is_closing((uv_handle_t *)&server->async)) {
        run_posts(server);
        close_own((uv_handle_t *)&server->timer, on_own_closed);
        close_own((uv_handle_t *)&server->async, on_own_closed);
        return;
    }
    if (server->open_handles > 0)
        return;
    run_posts(server); /* what came while they closed */
    server->stopped = true;
    server->on_stopped(server->owner);
}

void http_server_stop(struct http_server *server, unsigned grace_ms,
                      void (*on_stopped)(void *owner))
{
    uint64_t now = uv_now(server->loop);

    if (server->stopping && now + grace_ms >= server->stop_ms)
        return;
    server->stop_ms = now + grace_ms;
    server->on_stopped = server->stopping ? server->on_stopped : on_stopped;
    server->stopping = true;
    while (server->listener_count > 0)
        listener_drop(server, server->listeners[0]);
    for (struct conn *conn = server->conns, *after; conn != NULL; conn = after) {
        after = conn->after;
        if (grace_ms == 0)
            conn_close(conn, HTTP_GONE_STOPPED);
        else
            conn_process(conn); /* closes what is idle */
    }
    if (server->conns != NULL)
        server_due(server, server->stop_ms);
    else
        (void)uv_async_send(&server->async); /* on_stopped never comes from inside this call */
}

struct http_counts http_server_counts(const struct http_server *server)
{
    return server->counts;
}

struct http_exchange *http_exchange_find(struct http_server *server, uint64_t id)
{
    unsigned slot = (unsigned)(id & SLOT_MASK);
    struct conn *conn = slot < server->slot_count ? server->slots[slot] : NULL;

    return conn != NULL && id != 0 && conn->x.id == id ? &conn->x : NULL;
}
