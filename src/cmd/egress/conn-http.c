/* SPDX-License-Identifier: Apache-2.0 */

/* Requests: read, judged, and made into what is sent.
 *
 * What is judged is what is sent: headers that concern only this hop, or that ask a server to read
 * another request than the one in the first line, are taken out before anybody looks. */

#include "cmd/egress/wanted.h"

#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/memory.h"
#include "lib/http/http-ws-frame.h"

static const char *const dropped[] = {
    /* of this hop: RFC 9110 7.6.1, and what proxies are told */
    "connection",
    "keep-alive",
    "proxy-connection",
    "proxy-authorization",
    "proxy-authenticate",
    "proxy-authentication-info",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    /* ours to write */
    "host",
    "content-length",
};

/* Another method or target than the one that is judged. */
static const char *const overrides[] = {
    "x-http-method-override", "x-http-method", "x-method-override",
    "x-original-url",         "x-rewrite-url", "x-original-host",
    "x-forwarded-host",       "x-host",        "http2-settings",
};

void exchange_free(struct exchange *exchange)
{
    if (!exchange)
        return;
    free(exchange->raw);
    free(exchange->answer);
    buf_done(&exchange->held);
    buf_done(&exchange->local_out);
    /* It may have a secret in it. */
    secret_wipe(exchange->head_out.p, exchange->head_out.n);
    buf_done(&exchange->head_out);
    wanted_free(exchange->wanted);
    scrubbing_free(&exchange->scrubbing);
    free(exchange);
}

static struct exchange *exchange_new(void)
{
    struct exchange *exchange = xcalloc(1, sizeof *exchange);

    exchange->held = BUF(BODY_HELD_MAX);
    exchange->head_out = BUF(HEAD_OUT_MAX);
    exchange->began_us = clock_us();
    return exchange;
}

/* ---- headers ---- */

bool head_drops(const struct http_head *head, struct str name, const char *const *names, size_t n)
{
    struct str list;
    size_t at = 0;
    char lower[64];

    for (size_t i = 0; i < n; i++)
        if (http_name_is(name, names[i]))
            return true;
    if (name.n >= sizeof lower)
        return false;
    memcpy(lower, name.p, name.n);
    lower[name.n] = '\0';
    while (http_find_next(head, "connection", &at, &list))
        if (http_list_has(list, lower))
            return true;
    return false;
}

bool head_overrides(struct str name)
{
    for (size_t i = 0; i < COUNT(overrides); i++)
        if (http_name_is(name, overrides[i]))
            return true;
    return false;
}

static void sort_headers(struct exchange *exchange)
{
    const struct http_head *head = &exchange->head;

    exchange->header_n = 0;
    for (size_t i = 0; i < head->header_count; i++)
        if (!head_overrides(head->headers[i].name) &&
            !head_drops(head, head->headers[i].name, dropped, COUNT(dropped)))
            exchange->headers[exchange->header_n++] = head->headers[i];
}

bool exchange_is_socket(const struct exchange *exchange)
{
    return exchange->upgrades && exchange->verdict.flags & NET_FLAG_WS_MESSAGES;
}

/* ---- what is asked of the rules ---- */

_Static_assert(sizeof(struct net_header) == sizeof(struct http_header), "the same two texts");

struct net_request exchange_request(const struct exchange *exchange)
{
    const struct http_head *head = &exchange->head;

    return (struct net_request){
        .scheme = exchange->scheme,
        .method = head->method_text,
        .path = head->path,
        .has_query = exchange->target.n > head->path.n,
        .query = head->query,
        .headers = (const struct net_header *)(const void *)exchange->headers,
        .header_n = exchange->header_n,
        .upgrade = exchange->upgrades ? http_find(head, "upgrade") : (struct str){"", 0},
    };
}

/* ---- where to ---- */

/* Path and query lie behind each other in the head; the path of "http://host" is ours. */
static struct str target_of(const struct http_head *head)
{
    if (head->query.p && head->query.n)
        return (struct str){head->path.p, (size_t)(head->query.p + head->query.n - head->path.p)};
    if (head->target.n && head->target.p[head->target.n - 1] == '?')
        return (struct str){head->path.p, head->path.n + 1};
    return head->path;
}

/* Host and target say the same as the connection was opened for (F11). */
static bool agrees(const struct conn *conn, struct str authority, uint16_t port)
{
    struct net_host host;
    struct str name;
    uint16_t said;

    if (!net_authority_cut(authority, port, &name, &said) || said != conn->port)
        return false;
    net_host_read(name, &host);
    return host.kind != NET_HOST_BAD && !host.is_odd &&
           str_eq((struct str){host.text, host.n}, str_of(conn->host));
}

static enum step aim_fixed(struct conn *conn)
{
    const struct http_head *head = &conn->exchange->head;
    uint16_t usual = conn->secure ? 443 : 80;

