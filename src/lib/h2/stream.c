/* SPDX-License-Identifier: Apache-2.0 */

/* One stream's life: judged, handed on, answered, closed at both ends. It exists as long as one of
 * the two sessions knows it, and its owner hears of its end exactly once. */

#include <stdio.h>

#include "lib/base/memory.h"
#include "lib/h2/h2-private.h"

#define REPLY_MAX 4096
#define STATUS_REFUSED 403
#define DROPPED_MAX (64UL * 1024) /* of a request that was answered before it was whole */

static const struct h2_fault_face faces[] = {
#define X(id, code, status, text) {code, status, text},
    H2_FAULTS(X)
#undef X
};

const struct h2_fault_face *h2_fault_face(enum h2_fault fault)
{
    return &faces[fault];
}

/* ---- beginning and end ---- */

struct stream *stream_new(struct h2_relay *relay, int32_t client_id)
{
    struct stream *stream = xcalloc(1, sizeof(*stream));

    stream->relay = relay;
    stream->id[H2_CLIENT] = client_id;
    stream->head = BUF(H2_HEAD_TEXT_MAX);
    stream->to[H2_CLIENT].trailers = BUF(HTTP_HEAD_MAX);
    stream->to[H2_SERVER].trailers = BUF(HTTP_HEAD_MAX);
    stream->next = relay->first;
    if (relay->first)
        relay->first->prev = stream;
    relay->first = stream;
    relay->streams++;
    return stream;
}

static void forget_held(struct stream *stream)
{
    stream->relay->held -= stream->held;
    stream->held = 0;
}

static void stream_free(struct stream *stream)
{
    struct h2_relay *relay = stream->relay;

    pipe_drop(stream, H2_SERVER);
    pipe_drop(stream, H2_CLIENT);
    forget_held(stream);
    if (stream->prev)
        stream->prev->next = stream->next;
    else
        relay->first = stream->next;
    if (stream->next)
        stream->next->prev = stream->prev;
    relay->streams--;
    buf_done(&stream->head);
    free(stream);
}

void stream_end(struct stream *stream)
{
    struct h2_relay *relay = stream->relay;

    if (stream->ending == H2_DONE && !stream->is_delivered)
        stream->ending = H2_CLIENT_LEFT;
    if (stream->ending == H2_DONE || stream->ending == H2_REFUSED)
        meter_earn(&relay->meter[H2_CLIENT], METER_FOR_STREAM);
    if (stream->ending == H2_DONE)
        meter_earn(&relay->meter[H2_SERVER], METER_FOR_STREAM);
    relay->calls->ended(relay->owner, &stream->shown, stream->ending,
                        stream->fault ? stream->fault : "");
    stream_free(stream);
}

void stream_end_if_closed(struct stream *stream)
{
    if (stream->id[H2_CLIENT] == 0 && stream->id[H2_SERVER] == 0)
        stream_end(stream);
}

void stream_reset(struct stream *stream, enum h2_peer at, uint32_t code)
{
    if (stream->id[at] == 0)
        return;
    /* Reported by on_stream_close once it is sent; fails for lack of memory only. */
    (void)nghttp2_submit_rst_stream(stream->relay->session[at], NGHTTP2_FLAG_NONE, stream->id[at],
                                    code);
}

/* ---- answers of our own ---- */

static void note_ending(struct stream *stream, enum h2_ending ending, const char *fault)
{
    if (stream->fault)
        return; /* the first one counts */
    stream->ending = ending;
    stream->fault = fault;
}

/* Nothing of the request goes any further. */
static void leave_server(struct stream *stream)
{
    stream->state = STREAM_ANSWERED;
    stream_reset(stream, H2_SERVER, NGHTTP2_CANCEL);
    pipe_drop(stream, H2_SERVER);
    forget_held(stream);
}

static void answer(struct stream *stream, int status, struct str body)
{
    leave_server(stream);
    pipe_drop(stream, H2_CLIENT);
    if (stream->id[H2_CLIENT] == 0)
        return;
    if (stream->has_answered || submit_reply(stream, status, body) < 0) {
        stream_reset(stream, H2_CLIENT, NGHTTP2_INTERNAL_ERROR);
        return;
    }
    stream->has_answered = true;
    stream->shown.status = status;
}

