/* SPDX-License-Identifier: Apache-2.0 */
/* The sections commands, rules over the words of a command, and paths, rules over what they name.
 */
#include "flow/decide/load-rule.h"

#include <string.h>

#include "flow/decide/rule-match.h"

/* An allow rule whose program begins with fewer plain characters than this names no program. */
#define PROGRAM_PLAIN_MIN 3
#define NAME_MAX_BYTES 64
#define REASON_MAX_BYTES 500

struct rule_keys {
    const struct json *name;
    const struct json *allow;
    const struct json *ask;
    const struct json *deny;
    const struct json *reason;
    struct condition_keys conditions;
    const struct json *approval;
};

#define TAKES_SOME (TAKES_TEXT | TAKES_LIST)
#define CONDITION(key, takes)                                                                      \
    {                                                                                              \
#key, offsetof(struct rule_keys, conditions.key), takes, false                             \
    }

/* An empty list of words, or none at all, is a rule over every command. */
static const struct field rule_fields[] = {
    {"name",     offsetof(struct rule_keys, name),     TAKES_TEXT, false},
    {"allow",    offsetof(struct rule_keys, allow),    TAKES_LIST, false},
    {"ask",      offsetof(struct rule_keys, ask),      TAKES_LIST, false},
    {"deny",     offsetof(struct rule_keys, deny),     TAKES_LIST, false},
    {"reason",   offsetof(struct rule_keys, reason),   TAKES_TEXT, false},
    CONDITION(principal, TAKES_SOME),
    CONDITION(tenant, TAKES_SOME),
    CONDITION(provider, TAKES_SOME),
    CONDITION(tool, TAKES_SOME),
    CONDITION(env, TAKES_SOME),
    CONDITION(paths, TAKES_SOME),
    CONDITION(effect, TAKES_SOME),
    CONDITION(risk, TAKES_TEXT),
    CONDITION(time, TAKES_MAP),
    CONDITION(cost, TAKES_TEXT),
    CONDITION(when, TAKES_TEXT),
    {"approval", offsetof(struct rule_keys, approval), TAKES_TEXT, false},
};

static int new_glob(struct load *load, struct mark mark, struct str pattern, enum glob_kind kind,
                    const struct glob **out)
{
    struct err err;

    if (glob_new(load->mem, pattern, kind, out, &err) < 0)
        return load_bad(load, mark, "pattern \"%s\": %s", shown(load, pattern), err.text);
    return 0;
}

static struct str behind_last_slash(struct str s)
{
    const char *slash = s.n ? memrchr(s.p, '/', s.n) : NULL;
    size_t skip = slash ? (size_t)(slash - s.p) + 1 : 0;

    return (struct str){s.p + skip, s.n - skip};
}

/* ---- the first word ---- */

/* An allow rule that any program satisfies is not a rule, and a relative path means another
 * file in every working directory. */
static int check_allowed_program(struct load *load, const struct json *word,
                                 const struct program *program)
{
    const struct glob *name = program->has_slash ? program->base : program->word;
    const char *text = shown(load, word->text);

    if (program->has_slash && word->text.p[0] != '/')
        return load_bad(load, word->mark,
                        "\"%s\": an allow rule names a program by bare name or by absolute path",
                        text);
    if (!glob_is_literal(name) && glob_plain_length(name) < PROGRAM_PLAIN_MIN)
        return load_bad(load, word->mark,
                        "\"%s\" is too broad for an allow rule: the name of the program must begin "
                        "with at least %d plain characters; to allow everything else write "
                        "\"default: allow\"",
                        text, PROGRAM_PLAIN_MIN);
    if (program->has_slash && glob_is_literal(name) && name == program->base && word->text.n &&
        word->text.p[word->text.n - 1] == '/')
        return load_bad(load, word->mark, "\"%s\" names a folder, not a program", text);
    return 0;
}

/* /usr/bin and /bin are one folder on merged systems; deny rules see them as one. */
static struct str without_usr(struct str path)
{
    if (str_starts(path, "/usr/bin/") || str_starts(path, "/usr/sbin/"))
        return (struct str){path.p + 4, path.n - 4};
    return path;
}

static int load_program(struct load *load, const struct json *word, enum verdict_kind kind,
                        struct program *out)
{
    struct str text = word->text;

