/* SPDX-License-Identifier: Apache-2.0 */

/* What a secret looks like when nothing beside it says so. */

#include "lib/shapes/shapes.h"

#include <string.h>
#include <strings.h>

#define KEY_BLOCK_MAX 16384U
#define KEY_LABEL_MAX 64U
#define ALIAS "OPENSHELL-RESOLVE-ENV-"
#define ALIAS_PREFIX_MAX 16U /* "sk-proj-" and the like, before the alias */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

static bool is_alnum(char c)
{
    return is_digit(c) || is_upper(c) || (c >= 'a' && c <= 'z');
}

static bool is_word(char c) /* alnum, '_' and '-' */
{
    return is_alnum(c) || c == '_' || c == '-';
}

static bool is_under(char c)
{
    return is_alnum(c) || c == '_';
}

static bool is_capital(char c)
{
    return is_upper(c) || is_digit(c);
}

static bool is_bearer(char c)
{
    return is_word(c) || c == '.' || c == '~' || c == '+' || c == '/' || c == '=';
}

/* A doubtful place is looked at this far, so that a text full of them takes no longer than its
 * length times this; what is found is then taken whole. */
#define LOOK_MAX 128U
#define WHOLE ((size_t)-1)

static size_t run_of(struct str text, size_t at, bool (*is_in)(char c), size_t max)
{
    size_t n = 0;

    while (n < max && at + n < text.n && is_in(text.p[at + n]))
        n++;
    return n;
}

/* Words with hyphens between them, as in the names of packages and classes: no digit, no capital,
 * and no piece longer than words are. */
static bool is_wordy(const char *p, size_t n)
{
    size_t piece = 0;

    for (size_t i = 0; i < n; i++) {
        if (is_digit(p[i]) || is_upper(p[i]))
            return false;
        piece = is_alnum(p[i]) ? piece + 1 : 0;
        if (piece >= 20)
            return false;
    }
    return true;
}

/* A letter or digit before it makes it part of a longer word, unless that is an escape. */
static bool is_at_border(struct str text, size_t at)
{
    if (at == 0 || !is_alnum(text.p[at - 1]))
        return true;
    if (at >= 2 && text.p[at - 2] == '\\')
        return true;
    return at >= 3 && text.p[at - 3] == '%';
}

/* ---- by prefix ---- */

static const struct shape {
    const char *prefix;
    bool (*is_in)(char c); /* what may follow */
    size_t least;          /* and how much of it must */
    size_t most;           /* exactly so much when not 0, and then nothing more */
    bool at_border;        /* the prefix alone is too common inside of words */
    bool no_words;
} shapes[] = {
    {"nvapi-",      is_word,    10, 0,  false, false},
    {"nvcf-",       is_word,    10, 0,  false, false},
    {"ghp_",        is_under,   10, 0,  false, false},
    {"gho_",        is_under,   20, 0,  true,  false},
    {"ghu_",        is_under,   20, 0,  true,  false},
    {"ghs_",        is_under,   20, 0,  true,  false},
    {"ghr_",        is_under,   20, 0,  true,  false},
    {"github_pat_", is_under,   10, 0,  false, false},
    {"sk-proj-",    is_word,    10, 0,  false, false},
    {"sk-ant-",     is_word,    10, 0,  false, false},
    {"sk-",         is_word,    20, 0,  true,  true },
    {"sk_live_",    is_under,   10, 0,  true,  false},
    {"rk_live_",    is_under,   10, 0,  true,  false},
    {"xoxb-",       is_word,    10, 0,  false, false},
    {"xoxp-",       is_word,    10, 0,  false, false},
    {"xoxa-",       is_word,    10, 0,  false, false},
    {"xoxs-",       is_word,    10, 0,  false, false},
    {"xapp-",       is_word,    10, 0,  true,  true },
    {"AKIA",        is_capital, 16, 16, true,  false},
    {"ASIA",        is_capital, 16, 16, true,  false},
    {"AIza",        is_word,    35, 35, true,  false},
    {"hf_",         is_alnum,   10, 0,  true,  true },
    {"glpat-",      is_word,    10, 0,  false, false},
    {"gsk_",        is_alnum,   10, 0,  true,  true },
    {"pypi-",       is_word,    10, 0,  true,  true },
    {"npm_",        is_alnum,   36, 36, true,  false},
    {"tvly-",       is_word,    10, 0,  true,  true },
    {"lsv2_pt_",    is_under,   10, 0,  false, false},
    {"lsv2_sk_",    is_under,   10, 0,  false, false},
    {"brig_",       is_under,   77, 77, true,  false}, /* of Brig itself (lib/access) */
};

