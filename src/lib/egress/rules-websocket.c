/* SPDX-License-Identifier: Apache-2.0 */
/* WebSocket: the request that upgrades, and each message of the client behind it. */
#include "lib/egress/rules-judge.h"

#include <string.h>

static bool is_websocket(const struct net_request *request)
{
    return request->upgrade.n == 9 && strncasecmp(request->upgrade.p, "websocket", 9) == 0;
}

static bool place_matches(const struct rule *rule, const struct judged *judged, bool denies)
{
    const struct judged_path *path = &judged->path;
    struct str query = judged->request->has_query ? judged->request->query : (struct str){"", 0};

    if (rule->path && !glob_match(rule->path, (struct str){path->normal, path->n}) &&
        !(denies && glob_match(rule->path, (struct str){path->decoded, path->decoded_n})))
        return false;
    return denies ? query_denies(rule, query) : query_allows(rule, query);
}

/* The rule among these that has this method, or any, and is about this place. */
static const struct rule *find_rule(const struct rule *rule, const struct judged *judged,
                                    const char *method, bool denies)
{
    for (; rule; rule = rule->next)
        if (!rule->has_graphql &&
            (rule->method.n == 0 || str_is(rule->method, "*") || str_is(rule->method, method)) &&
            place_matches(rule, judged, denies))
            return rule;
    return NULL;
}

static bool has_graphql(const struct rule *rule)
{
    for (; rule; rule = rule->next)
        if (rule->has_graphql)
            return true;
    return false;
}

/* ---- the upgrade ---- */

void websocket_judge(const struct endpoint *endpoint, struct judged *judged, struct opinion *out)
{
    const struct rule *rule = find_rule(endpoint->deny, judged, "GET", true);

    out->line = endpoint->line;
    if (!is_websocket(judged->request) || !str_is(judged->request->method, "GET")) {
        opine(
            out, STANCE_SILENT, NET_REASON_REQUEST, endpoint->line,
            "this endpoint takes WebSocket upgrades only; for plain requests add an endpoint with "
            "\"protocol: rest\" and a \"path\"");
        return;
    }
    if (rule) {
        opine(out, STANCE_DENIES, NET_REASON_DENY_RULE, rule->line,
              "a deny rule forbids this upgrade");
        return;
    }
    rule = find_rule(endpoint->allow, judged, "GET", false);
    if (rule)
        out->line = rule->line;
    if (rule || endpoint->access != ACCESS_RULES || has_graphql(endpoint->allow))
        out->stance = STANCE_ALLOWS;
    else
        opine(out, STANCE_SILENT, NET_REASON_REQUEST, endpoint->line,
              "no rule allows an upgrade at this path; add one with method GET");
}

/* ---- messages ---- */

/* graphql-transport-ws and the older subscriptions-transport-ws: what runs something, and what only
 * keeps the connection. */
static void judge_graphql_message(const struct endpoint *endpoint, struct arena *mem,
                                  struct str message, struct opinion *out)
{
    static const char *const harmless[] = {
        "connection_init", "connection_terminate", "ping", "pong", "complete", "stop"};
    const struct json *frame, *payload;
    struct mark where;
    struct str type;
    struct err err;

    if (message.n > endpoint->body_max) {
        opine(out, STANCE_DENIES, NET_REASON_BODY_LARGE, endpoint->line,
              "a rule looks into messages, of which %zu bytes are read; raise "
              "\"graphql_max_body_bytes\" of this endpoint",
              endpoint->body_max);
        out->is_hard = true;
        return;
    }
    if (json_parse(mem, message, &frame, &where, &err) < 0 ||
        !json_is_text(json_get(frame, "type"), &type)) {
        opine(out, STANCE_DENIES, NET_REASON_MESSAGE, endpoint->line,
              "the message is not one of GraphQL over WebSocket");
        out->is_hard = true;
        return;
    }
    for (size_t i = 0; i < COUNT(harmless); i++)
        if (str_is(type, harmless[i])) {
            out->stance = STANCE_ALLOWS;
            return;
        }
    payload = json_get(frame, "payload");
    if ((!str_is(type, "subscribe") && !str_is(type, "start")) || !payload ||
        payload->kind != JSON_OBJECT) {
        opine(out, STANCE_DENIES, NET_REASON_MESSAGE, endpoint->line,
              "the message is of a type that GraphQL over WebSocket does not have");
        out->is_hard = true;
        return;
    }
    graphql_judge_payload(endpoint, mem, payload, out);
}

