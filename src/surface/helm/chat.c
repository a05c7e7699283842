/* SPDX-License-Identifier: Apache-2.0 */

/* POST /v1/chat/completions: questions to the model that is no model, and everything else. */

#include "surface/helm/helm-private.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lib/base/limits.h"
#include "lib/json/json.h"

#define REFUSAL_TEXT "Denied by policy: "

/* ---- answers ---- */

static struct json *completion(struct call *call, const struct run *run, const char *finish,
                               struct json *message)
{
    struct arena *mem = &call->mem;
    struct json *answer = json_object(mem), *choices = json_array(mem), *choice = json_object(mem),
                *usage = json_object(mem);

    json_put_text(mem, answer, "id", arena_printf(mem, "chatcmpl-%s", run->id));
    json_put_text(mem, answer, "object", "chat.completion");
    json_put_int(mem, answer, "created", (int64_t)time(NULL));
    json_put_text(mem, answer, "model", HELM_MODEL);
    json_put_int(mem, choice, "index", 0);
    json_put(choice, "message", message);
    json_put(choice, "logprobs", json_null(mem));
    json_put_text(mem, choice, "finish_reason", finish);
    json_push(choices, choice);
    json_put(answer, "choices", choices);
    json_put_int(mem, usage, "prompt_tokens", 0);
    json_put_int(mem, usage, "completion_tokens", 0);
    json_put_int(mem, usage, "total_tokens", 0);
    json_put(answer, "usage", usage);
    return answer;
}

/* Exactly what was judged, as the call that may now be made. */
static int call_json(struct call *call, const struct intent *intent, const struct run *run,
                     struct json **out, struct err *err)
{
    AUTO_BUF struct buf text = BUF(API_ANSWER_MAX);
    struct arena *mem = &call->mem;
    struct json *one = json_object(mem), *function = json_object(mem),
                *arguments = json_object(mem), *command = json_array(mem);

    for (size_t i = 0; i < intent->command.n; i++)
        json_push(command, json_text(mem, str_of(intent->command.v[i])));
    json_put(arguments, "command", command);
    if (json_compact(intent->is_tool ? intent->arguments : arguments, &text, err) < 0)
        return -1;
    json_put_text(mem, one, "id", arena_printf(mem, "call_%s", run->effect_id));
    json_put_text(mem, one, "type", "function");
    json_put_text(mem, function, "name", intent->is_tool ? intent->tool : "sandbox_exec");
    json_put_bytes(mem, function, "arguments", buf_str(&text));
    json_put(one, "function", function);
    *out = one;
    return 0;
}

static int answer_allowed(struct call *call, const struct intent *intent, const struct run *run,
                          struct err *err)
{
    struct arena *mem = &call->mem;
    struct json *message = json_object(mem), *calls = json_array(mem), *one = NULL;

    if (call_json(call, intent, run, &one, err) < 0)
        return -1;
    json_push(calls, one);
    json_put_text(mem, message, "role", "assistant");
    json_put(message, "content", json_null(mem));
    json_put(message, "tool_calls", calls);
    if (call_answer(call, 200, completion(call, run, "tool_calls", message), err) < 0)
        return -1;
    helm_headers(call, run, 1);
    return 0;
}

static int answer_denied(struct call *call, const struct run *run, struct err *err)
{
    struct arena *mem = &call->mem;
    struct json *message = json_object(mem);

    struct json *answer;

    json_put_text(mem, message, "role", "assistant");
    json_put_bytes(mem, message, "content",
                   str_of(arena_printf(mem, REFUSAL_TEXT "%s (%s)", helm_sentence(&run->verdict),
                                       reason_code(run->verdict.reason))));
    answer = completion(call, run, "stop", message);
    if (run->approval.id) {
        struct json *waits = json_object(mem);

        json_put_text(mem, waits, "approval_id", run->approval.id);
        json_put_text(mem, waits, "intent_hash", run->approval.digest);
        json_put(answer, "helm", waits);
    }
    if (call_answer(call, 200, answer, err) < 0)
        return -1;
    helm_headers(call, run, 0);
    return 0;
}

/* ---- refusals that no policy made ---- */

