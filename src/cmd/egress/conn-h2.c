/* SPDX-License-Identifier: Apache-2.0 */

/* HTTP/2 inside an intercepted connection: bytes between the two sides and the relay, and every
 * stream's questions to the rules. */

#include <string.h>

#include "cmd/egress/conn-h2.h"
#include "cmd/egress/intercept.h"
#include "lib/base/clock.h"
#include "lib/base/memory.h"

#define DENIAL_MAX (8 * KIB)

static void asked_free(struct asked *asked)
{
    if (!asked)
        return;
    h2_secret_done(asked);
    free(asked->text);
    free(asked);
}

static struct asked *asked_new(const struct http_head *head)
{
    struct asked *asked = xcalloc(1, sizeof *asked);
    char *at = xmalloc(head->method_text.n + head->target.n + 1);

    asked->text = at;
    asked->began_us = clock_us();
    memcpy(at, head->method_text.p, head->method_text.n);
    memcpy(at + head->method_text.n, head->target.p, head->target.n);
    asked->request.scheme = STR_LIT("https");
    asked->request.method = (struct str){at, head->method_text.n};
    at += head->method_text.n;
    asked->request.path = (struct str){at, head->path.n};
    asked->request.has_query = head->target.n > head->path.n;
    if (asked->request.has_query)
        asked->request.query =
            (struct str){at + head->path.n + 1, head->target.n - head->path.n - 1};
    return asked;
}

/* ---- counting ---- */

void h2_count_refusal(struct conn *conn, const struct asked *asked, int status, const char *reason,
                      const char *rule)
{
    const struct str none = {"", 0};
    struct refusal refusal = {.host = str_of(conn->host),
                              .port = conn->port,
                              .method = asked ? asked->request.method : none,
                              .path = asked ? asked->request.path : none,
                              .binary = conn_binary(conn),
                              .reason = reason};
    struct event event = {.class = EVENT_REQUEST,
                          .host = refusal.host,
                          .port = refusal.port,
                          .method = refusal.method,
                          .path = refusal.path,
                          .rule = rule,
                          .reason = reason,
                          .binary = refusal.binary,
                          .status = status};

    sandbox_refuse(conn->sandbox, rule, &refusal);
    sandbox_event(conn->sandbox, &event);
}

static void count_answer(struct conn *conn, const struct asked *asked, int status)
{
    struct event event = {.class = EVENT_REQUEST,
                          .allowed = true,
                          .host = str_of(conn->host),
                          .port = conn->port,
                          .method = asked->request.method,
                          .path = asked->request.path,
                          .rule = conn->way.entry,
                          .reason = net_reason_code(asked->verdict.reason),
                          .binary = conn_binary(conn),
                          .status = status};

    sandbox_count(conn->sandbox, conn->way.entry,
                  &(struct counts){.latency_us = clock_us() - asked->began_us});
    sandbox_event(conn->sandbox, &event);
}

/* ---- judging ---- */

/* Without those that ask a server to read another request than the one that is judged. */
static size_t keep_headers(const struct http_head *head, struct http_header *out)
{
    size_t n = 0;

    for (size_t i = 0; i < head->header_count; i++)
        if (!head_overrides(head->headers[i].name))
            out[n++] = head->headers[i];
    return n;
}

/* The relay copies the word when judge returns, so what it points to outlives the call. */
struct word_memory {
    struct buf text;
    struct http_header headers[HTTP_HEADERS_MAX];
    struct http_header sent[HTTP_HEADERS_MAX + 2];
};

static struct word_memory word = {.text = BUF(DENIAL_MAX)};

/* Heads cost what they are before they are compressed. */
static uint64_t head_bytes(const struct http_head *head)
{
    uint64_t n = head->method_text.n + head->target.n;

    for (size_t i = 0; i < head->header_count; i++)
        n += head->headers[i].name.n + head->headers[i].value.n;
    return n;
}

