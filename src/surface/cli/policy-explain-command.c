/* SPDX-License-Identifier: Apache-2.0 */

/* brig policy explain -- CMD: what every rule of every layer makes of a command, and why; and what
 * else would refuse it now. */

#include "surface/cli/policy-request.h"

#include "surface/cli/sandbox.h"

#include <string.h>
#include <unistd.h>

#include "flow/decide/decide.h"
#include "flow/govern.h"
#include "lib/access/access.h"
#include "lib/json/json.h"
#include "model/external.h"
#include "model/run.h"
#include "surface/view/view.h"

struct telling {
    struct invocation *inv;
    struct json *steps;
    const char *command; /* whose rules are being told */
};

static const char *joined(struct arena *mem, struct words words)
{
    const char *text = "";

    for (size_t i = 0; i < words.n && i < 32; i++)
        text = arena_printf(mem, "%s%s%.200s", text, i ? " " : "", words.v[i]);
    return words.n > 32 ? arena_printf(mem, "%s ...", text) : text;
}

/* "the " before the policy and the ceiling; overlays have a number. */
static const char *article(const char *layer)
{
    return strncmp(layer, "overlay", strlen("overlay")) == 0 ? "" : "the ";
}

static void print_step(struct telling *telling, const struct rule_step *step)
{
    struct invocation *inv = telling->inv;
    const char *command = joined(&inv->mem, step->command);

    if (!telling->command || strcmp(telling->command, command) != 0) {
        (void)fputs(step->within ? "inside " : "", inv->out);
        print_escaped(inv->out, str_of(step->within ? step->within : ""));
        (void)fputs(step->within ? ": " : "", inv->out);
        print_escaped(inv->out, str_of(command));
        (void)fputc('\n', inv->out);
        telling->command = command;
    }
    (void)fprintf(inv->out, "%s %s, line %u of %s%s (%s): ", step->matched ? "+" : "-", step->rule,
                  step->line, article(step->layer), step->layer, verdict_name(step->kind));
    print_escaped(inv->out, str_of(step->why));
    (void)fputc('\n', inv->out);
}

static void on_rule(void *context, const struct rule_step *step)
{
    struct telling *telling = context;
    struct arena *mem = &telling->inv->mem;
    struct json *object, *command;

    if (!telling->inv->json) {
        print_step(telling, step);
        return;
    }
    object = json_object(mem);
    command = json_array(mem);
    for (size_t i = 0; i < step->command.n; i++)
        view_push_word(mem, command, step->command.v[i]);
    json_put_text(mem, object, "layer", step->layer);
    json_put_bytes(mem, object, "rule", str_of(step->rule));
    json_put_int(mem, object, "line", step->line);
    json_put_text(mem, object, "verdict", verdict_name(step->kind));
    json_put_bool(mem, object, "matched", step->matched);
    json_put_bytes(mem, object, "why", str_of(step->why));
    json_put(object, "command", command);
    if (step->within)
        json_put_bytes(mem, object, "within", str_of(step->within));
    json_push(telling->steps, object);
}

/* ---- what is asked ---- */

/* The file of --policy, else the one that stands, else the built-in one. */
static int open_policy(struct invocation *inv, const char *state_dir, struct policy **out,
                       struct err *err)
{
    const char *path = option_text(inv, "--policy"), *text = NULL;
    struct mark where;

    if (path)
        return cli_policy_open(inv, path, out, err);
    if (govern_policy_text(state_dir, &inv->mem, &text, err) < 0)
        return -1;
    if (!text)
        return policy_builtin(out, err);
    if (policy_parse(str_of(text), out, &where, err) < 0)
        return err_in(err, "the standing policy (\"brig policy apply\" replaces it)");
    return 0;
}

static int read_cost(struct invocation *inv, struct prospect *prospect, struct err *err)
{
    const char *text = option_text(inv, "--cost");

    prospect->has_cost = text != NULL;
    if (text && !cost_parse(str_of(text), &prospect->cost))
        return err_set(err, ERR_INVALID, "--cost: write it as 0.50, with at most six decimals");
    return 0;
}

static struct request request_of(struct invocation *inv)
{
    const char *principal = option_text(inv, "--principal"), *tenant = option_text(inv, "--tenant");
    const char *provider = option_text(inv, "--provider"), *tool = option_text(inv, "--tool");

    return (struct request){
        .kind = tool ? ACTION_TOOL : ACTION_RUN,
        .tool = tool,
        .argv = inv->operands,
        .env = option_words(inv, "--env"),
        .mounts = sandbox_mounts(inv),
        .workdir = option_text(inv, "--workdir"),
        .principal = principal ? principal : arena_printf(&inv->mem, "uid:%u", (unsigned)getuid()),
        .tenant = tenant ? tenant : TENANT_DEFAULT,
        .image = "host",
        .provider = provider ? provider : "local",
        .network = NETWORK_DEFAULT,
    };
}

/* What a tenant has used, and what is released, is in a folder of his own. */
static int open_govern(struct invocation *inv, const struct request *request,
                       struct policy **policy, struct govern **out, struct err *err)
{
    const char *root_dir = NULL;
    struct govern_config config = {0};
    bool exists;

    if (!is_tenant_name(str_of(request->tenant)))
        return err_set(err, ERR_INVALID, "--tenant: that is not the name of a tenant");
    if (cli_state_find(inv, &root_dir, &exists, err) < 0 ||
        open_policy(inv, root_dir, policy, err) < 0)
        return -1;
    config.policy = *policy;
    config.state_dir = strcmp(request->tenant, TENANT_DEFAULT) == 0
                           ? root_dir
                           : arena_printf(&inv->mem, "%s/tenants/%s", root_dir, request->tenant);
    return govern_open_to_look(&config, root_dir, out, err);
}

