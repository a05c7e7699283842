/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One GET at a time, of a server that may do anything: bounded, timed, and not led elsewhere. */

#include "cmd/image/worker.h"

struct http {
    struct job *job;
    void *handle;       /* CURL */
    bool local;         /* the registry is on this machine's loopback */
    bool insecure_http; /* plain HTTP was allowed to any address */
    bool proxied;
    uint64_t stall_us;
    struct buf ca; /* certificates to trust instead of the system's */
    bool broke;    /* the last failure was the connection's: the next try may be luckier */
};

struct http_request {
    const char *url;
    const char *accept;
    const char *authorization; /* the header's value, or NULL */
    /* Gets the body of a 200; -1 stops. */
    int (*take)(void *context, const void *bytes, size_t n, struct err *err);
    void *context;
};

/* Headers that matter; "" when absent. Valid as long as the job's arena. */
struct http_answer {
    long status;
    const char *location;
    const char *authenticate;
    const char *content_type;
    const char *digest;
    uint64_t retry_after_s; /* 0: it does not say */
};

int http_open(struct job *job, struct http *out, struct err *err) MUST_CHECK;
void http_done(struct http *http);
/* After a fork: connections of the parent stay its own. */
int http_renew(struct http *http, struct err *err) MUST_CHECK;

int http_get(struct http *http, const struct http_request *request, struct http_answer *out,
             struct err *err) MUST_CHECK;

/* A URL as we would use it: http or https, no user in it; and its host. from is where it was said,
 * or NULL: plain HTTP is never reached from HTTPS, and otherwise only on loopback or when allowed.
 */
int http_url_check(const struct http *http, struct arena *mem, const char *url, const char *from,
                   const char **host, struct err *err) MUST_CHECK;
/* What a Location header means where it was said. */
int http_url_resolve(struct arena *mem, const char *base, const char *location, const char **out,
                     struct err *err) MUST_CHECK;
