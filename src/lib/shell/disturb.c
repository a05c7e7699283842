/* SPDX-License-Identifier: Apache-2.0 */
/* What a command does to what is known of variables and names: builtins that set them. */
#include "lib/shell/carrier-private.h"
#include "lib/shell/reader-private.h"

#include <string.h>

enum effect {
    EFFECT_NONE,
    EFFECT_DECLARES, /* NAME=value in its words */
    EFFECT_SETS,     /* variables, from somewhere */
    EFFECT_OPTIONS,  /* set */
    EFFECT_FOLDER,   /* cd */
    EFFECT_NAMES,    /* what a name means, or how text is read */
    EFFECT_TRAP,     /* something runs between commands */
    EFFECT_ANYTHING, /* now, or whenever it likes */
};

/* In the order of bytes. */
static const struct effect_row {
    struct name_row row;
    enum effect effect;
} effects[] = {
    {NAMED("."),         .effect = EFFECT_ANYTHING},
    {NAMED("alias"),     .effect = EFFECT_NAMES   },
    {NAMED("bind"),      .effect = EFFECT_ANYTHING},
    {NAMED("cd"),        .effect = EFFECT_FOLDER  },
    {NAMED("complete"),  .effect = EFFECT_ANYTHING},
    {NAMED("coproc"),    .effect = EFFECT_SETS    },
    {NAMED("declare"),   .effect = EFFECT_DECLARES},
    {NAMED("enable"),    .effect = EFFECT_NAMES   },
    {NAMED("eval"),      .effect = EFFECT_ANYTHING},
    {NAMED("export"),    .effect = EFFECT_DECLARES},
    {NAMED("fc"),        .effect = EFFECT_ANYTHING},
    {NAMED("getopts"),   .effect = EFFECT_SETS    },
    {NAMED("hash"),      .effect = EFFECT_NAMES   },
    {NAMED("let"),       .effect = EFFECT_SETS    },
    {NAMED("local"),     .effect = EFFECT_DECLARES},
    {NAMED("mapfile"),   .effect = EFFECT_SETS    },
    {NAMED("popd"),      .effect = EFFECT_FOLDER  },
    {NAMED("printf"),    .effect = EFFECT_SETS    },
    {NAMED("pushd"),     .effect = EFFECT_FOLDER  },
    {NAMED("read"),      .effect = EFFECT_SETS    },
    {NAMED("readarray"), .effect = EFFECT_SETS    },
    {NAMED("readonly"),  .effect = EFFECT_DECLARES},
    {NAMED("set"),       .effect = EFFECT_OPTIONS },
    {NAMED("shift"),     .effect = EFFECT_SETS    },
    {NAMED("shopt"),     .effect = EFFECT_NAMES   },
    {NAMED("source"),    .effect = EFFECT_ANYTHING},
    {NAMED("trap"),      .effect = EFFECT_TRAP    },
    {NAMED("typeset"),   .effect = EFFECT_DECLARES},
    {NAMED("unalias"),   .effect = EFFECT_NAMES   },
    {NAMED("unset"),     .effect = EFFECT_SETS    },
    {NAMED("wait"),      .effect = EFFECT_SETS    },
};

static struct name_kept find_effect(const char *name, uint64_t key)
{
    const void *found = name_find(effects, COUNT(effects), sizeof effects[0], name, key);

    return (struct name_kept){key, found,
                              !found && !carrier_find(name, key) && !is_builtin(name, key) &&
                                  !strchr(name, '/')};
}

/* NUL-terminated, as all words are. *dull: nothing else needs to be known of it. */
static enum effect effect_of(struct look *look, const char *name, bool *dull)
{
    uint64_t key = name_key(name);
    struct name_kept *place = name_place(look->effects, key);
    struct name_kept of_name = place && place->key == key ? *place : find_effect(name, key);
    const struct effect_row *found = of_name.found;

    if (place)
        *place = of_name;
    *dull = of_name.dull;
    return found ? found->effect : EFFECT_NONE;
}

static bool is_name(struct str name)
{
    if (name.n == 0 || !is_name_start((unsigned char)name.p[0]))
        return false;
    for (size_t i = 1; i < name.n; i++)
        if (!is_name_byte((unsigned char)name.p[i]))
            return false;
    return true;
}

