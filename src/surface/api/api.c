/* SPDX-License-Identifier: Apache-2.0 */

/* From a request to its handler and back. Everything here runs on the loop's thread, but for
 * run_job(). */

#include "surface/api/api-private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <uv.h>

#include "lib/base/clock.h"
#include "lib/base/limits.h"
#include "lib/crypto/crypto.h"
#include "surface/api/socket.h"
#include "surface/api/stream.h"
#include "surface/api/telemetry.h"
#include "surface/view/view.h"

#define SETTLE_MS 10000 /* between two times that last uses of tokens are written down */
#define DESCRIPTORS_APART 1024

struct uv_loop_s *api_loop(struct api *api)
{
    return api->loop;
}

struct http_server *api_server(struct api *api)
{
    return api->server;
}

/* ---- calls ---- */

static const char *who(const struct caller *caller)
{
    return *caller->token ? caller->token : caller->principal;
}

static struct call *call_new(struct api *api, struct http_exchange *x, const struct caller *caller)
{
    struct call *call = xcalloc(1, sizeof *call);
    char id[ID_BYTES];

    call->api = api;
    call->mem = ARENA(API_CALL_MEMORY_MAX);
    call->exchange = http_exchange_id(x);
    call->caller = *caller;
    call->body_fd = call->file_fd = -1;
    call_orders_init(call);
    call->answer = BUF(API_ANSWER_MAX);
    call->incoming = BUF(API_BODY_MAX);
    call->began_us = clock_us();
    call->holders = 1;
    id_new(id);
    call->id = arena_text(&call->mem, str_of(id));
    call->next = api->calls;
    call->at = &api->calls;
    if (call->next)
        call->next->at = &call->next;
    api->calls = call;
    api->call_n++;
    http_exchange_set(x, call);
    return call;
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}

void api_check_stopped(struct api *api)
{
    void (*on_stopped)(void *context) = api->on_stopped;

    if (!api->is_deaf || api->call_n > 0 || reaper_is_busy(api->reaper) || !on_stopped)
        return;
    api->on_stopped = NULL;
    telemetry_end(api->telemetry, on_stopped, api->stop_context);
}

void call_drop(struct call *call)
{
    struct api *api = call->api;

    if (--call->holders > 0)
        return;
    meter_leave(call->api, who(&call->caller));
    *call->at = call->next;
    if (call->next)
        call->next->at = call->at;
    call->api->call_n--;
    call_orders_done(call);
    close_fd(&call->body_fd);
    close_fd(&call->file_fd);
    stream_free(call->stream);
    inflow_free(call->inflow);
    buf_done(&call->answer);
    buf_done(&call->incoming);
    arena_done(&call->mem);
    free(call);
    api_check_stopped(api);
}

/* ---- answers ---- */

static void log_call(struct call *call, int status)
{
    uint64_t took_us = clock_us() - call->began_us;

    counts_add(call->api->counts, call->route, status, took_us);
    if (call->route->kind != ROUTE_QUICK || status >= 400)
        call_tell(call, status, took_us); /* probes and scrapes would drown the rest */
}

void call_fail(struct call *call, const struct err *err)
{
    struct err ignored;

    call->failed = true;
    call->status = call->refusal ? call->refusal : err_http(err->code);
    call->type = "application/json";
    buf_clear(&call->answer);
    if (json_compact(view_error(&call->mem, err,
                                call->reason ? call->reason : view_reason(err->code),
                                call->details),
                     &call->answer, &ignored) < 0)
        buf_clear(&call->answer);
}

void call_put(struct call *call, struct http_exchange *x)
{
    struct http_header headers[4 + CALL_HEADERS_MAX + 1] = {
        {STR_LIT("content-type"),        str_of(call->type ? call->type : "application/json")},
        {STR_LIT("x-request-id"),        str_of(call->id)                                    },
        {STR_LIT("cache-control"),       STR_LIT("no-store")                                 },
        {STR_LIT("idempotent-replayed"), STR_LIT("true")                                     },
    };
    size_t n = call_headers(call, call->status >= 400, headers, call->is_replay ? 4 : 3);
    struct err err;

    if (http_answer(x, call->status, headers, n, buf_str(&call->answer), &err) < 0)
        http_abort(x);
}

void call_deliver(struct call *call, struct http_exchange *x)
{
    log_call(call, call->status);
    call_put(call, x);
}

