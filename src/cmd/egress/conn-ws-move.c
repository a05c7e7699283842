/* SPDX-License-Identifier: Apache-2.0 */

/* Frames of a WebSocket, read on one side and written on the other. Every frame that is begun is
 * put on whole, or is in `held`: between two of them a close of ours can always be said. */

#include "cmd/egress/conn-ws.h"

#include <string.h>
#include <sys/random.h>

#include "lib/base/memory.h"

/* ---- writing ---- */

/* What we send to a server is masked by us, since its mask is a client's to choose (RFC 6455,
 * 10.3). Without random bytes nothing is sent. */
static void choose_mask(struct http_ws_frame *frame)
{
    frame->is_masked = true;
    if (getrandom(frame->mask, sizeof frame->mask, 0) != (ssize_t)sizeof frame->mask)
        abort(); /* cannot be: it does not block or fail for four bytes once the system is up */
}

/* A frame that is there as a whole, of at most the room. */
static bool put_frame(struct ws_way *way, struct http_ws_frame *frame, struct str payload)
{
    unsigned char head[HTTP_WS_HEAD_BYTES];
    char *to;
    size_t n;

    frame->length = payload.n;
    if (way->is_out)
        choose_mask(frame);
    n = http_ws_head_write(frame, head);
    if (bytes_room(&way->to->out) < n + payload.n)
        return false;
    (void)bytes_put(&way->to->out, head, n);
    to = bytes_end(&way->to->out);
    memcpy(to, payload.p, payload.n);
    if (way->is_out)
        http_ws_mask(to, payload.n, frame->mask, 0);
    bytes_added(&way->to->out, payload.n);
    return true;
}

bool ws_put_control(struct ws_way *way, enum http_ws_kind kind, struct str payload)
{
    struct http_ws_frame frame = {.kind = kind, .is_last = true};

    return put_frame(way, &frame, payload);
}

/* The head goes in front of the message, where its room is. */
void ws_send_held(struct ws_way *way)
{
    char *text = way->held.p + HTTP_WS_HEAD_BYTES;
    struct http_ws_frame frame = {
        .kind = way->reader.message, .is_last = true, .length = way->held.n - HTTP_WS_HEAD_BYTES};
    unsigned char head[HTTP_WS_HEAD_BYTES];
    size_t n;

    if (way->is_out) {
        choose_mask(&frame);
        http_ws_mask(text, (size_t)frame.length, frame.mask, 0);
    }
    n = http_ws_head_write(&frame, head);
    way->put = HTTP_WS_HEAD_BYTES - n;
    memcpy(way->held.p + way->put, head, n);
    way->is_going = true;
}

bool ws_put_on(struct conn *conn, struct ws_way *way)
{
    size_t before = way->put;

    if (!way->is_going)
        return true;
    way->put += bytes_put(&way->to->out, way->held.p + way->put, way->held.n - way->put);
    if (way->put != before)
        ws_stir(conn);
    if (way->put < way->held.n)
        return false;
    ws_release(conn, way);
    return true;
}

/* ---- control frames ---- */

static void keep_words(struct ws_words *words, struct str text)
{
    words->n = text.n;
    memcpy(words->text, text.p, text.n);
}

/* Answers what the other side had asked; nobody asked for others. */
static bool pass_pong(struct ws_way *way, struct ws_way *back)
{
    struct str words = {back->ping.text, back->ping.n};

    if (!back->is_pinged)
        return true;
    back->is_pinged = false;
    return ws_put_control(way, HTTP_WS_PONG, words);
}

static bool pass_close(struct conn *conn, struct ws_way *way, struct str payload)
{
    char text[HTTP_WS_CONTROL_MAX];

    way->has_closed = true;
    memcpy(text, payload.p, payload.n);
    if (way->is_out) /* a reason is words of the sandbox that no rule has seen */
        return ws_put_control(way, HTTP_WS_CLOSE, (struct str){text, payload.n < 2 ? 0 : 2});
    if (payload.n > 2 && !ws_scrub(conn, way, text + 2, payload.n - 2))
        payload.n = 2;
    return ws_put_control(way, HTTP_WS_CLOSE, (struct str){text, payload.n});
}

/* False: there was no room, which there is. */
static bool pass_control(struct conn *conn, struct ws_way *way, struct str payload)
{
    struct ws_way *back = way->is_out ? &conn->ws->in : &conn->ws->out;
    char text[HTTP_WS_CONTROL_MAX];

    switch (way->reader.frame.kind) {
    case HTTP_WS_PING:
        way->is_pinged = true;
        keep_words(&way->ping, payload);
        memcpy(text, payload.p, payload.n);
        if (way->is_out || !ws_scrub(conn, way, text, payload.n))
            payload.n = 0;
        return ws_put_control(way, HTTP_WS_PING, (struct str){text, payload.n});
    case HTTP_WS_PONG:
        return pass_pong(way, back);
    case HTTP_WS_CLOSE:
        return pass_close(conn, way, payload);
    case HTTP_WS_CONTINUES:
    case HTTP_WS_TEXT:
    case HTTP_WS_BINARY:
        break;
    }
    return false;
}

