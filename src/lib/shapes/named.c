/* SPDX-License-Identifier: Apache-2.0 */

/* What is a secret because of what it is called. Each byte is looked at a few times at most,
 * however often a name or a sign is repeated. */

#include "lib/shapes/shapes.h"

#include <string.h>
#include <strings.h>

#define NAME_MAX_BYTES 64U

static bool is_alnum(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

static bool is_name(char c)
{
    return is_alnum(c) || c == '_' || c == '-' || c == '.';
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* What a name ends with that has a secret; "max_tokens" has none. */
bool shape_is_secret_name(struct str name)
{
    static const char *const ends[] = {
        "password",   "passwd",     "passphrase", "secret",      "token",       "credential",
        "api_key",    "apikey",     "api-key",    "access_key",  "access-key",  "accesskey",
        "secret_key", "secret-key", "secretkey",  "private_key", "private-key", "accountkey"};

    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        size_t n = strlen(ends[i]);

        if (name.n >= n && strncasecmp(name.p + name.n - n, ends[i], n) == 0)
            return true;
    }
    return false;
}

/* The name that ends at end, which may stand in quotes. */
static struct str name_before(struct str text, size_t from, size_t end)
{
    size_t start;

    while (end > from && is_blank(text.p[end - 1]))
        end--;
    if (end > from && (text.p[end - 1] == '"' || text.p[end - 1] == '\''))
        end--;
    for (start = end; start > from && end - start < NAME_MAX_BYTES && is_name(text.p[start - 1]);)
        start--;
    return (struct str){text.p + start, end - start};
}

/* Letters only: a word of prose. */
static bool is_word(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!((p[i] >= 'a' && p[i] <= 'z') || (p[i] >= 'A' && p[i] <= 'Z') || p[i] == '.'))
            return false;
    return true;
}

/* The value at i: in quotes up to the next one, else up to what ends a word. */
static struct str value_at(struct str text, size_t i, bool *is_quoted)
{
    char quote = '\0';
    size_t end;

    if (i < text.n && (text.p[i] == '"' || text.p[i] == '\'' || text.p[i] == '`'))
        quote = text.p[i++];
    for (end = i; end < text.n && text.p[end] != '\n'; end++)
        if (quote ? text.p[end] == quote
                  : (unsigned char)text.p[end] <= ' ' || strchr("\"'`,;&)}]<>", text.p[end]))
            break;
    *is_quoted = quote != '\0';
    return (struct str){text.p + i, end - i};
}

static bool hit(struct str text, struct str value, struct shape_hit *out)
{
    if (value.n == 0 || value.p[0] == '[' || value.p[0] == '$')
        return false; /* covered already, or where it comes from */
    *out = (struct shape_hit){(size_t)(value.p - text.p), value.n, SHAPE_TOKEN};
    return true;
}

/* At '=' or ':'. */
static bool match_assigned(struct str text, size_t from, size_t at, struct shape_hit *out)
{
    size_t i = at + 1;
    bool is_quoted;
    struct str value;

    if (!shape_is_secret_name(name_before(text, from, at)))
        return false;
    while (i < text.n && is_blank(text.p[i]))
        i++;
    value = value_at(text, i, &is_quoted);
    if (text.p[at] == ':' && !is_quoted && is_word(value.p, value.n))
        return false;
    return hit(text, value, out);
}

/* "--token VALUE", at the blank. */
static bool match_option(struct str text, size_t from, size_t at, struct shape_hit *out)
{
    struct str name = name_before(text, from, at);
    bool is_quoted;
    struct str value;

    if (name.n < 3 || name.p[0] != '-' || name.p[1] != '-' || !shape_is_secret_name(name))
        return false;
    value = value_at(text, at + 1, &is_quoted);
    return value.n && value.p[0] != '-' && hit(text, value, out);
}

/* "://user:password@", at the second colon: to the last @ before the path. */
static bool match_url(struct str text, size_t from, size_t at, struct shape_hit *out)
{
    size_t user = at, n = 0;

    while (user > from && at - user < NAME_MAX_BYTES &&
           (is_name(text.p[user - 1]) || strchr("~+%!*", text.p[user - 1])))
        user--;
    if (user < from + 3 || memcmp(text.p + user - 3, "://", 3) != 0)
        return false;
    for (size_t i = at + 1;
         i < text.n && (unsigned char)text.p[i] > ' ' && !strchr("/\"'`<>", text.p[i]); i++)
        n = text.p[i] == '@' ? i - at - 1 : n;
    return n && hit(text, (struct str){text.p + at + 1, n}, out);
}

bool shape_named_next(struct str text, size_t from, struct shape_hit *out)
{
    for (size_t i = from; i < text.n; i++) {
        char c = text.p[i];

        if ((c == '=' || c == ':') && match_assigned(text, from, i, out))
            return true;
        if (c == ':' && match_url(text, from, i, out))
            return true;
        if (is_blank(c) && i > from && is_name(text.p[i - 1]) && match_option(text, from, i, out))
            return true;
    }
    return false;
}