    out->has_slash = memchr(text.p, '/', text.n) != NULL;
    /* A command's path is compared without such parts, so this one would match nothing. */
    if (kind != VERDICT_ALLOW && text.p[0] == '/' && !is_plain_path(text))
        return load_bad(load, word->mark,
                        "\"%s\": the path of a program is written without \"//\", \".\" and "
                        "\"..\", and does not end in \"/\"",
                        shown(load, text));
    if (new_glob(load, word->mark, text, GLOB_WORD, &out->word) < 0)
        return -1;
    if (out->has_slash &&
        (new_glob(load, word->mark, text, GLOB_PATH, &out->path) < 0 ||
         new_glob(load, word->mark, without_usr(text), GLOB_WORD, &out->site) < 0 ||
         new_glob(load, word->mark, behind_last_slash(text), GLOB_WORD, &out->base) < 0))
        return -1;
    return kind == VERDICT_ALLOW ? check_allowed_program(load, word, out) : 0;
}

/* ---- words ---- */

static int check_word(struct load *load, const struct json *word)
{
    if (load_kind(load, word, TAKES_TEXT, "a word of a rule (quote numbers)") < 0)
        return -1;
    if (word->text.n && memchr(word->text.p, 0, word->text.n))
        return load_bad(load, word->mark, "a word cannot contain a NUL character");
    return 0;
}

/* The alternatives in one place: the word itself, or the words of the list that stands there. */
static int check_place(struct load *load, const struct json *place, size_t *n)
{
    *n = 1;
    if (place->kind != JSON_ARRAY)
        return check_word(load, place);
    *n = place->n;
    if (place->n == 0)
        return load_bad(load, place->mark, "a list of alternatives must not be empty");
    if (place->n > POLICY_ALTERNATIVES_MAX)
        return load_bad(load, place->mark, "more than %d alternatives", POLICY_ALTERNATIVES_MAX);
    json_each(word, place)
    {
        if (check_word(load, word) < 0)
            return -1;
        if (str_is(word->text, "**"))
            return load_bad(load, word->mark,
                            "\"**\" stands for any number of words and cannot be an alternative");
    }
    return 0;
}

static const struct json *first_word(const struct json *place)
{
    return place->kind == JSON_ARRAY ? place->first : place;
}

static int load_place(struct load *load, const struct json *in, struct rule *rule,
                      struct place *out)
{
    const struct glob **any;
    bool *has_slash;
    size_t i = 0;

    if (check_place(load, in, &out->n) < 0)
        return -1;
    if (in->kind == JSON_STRING && str_is(in->text, "**")) {
        rule->literal = false;
        *out = (struct place){.rest = true};
        return 0;
    }
    any = arena_array(load->mem, const struct glob *, out->n);
    has_slash = arena_array(load->mem, bool, out->n);
    for (const struct json *word = first_word(in); i < out->n; word = word->next, i++) {
        if (new_glob(load, word->mark, word->text, GLOB_WORD, &any[i]) < 0)
            return -1;
        has_slash[i] = word->text.n && memchr(word->text.p, '/', word->text.n) != NULL;
        rule->literal = rule->literal && glob_is_literal(any[i]);
    }
    out->any = any;
    out->has_slash = has_slash;
    return 0;
}

static int load_programs(struct load *load, const struct json *in, struct rule *rule)
{
    struct program *programs;
    size_t n, i = 0;

    if (check_place(load, in, &n) < 0)
        return -1;
    if (in->kind == JSON_STRING && str_is(in->text, "**")) {
        if (rule->kind == VERDICT_ALLOW)
            return load_bad(load, in->mark,
                            "an allow rule that begins with \"**\" allows every program; to allow "
                            "everything that no other rule stops, write \"default: allow\"");
        return 0;
    }
    programs = arena_array(load->mem, struct program, n);
    for (const struct json *word = first_word(in); i < n; word = word->next, i++) {
        if (word->text.n == 0)
            return load_bad(load, word->mark, "the program of a rule must not be empty");
        if (load_program(load, word, rule->kind, &programs[i]) < 0)
            return -1;
    }
    rule->programs = programs;
    rule->program_n = n;
    return 0;
}

