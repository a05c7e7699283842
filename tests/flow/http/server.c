/* SPDX-License-Identifier: Apache-2.0 */

/* A server with one route for each thing that src/lib/http promises; tests/flow/http.bats drives
 * it, bench/http measures it. It ends with status 0 only after a graceful stop. */

#include <getopt.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "lib/base/limits.h"
#include "lib/base/memory.h"
#include "lib/http/http-gzip.h"
#include "lib/http/http-multipart.h"
#include "lib/http/http-server.h"
#include "lib/http/http-ws.h"

#define TEXT_MAX (1 * MIB)
#define GONE_KINDS 5

static const char *const gone_names[GONE_KINDS] = {"client", "done", "timeout", "stopped",
                                                   "aborted"};

struct app {
    uv_loop_t loop;
    struct http_server *server;
    uv_signal_t term;
    uint64_t gone[GONE_KINDS];
    uint64_t live;       /* exchanges that have begun and are not gone */
    uint64_t paused_id;  /* of /paused */
    uint64_t delivered;  /* bytes of its body */
    uint64_t held_id;    /* of /held */
    uint64_t stop_grace; /* ms */
};

struct route;

/* What an exchange carries along. */
struct job {
    const struct route *route;
    uint64_t bytes;
    uint64_t left;
    uint64_t max_waiting;
    struct http_gunzip *gunzip;
    struct http_multipart *multipart;
    struct buf text;
    struct http_ws *ws;
    bool failed;
};

struct route {
    const char *method;
    const char *path;
    void (*on_request)(struct app *app, struct http_exchange *x, const struct http_head *head);
    void (*on_body)(struct app *app, struct http_exchange *x, struct job *job, struct str bytes);
    void (*on_body_end)(struct app *app, struct http_exchange *x, struct job *job);
    void (*on_writable)(struct app *app, struct http_exchange *x, struct job *job);
};

static struct err err;

/* ---- answers ---- */

static void answer_text(struct http_exchange *x, int status, struct str body)
{
    static const struct http_header type = {
        {"Content-Type", 12},
        {"text/plain",   10}
    };

    if (http_answer(x, status, &type, 1, body, &err) < 0)
        (void)fprintf(stderr, "answer: %s\n", err.text);
}

static void answer_number(struct http_exchange *x, uint64_t n)
{
    char text[32];
    int length = snprintf(text, sizeof(text), "%llu\n", (unsigned long long)n);

    answer_text(x, 200, (struct str){text, (size_t)length});
}

static uint64_t query_number(const struct http_head *head, const char *name, uint64_t otherwise)
{
    char memory[HTTP_START_LINE_MAX];
    struct str rest = head->query;
    struct http_header pair;
    uint64_t n = 0;

    while (http_query_next(&rest, memory, &pair) == 1)
        if (str_is(pair.name, name) && str_u64(pair.value, &n))
            return n;
    return otherwise;
}

/* ---- small ones ---- */

/* The bench: as large as an answer of the API, and behind a token. */
static void get_hello(struct app *app, struct http_exchange *x, const struct http_head *head)
{
    static const struct http_header type = {
        {"Content-Type",     12},
        {"application/json", 16}
    };
    static const char body[] =
        "{\"id\":\"k3v9x0q2m4n6b8c1d5f7\",\"state\":\"running\",\"provider\":\"local\","
        "\"image\":\"host\",\"created_us\":1700000000000000,\"labels\":{\"session\":\"a\"}}\n";
    struct str token = http_find(head, "authorization");

    (void)app;
    if (!str_is(token, "Bearer brig_0123456789abcdef0123456789abcdef")) {
        answer_text(x, 401, STR_LIT("who are you?\n"));
        return;
    }
    if (http_answer(x, 200, &type, 1, STR_LIT(body), &err) < 0)
        abort();
}

static void get_plain(struct app *app, struct http_exchange *x, const struct http_head *head)
{
    (void)app;
    (void)head;
    answer_text(x, 200, STR_LIT("hello\n"));
}

