/* SPDX-License-Identifier: Apache-2.0 */

/* One request on its way to the server and its answer on the way back. Both framings are undone
 * and made anew: what one side could read otherwise than we do never reaches the other. */

#include "cmd/egress/conn-private.h"

#include <string.h>

#include "cmd/egress/pool.h"
#include "cmd/egress/wanted.h"
#include "lib/base/clock.h"
#include "lib/base/memory.h"
#include "lib/http/http-ws-frame.h"

#define CHUNK_FRAME (HTTP_CHUNK_HEAD_BYTES + 2 + sizeof HTTP_LAST_CHUNK)

static const char *const dropped[] = {
    "connection",
    "keep-alive",
    "proxy-connection",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-authentication-info",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "content-length",
    "alt-svc", /* leads where the sandbox cannot go */
};

/* ---- bodies ---- */

void exchange_put_piece(struct bytes *out, struct str piece, bool chunked)
{
    char head[HTTP_CHUNK_HEAD_BYTES];

    if (chunked)
        (void)bytes_put(out, head, http_chunk_head(piece.n, head));
    (void)bytes_put(out, piece.p, piece.n);
    if (chunked)
        (void)bytes_put(out, "\r\n", 2);
}

/* A body on its way through. */
struct way {
    struct http_body *body;
    struct bytes *from;
    struct bytes *to;
    bool chunked;
    struct vault_scan *scan; /* or NULL: for placeholders, which are no secrets here */
    bool has_placeholder;
    bool moved;
};

/* Moves what is there and fits. */
static enum http_body_event move_body(struct way *way)
{
    enum http_body_event event = HTTP_BODY_DATA;

    while (event == HTTP_BODY_DATA) {
        size_t room = bytes_room(way->to);
        struct str in = bytes_str(way->from), piece = {NULL, 0};
        size_t had;

        if (room <= CHUNK_FRAME)
            return HTTP_BODY_MORE;
        if (in.n > room - CHUNK_FRAME)
            in.n = room - CHUNK_FRAME;
        had = in.n;
        event = http_body_next(way->body, &in, &piece);
        if (event == HTTP_BODY_DATA && way->scan && vault_scan_feed(way->scan, piece)) {
            way->has_placeholder = true;
            return HTTP_BODY_REFUSED;
        }
        if (event == HTTP_BODY_DATA)
            exchange_put_piece(way->to, piece, way->chunked);
        way->moved = way->moved || had != in.n;
        bytes_take(way->from, had - in.n);
    }
    if (event == HTTP_BODY_END && way->chunked)
        (void)bytes_put(way->to, HTTP_LAST_CHUNK, sizeof HTTP_LAST_CHUNK - 1);
    return event;
}

/* ---- the request ---- */

static bool send_head(struct conn *conn)
{
    struct exchange *exchange = conn->exchange;
    const struct str parts[] = {buf_str(&exchange->head_out), exchange_body(exchange)};
    size_t before = 0;

    for (size_t i = 0; i < (exchange->is_held ? 2U : 1U); i++) {
        const struct str *part = &parts[i];

        if (exchange->head_sent < before + part->n) {
            size_t at = exchange->head_sent - before;

            exchange->head_sent += bytes_put(&conn->server.out, part->p + at, part->n - at);
            if (exchange->head_sent < before + part->n)
                return false;
        }
        before += part->n;
    }
    return true;
}

static enum step refuse_placeholder(struct conn *conn)
{
    struct wanted_no no = conn->exchange->wanted ? wanted_fault(VAULT_FAULT_MISPLACED)
                                                 : wanted_nothing(&conn->hub->secrets);

    return conn_fail(conn, no.status, no.reason, no.text);
}

static enum step send_request(struct conn *conn)
{
    struct exchange *exchange = conn->exchange;
    struct way way = {.body = &exchange->body,
                      .from = &conn->client.in,
                      .to = &conn->server.out,
                      .chunked = exchange->head.framing == HTTP_CHUNKED,
                      .scan = &exchange->placeholders};
    enum http_body_event event;

