/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Frames and the handshake of WebSocket (RFC 6455), bytes in and bytes out: for our own client,
 * and for whoever passes on what others say. The server's side is http-ws.h. */

#include "lib/http/http.h"

enum http_ws_kind {
    HTTP_WS_CONTINUES = 0, /* the next part of a message */
    HTTP_WS_TEXT = 1,
    HTTP_WS_BINARY = 2,
    HTTP_WS_CLOSE = 8,
    HTTP_WS_PING = 9,
    HTTP_WS_PONG = 10,
};

enum http_ws_code {
    HTTP_WS_DONE = 1000,
    HTTP_WS_GOING_AWAY = 1001,
    HTTP_WS_PROTOCOL = 1002,
    HTTP_WS_NO_CODE = 1005, /* never sent */
    HTTP_WS_NOT_UTF8 = 1007,
    HTTP_WS_POLICY = 1008,
    HTTP_WS_TOO_LARGE = 1009,
    HTTP_WS_FAILED = 1011,
    HTTP_WS_LATER = 1013,
};

#define HTTP_WS_HEAD_BYTES 14 /* of a frame, at most */
#define HTTP_WS_CONTROL_MAX 125
#define HTTP_WS_REASON_MAX (HTTP_WS_CONTROL_MAX - 2)

/* ---- the handshake ---- */

/* Whether the head asks for a WebSocket at all. */
bool http_ws_asked(const struct http_head *head);
/* Whether it asks as it must. */
enum http_fault http_ws_check(const struct http_head *head);
bool http_ws_is_offered(const struct http_head *head, struct str protocol);

/* The answer a server must give to a key (RFC 6455, 4.2.2), 28 characters and a NUL. */
#define HTTP_WS_ACCEPT_BYTES 29
void http_ws_accept_key(struct str key, char out[HTTP_WS_ACCEPT_BYTES]);
/* NULL, or what is wrong with an answer of 101 to this request: another key's answer, a protocol
 * nobody offered, or an extension. */
const char *http_ws_answer_fault(const struct http_head *request, const struct http_head *answer);

/* ---- one frame ---- */

struct http_ws_frame {
    enum http_ws_kind kind;
    bool is_last; /* of its message */
    bool is_masked;
    unsigned char mask[4];
    uint64_t length; /* of the payload */
};

/* Bytes of the head; 0: it is not complete, -1: it is no head. */
int http_ws_head_read(struct str in, struct http_ws_frame *out, struct err *err) MUST_CHECK;
size_t http_ws_head_write(const struct http_ws_frame *frame, unsigned char out[HTTP_WS_HEAD_BYTES]);
/* Masks a part of a payload in place, or undoes it; `at` is where it begins in the payload. */
void http_ws_mask(char *part, size_t n, const unsigned char mask[4], uint64_t at);

/* Appends one frame, masked with these four bytes. */
int http_ws_write(enum http_ws_kind kind, struct str payload, const unsigned char mask[4],
                  struct buf *out, struct err *err) MUST_CHECK;
/* Reads a frame of a server from the start of `in`: returns the bytes it takes (*kind and *payload,
 * a slice of in, are filled), 0 when it is not complete, -1 when it is refused. Messages are in one
 * frame each, because our server sends no others. */
long http_ws_read(struct str in, size_t max, enum http_ws_kind *kind, struct str *payload,
                  struct err *err) MUST_CHECK;

/* ---- all that one side says ---- */

#define HTTP_WS_PIECE_MIN (16 * 1024) /* of a frame that has not arrived whole */

/* Reads frames as they come, strictly. Set the first four, zero the rest. */
struct http_ws_reader {
    bool is_client;    /* then its frames are masked, else none is */
    uint64_t text_max; /* of one message */
    uint64_t binary_max;
    unsigned fragments_max;

    struct http_ws_frame frame;
    bool in_frame;
    uint64_t left;             /* of its payload */
    enum http_ws_kind message; /* TEXT or BINARY while one is under way, */
    bool ends;                 /* and this piece is its last */
    uint64_t message_n;
    unsigned fragments;
    unsigned char utf8_need, utf8_low, utf8_high; /* of a character that is not complete */
    unsigned code;                                /* REFUSED: the close code that says why */
};

enum http_ws_event {
    HTTP_WS_WAIT = 0, /* for more bytes */
    HTTP_WS_PIECE,    /* of the message, which may be empty */
    HTTP_WS_CONTROL,  /* a whole one: frame.kind */
    HTTP_WS_REFUSED,
};

/* Takes *used of the bytes, which are unmasked in place; *piece is a slice of them. There is
 * nothing to be read behind a CLOSE. */
enum http_ws_event http_ws_next(struct http_ws_reader *reader, char *bytes, size_t n, size_t *used,
                                struct str *piece);

/* Of a CLOSE that http_ws_next() let through: its code (HTTP_WS_NO_CODE: none) and reason. */
unsigned http_ws_close_code(struct str payload, struct str *reason);
