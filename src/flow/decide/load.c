/* SPDX-License-Identifier: Apache-2.0 */
#include "flow/decide/load.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SHOWN_MAX 80
#define KEYS_SHOWN_MAX 260

int load_bad(struct load *load, struct mark mark, const char *fmt, ...)
{
    char text[sizeof load->err->text];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    load->where = mark;
    return err_set(load->err, ERR_INVALID, "line %u, column %u: %s", mark.line, mark.column, text);
}

void load_not_enforceable(struct load *load, struct mark mark, const char *what)
{
    struct demand *demand = &load->policy->demand;

    if (demand->not_enforceable)
        return;
    demand->not_enforceable =
        arena_printf(load->mem, "line %u: %s is not enforceable yet", mark.line, what);
    load->policy->not_enforceable_line = mark.line;
}

const char *shown(struct load *load, struct str s)
{
    AUTO_BUF struct buf out = BUF(4 * SHOWN_MAX + 4);
    struct err err;
    bool cut = s.n > SHOWN_MAX;

    if (cut) {
        s.n = SHOWN_MAX;
        while (s.n && (s.p[s.n] & 0xC0) == 0x80) /* not in the middle of a character */
            s.n--;
    }
    if (text_escape(s, &out, &err) < 0 || (cut && buf_add_text(&out, "...", &err) < 0))
        return "...";
    return arena_text(load->mem, buf_str(&out));
}

static const char *kind_name(enum json_kind kind)
{
    static const char *const names[] = {
        [JSON_NULL] = "empty",    [JSON_BOOL] = "true or false", [JSON_NUMBER] = "a number",
        [JSON_STRING] = "a text", [JSON_ARRAY] = "a list",       [JSON_OBJECT] = "a map",
    };

    return names[kind];
}

/* "a text or a list" */
static const char *kinds_named(struct load *load, unsigned takes)
{
    const char *text = NULL;

    for (unsigned kind = JSON_BOOL; kind <= JSON_OBJECT; kind++) {
        if (!(takes & 1U << kind))
            continue;
        if (text)
            text = arena_printf(load->mem, "%s or %s", text, kind_name((enum json_kind)kind));
        else
            text = kind_name((enum json_kind)kind);
    }
    return text;
}

int load_kind(struct load *load, const struct json *value, unsigned takes, const char *what)
{
    if (takes & 1U << value->kind)
        return 0;
    if (value->kind == JSON_NULL)
        return load_bad(load, value->mark, "%s is empty; it must be %s", what,
                        kinds_named(load, takes));
    return load_bad(load, value->mark, "%s must be %s, not %s", what, kinds_named(load, takes),
                    kind_name(value->kind));
}

/* Levenshtein distance, for short words; anything long is far. */
static size_t distance(struct str a, struct str b)
{
    size_t row[48];

    if (a.n >= COUNT(row) || b.n >= COUNT(row))
        return COUNT(row);
    for (size_t j = 0; j <= b.n; j++)
        row[j] = j;
    for (size_t i = 1; i <= a.n; i++) {
        size_t diagonal = row[0];

        row[0] = i;
        for (size_t j = 1; j <= b.n; j++) {
            size_t best = diagonal + (a.p[i - 1] != b.p[j - 1]);

            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            diagonal = row[j];
            row[j] = best;
        }
    }
    return row[b.n];
}

static const char *nearest(struct str key, const struct field *fields, size_t n)
{
    const char *best = NULL;
    size_t best_distance = 3;

    for (size_t i = 0; i < n; i++) {
        size_t d = distance(key, str_of(fields[i].key));

        if (d < best_distance) {
            best_distance = d;
            best = fields[i].key;
        }
    }
    return best;
}

static int unknown_key(struct load *load, const struct json *member, const struct field *fields,
                       size_t n)
{
    const char *guess = nearest(member->key, fields, n);
    const char *known = "";
    const char *name = shown(load, member->key);

    for (size_t i = 0; i < n; i++)
        known = arena_printf(load->mem, "%s%s%s", known, i ? ", " : "", fields[i].key);
    if (strlen(known) <= KEYS_SHOWN_MAX)
        return load_bad(load, member->key_mark, "unknown key \"%s\"; known keys here: %s", name,
                        known);
    if (guess)
        return load_bad(load, member->key_mark, "unknown key \"%s\"; did you mean \"%s\"?", name,
                        guess);
    return load_bad(load, member->key_mark,
                    "unknown key \"%s\"; the policy reference lists the %zu keys known here", name,
                    n);
}

