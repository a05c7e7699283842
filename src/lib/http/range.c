/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/http/http.h"

#include <stdio.h>
#include <string.h>

static const struct http_range whole = {HTTP_RANGE_WHOLE, 0, 0};
static const struct http_range unsatisfied = {HTTP_RANGE_UNSATISFIED, 0, 0};

static struct http_range last_bytes(uint64_t n, uint64_t size)
{
    if (n == 0 || size == 0)
        return unsatisfied;
    if (n > size)
        n = size;
    return (struct http_range){HTTP_RANGE_PART, size - n, n};
}

/* RFC 9110 14: what we do not understand is ignored, and the whole is a right answer to it. */
struct http_range http_range_of(struct str value, uint64_t size)
{
    struct str last = value;
    struct str first;
    uint64_t from = 0;
    uint64_t to = UINT64_MAX;

    if (value.n < 6 || !http_name_is((struct str){value.p, 6}, "bytes="))
        return whole;
    last = (struct str){value.p + 6, value.n - 6};
    if (memchr(last.p, ',', last.n) != NULL || memchr(last.p, '-', last.n) == NULL)
        return whole;
    first = str_cut(&last, '-');
    if (first.n == 0)
        return str_u64(last, &to) ? last_bytes(to, size) : whole;
    if (!str_u64(first, &from) || (last.n > 0 && !str_u64(last, &to)) || to < from)
        return whole;
    if (from >= size)
        return unsatisfied;
    if (to >= size)
        to = size - 1;
    return (struct http_range){HTTP_RANGE_PART, from, to - from + 1};
}

struct str http_content_range(const struct http_range *range, uint64_t size,
                              char out[HTTP_CONTENT_RANGE_BYTES])
{
    int n = 0;

    if (range->kind == HTTP_RANGE_PART)
        n = snprintf(
            out, HTTP_CONTENT_RANGE_BYTES, "bytes %llu-%llu/%llu", (unsigned long long)range->first,
            (unsigned long long)(range->first + range->length - 1), (unsigned long long)size);
    else
        n = snprintf(out, HTTP_CONTENT_RANGE_BYTES, "bytes */%llu", (unsigned long long)size);
    return (struct str){out, (size_t)n};
}
