/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to surface/api: what there is to call. The dispatcher, the OpenAPI document, the
 * reference and the test that none is forgotten walk the same rows. */

#include "lib/access/access.h"
#include "lib/http/http.h"
#include "surface/api/fields.h"

struct call;
struct run;

#define ROUTE_PARAMS_MAX 4

/* Where a handler runs. */
enum route_kind {
    ROUTE_QUICK, /* on the loop: touches memory only */
    ROUTE_LOOK,  /* a thread for what takes moments */
    ROUTE_RUN,   /* a thread for what may take as long as a command */
    ROUTE_ASK,   /* with others of its tenant: see asks.h */
};

/* What a question needs once it was looked at. */
enum asked {
    ASKED_ELSEWHERE, /* a thread of its own: .handle, as if nobody had looked */
    ASKED_RECEIPT,   /* the receipt of call->question; then .conclude */
};

enum body_kind {
    BODY_NONE,
    BODY_JSON,   /* read whole, by .fields */
    BODY_STREAM, /* handed on as it comes */
    BODY_FILE,   /* taken to a file first: the handler begins when all of it is there */
    BODY_SOCKET, /* a WebSocket: .fields are its first message */
};

struct route {
    enum http_method method;
    const char *path; /* "/v1/sandboxes/{id}"; the last segment may be {name...} */
    enum route_kind kind;
    unsigned scope; /* one of enum scope; SCOPE_NONE: any token will do */
    bool open;      /* without a token: the health check */
    bool creates;   /* an Idempotency-Key counts */
    bool ranges;    /* a part of the answer can be asked for */
    bool passes;    /* any method, any query, any header: handed on as it is (call->passed) */
    bool preview;   /* let in by the grant that is its first parameter */
    enum body_kind body;
    uint64_t body_max; /* 0: BODY_JSON_MAX */
    const struct field *fields;
    size_t body_size;          /* of the struct the fields go to */
    const struct field *query; /* its members are read from the query; same struct rules */
    size_t query_size;
    const char *name; /* operationId: "createSandbox" */
    const char *summary;
    const char *answer;     /* what comes back, in a sentence */
    const char *refusal[2]; /* a header, name and value, that every refusal of it has; or NULL */
    /* 0: answered, or will be; -1: *err is the answer. body and query are the structs, or NULL. */
    int (*handle)(struct call *call, const void *body, const void *query, struct err *err);
    /* ROUTE_ASK, besides: judges without waiting for anybody and without an effect, into
     * call->question; and answers once that has its receipt, or has none because of *why. */
    enum asked (*judge)(struct call *call);
    int (*conclude)(struct call *call, const struct err *why, struct err *err);
};

#define ROUTE_TABLES_MAX 48
extern const struct route *route_tables[]; /* ends with NULL; each ends with handle NULL */

/* Adds the rows of another surface, before an API is opened. What they belong to is the owner of
 * every call to one of them. */
void routes_plug(const struct route *rows, void *owner);
void *route_owner(const struct route *route);

/* Every row. */
#define route_each(route)                                                                          \
    for (const struct route *const *table_ = route_tables; *table_; table_++)                      \
        for (const struct route *route = *table_; route->handle; route++)

/* The row for these segments, its parameters in params. NULL: *other says whether the path exists
 * with other methods. */
const struct route *route_find(enum http_method method, const struct str *segments, size_t n,
                               struct str params[ROUTE_PARAMS_MAX], bool *other);
const char *http_method_name(enum http_method method);
