/* SPDX-License-Identifier: Apache-2.0 */

/* Any bytes from both peers of an HTTP/2 relay, in pieces: one byte says from whom, two how many.
 * Memory stays within the ceilings, every stream that began ends once, and nothing of a request
 * goes to the server that was not judged. */

#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "lib/h2/h2.h"

struct owner {
    unsigned judged;
    unsigned ended;
    struct h2_stream *waiting;
};

static void judge(void *data, struct h2_stream *stream, const struct http_head *head, bool has_body,
                  struct h2_word *out)
{
    static const enum h2_answer answers[] = {H2_PASS, H2_REFUSE, H2_HOLD, H2_WAIT};
    struct owner *owner = data;

    (void)has_body;
    owner->judged++;
    if (head->path.n == 0 || head->host.n == 0 || stream->data)
        abort();
    stream->data = owner;
    out->answer = answers[head->path.n % COUNT(answers)];
    out->hold_max = 1000;
    if (out->answer == H2_WAIT)
        owner->waiting = stream;
}

static void judge_body(void *data, struct h2_stream *stream, const struct http_head *head,
                       struct str body, struct h2_word *out)
{
    (void)data;
    (void)stream;
    (void)head;
    if (body.n > 1000)
        abort();
    out->answer = body.n % 2 ? H2_PASS : H2_REFUSE;
}

static void ended(void *data, struct h2_stream *stream, enum h2_ending ending, const char *fault)
{
    struct owner *owner = data;

    if (stream->data)
        owner->ended++;
    else if (ending == H2_DONE || fault[0] == '\0')
        abort(); /* not judged, so refused for a reason */
    if (owner->waiting == stream)
        owner->waiting = NULL;
}

static const struct h2_calls calls = {.judge = judge, .judge_body = judge_body, .ended = ended};

static void drain(struct h2_relay *relay)
{
    for (unsigned peer = 0; peer < 2; peer++) {
        struct str wire = h2_relay_wire(relay, peer);

        if (wire.n > H2_WIRE_MAX + 65536)
            abort();
        h2_relay_sent(relay, peer, wire.n);
    }
    if (h2_relay_streams(relay) > 2UL * H2_STREAMS_MAX)
        abort();
}

static void answer_waiting(struct h2_relay *relay, struct owner *owner)
{
    const struct h2_word pass = {.answer = H2_PASS};
    struct err err;

    if (owner->waiting && h2_relay_answer(relay, owner->waiting, &pass, &err) < 0)
        abort();
    owner->waiting = NULL;
}

static void feed(struct h2_relay *relay, enum h2_peer from, const uint8_t *bytes, size_t n)
{
    struct err err;
    long taken;

    while (n > 0 && (taken = h2_relay_feed(relay, from, bytes, n, &err)) >= 0) {
        bytes += taken;
        n -= (size_t)taken;
        drain(relay);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    struct owner owner = {0};
    const struct h2_config config = {&calls, &owner, "a.b", 443};
    struct h2_relay *relay = NULL;
    struct err err;

    if (h2_relay_new(&config, &relay, &err) < 0)
        abort();
    feed(relay, H2_CLIENT, (const uint8_t *)"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24);
    while (n >= 3) {
        size_t piece = (size_t)bytes[1] << 8 | bytes[2];
        enum h2_peer from = bytes[0] & 1 ? H2_SERVER : H2_CLIENT;

        if (bytes[0] & 2)
            answer_waiting(relay, &owner);
        bytes += 3;
        n -= 3;
        piece = piece < n ? piece : n;
        feed(relay, from, bytes, piece);
        bytes += piece;
        n -= piece;
    }
    h2_relay_free(relay);
    if (owner.judged != owner.ended)
        abort();
    return 0;
}
