/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens of an expression, as CEL's language definition has them. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/expr/expr-private.h"

int lex_bad(struct lexer *lexer, const char *from, const char *fmt, ...)
{
    char text[sizeof lexer->err->text];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    lexer->bad = from;
    return err_set(lexer->err, ERR_INVALID, "%s", text);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int hex_digit(char c)
{
    if (is_digit(c))
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool is_name_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_name_char(char c)
{
    return is_name_start(c) || is_digit(c);
}

static void skip_blanks(struct lexer *lexer)
{
    while (lexer->at < lexer->end) {
        if (strchr(" \t\r\n\f", *lexer->at) && *lexer->at) {
            lexer->at++;
        } else if (lexer->end - lexer->at >= 2 && memcmp(lexer->at, "//", 2) == 0) {
            while (lexer->at < lexer->end && *lexer->at != '\n')
                lexer->at++;
        } else {
            return;
        }
    }
}

/* ---- numbers ---- */

static int lex_number(struct lexer *lexer, struct token *out)
{
    const char *from = lexer->at;
    int base = 10;
    uint64_t number = 0;

    if (lexer->end - lexer->at > 2 && from[0] == '0' && (from[1] == 'x' || from[1] == 'X') &&
        hex_digit(from[2]) >= 0) {
        base = 16;
        lexer->at += 2;
    }
    for (; lexer->at < lexer->end; lexer->at++) {
        int digit = hex_digit(*lexer->at);

        if (digit < 0 || digit >= base)
            break;
        if (__builtin_mul_overflow(number, (uint64_t)base, &number) ||
            __builtin_add_overflow(number, (uint64_t)digit, &number))
            return lex_bad(lexer, from, "the number does not fit into 64 bits");
    }
    if (lexer->at < lexer->end && (*lexer->at == 'u' || *lexer->at == 'U'))
        return lex_bad(lexer, from,
                       "unsigned numbers are not part of this subset; leave the u away");
    if (lexer->at < lexer->end &&
        (*lexer->at == 'e' || *lexer->at == 'E' ||
         (*lexer->at == '.' && lexer->end - lexer->at > 1 && is_digit(lexer->at[1]))))
        return lex_bad(lexer, from, "only whole numbers are part of this subset");
    if (lexer->at < lexer->end && is_name_char(*lexer->at))
        return lex_bad(lexer, lexer->at, "a name cannot begin right behind a number");
    *out = (struct token){.kind = TOKEN_INT, .number = number, .from = from};
    return 0;
}

/* ---- strings ---- */

struct literal {
    const char *from;
    bool raw;
    size_t quotes; /* 1 or 3 */
    char quote;
    char *out;
    size_t n;
};

static int put_character(struct lexer *lexer, struct literal *literal, uint32_t c)
{
    char *out = literal->out + literal->n;

    if (c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF))
        return lex_bad(lexer, literal->from, "an escape that is no Unicode character");
    if (c < 0x80) {
        out[0] = (char)c;
        literal->n += 1;
    } else if (c < 0x800) {
        out[0] = (char)(0xC0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3F));
        literal->n += 2;
    } else if (c < 0x10000) {
        out[0] = (char)(0xE0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 0x3F));
        out[2] = (char)(0x80 | (c & 0x3F));
        literal->n += 3;
    } else {
        out[0] = (char)(0xF0 | c >> 18);
        out[1] = (char)(0x80 | (c >> 12 & 0x3F));
        out[2] = (char)(0x80 | (c >> 6 & 0x3F));
        out[3] = (char)(0x80 | (c & 0x3F));
        literal->n += 4;
    }
    return 0;
}

static int put_digits(struct lexer *lexer, struct literal *literal, int count, int base)
{
    const char *from = lexer->at;
    uint32_t c = 0;

    for (int i = 0; i < count; i++, lexer->at++) {
        int digit = lexer->at < lexer->end ? hex_digit(*lexer->at) : -1;

        if (digit < 0 || digit >= base)
            return lex_bad(lexer, from, "an escape of this kind has %d %s digits", count,
                           base == 8 ? "octal" : "hexadecimal");
        c = c * (uint32_t)base + (uint32_t)digit;
    }
    if (base == 8 && c > 0377)
        return lex_bad(lexer, from, "an octal escape ends at \\377");
    return put_character(lexer, literal, c);
}

