/* SPDX-License-Identifier: Apache-2.0 */

/* Rules: the tenant's shown and changed, any text checked, and what either would say to a command.
 * Only a change has an effect, and a receipt. */

#include "surface/api/call.h"
#include "surface/api/tables.h"

#include <string.h>

#include "flow/decide/decide.h"
#include "lib/base/limits.h"
#include "model/run.h"
#include "surface/view/view.h"

static int show(struct call *call, const void *body, const void *query, struct err *err)
{
    AUTO(policy) struct policy *policy = NULL;
    const char *text = NULL, *profile_text = NULL;
    struct mark where;
    struct json *answer;

    (void)body;
    (void)query;
    if (tenant_rules(call->tenant, &call->mem, &text, &profile_text, err) < 0 ||
        (text ? policy_parse(str_of(text), &policy, &where, err) : policy_builtin(&policy, err)) <
            0)
        return -1;
    answer = view_policy(&call->mem, policy);
    json_put_text(&call->mem, answer, "source", text ? "file" : "built-in");
    if (text)
        json_put_bytes(&call->mem, answer, "text", str_of(text));
    return call_answer(call, 200, answer, err);
}

/* ---- change ---- */

struct policy_body {
    const char *text;
};

/* clang-format off */
static const struct field policy_fields[] = {
    {"text", FIELD_TEXT, offsetof(struct policy_body, text), .required = true,
     .max = POLICY_TEXT_MAX, .help = "The policy that is to hold, as a file would have it."},
    {0},
};
/* clang-format on */

/* By a governor of no rules: those that stand may be what has to be mended. */
static int change(struct call *call, const char *text, struct err *err)
{
    struct request request = call_request(call, ACTION_POLICY);
    struct lent lent;
    struct run run;
    int failed;

    if (call_govern_by(call, NULL, NULL, &lent, err) < 0)
        return -1;
    run_init(&run);
    failed = govern_policy_apply(lent.govern, &request, text, &run, err);
    call_release(call, &lent);
    if (!failed)
        failed = call_answer(call, 200, view_policy_change(&call->mem, &run), err);
    run_done(&run);
    return failed;
}

/* Of a sandbox that stands. */
static int swap(struct call *call, const void *body, const void *query, struct err *err)
{
    const struct policy_body *wanted = body;
    struct request request = call_request(call, ACTION_POLICY);
    const char *made = NULL;
    struct lent lent;
    struct run run;
    int failed;

    (void)query;
    if (call_check_policy(call, wanted->text, err) < 0 ||
        call_sandbox(call, &lent, &request.sandbox, &made, err) < 0)
        return -1;
    run_init(&run);
    failed = govern_policy_swap(lent.govern, &request, wanted->text, &run, err);
    call_release(call, &lent);
    if (!failed)
        failed = call_answer(call, 200, view_policy_change(&call->mem, &run), err);
    run_done(&run);
    return failed;
}

static int apply(struct call *call, const void *body, const void *query, struct err *err)
{
    const struct policy_body *wanted = body;

    (void)query;
    return call_check_policy(call, wanted->text, err) < 0 ? -1 : change(call, wanted->text, err);
}

static int reset(struct call *call, const void *body, const void *query, struct err *err)
{
    (void)body;
    (void)query;
    return change(call, NULL, err);
}

/* ---- check ---- */

struct check_body {
    const char *text;
};

/* clang-format off */
static const struct field check_fields[] = {
    {"text", FIELD_TEXT, offsetof(struct check_body, text), .required = true,
     .max = POLICY_TEXT_MAX, .help = "A policy as a file would have it."},
    {0},
};
/* clang-format on */

/* That it is none is an answer, too. */
static int check(struct call *call, const void *body, const void *query, struct err *err)
{
    AUTO(policy) struct policy *policy = NULL;
    const struct check_body *wanted = body;
    struct mark where = {0, 0};
    struct err wrong;
    struct json *answer;

    (void)query;
    if (policy_parse(str_of(wanted->text), &policy, &where, &wrong) == 0)
        return call_answer(call, 200, view_policy(&call->mem, policy), err);
    answer = view_policy(&call->mem, NULL);
    json_put(answer, "error", view_policy_error(&call->mem, where.line, where.column, &wrong));
    return call_answer(call, 200, answer, err);
}

