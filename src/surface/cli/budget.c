/* SPDX-License-Identifier: Apache-2.0 */

/* brig budget: what runs may use together, and how it stands. */

#include "lib/json/json.h"
#include "model/run.h"
#include "surface/cli/remote.h"
#include "surface/cli/sandbox.h"
#include "surface/view/view.h"

#include <string.h>

/* ---- show ---- */

static uint64_t number_of(const struct json *doc, const char *key)
{
    int64_t number = 0;

    return json_is_int(json_get(doc, key), &number) && number > 0 ? (uint64_t)number : 0;
}

static enum budget_kind kind_of(struct str name)
{
    for (int i = 0; i < BUDGET_KINDS; i++)
        if (str_is(name, budget_kind_name((enum budget_kind)i)))
            return (enum budget_kind)i;
    return BUDGET_RUNS;
}

static void print_amounts(struct invocation *inv, const struct json *budget)
{
    struct arena *mem = &inv->mem;

    json_each(amount, json_get(budget, "amounts"))
    {
        struct str name = str_of(doc_text(mem, amount, "kind"));
        enum budget_kind kind = kind_of(name);

        (void)fprintf(inv->out, "  %-7s %s of %s used, %s reserved\n", budget_kind_name(kind),
                      budget_amount_text(mem, kind, number_of(amount, "used")),
                      budget_amount_text(mem, kind, number_of(amount, "limit")),
                      budget_amount_text(mem, kind, number_of(amount, "reserved")));
    }
}

static void print_budget(struct invocation *inv, const struct json *budget)
{
    struct arena *mem = &inv->mem;
    const char *name = doc_text(mem, budget, "name");
    const char *renews = doc_text(mem, budget, "renews_at");
    uint64_t window_s = number_of(budget, "within_s");

    (void)fprintf(inv->out, "%s ", doc_text(mem, budget, "per"));
    print_escaped(inv->out, str_of(*name ? name : "(each)"));
    (void)fprintf(inv->out, ", within %s, set by %s", budget_window_text(mem, window_s),
                  doc_text(mem, budget, "set_by"));
    if (*renews)
        (void)fprintf(inv->out, ", renews at %s", renews);
    (void)fputc('\n', inv->out);
    print_amounts(inv, budget);
}

static void print_prices(struct invocation *inv, const struct json *prices)
{
    static const char *const keys[] = {"run", "vcpu_second", "gib_second"};
    static const char *const words[] = {"a run", "a second of a processor", "a second of a GiB"};

    for (size_t i = 0; i < COUNT(keys); i++)
        if (number_of(prices, keys[i]))
            (void)fprintf(inv->out, "price of %s: %s\n", words[i],
                          budget_amount_text(&inv->mem, BUDGET_COST, number_of(prices, keys[i])));
}

int run_budget_show(struct invocation *inv)
{
    AUTO_SANDBOX_CALL struct sandbox_call call = {0};
    struct budget_state state;
    struct json *doc;
    struct err err;
    int status;

    if (sandbox_call_open(inv, &call, &status) < 0)
        return status;
    if (govern_budgets(call.govern, &inv->mem, &state, &err) < 0)
        return cli_error(inv, &err);
    doc = view_budgets(&inv->mem, &state, option_text(inv, "--principal"));
    if (inv->json)
        return cli_json(inv, doc);
    if (!json_get(doc, "budgets")->n)
        cli_none(inv, "no budgets");
    json_each(budget, json_get(doc, "budgets")) print_budget(inv, budget);
    print_prices(inv, json_get(doc, "prices"));
    return 0;
}

/* ---- changing it ---- */

/* Which limit: for whom, and within what. */
static int read_place(struct invocation *inv, struct budget_limit *out, struct err *err)
{
    const char *per = option_text(inv, "--per");
    const char *within = option_text(inv, "--within");

    *out = (struct budget_limit){.name = option_text(inv, "--name")};
    if (!per)
        return err_set(err, ERR_INVALID, "say for whom: --per principal, tenant or session");
    for (int i = 0; i < BUDGET_SCOPE_COUNT; i++)
        if (strcmp(per, budget_scope_name((enum budget_scope)i)) == 0)
            out->scope = (enum budget_scope)i;
    if (out->name && !*out->name)
        return err_set(err, ERR_INVALID, "--name takes a name");
    if (!within                          ? out->scope != BUDGET_SESSION
        : strcmp(within, "session") == 0 ? out->scope != BUDGET_SESSION
                                         : !budget_window_parse(str_of(within), &out->window_s))
        return err_set(err, ERR_INVALID,
                       "--within takes 1s to 366d, like 1h or 30d, or \"session\" with --per "
                       "session");
    return 0;
}

static int read_amount(struct invocation *inv, enum budget_kind kind, uint64_t *out,
                       struct err *err)
{
    const char *option = arena_printf(&inv->mem, "--%s", budget_kind_name(kind));
    const char *text = option_text(inv, option);

    if (text && !budget_amount_parse(kind, str_of(text), out))
        return err_set(err, ERR_INVALID, "%s takes %s", option, budget_amount_advice(kind));
    return 0;
}

