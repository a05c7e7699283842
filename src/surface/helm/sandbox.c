/* SPDX-License-Identifier: Apache-2.0 */

/* /sandbox…, as HELM's Mastra adapter calls it: a sandbox, its files, and commands that were
 * approved before. No shell reads the command: the text only finds the vector that was approved. */

#include "surface/helm/helm-private.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/limits.h"
#include "lib/json/json.h"

#define TIMEOUT_MAX_S 86400
#define EXIT_TIMED_OUT 124
#define EXIT_SIGNALLED 128

/* ---- making ---- */

struct create_body {
    const char *language;
    uint64_t timeout;
};

/* clang-format off */
static const struct field create_fields[] = {
    {"language", FIELD_TEXT, offsetof(struct create_body, language), .max = 64,
     .help = "Taken and not used: the machine's own system has what it has."},
    {"timeout", FIELD_COUNT, offsetof(struct create_body, timeout), .min = 1,
     .max = TIMEOUT_MAX_S, .help = "How long each command may take, in seconds."},
    {0},
};
/* clang-format on */

static int create_run(struct call *call, struct govern *govern, const struct request *request,
                      struct err *err)
{
    struct json *answer = json_object(&call->mem);
    struct run run;
    int failed;

    run_init(&run);
    memcpy(run.session_id, run.id, sizeof run.session_id); /* what happens in it has its id, too */
    failed = govern_create(govern, request, &run, err) < 0 || call_check_run(call, &run, err) < 0;
    if (!failed) {
        json_put_text(&call->mem, answer, "sandboxId", run.sandbox_id);
        failed = call_answer(call, 200, answer, err) < 0;
    }
    if (!failed)
        helm_headers(call, &run, 0);
    run_done(&run);
    return failed ? -1 : 0;
}

static int create(struct call *call, const void *body, const void *query, struct err *err)
{
    const struct create_body *wanted = body;
    struct request request = call_request(call, ACTION_CREATE);
    struct lent lent;
    int failed;

    (void)query;
    if (tenant_rules(call->tenant, &call->mem, &request.policy_text, &request.profile_text, err) <
            0 ||
        call_govern(call, &lent, err) < 0)
        return -1;
    request.limits[LIMIT_WALL] = wanted->timeout * 1000;
    request.lifetime = (struct lifetime){.ttl_ms = SANDBOX_TTL_MS, .max_ms = SANDBOX_LIFETIME_MS};
    failed = create_run(call, lent.govern, &request, err);
    call_release(call, &lent);
    return failed;
}

/* ---- running what was approved ---- */

struct execute_body {
    const char *command;
    struct words env;
    const char *cwd;
    uint64_t timeout;
};

/* clang-format off */
static const struct field execute_fields[] = {
    {"command", FIELD_TEXT, offsetof(struct execute_body, command), .required = true,
     .max = ARGV_BYTES_MAX, .help = "The words that were approved, with a blank between them."},
    {"env", FIELD_MAP, offsetof(struct execute_body, env), .max = ENV_WORDS_MAX,
     .help = "The environment that was approved."},
    {"cwd", FIELD_TEXT, offsetof(struct execute_body, cwd), .max = PATH_BYTES_MAX - 1,
     .help = "The working directory that was approved; none when none was."},
    {"timeout", FIELD_COUNT, offsetof(struct execute_body, timeout), .min = 1,
     .max = TIMEOUT_MAX_S, .help = "In seconds; at most the sandbox's own."},
    {0},
};
/* clang-format on */

/* JSON holds text: bytes that are none become the character that stands for such. */
static struct json *shown(struct arena *mem, struct str bytes)
{
    static const char instead[] = "\xef\xbf\xbd";
    char *text = arena_alloc(mem, bytes.n * 3 + 1);
    size_t n = 0;

    while (bytes.n) {
        size_t good = str_utf8_prefix(bytes);

        memcpy(text + n, bytes.p, good);
        n += good;
        bytes = (struct str){bytes.p + good, bytes.n - good};
        if (bytes.n) {
            memcpy(text + n, instead, sizeof instead - 1);
            n += sizeof instead - 1;
            bytes = (struct str){bytes.p + 1, bytes.n - 1};
        }
    }
    return json_text(mem, (struct str){text, n});
}

static int exit_status(const struct outcome *outcome)
{
    if (outcome->timed_out)
        return EXIT_TIMED_OUT;
    return outcome->signal ? EXIT_SIGNALLED + outcome->signal : outcome->exit_code;
}

static int answer_run(struct call *call, const struct run *run, struct err *err)
{
    const struct outcome *outcome = &run->outcome;
    struct json *answer = json_object(&call->mem);
    struct err why;

    if (run->verdict.kind != VERDICT_ALLOW) {
        (void)err_set(&why, ERR_FORBIDDEN, "%s", helm_sentence(&run->verdict));
        return helm_fail(call, 403, &why, helm_verdict_reason(&run->verdict), run, err);
    }
    if (outcome->failure)
        return call_check_run(call, run, err);
    json_put(answer, "output", shown(&call->mem, outcome->out.kept));
    json_put(answer, "errors", shown(&call->mem, outcome->err.kept));
    json_put_int(&call->mem, answer, "exitCode", exit_status(outcome));
    json_put_bool(&call->mem, answer, "timedOut", outcome->timed_out);
    json_put_int(&call->mem, answer, "durationMs", (int64_t)(outcome->duration_us / 1000));
    if (call_answer(call, 200, answer, err) < 0)
        return -1;
    helm_headers(call, run, 1);
    return 0;
}

