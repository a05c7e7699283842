/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/http/ws-private.h"

#include "lib/http/http-limits.h"

#define OPCODE 0x0fU
#define CONTROL 0x08U
#define FIN 0x80U
#define MASKED 0x80U
#define MASK_BYTES 4U

/* What the first two bytes say about the rest of the head. */
static unsigned read_start(struct ws_guard *guard)
{
    unsigned length = guard->head[1] & 0x7fU;
    bool is_control = (guard->head[0] & CONTROL) != 0;

    if ((guard->head[1] & MASKED) == 0 ||
        (is_control && (length > 125 || (guard->head[0] & FIN) == 0)))
        return 1002;
    if (!is_control)
        guard->fragments = (guard->head[0] & OPCODE) == 0 ? guard->fragments + 1 : 1;
    if (guard->fragments > HTTP_WS_FRAGMENTS_MAX)
        return 1009;
    guard->wanted = 2 + MASK_BYTES + (length == 126 ? 2U : length == 127 ? 8U : 0U);
    guard->length = length < 126 ? length : 0;
    return 0;
}

/* Lengths are written in the shortest form, and the largest has no sign. */
static bool is_length_right(const struct ws_guard *guard)
{
    unsigned form = guard->head[1] & 0x7fU;

    return form < 126 || (form == 126 && guard->length > 125) ||
           (guard->length > 65535 && guard->length <= INT64_MAX);
}

static unsigned take_head(struct ws_guard *guard, unsigned char byte)
{

    if (guard->have < 2) {
        guard->head[guard->have++] = byte;
        return guard->have == 2 ? read_start(guard) : 0;
    }
    if (guard->have < guard->wanted - MASK_BYTES)
        guard->length = guard->length << 8 | byte;
    guard->have++;
    if (guard->have == guard->wanted - MASK_BYTES && !is_length_right(guard))
        return 1002;
    if (guard->have == guard->wanted) {
        guard->left = guard->length;
        guard->have = guard->wanted = 0;
    }
    return 0;
}

size_t ws_guard_take(struct ws_guard *guard, struct str bytes, unsigned *code)
{
    size_t i = 0;

    *code = 0;
    while (i < bytes.n) {
        if (guard->left > 0) {
            size_t n = bytes.n - i < guard->left ? bytes.n - i : (size_t)guard->left;

            guard->left -= n;
            i += n;
            continue;
        }
        *code = take_head(guard, (unsigned char)bytes.p[i]);
        if (*code != 0)
            break;
        i++;
    }
    return i;
}
