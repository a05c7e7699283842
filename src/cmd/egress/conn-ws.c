/* SPDX-License-Identifier: Apache-2.0 */

/* The life of a WebSocket that is looked into: from the server's yes to the last close. */

#include "cmd/egress/conn-ws.h"

#include <string.h>

#include "lib/base/memory.h"

/* ---- memory ---- */

bool ws_may_hold(struct conn *conn, size_t n)
{
    if (conn->sandbox->ws_held + n > WS_HELD_SANDBOX_MAX || conn->hub->ws_held + n > WS_HELD_MAX)
        return false;
    conn->sandbox->ws_held += n;
    conn->hub->ws_held += n;
    return true;
}

void ws_release(struct conn *conn, struct ws_way *way)
{
    conn->sandbox->ws_held -= way->held.n;
    conn->hub->ws_held -= way->held.n;
    secret_wipe(way->held.p, way->held.n); /* it may have a secret in it */
    buf_done(&way->held);
    way->held = BUF(WS_HELD_ONE_MAX);
    way->is_going = false;
    way->began_ms = 0;
}

void ws_free(struct conn *conn)
{
    struct ws_relay *ws = TAKE(conn->ws);

    if (!ws)
        return;
    ws_release(conn, &ws->out);
    ws_release(conn, &ws->in);
    vault_scrub_free(ws->in.scrub);
    wanted_free(ws->wanted);
    free(ws);
}

/* ---- beginning ---- */

static struct http_ws_reader reader_of(bool is_client)
{
    return (struct http_ws_reader){.is_client = is_client,
                                   .text_max = WS_TEXT_MAX,
                                   .binary_max = WS_BINARY_MAX,
                                   .fragments_max = WS_FRAGMENTS_MAX};
}

enum step ws_begin(struct conn *conn)
{
    const struct net_verdict *verdict = &conn->exchange->verdict;
    struct ws_relay *ws = xcalloc(1, sizeof *ws);

    ws->out = (struct ws_way){.from = &conn->client,
                              .to = &conn->server,
                              .is_out = true,
                              .holds = true,
                              .reader = reader_of(true),
                              .held = BUF(WS_HELD_ONE_MAX)};
    ws->in = (struct ws_way){.from = &conn->server,
                             .to = &conn->client,
                             .holds = conn->value_n || verdict->flags & NET_FLAG_WS_REWRITE,
                             .reader = reader_of(false),
                             .held = BUF(WS_HELD_ONE_MAX)};
    if (!ws->in.holds) {
        ws->in.reader.text_max = ws->in.reader.binary_max = BODY_MAX;
        ws->in.reader.fragments_max = UINT32_MAX;
    }
    if (verdict->response_max && verdict->response_max < ws->in.reader.text_max)
        ws->in.reader.text_max = verdict->response_max;
    if (verdict->response_max && verdict->response_max < ws->in.reader.binary_max)
        ws->in.reader.binary_max = verdict->response_max;
    conn->ws = ws;
    conn->fixed = true;
    conn->exchange->answered = true;
    conn->phase = PHASE_MESSAGES;
    ws_stir(conn);
    return STEP_AGAIN;
}

/* ---- deadlines ---- */

static uint64_t sooner(const struct conn *conn, const struct ws_way *way, uint64_t ms)
{
    uint64_t now = conn->hub->loop.now_ms, ends = way->began_ms + WS_MESSAGE_MS;
    uint64_t left = ends > now ? ends - now : 0;

    if (way->began_ms == 0)
        return ms;
    ms = ms < WS_MESSAGE_IDLE_MS ? ms : WS_MESSAGE_IDLE_MS;
    return ms < left ? ms : left;
}

void ws_stir(struct conn *conn)
{
    const struct ws_relay *ws = conn->ws;
    bool is_closing = ws->is_ending || ws->out.has_closed || ws->in.has_closed;

    if (!ws->wanted)
        conn_wait(conn, sooner(conn, &ws->in,
                               sooner(conn, &ws->out, is_closing ? WS_CLOSE_MS : WS_IDLE_MS)));
}

