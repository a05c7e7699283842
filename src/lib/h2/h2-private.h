/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to lib/h2.
 *
 *     relay.c    the two sessions and their bytes
 *     events.c   sessions, and what is the same for both
 *     requests.c what the client's session reports
 *     answers.c  what the server's session reports
 *     head.c     between HTTP/2's header lists and struct http_head
 *     submit.c   heads and answers on their way out
 *     pipe.c     bodies, and who may send more
 *     stream.c   one stream's life
 *     meter.c    what counts as a flood */

#include <nghttp2/nghttp2.h>

#include "lib/base/queue.h"
#include "lib/h2/h2.h"

#define H2_HOST_BYTES 256
#define H2_HEAD_TEXT_MAX (HTTP_HEAD_MAX + 512) /* http_request_read() is the judge of its size */

/* What a stream can be refused for before anybody judged it:
 *    id          code                 status  sentence */
#define H2_FAULTS(X)                                                                               \
    X(AUTHORITY, "EGRESS_HOST_MISMATCH", 421,                                                      \
      "the request is for another host than its connection; open one to that host")                \
    X(CONNECT, "H2_CONNECT", 405, "CONNECT inside a connection is not allowed")                    \
    X(SCHEME, "H2_SCHEME", 400, "the scheme of the request is not https")                          \
    X(HEAD, "H2_HEAD", 400, "a pseudo header is missing or Host differs from it")                  \
    X(HELD, "H2_HELD", 413, "the body is larger than what can be looked into")                     \
    X(HELD_ALL, "H2_HELD_ALL", 503, "too many bodies wait to be looked into; try again later")     \
    X(SERVER, "H2_SERVER_LEFT", 502, "the server ended the stream before it answered")             \
    X(ANSWER, "H2_ANSWER", 502, "the server's answer is not understood or not allowed")

enum h2_fault {
#define X(id, code, status, text) H2_FAULT_##id,
    H2_FAULTS(X)
#undef X
};

struct h2_fault_face {
    const char *code;
    int status;
    const char *text;
};
const struct h2_fault_face *h2_fault_face(enum h2_fault fault);

/* ---- floods ---- */

#define FRAME_HEAD_BYTES 9 /* RFC 9113 4.1 */
#define PREFACE_BYTES 24   /* of a client, before its first frame */

struct meter {
    int64_t credit;
    uint64_t seen_us;
    unsigned char head[FRAME_HEAD_BYTES]; /* of the frame that arrives */
    unsigned have;
    size_t skip; /* of its payload */
};

void meter_init(struct meter *meter, size_t preface);
/* Looks at bytes as they arrive. False: the credit is used up. */
bool meter_look(struct meter *meter, struct str bytes);
void meter_earn(struct meter *meter, int64_t credit);

#define METER_FOR_STREAM 20 /* one that was asked and answered */
#define METER_FOR_DATA 2    /* a piece of a body that was sent: two windows may be updated for it */
#define METER_DATA_MIN 16   /* and had a size worth it */

/* ---- streams ---- */

/* A body on its way to one peer. */
struct pipe {
    struct queue bytes;
    size_t owed;         /* received, and not yet told to its sender as taken */
    bool ended;          /* nothing more will be added */
    bool is_waiting;     /* nghttp2 was told that there is nothing now */
    struct buf trailers; /* lines, as in HTTP/1 */
};

enum stream_state {
    STREAM_NEW = 0,
    STREAM_WAITING,      /* for the owner's word on its head */
    STREAM_HOLDING,      /* its body is collected */
    STREAM_WAITING_BODY, /* for the owner's word on its body */
    STREAM_OPEN,         /* handed to the server */
    STREAM_ANSWERED,     /* by us, or whole by the server: what the client still sends is dropped */
};

struct stream {
    struct h2_stream shown; /* first: owners hold pointers to it */
    struct h2_relay *relay;
    struct stream *prev;
    struct stream *next;
    enum stream_state state;
    int32_t id[2];     /* at each peer; 0 when it is not open there */
    struct pipe to[2]; /* to[H2_SERVER] is the request's body */
    struct buf head;   /* the request as text */
    size_t hold_max;
    size_t held;
    size_t dropped; /* of its body, behind an answer of ours */
    bool is_head_method;
    bool client_ended; /* its request is here whole */
    bool has_answered; /* a final head went to the client */
    bool is_delivered; /* the last byte of the answer went out */
    bool is_judged;
    enum h2_ending ending;
    const char *fault;
};

/* A header list while it arrives; one for each session, since lists do not mix. */
struct collect {
    struct buf method;
    struct buf scheme;
    struct buf authority;
    struct buf path;
    struct buf status;
    struct buf host;  /* the header, which is compared and dropped */
    struct buf lines; /* all others */
    size_t seen;      /* bytes, those that did not fit included */
    bool is_full;
};