static void get_head(struct app *app, struct http_exchange *x, const struct http_head *head)
{
    AUTO_BUF struct buf text = BUF(TEXT_MAX);
    struct http_peer peer = http_exchange_peer(x);
    char address[HTTP_ADDRESS_BYTES];

    (void)app;
    http_exchange_address(x, address);
    if (buf_addf(&text, &err,
                 "method=" STR_FMT " path=" STR_FMT " query=" STR_FMT " host=" STR_FMT
                 " unix=%d tls=%d uid=%d pid=%d peer=%s\n",
                 STR_ARG(head->method_text), STR_ARG(head->path), STR_ARG(head->query),
                 STR_ARG(head->host), peer.is_unix, peer.is_tls, (int)peer.uid, peer.pid,
                 address) < 0)
        abort();
    answer_text(x, 200, buf_str(&text));
}

static void get_stats(struct app *app, struct http_exchange *x, const struct http_head *head)
{
    AUTO_BUF struct buf text = BUF(TEXT_MAX);
    struct http_counts counts = http_server_counts(app->server);

    (void)head;
    for (int i = 0; i < GONE_KINDS; i++)
        if (buf_addf(&text, &err, "%s=%llu ", gone_names[i], (unsigned long long)app->gone[i]) < 0)
            abort();
    if (buf_addf(&text, &err,
                 "live=%llu connections=%u requests=%llu refused=%llu overflow=%llu timeouts=%llu "
                 "delivered=%llu\n",
                 (unsigned long long)app->live - 1, counts.connections,
                 (unsigned long long)counts.requests, (unsigned long long)counts.refused,
                 (unsigned long long)counts.overflow, (unsigned long long)counts.timeouts,
                 (unsigned long long)app->delivered) < 0)
        abort();
    answer_text(x, 200, buf_str(&text));
}

static void get_injection(struct app *app, struct http_exchange *x, const struct http_head *head)
{
    struct http_header bad = {STR_LIT("X-Echo"), STR_LIT("a\r\nSet-Cookie: b")};

    (void)app;
    (void)head;
    if (http_answer(x, 200, &bad, 1, STR_LIT("no\n"), &err) < 0)
        answer_text(x, 500, str_of(err.text));
}

static void get_status(struct app *app, struct http_exchange *x, const struct http_head *head)
{
    (void)app;
    answer_text(x, (int)query_number(head, "is", 204), STR_LIT("body\n"));
}

static void get_range(struct app *app, struct http_exchange *x, const struct http_head *head)
{
    static const char digits[] = "0123456789abcdefghij";
    char text[HTTP_CONTENT_RANGE_BYTES];
    struct http_range range = http_range_of(http_find(head, "range"), 20);
    struct http_header where = {STR_LIT("Content-Range"), http_content_range(&range, 20, text)};
    struct str body = {digits + range.first, range.length};
    int status = range.kind == HTTP_RANGE_PART ? 206 : 416;
    int code;

    (void)app;
    if (range.kind == HTTP_RANGE_WHOLE)
        code = http_answer(x, 200, NULL, 0, (struct str){digits, 20}, &err);
    else
        code = http_answer(x, status, &where, 1, body, &err);
    if (code < 0)
        abort();
}

static void get_nothing(struct app *app, struct http_exchange *x, const struct http_head *head)
{
    (void)app;
    (void)x;
    (void)head; /* no answer: the test looks at what on_gone says */
}

static void get_cut(struct app *app, struct http_exchange *x, const struct http_head *head)
{
    (void)app;
    if (http_begin(x, 200, NULL, 0, query_number(head, "length", HTTP_STREAM), &err) < 0)
        abort();
    (void)http_send(x, STR_LIT("half"));
    if (query_number(head, "end", 0) > 0)
        http_end(x); /* less than promised */
    else
        http_abort(x);
}

static void post_early(struct app *app, struct http_exchange *x, const struct http_head *head)
{
    (void)app;
    (void)head;
    answer_text(x, 403, STR_LIT("no\n"));
}

static void stop_server(struct app *app);

static void get_stop(struct app *app, struct http_exchange *x, const struct http_head *head)
{
    (void)head;
    answer_text(x, 200, STR_LIT("stopping\n"));
    stop_server(app);
}

