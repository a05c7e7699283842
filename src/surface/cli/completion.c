/* SPDX-License-Identifier: Apache-2.0 */

/* Completion scripts and the COMMANDS section of the manual, from the table.
 *
 * The scripts are static text: pressing TAB does not start the program. */

#include "surface/cli/commands.h"

#include <string.h>

/* The name of an option's values in the vocabulary of a shell. */
struct shell {
    const char *name;
    void (*print)(const struct invocation *inv);
};

static void put_words_of_level(FILE *to, const char *group)
{
    if (!group)
        for (size_t i = 0; i < command_group_n; i++)
            (void)fprintf(to, "%s ", command_groups[i].name);
    for (size_t i = 0; i < command_n; i++) {
        const char *word = group ? command_in_group(commands[i], group) : commands[i]->path;

        if (word && !strchr(word, ' '))
            (void)fprintf(to, "%s ", word);
    }
}

static void put_option_names(FILE *to, const struct command *command)
{
    for (const struct cli_option *o = command->options; o->name; o++)
        (void)fprintf(to, "%s ", o->name);
    (void)fprintf(to, "--help");
}

/* ---- bash ---- */

static void put_bash_values(FILE *to, const struct command *command)
{
    for (const struct cli_option *o = command->options; o->name; o++) {
        if (o->kind == VALUE_NONE)
            continue;
        (void)fprintf(to, "    '%s %s') ", command->path, o->name);
        if (o->kind == VALUE_FILE)
            (void)fprintf(to, "COMPREPLY=($(compgen -f -- \"$cur\"))");
        else if (o->kind == VALUE_DIRECTORY)
            (void)fprintf(to, "COMPREPLY=($(compgen -d -- \"$cur\"))");
        else if (o->values)
            (void)fprintf(to, "COMPREPLY=($(compgen -W '%s' -- \"$cur\"))", o->values);
        else
            (void)fprintf(to, ":");
        (void)fprintf(to, "; return ;;\n");
    }
}

/* The first operand is one of a few words, and others follow it. */
static bool begins_with_verb(const struct command *command)
{
    return command->values && *command->values && command->operand_max > 1;
}

static void put_bash_verbs(FILE *to, const struct command *command)
{
    int at = strchr(command->path, ' ') ? 3 : 2;

    (void)fprintf(to,
                  "        else words='%s'\n"
                  "            for i in \"${COMP_WORDS[@]:%d:COMP_CWORD-%d}\"; do\n"
                  "                [[ \" $words \" == *\" $i \"* ]] && words=\n"
                  "            done\n",
                  command->values, at, at);
    if (command->then_files)
        (void)fprintf(to, "            [[ -n $words ]] || {\n"
                          "                COMPREPLY=($(compgen -f -- \"$cur\")); return; }\n");
    (void)fprintf(to, "        fi ;;\n");
}

static void put_bash_operands(FILE *to, const struct command *command)
{
    (void)fprintf(to, "    '%s')\n        if [[ $cur == -* ]]; then words='", command->path);
    put_option_names(to, command);
    (void)fprintf(to, "'\n");
    if (begins_with_verb(command))
        put_bash_verbs(to, command);
    else if (command->values)
        (void)fprintf(to, "        else words='%s'; fi ;;\n", command->values);
    else if (command->takes_command)
        (void)fprintf(to, "        else words='--'; fi ;;\n");
    else if (command->operand_max)
        (void)fprintf(to, "        else COMPREPLY=($(compgen -f -- \"$cur\")); return; fi ;;\n");
    else
        (void)fprintf(to, "        fi ;;\n");
}

static void print_bash(const struct invocation *inv)
{
    FILE *to = inv->out;

    (void)fprintf(to,
                  "# %s: completion for bash\n"
                  "_%s() {\n"
                  "    local cur prev path i words=\n"
                  "    COMPREPLY=()\n"
                  "    cur=${COMP_WORDS[COMP_CWORD]}\n"
                  "    prev=${COMP_WORDS[COMP_CWORD-1]}\n"
                  "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
                  "        # behind -- stands somebody else's command\n"
                  "        [[ ${COMP_WORDS[i]} == -- ]] && {\n"
                  "            COMPREPLY=($(compgen -c -f -- \"$cur\")); return; }\n"
                  "    done\n"
                  "    path=${COMP_WORDS[1]}\n"
                  "    case $COMP_CWORD:$path in\n"
                  "    1:*) words='",
                  inv->program, inv->program);
    put_words_of_level(to, NULL);
    (void)fprintf(to, "--help --version' ;;\n");
    for (size_t i = 0; i < command_group_n; i++) {
        (void)fprintf(to, "    2:%s) words='", command_groups[i].name);
        put_words_of_level(to, command_groups[i].name);
        (void)fprintf(to, "--help' ;;\n");
    }
    (void)fprintf(to, "    esac\n"
                      "    [[ -n $words ]] && {\n"
                      "        COMPREPLY=($(compgen -W \"$words\" -- \"$cur\")); return; }\n"
                      "    case $path in\n    ");
    for (size_t i = 0; i < command_group_n; i++)
        (void)fprintf(to, "%s%s", i ? "|" : "", command_groups[i].name);
    (void)fprintf(to, ") path+=\" ${COMP_WORDS[2]}\" ;;\n    esac\n"
                      "    case \"$path $prev\" in\n");
    for (size_t i = 0; i < command_n; i++)
        put_bash_values(to, commands[i]);
    (void)fprintf(to, "    esac\n    case $path in\n");
    for (size_t i = 0; i < command_n; i++)
        put_bash_operands(to, commands[i]);
    (void)fprintf(to,
                  "    esac\n"
                  "    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
                  "}\n"
                  "complete -F _%s %s\n",
                  inv->program, inv->program);
}

