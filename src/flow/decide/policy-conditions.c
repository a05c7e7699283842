/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions of a rule: everything it may say besides the words. */
#include <string.h>

#include "flow/decide/effects.h"
#include "flow/decide/load-rule.h"
#include "flow/decide/rule-match.h"
#include "model/budget.h"
#include "model/offer.h"

/* ---- patterns ---- */

static size_t count_of(const struct json *value)
{
    return value->kind == JSON_ARRAY ? value->n : 1;
}

static const struct json *first_of(const struct json *value)
{
    return value->kind == JSON_ARRAY ? value->first : value;
}

static int check_count(struct load *load, const struct json *value, const char *what)
{
    if (count_of(value) == 0)
        return load_bad(load, value->mark, "%s must not be empty; leave it away instead", what);
    if (count_of(value) > POLICY_ALTERNATIVES_MAX)
        return load_bad(load, value->mark, "%s has more than %d entries", what,
                        POLICY_ALTERNATIVES_MAX);
    return 0;
}

static int load_pattern(struct load *load, const struct json *value, const char *what,
                        enum glob_kind kind, const struct glob **out)
{
    struct err err;

    if (load_text(load, value, PATH_BYTES_MAX, what) < 0)
        return -1;
    if (glob_new(load->mem, value->text, kind, out, &err) < 0)
        return load_bad(load, value->mark, "pattern \"%s\": %s", shown(load, value->text),
                        err.text);
    return 0;
}

/* In an allow rule a pattern that anything satisfies is a mistake, or worse. */
static int load_patterns(struct load *load, const struct json *value, const char *what,
                         bool allowing, struct patterns *out)
{
    const struct glob **of;
    size_t i = 0;

    if (!value)
        return 0;
    if (check_count(load, value, what) < 0)
        return -1;
    of = arena_array(load->mem, const struct glob *, count_of(value));
    for (const struct json *one = first_of(value); i < count_of(value); one = one->next, i++) {
        if (load_pattern(load, one, what, GLOB_WORD, &of[i]) < 0)
            return -1;
        if (allowing && !glob_is_literal(of[i]) && glob_plain_length(of[i]) == 0)
            return load_bad(load, one->mark,
                            "\"%s\" is too broad for an allow rule: a pattern must begin with a "
                            "plain character",
                            shown(load, one->text));
    }
    *out = (struct patterns){of, i};
    return 0;
}

static const char *all_providers(struct load *load)
{
    const char *names = provider_names[0];

    for (size_t i = 1; provider_names[i]; i++)
        names = arena_printf(load->mem, "%s, %s", names, provider_names[i]);
    return names;
}

static bool names_provider(const struct glob *pattern)
{
    for (size_t i = 0; provider_names[i]; i++)
        if (glob_match(pattern, str_of(provider_names[i])))
            return true;
    return false;
}

/* Nothing ever runs at a provider of another name: such a rule would never hold, and a denial that
 * was only written wrongly would let through what it is there for. */
static int load_providers(struct load *load, const struct json *value, bool allowing,
                          struct patterns *out)
{
    size_t i = 0;

    if (!value)
        return 0;
    if (load_patterns(load, value, "\"provider\"", allowing, out) < 0)
        return -1;
    for (const struct json *one = first_of(value); i < count_of(value); one = one->next, i++)
        if (!names_provider(out->of[i]))
            return load_bad(load, one->mark, "no provider is called \"%s\"; there are %s",
                            shown(load, one->text), all_providers(load));
    return 0;
}

/* Names: a rule that seems to be about a value would match nothing. */
static int load_env(struct load *load, const struct json *value, bool allowing,
                    struct patterns *out)
{
    size_t i = 0;

    if (!value)
        return 0;
    if (load_patterns(load, value, "\"env\"", allowing, out) < 0)
        return -1;
    for (const struct json *one = first_of(value); i < count_of(value); one = one->next, i++)
        if (memchr(one->text.p, '=', one->text.n))
            return load_bad(load, one->mark,
                            "\"%s\": \"env\" has names of variables, not their values",
                            shown(load, one->text));
    return 0;
}

