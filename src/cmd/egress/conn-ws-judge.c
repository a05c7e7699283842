/* SPDX-License-Identifier: Apache-2.0 */

/* Messages of a WebSocket, whole: the client's are judged, and what is the vault's in them is put
 * in; out of the server's it is taken again. */

#include "cmd/egress/conn-ws.h"

#include <string.h>

static struct str message_of(const struct ws_way *way)
{
    return (struct str){way->held.p + HTTP_WS_HEAD_BYTES, way->held.n - HTTP_WS_HEAD_BYTES};
}

static struct wanted_what what_of(const struct conn *conn)
{
    return (struct wanted_what){conn->exchange->head.method_text, conn->exchange->head.path};
}

/* ---- secrets ---- */

static enum step refuse_secret(struct conn *conn, const char *reason)
{
    return ws_fail(conn, HTTP_WS_POLICY, HTTP_WS_GOING_AWAY, reason);
}

/* As the vault reads requests: a body of JSON, and nothing else. What has no brace has no member,
 * however loosely a server reads it. */
static struct vault_request request_of(const struct ws_way *way)
{
    static const struct http_header type = {STR_LIT("content-type"), STR_LIT("application/json")};
    struct str message = message_of(way);

    return (struct vault_request){.method = STR_LIT("GET"),
                                  .target = STR_LIT("/"),
                                  .headers = &type,
                                  .header_count = memchr(message.p, '{', message.n) ? 1 : 0,
                                  .body = message};
}

static void on_answer(struct ask *ask)
{
    conn_drive(wanted_of(ask)->owner);
}

/* What is bound for messages is known since the upgrade; the keeper looks again at every use. NULL:
 * there was no vault. */
static struct wanted *wanted_by_message(struct conn *conn)
{
    const struct wanted *upgrade = conn->exchange->wanted;
    struct wanted *wanted;

    if (!upgrade)
        return NULL;
    wanted = wanted_new(conn, on_answer);
    wanted->is_message = true;
    wanted->bound_n = upgrade->bound_n;
    for (size_t i = 0; i < wanted->bound_n; i++)
        if (upgrade->bound[i].kind == VAULT_WEBSOCKET) {
            wanted->bound[i] = upgrade->bound[i];
            wanted->bound[i].kind = VAULT_BODY;
        }
    return wanted;
}

/* All that a connection has carried is struck out of what comes back: no more than that goes. */
static bool can_remember(const struct conn *conn, const struct wanted *wanted)
{
    size_t more = 0;

    for (size_t i = 0; i < wanted->value_n; i++) {
        bool is_known = false;

        for (size_t k = 0; k < conn->value_n; k++)
            is_known |=
                secret_is_same(secret_reveal(conn->values[k]), secret_reveal(wanted->values[i]));
        more += !is_known;
    }
    return conn->value_n + more <= VAULT_USES_MAX;
}

static bool hold_filled(struct conn *conn, struct str text)
{
    static const char room[HTTP_WS_HEAD_BYTES];
    struct ws_way *out = &conn->ws->out;
    struct err err;

    ws_release(conn, out);
    return ws_may_hold(conn, sizeof room + text.n) &&
           buf_add(&out->held, room, sizeof room, &err) == 0 &&
           buf_add_str(&out->held, text, &err) == 0;
}

static enum step send_filled(struct conn *conn)
{
    struct ws_relay *ws = conn->ws;
    struct vault_request request = request_of(&ws->out);
    struct wanted_no no;
    bool is_held;

    if (!can_remember(conn, ws->wanted))
        return refuse_secret(conn, vault_fault_code(VAULT_FAULT_TOO_MANY));
    if (!wanted_fill(ws->wanted, conn, &request, &no))
        return refuse_secret(conn, no.reason);
    vault_scrub_free(TAKE(ws->in.scrub)); /* the next one knows the new value */
    ws->in.flagged = 0;
    is_held = hold_filled(conn, ws->wanted->filled.body);
    wanted_free(TAKE(ws->wanted));
    if (!is_held)
        return ws_fail(conn, HTTP_WS_LATER, HTTP_WS_LATER, "EGRESS_BUSY");
    ws_send_held(&ws->out);
    ws_stir(conn);
    return STEP_AGAIN;
}

enum step ws_reveal(struct conn *conn)
{
    struct wanted *wanted = conn->ws->wanted;
    struct wanted_what what = what_of(conn);

    if (!wanted->ask.is_done)
        return STEP_WAIT;
    if (wanted->ask.failed)
        return refuse_secret(conn, wanted_failed(&wanted->ask).reason);
    wanted_take_value(wanted);
    if (wanted->value_n == wanted->uses.n)
        return send_filled(conn);
    wanted_ask_value(wanted, conn, &what);
    return STEP_AGAIN;
}

static enum step look_for_uses(struct conn *conn)
{
    static const struct net_verdict unsigned_one;
    struct ws_relay *ws = conn->ws;
    struct vault_request request = request_of(&ws->out);
    struct wanted_what what = what_of(conn);
    struct wanted *wanted = wanted_by_message(conn);
    struct wanted_no no;

    if (!wanted_find(wanted, conn, &what, &unsigned_one, &request, &no)) {
        wanted_free(wanted);
        return refuse_secret(conn, no.reason);
    }
    if (!wanted || wanted->uses.n == 0) {
        wanted_free(wanted);
        ws_send_held(&ws->out);
        return STEP_AGAIN;
    }
    ws->wanted = wanted;
    conn_wait(conn, SECRET_MS);
    wanted_ask_value(wanted, conn, &what);
    return STEP_AGAIN;
}

/* A placeholder that nobody fills in is not sent: it would tell the server its name. */
static enum step look_for_secret(struct conn *conn, bool is_text)
{
    struct ws_way *out = &conn->ws->out;
    struct vault_scan scan = {0};

    if (is_text && conn->exchange->verdict.flags & NET_FLAG_WS_REWRITE)
        return look_for_uses(conn);
    if (vault_scan_feed(&scan, message_of(out)))
        return refuse_secret(conn, vault_fault_code(VAULT_FAULT_MISPLACED));
    ws_send_held(out);
    return STEP_AGAIN;
}

/* ---- judging ---- */

enum step ws_judge(struct conn *conn)
{
    struct ws_way *out = &conn->ws->out;
    struct net_knock knock = conn_knock(conn);
    struct net_request request = exchange_request(conn->exchange);
    bool is_text = out->reader.message == HTTP_WS_TEXT;
    struct net_verdict verdict;

    net_rules_message(conn->sandbox->rules, &knock, &request, is_text, message_of(out), &verdict);
    if (verdict.kind != NET_ALLOW)
        return ws_refuse(conn, &verdict);
    if (verdict.flags & NET_FLAG_AUDIT)
        conn_note(conn, is_text ? STR_LIT("WEBSOCKET_TEXT") : STR_LIT("WEBSOCKET_BINARY"),
                  verdict.entry, net_reason_code(verdict.reason), true);
    return look_for_secret(conn, is_text);
}

/* ---- what comes back ---- */

bool ws_scrub(struct conn *conn, struct ws_way *way, char *text, size_t n)
{
    const struct wanted_what what = what_of(conn);
    struct err err;

    if (conn->value_n == 0 || n == 0)
        return true;
    if (!way->scrub && values_scrub(conn, &way->scrub, &err) < 0)
        return false;
    (void)vault_scrub_text(way->scrub, text, n);
    values_flag(conn, way->scrub, &way->flagged, &what);
    return true;
}
