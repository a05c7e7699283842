/* SPDX-License-Identifier: Apache-2.0 */

/* Options by the command's row.
 *
 * "--name value" and "--name=value"; options and operands in any order up to "--", behind which
 * nothing is looked at. A command that runs another one wants "--" always: whether "-x" is ours
 * or theirs must not depend on a guess. */

#include "surface/cli/commands.h"

#include <assert.h>
#include <string.h>

#include "lib/base/text.h"

#define MILLI 1000

struct parser {
    struct invocation *inv;
    const char *const *words;
    size_t n;
    size_t at;
    const char **operands;
    size_t operand_n;
};

/* "2", "0.5", "1.25" in thousandths: at most three digits behind the point. */
static bool cpus_parse(struct str text, uint64_t *out)
{
    struct str fraction = text;
    struct str whole = str_cut(&fraction, '.');
    bool has_point = whole.n != text.n;
    uint64_t units = 0;
    uint64_t parts = 0;

    if (!str_u64(whole, &units) || units > UINT32_MAX)
        return false;
    if (has_point && (fraction.n > 3 || !str_u64(fraction, &parts)))
        return false;
    for (size_t i = fraction.n; has_point && i < 3; i++)
        parts *= 10;
    *out = units * MILLI + parts;
    return true;
}

static int number_parse(const struct cli_option *option, const char *text, uint64_t *out,
                        struct err *err)
{
    struct str s = str_of(text);

    switch (option->kind) {
    case VALUE_SIZE:
        if (size_parse(s, out, err) < 0)
            return err_in(err, "%s", option->name);
        break;
    case VALUE_DURATION:
        if (duration_parse(s, out, err) < 0)
            return err_in(err, "%s", option->name);
        break;
    case VALUE_CPUS:
        if (!cpus_parse(s, out))
            return err_set(err, ERR_INVALID,
                           "%s: \"%s\" is not a number of processors like 2 or 0.5", option->name,
                           text);
        break;
    case VALUE_COUNT:
        if (!str_u64(s, out))
            return err_set(err, ERR_INVALID, "%s: \"%s\" is not a whole number", option->name,
                           text);
        break;
    case VALUE_NONE:
    case VALUE_TEXT:
    case VALUE_FILE:
    case VALUE_DIRECTORY:
    case VALUE_CHOICE:
        *out = 0;
        return 0;
    }
    if (*out == 0)
        return err_set(err, ERR_INVALID, "%s must be more than 0", option->name);
    return 0;
}

static int choice_check(const struct cli_option *option, const char *text, struct err *err)
{
    struct str rest = str_of(option->values);

    while (rest.n) {
        struct str word = str_cut(&rest, ' ');

        if (str_is(word, text))
            return 0;
    }
    return err_set(err, ERR_INVALID, "%s: \"%s\" is none of: %s", option->name, text,
                   option->values);
}

static const struct cli_value *value_given(const struct invocation *inv, const char *name)
{
    for (size_t i = 0; i < inv->value_n; i++)
        if (strcmp(inv->values[i].option->name, name) == 0)
            return &inv->values[i];
    return NULL;
}

static int value_add(struct invocation *inv, const struct cli_option *option, const char *text,
                     struct err *err)
{
    struct cli_value value = {.option = option, .text = text};

    if (!option->repeatable && value_given(inv, option->name))
        return err_set(err, ERR_INVALID, "%s is given twice", option->name);
    if (option->kind != VALUE_NONE) {
        if (!*text && !option->may_be_empty)
            return err_set(err, ERR_INVALID, "%s needs a value", option->name);
        if (option->kind == VALUE_CHOICE && choice_check(option, text, err) < 0)
            return -1;
        if (number_parse(option, text, &value.number, err) < 0)
            return -1;
    }
    inv->values[inv->value_n++] = value;
    return 0;
}

static int refuse_unknown(const struct invocation *inv, const char *name, struct err *err)
{
    struct nearest nearest = {.wanted = name};

    for (const struct cli_option *o = inv->command->options; o->name; o++)
        nearest_try(&nearest, o->name);
    if (nearest_found(&nearest))
        return err_set(err, ERR_INVALID, "unknown option %s; did you mean %s?", name,
                       nearest_found(&nearest));
    return err_set(err, ERR_INVALID, "unknown option %s; see \"%s %s --help\"", name, inv->program,
                   inv->command->path);
}

