/* SPDX-License-Identifier: Apache-2.0 */

/* brig policy check FILE...: reads policies as a run would, and shows what is wrong with them. */

#include "surface/cli/commands.h"

#include "flow/decide/decide.h"
#include "lib/json/json.h"

#define CARET_MAX 4096

/* "policy.yaml: line 3, column 5: …" and, below it, the line with a caret. */
static void show_problem(struct invocation *inv, const struct policy_problem *problem,
                         const struct err *err)
{
    AUTO_BUF struct buf shown = BUF(CARET_MAX);
    struct err ignored; /* without the picture the sentence still names the place */

    (void)fprintf(inv->err, "%s: ", inv->program);
    if (text_escape(str_of(err->text), &shown, &ignored) == 0)
        (void)fprintf(inv->err, "%s\n", buf_text(&shown));
    buf_clear(&shown);
    if (problem->mark.line && problem->text.n &&
        mark_show(problem->mark, buf_str(&problem->text), &shown, &ignored) == 0)
        (void)fputs(buf_text(&shown), inv->err);
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

static struct json *problem_json(struct arena *mem, const struct policy_problem *problem,
                                 const struct err *err)
{
    struct json *error = json_object(mem);

    json_put_text(mem, error, "code", err_name(err->code));
    json_put_bytes(mem, error, "message", str_of(err->text));
    if (problem->mark.line) {
        json_put_int(mem, error, "line", problem->mark.line);
        json_put_int(mem, error, "column", problem->mark.column);
    }
    return error;
}

static struct json *policy_json(struct arena *mem, const char *path, const struct policy *policy)
{
    struct json *entry = json_object(mem);

    json_put_bytes(mem, entry, "file", str_of(path));
    json_put_bool(mem, entry, "valid", policy != NULL);
    if (!policy)
        return entry;
    json_put_text(mem, entry, "policy_hash", policy_hash(policy));
    json_put_int(mem, entry, "rules", (int64_t)policy_rule_count(policy));
    if (policy_not_enforceable(policy))
        json_put_text(mem, entry, "not_enforceable", policy_not_enforceable(policy));
    return entry;
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
        entry = policy_json(&inv->mem, path, policy);
        if (status)
            json_put(entry, "error", problem_json(&inv->mem, &problem, &err));
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
