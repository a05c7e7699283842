/* SPDX-License-Identifier: Apache-2.0 */
/* GraphQL requests: every operation of a document, and every document of a batch, must be allowed.
 * A document that cannot be read is refused, whatever else would allow the request. */
#include "lib/egress/graphql.h"
#include "lib/egress/rules-judge.h"
#include "lib/http/http.h"

#include <string.h>

static bool type_matches(const struct rule *rule, struct str type)
{
    return rule->operation_type.n == 0 || str_is(rule->operation_type, "*") ||
           str_eq(rule->operation_type, type);
}

static bool name_matches(const struct rule *rule, struct str name)
{
    return !rule->operation_name || glob_match(rule->operation_name, name);
}

static bool fields_match(const struct rule *rule, const struct graphql_operation *operation,
                         bool every)
{
    bool any = false;

    if (rule->fields.n == 0)
        return true;
    for (size_t i = 0; i < operation->field_n; i++) {
        bool matches = matcher_has(&rule->fields, operation->fields[i]);

        if (every && !matches)
            return false;
        any = any || matches;
    }
    return any;
}

static bool preset_has(enum access access, struct str type)
{
    switch (access) {
    case ACCESS_RULES:
        return false;
    case ACCESS_READ_ONLY:
        return str_is(type, "query");
    case ACCESS_READ_WRITE:
        return str_is(type, "query") || str_is(type, "mutation");
    case ACCESS_FULL:
        return true;
    }
    return false;
}

/* True when it may be sent; else *out says why not. */
static bool judge_operation(const struct endpoint *endpoint,
                            const struct graphql_operation *operation, struct opinion *out)
{
    struct shown name, field;

    for (const struct rule *rule = endpoint->deny; rule; rule = rule->next)
        if (rule->has_graphql && type_matches(rule, operation->type) &&
            name_matches(rule, operation->name) && fields_match(rule, operation, false)) {
            opine(out, STANCE_DENIES, NET_REASON_DENY_RULE, rule->line,
                  "a deny rule forbids the %s \"%s\"",
                  operation->type.n == 8 ? "mutation" : "operation", show(&name, operation->name));
            return false;
        }
    if (preset_has(endpoint->access, operation->type)) {
        out->line = endpoint->line;
        return true;
    }
    for (const struct rule *rule = endpoint->allow; rule; rule = rule->next)
        if (rule->has_graphql && type_matches(rule, operation->type) &&
            name_matches(rule, operation->name) && fields_match(rule, operation, true)) {
            out->line = rule->line;
            return true;
        }
    opine(out, STANCE_DENIES, NET_REASON_BODY, endpoint->line,
          "no rule allows the " STR_FMT " \"%s\" with the field \"%s\"; add one with this "
          "\"operation_type\" and all of its \"fields\"",
          STR_ARG(operation->type), show(&name, operation->name),
          show(&field, operation->field_n ? operation->fields[0] : (struct str){"", 0}));
    return false;
}

/* ---- persisted queries ---- */

static struct str persisted_id(const struct json *payload)
{
    static const char *const members[] = {"/extensions/persistedQuery/sha256Hash", "/documentId",
                                          "/id", "/queryId"};

    for (size_t i = 0; i < COUNT(members); i++) {
        struct str id;

        if (json_is_text(json_at(payload, members[i]), &id))
            return id;
    }
    return (struct str){"", 0};
}

static bool judge_persisted(const struct endpoint *endpoint, const struct json *payload,
                            struct opinion *out)
{
    struct str id = persisted_id(payload);
    struct shown shown;

    for (const struct registered_query *q = endpoint->registered_only ? endpoint->queries : NULL; q;
         q = q->next)
        if (id.n && str_eq(q->id, id)) {
            struct graphql_operation operation = {q->operation_type, q->operation_name, q->fields,
                                                  q->field_n};

            return judge_operation(endpoint, &operation, out);
        }
    opine(
        out, STANCE_DENIES, NET_REASON_BODY, endpoint->line,
        "the persisted query \"%s\" is not in \"graphql_persisted_queries\"; register it, or send "
        "the query itself",
        show(&shown, id));
    return false;
}

