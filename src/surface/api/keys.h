/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to surface/api: requests that may be sent again. Whoever creates something names the
 * request with an Idempotency-Key; sent again with the same key it is answered as it was the first
 * time, and nothing happens twice. A key is durable before anything takes effect; it is remembered
 * for a day. Any thread may call these. */

#include "lib/base/buf.h"
#include "lib/base/memory.h"

struct keys;

int keys_open(const char *state_dir, struct keys **out, struct err *err) MUST_CHECK;
void keys_free(struct keys *keys);
AUTO_TYPE(keys)

/* What makes two requests the same one. */
struct keyed {
    const char *tenant;
    const char *key;
    const char *hash; /* over route, path and body */
};

/* 0: it is new, and ours to answer. 1: it was answered: *status and answer. ERR_CONFLICT: it is
 * under way, was another request, or nobody knows how it ended. */
int keys_begin(struct keys *keys, const struct keyed *request, int *status, struct buf *answer,
               struct err *err) MUST_CHECK;
/* How it was answered; status 0: it had no effect and may be tried again. */
int keys_end(struct keys *keys, const struct keyed *request, int status, struct str answer,
             struct err *err) MUST_CHECK;
