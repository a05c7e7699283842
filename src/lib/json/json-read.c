/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/json/json.h"

#include "lib/base/limits.h"
#include "lib/json/json-private.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The text is copied into the arena once; strings are decoded inside that copy (an escape is
 * never shorter than what it stands for) and numbers point into it, so a value costs one node
 * and nothing else. The copy ends in a NUL, which ends every loop below that looks for more of
 * something; a NUL before the end is refused where it stands. */
struct reader {
    struct arena *mem;
    char *p;
    char *end;
    const char *line_start;
    unsigned line;
    unsigned depth;
    size_t nodes;
    struct mark *where;
    struct err *err;
};

static int read_value(struct reader *r, struct json **out);

static struct mark mark_of(const struct reader *r, const char *at)
{
    return (struct mark){r->line, (unsigned)(at - r->line_start) + 1};
}

static PRINTF(4, 5) int refuse(struct reader *r, const char *at, enum err_code code,
                               const char *fmt, ...)
{
    va_list args;
    char text[160];

    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    *r->where = mark_of(r, at);
    return err_set(r->err, code, "%s", text);
}

/* "expected a value, found ...": the usual way for a text to be wrong. */
static int refuse_found(struct reader *r, const char *expected)
{
    unsigned char c = (unsigned char)*r->p;

    if (r->p == r->end)
        return refuse(r, r->p, ERR_INVALID, "expected %s, but the text ends here", expected);
    if (c > 0x20 && c < 0x7F)
        return refuse(r, r->p, ERR_INVALID, "expected %s, found '%c'", expected, c);
    return refuse(r, r->p, ERR_INVALID, "expected %s, found the byte 0x%02x", expected, c);
}

static void skip_blanks(struct reader *r)
{
    for (;; r->p++) {
        if (*r->p == '\n') {
            r->line++;
            r->line_start = r->p + 1;
        } else if (*r->p != ' ' && *r->p != '\t' && *r->p != '\r') {
            return;
        }
    }
}

