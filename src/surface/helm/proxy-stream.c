/* SPDX-License-Identifier: Apache-2.0 */

/* A streamed answer. Text goes on as it comes; fragments of calls are held back until the model
 * says that the choice is finished, then each call is judged, and those that are allowed go on
 * whole. What is not finished properly is never passed on: the stream ends with an error instead.
 */

#include "surface/helm/proxy.h"

#include <string.h>
#include <unistd.h>

#include "lib/base/io.h"
#include "lib/http/http-upstream.h"
#include "surface/view/view.h"

/* A call that is coming in. */
struct coming {
    bool is_there;
    struct buf id, name, arguments;
};

struct choice {
    bool is_finished;
    struct coming calls[PROXY_CALLS_MAX];
    struct coming function; /* as it was called before there were several */
    size_t passed;
    size_t removed;
};

struct flow {
    struct proxy *proxy;
    int to;
    struct choice *choices[PROXY_CHOICES_MAX];
    size_t held; /* bytes of all fragments */
    bool is_done;
    struct buf line;
    struct buf data; /* of the event that is being read */
    bool has_data;
    bool after_cr;
    struct arena mem; /* of one event */
};

static int malformed(const char *what, struct err *err)
{
    return err_set(err, ERR_INTEGRITY, "the upstream's stream is malformed: %s", what);
}

/* ---- out ---- */

static int send_text(struct flow *flow, struct str data, struct err *err)
{
    AUTO_BUF struct buf event = BUF(2 * PROXY_EVENT_MAX + PROXY_HELD_MAX);

    if (http_sse_write((struct str){0}, (struct str){0}, data, &event, err) < 0)
        return -1;
    return write_all(flow->to, event.p, event.n, err);
}

static int send_json(struct flow *flow, const struct json *json, struct err *err)
{
    AUTO_BUF struct buf text = BUF(2 * PROXY_EVENT_MAX);

    return json_compact(json, &text, err) < 0 ? -1 : send_text(flow, buf_str(&text), err);
}

/* A chunk like the one that is being read, with this choice only. */
static int send_choice(struct flow *flow, const struct json *chunk, int64_t index,
                       struct json *delta, struct json *finish, struct err *err)
{
    static const char *const names[] = {"id", "object", "created", "model", "system_fingerprint",
                                        NULL};
    struct json *out = proxy_known(&flow->mem, chunk, names), *list = json_array(&flow->mem),
                *choice = json_object(&flow->mem);

    json_put_int(&flow->mem, choice, "index", index);
    json_put(choice, "delta", delta);
    json_put(choice, "finish_reason", finish);
    json_push(list, choice);
    json_put(out, "choices", list);
    return send_json(flow, out, err);
}

static void send_failure(struct flow *flow, const struct err *why)
{
    struct json *answer = view_error(&flow->mem, why, REASON_UPSTREAM_FAILED, NULL);
    struct err ignored; /* whoever cannot be told has left */

    (void)!send_json(flow, answer, &ignored);
}

/* ---- fragments ---- */

static void coming_done(struct coming *coming)
{
    buf_done(&coming->id);
    buf_done(&coming->name);
    buf_done(&coming->arguments);
    *coming = (struct coming){0};
}

static int hold(struct flow *flow, struct buf *to, struct str text, struct err *err)
{
    flow->held += text.n;
    if (flow->held > PROXY_HELD_MAX)
        return malformed("its calls have no end", err);
    to->max = PROXY_HELD_MAX;
    return buf_add_str(to, text, err);
}

/* Said once, or again the same. */
static int hold_once(struct flow *flow, struct buf *to, const struct json *value, struct err *err)
{
    struct str text;

    if (!value || value->kind == JSON_NULL)
        return 0;
    if (!json_is_text(value, &text))
        return malformed("a name or id that is no text", err);
    if (text.n == 0 || (to->n && str_eq(text, buf_str(to))))
        return 0;
    return to->n ? malformed("two calls in one place", err) : hold(flow, to, text, err);
}