const struct http_header *h2_headers(const struct http_head *head, size_t *n)
{
    *n = keep_headers(head, word.headers);
    return word.headers;
}

static void refuse(struct conn *conn, const struct asked *asked, const struct net_verdict *verdict,
                   struct h2_word *out)
{
    const struct denial denial = {.error = net_reason_error(verdict->reason),
                                  .reason = net_reason_code(verdict->reason),
                                  .text = verdict->text,
                                  .rule = verdict->entry ? verdict->entry : "",
                                  .method = asked->request.method,
                                  .path = asked->request.path};
    struct err err;

    out->answer = H2_REFUSE;
    out->status = verdict->reason == NET_REASON_RATE ? 429 : 403;
    buf_clear(&word.text);
    if (denial_write(conn, &denial, &word.text, &err) == 0)
        out->reply = buf_str(&word.text);
    h2_count_refusal(conn, asked, out->status, denial.reason, denial.rule);
}

void h2_refuse(struct conn *conn, const struct asked *asked, const struct wanted_no *no,
               struct h2_word *out)
{
    const struct denial denial = {.error = no->status < 500 ? "policy_denied" : "upstream_failed",
                                  .reason = no->reason,
                                  .text = no->text,
                                  .rule = conn->way.entry,
                                  .method = asked->request.method,
                                  .path = asked->request.path};
    struct err err;

    *out = (struct h2_word){.answer = H2_REFUSE, .status = no->status};
    buf_clear(&word.text);
    if (denial_write(conn, &denial, &word.text, &err) == 0)
        out->reply = buf_str(&word.text);
    h2_count_refusal(conn, asked, no->status, no->reason, conn->way.entry);
}

void h2_pass(struct conn *conn, struct asked *asked, const struct h2_sent *sent,
             struct h2_word *out)
{
    size_t n = 0;

    for (size_t i = 0; i < sent->header_n; i++)
        if (!values_drop(conn, sent->headers[i].name))
            word.sent[n++] = sent->headers[i];
    if (conn->value_n)
        word.sent[n++] = (struct http_header){STR_LIT("accept-encoding"), STR_LIT("identity")};
    *out = (struct h2_word){.answer = H2_PASS,
                            .headers = word.sent,
                            .header_count = n,
                            .path = sent->path,
                            .body = sent->body};
    asked->response_max = asked->verdict.response_max;
    sandbox_count(conn->sandbox, conn->way.entry, &(struct counts){.requests = 1});
}

/* Before a secret is asked for: none is handed out for what is not paid. */
static bool spend(struct conn *conn, struct asked *asked, uint64_t bytes, struct h2_word *out)
{
    struct net_verdict spent;

    if (conn_may_spend(conn, &asked->verdict, &asked->purse, &spent) &&
        conn_pay(conn, &asked->purse, bytes, 0, &spent))
        return true;
    refuse(conn, asked, &spent, out);
    return false;
}

static void obey(struct conn *conn, struct asked *asked, const struct http_head *head,
                 struct str body, struct h2_word *out)
{
    size_t most = asked->verdict.body_max < BODY_HELD_MAX ? asked->verdict.body_max : BODY_HELD_MAX;

    switch (asked->verdict.kind) {
    case NET_ALLOW:
        if (spend(conn, asked, head_bytes(head) + body.n, out))
            h2_secret_look(asked, head, body, out);
        return;
    case NET_NEED_BODY:
        out->answer = H2_HOLD;
        out->hold_max = most;
        return;
    case NET_DENY:
    case NET_TUNNEL:
    case NET_INSPECT:
        break;
    }
    refuse(conn, asked, &asked->verdict, out);
}

