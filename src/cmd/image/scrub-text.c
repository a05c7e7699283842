/* SPDX-License-Identifier: Apache-2.0 */

/* Texts that are read line by line, or not at all beyond the shapes in them. What is not replaced
 * stays byte for byte. */

#include "cmd/image/scrub-private.h"

#include "lib/base/attrs.h"

#include <string.h>

/* ---- shapes ---- */

static int replace_hits(struct str text, bool (*next)(struct str, size_t, struct scrub_hit *),
                        struct buf *out, uint64_t counts[SCRUB_RULES], struct err *err)
{
    struct scrub_hit hit;
    size_t at = 0;

    while (next(text, at, &hit)) {
        counts[hit.rule]++;
        if (buf_add(out, text.p + at, hit.at - at, err) < 0 || buf_add_text(out, SCRUBBED, err) < 0)
            return -1;
        at = hit.at + hit.n;
    }
    return buf_add(out, text.p + at, text.n - at, err);
}

static bool next_shape(struct str text, size_t from, struct scrub_hit *out)
{
    return scrub_next(text, from, false, out);
}

int scrub_shapes(struct str text, struct buf *out, uint64_t counts[SCRUB_RULES], struct err *err)
{
    return replace_hits(text, next_shape, out, counts, err);
}

int scrub_urls(struct str text, struct buf *out, uint64_t counts[SCRUB_RULES], struct err *err)
{
    return replace_hits(text, scrub_next_url, out, counts, err);
}

/* ---- pairs ---- */

struct pair {
    struct str name;
    size_t at; /* of the value in the text, inside its quotes */
    size_t n;
};

static bool is_name(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static size_t skip_blanks(struct str text, size_t at)
{
    while (at < text.n && is_blank(text.p[at]))
        at++;
    return at;
}

static size_t line_end(struct str text, size_t at)
{
    const char *feed = memchr(text.p + at, '\n', text.n - at);
    size_t end = feed ? (size_t)(feed - text.p) : text.n;

    return end > at && text.p[end - 1] == '\r' ? end - 1 : end;
}

/* The name that ends before at, with or without quotes around it. */
static struct str name_before(struct str text, size_t at)
{
    size_t start;

    while (at > 0 && (is_blank(text.p[at - 1]) || text.p[at - 1] == '"' || text.p[at - 1] == '\'' ||
                      text.p[at - 1] == '?' || text.p[at - 1] == '+'))
        at--; /* "A ?= x" and "A += x" too */
    start = at;
    while (start > 0 && is_name(text.p[start - 1]))
        start--;
    return (struct str){text.p + start, at - start};
}

/* The closing quote, perhaps lines further on; at the end of the text when there is none. */
static size_t find_close(struct str text, size_t at, const char *quote, size_t quote_n)
{
    while (at + quote_n <= text.n) {
        if (*quote == '"' && text.p[at] == '\\')
            at += 2;
        else if (memcmp(text.p + at, quote, quote_n) == 0)
            return at;
        else
            at++;
    }
    return text.n;
}

/* What stands behind a separator: a quoted text, or all to the end of the line. */
static void take_value(struct str text, size_t at, struct pair *pair)
{
    size_t quote_n = 1;

    at = skip_blanks(text, at);
    if (at == text.n || (text.p[at] != '"' && text.p[at] != '\'')) {
        pair->at = at;
        pair->n = line_end(text, at) - at;
        return;
    }
    if (text.n - at >= 3 && text.p[at + 1] == text.p[at] && text.p[at + 2] == text.p[at])
        quote_n = 3;
    pair->at = at + quote_n;
    pair->n = pair->at >= text.n ? 0 : find_close(text, pair->at, text.p + at, quote_n) - pair->at;
}

/* "set -gx NAME value" and "setenv NAME value", at the start of a line. */
static bool take_set(struct str text, size_t at, struct pair *out)
{
    size_t end = line_end(text, at);
    struct str line = str_trim((struct str){text.p + at, end - at});
    struct str word = str_cut(&line, ' ');

    if (!str_is(word, "set") && !str_is(word, "setenv"))
        return false;
    do {
        line = str_trim(line);
        word = str_cut(&line, ' ');
    } while (word.n && word.p[0] == '-');
    if (!word.n || memchr(word.p, '=', word.n))
        return false;
    out->name = word;
    take_value(text, (size_t)(word.p + word.n - text.p), out);
    return true;
}

/* The next NAME=VALUE or, at the start of a line, NAME: VALUE whose separator is at or behind
 * from. everywhere: with a colon also in the middle of a line. */
static bool next_pair(struct str text, size_t from, bool everywhere, struct pair *out)
{
    for (size_t i = from; i < text.n; i++) {
        bool starts_line = i == 0 || text.p[i - 1] == '\n';

        if (starts_line && take_set(text, i, out))
            return true;
        if (text.p[i] != '=' && text.p[i] != ':')
            continue;
        if (i + 1 < text.n && (text.p[i + 1] == '=' || text.p[i + 1] == ':'))
            continue; /* a comparison, or "::" */
        out->name = name_before(text, i);
        if (!out->name.n)
            continue;
        if (text.p[i] == ':' && !everywhere) {
            const char *before = out->name.p;

            while (before > text.p && (is_blank(before[-1]) || before[-1] == '"'))
                before--;
            if (before > text.p && before[-1] != '\n')
                continue;
        }
        take_value(text, i + 1, out);
        return true;
    }
    return false;
}

static enum scrub_rule judge(struct str text, const struct pair *pair)
{
    struct str value = {text.p + pair->at, pair->n};
    enum scrub_rule rule = scrub_variable(pair->name);

    return rule != SCRUB_RULES && !scrub_is_harmless(value) ? rule : SCRUB_RULES;
}

/* Behind what was found, or behind its separator when it is harmless: a value may hold more. */
static size_t go_on(struct str text, const struct pair *pair, bool replaced)
{
    size_t behind_name = (size_t)(pair->name.p + pair->name.n - text.p) + 1;

    if (replaced)
        return pair->at + pair->n;
    return pair->at > behind_name ? pair->at : behind_name;
}

int scrub_settings(struct str text, struct buf *out, uint64_t counts[SCRUB_RULES], struct err *err)
{
    struct pair pair;
    size_t done = 0, from = 0;

    while (next_pair(text, from, false, &pair)) {
        enum scrub_rule rule = judge(text, &pair);

        from = go_on(text, &pair, rule != SCRUB_RULES);
        if (rule == SCRUB_RULES)
            continue;
        counts[rule]++;
        if (buf_add(out, text.p + done, pair.at - done, err) < 0 ||
            buf_add_text(out, SCRUBBED, err) < 0)
            return -1;
        done = from;
    }
    return buf_add(out, text.p + done, text.n - done, err);
}

bool scrub_is_suspicious(struct str text)
{
    struct pair pair;
    size_t from = 0;

    if (scrub_has_secret(text))
        return true;
    while (next_pair(text, from, true, &pair)) {
        if (judge(text, &pair) != SCRUB_RULES)
            return true;
        from = go_on(text, &pair, false);
    }
    return false;
}
