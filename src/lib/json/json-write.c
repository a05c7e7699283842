/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/json/json.h"

#include "lib/base/text.h"
#include "lib/json/json-private.h"

#include <endian.h>
#include <stdio.h>
#include <string.h>

enum form {
    FORM_CANONICAL,
    FORM_COMPACT,
    FORM_PRETTY,
};

#define PRINT_CHUNK 65536U

struct writer {
    struct buf *out;
    FILE *to; /* where the buffer is emptied to when it has grown, or NULL */
    struct err *err;
    enum form form;
    unsigned level;
};

static int write_value(struct writer *w, const struct json *value);

/* A receipt is some five hundred pieces of a few bytes. Where the buffer has room they are copied
 * right here; write_form() puts the terminator behind the last one. */
static int put_through(struct writer *w, const char *bytes, size_t n)
{
    (void)fwrite(w->out->p, 1, w->out->n, w->to); /* whoever closes the stream asks how it went */
    (void)fwrite(bytes, 1, n, w->to);
    w->out->n = 0;
    return 0;
}

static inline int put(struct writer *w, const char *bytes, size_t n)
{
    struct buf *out = w->out;

    if (w->to && out->n + n >= PRINT_CHUNK)
        return put_through(w, bytes, n);
    if (out->cap <= out->n || out->cap - out->n <= n || out->max - out->n < n)
        return buf_add(out, bytes, n, w->err);
    if (n)
        memcpy(out->p + out->n, bytes, n);
    out->n += n;
    return 0;
}

static int write_unit(struct writer *w, uint32_t unit)
{
    static const char hex[] = "0123456789abcdef";
    char code[6] = {
        '\\', 'u', hex[unit >> 12 & 15], hex[unit >> 8 & 15], hex[unit >> 4 & 15], hex[unit & 15]};

    return put(w, code, sizeof code);
}

/* A control character, a quote or a backslash inside a text, or one that is not to be seen raw. */
static int write_escaped(struct writer *w, uint32_t c)
{
    static const char shorts[] = {
        ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n',  ['\f'] = 'f',
        ['\r'] = 'r', ['"'] = '"',  ['\\'] = '\\',
    };

    if (c < sizeof shorts && shorts[c]) {
        char pair[2] = {'\\', shorts[c]};

        return put(w, pair, sizeof pair);
    }
    if (c < 0x10000)
        return write_unit(w, c);
    return write_unit(w, 0xD800 + ((c - 0x10000) >> 10)) < 0
               ? -1
               : write_unit(w, 0xDC00 + ((c - 0x10000) & 0x3FF));
}

/* DEL and the C1 controls (C2 80 to C2 9F) are legal in JSON but can drive a terminal, so what is
 * printed for people has them escaped, and on a stream all that misleads whoever reads it there.
 * Returns how many bytes the character takes, or 0. */
static size_t unseen(const struct writer *w, struct str text, size_t at, uint32_t *point)
{
    size_t n;

    *point = (unsigned char)text.p[at];
    if (*point == 0x7F)
        return 1;
    n = text_misleads(text, at, point);
    return w->to || *point < 0xA0 ? n : 0;
}

static bool is_escaped(unsigned char c)
{
    return c < 0x20 || c == '"' || c == '\\';
}

/* The top bit of each of eight bytes that is a control, a quote, a backslash or outside ASCII, the
 * first byte lowest. Subtracting borrows into the top bit of a byte smaller than what is taken
 * away, exclusive-or makes the byte looked for zero, and adding one lifts only DEL. A borrow comes
 * from a byte that has its bit, so only bits above the lowest can be wrong. */
static uint64_t odd_bytes(const char *p)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    const uint64_t tops = UINT64_C(0x8080808080808080);
    uint64_t x, quote, backslash;

    memcpy(&x, p, sizeof x);
    x = le64toh(x);
    quote = (x ^ ones * '"') - ones;
    backslash = (x ^ ones * '\\') - ones;
    return (x | (x + ones) | (x - ones * 0x20) | quote | backslash) & tops;
}

/* Bytes at the start of a text that stand for themselves in every form: most texts whole. */
static size_t plain_length(struct str text)
{
    size_t n = 0;
    uint64_t odd;

    for (; text.n - n >= 8; n += 8)
        if ((odd = odd_bytes(text.p + n)))
            return n + (size_t)__builtin_ctzll(odd) / 8;
    if (text.n >= 8 && !odd_bytes(text.p + text.n - 8))
        return text.n;
    while (n < text.n && !is_escaped((unsigned char)text.p[n]) && (unsigned char)text.p[n] < 0x7F)
        n++;
    return n;
}

static int write_characters(struct writer *w, struct str text, size_t start)
{
    size_t done = 0;

    for (size_t i = start; i < text.n; i++) {
        unsigned char c;
        uint32_t point;
        size_t n;

        i += plain_length((struct str){text.p + i, text.n - i});
        if (i == text.n)
            break;
        c = (unsigned char)text.p[i];
        point = c;
        n = is_escaped(c) ? 1 : 0;

        if (!n && c >= 0x7F && w->form == FORM_PRETTY)
            n = unseen(w, text, i, &point);
        if (!n)
            continue;
        if (put(w, text.p + done, i - done) < 0 || write_escaped(w, point) < 0)
            return -1;
        i += n - 1;
        done = i + 1;
    }
    return put(w, text.p + done, text.n - done);
}

