/* SPDX-License-Identifier: Apache-2.0 */
/* Programs whose words are not only options: tar's letters without a dash, variables of make,
 * commands of ip and npm, keystrokes of less. */
#include "lib/shell/option-private.h"

#include "lib/shell/reader-private.h"

#include <string.h>

/* tar xIf PROGRAM ARCHIVE: the values of all letters follow, in their order. */
void look_tar(const struct carried *c)
{
    const struct run_options *options = c->carrier->runs;
    const char *letter = c->n > 1 ? c->words[1].text.p : "-";
    size_t next = 2;

    if (*letter == '-') {
        look_options(c, options, 1);
        return;
    }
    for (; *letter; letter++) {
        const struct run_option *option = find_letters(options, letter);

        if (option && next < c->n)
            run_value(c, option->as, c->words[next], NULL);
        next += option || strchr(options->values, *letter);
    }
    look_options(c, options, next);
}

/* ---- make ---- */

/* A reference to a variable is what the makefile makes of it; $(shell TEXT) and all that can
 * contain it is not. */
static bool calls_function(const char *value)
{
    for (const char *at = strchr(value, '$'); at; at = strchr(at + 1, '$')) {
        if (at[1] == '$')
            at++;
        else if (at[1] == '(' || at[1] == '{') {
            const char *end = at + 2 + strcspn(at + 2, " \t\n$(){}:,");

            if (!*end || !strchr("){}:", *end) || *end == '{')
                return true;
        }
    }
    return false;
}

/* NAME=VALUE, NAME:=VALUE, NAME!=TEXT and their like. */
static void look_variable(const struct carried *c, const struct shell_word *word)
{
    const char *text = word->text.p;
    const char *equals = strchr(text, '=');
    size_t n = (size_t)(equals - text);
    struct str name;
    struct shell_word value = tail_of(word, equals + 1);
    bool runs = n && text[n - 1] == '!';

    while (n && strchr(":+?!", text[n - 1]))
        n--;
    name = str_trim((struct str){text, n});
    if (runs)
        run_value(c, strchr(value.text.p, '$') ? RUNS_START : RUNS_TEXT, value, NULL);
    else if (listed(" .SHELLFLAGS MAKEFLAGS GNUMAKEFLAGS MFLAGS MAKEFILES MAKE ", name.p, name.n) ||
             calls_function(value.text.p))
        run_value(c, RUNS_UNSEEN, value, NULL);
    else if (str_is(name, "SHELL") &&
             !is_one_of_list(" sh bash dash /bin/sh /bin/bash /bin/dash /usr/bin/sh "
                             "/usr/bin/bash /usr/bin/dash ",
                             value))
        run_value(c, RUNS_START, value, NULL);
}

/* Behind `--` variables are still set. */
void look_make(const struct carried *c)
{
    look_options(c, c->carrier->runs, 1);
    for (size_t i = 1; i < c->n; i++)
        if (c->words[i].text.p[0] != '-' && strchr(c->words[i].text.p, '='))
            look_variable(c, &c->words[i]);
}

/* ---- commands of a program ---- */

/* cmake -E env NAME=VALUE COMMAND, -E time COMMAND, -E chdir FOLDER COMMAND. */
void look_cmake(const struct carried *c)
{
    size_t at = 3;

    if (c->n < 4 || !str_is(c->words[1].text, "-E"))
        return;
    if (str_is(c->words[2].text, "chdir"))
        at = 4;
    else if (str_is(c->words[2].text, "env"))
        while (at < c->n && (c->words[at].text.p[0] == '-' || strchr(c->words[at].text.p, '=')))
            at++;
    else if (!str_is(c->words[2].text, "time"))
        return;
    run_words(c, at, 0);
}

/* bundle exec COMMAND, poetry run COMMAND. Behind options of theirs it may begin anywhere. */
void look_run(const struct carried *c)
{
    size_t at = 1;
    bool after_option = false, sure;

    for (; at < c->n && !listed(" exec run ", c->words[at].text.p, c->words[at].text.n); at++) {
        bool option = c->words[at].text.p[0] == '-';

        if (!option && !after_option)
            return; /* it is told to do something else */
        after_option = option;
    }
    if (++at >= c->n)
        return;
    sure = c->words[at].text.p[0] != '-' || str_is(c->words[at].text, "--");
    at += sure && str_is(c->words[at].text, "--");
    if (sure) {
        run_words(c, at, 0);
        return;
    }
    run_value(c, RUNS_UNSEEN, c->words[0], NULL);
    flag(c, SHELL_SCANS);
}

