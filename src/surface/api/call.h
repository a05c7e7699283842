/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to surface/api: one request on its way through a handler.
 *
 * A call belongs to the loop's thread, but while a job of it is under way its handler may use it
 * from that job's thread. When the client leaves, the handler is told by an order (execute_obey)
 * and finds its descriptors closed at the other end; it ends in its own time. */

#include "flow/govern.h"
#include "lib/crypto/crypto.h"
#include "lib/http/http-server.h"
#include "lib/json/json.h"
#include "lib/otlp/otlp.h"
#include "surface/api/jobs.h"
#include "surface/api/route.h"
#include "surface/api/tenant.h"

#include <pthread.h>

struct api;

#define CALL_HEADERS_MAX (HTTP_HEADERS_MAX + 12)
#define CALL_TRAILERS_MAX 4

/* Who asks. */
struct caller {
    char tenant[TENANT_BYTES];
    char principal[PRINCIPAL_BYTES];
    char token[TOKEN_ID_BYTES];    /* "": a peer of the unix socket */
    char made_by[PRINCIPAL_BYTES]; /* who made the token; "": none, or nobody knows */
    unsigned scopes;
};

/* A request that is handed on: all of its head that somebody else could want to see. */
struct passed {
    enum http_method method;
    struct str method_text;
    struct str path;   /* what {path...} stands for, as it came, with the slash before it */
    struct str prefix; /* what stands before it */
    struct str query;
    const struct http_header *headers;
    size_t header_n;
    enum http_framing framing;
    uint64_t length;
    bool is_socket; /* asks for a WebSocket */
};

/* Orders that came while there was nobody to hear them: a request that waits has no descriptors of
 * its own but its connection, so that as many can wait as can be connected. */
#define CALL_EARLY_MAX 8
struct early_orders {
    pthread_mutex_t lock; /* the loop puts them here, the job that begins takes them */
    bool has_left;        /* the client, before the job began */
    unsigned n;
    struct {
        enum order_kind kind;
        unsigned value;
    } list[CALL_EARLY_MAX];
};

/* What is told of a request to those who watch: in the log, and to a collector. */
struct call_trace {
    struct trace_context own; /* trace_id "": nobody asked for one */
    char parent_id[SPAN_ID_TEXT_BYTES];
    struct run_note *runs; /* what it ran, the last first */
    unsigned run_n;
};

struct call {
    struct job job;
    struct api *api;
    const struct route *route;
    struct arena mem;
    uint64_t exchange; /* its id */
    struct caller caller;
    struct tenant *tenant;
    const char *params[ROUTE_PARAMS_MAX];
    const char *id;           /* of the request, in the log and in X-Request-Id */
    const char *accept;       /* Accept, or "" */
    const char *content_type; /* Content-Type, or "" */
    const char *last_event;   /* Last-Event-ID, or NULL */
    const char *key;          /* Idempotency-Key, or NULL */
    const char *range; /* Range, If-Range and If-None-Match of a route that looks at them; or "" */
    const char *if_range;
    const char *if_none_match;
    const void *body; /* the struct of the route's fields, or NULL */
    const void *query;
    const char *query_text;      /* as it came */
    const struct passed *passed; /* of a route that hands everything on */
    const char *host; /* "http://name:port" as the client calls us; "" on a unix socket */
    int orders[2];    /* what is to be read, and where call_order() writes; -1: it has not begun */
    struct early_orders early;
    int body_fd; /* BODY_STREAM: the handler reads the body here, to its end */
    int file_fd; /* BODY_FILE: all of it, in a file without a name */
    char file_hash[HASH_TEXT_BYTES];
    uint64_t began_us;
    struct call_trace trace;
    struct run *question;    /* ROUTE_ASK: what was judged; in mem */
    struct call *next_asked; /* of asks.c */

    /* the answer, made by the handler */
    int status;
    struct buf answer;
    const char *type;
    struct http_header *extra; /* besides those every answer has; at most CALL_HEADERS_MAX */
    size_t extra_n;
    struct http_header trailers[CALL_TRAILERS_MAX]; /* behind a RAW stream, once it is over */
    size_t trailer_n;
    enum reason reason;    /* of a failure, when its code does not say it */
    struct json *details;  /* of a failure, or NULL */
    bool is_replay;        /* it was given before, to the same request */
    int refusal;           /* the status of a failure, when its code does not say it; or 0 */
    bool failed;           /* a stream that has begun must not look complete */
    bool told;             /* that it failed was the stream's last event */
    bool is_cut;           /* what is left of the output is not waited for */
    struct stream *stream; /* answered in pieces; see stream.h */

