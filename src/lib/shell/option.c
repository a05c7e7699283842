/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/shell/option-private.h"

#include "lib/shell/reader-private.h"

#include <ctype.h>
#include <string.h>

#define ABBREVIATION_MIN 3

struct shell_word tail_of(const struct shell_word *word, const char *from)
{
    return (struct shell_word){word->known, str_of(from), word->span};
}

/* From now on it is a carrier. */
static void note(const struct carried *c)
{
    c->look->v[c->at].carrier = c->name;
}

bool is_one_of_list(const char *list, struct shell_word value)
{
    return value.known == SHELL_LITERAL && !memchr(value.text.p, ' ', value.text.n) &&
           listed(list, value.text.p, value.text.n);
}

/* ---- values ---- */

static void run_unseen(const struct carried *c)
{
    note(c);
    flag(c, SHELL_HIDES);
}

static void run_text(const struct carried *c, struct shell_word text, unsigned flags)
{
    note(c);
    carry_text(c, text, false, flags, NULL);
}

/* What it reads is not what the program around it does. */
static void run_program(const struct carried *c, struct shell_word name)
{
    struct shell_word *word = arena_new(c->look->mem, struct shell_word);
    size_t at = c->look->n;

    *word = name;
    note(c);
    carry(c, word, 1, SHELL_MORE);
    if (at < c->look->n)
        c->look->v[at].input_kind = SHELL_INPUT_OUTER;
}

void run_words(const struct carried *c, size_t at, unsigned flags)
{
    if (at >= c->n)
        return;
    note(c);
    for (size_t i = 1; i < at; i++)
        if (c->words[i].known != SHELL_LITERAL)
            flag(c, SHELL_HIDES | SHELL_SCANS); /* it might be any number of words */
    carry(c, c->words + at, c->n - at, flags);
}

static void run_bang(const struct carried *c, struct shell_word value, const char *before)
{
    char first = value.text.p[0];

    if (first == '!') {
        value = tail_of(&value, value.text.p + 1);
    } else if (first != '/' && before) {
        if (!spend(c->look, strlen(before) + value.text.n)) {
            run_unseen(c);
            return;
        }
        value.text = str_of(arena_printf(c->look->mem, "%s%s", before, value.text.p));
    } else if (first != '/') {
        if (value.known != SHELL_LITERAL)
            run_unseen(c);
        return;
    }
    run_text(c, value, SHELL_MORE);
}

/* Going to a line or a pattern and leaving run nothing; everything else may. */
static void run_editor(const struct carried *c, struct shell_word value)
{
    const char *text = value.text.p;
    const char *bang = strchr(text, '!');

    if (value.known == SHELL_LITERAL && !strpbrk(text, "!|\n") &&
        (strspn(text, "0123456789$") == value.text.n || text[0] == '/'))
        return;
    if (is_one_of_list(" q qa w wa wq wqa x xa q! qa! wq! wqa! x! ", value))
        return;
    run_unseen(c);
    if (bang && bang[1])
        carry_text(c, tail_of(&value, bang + 1), false, SHELL_MORE, NULL);
}

void run_value(const struct carried *c, enum runs_as as, struct shell_word value,
               const char *before)
{
    switch (as) {
    case RUNS_UNSEEN:
        run_unseen(c);
        return;
    case RUNS_TEXT:
        run_text(c, value, 0);
        return;
    case RUNS_START:
        run_text(c, value, SHELL_MORE);
        return;
    case RUNS_PROGRAM:
        run_program(c, value);
        return;
    case RUNS_REMOTE:
        run_text(c, value, SHELL_MORE | SHELL_REMOTE);
        return;
    case RUNS_BANG:
        run_bang(c, value, before);
        return;
    case RUNS_FILE:
        if (value.known != SHELL_LITERAL || str_is(value.text, "-") || is_stream(value.text))
            run_unseen(c);
        return;
    case RUNS_EDITOR:
        run_editor(c, value);
        return;
    case RUNS_META:
        run_meta(c, value);
        return;
    case RUNS_REST:
        run_unseen(c);
        run_program(c, value);
        return;
    case RUNS_KEYS:
        return; /* run_keys has looked at them */
    }
}

static bool is_excepted(struct shell_word value, const char *except)
{
    return value.text.n == 0 || is_one_of_list(except, value);
}

