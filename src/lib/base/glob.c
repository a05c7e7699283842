/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/glob.h"

#include "lib/base/limits.h"

#include <string.h>

enum token_kind {
    TOKEN_CHAR,
    TOKEN_ONE,
    TOKEN_CLASS,
    TOKEN_MANY,      /* * */
    TOKEN_MANY_DEEP, /* ** in paths */
};

struct token {
    enum token_kind kind;
    bool negated;
    uint32_t c;      /* CHAR: its bytes, packed */
    uint64_t set[2]; /* CLASS: ASCII only */
};

struct glob {
    enum glob_kind kind;
    struct token *tokens;
    size_t n;
    size_t plain_n;   /* leading CHAR tokens */
    struct str plain; /* and the bytes they stand for */
};

/* The character at *at as one number that no other character has; *at moves behind it. */
static uint32_t next_char(struct str s, size_t *at)
{
    size_t length = str_utf8_length((struct str){s.p + *at, s.n - *at});
    uint32_t c = 0;

    if (length == 0)
        length = 1;
    for (size_t i = 0; i < length; i++)
        c = c << 8 | (unsigned char)s.p[*at + i];
    *at += length;
    return c;
}

static bool set_has(const struct token *token, uint32_t c)
{
    return c < 128 && (token->set[c / 64] >> (c % 64) & 1);
}

static void set_add(struct token *token, uint32_t low, uint32_t high)
{
    for (uint32_t c = low; c <= high; c++)
        token->set[c / 64] |= 1ULL << (c % 64);
}

/* One member of a class, unescaped. */
static int read_member(struct str pattern, size_t *at, uint32_t *out, struct err *err)
{
    if (pattern.p[*at] == '\\')
        (*at)++;
    if (*at >= pattern.n)
        return err_set(err, ERR_INVALID, "\"[\" without its \"]\"");
    *out = next_char(pattern, at);
    if (*out >= 128)
        return err_set(err, ERR_INVALID, "a class [...] may list ASCII characters only");
    return 0;
}

/* *at stands behind the bracket, and moves behind the closing one. */
static int read_class(struct str pattern, size_t *at, struct token *token, struct err *err)
{
    bool first = true;

    token->kind = TOKEN_CLASS;
    if (*at < pattern.n && (pattern.p[*at] == '!' || pattern.p[*at] == '^')) {
        token->negated = true;
        (*at)++;
    }
    for (; *at < pattern.n && (first || pattern.p[*at] != ']'); first = false) {
        uint32_t low, high;

        if (read_member(pattern, at, &low, err) < 0)
            return -1;
        high = low;
        if (*at + 1 < pattern.n && pattern.p[*at] == '-' && pattern.p[*at + 1] != ']') {
            (*at)++;
            if (read_member(pattern, at, &high, err) < 0)
                return -1;
        }
        if (high < low)
            return err_set(err, ERR_INVALID, "range %c-%c in a class is backwards", (int)low,
                           (int)high);
        set_add(token, low, high);
    }
    if (*at >= pattern.n)
        return err_set(err, ERR_INVALID, "\"[\" without its \"]\"");
    (*at)++;
    return 0;
}

static int read_token(struct str pattern, enum glob_kind kind, size_t *at, struct token *token,
                      struct err *err)
{
    char c = pattern.p[*at];

    if (c == '?' || c == '*') {
        (*at)++;
        token->kind = c == '?' ? TOKEN_ONE : TOKEN_MANY;
        if (c == '*' && *at < pattern.n && pattern.p[*at] == '*' && kind == GLOB_PATH)
            token->kind = TOKEN_MANY_DEEP;
        while (c == '*' && *at < pattern.n && pattern.p[*at] == '*')
            (*at)++;
        return 0;
    }
    if (c == '[') {
        (*at)++;
        return read_class(pattern, at, token, err);
    }
    if (c == '\\' && ++*at >= pattern.n)
        return err_set(err, ERR_INVALID, "\"\\\" at the end of a pattern");
    token->kind = TOKEN_CHAR;
    token->c = next_char(pattern, at);
    return 0;
}

/* The bytes of the leading plain characters: what memcmp can decide before anything else. */
static void keep_plain(struct arena *mem, struct glob *glob)
{
    char *bytes;
    size_t n = 0;

    while (glob->plain_n < glob->n && glob->tokens[glob->plain_n].kind == TOKEN_CHAR)
        glob->plain_n++;
    bytes = arena_alloc(mem, 4 * glob->plain_n + 1);
    for (size_t i = 0; i < glob->plain_n; i++)
        for (int shift = 24; shift >= 0; shift -= 8)
            if (glob->tokens[i].c >> shift || shift == 0)
                bytes[n++] = (char)(glob->tokens[i].c >> shift & 0xFF);
    glob->plain = (struct str){bytes, n};
}

int glob_new(struct arena *mem, struct str pattern, enum glob_kind kind, const struct glob **out,
             struct err *err)
{
    struct glob *glob = arena_new(mem, struct glob);

