/* SPDX-License-Identifier: Apache-2.0 */
/* MCP and JSON-RPC: calls of the client, one or a batch. One that is refused refuses all of them.
 */
#include "lib/egress/rules-judge.h"
#include "lib/http/http.h"

#include <string.h>

#define CALLS_MAX 256
#define TOOL_NAME_MAX 128

/* What the profile allow_all_known_mcp_methods stands for. */
static const char *const known_methods[] = {
    "initialize",
    "ping",
    "notifications/initialized",
    "notifications/cancelled",
    "notifications/progress",
    "notifications/roots/list_changed",
    "tools/list",
    "tools/call",
    "resources/list",
    "resources/read",
    "resources/templates/list",
    "resources/subscribe",
    "resources/unsubscribe",
    "prompts/list",
    "prompts/get",
    "completion/complete",
    "logging/setLevel",
};

static bool hard(struct opinion *out, const struct endpoint *endpoint, const char *why)
{
    opine(out, STANCE_DENIES, NET_REASON_BODY_FORM, endpoint->line, "the call cannot be read: %s",
          why);
    out->is_hard = true;
    return false;
}

static bool is_tool_name(struct str name)
{
    if (name.n == 0 || name.n > TOOL_NAME_MAX)
        return false;
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              (c && strchr("_.-", c))))
            return false;
    }
    return true;
}

/* One call, as far as rules look at it. */
struct call {
    struct str method;
    struct str tool; /* of tools/call */
    bool is_tool;
    const struct json *arguments; /* NULL: none */
};

static bool rule_is_about(const struct endpoint *endpoint, const struct rule *rule,
                          const struct call *call)
{
    if (endpoint->protocol == NET_PROTOCOL_JSON_RPC)
        return rule->method.n == 0 || str_is(rule->method, "*") ||
               str_eq(rule->method, call->method);
    if (rule->tool.n)
        return call->is_tool && matcher_has(&rule->tool, call->tool) &&
               (!rule->method_glob || glob_match(rule->method_glob, call->method));
    return !rule->method_glob || glob_match(rule->method_glob, call->method);
}

static const struct json *arguments_of(const struct call *call)
{
    static const struct json none = {.kind = JSON_OBJECT};

    return call->arguments ? call->arguments : &none;
}

static bool has_tool_rules(const struct endpoint *endpoint)
{
    for (const struct rule *rule = endpoint->allow; rule; rule = rule->next)
        if (rule->tool.n || rule->arguments)
            return true;
    return false;
}

static bool profile_has(const struct endpoint *endpoint, const struct call *call)
{
    if (!endpoint->mcp_profile || (call->is_tool && has_tool_rules(endpoint)))
        return false;
    for (size_t i = 0; i < COUNT(known_methods); i++)
        if (str_is(call->method, known_methods[i]))
            return true;
    return false;
}

static bool judge_call(const struct endpoint *endpoint, const struct call *call,
                       struct opinion *out)
{
    const struct rule *by_arguments = NULL;
    struct shown method, tool;

    for (const struct rule *rule = endpoint->deny; rule; rule = rule->next)
        if (rule_is_about(endpoint, rule, call) &&
            (!rule->arguments ||
             (call->is_tool && wants_deny(rule->arguments, arguments_of(call))))) {
            opine(out, STANCE_DENIES, NET_REASON_DENY_RULE, rule->line, "a deny rule forbids %s %s",
                  show(&method, call->method), show(&tool, call->tool));
            return false;
        }
    for (const struct rule *rule = endpoint->allow; rule; rule = rule->next) {
        if (!rule_is_about(endpoint, rule, call))
            continue;
        if ((rule->arguments || rule->is_strict) &&
            !(call->is_tool && wants_allow(rule->arguments, arguments_of(call), rule->is_strict))) {
            by_arguments = rule;
            continue;
        }
        out->line = rule->line;
        return true;
    }
    if (profile_has(endpoint, call)) {
        out->line = endpoint->line;
        return true;
    }
    if (by_arguments)
        opine(out, STANCE_DENIES, NET_REASON_BODY, by_arguments->line,
              "tool %s may be called, but not with these arguments; compare them with "
              "\"arguments\" of the rule",
              show(&tool, call->tool));
    else
        opine(out, STANCE_DENIES, NET_REASON_BODY, endpoint->line,
              "no rule allows %s%s%s; add one with this %s", show(&method, call->method),
              call->is_tool ? " of tool " : "", show(&tool, call->tool),
              call->is_tool ? "\"tool\"" : "\"method\"");
    return false;
}