uint64_t helm_wall_ms(struct call *call, const char *made, uint64_t asked_s)
{
    struct config config;
    uint64_t own_ms = limit_default(LIMIT_WALL);
    struct err ignored; /* it was read before */

    if (config_read(&call->mem, str_of(made), &config, &ignored) == 0 &&
        config.request.limits[LIMIT_WALL])
        own_ms = config.request.limits[LIMIT_WALL];
    return asked_s && asked_s * 1000 < own_ms ? asked_s * 1000 : 0;
}

static int run_it(struct call *call, struct govern *govern, const struct request *request,
                  const struct pending_command *approved, struct err *err)
{
    const struct streams streams = {.in_fd = -1, .out_fd = -1, .err_fd = -1, .keep = true};
    struct run run;
    int failed;

    run_init(&run);
    (void)snprintf(run.session_id, sizeof run.session_id, "%s", request->sandbox);
    run.approval.id = approved->approval_id;
    run.approval.digest = approved->approval_digest;
    run.approval.by = approved->approved_by;
    failed =
        govern_exec(govern, request, &streams, &run, err) < 0 || answer_run(call, &run, err) < 0;
    run_done(&run);
    return failed ? -1 : 0;
}

static int take(struct call *call, const struct execute_body *wanted, const char *sandbox,
                struct pending_command *out, struct err *err)
{
    struct helm *helm = route_owner(call->route);
    const struct pending_owner owner = {call->caller.tenant, call->caller.principal, sandbox};
    const struct pending_command asked = {
        .env = wanted->env, .cwd = wanted->cwd, .timeout_s = wanted->timeout};

    return pending_take(helm->pending, &owner, wanted->command, &asked, &call->mem, out, err);
}

static int execute(struct call *call, const void *body, const void *query, struct err *err)
{
    const struct execute_body *wanted = body;
    struct request request = call_request(call, ACTION_EXEC);
    struct pending_command approved;
    const char *made = NULL;
    struct lent lent;
    struct err why;
    int failed;

    (void)query;
    if (call_sandbox(call, &lent, &request.sandbox, &made, err) < 0)
        return -1;
    if (take(call, wanted, request.sandbox, &approved, &why) < 0) {
        call_release(call, &lent);
        return helm_refuse(
            call, &request, 403,
            why.code == ERR_CONFLICT ? REASON_APPROVAL_AMBIGUOUS : REASON_NOT_APPROVED, &why, err);
    }
    request.argv = approved.argv;
    request.env = approved.env;
    request.workdir = approved.cwd;
    /* A person's word is about the time that the question named, if it did. */
    request.limits[LIMIT_WALL] =
        helm_wall_ms(call, made, approved.approved_by ? approved.timeout_s : wanted->timeout);
    request.within_ms = helm_wall_ms(call, made, wanted->timeout);
    failed = run_it(call, lent.govern, &request, &approved, err);
    call_release(call, &lent);
    return failed;
}

/* ---- ending ---- */

static int destroy(struct call *call, const void *body, const void *query, struct err *err)
{
    struct helm *helm = route_owner(call->route);
    const struct pending_owner owner = {call->caller.tenant, call->caller.principal,
                                        call->params[0]};

    pending_forget(helm->pending, &owner);
    return handle_sandbox_destroy(call, body, query, err);
}

/* clang-format off */
const struct route helm_routes_sandbox[] = {
    {.method = HTTP_POST,
     .path = "/sandbox",
     .kind = ROUTE_RUN,
     .scope = SCOPE_RUN,
     .body = BODY_JSON,
     .fields = create_fields,
     .body_size = sizeof(struct create_body),
     .name = "helmCreateSandbox",
     .summary = "Make a sandbox, as the Mastra adapter does.",
     .answer = "Its id.",
     .refusal = HELM_REFUSAL,
     .handle = create},
    {.method = HTTP_POST,
     .path = "/sandbox/{id}/process/execute",
     .kind = ROUTE_RUN,
     .scope = SCOPE_RUN,
     .body = BODY_JSON,
     .fields = execute_fields,
     .body_size = sizeof(struct execute_body),
     .name = "helmExecute",
     .summary = "Run the command that " HELM_MODEL " has approved for this sandbox.",
     .answer = "Output, errors, exit code, whether its time was over, and how long it took.",
     .refusal = HELM_REFUSAL,
     .handle = execute},
    {.method = HTTP_PUT,
     .path = "/sandbox/{id}/filesystem",
     .kind = ROUTE_RUN,
     .scope = SCOPE_RUN,
     .body = BODY_STREAM,
     .query = path_query,
     .query_size = sizeof(struct path_query),
     .name = "helmWriteFile",
     .summary = "Write a file.",
     .answer = "Bytes, hash and receipt.",
     .refusal = HELM_REFUSAL,
     .handle = handle_file_write},
    {.method = HTTP_GET,
     .path = "/sandbox/{id}/filesystem",
     .kind = ROUTE_RUN,
     .scope = SCOPE_READ,
     .query = path_query,
     .query_size = sizeof(struct path_query),
     .name = "helmReadFile",
     .summary = "The content of a file.",
     .answer = "Its bytes.",
     .refusal = HELM_REFUSAL,
     .handle = handle_file_read},
    {.method = HTTP_DELETE,
     .path = "/sandbox/{id}",
     .kind = ROUTE_RUN,
     .scope = SCOPE_RUN,
     .name = "helmDestroySandbox",
     .summary = "End a sandbox, and what was approved for it.",
     .answer = "The receipt.",
     .refusal = HELM_REFUSAL,
     .handle = destroy},
    {0},
};
/* clang-format on */