/* ---- what is answered ---- */

static struct json *deciders_json(struct invocation *inv, const struct prospect *prospect)
{
    struct json *list = json_array(&inv->mem);

    for (size_t i = 0; i < prospect->decider_n; i++) {
        const struct prospect_decider *decider = &prospect->deciders[i];
        struct json *object = json_object(&inv->mem);

        json_put_text(&inv->mem, object, "layer", decider->layer);
        json_put_text(&inv->mem, object, "url", decider->external->url);
        json_put_bool(&inv->mem, object, "asked", prospect->ask_deciders);
        json_push(list, object);
    }
    return list;
}

static const char *verdict_text(const struct verdict *verdict)
{
    return verdict->text ? verdict->text : reason_text(verdict->reason);
}

static void print_prospect(struct invocation *inv, const struct prospect *prospect,
                           const struct run *run)
{
    for (size_t i = 0; i < prospect->decider_n && !prospect->ask_deciders; i++)
        (void)fprintf(inv->out, "external, line %u of the %s: %s is not asked without --external\n",
                      prospect->deciders[i].external->line, prospect->deciders[i].layer,
                      prospect->deciders[i].external->url);
    if (run->demand.requires_release)
        (void)fprintf(inv->out,
                      "requires_release: only the program that is released as %s, over %u runs or "
                      "more, runs; \"brig gate status\" says whether one is\n",
                      run->demand.requires_release, run->demand.release_runs);
    for (size_t i = 0; i < prospect->refusal_n; i++) {
        (void)fprintf(inv->out,
                      "would be refused: %s: ", reason_code(prospect->refusals[i].reason));
        print_escaped(inv->out, str_of(verdict_text(&prospect->refusals[i])));
        (void)fputc('\n', inv->out);
    }
}

static void print_verdict(struct invocation *inv, const struct run *run)
{
    const struct verdict *verdict = &run->verdict;

    if (run->effect.id)
        (void)fprintf(inv->out, "effect %s, risk E%u\n", run->effect.id, run->effect.risk);
    (void)fprintf(inv->out, "%s", verdict_name(verdict->kind));
    if (verdict->rule)
        (void)fprintf(inv->out, " by %s, line %u", verdict->rule, verdict->line);
    if (verdict->layer)
        (void)fprintf(inv->out, " of %s%s", article(verdict->layer), verdict->layer);
    (void)fprintf(inv->out, " (%s): ", reason_code(verdict->reason));
    print_escaped(inv->out, str_of(verdict_text(verdict)));
    (void)fputc('\n', inv->out);
}

static int print_json(struct invocation *inv, const struct prospect *prospect,
                      const struct run *run, struct json *steps)
{
    const struct verdict *verdict = &run->verdict;
    struct json *answer = json_object(&inv->mem);

    json_put_text(&inv->mem, answer, "verdict", verdict_name(verdict->kind));
    json_put_text(&inv->mem, answer, "reason_code", reason_code(verdict->reason));
    json_put_bytes(&inv->mem, answer, "reason", str_of(verdict_text(verdict)));
    if (verdict->layer)
        json_put_text(&inv->mem, answer, "policy_layer", verdict->layer);
    if (verdict->rule)
        json_put_bytes(&inv->mem, answer, "rule", str_of(verdict->rule));
    if (verdict->line)
        json_put_int(&inv->mem, answer, "line", verdict->line);
    if (run->effect.id) {
        json_put_text(&inv->mem, answer, "effect", run->effect.id);
        json_put_text(&inv->mem, answer, "risk", arena_printf(&inv->mem, "E%u", run->effect.risk));
    }
    json_put_text(&inv->mem, answer, "policy_hash", run->policy_hash);
    view_put_seen(&inv->mem, answer, inv->operands);
    json_put(answer, "rules", steps);
    json_put(answer, "external", deciders_json(inv, prospect));
    if (run->demand.requires_release) {
        json_put_text(&inv->mem, answer, "requires_release", run->demand.requires_release);
        json_put_int(&inv->mem, answer, "release_runs", run->demand.release_runs);
    }
    json_put(answer, "would_be_refused",
             view_hindrances(&inv->mem, prospect->refusals, prospect->refusal_n));
    return cli_json(inv, answer);
}

static int answer(struct invocation *inv, const struct prospect *prospect, const struct run *run,
                  struct json *steps)
{
    if (inv->json)
        return print_json(inv, prospect, run, steps);
    print_prospect(inv, prospect, run);
    print_verdict(inv, run);
    return 0;
}

int policy_explain_command(struct invocation *inv)
{
    AUTO(policy) struct policy *policy = NULL;
    AUTO(govern) struct govern *govern = NULL;
    struct telling telling = {.inv = inv, .steps = json_array(&inv->mem)};
    struct prospect prospect = {
        .visit = on_rule, .context = &telling, .ask_deciders = option_flag(inv, "--external")};
    const struct request request = request_of(inv);
    enum verdict_kind kind;
    struct run run;
    struct err err;
    int status;

    if (read_cost(inv, &prospect, &err) < 0 ||
        open_govern(inv, &request, &policy, &govern, &err) < 0)
        return cli_error(inv, &err);
    if (!inv->json)
        print_seen(inv->out, inv->operands);
    run_init(&run);
    if (govern_explain(govern, &request, &prospect, &run, &err) < 0) {
        run_done(&run);
        return cli_error(inv, &err);
    }
    status = answer(inv, &prospect, &run, telling.steps);
    kind = run.verdict.kind;
    run_done(&run);
    return status ? status : kind == VERDICT_ALLOW ? 0 : cli_status_denied(inv);
}
