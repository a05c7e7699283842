/* SPDX-License-Identifier: Apache-2.0 */
/* Words as they stand: quotes, escapes, and where expansions begin. */
#include "lib/shell/reader-private.h"

#include <string.h>

static void reserve(struct scratch *s, size_t n)
{
    if (s->cap - s->n >= n)
        return;
    s->cap = (s->cap + n) * 2;
    s->bytes = xrealloc(s->bytes, s->cap);
    s->classes = xrealloc(s->classes, s->cap);
}

static void note_class(struct scratch *s, enum byte_class class)
{
    s->seen = (s->n ? s->seen : 0) | 1U << class;
}

void put(struct reader *r, const char *bytes, size_t n, enum byte_class class)
{
    struct scratch *s = &r->look->scratch;

    if (n == 0)
        return;
    note_class(s, class);
    reserve(s, n);
    memcpy(s->bytes + s->n, bytes, n);
    memset(s->classes + s->n, (int)class, n);
    s->n += n;
}

static void put_byte(struct reader *r, char byte, enum byte_class class)
{
    struct scratch *s = &r->look->scratch;

    note_class(s, class);
    reserve(s, 1);
    s->bytes[s->n] = byte;
    s->classes[s->n++] = (uint8_t) class;
}

static void put_mark(struct reader *r)
{
    put_byte(r, '\0', BYTE_EMPTY);
}

static int read_single(struct reader *r)
{
    const char *from = r->text.p + r->pos;
    const char *quote = memchr(from, '\'', r->end - r->pos);

    if (!quote)
        return fail_at(r, r->pos - 1, "a quote without its end");
    put_mark(r);
    put(r, from, (size_t)(quote - from), BYTE_QUOTED);
    r->pos += (size_t)(quote - from) + 1;
    return 0;
}

/* A backslash between double quotes, or in a here-document. */
static void read_escape(struct reader *r, bool here)
{
    int next = r->pos + 1 < r->end ? r->text.p[r->pos + 1] : -1;
    bool takes = next == '$' || next == '`' || next == '\\' || (next == '"' && !here);

    if (next == '\n') {
        r->pos += 2;
    } else if (takes) {
        put_byte(r, (char)next, BYTE_QUOTED);
        r->pos += 2;
    } else {
        put_byte(r, '\\', BYTE_QUOTED);
        r->pos++;
    }
}

static size_t run_in_quotes(const struct reader *r, bool here)
{
    size_t at = r->pos;

    while (at < r->end) {
        char c = r->text.p[at];

        if (c == '$' || c == '`' || c == '\\' || (c == '"' && !here) || (c == '\n' && here))
            break;
        at++;
    }
    return at - r->pos;
}

static int read_in_quotes(struct reader *r, bool here)
{
    size_t n = run_in_quotes(r, here);

    put(r, r->text.p + r->pos, n, BYTE_QUOTED);
    r->pos += n;
    if (r->pos == r->end)
        return 0;
    switch (r->text.p[r->pos]) {
    case '\\':
        read_escape(r, here);
        return 0;
    case '$':
        return read_dollar(r, true);
    case '`':
        return read_backtick(r, true);
    default:
        return 0; /* the closing quote, or the end of a line */
    }
}

int read_double(struct reader *r)
{
    size_t start = r->pos - 1;

    put_mark(r);
    while (r->pos < r->end && r->text.p[r->pos] != '"')
        if (read_in_quotes(r, false) < 0)
            return -1;
    if (r->pos == r->end)
        return fail_at(r, start, "a quote without its end");
    r->pos++;
    return 0;
}

/* A here-document whose end was not quoted: r->end is where it ends. */
int read_here_text(struct reader *r, bool strip)
{
    bool begins = true;
    bool outer = r->in_here;

    r->in_here = true;
    while (r->pos < r->end) {
        while (begins && strip && r->pos < r->end && r->text.p[r->pos] == '\t')
            r->pos++;
        begins = false;
        if (read_in_quotes(r, true) < 0)
            return -1;
        if (r->pos < r->end && r->text.p[r->pos] == '\n') {
            put_byte(r, '\n', BYTE_QUOTED);
            r->pos++;
            begins = true;
        }
    }
    r->in_here = outer;
    return 0;
}

static void read_plain(struct reader *r)
{
    size_t at = r->pos;

    while (at < r->end && !is_kind((unsigned char)r->text.p[at], KIND_META | KIND_WORD))
        at++;
    put(r, r->text.p + r->pos, at - r->pos, BYTE_PLAIN);
    r->pos = at;
}

static void read_backslash(struct reader *r)
{
    if (r->pos + 1 == r->end) {
        r->unsure = true; /* the last byte of a text */
        put_byte(r, '\\', BYTE_GUESS);
        r->pos++;
        return;
    }
    put_byte(r, r->text.p[r->pos + 1], BYTE_QUOTED);
    r->pos += 2;
}

static int read_part(struct reader *r, int c)
{
    switch (c) {
    case '\'':
        r->pos++;
        return read_single(r);
    case '"':
        r->pos++;
        return read_double(r);
    case '\\':
        read_backslash(r);
        return 0;
    case '$':
        return read_dollar(r, false);
    case '`':
        return read_backtick(r, false);
    case '<':
    case '>':
        return read_process(r);
    default:
        read_plain(r);
        return 0;
    }
}

