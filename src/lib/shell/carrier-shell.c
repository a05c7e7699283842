/* SPDX-License-Identifier: Apache-2.0 */
/* What a shell is given to run by its words: -c TEXT, a script, or standard input. */
#include "lib/shell/carrier-private.h"

#include "lib/shell/reader-private.h"

#include <string.h>

struct shell_options {
    bool text;   /* -c */
    bool input;  /* -s */
    bool starts; /* reads files of its own first */
    bool asks;   /* -i: what it reads may refer to what it has read */
    bool unknown;
    bool stops;
    bool posix;
};

/* The names of -o and -O are the words behind all letters, in their order. */
static void shell_letters(const struct carried *c, const char *word, size_t *at,
                          struct shell_options *out)
{
    for (const char *letter = word + 1; *letter; letter++) {
        if (*letter == 'c')
            out->text = true;
        else if (*letter == 's')
            out->input = true;
        else if (*letter == 'l' || *letter == 'i')
            out->starts = true;
        else if (*letter == 'o' || *letter == 'O')
            out->unknown |= ++(*at) >= c->n || !(*letter == 'o' ? is_plain_option : is_plain_shopt)(
                                                   c->words[*at].text);
        else if (!strchr("abefhmnprtuvxCDEPT", *letter))
            out->unknown = true;
        out->asks |= *letter == 'i';
    }
}

/* bash takes its long options with one dash as well. */
static bool is_long_with_one_dash(const char *word)
{
    return listed(" -debug -debugger -dump-po-strings -dump-strings -help -init-file -login "
                  "-noediting -noprofile -norc -posix -pretty-print -protected -rcfile -restricted "
                  "-verbose -version -wordexp ",
                  word, strlen(word));
}

static void shell_long_option(const char *word, struct shell_options *out)
{
    if (listed(" --help --version ", word, strlen(word)))
        out->stops = true;
    else if (strcmp(word, "--login") == 0)
        out->starts = true;
    else if (strcmp(word, "--posix") == 0)
        out->posix = true;
    else if (!listed(" --noediting --noprofile --norc --restricted --verbose ", word, strlen(word)))
        out->unknown = true;
}

static struct shell_options read_shell_options(const struct carried *c, size_t *at)
{
    struct shell_options out = {0};

    for (*at = 1; *at < c->n; (*at)++) {
        const char *word = c->words[*at].text.p;

        if (word[0] != '-' && word[0] != '+')
            return out;
        if (c->words[*at].known != SHELL_LITERAL)
            out.unknown = true;
        if (strcmp(word, "-") == 0 || strcmp(word, "--") == 0) {
            (*at)++;
            return out;
        }
        if (word[0] == '-' && word[1] == '-')
            shell_long_option(word, &out);
        else if (is_long_with_one_dash(word))
            out.unknown = true;
        else
            shell_letters(c, word, at, &out);
    }
    return out;
}

/* sh -c TEXT NAME ARG ...: $0, $1 and so on. */
static const struct var *positional(const struct carried *c, size_t at)
{
    static const struct str names[] = {
        {"0", 1},
        {"1", 1},
        {"2", 1},
        {"3", 1},
        {"4", 1},
        {"5", 1},
        {"6", 1},
        {"7", 1},
        {"8", 1},
        {"9", 1}
    };
    const struct var *vars = NULL;

    for (size_t i = 0; i < COUNT(names) && at + i < c->n; i++) {
        struct var *var;

        if (c->words[at + i].known != SHELL_LITERAL)
            break;
        var = arena_new(c->look->mem, struct var);
        *var = (struct var){VAR_KNOWN, IFS_FIRST, (unsigned)i + 1, names[i], c->words[at + i].text,
                            vars};
        vars = var;
    }
    return vars;
}

