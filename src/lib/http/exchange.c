/* SPDX-License-Identifier: Apache-2.0 */

/* What a handler may call. Everything here marks the exchange or fills its output; conn.c moves
 * the connection on, at once when nobody is inside it, else when the caller returns there. */

#include "lib/http/server-private.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

uint64_t http_exchange_id(const struct http_exchange *x)
{
    return x->id;
}

struct http_server *http_exchange_server(const struct http_exchange *x)
{
    return x->conn->server;
}

const struct http_head *http_exchange_head(const struct http_exchange *x)
{
    return &x->conn->room->head;
}

void http_exchange_set(struct http_exchange *x, void *data)
{
    x->data = data;
}

void *http_exchange_get(const struct http_exchange *x)
{
    return x->data;
}

/* ---- who asks ---- */

void http_exchange_address(const struct http_exchange *x, char out[HTTP_ADDRESS_BYTES])
{
    const struct conn *conn = x->conn;
    struct sockaddr_storage address = {0};
    int n = sizeof(address);
    char name[48] = "";

    out[0] = '\0';
    if (conn->is_unix || uv_tcp_getpeername(&conn->io.tcp, (struct sockaddr *)&address, &n) < 0)
        return;
    if (address.ss_family == AF_INET6) {
        const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)&address;

        (void)uv_ip6_name(six, name, sizeof(name)); /* fits */
        (void)snprintf(out, HTTP_ADDRESS_BYTES, "[%s]:%u", name, ntohs(six->sin6_port));
    } else {
        const struct sockaddr_in *four = (const struct sockaddr_in *)&address;

        (void)uv_ip4_name(four, name, sizeof(name)); /* fits */
        (void)snprintf(out, HTTP_ADDRESS_BYTES, "%s:%u", name, ntohs(four->sin_port));
    }
}

struct http_peer http_exchange_peer(const struct http_exchange *x)
{
    const struct conn *conn = x->conn;
    struct http_peer peer = {.is_unix = conn->is_unix, .is_tls = conn->tls != NULL};
    struct ucred who = {-1, (uid_t)-1, (gid_t)-1};
    socklen_t n = sizeof(who);
    int fd = -1;

    peer.uid = peer.gid = (unsigned)-1; /* nobody, unless the kernel says who */
    peer.pid = -1;
    if (!conn->is_unix)
        return peer;
    if (uv_fileno(&conn->io.handle, &fd) == 0 &&
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) == 0) {
        peer.uid = who.uid;
        peer.gid = who.gid;
        peer.pid = who.pid;
    }
    return peer;
}

/* ---- the body ---- */

void http_body_max(struct http_exchange *x, uint64_t max)
{
    if (x->body.total == 0 && !x->body_ended)
        http_body_init(&x->body, http_exchange_head(x), max);
}

void http_pause(struct http_exchange *x)
{
    x->paused = true;
}

void http_resume(struct http_exchange *x)
{
    if (!x->paused)
        return;
    x->paused = false;
    conn_process(x->conn);
}

/* ---- heads ---- */

static bool is_closing(const struct http_exchange *x)
{
    return x->conn->state == CONN_CLOSED;
}

/* A body we have not read can be skipped when it is small and surely comes. */
static bool can_skip_body(const struct http_exchange *x)
{
    if (x->body_ended)
        return true;
    if (x->body.fault != HTTP_NO_FAULT || x->continue_due)
        return false;
    if (x->body.framing == HTTP_LENGTH)
        return x->body.left <= HTTP_DRAIN_MAX;
    return x->body.framing == HTTP_NO_BODY;
}

static bool has_no_body(int status)
{
    return status == 204 || status == 304 || status / 100 == 1;
}

static bool keeps_alive(const struct http_exchange *x)
{
    const struct http_head *head = http_exchange_head(x);

    return head->keep_alive && head->minor == 1 && !x->conn->server->stopping && can_skip_body(x);
}

/* Chooses the framing; the caller's length may be HTTP_STREAM. */
static void frame(struct http_exchange *x, struct http_reply *reply, uint64_t length)
{
    x->chunked = false;
    x->left = length;
    reply->framing = HTTP_LENGTH;
    reply->length = length;
    if (has_no_body(reply->status)) {
        reply->framing = HTTP_NO_BODY;
        x->head_only = true;
    } else if (length == HTTP_STREAM && http_exchange_head(x)->minor == 1) {
        reply->framing = HTTP_CHUNKED;
        x->chunked = true;
    } else if (length == HTTP_STREAM) {
        reply->framing = HTTP_UNTIL_CLOSE;
        reply->close = true;
    }
}