/* ---- messages ---- */

static bool hold(struct conn *conn, struct ws_way *way, struct str piece)
{
    static const char room[HTTP_WS_HEAD_BYTES];
    bool is_first = way->held.n == 0;
    struct err err;

    if (!ws_may_hold(conn, piece.n + (is_first ? sizeof room : 0)))
        return false;
    if (is_first) {
        way->began_ms = conn->hub->loop.now_ms;
        if (buf_add(&way->held, room, sizeof room, &err) < 0)
            return false;
    }
    return buf_add_str(&way->held, piece, &err) == 0;
}

static enum step end_held(struct conn *conn, struct ws_way *way)
{
    way->began_ms = 0;
    if (way->is_out)
        return ws_judge(conn);
    if (!ws_scrub(conn, way, way->held.p + HTTP_WS_HEAD_BYTES, way->held.n - HTTP_WS_HEAD_BYTES))
        return ws_fail(conn, HTTP_WS_FAILED, HTTP_WS_GOING_AWAY, "VAULT_UNAVAILABLE");
    ws_send_held(way);
    return STEP_AGAIN;
}

static bool pass_piece(struct ws_way *way, struct str piece)
{
    struct http_ws_frame frame = {.kind = way->has_begun ? HTTP_WS_CONTINUES : way->reader.message,
                                  .is_last = way->reader.ends};

    way->has_begun = !way->reader.ends;
    return put_frame(way, &frame, piece);
}

static enum step take_piece(struct conn *conn, struct ws_way *way, struct str piece)
{
    if (!way->holds)
        return pass_piece(way, piece) ? STEP_AGAIN : STEP_CLOSE;
    if (!hold(conn, way, piece))
        return ws_fail(conn, HTTP_WS_LATER, HTTP_WS_LATER, "EGRESS_BUSY");
    return way->reader.ends ? end_held(conn, way) : STEP_AGAIN;
}

/* ---- reading ---- */

static enum step refuse_frame(struct conn *conn, const struct ws_way *way)
{
    unsigned code = way->reader.code;
    bool is_large = code == HTTP_WS_TOO_LARGE;

    if (way->is_out)
        return ws_fail(conn, code, HTTP_WS_GOING_AWAY,
                       is_large ? "EGRESS_MESSAGE_TOO_LARGE" : "EGRESS_MESSAGE_FRAMING");
    return ws_fail(conn, is_large ? code : HTTP_WS_FAILED, code,
                   is_large ? net_reason_code(NET_REASON_RESPONSE_LARGE) : "EGRESS_ANSWER_FRAMING");
}

/* How much of what is there may be read: what is passed on needs room behind it, and a close of
 * ours must always fit as well. */
static size_t readable(const struct ws_way *way)
{
    size_t room = bytes_room(&way->to->out), n = way->from->in.n;

    if (room < 4 * WS_CONTROL_BYTES)
        return 0;
    room -= 2 * WS_CONTROL_BYTES;
    return way->holds || n < room ? n : room;
}

enum ws_move ws_move(struct conn *conn, struct ws_way *way, enum step *step)
{
    while (!way->has_closed) {
        struct str piece = {"", 0};
        size_t n, used = 0;
        enum http_ws_event event;

        if ((way->is_out && conn->ws->wanted) || !ws_put_on(conn, way))
            return WS_BLOCKED;
        if (way->from->in.n == 0)
            return WS_STARVED;
        n = readable(way);
        if (n == 0)
            return WS_BLOCKED;
        event =
            http_ws_next(&way->reader, way->from->in.block + way->from->in.at, n, &used, &piece);
        *step = STEP_AGAIN;
        switch (event) {
        case HTTP_WS_WAIT:
            bytes_take(&way->from->in, used);
            return n < way->from->in.n + used ? WS_BLOCKED : WS_STARVED;
        case HTTP_WS_REFUSED:
            *step = refuse_frame(conn, way);
            return WS_ENDS;
        case HTTP_WS_CONTROL:
            *step = pass_control(conn, way, piece) ? STEP_AGAIN : STEP_CLOSE;
            break;
        case HTTP_WS_PIECE:
            *step = take_piece(conn, way, piece);
            break;
        }
        if (*step != STEP_AGAIN || conn->ws->is_ending || conn->phase != PHASE_MESSAGES)
            return WS_ENDS;
        bytes_take(&way->from->in, used);
        ws_stir(conn);
    }
    /* Behind a close there is nothing. */
    bytes_take(&way->from->in, way->from->in.n);
    return WS_STARVED;
}