static int load_path_pattern(struct load *load, const struct json *value, bool allowing,
                             struct path_pattern *out)
{
    struct str text = value->text, folder;
    struct err err;

    if (load_pattern(load, value, "an entry of \"paths\"", GLOB_PATH, &out->glob) < 0)
        return -1;
    if (!is_plain_path(text))
        return load_bad(load, value->mark,
                        "\"%s\": a path here is absolute, without \"//\", \".\" and \"..\"",
                        shown(load, text));
    if (allowing && glob_plain_length(out->glob) < 2)
        return load_bad(load, value->mark,
                        "\"%s\" is too broad for an allow rule: name a folder below \"/\"",
                        shown(load, text));
    if (!str_ends(text, "/**"))
        return 0;
    folder = (struct str){text.p, text.n - 3};
    if (folder.n == 0)
        folder = STR_LIT("/");
    if (glob_new(load->mem, folder, GLOB_PATH, &out->folder, &err) < 0)
        return load_bad(load, value->mark, "pattern \"%s\": %s", shown(load, folder), err.text);
    return 0;
}

static int load_paths(struct load *load, const struct json *value, bool allowing,
                      struct conditions *out)
{
    struct path_pattern *paths;
    size_t i = 0;

    if (!value)
        return 0;
    if (check_count(load, value, "\"paths\"") < 0)
        return -1;
    paths = arena_array(load->mem, struct path_pattern, count_of(value));
    for (const struct json *one = first_of(value); i < count_of(value); one = one->next, i++)
        if (load_path_pattern(load, one, allowing, &paths[i]) < 0)
            return -1;
    out->paths = paths;
    out->path_n = i;
    return 0;
}

/* ---- effect and risk ---- */

static int load_effect(struct load *load, const struct json *value, struct conditions *out)
{
    const struct effect **effects;
    size_t i = 0;

    if (!value)
        return 0;
    if (check_count(load, value, "\"effect\"") < 0)
        return -1;
    effects = arena_array(load->mem, const struct effect *, count_of(value));
    for (const struct json *one = first_of(value); i < count_of(value); one = one->next, i++) {
        const struct effect *effect;
        unsigned level;

        if (load_text(load, one, 64, "an entry of \"effect\"") < 0)
            return -1;
        effect = effect_find(one->text);
        if (effect_level(one->text, &level))
            out->effect_risks |= 1U << level;
        else if (effect)
            effects[out->effect_n++] = effect;
        else
            return load_bad(load, one->mark,
                            "unknown effect \"%s\"; write E0 to E4, or one of the classes that the "
                            "policy reference lists",
                            shown(load, one->text));
    }
    out->effects = effects;
    return 0;
}

/* What stands before a value it is compared with; nothing: equal. */
struct sign {
    const char *text;
    bool below, equal, above;
};

static const struct sign *cut_sign(struct str *text)
{
    static const struct sign signs[] = {
        {">=", false, true,  true },
        {"<=", true,  true,  false},
        {">",  false, false, true },
        {"<",  true,  false, false},
        {"",   false, true,  false},
    };
    const struct sign *sign = signs;
    size_t n;

    while (!str_starts(*text, sign->text))
        sign++;
    n = strlen(sign->text);
    *text = str_trim((struct str){text->p + n, text->n - n});
    return sign;
}

/* ">=E3", "<=E1", ">E2", "<E2", "E4". */
static int load_risk(struct load *load, const struct json *value, struct conditions *out)
{
    const struct sign *sign;
    struct str rest;
    unsigned level;

    if (!value)
        return 0;
    rest = value->text;
    sign = cut_sign(&rest);
    if (!effect_level(rest, &level))
        return load_bad(load, value->mark, "risk \"%s\": write it as \">=E3\", \"<=E1\" or \"E2\"",
                        shown(load, value->text));
    for (unsigned risk = 0; risk <= RISK_MAX; risk++)
        if ((risk < level && sign->below) || (risk == level && sign->equal) ||
            (risk > level && sign->above))
            out->risks |= 1U << risk;
    if (out->risks)
        return 0;
    return load_bad(load, value->mark, "no risk is \"%s\"", shown(load, value->text));
}

/* ---- cost ---- */

