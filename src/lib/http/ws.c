/* SPDX-License-Identifier: Apache-2.0 */

/* WebSocket on an upgraded exchange. wslay reads and writes frames; what it leaves to its user is
 * done here: that clients mask (RFC 6455 5.1), how many frames a message may have,
 * and when a silent or half-closed connection ends. */

#include "lib/http/http-ws.h"

#include <string.h>
#include <wslay/wslay.h>

#include "lib/base/memory.h"
#include "lib/http/http-ws-frame.h"
#include "lib/http/server-private.h"
#include "lib/http/ws-private.h"

struct http_ws {
    struct http_exchange *x;
    const struct http_ws_handler *handler;
    void *owner;
    wslay_event_context_ptr frames;
    struct ws_guard guard;
    struct str in;
    bool told_close;
    bool pinged; /* and heard nothing since */
};

/* ---- between wslay and the exchange ---- */

static ssize_t on_wanted(wslay_event_context_ptr frames, uint8_t *to, size_t room, int flags,
                         void *data)
{
    struct http_ws *ws = data;
    size_t n = ws->in.n < room ? ws->in.n : room;

    (void)flags;
    if (n == 0) {
        wslay_event_set_error(frames, WSLAY_ERR_WOULDBLOCK);
        return -1;
    }
    memcpy(to, ws->in.p, n);
    ws->in = (struct str){ws->in.p + n, ws->in.n - n};
    return (ssize_t)n;
}

static ssize_t on_frame(wslay_event_context_ptr frames, const uint8_t *bytes, size_t n, int flags,
                        void *data)
{
    struct http_ws *ws = data;

    (void)frames;
    (void)flags;
    (void)http_send(ws->x, (struct str){(const char *)bytes, n}); /* http_waiting tells later */
    return (ssize_t)n;
}

static void on_message(wslay_event_context_ptr frames,
                       const struct wslay_event_on_msg_recv_arg *message, void *data)
{
    struct http_ws *ws = data;

    (void)frames;
    if (wslay_is_ctrl_frame(message->opcode) || ws->told_close)
        return;
    ws->handler->on_message(ws->owner, ws, message->opcode == WSLAY_TEXT_FRAME,
                            (struct str){(const char *)message->msg, message->msg_length});
}

static const struct wslay_event_callbacks callbacks = {
    .recv_callback = on_wanted,
    .send_callback = on_frame,
    .on_msg_recv_callback = on_message,
};

/* Ours when we broke off, theirs when they did. */
static unsigned close_code(const struct http_ws *ws)
{
    if (wslay_event_get_close_received(ws->frames))
        return wslay_event_get_status_code_received(ws->frames);
    return wslay_event_get_status_code_sent(ws->frames);
}

static void tell_close(struct http_ws *ws)
{
    if (ws->told_close || wslay_event_get_read_enabled(ws->frames))
        return;
    ws->told_close = true;
    if (ws->handler->on_close != NULL)
        ws->handler->on_close(ws->owner, ws, close_code(ws));
}

/* Sends what is queued. The exchange, and with it ws, may be gone when this returns and nobody
 * else is inside the connection. */
static void go_on(struct http_ws *ws)
{
    struct conn *conn = ws->x->conn;
    bool was_busy = conn->busy;
    bool broken;

    conn->busy = true; /* one write for all frames, and no handler in the middle of wslay */
    broken = wslay_event_send(ws->frames) < 0;
    tell_close(ws);
    broken |= wslay_event_send(ws->frames) < 0; /* on_close may have said something */
    conn->busy = was_busy;
    if (broken)
        http_abort(ws->x);
    else if (!wslay_event_want_read(ws->frames) && !wslay_event_want_write(ws->frames))
        http_end(ws->x);
    else
        conn_process(conn);
}

static void break_off(struct http_ws *ws, unsigned code, struct str reason)
{
    (void)wslay_event_queue_close(ws->frames, (uint16_t)code, (const uint8_t *)reason.p,
                                  reason.n); /* fails when one is queued already */
}

static void on_raw_bytes(void *data, struct str bytes)
{
    struct http_ws *ws = data;
    unsigned code = 0;
    size_t good = ws_guard_take(&ws->guard, bytes, &code);

    ws->pinged = false;
    ws->in = (struct str){bytes.p, good};
    if (ws->in.n > 0 && wslay_event_get_read_enabled(ws->frames) &&
        wslay_event_recv(ws->frames) < 0) {
        http_abort(ws->x);
        return;
    }
    if (code != 0) {
        break_off(ws, code, STR_LIT(""));
        wslay_event_shutdown_read(ws->frames);
    }
    go_on(ws);
}