/* ---- one frame ---- */

static bool read_tool(const struct endpoint *endpoint, const struct json *frame, struct call *call,
                      struct opinion *out)
{
    const struct json *params = json_get(frame, "params");

    call->is_tool = true;
    if (!params || params->kind != JSON_OBJECT ||
        !json_is_text(json_get(params, "name"), &call->tool))
        return hard(out, endpoint, "tools/call without a name");
    if (!endpoint->mcp_loose_names && !is_tool_name(call->tool))
        return hard(out, endpoint, "the tool's name has characters that names of tools have not");
    call->arguments = json_get(params, "arguments");
    if (call->arguments && call->arguments->kind != JSON_OBJECT)
        return hard(out, endpoint, "the tool's arguments are no object");
    return true;
}

static bool judge_frame(const struct endpoint *endpoint, const struct json *frame,
                        struct opinion *out)
{
    bool is_mcp = endpoint->protocol == NET_PROTOCOL_MCP;
    struct call call = {
        .tool = {"", 0}
    };
    struct str version;

    if (frame->kind != JSON_OBJECT)
        return hard(out, endpoint, "it is no object");
    if (!json_is_text(json_get(frame, "jsonrpc"), &version) || !str_is(version, "2.0"))
        return hard(out, endpoint, "it is not of JSON-RPC 2.0");
    if (!json_get(frame, "method")) {
        if (!json_get(frame, "result") && !json_get(frame, "error"))
            return hard(out, endpoint, "it is neither a call nor an answer");
        return is_mcp || hard(out, endpoint, "a client does not answer in JSON-RPC");
    }
    if (!json_is_text(json_get(frame, "method"), &call.method) || call.method.n == 0)
        return hard(out, endpoint, "its method is no text");
    if (is_mcp && str_is(call.method, "tools/call") && !read_tool(endpoint, frame, &call, out))
        return false;
    return judge_call(endpoint, &call, out);
}

static void judge_document(const struct endpoint *endpoint, const struct json *document,
                           struct opinion *out)
{
    if (document->kind != JSON_ARRAY) {
        if (judge_frame(endpoint, document, out))
            out->stance = STANCE_ALLOWS;
        return;
    }
    if (document->n == 0 || document->n > CALLS_MAX) {
        (void)hard(out, endpoint, "a batch has 1 to 256 calls");
        return;
    }
    json_each(item, document)
    {
        if (!judge_frame(endpoint, item, out))
            return;
    }
    out->stance = STANCE_ALLOWS;
}

/* MCP: GET opens the stream of the server's messages, DELETE ends the session. */
static bool is_session_request(const struct net_request *request)
{
    if (str_is(request->method, "GET"))
        return http_list_has(header_of(request, "accept"), "text/event-stream");
    return str_is(request->method, "DELETE") && header_of(request, "mcp-session-id").n > 0;
}

void rpc_judge(const struct endpoint *endpoint, struct judged *judged, struct opinion *out)
{
    const struct net_request *request = judged->request;

    out->line = endpoint->line;
    if (request->upgrade.n) {
        opine(out, STANCE_DENIES, NET_REASON_UPGRADE, endpoint->line,
              "this endpoint takes calls over HTTP, no upgrades");
        return;
    }
    if (endpoint->protocol == NET_PROTOCOL_MCP && is_session_request(request)) {
        out->stance = STANCE_ALLOWS;
        return;
    }
    if (!str_is(request->method, "POST")) {
        opine(out, STANCE_SILENT, NET_REASON_REQUEST, endpoint->line, "calls are sent with POST%s",
              endpoint->protocol == NET_PROTOCOL_MCP ? "; GET only for text/event-stream" : "");
        return;
    }
    if (!judged->body) {
        out->stance = STANCE_NEEDS_BODY;
        return;
    }
    if (!document_of(judged))
        (void)hard(out, endpoint, judged->fault);
    else
        judge_document(endpoint, judged->document, out);
}
