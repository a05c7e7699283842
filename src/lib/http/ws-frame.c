/* SPDX-License-Identifier: Apache-2.0 */

/* Frames one by one (RFC 6455, 5.2). */

#include "lib/http/http-ws-frame.h"

#define FIN 0x80U
#define RESERVED 0x70U
#define OPCODE 0x0fU
#define MASKED 0x80U
#define LENGTH 0x7fU

/* ---- writing ---- */

size_t http_ws_head_write(const struct http_ws_frame *frame, unsigned char out[HTTP_WS_HEAD_BYTES])
{
    uint64_t n = frame->length;
    unsigned bytes = n < 126 ? 0 : n <= 0xffff ? 2 : 8;
    size_t at = 2 + bytes;

    out[0] = (unsigned char)((frame->is_last ? FIN : 0) | (unsigned)frame->kind);
    out[1] = (unsigned char)((frame->is_masked ? MASKED : 0) | (bytes == 0   ? n
                                                                : bytes == 2 ? 126U
                                                                             : 127U));
    for (unsigned i = 0; i < bytes; i++)
        out[2 + i] = (unsigned char)(n >> (8 * (bytes - 1 - i)));
    for (unsigned i = 0; frame->is_masked && i < 4; i++)
        out[at++] = frame->mask[i];
    return at;
}

void http_ws_mask(char *part, size_t n, const unsigned char mask[4], uint64_t at)
{
    for (size_t i = 0; i < n; i++)
        part[i] = (char)((unsigned char)part[i] ^ mask[(at + i) % 4]);
}

int http_ws_write(enum http_ws_kind kind, struct str payload, const unsigned char mask[4],
                  struct buf *out, struct err *err)
{
    struct http_ws_frame frame = {
        .kind = kind,
        .is_last = true,
        .is_masked = true,
        .mask = {mask[0], mask[1], mask[2], mask[3]},
        .length = payload.n
    };
    unsigned char head[HTTP_WS_HEAD_BYTES];
    size_t n = http_ws_head_write(&frame, head);

    if (kind >= HTTP_WS_CLOSE && payload.n > HTTP_WS_CONTROL_MAX)
        return err_set(err, ERR_INVALID, "a control frame holds at most 125 bytes");
    if (buf_add(out, head, n, err) < 0)
        return -1;
    if (buf_add_str(out, payload, err) < 0) {
        out->n -= n; /* half a frame would begin the next one */
        return -1;
    }
    http_ws_mask(out->p + out->n - payload.n, payload.n, mask, 0);
    return 0;
}

/* ---- reading ---- */

static bool is_kind(unsigned opcode)
{
    return opcode <= HTTP_WS_BINARY || (opcode >= HTTP_WS_CLOSE && opcode <= HTTP_WS_PONG);
}

/* Bytes of the length behind the first two. */
static unsigned length_bytes(unsigned char second)
{
    return (second & LENGTH) == 126 ? 2 : (second & LENGTH) == 127 ? 8 : 0;
}

static int check_start(const unsigned char *p, struct err *err)
{
    bool is_control = (p[0] & OPCODE) >= HTTP_WS_CLOSE;

    if (p[0] & RESERVED)
        return err_set(err, ERR_INVALID, "a frame uses an extension nobody asked for");
    if (!is_kind(p[0] & OPCODE) || (is_control && !(p[0] & FIN)))
        return err_set(err, ERR_INVALID, "a frame of a kind that is not spoken here");
    if (is_control && (p[1] & LENGTH) > HTTP_WS_CONTROL_MAX)
        return err_set(err, ERR_INVALID, "a control frame that is too long");
    return 0;
}

int http_ws_head_read(struct str in, struct http_ws_frame *out, struct err *err)
{
    const unsigned char *p = (const unsigned char *)in.p;
    uint64_t length = 0;
    unsigned more, at;

    if (in.n < 2)
        return 0;
    if (check_start(p, err) < 0)
        return -1;
    more = length_bytes(p[1]);
    at = 2 + more;
    if (in.n < at)
        return 0;
    for (unsigned i = 0; i < more; i++)
        length = length << 8 | p[2 + i];
    if ((more == 2 && length < 126) || (more == 8 && (length <= 0xffff || length > INT64_MAX)))
        return err_set(err, ERR_INVALID, "a frame's length is not in its shortest form");
    *out = (struct http_ws_frame){.kind = (enum http_ws_kind)(p[0] & OPCODE),
                                  .is_last = (p[0] & FIN) != 0,
                                  .is_masked = (p[1] & MASKED) != 0,
                                  .length = more ? length : p[1] & LENGTH};
    if (!out->is_masked)
        return (int)at;
    if (in.n < at + 4)
        return 0;
    for (unsigned i = 0; i < 4; i++)
        out->mask[i] = p[at + i];
    return (int)at + 4;
}

long http_ws_read(struct str in, size_t max, enum http_ws_kind *kind, struct str *payload,
                  struct err *err)
{
    struct http_ws_frame frame;
    int n = http_ws_head_read(in, &frame, err);

    if (in.n >= 2 && n >= 0 && ((unsigned char)in.p[1] & MASKED))
        return err_set(err, ERR_INVALID, "a frame of a server is masked");
    if (n <= 0)
        return n;
    if (!frame.is_last || frame.kind == HTTP_WS_CONTINUES)
        return err_set(err, ERR_INVALID, "a frame of a kind that is not spoken here");
    if (frame.length > max)
        return err_set(err, ERR_LIMIT, "a message of %llu bytes is more than is taken here",
                       (unsigned long long)frame.length);
    if (in.n - (size_t)n < frame.length)
        return 0;
    *kind = frame.kind;
    *payload = (struct str){in.p + n, (size_t)frame.length};
    return n + (long)frame.length;
}