enum step ws_give_up(struct conn *conn)
{
    struct ws_relay *ws = conn->ws;

    if (ws->is_ending || ws->out.has_closed || ws->in.has_closed)
        return STEP_CLOSE;
    if (ws->wanted)
        return ws_fail(conn, HTTP_WS_POLICY, HTTP_WS_GOING_AWAY, "VAULT_TIMEOUT");
    if (ws->out.began_ms)
        return ws_fail(conn, HTTP_WS_POLICY, HTTP_WS_GOING_AWAY, "EGRESS_MESSAGE_TIMEOUT");
    if (ws->in.began_ms)
        return ws_fail(conn, HTTP_WS_FAILED, HTTP_WS_POLICY, "EGRESS_ANSWER_TIMEOUT");
    return ws_end_both(conn, HTTP_WS_GOING_AWAY, "idle", HTTP_WS_GOING_AWAY);
}

/* ---- ending ---- */

static struct ws_words words_of(unsigned code, const char *reason)
{
    struct ws_words out = {
        .n = 2, .text = {(char)(code >> 8), (char)code}
    };
    size_t n = strlen(reason);

    n = n < HTTP_WS_REASON_MAX ? n : HTTP_WS_REASON_MAX;
    memcpy(out.text + 2, reason, n);
    out.n += n;
    return out;
}

enum step ws_end_both(struct conn *conn, unsigned code, const char *reason, unsigned to_server)
{
    struct ws_relay *ws = conn->ws;

    if (ws->is_ending)
        return STEP_AGAIN;
    ws->is_ending = true;
    if (!ws->in.has_closed)
        ws->bye = words_of(code, reason);
    if (!ws->out.has_closed)
        ws->bye_server = words_of(to_server, "");
    wanted_free(TAKE(ws->wanted));
    if (!ws->out.is_going)
        ws_release(conn, &ws->out);
    if (!ws->in.is_going)
        ws_release(conn, &ws->in);
    conn_wait(conn, WS_CLOSE_MS);
    return STEP_AGAIN;
}

/* Nothing more goes to the server, and nothing of it comes. */
static enum step cut(struct conn *conn, const char *reason)
{
    struct ws_relay *ws = conn->ws;
    struct ws_words bye = words_of(HTTP_WS_POLICY, reason);

    wanted_free(TAKE(ws->wanted));
    if (ws->in.is_going || ws->in.has_closed ||
        !ws_put_control(&ws->in, HTTP_WS_CLOSE, (struct str){bye.text, bye.n}))
        return STEP_CLOSE;
    return conn_last(conn);
}

enum step ws_refuse(struct conn *conn, const struct net_verdict *verdict)
{
    const char *reason = net_reason_code(verdict->reason);
    bool is_text = conn->ws->out.reader.message == HTTP_WS_TEXT;

    conn_note(conn, is_text ? STR_LIT("WEBSOCKET_TEXT") : STR_LIT("WEBSOCKET_BINARY"),
              verdict->entry ? verdict->entry : "", reason, false);
    return ws_end_both(conn, HTTP_WS_POLICY, reason, HTTP_WS_GOING_AWAY);
}

enum step ws_fail(struct conn *conn, unsigned code, unsigned to_server, const char *reason)
{
    conn_note(conn, STR_LIT("WEBSOCKET"), conn->way.entry ? conn->way.entry : "", reason, false);
    return ws_end_both(conn, code, reason, to_server);
}

static bool say_bye(struct ws_way *way, struct ws_words *bye)
{
    struct str text = {bye->text, bye->n};

    if (bye->n && !ws_put_control(way, HTTP_WS_CLOSE, text))
        return false;
    bye->n = 0;
    return true;
}

