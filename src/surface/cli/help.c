/* SPDX-License-Identifier: Apache-2.0 */

/* Help of every level, from the table. */

#include "surface/cli/commands.h"

#include <ctype.h>
#include <string.h>

#define LINE_COLUMNS 80
#define NAME_COLUMNS 26 /* "  --mount SRC:DST[:ro|rw]" fits */

/* Writes text in lines of at most LINE_COLUMNS, every line but the first indented; starts at
 * the column already reached. Line breaks in the text stay. */
static void put_wrapped(FILE *to, const char *text, size_t column, size_t indent)
{
    struct str rest = str_of(text);
    bool fresh = true;

    while (rest.n) {
        size_t n = 0;

        while (n < rest.n && rest.p[n] != ' ' && rest.p[n] != '\n')
            n++;
        if (!fresh && column + 1 + n > LINE_COLUMNS) {
            (void)fprintf(to, "\n%*s", (int)indent, "");
            column = indent;
            fresh = true;
        }
        column += n + !fresh;
        (void)fprintf(to, "%s%.*s", fresh ? "" : " ", (int)n, rest.p);
        fresh = false;
        if (n < rest.n && rest.p[n] == '\n') {
            (void)fprintf(to, "\n%*s", (int)indent, "");
            column = indent;
            fresh = true;
        }
        n += n < rest.n;
        rest = (struct str){rest.p + n, rest.n - n};
    }
    (void)fputc('\n', to);
}

static void put_row(FILE *to, const char *name, const char *text)
{
    size_t n = strlen(name) + 2;

    (void)fprintf(to, "  %s", name);
    if (n + 1 >= NAME_COLUMNS)
        (void)fprintf(to, "\n%*s", NAME_COLUMNS, "");
    else
        (void)fprintf(to, "%*s", (int)(NAME_COLUMNS - n), "");
    put_wrapped(to, text, NAME_COLUMNS, NAME_COLUMNS);
}

void help_overview(const struct invocation *inv, FILE *to)
{
    (void)fprintf(to,
                  "Usage: %s COMMAND [options] [arguments]\n\n"
                  "Runs what AI agents want to run, inside walls, under a policy, with proof.\n\n"
                  "Commands:\n",
                  inv->program);
    for (size_t i = 0; i < command_n; i++)
        put_row(to, commands[i]->path, commands[i]->summary);
    (void)fprintf(to,
                  "\nTry:  %s sandbox exec -- echo Hello\n"
                  "\"%s COMMAND --help\" says more about a command.\n",
                  inv->program, inv->program);
}

void help_group(const struct invocation *inv, const struct command_group *group, FILE *to)
{
    (void)fprintf(to, "Usage: %s %s COMMAND [options] [arguments]\n\n%c%s:\n", inv->program,
                  group->name, toupper((unsigned char)group->summary[0]), group->summary + 1);
    for (size_t i = 0; i < command_n; i++)
        if (command_in_group(commands[i], group->name))
            put_row(to, commands[i]->path, commands[i]->summary);
    (void)fprintf(to, "\n\"%s %s COMMAND --help\" says more about a command.\n", inv->program,
                  group->name);
}

static void put_option(const struct invocation *inv, const struct cli_option *option, FILE *to)
{
    char name[64];

    (void)inv;
    (void)snprintf(name, sizeof name, "%s%s%s%s", option->name, option->argument ? " " : "",
                   option->argument ? option->argument : "", option->repeatable ? " ..." : "");
    put_row(to, name, option->help);
}

void help_command(const struct invocation *inv, const struct command *command, FILE *to)
{
    (void)fprintf(to, "Usage: %s %s%s%s%s\n\n", inv->program, command->path,
                  command->options->name ? " [options]" : "", *command->operands ? " " : "",
                  command->operands);
    put_wrapped(to, command->summary, 0, 0);
    if (*command->help) {
        (void)fputc('\n', to);
        put_wrapped(to, command->help, 0, 0);
    }
    (void)fprintf(to, "\nOptions:\n");
    for (const struct cli_option *o = command->options; o->name; o++)
        put_option(inv, o, to);
    put_row(to, "-h, --help", "show this");
}

int run_help(struct invocation *inv)
{
    const struct command_group *group;
    const struct command *command;
    const char *path;
    struct err err;

    if (inv->operands.n == 0) {
        help_overview(inv, inv->out);
        return 0;
    }
    path = inv->operands.n == 1
               ? inv->operands.v[0]
               : arena_printf(&inv->mem, "%s %s", inv->operands.v[0], inv->operands.v[1]);
    command = command_find(path);
    group = command_group_find(path);
    if (command)
        help_command(inv, command, inv->out);
    else if (group)
        help_group(inv, group, inv->out);
    else {
        (void)err_set(&err, ERR_INVALID, "there is no command \"%s\"; \"%s --help\" lists them all",
                      path, inv->program);
        return cli_error(inv, &err);
    }
    return 0;
}
