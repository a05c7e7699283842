/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a rule matches the words of a command, and which of all rules decides about them. */
#include "flow/decide/rule-match.h"

#include <string.h>

#include "flow/decide/carrier.h"
#include "flow/decide/load.h"
#include "flow/decide/policy.h"
#include "lib/base/attrs.h"
#include "lib/base/limits.h"

/* With /usr/bin written /bin. */
static struct str resolved(struct str path, char *out)
{
    struct str result = path_resolve((struct str){0}, path, out);

    if (str_starts(result, "/usr/bin/") || str_starts(result, "/usr/sbin/"))
        result = (struct str){result.p + 4, result.n - 4};
    return result;
}

static bool names_site(const struct program *program, struct str typed)
{
    UNFILLED char path[PATH_BYTES_MAX + 2];

    return typed.n < PATH_BYTES_MAX && glob_match(program->site, resolved(typed, path));
}

/* For deny and ask: by name wherever the program lies, by path where the path is known. */
static bool names_program(const struct program *program, struct str typed, struct str base)
{
    if (glob_match(program->word, typed))
        return true;
    if (!program->has_slash)
        return base.n < typed.n && glob_match(program->word, base);
    if (typed.n == 0 || typed.p[0] != '/' || typed.n >= PATH_BYTES_MAX)
        return glob_match(program->base, base);
    return names_site(program, typed);
}

/* For allow: a bare name is looked up in read-only folders, so it may stand for the program; a
 * path is only ever allowed as a path. */
static bool allows_program(const struct subject *subject, const struct program *program,
                           struct str typed, struct str base)
{
    if (!program->has_slash)
        return subject->bare_names_trusted && base.n == typed.n && glob_match(program->word, typed);
    return glob_match(program->path, typed) && is_plain_path(typed);
}

static bool place_matches(const struct place *place, struct str word, bool allowing)
{
    for (size_t i = 0; i < place->n; i++) {
        /* "/workspace/" and a star must not reach out of /workspace. */
        if (allowing && place->has_slash[i] && !glob_is_literal(place->any[i]) && has_dot_dot(word))
            continue;
        if (glob_match(place->any[i], word))
            return true;
    }
    return false;
}

/* Words against places, both from their first one. After a ** only the latest one ever needs to
 * be widened: what earlier ones took is the least they can take. */
bool places_match(const struct place *places, size_t place_n, struct slice words, bool allowing)
{
    size_t p = 0, w = 0, rest_p = SIZE_MAX, rest_w = 0;

    while (w < words.n) {
        if (p < place_n && places[p].rest) {
            rest_p = p++;
            rest_w = w;
        } else if (p < place_n && place_matches(&places[p], str_of(words.v[w]), allowing)) {
            p++;
            w++;
        } else if (rest_p != SIZE_MAX) {
            p = rest_p + 1;
            w = ++rest_w;
        } else {
            return false;
        }
        if (p == place_n && p && places[p - 1].rest)
            return true; /* a final ** takes all that is left */
    }
    while (p < place_n && places[p].rest)
        p++;
    return p == place_n;
}

bool rule_program_matches(const struct scene *scene, const struct rule *rule)
{
    for (size_t i = 0; i < rule->program_n; i++)
        if (rule->kind == VERDICT_ALLOW
                ? allows_program(scene->subject, &rule->programs[i], scene->typed, scene->base)
                : names_program(&rule->programs[i], scene->typed, scene->base))
            return true;
    return false;
}

static bool rule_words_match(const struct scene *scene, const struct rule *rule)
{
    bool allowing = rule->kind == VERDICT_ALLOW;
    struct slice words = scene->words;

    if (rule->program_n == 0)
        return places_match(rule->places, rule->place_n, words, allowing);
    return rule_program_matches(scene, rule) &&
           places_match(rule->places + 1, rule->place_n - 1,
                        (struct slice){words.v + 1, words.n - 1}, allowing);
}

/* Without words a rule is over every command. An allow rule then is not over a bare name that the
 * request itself gives a meaning to by its PATH, nor over a path that does not say which file. */