/* ---- zsh ---- */

/* In _arguments and _describe a colon and brackets mean something, in '...' the quote does. */
static void put_zsh_text(FILE *to, const char *text)
{
    for (; *text; text++) {
        if (*text == '\'')
            (void)fputs("'\\''", to);
        else if (strchr(":[]\\", *text))
            (void)fprintf(to, "\\%c", *text);
        else
            (void)fputc(*text, to);
    }
}

static void put_zsh_option(FILE *to, const struct cli_option *o)
{
    (void)fprintf(to, " \\\n            '%s%s%s[", o->repeatable ? "*" : "", o->name,
                  o->argument ? "=" : "");
    put_zsh_text(to, o->help);
    (void)fputc(']', to);
    if (o->argument) {
        (void)fputc(':', to);
        put_zsh_text(to, o->argument);
        if (o->kind == VALUE_FILE)
            (void)fprintf(to, ":_files");
        else if (o->kind == VALUE_DIRECTORY)
            (void)fprintf(to, ":_files -/");
        else if (o->values)
            (void)fprintf(to, ":(%s)", o->values);
        else
            (void)fprintf(to, ": ");
    }
    (void)fputc('\'', to);
}

static void put_zsh_command(FILE *to, const struct command *command)
{
    (void)fprintf(to, "    '%s')\n        _arguments '--help[show help]'", command->path);
    for (const struct cli_option *o = command->options; o->name; o++)
        put_zsh_option(to, o);
    if (command->values && *command->values)
        (void)fprintf(to, " \\\n            '%c:value:(%s)'", begins_with_verb(command) ? '1' : '*',
                      command->values);
    else if (command->takes_command)
        (void)fprintf(to, " \\\n            '*::command:_normal'");
    else if (!command->values && command->operand_max)
        (void)fprintf(to, " \\\n            '*:file:_files'");
    if (command->then_files)
        (void)fprintf(to, " \\\n            '*:file:_files'");
    (void)fprintf(to, " ;;\n");
}

static void put_zsh_level(FILE *to, const char *group)
{
    for (size_t i = 0; !group && i < command_group_n; i++) {
        (void)fprintf(to, " '%s:", command_groups[i].name);
        put_zsh_text(to, command_groups[i].summary);
        (void)fputc('\'', to);
    }
    for (size_t i = 0; i < command_n; i++) {
        const char *word = group ? command_in_group(commands[i], group) : commands[i]->path;

        if (!word || strchr(word, ' '))
            continue;
        (void)fprintf(to, " '%s:", word);
        put_zsh_text(to, commands[i]->summary);
        (void)fputc('\'', to);
    }
}

static void print_zsh(const struct invocation *inv)
{
    FILE *to = inv->out;

    (void)fprintf(to,
                  "#compdef %s\n_%s() {\n    local -a words_here\n    local path_here\n"
                  "    if (( CURRENT == 2 )); then\n        words_here=(",
                  inv->program, inv->program);
    put_zsh_level(to, NULL);
    (void)fprintf(to, ")\n        _describe command words_here\n        return\n    fi\n"
                      "    path_here=$words[2]\n    case $path_here in\n");
    for (size_t i = 0; i < command_group_n; i++) {
        (void)fprintf(to, "    %s)\n        if (( CURRENT == 3 )); then\n            words_here=(",
                      command_groups[i].name);
        put_zsh_level(to, command_groups[i].name);
        (void)fprintf(to, ")\n            _describe command words_here\n            return\n"
                          "        fi\n        path_here+=\" $words[3]\"\n"
                          "        shift words; (( CURRENT-- )) ;;\n");
    }
    (void)fprintf(to, "    esac\n    shift words; (( CURRENT-- ))\n    case $path_here in\n");
    for (size_t i = 0; i < command_n; i++)
        put_zsh_command(to, commands[i]);
    (void)fprintf(to, "    esac\n}\n_%s \"$@\"\n", inv->program);
}

/* ---- fish ---- */

static void put_fish_text(FILE *to, const char *text)
{
    (void)fputc('\'', to);
    for (; *text; text++)
        (void)fprintf(to, strchr("'\\", *text) ? "\\%c" : "%c", *text);
    (void)fputc('\'', to);
}