/* ---- explain ---- */

#define COST_TEXT_MAX 64

struct explain_body {
    struct words command;
    struct words env;
    const char *workdir;
    struct words mounts;
    const char *policy;
    const char *cost;
};

/* clang-format off */
static const struct field explain_fields[] = {
    {"command", FIELD_WORDS, offsetof(struct explain_body, command), .required = true,
     .max = ARGV_WORDS_MAX, .help = "What somebody wants to run."},
    {"env", FIELD_MAP, offsetof(struct explain_body, env), .raw = true, .max = ENV_WORDS_MAX,
     .help = "With which variables."},
    {"workdir", FIELD_TEXT, offsetof(struct explain_body, workdir), .raw = true,
     .max = PATH_BYTES_MAX - 1, .help = "Where."},
    {"mounts", FIELD_WORDS, offsetof(struct explain_body, mounts), .raw = true, .max = MOUNTS_MAX,
     .help = "Folders of the machine it would see, as \"source:target:ro\": a released agent is "
             "looked for in them. Needs the scope \"host\"."},
    {"policy", FIELD_TEXT, offsetof(struct explain_body, policy), .max = POLICY_TEXT_MAX,
     .help = "The text of the policy that is asked; the tenant's own by default."},
    {"cost", FIELD_TEXT, offsetof(struct explain_body, cost), .max = COST_TEXT_MAX,
     .help = "What it would cost at most, like 0.50; nobody knows unless it is said."},
    {0},
};
/* clang-format on */

static int read_cost(const char *text, struct prospect *prospect, struct err *err)
{
    prospect->has_cost = text != NULL;
    if (text && !cost_parse(str_of(text), &prospect->cost))
        return err_set(err, ERR_INVALID, "/cost: write it as 0.50, with at most six decimals");
    return 0;
}

static int fill_request(const struct call *call, const struct explain_body *wanted,
                        struct request *out, struct err *err)
{
    if (wanted->mounts.n && !(call->caller.scopes & SCOPE_HOST))
        return err_set(err, ERR_FORBIDDEN,
                       "mounts show folders of the machine: that needs a token with the scope "
                       "\"host\"");
    out->argv = wanted->command;
    out->env = wanted->env;
    out->workdir = wanted->workdir;
    out->mounts = wanted->mounts;
    return 0;
}

/* Rules that are only asked about are no rules of the tenant's: nothing of them is kept. */
static int open_govern(struct call *call, const char *text, struct policy **policy,
                       struct govern **out, struct err *err)
{
    struct govern_config config = {.state_dir = tenant_state_dir(call->tenant)};
    const char *own = NULL;
    struct mark where;

    if (tenant_rules(call->tenant, &call->mem, &own, &config.profile_text, err) < 0)
        return -1;
    if (!text)
        text = own;
    if ((text ? policy_parse(str_of(text), policy, &where, err) : policy_builtin(policy, err)) < 0)
        return -1;
    config.policy = *policy;
    return govern_open_to_look(&config, tenant_root_dir(call->tenant), out, err);
}

static struct json *decision_json(struct arena *mem, const struct prospect *prospect,
                                  const struct run *run)
{
    const struct verdict *verdict = &run->verdict;
    struct json *answer = json_object(mem);

    json_put_text(mem, answer, "verdict", verdict_name(verdict->kind));
    json_put_text(mem, answer, "reason_code", reason_code(verdict->reason));
    json_put_bytes(mem, answer, "reason",
                   str_of(verdict->text ? verdict->text : reason_text(verdict->reason)));
    if (verdict->layer)
        json_put_text(mem, answer, "policy_layer", verdict->layer);
    if (verdict->rule)
        json_put_bytes(mem, answer, "rule", str_of(verdict->rule));
    if (verdict->line)
        json_put_int(mem, answer, "line", verdict->line);
    if (run->effect.id) {
        json_put_text(mem, answer, "effect_class", run->effect.id);
        json_put_text(mem, answer, "effect_risk", arena_printf(mem, "E%u", run->effect.risk));
    }
    json_put_text(mem, answer, "policy_hash", run->policy_hash);
    if (run->demand.not_enforceable)
        json_put_text(mem, answer, "not_enforceable", run->demand.not_enforceable);
    if (run->demand.requires_release) {
        json_put_text(mem, answer, "requires_release", run->demand.requires_release);
        json_put_int(mem, answer, "release_runs", run->demand.release_runs);
    }
    view_put_seen(mem, answer, run->action.argv);
    json_put(answer, "would_be_refused",
             view_hindrances(mem, prospect->refusals, prospect->refusal_n));
    return answer;
}