/* An answer before there is a call: nobody, or nowhere. */
static void refuse(struct api *api, struct http_exchange *x, const struct route *route, int status,
                   const struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(64 * KIB);
    AUTO_BUF struct buf text = BUF(64 * KIB);
    struct json *answer = view_error(&mem, err, view_reason(err->code), NULL);
    struct json *error = answer->first;
    struct http_header headers[3] = {
        {STR_LIT("content-type"), STR_LIT("application/json")},
    };
    struct err ignored;
    size_t n = 1;

    if (status == 401) {
        json_put_text(&mem, error, "reason_code", "UNAUTHENTICATED");
        headers[n++] = (struct http_header){STR_LIT("www-authenticate"), STR_LIT("Bearer")};
    }
    if (route && route->refusal[0])
        headers[n++] = (struct http_header){str_of(route->refusal[0]), str_of(route->refusal[1])};
    counts_add(api->counts, route, status, 0);
    if (json_compact(answer, &text, &ignored) < 0 ||
        http_answer(x, status, headers, n, buf_str(&text), &ignored) < 0)
        http_abort(x);
}

/* ---- handlers ---- */

static int handle(struct call *call)
{
    struct err err;

    if (call->route->handle(call, call->body, call->query, &err) < 0) {
        call_fail(call, &err);
        return -1;
    }
    return 0;
}

/* The same path and body under the same key is the same request. */
static const char *hash_of_call(struct call *call)
{
    struct hasher hasher;
    struct hash hash;
    char *text = arena_alloc(&call->mem, HASH_TEXT_BYTES);

    hasher_init(&hasher);
    hasher_add(&hasher, call->route->name, strlen(call->route->name) + 1);
    for (size_t i = 0; i < ROUTE_PARAMS_MAX && call->params[i]; i++)
        hasher_add(&hasher, call->params[i], strlen(call->params[i]) + 1);
    if (*call->query_text)
        hasher_add(&hasher, call->query_text, strlen(call->query_text) + 1);
    hasher_add(&hasher, call->incoming.p, call->incoming.n);
    if (call->file_fd >= 0)
        hasher_add(&hasher, call->file_hash, strlen(call->file_hash));
    hasher_end(&hasher, &hash);
    hash_text(&hash, text);
    return text;
}

/* Whether nothing can have happened: then the same key may be tried again. */
static bool was_turned_away(const struct call *call)
{
    return call->failed && (call->status == 400 || call->status == 429 || call->status == 503 ||
                            call->status == 507);
}

/* A request that was made before is answered as it was then. */
static void handle_once(struct call *call)
{
    const struct keyed request = {call->caller.tenant, call->key, hash_of_call(call)};
    struct err err;
    int known = keys_begin(call->api->keys, &request, &call->status, &call->answer, &err);

    call->type = "application/json";
    if (known == 1) {
        call->is_replay = true;
        return;
    }
    if (known < 0) {
        call_fail(call, &err);
        return;
    }
    (void)handle(call);
    /* An answer that cannot be kept leaves the key taken: better asked about than done twice. */
    if (keys_end(call->api->keys, &request, was_turned_away(call) ? 0 : call->status,
                 buf_str(&call->answer), &err) < 0)
        (void)fprintf(stderr, "{\"level\":\"error\",\"event\":\"keys\",\"request_id\":\"%s\"}\n",
                      call->id);
}

void call_finish(struct http_exchange *x, void *argument)
{
    struct call *call = argument;

    if (call->inflow)
        inflow_finish(call);
    if (call->stream) {
        log_call(call, call->failed ? call->status : 200);
        stream_finish(call, x);
    } else if (call->route->body == BODY_SOCKET) {
        log_call(call, call->status);
        socket_finish(call);
    } else if (x) {
        call_deliver(call, x);
    } else {
        log_call(call, 499); /* as others call it: the client left first */
    }
    call_drop(call);
}

static void run_job(struct job *job)
{
    struct call *call = (struct call *)job;
    struct err err;

    if (call_begin(call, &err) < 0 || (call->inflow && inflow_begin(call, &err) < 0) ||
        (call->route->body == BODY_FILE && body_to_file(call, &err) < 0))
        call_fail(call, &err);
    else if (call->key && call->route->creates)
        handle_once(call);
    else
        (void)handle(call);
    close_fd(&call->body_fd); /* whatever is left of the body is not wanted */
    posts_add(call->api->posts, call->exchange, call_finish, call);
}

