/* SPDX-License-Identifier: Apache-2.0 */

/* All that one side of a WebSocket says: whole or byte by byte, the same messages come out and the
 * same code ends it, and what was let through is what the rules of RFC 6455 allow. The first byte
 * says whose frames they are. */

#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/limits.h"
#include "lib/base/memory.h"
#include "lib/http/http-ws-frame.h"

#define MESSAGE_MAX (64 * KIB)

struct result {
    struct buf said;
    unsigned code;
    bool has_closed;
};

static void note(struct result *result, const void *bytes, size_t n)
{
    struct err err;

    if (buf_add(&result->said, bytes, n, &err) < 0)
        abort();
}

static void check(const struct http_ws_reader *reader, enum http_ws_event event, size_t n)
{
    if (event == HTTP_WS_CONTROL && n > HTTP_WS_CONTROL_MAX)
        abort();
    if (event == HTTP_WS_PIECE &&
        (reader->message_n > MESSAGE_MAX || reader->fragments > 16 ||
         (reader->message != HTTP_WS_TEXT && reader->message != HTTP_WS_BINARY)))
        abort();
    if (event == HTTP_WS_REFUSED && reader->code != 1002 && reader->code != 1007 &&
        reader->code != 1009)
        abort();
}

/* Whether there may be more in what is there. */
static bool take(struct http_ws_reader *reader, char *bytes, size_t n, size_t *used,
                 struct result *result)
{
    struct str piece = {"", 0};
    enum http_ws_event event = http_ws_next(reader, bytes, n, used, &piece);

    if (*used > n)
        abort();
    check(reader, event, piece.n);
    if (event == HTTP_WS_REFUSED)
        result->code = reader->code;
    if (event == HTTP_WS_WAIT || event == HTTP_WS_REFUSED)
        return false;
    note(result, piece.p, piece.n);
    if (event == HTTP_WS_CONTROL || reader->ends)
        note(result, "|", 1);
    result->has_closed = event == HTTP_WS_CONTROL && reader->frame.kind == HTTP_WS_CLOSE;
    return !result->has_closed;
}

static void read_all(const uint8_t *in, size_t n, size_t step, struct result *result)
{
    struct http_ws_reader reader = {.is_client = (in[0] & 1) != 0,
                                    .text_max = MESSAGE_MAX,
                                    .binary_max = MESSAGE_MAX,
                                    .fragments_max = 16};
    AUTO_FREE char *bytes = xcalloc(1, n + 1);
    size_t at = 1, have = 1;

    memcpy(bytes, in, n);
    result->said = BUF(2 * n + 16);
    while (have < n && !result->code && !result->has_closed) {
        size_t used = 0;

        have = n - have < step ? n : have + step;
        while (take(&reader, bytes + at, have - at, &used, result))
            at += used;
        at += used;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    struct result whole = {0}, single = {0};

    if (n < 2 || n > HTTP_WS_PIECE_MIN) /* longer frames come in pieces, as they are cut */
        return 0;
    read_all(bytes, n, n, &whole);
    read_all(bytes, n, 1, &single);
    /* Of a message that is refused later, one may have seen more than the other. */
    if (whole.code != single.code || whole.has_closed != single.has_closed ||
        (!whole.code && !str_eq(buf_str(&whole.said), buf_str(&single.said))))
        abort();
    buf_done(&whole.said);
    buf_done(&single.said);
    return 0;
}