/* ---- from another thread ---- */

struct errand {
    struct http_server *server;
    uint64_t id;
    unsigned wait_ms;
};

static void finish_errand(struct http_exchange *x, void *argument)
{
    free(argument);
    if (x != NULL)
        answer_text(x, 200, STR_LIT("from a thread\n"));
}

static void *run_errand(void *argument)
{
    struct errand *errand = argument;

    if (errand->wait_ms > 0)
        uv_sleep(errand->wait_ms);
    http_server_post(errand->server, errand->id, finish_errand, errand);
    return NULL;
}

static void answer_later(struct app *app, uint64_t id, unsigned wait_ms)
{
    struct errand *errand = xmalloc(sizeof(*errand));
    pthread_t thread;

    *errand = (struct errand){app->server, id, wait_ms};
    if (pthread_create(&thread, NULL, run_errand, errand) != 0 || pthread_detach(thread) != 0)
        abort();
}

static void get_later(struct app *app, struct http_exchange *x, const struct http_head *head)
{
    answer_later(app, http_exchange_id(x), (unsigned)query_number(head, "ms", 0));
}

/* Answered when the server stops. */
static void get_held(struct app *app, struct http_exchange *x, const struct http_head *head)
{
    (void)head;
    app->held_id = http_exchange_id(x);
}

/* ---- bodies ---- */

static void post_count(struct app *app, struct http_exchange *x, const struct http_head *head)
{
    (void)app;
    http_body_max(x, query_number(head, "max", GIB));
}

static void count_body(struct app *app, struct http_exchange *x, struct job *job, struct str bytes)
{
    (void)app;
    (void)x;
    job->bytes += bytes.n;
}

static void count_end(struct app *app, struct http_exchange *x, struct job *job)
{
    (void)app;
    answer_number(x, job->bytes);
}

static void post_default(struct app *app, struct http_exchange *x, const struct http_head *head)
{
    (void)app;
    (void)x;
    (void)head; /* the default ceiling */
}

/* Everything comes back; when the client does not take it, we do not read on. */
static void post_echo(struct app *app, struct http_exchange *x, const struct http_head *head)
{
    (void)app;
    (void)head;
    http_body_max(x, UINT64_MAX);
    if (http_begin(x, 200, NULL, 0, HTTP_STREAM, &err) < 0)
        abort();
}

static void echo_body(struct app *app, struct http_exchange *x, struct job *job, struct str bytes)
{
    (void)app;
    if (!http_send(x, bytes))
        http_pause(x);
    if (http_waiting(x) > job->max_waiting)
        job->max_waiting = http_waiting(x);
}

static void echo_writable(struct app *app, struct http_exchange *x, struct job *job)
{
    (void)app;
    (void)job;
    http_resume(x);
}

static void echo_end(struct app *app, struct http_exchange *x, struct job *job)
{
    (void)app;
    (void)job;
    http_end(x);
}

static void post_paused(struct app *app, struct http_exchange *x, const struct http_head *head)
{
    (void)head;
    http_body_max(x, GIB);
    http_pause(x);
    app->paused_id = http_exchange_id(x);
    app->delivered = 0;
}

static void paused_body(struct app *app, struct http_exchange *x, struct job *job, struct str bytes)
{
    count_body(app, x, job, bytes);
    app->delivered += bytes.n;
}

static void get_resume(struct app *app, struct http_exchange *x, const struct http_head *head)
{
    struct http_exchange *other = http_exchange_find(app->server, app->paused_id);

    (void)head;
    answer_text(x, other ? 200 : 404, STR_LIT("\n"));
    if (other != NULL)
        http_resume(other);
}

static void post_gzip(struct app *app, struct http_exchange *x, const struct http_head *head)
{
    struct job *job = http_exchange_get(x);

    (void)app;
    if (!http_name_is(http_find(head, "content-encoding"), "gzip")) {
        http_refuse(x, HTTP_FAULT_ENCODING);
        return;
    }
    http_body_max(x, 64 * MIB);
    job->gunzip = http_gunzip_new(query_number(head, "max", 64 * MIB));
}