/* ---- payloads ---- */

static bool malformed(const struct endpoint *endpoint, const char *why, struct opinion *out)
{
    opine(out, STANCE_DENIES, NET_REASON_BODY_FORM, endpoint->line,
          "the GraphQL request cannot be read: %s", why);
    out->is_hard = true;
    return false;
}

static bool judge_text(const struct endpoint *endpoint, struct arena *mem, struct str text,
                       struct opinion *out)
{
    struct graphql_document document;
    const char *fault = graphql_read(mem, text, &document);

    if (fault)
        return malformed(endpoint, fault, out);
    for (size_t i = 0; i < document.operation_n; i++)
        if (!judge_operation(endpoint, &document.operations[i], out))
            return false;
    return true;
}

static bool judge_one(const struct endpoint *endpoint, struct arena *mem,
                      const struct json *payload, struct opinion *out)
{
    const struct json *query = json_get(payload, "query");

    if (payload->kind != JSON_OBJECT)
        return malformed(endpoint, "it is no object", out);
    if (!query || query->kind == JSON_NULL)
        return judge_persisted(endpoint, payload, out);
    if (query->kind != JSON_STRING)
        return malformed(endpoint, "its query is no text", out);
    return judge_text(endpoint, mem, query->text, out);
}

void graphql_judge_payload(const struct endpoint *endpoint, struct arena *mem,
                           const struct json *payload, struct opinion *out)
{
    if (payload->kind != JSON_ARRAY) {
        if (judge_one(endpoint, mem, payload, out))
            out->stance = STANCE_ALLOWS;
        return;
    }
    if (payload->n == 0 || payload->n > GRAPHQL_OPERATIONS_MAX) {
        (void)malformed(endpoint, "a batch has 1 to 64 requests", out);
        return;
    }
    json_each(item, payload)
    {
        if (!judge_one(endpoint, mem, item, out))
            return;
    }
    out->stance = STANCE_ALLOWS;
}

/* GET /graphql?query=...: the same, in the query. A second "query" would be read by somebody. */
static void judge_get(const struct endpoint *endpoint, struct judged *judged, struct opinion *out)
{
    char *memory = arena_alloc(judged->mem, judged->request->query.n + 1);
    struct json *payload = json_object(judged->mem);
    struct str rest = judged->request->query;
    struct http_header pair;
    unsigned queries = 0;

    while (rest.n && http_query_next(&rest, memory, &pair) == 1) {
        struct str name = pair.name;

        if (!str_is(name, "query") && !str_is(name, "documentId") && !str_is(name, "id") &&
            !str_is(name, "queryId"))
            continue;
        json_put(payload, arena_text(judged->mem, name), json_text(judged->mem, pair.value));
        queries++;
        memory = arena_alloc(judged->mem, rest.n + 1);
    }
    if (queries != 1)
        (void)malformed(endpoint, "its URL has no query, or several", out);
    else if (judge_one(endpoint, judged->mem, payload, out))
        out->stance = STANCE_ALLOWS;
}

void graphql_judge(const struct endpoint *endpoint, struct judged *judged, struct opinion *out)
{
    struct str method = judged->request->method;

    if (judged->request->upgrade.n) {
        opine(
            out, STANCE_DENIES, NET_REASON_UPGRADE, endpoint->line,
            "this endpoint speaks GraphQL over HTTP; for WebSocket write \"protocol: websocket\"");
        return;
    }
    if (str_is(method, "GET")) {
        judge_get(endpoint, judged, out);
        return;
    }
    if (!str_is(method, "POST")) {
        opine(out, STANCE_SILENT, NET_REASON_REQUEST, endpoint->line,
              "GraphQL is spoken with POST and GET");
        return;
    }
    if (!judged->body) {
        out->stance = STANCE_NEEDS_BODY;
        return;
    }
    if (!document_of(judged))
        (void)malformed(endpoint, judged->fault, out);
    else
        graphql_judge_payload(endpoint, judged->mem, judged->document, out);
}
