/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/egress/intercept.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/memory.h"

/* Alerts in plain text, for hellos that get no answer (RFC 8446 6). */
#define ALERT_BYTES 7
#define ALERT_HANDSHAKE 40
#define ALERT_VERSION 70
#define ALERT_NAME 112
#define ALERT_ALPN 120

void intercept_free(struct intercept *intercept)
{
    if (!intercept)
        return;
    h2_free(intercept->h2);
    free(intercept);
}

/* ---- the hello ---- */

/* Counted like any refusal, and said in the one way a client understands now. */
static enum step refuse_hello(struct conn *conn, enum tls_fault fault, unsigned char alert)
{
    const unsigned char record[ALERT_BYTES] = {21, 3, 3, 0, 2, 2, alert};

    (void)conn_fail(conn, 403, tls_fault_name(fault), tls_fault_text(fault));
    (void)bytes_put(&conn->client.out, record, sizeof record); /* nothing else is in there */
    return conn_last(conn);
}

static unsigned offers_of(const struct tls_hello *hello)
{
    return (hello->offers_h2 ? TLS_H2 : 0U) | (hello->offers_http1 ? TLS_HTTP1 : 0U);
}

enum step intercept_begin(struct conn *conn)
{
    conn->intercept = xcalloc(1, sizeof *conn->intercept);
    conn->phase = PHASE_HELLO;
    return STEP_AGAIN;
}

enum step step_hello(struct conn *conn)
{
    struct tls_hello *hello = &conn->intercept->hello;
    int n = tls_hello_read(bytes_str(&conn->client.in), hello);

    if (n < 0)
        return refuse_hello(conn, TLS_FAULT_HELLO, ALERT_HANDSHAKE);
    if (n == 0)
        return conn->client.ended ? STEP_CLOSE : STEP_WAIT;
    if (!hello->offers_tls12)
        return refuse_hello(conn, TLS_FAULT_VERSION, ALERT_VERSION);
    /* An inner hello that we cannot read is never opened: TLS ends here, under the outer name. */
    if (hello->name[0] && strcmp(hello->name, conn->host) != 0)
        return refuse_hello(conn, TLS_FAULT_NAME, ALERT_NAME);
    if (hello->has_protocols && offers_of(hello) == 0)
        return refuse_hello(conn, TLS_FAULT_ALPN, ALERT_ALPN);
    conn->secure = true;
    if (conn->server.watch.fd >= 0)
        return intercept_dialled(conn);
    conn->phase = PHASE_LOOKUP;
    conn->looked_up = false;
    return STEP_AGAIN;
}

/* ---- the server ---- */

static enum step answer_client(struct conn *conn, enum tls_protocol protocol);

/* What a client that speaks HTTP/1 is told inside TLS; others see the handshake fail. */
static enum step lose_server(struct conn *conn, enum tls_fault fault, const char *detail)
{
    struct intercept *intercept = conn->intercept;
    unsigned offers = offers_of(&intercept->hello);

    intercept->fault = fault;
    (void)snprintf(intercept->text, sizeof intercept->text, "%s (%s)", tls_fault_text(fault),
                   detail[0] ? detail : "no more is known");
    if (conn->exchange)
        return conn_fail(conn, 502, tls_fault_name(fault), intercept->text);
    side_close(&conn->hub->loop, &conn->server, false);
    if (offers == TLS_H2)
        return refuse_hello(conn, fault, ALERT_HANDSHAKE);
    return answer_client(conn, offers & TLS_HTTP1 ? TLS_HTTP1 : TLS_NONE);
}

enum step intercept_dialled(struct conn *conn)
{
    unsigned offers = offers_of(&conn->intercept->hello);
    struct err err;

    if (!conn->hub->trust)
        return lose_server(conn, TLS_FAULT_CERT_ROOT, "this machine has no root certificates");
    /* The client's protocol is settled when a server is dialled again. */
    if (conn->client.tls)
        offers &= TLS_HTTP1;
    if (tls_client_new(conn->hub->trust, conn->host, offers, conn->sandbox->number,
                       &conn->server.tls, &err) < 0)
        return lose_server(conn, TLS_FAULT_PROTOCOL, err.text);
    conn->phase = PHASE_SHAKE_SERVER;
    conn_wait(conn, SHAKE_MS);
    return STEP_AGAIN;
}

enum step intercept_give_up(struct conn *conn)
{
    return lose_server(conn, TLS_FAULT_TIMEOUT, "upstream");
}

enum step step_shake_server(struct conn *conn)
{
    struct tls_side *tls = conn->server.tls;

    switch (tls_side_phase(tls)) {
    case TLS_SHAKING:
        if (conn->server.broken || conn->server.ended)
            return lose_server(conn, TLS_FAULT_TRUNCATED, "during the handshake");
        return conn->client.broken ? STEP_CLOSE : STEP_WAIT;
    case TLS_FAILED:
        return lose_server(conn, tls_side_fault(tls), tls_side_detail(tls));
    case TLS_OPEN:
        break;
    }
    if (conn->client.tls)
        return conn_opened(conn);
    return answer_client(conn, tls_side_protocol(tls));
}

/* ---- the client ---- */

static enum step answer_client(struct conn *conn, enum tls_protocol protocol)
{
    struct side *client = &conn->client;
    struct err err;

    if (tls_server_new(conn->hub->authority, conn->host, protocol, &client->tls, &err) < 0)
        return refuse_hello(conn, TLS_FAULT_NAME, ALERT_NAME);
    /* The hello was looked at where it lay; now it is TLS's. */
    client->raw = client->in;
    client->in = (struct bytes){0};
    conn->phase = PHASE_SHAKE_CLIENT;
    conn_wait(conn, SHAKE_MS);
    (void)side_fill(client);
    return STEP_AGAIN;
}

static enum step tell_fault(struct conn *conn)
{
    const struct intercept *intercept = conn->intercept;

    conn->phase = PHASE_HEAD; /* where refusals are answers */
    return conn_fail(conn, 502, tls_fault_name(intercept->fault), intercept->text);
}

enum step step_shake_client(struct conn *conn)
{
    struct tls_side *tls = conn->client.tls;

    switch (tls_side_phase(tls)) {
    case TLS_SHAKING:
        return conn->client.ended || conn->client.broken ? STEP_CLOSE : STEP_WAIT;
    case TLS_FAILED:
        (void)conn_fail(conn, 403, tls_fault_name(tls_side_fault(tls)),
                        tls_fault_text(tls_side_fault(tls)));
        conn->client.broken = false; /* the alert still goes */
        return conn_last(conn);
    case TLS_OPEN:
        break;
    }
    if (conn->intercept->fault)
        return tell_fault(conn);
    if (tls_side_protocol(tls) == TLS_H2)
        return h2_begin(conn);
    conn->phase = PHASE_HEAD;
    conn_wait(conn, HEAD_MS);
    return STEP_AGAIN;
}