static int hold_function(struct flow *flow, struct coming *coming, const struct json *function,
                         struct err *err)
{
    const struct json *arguments = json_get(function, "arguments");
    struct str text;

    if (!function || function->kind == JSON_NULL)
        return 0;
    if (function->kind != JSON_OBJECT)
        return malformed("a function that is no object", err);
    coming->is_there = true;
    if (hold_once(flow, &coming->name, json_get(function, "name"), err) < 0)
        return -1;
    if (!arguments || arguments->kind == JSON_NULL)
        return 0;
    if (!json_is_text(arguments, &text))
        return malformed("arguments that are no text", err);
    return hold(flow, &coming->arguments, text, err);
}

static int hold_call(struct flow *flow, struct choice *choice, const struct json *call,
                     struct err *err)
{
    struct coming *coming;
    struct str type;
    int64_t index = -1;

    if (call->kind != JSON_OBJECT || !json_is_int(json_get(call, "index"), &index) || index < 0 ||
        index >= PROXY_CALLS_MAX)
        return malformed("a call without a place", err);
    if (json_get(call, "type") && json_get(call, "type")->kind != JSON_NULL &&
        (!json_is_text(json_get(call, "type"), &type) || !str_is(type, "function")))
        return malformed("a call of a kind that is not known", err);
    coming = &choice->calls[index];
    coming->is_there = true;
    return hold_once(flow, &coming->id, json_get(call, "id"), err) < 0
               ? -1
               : hold_function(flow, coming, json_get(call, "function"), err);
}

static int hold_calls(struct flow *flow, struct choice *choice, const struct json *delta,
                      struct err *err)
{
    const struct json *calls = json_get(delta, "tool_calls");
    const struct json *function = json_get(delta, "function_call");
    bool has_calls = calls && calls->kind != JSON_NULL;
    bool has_function = function && function->kind != JSON_NULL;

    if (!has_calls && !has_function)
        return 0;
    if (choice->is_finished)
        return malformed("calls behind the end of a choice", err);
    if (has_calls && calls->kind != JSON_ARRAY)
        return malformed("tool_calls", err);
    if (has_calls)
        json_each(call, calls) if (hold_call(flow, choice, call, err) < 0) return -1;
    return has_function ? hold_function(flow, &choice->function, function, err) : 0;
}

/* ---- a choice is finished: its calls are complete ---- */

static struct json *delta_of(struct flow *flow, const struct proxy_call *tool, bool is_call,
                             size_t place)
{
    struct json *delta = json_object(&flow->mem), *list = json_array(&flow->mem), *one;

    if (!is_call) {
        json_put(delta, "function_call", proxy_function_json(&flow->mem, tool));
        return delta;
    }
    one = proxy_call_json(&flow->mem, tool);
    json_put_int(&flow->mem, one, "index", (int64_t)place);
    json_push(list, one);
    json_put(delta, "tool_calls", list);
    return delta;
}

static struct json *delta_said(struct flow *flow, const char *text)
{
    struct json *delta = json_object(&flow->mem);

    json_put_text(&flow->mem, delta, "content", arena_printf(&flow->mem, "%s\n", text));
    return delta;
}

static int pass_call(struct flow *flow, const struct json *chunk, int64_t index,
                     struct choice *choice, struct coming *coming, bool is_call, struct err *err)
{
    const struct proxy_call tool = {buf_str(&coming->id), buf_str(&coming->name),
                                    buf_str(&coming->arguments)};
    const char *why = NULL;
    struct json *delta;

    if (tool.name.n == 0)
        return malformed("a call without a name", err);
    if (proxy_judge(flow->proxy, &tool, &why, err) < 0)
        return -1;
    delta = why ? delta_said(flow, proxy_sentence(flow->proxy, &tool, why))
                : delta_of(flow, &tool, is_call, choice->passed);
    if (why)
        choice->removed++;
    else
        choice->passed++;
    return send_choice(flow, chunk, index, delta, json_null(&flow->mem), err);
}

