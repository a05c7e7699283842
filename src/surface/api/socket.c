/* SPDX-License-Identifier: Apache-2.0 */
#include "surface/api/socket.h"

#include <signal.h>
#include <string.h>

#include "lib/base/limits.h"
#include "lib/http/http-ws.h"
#include "surface/api/api-private.h"
#include "surface/api/stream.h"

#define CLOSE_POLICY 1008 /* RFC 6455: what was sent is not acceptable */
#define CLOSE_FAILED 1011
#define PROTOCOL "brig.v1"

struct message {
    const char *type;
    struct str data;
    uint64_t signal;
    uint64_t rows, cols;
    const char *stream;
    uint64_t bytes;
};

/* clang-format off */
static const struct field message_fields[] = {
    {"type", FIELD_TEXT, offsetof(struct message, type), .required = true,
     .choices = "stdin stdin_end signal cancel resize close taken"},
    {"data", FIELD_BYTES, offsetof(struct message, data), .help = "Input."},
    {"signal", FIELD_COUNT, offsetof(struct message, signal), .min = 1, .max = 64},
    {"rows", FIELD_COUNT, offsetof(struct message, rows), .min = 1, .max = 4096},
    {"cols", FIELD_COUNT, offsetof(struct message, cols), .min = 1, .max = 4096},
    {"stream", FIELD_TEXT, offsetof(struct message, stream), .choices = "stdout stderr"},
    {"bytes", FIELD_COUNT, offsetof(struct message, bytes), .help = "Of it that were taken."},
    {0},
};
/* clang-format on */

static void refuse(struct call *call, const struct err *err)
{
    AUTO_BUF struct buf reason = BUF(128);
    struct err ignored;
    size_t n = strlen(err->text);

    /* A close frame has room for 123 bytes. */
    if (buf_add(&reason, err->text, n < 120 ? n : 120, &ignored) < 0)
        buf_clear(&reason);
    if (call->ws)
        http_ws_close(call->ws, CLOSE_POLICY, buf_str(&reason));
}

static unsigned source_of(const struct message *message)
{
    return message->stream && strcmp(message->stream, "stderr") == 0 ? 1 : 0;
}

/* As a signal to the command line would: asked once to end, the second time it is made to. */
static int order_cancel(struct call *call, unsigned number, struct err *err)
{
    if (number && number != SIGHUP && number != SIGINT && number != SIGQUIT && number != SIGTERM)
        return err_set(err, ERR_INVALID, "a run is cancelled with 1, 2, 3 or 15");
    return call_order(call, ORDER_CANCEL, number, err);
}

static int obey(struct call *call, const struct message *message, struct err *err)
{
    struct http_exchange *x = http_exchange_find(api_server(call->api), call->exchange);

    if (strcmp(message->type, "stdin") == 0)
        inflow_bytes(call, x, message->data);
    else if (strcmp(message->type, "stdin_end") == 0)
        inflow_end(call);
    else if (strcmp(message->type, "signal") == 0)
        return call_order(call, ORDER_SIGNAL, (unsigned)message->signal, err);
    else if (strcmp(message->type, "cancel") == 0)
        return order_cancel(call, (unsigned)message->signal, err);
    else if (strcmp(message->type, "close") == 0)
        stream_close(call, source_of(message));
    else if (strcmp(message->type, "taken") == 0)
        stream_taken(call, source_of(message), message->bytes);
    else
        return call_order(call, ORDER_RESIZE, (unsigned)(message->rows << 16 | message->cols), err);
    return 0;
}

static int on_text(struct call *call, struct str bytes, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(16 * MIB);
    struct message message = {0};
    const struct json *json = NULL;
    struct mark where;

    if (json_parse(&mem, bytes, &json, &where, err) < 0 ||
        fields_read(&mem, message_fields, json, &message, err) < 0)
        return -1;
    return obey(call, &message, err);
}

static void on_message(void *owner, struct http_ws *ws, bool is_text, struct str bytes)
{
    struct call *call = owner;
    struct http_exchange *x = http_ws_exchange(ws);
    struct err err;
    int failed;

    if (!call->has_started && is_text) {
        call->has_started = true;
        failed = buf_add_str(&call->incoming, bytes, &err) < 0 || call_parse(call, &err) < 0 ||
                 call_start(call, &err) < 0;
    } else if (!call->has_started) {
        failed = err_set(&err, ERR_INVALID, "the first message says what to run");
    } else if (is_text) {
        failed = on_text(call, bytes, &err);
    } else {
        inflow_bytes(call, x, bytes);
        failed = 0;
    }
    if (failed)
        refuse(call, &err);
}

static const struct http_ws_handler handler = {.on_message = on_message};

/* A browser that offers protocols wants one of them back. */
static struct str chosen_protocol(const struct http_head *head)
{
    struct str offered;
    size_t at = 0;

    while (http_find_next(head, "sec-websocket-protocol", &at, &offered))
        if (http_list_has(offered, PROTOCOL))
            return STR_LIT(PROTOCOL);
    return STR_LIT("");
}

int socket_accept(struct call *call, struct http_exchange *x, const struct http_head *head)
{
    enum http_fault fault = HTTP_FAULT_UPGRADE;

    if (http_ws_asked(head) &&
        http_ws_accept(x, &handler, call, chosen_protocol(head), 0, &call->ws, &fault) == 0)
        return 0;
    http_refuse(x, fault);
    return -1;
}

void socket_finish(struct call *call)
{
    if (!call->ws)
        return;
    (void)http_ws_send(call->ws, true, buf_str(&call->answer));
    http_ws_close(call->ws, call->failed ? CLOSE_FAILED : 1000, STR_LIT(""));
}