int helm_refuse(struct call *call, const struct request *request, int status, enum reason reason,
                const struct err *why, struct err *err)
{
    struct request bare = call_request(call, request->kind);
    struct lent lent;
    struct run run;
    int failed;

    bare.sandbox = request->sandbox;
    bare.tool = request->tool;
    if (call_govern(call, &lent, err) < 0)
        return -1;
    run_init(&run);
    if (request->sandbox)
        (void)snprintf(run.session_id, sizeof run.session_id, "%s", request->sandbox);
    else
        helm_session(call, &run);
    failed = govern_refuse(lent.govern, &bare, buf_str(&call->incoming), reason, why->text, &run,
                           err) < 0 ||
             helm_fail(call, status, why, helm_verdict_reason(&run.verdict), &run, err) < 0;
    run_done(&run);
    call_release(call, &lent);
    return failed ? -1 : 0;
}

static int refuse_malformed(struct call *call, enum action_kind kind, const struct err *why,
                            struct err *err)
{
    const struct request request = {.kind = kind};
    struct err invalid = *why;

    invalid.code = ERR_INVALID;
    return helm_refuse(call, &request, 400, REASON_REQUEST_INVALID, &invalid, err);
}

/* ---- governance ---- */

/* Under the rules of the sandbox, when it is one of ours; else under the tenant's. */
static int borrow(struct call *call, const struct intent *intent, struct lent *lent,
                  const char **sandbox, const char **made, struct err *err)
{
    *sandbox = NULL;
    if (!intent->is_tool) {
        call->params[0] = intent->sandbox;
        if (call_sandbox(call, lent, sandbox, made, err) == 0)
            return 0;
        *sandbox = NULL;
        if (err->code != ERR_NOT_FOUND)
            return -1;
    }
    return call_govern(call, lent, err);
}

static void fill_request(struct call *call, const struct intent *intent, const char *sandbox,
                         const char *made, struct request *out)
{
    *out = call_request(call, intent->is_tool ? ACTION_TOOL : ACTION_PROPOSE);
    out->sandbox = sandbox;
    if (intent->is_tool) {
        out->tool = intent->tool;
        out->arguments = intent->arguments;
        out->inner_n = intent_inner(&call->mem, intent->arguments, out->inner);
        return;
    }
    out->argv = intent->command;
    out->env = intent->env;
    out->workdir = intent->cwd;
    out->wall_ms = sandbox ? helm_wall_ms(call, made, intent->timeout_s) : intent->timeout_s * 1000;
}

/* What was approved for a sandbox of ours is what may run there, once. */
static int remember(struct call *call, const struct intent *intent, const struct run *run,
                    const char *sandbox, struct err *err)
{
    struct helm *helm = route_owner(call->route);
    const struct pending_owner owner = {call->caller.tenant, call->caller.principal, sandbox};
    const struct pending_command command = {.argv = intent->command,
                                            .env = intent->env,
                                            .cwd = intent->cwd,
                                            .timeout_s = intent->timeout_s,
                                            .approval_id = run->approval.id,
                                            .approval_digest = run->approval.digest,
                                            .approved_by = run->approval.by};

    return pending_add(helm->pending, &owner, &command, err);
}

static int answer_run(struct call *call, const struct intent *intent, const struct request *request,
                      const struct run *run, struct err *err)
{
    struct err why;

    if (run->verdict.kind != VERDICT_ALLOW)
        return answer_denied(call, run, err);
    if (request->sandbox && remember(call, intent, run, request->sandbox, &why) < 0)
        return helm_refuse(call, request, why.code == ERR_LIMIT ? 429 : 403,
                           why.code == ERR_LIMIT ? REASON_NOT_APPROVED : REASON_APPROVAL_AMBIGUOUS,
                           &why, err);
    return answer_allowed(call, intent, run, err);
}

/* One question, from the body to the answer; call->question is its run. */
struct question {
    struct run run; /* first */
    struct intent intent;
    struct request request;
};

/* Whose rules it is judged by, and as what; then it has a run that is to be done. */
static int open_question(struct call *call, struct question *question, struct lent *lent,
                         struct err *err)
{
    struct run *run = &question->run;
    const char *sandbox = NULL, *made = NULL;