/* ">0.50", "<=2", ">0". */
static int load_cost(struct load *load, const struct json *value, struct conditions *out)
{
    const struct sign *sign;
    struct str rest;

    if (!value)
        return 0;
    rest = value->text;
    sign = cut_sign(&rest);
    if (!cost_parse(rest, &out->cost))
        return load_bad(load, value->mark,
                        "cost \"%s\": write it as \">0.50\", \"<=2\" or \"0.25\", with at most six "
                        "decimals",
                        shown(load, value->text));
    if (out->cost == 0 && sign->below && !sign->equal)
        return load_bad(load, value->mark, "no cost is \"%s\"", shown(load, value->text));
    out->has_cost = true;
    out->cost_below = sign->below;
    out->cost_equal = sign->equal;
    out->cost_above = sign->above;
    return 0;
}

/* ---- time ---- */

struct time_keys {
    const struct json *after;
    const struct json *before;
    const struct json *days;
    const struct json *zone;
};

static const struct field time_fields[] = {
    {"after",  offsetof(struct time_keys, after),  TAKES_TEXT,              false},
    {"before", offsetof(struct time_keys, before), TAKES_TEXT,              false},
    {"days",   offsetof(struct time_keys, days),   TAKES_TEXT | TAKES_LIST, false},
    {"zone",   offsetof(struct time_keys, zone),   TAKES_TEXT,              false},
};

#define DAY_MINUTES (24 * 60)
#define EVERY_DAY 0x7FU

static bool two_digits(struct str text, unsigned *out)
{
    if (text.n != 2 || text.p[0] < '0' || text.p[0] > '9' || text.p[1] < '0' || text.p[1] > '9')
        return false;
    *out = (unsigned)(text.p[0] - '0') * 10 + (unsigned)(text.p[1] - '0');
    return true;
}

static int load_clock(struct load *load, const struct json *value, unsigned *out)
{
    struct str minutes = value->text;
    struct str hours = str_cut(&minutes, ':');
    unsigned h, m;

    if (!two_digits(hours, &h) || !two_digits(minutes, &m) || h > 24 || m > 59 ||
        (h == 24 && m != 0))
        return load_bad(load, value->mark, "time \"%s\": write it as \"06:00\", up to \"24:00\"",
                        shown(load, value->text));
    *out = h * 60 + m;
    return 0;
}

static int load_days(struct load *load, const struct json *value, unsigned *out)
{
    static const char *const days[] = {"sun", "mon", "tue", "wed", "thu", "fri", "sat", NULL};
    size_t i = 0, day;

    if (check_count(load, value, "\"days\"") < 0)
        return -1;
    *out = 0;
    for (const struct json *one = first_of(value); i < count_of(value); one = one->next, i++) {
        if (load_choice(load, one, days, "a day", &day) < 0)
            return -1;
        *out |= 1U << day;
    }
    return 0;
}

static int load_time(struct load *load, const struct json *value, struct conditions *out)
{
    struct time_keys keys = {0};

    if (!value)
        return 0;
    if (load_map(load, value, time_fields, COUNT(time_fields), &keys) < 0)
        return -1;
    if (!keys.after && !keys.before && !keys.days)
        return load_bad(load, value->mark, "\"time\" says nothing; it has after, before and days");
    if (keys.zone && !str_is(keys.zone->text, "UTC"))
        return load_bad(load, keys.zone->mark, "times are UTC; \"zone\" can say nothing else");
    out->has_time = true;
    out->before = DAY_MINUTES;
    out->days = EVERY_DAY;
    if ((keys.after && load_clock(load, keys.after, &out->after) < 0) ||
        (keys.before && load_clock(load, keys.before, &out->before) < 0) ||
        (keys.days && load_days(load, keys.days, &out->days) < 0))
        return -1;
    if (out->after == out->before)
        return load_bad(load, value->mark, "\"after\" and \"before\" are the same time");
    return 0;
}

/* ---- when ---- */

/* Where in the file a place in the expression is. The mark of a value is where it begins, with its
 * quote or with the sign of a block; texts with escapes or folded lines are shown at their
 * beginning, because what is counted there is not what was written. */
