/* SPDX-License-Identifier: Apache-2.0 */

/* Any bytes are a chunked body, the beginning of one, or refused; the payload, the end and the
 * fault are the same whether they come whole or one by one; and never more comes out than went in.
 */

#include "fuzz.h"

#include <stdlib.h>

#include "lib/base/memory.h"
#include "lib/http/http.h"

#define BODY_MAX (64 * KIB)

struct outcome {
    struct buf data;
    enum http_body_event event;
    enum http_fault fault;
    size_t taken;
};

static void read_chunked(struct str in, size_t step, struct outcome *out)
{
    AUTO_FREE struct http_head *head = xcalloc(1, sizeof(*head));
    struct http_body body;
    struct err err;

    head->framing = HTTP_CHUNKED;
    http_body_init(&body, head, BODY_MAX);
    for (size_t at = 0; at < in.n && out->event == HTTP_BODY_MORE; at += step) {
        struct str piece = {in.p + at, in.n - at < step ? in.n - at : step};
        struct str payload;

        while ((out->event = http_body_next(&body, &piece, &payload)) == HTTP_BODY_DATA)
            if (buf_add_str(&out->data, payload, &err) < 0)
                abort();
        out->taken = (size_t)(piece.p - in.p);
    }
    out->fault = body.fault;
    if ((out->event == HTTP_BODY_REFUSED) != (body.fault != HTTP_NO_FAULT) ||
        (http_body_close(&body) == 0) != (out->event == HTTP_BODY_END))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    struct str in = {(const char *)bytes, n};
    struct outcome whole = {.data = BUF(BODY_MAX)};
    struct outcome single = {.data = BUF(BODY_MAX)};

    read_chunked(in, n ? n : 1, &whole);
    read_chunked(in, 1, &single);
    if (whole.event != single.event || whole.fault != single.fault || whole.data.n > n ||
        !str_eq(buf_str(&whole.data), buf_str(&single.data)) ||
        (whole.event == HTTP_BODY_END && whole.taken != single.taken))
        abort();
    buf_done(&whole.data);
    buf_done(&single.data);
    return 0;
}
