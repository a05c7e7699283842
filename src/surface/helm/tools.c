/* SPDX-License-Identifier: Apache-2.0 */

/* POST /v1/tools/evaluate: a tool call, with a hash over its arguments that is checked. */

#include "surface/helm/helm-private.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/limits.h"
#include "lib/crypto/crypto.h"
#include "lib/json/json.h"

struct evaluate_body {
    const char *tool_name;
    const struct json *arguments;
    const char *principal;
    const char *args_hash;
    const struct json *metadata;
    const char *effect;
};

/* clang-format off */
static const struct field evaluate_fields[] = {
    {"tool_name", FIELD_TEXT, offsetof(struct evaluate_body, tool_name), .required = true,
     .max = 256},
    {"arguments", FIELD_JSON, offsetof(struct evaluate_body, arguments), .required = true},
    {"principal", FIELD_TEXT, offsetof(struct evaluate_body, principal), .max = 256,
     .help = "What the client calls itself. Receipts name whom the token belongs to."},
    {"args_hash", FIELD_TEXT, offsetof(struct evaluate_body, args_hash), .required = true,
     .max = HASH_TEXT_BYTES,
     .help = "sha256: and hex, over the arguments as compact JSON with sorted keys."},
    {"metadata", FIELD_JSON, offsetof(struct evaluate_body, metadata),
     .help = "Taken and not used."},
    {"effect", FIELD_TEXT, offsetof(struct evaluate_body, effect), .max = 64,
     .help = "The class of its effect, or E0 to E4: counts where it is graver than what Brig takes it for."},
    {0},
};
/* clang-format on */

/* ---- the hash, as HELM's adapters make it ---- */

/* They write what their language writes: keys sorted by character, nothing between, numbers as they
 * are, and all that is not ASCII as an escape. Where RFC 8785 differs, either form is accepted:
 * both are one hash over exactly these arguments. */

static int write_escape(struct buf *out, uint32_t code, struct err *err)
{
    char text[16];

    if (code >= 0x10000) {
        code -= 0x10000;
        (void)snprintf(text, sizeof text, "\\u%04x\\u%04x", 0xd800 + (code >> 10),
                       0xdc00 + (code & 0x3ff));
    } else {
        (void)snprintf(text, sizeof text, "\\u%04x", code);
    }
    return buf_add_text(out, text, err);
}

/* One character of well-formed UTF-8. */
static uint32_t code_of(struct str *rest)
{
    size_t n = str_utf8_length(*rest);
    unsigned char lead = (unsigned char)rest->p[0];
    uint32_t code = n == 1 ? lead : n == 2 ? lead & 0x1f : n == 3 ? lead & 0x0f : lead & 0x07;

    for (size_t i = 1; i < n; i++)
        code = code << 6 | ((unsigned char)rest->p[i] & 0x3f);
    *rest = (struct str){rest->p + n, rest->n - n};
    return code;
}

static int write_text(struct buf *out, struct str text, struct err *err)
{
    static const char plain[] = "\"\\\b\f\n\r\t";
    static const char named[] = "\"\\bfnrt";

    if (buf_add_byte(out, '"', err) < 0)
        return -1;
    while (text.n) {
        uint32_t code = code_of(&text);
        const char *found = code && code < 0x80 ? strchr(plain, (int)code) : NULL;
        int failed;

        if (found)
            failed = buf_add_byte(out, '\\', err) < 0 ||
                     buf_add_byte(out, named[found - plain], err) < 0;
        else if (code < ' ' || code > '~')
            failed = write_escape(out, code, err);
        else
            failed = buf_add_byte(out, (char)code, err);
        if (failed)
            return -1;
    }
    return buf_add_byte(out, '"', err);
}

static int by_key(const void *a, const void *b)
{
    const struct json *x = *(const struct json *const *)a, *y = *(const struct json *const *)b;

    return str_cmp(x->key, y->key);
}

static int write_value(struct buf *out, const struct json *value, struct err *err);

static int write_members(struct buf *out, const struct json *value, struct err *err)
{
    bool is_object = value->kind == JSON_OBJECT;
    AUTO_FREE const struct json **members = xcalloc(value->n + 1, sizeof *members);
    size_t n = 0;
    int failed = buf_add_byte(out, is_object ? '{' : '[', err);

    json_each(member, value) members[n++] = member;
    if (is_object)
        qsort(members, n, sizeof *members, by_key);
    for (size_t i = 0; !failed && i < n; i++) {
        if (i)
            failed = buf_add_byte(out, ',', err);
        if (!failed && is_object)
            failed = write_text(out, members[i]->key, err) < 0 || buf_add_byte(out, ':', err) < 0;
        if (!failed)
            failed = write_value(out, members[i], err);
    }
    return failed ? -1 : buf_add_byte(out, is_object ? '}' : ']', err);
}

