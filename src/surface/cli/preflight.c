/* SPDX-License-Identifier: Apache-2.0 */

/* brig sandbox preflight: builds the sandbox a run would get, runs nothing in it, and shows each
 * check with what was expected and what was seen. */

#include "surface/cli/sandbox.h"

#include "model/run.h"
#include "surface/view/view.h"

static void print_checks(const struct invocation *inv, const struct run *run)
{
    for (size_t i = 0; i < run->checks.n; i++) {
        const struct check *check = &run->checks.of[i];

        (void)fprintf(inv->out, "%-4s  %-26s %s", check->passed ? "pass" : "FAIL", check->name,
                      check->observed);
        if (!check->passed)
            (void)fprintf(inv->out, "\n      %-26s %s (%s)", "expected", check->expected,
                          reason_code(check->reason));
        (void)fputc('\n', inv->out);
    }
    for (enum limit_kind kind = 0; kind < LIMIT_COUNT; kind++) {
        const struct limit *limit = &run->plan.limits.of[kind];

        (void)fprintf(inv->out, "      %-26s %llu, held by %s\n", limit_name(kind),
                      (unsigned long long)limit->value, limit_means_name(limit->means));
    }
}

int run_sandbox_preflight(struct invocation *inv)
{
    AUTO_SANDBOX_CALL struct sandbox_call call = {0};
    struct run run;
    struct err err;
    int status;

    if (sandbox_call_open(inv, &call, &status) < 0)
        return status;
    run_init(&run);
    if (govern_preflight(call.govern, &call.request, &run, &err) < 0) {
        status = cli_error(inv, &err);
    } else {
        status = run.verdict.kind == VERDICT_ALLOW ? 0 : cli_status_denied(inv);
        if (inv->json) {
            if (cli_json(inv, view_preflight(&inv->mem, &run)) != 0)
                status = cli_status(inv, ERR_OS);
        } else {
            print_checks(inv, &run);
            sandbox_closing_line(inv, &run);
        }
    }
    run_done(&run);
    return status;
}