/* The condition under which a command's own words are offered; behind one of these, if there are
 * any. */
static void put_fish_condition(const struct invocation *inv, const struct command *command,
                               const char *behind)
{
    const char *blank = strchr(command->path, ' ');
    int n = blank ? (int)(blank - command->path) : (int)strlen(command->path);

    (void)fprintf(inv->out, "complete -c %s -n '__fish_seen_subcommand_from %.*s", inv->program, n,
                  command->path);
    if (blank)
        (void)fprintf(inv->out, "; and __fish_seen_subcommand_from %s", blank + 1);
    if (behind)
        (void)fprintf(inv->out, "; and __fish_seen_subcommand_from %s", behind);
    (void)fprintf(inv->out, "'");
}

static void put_fish_command(const struct invocation *inv, const struct command *command)
{
    for (const struct cli_option *o = command->options; o->name; o++) {
        put_fish_condition(inv, command, NULL);
        (void)fprintf(inv->out, " -l %s", o->name + 2);
        if (o->argument)
            (void)fprintf(inv->out,
                          o->kind == VALUE_FILE || o->kind == VALUE_DIRECTORY ? " -r -F" : " -x");
        if (o->values)
            (void)fprintf(inv->out, " -a '%s'", o->values);
        (void)fprintf(inv->out, " -d ");
        put_fish_text(inv->out, o->help);
        (void)fputc('\n', inv->out);
    }
    if (command->operand_max && (!command->values || *command->values)) {
        put_fish_condition(inv, command, NULL);
        if (command->values)
            (void)fprintf(inv->out, " -a '%s'\n", command->values);
        else
            (void)fprintf(inv->out, " -F\n");
    }
    if (command->then_files) {
        put_fish_condition(inv, command, command->values);
        (void)fprintf(inv->out, " -F\n");
    }
}

static void print_fish(const struct invocation *inv)
{
    (void)fprintf(inv->out, "# %s: completion for fish\ncomplete -c %s -f\n", inv->program,
                  inv->program);
    for (size_t i = 0; i < command_group_n; i++) {
        (void)fprintf(inv->out, "complete -c %s -n __fish_use_subcommand -a %s -d ", inv->program,
                      command_groups[i].name);
        put_fish_text(inv->out, command_groups[i].summary);
        (void)fputc('\n', inv->out);
    }
    for (size_t i = 0; i < command_n; i++) {
        const char *blank = strchr(commands[i]->path, ' ');

        if (blank)
            (void)fprintf(
                inv->out, "complete -c %s -n '__fish_seen_subcommand_from %.*s' -a %s -d ",
                inv->program, (int)(blank - commands[i]->path), commands[i]->path, blank + 1);
        else
            (void)fprintf(inv->out, "complete -c %s -n __fish_use_subcommand -a %s -d ",
                          inv->program, commands[i]->path);
        put_fish_text(inv->out, commands[i]->summary);
        (void)fputc('\n', inv->out);
    }
    for (size_t i = 0; i < command_n; i++)
        put_fish_command(inv, commands[i]);
}

/* ---- the manual ---- */

/* scdoc reads _, * and \ as markup, and joins lines unless told. */
static void put_scdoc(FILE *to, const char *text)
{
    char before = 0;

    for (; *text; before = *text++) {
        if (strchr("_*\\", *text))
            (void)fputc('\\', to);
        else if (*text == '\n' && before != '\n' && text[1] != '\n')
            (void)fputs("++", to);
        (void)fputc(*text, to);
    }
}

static void print_man(const struct invocation *inv)
{
    FILE *to = inv->out;

    for (size_t i = 0; i < command_n; i++) {
        const struct command *c = commands[i];

        (void)fprintf(to, "## %s %s%s%s%s\n\n", inv->program, c->path,
                      c->options->name ? " [options]" : "", *c->operands ? " " : "", c->operands);
        put_scdoc(to, c->summary);
        (void)fprintf(to, ".\n\n");
        if (*c->help) {
            put_scdoc(to, c->help);
            (void)fprintf(to, "\n\n");
        }
        for (const struct cli_option *o = c->options; o->name; o++) {
            (void)fprintf(to, "*%s*%s", o->name, o->argument ? " " : "");
            if (o->argument)
                put_scdoc(to, o->argument);
            (void)fprintf(to, "\n\t");
            put_scdoc(to, o->help);
            (void)fprintf(to, "\n\n");
        }
    }
}

int run_completion(struct invocation *inv)
{
    static const struct shell shells[] = {
        {"bash", print_bash},
        {"zsh",  print_zsh },
        {"fish", print_fish},
        {"man",  print_man },
    };
    struct err err;

    for (size_t i = 0; i < COUNT(shells); i++)
        if (strcmp(inv->operands.v[0], shells[i].name) == 0) {
            shells[i].print(inv);
            return 0;
        }
    (void)err_set(&err, ERR_INVALID, "no completion for \"%s\"; there are bash, zsh and fish",
                  inv->operands.v[0]);
    return cli_error(inv, &err);
}