static int begin(struct http_exchange *x, struct http_reply *reply, uint64_t length,
                 struct err *err)
{
    struct http_exchange before = *x;

    if (x->begun || x->ended)
        return err_set(err, ERR_INTERNAL, "this request has been answered already");
    if (is_closing(x))
        return err_set(err, ERR_UNAVAILABLE, "the client is gone");
    reply->close = !keeps_alive(x);
    frame(x, reply, length);
    if (http_reply_write(reply, &x->conn->room->out, err) < 0) {
        *x = before;
        return -1;
    }
    x->begun = true;
    x->conn->close_after |= reply->close;
    return 0;
}

static int begin_with(struct http_exchange *x, int status, const struct http_header *headers,
                      size_t n, uint64_t length, struct err *err)
{
    struct http_reply reply = {.status = status, .headers = headers, .header_count = n};

    return begin(x, &reply, length, err);
}

int http_begin(struct http_exchange *x, int status, const struct http_header *headers, size_t n,
               uint64_t length, struct err *err)
{
    if (begin_with(x, status, headers, n, length, err) < 0)
        return -1;
    conn_process(x->conn);
    return 0;
}

/* ---- pieces ---- */

static bool is_over(const struct http_exchange *x)
{
    return x->id == 0 || x->ended || is_closing(x);
}

static uv_buf_t piece_of(struct str bytes)
{
    return uv_buf_init((char *)(uintptr_t)bytes.p, (unsigned)bytes.n); /* only read from */
}

static int send_chunk(struct http_exchange *x, struct str bytes)
{
    char head[HTTP_CHUNK_HEAD_BYTES];
    size_t n = http_chunk_head(bytes.n, head);
    uv_buf_t pieces[3] = {piece_of((struct str){head, n}), piece_of(bytes),
                          piece_of(STR_LIT("\r\n"))};

    return conn_send(x->conn, pieces, 3);
}

static int send_plain(struct http_exchange *x, struct str bytes)
{
    uv_buf_t piece = piece_of(bytes);

    if (!x->upgraded && x->left != HTTP_STREAM) {
        if (bytes.n > x->left)
            return -1;
        x->left -= bytes.n;
    }
    return conn_send(x->conn, &piece, 1);
}

/* Without moving the connection on. */
static int put(struct http_exchange *x, struct str bytes)
{
    if (bytes.n == 0 || (x->head_only && !x->upgraded))
        return 0;
    return x->chunked ? send_chunk(x, bytes) : send_plain(x, bytes);
}

bool http_send(struct http_exchange *x, struct str bytes)
{
    struct conn *conn = x->conn;

    if (is_over(x))
        return true; /* nothing to wait for; on_gone is on its way */
    if (!x->begun || put(x, bytes) < 0) {
        http_abort(x);
        return true;
    }
    conn_process(conn);
    if (conn_waiting(conn) <= conn->server->limits.output_high)
        return true;
    x->wants_writable = true;
    return false;
}

void http_end(struct http_exchange *x)
{
    http_end_with(x, NULL, 0);
}

void http_end_with(struct http_exchange *x, const struct http_header *trailers, size_t n)
{
    struct err err;

    if (is_over(x))
        return;
    if (!x->begun ||
        (!x->head_only && !x->chunked && !x->upgraded && x->left != 0 && x->left != HTTP_STREAM)) {
        http_abort(x);
        return;
    }
    if (x->chunked && !x->head_only &&
        http_trailers_write(trailers, n, &x->conn->room->out, &err) < 0) {
        http_abort(x);
        return;
    }
    x->ended = true;
    conn_process(x->conn);
}

void http_abort(struct http_exchange *x)
{
    conn_close(x->conn, HTTP_GONE_ABORTED);
}

int http_answer(struct http_exchange *x, int status, const struct http_header *headers, size_t n,
                struct str body, struct err *err)
{
    if (begin_with(x, status, headers, n, body.n, err) < 0)
        return -1;
    if (put(x, body) < 0) {
        http_abort(x); /* larger than may wait; its head is out, there is no other answer */
        return 0;
    }
    x->ended = true;
    conn_process(x->conn);
    return 0;
}

size_t http_waiting(const struct http_exchange *x)
{
    return conn_waiting(x->conn);
}

