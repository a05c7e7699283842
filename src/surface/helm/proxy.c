/* SPDX-License-Identifier: Apache-2.0 */

/* Other models: asked at the upstream, and their answers judged. */

#include "surface/helm/proxy.h"

#include <stdio.h>
#include <string.h>

#include "lib/http/http-upstream.h"

#define CONNECT_MS 10000
#define HEAD_MS 300000 /* a model may think before it speaks */
#define IDLE_MS 120000
#define ALL_MS 900000
#define MESSAGE_MAX 300 /* of what the upstream says about a failure */
#define INFERENCE "llm_inference"
#define ARGUMENTS_MEMORY_MAX (128 * MIB)

/* ---- judging ---- */

/* The headers tell of the first refusal, or else of the inference itself. */
static void show(struct proxy *proxy, struct run *run)
{
    bool is_refusal = run->verdict.kind != VERDICT_ALLOW;

    if (proxy->shown.id[0] && (!is_refusal || proxy->shown.verdict.kind != VERDICT_ALLOW)) {
        run_done(run);
        return;
    }
    if (proxy->shown.id[0])
        run_done(&proxy->shown);
    proxy->shown = *run;
}

static int ask(struct proxy *proxy, const char *name, const struct json *arguments,
               struct str bytes, const char **why, struct err *err)
{
    struct call *call = proxy->call;
    struct request request = call_request(call, ACTION_TOOL);
    struct lent lent;
    struct err invalid;
    struct run run;
    int failed;

    request.tool = name;
    request.arguments = arguments;
    if (call_govern(call, &lent, err) < 0)
        return -1;
    run_init(&run);
    helm_session(call, &run);
    if (arguments)
        request.inner_n = intent_inner(&run.mem, arguments, request.inner);
    failed = arguments ? govern_ask(lent.govern, &request, &run, &invalid)
                       : err_set(&invalid, ERR_INVALID, "its arguments are no JSON object");
    /* What cannot be admitted is denied, and that is recorded. */
    if (failed && (invalid.code == ERR_INVALID || invalid.code == ERR_LIMIT)) {
        const char *text = arena_text(&run.mem, str_of(invalid.text));

        request.tool = NULL;
        failed = govern_refuse(lent.govern, &request, bytes, REASON_REQUEST_INVALID, text, &run,
                               &invalid);
    }
    call_release(call, &lent);
    if (failed) {
        *err = invalid;
        run_done(&run);
        return -1;
    }
    *why = run.verdict.kind == VERDICT_ALLOW
               ? NULL
               : arena_text(&call->mem, str_of(helm_sentence(&run.verdict)));
    show(proxy, &run);
    return 0;
}

int proxy_judge(struct proxy *proxy, const struct proxy_call *tool, const char **why,
                struct err *err)
{
    /* Of its own: an answer may hold many, and each becomes many times larger than its text. */
    AUTO_ARENA struct arena mem = ARENA(ARGUMENTS_MEMORY_MAX);
    struct str text = tool->arguments.n ? tool->arguments : STR_LIT("{}");
    const struct json *arguments = NULL;
    struct mark where;
    struct err bad;

    if (json_parse(&mem, text, &arguments, &where, &bad) < 0 || arguments->kind != JSON_OBJECT ||
        memchr(tool->name.p, '\0', tool->name.n))
        arguments = NULL;
    if (ask(proxy, arena_text(&mem, tool->name), arguments, tool->arguments, why, err) < 0)
        return -1;
    if (*why)
        proxy->denied++;
    else
        proxy->allowed++;
    return 0;
}

const char *proxy_sentence(struct proxy *proxy, const struct proxy_call *tool, const char *why)
{
    return arena_printf(&proxy->call->mem, PROXY_DENIED "the call of %.100s was removed: %s",
                        arena_text(&proxy->call->mem, tool->name), why);
}

