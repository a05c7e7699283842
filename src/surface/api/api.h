/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The native HTTP API: one route table, judged and answered like everything else. It stands on a
 * loop and a server of its owner's thread; what blocks happens on threads of its own. */

#include "lib/base/buf.h"

struct api;
struct json;
struct uv_loop_s;

/* Where telemetry goes. */
struct telemetry_config {
    const char *url;         /* NULL: nowhere */
    const char *headers;     /* as in OTEL_EXPORTER_OTLP_HEADERS, or NULL */
    const char *certificate; /* a file of those to trust instead of the machine's, or NULL */
    bool plain_anywhere;     /* http:// is not only for this machine */
};

struct api_config {
    const char *state_dir;
    const char *policy_text;  /* for tenants without one; NULL: built in */
    const char *profile_text; /* or NULL */
    const char *const *hosts; /* names it may be called by, besides loopback; ends with NULL */
    unsigned runs_max;        /* commands at once; 0: a default */
    unsigned waiting_max;     /* requests that wait for their turn; 0: a default */
    unsigned connections_max; /* 0: a default */
    struct telemetry_config telemetry;
    const char *version; /* of this build */
    const char *build;   /* exactly which; a command line of another works by itself */
};

int api_open(struct uv_loop_s *loop, const struct api_config *config, struct api **out,
             struct err *err) MUST_CHECK;
/* After api_stop has called back, or before anything was listened on. */
void api_free(struct api *api);
AUTO_TYPE(api)

/* Listening, as in lib/http/http-server.h. */
struct http_server;
struct http_server *api_server(struct api *api);

/* No new requests; those that wait are refused, those under way may end within grace_ms, then they
 * are cancelled and have API_END_MS to end. A second call shortens both. */
void api_stop(struct api *api, unsigned grace_ms, void (*on_stopped)(void *context), void *context);
/* After on_stopped: how many are still under way. Not 0: an end of the process is all there is
 * left, the API cannot be freed. */
size_t api_left_behind(const struct api *api);

/* The description of all of it, made of the table: OpenAPI 3.1, and as a page to read. */
struct arena;
struct json *api_openapi(struct arena *mem);
int api_reference(struct buf *out, struct err *err) MUST_CHECK;