static int read_limit(struct invocation *inv, struct budget_limit *out, struct err *err)
{
    const char *once = option_text(inv, "--egress-run");
    bool any = false;

    if (read_place(inv, out, err) < 0)
        return -1;
    for (int i = 0; i < BUDGET_KINDS; i++) {
        if (read_amount(inv, (enum budget_kind)i, &out->of[i], err) < 0)
            return -1;
        any |= out->of[i] != 0;
    }
    if (once && (!out->of[BUDGET_EGRESS] ||
                 !budget_amount_parse(BUDGET_EGRESS, str_of(once), &out->egress_run)))
        return err_set(err, ERR_INVALID, "--egress-run takes a size, and goes with --egress");
    return any ? 0 : err_set(err, ERR_INVALID, "say how much: --runs, --wall, --cpu, …");
}

static int print_done(struct invocation *inv, const char *what, const struct run *run)
{
    struct json *doc = json_object(&inv->mem);

    json_put_text(&inv->mem, doc, "receipt_id", run->closing.id);
    if (inv->json)
        return cli_json(inv, doc);
    (void)fprintf(inv->out, "%s; receipt %s\n", what, run->closing.id);
    return 0;
}

struct change {
    const struct budget_limit *limit;
    const struct budget_prices *prices;
    const struct budget_reset *reset;
    bool renew;
    const char *what; /* it is, once it is done */
};

static int change(struct invocation *inv, const struct change *change)
{
    AUTO_SANDBOX_CALL struct sandbox_call call = {.by_no_rules = true};
    struct run run;
    struct err err;
    int failed, status;

    if (sandbox_call_open(inv, &call, &status) < 0)
        return status;
    run_init(&run);
    failed = change->limit
                 ? govern_budget_limit(call.govern, &call.request, change->limit, &run, &err)
             : change->renew ? govern_budget_renew(call.govern, &call.request, &run, &err)
             : change->prices
                 ? govern_budget_price(call.govern, &call.request, change->prices, &run, &err)
                 : govern_budget_reset(call.govern, &call.request, change->reset, &run, &err);
    status = failed ? cli_error(inv, &err) : print_done(inv, change->what, &run);
    run_done(&run);
    return status;
}

int run_budget_set(struct invocation *inv)
{
    struct budget_limit limit;
    struct err err;

    if (read_limit(inv, &limit, &err) < 0)
        return cli_error(inv, &err);
    return change(inv, &(struct change){.limit = &limit, .what = "this limit holds from now on"});
}

int run_budget_remove(struct invocation *inv)
{
    struct budget_limit limit;
    struct err err;

    if (read_place(inv, &limit, &err) < 0)
        return cli_error(inv, &err);
    return change(inv,
                  &(struct change){.limit = &limit, .what = "there is no such limit any more"});
}

int run_budget_reset(struct invocation *inv)
{
    const char *principal = option_text(inv, "--principal");
    const char *tenant = option_text(inv, "--tenant");
    const char *session = option_text(inv, "--session");
    struct budget_reset reset = {BUDGET_PRINCIPAL, principal};
    struct err err;

    if (!!principal + !!tenant + !!session > 1) {
        (void)err_set(&err, ERR_INVALID, "one of --principal, --tenant and --session, or none");
        return cli_error(inv, &err);
    }
    if (tenant)
        reset = (struct budget_reset){BUDGET_TENANT, tenant};
    if (session)
        reset = (struct budget_reset){BUDGET_SESSION, session};
    return change(inv, &(struct change){.reset = &reset, .what = "these counts begin anew"});
}

int run_budget_renew(struct invocation *inv)
{
    return change(inv, &(struct change){.renew = true,
                                        .what = "there are no limits and no prices, and nothing is "
                                                "used: \"brig budget set\""});
}

static int read_price(struct invocation *inv, const char *option, uint64_t *out, struct err *err)
{
    const char *text = option_text(inv, option);

    *out = 0;
    if (!text || strcmp(text, "0") == 0)
        return 0;
    if (!budget_amount_parse(BUDGET_COST, str_of(text), out) || *out > BUDGET_PRICE_MAX)
        return err_set(err, ERR_INVALID, "%s takes an amount up to 1000 with at most six decimals",
                       option);
    return 0;
}

int run_budget_price(struct invocation *inv)
{
    struct budget_prices prices;
    struct err err;

    if (!option_text(inv, "--run") && !option_text(inv, "--vcpu-second") &&
        !option_text(inv, "--gib-second")) {
        (void)err_set(&err, ERR_INVALID,
                      "say what costs how much: --run, --vcpu-second, --gib-second; \"brig budget "
                      "show\" has what was said, and with --run 0 nothing costs anything");
        return cli_error(inv, &err);
    }
    if (read_price(inv, "--run", &prices.run, &err) < 0 ||
        read_price(inv, "--vcpu-second", &prices.vcpu_second, &err) < 0 ||
        read_price(inv, "--gib-second", &prices.gib_second, &err) < 0)
        return cli_error(inv, &err);
    return change(inv,
                  &(struct change){.prices = &prices, .what = "these prices count from now on"});
}
