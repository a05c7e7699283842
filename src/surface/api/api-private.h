/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to surface/api: the daemon's side of every call. */

#include "lib/access/access.h"
#include "surface/api/api.h"
#include "surface/api/asks.h"
#include "surface/api/call.h"
#include "surface/api/jobs.h"
#include "surface/api/keys.h"
#include "surface/api/post.h"

struct meter;
struct telemetry;

struct api {
    struct uv_loop_s *loop;
    struct http_server *server;
    struct access *access;
    struct keys *keys;
    struct posts *posts;
    struct tenants *tenants;
    struct jobs *look; /* what takes moments */
    struct jobs *runs; /* what takes as long as a command */
    struct asks *asks; /* what needs a receipt and nothing else */
    struct meter *meters;
    size_t meter_n, meter_room;
    struct call *calls; /* under way */
    size_t call_n;
    char *state_dir;
    const char *version;
    const char *build;
    const char *const *hosts;
    uint64_t began_us;
    struct counts *counts;
    struct telemetry *telemetry; /* NULL: it is told to nobody */
    struct uv_timer_s *tick;
    struct uv_timer_s *last_moment; /* of a stop */
    struct reaper *reaper;
    struct doors *doors;
    void (*on_stopped)(void *context);
    void *stop_context;
    bool is_stopping;
    bool has_given_up; /* waiting for handlers */
    bool is_deaf;      /* the server has stopped; handlers may still be under way */
};

struct uv_loop_s *api_loop(struct api *api);
/* Tells whoever stopped it, once nothing is under way any more. */
void api_check_stopped(struct api *api);

/* Lets go of a call; the last one frees it. In the loop only. */
void call_drop(struct call *call);
/* Gives what the handler has answered to the client, and logs it; or only the first. In the loop
 * only. */
void call_deliver(struct call *call, struct http_exchange *x);
void call_put(struct call *call, struct http_exchange *x);
/* call-read.c: what came in. All the head says that somebody may want to know; then the body as it
 * was before it was packed, and read by the route's fields. */
int call_fill(struct call *call, const struct route *route, const struct http_head *head,
              const struct str params[ROUTE_PARAMS_MAX], struct err *err) MUST_CHECK;
int call_gunzip(struct call *call, struct err *err) MUST_CHECK;
int call_parse(struct call *call, struct err *err) MUST_CHECK;
/* Its job begins. */
int call_start(struct call *call, struct err *err) MUST_CHECK;
/* Its handler is done: answers, if anybody still listens, and lets go of it. Posted to the loop. */
void call_finish(struct http_exchange *x, void *call);
/* *err as the answer. */
void call_fail(struct call *call, const struct err *err);

/* spool.c: the whole body into a file without a name, in the handler's thread. */
int body_to_file(struct call *call, struct err *err) MUST_CHECK;

/* meter.c: what each token, or peer, has used of its share. In the loop only. */
int meter_enter(struct api *api, const struct token *token, const char *who,
                struct err *err) MUST_CHECK;
void meter_leave(struct api *api, const char *who);

/* reaper.c; freed by the loop after it was closed. */
struct reaper;
struct reaper *reaper_new(struct api *api);
bool reaper_is_busy(const struct reaper *reaper);
void reaper_close(struct reaper *reaper);

/* metrics.c */
struct counts *counts_new(void);
void counts_free(struct counts *counts);
void counts_add(struct counts *counts, const struct route *route, int status, uint64_t took_us);
/* What was found in what an agent said, by category; from any thread. */
struct advisory_result;
void counts_found(struct counts *counts, const struct advisory_result *result);
void counts_breach(struct counts *counts); /* a turn past the budget of a session */
int counts_write(const struct api *api, struct buf *out, struct err *err) MUST_CHECK;
/* The same to a collector. */
void counts_tell(const struct api *api);

/* trace.c: what is told of a call. In the loop only. */
void call_trace(struct call *call, const struct http_head *head);
void call_tell(struct call *call, int status, uint64_t took_us);

/* identity.c: whether we are called that. */
int check_host(const struct api *api, const struct http_head *head, struct err *err) MUST_CHECK;

/* ports.c: whoever holds a grant is whoever was given it, for one port of one sandbox. */
struct doors;
struct doors *doors_new(const char *state_dir);
void doors_free(struct doors *doors);
int preview_identify(struct api *api, struct http_exchange *x, const struct http_head *head,
                     struct str grant, struct caller *out, int *status, struct err *err) MUST_CHECK;

/* identity.c: who asks. -1 and the answer's status when it is nobody: 401, or 403 for a Host or
 * Origin that is not ours. */
int identify(struct api *api, struct http_exchange *x, const struct http_head *head,
             struct caller *out, const struct token **token, int *status,
             struct err *err) MUST_CHECK;