/* What was allowed before is sent, then both sides hear the end. */
static enum step finish(struct conn *conn)
{
    struct ws_relay *ws = conn->ws;
    bool has_server = !conn->server.ended && !conn->server.broken;
    struct net_verdict verdict;

    if (conn->client.broken)
        return STEP_CLOSE;
    if (!ws_put_on(conn, &ws->in) || !say_bye(&ws->in, &ws->bye))
        return STEP_WAIT;
    if (!has_server)
        return conn_last(conn);
    if (!ws_put_on(conn, &ws->out) || !say_bye(&ws->out, &ws->bye_server))
        return STEP_WAIT;
    if (!conn_pay_server(conn, &verdict) || side_is_flushed(&conn->server))
        return conn_last(conn);
    return STEP_WAIT;
}

/* ---- other rules ---- */

static bool is_still_allowed(struct conn *conn, struct net_verdict *way,
                             struct net_verdict *verdict)
{
    const struct net_rules *rules = conn->sandbox->rules;
    struct net_knock knock = conn_knock(conn);
    struct net_request request = exchange_request(conn->exchange);
    unsigned had = conn->exchange->verdict.flags & NET_FLAG_WS_REWRITE;

    if (!net_rules_still_allows(rules, &knock, &conn->way))
        return false;
    net_rules_connect(rules, &knock, way);
    net_rules_request(rules, &knock, &request, verdict);
    /* Whether secrets go in and out is settled when it begins. */
    return verdict->kind == NET_ALLOW && verdict->flags & NET_FLAG_WS_MESSAGES &&
           (verdict->flags & NET_FLAG_WS_REWRITE) == had;
}

void ws_judge_again(struct conn *conn)
{
    struct net_verdict way = {0}, verdict = {0};

    if (is_still_allowed(conn, &way, &verdict)) {
        conn->way = way;
        conn->exchange->verdict = verdict;
        net_budget_purse(conn->sandbox->budget, conn->sandbox->rules, &verdict, &conn->purse);
        return;
    }
    conn->way.entry = "";
    conn_note(conn, STR_LIT("WEBSOCKET"), "", net_reason_code(NET_REASON_LOST), false);
    if (conn->ws->is_ending || cut(conn, net_reason_code(NET_REASON_LOST)) == STEP_CLOSE)
        conn_close(conn);
    else
        conn_drive(conn);
}

/* ---- the step ---- */

/* One of them left without a close: the other hears no other one than that. */
static enum step look_for_end(struct conn *conn, enum ws_move out, enum ws_move in)
{
    if (conn->client.broken)
        return STEP_CLOSE;
    if ((in == WS_STARVED && conn->server.ended) || conn->server.broken)
        return conn_last(conn);
    if (out != WS_STARVED || !conn->client.ended)
        return STEP_WAIT;
    return side_is_flushed(&conn->server) ? STEP_CLOSE : STEP_WAIT;
}

enum step step_messages(struct conn *conn)
{
    struct ws_relay *ws = conn->ws;
    struct net_verdict verdict;
    enum step step = STEP_AGAIN;
    enum ws_move out, in;

    if (ws->is_ending)
        return finish(conn);
    if (ws->wanted)
        step = ws_reveal(conn);
    if (step == STEP_CLOSE || ws->is_ending)
        return step;
    out = ws_move(conn, &ws->out, &step);
    if (out == WS_ENDS)
        return step;
    /* Nothing of what was read or written since then has gone on yet. */
    if (!conn_pay_server(conn, &verdict)) {
        conn_note(conn, STR_LIT("WEBSOCKET"), verdict.entry ? verdict.entry : "",
                  net_reason_code(verdict.reason), false);
        return cut(conn, net_reason_code(verdict.reason));
    }
    in = ws_move(conn, &ws->in, &step);
    if (in == WS_ENDS)
        return step;
    if (ws->out.has_closed && ws->in.has_closed) {
        ws->is_ending = true;
        return STEP_AGAIN;
    }
    return look_for_end(conn, out, in);
}