static void gzip_body(struct app *app, struct http_exchange *x, struct job *job, struct str bytes)
{
    enum http_fault fault = HTTP_NO_FAULT;
    enum http_body_event event = HTTP_BODY_MORE;
    struct str piece;

    (void)app;
    while (bytes.n > 0 || event == HTTP_BODY_DATA) {
        event = http_gunzip_next(job->gunzip, &bytes, &piece, &fault);
        if (event == HTTP_BODY_REFUSED) {
            http_refuse(x, fault);
            return;
        }
        job->bytes += event == HTTP_BODY_DATA ? piece.n : 0;
    }
}

static void gzip_end(struct app *app, struct http_exchange *x, struct job *job)
{
    enum http_fault fault = HTTP_NO_FAULT;

    (void)app;
    if (http_gunzip_end(job->gunzip, &fault) < 0)
        http_refuse(x, fault);
    else
        answer_number(x, job->bytes);
}

static void post_form(struct app *app, struct http_exchange *x, const struct http_head *head)
{
    struct job *job = http_exchange_get(x);

    (void)app;
    http_body_max(x, GIB);
    job->multipart = xmalloc(sizeof(*job->multipart));
    if (http_multipart_init(job->multipart, http_find(head, "content-type")) < 0)
        http_refuse(x, HTTP_FAULT_MULTIPART);
}

static void note_part(struct job *job, enum http_multipart_event event,
                      const struct http_part *part, struct str data)
{
    if (event == HTTP_MULTIPART_PART &&
        buf_addf(&job->text, &err, "name=" STR_FMT " file=" STR_FMT " type=" STR_FMT,
                 STR_ARG(part->name), STR_ARG(part->filename), STR_ARG(part->type)) < 0)
        abort();
    if (event == HTTP_MULTIPART_PART)
        job->bytes = 0;
    if (event == HTTP_MULTIPART_DATA)
        job->bytes += data.n;
    if (event == HTTP_MULTIPART_PART_END &&
        buf_addf(&job->text, &err, " bytes=%llu\n", (unsigned long long)job->bytes) < 0)
        abort();
}

static void form_body(struct app *app, struct http_exchange *x, struct job *job, struct str bytes)
{
    enum http_multipart_event event;
    struct http_part part;
    struct str data = {NULL, 0};

    (void)app;
    while ((event = http_multipart_next(job->multipart, &bytes, &part, &data)) !=
           HTTP_MULTIPART_MORE) {
        if (event == HTTP_MULTIPART_REFUSED) {
            http_refuse(x, job->multipart->fault);
            return;
        }
        note_part(job, event, &part, data);
    }
}

static void form_end(struct app *app, struct http_exchange *x, struct job *job)
{
    (void)app;
    if (http_multipart_close(job->multipart) < 0)
        http_refuse(x, job->multipart->fault);
    else
        answer_text(x, 200, buf_str(&job->text));
}

/* ---- streams ---- */

static void stream_more(struct app *app, struct http_exchange *x, struct job *job)
{
    static char block[64 * KIB];
    bool go_on = true;

    (void)app;
    while (go_on && job->left > 0) {
        size_t n = job->left < sizeof(block) ? (size_t)job->left : sizeof(block);

        job->left -= n;
        go_on = http_send(x, (struct str){block, n});
    }
    if (job->left == 0)
        http_end(x);
}

static void get_stream(struct app *app, struct http_exchange *x, const struct http_head *head)
{
    struct job *job = http_exchange_get(x);

    job->left = query_number(head, "bytes", MIB);
    if (http_begin(x, 200, NULL, 0, query_number(head, "length", 0) > 0 ? job->left : HTTP_STREAM,
                   &err) < 0)
        abort();
    stream_more(app, x, job);
}