static bool wordless_matches(const struct scene *scene, const struct rule *rule)
{
    if (rule->kind != VERDICT_ALLOW || scene->is_tool)
        return true;
    return scene->base.n == scene->typed.n ? scene->subject->bare_names_trusted
                                           : is_plain_path(scene->typed);
}

bool rule_words_fit(const struct scene *scene, const struct rule *rule)
{
    return rule->place_n ? rule_words_match(scene, rule) : wordless_matches(scene, rule);
}

static bool rule_matches(struct scene *scene, const struct rule *rule)
{
    return rule_words_fit(scene, rule) && (!rule->conditions || conditions_hold(scene, rule));
}

/* For words further back, rules that begin with ** and say nothing else have been held against all
 * of the words already. */
static bool is_over_rest(const struct rule *rule)
{
    return rule->program_n == 0 && !rule->conditions;
}

/* DENY is the smallest kind. */
static const struct rule *find_plainly(struct scene *scene, bool later)
{
    const struct policy *policy = scene->subject->policy;
    const struct rule *best = NULL;

    for (size_t i = 0; i < policy->rule_n; i++) {
        const struct rule *rule = &policy->rules[i];

        if ((best && rule->kind >= best->kind) || (later && is_over_rest(rule)))
            continue;
        if (rule_matches(scene, rule))
            best = rule;
    }
    return best;
}

static const struct rule *find_by_name(struct scene *scene, bool later)
{
    struct rule_walk walk = rule_walk_begin(scene->subject->policy->index, scene->base);
    const struct rule *rule;

    while ((rule = rule_walk_next(&walk)))
        if (!(later && is_over_rest(rule)) && rule_matches(scene, rule))
            return rule;
    return NULL;
}

bool names_tool(const struct action *action, struct slice words)
{
    return action->tool && strncmp(words.v[0], "tool:", 5) == 0 &&
           strcmp(words.v[0] + 5, action->tool) == 0;
}

struct scene scene_of(struct subject *subject, struct slice words)
{
    const struct action *action = &subject->run->action;
    struct scene scene = {.subject = subject,
                          .words = words,
                          .typed = str_of(words.v[0]),
                          .base = str_of(program_base(words.v[0])),
                          .is_tool = names_tool(action, words),
                          .mem = ARENA(RUN_MEMORY_MAX)};

    scene.effect = effect_of(words, scene.is_tool, subject->bare_names_trusted);
    if (action->effect && scene.is_tool)
        scene.effect = effect_as_said(scene.effect, action->effect);
    return scene;
}

const struct rule *rule_find(struct subject *subject, struct slice words, bool later)
{
    struct scene scene = scene_of(subject, words);
    const struct rule *found;

    if (!later)
        subject->effect = effect_graver(subject->effect, scene.effect);
    found = !subject->policy->index || !rule_index_knows(scene.base) ? find_plainly(&scene, later)
                                                                     : find_by_name(&scene, later);
    arena_done(&scene.mem);
    return found;
}

static bool rule_concerns_program(const struct rule *rule, struct str typed, struct str base)
{
    for (size_t i = 0; i < rule->program_n; i++)
        if (names_program(&rule->programs[i], typed, base))
            return true;
    return rule->program_n == 0;
}

/* Deny and ask rules come first in a walk. */
static bool concerns_by_name(const struct rule_index *index, struct str typed, struct str base)
{
    struct rule_walk walk = rule_walk_begin(index, base);
    const struct rule *rule;

    while ((rule = rule_walk_next(&walk)) && rule->kind != VERDICT_ALLOW)
        if (rule_concerns_program(rule, typed, base))
            return true;
    return false;
}

bool rule_concerns(const struct policy *policy, const char *program)
{
    struct str typed = str_of(program);
    struct str base = str_of(program_base(program));

    if (policy->index && rule_index_knows(base))
        return concerns_by_name(policy->index, typed, base);
    for (size_t i = 0; i < policy->rule_n; i++)
        if (policy->rules[i].kind != VERDICT_ALLOW &&
            rule_concerns_program(&policy->rules[i], typed, base))
            return true;
    return false;
}
