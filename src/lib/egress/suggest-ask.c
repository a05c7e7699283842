/* SPDX-License-Identifier: Apache-2.0 */
/* What a suggestion comes to: the rules without it and with it, asked the same questions. */
#include "lib/egress/suggest.h"

static const char *const methods[] = {"GET", "HEAD",  "OPTIONS", "POST",
                                      "PUT", "PATCH", "DELETE",  "TRACE"};

/* A connection and requests on it, of the place's own program. */
struct question {
    struct net_caller caller;
    struct net_knock knock;
    struct net_request request;
};

static void question_init(struct question *q, const struct suggest_place *place)
{
    *q = (struct question){0};
    q->caller.flags = NET_CALLER_KNOWN | NET_CALLER_COMPLETE;
    q->caller.exe.path = place->binary;
    q->knock.host = place->host;
    q->knock.port = place->port;
    q->request.scheme = place->port == 80 ? STR_LIT("http") : STR_LIT("https");
    q->knock.caller = &q->caller;
}

static void ask_request(struct question *q, const struct net_rules *rules, struct str method,
                        struct str path, bool has_query, struct net_verdict *out)
{
    q->request.method = method;
    q->request.path = path;
    q->request.has_query = has_query;
    q->request.query = has_query ? STR_LIT("any=thing") : (struct str){"", 0};
    net_rules_connect(rules, &q->knock, out);
    if (out->kind == NET_INSPECT)
        net_rules_request(rules, &q->knock, &q->request, out);
}

static bool is_refused(const struct net_verdict *verdict)
{
    return verdict->kind == NET_DENY;
}

/* ---- whether it helps ---- */

bool suggest_holds(const struct suggest_place *place, const struct net_rules *before,
                   const struct net_rules *after, struct net_verdict *why)
{
    struct question q;
    struct net_verdict was;

    question_init(&q, place);
    net_rules_connect(before, &q.knock, &was);
    net_rules_connect(after, &q.knock, why);
    if (is_refused(why) || (was.kind == NET_TUNNEL && why->kind != NET_TUNNEL))
        return false;
    for (const struct suggest_rule *rule = place->rules; rule; rule = rule->next) {
        ask_request(&q, after, rule->method, rule->sample, false, why);
        if (is_refused(why))
            return false;
    }
    return true;
}

/* Requests that are allowed already go; a place without any left goes with them. */
static bool screen_place(struct suggest_place *place, const struct net_rules *before)
{
    struct suggest_rule **at = &place->rules;
    struct net_verdict verdict;
    struct question q;
    bool had_rules = place->rules != NULL;

    question_init(&q, place);
    while (*at) {
        ask_request(&q, before, (*at)->method, (*at)->sample, false, &verdict);
        if (is_refused(&verdict)) {
            at = &(*at)->next;
            continue;
        }
        *at = (*at)->next;
        place->rule_n--;
    }
    if (had_rules)
        return place->rules != NULL;
    net_rules_connect(before, &q.knock, &verdict);
    return is_refused(&verdict);
}

void suggest_screen(struct suggest *suggest, const struct net_rules *before)
{
    for (size_t i = 0; i < suggest->place_n; i++) {
        struct suggest_place *place = &suggest->places[i];

        place->taken = screen_place(place, before);
        place->warnings |= place->kind == SUGGEST_TUNNEL ? 1U << SUGGEST_WARN_AT_TUNNEL : 0;
        place->warnings |= place->kind == SUGGEST_LOOK ? 1U << SUGGEST_WARN_AT_LOOK : 0;
        if (!place->taken)
            suggest_leave(suggest, place,
                          "this policy allows it already; when it is refused all the same, the "
                          "sandbox can write the program, or its hash is another");
    }
}

/* ---- what it newly allows ---- */

struct comparing {
    const struct net_rules *before;
    const struct net_rules *after;
    void (*on_grant)(void *ctx, const struct suggest_grant *grant);
    void *ctx;
};

static void compare_request(const struct comparing *c, const struct suggest_place *place,
                            struct str method, struct str path, struct str sample, uint64_t asked)
{
    struct net_verdict was, is, with_query;
    struct suggest_grant grant = {place, method, path, false, false, asked, ""};
    struct question q;

    question_init(&q, place);
    ask_request(&q, c->before, method, sample, false, &was);
    ask_request(&q, c->after, method, sample, false, &is);
    if (!is_refused(&was) || is_refused(&is))
        return;
    ask_request(&q, c->after, method, sample, true, &with_query);
    grant.any_query = !is_refused(&with_query);
    grant.was = net_reason_code(was.reason);
    c->on_grant(c->ctx, &grant);
}

static uint64_t asked_for(const struct suggest_place *place, struct str method, struct str path)
{
    for (const struct suggest_rule *rule = place->rules; rule; rule = rule->next)
        if (str_eq(rule->method, method) && str_eq(rule->path, path))
            return rule->count;
    return 0;
}

static bool is_named(struct str method)
{
    for (size_t i = 0; i < COUNT(methods); i++)
        if (str_is(method, methods[i]))
            return true;
    return false;
}

/* Each path once, however many rules have it. */
static bool is_first_of_path(const struct suggest_place *place, const struct suggest_rule *rule)
{
    for (const struct suggest_rule *other = place->rules; other != rule; other = other->next)
        if (str_eq(other->path, rule->path))
            return false;
    return true;
}

static void compare_path(const struct comparing *c, const struct suggest_place *place,
                         struct str path, struct str sample)
{
    for (size_t i = 0; i < COUNT(methods); i++) {
        struct str method = str_of(methods[i]);

        compare_request(c, place, method, path, sample, asked_for(place, method, path));
    }
}

static void compare_place(const struct comparing *c, const struct suggest_place *place)
{
    struct net_verdict was, is;
    struct question q;

    question_init(&q, place);
    net_rules_connect(c->before, &q.knock, &was);
    net_rules_connect(c->after, &q.knock, &is);
    if (is_refused(&was) && !is_refused(&is)) {
        struct suggest_grant grant = {.place = place,
                                      .is_tunnel = is.kind == NET_TUNNEL,
                                      .asked = place->count,
                                      .was = net_reason_code(was.reason)};

        c->on_grant(c->ctx, &grant);
    }
    if (is.kind == NET_INSPECT && !place->rules)
        compare_path(c, place, STR_LIT("/"), STR_LIT("/"));
    for (const struct suggest_rule *rule = place->rules; rule; rule = rule->next) {
        if (is_first_of_path(place, rule))
            compare_path(c, place, rule->path, rule->sample);
        if (!is_named(rule->method))
            compare_request(c, place, rule->method, rule->path, rule->sample, rule->count);
    }
}

void suggest_compare(const struct suggest *suggest, const struct net_rules *before,
                     const struct net_rules *after,
                     void (*on_grant)(void *ctx, const struct suggest_grant *grant), void *ctx)
{
    struct comparing c = {before, after, on_grant, ctx};

    for (size_t i = 0; i < suggest->place_n; i++)
        if (suggest->places[i].taken)
            compare_place(&c, &suggest->places[i]);
}