struct h2_relay {
    const struct h2_calls *calls;
    void *owner;
    char host[H2_HOST_BYTES];
    unsigned port;
    char authority[H2_HOST_BYTES + 32]; /* as it goes upstream */
    nghttp2_session *session[2];        /* by the peer it speaks with */
    struct queue wire[2];
    struct meter meter[2];
    struct collect collect[2];
    struct buf scratch; /* a piece of an answer that the owner changed */
    struct stream *first;
    size_t streams;
    size_t held;
    uint64_t progress;
    bool is_gone[2];
    bool is_finishing;
    const char *fault;
};

static inline enum h2_peer other(enum h2_peer peer)
{
    return peer == H2_CLIENT ? H2_SERVER : H2_CLIENT;
}

struct stream *stream_new(struct h2_relay *relay, int32_t client_id);
/* Out of the list; tells the owner. */
void stream_end(struct stream *stream);
/* When it is open nowhere any more. */
void stream_end_if_closed(struct stream *stream);
/* A head that is read and well formed goes to the owner. */
void stream_judge(struct stream *stream, const struct http_head *head);
void stream_obey(struct stream *stream, const struct h2_word *word);
void stream_request_ended(struct stream *stream);
/* More of a request that was answered already. */
void stream_drop_data(struct stream *stream, size_t n);
void stream_response_ended(struct stream *stream);
/* One peer closed it, with this code of RFC 9113 7. */
void stream_closed(struct stream *stream, enum h2_peer by, uint32_t code);
/* Ends it with an answer of ours, or with a reset when there was one already. */
void stream_refuse(struct stream *stream, enum h2_fault fault, enum h2_ending ending);
void stream_refuse_http(struct stream *stream, enum http_fault fault);
void stream_cut(struct stream *stream, enum h2_ending ending, const char *fault);
void stream_reset(struct stream *stream, enum h2_peer at, uint32_t code);
/* For the end of the body that goes to this peer. */
bool stream_keep_trailers(struct stream *stream, enum h2_peer to, const struct http_head *head);

/* ---- bodies ---- */

/* Bytes for a peer that came from the other one and count against its window. */
void pipe_add(struct stream *stream, enum h2_peer to, struct str bytes, size_t owed);
void pipe_end(struct stream *stream, enum h2_peer to);
/* Forgets what is in it; its sender may go on. */
void pipe_drop(struct stream *stream, enum h2_peer to);
void pipe_wake(struct stream *stream, enum h2_peer to);
nghttp2_data_provider pipe_source(struct stream *stream, enum h2_peer to);

/* ---- heads ---- */

void collect_init(struct collect *collect);
void collect_clear(struct collect *collect);
void collect_done(struct collect *collect);
/* False when far too much came: the rest of the list is not worth reading. */
bool collect_add(struct collect *collect, struct str name, struct str value);
/* 0, or -1 when the stream was refused. */
int head_of_request(struct stream *stream, const struct collect *collect, bool has_body,
                    struct http_head *out) MUST_CHECK;
int head_of_response(struct collect *collect, bool is_head_method, struct buf *text,
                     struct http_head *out) MUST_CHECK;
/* The lines as trailers; -1 when one of them may not be one. */
int head_of_trailers(const struct collect *collect, struct http_head *out,
                     struct buf *text) MUST_CHECK;
int head_read_again(const struct stream *stream, struct http_head *out) MUST_CHECK;

/* ---- on their way out; -1: nghttp2 refused, the stream cannot go on ---- */

int submit_request(struct stream *stream, const struct h2_word *word) MUST_CHECK;
int submit_interim(struct stream *stream, const struct http_head *head) MUST_CHECK;
int submit_response(struct stream *stream, const struct http_head *head, bool has_body) MUST_CHECK;
int submit_reply(struct stream *stream, int status, struct str body) MUST_CHECK;
int submit_trailers(struct stream *stream, enum h2_peer to) MUST_CHECK;

/* ---- what nghttp2 reports ---- */

int on_client_message(nghttp2_session *session, const nghttp2_frame *frame, void *user_data);
int on_client_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *bytes,
                   size_t n, void *user_data);
int on_client_close(nghttp2_session *session, int32_t id, uint32_t code, void *user_data);
int on_client_sent(nghttp2_session *session, const nghttp2_frame *frame, void *user_data);
int on_server_message(nghttp2_session *session, const nghttp2_frame *frame, void *user_data);
int on_server_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *bytes,
                   size_t n, void *user_data);
int on_server_close(nghttp2_session *session, int32_t id, uint32_t code, void *user_data);

int events_session_new(struct h2_relay *relay, enum h2_peer peer, struct err *err) MUST_CHECK;
/* The connection to this peer is over. */
void relay_peer_gone(struct h2_relay *relay, enum h2_peer peer);
void relay_fail(struct h2_relay *relay, const char *fault);
