/* SPDX-License-Identifier: Apache-2.0 */
/* The variables an expression sees, and its evaluation. */
#include <string.h>
#include <time.h>

#include "flow/decide/policy.h"
#include "flow/decide/rule-match.h"
#include "lib/base/limits.h"

#define TEXT_TYPE                                                                                  \
    {                                                                                              \
        EXPR_STRING, EXPR_UNKNOWN                                                                  \
    }
#define INT_TYPE                                                                                   \
    {                                                                                              \
        EXPR_INT, EXPR_UNKNOWN                                                                     \
    }
#define TEXTS_TYPE                                                                                 \
    {                                                                                              \
        EXPR_LIST, EXPR_STRING                                                                     \
    }
#define BOOL_TYPE                                                                                  \
    {                                                                                              \
        EXPR_BOOL, EXPR_UNKNOWN                                                                    \
    }

enum {
    WHEN_PRINCIPAL,
    WHEN_TENANT,
    WHEN_PROVIDER,
    WHEN_TOOL,
    WHEN_COMMAND,
    WHEN_PROGRAM,
    WHEN_PATHS,
    WHEN_ENV,
    WHEN_EFFECT,
    WHEN_RISK,
    WHEN_COST,
    WHEN_NETWORK,
    WHEN_WORKDIR,
    WHEN_IMAGE,
    WHEN_SESSION,
    WHEN_NOW_SECONDS,
    WHEN_NOW_HOUR,
    WHEN_NOW_MINUTE,
    WHEN_NOW_WEEKDAY,
    WHEN_NAMES,
};

static const struct expr_name names[WHEN_NAMES] = {
    [WHEN_PRINCIPAL] = {"principal",   TEXT_TYPE },
    [WHEN_TENANT] = {"tenant",      TEXT_TYPE },
    [WHEN_PROVIDER] = {"provider",    TEXT_TYPE },
    [WHEN_TOOL] = {"tool",        TEXT_TYPE },
    [WHEN_COMMAND] = {"command",     TEXTS_TYPE},
    [WHEN_PROGRAM] = {"program",     TEXT_TYPE },
    [WHEN_PATHS] = {"paths",       TEXTS_TYPE},
    [WHEN_ENV] = {"env",         TEXTS_TYPE},
    [WHEN_EFFECT] = {"effect",      TEXT_TYPE },
    [WHEN_RISK] = {"risk",        INT_TYPE  },
    [WHEN_COST] = {"cost_micros", INT_TYPE  },
    [WHEN_NETWORK] = {"network",     BOOL_TYPE },
    [WHEN_WORKDIR] = {"workdir",     TEXT_TYPE },
    [WHEN_IMAGE] = {"image",       TEXT_TYPE },
    [WHEN_SESSION] = {"session",     TEXT_TYPE },
    [WHEN_NOW_SECONDS] = {"now.seconds", INT_TYPE  },
    [WHEN_NOW_HOUR] = {"now.hour",    INT_TYPE  },
    [WHEN_NOW_MINUTE] = {"now.minute",  INT_TYPE  },
    [WHEN_NOW_WEEKDAY] = {"now.weekday", TEXT_TYPE },
};

const struct expr_name *when_names(size_t *n)
{
    *n = WHEN_NAMES;
    return names;
}

bool when_narrows(const struct expr *expr)
{
    for (size_t i = 0; i < WHEN_NAMES; i++)
        if (expr_reads(expr, i) && i != WHEN_ENV && i != WHEN_COST && i < WHEN_NOW_SECONDS)
            return true;
    return false;
}

bool policy_asks_for_network(const struct policy *policy)
{
    for (size_t i = 0; i < policy->rule_n; i++) {
        const struct conditions *conditions = policy->rules[i].conditions;

        if (conditions && conditions->when && expr_reads(conditions->when, WHEN_NETWORK))
            return true;
    }
    for (size_t i = 0; i < policy->overlay_n; i++)
        if (policy_asks_for_network(policy->overlays[i]))
            return true;
    return false;
}

static struct expr_value text_value(const char *text)
{
    return (struct expr_value){.kind = EXPR_STRING, .text = str_of(text ? text : "")};
}

/* What nobody has said is not known, and an error to read. */
static struct expr_value said_value(const char *text)
{
    return text && *text ? text_value(text) : (struct expr_value){0};
}

static struct expr_value int_value(int64_t number)
{
    return (struct expr_value){.kind = EXPR_INT, .number = number};
}

static struct expr_value list_value(const struct expr_value *v, size_t n)
{
    struct expr_value list = {.kind = EXPR_LIST};

    list.list.v = v;
    list.list.n = n;
    return list;
}

static struct expr_value words_value(struct scene *scene)
{
    struct expr_value *v = arena_array(&scene->mem, struct expr_value, scene->words.n + 1);

    for (size_t i = 0; i < scene->words.n; i++)
        v[i] = text_value(scene->words.v[i]);
    return list_value(v, scene->words.n);
}

static struct expr_value env_value(struct scene *scene)
{
    const struct words set[] = {scene->subject->run->action.env, scene->subject->assigned};
    struct expr_value *v = arena_array(&scene->mem, struct expr_value, set[0].n + set[1].n + 1);
    size_t n = 0;

