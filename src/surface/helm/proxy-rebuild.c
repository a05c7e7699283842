/* SPDX-License-Identifier: Apache-2.0 */

/* An answer made anew: known members as they are, calls that were allowed, and nothing else. */

#include "surface/helm/proxy.h"

#include <string.h>

static int malformed(const char *what, struct err *err)
{
    return err_set(err, ERR_INTEGRITY, "the upstream's answer is malformed: %s", what);
}

struct json *proxy_known(struct arena *mem, const struct json *object, const char *const *names)
{
    struct json *out = json_object(mem);

    for (; *names; names++) {
        const struct json *member = json_get(object, *names);
        struct json *copy;

        if (!member)
            continue;
        copy = arena_new(mem, struct json);
        *copy = *member;
        copy->next = NULL;
        json_put(out, *names, copy);
    }
    return out;
}

/* ---- calls ---- */

int proxy_function_read(const struct json *json, struct proxy_call *out, struct err *err)
{
    *out = (struct proxy_call){0};
    if (!json || json->kind != JSON_OBJECT || !json_is_text(json_get(json, "name"), &out->name) ||
        out->name.n == 0 || !json_is_text(json_get(json, "arguments"), &out->arguments))
        return malformed("a call without name or arguments", err);
    return 0;
}

int proxy_call_read(const struct json *json, struct proxy_call *out, struct err *err)
{
    struct str type, id = {0};

    if (!json || json->kind != JSON_OBJECT)
        return malformed("a call that is no object", err);
    if (json_get(json, "type") &&
        (!json_is_text(json_get(json, "type"), &type) || !str_is(type, "function")))
        return malformed("a call of a kind that is not known", err);
    if (json_get(json, "id") && !json_is_text(json_get(json, "id"), &id))
        return malformed("a call whose id is no text", err);
    if (proxy_function_read(json_get(json, "function"), out, err) < 0)
        return -1;
    out->id = id;
    return 0;
}

struct json *proxy_function_json(struct arena *mem, const struct proxy_call *tool)
{
    struct json *function = json_object(mem);

    json_put(function, "name", json_text(mem, tool->name));
    json_put(function, "arguments", json_text(mem, tool->arguments));
    return function;
}

struct json *proxy_call_json(struct arena *mem, const struct proxy_call *tool)
{
    struct json *one = json_object(mem);

    json_put(one, "id", json_text(mem, tool->id));
    json_put_text(mem, one, "type", "function");
    json_put(one, "function", proxy_function_json(mem, tool));
    return one;
}

/* ---- one message ---- */

struct made {
    struct json *message;
    struct json *calls; /* those that were allowed */
    struct json *function;
    const char *said; /* about those that were not, or NULL */
    size_t asked;
};

static int judge(struct proxy *proxy, const struct proxy_call *tool, bool *allowed,
                 struct made *made, struct err *err)
{
    const char *why = NULL, *sentence;

    made->asked++;
    if (proxy_judge(proxy, tool, &why, err) < 0)
        return -1;
    *allowed = !why;
    if (!why)
        return 0;
    sentence = proxy_sentence(proxy, tool, why);
    made->said =
        made->said ? arena_printf(&proxy->call->mem, "%s\n%s", made->said, sentence) : sentence;
    return 0;
}

static int judge_calls(struct proxy *proxy, const struct json *calls, struct made *made,
                       struct err *err)
{
    struct arena *mem = &proxy->call->mem;

    made->calls = json_array(mem);
    if (!calls || calls->kind == JSON_NULL)
        return 0;
    if (calls->kind != JSON_ARRAY || calls->n > PROXY_CALLS_MAX)
        return malformed("tool_calls", err);
    json_each(item, calls)
    {
        struct proxy_call tool;
        bool allowed = false;

        if (proxy_call_read(item, &tool, err) < 0 || judge(proxy, &tool, &allowed, made, err) < 0)
            return -1;
        if (allowed)
            json_push(made->calls, proxy_call_json(mem, &tool));
    }
    return 0;
}

static int judge_function(struct proxy *proxy, const struct json *function, struct made *made,
                          struct err *err)
{
    struct proxy_call tool;
    bool allowed = false;

    if (!function || function->kind == JSON_NULL)
        return 0;
    if (proxy_function_read(function, &tool, err) < 0 ||
        judge(proxy, &tool, &allowed, made, err) < 0)
        return -1;
    if (allowed)
        made->function = proxy_function_json(&proxy->call->mem, &tool);
    return 0;
}

