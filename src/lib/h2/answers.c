/* SPDX-License-Identifier: Apache-2.0 */

/* What the server's session reports: answers and their bodies. */

#include "lib/h2/h2-private.h"

static bool ask_owner(struct stream *stream, struct http_head *head)
{
    const struct h2_calls *calls = stream->relay->calls;

    return !calls->response || calls->response(stream->relay->owner, &stream->shown, head);
}

static void take_response(struct stream *stream, bool ends)
{
    struct h2_relay *relay = stream->relay;
    struct http_head head;

    relay->progress++;
    if (head_of_response(&relay->collect[H2_SERVER], stream->is_head_method, &relay->scratch,
                         &head) < 0) {
        stream_refuse(stream, H2_FAULT_ANSWER, H2_SERVER_LEFT);
        return;
    }
    if (head.status < 200) {
        if (head.status != 101 && (!ask_owner(stream, &head) || submit_interim(stream, &head) < 0))
            stream_cut(stream, H2_CUT, "H2_CUT");
        return;
    }
    stream->shown.status = head.status;
    if (!ask_owner(stream, &head)) {
        stream_refuse(stream, H2_FAULT_ANSWER, H2_CUT);
        return;
    }
    if (submit_response(stream, &head, !ends) < 0) {
        stream_refuse(stream, H2_FAULT_ANSWER, H2_SERVER_LEFT);
        return;
    }
    stream->has_answered = true;
    stream->to[H2_CLIENT].ended = ends;
}

static void take_response_trailers(struct stream *stream)
{
    struct h2_relay *relay = stream->relay;
    struct http_head head;

    if (head_of_trailers(&relay->collect[H2_SERVER], &head, &relay->scratch) < 0 ||
        !ask_owner(stream, &head) || !stream_keep_trailers(stream, H2_CLIENT, &head))
        stream_cut(stream, H2_SERVER_LEFT, "H2_TRAILERS");
}

int on_server_message(nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
    struct h2_relay *relay = user_data;
    struct stream *stream = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    bool ends = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;

    if (frame->hd.type == NGHTTP2_GOAWAY) {
        h2_relay_finish(relay);
        return 0;
    }
    if (!stream || stream->state != STREAM_OPEN)
        return 0;
    if (frame->hd.type == NGHTTP2_HEADERS && !stream->has_answered)
        take_response(stream, ends);
    else if (frame->hd.type == NGHTTP2_HEADERS)
        take_response_trailers(stream);
    else if (frame->hd.type != NGHTTP2_DATA)
        return 0;
    if (ends && stream->state == STREAM_OPEN && !stream->to[H2_CLIENT].ended)
        stream_response_ended(stream);
    return 0;
}

static void take_response_data(struct stream *stream, struct str piece)
{
    struct h2_relay *relay = stream->relay;
    const struct h2_calls *calls = relay->calls;

    stream->shown.response_bytes += piece.n;
    if (!calls->response_data) {
        pipe_add(stream, H2_CLIENT, piece, piece.n);
        return;
    }
    buf_clear(&relay->scratch);
    if (calls->response_data(relay->owner, &stream->shown, piece, false, &relay->scratch)) {
        pipe_add(stream, H2_CLIENT, buf_str(&relay->scratch), piece.n);
        return;
    }
    pipe_add(stream, H2_CLIENT, (struct str){"", 0}, piece.n);
    stream_cut(stream, H2_CUT, "H2_CUT");
}

int on_server_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *bytes,
                   size_t n, void *user_data)
{
    struct stream *stream = nghttp2_session_get_stream_user_data(session, id);

    (void)flags;
    ((struct h2_relay *)user_data)->progress++;
    if (stream && stream->state == STREAM_OPEN && stream->id[H2_CLIENT])
        take_response_data(stream, (struct str){(const char *)bytes, n});
    else
        (void)nghttp2_session_consume(session, id, n);
    return 0;
}

int on_server_close(nghttp2_session *session, int32_t id, uint32_t code, void *user_data)
{
    struct stream *stream = nghttp2_session_get_stream_user_data(session, id);

    (void)user_data;
    if (stream)
        stream_closed(stream, H2_SERVER, code);
    return 0;
}
