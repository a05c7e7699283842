/* SPDX-License-Identifier: Apache-2.0 */

/* The section "budget": what runs under the policy may use together. flow/budget counts. */

#include "flow/decide/decide.h"
#include "flow/decide/load.h"

struct entry {
    const struct json *per;
    const struct json *within;
    const struct json *amounts[BUDGET_KINDS];
    const struct json *egress_run;
};

static int load_amount(struct load *load, enum budget_kind kind, const struct json *value,
                       uint64_t *out)
{
    uint64_t number = 0;

    if (!value)
        return 0;
    if (!budget_amount_parse(kind, value->text, &number))
        return load_bad(load, value->mark, "budget \"%s\" must be %s, not \"%s\"",
                        budget_kind_name(kind), budget_amount_advice(kind),
                        shown(load, value->text));
    *out = number;
    return 0;
}

static int load_window(struct load *load, const struct json *map, const struct json *value,
                       struct budget_limit *limit)
{
    bool is_session = limit->scope == BUDGET_SESSION;

    if (!value && !is_session)
        return load_bad(load, map->mark, "a budget says within what, like \"within: 1h\"");
    if (!value || (str_is(value->text, "session") && is_session))
        return 0;
    if (str_is(value->text, "session"))
        return load_bad(load, value->mark, "only a budget per session lasts as long as one");
    if (!budget_window_parse(value->text, &limit->window_s))
        return load_bad(load, value->mark,
                        "\"within\" must be a duration from 1s to 366d, like 1h or 30d, not \"%s\"",
                        shown(load, value->text));
    return 0;
}

static int load_entry(struct load *load, const struct json *map, struct budget_limit *limit)
{
    static const char *const scopes[] = {"principal", "tenant", "session", NULL};
    struct entry in = {0};
    struct field fields[BUDGET_KINDS + 3] = {
        {"per",    offsetof(struct entry, per),    TAKES_TEXT,                true },
        {"within", offsetof(struct entry, within), TAKES_TEXT | TAKES_NUMBER, false},
    };
    size_t at;
    bool any = false;

    for (size_t i = 0; i < BUDGET_KINDS; i++)
        fields[i + 2] = (struct field){budget_kind_name((enum budget_kind)i),
                                       offsetof(struct entry, amounts) + i * sizeof in.amounts[0],
                                       TAKES_TEXT | TAKES_NUMBER, false};
    fields[BUDGET_KINDS + 2] =
        (struct field){"egress_run", offsetof(struct entry, egress_run), TAKES_SIZE, false};
    if (load_kind(load, map, TAKES_MAP, "a budget") < 0 ||
        load_map(load, map, fields, COUNT(fields), &in) < 0 ||
        load_choice(load, in.per, scopes, "\"per\"", &at) < 0)
        return -1;
    *limit = (struct budget_limit){.scope = (enum budget_scope)at, .line = map->mark.line};
    if (load_window(load, map, in.within, limit) < 0 ||
        load_amount(load, BUDGET_EGRESS, in.egress_run, &limit->egress_run) < 0)
        return -1;
    for (size_t i = 0; i < BUDGET_KINDS; i++) {
        if (load_amount(load, (enum budget_kind)i, in.amounts[i], &limit->of[i]) < 0)
            return -1;
        any |= in.amounts[i] != NULL;
    }
    if (in.egress_run && !in.amounts[BUDGET_EGRESS])
        return load_bad(load, in.egress_run->key_mark, "\"egress_run\" is a part of \"egress\"");
    return any ? 0 : load_bad(load, map->mark, "a budget without amounts limits nothing");
}

int load_budgets(struct load *load, const struct json *section)
{
    struct budget_limit *limits;
    size_t n = 0;

    if (!section)
        return 0;
    if (section->n == 0)
        return load_bad(load, section->mark, "an empty budget limits nothing");
    if (section->n > BUDGETS_MAX)
        return load_bad(load, section->mark, "a policy has at most %d budgets", BUDGETS_MAX);
    limits = arena_array(load->mem, struct budget_limit, section->n);
    json_each(entry, section)
    {
        if (load_entry(load, entry, &limits[n++]) < 0)
            return -1;
    }
    load->policy->demand.budgets = limits;
    load->policy->demand.budget_n = n;
    return 0;
}

const struct budget_limit *policy_budgets(const struct policy *policy, size_t *n)
{
    *n = policy->demand.budget_n;
    return policy->demand.budgets;
}
