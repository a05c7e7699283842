/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to surface/api: what a sandbox is made from, as a body says it. */

#include "surface/api/call.h"

#include "model/limits.h"

struct sandbox_body {
    const char *name;
    struct words labels;
    const char *scope;
    uint64_t ttl_ms, idle_ms, lifetime_ms;
    const char *snapshot_id;
    const char *provider;
    const char *image;
    struct words env;
    const char *workdir;
    struct words mounts;
    const char *workspace;
    uint64_t limits[LIMIT_COUNT];
};

/* The members of a sandbox that ends with its command; and of "limits". */
extern const struct field sandbox_fields[];
extern const struct field limit_fields[];

/* What belongs to any sandbox; ERR_FORBIDDEN: folders of the machine without the scope for it. */
int sandbox_body_fill(struct call *call, const struct sandbox_body *body, struct request *out,
                      struct err *err) MUST_CHECK;