/* Nothing of it has happened; whoever asked may ask another daemon. */
static void drop_job(struct job *job)
{
    struct call *call = (struct call *)job;
    struct err err;

    (void)err_set(&err, ERR_UNAVAILABLE, "the daemon is stopping; nothing was begun");
    call->reason = REASON_DAEMON_STOPPING;
    call_fail(call, &err);
    call_finish(http_exchange_find(call->api->server, call->exchange), call);
}

int call_start(struct call *call, struct err *err)
{
    struct api *api = call->api;

    call->job = (struct job){.run = run_job, .drop = drop_job, .owner = call->tenant};
    if (jobs_take(call->route->kind == ROUTE_LOOK ? api->look : api->runs, &call->job, err) < 0) {
        call->job.run = NULL; /* it never begins */
        call->reason = api->is_stopping ? REASON_DAEMON_STOPPING : REASON_NONE;
        return -1;
    }
    call->holders++;
    return 0;
}

static void start(struct call *call, struct http_exchange *x)
{
    struct err err;

    if (call->route->kind == ROUTE_QUICK)
        (void)handle(call);
    else if ((call->route->kind == ROUTE_ASK ? asks_take(call->api->asks, call, &err)
                                             : call_start(call, &err)) == 0)
        return;
    else
        call_fail(call, &err);
    call_deliver(call, x);
}

/* ---- what came ---- */

static void on_body(void *owner, struct http_exchange *x, struct str bytes)
{
    struct call *call = http_exchange_get(x);
    struct err err;

    (void)owner;
    if (!call)
        return;
    if (call->inflow)
        inflow_bytes(call, x, bytes);
    else if (buf_add_str(&call->incoming, bytes, &err) < 0)
        http_refuse(x, HTTP_FAULT_BODY_TOO_LARGE);
}

static void on_body_end(void *owner, struct http_exchange *x)
{
    struct call *call = http_exchange_get(x);
    struct err err;

    (void)owner;
    if (!call)
        return;
    if (call->route->body == BODY_SOCKET)
        return;
    if (call->passed && call->passed->is_socket)
        return; /* what comes behind the head is what it is about */
    if (call->route->body >= BODY_STREAM) {
        inflow_end(call);
        return;
    }
    if ((!call->is_gzip || call_gunzip(call, &err) == 0) && call_parse(call, &err) == 0) {
        start(call, x);
        return;
    }
    call_fail(call, &err);
    call_deliver(call, x);
}

static void on_writable(void *owner, struct http_exchange *x)
{
    struct call *call = http_exchange_get(x);

    (void)owner;
    if (call)
        stream_writable(call, x);
}

static void on_gone(void *owner, struct http_exchange *x, enum http_gone why)
{
    struct call *call = http_exchange_get(x);

    (void)owner;
    if (!call)
        return;
    http_exchange_set(x, NULL);
    stream_gone(call);
    call->ws = NULL;
    if (call->inflow && !call->job.run)
        inflow_finish(call); /* there is no handler to do it */
    if (why != HTTP_GONE_DONE)
        call_leave(call,
                   why == HTTP_GONE_CLIENT || why == HTTP_GONE_TIMEOUT ? ORDER_LEFT : ORDER_CANCEL);
    call_drop(call);
}

/* ---- the way in ---- */

static void begin_call(struct call *call, struct http_exchange *x, const struct http_head *head,
                       const struct route *route, const struct str params[ROUTE_PARAMS_MAX])
{
    struct err err;

    http_body_max(x, route->body == BODY_NONE     ? 0
                     : route->body_max            ? route->body_max
                     : route->body >= BODY_STREAM ? API_STREAM_MAX
                                                  : API_BODY_MAX);
    if (call_fill(call, route, head, params, &err) < 0) {
        call_fail(call, &err);
        call_deliver(call, x);
        return;
    }
    if (route->body >= BODY_STREAM)
        inflow_open(call);
    if (route->body == BODY_STREAM || route->body == BODY_FILE)
        start(call, x);
    else if (route->body == BODY_SOCKET && socket_accept(call, x, head) < 0)
        inflow_finish(call);
}

/* A command line says which build it is when it must be the same: it works on the same state by
 * itself as well, and half of a change of versions is worse than either. */
static bool is_for_another(const struct api *api, const struct http_head *head)
{
    struct str build = http_find(head, "brig-build");

    return build.p && !str_is(build, api->build);
}

