/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lib/http/http.h"

/* A gzip body becomes what it was, no larger than max and no faster growing than http-limits.h
 * allows. One member; bytes behind it are a fault. */
struct http_gunzip;

struct http_gunzip *http_gunzip_new(uint64_t max);
void http_gunzip_free(struct http_gunzip *z);
AUTO_TYPE(http_gunzip)

/* Takes from *in, gives a piece that is valid until the next call. DATA: call again; MORE: all
 * taken; END: the stream is complete and *in must be empty; REFUSED: *fault. */
enum http_body_event http_gunzip_next(struct http_gunzip *z, struct str *in, struct str *out,
                                      enum http_fault *fault);
/* The body is over: -1 and *fault when the stream is not. */
int http_gunzip_end(const struct http_gunzip *z, enum http_fault *fault) MUST_CHECK;

/* Everything from one descriptor to another, compressed; the same bytes become the same bytes. */
int http_gzip_fd(int from, int to, struct err *err) MUST_CHECK;
