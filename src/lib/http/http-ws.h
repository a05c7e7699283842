/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lib/http/http-server.h"
#include "lib/http/http-ws-frame.h"

/* WebSocket (RFC 6455), server side, on an exchange: wslay does the frames, the handshake is
 * ours. Unmasked frames, broken UTF-8, too large messages and too many fragments end it with the
 * close code the RFC has for them. Pings are answered, and sent when the other side is silent.
 *
 * After http_ws_accept the exchange's own handler hears only on_writable and on_gone. */
struct http_ws;

struct http_ws_handler {
    void (*on_message)(void *owner, struct http_ws *ws, bool is_text, struct str bytes);
    /* The other side began to close, or broke a rule; code is what it, or we, said. No more
     * messages. on_gone of the exchange follows. May be NULL. */
    void (*on_close)(void *owner, struct http_ws *ws, unsigned code);
};

/* Answers 101. protocol is one of those offered in Sec-WebSocket-Protocol, or empty. -1 and
 * *fault when the handshake is malformed (answer with http_refuse) or an answer has begun. The
 * ws lives until the exchange's on_gone, which it precedes. Messages above message_max (0: the
 * ceiling of http-limits.h) end it with 1009. */
int http_ws_accept(struct http_exchange *x, const struct http_ws_handler *handler, void *owner,
                   struct str protocol, size_t message_max, struct http_ws **out,
                   enum http_fault *fault) MUST_CHECK;

struct http_exchange *http_ws_exchange(const struct http_ws *ws);
/* As http_send: false means wait for on_writable. */
bool http_ws_send(struct http_ws *ws, bool is_text, struct str bytes);
/* Says why, waits for the other side's word, then on_gone. */
void http_ws_close(struct http_ws *ws, unsigned code, struct str reason);