/* Without words a rule is over every command, so it has to say something else. */
static int check_wordless(struct load *load, const struct json *list, const struct rule *rule)
{
    if (!rule->conditions)
        return load_bad(load, list->mark,
                        "a rule without words needs a condition; name a program, or say what it is "
                        "about with effect, paths, when, …");
    if (rule->kind == VERDICT_ALLOW && !conditions_narrow(rule->conditions))
        return load_bad(load, list->mark,
                        "an allow rule without words needs a condition about who or what: "
                        "principal, tenant, provider, tool, paths, effect, risk or when");
    return 0;
}

static int load_pattern(struct load *load, const struct json *list, struct rule *rule)
{
    struct place *places;
    size_t n = 0;

    if (list->n == 0)
        return check_wordless(load, list, rule);

    if (list->n > POLICY_PATTERN_WORDS_MAX)
        return load_bad(load, list->mark, "more than %d words in a rule", POLICY_PATTERN_WORDS_MAX);
    rule->literal = true;
    places = arena_array(load->mem, struct place, list->n);
    json_each(in, list)
    {
        if (load_kind(load, in, TAKES_TEXT | TAKES_LIST,
                      "a word of a rule (quote numbers and true)") < 0 ||
            (in == list->first && load_programs(load, in, rule) < 0) ||
            load_place(load, in, rule, &places[n++]) < 0)
            return -1;
    }
    rule->places = places;
    rule->place_n = n;
    return 0;
}

/* ---- rules ---- */

/* The rule that has this name already, or NULL; then it is this one's. The table has twice as many
 * places as there are rules, so looking is short however many there are. */
static const struct rule *name_taken(struct load *load, struct str name, size_t at)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    size_t mask = load->rule_names_n - 1;

    for (size_t i = 0; i < name.n; i++)
        hash = (hash ^ (unsigned char)name.p[i]) * UINT64_C(0x100000001b3);
    for (size_t place = hash & mask;; place = (place + 1) & mask) {
        uint32_t *rule = &load->rule_names[place];

        if (*rule == 0) {
            *rule = (uint32_t)at + 1;
            return NULL;
        }
        if (str_is(name, load->policy->rules[*rule - 1].name))
            return &load->policy->rules[*rule - 1];
    }
}

/* Names appear in receipts and on terminals: plain, short, and one rule each. */
static int load_name(struct load *load, const struct json *name, size_t at, struct rule *rule)
{
    const struct rule *taken;

    if (load_text(load, name, NAME_MAX_BYTES, "the name of a rule") < 0)
        return -1;
    for (size_t i = 0; i < name->text.n; i++) {
        char c = name->text.p[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              strchr("-_.", c)))
            return load_bad(load, name->mark,
                            "name \"%s\": use letters, digits, \"-\", \"_\" and \".\"",
                            shown(load, name->text));
    }
    taken = name_taken(load, name->text, at);
    if (taken)
        return load_bad(load, name->mark, "name \"%s\" is taken by the rule in line %u",
                        shown(load, name->text), taken->line);
    rule->name = arena_text(load->mem, name->text);
    return 0;
}

static int load_reason(struct load *load, const struct json *reason, struct rule *rule)
{
    if (!reason)
        return 0;
    if (load_text(load, reason, REASON_MAX_BYTES, "\"reason\"") < 0)
        return -1;
    rule->reason = arena_text(load->mem, reason->text);
    return 0;
}

/* What every rule may say of itself, whatever it is about. */
static int load_common(struct load *load, const struct rule_keys *keys, const char *unnamed,
                       struct rule *rule)
{
    rule->name = unnamed;
    if (keys->name && load_name(load, keys->name, (size_t)(rule - load->policy->rules), rule) < 0)
        return -1;
    if (keys->approval && rule->kind != VERDICT_ASK)
        return load_bad(load, keys->approval->key_mark, "\"approval\" belongs to a rule that asks");
    if (keys->approval && load_approval_name(load, keys->approval, &rule->approvers) < 0)
        return -1;
    return load_reason(load, keys->reason, rule);
}

static int load_rule(struct load *load, const struct json *in, const char *unnamed,
                     struct rule *rule)
{
    struct rule_keys keys = {0};
    const struct json *words;

