/* SPDX-License-Identifier: Apache-2.0 */

/* brig sandbox conform: holds a provider to what is promised of it (flow/conform.c). */

#include "surface/cli/sandbox.h"

#include <stdio.h>
#include <string.h>

#include "lib/json/json.h"
#include "model/run.h"

static enum conform_tier asked_tier(const struct invocation *inv)
{
    const char *name = option_text(inv, "--tier");
    enum conform_tier tier = CONFORM_COMPATIBLE;

    for (int i = CONFORM_COMPATIBLE; name && i <= CONFORM_SOVEREIGN; i++)
        if (strcmp(conform_tier_name((enum conform_tier)i), name) == 0)
            tier = (enum conform_tier)i;
    return tier;
}

struct telling {
    struct invocation *inv;
    struct json *list;
};

static void print_verdict(struct invocation *inv, const char *name, bool passed, const char *why)
{
    (void)fprintf(inv->out, "%-4s  %s%s", passed ? "pass" : "FAIL", name, passed ? "" : ": ");
    print_escaped(inv->out, str_of(passed ? "" : why));
    (void)fputc('\n', inv->out);
}

static void on_check(void *context, const char *name, bool passed, const char *why)
{
    struct telling *telling = context;
    struct invocation *inv = telling->inv;
    struct json *entry = json_object(&inv->mem);

    json_put_text(&inv->mem, entry, "name", name);
    json_put_bool(&inv->mem, entry, "pass", passed);
    if (!passed)
        json_put_bytes(&inv->mem, entry, "why", str_of(why));
    json_push(telling->list, entry);
    if (!inv->json)
        print_verdict(inv, name, passed, why);
}

int run_sandbox_conform(struct invocation *inv)
{
    AUTO_SANDBOX_CALL struct sandbox_call call = {0};
    struct telling telling = {.inv = inv, .list = json_array(&inv->mem)};
    enum conform_tier tier = asked_tier(inv);
    struct json *result = json_object(&inv->mem);
    bool all;
    int status;

    if (sandbox_call_open(inv, &call, &status) < 0)
        return status;
    all = govern_conform(call.govern, &call.request, tier, on_check, &telling);
    json_put_text(&inv->mem, result, "provider", call.request.provider);
    json_put_text(&inv->mem, result, "tier", conform_tier_name(tier));
    json_put(result, "checks", telling.list);
    json_put_bool(&inv->mem, result, "pass", all);
    if (inv->json && cli_json(inv, result) != 0)
        return cli_status(inv, ERR_OS);
    if (!inv->json)
        (void)fprintf(inv->out, "%s is %s%s\n", call.request.provider, all ? "" : "not ",
                      conform_tier_name(tier));
    return all ? 0 : cli_status_denied(inv);
}
