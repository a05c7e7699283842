/* SPDX-License-Identifier: Apache-2.0 */
/* Single things of a request against single things of a rule. */
#include "lib/egress/rules-judge.h"
#include "lib/http/http.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void opine(struct opinion *out, enum stance stance, enum net_reason reason, unsigned line,
           const char *fmt, ...)
{
    va_list args;

    out->stance = stance;
    out->reason = reason;
    out->line = line;
    va_start(args, fmt);
    (void)vsnprintf(out->text, sizeof out->text, fmt, args);
    va_end(args);
}

struct str header_of(const struct net_request *request, const char *name)
{
    for (size_t i = 0; i < request->header_n; i++)
        if (http_name_is(request->headers[i].name, name))
            return request->headers[i].value;
    return (struct str){NULL, 0};
}

/* What may GET may HEAD, which gives less. */
bool is_method(struct str rule, struct str method)
{
    return rule.n == 0 || str_is(rule, "*") || str_eq(rule, method) ||
           (str_is(rule, "GET") && str_is(method, "HEAD"));
}

/* ---- queries ---- */

struct pairs {
    struct str rest;
    char memory[JUDGED_QUERY_MAX];
};

static bool next_pair(struct pairs *pairs, struct http_header *out)
{
    return pairs->rest.n && pairs->rest.n <= sizeof pairs->memory &&
           http_query_next(&pairs->rest, pairs->memory, out) == 1;
}

static bool is_wanted(const struct want *wants, struct str key)
{
    for (; wants; wants = wants->next)
        if (str_eq(wants->key, key))
            return true;
    return false;
}

static bool has_pair(const struct want *want, struct str query, bool every)
{
    struct pairs pairs;
    struct http_header pair;
    bool any = false;

    pairs.rest = query;
    while (next_pair(&pairs, &pair)) {
        bool matches;

        if (!str_eq(pair.name, want->key))
            continue;
        matches = matcher_has(&want->matcher, pair.value);
        if (every && !matches)
            return false;
        any = any || matches;
    }
    return any;
}

bool query_allows(const struct rule *rule, struct str query)
{
    struct pairs pairs;
    struct http_header pair;

    /* Some servers take ";" for "&", and would see keys that nobody looked at. */
    if ((rule->query || rule->is_strict) && memchr(query.p ? query.p : "", ';', query.n))
        return false;
    for (const struct want *want = rule->query; want; want = want->next)
        if (!has_pair(want, query, true))
            return false;
    pairs.rest = query;
    while (rule->is_strict && next_pair(&pairs, &pair))
        if (!is_wanted(rule->query, pair.name))
            return false;
    return true;
}

bool query_denies(const struct rule *rule, struct str query)
{
    if (rule->query && memchr(query.p ? query.p : "", ';', query.n))
        return true;
    for (const struct want *want = rule->query; want; want = want->next)
        if (!has_pair(want, query, false))
            return false;
    return true;
}

/* ---- documents ---- */

static bool is_json_type(struct str type)
{
    struct str rest = type, media;
    char lower[128];

    if (type.n == 0)
        return false;
    media = str_trim(str_cut(&rest, ';'));
    if (media.n == 0 || media.n > sizeof lower)
        return false;
    for (size_t i = 0; i < media.n; i++)
        lower[i] = (char)(media.p[i] >= 'A' && media.p[i] <= 'Z' ? media.p[i] | 0x20 : media.p[i]);
    media.p = lower;
    return str_is(media, "application/json") || str_ends(media, "+json");
}

bool document_of(struct judged *judged)
{
    struct str coding = header_of(judged->request, "content-encoding");
    struct mark where;
    struct err err;

    if (judged->state != DOCUMENT_UNREAD)
        return judged->state == DOCUMENT_READ;
    judged->state = DOCUMENT_BAD;
    if (!is_json_type(header_of(judged->request, "content-type"))) {
        judged->fault = "its Content-Type is not JSON";
        return false;
    }
    if (coding.n && !str_is(coding, "identity") && !str_is(coding, "gzip")) {
        judged->fault = "its Content-Encoding is not understood";
        return false;
    }
    if (json_parse(judged->mem, *judged->body, &judged->document, &where, &err) < 0) {
        judged->fault = arena_text(judged->mem, str_of(err.text));
        return false;
    }
    judged->state = DOCUMENT_READ;
    return true;
}

static bool is_value(const struct want *want, const struct json *value)
{
    AUTO_BUF struct buf text = BUF(GLOB_TEXT_MAX);
    char number[64];
    struct err err;
    double d;

    switch (want->kind) {
    case WANT_GLOB:
        return value->kind == JSON_STRING && matcher_has(&want->matcher, value->text);
    case WANT_EQUAL:
        return value->kind != JSON_ARRAY && value->kind != JSON_OBJECT &&
               json_canonical(value, &text, &err) == 0 && str_eq(buf_str(&text), want->equal);
    case WANT_RANGE:
        if (value->kind != JSON_NUMBER || value->text.n >= sizeof number)
            return false;
        (void)snprintf(number, sizeof number, STR_FMT, STR_ARG(value->text));
        d = strtod(number, NULL);
        return d >= want->low && d <= want->high;
    case WANT_ABSENT:
        return false;
    }
    return false;
}

/* A list is what all of its members are (allow), or what one of them is (deny). */
static bool value_matches(const struct want *want, const struct json *value, bool every)
{
    bool any = false;

    if (!value || want->kind == WANT_ABSENT)
        return !value && want->kind == WANT_ABSENT;
    if (value->kind != JSON_ARRAY)
        return is_value(want, value);
    json_each(item, value)
    {
        bool matches = is_value(want, item);

        if (every && !matches)
            return false;
        any = any || matches;
    }
    return any;
}

/* Whether some pointer begins at this member of the root. */
static bool is_member_wanted(const struct want *wants, struct str key)
{
    for (; wants; wants = wants->next) {
        struct str rest = wants->key;
        char name[GLOB_TEXT_MAX];
        size_t n = 0;

        if (rest.n == 0)
            return true; /* the whole document */
        rest = (struct str){rest.p + 1, rest.n - 1};
        rest = str_cut(&rest, '/');
        for (size_t i = 0; i < rest.n && n < sizeof name; i++) {
            char c = rest.p[i];

            if (c == '~' && i + 1 < rest.n)
                c = rest.p[++i] == '1' ? '/' : '~';
            name[n++] = c;
        }
        if (str_eq((struct str){name, n}, key))
            return true;
    }
    return false;
}

bool wants_allow(const struct want *wants, const struct json *root, bool is_strict)
{
    for (const struct want *want = wants; want; want = want->next)
        if (!value_matches(want, json_at(root, want->key.p), true))
            return false;
    if (!is_strict)
        return true;
    if (root->kind != JSON_OBJECT)
        return wants != NULL;
    json_each(member, root)
    {
        if (!is_member_wanted(wants, member->key))
            return false;
    }
    return true;
}

bool wants_deny(const struct want *wants, const struct json *root)
{
    for (const struct want *want = wants; want; want = want->next)
        if (!value_matches(want, json_at(root, want->key.p), false))
            return false;
    return true;
}
