/* SPDX-License-Identifier: Apache-2.0 */

/* Bodies. What came from one peer is given back to its window only when it went to the other one,
 * so a pipe never holds more than the window we grant, and all of them never more than the
 * connection's. */

#include <string.h>

#include "lib/h2/h2-private.h"

/* A piece may grow a little while the owner looks through it. */
#define PIPE_MAX (2UL * H2_WINDOW_BYTES)

static void give_back(struct stream *stream, enum h2_peer to, size_t n)
{
    struct pipe *pipe = &stream->to[to];
    enum h2_peer from = other(to);
    nghttp2_session *session = stream->relay->session[from];

    n = n < pipe->owed ? n : pipe->owed;
    if (n == 0)
        return;
    pipe->owed -= n;
    /* Both fail for lack of memory only, which then shows when the session goes on. */
    if (stream->id[from])
        (void)nghttp2_session_consume(session, stream->id[from], n);
    else
        (void)nghttp2_session_consume_connection(session, n);
}

void pipe_wake(struct stream *stream, enum h2_peer to)
{
    struct pipe *pipe = &stream->to[to];

    if (!pipe->is_waiting || stream->id[to] == 0)
        return;
    pipe->is_waiting = false;
    (void)nghttp2_session_resume_data(stream->relay->session[to], stream->id[to]);
}

void pipe_add(struct stream *stream, enum h2_peer to, struct str bytes, size_t owed)
{
    struct pipe *pipe = &stream->to[to];

    pipe->owed += owed;
    if (queue_add(&pipe->bytes, bytes.p, bytes.n, PIPE_MAX) < bytes.n) {
        stream_cut(stream, H2_CUT, "H2_WINDOW"); /* more than the window: not a peer's to do */
        return;
    }
    pipe_wake(stream, to);
}

void pipe_end(struct stream *stream, enum h2_peer to)
{
    stream->to[to].ended = true;
    pipe_wake(stream, to);
}

void pipe_drop(struct stream *stream, enum h2_peer to)
{
    struct pipe *pipe = &stream->to[to];

    give_back(stream, to, pipe->owed);
    queue_done(&pipe->bytes);
    buf_done(&pipe->trailers);
}

static ssize_t read_pipe(struct stream *stream, enum h2_peer to, uint8_t *out, size_t room,
                         uint32_t *flags)
{
    struct pipe *pipe = &stream->to[to];
    struct str bytes = queue_str(&pipe->bytes);
    size_t n = bytes.n < room ? bytes.n : room;

    if (n == 0 && !pipe->ended) {
        pipe->is_waiting = true;
        return NGHTTP2_ERR_DEFERRED;
    }
    memcpy(out, bytes.p, n);
    queue_drop(&pipe->bytes, n);
    give_back(stream, to, n);
    if (n >= METER_DATA_MIN)
        meter_earn(&stream->relay->meter[to], METER_FOR_DATA);
    if (pipe->ended && pipe->bytes.n == 0) {
        give_back(stream, to, pipe->owed);
        *flags |= NGHTTP2_DATA_FLAG_EOF;
        if (pipe->trailers.n > 0 && submit_trailers(stream, to) == 0)
            *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
    }
    return (ssize_t)n;
}

static ssize_t read_for_server(nghttp2_session *session, int32_t id, uint8_t *out, size_t room,
                               uint32_t *flags, nghttp2_data_source *source, void *unused)
{
    (void)session;
    (void)id;
    (void)unused;
    return read_pipe(source->ptr, H2_SERVER, out, room, flags);
}

static ssize_t read_for_client(nghttp2_session *session, int32_t id, uint8_t *out, size_t room,
                               uint32_t *flags, nghttp2_data_source *source, void *unused)
{
    (void)session;
    (void)id;
    (void)unused;
    return read_pipe(source->ptr, H2_CLIENT, out, room, flags);
}

nghttp2_data_provider pipe_source(struct stream *stream, enum h2_peer to)
{
    return (nghttp2_data_provider){{.ptr = stream},
                                   to == H2_SERVER ? read_for_server : read_for_client};
}