static bool has_option(struct str word, const char *letters)
{
    return word.n > 1 && (word.p[0] == '-' || word.p[0] == '+') && strpbrk(word.p, letters);
}

/* printf -vNAME, read -raNAME: the name is behind the letter. */
static bool is_steering_behind_letter(struct str word)
{
    const char *letter = strpbrk(word.p, "av");

    return word.n && word.p[0] == '-' && letter && is_steering_variable(letter + 1);
}

/* A word that names a variable to be set. One that steers programs, or that nobody knows, runs
 * whatever it likes. */
static void note_named(struct shell_command *command, const struct shell_word *word)
{
    struct str name = {word->text.p, strcspn(word->text.p, "=+[")};

    if (word->known == SHELL_LITERAL
            ? is_steering_variable(word->text.p) || is_steering_behind_letter(word->text)
            : !is_name(name))
        command->flags |= SHELL_HIDES;
}

/* read, mapfile, getopts, printf -v, unset; of let every name is evaluated. */
static void set_named(struct reader *r, struct shell_command *command, size_t at)
{
    struct str name = command->words[at].text;
    bool prints = str_is(name, "printf");

    if (str_is(name, "shift") || str_is(name, "wait") || str_is(name, "coproc") ||
        (prints && !(at + 1 < command->word_n && str_starts(command->words[at + 1].text, "-v"))))
        return;
    for (size_t i = at + 1; i < command->word_n; i++) {
        const struct shell_word *word = &command->words[i];

        if (str_is(name, "unset") && word->known == SHELL_LITERAL && !str_is(word->text, "PATH"))
            continue;
        if (str_is(name, "let") &&
            strpbrk(word->text.p, "abcdefghijklmnopqrstuvwxyz_$`ABCDEFGHIJKLMNOPQRSTUVWXYZ") &&
            (word->known != SHELL_LITERAL || !is_plain_arithmetic(r, word->text)))
            command->flags |= SHELL_HIDES;
        note_named(command, word);
        if (prints && i == at + 2)
            return; /* what it prints */
    }
}

/* Assignments in the words of export and its like join those before the command. */
static void declare(struct reader *r, struct shell_command *command, size_t at)
{
    struct shell_word *v =
        arena_array(r->look->mem, struct shell_word, command->assignment_n + command->word_n + 1);
    size_t n = command->assignment_n;

    if (n)
        memcpy(v, command->assignments, n * sizeof *v);
    for (size_t i = at; i < command->word_n; i++) {
        struct shell_word word = command->words[i];
        struct str rest = word.text;
        struct str name = str_cut(&rest, '=');
        struct shell_word value = word;

        if (has_option(word.text, "inI"))
            command->flags |= SHELL_HIDES; /* what is assigned later is arithmetic, or a name */
        if (word.known != SHELL_LITERAL && !is_name(name))
            command->flags |= SHELL_HIDES;
        if (name.n == word.text.n) {
            if (word.known != SHELL_LITERAL || (name.n && name.p[0] == '-'))
                r->lost = true;
            continue;
        }
        v[n++] = word;
        value.text = (struct str){word.text.p + name.n + 1, word.text.n - name.n - 1};
        if (rest.n && rest.p[0] == '(' && strpbrk(rest.p, "$`"))
            command->flags |= SHELL_HIDES; /* declare -a a='($(x))' is read once more */
        if (word.known != SHELL_LITERAL || !is_name(name))
            vars_lose(r); /* it may be several words, or one of an array */
        else
            var_set(r, name, &value);
    }
    command->assignments = v;
    command->assignment_n = n;
}

static bool is_among(struct str name, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (str_is(name, names[i]))
            return true;
    return false;
}

bool is_plain_option(struct str name)
{
    static const char *const names[] = {"pipefail",  "errexit",   "nounset", "xtrace", "errtrace",
                                        "noclobber", "allexport", "verbose", "noglob"};

    return is_among(name, names, COUNT(names));
}