/* Up to the first byte that ends a word. <(...) is part of one. */
int read_raw_word(struct reader *r)
{
    for (;;) {
        int c = peek(r);
        bool process = (c == '<' || c == '>') && peek_second(r) == '(';

        if (c < 0 || (is_meta(c) && !process))
            return 0;
        if (read_part(r, c) < 0)
            return -1;
    }
}

/* ---- words in which nothing expands ---- */

/* Such a word is not longer than what it is written as, so it fits where it stands: in a copy of
 * the text, where it can be ended as well. */
struct settling {
    const struct reader *r;
    char *pool;
    size_t at; /* what is read next */
    size_t to; /* where it goes */
};

static bool settle_single(struct settling *s)
{
    const char *from = s->r->text.p + s->at + 1;
    const char *quote = memchr(from, '\'', s->r->end - s->at - 1);
    size_t n;

    if (!quote)
        return false;
    n = (size_t)(quote - from);
    if (s->to != s->at + 1)
        memcpy(s->pool + s->to, from, n);
    s->to += n;
    s->at += n + 2;
    return true;
}

static bool settle_double(struct settling *s)
{
    const char *text = s->r->text.p;
    size_t end = s->r->end;

    for (s->at++; s->at < end; s->at++) {
        char c = text[s->at];
        char next = (char)(s->at + 1 < end ? text[s->at + 1] : '\0');

        if (c == '"') {
            s->at++;
            return true;
        }
        if (c == '$' || c == '`' || (c == '\\' && next == '\n'))
            return false;
        if (c == '\\' && (next == '$' || next == '`' || next == '\\' || next == '"')) {
            c = next;
            s->at++;
        }
        s->pool[s->to++] = c;
    }
    return false;
}

static bool settle_escape(struct settling *s)
{
    size_t next = s->at + 1;

    if (next >= s->r->end || s->r->text.p[next] == '\n')
        return false;
    s->pool[s->to++] = s->r->text.p[next];
    s->at += 2;
    return true;
}

static bool settle(struct settling *s)
{
    const char *text = s->r->text.p;

    while (s->at < s->r->end && !is_meta((unsigned char)text[s->at])) {
        char c = text[s->at];

        if (is_kind((unsigned char)c, KIND_EXPAND))
            return false;
        if (c == '\'') {
            if (!settle_single(s))
                return false;
        } else if (c == '"') {
            if (!settle_double(s))
                return false;
        } else if (c == '\\') {
            if (!settle_escape(s))
                return false;
        } else if (c == '$' || c == '`') {
            return false;
        } else {
            s->pool[s->to++] = c;
            s->at++;
        }
    }
    return true;
}

static bool is_word_end(const struct reader *r, size_t at)
{
    if (at == r->end)
        return true;
    return is_meta((unsigned char)r->text.p[at]) && r->text.p[at] != '<' && r->text.p[at] != '>';
}

bool read_settled(struct reader *r, size_t taken, struct shell_word *out)
{
    struct settling s = {.r = r, .pool = r->pool, .at = r->pos + taken};
    size_t from = r->pos;

    while (s.at < r->end &&
           !is_kind((unsigned char)r->text.p[s.at], KIND_META | KIND_WORD | KIND_EXPAND))
        s.at++; /* most need nothing more, and stand there already */
    if (s.at == from && (s.at == r->end || is_meta((unsigned char)r->text.p[s.at])))
        return false; /* no word at all */
    if (!s.pool)
        s.pool = r->pool = arena_text(r->look->mem, r->text);
    s.to = s.at;
    if (s.at == from && (r->text.p[from] == '\'' || r->text.p[from] == '"'))
        s.to = ++from; /* nothing has to be moved as far as this quote goes */
    if ((!is_word_end(r, s.at) && (!settle(&s) || !is_word_end(r, s.at))) ||
        (taken && s.at == r->pos + taken && s.at < r->end && r->text.p[s.at] == '('))
        return false;
    s.pool[s.to] = '\0';
    *out = (struct shell_word){
        SHELL_LITERAL, {s.pool + from, s.to - from},
         span_at(r, r->pos, s.at)
    };
    r->pos = s.at;
    return true;
}

/* The word behind <<: quotes are taken away, nothing is expanded. */
int read_delimiter(struct reader *r, struct str *out, bool *quoted)
{
    size_t mark = r->look->scratch.n;
    size_t start = r->pos;

    *quoted = false;
    for (int c = peek(r); c >= 0 && !is_meta(c); c = peek(r)) {
        *quoted = *quoted || c == '\'' || c == '"' || c == '\\';
        if (c == '$' || c == '`')
            return fail_at(r, r->pos, "an expansion in the name of a here-document");
        if (read_part(r, c) < 0)
            return -1;
    }
    if (r->pos == start)
        return fail_at(r, start, "a here-document without a name");
    *out = one_word(r, mark, (struct shell_span){0, 0}, false).text;
    return 0;
}