/* Does not wait, which it should. */
static void get_flood(struct app *app, struct http_exchange *x, const struct http_head *head)
{
    static char block[64 * KIB];

    (void)app;
    if (http_begin(x, 200, NULL, 0, HTTP_STREAM, &err) < 0)
        abort();
    for (uint64_t left = query_number(head, "bytes", 64 * MIB); left >= sizeof(block);
         left -= sizeof(block))
        (void)http_send(x, (struct str){block, sizeof(block)});
    http_end(x);
}

static void get_events(struct app *app, struct http_exchange *x, const struct http_head *head)
{
    struct http_header type = {STR_LIT("Content-Type"), STR_LIT(HTTP_SSE_TYPE)};
    uint64_t from = 0;
    bool go_on = true;

    (void)app;
    (void)str_u64(http_find(head, "last-event-id"), &from); /* none: from the start */
    if (http_begin(x, 200, &type, 1, HTTP_STREAM, &err) < 0)
        abort();
    for (uint64_t i = from + 1; i <= query_number(head, "n", 3); i++) {
        char id[24];

        (void)snprintf(id, sizeof(id), "%llu", (unsigned long long)i);
        if (http_send_event(x, STR_LIT("line"), str_of(id), STR_LIT("one\ntwo"), &go_on, &err) < 0)
            abort();
    }
    if (query_number(head, "stay", 0) == 0)
        http_end(x);
}

/* ---- WebSocket: echoes; some texts are orders ---- */

static void on_ws_message(void *owner, struct http_ws *ws, bool is_text, struct str bytes)
{
    (void)owner;
    if (is_text && str_is(bytes, "close please")) {
        http_ws_close(ws, 4001, STR_LIT("as you wish"));
        return;
    }
    if (is_text && str_is(bytes, "close twice")) {
        http_ws_close(ws, 1000, STR_LIT(""));
        http_ws_close(ws, 4001, STR_LIT("again"));
        (void)http_ws_send(ws, true, STR_LIT("too late"));
        return;
    }
    if (!http_ws_send(ws, is_text, bytes))
        http_pause(http_ws_exchange(ws));
}

static void on_ws_close(void *owner, struct http_ws *ws, unsigned code)
{
    (void)owner;
    (void)ws;
    (void)printf("ws close %u\n", code);
}

static void ws_writable(struct app *app, struct http_exchange *x, struct job *job)
{
    (void)app;
    (void)job;
    http_resume(x);
}

static void get_ws(struct app *app, struct http_exchange *x, const struct http_head *head)
{
    static const struct http_ws_handler handler = {on_ws_message, on_ws_close};
    struct job *job = http_exchange_get(x);
    bool offered = http_list_has(http_find(head, "sec-websocket-protocol"), "echo");
    enum http_fault fault;

    if (http_ws_accept(x, &handler, app, offered ? STR_LIT("echo") : (struct str){"", 0},
                       query_number(head, "max", 0), &job->ws, &fault) < 0)
        http_refuse(x, fault);
}

/* ---- routes ---- */

static const struct route routes[] = {
    {"GET",  "/hello",     get_hello,     NULL,        NULL,      NULL         },
    {"GET",  "/",          get_plain,     NULL,        NULL,      NULL         },
    {"HEAD", "/",          get_plain,     NULL,        NULL,      NULL         },
    {"GET",  "/head",      get_head,      NULL,        NULL,      NULL         },
    {"GET",  "/stats",     get_stats,     NULL,        NULL,      NULL         },
    {"GET",  "/injection", get_injection, NULL,        NULL,      NULL         },
    {"GET",  "/status",    get_status,    NULL,        NULL,      NULL         },
    {"GET",  "/range",     get_range,     NULL,        NULL,      NULL         },
    {"GET",  "/nothing",   get_nothing,   NULL,        NULL,      NULL         },
    {"GET",  "/cut",       get_cut,       NULL,        NULL,      NULL         },
    {"GET",  "/stop",      get_stop,      NULL,        NULL,      NULL         },
    {"GET",  "/later",     get_later,     NULL,        NULL,      NULL         },
    {"GET",  "/held",      get_held,      NULL,        NULL,      NULL         },
    {"GET",  "/resume",    get_resume,    NULL,        NULL,      NULL         },
    {"GET",  "/stream",    get_stream,    NULL,        NULL,      stream_more  },
    {"HEAD", "/stream",    get_stream,    NULL,        NULL,      stream_more  },
    {"GET",  "/flood",     get_flood,     NULL,        NULL,      NULL         },
    {"GET",  "/events",    get_events,    NULL,        NULL,      NULL         },
    {"GET",  "/ws",        get_ws,        NULL,        NULL,      ws_writable  },
    {"POST", "/early",     post_early,    NULL,        NULL,      NULL         },
    {"POST", "/nothing",   get_nothing,   NULL,        NULL,      NULL         },
    {"POST", "/count",     post_count,    count_body,  count_end, NULL         },
    {"PUT",  "/count",     post_count,    count_body,  count_end, NULL         },
    {"POST", "/default",   post_default,  count_body,  count_end, NULL         },
    {"POST", "/echo",      post_echo,     echo_body,   echo_end,  echo_writable},
    {"POST", "/paused",    post_paused,   paused_body, count_end, NULL         },
    {"POST", "/gzip",      post_gzip,     gzip_body,   gzip_end,  NULL         },
    {"POST", "/form",      post_form,     form_body,   form_end,  NULL         },
};

