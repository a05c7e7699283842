/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to flow/approve. */

#include "flow/approve/approve.h"
#include "lib/store/store.h"

struct approvals {
    struct store *store;
};

struct json;
/* What would happen, complete, for the person who is asked. */
struct json *approval_subject(struct arena *mem, const struct run *run);
/* Over what decides, as approve.h says. */
int approval_digest(const struct run *run, char out[MODEL_HASH_BYTES], struct err *err) MUST_CHECK;
