/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic that can run nothing.
 *
 * A name in it is looked up, and what it holds is evaluated again, where a subscript can run a
 * command. So a name is plain only when it is known to hold a number: because the text said so
 * before, or because the same arithmetic gives it one, for certain and before it looks. The name
 * that `=` assigns to is not looked up (expr.c of bash, readtok()), unless ++ or -- is before it.
 */
#include "lib/shell/reader-private.h"

#include <string.h>

#define NAMES_MAX 8 /* that one arithmetic assigns to */

struct sums {
    struct reader *r;
    struct str text;
    size_t at;
    unsigned open;
    struct str names[NAMES_MAX]; /* assigned to */
    size_t name_n;
    size_t set_n;  /* of them those that hold a number from here on */
    bool branches; /* what follows may not be done */
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool is_integer(struct str text)
{
    size_t at = text.n && (text.p[0] == '-' || text.p[0] == '+');
    size_t start = at;

    while (at < text.n && is_digit(text.p[at]))
        at++;
    return at > start && at == text.n;
}

static bool holds_number(const struct sums *s, struct str name)
{
    struct str value;

    for (size_t i = 0; i < s->set_n; i++)
        if (str_eq(s->names[i], name))
            return true;
    return var_get(s->r, name, &value) && is_integer(value);
}

static char byte_at(const struct sums *s, size_t at)
{
    return (char)(at < s->text.n ? s->text.p[at] : '\0');
}

/* A name, and whether it is only assigned to. */
static bool take_name(struct sums *s)
{
    size_t start = s->at, before = start;
    struct str name;

    while (is_name_byte((unsigned char)byte_at(s, s->at)))
        s->at++;
    name = (struct str){s->text.p + start, s->at - start};
    while (is_blank(byte_at(s, s->at)))
        s->at++;
    while (before && is_blank(s->text.p[before - 1]))
        before--;
    if (byte_at(s, s->at) != '=' || byte_at(s, s->at + 1) == '=' ||
        (before && strchr("+-", s->text.p[before - 1])))
        return holds_number(s, name);
    if (s->name_n == NAMES_MAX || is_steering_variable(arena_text(s->r->look->mem, name)))
        return false;
    s->names[s->name_n++] = name;
    return true;
}

/* What was assigned before a comma, or in an earlier part of a loop's head, was assigned. */
static void end_part(struct sums *s)
{
    if (s->open == 0 && !s->branches)
        s->set_n = s->name_n;
}

static bool take_one(struct sums *s)
{
    char c = s->text.p[s->at];

    if (is_name_start((unsigned char)c))
        return take_name(s);
    if (is_digit(c)) { /* 0x1f and 16#ff are one number, and names in it are none */
        while (is_name_byte((unsigned char)byte_at(s, s->at)) || byte_at(s, s->at) == '#')
            s->at++;
        return true;
    }
    s->at++;
    switch (c) {
    case '(':
        s->open++;
        return true;
    case ')':
        return s->open-- > 0;
    case ',':
    case ';':
        end_part(s);
        return true;
    case '&':
    case '|':
    case '?':
        s->branches = true;
        return true;
    default:
        return c && strchr(" \t\n+-*/%<>=!^~:", c);
    }
}

bool is_plain_arithmetic(struct reader *r, struct str text)
{
    struct sums s = {.r = r, .text = text};

    while (s.at < text.n)
        if (!take_one(&s))
            return false;
    return s.open == 0;
}
