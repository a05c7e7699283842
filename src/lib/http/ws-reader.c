/* SPDX-License-Identifier: Apache-2.0 */

/* Everything one side of a WebSocket says, frame by frame and piece by piece: masks, the order of
 * fragments, UTF-8 across them, the form of a close, and ceilings. */

#include "lib/http/http-ws-frame.h"

static enum http_ws_event refuse(struct http_ws_reader *reader, unsigned code)
{
    reader->code = code;
    return HTTP_WS_REFUSED;
}

static bool is_control(const struct http_ws_reader *reader)
{
    return reader->frame.kind >= HTTP_WS_CLOSE;
}

/* ---- UTF-8 (RFC 3629), whose characters may be cut anywhere ---- */

static bool begin_character(struct http_ws_reader *reader, unsigned char byte)
{
    reader->utf8_low = byte == 0xe0 ? 0xa0 : byte == 0xf0 ? 0x90 : 0x80;
    reader->utf8_high = byte == 0xed ? 0x9f : byte == 0xf4 ? 0x8f : 0xbf;
    reader->utf8_need = byte < 0x80 ? 0 : byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3;
    return byte < 0x80 || (byte >= 0xc2 && byte <= 0xf4);
}

static bool is_utf8(struct http_ws_reader *reader, struct str piece)
{
    for (size_t i = 0; i < piece.n; i++) {
        unsigned char byte = (unsigned char)piece.p[i];

        if (reader->utf8_need == 0) {
            if (!begin_character(reader, byte))
                return false;
            continue;
        }
        if (byte < reader->utf8_low || byte > reader->utf8_high)
            return false;
        reader->utf8_need--;
        reader->utf8_low = 0x80;
        reader->utf8_high = 0xbf;
    }
    return !reader->ends || reader->utf8_need == 0;
}

/* ---- heads ---- */

/* Where a data frame stands in its message. 0, or the code. */
static unsigned enter_message(struct http_ws_reader *reader)
{
    const struct http_ws_frame *frame = &reader->frame;
    bool continues = frame->kind == HTTP_WS_CONTINUES;
    uint64_t most;

    if (continues != (reader->message != HTTP_WS_CONTINUES))
        return HTTP_WS_PROTOCOL;
    if (!continues) {
        reader->message = frame->kind;
        reader->message_n = 0;
        reader->fragments = 0;
        reader->utf8_need = 0;
    }
    most = reader->message == HTTP_WS_TEXT ? reader->text_max : reader->binary_max;
    if (++reader->fragments > reader->fragments_max || frame->length > most ||
        reader->message_n > most - frame->length)
        return HTTP_WS_TOO_LARGE;
    reader->message_n += frame->length;
    return 0;
}

/* Bytes of the head; 0: not there yet, -1: refused. */
static int enter_frame(struct http_ws_reader *reader, struct str in)
{
    struct err err;
    int n;

    if (in.n >= 2 && (((unsigned char)in.p[1] & 0x80U) != 0) != reader->is_client) {
        reader->code = HTTP_WS_PROTOCOL;
        return -1;
    }
    n = http_ws_head_read(in, &reader->frame, &err);
    if (n == 0)
        return 0;
    reader->code = n < 0 ? HTTP_WS_PROTOCOL : 0;
    if (n > 0 && !is_control(reader))
        reader->code = enter_message(reader);
    reader->left = reader->frame.length;
    reader->in_frame = true;
    return reader->code ? -1 : n;
}

/* ---- payloads ---- */

unsigned http_ws_close_code(struct str payload, struct str *reason)
{
    const unsigned char *p = (const unsigned char *)payload.p;

    *reason = payload.n > 2 ? (struct str){payload.p + 2, payload.n - 2} : (struct str){"", 0};
    return payload.n < 2 ? HTTP_WS_NO_CODE : (unsigned)p[0] << 8 | p[1];
}

/* RFC 6455 7.4, and what was registered since. */
static bool is_code(unsigned code)
{
    return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) ||
           (code >= 3000 && code <= 4999);
}

static enum http_ws_event take_control(struct http_ws_reader *reader, struct str payload)
{
    struct str reason;
    unsigned code;

    reader->in_frame = false;
    if (reader->frame.kind != HTTP_WS_CLOSE)
        return HTTP_WS_CONTROL;
    code = http_ws_close_code(payload, &reason);
    if (payload.n == 1 || (payload.n && !is_code(code)))
        return refuse(reader, HTTP_WS_PROTOCOL);
    return str_is_utf8(reason) ? HTTP_WS_CONTROL : refuse(reader, HTTP_WS_NOT_UTF8);
}

static enum http_ws_event take_piece(struct http_ws_reader *reader, struct str piece)
{
    bool is_text = reader->message == HTTP_WS_TEXT;

    reader->left -= piece.n;
    reader->in_frame = reader->left > 0;
    reader->ends = !reader->in_frame && reader->frame.is_last;
    if (is_text && !is_utf8(reader, piece))
        return refuse(reader, HTTP_WS_NOT_UTF8);
    return HTTP_WS_PIECE;
}

enum http_ws_event http_ws_next(struct http_ws_reader *reader, char *bytes, size_t n, size_t *used,
                                struct str *piece)
{
    uint64_t at;
    size_t take;
    int head;

    *used = 0;
    if (reader->ends) { /* the message before */
        reader->ends = false;
        reader->message = HTTP_WS_CONTINUES;
    }
    if (!reader->in_frame) {
        head = enter_frame(reader, (struct str){bytes, n});
        if (head <= 0)
            return head < 0 ? HTTP_WS_REFUSED : HTTP_WS_WAIT;
        *used = (size_t)head;
        bytes += head;
        n -= (size_t)head;
    }
    take = reader->left < n ? (size_t)reader->left : n;
    if (take < reader->left && (is_control(reader) || take < HTTP_WS_PIECE_MIN))
        return HTTP_WS_WAIT;
    at = reader->frame.length - reader->left;
    if (reader->is_client)
        http_ws_mask(bytes, take, reader->frame.mask, at);
    *piece = (struct str){bytes, take};
    *used += take;
    return is_control(reader) ? take_control(reader, *piece) : take_piece(reader, *piece);
}
