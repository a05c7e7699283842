/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to surface/api: how far something is, told while it goes on, to clients that accept lines
 * of JSON or server-sent events; others get the answer when it is there. */

#include "surface/api/call.h"

struct events {
    struct call *call;
    bool is_sse;
    int fd; /* -1: the client does not want any */
};

/* The answer begins, if the client wants to hear of it. */
int events_open(struct call *call, struct events *out, struct err *err) MUST_CHECK;
/* One event with these members. A client that is behind misses it. */
void events_tell(struct events *events, const char *name, struct json *members);
/* The last one: what was answered as "done", or, when it failed, *failure as "error". */
void events_close(struct events *events, const struct err *failure);