bool http_has_begun(const struct http_exchange *x)
{
    return x->begun;
}

int http_send_event(struct http_exchange *x, struct str event, struct str id, struct str data,
                    bool *may_go_on, struct err *err)
{
    AUTO_BUF struct buf text = BUF(x->conn->server->limits.output_max);

    if (http_sse_write(event, id, data, &text, err) < 0)
        return -1;
    *may_go_on = http_send(x, buf_str(&text));
    return 0;
}

/* ---- other answers ---- */

int http_upgrade(struct http_exchange *x, int status, const struct http_header *headers, size_t n,
                 struct err *err)
{
    struct http_reply reply = {.status = status, .headers = headers, .header_count = n};

    if (x->begun || x->ended)
        return err_set(err, ERR_INTERNAL, "this request has been answered already");
    if (is_closing(x))
        return err_set(err, ERR_UNAVAILABLE, "the client is gone");
    if (x->body.framing != HTTP_NO_BODY)
        return err_set(err, ERR_INVALID, "a request with a body cannot leave HTTP");
    reply.upgrade = status == 101;
    if (http_reply_write(&reply, &x->conn->room->out, err) < 0)
        return -1;
    x->begun = x->upgraded = x->body_ended = true;
    x->left = HTTP_STREAM;
    conn_process(x->conn);
    return 0;
}

void exchange_upgrade_hooks(struct http_exchange *x, const struct raw_hooks *raw, void *data)
{
    x->raw = raw;
    x->raw_data = data;
}

/* {"error":{"message":"...","type":"http","code":"bare_lf","reason_code":"HTTP_BARE_LF"}}: none
 * of the texts needs an escape. */
static int write_envelope(enum http_fault fault, struct buf *out, struct err *err)
{
    char reason[64] = "";
    const char *name = http_fault_name(fault);

    for (size_t i = 0; name[i] != '\0' && i + 1 < sizeof(reason); i++)
        reason[i] = (char)toupper((unsigned char)name[i]);
    return buf_addf(out, err,
                    "{\"error\":{\"message\":\"%s\",\"type\":\"http\",\"code\":\"%s\","
                    "\"reason_code\":\"HTTP_%s\"}}\n",
                    http_fault_text(fault), name, reason);
}

static int write_fault_body(const struct http_server *server, enum http_fault fault,
                            struct buf *out, struct err *err)
{
    if (server->handler->fault_body != NULL)
        return server->handler->fault_body(server->owner, fault, out, err);
    return write_envelope(fault, out, err);
}

/* Also for what never became an exchange. */
void exchange_write_fault(struct http_exchange *x, enum http_fault fault)
{
    static const struct http_header headers[] = {
        {{"Content-Type", 12},          {"application/json", 16}},
        {{"Retry-After", 11},           {"1", 1}                },
        {{"Sec-WebSocket-Version", 21}, {"13", 2}               },
    };
    AUTO_BUF struct buf body = BUF(4 * KIB);
    struct buf *out = &x->conn->room->out;
    struct http_reply reply = {.status = http_fault_status(fault), .close = true};
    struct http_header chosen[3] = {headers[0]};
    const struct http_handler *handler = x->conn->server->handler;
    struct err err;

    reply.headers = chosen;
    reply.header_count = 1;
    if (reply.status == 503)
        chosen[reply.header_count++] = headers[1];
    if (fault == HTTP_FAULT_UPGRADE_VERSION)
        chosen[reply.header_count++] = headers[2];
    else if (handler->fault_header != NULL && x->conn->room->head.path.n > 0 &&
             handler->fault_header(x->conn->server->owner, &x->conn->room->head,
                                   &chosen[reply.header_count]))
        reply.header_count++;
    if (write_fault_body(x->conn->server, fault, &body, &err) < 0)
        buf_clear(&body);
    reply.framing = HTTP_LENGTH;
    reply.length = body.n;
    if (http_reply_write(&reply, out, &err) < 0 ||
        (!x->head_only && buf_add_str(out, buf_str(&body), &err) < 0))
        return; /* the connection closes without a word: its output is full */
}

void http_refuse(struct http_exchange *x, enum http_fault fault)
{
    if (is_over(x))
        return;
    if (x->begun) {
        http_abort(x);
        return;
    }
    x->conn->server->counts.refused++;
    exchange_write_fault(x, fault);
    x->begun = x->ended = true;
    x->conn->close_after = true;
    conn_process(x->conn);
}
