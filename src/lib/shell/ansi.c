/* SPDX-License-Identifier: Apache-2.0 */
/* Strings with escapes: $'...'. */
#include "lib/shell/reader-private.h"

#include <string.h>

static unsigned digit_value(char c)
{
    if (c >= '0' && c <= '9')
        return (unsigned)(c - '0');
    if (c >= 'a' && c <= 'f')
        return (unsigned)(c - 'a') + 10;
    if (c >= 'A' && c <= 'F')
        return (unsigned)(c - 'A') + 10;
    return 16;
}

static unsigned long read_digits(struct reader *r, unsigned base, unsigned most, unsigned *n)
{
    unsigned long value = 0;

    for (*n = 0; *n < most && r->pos < r->end && digit_value(r->text.p[r->pos]) < base; (*n)++)
        value = value * base + digit_value(r->text.p[r->pos++]);
    return value;
}

static void put_utf8(struct reader *r, unsigned long c)
{
    char out[4];
    size_t n = 1;

    if (c < 0x80) {
        out[0] = (char)c;
    } else if (c < 0x800) {
        out[0] = (char)(0xc0 | (c >> 6));
        out[1] = (char)(0x80 | (c & 0x3f));
        n = 2;
    } else if (c < 0x10000) {
        out[0] = (char)(0xe0 | (c >> 12));
        out[1] = (char)(0x80 | ((c >> 6) & 0x3f));
        out[2] = (char)(0x80 | (c & 0x3f));
        n = 3;
    } else {
        out[0] = (char)(0xf0 | ((c >> 18) & 7));
        out[1] = (char)(0x80 | ((c >> 12) & 0x3f));
        out[2] = (char)(0x80 | ((c >> 6) & 0x3f));
        out[3] = (char)(0x80 | (c & 0x3f));
        n = 4;
    }
    put(r, out, n, c < 0x80 && r->bash ? BYTE_QUOTED : BYTE_GUESS); /* the rest is the locale's */
}

/* Behind the backslash of a numeric escape; false: it is none. */
static bool read_numeric_escape(struct reader *r, char c)
{
    enum byte_class class = r->bash ? BYTE_QUOTED : BYTE_GUESS;
    unsigned long value;
    unsigned n;
    char byte;

    if (c == 'u' || c == 'U') {
        r->pos++;
        value = read_digits(r, 16, c == 'u' ? 4 : 8, &n);
        if (n == 0 || value == 0)
            note_unseen(r);
        else
            put_utf8(r, value);
        return true;
    }
    if (c == 'x')
        r->pos++;
    else if (digit_value(c) >= 8)
        return false;
    value = read_digits(r, c == 'x' ? 16 : 8, c == 'x' ? 2 : 3, &n);
    if (n == 0 || (value & 0xff) == 0) {
        note_unseen(r); /* ends the string in some shells */
        return true;
    }
    byte = (char)(value & 0xff);
    put(r, &byte, 1, class);
    return true;
}

static void read_ansi_escape(struct reader *r)
{
    static const char from[] = "abeEfnrtv\\'\"?";
    static const char to[] = "\a\b\033\033\f\n\r\t\v\\'\"?";
    enum byte_class class = r->bash ? BYTE_QUOTED : BYTE_GUESS;
    char c = r->text.p[r->pos];
    const char *at = c ? strchr(from, c) : NULL;

    if (at) {
        if (c == '\'' && !r->bash)
            note_unseen(r); /* in some shells it ends here */
        put(r, to + (at - from), 1, class);
        r->pos++;
        return;
    }
    if (read_numeric_escape(r, c))
        return;
    if (c == 'c')
        note_unseen(r);
    put(r, "\\", 1, class);
    put(r, &c, 1, class);
    r->pos++;
}

int read_ansi(struct reader *r, size_t start)
{
    enum byte_class class = r->bash ? BYTE_QUOTED : BYTE_GUESS;

    size_t mark;

    put(r, "", 1, BYTE_EMPTY);
    mark = r->look->scratch.n;
    for (;;) {
        size_t at = r->pos;

        while (at < r->end && r->text.p[at] != '\'' && r->text.p[at] != '\\')
            at++;
        put(r, r->text.p + r->pos, at - r->pos, class);
        r->pos = at;
        if (at >= r->end || (r->text.p[at] == '\\' && at + 1 == r->end))
            return fail_at(r, start, "a quote without its end");
        r->pos++;
        if (r->text.p[at] == '\'')
            break;
        read_ansi_escape(r);
    }
    if (!r->bash && r->look->scratch.n == mark)
        r->unsure = true; /* nothing, or a dollar */
    return 0;
}