    if (load_kind(load, in, TAKES_MAP, "a rule") < 0 ||
        load_map(load, in, rule_fields, COUNT(rule_fields), &keys) < 0)
        return -1;
    if (!!keys.allow + !!keys.ask + !!keys.deny != 1)
        return load_bad(load, in->mark,
                        "a rule has exactly one of \"allow\", \"ask\" and \"deny\"");
    words = keys.allow ? keys.allow : keys.ask ? keys.ask : keys.deny;
    rule->kind = keys.allow ? VERDICT_ALLOW : keys.ask ? VERDICT_ASK : VERDICT_DENY;
    rule->line = in->mark.line;
    if (load_conditions(load, &keys.conditions, rule->kind == VERDICT_ALLOW, &rule->conditions) <
            0 ||
        load_pattern(load, words, rule) < 0)
        return -1;
    return load_common(load, &keys, unnamed, rule);
}

/* ---- paths ---- */

/* The same rule as one of commands without words and with the condition "paths". What may be
 * reached at all is not said here: that is filesystem_policy, which the kernel holds. */
static int load_path_rule(struct load *load, const struct json *in, const char *unnamed,
                          struct rule *rule)
{
    static const struct field fields[] = {
        {"name",     offsetof(struct rule_keys, name),     TAKES_TEXT, false},
        {"ask",      offsetof(struct rule_keys, ask),      TAKES_SOME, false},
        {"deny",     offsetof(struct rule_keys, deny),     TAKES_SOME, false},
        {"reason",   offsetof(struct rule_keys, reason),   TAKES_TEXT, false},
        {"approval", offsetof(struct rule_keys, approval), TAKES_TEXT, false},
    };
    struct rule_keys keys = {0};
    struct condition_keys about = {0};

    if (load_kind(load, in, TAKES_MAP, "a rule over paths") < 0 ||
        load_map(load, in, fields, COUNT(fields), &keys) < 0)
        return -1;
    if (!!keys.ask + !!keys.deny != 1)
        return load_bad(load, in->mark,
                        "a rule over paths has exactly one of \"ask\" and \"deny\"");
    rule->kind = keys.ask ? VERDICT_ASK : VERDICT_DENY;
    rule->line = in->mark.line;
    about.paths = keys.ask ? keys.ask : keys.deny;
    if (load_conditions(load, &about, false, &rule->conditions) < 0)
        return -1;
    return load_common(load, &keys, unnamed, rule);
}

/* ---- sections ---- */

static int load_rules(struct load *load, const struct json *section, const char *what,
                      int (*load_one)(struct load *, const struct json *, const char *,
                                      struct rule *))
{
    struct policy *policy = load->policy;
    size_t at = 0;

    if (!section)
        return 0;
    if (!policy->commands_line)
        policy->commands_line = section->key_mark.line;
    json_each(in, section)
    {
        struct rule *rule = &policy->rules[policy->rule_n];

        if (load_one(load, in, arena_printf(load->mem, "%s[%zu]", what, at++), rule) < 0)
            return -1;
        policy->restricts = policy->restricts || rule->kind != VERDICT_ALLOW;
        policy->rule_n++;
    }
    return 0;
}

static size_t count_of(const struct json *section)
{
    return section ? section->n : 0;
}

int load_commands(struct load *load, const struct json *commands, const struct json *paths)
{
    struct policy *policy = load->policy;
    size_t n = count_of(commands) + count_of(paths);

    if (!commands && !paths)
        return 0;
    policy->has_commands = commands != NULL;
    /* Rules over paths alone object to some commands; they do not list those that may run. */
    if (!commands && !policy->has_default)
        policy->fallback = VERDICT_ALLOW;
    if (n > POLICY_RULES_MAX)
        return load_bad(load, commands ? commands->mark : paths->mark, "more than %d rules",
                        POLICY_RULES_MAX);
    policy->rules = arena_array(load->mem, struct rule, n + 1);
    for (load->rule_names_n = 16; load->rule_names_n < 2 * n;)
        load->rule_names_n *= 2;
    load->rule_names = arena_array(load->mem, uint32_t, load->rule_names_n);
    if (load_rules(load, commands, "commands", load_rule) < 0 ||
        load_rules(load, paths, "paths", load_path_rule) < 0)
        return -1;
    policy->index = rule_index_new(load->mem, policy->rules, policy->rule_n);
    return 0;
}
