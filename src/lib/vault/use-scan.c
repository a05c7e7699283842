/* SPDX-License-Identifier: Apache-2.0 */

/* Bytes go through two ways at once, each a row of small machines that undo an encoding and hand
 * on what they made of it: percent, percent, JSON on one way, JSON, percent, percent on the other.
 * What is no escape goes on as it is, so a plain placeholder is found on both: no byte that begins
 * a marker can be part of an escape. Base64 is looked for as the text it must be at each of the
 * three alignments. */

#include "lib/vault/use-parts.h"

#include <string.h>

static const char *const markers[VAULT_MARKERS] = {
    "${vault:",
    "openshell:resolve:env:",
    "-OPENSHELL-RESOLVE-ENV-",
    /* The first two in base64. */
    "JHt2YXVsdD",
    "R7dmF1bHQ6",
    "ke3ZhdWx0O",
    "b3BlbnNoZWxsOnJlc29sdmU6ZW52O",
    "9wZW5zaGVsbDpyZXNvbHZlOmVudj",
    "vcGVuc2hlbGw6cmVzb2x2ZTplbnY6",
};

static int hex_digit(unsigned char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The longest shorter beginning that what was matched also ends in. */
static size_t fall_back(const char *marker, size_t matched)
{
    size_t n = matched - 1;

    while (n && memcmp(marker, marker + matched - n, n) != 0)
        n--;
    return n;
}

static void match(struct vault_scan_way *way, unsigned char c)
{
    for (size_t i = 0; i < VAULT_MARKERS; i++) {
        size_t n = way->matched[i];

        while (n && (unsigned char)markers[i][n] != c)
            n = fall_back(markers[i], n);
        if ((unsigned char)markers[i][n] == c)
            n++;
        if (markers[i][n] == '\0') {
            way->hits++;
            n = 0;
        }
        way->matched[i] = (unsigned char)n;
        way->busy |= n != 0;
    }
}

/* The machines of a way, in order; the last hands on to match(). */
enum stage {
    PERCENT_OUTER,
    PERCENT_INNER,
    ESCAPE,
    MATCH,
};

static const enum stage orders[2][5] = {
    {PERCENT_OUTER, PERCENT_INNER, ESCAPE,        MATCH},
    {ESCAPE,        PERCENT_OUTER, PERCENT_INNER, MATCH},
};

static void pass(struct vault_scan_way *way, const enum stage *stage, unsigned char c);

/* held[0]: bytes of "%X" seen; held[1]: X. */
static void take_percent(struct vault_scan_way *way, const enum stage *stage, unsigned char c)
{
    unsigned char *held = way->percent[*stage == PERCENT_INNER];
    unsigned had = held[0];

    if (had == 1 && hex_digit(c) >= 0) {
        held[0] = 2;
        held[1] = c;
    } else if (had == 2 && hex_digit(c) >= 0) {
        held[0] = 0;
        pass(way, stage + 1, (unsigned char)(hex_digit(held[1]) * 16 + hex_digit(c)));
    } else {
        held[0] = c == '%';
        if (had)
            pass(way, stage + 1, '%');
        if (had == 2)
            pass(way, stage + 1, held[1]);
        if (c != '%')
            pass(way, stage + 1, c);
    }
    way->busy |= held[0] != 0;
}

/* held[0]: bytes of "\uXXX" seen; held[1…]: the digits. A character beyond one byte is none of a
 * marker's. */
static void take_escape(struct vault_scan_way *way, const enum stage *stage, unsigned char c)
{
    unsigned char *held = way->escape;
    unsigned had = held[0];

    if (had == 0 && c == '\\') {
        held[0] = 1;
    } else if (had == 1 && c == 'u') {
        held[0] = 2;
    } else if (had >= 2 && had < 5 && hex_digit(c) >= 0) {
        held[had - 1] = c;
        held[0]++;
    } else if (had == 5 && hex_digit(c) >= 0) {
        bool is_byte = held[1] == '0' && held[2] == '0';

        held[0] = 0;
        pass(way, stage + 1,
             is_byte ? (unsigned char)(hex_digit(held[3]) * 16 + hex_digit(c)) : '\0');
    } else {
        held[0] = had >= 2 && c == '\\';
        for (unsigned i = 2; i < had; i++)
            pass(way, stage + 1, held[i - 1]);
        if (!held[0])
            pass(way, stage + 1, c);
    }
    way->busy |= held[0] != 0;
}

static void pass(struct vault_scan_way *way, const enum stage *stage, unsigned char c)
{
    switch (*stage) {
    case PERCENT_OUTER:
    case PERCENT_INNER:
        take_percent(way, stage, c);
        break;
    case ESCAPE:
        take_escape(way, stage, c);
        break;
    case MATCH:
        match(way, c);
        break;
    }
}

/* What begins an escape or a marker; everything else is passed over while nothing has begun. */
static const bool begins[256] = {
    ['%'] = true, ['\\'] = true, ['$'] = true, ['o'] = true, ['-'] = true, ['J'] = true,
    ['R'] = true, ['k'] = true,  ['b'] = true, ['9'] = true, ['v'] = true,
};

static bool is_at_rest(const struct vault_scan_way *way)
{
    static const unsigned char none[VAULT_MARKERS];

    return !way->percent[0][0] && !way->percent[1][0] && !way->escape[0] &&
           memcmp(way->matched, none, sizeof none) == 0;
}

unsigned vault_scan_feed(struct vault_scan *scan, struct str bytes)
{
    for (size_t i = 0; i < bytes.n; i++) {
        unsigned char c = (unsigned char)bytes.p[i];

        for (size_t w = 0; w < COUNT(scan->ways); w++) {
            struct vault_scan_way *way = &scan->ways[w];

            if (!way->busy && !begins[c])
                continue;
            pass(way, orders[w], c);
            way->busy = !is_at_rest(way);
        }
    }
    return scan->ways[0].hits > scan->ways[1].hits ? scan->ways[0].hits : scan->ways[1].hits;
}

unsigned scan_count(struct str bytes)
{
    struct vault_scan scan = {0};

    return vault_scan_feed(&scan, bytes);
}