/* Behind the backslash. */
static int put_escape(struct lexer *lexer, struct literal *literal)
{
    static const char letters[] = "abfnrtv\\?\"'`";
    static const char meant[] = "\a\b\f\n\r\t\v\\?\"'`";
    const char *from = lexer->at;
    const char *known;
    char c;

    if (lexer->at == lexer->end)
        return lex_bad(lexer, literal->from, "the text has no end");
    c = *lexer->at++;
    known = c ? strchr(letters, c) : NULL;
    if (known)
        return put_character(lexer, literal, (unsigned char)meant[known - letters]);
    switch (c) {
    case 'x':
    case 'X':
        return put_digits(lexer, literal, 2, 16);
    case 'u':
        return put_digits(lexer, literal, 4, 16);
    case 'U':
        return put_digits(lexer, literal, 8, 16);
    default:
        break;
    }
    if (c < '0' || c > '3')
        return lex_bad(lexer, from - 1, "an escape CEL does not have; write \\\\ for a backslash");
    lexer->at--;
    return put_digits(lexer, literal, 3, 8);
}

static bool at_end_quotes(const struct lexer *lexer, const struct literal *literal)
{
    if ((size_t)(lexer->end - lexer->at) < literal->quotes)
        return false;
    for (size_t i = 0; i < literal->quotes; i++)
        if (lexer->at[i] != literal->quote)
            return false;
    return true;
}

static int lex_string(struct lexer *lexer, const char *from, bool raw, struct token *out)
{
    struct literal literal = {.from = from, .raw = raw, .quote = *lexer->at, .quotes = 1};
    size_t left = (size_t)(lexer->end - lexer->at);

    if (left >= 3 && lexer->at[1] == literal.quote && lexer->at[2] == literal.quote)
        literal.quotes = 3;
    lexer->at += literal.quotes;
    literal.out = lexer->decoded;
    while (!at_end_quotes(lexer, &literal)) {
        if (lexer->at == lexer->end ||
            (literal.quotes == 1 && (*lexer->at == '\n' || *lexer->at == '\r')))
            return lex_bad(lexer, from, "the text has no end");
        if (*lexer->at == '\\' && !literal.raw) {
            lexer->at++;
            if (put_escape(lexer, &literal) < 0)
                return -1;
            continue;
        }
        literal.out[literal.n++] = *lexer->at++;
    }
    lexer->at += literal.quotes;
    lexer->decoded += literal.n;
    *out = (struct token){
        .kind = TOKEN_STRING, .text = {literal.out, literal.n},
             .from = from
    };
    return 0;
}

/* r"…", b"…" and their like begin as a name does. */
static int lex_name(struct lexer *lexer, struct token *out)
{
    const char *from = lexer->at;
    size_t n;

    while (lexer->at < lexer->end && is_name_char(*lexer->at))
        lexer->at++;
    n = (size_t)(lexer->at - from);
    if (lexer->at < lexer->end && (*lexer->at == '"' || *lexer->at == '\'')) {
        if (n == 1 && (*from == 'r' || *from == 'R'))
            return lex_string(lexer, from, true, out);
        if (n <= 2 && strspn(from, "rRbB") >= n)
            return lex_bad(lexer, from, "bytes are not part of this subset; write a text");
    }
    *out = (struct token){
        .kind = TOKEN_NAME, .text = {from, n},
             .from = from
    };
    return 0;
}

static int lex_sign(struct lexer *lexer, struct token *out)
{
    static const char *const signs[] = {"==", "!=", "<=", ">=", "&&", "||"};
    const char *from = lexer->at;
    size_t left = (size_t)(lexer->end - from);

    for (size_t i = 0; i < COUNT(signs); i++)
        if (left >= 2 && memcmp(from, signs[i], 2) == 0) {
            lexer->at += 2;
            *out = (struct token){
                .kind = TOKEN_SIGN, .text = {from, 2},
                     .from = from
            };
            return 0;
        }
    if (*from == '=')
        return lex_bad(lexer, from, "write == to compare");
    if (*from == '&' || *from == '|')
        return lex_bad(lexer, from, "write %c%c", *from, *from);
    if (*from == 0 || !strchr("<>!+-*/%?:.,()[]{}", *from))
        return lex_bad(lexer, from, "a character that no expression has outside of a text");
    lexer->at++;
    *out = (struct token){
        .kind = TOKEN_SIGN, .text = {from, 1},
             .from = from
    };
    return 0;
}

int lex_next(struct lexer *lexer, struct token *out)
{
    skip_blanks(lexer);
    if (lexer->at == lexer->end) {
        *out = (struct token){.kind = TOKEN_END, .from = lexer->at};
        return 0;
    }
    if (is_digit(*lexer->at))
        return lex_number(lexer, out);
    if (lexer->end - lexer->at > 1 && *lexer->at == '.' && is_digit(lexer->at[1]))
        return lex_bad(lexer, lexer->at, "only whole numbers are part of this subset");
    if (*lexer->at == '"' || *lexer->at == '\'')
        return lex_string(lexer, lexer->at, false, out);
    if (is_name_start(*lexer->at))
        return lex_name(lexer, out);
    return lex_sign(lexer, out);
}