static void on_request(void *owner, struct http_exchange *x, const struct http_head *head)
{
    struct api *api = owner;
    struct str segments[HTTP_PATH_SEGMENTS_MAX], params[ROUTE_PARAMS_MAX] = {0};
    char memory[HTTP_START_LINE_MAX];
    enum http_fault fault = HTTP_NO_FAULT;
    const struct token *token = NULL;
    const struct route *route;
    struct caller caller;
    struct err err;
    bool other = false;
    int status = 403;
    int n =
        head->path.n <= sizeof memory ? http_path_split(head->path, memory, segments, &fault) : -1;

    if (n < 0) {
        http_refuse(x, fault ? fault : HTTP_FAULT_TARGET);
        return;
    }
    route = route_find(head->method, segments, (size_t)n, params, &other);
    if (route && route->preview) {
        if (preview_identify(api, x, head, params[0], &caller, &status, &err) < 0) {
            refuse(api, x, route, status, &err);
            return;
        }
    } else if (!route || !route->open) {
        if (identify(api, x, head, &caller, &token, &status, &err) < 0) {
            refuse(api, x, route, status, &err);
            return;
        }
    } else {
        caller = (struct caller){.tenant = TENANT_DEFAULT, .principal = "anonymous"};
    }
    if (is_for_another(api, head)) {
        (void)err_set(&err, ERR_CONFLICT, "this daemon is another build of Brig");
        refuse(api, x, route, 421, &err);
        return;
    }
    if (!route) {
        (void)err_set(&err, ERR_NOT_FOUND,
                      other ? "that is not done with this method here" : "there is nothing here");
        refuse(api, x, route, other ? 405 : 404, &err);
        return;
    }
    if (route->scope & ~caller.scopes) {
        (void)err_set(&err, ERR_FORBIDDEN, "this needs a token with the scope \"%s\"",
                      scope_name((enum scope_bit)__builtin_ctz(route->scope)));
        refuse(api, x, route, 403, &err);
        return;
    }
    if (!route->open && meter_enter(api, token, who(&caller), &err) < 0) {
        refuse(api, x, route, 429, &err);
        return;
    }
    begin_call(call_new(api, x, &caller), x, head, route, params);
}

/* What is malformed is refused like everything else that is. */
static bool fault_header(void *owner, const struct http_head *head, struct http_header *out)
{
    struct str segments[HTTP_PATH_SEGMENTS_MAX], params[ROUTE_PARAMS_MAX] = {0};
    char memory[HTTP_START_LINE_MAX];
    enum http_fault fault = HTTP_NO_FAULT;
    const struct route *route = NULL;
    bool other = false;
    int n =
        head->path.n <= sizeof memory ? http_path_split(head->path, memory, segments, &fault) : -1;

    (void)owner;
    if (n >= 0)
        route = route_find(head->method, segments, (size_t)n, params, &other);
    if (!route || !route->refusal[0])
        return false;
    *out = (struct http_header){str_of(route->refusal[0]), str_of(route->refusal[1])};
    return true;
}

static const struct http_handler handler = {
    .on_request = on_request,
    .on_body = on_body,
    .on_body_end = on_body_end,
    .on_writable = on_writable,
    .on_gone = on_gone,
    .fault_header = fault_header,
};

/* ---- its life ---- */

static void on_tick(uv_timer_t *timer)
{
    struct api *api = timer->data;
    struct err err;

    if (access_settle(api->access, &err) < 0)
        (void)fprintf(stderr, "{\"level\":\"error\",\"event\":\"tokens\",\"message\":\"last uses "
                              "could not be written down\"}\n");
}

static unsigned connections_possible(unsigned wanted)
{
    struct rlimit files = {0};

    if (getrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_cur <= 2 * DESCRIPTORS_APART)
        return 512;
    if (files.rlim_cur - DESCRIPTORS_APART < wanted)
        return (unsigned)(files.rlim_cur - DESCRIPTORS_APART);
    return wanted;
}

