/* SPDX-License-Identifier: Apache-2.0 */

/* Bodies by length, in chunks, and until the end of the connection.
 *
 *     chunk     = 1*15HEXDIG [ ";" extension ] CRLF bytes CRLF
 *     last      = 1*"0" [ ";" extension ] CRLF *( trailer CRLF ) CRLF
 *
 * Extensions are skipped: visible bytes, blanks and tabs, within the ceiling of the line. Blanks
 * around the size are refused, they are where readers differ. Trailers must be well formed, must
 * not be headers of the framing or of the route, and go nowhere. */

#include "lib/http/http.h"

#include <string.h>

#include "lib/http/chars-private.h"

enum state {
    STATE_SIZE, /* first digit, or a further one */
    STATE_EXTENSION,
    STATE_SIZE_LF,
    STATE_DATA,
    STATE_DATA_CR,
    STATE_DATA_LF,
    STATE_TRAILER, /* first byte of a line */
    STATE_TRAILER_NAME,
    STATE_TRAILER_VALUE,
    STATE_TRAILER_LF,
    STATE_END_LF,
    STATE_END,
};

void http_body_init(struct http_body *body, const struct http_head *head, uint64_t max)
{
    *body = (struct http_body){.framing = head->framing, .left = head->length, .max = max};
    body->state = head->framing == HTTP_CHUNKED ? STATE_SIZE : STATE_DATA;
    if (head->framing == HTTP_NO_BODY || (head->framing == HTTP_LENGTH && head->length == 0))
        body->state = STATE_END;
    if (head->framing == HTTP_LENGTH && head->length > max)
        body->fault = HTTP_FAULT_BODY_TOO_LARGE;
}

static enum http_body_event refuse(struct http_body *body, enum http_fault fault)
{
    body->fault = fault;
    return HTTP_BODY_REFUSED;
}

/* A piece of at most `most` bytes; the total is bounded before it leaves. */
static enum http_body_event give(struct http_body *body, struct str *in, uint64_t most,
                                 struct str *out)
{
    size_t n = most < in->n ? (size_t)most : in->n;

    if (n > body->max - body->total)
        return refuse(body, HTTP_FAULT_BODY_TOO_LARGE);
    *out = (struct str){in->p, n};
    in->p += n;
    in->n -= n;
    body->total += n;
    return HTTP_BODY_DATA;
}

static enum http_body_event next_plain(struct http_body *body, struct str *in, struct str *out)
{
    enum http_body_event event;

    if (body->state == STATE_END)
        return HTTP_BODY_END;
    if (in->n == 0)
        return HTTP_BODY_MORE;
    if (body->framing == HTTP_UNTIL_CLOSE)
        return give(body, in, in->n, out);
    event = give(body, in, body->left, out);
    if (event != HTTP_BODY_DATA)
        return event;
    body->left -= out->n;
    if (body->left == 0)
        body->state = STATE_END;
    return event;
}

/* ---- chunks, byte by byte except for their content ---- */

static enum http_fault take_size(struct http_body *body, char c)
{
    int digit = http_hex_digit(c);

    if (digit >= 0) {
        if (++body->digits > HTTP_CHUNK_DIGITS_MAX)
            return HTTP_FAULT_CHUNK_SIZE;
        body->left = body->left << 4 | (uint64_t)digit;
        return HTTP_NO_FAULT;
    }
    if (body->digits == 0 || (c != ';' && c != '\r'))
        return HTTP_FAULT_CHUNK_SIZE;
    body->state = c == ';' ? STATE_EXTENSION : STATE_SIZE_LF;
    return HTTP_NO_FAULT;
}

static enum http_fault take_extension(struct http_body *body, char c)
{
    if (c == '\r')
        body->state = STATE_SIZE_LF;
    else if ((http_chars[(unsigned char)c] & HTTP_C_VALUE) == 0 || (unsigned char)c >= 0x80)
        return HTTP_FAULT_CHUNK_SIZE;
    return HTTP_NO_FAULT;
}

static enum http_fault end_size(struct http_body *body, char c)
{
    if (c != '\n')
        return HTTP_FAULT_CHUNK_SIZE;
    if (body->left > body->max - body->total)
        return HTTP_FAULT_BODY_TOO_LARGE;
    body->state = body->left > 0 ? STATE_DATA : STATE_TRAILER;
    body->line = 0;
    body->digits = 0;
    return HTTP_NO_FAULT;
}

/* Headers that decided something before the body came cannot be said again behind it. */
bool http_is_trailer(struct str name)
{
    static const char *const forbidden[] = {"content-length",
                                            "transfer-encoding",
                                            "host",
                                            "connection",
                                            "trailer",
                                            "te",
                                            "upgrade",
                                            "expect",
                                            "content-encoding",
                                            "content-type",
                                            "content-range",
                                            "authorization",
                                            "cache-control"};

    for (size_t i = 0; i < COUNT(forbidden); i++)
        if (http_name_is(name, forbidden[i]))
            return false;
    return true;
}

