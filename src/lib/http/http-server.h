/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lib/http/http.h"

/* An HTTP/1.1 server on a libuv loop: TCP, TLS and unix sockets, one thread.
 *
 * A request and its answer are one exchange. The handler hears, in this order,
 *
 *     on_request    the head; here it decides about the body (http_body_max, http_pause) and may
 *                   answer at once
 *     on_body       pieces of the body, framing undone
 *     on_body_end   the body is complete (also when there is none)
 *     on_writable   there is room again after http_send said there is not
 *     on_gone       exactly once for each exchange, and last: its answer is handed over, or it
 *                   cannot be answered any more and says why. The exchange is invalid after it.
 *
 * and answers with http_answer, or http_begin, http_send... and http_end, then or later, on the
 * loop's thread. Other threads keep the exchange's id and come through http_server_post.
 *
 * Programs ignore SIGPIPE: libuv writes with write(2).
 *
 * Once the answer has ended, on_body and on_body_end come no more. Whatever is left of a small
 * body is thrown away; a large one costs the connection. Requests that are sent ahead wait until
 * the answer before them has ended, so answers are in order. A client that closes its sending
 * side before it has its answer counts as gone. */

struct uv_loop_s;
struct ssl_ctx_st;
struct http_server;
struct http_exchange;

enum http_gone {
    HTTP_GONE_CLIENT = 0, /* closed, reset, or broke the framing of its body */
    HTTP_GONE_DONE,       /* the whole answer is handed over */
    HTTP_GONE_TIMEOUT,    /* the body stopped arriving or the answer being taken */
    HTTP_GONE_STOPPED,    /* the server ended first */
    HTTP_GONE_ABORTED,    /* http_abort, or more was sent than may wait */
};

struct http_handler {
    void (*on_request)(void *owner, struct http_exchange *x, const struct http_head *head);
    void (*on_body)(void *owner, struct http_exchange *x, struct str bytes);   /* may be NULL, */
    void (*on_body_end)(void *owner, struct http_exchange *x);                 /* this, */
    void (*on_writable)(void *owner, struct http_exchange *x);                 /* this, */
    void (*on_gone)(void *owner, struct http_exchange *x, enum http_gone why); /* and this */
    /* The body of an answer the server gives itself (bad framing, ceilings). NULL: the JSON
     * envelope {"error":{"message","type","code","reason_code"}}. */
    int (*fault_body)(void *owner, enum http_fault fault, struct buf *out, struct err *err);
    /* One more header of such an answer, by what could be read of the head; may be NULL. */
    bool (*fault_header)(void *owner, const struct http_head *head, struct http_header *out);
};

/* What a server may choose; zero takes the number of http-limits.h. */
struct http_limits {
    uint64_t body_max;
    unsigned connections_max;
    unsigned head_ms;
    unsigned body_ms;
    unsigned idle_ms;
    unsigned write_ms;
    unsigned linger_ms;
    unsigned ws_ping_ms;  /* a WebSocket may be silent; twice as long, and it is gone */
    unsigned ws_close_ms; /* for the other side's close frame */
    size_t output_high;
    size_t output_max;
};

struct http_counts {
    unsigned connections; /* now */
    uint64_t accepted;
    uint64_t requests;
    uint64_t refused;  /* answered by the server itself because of a fault */
    uint64_t overflow; /* connections turned away */
    uint64_t timeouts;
};

/* ---- server ---- */

/* The loop, the handler and its owner stay the caller's and must outlive the server. */
struct http_server *http_server_new(struct uv_loop_s *loop, const struct http_handler *handler,
                                    void *owner, const struct http_limits *limits);
/* After on_stopped, or before anything was listened on. */
void http_server_free(struct http_server *server);
AUTO_TYPE(http_server)

/* "127.0.0.1:8080", "[::1]:0"; port 0 takes a free one, which *out_port names (may be NULL).
 * With a TLS context the connections speak TLS. */
int http_server_listen(struct http_server *server, const char *address, struct ssl_ctx_st *tls,
                       unsigned *out_port, struct err *err) MUST_CHECK;
/* A unix socket, made with this mode; a socket nobody listens on is replaced. */
int http_server_listen_unix(struct http_server *server, const char *path, unsigned mode,
                            struct err *err) MUST_CHECK;
/* A listening socket somebody else made (socket activation). Takes fd, also when it fails. */
int http_server_listen_fd(struct http_server *server, int fd, struct ssl_ctx_st *tls,
                          struct err *err) MUST_CHECK;

/* No new connections; idle ones close, exchanges may end within grace_ms, then they are cut.
 * on_stopped comes from the loop when all is closed. A second call shortens the grace. */
void http_server_stop(struct http_server *server, unsigned grace_ms,
                      void (*on_stopped)(void *owner));
struct http_counts http_server_counts(const struct http_server *server);