static int new_node(struct reader *r, enum json_kind kind, struct json **out)
{
    if (++r->nodes > JSON_NODES_MAX)
        return refuse(r, r->p, ERR_LIMIT, "more than %d values", JSON_NODES_MAX);
    *out = json_node(r->mem, kind);
    (*out)->mark = mark_of(r, r->p);
    return 0;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int skip_digits(struct reader *r)
{
    if (!is_digit(*r->p))
        return refuse_found(r, "a digit");
    while (is_digit(*r->p))
        r->p++;
    return 0;
}

static int read_number(struct reader *r, struct json **out)
{
    const char *start = r->p;

    if (new_node(r, JSON_NUMBER, out) < 0)
        return -1;
    if (*r->p == '-')
        r->p++;
    if (r->p[0] == '0' && is_digit(r->p[1]))
        return refuse(r, r->p, ERR_INVALID, "a number must not start with a zero");
    if (skip_digits(r) < 0)
        return -1;
    if (*r->p == '.') {
        r->p++;
        if (skip_digits(r) < 0)
            return -1;
    }
    if (*r->p == 'e' || *r->p == 'E') {
        r->p++;
        if (*r->p == '+' || *r->p == '-')
            r->p++;
        if (skip_digits(r) < 0)
            return -1;
    }
    (*out)->text = (struct str){start, (size_t)(r->p - start)};
    return 0;
}

/* Four hex digits, or -1. */
static int hex4(const char *p)
{
    int value = 0;

    for (int i = 0; i < 4; i++) {
        char c = p[i];

        if (is_digit(c))
            value = value << 4 | (c - '0');
        else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
            value = value << 4 | ((c | 0x20) - 'a' + 10);
        else
            return -1; /* the NUL at the end stops us too */
    }
    return value;
}

static char *put_utf8(char *to, unsigned c)
{
    if (c < 0x80) {
        *to++ = (char)c;
    } else if (c < 0x800) {
        *to++ = (char)(0xC0 | c >> 6);
        *to++ = (char)(0x80 | (c & 0x3F));
    } else if (c < 0x10000) {
        *to++ = (char)(0xE0 | c >> 12);
        *to++ = (char)(0x80 | (c >> 6 & 0x3F));
        *to++ = (char)(0x80 | (c & 0x3F));
    } else {
        *to++ = (char)(0xF0 | c >> 18);
        *to++ = (char)(0x80 | (c >> 12 & 0x3F));
        *to++ = (char)(0x80 | (c >> 6 & 0x3F));
        *to++ = (char)(0x80 | (c & 0x3F));
    }
    return to;
}

/* \uXXXX, or two of them for a character above U+FFFF; r->p stands on the backslash. */
static int decode_unicode(struct reader *r, char **to)
{
    int unit = hex4(r->p + 2);
    int low = -1;

    if (unit < 0)
        return refuse(r, r->p, ERR_INVALID, "\\u needs four hex digits");
    if (unit < 0xD800 || unit > 0xDFFF) {
        *to = put_utf8(*to, (unsigned)unit);
        r->p += 6;
        return 0;
    }
    if (unit < 0xDC00 && r->p[6] == '\\' && r->p[7] == 'u')
        low = hex4(r->p + 8);
    if (low < 0xDC00 || low > 0xDFFF)
        return refuse(r, r->p, ERR_INVALID, "half a surrogate pair: \\u%04x", (unsigned)unit);
    *to = put_utf8(*to, 0x10000 + ((unsigned)(unit - 0xD800) << 10) + (unsigned)(low - 0xDC00));
    r->p += 12;
    return 0;
}

static int decode_escape(struct reader *r, char **to)
{
    static const char names[] = "\"\\/bfnrt";
    static const char values[] = "\"\\/\b\f\n\r\t";
    char name = r->p[1];
    const char *found = name ? strchr(names, name) : NULL;

    if (name == 'u')
        return decode_unicode(r, to);
    if (!found)
        return refuse(r, r->p, ERR_INVALID,
                      "unknown escape; known are \\\" \\\\ \\/ \\b \\f \\n "
                      "\\r \\t \\uXXXX");
    *(*to)++ = values[found - names];
    r->p += 2;
    return 0;
}

static int refuse_in_string(struct reader *r)
{
    if (r->p == r->end)
        return refuse(r, r->p, ERR_INVALID, "a string without its closing quote");
    return refuse(r, r->p, ERR_INVALID, "a control character in a string: write it as \\u%04x",
                  (unsigned char)*r->p);
}

/* Moves to the next quote, backslash or control character; says whether all was ASCII. */
static bool skip_plain(struct reader *r)
{
    unsigned char seen = 0;
    const char *p = r->p;

    while ((unsigned char)*p >= 0x20 && *p != '"' && *p != '\\')
        seen |= (unsigned char)*p++;
    r->p += p - r->p;
    return seen < 0x80;
}

static int read_run(struct reader *r)
{
    char *start = r->p;
    bool ascii = skip_plain(r);
    struct str run = {start, (size_t)(r->p - start)};

    if (!ascii && !str_is_utf8(run))
        return refuse(r, start + str_utf8_prefix(run), ERR_INVALID, "not UTF-8");
    return 0;
}

static int read_string(struct reader *r, struct str *out)
{
    char *start = ++r->p;
    char *to = start;

    for (;;) {
        char *run = r->p;

        if (read_run(r) < 0)
            return -1;
        if (to != run)
            memmove(to, run, (size_t)(r->p - run));
        to += r->p - run;
        if (*r->p == '"')
            break;
        if (*r->p != '\\')
            return refuse_in_string(r);
        if (decode_escape(r, &to) < 0)
            return -1;
    }
    r->p++;
    *out = (struct str){start, (size_t)(to - start)};
    return 0;
}

static int read_word(struct reader *r, const char *word, struct json **out)
{
    size_t n = strlen(word);

    if (strncmp(r->p, word, n) != 0)
        return refuse_found(r, "a value");
    if (new_node(r, *word == 'n' ? JSON_NULL : JSON_BOOL, out) < 0)
        return -1;
    (*out)->boolean = *word == 't';
    r->p += n;
    return 0;
}

static int read_key(struct reader *r, struct str *key, struct mark *mark)
{
    skip_blanks(r);
    *mark = mark_of(r, r->p);
    if (*r->p != '"')
        return refuse_found(r, "a key in quotes");
    if (read_string(r, key) < 0)
        return -1;
    skip_blanks(r);
    if (*r->p != ':')
        return refuse_found(r, "':' after the key");
    r->p++;
    return 0;
}

static int read_item(struct reader *r, struct json *container)
{
    struct json *item = NULL;
    struct mark key_mark = {0, 0};
    struct str key = {NULL, 0};

    if (container->kind == JSON_OBJECT && read_key(r, &key, &key_mark) < 0)
        return -1;
    if (read_value(r, &item) < 0)
        return -1;
    item->key = key;
    item->key_mark = key_mark;
    json_append(container, item);
    return 0;
}

static int read_items(struct reader *r, struct json *container)
{
    bool object = container->kind == JSON_OBJECT;
    char close = object ? '}' : ']';

    r->p++;
    skip_blanks(r);
    if (*r->p == close) {
        r->p++;
        return 0;
    }
    for (;;) {
        if (read_item(r, container) < 0)
            return -1;
        skip_blanks(r);
        if (*r->p == close)
            break;
        if (*r->p != ',')
            return refuse_found(r, object ? "',' or '}'" : "',' or ']'");
        r->p++;
    }
    r->p++;
    return object ? json_members_unique(container, r->where, r->err) : 0;
}

static int read_container(struct reader *r, enum json_kind kind, struct json **out)
{
    if (r->depth == JSON_DEPTH_MAX)
        return refuse(r, r->p, ERR_LIMIT, "nested deeper than %d levels", JSON_DEPTH_MAX);
    if (new_node(r, kind, out) < 0)
        return -1;
    r->depth++;
    if (read_items(r, *out) < 0)
        return -1;
    r->depth--;
    return 0;
}

static int read_text_value(struct reader *r, struct json **out)
{
    if (new_node(r, JSON_STRING, out) < 0)
        return -1;
    return read_string(r, &(*out)->text);
}

static int read_value(struct reader *r, struct json **out)
{
    skip_blanks(r);
    switch (*r->p) {
    case '{':
        return read_container(r, JSON_OBJECT, out);
    case '[':
        return read_container(r, JSON_ARRAY, out);
    case '"':
        return read_text_value(r, out);
    case 't':
        return read_word(r, "true", out);
    case 'f':
        return read_word(r, "false", out);
    case 'n':
        return read_word(r, "null", out);
    default:
        if (*r->p == '-' || is_digit(*r->p))
            return read_number(r, out);
        return refuse_found(r, "a value");
    }
}

int json_parse(struct arena *mem, struct str text, const struct json **out, struct mark *where,
               struct err *err)
{
    struct reader r = {.mem = mem, .line = 1, .where = where, .err = err};
    struct json *root = NULL;

    *where = (struct mark){1, 1};
    if (text.n > JSON_TEXT_MAX)
        return err_set(err, ERR_LIMIT, "more than %lu bytes", JSON_TEXT_MAX);
    r.p = arena_text(mem, text);
    r.end = r.p + text.n;
    r.line_start = r.p;
    if (str_starts(text, "\xEF\xBB\xBF"))
        return refuse(&r, r.p, ERR_INVALID, "a byte order mark: save the text without one");
    if (read_value(&r, &root) < 0)
        return -1;
    skip_blanks(&r);
    if (r.p != r.end)
        return refuse_found(&r, "the end of the text");
    *out = root;
    return 0;
}
