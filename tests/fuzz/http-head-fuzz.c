/* SPDX-License-Identifier: Apache-2.0 */

/* Any bytes are a request, an answer, or refused; the same whether they come whole or one by one;
 * slices stay inside the input; and what is accepted means the same when it is written again. */

#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/memory.h"
#include "lib/http/http.h"

static bool is_inside(struct str s, struct str in)
{
    return s.n == 0 || (s.p >= in.p && s.p + s.n <= in.p + in.n) || str_is(s, "/");
}

static void check_slices(const struct http_head *head, struct str in)
{
    if (head->header_count > HTTP_HEADERS_MAX || !is_inside(head->target, in) ||
        !is_inside(head->path, in) || !is_inside(head->query, in) || !is_inside(head->host, in) ||
        !is_inside(head->authority, in) || !is_inside(head->reason, in))
        abort();
    for (size_t i = 0; i < head->header_count; i++)
        if (!is_inside(head->headers[i].name, in) || !is_inside(head->headers[i].value, in) ||
            !http_is_token(head->headers[i].name) || !http_is_value(head->headers[i].value))
            abort();
}

static int read_as(bool request, struct http_scan *scan, struct str in, struct http_head *out)
{
    return request ? http_request_read(scan, in, out) : http_answer_read(scan, in, HTTP_GET, out);
}

static int read_bytewise(bool request, struct str in, struct http_head *out, enum http_fault *fault)
{
    struct http_scan scan = {0};
    int n = 0;

    for (size_t have = 1; have <= in.n && n == 0; have++)
        n = read_as(request, &scan, (struct str){in.p, have}, out);
    *fault = scan.fault;
    return n;
}

/* A request we accept, sent on by us, is accepted again and framed the same. */
static void check_again(const struct http_head *head, struct http_head *again)
{
    AUTO_BUF struct buf out = BUF(4 * HTTP_HEAD_MAX);
    struct http_ask ask = {.method = head->method_text,
                           .target = head->target,
                           .host = head->host,
                           .framing = head->framing,
                           .length = head->length,
                           .close = !head->keep_alive};
    struct http_scan scan = {0};
    struct err err;

    if (head->host.n == 0)
        return;
    if (http_ask_write(&ask, &out, &err) < 0 ||
        http_request_read(&scan, buf_str(&out), again) != (int)out.n ||
        again->framing != head->framing || again->length != head->length ||
        !str_eq(again->path, head->path) || !str_eq(again->query, head->query))
        abort();
}

static void check_path(const struct http_head *head)
{
    AUTO_FREE char *memory = xmalloc(head->path.n + 1);
    struct str segments[HTTP_PATH_SEGMENTS_MAX];
    enum http_fault fault;
    int n = http_path_split(head->path, memory, segments, &fault);

    if ((n < 0) != (fault != HTTP_NO_FAULT))
        abort();
    for (int i = 0; i < n; i++)
        if (memchr(segments[i].p, '/', segments[i].n) != NULL || str_is(segments[i], "..") ||
            str_is(segments[i], "."))
            abort();
}

static void check(bool request, struct str in)
{
    AUTO_FREE struct http_head *whole = xcalloc(1, sizeof(*whole));
    AUTO_FREE struct http_head *other = xcalloc(1, sizeof(*other));
    struct http_scan scan = {0};
    enum http_fault fault;
    int n = read_as(request, &scan, in, whole);

    if (n < 0 && scan.fault == HTTP_NO_FAULT)
        abort();
    if (read_bytewise(request, in, other, &fault) != n || fault != scan.fault)
        abort();
    if (n <= 0)
        return;
    check_slices(whole, (struct str){in.p, (size_t)n});
    if (request) {
        check_path(whole);
        check_again(whole, other);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    struct str in = {(const char *)bytes, n};

    check(true, in);
    check(false, in);
    return 0;
}
