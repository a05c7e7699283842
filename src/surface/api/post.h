/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to surface/api: from any thread to the loop's. Unlike the server's own way it stands
 * until the last handler is done, however long after the last connection that is. */

#include "lib/base/err.h"

#include <stdint.h>

struct http_exchange;
struct http_server;
struct posts;
struct uv_loop_s;

/* Things that are posted run in order; x is NULL when the exchange is gone, or its id was 0. */
typedef void post_run(struct http_exchange *x, void *argument);

int posts_open(struct uv_loop_s *loop, struct http_server *server, struct posts **out,
               struct err *err) MUST_CHECK;
/* Nothing may come any more; freed by the loop. */
void posts_close(struct posts *posts);
void posts_add(struct posts *posts, uint64_t exchange, post_run *run, void *argument);
/* The loop is woken once for all of them. */
struct posted {
    uint64_t exchange;
    post_run *run;
    void *argument;
};
void posts_add_many(struct posts *posts, const struct posted *all, size_t n);