static int open_parts(struct api *api, const struct api_config *config, struct err *err)
{
    const struct tenants_config tenants = {.state_dir = config->state_dir,
                                           .policy_text = config->policy_text,
                                           .profile_text = config->profile_text};
    const struct jobs_config look = {"brig-look", API_LOOKS_MAX, API_WAITING_MAX, API_STACK_BYTES};
    const struct jobs_config runs = {"brig-run", config->runs_max ? config->runs_max : API_RUNS_MAX,
                                     config->waiting_max ? config->waiting_max : API_WAITING_MAX,
                                     API_STACK_BYTES};
    const struct http_limits limits = {
        .body_max = API_BODY_MAX,
        .connections_max = connections_possible(config->connections_max ? config->connections_max
                                                                        : API_CONNECTIONS_MAX)};

    if (access_open(config->state_dir, &api->access, err) < 0 ||
        keys_open(config->state_dir, &api->keys, err) < 0 ||
        tenants_open(&tenants, &api->tenants, err) < 0 || jobs_open(&look, &api->look, err) < 0 ||
        jobs_open(&runs, &api->runs, err) < 0)
        return -1;
    api->server = http_server_new(api->loop, &handler, api, &limits);
    if (posts_open(api->loop, api->server, &api->posts, err) < 0 ||
        asks_open(api, &api->asks, err) < 0)
        return -1;
    api->tick = xcalloc(1, sizeof *api->tick);
    (void)uv_timer_init(api->loop, api->tick);
    api->tick->data = api;
    uv_unref((uv_handle_t *)api->tick);
    (void)uv_timer_start(api->tick, on_tick, SETTLE_MS, SETTLE_MS);
    api->last_moment = xcalloc(1, sizeof *api->last_moment);
    (void)uv_timer_init(api->loop, api->last_moment);
    api->last_moment->data = api;
    api->reaper = reaper_new(api);
    if (config->telemetry.url && telemetry_open(api, &config->telemetry, &api->telemetry, err) < 0)
        return -1;
    return tenants_find_all(api->tenants, err);
}

int api_open(struct uv_loop_s *loop, const struct api_config *config, struct api **out,
             struct err *err)
{
    AUTO(api) struct api *api = xcalloc(1, sizeof *api);

    api->loop = loop;
    api->version = config->version;
    api->build = config->build;
    api->hosts = config->hosts;
    api->began_us = clock_us();
    api->state_dir = xstrdup(config->state_dir);
    api->counts = counts_new();
    api->doors = doors_new(config->state_dir);
    if (open_parts(api, config, err) < 0)
        return -1;
    *out = TAKE(api);
    return 0;
}

static void on_tick_closed(uv_handle_t *handle)
{
    free(handle);
}

void api_free(struct api *api)
{
    if (!api)
        return;
    asks_free(api->asks);
    jobs_free(api->runs);
    jobs_free(api->look);
    posts_close(api->posts);
    telemetry_close(api->telemetry);
    if (api->tick) {
        reaper_close(api->reaper);
        uv_close((uv_handle_t *)api->tick, on_tick_closed);
        uv_close((uv_handle_t *)api->last_moment, on_tick_closed);
        (void)uv_run(api->loop, UV_RUN_NOWAIT);
    }
    http_server_free(api->server);
    tenants_free(api->tenants);
    access_free(api->access);
    keys_free(api->keys);
    counts_free(api->counts);
    doors_free(api->doors);
    free(api->meters);
    free(api->state_dir);
    free(api);
}

static void on_server_stopped(void *owner)
{
    struct api *api = owner;

    api->is_deaf = true;
    api_check_stopped(api);
}

/* Whoever did not hear that it should end: its sandbox goes with this process, and the next one
 * finds an intent without an outcome and says so. */
static void on_last_moment(uv_timer_t *timer)
{
    struct api *api = timer->data;

    api->has_given_up = true;
    if (api->on_stopped)
        api->on_stopped(api->stop_context);
}

size_t api_left_behind(const struct api *api)
{
    return api->has_given_up ? api->call_n + reaper_is_busy(api->reaper) : 0;
}

void api_stop(struct api *api, unsigned grace_ms, void (*on_stopped)(void *context), void *context)
{
    unsigned end_ms = api->is_stopping ? API_HURRY_MS : grace_ms + API_END_MS;

    api->on_stopped = on_stopped;
    api->stop_context = context;
    __atomic_store_n(&api->is_stopping, true, __ATOMIC_RELAXED); /* other threads look, too */
    (void)uv_timer_start(api->last_moment, on_last_moment, end_ms, 0);
    if (api->is_deaf)
        api_check_stopped(api); /* what is still waited for is waited for no longer */
    else
        http_server_stop(api->server, grace_ms, on_server_stopped);
    /* Behind that, so that nobody is promised a connection that stays. */
    jobs_stop(api->runs);
    jobs_stop(api->look);
}