/* As deep as the reader lets anything be. */
static int write_value(struct buf *out, const struct json *value, struct err *err)
{
    switch (value->kind) {
    case JSON_NULL:
        return buf_add_text(out, "null", err);
    case JSON_BOOL:
        return buf_add_text(out, value->boolean ? "true" : "false", err);
    case JSON_NUMBER:
        return buf_add_str(out, value->text, err);
    case JSON_STRING:
        return write_text(out, value->text, err);
    case JSON_ARRAY:
    case JSON_OBJECT:
        break;
    }
    return write_members(out, value, err);
}

static int is_over(const struct json *arguments, const char *stated, bool *out, struct err *err)
{
    AUTO_BUF struct buf sorted = BUF(8 * API_BODY_MAX), canonical = BUF(8 * API_BODY_MAX);
    char hashes[2][HASH_TEXT_BYTES];

    if (write_value(&sorted, arguments, err) < 0 || json_canonical(arguments, &canonical, err) < 0)
        return -1;
    hash_text_of(buf_str(&sorted), hashes[0]);
    hash_text_of(buf_str(&canonical), hashes[1]);
    *out = strcmp(stated, hashes[0]) == 0 || strcmp(stated, hashes[1]) == 0;
    return 0;
}

/* ---- the call ---- */

static int answer(struct call *call, const struct run *run, struct err *err)
{
    struct json *object = json_object(&call->mem);
    bool allowed = run->verdict.kind == VERDICT_ALLOW;

    json_put_text(&call->mem, object, "verdict", allowed ? "ALLOW" : "DENY");
    json_put_text(&call->mem, object, "reason_code", helm_verdict_reason(&run->verdict));
    if (call_answer(call, 200, object, err) < 0)
        return -1;
    helm_headers(call, run, allowed);
    return 0;
}

static struct request request_of(struct call *call, const struct evaluate_body *wanted)
{
    struct request request = call_request(call, ACTION_TOOL);

    request.tool = wanted->tool_name;
    request.arguments = wanted->arguments;
    request.effect = wanted->effect;
    request.inner_n = intent_inner(&call->mem, wanted->arguments, request.inner);
    return request;
}

static int conclude(struct call *call, const struct err *why, struct err *err)
{
    struct request request = request_of(call, call->body);

    if (!why)
        return answer(call, call->question, err);
    if (why->code == ERR_INVALID || why->code == ERR_LIMIT)
        return helm_refuse(call, &request, 400, REASON_REQUEST_INVALID, why, err);
    *err = *why;
    return -1;
}

static enum asked judge(struct call *call)
{
    const struct evaluate_body *wanted = call->body;
    struct request request = request_of(call, wanted);
    struct run *run = arena_new(&call->mem, struct run);
    bool is_hash = false;
    struct lent lent;
    struct err ignored; /* whoever looks at it next says what is wrong */

    if (is_over(wanted->arguments, wanted->args_hash, &is_hash, &ignored) < 0 || !is_hash ||
        call_govern(call, &lent, &ignored) < 0)
        return ASKED_ELSEWHERE;
    run_init(run);
    helm_session(call, run);
    return helm_judge(call, &lent, &request, run);
}

static int evaluate(struct call *call, const void *body, const void *query, struct err *err)
{
    const struct evaluate_body *wanted = body;
    struct request request = request_of(call, wanted);
    bool is_hash = false;
    struct lent lent;
    struct err why;
    struct run run;
    int failed;

    (void)query;
    if (is_over(wanted->arguments, wanted->args_hash, &is_hash, &why) < 0)
        return helm_refuse(call, &request, 400, REASON_REQUEST_INVALID, &why, err);
    if (call_govern(call, &lent, err) < 0)
        return -1;
    run_init(&run);
    helm_session(call, &run);
    failed = is_hash ? govern_ask(lent.govern, &request, &run, &why)
                     : govern_refuse(lent.govern, &request, buf_str(&call->incoming),
                                     REASON_ARGS_HASH_MISMATCH, NULL, &run, &why);
    call_release(call, &lent);
    call->question = &run;
    failed = conclude(call, failed ? &why : NULL, err);
    call->question = NULL;
    run_done(&run);
    return failed;
}

/* clang-format off */
const struct route helm_routes_tools[] = {
    {.method = HTTP_POST,
     .path = "/v1/tools/evaluate",
     .kind = ROUTE_ASK,
     .scope = SCOPE_RUN,
     .body = BODY_JSON,
     .fields = evaluate_fields,
     .body_size = sizeof(struct evaluate_body),
     .name = "helmEvaluateTool",
     .summary = "Judge one tool call.",
     .answer = "The verdict, ALLOW or DENY, and a reason code.",
     .refusal = HELM_REFUSAL,
     .handle = evaluate,
     .judge = judge,
     .conclude = conclude},
    {0},
};
/* clang-format on */
