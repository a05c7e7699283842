/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* For surfaces that speak somebody else's protocol over the same server: they bring rows
 * (routes_plug) whose handlers see what ours see. */

#include "surface/api/call.h"
#include "surface/api/route.h"
#include "surface/api/stream.h"

/* Which Brig this is. */
const char *call_version(const struct call *call);

/* The sandbox is params[0], an id or a name. */
struct path_query {
    const char *path;
    bool recursive;
    bool parents;
    uint64_t wait_ms;
};
extern const struct field path_query[]; /* only .path */

int handle_file_read(struct call *call, const void *body, const void *query, struct err *err);
int handle_file_write(struct call *call, const void *body, const void *query, struct err *err);
int handle_sandbox_destroy(struct call *call, const void *body, const void *query, struct err *err);
