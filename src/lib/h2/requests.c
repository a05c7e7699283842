/* SPDX-License-Identifier: Apache-2.0 */

/* What the client's session reports: requests, their bodies, and what of the answers went out. */

#include "lib/h2/h2-private.h"

static void take_request(struct h2_relay *relay, const nghttp2_frame *frame)
{
    int32_t id = frame->hd.stream_id;
    bool ends = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;
    struct stream *stream;
    struct http_head head;

    if (relay->is_finishing) {
        (void)nghttp2_submit_rst_stream(relay->session[H2_CLIENT], NGHTTP2_FLAG_NONE, id,
                                        NGHTTP2_REFUSED_STREAM);
        return;
    }
    relay->progress++;
    stream = stream_new(relay, id);
    stream->client_ended = ends;
    stream->to[H2_SERVER].ended = ends;
    /* Fails for a stream that is not there only. */
    (void)nghttp2_session_set_stream_user_data(relay->session[H2_CLIENT], id, stream);
    if (head_of_request(stream, &relay->collect[H2_CLIENT], !ends, &head) == 0)
        stream_judge(stream, &head);
}

/* Values of trailers are shown to the owner as what they are: bytes that leave. */
static bool show_trailers(struct stream *stream, const struct http_head *head)
{
    const struct h2_calls *calls = stream->relay->calls;

    for (size_t i = 0; calls->request_data && i < head->header_count; i++) {
        if (!calls->request_data(stream->relay->owner, &stream->shown, head->headers[i].value))
            return false;
    }
    return true;
}

static void take_request_trailers(struct stream *stream)
{
    struct h2_relay *relay = stream->relay;
    struct http_head head;

    if (head_of_trailers(&relay->collect[H2_CLIENT], &head, &relay->scratch) < 0)
        stream_refuse_http(stream, HTTP_FAULT_TRAILER);
    else if (!show_trailers(stream, &head) || !stream_keep_trailers(stream, H2_SERVER, &head))
        stream_cut(stream, H2_CUT, "H2_CUT");
}

int on_client_message(nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
    struct h2_relay *relay = user_data;
    struct stream *stream = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);

    switch (frame->hd.type) {
    case NGHTTP2_HEADERS:
        if (frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
            take_request(relay, frame);
            return 0; /* its end is taken along */
        }
        if (stream && stream->state != STREAM_ANSWERED)
            take_request_trailers(stream);
        break;
    case NGHTTP2_GOAWAY:
        relay->is_finishing = true;
        return 0;
    default:
        break;
    }
    if (stream && (frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS) &&
        (frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
        stream_request_ended(stream);
    return 0;
}

static void hold_data(struct stream *stream, struct str piece)
{
    struct h2_relay *relay = stream->relay;

    (void)nghttp2_session_consume(relay->session[H2_CLIENT], stream->id[H2_CLIENT], piece.n);
    if (stream->held + piece.n > stream->hold_max) {
        stream_refuse(stream, H2_FAULT_HELD, H2_REFUSED);
        return;
    }
    if (relay->held + piece.n > H2_HELD_MAX) {
        stream_refuse(stream, H2_FAULT_HELD_ALL, H2_REFUSED);
        return;
    }
    stream->held += piece.n;
    relay->held += piece.n;
    (void)queue_add(&stream->to[H2_SERVER].bytes, piece.p, piece.n, stream->hold_max);
}

static void take_request_data(struct stream *stream, struct str piece)
{
    struct h2_relay *relay = stream->relay;

    stream->shown.request_bytes += piece.n;
    switch (stream->state) {
    case STREAM_HOLDING:
        hold_data(stream, piece);
        return;
    case STREAM_ANSWERED:
        (void)nghttp2_session_consume(relay->session[H2_CLIENT], stream->id[H2_CLIENT], piece.n);
        stream_drop_data(stream, piece.n);
        return;
    case STREAM_OPEN:
        if (relay->calls->request_data &&
            !relay->calls->request_data(relay->owner, &stream->shown, piece)) {
            pipe_add(stream, H2_SERVER, (struct str){"", 0}, piece.n);
            stream_cut(stream, H2_CUT, "H2_CUT");
            return;
        }
        break;
    case STREAM_NEW:
    case STREAM_WAITING:
    case STREAM_WAITING_BODY:
        break;
    }
    pipe_add(stream, H2_SERVER, piece, piece.n);
}

int on_client_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *bytes,
                   size_t n, void *user_data)
{
    struct stream *stream = nghttp2_session_get_stream_user_data(session, id);

    (void)flags;
    ((struct h2_relay *)user_data)->progress++;
    if (stream)
        take_request_data(stream, (struct str){(const char *)bytes, n});
    else
        (void)nghttp2_session_consume(session, id, n);
    return 0;
}

int on_client_close(nghttp2_session *session, int32_t id, uint32_t code, void *user_data)
{
    struct stream *stream = nghttp2_session_get_stream_user_data(session, id);

    (void)user_data;
    if (stream)
        stream_closed(stream, H2_CLIENT, code);
    return 0;
}

/* The last frame of an answer went out. A client that still sends is told that nobody listens. */
int on_client_sent(nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
    struct h2_relay *relay = user_data;
    struct stream *stream;

    if (frame->hd.type == NGHTTP2_GOAWAY && frame->goaway.error_code != NGHTTP2_NO_ERROR)
        relay_fail(relay, frame->goaway.error_code == NGHTTP2_ENHANCE_YOUR_CALM ? "H2_FLOOD"
                                                                                : "H2_PROTOCOL");
    if ((frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA) ||
        (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) == 0)
        return 0;
    stream = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    if (!stream)
        return 0;
    stream->is_delivered = true;
    if (!stream->client_ended && stream->state == STREAM_ANSWERED)
        stream_reset(stream, H2_CLIENT, NGHTTP2_NO_ERROR);
    return 0;
}