/* "sk-OPENSHELL-RESOLVE-ENV-NAME" only looks like one. */
static bool is_alias(const char *p, size_t n)
{
    const char *mark = memmem(p, n, ALIAS, strlen(ALIAS));

    return mark && (size_t)(mark - p) <= ALIAS_PREFIX_MAX && n > (size_t)(mark - p) + strlen(ALIAS);
}

static bool match_shape(struct str text, size_t at, const struct shape *shape,
                        struct shape_hit *out)
{
    size_t prefix_n = strlen(shape->prefix), n;

    if (text.n - at < prefix_n + shape->least || memcmp(text.p + at, shape->prefix, prefix_n) != 0)
        return false;
    if (shape->at_border && !is_at_border(text, at))
        return false;
    n = run_of(text, at + prefix_n, shape->is_in, LOOK_MAX);
    if (n < shape->least || (shape->most && n != shape->most))
        return false;
    if ((shape->no_words && is_wordy(text.p + at + prefix_n, n)) ||
        is_alias(text.p + at, run_of(text, at, is_word, LOOK_MAX)))
        return false;
    n = run_of(text, at + prefix_n, shape->is_in, WHOLE);
    *out = (struct shape_hit){at, prefix_n + n, SHAPE_TOKEN};
    return true;
}

static bool match_prefixes(struct str text, size_t at, struct shape_hit *out)
{
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        if (shapes[i].prefix[0] == text.p[at] && match_shape(text, at, &shapes[i], out))
            return true;
    return false;
}

/* ---- by structure ---- */

/* 123456789:AA… of Telegram, seen at the colon. */
static bool match_telegram(struct str text, size_t at, size_t from, struct shape_hit *out)
{
    size_t digits = 0, n = run_of(text, at + 1, is_word, 36);

    while (digits < 11 && digits < at - from && is_digit(text.p[at - digits - 1]))
        digits++;
    if (digits < 8 || digits > 10 || n != 35)
        return false;
    *out = (struct shape_hit){at - digits, digits + 1 + n, SHAPE_TOKEN};
    return true;
}

/* 24.6.27 of Discord, seen at the first point. */
static bool match_discord(struct str text, size_t at, size_t from, struct shape_hit *out)
{
    size_t before = 0, middle = run_of(text, at + 1, is_word, 7), last;
    bool digit = false, upper = false;

    if (middle != 6 || at + 7 >= text.n || text.p[at + 7] != '.')
        return false;
    while (before < at - from && before <= 28 && is_word(text.p[at - before - 1]))
        before++;
    last = run_of(text, at + 8, is_word, 41);
    if (before < 24 || before > 28 || last < 27 || last > 40)
        return false;
    for (size_t i = at - before; i < at + 8 + last; i++) {
        digit |= is_digit(text.p[i]);
        upper |= is_upper(text.p[i]);
    }
    if (!digit || !upper)
        return false;
    *out = (struct shape_hit){at - before, before + 8 + last, SHAPE_TOKEN};
    return true;
}

/* Three parts of base64, the first two of which begin as JSON objects do. */
static bool match_jwt(struct str text, size_t at, struct shape_hit *out)
{
    size_t head, body, sign;

    if (text.n - at < 30 || memcmp(text.p + at, "eyJ", 3) != 0 || !is_at_border(text, at))
        return false;
    head = run_of(text, at, is_word, 4 * LOOK_MAX);
    if (head < 10 || at + head + 4 >= text.n || memcmp(text.p + at + head, ".eyJ", 4) != 0)
        return false;
    body = run_of(text, at + head + 1, is_word, WHOLE);
    if (at + head + 1 + body >= text.n || text.p[at + head + 1 + body] != '.')
        return false;
    sign = run_of(text, at + head + body + 2, is_word, WHOLE);
    if (sign < 10)
        return false;
    *out = (struct shape_hit){at, head + body + sign + 2, SHAPE_TOKEN};
    return true;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static bool starts_with_case(struct str text, size_t at, const char *word)
{
    size_t n = strlen(word);

    return text.n - at >= n && strncasecmp(text.p + at, word, n) == 0;
}

/* What stands behind a scheme of authentication. A placeholder has characters a token has not. */
static bool match_credential(struct str text, size_t at, size_t least, struct shape_hit *out)
{
    size_t blanks = run_of(text, at, is_blank, LOOK_MAX), n;

    if (!blanks)
        return false;
    at += blanks;
    n = run_of(text, at, is_bearer, WHOLE);
    if (n < least || is_alias(text.p + at, n) || (at + n < text.n && text.p[at + n] == ':'))
        return false;
    *out = (struct shape_hit){at, n, SHAPE_BEARER};
    return true;
}

static bool match_bearer(struct str text, size_t at, struct shape_hit *out)
{
    if (!starts_with_case(text, at, "bearer") || !is_at_border(text, at) ||
        !match_credential(text, at + strlen("bearer"), 10, out))
        return false;
    return !is_wordy(text.p + out->at, out->n < LOOK_MAX ? out->n : LOOK_MAX);
}

/* Authorization: Basic …, with or without quotes around the name. */
static bool match_authorization(struct str text, size_t at, struct shape_hit *out)
{
    static const char *const schemes[] = {"bearer", "basic", "token", "apikey"};

    if (!starts_with_case(text, at, "authorization"))
        return false;
    at += strlen("authorization");
    while (at < text.n && (is_blank(text.p[at]) || strchr("\"'\\:=,", text.p[at])) && text.p[at])
        at++;
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++)
        if (starts_with_case(text, at, schemes[i]) &&
            match_credential(text, at + strlen(schemes[i]), 8, out))
            return true;
    return false;
}

