/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to surface/helm: answers of somebody else's model on their way to whoever asked. Nothing
 * that could be a call of a tool passes unjudged: answers are made anew from what is known, and
 * what is denied is not in them. */

#include "surface/helm/helm-private.h"

#include "lib/base/limits.h"
#include "lib/json/json.h"

#define PROXY_ANSWER_MAX JSON_TEXT_MAX
#define PROXY_STREAM_MAX (64 * MIB)
#define PROXY_EVENT_MAX (1 * MIB)
#define PROXY_HELD_MAX (1 * MIB) /* fragments of calls that are not complete */
#define PROXY_CHOICES_MAX 16
#define PROXY_CALLS_MAX 64 /* of one choice */
#define PROXY_DENIED "Denied by policy: "

struct http_upstream;
struct http_head;

struct proxy {
    struct call *call;
    struct run shown; /* whose receipt the headers tell: the first denial, or the inference */
    size_t allowed;
    size_t denied;
};

/* A call as it came. */
struct proxy_call {
    struct str id; /* may be empty */
    struct str name;
    struct str arguments; /* a JSON text */
};

/* One judgement with its receipt. *why lives in the call's arena; NULL: allowed. */
int proxy_judge(struct proxy *proxy, const struct proxy_call *tool, const char **why,
                struct err *err) MUST_CHECK;
/* What says so in place of a call that was denied. */
const char *proxy_sentence(struct proxy *proxy, const struct proxy_call *tool, const char *why);

/* {"id","type","function":{"name","arguments"}}, and nothing else. ERR_INTEGRITY: it is none. */
int proxy_call_read(const struct json *json, struct proxy_call *out, struct err *err) MUST_CHECK;
struct json *proxy_call_json(struct arena *mem, const struct proxy_call *tool);
/* {"name","arguments"}, as it was called before. */
int proxy_function_read(const struct json *json, struct proxy_call *out,
                        struct err *err) MUST_CHECK;
struct json *proxy_function_json(struct arena *mem, const struct proxy_call *tool);

/* Those members of an object that are known, as they are; what is below them is shared. */
struct json *proxy_known(struct arena *mem, const struct json *object, const char *const *names);
/* An answer in one piece, made anew. */
int proxy_rebuild(struct proxy *proxy, const struct json *answer, struct json **out,
                  struct err *err) MUST_CHECK;

/* proxy-stream.c: an answer in pieces. -1 only before anything was sent. */
int proxy_stream(struct proxy *proxy, struct http_upstream *client, struct err *err) MUST_CHECK;
