/* SPDX-License-Identifier: Apache-2.0 */
/* A request, and its body: which endpoints it belongs to, what each says, and what that comes to.
 *
 * Of the endpoints that match host, port, caller and address, those whose path is the most specific
 * decide; it is allowed when one of them allows it and none denies. The deny rules of the others
 * hold as well. So a wide rule for plain requests cannot let through what a narrower one reads as
 * GraphQL. */
#include "lib/egress/rules-judge.h"
#include "lib/http/http.h"

#include <string.h>

/* ---- forms ---- */

static bool check_method(const struct net_request *request, struct net_verdict *out)
{
    static const char *const overrides[] = {"x-http-method-override", "x-http-method",
                                            "x-method-override"};
    struct shown method;
    bool plain = request->method.n > 0 && http_is_token(request->method);

    for (size_t i = 0; i < request->method.n; i++)
        plain = plain && !(request->method.p[i] >= 'a' && request->method.p[i] <= 'z');
    if (!plain || str_is(request->method, "CONNECT") || str_is(request->method, "TRACE")) {
        verdict_deny(out, NET_REASON_METHOD_FORM, NULL, "method \"%s\" cannot be used here",
                     show(&method, request->method));
        return false;
    }
    for (size_t i = 0; i < COUNT(overrides); i++)
        if (header_of(request, overrides[i]).p) {
            verdict_deny(out, NET_REASON_METHOD_FORM, NULL,
                         "the header %s asks for another method than the one that is judged; leave "
                         "it away",
                         overrides[i]);
            return false;
        }
    return true;
}

static bool check_forms(struct judged *judged, struct net_verdict *out)
{
    const struct net_request *request = judged->request;
    const char *fault;
    struct shown path;

    if (!check_method(request, out))
        return false;
    fault = path_read(request->path, &judged->path);
    if (fault) {
        verdict_deny(out, NET_REASON_PATH_FORM, NULL, "path \"%s\" %s; send it in its plain form",
                     show(&path, request->path), fault);
        return false;
    }
    fault = request->has_query ? query_fault(request->query) : NULL;
    if (fault) {
        verdict_deny(out, NET_REASON_QUERY_FORM, NULL, "the query %s", fault);
        return false;
    }
    if (request->upgrade.n &&
        !(request->upgrade.n == 9 && strncasecmp(request->upgrade.p, "websocket", 9) == 0)) {
        verdict_deny(out, NET_REASON_UPGRADE, NULL,
                     "only upgrades to WebSocket can be judged; speak HTTP/1.1, or HTTP/2 in TLS");
        return false;
    }
    return true;
}

/* ---- which endpoints ---- */

bool select_by_path(const struct judged *judged, struct found *found, size_t *top)
{
    struct str path = {judged->path.normal, judged->path.n};
    size_t kept = 0, best = 0, at = 0;

    for (size_t i = 0; i < found->n; i++) {
        const struct endpoint *endpoint = found->v[i];

        if (endpoint->path && !glob_match(endpoint->path, path))
            continue;
        best = endpoint->path_rank > best ? endpoint->path_rank : best;
        found->v[kept++] = endpoint;
    }
    found->n = kept;
    /* The most specific first, the others behind them, both in the order of the policy. */
    for (size_t i = 0; i < kept; i++) {
        const struct endpoint *endpoint = found->v[i];

        if (endpoint->path_rank != best)
            continue;
        memmove(&found->v[at + 1], &found->v[at], (i - at) * sizeof found->v[0]);
        found->v[at++] = endpoint;
    }
    *top = at;
    return kept > 0;
}

/* ---- what they say ---- */