static void judge(void *owner, struct h2_stream *stream, const struct http_head *head,
                  bool has_body, struct h2_word *out)
{
    struct conn *conn = owner;
    struct net_knock knock = conn_knock(conn);
    struct asked *asked = asked_new(head);
    struct net_request request = asked->request;

    asked->conn = conn;
    asked->stream = stream;
    asked->has_body = has_body;
    stream->data = asked;
    request.header_n = keep_headers(head, word.headers);
    request.headers = (const struct net_header *)(const void *)word.headers;
    if (head->form != HTTP_ORIGIN) {
        asked->verdict = (struct net_verdict){
            .reason = NET_REASON_PATH_FORM, .entry = "", .text = "a request for * is for no path"};
    } else {
        net_rules_request(conn->sandbox->rules, &knock, &request, &asked->verdict);
    }
    obey(conn, asked, head, (struct str){"", 0}, out);
}

static void judge_body(void *owner, struct h2_stream *stream, const struct http_head *head,
                       struct str body, struct h2_word *out)
{
    struct conn *conn = owner;
    struct asked *asked = stream->data;
    struct net_knock knock = conn_knock(conn);
    struct net_request request = asked->request;
    struct str coding = http_find(head, "content-encoding");

    if (asked->wanted && !conn_pay(conn, &asked->purse, body.n, 0, &asked->verdict)) {
        refuse(conn, asked, &asked->verdict, out);
        return;
    }
    if (h2_secret_held(asked, head, body, out))
        return;
    request.header_n = keep_headers(head, word.headers);
    request.headers = (const struct net_header *)(const void *)word.headers;
    if (coding.n && !http_name_is(coding, "identity")) {
        asked->verdict = (struct net_verdict){
            .reason = NET_REASON_BODY_FORM,
            .entry = "",
            .text = "the rule looks into bodies; send this one without a content coding"};
    } else {
        net_rules_body(conn->sandbox->rules, &knock, &request, body, &asked->verdict);
        if (asked->verdict.kind == NET_NEED_BODY)
            asked->verdict.kind = NET_DENY; /* it was there */
    }
    obey(conn, asked, head, body, out);
}

/* False: the stream is cut, and counted as refused. */
static bool pay(struct conn *conn, const struct asked *asked, uint64_t bytes_out, uint64_t bytes_in)
{
    struct net_verdict verdict;

    if (conn_pay(conn, &asked->purse, bytes_out, bytes_in, &verdict))
        return true;
    h2_count_refusal(conn, asked, 0, net_reason_code(verdict.reason), verdict.entry);
    return false;
}

static bool take_request(void *owner, struct h2_stream *stream, struct str piece)
{
    return pay(owner, stream->data, piece.n, 0) && h2_secret_scan(stream->data, piece);
}

static bool judge_response(void *owner, struct h2_stream *stream, struct http_head *head)
{
    struct conn *conn = owner;
    struct asked *asked = stream->data;
    struct net_knock knock = conn_knock(conn);
    struct net_verdict verdict = {0};
    uint64_t length = head->framing == HTTP_LENGTH    ? head->length
                      : head->framing == HTTP_NO_BODY ? 0
                                                      : UINT64_MAX;

    if (!pay(conn, asked, 0, head_bytes(head)))
        return false;
    if (!h2_scrub_head(asked, head))
        return false;
    if (head->status < 200)
        return true; /* trailers, or not the answer yet */
    net_rules_response(conn->sandbox->rules, &knock, &asked->request, length,
                       http_find(head, "content-type"), &verdict);
    if (verdict.kind != NET_ALLOW) {
        h2_count_refusal(conn, asked, 502, net_reason_code(verdict.reason),
                         verdict.entry ? verdict.entry : "");
        return false;
    }
    if (verdict.response_max)
        asked->response_max = verdict.response_max;
    count_answer(conn, asked, head->status);
    return true;
}

static bool take_response(void *owner, struct h2_stream *stream, struct str piece, bool is_last,
                          struct buf *out)
{
    struct conn *conn = owner;
    struct asked *asked = stream->data;

