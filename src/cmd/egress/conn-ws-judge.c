/* SPDX-License-Identifier: Apache-2.0 */

/* Messages of a WebSocket, whole: the client's are judged, and what is the vault's in them is put
 * in; out of the server's it is taken again. */

#include "cmd/egress/conn-ws.h"

static struct str message_of(const struct ws_way *way)
{
    return (struct str){way->held.p + HTTP_WS_HEAD_BYTES, way->held.n - HTTP_WS_HEAD_BYTES};
}

static enum step refuse_secret(struct conn *conn, const char *reason)
{
    return ws_fail(conn, HTTP_WS_POLICY, HTTP_WS_GOING_AWAY, reason);
}

enum step ws_reveal(struct conn *conn)
{
    return refuse_secret(conn, "VAULT_UNAVAILABLE");
}

/* A placeholder that nobody fills in is not sent: it would tell the server its name. */
static enum step look_for_secret(struct conn *conn)
{
    struct ws_way *out = &conn->ws->out;
    struct vault_scan scan = {0};

    if (vault_scan_feed(&scan, message_of(out)))
        return refuse_secret(conn, vault_fault_code(VAULT_FAULT_MISPLACED));
    ws_send_held(out);
    return STEP_AGAIN;
}

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
    return look_for_secret(conn);
}

bool ws_scrub(struct conn *conn, struct ws_way *way, char *text, size_t n)
{
    const struct wanted_what what = {conn->exchange->head.method_text, conn->exchange->head.path};
    struct err err;

    if (conn->value_n == 0 || n == 0)
        return true;
    if (!way->scrub && values_scrub(conn, &way->scrub, &err) < 0)
        return false;
    (void)vault_scrub_text(way->scrub, text, n);
    values_flag(conn, way->scrub, &way->flagged, &what);
    return true;
}