    if (!send_head(conn) || exchange->body_sent)
        return STEP_WAIT;
    if (exchange->is_held) {
        exchange->body_sent = true;
        return STEP_WAIT;
    }
    event = move_body(&way);
    if (way.moved)
        conn_wait(conn, ANSWER_MS);
    switch (event) {
    case HTTP_BODY_END:
        exchange->body_sent = true;
        return STEP_WAIT;
    case HTTP_BODY_REFUSED:
        if (way.has_placeholder)
            return refuse_placeholder(conn);
        return conn_fail(conn, http_fault_status(exchange->body.fault), "EGRESS_BODY_FRAMING",
                         http_fault_text(exchange->body.fault));
    case HTTP_BODY_MORE:
    case HTTP_BODY_DATA:
        break;
    }
    /* Half a body is none: the server must not take it for whole. */
    return conn->client.ended && conn->client.in.n == 0 ? STEP_CLOSE : STEP_WAIT;
}

/* ---- the answer's head ---- */

/* A length where there is no body says how long it would be: HEAD, 304. */
static int write_framing(const struct exchange *exchange, struct buf *out, struct err *err)
{
    const struct http_head *answer = exchange->answer;
    struct str length = http_find(answer, "content-length");

    switch (answer->framing) {
    case HTTP_LENGTH:
        return buf_addf(out, err, "Content-Length: %llu\r\n", (unsigned long long)answer->length);
    case HTTP_CHUNKED:
    case HTTP_UNTIL_CLOSE:
        return exchange->answer_chunked ? buf_add_text(out, "Transfer-Encoding: chunked\r\n", err)
                                        : 0;
    case HTTP_NO_BODY:
        break;
    }
    if (length.n && (exchange->head.method == HTTP_HEAD || answer->status == 304))
        return buf_addf(out, err, "Content-Length: " STR_FMT "\r\n", STR_ARG(length));
    return 0;
}

static int write_connection(const struct exchange *exchange, struct buf *out, struct err *err)
{
    struct str upgrade = http_find(exchange->answer, "upgrade");

    if (exchange->answer->status == 101)
        return buf_addf(out, err, "Connection: Upgrade\r\nUpgrade: " STR_FMT "\r\n",
                        STR_ARG(upgrade));
    return exchange->client_stays ? 0 : buf_add_text(out, "Connection: close\r\n", err);
}

static int write_answer(const struct exchange *exchange, struct buf *out, struct err *err)
{
    const struct http_head *answer = exchange->answer;

    if (buf_addf(out, err, "HTTP/1.1 %d " STR_FMT "\r\n", answer->status, STR_ARG(answer->reason)) <
        0)
        return -1;
    for (size_t i = 0; i < answer->header_count; i++) {
        const struct http_header *h = &answer->headers[i];

        if (head_drops(answer, h->name, dropped, COUNT(dropped)))
            continue;
        if (buf_add_str(out, h->name, err) < 0 || buf_add(out, ": ", 2, err) < 0 ||
            buf_add_str(out, h->value, err) < 0 || buf_add(out, "\r\n", 2, err) < 0)
            return -1;
    }
    if (write_framing(exchange, out, err) < 0 || write_connection(exchange, out, err) < 0)
        return -1;
    return buf_add(out, "\r\n", 2, err);
}

static bool judge_answer(struct conn *conn, struct net_verdict *verdict)
{
    struct exchange *exchange = conn->exchange;
    const struct http_head *answer = exchange->answer;
    struct net_knock knock = conn_knock(conn);
    struct net_request request = exchange_request(exchange);
    uint64_t length = answer->framing == HTTP_LENGTH    ? answer->length
                      : answer->framing == HTTP_NO_BODY ? 0
                                                        : UINT64_MAX;

    net_rules_response(conn->sandbox->rules, &knock, &request, length,
                       http_find(answer, "content-type"), verdict);
    return verdict->kind == NET_ALLOW;
}

static void count_answer(struct conn *conn)
{
    struct exchange *exchange = conn->exchange;
    struct event event = {.class = EVENT_REQUEST,
                          .allowed = true,
                          .host = str_of(conn->host),
                          .port = conn->port,
                          .method = exchange->head.method_text,
                          .path = exchange->head.path,
                          .rule = conn->way.entry,
                          .reason = net_reason_code(exchange->verdict.reason),
                          .binary = conn_binary(conn),
                          .status = exchange->answer->status};

    sandbox_count(conn->sandbox, conn->way.entry,
                  &(struct counts){.latency_us = clock_us() - exchange->began_us});
    sandbox_event(conn->sandbox, &event);
}

