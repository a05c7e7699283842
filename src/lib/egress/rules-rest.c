/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of plain HTTP: method, path, query, and members of a JSON body. */
#include "lib/egress/rules-judge.h"

#include <string.h>

static bool preset_has(enum access access, struct str method)
{
    static const char *const words[] = {"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH"};
    size_t n = access == ACCESS_READ_ONLY ? 3 : access == ACCESS_READ_WRITE ? 6 : 0;

    if (access == ACCESS_FULL)
        return true;
    for (size_t i = 0; i < n; i++)
        if (str_is(method, words[i]))
            return true;
    return false;
}

static struct str query_of(const struct net_request *request)
{
    return request->has_query ? request->query : (struct str){"", 0};
}

static bool head_allowed(const struct rule *rule, const struct judged *judged)
{
    const struct net_request *request = judged->request;

    return is_method(rule->method, request->method) &&
           (!rule->path ||
            glob_match(rule->path, (struct str){judged->path.normal, judged->path.n})) &&
           query_allows(rule, query_of(request));
}

/* A deny rule holds for every way a server may read the path. */
static bool head_denied(const struct rule *rule, const struct judged *judged)
{
    const struct judged_path *path = &judged->path;

    return is_method(rule->method, judged->request->method) &&
           (!rule->path || glob_match(rule->path, (struct str){path->normal, path->n}) ||
            glob_match(rule->path, (struct str){path->decoded, path->decoded_n})) &&
           query_denies(rule, query_of(judged->request));
}

static enum stance deny_stance(const struct endpoint *endpoint, struct judged *judged,
                               struct opinion *out)
{
    bool needs_body = false;

    for (const struct rule *rule = endpoint->deny; rule; rule = rule->next) {
        if (!head_denied(rule, judged))
            continue;
        if (rule->body && !judged->body) {
            needs_body = true;
            continue;
        }
        if (rule->body && document_of(judged) && !wants_deny(rule->body, judged->document))
            continue;
        if (rule->body && judged->state == DOCUMENT_BAD && judged->body->n)
            opine(out, STANCE_DENIES, NET_REASON_BODY_FORM, rule->line,
                  "a rule looks into the body of this request, and %s", judged->fault);
        else if (rule->body && judged->state == DOCUMENT_BAD)
            continue; /* nothing was sent: nothing forbidden in it */
        else
            opine(out, STANCE_DENIES, NET_REASON_DENY_RULE, rule->line,
                  "a deny rule forbids this request; deny rules hold whatever else is allowed");
        return STANCE_DENIES;
    }
    return needs_body ? STANCE_NEEDS_BODY : STANCE_SILENT;
}

static enum stance allow_stance(const struct endpoint *endpoint, struct judged *judged,
                                struct opinion *out)
{
    const struct rule *by_body = NULL;

    if (endpoint->access != ACCESS_RULES) {
        out->line = endpoint->line;
        return preset_has(endpoint->access, judged->request->method) ? STANCE_ALLOWS
                                                                     : STANCE_SILENT;
    }
    for (const struct rule *rule = endpoint->allow; rule; rule = rule->next) {
        if (!head_allowed(rule, judged))
            continue;
        if (rule->body && !judged->body) {
            by_body = rule;
            continue;
        }
        if (rule->body &&
            (!document_of(judged) || !wants_allow(rule->body, judged->document, rule->is_strict))) {
            by_body = rule;
            continue;
        }
        out->line = rule->line;
        return STANCE_ALLOWS;
    }
    if (by_body && !judged->body)
        return STANCE_NEEDS_BODY;
    if (by_body)
        opine(out, STANCE_SILENT,
              judged->state == DOCUMENT_BAD ? NET_REASON_BODY_FORM : NET_REASON_BODY, by_body->line,
              judged->state == DOCUMENT_BAD
                  ? "the rule looks into the body, and %s; send it as JSON"
                  : "the body says what the rule does not allow%s; compare it with \"body\"",
              judged->state == DOCUMENT_BAD ? judged->fault : "");
    return STANCE_SILENT;
}

/* An upgrade leaves HTTP, where nobody looks any more, so it needs a word of the rule. */
static bool upgrade_allowed(const struct endpoint *endpoint, const struct net_request *request,
                            struct opinion *out)
{
    if (request->upgrade.n == 0 || endpoint->ws_rewrite)
        return true;
    opine(out, STANCE_DENIES, NET_REASON_UPGRADE, endpoint->line,
          "this endpoint speaks plain HTTP; for WebSocket write \"protocol: websocket\"");
    return false;
}

void rest_judge(const struct endpoint *endpoint, struct judged *judged, bool denies_only,
                struct opinion *out)
{
    enum stance denies = deny_stance(endpoint, judged, out);

    if (denies == STANCE_DENIES)
        return;
    if (denies_only) {
        out->stance = denies;
        return;
    }
    if (!upgrade_allowed(endpoint, judged->request, out))
        return;
    out->stance = allow_stance(endpoint, judged, out);
    if (out->stance == STANCE_ALLOWS && denies == STANCE_NEEDS_BODY)
        out->stance = STANCE_NEEDS_BODY;
    if (out->stance == STANCE_SILENT && out->reason == NET_REASON_NONE) {
        struct shown method, path;

        opine(out, STANCE_SILENT, NET_REASON_REQUEST, endpoint->line,
              "no rule allows %s %s here; add one to \"rules\" of this endpoint",
              show(&method, judged->request->method), show(&path, judged->request->path));
    }
}
