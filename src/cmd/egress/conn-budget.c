/* SPDX-License-Identifier: Apache-2.0 */

/* What comes off the budgets: a request or a tunnel when it is allowed, its bytes before they go
 * on. What a rule gives is given to the sandbox, not to the connection; what is used up ends there.
 */

#include "cmd/egress/conn-private.h"

#include <limits.h>

#include "lib/tls/tls.h"

bool conn_may_spend(struct conn *conn, const struct net_verdict *by, struct net_purse *purse,
                    struct net_verdict *out)
{
    struct sandbox *sandbox = conn->sandbox;

    net_budget_request(sandbox->budget, sandbox->rules, by, conn->hub->loop.now_ms, out);
    if (out->kind != NET_ALLOW)
        return false;
    net_budget_purse(sandbox->budget, sandbox->rules, by, purse);
    return true;
}

bool conn_pay(struct conn *conn, const struct net_purse *purse, uint64_t bytes_out,
              uint64_t bytes_in, struct net_verdict *out)
{
    net_budget_bytes(conn->sandbox->budget, purse, bytes_out, bytes_in, out);
    if (out->kind == NET_ALLOW)
        return true;
    out->entry = conn->way.entry;
    return false;
}

/* ---- what a budget leaves the run, over all its connections ---- */

struct meters conn_meters(const struct conn *conn)
{
    return (struct meters){
        {&conn->sandbox->meter, conn->peer ? &conn->peer->meter : NULL}
    };
}

bool conn_has_left(const struct conn *conn)
{
    const struct meters meters = conn_meters(conn);

    if (meters_left(&meters) > 0)
        return true;
    meters_keep(&meters);
    return false;
}

enum step conn_refuse_spent(struct conn *conn)
{
    struct net_verdict verdict = {
        .kind = NET_DENY,
        .reason = NET_REASON_BUDGET_RUN,
        .entry = conn->way.entry,
        .text = "the bytes that a budget leaves this run are used up, or none of its commands "
                "runs; \"brig budget show\" says when there are more"};

    return conn_refuse(conn, &verdict);
}

/* ---- on the server's side ---- */

/* On the wire, or on the way to it. */
static uint64_t out_of(const struct side *side)
{
    return side->bytes_out + side->out.n + (side->tls ? tls_side_wire(side->tls).n : 0);
}

void conn_pay_from_here(struct conn *conn)
{
    conn->paid_out = out_of(&conn->server);
    conn->paid_in = conn->server.bytes_in;
}

bool conn_pay_server(struct conn *conn, struct net_verdict *out)
{
    uint64_t more_out = out_of(&conn->server) - conn->paid_out;
    uint64_t more_in = conn->server.bytes_in - conn->paid_in;

    conn_pay_from_here(conn);
    return conn_pay(conn, &conn->purse, more_out, more_in, out);
}

void conn_change_rules(struct conn *conn)
{
    /* The names of rules belong to the rules. */
    if (conn->exchange) {
        conn->exchange->verdict.entry = "";
        conn->exchange->verdict.endpoint = UINT_MAX;
    }
    /* A request goes on with what it was given; a tunnel has what the new rules give it. */
    if (conn->way.kind == NET_TUNNEL && !conn->exchange)
        net_budget_purse(conn->sandbox->budget, conn->sandbox->rules, &conn->way, &conn->purse);
}
