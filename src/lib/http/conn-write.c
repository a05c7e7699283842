/* SPDX-License-Identifier: Apache-2.0 */

/* What a connection has to say: plain text in its room, TLS records behind it, and what libuv holds
 * until the socket takes it. */

#include "lib/http/server-private.h"

#include <string.h>

size_t conn_waiting(const struct conn *conn)
{
    return (conn->room ? conn->room->out.n : 0) + conn->wire.n + conn->flying.n;
}

static void on_written(uv_write_t *write, int status)
{
    struct conn *conn = write->data;

    conn->is_flying = false;
    buf_clear(&conn->flying);
    if (conn->state == CONN_CLOSED)
        return;
    if (status < 0) {
        conn_close(conn, HTTP_GONE_CLIENT);
        return;
    }
    conn->was_sent = true;
    conn_process(conn);
}

/* What the socket did not take at once goes to libuv, which waits for it to become writable. */
static void fly(struct conn *conn, struct buf *from, size_t sent)
{
    struct buf swap = conn->flying;
    uv_buf_t rest;
    int code;

    conn->flying = *from;
    *from = swap;
    rest = uv_buf_init(conn->flying.p + sent, (unsigned)(conn->flying.n - sent));
    conn->write.data = conn;
    code = uv_write(&conn->write, &conn->io.stream, &rest, 1, on_written);
    if (code < 0)
        conn_close(conn, HTTP_GONE_CLIENT);
    else
        conn->is_flying = true;
}

static int seal(struct conn *conn)
{
    struct buf *out = conn->room ? &conn->room->out : NULL;

    if (out != NULL && out->n > 0) {
        if (tls_write(conn->tls, buf_str(out)) < 0)
            return -1;
        buf_clear(out);
    }
    return tls_drain(conn->tls, &conn->wire);
}

/* Tries the socket directly: small answers almost always fit, which saves a turn of the loop. */
void conn_flush(struct conn *conn)
{
    struct buf *from = conn->room ? &conn->room->out : NULL;
    uv_buf_t all;
    int sent;

    if (conn->state == CONN_CLOSED || conn->is_flying)
        return;
    if (conn->tls != NULL) {
        if (seal(conn) < 0) {
            conn_close(conn, HTTP_GONE_CLIENT);
            return;
        }
        from = &conn->wire;
    }
    if (from == NULL || from->n == 0)
        return;
    all = uv_buf_init(from->p, (unsigned)from->n);
    sent = uv_try_write(&conn->io.stream, &all, 1);
    if (sent < 0 && sent != UV_EAGAIN) {
        conn_close(conn, HTTP_GONE_CLIENT);
        return;
    }
    conn->was_sent |= sent > 0;
    if (sent == (int)from->n)
        buf_clear(from);
    else
        fly(conn, from, sent > 0 ? (size_t)sent : 0);
}

static int keep_rest(struct buf *out, const uv_buf_t *pieces, unsigned n, size_t sent)
{
    struct err err;

    for (unsigned i = 0; i < n; i++) {
        size_t skip = sent < pieces[i].len ? sent : pieces[i].len;

        sent -= skip;
        if (pieces[i].len > skip &&
            buf_add(out, pieces[i].base + skip, pieces[i].len - skip, &err) < 0)
            return -1;
    }
    return 0;
}

/* Large pieces go to the socket from where they are; only what it does not take is copied. */
#define DIRECT_MIN (16 * KIB)
#define PIECES_MAX 4

static size_t send_direct(struct conn *conn, const uv_buf_t *pieces, unsigned n)
{
    uv_buf_t all[PIECES_MAX + 1];
    struct buf *out = &conn->room->out;
    int sent;

    all[0] = uv_buf_init(out->p, (unsigned)out->n);
    memcpy(all + 1, pieces, n * sizeof(*pieces));
    sent = out->n > 0 ? uv_try_write(&conn->io.stream, all, n + 1)
                      : uv_try_write(&conn->io.stream, pieces, n);
    if (sent <= 0)
        return 0; /* an error comes again when the rest is flushed */
    conn->was_sent = true;
    if ((size_t)sent < out->n) {
        memmove(out->p, out->p + sent, out->n - (size_t)sent);
        out->n -= (size_t)sent;
        return 0;
    }
    sent -= (int)out->n;
    buf_clear(out);
    return (size_t)sent;
}

int conn_send(struct conn *conn, const uv_buf_t *pieces, unsigned n)
{
    size_t total = 0;
    size_t sent = 0;

    for (unsigned i = 0; i < n; i++)
        total += pieces[i].len;
    if (total >= DIRECT_MIN && conn->tls == NULL && !conn->is_flying)
        sent = send_direct(conn, pieces, n);
    if (conn_waiting(conn) + total - sent > conn->server->limits.output_max)
        return -1;
    return keep_rest(&conn->room->out, pieces, n, sent);
}
