/* SPDX-License-Identifier: Apache-2.0 */

/* The section "elevated": commands that may run on the machine itself, without walls, once a person
 * has confirmed it. Nothing in it is a pattern: a rule spells out one command. */

#include "flow/decide/decide.h"
#include "flow/decide/load.h"
#include "lib/shell/shell.h"

#include <stdlib.h>
#include <string.h>

#define USER_MAX_BYTES 64
#define REASON_MAX_BYTES 500

struct entry {
    const struct json *name;
    const struct json *allow;
    const struct json *user;
    const struct json *reason;
};

/* clang-format off */
static const struct field entry_fields[] = {
    {"name",   offsetof(struct entry, name),   TAKES_TEXT, true },
    {"allow",  offsetof(struct entry, allow),  TAKES_LIST, true },
    {"user",   offsetof(struct entry, user),   TAKES_TEXT, false},
    {"reason", offsetof(struct entry, reason), TAKES_TEXT, false},
};
/* clang-format on */

/* A path that is exactly one, of a program that runs no other. */
static int check_program(struct load *load, const struct json *word)
{
    const char *text = arena_text(load->mem, word->text);

    if (text[0] != '/' || strstr(text, "/../") || strstr(text, "/./") || strstr(text, "//"))
        return load_bad(load, word->mark,
                        "\"%s\": an elevated rule names its program by a plain absolute path",
                        shown(load, word->text));
    if (shell_is_carrier(shell_base(text)))
        return load_bad(load, word->mark,
                        "\"%s\" runs other programs; an elevated rule names the program itself",
                        shown(load, word->text));
    return 0;
}

static int load_words(struct load *load, const struct json *list, struct words *out)
{
    const char **v;
    size_t n = 0;

    if (list->n == 0 || list->n > ARGV_WORDS_MAX)
        return load_bad(load, list->mark, "an elevated rule spells out a command");
    v = arena_array(load->mem, const char *, list->n + 1);
    json_each(word, list)
    {
        if (load_kind(load, word, TAKES_TEXT | TAKES_NUMBER, "a word of an elevated rule") < 0)
            return -1;
        if (memchr(word->text.p, '\0', word->text.n) || memchr(word->text.p, '*', word->text.n))
            return load_bad(load, word->mark,
                            "\"%s\": an elevated rule has no wildcards; write one for each command",
                            shown(load, word->text));
        if (n == 0 && check_program(load, word) < 0)
            return -1;
        v[n++] = arena_text(load->mem, word->text);
    }
    *out = (struct words){v, n};
    return 0;
}

static int load_entry(struct load *load, const struct json *map, struct elevated_rule *out)
{
    struct entry in = {0};

    if (load_kind(load, map, TAKES_MAP, "an elevated rule") < 0 ||
        load_map(load, map, entry_fields, COUNT(entry_fields), &in) < 0 ||
        load_text(load, in.name, USER_MAX_BYTES, "\"name\"") < 0 ||
        (in.user && load_text(load, in.user, USER_MAX_BYTES, "\"user\"") < 0) ||
        (in.reason && load_text(load, in.reason, REASON_MAX_BYTES, "\"reason\"") < 0))
        return -1;
    if (in.user && (str_is(in.user->text, "root") || str_is(in.user->text, "0")))
        return load_bad(load, in.user->mark, "nothing of a caller's runs as root, elevated or not");
    *out = (struct elevated_rule){
        .name = arena_text(load->mem, in.name->text),
        .line = map->mark.line,
        .user = in.user ? arena_text(load->mem, in.user->text) : NULL,
        .reason = in.reason ? arena_text(load->mem, in.reason->text) : NULL,
    };
    return load_words(load, in.allow, &out->words);
}

int load_elevated(struct load *load, const struct json *section)
{
    struct elevated_rule *rules;
    size_t n = 0;

    if (!section)
        return 0;
    if (load_count(load, section, "\"elevated\"") < 0)
        return -1;
    rules = arena_array(load->mem, struct elevated_rule, section->n + 1);
    json_each(entry, section)
    {
        if (load_entry(load, entry, &rules[n++]) < 0)
            return -1;
    }
    load->policy->elevated = rules;
    load->policy->elevated_n = n;
    return 0;
}

static bool is_same(struct words a, struct words b)
{
    if (a.n != b.n)
        return false;
    for (size_t i = 0; i < a.n; i++)
        if (strcmp(a.v[i], b.v[i]) != 0)
            return false;
    return true;
}

const struct elevated_rule *policy_elevated(const struct policy *policy, struct words argv)
{
    for (size_t i = 0; i < policy->elevated_n; i++)
        if (is_same(policy->elevated[i].words, argv))
            return &policy->elevated[i];
    return NULL;
}

bool elevated_is_carrier(const char *program)
{
    AUTO_FREE char *path = realpath(program, NULL);

    return shell_is_carrier(shell_base(path ? path : program));
}