static bool is_closing(const struct http_ws *ws)
{
    return wslay_event_get_close_sent(ws->frames) || wslay_event_get_close_received(ws->frames);
}

static unsigned raw_wait_ms(const void *data)
{
    const struct http_ws *ws = data;
    const struct http_limits *limits = &ws->x->conn->server->limits;

    return is_closing(ws) ? limits->ws_close_ms : limits->ws_ping_ms;
}

/* Silent for one interval: ask. For two: gone. */
static void on_quiet(void *data)
{
    struct http_ws *ws = data;
    struct wslay_event_msg ping = {WSLAY_PING, NULL, 0};

    if (is_closing(ws)) {
        http_end(ws->x);
        return;
    }
    if (ws->pinged) {
        http_abort(ws->x);
        return;
    }
    ws->pinged = true;
    if (wslay_event_queue_msg(ws->frames, &ping) < 0)
        http_abort(ws->x);
    else
        go_on(ws);
}

static void on_raw_gone(void *data)
{
    struct http_ws *ws = data;

    wslay_event_context_free(ws->frames);
    free(ws);
}

static const struct raw_hooks hooks = {on_raw_bytes, raw_wait_ms, on_quiet, on_raw_gone};

/* ---- what others call ---- */

static int answer_handshake(struct http_ws *ws, struct str protocol, enum http_fault *fault)
{
    const struct http_head *head = http_exchange_head(ws->x);
    char accept[HTTP_WS_ACCEPT_BYTES];
    struct http_header headers[3] = {
        {STR_LIT("Upgrade"),                STR_LIT("websocket")              },
        {STR_LIT("Sec-WebSocket-Accept"),   {accept, HTTP_WS_ACCEPT_BYTES - 1}},
        {STR_LIT("Sec-WebSocket-Protocol"), protocol                          },
    };
    struct err err;

    http_ws_accept_key(http_find(head, "sec-websocket-key"), accept);
    exchange_upgrade_hooks(ws->x, &hooks, ws);
    if (http_upgrade(ws->x, 101, headers, protocol.n > 0 ? 3 : 2, &err) == 0)
        return 0;
    exchange_upgrade_hooks(ws->x, NULL, NULL);
    *fault = HTTP_FAULT_UPGRADE;
    return -1;
}

int http_ws_accept(struct http_exchange *x, const struct http_ws_handler *handler, void *owner,
                   struct str protocol, size_t message_max, struct http_ws **out,
                   enum http_fault *fault)
{
    const struct http_head *head = http_exchange_head(x);
    struct http_ws *ws;

    *fault = http_ws_check(head);
    if (*fault == HTTP_NO_FAULT && !http_ws_is_offered(head, protocol))
        *fault = HTTP_FAULT_UPGRADE;
    if (*fault != HTTP_NO_FAULT)
        return -1;
    ws = xcalloc(1, sizeof(*ws));
    ws->x = x;
    ws->handler = handler;
    ws->owner = owner;
    if (wslay_event_context_server_init(&ws->frames, &callbacks, ws) < 0)
        abort(); /* no memory, for a size the library chose */
    wslay_event_config_set_max_recv_msg_length(ws->frames,
                                               message_max ? message_max : HTTP_WS_MESSAGE_MAX);
    *out = ws;
    if (answer_handshake(ws, protocol, fault) == 0)
        return 0;
    *out = NULL;
    on_raw_gone(ws);
    return -1;
}

struct http_exchange *http_ws_exchange(const struct http_ws *ws)
{
    return ws->x;
}

bool http_ws_send(struct http_ws *ws, bool is_text, struct str bytes)
{
    struct wslay_event_msg message = {is_text ? WSLAY_TEXT_FRAME : WSLAY_BINARY_FRAME,
                                      (const uint8_t *)bytes.p, bytes.n};
    struct conn *conn = ws->x->conn;

    if (wslay_event_queue_msg(ws->frames, &message) < 0)
        return true; /* closing; nothing to wait for */
    go_on(ws);
    return conn->state == CONN_CLOSED || conn->x.id == 0 ||
           conn_waiting(conn) <= conn->server->limits.output_high;
}

void http_ws_close(struct http_ws *ws, unsigned code, struct str reason)
{
    break_off(ws, code, reason);
    go_on(ws);
}