static int parse_option(struct parser *p, const char *word, struct err *err)
{
    struct invocation *inv = p->inv;
    const char *equals = strchr(word, '=');
    const char *name =
        equals ? arena_text(&inv->mem, (struct str){word, (size_t)(equals - word)}) : word;
    const struct cli_option *option = command_option(inv->command, name);
    const char *next = p->at < p->n ? p->words[p->at] : NULL;

    if (!option)
        return refuse_unknown(inv, name, err);
    if (option->kind == VALUE_NONE) {
        if (equals)
            return err_set(err, ERR_INVALID, "%s takes no value", name);
        return value_add(inv, option, "", err);
    }
    if (equals)
        return value_add(inv, option, equals + 1, err);
    if (!next || strncmp(next, "--", 2) == 0)
        return err_set(err, ERR_INVALID, "%s needs a value: %s %s", name, name, option->argument);
    p->at++;
    return value_add(inv, option, next, err);
}

static int check_operands(const struct invocation *inv, bool saw_dashes, size_t before_dashes,
                          struct err *err)
{
    const struct command *c = inv->command;
    const char *first = inv->operands.n ? inv->operands.v[0] : NULL;

    if (c->takes_command && !saw_dashes)
        return err_set(err, ERR_INVALID,
                       first ? "the command must stand behind \"--\": %s %s -- %s ..."
                             : "no command given: %s %s -- CMD [ARG...]",
                       inv->program, c->path, first);
    if (c->takes_command && before_dashes > (c->takes_subject ? 1U : 0U))
        return err_set(err, ERR_INVALID, "\"%s\" stands in front of \"--\" and is no option",
                       first);
    if (inv->operands.n < c->operand_min)
        return err_set(err, ERR_INVALID, "missing %s: %s %s %s",
                       c->takes_command ? "command" : "argument", inv->program, c->path,
                       c->operands);
    if (inv->operands.n > c->operand_max)
        return err_set(err, ERR_INVALID, "unexpected argument \"%s\"",
                       inv->operands.v[c->operand_max]);
    return 0;
}

int parse_options(struct invocation *inv, const char *const *words, size_t n, struct err *err)
{
    struct parser p = {.inv = inv, .words = words, .n = n};
    bool saw_dashes = false;
    size_t before_dashes;

    inv->values = arena_array(&inv->mem, struct cli_value, n + 1);
    p.operands = arena_array(&inv->mem, const char *, n + 1);
    while (p.at < n && !saw_dashes) {
        const char *word = words[p.at++];

        if (strcmp(word, "--") == 0) {
            saw_dashes = true;
        } else if (word[0] == '-' && word[1] != '\0') {
            if (parse_option(&p, word, err) < 0)
                return -1;
        } else {
            p.operands[p.operand_n++] = word;
        }
    }
    before_dashes = p.operand_n;
    while (p.at < n)
        p.operands[p.operand_n++] = words[p.at++];
    inv->operands = (struct words){p.operands, p.operand_n};
    if (check_operands(inv, saw_dashes, before_dashes, err) < 0)
        return -1;
    if (inv->command->takes_subject && before_dashes == 1) {
        inv->subject = p.operands[0];
        inv->operands = (struct words){p.operands + 1, p.operand_n - 1};
    }
    return inv->operands.n < inv->command->operand_min
               ? err_set(err, ERR_INVALID, "no command given: %s %s -- CMD [ARG...]", inv->program,
                         inv->command->path)
               : 0;
}

bool option_flag(const struct invocation *inv, const char *name)
{
    assert(command_option(inv->command, name));
    return value_given(inv, name) != NULL;
}

const char *option_text(const struct invocation *inv, const char *name)
{
    const struct cli_value *value = value_given(inv, name);

    assert(command_option(inv->command, name));
    return value ? value->text : NULL;
}

uint64_t option_number(const struct invocation *inv, const char *name)
{
    const struct cli_value *value = value_given(inv, name);

    assert(command_option(inv->command, name));
    return value ? value->number : 0;
}

struct words option_words(struct invocation *inv, const char *name)
{
    const char **v = arena_array(&inv->mem, const char *, inv->value_n + 1);
    size_t n = 0;

    assert(command_option(inv->command, name));
    for (size_t i = 0; i < inv->value_n; i++)
        if (strcmp(inv->values[i].option->name, name) == 0)
            v[n++] = inv->values[i].text;
    return (struct words){v, n};
}