static void answer_fault(struct stream *stream, int status, const char *code, const char *text)
{
    char body[REPLY_MAX];
    int n =
        snprintf(body, sizeof body, "{\"error\":\"%s\",\"reason_code\":\"%s\",\"message\":\"%s\"}",
                 status >= 500 ? "upstream_failed" : "bad_request", code, text);

    answer(stream, status, (struct str){body, (size_t)n});
}

void stream_refuse(struct stream *stream, enum h2_fault fault, enum h2_ending ending)
{
    const struct h2_fault_face *face = h2_fault_face(fault);

    note_ending(stream, ending, face->code);
    answer_fault(stream, face->status, face->code, face->text);
}

void stream_refuse_http(struct stream *stream, enum http_fault fault)
{
    note_ending(stream, H2_REFUSED, "EGRESS_REQUEST_FRAMING"); /* as HTTP/1 calls it */
    answer_fault(stream, http_fault_status(fault), "EGRESS_REQUEST_FRAMING",
                 http_fault_text(fault));
}

void stream_cut(struct stream *stream, enum h2_ending ending, const char *fault)
{
    note_ending(stream, ending, fault);
    leave_server(stream);
    pipe_drop(stream, H2_CLIENT);
    stream_reset(stream, H2_CLIENT, NGHTTP2_INTERNAL_ERROR);
}

/* ---- judging ---- */

/* What came before the word goes through the owner's hands like what comes behind it. */
static bool show_collected(struct stream *stream)
{
    const struct h2_calls *calls = stream->relay->calls;
    struct str bytes = queue_str(&stream->to[H2_SERVER].bytes);

    if (stream->hold_max > 0 || bytes.n == 0 || !calls->request_data)
        return true;
    return calls->request_data(stream->relay->owner, &stream->shown, bytes);
}

static void replace_body(struct stream *stream, struct str body)
{
    struct pipe *pipe = &stream->to[H2_SERVER];

    queue_done(&pipe->bytes);
    (void)queue_add(&pipe->bytes, body.p, body.n, body.n); /* all of it fits into its own size */
}

static void pass(struct stream *stream, const struct h2_word *word)
{
    stream->state = STREAM_OPEN;
    forget_held(stream);
    if (!show_collected(stream)) {
        stream_cut(stream, H2_CUT, "H2_CUT");
        return;
    }
    if (word->body.p && stream->hold_max > 0)
        replace_body(stream, word->body);
    if (stream->relay->is_gone[H2_SERVER]) {
        note_ending(stream, H2_SERVER_LEFT, "H2_SERVER_BUSY");
        stream_reset(stream, H2_CLIENT, NGHTTP2_REFUSED_STREAM);
    } else if (submit_request(stream, word) < 0) {
        stream_refuse(stream, H2_FAULT_HEAD, H2_REFUSED);
    }
    /* No longer needed, and maybe full of placeholders and paths. */
    buf_done(&stream->head);
}

static void judge_held(struct stream *stream)
{
    const struct h2_calls *calls = stream->relay->calls;
    struct h2_word word = {0};
    struct http_head head;

    stream->state = STREAM_WAITING_BODY;
    if (head_read_again(stream, &head) < 0) {
        stream_refuse(stream, H2_FAULT_HEAD, H2_REFUSED);
        return;
    }
    calls->judge_body(stream->relay->owner, &stream->shown, &head,
                      queue_str(&stream->to[H2_SERVER].bytes), &word);
    stream_obey(stream, &word);
}

/* What is in the pipe already was counted against the window; held bodies are not. */
static void hold(struct stream *stream, size_t max)
{
    struct pipe *pipe = &stream->to[H2_SERVER];

    if (stream->state != STREAM_NEW && stream->state != STREAM_WAITING) {
        stream_refuse(stream, H2_FAULT_HEAD, H2_REFUSED); /* held once, answered by a word */
        return;
    }
    stream->hold_max = max > 0 ? max : 1;
    stream->state = STREAM_HOLDING;
    stream->held = pipe->bytes.n;
    stream->relay->held += stream->held;
    if (pipe->owed > 0) {
        (void)nghttp2_session_consume(stream->relay->session[H2_CLIENT], stream->id[H2_CLIENT],
                                      pipe->owed);
        pipe->owed = 0;
    }
    if (stream->held > stream->hold_max)
        stream_refuse(stream, H2_FAULT_HELD, H2_REFUSED);
    else if (stream->client_ended)
        judge_held(stream);
}

