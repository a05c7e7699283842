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
    bool allow_protected;
    const char *user;
    const char *network;
    const char *sockets;
    bool no_pool;
    const char *policy;
    struct words overlays;
    const char *profile;
    uint64_t limits[LIMIT_COUNT];
};

/* The members of a sandbox that ends with its command; and of "limits". */
extern const struct field sandbox_fields[];
extern const struct field limit_fields[];

/* How long it may live; 0: as long as usual. */
struct lifetime sandbox_lifetime(uint64_t ttl_ms, uint64_t idle_ms, uint64_t lifetime_ms);
/* What a kept sandbox was made from and how it is. */
int sandbox_json(struct call *call, struct execute *execute, const char *id, struct json **out,
                 struct err *err) MUST_CHECK;

/* What belongs to any sandbox; ERR_FORBIDDEN: folders of the machine without the scope for it. */
int sandbox_body_fill(struct call *call, const struct sandbox_body *body, struct request *out,
                      struct err *err) MUST_CHECK;
/* A governor under the rules the body brings along, else the tenant's; the request says where it
 * runs from then on, and which rules those are. */
int sandbox_body_govern(struct call *call, const struct sandbox_body *body, struct request *request,
                        struct lent *out, struct err *err) MUST_CHECK;