    if (borrow(call, &question->intent, lent, &sandbox, &made, err) < 0)
        return -1;
    fill_request(call, &question->intent, sandbox, made, &question->request);
    run_init(run);
    if (sandbox)
        (void)snprintf(run->session_id, sizeof run->session_id, "%s", sandbox);
    else
        helm_session(call, run);
    call->question = run;
    return 0;
}

static int conclude(struct call *call, const struct err *why, struct err *err)
{
    struct question *question = (struct question *)call->question;

    if (!why)
        return answer_run(call, &question->intent, &question->request, &question->run, err);
    if (why->code == ERR_INVALID || why->code == ERR_LIMIT)
        return refuse_malformed(call, question->request.kind, why, err);
    *err = *why;
    return -1;
}

static int govern_it(struct call *call, const struct json *body, struct err *err)
{
    struct question *question = arena_new(&call->mem, struct question);
    struct lent lent;
    struct err why;
    int failed;

    if (intent_read(&call->mem, body, &question->intent, &why) < 0)
        return refuse_malformed(call, ACTION_PROPOSE, &why, err);
    if (open_question(call, question, &lent, err) < 0)
        return -1;
    failed = govern_ask(lent.govern, &question->request, &question->run, &why);
    call_release(call, &lent);
    failed = conclude(call, failed ? &why : NULL, err);
    run_done(&question->run);
    return failed;
}

static bool is_question(struct call *call, struct question *out)
{
    const struct json *json = NULL;
    struct mark where = {0, 0};
    struct str model;
    struct err ignored; /* whoever looks at it next says what is wrong */

    return json_parse(&call->mem, buf_str(&call->incoming), &json, &where, &ignored) == 0 &&
           json_is_text(json_get(json, "model"), &model) && str_is(model, HELM_MODEL) &&
           intent_read(&call->mem, json, &out->intent, &ignored) == 0;
}

enum asked helm_judge(struct call *call, struct lent *lent, const struct request *request,
                      struct run *run)
{
    struct err ignored; /* whoever looks at it next says what is wrong */
    bool is_judged = govern_consider(lent->govern, request, run, &ignored) == 0 &&
                     !govern_must_wait(lent->govern, run);

    call_release(call, lent);
    call->question = run;
    if (is_judged)
        return ASKED_RECEIPT;
    run->watch = (struct run_watch){0}; /* nothing became of it yet */
    run_done(run);
    return ASKED_ELSEWHERE;
}

static enum asked judge(struct call *call)
{
    struct question *question = arena_new(&call->mem, struct question);
    struct lent lent;
    struct err ignored;

    if (!is_question(call, question) || open_question(call, question, &lent, &ignored) < 0)
        return ASKED_ELSEWHERE;
    return helm_judge(call, &lent, &question->request, &question->run);
}

static int complete(struct call *call, const void *body, const void *query, struct err *err)
{
    const struct json *json = NULL;
    struct mark where = {0, 0};
    struct str model;
    struct err why;

    (void)body;
    (void)query;
    if (json_parse(&call->mem, buf_str(&call->incoming), &json, &where, &why) < 0) {
        (void)err_in(&why, "line %u, column %u", where.line, where.column);
        return refuse_malformed(call, ACTION_PROPOSE, &why, err);
    }
    if (!json_is_text(json_get(json, "model"), &model)) {
        (void)err_set(&why, ERR_INVALID, "/model is missing");
        return refuse_malformed(call, ACTION_PROPOSE, &why, err);
    }
    if (str_is(model, HELM_MODEL))
        return govern_it(call, json, err);
    return proxy_complete(call, json, model, err);
}

/* clang-format off */
const struct route helm_routes_chat[] = {
    {.method = HTTP_POST,
     .path = "/v1/chat/completions",
     .kind = ROUTE_ASK,
     .scope = SCOPE_RUN,
     .body = BODY_JSON,
     .name = "helmChatCompletions",
     .summary = "Ask " HELM_MODEL " whether a command or a tool call is allowed; other models are "
                "those of the upstream.",
     .answer = "A chat completion: with the tool call when it is allowed, without when it is not.",
     .refusal = HELM_REFUSAL,
     .handle = complete,
     .judge = judge,
     .conclude = conclude},
    {0},
};
/* clang-format on */
