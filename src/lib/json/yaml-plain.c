/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/json/yaml-plain.h"

#include "lib/json/json-private.h"

#include <string.h>

/* Anything that has the shape of a decimal number in YAML 1.1 or 1.2:
 * [-+] whole [. fraction] [e exponent], with underscores between digits in 1.1. */
struct number {
    char sign; /* '+', '-' or 0 */
    bool point;
    bool underscores;
    struct str whole;
    struct str fraction;
    struct str exponent; /* with its 'e' and sign */
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static struct str take(struct str *rest, size_t n)
{
    struct str taken = {rest->p, n};

    *rest = (struct str){rest->p + n, rest->n - n};
    return taken;
}

static struct str take_digits(struct str *rest, bool *underscores)
{
    size_t n = 0;

    while (n < rest->n && (is_digit(rest->p[n]) || (n > 0 && rest->p[n] == '_'))) {
        *underscores |= rest->p[n] == '_';
        n++;
    }
    return take(rest, n);
}

static bool scan_exponent(struct str *rest, struct str *out)
{
    size_t n = 1;
    size_t digits;

    if (rest->n == 0 || (rest->p[0] != 'e' && rest->p[0] != 'E'))
        return rest->n == 0;
    if (n < rest->n && (rest->p[n] == '+' || rest->p[n] == '-'))
        n++;
    digits = n;
    while (n < rest->n && is_digit(rest->p[n]))
        n++;
    *out = take(rest, n);
    return n > digits && rest->n == 0;
}

static bool scan_number(struct str text, struct number *out)
{
    struct number found = {0};

    if (text.n && (text.p[0] == '+' || text.p[0] == '-'))
        found.sign = take(&text, 1).p[0];
    found.whole = take_digits(&text, &found.underscores);
    if (text.n && text.p[0] == '.') {
        found.point = true;
        (void)take(&text, 1);
        found.fraction = take_digits(&text, &found.underscores);
    }
    if (found.whole.n + found.fraction.n == 0 || !scan_exponent(&text, &found.exponent))
        return false;
    *out = found;
    return true;
}

static bool is_made_of(struct str text, const char *allowed)
{
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] == '\0' || !strchr(allowed, text.p[i]))
            return false;
    return text.n > 0;
}

/* 0x1F, 0o17, 0b11, with or without a sign. */
static bool is_other_base(struct str text)
{
    static const struct {
        const char *prefix;
        const char *digits;
    } bases[] = {
        {"0x", "0123456789abcdefABCDEF_"},
        {"0o", "01234567_"              },
        {"0b", "01_"                    },
    };

    if (text.n && (text.p[0] == '+' || text.p[0] == '-'))
        (void)take(&text, 1);
    for (size_t i = 0; i < COUNT(bases); i++)
        if (str_starts(text, bases[i].prefix))
            return is_made_of((struct str){text.p + 2, text.n - 2}, bases[i].digits);
    return false;
}

static bool is_not_finite(struct str text)
{
    static const char *const names[] = {".inf", ".Inf", ".INF", ".nan", ".NaN", ".NAN"};

    if (text.n && (text.p[0] == '+' || text.p[0] == '-'))
        (void)take(&text, 1);
    for (size_t i = 0; i < COUNT(names); i++)
        if (str_is(text, names[i]))
            return true;
    return false;
}

static int refuse(struct str text, const char *why, struct err *err)
{
    return err_set(err, ERR_INVALID, "%.*s%s %s, or put it in quotes if it is a text",
                   (int)(text.n < 40 ? text.n : 40), text.p, text.n > 40 ? "..." : "", why);
}

/* Writes 1. as 1 and .5 as 0.5: the same number in JSON's grammar. */
static struct json *number_node(struct arena *mem, const struct number *number)
{
    struct str whole = number->whole.n ? number->whole : STR_LIT("0");
    struct str sign = {"-", number->sign == '-' ? 1 : 0};
    struct str point = {".", number->fraction.n ? 1 : 0};
    struct str parts[] = {sign, whole, point, number->fraction, number->exponent};
    struct json *node;
    size_t n = 0;
    char *to;

    for (size_t i = 0; i < COUNT(parts); i++)
        n += parts[i].n;
    node = json_leaf(mem, JSON_NUMBER, n, &to);
    for (size_t i = 0; i < COUNT(parts); i++) {
        if (parts[i].n)
            memcpy(to, parts[i].p, parts[i].n);
        to += parts[i].n;
    }
    return node;
}

static int read_number(struct arena *mem, struct str text, const struct number *number,
                       struct json **out, struct err *err)
{
    struct json *node;
    int64_t whole;

    if (number->underscores)
        return refuse(text, "has underscores: write the number without them", err);
    if (number->sign == '+')
        return refuse(text, "has a plus sign: write the number without it", err);
    if (number->whole.n > 1 && number->whole.p[0] == '0')
        return refuse(text, "starts with a zero: write the number without it", err);
    node = number_node(mem, number);
    if (!number->point && number->exponent.n == 0 && !json_is_int(node, &whole))
        return refuse(text, "is too large: stay within 2^53-1", err);
    if (!json_number_is_finite(node->text))
        return refuse(text, "is too large: stay within the range of a double", err);
    *out = node;
    return 0;
}

/* The words of the core schema; every other word is a text, also yes, no, on and off. */
static struct json *read_word(struct arena *mem, struct str text)
{
    static const struct {
        const char *word;
        enum json_kind kind;
        bool value;
    } words[] = {
        {"",      JSON_NULL, false},
        {"~",     JSON_NULL, false},
        {"null",  JSON_NULL, false},
        {"Null",  JSON_NULL, false},
        {"NULL",  JSON_NULL, false},
        {"true",  JSON_BOOL, true },
        {"True",  JSON_BOOL, true },
        {"TRUE",  JSON_BOOL, true },
        {"false", JSON_BOOL, false},
        {"False", JSON_BOOL, false},
        {"FALSE", JSON_BOOL, false},
    };

    for (size_t i = 0; i < COUNT(words); i++) {
        if (str_is(text, words[i].word))
            return words[i].kind == JSON_NULL ? json_null(mem) : json_bool(mem, words[i].value);
    }
    return NULL;
}

int yaml_plain(struct arena *mem, struct str text, struct json **out, struct err *err)
{
    struct number number;
    struct json *word;

    if (scan_number(text, &number))
        return read_number(mem, text, &number, out, err);
    if (is_other_base(text))
        return refuse(text, "is not decimal: write the number in decimal", err);
    if (is_not_finite(text))
        return refuse(text, "is not finite: write a number that is", err);
    word = read_word(mem, text);
    *out = word ? word : json_text(mem, text);
    return 0;
}