void stream_obey(struct stream *stream, const struct h2_word *word)
{
    switch (word->answer) {
    case H2_REFUSE:
        note_ending(stream, H2_REFUSED, "H2_REFUSED");
        answer(stream, word->status ? word->status : STATUS_REFUSED, word->reply);
        return;
    case H2_PASS:
        pass(stream, word);
        return;
    case H2_HOLD:
        hold(stream, word->hold_max);
        return;
    case H2_WAIT:
        stream->state = stream->state == STREAM_WAITING_BODY ? STREAM_WAITING_BODY : STREAM_WAITING;
        return;
    case H2_END:
        note_ending(stream, H2_REFUSED, "H2_ENDED");
        relay_fail(stream->relay, "H2_ENDED");
        return;
    }
}

void stream_judge(struct stream *stream, const struct http_head *head)
{
    struct h2_word word = {0};

    stream->relay->calls->judge(stream->relay->owner, &stream->shown, head, !stream->client_ended,
                                &word);
    stream_obey(stream, &word);
}

bool stream_keep_trailers(struct stream *stream, enum h2_peer to, const struct http_head *head)
{
    struct buf *lines = &stream->to[to].trailers;
    struct err err;

    buf_clear(lines);
    for (size_t i = 0; i < head->header_count; i++) {
        if (buf_addf(lines, &err, STR_FMT ": " STR_FMT "\r\n", STR_ARG(head->headers[i].name),
                     STR_ARG(head->headers[i].value)) < 0)
            return false;
    }
    return true;
}

/* ---- ends ---- */

/* An answer of our own ends when the request does: clients that are still sending take an answer
 * that is over before for a broken stream (curl 7.88 does). */
static void end_reply(struct stream *stream)
{
    if (stream->has_answered && stream->id[H2_CLIENT] && !stream->to[H2_CLIENT].ended)
        pipe_end(stream, H2_CLIENT);
}

void stream_drop_data(struct stream *stream, size_t n)
{
    stream->dropped += n;
    if (stream->dropped > DROPPED_MAX)
        end_reply(stream);
}

void stream_request_ended(struct stream *stream)
{
    stream->client_ended = true;
    stream->to[H2_SERVER].ended = true;
    if (stream->state == STREAM_HOLDING)
        judge_held(stream);
    else if (stream->state == STREAM_ANSWERED)
        end_reply(stream);
    else
        pipe_wake(stream, H2_SERVER);
}

void stream_response_ended(struct stream *stream)
{
    struct h2_relay *relay = stream->relay;

    if (relay->calls->response_data && stream->has_answered) {
        buf_clear(&relay->scratch);
        if (!relay->calls->response_data(relay->owner, &stream->shown, (struct str){"", 0}, true,
                                         &relay->scratch)) {
            stream_cut(stream, H2_CUT, "H2_CUT");
            return;
        }
        pipe_add(stream, H2_CLIENT, buf_str(&relay->scratch), 0);
    }
    pipe_end(stream, H2_CLIENT);
}

/* The server has nothing more to say: that is fine when it has said everything. */
static void server_closed(struct stream *stream, uint32_t code)
{
    pipe_drop(stream, H2_SERVER);
    if (stream->state != STREAM_OPEN)
        return;
    if (stream->to[H2_CLIENT].ended) {
        stream->state = STREAM_ANSWERED;
        return;
    }
    if (stream->has_answered)
        stream_cut(stream, H2_SERVER_LEFT, "H2_SERVER_RESET");
    else if (code == NGHTTP2_REFUSED_STREAM) {
        note_ending(stream, H2_SERVER_LEFT, "H2_SERVER_BUSY");
        stream_reset(stream, H2_CLIENT, NGHTTP2_REFUSED_STREAM); /* clients try again */
    } else {
        stream_refuse(stream, H2_FAULT_SERVER, H2_SERVER_LEFT);
    }
}

void stream_closed(struct stream *stream, enum h2_peer by, uint32_t code)
{
    stream->id[by] = 0;
    if (by == H2_SERVER) {
        server_closed(stream, code);
    } else {
        pipe_drop(stream, H2_CLIENT);
        leave_server(stream);
    }
    stream_end_if_closed(stream);
}