    if (head->form == HTTP_ABSOLUTE &&
        !(str_eq(head->scheme, conn->exchange->scheme) && agrees(conn, head->authority, usual)))
        return conn_fail(conn, 421, "EGRESS_HOST_MISMATCH",
                         "the request is for another host than its connection");
    if (head->host.n && !agrees(conn, head->host, usual))
        return conn_fail(conn, 421, "EGRESS_HOST_MISMATCH",
                         "Host is another one than the connection was opened for");
    return STEP_AGAIN;
}

static enum step aim_absolute(struct conn *conn)
{
    struct http_head *head = &conn->exchange->head;
    struct str host;
    uint16_t port;

    if (head->form != HTTP_ABSOLUTE)
        return conn_fail(conn, 400, "EGRESS_TARGET_FORM",
                         "this is a proxy: ask for http://host/path, or CONNECT host:port");
    if (!http_name_is(head->scheme, "http"))
        return conn_fail(conn, 400, "EGRESS_SCHEME",
                         "only http:// can be asked for in this way; "
                         "CONNECT host:port for TLS");
    if (!net_authority_cut(head->authority, 80, &host, &port) ||
        !conn_aim(conn, host, port, NET_VIA_PROXY))
        return conn_fail(conn, 400, "EGRESS_HOST_FORM", "the target has no host that could be one");
    return STEP_AGAIN;
}

/* The connection is asked for with every request of a client that names its host anew. */
static enum step judge_connection(struct conn *conn)
{
    struct net_knock knock = conn_knock(conn);

    if (conn->fixed)
        return STEP_AGAIN;
    knock.dialled = NULL;
    net_rules_connect(conn->sandbox->rules, &knock, &conn->way);
    if (conn->way.kind == NET_TUNNEL || conn->way.kind == NET_INSPECT)
        return STEP_AGAIN;
    return conn_refuse(conn, &conn->way);
}

/* ---- CONNECT ---- */

static enum step open_tunnel(struct conn *conn)
{
    const struct http_head *head = &conn->exchange->head;
    struct str host;
    uint16_t port;
    bool aimed = net_authority_cut(head->authority, 0, &host, &port) &&
                 conn_aim(conn, host, port, NET_VIA_PROXY);

    if (conn->fixed || head->framing != HTTP_NO_BODY)
        return conn_fail(conn, 400, "EGRESS_CONNECT",
                         "CONNECT inside a connection, or with a body");
    if (!aimed)
        return conn_fail(conn, 400, "EGRESS_HOST_FORM", "CONNECT needs a host and a port");
    exchange_free(TAKE(conn->exchange));
    conn->herald = HERALD_CONNECT;
    return conn_open_fixed(conn);
}

/* ---- judging ---- */

enum step exchange_send(struct conn *conn)
{
    struct err err;

    if (exchange_compose(conn, &err) < 0)
        return conn_fail(conn, 431, "EGRESS_HEAD_TOO_LARGE", err.text);
    sandbox_count(conn->sandbox, conn->way.entry, &(struct counts){.requests = 1});
    return conn_open_exchange(conn);
}

enum step exchange_hold(struct conn *conn)
{
    conn->phase = PHASE_HELD;
    conn_wait(conn, BODY_MS);
    conn->exchange->is_held = true;
    if (conn->exchange->head.expects_continue)
        (void)bytes_put(&conn->client.out, HTTP_CONTINUE, sizeof HTTP_CONTINUE - 1);
    return STEP_AGAIN;
}

/* Paid for at once, under the rules that said yes: what follows may take its time. */
static enum step allow(struct conn *conn)
{
    struct exchange *exchange = conn->exchange;
    enum http_fault fault =
        exchange_is_socket(exchange) ? http_ws_check(&exchange->head) : HTTP_NO_FAULT;
    struct net_verdict verdict;

    if (fault)
        return conn_fail(conn, http_fault_status(fault), net_reason_code(NET_REASON_UPGRADE),
                         http_fault_text(fault));
    if (!conn_may_spend(conn, &exchange->verdict, &conn->purse, &verdict))
        return conn_refuse(conn, &verdict);
    return secret_look(conn);
}

static enum step judge_request(struct conn *conn)
{
    struct exchange *exchange = conn->exchange;
    struct net_knock knock = conn_knock(conn);
    struct net_request request;

    exchange->upgrades = exchange->head.has_upgrade;
    request = exchange_request(exchange);
    net_rules_request(conn->sandbox->rules, &knock, &request, &exchange->verdict);
    http_body_init(&exchange->body, &exchange->head, BODY_MAX);
    switch (exchange->verdict.kind) {
    case NET_ALLOW:
        return allow(conn);
    case NET_NEED_BODY:
        return exchange_hold(conn);
    case NET_DENY:
    case NET_TUNNEL:
    case NET_INSPECT:
        break;
    }
    return conn_refuse(conn, &exchange->verdict);
}