static int load_member(struct load *load, const struct json *member, const struct field *fields,
                       size_t n, void *into)
{
    for (size_t i = 0; i < n; i++) {
        const struct json **slot = (const struct json **)(void *)((char *)into + fields[i].offset);
        const char *what;

        if (!str_is(member->key, fields[i].key))
            continue;
        what = arena_printf(load->mem, "\"%s\"", fields[i].key);
        if (load_kind(load, member, fields[i].takes, what) < 0)
            return -1;
        *slot = member->kind == JSON_NULL ? NULL : member;
        return 0;
    }
    return unknown_key(load, member, fields, n);
}

int load_map(struct load *load, const struct json *map, const struct field *fields, size_t n,
             void *into)
{
    json_each(member, map)
    {
        if (load_member(load, member, fields, n, into) < 0)
            return -1;
    }
    for (size_t i = 0; i < n; i++)
        if (fields[i].required && !json_get(map, fields[i].key))
            return load_bad(load, map->mark, "key \"%s\" is missing", fields[i].key);
    return 0;
}

int load_text(struct load *load, const struct json *value, size_t max, const char *what)
{
    if (load_kind(load, value, TAKES_TEXT, what) < 0)
        return -1;
    if (value->text.n == 0)
        return load_bad(load, value->mark, "%s must not be empty", what);
    if (value->text.n > max)
        return load_bad(load, value->mark, "%s is longer than %zu bytes", what, max);
    for (size_t i = 0; i < value->text.n; i++)
        if ((unsigned char)value->text.p[i] < 0x20 || value->text.p[i] == 0x7f)
            return load_bad(load, value->mark, "%s contains a control character", what);
    return 0;
}

int load_choice(struct load *load, const struct json *value, const char *const *words,
                const char *what, size_t *out)
{
    const char *known = "";

    if (load_kind(load, value, TAKES_TEXT, what) < 0)
        return -1;
    for (size_t i = 0; words[i]; i++) {
        if (str_is(value->text, words[i])) {
            *out = i;
            return 0;
        }
        if (words[i][0])
            known = arena_printf(load->mem, "%s%s%s", known, known[0] ? ", " : "", words[i]);
    }
    return load_bad(load, value->mark, "%s must be one of %s, not \"%s\"", what, known,
                    shown(load, value->text));
}

int load_int(struct load *load, const struct json *value, int64_t low, int64_t high,
             const char *what, int64_t *out)
{
    int64_t number;

    if (load_kind(load, value, TAKES_NUMBER, what) < 0)
        return -1;
    if (!json_is_int(value, &number) || number < low || number > high)
        return load_bad(load, value->mark, "%s must be a whole number from %lld to %lld, not %s",
                        what, (long long)low, (long long)high, shown(load, value->text));
    *out = number;
    return 0;
}

int load_count(struct load *load, const struct json *container, const char *what)
{
    if (container->n > POLICY_ENTRIES_MAX)
        return load_bad(load, container->mark, "%s has more than %d entries", what,
                        POLICY_ENTRIES_MAX);
    return 0;
}

int load_glob(struct load *load, const struct json *value, enum glob_kind kind, const char *what)
{
    AUTO_ARENA struct arena scratch = ARENA(POLICY_MEMORY_MAX);
    const struct glob *glob;
    struct err err;

    if (load_text(load, value, PATH_BYTES_MAX, what) < 0)
        return -1;
    if (memchr(value->text.p, '{', value->text.n) || memchr(value->text.p, '}', value->text.n))
        return load_bad(load, value->mark,
                        "%s \"%s\": braces are not part of the pattern language; write one "
                        "pattern for each case",
                        what, shown(load, value->text));
    if (glob_new(&scratch, value->text, kind, &glob, &err) < 0)
        return load_bad(load, value->mark, "%s \"%s\": %s", what, shown(load, value->text),
                        err.text);
    return 0;
}
