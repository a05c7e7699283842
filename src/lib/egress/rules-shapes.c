/* SPDX-License-Identifier: Apache-2.0 */
/* Credentials that are on their way out: told by their shape, in the URL, the headers and, where an
 * endpoint denies them, the body. What is encoded, encrypted or cut into pieces has no shape. */
#include "lib/egress/rules-judge.h"
#include "lib/http/http.h"
#include "lib/shapes/shapes.h"

#include <string.h>

/* What a caller wrote for a secret: a placeholder stands for it, and is no secret itself. */
static bool is_placeholder(struct str text, const struct shape_hit *hit)
{
    static const char *const marks[] = {"${vault:", "openshell:resolve:", "OPENSHELL-RESOLVE-"};
    size_t from = hit->at > 16 ? hit->at - 16 : 0;
    size_t to = hit->at + hit->n < text.n ? hit->at + hit->n : text.n;

    for (size_t i = 0; i < COUNT(marks); i++)
        if (memmem(text.p + from, to - from, marks[i], strlen(marks[i])))
            return true;
    return false;
}

static bool has_shape(struct str text)
{
    struct shape_hit hit;

    for (size_t from = 0; from < text.n && shape_next(text, from, false, &hit);
         from = hit.at + hit.n)
        if (!is_placeholder(text, &hit))
            return true;
    return false;
}

/* Escapes hide shapes, so the decoded values are looked at, and the text as it stands. */
static bool query_has_shape(struct str query)
{
    char memory[JUDGED_QUERY_MAX];
    struct http_header pair;

    if (query.n > sizeof memory)
        return true; /* cannot be: its length was checked */
    if (has_shape(query))
        return true;
    while (query.n && http_query_next(&query, memory, &pair) == 1)
        if (has_shape(pair.name) || has_shape(pair.value))
            return true;
    return false;
}

static const char *find_shape(const struct judged *judged, bool in_body)
{
    const struct net_request *request = judged->request;

    if (has_shape((struct str){judged->path.decoded, judged->path.decoded_n}))
        return "path";
    if (request->has_query && query_has_shape(request->query))
        return "query";
    for (size_t i = 0; i < request->header_n; i++) {
        struct str name = request->headers[i].name, value = request->headers[i].value;

        if (has_shape(value))
            return "headers";
        /* "Bearer x" has a shape by itself; "Basic x" only behind its name. */
        if (http_name_is(name, "authorization") && value.n > 6 &&
            strncasecmp(value.p, "basic ", 6) == 0 && !memmem(value.p, value.n, "${vault:", 8))
            return "headers";
    }
    return in_body && judged->body && has_shape(*judged->body) ? "body" : NULL;
}

void shapes_judge(const struct judged *judged, const struct found *found, size_t top,
                  struct net_verdict *out)
{
    const struct endpoint *denies = NULL, *flags = NULL;
    const char *where;

    if (out->kind == NET_DENY)
        return;
    for (size_t i = 0; i < top; i++) {
        if (found->v[i]->shapes == SHAPES_DENY && !denies)
            denies = found->v[i];
        if (found->v[i]->shapes == SHAPES_FLAG && !flags)
            flags = found->v[i];
    }
    if (!denies && !flags)
        return;
    where = find_shape(judged, denies != NULL);
    if (where && denies) {
        verdict_deny(out, NET_REASON_SECRET_SHAPE, denies,
                     "the %s of this request holds what looks like a credential; bind it with "
                     "\"brig vault\" and send its placeholder, or set \"secret_shapes\" to flag",
                     where);
        return;
    }
    out->flags |= where ? NET_FLAG_SECRET_SHAPE : 0;
    /* To say that no secret is in the body it must be seen; what opens a WebSocket has none. */
    if (denies && !judged->body && out->kind == NET_ALLOW &&
        !(judged->request->upgrade.n && out->flags & NET_FLAG_WS_MESSAGES)) {
        out->kind = NET_NEED_BODY;
        out->body_max = denies->body_max;
    }
}

void shapes_judge_message(struct str message, const struct found *found, size_t top,
                          struct net_verdict *out)
{
    if (out->kind == NET_DENY)
        return;
    for (size_t i = 0; i < top; i++)
        if (found->v[i]->shapes == SHAPES_DENY && has_shape(message)) {
            verdict_deny(out, NET_REASON_SECRET_SHAPE, found->v[i],
                         "the message holds what looks like a credential; bind it with \"brig "
                         "vault\" and send its placeholder, or set \"secret_shapes\" to flag");
            return;
        }
}
