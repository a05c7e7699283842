/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the conditions of a rule hold. Each answers for the closed side: about what is not known,
 * yes for deny and ask, no for allow. */
#include <string.h>

#include "flow/decide/policy.h"
#include "flow/decide/rule-match.h"

static bool any_matches(const struct patterns *patterns, struct str text)
{
    for (size_t i = 0; i < patterns->n; i++)
        if (glob_match(patterns->of[i], text))
            return true;
    return false;
}

static bool name_holds(const struct patterns *patterns, const char *name, bool allowing)
{
    if (patterns->n == 0)
        return true;
    if (!name || !*name)
        return !allowing;
    return any_matches(patterns, str_of(name));
}

/* What a tool runs inside is not the tool: allowing the one says nothing about the other. */
static bool tool_holds(const struct scene *scene, const struct patterns *patterns, bool allowing)
{
    const char *tool = scene->subject->run->action.tool;

    if (patterns->n == 0)
        return true;
    if (!tool || !any_matches(patterns, str_of(tool)))
        return false;
    return !allowing || scene->is_tool;
}

/* ---- variables ---- */

/* How many words of each carrier stand in front of what it runs; all where that is no end of
 * them. */
static size_t *heads_of(struct arena *mem, const struct shell_script *script)
{
    size_t *heads = arena_array(mem, size_t, script->n + 1);

    for (size_t i = 0; i < script->n; i++)
        heads[i] = script->commands[i].carrier ? script->commands[i].word_n : 0;
    for (size_t i = 0; i < script->n; i++) {
        const struct shell_command *inner = &script->commands[i], *outer;
        size_t at;

        if (inner->parent == SHELL_NONE)
            continue;
        outer = &script->commands[inner->parent];
        at = outer->word_n - inner->word_n;
        if (inner->word_n && inner->word_n < outer->word_n &&
            outer->words[at].text.p == inner->words[0].text.p && at < heads[inner->parent])
            heads[inner->parent] = at;
    }
    return heads;
}

static void add_assigned(struct arena *mem, struct str word, const char **v, size_t *n)
{
    struct str name = {word.p, word.n ? strcspn(word.p, "=+[") : 0};

    if (name.n && name.n < word.n && word.p[0] != '-' && memchr(word.p, '=', word.n))
        v[(*n)++] = arena_text(mem, name);
}

struct words env_assigned(struct arena *mem, const struct shell_script *script)
{
    const size_t *heads = heads_of(mem, script);
    size_t room = 0, n = 0;
    const char **v;

    for (size_t i = 0; i < script->n; i++)
        room += script->commands[i].assignment_n + heads[i];
    v = arena_array(mem, const char *, room + 1);
    for (size_t i = 0; i < script->n; i++) {
        const struct shell_command *command = &script->commands[i];

        for (size_t k = 0; k < command->assignment_n; k++)
            add_assigned(mem, command->assignments[k].text, v, &n);
        for (size_t k = 1; k < heads[i]; k++)
            add_assigned(mem, command->words[k].text, v, &n);
    }
    return (struct words){v, n};
}

/* Deny and ask: one of these is set. Allow: none but these is. */
static bool env_holds(const struct scene *scene, const struct patterns *patterns, bool allowing)
{
    const struct words set[] = {scene->subject->run->action.env, scene->subject->assigned};

    if (patterns->n == 0)
        return true;
    for (size_t k = 0; k < COUNT(set); k++)
        for (size_t i = 0; i < set[k].n; i++) {
            struct str name = {set[k].v[i], strcspn(set[k].v[i], "=")};

            if (any_matches(patterns, name) != allowing)
                return !allowing;
        }
    return allowing;
}

/* ---- paths ---- */

struct path_search {
    const struct conditions *conditions;
    bool found;
};

static bool plain_path_fits(void *context, struct str path)
{
    const struct conditions *conditions = context;

    for (size_t i = 0; i < conditions->path_n; i++)
        if (glob_match(conditions->paths[i].glob, path))
            return true;
    return false;
}

static bool look_for_path(void *context, struct str path)
{
    struct path_search *search = context;

    for (size_t i = 0; i < search->conditions->path_n && !search->found; i++) {
        const struct path_pattern *pattern = &search->conditions->paths[i];

        search->found = glob_match(pattern->glob, path) ||
                        (pattern->folder && glob_match(pattern->folder, path));
    }
    return !search->found;
}

static bool has_relative_operand(struct slice words)
{
    for (size_t i = 1; i < words.n; i++)
        if (words.v[i][0] && !strchr("/-", words.v[i][0]))
            return true;
    return false;
}

/* Whoever reads the verdict can do something about it. */
static void note_unknown_start(const struct scene *scene, const struct rule *rule)
{
    struct subject *subject = scene->subject;

    if (run_start(subject->run) || !has_relative_operand(scene->words))
        return;
    subject->closed = rule;
    subject->closed_why = "only the image says where relative paths begin; say it with --workdir, "
                          "or write absolute ones";
}