static enum http_fault start_trailer(struct http_body *body, char c)
{
    if (c == '\r') {
        body->state = STATE_END_LF;
        return HTTP_NO_FAULT;
    }
    if (++body->trailer_count > HTTP_TRAILER_COUNT_MAX)
        return HTTP_FAULT_TRAILERS_TOO_LARGE;
    if ((http_chars[(unsigned char)c] & HTTP_C_TOKEN) == 0)
        return HTTP_FAULT_TRAILER;
    body->name[0] = c;
    body->name_length = 1;
    body->state = STATE_TRAILER_NAME;
    return HTTP_NO_FAULT;
}

static enum http_fault take_trailer_name(struct http_body *body, char c)
{
    if (c == ':') {
        struct str name = {body->name, body->name_length};

        body->state = STATE_TRAILER_VALUE;
        return http_is_trailer(name) ? HTTP_NO_FAULT : HTTP_FAULT_TRAILER;
    }
    if ((http_chars[(unsigned char)c] & HTTP_C_TOKEN) == 0)
        return HTTP_FAULT_TRAILER;
    /* Longer than any forbidden one: it only must not look like one of them. */
    if (body->name_length < sizeof(body->name))
        body->name[body->name_length++] = c;
    return HTTP_NO_FAULT;
}

static enum http_fault take_trailer_value(struct http_body *body, char c)
{
    if (c == '\r')
        body->state = STATE_TRAILER_LF;
    else if ((http_chars[(unsigned char)c] & HTTP_C_VALUE) == 0)
        return HTTP_FAULT_TRAILER;
    return HTTP_NO_FAULT;
}

static enum http_fault take_lf(struct http_body *body, char c, enum state next,
                               enum http_fault otherwise)
{
    if (c != '\n')
        return otherwise;
    body->state = (unsigned char)next;
    return HTTP_NO_FAULT;
}

static enum http_fault take_byte(struct http_body *body, char c)
{
    switch ((enum state)body->state) {
    case STATE_SIZE:
        return take_size(body, c);
    case STATE_EXTENSION:
        return take_extension(body, c);
    case STATE_SIZE_LF:
        return end_size(body, c);
    case STATE_DATA_CR:
        body->state = STATE_DATA_LF;
        return c == '\r' ? HTTP_NO_FAULT : HTTP_FAULT_CHUNK_END;
    case STATE_DATA_LF:
        return take_lf(body, c, STATE_SIZE, HTTP_FAULT_CHUNK_END);
    case STATE_TRAILER:
        return start_trailer(body, c);
    case STATE_TRAILER_NAME:
        return take_trailer_name(body, c);
    case STATE_TRAILER_VALUE:
        return take_trailer_value(body, c);
    case STATE_TRAILER_LF:
        return take_lf(body, c, STATE_TRAILER, HTTP_FAULT_TRAILER);
    case STATE_END_LF:
        return take_lf(body, c, STATE_END, HTTP_FAULT_TRAILER);
    case STATE_DATA:
    case STATE_END:
        break;
    }
    return HTTP_NO_FAULT;
}

/* The ceilings of lines, before the byte is looked at. */
static enum http_fault count_byte(struct http_body *body)
{
    body->line++;
    switch ((enum state)body->state) {
    case STATE_SIZE:
    case STATE_EXTENSION:
    case STATE_SIZE_LF:
        return body->line > HTTP_CHUNK_LINE_MAX ? HTTP_FAULT_CHUNK_LINE_TOO_LONG : HTTP_NO_FAULT;
    case STATE_TRAILER:
    case STATE_TRAILER_NAME:
    case STATE_TRAILER_VALUE:
    case STATE_TRAILER_LF:
    case STATE_END_LF:
        return body->line > HTTP_TRAILERS_MAX ? HTTP_FAULT_TRAILERS_TOO_LARGE : HTTP_NO_FAULT;
    case STATE_DATA:
    case STATE_DATA_CR:
    case STATE_DATA_LF:
    case STATE_END:
        break;
    }
    body->line = 0;
    return HTTP_NO_FAULT;
}

static enum http_body_event next_chunked(struct http_body *body, struct str *in, struct str *out)
{
    while (body->state != STATE_END && in->n > 0) {
        enum http_fault fault;

        if (body->state == STATE_DATA) {
            enum http_body_event event = give(body, in, body->left, out);

            body->left -= event == HTTP_BODY_DATA ? out->n : 0;
            if (body->left == 0)
                body->state = STATE_DATA_CR;
            return event;
        }
        fault = count_byte(body);
        if (fault == HTTP_NO_FAULT)
            fault = take_byte(body, *in->p);
        if (fault != HTTP_NO_FAULT)
            return refuse(body, fault);
        in->p++;
        in->n--;
    }
    return body->state == STATE_END ? HTTP_BODY_END : HTTP_BODY_MORE;
}

enum http_body_event http_body_next(struct http_body *body, struct str *in, struct str *out)
{
    if (body->fault != HTTP_NO_FAULT)
        return HTTP_BODY_REFUSED;
    if (body->framing == HTTP_CHUNKED)
        return next_chunked(body, in, out);
    return next_plain(body, in, out);
}

int http_body_close(struct http_body *body)
{
    if (body->fault != HTTP_NO_FAULT)
        return -1;
    if (body->state == STATE_END || body->framing == HTTP_UNTIL_CLOSE)
        return 0;
    body->fault = HTTP_FAULT_BODY_ENDED_EARLY;
    return -1;
}