/* Asks before it does something: cp -i. */
static bool has_question(const struct shell_command *command)
{
    static const char *const names[] = {"cp", "ln", "mv", "rm"};
    bool asks = false;

    for (size_t i = 0; i < COUNT(names); i++)
        asks |= strcmp(shell_base(command->words[0].text.p), names[i]) == 0;
    for (size_t i = 1; asks && i < command->word_n; i++)
        if (is_option(command->words[i].text) && strpbrk(command->words[i].text.p, "iI"))
            return true;
    return false;
}

/* Programs that take a part of what they could read. */
static bool takes_some(const struct shell_command *command)
{
    static const char *const names[] = {
        "read",    "mapfile", "readarray", "head",    "tail",  "sed", "dd",   "grep", "od",
        "hexdump", "xxd",     "ed",        "ex",      "line",  "cut", "more", "less", "tac",
        "bc",      "dc",      "cmp",       "sqlite3", "xargs", "awk", "gawk", "mawk", "nawk"};

    if (command->word_n == 0 || command->input_kind != SHELL_INPUT_OUTER)
        return false;
    for (size_t i = 0; i < COUNT(names); i++)
        if (strcmp(shell_base(command->words[0].text.p), names[i]) == 0)
            return true;
    return has_question(command);
}

/* A shell reads its input as it goes. Lines that a command in it takes are not run, and what is
 * behind them is not read as it stands: the line that was taken may have opened a quote. */
void note_takes(struct look *look, size_t parent)
{
    for (size_t i = parent; i != SHELL_NONE; i = look->v[i].parent) {
        if (look->about[i].streams)
            look->v[i].flags |= SHELL_HIDES;
        if (look->about[i].streams || look->v[i].input_kind != SHELL_INPUT_OUTER)
            return;
    }
}

void look_takers(struct look *look)
{
    for (size_t i = 0; i < look->n; i++)
        if (takes_some(&look->v[i]))
            note_takes(look, look->v[i].parent);
}

/* Of a single line nothing is left to be taken once it runs. */
static bool has_lines(struct str text)
{
    const char *newline = text.n ? memchr(text.p, '\n', text.n) : NULL;

    return newline && newline[strspn(newline, " \t\n")] != '\0';
}

static void carry_stream(const struct carried *c, struct shell_word word, bool bash, unsigned flags)
{
    if (has_lines(word.text))
        c->look->streams = c->look->about[c->at].streams = true;
    carry_text(c, word, bash, flags, NULL);
}

/* Standard input as a shell would read it. */
static void carry_input(const struct carried *c, bool bash)
{
    const struct shell_command command = c->look->v[c->at];
    struct shell_word word = {
        SHELL_LITERAL, {"", 0},
         command.span
    };

    switch (command.input_kind) {
    case SHELL_INPUT_TEXT:
        carry_stream(c, command.input, bash, 0);
        return;
    case SHELL_INPUT_PIPE:
        if (command.input_from == SHELL_NONE || !output_of(c->look, command.input_from, &word.text))
            break;
        word.text = arena_str(c->look->mem, word.text);
        carry_stream(c, word, bash, SHELL_DECODED);
        return;
    case SHELL_INPUT_OUTER:
    case SHELL_INPUT_FILE:
        break;
    }
    flag(c, SHELL_HIDES);
}

void look_shell(const struct carried *c)
{
    size_t at;
    struct shell_options options = read_shell_options(c, &at);
    bool bash = is_bash(c->name) && !options.posix;

    flag(c, SHELL_IS_SHELL);
    if (options.stops)
        return;
    if (options.unknown || !is_posix_shell(c->name))
        flag(c, SHELL_HIDES);
    if (options.starts)
        flag(c, SHELL_RUNS_FILE);
    if (at > c->n)
        at = c->n;
    flag_uncertain(c, at);
    if (options.text && at < c->n)
        carry_text(c, c->words[at], bash, 0, positional(c, at + 1));
    else if (options.text)
        flag(c, SHELL_HIDES);
    else if (at < c->n && !options.input)
        carry_script(c, at);
    else
        carry_input(c, bash);
    if (options.asks && !options.text)
        flag(c, SHELL_HIDES);
}