static const struct route *route_of(const struct http_head *head)
{
    for (size_t i = 0; i < COUNT(routes); i++)
        if (str_is(head->method_text, routes[i].method) && str_is(head->path, routes[i].path))
            return &routes[i];
    return NULL;
}

static void on_request(void *owner, struct http_exchange *x, const struct http_head *head)
{
    struct app *app = owner;
    const struct route *route = route_of(head);
    struct job *job;

    app->live++;
    if (route == NULL) {
        answer_text(x, 404, STR_LIT("nothing here\n"));
        return;
    }
    if (route->on_body != NULL || route->on_writable != NULL) {
        job = xcalloc(1, sizeof(*job));
        job->route = route;
        job->text = BUF(TEXT_MAX);
        http_exchange_set(x, job);
    }
    route->on_request(app, x, head);
}

static void on_body(void *owner, struct http_exchange *x, struct str bytes)
{
    struct job *job = http_exchange_get(x);

    if (job != NULL && job->route->on_body != NULL)
        job->route->on_body(owner, x, job, bytes);
}

static void on_body_end(void *owner, struct http_exchange *x)
{
    struct job *job = http_exchange_get(x);

    if (job != NULL && job->route->on_body_end != NULL)
        job->route->on_body_end(owner, x, job);
}

static void on_writable(void *owner, struct http_exchange *x)
{
    struct job *job = http_exchange_get(x);

    if (job != NULL && job->route->on_writable != NULL)
        job->route->on_writable(owner, x, job);
}

static void on_gone(void *owner, struct http_exchange *x, enum http_gone why)
{
    struct app *app = owner;
    struct job *job = http_exchange_get(x);

    app->gone[why]++;
    app->live--;
    if (job == NULL)
        return;
    http_gunzip_free(job->gunzip);
    free(job->multipart);
    buf_done(&job->text);
    free(job);
}

static const struct http_handler handler = {on_request, on_body, on_body_end, on_writable,
                                            on_gone,    NULL,    NULL};

/* ---- the program ---- */

static void on_stopped(void *owner)
{
    struct app *app = owner;

    if (!uv_is_closing((uv_handle_t *)&app->term))
        uv_close((uv_handle_t *)&app->term, NULL);
}

static void stop_server(struct app *app)
{
    http_server_stop(app->server, (unsigned)app->stop_grace, on_stopped);
    if (app->held_id != 0)
        answer_later(app, app->held_id, 0);
    app->held_id = 0;
}

static void on_term(uv_signal_t *term, int number)
{
    (void)number;
    stop_server(term->data);
}

struct options {
    const char *listen[4];
    size_t listen_count;
    const char *unix_path;
    const char *certificate;
    const char *key;
    int fd;
    struct http_limits limits;
    unsigned grace_ms;
};