void judge_endpoint(const struct endpoint *endpoint, struct judged *judged, bool denies_only,
                    struct opinion *out)
{
    out->line = endpoint->line;
    if (judged->path.has_slash && !endpoint->encoded_slash && !denies_only) {
        opine(out, STANCE_SILENT, NET_REASON_PATH_FORM, endpoint->line,
              "the path hides a slash; where that is meant, add \"allow_encoded_slash: true\"");
        return;
    }
    if (denies_only && endpoint->protocol != NET_PROTOCOL_REST)
        return;
    if (endpoint->tls_skip) {
        out->stance = STANCE_ALLOWS;
        return;
    }
    switch (endpoint->protocol) {
    case NET_PROTOCOL_NONE:
    case NET_PROTOCOL_TCP:
        out->stance = STANCE_ALLOWS; /* nobody asked to look */
        return;
    case NET_PROTOCOL_REST:
        rest_judge(endpoint, judged, denies_only, out);
        return;
    case NET_PROTOCOL_WEBSOCKET:
        websocket_judge(endpoint, judged, out);
        return;
    case NET_PROTOCOL_GRAPHQL:
        graphql_judge(endpoint, judged, out);
        return;
    case NET_PROTOCOL_MCP:
    case NET_PROTOCOL_JSON_RPC:
        rpc_judge(endpoint, judged, out);
        return;
    case NET_PROTOCOL_SQL:
        return;
    }
}

/* ---- what it comes to ---- */

void sum_add(struct sum *sum, const struct endpoint *endpoint, const struct opinion *opinion,
             bool is_top)
{
    switch (opinion->stance) {
    case STANCE_ALLOWS:
        if (is_top && !sum->allows) {
            sum->allows = endpoint;
            sum->allow = *opinion;
        }
        return;
    case STANCE_NEEDS_BODY:
        sum->needs_body = sum->needs_body ? sum->needs_body : endpoint;
        sum->body_max = endpoint->body_max > sum->body_max ? endpoint->body_max : sum->body_max;
        return;
    case STANCE_DENIES:
        if (endpoint->audit && !opinion->is_hard) {
            sum->audits = sum->audits ? sum->audits : endpoint;
            sum->audit = sum->audits == endpoint ? *opinion : sum->audit;
        } else if (!sum->denies) {
            sum->denies = endpoint;
            sum->deny = *opinion;
        }
        return;
    case STANCE_SILENT:
        if (!is_top)
            return;
        if (endpoint->audit && !sum->audits) {
            sum->audits = endpoint;
            sum->audit = *opinion;
        }
        if (!sum->silent) {
            sum->silent = endpoint;
            sum->silence = *opinion;
        }
        return;
    }
}

static void say(struct net_verdict *out, const struct endpoint *by, const struct opinion *opinion)
{
    verdict_deny(out, opinion->reason ? opinion->reason : NET_REASON_REQUEST, by, "%s",
                 opinion->text);
    out->line = opinion->line;
}

void sum_conclude(const struct sum *sum, struct net_verdict *out)
{
    if (sum->denies) {
        say(out, sum->denies, &sum->deny);
    } else if (sum->needs_body) {
        verdict_allow(out, NET_NEED_BODY, sum->needs_body);
        out->body_max = sum->body_max;
    } else if (sum->allows && !sum->audits) {
        verdict_allow(out, NET_ALLOW, sum->allows);
        out->line = sum->allow.line;
    } else if (sum->audits) {
        say(out, sum->audits, &sum->audit);
        out->kind = NET_ALLOW;
        out->flags |= NET_FLAG_AUDIT;
    } else {
        say(out, sum->silent, &sum->silence);
    }
}

/* Two that want different signatures are both not content with either. */
static void add_signing(const struct endpoint *endpoint, struct net_verdict *out)
{
    bool differs = out->signing && (out->signing != endpoint->signing ||
                                    strcmp(out->signing_scope, endpoint->signing_scope) != 0);

    if (!endpoint->signing)
        return;
    out->signing = endpoint->signing;
    (void)snprintf(out->signing_scope, sizeof out->signing_scope, "%s",
                   differs ? "?" : endpoint->signing_scope);
}

static void add_flags(const struct found *found, size_t top, struct net_verdict *out)
{
    for (size_t i = 0; i < top; i++) {
        const struct endpoint *endpoint = found->v[i];

        out->flags |= endpoint->body_rewrite ? NET_FLAG_BODY_REWRITE : 0;
        out->flags |= endpoint->ws_rewrite ? NET_FLAG_WS_REWRITE : 0;
        out->flags |= endpoint->ws_rewrite || endpoint->protocol == NET_PROTOCOL_WEBSOCKET
                          ? NET_FLAG_WS_MESSAGES
                          : 0;
        add_signing(endpoint, out);
        if (endpoint->response_max &&
            (!out->response_max || endpoint->response_max < out->response_max))
            out->response_max = endpoint->response_max;
    }
}