static struct mark place_in(const struct load *load, const struct json *value, struct mark inside)
{
    struct mark mark = value->mark;
    struct str line = load->text;
    char first;

    for (unsigned i = 1; i < mark.line; i++)
        (void)str_cut(&line, '\n');
    if (mark.column > line.n)
        return mark;
    first = line.p[mark.column - 1];
    if (first == '|') {
        struct str at = line;

        for (unsigned i = 0; i < inside.line; i++)
            (void)str_cut(&at, '\n');
        mark = (struct mark){mark.line + inside.line, inside.column};
        for (size_t i = 0; i < at.n && at.p[i] == ' '; i++)
            mark.column++;
        return mark;
    }
    if (first == '"' || first == '\'')
        mark.column++;
    line = (struct str){line.p + mark.column - 1, line.n - mark.column + 1};
    if (inside.line > 1 || line.n < value->text.n ||
        (value->text.n && memcmp(line.p, value->text.p, value->text.n) != 0))
        return value->mark;
    mark.column += inside.column - 1;
    return mark;
}

static bool reads_anything(const struct expr *expr)
{
    size_t n;

    (void)when_names(&n);
    for (size_t i = 0; i < n; i++)
        if (expr_reads(expr, i))
            return true;
    return false;
}

static int load_when(struct load *load, const struct json *value, struct conditions *out)
{
    const struct expr_name *names;
    struct mark inside;
    struct err err;
    size_t n;

    if (!value)
        return 0;
    names = when_names(&n);
    if (expr_compile(load->mem, value->text, names, n, &out->when, &inside, &err) < 0)
        return load_bad(load, place_in(load, value, inside), "when: %s", err.text);
    if (expr_result(out->when).kind != EXPR_BOOL && expr_result(out->when).kind != EXPR_UNKNOWN)
        return load_bad(load, value->mark, "when: this is %s, and must be true or false",
                        expr_kind_name(expr_result(out->when).kind));
    if (!reads_anything(out->when))
        return load_bad(load, value->mark,
                        "when: this is the same for every command; use what is known about one: "
                        "command, principal, risk, …");
    return 0;
}

/* ---- all of them ---- */

static bool says_anything(const struct condition_keys *keys)
{
    return keys->principal || keys->tenant || keys->provider || keys->tool || keys->env ||
           keys->paths || keys->effect || keys->risk || keys->time || keys->cost || keys->when;
}

#define EVERY_RISK ((1U << (RISK_MAX + 1)) - 1)

/* Every command has some risk, so all of them together say nothing. */
bool conditions_narrow(const struct conditions *conditions)
{
    return conditions && (conditions->principal.n || conditions->tenant.n ||
                          conditions->provider.n || conditions->tool.n || conditions->path_n ||
                          ((conditions->effect_n || conditions->effect_risks) &&
                           conditions->effect_risks != EVERY_RISK) ||
                          (conditions->risks && conditions->risks != EVERY_RISK) ||
                          (conditions->when && when_narrows(conditions->when)));
}

int load_conditions(struct load *load, const struct condition_keys *keys, bool allowing,
                    const struct conditions **out)
{
    struct conditions *conditions;

    if (!says_anything(keys))
        return 0;
    conditions = arena_new(load->mem, struct conditions);
    if (load_patterns(load, keys->principal, "\"principal\"", allowing, &conditions->principal) <
            0 ||
        load_patterns(load, keys->tenant, "\"tenant\"", allowing, &conditions->tenant) < 0 ||
        load_providers(load, keys->provider, allowing, &conditions->provider) < 0 ||
        load_patterns(load, keys->tool, "\"tool\"", allowing, &conditions->tool) < 0 ||
        load_env(load, keys->env, allowing, &conditions->env) < 0 ||
        load_paths(load, keys->paths, allowing, conditions) < 0 ||
        load_effect(load, keys->effect, conditions) < 0 ||
        load_risk(load, keys->risk, conditions) < 0 ||
        load_time(load, keys->time, conditions) < 0 ||
        load_cost(load, keys->cost, conditions) < 0 || load_when(load, keys->when, conditions) < 0)
        return -1;
    *out = conditions;
    return 0;
}
