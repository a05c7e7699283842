/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lib/base/err.h"

#include <stdint.h>

/* Whom a sandbox's user is outside: whoever started Brig, but never root. Started by root it is
 * somebody nobody else on the machine is, of ids that no distribution hands out; BRIG_UID_BASE
 * moves the range, for machines that do use them. */
struct sandbox_ids {
    uint32_t uid;
    uint32_t gid;
};

#define SANDBOX_INSIDE_ID 1000U /* who it is inside */

int sandbox_ids(struct sandbox_ids *out, struct err *err) MUST_CHECK;