/* Text, nothing, or parts that are text: other parts could be calls in somebody's eyes. */
static int check_content(const struct json *content, struct err *err)
{
    struct str type;

    if (!content || content->kind == JSON_NULL || content->kind == JSON_STRING)
        return 0;
    if (content->kind != JSON_ARRAY)
        return malformed("content", err);
    json_each(
        part,
        content) if (!json_is_text(json_get(part, "type"), &type) ||
                     !(str_is(type, "text") ||
                       str_is(type,
                              "refusal"))) return malformed("a part of the content that is no text",
                                                            err);
    return 0;
}

static struct json *copy_parts(struct arena *mem, const struct json *content)
{
    static const char *const names[] = {"type", "text", "refusal", NULL};
    struct json *parts = json_array(mem);

    json_each(part, content) json_push(parts, proxy_known(mem, part, names));
    return parts;
}

/* The content, with a sentence for each call that was removed. */
static struct json *content_json(struct arena *mem, const struct json *content, const char *said)
{
    struct str text = {0};

    if (content && content->kind == JSON_ARRAY) {
        struct json *parts = copy_parts(mem, content);

        if (said) {
            struct json *part = json_object(mem);

            json_put_text(mem, part, "type", "text");
            json_put_text(mem, part, "text", said);
            json_push(parts, part);
        }
        return parts;
    }
    if (!json_is_text(content, &text))
        return said ? json_text(mem, str_of(said)) : json_null(mem);
    if (!said)
        return json_text(mem, text);
    return json_text(mem, str_of(arena_printf(mem, "%s%s%s", arena_text(mem, text),
                                              text.n ? "\n\n" : "", said)));
}

static int rebuild_message(struct proxy *proxy, const struct json *message, struct made *made,
                           struct err *err)
{
    static const char *const names[] = {"role", "refusal", "reasoning_content", NULL};
    struct arena *mem = &proxy->call->mem;

    if (!message || message->kind != JSON_OBJECT)
        return malformed("a choice without a message", err);
    if (check_content(json_get(message, "content"), err) < 0 ||
        judge_calls(proxy, json_get(message, "tool_calls"), made, err) < 0 ||
        judge_function(proxy, json_get(message, "function_call"), made, err) < 0)
        return -1;
    made->message = proxy_known(mem, message, names);
    json_put(made->message, "content", content_json(mem, json_get(message, "content"), made->said));
    if (made->calls->n)
        json_put(made->message, "tool_calls", made->calls);
    if (made->function)
        json_put(made->message, "function_call", made->function);
    return 0;
}

/* ---- the whole ---- */

static int rebuild_choice(struct proxy *proxy, const struct json *choice, struct json **out,
                          struct err *err)
{
    static const char *const names[] = {"index", "logprobs", NULL};
    struct arena *mem = &proxy->call->mem;
    struct made made = {0};
    struct json *rebuilt;
    struct str finish = {0};

    if (choice->kind != JSON_OBJECT)
        return malformed("a choice that is no object", err);
    if (rebuild_message(proxy, json_get(choice, "message"), &made, err) < 0)
        return -1;
    (void)json_is_text(json_get(choice, "finish_reason"), &finish);
    if (made.asked && !made.calls->n && !made.function)
        finish = STR_LIT("stop");
    rebuilt = proxy_known(mem, choice, names);
    json_put(rebuilt, "message", made.message);
    json_put(rebuilt, "finish_reason", finish.n ? json_text(mem, finish) : json_null(mem));
    *out = rebuilt;
    return 0;
}

int proxy_rebuild(struct proxy *proxy, const struct json *answer, struct json **out,
                  struct err *err)
{
    static const char *const names[] = {
        "id", "object", "created", "model", "usage", "system_fingerprint", "service_tier", NULL};
    struct arena *mem = &proxy->call->mem;
    const struct json *choices = json_get(answer, "choices");
    struct json *list = json_array(mem), *rebuilt;

    if (!choices || choices->kind != JSON_ARRAY || choices->n > PROXY_CHOICES_MAX)
        return malformed("choices", err);
    json_each(choice, choices)
    {
        struct json *one = NULL;

        if (rebuild_choice(proxy, choice, &one, err) < 0)
            return -1;
        json_push(list, one);
    }
    rebuilt = proxy_known(mem, answer, names);
    json_put(rebuilt, "choices", list);
    *out = rebuilt;
    return 0;
}
