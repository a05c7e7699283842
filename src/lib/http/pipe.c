/* SPDX-License-Identifier: Apache-2.0 */

/* Output of a command on its way out: the bytes of a pipe as pieces of an answer.
 *
 * A piece is as large as what the pipe holds, so its head can be sent first. Then the kernel moves
 * the pages to the socket. What the socket does not take is read and waits like any other piece,
 * so a piece is never left half said: back-pressure and deadlines are those of http_send(). */

#include "lib/http/server-private.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/limits.h"

#define COPY_BYTES (64 * KIB)
#define MOVE_MIN (16 * KIB) /* less is copied sooner than moved */
#define MOVE_MAX (256 * KIB)

static ssize_t copy(struct http_exchange *x, int fd, bool *may_go_on)
{
    UNFILLED char bytes[COPY_BYTES];
    ssize_t n = read(fd, bytes, sizeof bytes);

    if (n > 0)
        *may_go_on = http_send(x, (struct str){bytes, (size_t)n});
    return n;
}

/* Nothing of ours may be on its way in other hands, or it would be overtaken. */
static bool can_move(struct http_exchange *x)
{
    struct conn *conn = x->conn;

    if (x->id == 0 || !x->begun || x->ended || x->head_only || conn->tls || conn->busy ||
        conn->state != CONN_EXCHANGE)
        return false;
    conn_flush(conn);
    return conn->state == CONN_EXCHANGE && !conn->is_flying && conn->room->out.n == 0 &&
           conn->wire.n == 0;
}

static size_t bytes_in(int fd)
{
    int n = 0;

    if (ioctl(fd, FIONREAD, &n) < 0 || n < 0)
        return 0;
    return (size_t)n < MOVE_MAX ? (size_t)n : MOVE_MAX;
}

/* 1: the socket has it. 0: a part waits, and all that follows must, too. */
static int send_head(struct buf *out, int socket, size_t n, struct err *err)
{
    char head[HTTP_CHUNK_HEAD_BYTES];
    size_t head_n = http_chunk_head(n, head);
    ssize_t sent = send(socket, head, head_n, MSG_DONTWAIT | MSG_NOSIGNAL | MSG_MORE);

    if (sent == (ssize_t)head_n)
        return 1;
    if (sent < 0)
        sent = 0; /* an error comes again when the rest is flushed */
    return buf_add(out, head + sent, head_n - (size_t)sent, err);
}

static size_t move_pages(int fd, int socket, size_t n)
{
    size_t moved = 0;

    while (moved < n) {
        ssize_t got = splice(fd, NULL, socket, NULL, n - moved, SPLICE_F_NONBLOCK | SPLICE_F_MORE);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        moved += (size_t)got;
    }
    return moved;
}

/* What the pipe holds of this piece goes behind what already waits. */
static int keep_rest(struct buf *out, int fd, size_t n)
{
    UNFILLED char bytes[COPY_BYTES];
    struct err err;

    while (n) {
        ssize_t got = read(fd, bytes, n < sizeof bytes ? n : sizeof bytes);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0 || buf_add(out, bytes, (size_t)got, &err) < 0)
            return -1;
        n -= (size_t)got;
    }
    return 0;
}

/* 0: nothing was done, it is to be copied. -1: the connection is broken. */
static int move(struct http_exchange *x, int fd, size_t n)
{
    struct conn *conn = x->conn;
    struct buf *out = &conn->room->out;
    int has_head = 1;
    size_t moved;
    struct err err;
    int socket;

    if (uv_fileno(&conn->io.handle, &socket) < 0)
        return 0;
    if (x->chunked && (has_head = send_head(out, socket, n, &err)) < 0)
        return -1;
    moved = has_head ? move_pages(fd, socket, n) : 0;
    conn->was_sent |= moved > 0;
    if (keep_rest(out, fd, n - moved) < 0)
        return -1;
    return x->chunked && buf_add_str(out, STR_LIT("\r\n"), &err) < 0 ? -1 : 1;
}

ssize_t http_send_pipe(struct http_exchange *x, int fd, bool *may_go_on)
{
    size_t n = bytes_in(fd);
    int done;

    *may_go_on = true;
    if (n < MOVE_MIN || !can_move(x) || (!x->chunked && x->left < n))
        return copy(x, fd, may_go_on);
    done = move(x, fd, n);
    if (done == 0)
        return copy(x, fd, may_go_on);
    if (done < 0) {
        http_abort(x);
        return (ssize_t)n;
    }
    if (!x->chunked && x->left != HTTP_STREAM)
        x->left -= n;
    conn_process(x->conn);
    if (conn_waiting(x->conn) > x->conn->server->limits.output_high) {
        x->wants_writable = true;
        *may_go_on = false;
    }
    return (ssize_t)n;
}
