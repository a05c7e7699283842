/* SPDX-License-Identifier: Apache-2.0 */
/* Clients of databases, whose own commands stand among those for the database: `.shell TEXT` of
 * sqlite3, `\! TEXT` of psql and mysql. */
#include "lib/shell/option-private.h"

#include "lib/shell/reader-private.h"

#include <string.h>

/* ---- what they read ---- */

/* Each line of standard input that may be one of its commands, where that is known. */
static void look_input(const struct carried *c, const char *begins,
                       void (*run)(const struct carried *c, struct shell_word line))
{
    const struct shell_command command = c->look->v[c->at];
    struct shell_word line = command.input;
    struct str rest = command.input.text;

    if (command.input_kind == SHELL_INPUT_PIPE && command.input_from != SHELL_NONE &&
        output_of(c->look, command.input_from, &rest))
        line = (struct shell_word){SHELL_LITERAL, rest, command.span};
    else if (command.input_kind != SHELL_INPUT_TEXT)
        return;
    while (rest.n) {
        line.text = str_cut(&rest, '\n');
        if (!line.text.n || !memmem(line.text.p, line.text.n, begins, strlen(begins)))
            continue;
        if (!spend(c->look, line.text.n)) {
            run_value(c, RUNS_UNSEEN, command.input, NULL);
            return;
        }
        line.text = arena_str(c->look->mem, line.text);
        run(c, line);
    }
}

/* ---- sqlite3 ---- */

/* Names may be abbreviated; what it does with the shortest is not certain. */
static bool is_dot(const char *whole, const char *name, size_t n)
{
    return n && strncmp(whole, name, n) == 0;
}

/* Behind the dot. */
static void run_named(const struct carried *c, struct shell_word value)
{
    const char *name = value.text.p + 1;
    size_t n = strcspn(name, " \t\r\n");
    struct shell_word rest = tail_of(&value, name + n + strspn(name + n, " \t"));

    if (rest.text.n && (is_dot("shell", name, n) || is_dot("system", name, n)))
        run_value(c, RUNS_START, rest, NULL);
    else if (strchr(value.text.p, '|') || is_dot("load", name, n) || is_dot("excel", name, n) ||
             is_dot("www", name, n))
        run_value(c, RUNS_UNSEEN, value, NULL);
    else if (is_dot("read", name, n))
        run_value(c, RUNS_FILE, rest, NULL);
}

static void run_dot(const struct carried *c, struct shell_word value)
{
    if (value.text.p[0] == '.')
        run_named(c, value);
    else if (strcasestr(value.text.p, "load_extension") || strcasestr(value.text.p, "edit("))
        run_value(c, RUNS_UNSEEN, value, NULL);
}

static void look_sqlite(const struct carried *c)
{
    for (size_t i = 1; i < c->n; i++) {
        const char *word = c->words[i].text.p;
        bool option = word[0] == '-';

        word += option;
        word += option && *word == '-';
        if (!option)
            run_dot(c, c->words[i]);
        else if (strcmp(word, "cmd") == 0 && i + 1 < c->n)
            run_dot(c, c->words[++i]);
        else if (strcmp(word, "init") == 0 && i + 1 < c->n)
            run_value(c, RUNS_FILE, c->words[++i], NULL);
    }
    look_input(c, ".", run_dot);
}

const struct run_options runs_sqlite = {.look = look_sqlite};

/* ---- psql and mysql ---- */

void run_meta(const struct carried *c, struct shell_word value)
{
    const char *text = value.text.p;
    const char *bang = strstr(text, "\\!");

    if (!bang && strncmp(text, "system ", 7) == 0)
        bang = text + 5; /* as much before the text as in the other case */
    if (bang) {
        const char *end = bang + 2 + strcspn(bang + 2, "\n");
        struct shell_word rest = value;

        run_value(c, RUNS_UNSEEN, value, NULL);
        if (!spend(c->look, (size_t)(end - bang)))
            return;
        rest.text = arena_str(c->look->mem, (struct str){bang + 2, (size_t)(end - bang) - 2});
        run_value(c, RUNS_START, rest, NULL);
    } else if ((strchr(text, '\\') && strpbrk(text, "|`")) ||
               (strcasestr(text, "copy") && strcasestr(text, "program"))) {
        run_value(c, RUNS_UNSEEN, value, NULL); /* \o |TEXT, \set x `TEXT`, \copy ... program */
    }
}

static void look_client(const struct carried *c)
{
    look_options(c, c->carrier->runs, 1);
    look_input(c, "\\", run_meta);
}

/* clang-format off */
const struct run_options runs_psql = {
    .look = look_client, .values = "dhLpUvFRTP", .v = (const struct run_option[]){
        {.letters = "c", .name = "--command", .as = RUNS_META},
        {.letters = "f", .name = "--file", .as = RUNS_FILE},
        {.letters = "o", .name = "--output", .as = RUNS_TEXT, .only = "|"},
        {0}}};

const struct run_options runs_mysql = {
    .look = look_client, .values = "DhPSu", .glued = "p#", .v = (const struct run_option[]){
        {.letters = "e", .name = "--execute", .as = RUNS_META},
        {.name = "--pager", .as = RUNS_START},
        {0}}};
/* clang-format on */