/* ip netns exec NAME COMMAND, ip vrf exec NAME COMMAND; each may be abbreviated. */
void look_ip(const struct carried *c)
{
    size_t at = 1;
    bool all = false;

    for (; at < c->n && c->words[at].text.p[0] == '-'; at++) {
        const char *word = c->words[at].text.p + 1;

        word += *word == '-';
        all |= strncmp(word, "all", strlen(word)) == 0;
        if (listed(" f family n netns net rc rcvbuf l loops b batch ", word, strlen(word)))
            at++;
    }
    if (at + 1 >= c->n)
        return;
    if (!(c->words[at].text.n >= 3 && str_starts(STR_LIT("netns"), c->words[at].text.p)) &&
        !str_is(c->words[at].text, "vrf"))
        return;
    if (str_starts(STR_LIT("exec"), c->words[at + 1].text.p))
        run_words(c, at + (all ? 2 : 3), 0);
}

/* The place of the word that says what npm and its like are to do, if that is to run something.
 * What follows an option may be its value; then a command as short as x is none. */
static size_t find_exec(const struct carried *c)
{
    bool after_option = false, sure = true;

    for (size_t at = 1; at < c->n; at++) {
        struct str word = c->words[at].text;
        bool option = word.n && word.p[0] == '-';

        if (listed(" exec dlx explore ", word.p, word.n) || (sure && str_is(word, "x")))
            return at;
        if (!option && !after_option)
            return c->n;
        sure = sure && (option || !after_option);
        after_option = option && !memchr(word.p, '=', word.n);
    }
    return c->n;
}

/* npm exec COMMAND, pnpm dlx COMMAND, yarn exec COMMAND. Which options are its own is not certain,
 * unless `--` says so; yarn runs a text, and so does pnpm if it is told. */
void look_npm(const struct carried *c)
{
    static const struct run_option call[] = {
        {.letters = "c",   .name = "--call", .as = RUNS_TEXT},
        {0}
    };
    static const struct run_options options = {.values = "pw", .v = call};
    size_t at = find_exec(c);

    look_options(c, c->carrier->runs, 1);
    if (at == c->n)
        return;
    if (strcmp(c->name, "npm") == 0)
        look_options(c, &options, 1);
    for (size_t i = 1; i < at; i++)
        if (listed(" -c --shell-mode ", c->words[i].text.p, c->words[i].text.n))
            run_value(c, RUNS_UNSEEN, c->words[i], NULL);
    for (size_t i = ++at; i < c->n; i++) {
        if (!str_is(c->words[i].text, "--"))
            continue;
        run_words(c, i + 1, 0);
        return;
    }
    while (at < c->n && c->words[at].text.p[0] == '-')
        at += listed(" -p --package -w --workspace -c --call ", c->words[at].text.p,
                     c->words[at].text.n)
                  ? 2
                  : 1;
    if (at + 1 == c->n)
        run_value(c, RUNS_START, c->words[at], NULL);
    else
        run_words(c, at, SHELL_MORE);
}

/* Whatever it is given runs later. */
void look_crontab(const struct carried *c)
{
    for (size_t i = 1; i < c->n; i++) {
        struct str word = c->words[i].text;

        if (str_is(word, "-u"))
            i++;
        else if (word.n < 2 || word.p[0] != '-')
            run_value(c, RUNS_UNSEEN, c->words[i], NULL);
    }
}

/* ---- words with a plus ---- */

/* Without a terminal its input is read as commands; with the word "-" it is a text. */
static bool reads_commands(const struct carried *c)
{
    const struct shell_command *command = &c->look->v[c->at];
    bool is_text = false, is_silent = strcmp(c->name, "ex") == 0;

    for (size_t i = 1; i < c->n; i++) {
        struct str word = c->words[i].text;

        is_text |= str_is(word, "-");
        is_silent |= word.n > 1 && word.p[0] == '-' && strpbrk(word.p, "eEs");
    }
    return (command->input_kind == SHELL_INPUT_PIPE || command->input_kind == SHELL_INPUT_TEXT) &&
           (is_silent || !is_text);
}

void look_vim(const struct carried *c)
{
    look_options(c, c->carrier->runs, 1);
    if (c->n && reads_commands(c))
        run_value(c, RUNS_UNSEEN, c->words[0], NULL);
    for (size_t i = 1; i < c->n && !str_is(c->words[i].text, "--"); i++)
        if (str_starts(c->words[i].text, "+") && c->words[i].text.n > 1)
            run_value(c, RUNS_EDITOR, tail_of(&c->words[i], c->words[i].text.p + 1), NULL);
}

/* Keystrokes: !TEXT and |MARK TEXT run one. */
void look_less(const struct carried *c)
{
    for (size_t i = 1; i < c->n; i++) {
        const struct shell_word *word = &c->words[i];
        const char *bang = strchr(word->text.p, '!');

        if (word->text.p[0] != '+' || !strpbrk(word->text.p, "!|"))
            continue;
        run_value(c, RUNS_UNSEEN, *word, NULL);
        if (bang && bang[1])
            run_value(c, RUNS_START, tail_of(word, bang + 1), NULL);
    }
}
