/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/image/challenge.h"

#include <string.h>
#include <strings.h>

static bool is_token_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("!#$%&'*+-.^_`|~", c));
}

static struct str take_token(struct str *rest)
{
    struct str token = {rest->p, 0};

    while (token.n < rest->n && is_token_char(rest->p[token.n]))
        token.n++;
    rest->p += token.n;
    rest->n -= token.n;
    return token;
}

static void skip(struct str *rest, const char *chars)
{
    while (rest->n && rest->p[0] && strchr(chars, rest->p[0])) {
        rest->p++;
        rest->n--;
    }
}

/* A token, or a text in quotes without escapes: addresses and service names need none. */
static int take_value(struct str *rest, struct str *out, struct err *err)
{
    const char *end;

    if (!rest->n || rest->p[0] != '"') {
        *out = take_token(rest);
        return 0;
    }
    end = memchr(rest->p + 1, '"', rest->n - 1);
    if (!end || memchr(rest->p, '\\', (size_t)(end - rest->p)))
        return err_set(err, ERR_INVALID, "the registry's question who we are cannot be read");
    *out = (struct str){rest->p + 1, (size_t)(end - rest->p) - 1};
    rest->n -= (size_t)(end + 1 - rest->p);
    rest->p = end + 1;
    return 0;
}

static bool is(struct str s, const char *word)
{
    return s.n == strlen(word) && strncasecmp(s.p, word, s.n) == 0;
}

int challenge_parse(struct arena *mem, struct str header, struct challenge *out, struct err *err)
{
    struct challenge challenge = {.realm = "", .service = ""};
    struct str rest = str_trim(header);
    struct str scheme = take_token(&rest);

    challenge.bearer = is(scheme, "Bearer");
    if (!challenge.bearer && !is(scheme, "Basic"))
        return err_set(err, ERR_INVALID,
                       "the registry asks who we are in a way that is not known: \"%.60s\"",
                       arena_text(mem, header));
    skip(&rest, " \t");
    while (rest.n) {
        struct str name = take_token(&rest), value = {NULL, 0};

        if (!name.n || !rest.n || rest.p[0] != '=')
            return err_set(err, ERR_INVALID, "the registry's question who we are cannot be read");
        rest.p++;
        rest.n--;
        if (take_value(&rest, &value, err) < 0)
            return -1;
        if (is(name, "realm"))
            challenge.realm = arena_text(mem, value);
        if (is(name, "service"))
            challenge.service = arena_text(mem, value);
        skip(&rest, " \t,");
    }
    if (challenge.bearer && !*challenge.realm)
        return err_set(err, ERR_INVALID, "the registry names no token service");
    *out = challenge;
    return 0;
}

const char *url_escape(struct arena *mem, const char *text)
{
    size_t n = strlen(text), at = 0;
    char *out = arena_alloc(mem, 3 * n + 1);

    for (size_t i = 0; i < n; i++) {
        static const char hex[] = "0123456789ABCDEF";
        unsigned char c = (unsigned char)text[i];

        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
            strchr("-._~", c)) {
            out[at++] = (char)c;
            continue;
        }
        out[at++] = '%';
        out[at++] = hex[c >> 4];
        out[at++] = hex[c & 15];
    }
    return out;
}