/* ---- PEM ---- */

static bool is_base64(char c)
{
    return is_alnum(c) || c == '+' || c == '/' || c == '=';
}

/* Base64 behind at, with line ends, escaped ones and quotes between; *end is behind it. */
static size_t base64_behind(struct str text, size_t at, bool binary, size_t *end)
{
    size_t count = 0, i = at;

    for (; i < text.n; i++) {
        char c = text.p[i];

        if (is_base64(c))
            count++;
        else if (c == '\0' || !strchr(binary ? "\r\n" : "\r\n\t \\\"',", c))
            break;
    }
    *end = i;
    return count;
}

static bool match_private_key(struct str text, size_t at, bool binary, struct shape_hit *out)
{
    static const char begin[] = "-----BEGIN ";
    struct str label = {text.p + at, text.n - at};
    const char *close, *end;
    size_t body, stop, window;

    if (!str_starts(label, begin))
        return false;
    label = (struct str){label.p + strlen(begin), label.n - strlen(begin)};
    close = memmem(label.p, label.n < KEY_LABEL_MAX ? label.n : KEY_LABEL_MAX, "-----", 5);
    if (!close || !memmem(label.p, (size_t)(close - label.p), "PRIVATE KEY", 11))
        return false;
    body = (size_t)(close - text.p) + 5;
    if (base64_behind(text, body, binary, &stop) >= 40 && binary) {
        *out = (struct shape_hit){at, stop - at, SHAPE_PRIVATE_KEY};
        return true;
    }
    if (binary)
        return false;
    window = text.n - body < KEY_BLOCK_MAX ? text.n - body : KEY_BLOCK_MAX;
    end = memmem(text.p + body, window, "-----END ", 9);
    close = end ? memmem(end + 9, (size_t)(text.p + text.n - end - 9), "-----", 5) : NULL;
    if (close && (size_t)(close - end) < KEY_LABEL_MAX + 9) {
        *out = (struct shape_hit){at, (size_t)(close - text.p) + 5 - at, SHAPE_PRIVATE_KEY};
        return true;
    }
    if (base64_behind(text, body, false, &stop) < 40)
        return false; /* a mention of such a block, as in programs that read them */
    *out = (struct shape_hit){at, stop - at, SHAPE_PRIVATE_KEY};
    return true;
}

/* ---- all of them ---- */

bool shape_next(struct str text, size_t from, bool binary, struct shape_hit *out)
{
    for (size_t i = from; i < text.n; i++) {
        bool hit = false;

        switch (text.p[i]) {
        case 'n':
        case 'g':
        case 's':
        case 'r':
        case 'x':
        case 'h':
        case 'p':
        case 't':
        case 'l':
            hit = match_prefixes(text, i, out);
            break;
        case 'A':
        case 'a':
            hit = match_prefixes(text, i, out) || match_authorization(text, i, out);
            break;
        case 'e':
            hit = match_jwt(text, i, out);
            break;
        case 'B':
        case 'b':
            hit = match_prefixes(text, i, out) || match_bearer(text, i, out);
            break;
        case ':':
            hit = match_telegram(text, i, from, out);
            break;
        case '.':
            hit = match_discord(text, i, from, out);
            break;
        case '-':
            hit = match_private_key(text, i, binary, out);
            break;
        default:
            break;
        }
        if (hit)
            return true;
    }
    return false;
}