/* Whether this model may be asked at all. */
static int judge_inference(struct proxy *proxy, struct str model, const char **why, struct err *err)
{
    struct json *arguments = json_object(&proxy->call->mem);

    json_put(arguments, "model", json_text(&proxy->call->mem, model));
    return ask(proxy, INFERENCE, arguments, model, why, err);
}

/* ---- the upstream ---- */

static int open_upstream(struct call *call, struct http_upstream **out, struct err *err)
{
    const struct helm *helm = route_owner(call->route);
    const struct http_upstream_config config = {
        .origin = helm->upstream,
        .tls = helm->tls,
        .cancel_fd = call->orders[0],
        .connect_ms = CONNECT_MS,
        .head_ms = HEAD_MS,
        .idle_ms = IDLE_MS,
        .all_ms = ALL_MS,
    };

    return http_upstream_open(&config, out, err);
}

/* What the client sent, byte for byte, but nothing of its headers: its token is ours, not theirs.
 */
static int ask_upstream(struct call *call, struct http_upstream *client, bool streamed,
                        struct err *err)
{
    const struct helm *helm = route_owner(call->route);
    const char *target = arena_printf(&call->mem, "%s/chat/completions", helm->upstream->path);
    const struct str accept = str_of(streamed ? "text/event-stream" : "application/json");
    const struct str key = str_of(helm->upstream_key ? helm->upstream_key : "");
    const struct http_header headers[] = {
        {STR_LIT("content-type"),    STR_LIT("application/json")},
        {STR_LIT("accept"),          accept                     },
        {STR_LIT("accept-encoding"), STR_LIT("identity")        },
        {STR_LIT("user-agent"),      STR_LIT("brig")            },
        {STR_LIT("authorization"),   key                        },
    };

    return http_upstream_ask(client, "POST", target, headers,
                             COUNT(headers) - (helm->upstream_key ? 0 : 1),
                             buf_str(&call->incoming), err);
}

static int read_whole(struct http_upstream *client, struct buf *out, struct err *err)
{
    struct str piece;
    int got;

    while ((got = http_upstream_read(client, &piece, err)) == 1)
        if (buf_add_str(out, piece, err) < 0)
            return -1;
    return got;
}

static bool has_type(const struct http_head *head, const char *wanted)
{
    struct str type = http_find(head, "content-type");
    struct str rest = type;
    struct str encoding = http_find(head, "content-encoding");

    return http_name_is(str_trim(str_cut(&rest, ';')), wanted) &&
           (encoding.n == 0 || http_name_is(encoding, "identity"));
}

/* ---- failures ---- */

static int fail(struct proxy *proxy, int status, const struct err *why, struct err *err)
{
    struct err told = *why;

    if (err_http(told.code) < 500 && status >= 500)
        told.code = ERR_UNAVAILABLE;
    return helm_fail(proxy->call, status, &told, reason_code(REASON_UPSTREAM_FAILED), NULL, err);
}

static int fail_by(struct proxy *proxy, const struct err *why, struct err *err)
{
    return fail(proxy, why->code == ERR_TIMEOUT ? 504 : 502, why, err);
}

/* Its key is not the caller's business, its load is. */
static int status_for(int upstream)
{
    if (upstream == 429 || upstream == 400 || upstream == 404 || upstream == 413 || upstream == 422)
        return upstream;
    return 502;
}

static int pass_failure(struct proxy *proxy, struct http_upstream *client,
                        const struct http_head *head, struct err *err)
{
    AUTO_BUF struct buf text = BUF(64 * KIB);
    const struct json *answer = NULL;
    struct str message = {0};
    struct mark where;
    struct err why;
    int status = head->status;

    /* What it says about its key, or about itself, is for nobody here. */
    if (status_for(status) == status && has_type(head, "application/json") &&
        read_whole(client, &text, &why) == 0 &&
        json_parse(&proxy->call->mem, buf_str(&text), &answer, &where, &why) == 0)
        (void)json_is_text(json_at(answer, "/error/message"), &message);
    (void)err_set(&why, status_for(status) == 429 ? ERR_LIMIT : ERR_INVALID,
                  "the upstream answered %d%s%.*s", status, message.n ? ": " : "",
                  (int)(message.n < MESSAGE_MAX ? message.n : MESSAGE_MAX),
                  message.n ? message.p : "");
    return fail(proxy, status_for(status), &why, err);
}