static int write_text(struct writer *w, struct str text)
{
    size_t plain = plain_length(text);

    if (plain < text.n && !str_is_utf8(text))
        return err_set(w->err, ERR_INVALID, "a text is not UTF-8");
    if (put(w, "\"", 1) < 0 || write_characters(w, text, plain) < 0)
        return -1;
    return put(w, "\"", 1);
}

static int write_number(struct writer *w, const struct json *value)
{
    char text[JSON_NUMBER_BYTES];
    int64_t whole;

    if (w->form != FORM_CANONICAL)
        return put(w, value->text.p, value->text.n);
    if (json_is_int(value, &whole) && (whole != 0 || value->text.n == 1))
        return put(w, value->text.p, value->text.n);
    if (json_number_canonical(value->text, text, w->err) < 0)
        return -1;
    return put(w, text, strlen(text));
}

static int write_line(struct writer *w)
{
    if (w->form != FORM_PRETTY)
        return 0;
    if (put(w, "\n", 1) < 0)
        return -1;
    for (unsigned i = 0; i < w->level; i++)
        if (put(w, "  ", 2) < 0)
            return -1;
    return 0;
}

static int write_member(struct writer *w, const struct json *member)
{
    bool pretty = w->form == FORM_PRETTY;

    if (write_text(w, member->key) < 0 || put(w, ": ", pretty ? 2 : 1) < 0)
        return -1;
    return write_value(w, member);
}

/* What separates one item from the one before it. */
static int write_separator(struct writer *w, bool first)
{
    if (!first && put(w, ",", 1) < 0)
        return -1;
    return write_line(w);
}

static int write_items(struct writer *w, const struct json *container)
{
    json_each(item, container)
    {
        if (write_separator(w, item == container->first) < 0)
            return -1;
        if (container->kind == JSON_OBJECT ? write_member(w, item) : write_value(w, item))
            return -1;
    }
    return 0;
}

/* Two equal keys come to stand side by side here, and a signature over such an object would mean
 * different things to different readers. */
static int write_sorted(struct writer *w, const struct json *object)
{
    AUTO_FREE struct json_member *many = NULL;
    struct json_member few[64];
    struct json_member *members = few;

    if (object->n > COUNT(few))
        members = many = xcalloc(object->n, sizeof *many);
    json_members_sort(object, members);
    for (size_t i = 0; i < object->n; i++) {
        const struct json *member = members[i].json;

        if (i && members[i - 1].prefix == members[i].prefix &&
            str_eq(members[i - 1].json->key, member->key))
            return json_refuse_duplicate(member, w->err);
        if (write_separator(w, i == 0) < 0 || write_member(w, member) < 0)
            return -1;
    }
    return 0;
}

static int write_container(struct writer *w, const struct json *container)
{
    bool object = container->kind == JSON_OBJECT;
    bool sorted = object && w->form == FORM_CANONICAL;

    if (put(w, object ? "{" : "[", 1) < 0)
        return -1;
    if (container->n) {
        w->level++;
        if ((sorted ? write_sorted(w, container) : write_items(w, container)) < 0)
            return -1;
        w->level--;
        if (write_line(w) < 0)
            return -1;
    }
    return put(w, object ? "}" : "]", 1);
}

static int write_value(struct writer *w, const struct json *value)
{
    switch (value->kind) {
    case JSON_NULL:
        return put(w, "null", 4);
    case JSON_BOOL:
        return value->boolean ? put(w, "true", 4) : put(w, "false", 5);
    case JSON_NUMBER:
        return write_number(w, value);
    case JSON_STRING:
        return write_text(w, value->text);
    case JSON_ARRAY:
    case JSON_OBJECT:
        return write_container(w, value);
    }
    return err_set(w->err, ERR_INTERNAL, "a JSON value of kind %d", (int)value->kind);
}

/* Half a document is worse than none: on failure the buffer is as it was. */
static int write_form(enum form form, const struct json *value, struct buf *out, struct err *err)
{
    struct writer w = {.out = out, .err = err, .form = form};
    size_t before = out->n;
    int failed = write_value(&w, value);

    if (failed < 0)
        out->n = before;
    if (out->p)
        out->p[out->n] = '\0';
    return failed;
}

int json_canonical(const struct json *value, struct buf *out, struct err *err)
{
    return write_form(FORM_CANONICAL, value, out, err);
}

int json_print(const struct json *value, FILE *to, struct err *err)
{
    AUTO_BUF struct buf chunk = BUF(2 * PRINT_CHUNK);
    struct writer w = {.out = &chunk, .to = to, .err = err, .form = FORM_PRETTY};

    if (write_value(&w, value) < 0)
        return -1;
    return put_through(&w, "\n", 1);
}

int json_pretty(const struct json *value, struct buf *out, struct err *err)
{
    return write_form(FORM_PRETTY, value, out, err);
}

int json_compact(const struct json *value, struct buf *out, struct err *err)
{
    return write_form(FORM_COMPACT, value, out, err);
}
