/* SPDX-License-Identifier: Apache-2.0 */
/* Segments that name one thing (a number, a UUID, a long hexadecimal text) become a pattern of such
 * things, each as narrow as patterns can say it: never empty, and never another word. */
#include "lib/egress/suggest-path.h"

#include <string.h>

#define HEX_SEGMENT_MIN 16
#define UUID_BYTES 36
/* In pieces, because C has a meaning for two question marks before a dash. */
#define UUID_PATTERN                                                                               \
    "????????"                                                                                     \
    "-????"                                                                                        \
    "-????"                                                                                        \
    "-????"                                                                                        \
    "-????????????"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool is_number(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!is_digit(s.p[i]))
            return false;
    return s.n > 0;
}

static bool is_uuid(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (i == 8 || i == 13 || i == 18 || i == 23 ? s.p[i] != '-' : !is_hex(s.p[i]))
            return false;
    return s.n == UUID_BYTES;
}

/* With a digit in it: "deadbeefdeadbeef" could be a word, and words are kept. */
static bool is_long_hex(struct str s)
{
    size_t digits = 0;

    for (size_t i = 0; i < s.n; i++) {
        if (!is_hex(s.p[i]) && (s.p[i] != '-' || i == 0))
            return false;
        digits += is_digit(s.p[i]);
    }
    return s.n >= HEX_SEGMENT_MIN && digits > 0;
}

/* Egress has done it already in what it counts, and says "{}". */
static bool is_counted(struct str s)
{
    return str_is(s, "{}");
}

/* The first that fits; the last sample stands for what nobody has written down. */
static const struct {
    bool (*is_one)(struct str segment);
    const char *pattern;
    const char *sample; /* NULL: itself */
} shapes[] = {
    {is_number,   "[0-9]*",       NULL},
    {is_uuid,     UUID_PATTERN,   NULL},
    {is_long_hex, "[0-9A-Fa-f]*", NULL},
    {is_counted,  "[0-9A-Fa-f]*", "0" },
};

/* ---- texts that stand for themselves ---- */

static bool add(struct buf *out, const char *bytes, size_t n)
{
    struct err ignored; /* longer than a pattern may be is not suggested */

    return buf_add(out, bytes, n, &ignored) == 0;
}

bool suggest_literal(struct str text, struct buf *pattern)
{
    for (size_t i = 0; i < text.n; i++)
        if ((strchr("*?[\\", text.p[i]) && !add(pattern, "\\", 1)) || !add(pattern, text.p + i, 1))
            return false;
    return true;
}

/* Rules see escapes in upper case, however they were sent. */
static bool add_upper(struct str segment, struct buf *pattern)
{
    for (size_t i = 0; i < segment.n; i++) {
        char c = segment.p[i];
        bool escaped = (i >= 1 && segment.p[i - 1] == '%') || (i >= 2 && segment.p[i - 2] == '%');

        if (escaped && c >= 'a' && c <= 'f')
            c = (char)(c - 'a' + 'A');
        if (!suggest_literal((struct str){&c, 1}, pattern))
            return false;
    }
    return true;
}

static bool add_segment(struct str segment, struct buf *pattern, struct buf *sample)
{
    for (size_t i = 0; i < COUNT(shapes); i++)
        if (shapes[i].is_one(segment)) {
            struct str like = shapes[i].sample ? str_of(shapes[i].sample) : segment;

            return add(pattern, shapes[i].pattern, strlen(shapes[i].pattern)) &&
                   add(sample, like.p, like.n);
        }
    return add_upper(segment, pattern) && add(sample, segment.p, segment.n);
}

bool suggest_path(struct str path, struct buf *pattern, struct buf *sample)
{
    bool has_more = true;

    if (path.n == 0 || path.p[0] != '/' || path.n >= SUGGEST_PATH_MAX ||
        memchr(path.p, '?', path.n))
        return false;
    path = (struct str){path.p + 1, path.n - 1};
    while (has_more) {
        size_t before = path.n;
        struct str segment = str_cut(&path, '/');

        has_more = segment.n < before;
        if (!add(pattern, "/", 1) || !add(sample, "/", 1) || !add_segment(segment, pattern, sample))
            return false;
    }
    return true;
}