/* The one call for other threads: run(x, argument) happens on the loop's thread, with NULL when
 * the exchange is gone or id is 0. Calls of one thread keep their order. Whatever was posted has
 * run before on_stopped. */
void http_server_post(struct http_server *server, uint64_t id,
                      void (*run)(struct http_exchange *x, void *argument), void *argument);

/* ---- exchange ---- */

uint64_t http_exchange_id(const struct http_exchange *x); /* never 0, never used again */
struct http_exchange *http_exchange_find(struct http_server *server, uint64_t id);
struct http_server *http_exchange_server(const struct http_exchange *x);
const struct http_head *http_exchange_head(const struct http_exchange *x); /* until on_gone */
/* For the handler: whatever it keeps about this exchange. NULL at first. */
void http_exchange_set(struct http_exchange *x, void *data);
void *http_exchange_get(const struct http_exchange *x);

struct http_peer {
    bool is_unix;
    bool is_tls;
    unsigned uid, gid; /* of a unix peer, when it connected */
    int pid;
};
struct http_peer http_exchange_peer(const struct http_exchange *x);
/* "127.0.0.1:4711", "[::1]:4711", "" for unix: asked of the kernel and written out each time. */
#define HTTP_ADDRESS_BYTES 64
void http_exchange_address(const struct http_exchange *x, char out[HTTP_ADDRESS_BYTES]);

/* From on_request only: how large this body may be, framing undone. Larger is 413. */
void http_body_max(struct http_exchange *x, uint64_t max);
/* Holds back on_body and on_body_end until http_resume; at most one input's worth is read on
 * meanwhile. Pieces that were in the same call still come. */
void http_pause(struct http_exchange *x);
void http_resume(struct http_exchange *x);

/* The whole answer. -1: nothing was sent (a header is refused, or an answer has begun); answer
 * something else. HEAD gets the head only, 204 and 304 no body. What is larger than may wait
 * (limits.output_max) goes out in pieces instead: whole, it costs a slow client its connection. */
int http_answer(struct http_exchange *x, int status, const struct http_header *headers, size_t n,
                struct str body, struct err *err) MUST_CHECK;
/* What the server answers to a fault; the connection ends after it. */
void http_refuse(struct http_exchange *x, enum http_fault fault);

/* In pieces: with a length, or HTTP_STREAM, which is chunked (HTTP/1.0: until close). */
#define HTTP_STREAM UINT64_MAX
int http_begin(struct http_exchange *x, int status, const struct http_header *headers, size_t n,
               uint64_t length, struct err *err) MUST_CHECK;
/* True: go on. False: taken as well, but wait for on_writable before the next. More than the
 * length that was promised, or sending on past HTTP_OUTPUT_MAX, aborts the exchange: on_gone comes
 * from the loop, later sends are ignored. */
bool http_send(struct http_exchange *x, struct str bytes);
/* The next piece is what this pipe holds, of which we are the only reader and which does not block.
 * Where the connection is plain the kernel hands its pages to the socket and nobody copies them.
 * Returns like read(): how many bytes, 0 for its end, -1 and errno; *may_go_on as http_send. */
ssize_t http_send_pipe(struct http_exchange *x, int fd, bool *may_go_on);
/* Ends the answer. Less than the promised length aborts. on_gone may come before this returns. */
void http_end(struct http_exchange *x);
/* The same with fields behind the body, which a head announced as "trailer". Where an answer is not
 * chunked there is no place for them, and they are left out. */
void http_end_with(struct http_exchange *x, const struct http_header *trailers, size_t n);
/* Cuts the connection in the middle: the client sees that the answer is not complete. */
void http_abort(struct http_exchange *x);
size_t http_waiting(const struct http_exchange *x); /* bytes the client has not taken */
bool http_has_begun(const struct http_exchange *x);

/* One server-sent event into an answer begun with HTTP_STREAM and type HTTP_SSE_TYPE. As
 * http_send; an event that is refused (line ends in its id) is a -1 and nothing was sent. */
int http_send_event(struct http_exchange *x, struct str event, struct str id, struct str data,
                    bool *may_go_on, struct err *err) MUST_CHECK;

/* Leaves HTTP: after this head (101, or 200 to CONNECT) bytes come and go as they are, through
 * on_body and http_send. http_end closes after what was sent. Deadlines of bodies do not apply;
 * those of writing do. */
int http_upgrade(struct http_exchange *x, int status, const struct http_header *headers, size_t n,
                 struct err *err) MUST_CHECK;

/* ---- TLS ---- */

/* TLS 1.2 and later, ALPN "http/1.1"; certificate chain and key from PEM files. */
int http_tls_new(const char *certificate_path, const char *key_path, struct ssl_ctx_st **out,
                 struct err *err) MUST_CHECK;
void http_tls_free(struct ssl_ctx_st *tls); /* accepts NULL; connections keep what they use */
