/* SPDX-License-Identifier: Apache-2.0 */

/* What each provider offers this user on this machine, limit by limit. */

#include "surface/cli/doctor.h"

#include <stdio.h>

#include "flow/execute/execute.h"
#include "lib/json/json.h"
#include "model/run.h"
#include "surface/cli/commands.h"

/* Means are ordered weakest first; a plan takes the strongest on offer. */
static enum limit_means strongest(unsigned offered)
{
    for (enum limit_means means = MEANS_RELAY; means > MEANS_NONE; means--)
        if (offered & 1U << means)
            return means;
    return MEANS_NONE;
}

static struct json *offer_json(struct invocation *inv, const struct offer *offer)
{
    struct json *limits = json_object(&inv->mem);

    for (enum limit_kind kind = 0; kind < LIMIT_COUNT; kind++) {
        struct json *limit = json_object(&inv->mem);

        json_put_text(&inv->mem, limit, "held_by", limit_means_name(strongest(offer->means[kind])));
        if (offer->why[kind])
            json_put_bytes(&inv->mem, limit, "why", str_of(offer->why[kind]));
        json_put(limits, limit_name(kind), limit);
    }
    return limits;
}

static void print_offer(struct invocation *inv, const struct offer *offer)
{
    (void)fprintf(inv->out, "  %-8s %-12s isolation: %s\n", "ok", offer->provider,
                  offer->isolation);
    for (enum limit_kind kind = 0; !offer->runs_nothing && kind < LIMIT_COUNT; kind++) {
        (void)fprintf(inv->out, "  %-8s %-12s   %-13s held by %s\n", "", "", limit_name(kind),
                      limit_means_name(strongest(offer->means[kind])));
        if (offer->why[kind])
            (void)fprintf(inv->out, "  %-8s %-12s   %-13s %s\n", "", "", "", offer->why[kind]);
    }
}

/* One provider; true when it can be used. */
static bool show_provider(struct invocation *inv, struct execute *execute, const char *name,
                          struct json *list)
{
    struct json *row = json_object(&inv->mem);
    struct run run;
    struct err err;
    bool usable;

    run_init(&run);
    run.action.provider = name;
    usable = execute_offer(execute, &run, &err) == 0;
    json_put_text(&inv->mem, row, "name", name);
    json_put_bool(&inv->mem, row, "usable", usable);
    if (usable) {
        json_put_text(&inv->mem, row, "version", run.offer.version);
        json_put_text(&inv->mem, row, "isolation", run.offer.isolation);
        json_put_bool(&inv->mem, row, "runs_nothing", run.offer.runs_nothing);
        json_put(row, "limits", offer_json(inv, &run.offer));
    } else {
        json_put_bytes(&inv->mem, row, "why", str_of(err.text));
    }
    json_push(list, row);
    if (!inv->json && usable)
        print_offer(inv, &run.offer);
    else if (!inv->json)
        (void)fprintf(inv->out, "  %-8s %-12s %s\n", "missing", name, err.text);
    run_done(&run);
    return usable;
}

bool show_providers(struct invocation *inv, struct json *list)
{
    AUTO(execute) struct execute *execute = NULL;
    const char *state = "";
    bool exists = false;
    bool all = true;
    struct err err;

    /* A state directory that cannot be used has its own row; providers only name it. */
    if (cli_state_find(inv, &state, &exists, &err) < 0)
        state = "";
    if (!inv->json)
        (void)fprintf(inv->out, "\nproviders\n");
    if (execute_open(state, &execute, &err) < 0) {
        if (!inv->json)
            (void)fprintf(inv->out, "  %-8s %-12s %s\n", "missing", "", err.text);
        return false;
    }
    for (const char *const *name = execute_providers(); *name; name++)
        all = show_provider(inv, execute, *name, list) && all;
    return all;
}
