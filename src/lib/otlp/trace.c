/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/otlp/otlp.h"

#include "lib/base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define VERSION_AT 0
#define TRACE_AT 3
#define SPAN_AT 36
#define FLAGS_AT 53
#define SAMPLED 1U

static bool is_hex(struct str text)
{
    for (size_t i = 0; i < text.n; i++)
        if (!((text.p[i] >= '0' && text.p[i] <= '9') || (text.p[i] >= 'a' && text.p[i] <= 'f')))
            return false;
    return true;
}

static bool is_zero(struct str text)
{
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] != '0')
            return false;
    return true;
}

bool traceparent_parse(struct str text, struct trace_context *out)
{
    const size_t length = TRACEPARENT_BYTES - 1;
    struct str version = {text.p + VERSION_AT, 2}, trace = {text.p + TRACE_AT, 32};
    struct str span = {text.p + SPAN_AT, 16}, flags = {text.p + FLAGS_AT, 2};
    unsigned char bits;

    if (text.n < length || text.p[2] != '-' || text.p[35] != '-' || text.p[52] != '-' ||
        !is_hex(version) || !is_hex(trace) || !is_hex(span) || !hex_decode(flags, &bits, 1))
        return false;
    if (str_is(version, "ff") || is_zero(trace) || is_zero(span))
        return false;
    if (text.n > length && (str_is(version, "00") || text.p[length] != '-'))
        return false;
    *out = (struct trace_context){.sampled = bits & SAMPLED};
    memcpy(out->trace_id, trace.p, trace.n);
    memcpy(out->span_id, span.p, span.n);
    return true;
}

void traceparent_write(const struct trace_context *trace, char out[TRACEPARENT_BYTES])
{
    (void)snprintf(out, TRACEPARENT_BYTES, "00-%s-%s-%02x", trace->trace_id, trace->span_id,
                   trace->sampled ? SAMPLED : 0U);
}

/* Never zero, which is no id. */
static void random_hex(char *out, size_t n)
{
    unsigned char bytes[16];

    if (getrandom(bytes, n, 0) != (ssize_t)n)
        abort(); /* as for every other id: without randomness there are none */
    bytes[0] |= 1;
    hex_encode(bytes, n, out);
}

void trace_id_new(char out[TRACE_ID_TEXT_BYTES])
{
    random_hex(out, 16);
}

void span_id_new(char out[SPAN_ID_TEXT_BYTES])
{
    random_hex(out, 8);
}