static bool hand_on_head(struct conn *conn)
{
    AUTO_BUF struct buf out = BUF(HEAD_OUT_MAX);
    struct err err;

    return write_answer(conn->exchange, &out, &err) == 0 &&
           bytes_put(&conn->client.out, out.p, out.n) == out.n;
}

static enum step begin_answer(struct conn *conn)
{
    struct exchange *exchange = conn->exchange;
    const struct http_head *answer = exchange->answer;
    struct net_verdict verdict = {0};
    enum vault_fault fault;
    uint64_t most;
    bool open_ended = answer->framing == HTTP_CHUNKED || answer->framing == HTTP_UNTIL_CLOSE;

    if (!judge_answer(conn, &verdict))
        return conn_refuse(conn, &verdict);
    if (!scrub_head(conn, &fault))
        return fault ? conn_fail(conn, 502, vault_fault_code(fault), vault_fault_text(fault))
                     : STEP_CLOSE;
    most = verdict.response_max ? verdict.response_max : exchange->verdict.response_max;
    http_body_init(&exchange->answer_body, answer, most ? most : BODY_MAX);
    exchange->answer_chunked = open_ended && exchange->head.minor == 1;
    exchange->server_stays = answer->keep_alive && answer->framing != HTTP_UNTIL_CLOSE;
    exchange->client_stays = exchange->head.keep_alive && exchange->head.minor == 1;
    count_answer(conn);
    exchange->answered = true;
    return hand_on_head(conn) ? STEP_AGAIN : STEP_CLOSE;
}

/* A WebSocket that is looked into, if the answer is one to what was asked. */
static enum step begin_socket(struct conn *conn)
{
    struct exchange *exchange = conn->exchange;
    const char *wrong = http_ws_answer_fault(&exchange->head, exchange->answer);
    enum vault_fault fault;

    if (wrong)
        return conn_fail(conn, 502, "EGRESS_UPGRADE", wrong);
    if (!scrub_head(conn, &fault))
        return STEP_CLOSE;
    count_answer(conn);
    return hand_on_head(conn) ? ws_begin(conn) : STEP_CLOSE;
}

/* Both sides agreed to speak something else from here on. */
static enum step switch_over(struct conn *conn)
{
    struct exchange *exchange = conn->exchange;

    if (!exchange->upgrades)
        return conn_fail(conn, 502, "EGRESS_UPGRADE", "the server changed the protocol unasked");
    if (exchange_is_socket(exchange))
        return begin_socket(conn);
    count_answer(conn);
    if (!hand_on_head(conn))
        return STEP_CLOSE;
    exchange_free(TAKE(conn->exchange));
    conn->fixed = true;
    return tunnel_begin(conn);
}

static enum step take_interim(struct conn *conn)
{
    struct exchange *exchange = conn->exchange;

    if (exchange->answer->status == 101)
        return switch_over(conn);
    if (exchange->answer->status == 100 && exchange->head.expects_continue && !exchange->is_held)
        (void)bytes_put(&conn->client.out, HTTP_CONTINUE, sizeof HTTP_CONTINUE - 1);
    return STEP_AGAIN; /* others say nothing the client needs */
}

/* The server left before it said anything. One that had been waiting for us may have left before it
 * heard us; what can be asked twice is asked again, once, on a connection of its own. */
static enum step lose_server(struct conn *conn)
{
    struct exchange *exchange = conn->exchange;
    enum http_method method = exchange->head.method;
    bool repeats = method == HTTP_GET || method == HTTP_HEAD || method == HTTP_OPTIONS;

    if (!conn->reused || exchange->has_retried || !repeats || conn->server.in.n ||
        exchange->head.framing != HTTP_NO_BODY)
        return conn_fail(conn, 502, "EGRESS_SERVER_LEFT",
                         "the server ended the connection without an answer");
    exchange->has_retried = true;
    exchange->head_sent = 0;
    exchange->body_sent = false;
    http_body_init(&exchange->body, &exchange->head, BODY_MAX);
    return conn_open_exchange(conn);
}

static enum step read_answer_head(struct conn *conn)
{
    struct exchange *exchange = conn->exchange;
    struct str in = bytes_str(&conn->server.in);
    enum step step;
    int n;