static void take_option(struct options *o, const char *name, const char *value)
{
    unsigned n = (unsigned)strtoul(value, NULL, 10);

    if (strcmp(name, "listen") == 0 && o->listen_count < COUNT(o->listen))
        o->listen[o->listen_count++] = value;
    else if (strcmp(name, "unix") == 0)
        o->unix_path = value;
    else if (strcmp(name, "certificate") == 0)
        o->certificate = value;
    else if (strcmp(name, "key") == 0)
        o->key = value;
    else if (strcmp(name, "fd") == 0)
        o->fd = (int)n;
    else if (strcmp(name, "connections") == 0)
        o->limits.connections_max = n;
    else if (strcmp(name, "head-ms") == 0)
        o->limits.head_ms = n;
    else if (strcmp(name, "body-ms") == 0)
        o->limits.body_ms = n;
    else if (strcmp(name, "idle-ms") == 0)
        o->limits.idle_ms = n;
    else if (strcmp(name, "write-ms") == 0)
        o->limits.write_ms = n;
    else if (strcmp(name, "linger-ms") == 0)
        o->limits.linger_ms = n;
    else if (strcmp(name, "ping-ms") == 0)
        o->limits.ws_ping_ms = o->limits.ws_close_ms = n;
    else if (strcmp(name, "grace-ms") == 0)
        o->grace_ms = n;
}

static struct options read_options(int argc, char **argv)
{
    static const char *const names[] = {
        "listen",  "unix",        "certificate", "key",       "fd",       "head-ms", "body-ms",
        "idle-ms", "connections", "write-ms",    "linger-ms", "grace-ms", "ping-ms"};
    struct option table[COUNT(names) + 1] = {0};
    struct options o = {.fd = -1, .grace_ms = 5000};
    int index = 0;

    for (size_t i = 0; i < COUNT(names); i++)
        table[i] = (struct option){names[i], required_argument, NULL, 1};
    while (getopt_long(argc, argv, "", table, &index) == 1)
        take_option(&o, names[index], optarg);
    return o;
}

static int listen_everywhere(struct app *app, const struct options *o, struct ssl_ctx_st *tls)
{
    unsigned port = 0;

    for (size_t i = 0; i < o->listen_count; i++) {
        if (http_server_listen(app->server, o->listen[i], tls, &port, &err) < 0)
            return -1;
        (void)printf("port %u\n", port);
    }
    if (o->unix_path != NULL && http_server_listen_unix(app->server, o->unix_path, 0600, &err) < 0)
        return -1;
    if (o->fd >= 0 && http_server_listen_fd(app->server, o->fd, tls, &err) < 0)
        return -1;
    (void)printf("ready\n");
    return 0;
}

static int fail(void)
{
    (void)fprintf(stderr, "%s\n", err.text);
    return 1;
}

int main(int argc, char **argv)
{
    struct options o = read_options(argc, argv);
    struct ssl_ctx_st *tls = NULL;
    struct app app = {.stop_grace = o.grace_ms};
    int status = 0;

    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    (void)mallopt(M_MMAP_THRESHOLD, HTTP_INPUT_BYTES); /* as in the daemon */
    (void)signal(SIGPIPE, SIG_IGN);
    if (o.certificate != NULL && http_tls_new(o.certificate, o.key, &tls, &err) < 0)
        return fail();
    if (uv_loop_init(&app.loop) < 0 || uv_signal_init(&app.loop, &app.term) < 0)
        abort();
    app.term.data = &app;
    (void)uv_signal_start(&app.term, on_term, SIGTERM);
    app.server = http_server_new(&app.loop, &handler, &app, &o.limits);
    if (listen_everywhere(&app, &o, tls) < 0) {
        status = fail();
        stop_server(&app);
    }
    (void)uv_run(&app.loop, UV_RUN_DEFAULT);
    http_server_free(app.server);
    http_tls_free(tls);
    if (app.live != 0) {
        (void)fprintf(stderr, "%llu exchanges never heard on_gone\n", (unsigned long long)app.live);
        status = 1;
    }
    if (uv_loop_close(&app.loop) < 0) {
        (void)fprintf(stderr, "handles are left on the loop\n");
        status = 1;
    }
    return status;
}
