/* SPDX-License-Identifier: Apache-2.0 */

/* brig usage: sums over the ledger. */

#include "lib/json/json.h"
#include "surface/cli/sandbox.h"
#include "surface/view/view.h"

#define LIST_DEFAULT 1000

struct listing {
    struct invocation *inv;
    struct json *list;
};

static int on_usage(void *context, const struct usage *usage, struct err *err)
{
    struct listing *listing = context;
    struct invocation *inv = listing->inv;

    (void)err;
    if (inv->json) {
        json_push(listing->list, view_usage(&inv->mem, usage));
        return 0;
    }
    (void)fprintf(inv->out, STR_FMT "  %8llu  %8llu  %8llu  %10.3f  %10.3f  %12llu  ",
                  STR_ARG(usage->day), (unsigned long long)usage->commands,
                  (unsigned long long)usage->sandboxes, (unsigned long long)usage->denied,
                  (double)usage->duration_us / 1e6, (double)usage->cpu_us / 1e6,
                  (unsigned long long)usage->output_bytes);
    print_escaped(inv->out, usage->principal);
    (void)fputc('\n', inv->out);
    return 0;
}

int run_usage(struct invocation *inv)
{
    AUTO_SANDBOX_CALL struct sandbox_call call = {0};
    struct listing listing = {inv, json_array(&inv->mem)};
    struct json *result = json_object(&inv->mem);
    uint64_t limit = option_number(inv, "--limit");
    struct usage_query query = {option_text(inv, "--since"), option_text(inv, "--principal"),
                                limit ? (unsigned)limit : LIST_DEFAULT};
    struct err err;
    int status;

    if (sandbox_call_open(inv, &call, &status) < 0)
        return status;
    if (!inv->json)
        (void)fprintf(inv->out, "%-10s  %8s  %8s  %8s  %10s  %10s  %12s  %s\n", "day", "commands",
                      "made", "denied", "seconds", "cpu s", "output bytes", "principal");
    if (govern_usage(call.govern, &query, on_usage, &listing, &err) < 0)
        return cli_error(inv, &err);
    json_put(result, "usage", listing.list);
    return inv->json ? cli_json(inv, result) : 0;
}
