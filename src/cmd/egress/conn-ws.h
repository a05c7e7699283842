/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A WebSocket on its way through: what each side says is read frame by frame and said anew, so that
 * what is judged is what is sent.
 *
 *     the client's messages    held until they are whole, judged, sent in one frame
 *     the server's             passed on in pieces; held, and looked through, where a secret could
 *                              come back
 *     pings                    go on without what they say: each end gets its own words back
 *     a close                  goes on; the client's without its reason
 *
 * So nothing leaves the sandbox that no rule has seen (conn-ws-move.c). */

#include "cmd/egress/wanted.h"
#include "lib/http/http-ws-frame.h"

/* A close or ping of ours, with its head. */
#define WS_CONTROL_BYTES (HTTP_WS_HEAD_BYTES + HTTP_WS_CONTROL_MAX)

struct ws_words {
    size_t n;
    char text[HTTP_WS_CONTROL_MAX];
};

struct ws_way {
    struct side *from;
    struct side *to;
    bool is_out; /* from the client */
    bool holds;  /* messages, until they are whole */
    struct http_ws_reader reader;
    struct buf held;   /* room for a head, then the message */
    bool is_going;     /* it is judged, and complete with its head */
    size_t put;        /* of it, on the way */
    bool has_begun;    /* a piece of the message was passed on */
    uint64_t began_ms; /* 0: no message is being held */
    bool has_closed;
    bool is_pinged; /* by this side, which waits for these words */
    struct ws_words ping;
    struct vault_scrub *scrub;
    uint64_t flagged;
};

struct ws_relay {
    struct ws_way out;
    struct ws_way in;
    struct wanted *wanted; /* of the client's message that is held; NULL: it wants nothing */
    bool is_ending;        /* nothing is read any more */
    struct ws_words bye;   /* that the client is still to hear, with its code */
    struct ws_words bye_server;
};

enum ws_move {
    WS_STARVED, /* there is nothing to be read */
    WS_BLOCKED, /* for room, or an answer of the keeper */
    WS_ENDS,    /* the relay ends, or has: take the step that is said */
};

/* ---- conn-ws.c ---- */

/* Says why to the client, lets the server go, and ends. */
enum step ws_end(struct conn *conn, unsigned code, const char *reason);
enum step ws_end_both(struct conn *conn, unsigned code, const char *reason, unsigned to_server);
/* The same after counting it; `what` is the method that stands for it. */
enum step ws_refuse(struct conn *conn, const struct net_verdict *verdict);
enum step ws_fail(struct conn *conn, unsigned code, unsigned to_server, const char *reason);
/* Something moved: the next deadline. */
void ws_stir(struct conn *conn);
/* Memory for messages is everybody's. */
bool ws_may_hold(struct conn *conn, size_t n);
void ws_release(struct conn *conn, struct ws_way *way);

/* ---- conn-ws-move.c ---- */

enum ws_move ws_move(struct conn *conn, struct ws_way *way, enum step *step);
/* Whether all of a message that had begun to go is in the hands of the side. */
bool ws_put_on(struct conn *conn, struct ws_way *way);
/* One that is complete, with its head. */
void ws_send_held(struct ws_way *way);
/* False: there is no room. */
bool ws_put_control(struct ws_way *way, enum http_ws_kind kind, struct str payload);

/* ---- conn-ws-judge.c ---- */

/* The client's message is whole: sent, refused, or waiting for a secret. */
enum step ws_judge(struct conn *conn);
/* Whether the keeper is being asked for it; goes on when there is an answer. */
enum step ws_reveal(struct conn *conn);
/* The server's message is whole. */
bool ws_scrub(struct conn *conn, struct ws_way *way, char *text, size_t n);
