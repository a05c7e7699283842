/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/str.h"

#include <string.h>

bool str_ends(struct str s, const char *suffix)
{
    size_t n = strlen(suffix);

    return s.n >= n && memcmp(s.p + s.n - n, suffix, n) == 0;
}

int str_cmp(struct str a, struct str b)
{
    size_t n = a.n < b.n ? a.n : b.n;
    int order = n ? memcmp(a.p, b.p, n) : 0;

    if (order != 0)
        return order;
    return (a.n > b.n) - (a.n < b.n);
}

struct str str_cut(struct str *rest, char separator)
{
    const char *at = rest->n ? memchr(rest->p, separator, rest->n) : NULL;
    struct str head = *rest;

    if (!at) {
        *rest = (struct str){rest->p + rest->n, 0};
        return head;
    }
    head.n = (size_t)(at - rest->p);
    *rest = (struct str){at + 1, rest->n - head.n - 1};
    return head;
}

struct str str_trim(struct str s)
{
    while (s.n && (s.p[0] == ' ' || s.p[0] == '\t'))
        s = (struct str){s.p + 1, s.n - 1};
    while (s.n && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
        s.n--;
    return s;
}

/* Length of the well-formed sequence at the start of s (RFC 3629: no surrogates, nothing above
 * U+10FFFF, no overlong form), or 0. */
static size_t utf8_sequence(const unsigned char *p, size_t n)
{
    unsigned char low = 0x80, high = 0xBF;
    size_t length;

    if (p[0] < 0x80)
        return 1;
    if (p[0] >= 0xC2 && p[0] <= 0xDF)
        length = 2;
    else if (p[0] >= 0xE0 && p[0] <= 0xEF)
        length = 3;
    else if (p[0] >= 0xF0 && p[0] <= 0xF4)
        length = 4;
    else
        return 0;
    if (n < length)
        return 0;
    if (p[0] == 0xE0)
        low = 0xA0;
    else if (p[0] == 0xED)
        high = 0x9F;
    else if (p[0] == 0xF0)
        low = 0x90;
    else if (p[0] == 0xF4)
        high = 0x8F;
    if (p[1] < low || p[1] > high)
        return 0;
    for (size_t i = 2; i < length; i++)
        if ((p[i] & 0xC0) != 0x80)
            return 0;
    return length;
}

/* Most text is ASCII: whole words of it need no second look. */
static size_t ascii_words(const unsigned char *p, size_t n)
{
    const uint64_t tops = UINT64_C(0x8080808080808080);
    uint64_t x[4];
    size_t i = 0;

    while (n - i >= sizeof x) {
        memcpy(x, p + i, sizeof x);
        if ((x[0] | x[1] | x[2] | x[3]) & tops)
            break;
        i += sizeof x;
    }
    return i;
}

size_t str_utf8_prefix(struct str s)
{
    const unsigned char *p = (const unsigned char *)s.p;
    size_t i = ascii_words(p, s.n);

    while (i < s.n) {
        size_t length = utf8_sequence(p + i, s.n - i);

        if (length == 1 && s.n - i >= 32) {
            size_t words = ascii_words(p + i, s.n - i);

            length = words ? words : 1;
        }
        if (length == 0)
            break;
        i += length;
    }
    return i;
}

size_t str_utf8_length(struct str s)
{
    return s.n ? utf8_sequence((const unsigned char *)s.p, s.n) : 0;
}

bool str_is_utf8(struct str s)
{
    return str_utf8_prefix(s) == s.n;
}

bool str_u64(struct str s, uint64_t *out)
{
    uint64_t value = 0;

    if (s.n == 0)
        return false;
    for (size_t i = 0; i < s.n; i++) {
        uint64_t digit = (uint64_t)(unsigned char)s.p[i] - '0';

        if (digit > 9 || __builtin_mul_overflow(value, 10U, &value) ||
            __builtin_add_overflow(value, digit, &value))
            return false;
    }
    *out = value;
    return true;
}
