/* SPDX-License-Identifier: Apache-2.0 */
/* What builtins of a shell run by the way: subscripts in names, and texts behind an option. */
#include "lib/shell/carrier-private.h"

#include "lib/shell/reader-private.h"

#include <string.h>

enum builtin {
    BUILTIN_NAMES = 1,   /* evaluates a subscript in a name it is given: unset 'a[$(id)]' */
    BUILTIN_BEHIND = 2,  /* of which only the word behind -v, or -R, is one */
    BUILTIN_TESTS = 4,   /* [ $x ] of bash may become [ -v a[$(id)] ], which runs it */
    BUILTIN_CALLS = 8,   /* -C runs a text */
    BUILTIN_STARTS = 16, /* -x runs words */
    BUILTIN_LOOKUP = 32, /* only asks where something is */
};

/* clang-format off */
/* In the order of bytes; see name-private.h. */
static const struct builtin_row {
    struct name_row row;
    unsigned does;
} builtins[] = {
    {NAMED("["),         .does = BUILTIN_NAMES | BUILTIN_BEHIND | BUILTIN_TESTS},
    {NAMED("declare"),   .does = BUILTIN_NAMES},
    {NAMED("export"),    .does = BUILTIN_NAMES},
    {NAMED("getopts"),   .does = BUILTIN_NAMES},
    {NAMED("jobs"),      .does = BUILTIN_STARTS},
    {NAMED("let"),       .does = BUILTIN_NAMES},
    {NAMED("local"),     .does = BUILTIN_NAMES},
    {NAMED("mapfile"),   .does = BUILTIN_NAMES | BUILTIN_CALLS},
    {NAMED("printf"),    .does = BUILTIN_NAMES | BUILTIN_BEHIND},
    {NAMED("read"),      .does = BUILTIN_NAMES},
    {NAMED("readarray"), .does = BUILTIN_NAMES | BUILTIN_CALLS},
    {NAMED("readonly"),  .does = BUILTIN_NAMES},
    {NAMED("test"),      .does = BUILTIN_NAMES | BUILTIN_BEHIND | BUILTIN_TESTS},
    {NAMED("type"),      .does = BUILTIN_LOOKUP},
    {NAMED("typeset"),   .does = BUILTIN_NAMES},
    {NAMED("unset"),     .does = BUILTIN_NAMES},
    {NAMED("wait"),      .does = BUILTIN_NAMES},
    {NAMED("whereis"),   .does = BUILTIN_LOOKUP},
    {NAMED("which"),     .does = BUILTIN_LOOKUP},
};
/* clang-format on */

static bool has_v(const struct shell_word *words, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (str_starts(words[i].text, "-v") || str_is(words[i].text, "-R"))
            return true;
    return false;
}

static bool has_subscript(const struct shell_word *words, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        const char *bracket = strchr(words[i].text.p, '[');

        if (!bracket || bracket == words[i].text.p || !strchr(bracket, ']'))
            continue;
        if (bracket[1 + strspn(bracket + 1, "0123456789-@*")] != ']')
            return true;
    }
    return false;
}

static bool evaluates_names(const struct carried *c, unsigned does)
{
    return does & BUILTIN_NAMES && (!(does & BUILTIN_BEHIND) || has_v(c->words, c->n)) &&
           has_subscript(c->words, c->n);
}

/* Whether it may have that option. */
static bool runs_by_option(const struct shell_word *words, size_t n, char letter)
{
    for (size_t i = 1; i < n; i++)
        if (words[i].known != SHELL_LITERAL ||
            (is_option(words[i].text) && strchr(words[i].text.p, letter)))
            return true;
    return false;
}

bool is_builtin(const char *name, uint64_t key)
{
    return name_find(builtins, COUNT(builtins), sizeof builtins[0], name, key) != NULL;
}

void look_builtin(const struct carried *c, uint64_t key)
{
    const struct builtin_row *found =
        name_recall(c->look->builtins, builtins, COUNT(builtins), sizeof builtins[0], c->name, key);

    if (!found)
        return;
    if (evaluates_names(c, found->does) ||
        (found->does & BUILTIN_TESTS && c->look->about[c->at].splits))
        flag(c, SHELL_HIDES);
    if ((found->does & BUILTIN_CALLS && runs_by_option(c->words, c->n, 'C')) ||
        (found->does & BUILTIN_STARTS && runs_by_option(c->words, c->n, 'x')))
        flag(c, SHELL_HIDES | SHELL_SCANS);
    if (found->does & BUILTIN_LOOKUP)
        flag(c, SHELL_LOOKUP);
}