/* ---- answers ---- */

static int pass_whole(struct proxy *proxy, struct http_upstream *client, struct err *err)
{
    AUTO_BUF struct buf text = BUF(PROXY_ANSWER_MAX);
    const struct json *answer = NULL;
    struct json *rebuilt = NULL;
    struct mark where;
    struct err why;

    if (read_whole(client, &text, &why) < 0)
        return fail_by(proxy, &why, err);
    if (json_parse(&proxy->call->mem, buf_str(&text), &answer, &where, &why) < 0) {
        (void)err_set(&why, ERR_INTEGRITY, "the upstream's answer is no JSON");
        return fail_by(proxy, &why, err);
    }
    if (proxy_rebuild(proxy, answer, &rebuilt, &why) < 0)
        return fail_by(proxy, &why, err);
    if (call_answer(proxy->call, 200, rebuilt, err) < 0)
        return -1;
    helm_headers(proxy->call, &proxy->shown, proxy->allowed);
    return 0;
}

static int pass(struct proxy *proxy, struct http_upstream *client, const struct http_head *head,
                bool streamed, struct err *err)
{
    struct err why;

    if (head->status < 200 || head->status > 299)
        return pass_failure(proxy, client, head, err);
    if (!has_type(head, streamed ? "text/event-stream" : "application/json")) {
        (void)err_set(&why, ERR_INTEGRITY, "the upstream's answer is of another type than asked");
        return fail_by(proxy, &why, err);
    }
    if (!streamed)
        return pass_whole(proxy, client, err);
    return proxy_stream(proxy, client, &why) < 0 ? fail_by(proxy, &why, err) : 0;
}

static int forward(struct proxy *proxy, bool streamed, struct err *err)
{
    AUTO(http_upstream) struct http_upstream *client = NULL;
    const struct http_head *head = NULL;
    struct err why;

    if (open_upstream(proxy->call, &client, &why) < 0 ||
        ask_upstream(proxy->call, client, streamed, &why) < 0 ||
        http_upstream_head(client, streamed ? PROXY_STREAM_MAX : PROXY_ANSWER_MAX, &head, &why) < 0)
        return fail_by(proxy, &why, err);
    return pass(proxy, client, head, streamed, err);
}

int proxy_complete(struct call *call, const struct json *body, struct str model, struct err *err)
{
    const struct helm *helm = route_owner(call->route);
    const struct json *stream = json_get(body, "stream");
    struct proxy proxy = {.call = call};
    const char *why = NULL;
    struct err told;
    bool streamed = false;
    int failed;

    if (!helm->upstream) {
        (void)err_set(&told, ERR_UNAVAILABLE,
                      "no upstream is configured for other models: start with --upstream URL");
        return helm_fail(call, 503, &told, reason_code(REASON_UPSTREAM_MISSING), NULL, err);
    }
    if (stream && stream->kind != JSON_NULL && !json_is_bool(stream, &streamed)) {
        (void)err_set(&told, ERR_INVALID, "/stream must be true or false");
        return helm_fail(call, 400, &told, helm_reason(reason_code(REASON_REQUEST_INVALID)), NULL,
                         err);
    }
    if (judge_inference(&proxy, model, &why, err) < 0)
        return -1;
    if (why) {
        (void)err_set(&told, ERR_FORBIDDEN, "%s", why);
        failed = helm_fail(call, 403, &told, helm_verdict_reason(&proxy.shown.verdict),
                           &proxy.shown, err);
    } else {
        failed = forward(&proxy, streamed, err);
    }
    run_done(&proxy.shown);
    return failed;
}
