/* SPDX-License-Identifier: Apache-2.0 */

/* What callers say of their trace, collectors of what they took, and operators of headers: one
 * input, read as each of them. What was taken as a trace is written as it came; what was taken as a
 * header is one line. */

#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/limits.h"
#include "lib/base/memory.h"
#include "lib/otlp/otlp.h"

static void check_trace(struct str text)
{
    struct trace_context trace, again;
    char written[TRACEPARENT_BYTES];

    if (!traceparent_parse(text, &trace))
        return;
    traceparent_write(&trace, written);
    if (memcmp(written + 2, text.p + 2, 51) != 0 || /* all but version and flags */
        !traceparent_parse(str_of(written), &again) || again.sampled != trace.sampled)
        abort();
}

static int check_line(void *context, const char *line, struct err *err)
{
    (void)context, (void)err;
    if (!strchr(line, ':') || strpbrk(line, "\r\n"))
        abort();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    AUTO_FREE char *copy = xmalloc(size + 1);
    struct err err;

    memcpy(copy, data, size);
    copy[size] = '\0';
    check_trace(text);
    if (otlp_rejected(text) > 3 * OTLP_BATCH_MAX)
        abort();
    (void)!otlp_headers_each(copy, check_line, NULL, &err);
    (void)!otlp_url_check(copy, false, &err);
    return 0;
}