    for (size_t k = 0; k < COUNT(set); k++)
        for (size_t i = 0; i < set[k].n; i++)
            v[n++] = (struct expr_value){
                .kind = EXPR_STRING, .text = {set[k].v[i], strcspn(set[k].v[i], "=")}
            };
    return list_value(v, n);
}

/* ---- paths ---- */

struct collected {
    struct scene *scene;
    struct expr_value *v;
    size_t n, room, bytes;
};

static bool count_path(void *context, struct str path)
{
    struct collected *all = context;

    all->room++;
    all->bytes += path.n;
    return all->bytes <= DECIDE_PATHS_BYTES_MAX && all->room <= DECIDE_PATHS_MAX;
}

static bool collect_path(void *context, struct str path)
{
    struct collected *all = context;

    all->v[all->n++] =
        (struct expr_value){.kind = EXPR_STRING, .text = arena_str(&all->scene->mem, path)};
    return true;
}

/* Too many to list are not known: what an expression says about them is an error. */
static struct expr_value paths_value(struct scene *scene)
{
    const struct folders *folders = &scene->subject->folders;
    struct collected all = {.scene = scene};

    if (!paths_each(scene->words, folders, count_path, &all) ||
        all.bytes > DECIDE_PATHS_BYTES_MAX || all.room > DECIDE_PATHS_MAX)
        return (struct expr_value){0};
    all.v = arena_array(&scene->mem, struct expr_value, all.room + 1);
    (void)paths_each(scene->words, folders, collect_path, &all); /* the same once more */
    return list_value(all.v, all.n);
}

/* ---- all of them ---- */

static void fill_request(const struct subject *subject, struct expr_value *values)
{
    const struct action *action = &subject->run->action;

    values[WHEN_PRINCIPAL] = said_value(action->principal);
    values[WHEN_TENANT] = said_value(action->tenant);
    values[WHEN_PROVIDER] = said_value(action->provider);
    values[WHEN_TOOL] = text_value(action->tool);
    values[WHEN_WORKDIR] = said_value(run_start(subject->run));
    values[WHEN_IMAGE] = text_value(action->image);
    values[WHEN_SESSION] = text_value(subject->run->session_id);
    values[WHEN_NETWORK] = (struct expr_value){
        .kind = EXPR_BOOL,
        .boolean = action->network != NETWORK_NONE && subject->run->demand.network_rules.n != 0};
}

static void fill_now(int64_t now, struct expr_value *values)
{
    static const char *const days[] = {"sun", "mon", "tue", "wed", "thu", "fri", "sat"};
    time_t seconds = (time_t)now;
    struct tm utc = {0};

    values[WHEN_NOW_SECONDS] = int_value(now);
    if (!gmtime_r(&seconds, &utc))
        return;
    values[WHEN_NOW_HOUR] = int_value(utc.tm_hour);
    values[WHEN_NOW_MINUTE] = int_value(utc.tm_min);
    values[WHEN_NOW_WEEKDAY] = text_value(days[utc.tm_wday]);
}

static struct expr_value *fill(struct scene *scene)
{
    struct expr_value *values = arena_array(&scene->mem, struct expr_value, WHEN_NAMES);

    fill_request(scene->subject, values);
    fill_now(scene->subject->now, values);
    values[WHEN_PROGRAM] = (struct expr_value){.kind = EXPR_STRING, .text = scene->base};
    values[WHEN_EFFECT] = text_value(scene->effect.effect->id);
    values[WHEN_RISK] = int_value(scene->effect.risk);
    return values;
}

/* Somebody else has to be asked for it. */
static struct expr_value cost_value(struct scene *scene)
{
    uint64_t cost;

    return subject_cost(scene->subject, &cost) ? int_value((int64_t)cost) : (struct expr_value){0};
}

/* Lists are as long as the command, so they are only made for those who read them; likewise what
 * has to be asked for. */
static void fill_dear(struct scene *scene, const struct expr *expr)
{
    static const struct {
        size_t name;
        struct expr_value (*make)(struct scene *scene);
    } dear[] = {
        {WHEN_COMMAND, words_value},
        {WHEN_ENV,     env_value  },
        {WHEN_PATHS,   paths_value},
        {WHEN_COST,    cost_value },
    };

    for (size_t i = 0; i < COUNT(dear); i++) {
        struct expr_value *value = &scene->values[dear[i].name];

        if (value->kind == EXPR_UNKNOWN && expr_reads(expr, dear[i].name))
            *value = dear[i].make(scene);
    }
}

int when_holds(struct scene *scene, const struct expr *expr, bool *out, struct err *err)
{
    struct subject *subject = scene->subject;
    uint32_t most = subject->steps < EXPR_STEPS_MAX ? subject->steps : EXPR_STEPS_MAX;
    struct expr_scope scope = {.space_bytes = EXPR_SPACE_MAX, .steps = most};
    int result;

    if (!subject->space)
        subject->space = arena_alloc(&subject->run->mem, EXPR_SPACE_MAX);
    if (!scene->values)
        scene->values = fill(scene);
    fill_dear(scene, expr);
    scope.values = scene->values;
    scope.space = subject->space;
    result = expr_holds(expr, &scope, out, err);
    subject->steps -= most - scope.steps;
    return result;
}
