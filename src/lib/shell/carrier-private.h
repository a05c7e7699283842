/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lib/shell/name-private.h"
#include "lib/shell/shell.h"

struct look;
struct run_options;
struct var;

/* Programs whose words are, or name, another command: env, timeout, sh -c, xargs, find -exec.
 *
 * What is inside is found only where it can be read off the words with certainty. Whatever is
 * not certain (an option we do not know, arguments that arrive on standard input) is flagged. */

enum carrier_kind {
    CARRIER_OPAQUE, /* runs something; how is beyond these tables */
    CARRIER_PREFIX, /* options, operands, then a command */
    CARRIER_SHELL,  /* -c TEXT, or a script, or standard input */
    CARRIER_CODE,   /* an interpreter: -c TEXT, or a script, or standard input */
    CARRIER_AWK,    /* a program in a word */
    CARRIER_APPLET, /* busybox: the next word is the program */
    CARRIER_FIND,   /* -exec ... ; */
    CARRIER_JOINS,  /* options, operands, then words that become one text: eval, watch, ssh */
    CARRIER_TRAP,   /* one text, then signals */
    CARRIER_ALIAS,  /* NAME=TEXT */
    CARRIER_SOURCE, /* a file that this shell reads */
    CARRIER_OPTION, /* none, but for an option whose value it runs */
};

/* Options are strings of letters (short) or words between blanks (long). `stops` ends the look:
 * the rest belongs to the program and nothing hidden runs (--version, python -m). An option that
 * is in none of the lists makes the command opaque. */
struct carrier {
    struct name_row row;
    enum carrier_kind kind;
    const char *flags;  /* without a value */
    const char *values; /* with a value */
    const char *stops;
    const char *long_flags;
    const char *long_values;
    const char *long_stops;
    unsigned operands; /* of its own, before the command */
    bool assignments;  /* K=V before the command */
    bool more;         /* adds words of its own to the command */
    bool hides;        /* even what is seen runs in other circumstances */
    char text;         /* the letter of an option, anywhere, whose value is a text for a shell */
    const struct run_options *runs; /* options whose values run; or NULL */
};

/* By the name without folders, and its key; NULL: it carries nothing. */
const struct carrier *carrier_find(const char *name, uint64_t key);

/* How its text is to be read, of a shell. */
bool is_bash(const char *name);
bool is_posix_shell(const char *name);

/* ---- looking into one command (carrier.c) ---- */

/* One command being looked into. Its place in the list stays; where the list lies does not. */
struct carried {
    struct look *look;
    size_t at;
    const struct carrier *carrier;
    const char *name;
    const struct shell_word *words;
    size_t n;
    struct str outermost;
};

enum options_end {
    OPTIONS_UNKNOWN, /* one of them is not in the table */
    OPTIONS_STOP,    /* one of them makes the rest harmless */
    OPTIONS_DONE,    /* *at is the first word that is no option */
};

/* Over the options of its carrier, from *at on. */
enum options_end skip_options(const struct carried *c, size_t *at);
void flag(const struct carried *c, unsigned flags);
/* What is not certain among the words up to `at` might be an option, or several words. */
void flag_uncertain(const struct carried *c, size_t at);
/* For a shell of its own, which starts with these variables. */
void carry_text(const struct carried *c, struct shell_word word, bool bash, unsigned flags,
                const struct var *vars);
void carry(const struct carried *c, const struct shell_word *words, size_t n, unsigned flags);
void carry_script(const struct carried *c, size_t at); /* the word there is a file */
/* /dev/stdin, /dev/fd/3 and /proc/self/fd/3 are no files that somebody has looked at; nor, from
 * within such a folder, are stdin and 3. */
bool is_stream(struct str path);
/* Whether these bytes are one of the words of a list like " --help --version ". */
bool listed(const char *list, const char *name, size_t n);

static inline bool is_option(struct str word)
{
    return word.n > 1 && word.p[0] == '-';
}

/* ---- shells (carrier-shell.c) ---- */

void look_shell(const struct carried *c);

/* ---- interpreters (carrier-code.c) ---- */

void look_code(const struct carried *c);

/* ---- awk (carrier-awk.c) ---- */

bool awk_runs_nothing(const struct carried *c);

/* ---- words that nobody has seen (carrier-more.c) ---- */

/* Whether what xargs gives to the program at that place cannot make it anything but what it is. */
bool xargs_adds_operands(const struct carried *c, size_t at);
/* The same for find and its words from there up to the one that ends them. */
bool find_adds_operands(const struct carried *c, size_t at, size_t end);

/* ---- builtins (carrier-builtin.c) ---- */

/* What they do besides, or instead of, what their words say. */
bool is_builtin(const char *name, uint64_t key);
void look_builtin(const struct carried *c, uint64_t key);