static int finish_choice(struct flow *flow, const struct json *chunk, int64_t index,
                         struct choice *choice, struct str finish, struct err *err)
{
    for (size_t i = 0; i < PROXY_CALLS_MAX; i++)
        if (choice->calls[i].is_there &&
            pass_call(flow, chunk, index, choice, &choice->calls[i], true, err) < 0)
            return -1;
    if (choice->function.is_there &&
        pass_call(flow, chunk, index, choice, &choice->function, false, err) < 0)
        return -1;
    choice->is_finished = true;
    if (choice->removed && !choice->passed)
        finish = STR_LIT("stop");
    return send_choice(flow, chunk, index, json_object(&flow->mem), json_text(&flow->mem, finish),
                       err);
}

/* ---- one chunk ---- */

static int find_choice(struct flow *flow, const struct json *json, int64_t *index,
                       struct choice **out, struct err *err)
{
    if (json->kind != JSON_OBJECT || !json_is_int(json_get(json, "index"), index) || *index < 0 ||
        *index >= PROXY_CHOICES_MAX)
        return malformed("a choice without a place", err);
    if (!flow->choices[*index])
        flow->choices[*index] = xcalloc(1, sizeof **flow->choices);
    *out = flow->choices[*index];
    return 0;
}

/* What a client may see of a delta at once: text. */
static int pass_text(struct flow *flow, const struct json *chunk, int64_t index,
                     const struct json *delta, struct err *err)
{
    static const char *const names[] = {"role", "content", "refusal", "reasoning_content", NULL};
    struct json *shown = proxy_known(&flow->mem, delta, names);

    for (const struct json *member = shown->first; member; member = member->next)
        if (member->kind != JSON_NULL && member->kind != JSON_STRING)
            return malformed("text that is none", err);
    if (shown->n == 0)
        return 0;
    return send_choice(flow, chunk, index, shown, json_null(&flow->mem), err);
}

static int take_choice(struct flow *flow, const struct json *chunk, const struct json *json,
                       struct err *err)
{
    const struct json *delta = json_get(json, "delta");
    struct choice *choice = NULL;
    struct str finish;
    int64_t index = 0;

    if (find_choice(flow, json, &index, &choice, err) < 0)
        return -1;
    if (json_get(json, "message"))
        return malformed("a message in a stream", err);
    if (delta && delta->kind != JSON_NULL) {
        if (delta->kind != JSON_OBJECT)
            return malformed("a delta that is no object", err);
        if (pass_text(flow, chunk, index, delta, err) < 0 ||
            hold_calls(flow, choice, delta, err) < 0)
            return -1;
    }
    if (!json_is_text(json_get(json, "finish_reason"), &finish))
        return 0;
    if (choice->is_finished)
        return malformed("a choice that ends twice", err);
    return finish_choice(flow, chunk, index, choice, finish, err);
}

static int pass_usage(struct flow *flow, const struct json *chunk, struct err *err)
{
    static const char *const names[] = {"id", "object", "created", "model", "usage", NULL};
    const struct json *usage = json_get(chunk, "usage");
    struct json *out;

    if (!usage || usage->kind == JSON_NULL)
        return 0;
    out = proxy_known(&flow->mem, chunk, names);
    json_put(out, "choices", json_array(&flow->mem));
    return send_json(flow, out, err);
}

static int take_done(struct flow *flow, struct err *err)
{
    for (size_t i = 0; i < PROXY_CHOICES_MAX; i++)
        if (flow->choices[i] && !flow->choices[i]->is_finished)
            return malformed("it ends before its choices do", err);
    flow->is_done = true;
    return send_text(flow, STR_LIT("[DONE]"), err);
}

