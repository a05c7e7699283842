/* SPDX-License-Identifier: Apache-2.0 */
/* Why a rule does or does not match words: the first thing that stands against it. For people who
 * ask; verdicts come from rule_find(). */
#include <string.h>

#include "flow/decide/layers.h"
#include "flow/decide/policy.h"
#include "flow/decide/rule-match.h"
#include "lib/base/limits.h"
#include "lib/shell/shell.h"

#define WORD_SHOWN_MAX 60

/* Whether the first n places can be the beginning of the words. */
static bool can_begin(struct arena *mem, const struct place *places, size_t n, struct slice words,
                      bool allowing)
{
    struct place *begin = arena_array(mem, struct place, n + 1);

    memcpy(begin, places, n * sizeof *begin);
    begin[n] = (struct place){.rest = true};
    return places_match(begin, n + 1, words, allowing);
}

static const char *why_not_words(struct arena *mem, const struct rule *rule, struct slice words)
{
    size_t skip = rule->program_n ? 1 : 0;
    struct slice rest = {words.v + skip, words.n - skip};
    const struct place *places = rule->places + skip;
    size_t n = rule->place_n - skip;

    for (size_t k = 1; k <= n; k++)
        if (!can_begin(mem, places, k, rest, rule->kind == VERDICT_ALLOW))
            return arena_printf(mem, "no word fits its word %zu", k + skip);
    return "there are more words than it names";
}

/* Each condition alone: what the rule would do if it had no other. */
static const char *why_not_conditions(struct scene *scene, const struct rule *rule)
{
    const struct conditions *all = rule->conditions;
    const struct {
        const char *name;
        struct conditions only;
    } parts[] = {
        {"principal", {.principal = all->principal}                                             },
        {"tenant",    {.tenant = all->tenant}                                                   },
        {"provider",  {.provider = all->provider}                                               },
        {"tool",      {.tool = all->tool}                                                       },
        {"env",       {.env = all->env}                                                         },
        {"paths",     {.paths = all->paths, .path_n = all->path_n}                              },
        {"effect",
         {.effects = all->effects, .effect_n = all->effect_n, .effect_risks = all->effect_risks}},
        {"risk",      {.risks = all->risks}                                                     },
        {"time",
         {.has_time = all->has_time,
          .after = all->after,
          .before = all->before,
          .days = all->days}                                                                    },
        {"cost",
         {.has_cost = all->has_cost,
          .cost_below = all->cost_below,
          .cost_equal = all->cost_equal,
          .cost_above = all->cost_above,
          .cost = all->cost}                                                                    },
        {"when",      {.when = all->when}                                                       },
    };

    for (size_t i = 0; i < COUNT(parts); i++) {
        struct rule alone = *rule;

        alone.conditions = &parts[i].only;
        if (!conditions_hold(scene, &alone))
            return parts[i].name;
    }
    return "a condition";
}

static const char *why_not(struct arena *mem, struct scene *scene, const struct rule *rule)
{
    if (rule->place_n && rule->program_n && !rule_program_matches(scene, rule))
        return arena_printf(
            mem, "it is not about the program %.*s",
            (int)(scene->typed.n < WORD_SHOWN_MAX ? scene->typed.n : WORD_SHOWN_MAX),
            scene->typed.p);
    if (!rule_words_fit(scene, rule))
        return rule->place_n ? why_not_words(mem, rule, scene->words)
                             : "an allow rule without words is not over this program";
    if (rule->conditions && !conditions_hold(scene, rule))
        return arena_printf(mem, "its \"%s\" does not hold", why_not_conditions(scene, rule));
    return NULL;
}

struct telling {
    const struct policy *layer;
    const char *layer_name;
    struct run *run;
    struct words assigned;
    struct folders folders;
    struct arena *mem;
    rule_visitor *visit;
    void *context;
};

/* Every rule of one layer against one command. */
static void tell_rules(const struct telling *telling, struct slice words, const char *within)
{
    struct subject subject = {.policy = telling->layer,
                              .run = telling->run,
                              .bare_names_trusted = !action_brings_path(&telling->run->action),
                              .assigned = telling->assigned,
                              .folders = telling->folders,
                              .now = decide_now(telling->run),
                              .steps = DECIDE_STEPS_MAX};
    struct scene scene = scene_of(&subject, words);

    for (size_t i = 0; i < telling->layer->rule_n; i++) {
        const struct rule *rule = &telling->layer->rules[i];
        const char *why = why_not(telling->mem, &scene, rule);
        const struct rule_step step = {
            .layer = telling->layer_name,
            .rule = rule->name,
            .line = rule->line,
            .kind = rule->kind,
            .matched = !why,
            .why = why ? why : "it matches",
            .command = {words.v, words.n},
            .within = within
        };

        telling->visit(telling->context, &step);
    }
    arena_done(&scene.mem);
}

static void tell_layer(struct telling *telling, const struct policy *layer, const char *name,
                       const struct shell_script *script)
{
    telling->layer = layer;
    telling->layer_name = name;
    for (size_t i = 0; i < script->n; i++) {
        const struct shell_command *command = &script->commands[i];
        const char **v = arena_array(telling->mem, const char *, command->word_n + 1);

        for (size_t k = 0; k < command->word_n; k++)
            v[k] = command->words[k].text.p;
        if (command->word_n)
            tell_rules(telling, (struct slice){v, command->word_n}, command->within);
    }
}

int decide_explain(const struct policy *ceiling, const struct policy *policy, struct run *run,
                   rule_visitor *visit, void *context, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(SHELL_MEMORY_MAX + RUN_MEMORY_MAX);
    struct telling telling = {.run = run, .mem = &mem, .visit = visit, .context = context};
    const struct action *action = &run->action;
    const struct folders start = folders_start(run);
    struct shell_script script;

    if (decide_under(ceiling, policy, run, err) < 0)
        return -1;
    shell_look(&mem, action->argv.v, action->argv.n, &script);
    telling.assigned = env_assigned(&mem, &script);
    telling.folders = folders_of(&mem, &start, &script);
    if (ceiling)
        tell_layer(&telling, ceiling, "ceiling", &script);
    tell_layer(&telling, policy, "policy", &script);
    for (size_t i = 0; i < policy->overlay_n; i++)
        tell_layer(&telling, policy->overlays[i], arena_printf(&mem, "overlay %zu", i + 1),
                   &script);
    return 0;
}
