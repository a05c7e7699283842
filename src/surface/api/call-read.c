/* SPDX-License-Identifier: Apache-2.0 */

/* What came in, as a call: the head of the request, its query, its body. In the loop's thread. */

#include "surface/api/api-private.h"

#include <string.h>

#include "lib/base/limits.h"
#include "lib/http/http-gzip.h"
#include "lib/http/http-ws.h"

#define KEY_BYTES_MAX 255

/* ---- the head ---- */

static int parse_query(struct call *call, const struct http_head *head, struct err *err)
{
    struct json *object = json_object(&call->mem);
    char *memory = arena_alloc(&call->mem, head->query.n + 1);
    struct str rest = head->query;
    struct http_header pair;
    void *query;
    int got;

    while ((got = http_query_next(&rest, memory, &pair)) == 1) {
        memory += pair.name.n + pair.value.n;
        if (json_get(object, arena_text(&call->mem, pair.name)))
            return err_set(err, ERR_INVALID, "the query names something twice");
        json_put(object, arena_text(&call->mem, pair.name),
                 fields_from_text(&call->mem, call->route->query, pair.name, pair.value));
    }
    if (got < 0)
        return err_set(err, ERR_INVALID, "the query has a malformed escape");
    if (!call->route->query)
        return object->n ? err_set(err, ERR_INVALID, "this route takes no query") : 0;
    query = arena_alloc(&call->mem, call->route->query_size);
    call->query = query;
    return fields_read(&call->mem, call->route->query, object, query, err);
}

static const char *copy_header(struct call *call, const struct http_head *head, const char *name,
                               const char *otherwise)
{
    struct str value = http_find(head, name);

    return value.p ? arena_text(&call->mem, value) : otherwise;
}

/* How the client calls us; a unix socket has no address. */
static const char *host_of(struct call *call, const struct http_head *head)
{
    struct http_exchange *x = http_exchange_find(call->api->server, call->exchange);
    struct http_peer peer = http_exchange_peer(x);

    return peer.is_unix || !head->host.n
               ? ""
               : arena_printf(&call->mem, "%s://" STR_FMT, peer.is_tls ? "https" : "http",
                              STR_ARG(head->host));
}

/* How many bytes of the path are the route's own segments. */
static size_t own_part(const struct route *route, struct str path)
{
    size_t own = 0, i = 0;

    for (const char *p = route->path; *p; p++)
        own += *p == '/';
    for (; i < path.n; i++)
        if (path.p[i] == '/' && --own == 0)
            break;
    return i;
}

static const struct passed *pass_head(struct call *call, const struct http_head *head)
{
    struct passed *passed = arena_new(&call->mem, struct passed);
    struct http_header *headers = arena_array(&call->mem, struct http_header, HTTP_HEADERS_MAX);
    size_t own = own_part(call->route, head->path);

    for (size_t i = 0; i < head->header_count; i++)
        headers[i] = (struct http_header){arena_str(&call->mem, head->headers[i].name),
                                          arena_str(&call->mem, head->headers[i].value)};
    *passed = (struct passed){
        .method = head->method,
        .method_text = arena_str(&call->mem, head->method_text),
        .path = arena_str(&call->mem, (struct str){head->path.p + own, head->path.n - own}),
        .prefix = arena_str(&call->mem, (struct str){head->path.p, own}),
        .query = arena_str(&call->mem, head->query),
        .headers = headers,
        .header_n = head->header_count,
        .framing = head->framing,
        .length = head->length,
        .is_socket =
            http_ws_asked(head) && head->method == HTTP_GET && head->framing == HTTP_NO_BODY,
    };
    return passed;
}

int call_fill(struct call *call, const struct route *route, const struct http_head *head,
              const struct str params[ROUTE_PARAMS_MAX], struct err *err)
{
    struct str encoding = http_find(head, "content-encoding");

    call->route = route;
    call_trace(call, head);
    call->query_text = arena_text(&call->mem, head->query);
    for (size_t i = 0; i < ROUTE_PARAMS_MAX; i++)
        call->params[i] = params[i].p ? arena_text(&call->mem, params[i]) : NULL;
    call->accept = copy_header(call, head, "accept", "");
    call->content_type = copy_header(call, head, "content-type", "");
    call->last_event = copy_header(call, head, "last-event-id", NULL);
    call->key = copy_header(call, head, "idempotency-key", NULL);
    if (call->key && (!*call->key || strlen(call->key) > KEY_BYTES_MAX))
        return err_set(err, ERR_INVALID, "an Idempotency-Key has 1 to %d characters",
                       KEY_BYTES_MAX);
    call->host = host_of(call, head);
    call->range = route->ranges ? copy_header(call, head, "range", "") : "";
    call->if_range = route->ranges ? copy_header(call, head, "if-range", "") : "";
    call->if_none_match = route->ranges ? copy_header(call, head, "if-none-match", "") : "";
    if (route->passes) {
        call->passed = pass_head(call, head);
        return tenants_get(call->api->tenants, call->caller.tenant, &call->tenant, err);
    }
    call->is_gzip = encoding.p && http_name_is(encoding, "gzip");
    if (encoding.n && !call->is_gzip && !http_name_is(encoding, "identity"))
        return err_set(err, ERR_INVALID, "a body is sent plain or as gzip");
    if (call->is_gzip && route->body >= BODY_STREAM)
        return err_set(err, ERR_INVALID, "a body that is handed on as it comes is sent plain");
    if (tenants_get(call->api->tenants, call->caller.tenant, &call->tenant, err) < 0)
        return -1;
    return parse_query(call, head, err);
}

/* ---- the body ---- */

int call_parse(struct call *call, struct err *err)
{
    const struct json *json = NULL;
    struct mark where = {0, 0};
    void *body;

    if (!call->route->fields)
        return 0;
    body = arena_alloc(&call->mem, call->route->body_size);
    call->body = body;
    if (call->incoming.n &&
        json_parse(&call->mem, buf_str(&call->incoming), &json, &where, err) < 0)
        return err_in(err, "line %u, column %u", where.line, where.column);
    return fields_read(&call->mem, call->route->fields, json, body, err);
}

int call_gunzip(struct call *call, struct err *err)
{
    AUTO(http_gunzip) struct http_gunzip *z = http_gunzip_new(API_BODY_MAX);
    struct str in = buf_str(&call->incoming), out;
    AUTO_BUF struct buf plain = BUF(API_BODY_MAX);
    enum http_fault fault = HTTP_NO_FAULT;

    while (in.n) {
        enum http_body_event event = http_gunzip_next(z, &in, &out, &fault);

        if (event == HTTP_BODY_REFUSED)
            return err_set(err, ERR_INVALID, "%s", http_fault_text(fault));
        if (event == HTTP_BODY_DATA && buf_add_str(&plain, out, err) < 0)
            return -1;
        if (event == HTTP_BODY_END || event == HTTP_BODY_MORE)
            break;
    }
    if (in.n || http_gunzip_end(z, &fault) < 0)
        return err_set(err, ERR_INVALID, "the body is not well-formed gzip");
    buf_done(&call->incoming);
    call->incoming = plain;
    plain = BUF(0);
    return 0;
}
