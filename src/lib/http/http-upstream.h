/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lib/http/http.h"

/* One request over one connection, for a thread that may wait. Every wait has an end: a deadline,
 * or a descriptor that becomes readable when whoever asked does not want it any more.
 *
 * Plain HTTP goes to this machine only; anything else is TLS, verified against the certificates of
 * the system (or those SSL_CERT_FILE names) and the name in the address. */

struct ssl_ctx_st;

#define HTTP_ORIGIN_HOST_MAX 255

/* Where requests go. */
struct http_origin {
    bool is_tls;
    char host[HTTP_ORIGIN_HOST_MAX + 1]; /* without brackets */
    char port[6];
    char name[HTTP_ORIGIN_HOST_MAX + 16]; /* as the Host header says it */
    char path[1024];                      /* "" or "/v1": without a slash at its end */
};

/* "https://host[:port][/path]", or "http://" of a loopback address or localhost. ERR_INVALID. */
int http_origin_parse(const char *url, struct http_origin *out, struct err *err) MUST_CHECK;

/* What TLS connections begin with; shared by threads. */
int http_upstream_tls(struct ssl_ctx_st **out, struct err *err) MUST_CHECK;
void http_upstream_tls_free(struct ssl_ctx_st *tls);

struct http_upstream;

struct http_upstream_config {
    const struct http_origin *origin;
    struct ssl_ctx_st *tls; /* NULL when the origin is plain */
    int cancel_fd;          /* readable: give up; -1: nobody says so */
    unsigned connect_ms;
    unsigned head_ms; /* until the answer begins */
    unsigned idle_ms; /* between two pieces of it */
    unsigned all_ms;  /* for everything */
};

int http_upstream_open(const struct http_upstream_config *config, struct http_upstream **out,
                       struct err *err) MUST_CHECK;
void http_upstream_free(struct http_upstream *client);
AUTO_TYPE(http_upstream)

/* Sends the request; its framing, Host and Connection are made here. */
int http_upstream_ask(struct http_upstream *client, const char *method, const char *target,
                      const struct http_header *headers, size_t n, struct str body,
                      struct err *err) MUST_CHECK;
/* The head of the answer; its body may have at most body_max bytes. Valid until the client is
 * freed. ERR_INTEGRITY: it is none. */
int http_upstream_head(struct http_upstream *client, uint64_t body_max,
                       const struct http_head **out, struct err *err) MUST_CHECK;
/* 1: *out has a piece of its body, valid until the next call; 0: that was all of it. */
int http_upstream_read(struct http_upstream *client, struct str *out, struct err *err) MUST_CHECK;
