/* SPDX-License-Identifier: Apache-2.0 */

/* Secrets in requests of HTTP/1: between the rule's yes and the first byte to the server. */

#include "cmd/egress/wanted.h"

static struct wanted_what what_of(const struct conn *conn)
{
    return (struct wanted_what){conn->exchange->head.method_text, conn->exchange->head.path};
}

static struct vault_request request_of(const struct exchange *exchange)
{
    return (struct vault_request){
        .method = exchange->head.method_text,
        .target = exchange->target,
        .headers = exchange->headers,
        .header_count = exchange->header_n,
        .body = exchange->is_held ? buf_str(&exchange->held) : (struct str){"", 0},
        .has_more = !exchange->is_held && exchange->head.framing != HTTP_NO_BODY
    };
}

static void on_answer(struct ask *ask)
{
    conn_drive(wanted_of(ask)->owner);
}

static enum step refuse(struct conn *conn, const struct wanted_no *no)
{
    return conn_fail(conn, no->status, no->reason, no->text);
}

/* ---- before there is a server ---- */

static enum step find(struct conn *conn)
{
    struct exchange *exchange = conn->exchange;
    struct vault_request request = request_of(exchange);
    struct wanted_what what = what_of(conn);
    struct wanted_no no;

    if (!wanted_find(exchange->wanted, conn, &what, &exchange->verdict, &request, &no))
        return refuse(conn, &no);
    if (exchange->upgrades && !exchange_is_socket(exchange) && exchange->wanted &&
        exchange->wanted->uses.n)
        return conn_fail(conn, 403, "VAULT_PLACEHOLDER_MISPLACED",
                         "no secret goes into a request that asks for another protocol: what comes "
                         "back could not be looked through");
    return exchange_send(conn);
}

/* A body with a slot is held, so that the slot can be found in it. One that is longer than can be
 * held is passed on with a look for placeholders. */
static bool holds_body(const struct exchange *exchange)
{
    struct vault_request request = request_of(exchange);

    return !exchange->is_held && exchange->head.framing != HTTP_NO_BODY &&
           wanted_needs_body(exchange->wanted, &request) &&
           !(exchange->head.framing == HTTP_LENGTH && exchange->head.length > VAULT_BODY_MAX);
}

enum step secret_look(struct conn *conn)
{
    struct exchange *exchange = conn->exchange;
    struct wanted_what what = what_of(conn);

    if (!secrets_are_open(&conn->hub->secrets))
        return find(conn);
    exchange->wanted = wanted_new(conn, on_answer);
    conn->phase = PHASE_BOUND;
    conn_wait(conn, SECRET_MS);
    wanted_ask_bound(exchange->wanted, conn, &what);
    return STEP_AGAIN;
}

enum step step_bound(struct conn *conn)
{
    struct exchange *exchange = conn->exchange;
    struct wanted *wanted = exchange->wanted;
    struct wanted_no no;

    if (!wanted->ask.is_done)
        return STEP_WAIT;
    if (wanted->ask.failed) {
        no = wanted_failed(&wanted->ask);
        return refuse(conn, &no);
    }
    wanted->bound_n = wanted->ask.slot_n;
    for (size_t i = 0; i < wanted->bound_n; i++)
        wanted->bound[i] = wanted->ask.slots[i];
    if (!holds_body(exchange))
        return find(conn);
    exchange->is_held = exchange->is_for_slot = true;
    return exchange_hold(conn);
}

enum step secret_held(struct conn *conn)
{
    return find(conn);
}

/* ---- with the server there ---- */

static enum step go(struct conn *conn)
{
    conn->phase = PHASE_EXCHANGE;
    conn_wait(conn, ANSWER_MS);
    return STEP_AGAIN;
}

enum step secret_put(struct conn *conn)
{
    struct wanted *wanted = conn->exchange->wanted;
    struct wanted_what what = what_of(conn);

    if (!wanted || wanted->uses.n == 0 || wanted->is_filled)
        return go(conn);
    conn->phase = PHASE_REVEAL;
    conn_wait(conn, SECRET_MS);
    wanted_ask_value(wanted, conn, &what);
    return STEP_AGAIN;
}

enum step step_reveal(struct conn *conn)
{
    struct exchange *exchange = conn->exchange;
    struct wanted *wanted = exchange->wanted;
    struct vault_request request = request_of(exchange);
    struct wanted_what what = what_of(conn);
    struct wanted_no no;
    struct err err;

    if (!wanted->ask.is_done)
        return STEP_WAIT;
    if (wanted->ask.failed) {
        no = wanted_failed(&wanted->ask);
        return refuse(conn, &no);
    }
    wanted_take_value(wanted);
    if (wanted->value_n < wanted->uses.n) {
        wanted_ask_value(wanted, conn, &what);
        return STEP_AGAIN;
    }
    if (!wanted_fill(wanted, conn, &request, &no))
        return refuse(conn, &no);
    if (exchange_compose(conn, &err) < 0)
        return conn_fail(conn, 431, "EGRESS_HEAD_TOO_LARGE", err.text);
    return go(conn);
}