    if (pattern.n > GLOB_TEXT_MAX)
        return err_set(err, ERR_LIMIT, "pattern of more than %d bytes", GLOB_TEXT_MAX);
    glob->kind = kind;
    glob->tokens = arena_array(mem, struct token, pattern.n + 1);
    for (size_t at = 0; at < pattern.n; glob->n++)
        if (read_token(pattern, kind, &at, &glob->tokens[glob->n], err) < 0)
            return -1;
    keep_plain(mem, glob);
    *out = glob;
    return 0;
}

bool glob_is_literal(const struct glob *glob)
{
    return glob->plain_n == glob->n;
}

size_t glob_plain_length(const struct glob *glob)
{
    return glob->plain_n;
}

struct str glob_plain(const struct glob *glob)
{
    return glob->plain;
}

#define STATE_WORDS ((GLOB_TEXT_MAX + 1 + 63) / 64)

/* The tokens that may come next; n itself means the pattern is used up. */
struct states {
    uint64_t bits[STATE_WORDS];
};

/* A `*` may stand for nothing, so what follows it is possible as well. */
static void states_add(const struct glob *glob, struct states *states, size_t i)
{
    states->bits[i / 64] |= 1ULL << (i % 64);
    while (i < glob->n && glob->tokens[i].kind >= TOKEN_MANY) {
        i++;
        states->bits[i / 64] |= 1ULL << (i % 64);
    }
}

static void states_step(const struct glob *glob, size_t i, uint32_t c, struct states *next)
{
    const struct token *token = &glob->tokens[i];
    bool separator = glob->kind == GLOB_PATH && c == '/';

    switch (token->kind) {
    case TOKEN_CHAR:
        if (token->c == c)
            states_add(glob, next, i + 1);
        break;
    case TOKEN_ONE:
        if (!separator)
            states_add(glob, next, i + 1);
        break;
    case TOKEN_CLASS:
        if (!separator && set_has(token, c) != token->negated)
            states_add(glob, next, i + 1);
        break;
    case TOKEN_MANY:
        if (!separator)
            states_add(glob, next, i);
        break;
    case TOKEN_MANY_DEEP:
        states_add(glob, next, i);
        break;
    }
}

static bool match_rest(const struct glob *glob, struct str text)
{
    struct states now, next;
    size_t words = glob->n / 64 + 1;

    memset(now.bits, 0, words * sizeof now.bits[0]);
    states_add(glob, &now, glob->plain_n);
    for (size_t at = 0; at < text.n;) {
        uint32_t c = next_char(text, &at);
        uint64_t any = 0;

        memset(next.bits, 0, words * sizeof next.bits[0]);
        for (size_t w = 0; w < words; w++)
            for (uint64_t left = now.bits[w]; left; left &= left - 1) {
                size_t i = w * 64 + (size_t)__builtin_ctzll(left);

                if (i < glob->n)
                    states_step(glob, i, c, &next);
            }
        for (size_t w = 0; w < words; w++)
            any |= now.bits[w] = next.bits[w];
        if (!any)
            return false;
    }
    return now.bits[glob->n / 64] >> (glob->n % 64) & 1;
}

bool glob_match(const struct glob *glob, struct str text)
{
    size_t left = glob->n - glob->plain_n;

    if (text.n < glob->plain.n ||
        (glob->plain.n && memcmp(text.p, glob->plain.p, glob->plain.n) != 0))
        return false;
    if (left == 0)
        return text.n == glob->plain.n;
    if (left == 1 && (glob->tokens[glob->plain_n].kind == TOKEN_MANY_DEEP ||
                      (glob->tokens[glob->plain_n].kind == TOKEN_MANY && glob->kind == GLOB_WORD)))
        return true;
    return match_rest(glob, (struct str){text.p + glob->plain.n, text.n - glob->plain.n});
}

static char class_example(const struct token *token)
{
    static const char order[] = "xabcdefghijklmnopqrstuvwyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";

    for (size_t i = 0; order[i]; i++)
        if (set_has(token, (unsigned char)order[i]) != token->negated)
            return order[i];
    for (unsigned char c = '!'; c < 127; c++)
        if (set_has(token, c) != token->negated)
            return (char)c;
    return '\0';
}

/* Its bytes are packed, the first one highest. */
static size_t char_bytes(uint32_t c, char out[4])
{
    size_t n = 0;

    for (int shift = 24; shift >= 0; shift -= 8)
        if (n || c >> shift & 0xffU || shift == 0)
            out[n++] = (char)(c >> shift & 0xffU);
    return n;
}

bool glob_example(const struct glob *glob, const char *many, char *out, size_t size)
{
    size_t at = 0;

    for (size_t i = 0; i < glob->n; i++) {
        const struct token *token = &glob->tokens[i];
        char bytes[4] = {'x'};
        const char *piece = bytes;
        size_t n = 1;

        switch (token->kind) {
        case TOKEN_CHAR:
            n = char_bytes(token->c, bytes);
            break;
        case TOKEN_ONE:
            break;
        case TOKEN_CLASS:
            bytes[0] = class_example(token);
            break;
        case TOKEN_MANY:
        case TOKEN_MANY_DEEP:
            piece = many;
            n = strlen(many);
            break;
        }
        if (at + n >= size)
            return false;
        memcpy(out + at, piece, n);
        at += n;
    }
    out[at] = '\0';
    return glob_match(glob, (struct str){out, at});
}
