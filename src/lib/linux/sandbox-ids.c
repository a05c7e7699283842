/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/linux/sandbox-ids.h"

#include "lib/base/str.h"

#define UID_BASE 0x70000000U

int sandbox_ids(struct sandbox_ids *out, struct err *err)
{
    const char *asked = getenv("BRIG_UID_BASE");
    uint64_t base = UID_BASE;

    if (geteuid() == 0) {
        if (asked && (!str_u64(str_of(asked), &base) || base < 65536 || base >= UINT32_MAX - 65536))
            return err_set(err, ERR_INVALID,
                           "BRIG_UID_BASE=%.40s: should be a number from 65536 to %u", asked,
                           UINT32_MAX - 65537U);
        out->uid = out->gid = (uint32_t)base + SANDBOX_INSIDE_ID;
        return 0;
    }
    if (getegid() == 0)
        return err_set(err, ERR_FORBIDDEN,
                       "your group is root's; run as a user with a group of its own");
    out->uid = geteuid();
    out->gid = getegid();
    return 0;
}