    if (asked->response_max && stream->response_bytes > asked->response_max) {
        h2_count_refusal(conn, asked, 0, net_reason_code(NET_REASON_RESPONSE_LARGE),
                         conn->way.entry);
        return false;
    }
    return pay(conn, asked, 0, piece.n) && h2_scrub_body(asked, piece, is_last, out);
}

static void on_ended(void *owner, struct h2_stream *stream, enum h2_ending ending,
                     const char *fault)
{
    struct conn *conn = owner;
    struct asked *asked = stream->data;

    /* Refused before anybody was asked: by the protocol's rules. What judge refused is counted. */
    if (!asked && ending == H2_REFUSED)
        h2_count_refusal(conn, NULL, stream->status, fault, "");
    else if (asked && ending == H2_SERVER_LEFT)
        h2_count_refusal(conn, asked, stream->status, fault, conn->way.entry);
    asked_free(asked);
}

static const struct h2_calls calls = {
    .judge = judge,
    .judge_body = judge_body,
    .response = judge_response,
    .request_data = take_request,
    .response_data = take_response,
    .ended = on_ended,
};

/* ---- bytes ---- */

void h2_free(struct h2_relay *relay)
{
    h2_relay_free(relay);
}

enum step h2_begin(struct conn *conn)
{
    const struct h2_config config = {&calls, conn, conn->host, conn->port};
    struct err err;

    if (h2_relay_new(&config, &conn->intercept->h2, &err) < 0)
        return STEP_CLOSE;
    conn->phase = PHASE_H2;
    conn_wait(conn, HEAD_MS);
    return STEP_AGAIN;
}

static bool feed(struct conn *conn, enum h2_peer from, struct side *side)
{
    struct intercept *intercept = conn->intercept;
    struct str in = bytes_str(&side->in);
    struct err err;
    long taken;

    if (in.n == 0 || intercept->h2_failed)
        return false;
    taken = h2_relay_feed(intercept->h2, from, in.p, in.n, &err);
    if (taken < 0) {
        intercept->h2_failed = true;
        h2_count_refusal(conn, NULL, 400, h2_relay_fault(intercept->h2), conn->way.entry);
        return true;
    }
    bytes_take(&side->in, (size_t)taken);
    return taken > 0;
}

static bool drain(struct conn *conn, enum h2_peer to, struct side *side)
{
    struct h2_relay *relay = conn->intercept->h2;
    struct str wire = h2_relay_wire(relay, to);
    size_t n = wire.n && !side->broken ? bytes_put(&side->out, wire.p, wire.n) : 0;

    h2_relay_sent(relay, to, n);
    return n > 0;
}

/* Deadlines are moved by requests and bodies, by nothing else. */
static void look_at_progress(struct conn *conn)
{
    struct intercept *intercept = conn->intercept;
    uint64_t progress = h2_relay_progress(intercept->h2);

    if (progress == intercept->h2_progress)
        return;
    intercept->h2_progress = progress;
    conn_wait(conn, h2_relay_streams(intercept->h2) ? ANSWER_MS : IDLE_MS);
}

enum step step_h2(struct conn *conn)
{
    struct h2_relay *relay = conn->intercept->h2;
    bool moved = true;

    while (moved) {
        moved = feed(conn, H2_CLIENT, &conn->client);
        moved = feed(conn, H2_SERVER, &conn->server) || moved;
        if (conn->client.ended && conn->client.in.n == 0)
            h2_relay_feed_end(relay, H2_CLIENT);
        if (conn->server.ended && conn->server.in.n == 0)
            h2_relay_feed_end(relay, H2_SERVER);
        moved = drain(conn, H2_CLIENT, &conn->client) || moved;
        moved = drain(conn, H2_SERVER, &conn->server) || moved;
    }
    look_at_progress(conn);
    if (conn->client.broken)
        return STEP_CLOSE;
    if (!h2_relay_is_over(relay) || h2_relay_wire(relay, H2_CLIENT).n > 0)
        return STEP_WAIT;
    return conn_last(conn);
}