static int explain(struct call *call, const void *body, const void *query, struct err *err)
{
    AUTO(policy) struct policy *policy = NULL;
    AUTO(govern) struct govern *govern = NULL;
    const struct explain_body *wanted = body;
    struct request request = call_request(call, ACTION_RUN);
    struct prospect prospect = {0};
    struct run run;
    int failed;

    (void)query;
    if (fill_request(call, wanted, &request, err) < 0 ||
        read_cost(wanted->cost, &prospect, err) < 0 ||
        open_govern(call, wanted->policy, &policy, &govern, err) < 0)
        return -1;
    run_init(&run);
    failed = govern_explain(govern, &request, &prospect, &run, err) < 0 ||
             call_answer(call, 200, decision_json(&call->mem, &prospect, &run), err) < 0;
    run_done(&run);
    return failed ? -1 : 0;
}

/* clang-format off */
const struct route routes_policies[] = {
    {.method = HTTP_GET,
     .path = "/v1/policy",
     .kind = ROUTE_LOOK,
     .scope = SCOPE_READ,
     .name = "getPolicy",
     .summary = "The policy that new sandboxes of this tenant live under.",
     .answer = "Its hash, how many rules it has, where it comes from, and its text unless it is "
               "built in.",
     .handle = show},
    {.method = HTTP_PUT,
     .path = "/v1/policy",
     .kind = ROUTE_LOOK,
     .scope = SCOPE_POLICY,
     .body = BODY_JSON,
     .fields = policy_fields,
     .body_size = sizeof(struct policy_body),
     .name = "applyPolicy",
     .summary = "Another policy for what this tenant does from now on; what stands keeps its own.",
     .answer = "Its hash, and the receipt of the change.",
     .handle = apply},
    {.method = HTTP_DELETE,
     .path = "/v1/policy",
     .kind = ROUTE_LOOK,
     .scope = SCOPE_POLICY,
     .name = "resetPolicy",
     .summary = "No policy of its own for this tenant any more: the daemon's holds again.",
     .answer = "The hash of the built-in one, and the receipt of the change.",
     .handle = reset},
    {.method = HTTP_PUT,
     .path = "/v1/sandboxes/{id}/policy",
     .kind = ROUTE_RUN,
     .scope = SCOPE_POLICY,
     .body = BODY_JSON,
     .fields = policy_fields,
     .body_size = sizeof(struct policy_body),
     .name = "applySandboxPolicy",
     .summary = "Another policy for a sandbox that stands: its network rules change at once, all or "
                "nothing.",
     .answer = "Its hash, that of the rules egress acknowledged, and the receipt of the change.",
     .handle = swap},
    {.method = HTTP_POST,
     .path = "/v1/policies/check",
     .kind = ROUTE_LOOK,
     .scope = SCOPE_READ,
     .body = BODY_JSON,
     .fields = check_fields,
     .body_size = sizeof(struct check_body),
     .name = "checkPolicy",
     .summary = "Read a policy strictly and say what is wrong with it.",
     .answer = "Whether it is valid; if not, what is wrong, with line and column.",
     .handle = check},
    {.method = HTTP_POST,
     .path = "/v1/policies/explain",
     .kind = ROUTE_LOOK,
     .scope = SCOPE_READ,
     .body = BODY_JSON,
     .fields = explain_fields,
     .body_size = sizeof(struct explain_body),
     .name = "explainPolicy",
     .summary = "What a policy says to a command, without running it, and what else would stop it.",
     .answer = "The verdict a run would get now, its reason and the rule it comes from; and "
               "whatever would refuse it besides the rules.",
     .handle = explain},
    {0},
};
/* clang-format on */