void judge_request(struct judged *judged, const struct net_rules *rules,
                   const struct net_knock *knock, struct net_verdict *out)
{
    struct sum sum = {0};
    struct found found;
    struct shown path;
    size_t top;

    if (!find_endpoints(rules, knock, &found, out) || !check_forms(judged, out))
        return;
    if (!select_by_path(judged, &found, &top)) {
        verdict_deny(out, NET_REASON_REQUEST, NULL,
                     "no endpoint for this host has a \"path\" that %s belongs to",
                     show(&path, judged->request->path));
        return;
    }
    for (size_t i = 0; i < found.n; i++) {
        struct opinion opinion = {0};

        judge_endpoint(found.v[i], judged, i >= top, &opinion);
        sum_add(&sum, found.v[i], &opinion, i < top);
    }
    if (judged->body && sum.needs_body) { /* cannot be: there is nothing more to wait for */
        verdict_deny(out, NET_REASON_BODY, sum.needs_body, "the body could not be judged");
        return;
    }
    sum_conclude(&sum, out);
    if (out->kind != NET_DENY)
        add_flags(&found, top, out);
    shapes_judge(judged, &found, top, out);
}

void net_rules_request(const struct net_rules *rules, const struct net_knock *knock,
                       const struct net_request *request, struct net_verdict *out)
{
    AUTO_ARENA struct arena mem = ARENA(JUDGE_MEMORY_MAX);
    struct judged judged = {.mem = &mem, .request = request};

    judge_request(&judged, rules, knock, out);
}

void net_rules_body(const struct net_rules *rules, const struct net_knock *knock,
                    const struct net_request *request, struct str body, struct net_verdict *out)
{
    AUTO_ARENA struct arena mem = ARENA(JUDGE_MEMORY_MAX);
    struct judged judged = {.mem = &mem, .request = request, .body = &body};

    if (body.n > NET_BODY_MAX) {
        verdict_deny(out, NET_REASON_BODY_LARGE, NULL, "the body is too large to be looked into");
        return;
    }
    judge_request(&judged, rules, knock, out);
}

void net_rules_body_too_large(const struct net_verdict *need, struct net_verdict *out)
{
    size_t max = need->body_max;
    struct net_verdict is = *need;

    verdict_deny(
        out, NET_REASON_BODY_LARGE, NULL,
        "a rule looks into the body, of which %zu bytes are read; raise \"max_body_bytes\" "
        "of this endpoint",
        max);
    out->entry = is.entry;
    out->line = is.line;
    out->endpoint = is.endpoint;
    out->protocol = is.protocol;
}

/* ---- answers ---- */

void net_rules_response(const struct net_rules *rules, const struct net_knock *knock,
                        const struct net_request *request, uint64_t length, struct str type,
                        struct net_verdict *out)
{
    struct judged judged = {.request = request};
    struct str rest = type.n ? type : STR_LIT(""), media = str_trim(str_cut(&rest, ';'));
    struct shown shown;
    struct found found;
    size_t top;

    if (!find_endpoints(rules, knock, &found, out))
        return;
    if (path_read(request->path, &judged.path) || !select_by_path(&judged, &found, &top)) {
        verdict_deny(out, NET_REASON_REQUEST, NULL, "no rule is about this request any more");
        return;
    }
    for (size_t i = 0; i < top; i++) {
        const struct endpoint *endpoint = found.v[i];

        if (endpoint->response_max && length != UINT64_MAX && length > endpoint->response_max) {
            verdict_deny(out, NET_REASON_RESPONSE_LARGE, endpoint,
                         "the answer has %llu bytes, and \"max_bytes\" of \"response\" is %llu",
                         (unsigned long long)length, (unsigned long long)endpoint->response_max);
            return;
        }
        if (endpoint->response_types.n && !matcher_has(&endpoint->response_types, media)) {
            verdict_deny(out, NET_REASON_RESPONSE_TYPE, endpoint,
                         "the answer is of type \"%s\", which \"types\" of \"response\" does not "
                         "list",
                         show(&shown, media));
            return;
        }
    }
    verdict_allow(out, NET_ALLOW, found.v[0]);
    add_flags(&found, top, out);
}