/* They are about globs, which are never literal. */
bool is_plain_shopt(struct str name)
{
    static const char *const names[] = {"globstar",   "nullglob",    "failglob",       "dotglob",
                                        "nocaseglob", "nocasematch", "inherit_errexit"};

    return is_among(name, names, COUNT(names));
}

/* alias without a text, hash without -p, and options of shopt that are about globs, leave every
 * name and every text what it is. */
static bool keeps_names(const struct shell_command *command, size_t at)
{
    struct str name = command->words[at].text;

    for (size_t i = at + 1; i < command->word_n; i++) {
        struct str word = command->words[i].text;
        bool option = word.n > 1 && word.p[0] == '-';

        if (command->words[i].known != SHELL_LITERAL)
            return false;
        if (str_is(name, "hash") ? option && !str_is(word, "-r")
                                 : memchr(word.p, '=', word.n) != NULL)
            return false;
        if (str_is(name, "shopt") && !is_plain_shopt(word) && !str_is(word, "-s") &&
            !str_is(word, "-u") && !str_is(word, "-q"))
            return false;
    }
    return !str_is(name, "enable");
}

/* Options that change nothing about how text is read; everything else might. */
static void set_options(struct reader *r, const struct shell_command *command, size_t at)
{
    for (; at < command->word_n; at++) {
        struct str word = command->words[at].text;
        bool literal = command->words[at].known == SHELL_LITERAL;

        if (!literal || word.n < 2 || (word.p[0] != '-' && word.p[0] != '+')) {
            vars_lose(r); /* positional parameters */
            if (!literal)
                note_unseen(r);
            continue;
        }
        if (str_is(word, "--")) {
            vars_lose(r);
            return;
        }
        if (strspn(word.p + 1, "aebfhmuvxCETo") != word.n - 1) {
            note_unseen(r);
        } else if (memchr(word.p, 'o', word.n) && ++at < command->word_n &&
                   !is_plain_option(command->words[at].text)) {
            note_unseen(r);
        }
    }
}

/* command, builtin and time run what follows in this very shell, and behind time that begins with
 * its assignments. */
static size_t skip_prefixes(struct reader *r, const struct shell_command *command)
{
    bool timed = false;
    size_t at = 0;

    for (; at < command->word_n && command->words[at].known == SHELL_LITERAL; at++) {
        struct str word = command->words[at].text;

        if (str_is(word, "time"))
            timed = true;
        else if (!str_is(word, "command") && !str_is(word, "builtin") &&
                 !(at && str_starts(word, "-")) && !(timed && memchr(word.p, '=', word.n)))
            break;
    }
    r->lost = r->lost || timed; /* what it assigns may stay */
    return at;
}

void disturb(struct reader *r, struct shell_command *command)
{
    struct about *about = &r->look->about[command - r->look->v];
    size_t at = skip_prefixes(r, command);
    bool dull;

    if (at == command->word_n) {
        if (command->known != SHELL_LITERAL)
            r->lost = true;
        return;
    }
    if (command->words[at].known != SHELL_LITERAL) {
        r->lost = true;
        return;
    }
    switch (effect_of(r->look, command->words[at].text.p, &dull)) {
    case EFFECT_NONE:
        about->dull = dull && at == 0;
        return;
    case EFFECT_DECLARES:
        declare(r, command, at + 1);
        if (!r->bash && !str_is(command->words[at].text, "export"))
            r->lost = true; /* not a builtin everywhere */
        if (str_is(command->words[at].text, "local") || str_is(command->words[at].text, "readonly"))
            r->lost = true; /* what is assigned later may not be */
        return;
    case EFFECT_SETS:
        set_named(r, command, at);
        vars_lose(r);
        return;
    case EFFECT_FOLDER:
        var_lose(r, STR_LIT("PWD"));
        var_lose(r, STR_LIT("OLDPWD"));
        return;
    case EFFECT_OPTIONS:
        set_options(r, command, at + 1);
        return;
    case EFFECT_NAMES:
        if (keeps_names(command, at))
            return;
        r->look->functions = true;
        note_unseen(r);
        return;
    case EFFECT_TRAP:
        r->look->functions = r->lost = true;
        return;
    case EFFECT_ANYTHING:
        r->lost = true;
        return;
    }
}