/* After a star only the latest one ever needs to take more. */
static bool key_matches(const char *pattern, const char *key, size_t n)
{
    const char *star = NULL;
    size_t i = 0, from = 0;

    while (i < n) {
        if (*pattern == '*') {
            star = ++pattern;
            from = i;
        } else if (*pattern == tolower((unsigned char)key[i])) {
            pattern++;
            i++;
        } else if (star) {
            pattern = star;
            i = ++from;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == '\0';
}

void run_keys(const struct carried *c, const struct run_option *option, struct shell_word value,
              bool unseen)
{
    const char *text = value.text.p;
    size_t n = strcspn(text, option->ends ? option->ends : "=");
    const char *rest = text + n;

    rest += option->ends ? strspn(rest, option->ends) : *rest == '=';
    value = tail_of(&value, rest);
    for (const struct run_key *key = option->keys; key->key; key++) {
        if (!key_matches(key->key, text, n) || (key->has && !strstr(rest, key->has)))
            continue;
        if (!is_excepted(value, key->except))
            run_value(c, unseen ? RUNS_UNSEEN : key->as, value, key->before);
        return;
    }
}

static void run_option(const struct carried *c, const struct run_option *option,
                       struct shell_word value)
{
    if (option->only) {
        size_t n = strlen(option->only);

        if (strncmp(value.text.p, option->only, n) != 0)
            return;
        value = tail_of(&value, value.text.p + n);
    }
    if (option->as == RUNS_KEYS)
        run_keys(c, option, value, false);
    else if (!is_excepted(value, option->except))
        run_value(c, option->as, value, NULL);
}

/* ---- options ---- */

const struct run_option *find_letters(const struct run_options *options, const char *at)
{
    for (const struct run_option *o = options->v; o && (o->letters || o->name); o++)
        if (o->letters && o->letters[0] == at[0] &&
            strncmp(o->letters, at, strlen(o->letters)) == 0)
            return o;
    return NULL;
}

static const struct run_option *find_long(const struct run_options *options, const char *word,
                                          size_t n)
{
    for (const struct run_option *o = options->v; o && (o->letters || o->name); o++)
        if (o->name && n >= (o->at_least ? o->at_least : ABBREVIATION_MIN) &&
            strncmp(o->name, word, n) == 0)
            return o;
    return NULL;
}

static void run_rest(const struct carried *c, size_t at)
{
    size_t end = at;

    while (end < c->n && !str_is(c->words[end].text, ";"))
        end++;
    run_unseen(c);
    carry(c, c->words + at, end - at, SHELL_MORE);
}

/* A value in the same word, behind its letters or "="; otherwise in the next one, which is taken
 * then. */
static bool take_value(const struct carried *c, const struct run_option *option, size_t i,
                       const char *same)
{
    if (same) {
        run_option(c, option, tail_of(&c->words[i], same + (*same == '=')));
        return false;
    }
    if (option->glued || i + 1 >= c->n)
        return false;
    if (option->as == RUNS_REST)
        run_rest(c, i + 1);
    else
        run_option(c, option, c->words[i + 1]);
    return true;
}

static bool take_letters(const struct carried *c, const struct run_options *options, size_t i)
{
    for (const char *letter = c->words[i].text.p + 1; *letter; letter++) {
        const struct run_option *option = find_letters(options, letter);

        if (option) {
            const char *rest = letter + strlen(option->letters);

            return take_value(c, option, i, *rest ? rest : NULL);
        }
        if (options->glued && strchr(options->glued, *letter))
            return false;
        if (options->values && strchr(options->values, *letter))
            return letter[1] == '\0';
    }
    return false;
}

/* Whether the next word is its value. */
static bool take_option(const struct carried *c, const struct run_options *options, size_t i)
{
    const char *word = c->words[i].text.p;
    size_t n = strcspn(word, "=");
    const struct run_option *option = find_long(options, word, n);

    if (option)
        return take_value(c, option, i, word[n] ? word + n : NULL);
    return word[1] != '-' && take_letters(c, options, i);
}

void look_options(const struct carried *c, const struct run_options *options, size_t from)
{
    bool may_take = false; /* the word before may want this one as its value */

    for (size_t i = from; i < c->n; i++) {
        const char *word = c->words[i].text.p;

        if (word[0] != '-' || word[1] == '\0') {
            may_take = false;
        } else if (strcmp(word, "--") == 0) {
            if (!may_take)
                return;
            may_take = false;
        } else if (take_option(c, options, i)) {
            i++;
            may_take = false;
        } else {
            may_take = true;
        }
    }
}

/* Whether one of the words here, or of those around, may be any number of words. */
static bool may_split(const struct carried *c)
{
    for (size_t i = c->at; i != SHELL_NONE; i = c->look->v[i].parent)
        if (c->look->about[i].splits)
            return true;
    return false;
}

/* Between quotes it is one word, mostly a file. Further behind, or with nothing behind it (sort
 * $f), it is more often that, too. */
void look_first(const struct carried *c)
{
    if (c->n > (c->carrier->runs->is_led ? 1 : 2) && c->words[1].known != SHELL_LITERAL &&
        strchr("$`", c->words[1].text.p[0]) && c->words[1].text.n && may_split(c))
        run_unseen(c);
}
