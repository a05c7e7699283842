/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lib/http/http-ws-frame.h"
#include "lib/http/http.h"

/* Our own side of a conversation with a server on a unix socket: one connection, one exchange at a
 * time, waiting in poll. Answers are read as strictly as requests are: a doubt about the framing
 * ends the conversation. For programs that have nothing else to do meanwhile. */
struct http_client;

/* ERR_UNAVAILABLE: nobody listens there. */
int http_client_open(const char *path, struct http_client **out, struct err *err) MUST_CHECK;
void http_client_free(struct http_client *client);
AUTO_TYPE(http_client)

/* Whom the kernel says the other side was when it began to listen. */
unsigned http_client_peer(const struct http_client *client);
/* How long each wait for the other side may take; 0, as at first: as long as it takes. */
void http_client_patience(struct http_client *client, unsigned wait_ms);

/* Sends a request: with HTTP_LENGTH all of its body; with HTTP_CHUNKED the pieces follow, an empty
 * one is the end. A server that answers before it has everything is heard: sending a piece
 * says 1 when there is something to read, and the rest need not be sent. */
int http_client_ask(struct http_client *client, const struct http_ask *ask, struct str body,
                    struct err *err) MUST_CHECK;
int http_client_send(struct http_client *client, struct str piece, struct err *err) MUST_CHECK;

/* Waits for the answer. The head's slices, and those of pieces, live until the next call. */
int http_client_answer(struct http_client *client, enum http_method asked, struct http_head *out,
                       struct err *err) MUST_CHECK;
/* 1: *out has a piece of the body; 0: it is complete. A body that breaks off is an error. */
int http_client_body(struct http_client *client, struct str *out, struct err *err) MUST_CHECK;
/* All of it, behind what is in the buffer. */
int http_client_body_all(struct http_client *client, struct buf *out, struct err *err) MUST_CHECK;

/* ---- WebSocket (RFC 6455), the client's side ----
 *
 * wslay exists as a shared library only and our command line is one file, so the few frames a
 * client needs are written and read by http-ws-frame.h. */

/* Asks for a WebSocket: 0, and *status is 101 when there is one; with any other status the body is
 * an ordinary one. */
int http_client_upgrade(struct http_client *client, struct str target,
                        const struct http_header *headers, size_t n, int *status,
                        struct err *err) MUST_CHECK;
int http_client_say(struct http_client *client, enum http_ws_kind kind, struct str payload,
                    struct err *err) MUST_CHECK;
/* What was heard, without waiting: 1 and a message (TEXT, BINARY or CLOSE); 0: nothing yet, wait
 * for http_client_fd() to be readable; -1: the other side is gone or broke the rules. */
int http_client_hear(struct http_client *client, enum http_ws_kind *kind, struct str *payload,
                     struct err *err) MUST_CHECK;
int http_client_fd(const struct http_client *client);