static enum step judge_held(struct conn *conn)
{
    struct exchange *exchange = conn->exchange;
    struct net_knock knock = conn_knock(conn);
    struct net_request request = exchange_request(exchange);
    struct str coding = http_find(&exchange->head, "content-encoding");

    if (coding.n && !http_name_is(coding, "identity"))
        return conn_fail(conn, 415, "EGRESS_BODY_FORM",
                         "the rule looks into bodies; send this one without a content coding");
    net_rules_body(conn->sandbox->rules, &knock, &request, buf_str(&exchange->held),
                   &exchange->verdict);
    if (exchange->verdict.kind != NET_ALLOW)
        return conn_refuse(conn, &exchange->verdict);
    return allow(conn);
}

static enum step refuse_large(struct conn *conn)
{
    struct net_verdict verdict;

    if (conn->exchange->is_for_slot)
        return conn_fail(conn, 413, vault_fault_code(VAULT_FAULT_BODY),
                         vault_fault_text(VAULT_FAULT_BODY));
    net_rules_body_too_large(&conn->exchange->verdict, &verdict);
    return conn_refuse(conn, &verdict);
}

enum step step_held(struct conn *conn)
{
    struct exchange *exchange = conn->exchange;
    size_t wanted = exchange->is_for_slot ? VAULT_BODY_MAX : exchange->verdict.body_max;
    size_t most = wanted < BODY_HELD_MAX ? wanted : BODY_HELD_MAX;
    struct err err;

    for (;;) {
        struct str in = bytes_str(&conn->client.in), piece = {NULL, 0};
        size_t had = in.n;
        enum http_body_event event = http_body_next(&exchange->body, &in, &piece);

        if (event == HTTP_BODY_REFUSED)
            return conn_fail(conn, http_fault_status(exchange->body.fault), "EGRESS_BODY_FRAMING",
                             http_fault_text(exchange->body.fault));
        if (event == HTTP_BODY_DATA &&
            (exchange->held.n + piece.n > most || buf_add_str(&exchange->held, piece, &err) < 0))
            return refuse_large(conn);
        bytes_take(&conn->client.in, had - in.n);
        if (event == HTTP_BODY_END)
            return exchange->is_for_slot ? secret_held(conn) : judge_held(conn);
        if (event == HTTP_BODY_MORE)
            return conn->client.ended ? STEP_CLOSE : STEP_WAIT;
        conn_wait(conn, BODY_MS);
    }
}

/* ---- heads ---- */

static enum step begin(struct conn *conn)
{
    struct exchange *exchange = conn->exchange;
    const struct http_head *head = &exchange->head;
    enum step step;

    exchange->scheme = conn->secure ? STR_LIT("https") : STR_LIT("http");
    if (head->form == HTTP_AUTHORITY)
        return open_tunnel(conn);
    if (head->form == HTTP_ASTERISK)
        return conn_fail(conn, 400, "EGRESS_TARGET_FORM", "a request for * is for no path");
    exchange->target = target_of(head);
    sort_headers(exchange);
    step = conn->fixed ? aim_fixed(conn) : aim_absolute(conn);
    if (step != STEP_AGAIN || conn->phase != PHASE_HEAD)
        return step;
    if (conn->is_local || (!conn->fixed && local_is_meant(conn)))
        return local_begin(conn);
    step = judge_connection(conn);
    if (step != STEP_AGAIN || conn->phase != PHASE_HEAD)
        return step;
    return judge_request(conn);
}

/* The head is kept apart from the bytes behind it, which move on. */
static int read_head(struct conn *conn, struct exchange *exchange)
{
    struct http_scan scan = {0};
    struct str in = bytes_str(&conn->client.in);
    int n = http_request_read(&exchange->scan, in, &exchange->head);

    if (n <= 0)
        return n;
    exchange->raw = xmalloc((size_t)n);
    memcpy(exchange->raw, in.p, (size_t)n);
    bytes_take(&conn->client.in, (size_t)n);
    return http_request_read(&scan, (struct str){exchange->raw, (size_t)n}, &exchange->head);
}

enum step step_head(struct conn *conn)
{
    int n;

    if (conn->client.in.n == 0)
        return conn->client.ended ? STEP_CLOSE : STEP_WAIT;
    if (!conn->exchange) {
        conn->exchange = exchange_new();
        conn_wait(conn, HEAD_MS);
    }
    n = read_head(conn, conn->exchange);
    if (n < 0)
        return conn_fail(conn, http_fault_status(conn->exchange->scan.fault),
                         "EGRESS_REQUEST_FRAMING", http_fault_text(conn->exchange->scan.fault));
    if (n == 0)
        return conn->client.ended ? STEP_CLOSE : STEP_WAIT;
    conn->exchange->scan = (struct http_scan){0};
    return begin(conn);
}
