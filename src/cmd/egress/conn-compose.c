/* SPDX-License-Identifier: Apache-2.0 */

/* The head that goes to the server: our own first line, Host and framing, and the headers that were
 * judged. */

#include "cmd/egress/wanted.h"

#include <stdio.h>
#include <string.h>

static bool is_usual_port(const struct conn *conn)
{
    return conn->port == (conn->secure ? 443 : 80);
}

void conn_authority(const struct conn *conn, char out[AUTHORITY_BYTES])
{
    bool is_v6 = strchr(conn->host, ':') != NULL;
    int n =
        snprintf(out, AUTHORITY_BYTES, "%s%s%s", is_v6 ? "[" : "", conn->host, is_v6 ? "]" : "");

    if (!is_usual_port(conn))
        (void)snprintf(out + n, AUTHORITY_BYTES - (size_t)n, ":%u", conn->port);
}

static int write_host(const struct conn *conn, struct buf *out, struct err *err)
{
    char authority[AUTHORITY_BYTES];

    conn_authority(conn, authority);
    return buf_addf(out, err, "Host: %s\r\n", authority);
}

struct str exchange_body(const struct exchange *exchange)
{
    const struct wanted *wanted = exchange->wanted;

    return wanted && wanted->is_filled ? wanted->filled.body : buf_str(&exchange->held);
}

static int write_framing(const struct exchange *exchange, struct buf *out, struct err *err)
{
    if (exchange->is_held && !(exchange->upgrades && exchange->head.framing == HTTP_NO_BODY))
        return buf_addf(out, err, "Content-Length: %zu\r\n", exchange_body(exchange).n);
    switch (exchange->head.framing) {
    case HTTP_LENGTH:
        return buf_addf(out, err, "Content-Length: %llu\r\n",
                        (unsigned long long)exchange->head.length);
    case HTTP_CHUNKED:
        return buf_add_text(out, "Transfer-Encoding: chunked\r\n", err);
    case HTTP_NO_BODY:
    case HTTP_UNTIL_CLOSE:
        break;
    }
    return 0;
}

static int write_upgrade(const struct exchange *exchange, struct buf *out, struct err *err)
{
    struct str upgrade = http_find(&exchange->head, "upgrade");

    if (!exchange->upgrades)
        return 0;
    return buf_addf(out, err, "Connection: Upgrade\r\nUpgrade: " STR_FMT "\r\n", STR_ARG(upgrade));
}

int exchange_compose(struct conn *conn, struct err *err)
{
    struct exchange *exchange = conn->exchange;
    const struct wanted *wanted = exchange->wanted;
    bool is_filled = wanted && wanted->is_filled;
    struct str target = is_filled ? wanted->filled.target : exchange->target;
    const struct http_header *headers = is_filled ? wanted->filled.headers : exchange->headers;
    size_t header_n = is_filled ? wanted->filled.header_count : exchange->header_n;
    struct buf *out = &exchange->head_out;

    secret_wipe(out->p, out->n);
    buf_clear(out);
    if (buf_add_str(out, exchange->head.method_text, err) < 0 || buf_add_byte(out, ' ', err) < 0 ||
        buf_add_str(out, target, err) < 0 || buf_add_text(out, " HTTP/1.1\r\n", err) < 0 ||
        write_host(conn, out, err) < 0)
        return -1;
    for (size_t i = 0; i < header_n; i++) {
        const struct http_header *h = &headers[i];

        if (exchange->is_held && http_name_is(h->name, "expect"))
            continue; /* it was continued by us */
        if (values_drop(conn, h->name))
            continue;
        /* What an extension does to messages nobody here could read. */
        if (exchange_is_socket(exchange) && http_name_is(h->name, "sec-websocket-extensions"))
            continue;
        if (buf_add_str(out, h->name, err) < 0 || buf_add(out, ": ", 2, err) < 0 ||
            buf_add_str(out, h->value, err) < 0 || buf_add(out, "\r\n", 2, err) < 0)
            return -1;
    }
    if (conn->value_n && buf_add_text(out, "Accept-Encoding: identity\r\n", err) < 0)
        return -1;
    if (write_framing(exchange, out, err) < 0 || write_upgrade(exchange, out, err) < 0)
        return -1;
    return buf_add(out, "\r\n", 2, err);
}
