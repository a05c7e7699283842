/* SPDX-License-Identifier: Apache-2.0 */

/* brig policy: policies read as a run would, and the one that stands. */

#include "surface/cli/sandbox.h"

#include "flow/decide/decide.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/json/json.h"
#include "model/run.h"
#include "surface/view/view.h"

#include <fcntl.h>

#define CARET_MAX 4096

void cli_show_place(struct invocation *inv, struct mark where, struct str text)
{
    AUTO_BUF struct buf shown = BUF(CARET_MAX);
    struct err ignored; /* without the picture the sentence still names the place */

    if (!inv->json && where.line && text.n && mark_show(where, text, &shown, &ignored) == 0)
        (void)fputs(buf_text(&shown), inv->err);
}

int cli_policy_open(struct invocation *inv, const char *path, struct policy **out, struct err *err)
{
    AUTO_POLICY_PROBLEM struct policy_problem problem = {0};

    if (policy_open_showing(path, out, &problem, err) == 0)
        return 0;
    cli_show_place(inv, problem.mark, buf_str(&problem.text));
    return -1;
}

/* "policy.yaml: line 3, column 5: …" and, below it, the line with a caret. */
static void show_problem(struct invocation *inv, const struct policy_problem *problem,
                         const struct err *err)
{
    AUTO_BUF struct buf shown = BUF(CARET_MAX);
    struct err ignored;

    (void)fprintf(inv->err, "%s: ", inv->program);
    if (text_escape(str_of(err->text), &shown, &ignored) == 0)
        (void)fprintf(inv->err, "%s\n", buf_text(&shown));
    cli_show_place(inv, problem->mark, buf_str(&problem->text));
}

static void show_policy(struct invocation *inv, const char *path, const struct policy *policy)
{
    size_t rules = policy_rule_count(policy);

    (void)fprintf(inv->out, "%s: valid, %zu command rule%s, %s\n", path, rules,
                  rules == 1 ? "" : "s", policy_hash(policy));
    if (policy_not_enforceable(policy))
        (void)fprintf(inv->out, "%s: %s; runs under this policy are refused\n", path,
                      policy_not_enforceable(policy));
}

/* One file; returns the exit status it deserves. */
static int check_file(struct invocation *inv, const char *path, struct json *list)
{
    AUTO_POLICY_PROBLEM struct policy_problem problem = {0};
    AUTO(policy) struct policy *policy = NULL;
    struct json *entry;
    struct err err;
    int status = 0;

    if (policy_open_showing(path, &policy, &problem, &err) < 0)
        status = cli_status(inv, err.code);
    if (inv->json) {
        entry = view_policy(&inv->mem, policy);
        json_put_bytes(&inv->mem, entry, "file", str_of(path));
        if (status)
            json_put(entry, "error",
                     view_policy_error(&inv->mem, problem.mark.line, problem.mark.column, &err));
        json_push(list, entry);
    } else if (status) {
        show_problem(inv, &problem, &err);
    } else {
        show_policy(inv, path, policy);
    }
    return status;
}

int run_policy_check(struct invocation *inv)
{
    struct json *list = json_array(&inv->mem);
    struct json *answer;
    int status = 0, printed;

    for (size_t i = 0; i < inv->operands.n; i++) {
        int one = check_file(inv, inv->operands.v[i], list);

        status = status ? status : one;
    }
    if (!inv->json)
        return status;
    answer = json_object(&inv->mem);
    json_put(answer, "policies", list);
    printed = cli_json(inv, answer);
    return status ? status : printed;
}

/* ---- the one that stands ---- */

static int print_change(struct invocation *inv, const struct run *run)
{
    bool is_kept = run->outcome.policy.network_hash != NULL;

    if (inv->json)
        return cli_json(inv, view_policy_change(&inv->mem, run));
    (void)fprintf(inv->out, "%s from now on: %s; receipt %s\n",
                  is_kept                           ? "the sandbox has this policy"
                  : run->outcome.policy.is_standing ? "this policy holds"
                                                    : "the built-in policy",
                  run->outcome.policy.hash, run->closing.id);
    return 0;
}

/* sandbox is NULL for the one that stands. */
static int change(struct invocation *inv, const char *sandbox, const char *text)
{
    AUTO_SANDBOX_CALL struct sandbox_call call = {.by_no_rules = true};
    struct run run;
    struct err err;
    int status;
    int failed;

    inv->subject = sandbox;
    if (sandbox_call_open(inv, &call, &status) < 0)
        return status;
    call.request.sandbox = call.sandbox;
    run_init(&run);
    failed = sandbox ? govern_policy_swap(call.govern, &call.request, text, &run, &err)
                     : govern_policy_apply(call.govern, &call.request, text, &run, &err);
    status = failed ? cli_error(inv, &err) : print_change(inv, &run);
    run_done(&run);
    return status;
}

int run_policy_apply(struct invocation *inv)
{
    AUTO_POLICY_PROBLEM struct policy_problem problem = {0};
    AUTO(policy) struct policy *policy = NULL;
    AUTO_BUF struct buf text = BUF(POLICY_TEXT_MAX);
    const char *path = inv->operands.v[0];
    struct err err;

    if (policy_open_showing(path, &policy, &problem, &err) < 0) {
        if (inv->json)
            return cli_error(inv, &err);
        show_problem(inv, &problem, &err);
        return cli_status(inv, err.code);
    }
    if (file_read(AT_FDCWD, path, &text, &err) < 0)
        return cli_error(inv, &err);
    return change(inv, option_text(inv, "--sandbox"), buf_text(&text));
}

int run_policy_reset(struct invocation *inv)
{
    return change(inv, NULL, NULL);
}
