/* SPDX-License-Identifier: Apache-2.0 */

/* Frames as a client writes and reads them (RFC 6455, 5.2). */

#include "lib/http/http-client.h"

#define FIN 0x80U
#define RESERVED 0x70U
#define OPCODE 0x0fU
#define MASKED 0x80U
#define CONTROL_MAX 125U
#define HEAD_MAX 14U

static size_t write_length(unsigned char *head, uint64_t n)
{
    unsigned bytes = n < 126 ? 0 : n <= 0xffff ? 2 : 8;

    head[1] = (unsigned char)(MASKED | (bytes == 0 ? n : bytes == 2 ? 126U : 127U));
    for (unsigned i = 0; i < bytes; i++)
        head[2 + i] = (unsigned char)(n >> (8 * (bytes - 1 - i)));
    return 2 + bytes;
}

int http_ws_write(enum http_ws_kind kind, struct str payload, const unsigned char mask[4],
                  struct buf *out, struct err *err)
{
    unsigned char head[HEAD_MAX] = {(unsigned char)(FIN | kind)};
    size_t n = write_length(head, payload.n);
    size_t at;

    for (unsigned i = 0; i < 4; i++)
        head[n++] = mask[i];
    if (kind >= HTTP_WS_CLOSE && payload.n > CONTROL_MAX)
        return err_set(err, ERR_INVALID, "a control frame holds at most 125 bytes");
    if (buf_add(out, head, n, err) < 0)
        return -1;
    at = out->n;
    if (buf_add_str(out, payload, err) < 0) {
        out->n -= n; /* half a frame would begin the next one */
        return -1;
    }
    for (size_t i = 0; i < payload.n; i++)
        out->p[at + i] = (char)((unsigned char)out->p[at + i] ^ mask[i % 4]);
    return 0;
}

static bool is_kind(unsigned opcode)
{
    return opcode == HTTP_WS_TEXT || opcode == HTTP_WS_BINARY || opcode == HTTP_WS_CLOSE ||
           opcode == HTTP_WS_PING || opcode == HTTP_WS_PONG;
}

/* Bytes of the length behind the first two. */
static unsigned length_bytes(unsigned char second)
{
    return second == 126 ? 2 : second == 127 ? 8 : 0;
}

static int check_start(const unsigned char *p, struct err *err)
{
    if (p[0] & RESERVED)
        return err_set(err, ERR_INVALID, "a frame uses an extension nobody asked for");
    if (!(p[0] & FIN) || !is_kind(p[0] & OPCODE))
        return err_set(err, ERR_INVALID, "a frame of a kind that is not spoken here");
    if (p[1] & MASKED)
        return err_set(err, ERR_INVALID, "a frame of a server is masked");
    if ((p[0] & OPCODE) >= HTTP_WS_CLOSE && p[1] > CONTROL_MAX)
        return err_set(err, ERR_INVALID, "a control frame that is too long");
    return 0;
}

long http_ws_read(struct str in, size_t max, enum http_ws_kind *kind, struct str *payload,
                  struct err *err)
{
    const unsigned char *p = (const unsigned char *)in.p;
    uint64_t length = 0;
    unsigned more;

    if (in.n < 2)
        return 0;
    if (check_start(p, err) < 0)
        return -1;
    more = length_bytes(p[1]);
    if (in.n < 2 + more)
        return 0;
    for (unsigned i = 0; i < more; i++)
        length = length << 8 | p[2 + i];
    if ((more == 2 && length < 126) || (more == 8 && (length <= 0xffff || length > INT64_MAX)))
        return err_set(err, ERR_INVALID, "a frame's length is not in its shortest form");
    length = more ? length : p[1];
    if (length > max)
        return err_set(err, ERR_LIMIT, "a message of %llu bytes is more than is taken here",
                       (unsigned long long)length);
    if (in.n - 2 - more < length)
        return 0;
    *kind = (enum http_ws_kind)(p[0] & OPCODE);
    *payload = (struct str){in.p + 2 + more, (size_t)length};
    return (long)(2 + more + length);
}