    if (!exchange->answer)
        exchange->answer = xcalloc(1, sizeof *exchange->answer);
    n = http_answer_read(&exchange->scan, in, exchange->head.method, exchange->answer);
    if (n < 0)
        return conn_fail(conn, 502, "EGRESS_ANSWER_FRAMING", http_fault_text(exchange->scan.fault));
    if (n == 0)
        return conn->server.ended ? lose_server(conn) : STEP_WAIT;
    exchange->scan = (struct http_scan){0};
    step = exchange->answer->status / 100 == 1 ? take_interim(conn) : begin_answer(conn);
    if (conn->server.watch.fd >= 0) /* its slices were needed until here */
        bytes_take(&conn->server.in, (size_t)n);
    return step;
}

/* ---- the answer's body, and what comes after ---- */

static enum step finish(struct conn *conn)
{
    struct exchange *exchange = conn->exchange;
    struct pool_key key = {conn->sandbox, conn->way.entry, conn->host, conn->port, conn->secure};
    bool client_stays = exchange->client_stays && exchange->body_sent && !conn->client.ended;
    bool server_stays = exchange->server_stays && exchange->body_sent;

    exchange_free(TAKE(conn->exchange));
    conn_count(conn);
    if (!server_stays)
        side_close(&conn->hub->loop, &conn->server, false);
    else if (!conn->fixed && (conn->value_n || conn->peer))
        /* it knows a secret, or leads where the next one is to be let in again */
        side_close(&conn->hub->loop, &conn->server, false);
    else if (!conn->fixed)
        pool_put(&key, &conn->dialled, &conn->server);
    if (conn->server.watch.fd < 0)
        peer_leave(conn);
    if (conn->server.watch.fd < 0)
        conn->counted_in = conn->counted_out = conn->server.bytes_in = conn->server.bytes_out = 0;
    if (!client_stays)
        return conn_last(conn);
    conn->phase = PHASE_HEAD;
    conn_wait(conn, IDLE_MS);
    return STEP_AGAIN;
}

static enum step hand_on_body(struct conn *conn)
{
    struct exchange *exchange = conn->exchange;
    struct way way = {.body = &exchange->answer_body,
                      .from = &conn->server.in,
                      .to = &conn->client.out,
                      .chunked = exchange->answer_chunked};
    bool scrubs = exchange->scrubbing.scrub != NULL;
    enum http_body_event event = scrubs ? scrub_body(conn, &way.moved) : move_body(&way);

    if (way.moved)
        conn_wait(conn, ANSWER_MS);
    switch (event) {
    case HTTP_BODY_END:
        return finish(conn);
    case HTTP_BODY_REFUSED:
        if (exchange->answer_body.fault == HTTP_FAULT_BODY_TOO_LARGE)
            return conn_fail(conn, 502, net_reason_code(NET_REASON_RESPONSE_LARGE),
                             "the answer is longer than \"max_bytes\" of \"response\"");
        return conn_fail(conn, 502, "EGRESS_ANSWER_FRAMING",
                         http_fault_text(exchange->answer_body.fault));
    case HTTP_BODY_MORE:
    case HTTP_BODY_DATA:
        break;
    }
    if (!conn->server.ended || conn->server.in.n)
        return STEP_WAIT;
    if (conn->server.broken || http_body_close(&exchange->answer_body) < 0)
        return STEP_CLOSE; /* cut off, and the client is to see that it is */
    if (scrubs) {
        event = scrub_close(conn);
        return event == HTTP_BODY_END    ? finish(conn)
               : event == HTTP_BODY_MORE ? STEP_WAIT
                                         : STEP_CLOSE;
    }
    if (exchange->answer_chunked) {
        if (bytes_room(&conn->client.out) < sizeof HTTP_LAST_CHUNK)
            return STEP_WAIT;
        (void)bytes_put(&conn->client.out, HTTP_LAST_CHUNK, sizeof HTTP_LAST_CHUNK - 1);
    }
    return finish(conn);
}

enum step step_exchange(struct conn *conn)
{
    enum step step = send_request(conn);
    struct net_verdict verdict;

    if (step != STEP_WAIT || conn->phase != PHASE_EXCHANGE)
        return step;
    /* Nothing of what was read or written since then has gone on yet. */
    if (!conn_pay_server(conn, &verdict))
        return conn_refuse(conn, &verdict);
    if (conn->client.broken)
        return STEP_CLOSE;
    if (!conn->exchange->answered) {
        /* Room for a head: it is handed on whole. */
        if (bytes_room(&conn->client.out) < BLOCK_BYTES)
            return STEP_WAIT;
        return read_answer_head(conn);
    }
    return hand_on_body(conn);
}