/* Nobody asked to look at what this endpoint is about. */
static bool is_unread(const struct endpoint *endpoint)
{
    return endpoint->tls_skip || endpoint->protocol == NET_PROTOCOL_NONE ||
           endpoint->protocol == NET_PROTOCOL_TCP ||
           (endpoint->protocol == NET_PROTOCOL_REST && endpoint->ws_rewrite);
}

/* One rule about operations, and all that is said is read as such. */
static bool reads_graphql(const struct endpoint *endpoint)
{
    return endpoint->access != ACCESS_READ_ONLY &&
           (has_graphql(endpoint->allow) || has_graphql(endpoint->deny));
}

/* Bytes are for who may say anything. */
static const struct rule *find_binary_rule(const struct rule *rule, const struct judged *judged)
{
    for (; rule; rule = rule->next)
        if (str_is(rule->method, "*") && place_matches(rule, judged, false))
            return rule;
    return NULL;
}

static void judge_plain_message(const struct endpoint *endpoint, const struct judged *judged,
                                bool is_text, struct opinion *out)
{
    const struct rule *rule = is_text ? find_rule(endpoint->allow, judged, "WEBSOCKET_TEXT", false)
                                      : find_binary_rule(endpoint->allow, judged);

    if (rule)
        out->line = rule->line;
    if (rule || endpoint->access == ACCESS_FULL ||
        (is_text && endpoint->access == ACCESS_READ_WRITE))
        out->stance = STANCE_ALLOWS;
    else
        opine(out, STANCE_SILENT, NET_REASON_MESSAGE, endpoint->line,
              is_text
                  ? "no rule allows the client to send text; add one with method WEBSOCKET_TEXT"
                  : "no rule allows the client to send binary messages; only access \"full\" or "
                    "method \"*\" does");
}

static void judge_message(const struct endpoint *endpoint, struct judged *judged, bool is_text,
                          struct str message, struct opinion *out)
{
    const struct rule *denies = find_rule(endpoint->deny, judged, "WEBSOCKET_TEXT", true);

    out->line = endpoint->line;
    if (is_unread(endpoint))
        out->stance = STANCE_ALLOWS;
    else if (endpoint->protocol != NET_PROTOCOL_WEBSOCKET)
        opine(out, STANCE_SILENT, NET_REASON_MESSAGE, endpoint->line,
              "this endpoint speaks plain HTTP; for WebSocket write \"protocol: websocket\"");
    else if (denies)
        opine(out, STANCE_DENIES, NET_REASON_DENY_RULE, denies->line,
              "a deny rule forbids messages");
    else if (is_text && reads_graphql(endpoint))
        judge_graphql_message(endpoint, judged->mem, message, out);
    else
        judge_plain_message(endpoint, judged, is_text, out);
}

void net_rules_message(const struct net_rules *rules, const struct net_knock *knock,
                       const struct net_request *upgraded, bool is_text, struct str message,
                       struct net_verdict *out)
{
    AUTO_ARENA struct arena mem = ARENA(JUDGE_MEMORY_MAX);
    struct judged judged = {.mem = &mem, .request = upgraded};
    struct sum sum = {0};
    struct found found;
    size_t top;

    if (!find_endpoints(rules, knock, &found, out))
        return;
    if (path_read(upgraded->path, &judged.path) || !select_by_path(&judged, &found, &top)) {
        verdict_deny(out, NET_REASON_MESSAGE, NULL, "no rule is about this connection any more");
        return;
    }
    if (is_text && message.n > NET_BODY_MAX) {
        verdict_deny(out, NET_REASON_BODY_LARGE, found.v[0], "the message is too large");
        return;
    }
    for (size_t i = 0; i < top; i++) {
        struct opinion opinion = {0};

        judge_message(found.v[i], &judged, is_text, message, &opinion);
        sum_add(&sum, found.v[i], &opinion, true);
    }
    sum_conclude(&sum, out);
    if (out->reason == NET_REASON_REQUEST)
        out->reason = NET_REASON_MESSAGE;
    shapes_judge_message(message, &found, top, out);
}
