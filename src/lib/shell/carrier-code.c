/* SPDX-License-Identifier: Apache-2.0 */
/* What an interpreter is given to run by its words: text, a module, a script, or standard input. */
#include "lib/shell/carrier-private.h"

#include <string.h>

/* The module behind -m, also among other letters; *at is behind it then. */
static struct str find_module(const struct carried *c, size_t *at)
{
    for (*at = 1; *at < c->n && is_option(c->words[*at].text); (*at)++) {
        struct str word = c->words[*at].text;
        const char *letter = word.p + 1 + strcspn(word.p + 1, "mWX");

        if (word.p[1] == '-' || !*letter)
            continue;
        if (*letter != 'm') {
            *at += letter[1] == '\0'; /* the value of -W or -X is the next word */
            continue;
        }
        if (letter[1] == '\0')
            return ++(*at) < c->n ? c->words[(*at)++].text : (struct str){0};
        (*at)++;
        return str_of(letter + 1);
    }
    return (struct str){0};
}

/* python -m timeit CODE, python -m cProfile /dev/stdin: modules that run what they are given. */
static bool runs_code_by_module(const struct carried *c)
{
    size_t at;
    struct str name = find_module(c, &at);

    if (listed(" timeit code pdb asyncio ", name.p ? name.p : "", name.n))
        return name.n != 0;
    if (!name.n || !listed(" cProfile profile trace runpy ", name.p, name.n))
        return false;
    for (; at < c->n; at++)
        if (c->words[at].known != SHELL_LITERAL || is_stream(c->words[at].text))
            return true;
    return false;
}

/* node --test-reporter=data:,CODE: what is loaded from a URL is in the word itself; and nobody has
 * seen what a stream brings. */
static bool reports_by_code(const struct carried *c, size_t end)
{
    static const char option[] = "--test-reporter";

    for (size_t i = 1; i < end && i < c->n; i++) {
        const char *word = c->words[i].text.p;
        const char *value = word + sizeof option - 1;

        if (strncmp(word, option, sizeof option - 1) != 0)
            continue;
        if (*value == '=')
            value++;
        else if (*value == '\0' && i + 1 < c->n)
            value = c->words[i + 1].text.p;
        else
            continue;
        if (strchr(value, ':') || is_stream(str_of(value)))
            return true;
    }
    return false;
}

/* node --test: every word is a file of its own, or a pattern of some; without one it looks for them
 * itself. */
static bool is_test(const struct carried *c, size_t end)
{
    for (size_t i = 1; i < end && i < c->n; i++)
        if (str_is(c->words[i].text, "--test"))
            return true;
    return false;
}

static void carry_tests(const struct carried *c, size_t at)
{
    struct carried head = *c;

    flag(c, SHELL_RUNS_FILE);
    for (; at < c->n; at++) {
        head.n = at + 1;
        if (str_is(c->words[at].text, "-"))
            flag(c, SHELL_HIDES | SHELL_INLINE);
        else
            carry_script(&head, at);
    }
}

void look_code(const struct carried *c)
{
    size_t at = 1;
    enum options_end end = skip_options(c, &at);

    if (end == OPTIONS_STOP) {
        if (strchr(c->carrier->stops ? c->carrier->stops : "", 'm') && runs_code_by_module(c))
            flag(c, SHELL_HIDES | SHELL_INLINE);
        return;
    }
    flag_uncertain(c, at - (at > 0));
    if (reports_by_code(c, at))
        flag(c, SHELL_HIDES | SHELL_INLINE);
    if (end == OPTIONS_DONE && is_test(c, at))
        carry_tests(c, at);
    else if (end == OPTIONS_UNKNOWN || at >= c->n || str_is(c->words[at].text, "-"))
        flag(c, SHELL_HIDES | SHELL_INLINE); /* text in an argument, or on standard input */
    else
        carry_script(c, at);
}
