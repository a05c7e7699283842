/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <uv.h>

#include "lib/http/http-server.h"

/* What the files of the server share. Who does what:
 *
 *     server.c     ceilings, deadlines, stopping, the hand-over from other threads
 *     listen.c     sockets that are listened on
 *     conn.c       one connection: what it reads goes through its states
 *     conn-write.c what it writes waits here
 *     exchange.c   what a handler may call
 *     pipe.c       the bytes of a pipe as a piece of an answer
 *     tls.c        between the socket's bytes and the connection's
 *     ws.c         WebSocket on an upgraded exchange */

/* What a connection needs while something happens on it, and an idle one gives back. */
struct room {
    struct room *next;
    struct http_head head;
    struct buf out; /* plain text still to be sent */
    size_t start;   /* what is not consumed yet: bytes[start, end) */
    size_t end;
    char bytes[HTTP_INPUT_BYTES];
};

enum conn_state {
    CONN_IDLE = 0,
    CONN_HEAD,     /* a part of one has arrived, or of a TLS handshake */
    CONN_EXCHANGE, /* x is alive */
    CONN_DRAIN,    /* answered; the rest of the body is thrown away */
    CONN_LINGER,   /* told everything; waiting for the other side to close */
    CONN_CLOSED,   /* uv_close is under way */
};

/* What takes an upgraded exchange's bytes instead of the handler. */
struct raw_hooks {
    void (*take)(void *data, struct str bytes);
    unsigned (*wait_ms)(const void *data); /* how long nothing may happen before quiet() */
    void (*quiet)(void *data);
    void (*gone)(void *data);
};

struct http_exchange {
    struct conn *conn;
    uint64_t id; /* 0 when there is none */
    void *data;
    struct http_body body;
    uint64_t left; /* of a promised length */
    bool body_ended;
    bool paused;
    bool continue_due; /* the client waits for 100 */
    bool begun;
    bool ended;
    bool head_only;
    bool chunked;
    bool upgraded;
    bool wants_writable;
    const struct raw_hooks *raw;
    void *raw_data;
};

struct conn {
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } io; /* first: libuv's pointer is ours */
    struct http_server *server;
    struct conn *before, *after; /* all of the server's */
    struct conn *again;          /* those that had their share of requests */
    struct room *room;
    struct tls *tls;
    struct buf wire;   /* TLS records to be sent */
    struct buf flying; /* in the hands of libuv */
    uv_write_t write;
    struct http_scan scan;
    struct http_exchange x;
    uint64_t deadline_ms; /* 0: none */
    uint64_t lingered;    /* bytes thrown away */
    size_t base;          /* of the input: behind the head while an exchange lives */
    unsigned slot;
    enum conn_state state;
    enum http_gone why;
    bool is_unix;
    bool busy; /* inside a callback: what is sent waits for its end */
    bool is_reading;
    bool is_flying;
    bool is_again;
    bool close_after; /* the answer that is being sent is the last */
    bool eof;
    bool fresh;       /* nothing has arrived yet */
    bool was_sent;    /* a part of what waits, since the deadline was set */
    bool was_waiting; /* when the deadline was set */
};

struct listener {
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } io;
    struct http_server *server;
    struct ssl_ctx_st *tls;
    bool is_unix;
    char *path; /* to be removed at the end */
};

struct post {
    struct post *next;
    uint64_t id;
    void (*run)(struct http_exchange *x, void *argument);
    void *argument;
};

struct http_server {
    uv_loop_t *loop;
    const struct http_handler *handler;
    void *owner;
    struct http_limits limits;
    struct http_counts counts;
    struct conn *conns;
    struct conn **slots;
    unsigned *free_slots;
    unsigned slot_count;
    unsigned free_count;
    uint64_t serial;
    struct room *rooms;
    unsigned room_count;
    struct listener *listeners[HTTP_LISTENERS_MAX];
    size_t listener_count;
    uv_timer_t timer;
    uint64_t sweep_ms; /* when it is due; 0: not set */
    uv_async_t async;
    uv_mutex_t lock; /* of posts and their order */
    struct post *posts;
    struct post **posts_end;
    struct conn *again;
    bool stopping;
    bool stopped;
    unsigned open_handles; /* listeners, timer, async */
    uint64_t stop_ms;
    void (*on_stopped)(void *owner);
    char *scratch; /* what TLS connections read into */
};

/* server.c */
struct room *room_take(struct http_server *server);
void room_give(struct http_server *server, struct room *room);
void server_due(struct http_server *server, uint64_t deadline_ms);
void server_again(struct http_server *server, struct conn *conn);
void server_conn_closed(struct http_server *server, struct conn *conn);
void server_on_connection(uv_stream_t *stream, int status);
/* Goes on with the end when nothing holds it up; the server may be gone afterwards. */
void server_maybe_stopped(struct http_server *server);

/* listen.c */
void listener_drop(struct http_server *server, struct listener *listener);

/* conn.c */
void conn_start(struct conn *conn);
/* Goes on wherever the connection is: consumes input, answers, flushes, sets the deadline. */
void conn_process(struct conn *conn);
/* Closes at once; whoever waits for the exchange hears it from the loop. */
void conn_close(struct conn *conn, enum http_gone why);
/* Answers for the handler, if nothing has been said yet, and ends the connection. */
void conn_refuse(struct conn *conn, enum http_fault fault, enum http_gone why);
void conn_deadline_passed(struct conn *conn);

/* conn-write.c */
void conn_flush(struct conn *conn);
size_t conn_waiting(const struct conn *conn);
/* Sends large pieces without copying what the socket takes at once. -1: too much waits. */
int conn_send(struct conn *conn, const uv_buf_t *pieces, unsigned n) MUST_CHECK;

/* exchange.c */
void exchange_write_fault(struct http_exchange *x, enum http_fault fault);
void exchange_upgrade_hooks(struct http_exchange *x, const struct raw_hooks *raw, void *data);

/* tls.c */
struct tls *tls_open(struct ssl_ctx_st *context);
void tls_close(struct tls *tls);
/* Records in, records for the other side out. -1: broken. */
int tls_feed(struct tls *tls, const char *bytes, size_t n) MUST_CHECK;
/* Plain bytes that have arrived: how many, 0 for none now, -1 for the end, -2 for broken. */
int tls_read(struct tls *tls, char *to, size_t room);
int tls_write(struct tls *tls, struct str plain) MUST_CHECK;
void tls_goodbye(struct tls *tls);
/* Moves records to be sent behind what is there. */
int tls_drain(struct tls *tls, struct buf *wire) MUST_CHECK;
bool tls_is_open(const struct tls *tls); /* the handshake is over */
