/* SPDX-License-Identifier: Apache-2.0 */

/* What may be used together, and how it stands: a limit, and each it holds for. */

#include "surface/view/view.h"

#include "flow/govern.h"
#include "lib/json/json.h"

#include <string.h>

static void put_number(struct arena *mem, struct json *object, const char *key, uint64_t value)
{
    json_put_int(mem, object, key, (int64_t)(value < BUDGET_MOST ? value : BUDGET_MOST - 1));
}

/* account: NULL when nobody has used anything of it yet. */
static struct json *amounts_json(struct arena *mem, const struct budget_limit *limit,
                                 const struct budget_account *account)
{
    struct json *list = json_array(mem);

    for (int i = 0; i < BUDGET_KINDS; i++) {
        struct json *one = json_object(mem);

        if (!limit->of[i])
            continue;
        json_put_text(mem, one, "kind", budget_kind_name((enum budget_kind)i));
        put_number(mem, one, "limit", limit->of[i]);
        put_number(mem, one, "used", account ? account->used[i] : 0);
        put_number(mem, one, "reserved", account ? account->held[i] : 0);
        json_push(list, one);
    }
    return list;
}

static struct json *budget_json(struct arena *mem, const struct budget_limit *limit,
                                const struct budget_account *account)
{
    struct json *object = json_object(mem);
    const char *name = account ? account->name : limit->name;

    json_put_text(mem, object, "per", budget_scope_name(limit->scope));
    if (name)
        json_put_bytes(mem, object, "name", str_of(name));
    put_number(mem, object, "within_s", limit->window_s);
    json_put_text(mem, object, "set_by", limit->line ? "policy" : "operator");
    if (limit->line)
        json_put_int(mem, object, "line", limit->line);
    if (limit->egress_run)
        put_number(mem, object, "egress_run", limit->egress_run);
    if (account)
        json_put_text(mem, object, "began_at", view_moment(mem, account->began_at));
    if (account && account->renews_at)
        json_put_text(mem, object, "renews_at", view_moment(mem, account->renews_at));
    json_put(object, "amounts", amounts_json(mem, limit, account));
    return object;
}

static bool is_wanted(const char *principal, const struct budget_limit *limit, const char *name)
{
    return !principal || (limit->scope == BUDGET_PRINCIPAL && (!name || !strcmp(name, principal)));
}

static void push_limit(struct arena *mem, struct json *list, const struct budget_state *state,
                       const struct budget_limit *limit, const char *principal)
{
    bool any = false;

    for (size_t i = 0; i < state->account_n; i++) {
        const struct budget_account *account = &state->accounts[i];

        if (account->scope != limit->scope || account->window_s != limit->window_s ||
            (limit->name && strcmp(limit->name, account->name) != 0) ||
            !is_wanted(principal, limit, account->name))
            continue;
        json_push(list, budget_json(mem, limit, account));
        any = true;
    }
    if (!any && is_wanted(principal, limit, limit->name))
        json_push(list, budget_json(mem, limit, NULL));
}

struct json *view_budgets(struct arena *mem, const struct budget_state *state,
                          const char *principal)
{
    struct json *object = json_object(mem), *list = json_array(mem), *prices = json_object(mem);

    for (size_t i = 0; i < state->limit_n; i++)
        push_limit(mem, list, state, &state->limits[i], principal);
    for (size_t i = 0; i < state->policy_limit_n; i++)
        push_limit(mem, list, state, &state->policy_limits[i], principal);
    put_number(mem, prices, "run", state->prices.run);
    put_number(mem, prices, "vcpu_second", state->prices.vcpu_second);
    put_number(mem, prices, "gib_second", state->prices.gib_second);
    json_put(object, "budgets", list);
    json_put(object, "prices", prices);
    return object;
}