static bool paths_hold(const struct scene *scene, const struct rule *rule)
{
    const struct conditions *conditions = rule->conditions;
    const struct folders *folders = &scene->subject->folders;
    struct path_search search = {conditions, false};

    if (conditions->path_n == 0)
        return true;
    if (rule->kind == VERDICT_ALLOW) { /* the context is only read */
        if (paths_all_plain(scene->words, folders, plain_path_fits, (void *)(uintptr_t)conditions))
            return true;
        note_unknown_start(scene, rule);
        return false;
    }
    if (paths_each(scene->words, folders, look_for_path, &search))
        return search.found;
    note_unknown_start(scene, rule);
    return true;
}

/* ---- effect, risk, time ---- */

static bool effect_holds(const struct scene *scene, const struct conditions *conditions,
                         bool allowing)
{
    const struct effect_seen *seen = &scene->effect;

    if (conditions->effect_n == 0 && conditions->effect_risks == 0)
        return true;
    if (conditions->effect_risks >> seen->risk & 1)
        return true;
    for (size_t i = 0; i < conditions->effect_n; i++)
        if (conditions->effects[i] == seen->effect)
            return seen->certain || !allowing;
    return false;
}

static bool risk_holds(const struct scene *scene, const struct conditions *conditions)
{
    return conditions->risks == 0 || conditions->risks >> scene->effect.risk & 1;
}

#define DAY_SECONDS 86400
#define FIRST_WEEKDAY 4 /* 1970 began on a Thursday; 0 is Sunday */

/* Over midnight, the day is the one on which it began. */
static bool time_holds(const struct scene *scene, const struct conditions *conditions)
{
    int64_t now = scene->subject->now;
    unsigned minute = (unsigned)(now % DAY_SECONDS / 60);
    unsigned day = (unsigned)((now / DAY_SECONDS + FIRST_WEEKDAY) % 7);
    unsigned after = conditions->after, before = conditions->before;
    bool over = after > before;
    bool within = over ? minute >= after || minute < before : minute >= after && minute < before;

    if (over && minute < before)
        day = (day + 6) % 7;
    return !conditions->has_time || (within && conditions->days >> day & 1);
}

/* ---- cost ---- */

static void find_cost(struct subject *subject)
{
    struct run *run = subject->run;
    struct err err;

    subject->cost.asked = true;
    if (!run->cost_source.most)
        subject->cost.why = "what it costs is not known here";
    else if (run->cost_source.most(run->cost_source.context, run, &subject->cost.micros, &err) < 0)
        subject->cost.why = arena_printf(&run->mem, "what it costs is not known: %.300s", err.text);
    else
        subject->cost.known = true;
}

bool subject_cost(struct subject *subject, uint64_t *out)
{
    if (!subject->cost.asked)
        find_cost(subject);
    *out = subject->cost.micros;
    return subject->cost.known;
}

static bool cost_holds(struct scene *scene, const struct rule *rule)
{
    const struct conditions *conditions = rule->conditions;
    struct subject *subject = scene->subject;
    uint64_t cost;

    if (!conditions->has_cost)
        return true;
    if (!subject_cost(subject, &cost)) {
        subject->closed = rule;
        subject->closed_why = subject->cost.why;
        return rule->kind != VERDICT_ALLOW;
    }
    return cost < conditions->cost   ? conditions->cost_below
           : cost > conditions->cost ? conditions->cost_above
                                     : conditions->cost_equal;
}

/* ---- all of them ---- */

static bool when_true(struct scene *scene, const struct rule *rule)
{
    bool holds = false;
    struct err err;

    if (!rule->conditions->when)
        return true;
    if (when_holds(scene, rule->conditions->when, &holds, &err) == 0)
        return holds;
    scene->subject->closed = rule;
    scene->subject->closed_why = arena_text(&scene->subject->run->mem, str_of(err.text));
    return rule->kind != VERDICT_ALLOW;
}

/* The cheap ones first. */
bool conditions_hold(struct scene *scene, const struct rule *rule)
{
    const struct conditions *conditions = rule->conditions;
    const struct action *action = &scene->subject->run->action;
    bool allowing = rule->kind == VERDICT_ALLOW;

    return name_holds(&conditions->principal, action->principal, allowing) &&
           name_holds(&conditions->tenant, action->tenant, allowing) &&
           name_holds(&conditions->provider, action->provider, allowing) &&
           tool_holds(scene, &conditions->tool, allowing) &&
           effect_holds(scene, conditions, allowing) && risk_holds(scene, conditions) &&
           time_holds(scene, conditions) && env_holds(scene, &conditions->env, allowing) &&
           paths_hold(scene, rule) && cost_holds(scene, rule) && when_true(scene, rule);
}