    /* of the loop */
    bool is_gzip;
    struct buf incoming;   /* a JSON body, as it comes */
    struct inflow *inflow; /* BODY_STREAM */
    unsigned holders;      /* the exchange, a job under way */
    struct http_ws *ws;
    bool has_started;        /* BODY_SOCKET: the first message has come */
    struct call *next, **at; /* all there are */
};

/* For handlers. The governor is for this call alone until it ends. */
int call_govern(struct call *call, struct lent *out, struct err *err) MUST_CHECK;
/* The same under the rules the kept sandbox in params[0] (an id or a name) was made with; its id is
 * in *id, its config in *made. What does not exist and what another tenant has is one answer. */
int call_sandbox(struct call *call, struct lent *out, const char **id, const char **made,
                 struct err *err) MUST_CHECK;
/* Under the rules of whatever has this config. */
struct config;
int call_govern_as(struct call *call, const struct config *config, struct lent *out,
                   struct err *err) MUST_CHECK;
/* Under rules that somebody else chose. */
/* A policy that came through the API may not make the daemon call whomever it names: `external` is
 * for the standing policy, the ceiling and signed bundles. */
int call_check_policy(struct call *call, const char *text, struct err *err) MUST_CHECK;
int call_govern_by(struct call *call, const char *policy_text, const char *profile_text,
                   struct lent *out, struct err *err) MUST_CHECK;
void call_release(struct call *call, struct lent *lent);
/* A request of this caller, with what every request has. */
struct request call_request(struct call *call, enum action_kind kind);
/* Whether this principal has made the token that the caller came with, or one it was made with. */
int call_is_made_by(struct call *call, const char *principal, bool *out,
                    struct err *err) MUST_CHECK;
/* Notes what became of a run of this call; call_request() has it told. */
void call_note_run(void *call, const struct run *run);

/* BODY_FILE: a path to the body while the call lasts; and a failure's words without it, -1. */
const char *call_file_path(struct call *call);
int call_file_failed(struct call *call, struct err *err);
/* A file of ours as the answer, after which there is none any more. */
int call_send_file(struct call *call, const char *path, const char *type,
                   struct err *err) MUST_CHECK;

/* call-orders.c: tells the handler something, whether it has begun or not. In any thread. */
int call_order(struct call *call, enum order_kind kind, unsigned value, struct err *err) MUST_CHECK;
/* Nobody waits for its answer any more (ORDER_LEFT: the client's doing; ORDER_CANCEL: ours), which
 * is an order to end that always finds room. In the loop. */
void call_leave(struct call *call, enum order_kind kind);
/* The job begins: from here on orders come over call->orders, first those that came before. */
int call_begin(struct call *call, struct err *err) MUST_CHECK;
void call_orders_init(struct call *call);
void call_orders_done(struct call *call);

/* One more header of the answer, before a stream is opened; name is a literal, value is copied. The
 * same name again takes the place of the first. */
void call_header(struct call *call, const char *name, const char *value);
/* A field behind the answer, whose head names it in "trailer"; name is a literal, value is copied.
 */
void call_trailer(struct call *call, const char *name, const char *value);
/* The headers of the answer behind those in out, which has room for CALL_HEADERS_MAX + 1 more;
 * returns how many there are then. */
size_t call_headers(const struct call *call, bool refused, struct http_header *out, size_t n);

/* Answers with JSON. */
int call_answer(struct call *call, int status, const struct json *value,
                struct err *err) MUST_CHECK;
/* A run that has its receipts but was denied, or failed, as an error; 0: it was neither. */
int call_check_run(struct call *call, const struct run *run, struct err *err) MUST_CHECK;
/* The same, and the error's details have what can be told of it all the same. */
int call_check_result(struct call *call, const struct run *run, struct json *result,
                      struct err *err) MUST_CHECK;
/* With bytes as they are; they are copied. */
int call_answer_bytes(struct call *call, int status, const char *type, struct str bytes,
                      struct err *err) MUST_CHECK;
