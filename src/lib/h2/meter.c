/* SPDX-License-Identifier: Apache-2.0 */

/* Frames that move nothing forward are paid for. Credit comes back with time and with streams that
 * were asked and answered, so that a client which keeps a connection alive for days, or cancels now
 * and then, never runs out, and one which does nothing else does within thousands of frames.
 * nghttp2 has limits of its own below these (resets a second, acknowledgements waiting,
 * continuations). Frames are counted by their heads, on their way to nghttp2, which does not report
 * all of them. */

#include "lib/base/clock.h"
#include "lib/h2/h2-private.h"

#define CREDIT_MAX 2000
#define CREDIT_PER_SECOND 100

static const int costs[] = {
    [NGHTTP2_DATA] = 0,         [NGHTTP2_HEADERS] = 1,   [NGHTTP2_PRIORITY] = 2,
    [NGHTTP2_RST_STREAM] = 10,  [NGHTTP2_SETTINGS] = 10, [NGHTTP2_PUSH_PROMISE] = 10,
    [NGHTTP2_PING] = 4,         [NGHTTP2_GOAWAY] = 10,   [NGHTTP2_WINDOW_UPDATE] = 1,
    [NGHTTP2_CONTINUATION] = 4,
};
#define COST_EMPTY_DATA 4
#define COST_UNKNOWN 4

void meter_init(struct meter *meter, size_t preface)
{
    *meter = (struct meter){.credit = CREDIT_MAX, .seen_us = clock_us(), .skip = preface};
}

void meter_earn(struct meter *meter, int64_t credit)
{
    meter->credit += credit;
    if (meter->credit > CREDIT_MAX)
        meter->credit = CREDIT_MAX;
}

static int cost_of(const unsigned char head[FRAME_HEAD_BYTES], size_t length)
{
    unsigned kind = head[3];

    if (kind >= COUNT(costs))
        return COST_UNKNOWN;
    if (kind == NGHTTP2_DATA && length == 0 && (head[4] & NGHTTP2_FLAG_END_STREAM) == 0)
        return COST_EMPTY_DATA;
    return costs[kind];
}

static bool pay(struct meter *meter, int cost)
{
    meter->credit -= cost;
    if (meter->credit < 0) {
        uint64_t seconds = (clock_us() - meter->seen_us) / 1000000;

        meter->seen_us += seconds * 1000000;
        meter_earn(meter, seconds > CREDIT_MAX ? CREDIT_MAX : (int64_t)seconds * CREDIT_PER_SECOND);
    }
    return meter->credit >= 0;
}

bool meter_look(struct meter *meter, struct str bytes)
{
    size_t at = 0;

    while (at < bytes.n) {
        if (meter->skip > 0) {
            size_t n = bytes.n - at < meter->skip ? bytes.n - at : meter->skip;

            meter->skip -= n;
            at += n;
            continue;
        }
        meter->head[meter->have++] = (unsigned char)bytes.p[at++];
        if (meter->have < FRAME_HEAD_BYTES)
            continue;
        meter->have = 0;
        meter->skip = (size_t)meter->head[0] << 16 | (size_t)meter->head[1] << 8 | meter->head[2];
        if (!pay(meter, cost_of(meter->head, meter->skip)))
            return false;
    }
    return true;
}
