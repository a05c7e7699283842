/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of awk: unseen, unless nothing in them can run, load or write anything.
 *
 * A program is not read, it is searched, and that errs towards finding something: strings, patterns
 * and comments count as well. In no awk does it run or open anything without one of
 *   - system() or getline, by name;
 *   - an @ of gawk: @load, @include, and calls of a function that a variable names;
 *   - extension() of an old gawk, which loads a library;
 *   - | or > behind a print or printf in front of them, since only these have an output to send;
 *   - ARGV, in which a program names further files to read, or SYMTAB of gawk, in which that is;
 *   - ENVIRON, since gawk changes its own environment: where the C library finds what it loads.
 * No awk takes a name that goes on in the next line, but that counts, too.
 *
 * Behind the program every word is a file or NAME=VALUE, whatever it begins with: unlike other
 * programs gawk, mawk, busybox and the one of BSD look for options no further. */
#include "lib/shell/carrier-private.h"

#include "lib/base/attrs.h"

#include <string.h>

static bool runs_nothing(struct shell_word program)
{
    static const char *const names[] = {"system",  "getline", "extension", "ARGV", "SYMTAB",
                                        "ENVIRON", "@",       "\\\n",      "\\\r"};
    const char *print = strstr(program.text.p, "print");

    if (program.known != SHELL_LITERAL || (print && strpbrk(print, "|>")))
        return false;
    for (size_t i = 0; i < COUNT(names); i++)
        if (strstr(program.text.p, names[i]))
            return false;
    return true;
}

/* The place of the program behind options that only set variables: -F and -v. 0: behind others it
 * may be in a file, or not be the only one. */
static size_t find_program(const struct carried *c)
{
    for (size_t at = 1; at < c->n && c->words[at].known == SHELL_LITERAL; at++) {
        const char *word = c->words[at].text.p;

        if (!is_option(c->words[at].text))
            return at;
        if (strcmp(word, "--") == 0)
            return at + 1 < c->n ? at + 1 : 0;
        if (word[1] != 'F' && word[1] != 'v')
            return 0;
        if (word[2] == '\0' && (++at >= c->n || c->words[at].known != SHELL_LITERAL))
            return 0;
    }
    return 0;
}

/* gawk reads from the network what is named like that. */
static bool names_network(const struct carried *c, size_t from)
{
    for (size_t i = from; i < c->n; i++)
        if (str_starts(c->words[i].text, "/inet"))
            return true;
    return false;
}

bool awk_runs_nothing(const struct carried *c)
{
    size_t at = find_program(c);

    return at && runs_nothing(c->words[at]) && !names_network(c, at + 1);
}