static int take_event(struct flow *flow, struct str data, struct err *err)
{
    const struct json *chunk = NULL, *choices;
    struct mark where;

    if (flow->is_done)
        return malformed("it goes on after its end", err);
    if (str_is(data, "[DONE]"))
        return take_done(flow, err);
    if (json_parse(&flow->mem, data, &chunk, &where, err) < 0 || chunk->kind != JSON_OBJECT)
        return malformed("an event that is no JSON", err);
    if (json_get(chunk, "error"))
        return err_set(err, ERR_UNAVAILABLE, "the upstream failed half way");
    choices = json_get(chunk, "choices");
    if (!choices || choices->kind != JSON_ARRAY)
        return malformed("choices", err);
    json_each(choice, choices) if (take_choice(flow, chunk, choice, err) < 0) return -1;
    return pass_usage(flow, chunk, err);
}

/* ---- lines ---- */

/* Only data counts; names, ids and comments of the upstream are its own. */
static int take_line(struct flow *flow, struct str line, struct err *err)
{
    struct str value = line;
    struct str field;

    if (line.n == 0) {
        int failed;

        if (!flow->has_data)
            return 0;
        failed = take_event(flow, buf_str(&flow->data), err);
        arena_done(&flow->mem);
        flow->has_data = false;
        buf_clear(&flow->data);
        return failed;
    }
    field = str_cut(&value, ':');
    if (!str_is(field, "data"))
        return 0;
    if (str_starts(value, " "))
        value = (struct str){value.p + 1, value.n - 1};
    if ((flow->has_data && buf_add_byte(&flow->data, '\n', err) < 0) ||
        buf_add_str(&flow->data, value, err) < 0)
        return malformed("an event that is too long", err);
    flow->has_data = true;
    return 0;
}

static int take_bytes(struct flow *flow, struct str bytes, struct err *err)
{
    for (size_t i = 0; i < bytes.n; i++) {
        char c = bytes.p[i];
        bool behind_cr = flow->after_cr;

        flow->after_cr = c == '\r';
        if (c == '\n' && behind_cr)
            continue;
        if (c != '\n' && c != '\r') {
            if (buf_add_byte(&flow->line, c, err) < 0)
                return malformed("a line that is too long", err);
            continue;
        }
        if (take_line(flow, buf_str(&flow->line), err) < 0)
            return -1;
        buf_clear(&flow->line);
    }
    return 0;
}

static int relay(struct flow *flow, struct http_upstream *client, struct err *err)
{
    struct str piece;
    int got;

    while ((got = http_upstream_read(client, &piece, err)) == 1)
        if (take_bytes(flow, piece, err) < 0)
            return -1;
    if (got < 0)
        return -1;
    return flow->is_done ? 0 : malformed("it has no end", err);
}

static void flow_done(struct flow *flow)
{
    for (size_t i = 0; i < PROXY_CHOICES_MAX; i++) {
        if (!flow->choices[i])
            continue;
        for (size_t j = 0; j < PROXY_CALLS_MAX; j++)
            coming_done(&flow->choices[i]->calls[j]);
        coming_done(&flow->choices[i]->function);
        free(flow->choices[i]);
    }
    buf_done(&flow->line);
    buf_done(&flow->data);
    arena_done(&flow->mem);
}

int proxy_stream(struct proxy *proxy, struct http_upstream *client, struct err *err)
{
    const struct stream_config config = {.frame = FRAME_RAW, .type = HTTP_SSE_TYPE, .sources = 1};
    struct flow flow = {.proxy = proxy,
                        .line = BUF(PROXY_EVENT_MAX),
                        .data = BUF(PROXY_EVENT_MAX),
                        .mem = ARENA(64 * MIB)};
    int fds[STREAM_SOURCES];
    struct err why;

    helm_headers_begun(proxy->call, &proxy->shown);
    if (stream_open(proxy->call, &config, fds, err) < 0)
        return -1;
    flow.to = fds[0];
    if (relay(&flow, client, &why) < 0)
        send_failure(&flow, &why);
    (void)close(fds[0]);
    flow_done(&flow);
    return 0;
}
