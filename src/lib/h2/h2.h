/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* HTTP/2 between memory and memory: a relay that is a server towards a client and a client towards
 * a server, and hands over nothing that was not judged.
 *
 * One relay is one connection of each side. Every stream's head becomes a struct http_head, the one
 * an HTTP/1 request is read into, under the same ceilings and the same grammar; a stream is opened
 * at the server only after `judge` allowed it. Bodies flow as the receiver takes them: what a side
 * does not take is not asked of the other one. There is no push, no CONNECT, no upgrade.
 *
 * Bytes that break the protocol, and floods (resets, settings, pings, empty frames, window games,
 * endless heads), end the connection; everything else ends one stream. One thread. */

#include "lib/base/buf.h"
#include "lib/http/http.h"

#define H2_STREAMS_MAX 100U               /* at once, on one connection */
#define H2_WINDOW_BYTES (256U * 1024)     /* a stream may be this far ahead of its receiver, */
#define H2_CONNECTION_BYTES (1024 * 1024) /* all of them together this far, in each direction */
#define H2_HELD_MAX (4UL * 1024 * 1024)   /* bodies held back to be judged, all together */
#define H2_WIRE_MAX (128UL * 1024)        /* frames waiting to be sent, besides one */

struct h2_relay;

/* ---- what is asked of the owner ---- */

enum h2_answer {
    H2_REFUSE = 0, /* answered by us, with status and body; the server never hears of it */
    H2_PASS,       /* handed on, the body as it comes */
    H2_HOLD,       /* the whole body first, up to hold_max, then `judge_body` */
    H2_WAIT,       /* nothing is handed on before h2_relay_answer() */
    H2_END,        /* ends the whole connection */
};

/* The word on one stream; all zero refuses. Everything in it is copied before the call returns. */
struct h2_word {
    enum h2_answer answer;
    /* H2_REFUSE */
    int status;       /* 403 when 0 */
    struct str reply; /* application/json */
    /* H2_PASS: what goes upstream instead, where it is not NULL. */
    struct str path;                   /* with the query, as judged */
    const struct http_header *headers; /* all of them; framing and Host are ours */
    size_t header_count;
    struct str body; /* behind H2_HOLD: instead of the one that was held */
    size_t hold_max; /* H2_HOLD: a larger body is refused with 413 */
};

/* One stream as the owner sees it. `data` is the owner's. */
struct h2_stream {
    void *data;
    uint64_t request_bytes; /* of bodies, so far */
    uint64_t response_bytes;
    int status; /* of the answer the client got; 0 before */
};

/* Why a stream is over. */
enum h2_ending {
    H2_DONE = 0,    /* asked and answered whole */
    H2_REFUSED,     /* by judge, or by the rules of the protocol: see `fault` */
    H2_CLIENT_LEFT, /* the client reset it, or its connection is gone */
    H2_SERVER_LEFT, /* the same of the server; the client got 502 or a reset */
    H2_CUT,         /* by request_data or response_data */
};

struct h2_calls {
    /* A head is there and well formed; its slices hold until the call returns. `has_body`: more
     * comes. */
    void (*judge)(void *owner, struct h2_stream *stream, const struct http_head *head,
                  bool has_body, struct h2_word *out);
    /* The body that H2_HOLD asked for, whole, and the head again. May answer H2_WAIT too. */
    void (*judge_body)(void *owner, struct h2_stream *stream, const struct http_head *head,
                       struct str body, struct h2_word *out);
    /* The server's head, or one before it (a status below 200), or behind the body its trailers
     * (then status is 0). Names and values lie in memory of ours and may be changed in place, not
     * their number (a secret that comes back is struck out). False cuts the stream: the client gets
     * 502. May be NULL. */
    bool (*response)(void *owner, struct h2_stream *stream, struct http_head *head);
    /* A piece of a request's body on its way, or the value of a trailer; not of bodies that were
     * held. False cuts the stream (a budget is used up). May be NULL. */
    bool (*request_data)(void *owner, struct h2_stream *stream, struct str piece);
    /* A piece of an answer: appends to `out` what goes on, maybe less than came and the rest
     * later; with is_last all of it. False cuts the stream. NULL: as it comes. */
    bool (*response_data)(void *owner, struct h2_stream *stream, struct str piece, bool is_last,
                          struct buf *out);
    /* Called once for every stream that was judged, or refused before (then data is NULL). */
    void (*ended)(void *owner, struct h2_stream *stream, enum h2_ending ending, const char *fault);
};

/* ---- the relay ---- */

struct h2_config {
    const struct h2_calls *calls;
    void *owner;
    /* The connection's host and port: any other :authority is 421. */
    const char *host;
    unsigned port;
};

int h2_relay_new(const struct h2_config *config, struct h2_relay **out, struct err *err) MUST_CHECK;
void h2_relay_free(struct h2_relay *relay);
AUTO_TYPE(h2_relay)

/* The owner's word after H2_WAIT, not from inside a callback. A stream that is gone by then was
 * reported by `ended`: do not ask. */
int h2_relay_answer(struct h2_relay *relay, struct h2_stream *stream, const struct h2_word *word,
                    struct err *err) MUST_CHECK;
/* The head and the held body again, until the stream is answered. */
int h2_stream_head(const struct h2_stream *stream, struct http_head *out) MUST_CHECK;
struct str h2_stream_body(const struct h2_stream *stream);

enum h2_peer {
    H2_CLIENT = 0,
    H2_SERVER = 1,
};

/* Bytes from a peer, after TLS; returns how many were taken (fewer while what follows from them
 * does not drain: come again when the wire moved), or -1 when the client's connection must end:
 * *err and h2_relay_fault() say why, and a GOAWAY is in its wire. A server that breaks the protocol
 * is a server that left. The owner frees no relay inside its callbacks. */
long h2_relay_feed(struct h2_relay *relay, enum h2_peer from, const void *bytes, size_t n,
                   struct err *err) MUST_CHECK;
/* A peer's bytes ended. */
void h2_relay_feed_end(struct h2_relay *relay, enum h2_peer from);

/* Bytes for a peer, before TLS: look, send, say how many went. Filled at most to H2_WIRE_MAX. */
struct str h2_relay_wire(struct h2_relay *relay, enum h2_peer to);
void h2_relay_sent(struct h2_relay *relay, enum h2_peer to, size_t n);

/* No more streams; the open ones go on. */
void h2_relay_finish(struct h2_relay *relay);
/* Nothing more will come: both wires can be closed once they are empty. */
bool h2_relay_is_over(const struct h2_relay *relay);
size_t h2_relay_streams(const struct h2_relay *relay);
/* Grows with every head and every piece of a body, and with nothing else: idle deadlines look at
 * it. */
uint64_t h2_relay_progress(const struct h2_relay *relay);
/* The code of the fault that ended the connection ("H2_FLOOD", "H2_PROTOCOL", ...), or "". */
const char *h2_relay_fault(const struct h2_relay *relay);
