/* SPDX-License-Identifier: Apache-2.0 */

/* Any text is a profile or is refused with a sentence; a profile asks for nothing that is not a
 * limit above zero. */

#include "fuzz.h"

#include "flow/equip/parts.h"
#include "lib/base/limits.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    AUTO_ARENA struct arena mem = ARENA(POLICY_MEMORY_MAX);
    struct profile profile = {.provider = "untouched"};
    struct mark where = {0, 0};
    struct err err = {0};

    if (profile_parse(&mem, (struct str){(const char *)bytes, n}, &profile, &where, &err) < 0) {
        if (!err.text[0] || strcmp(profile.provider, "untouched") != 0)
            abort();
        if (where.line && strncmp(err.text, "line ", 5) != 0)
            abort();
        return 0;
    }
    for (enum limit_kind kind = 0; kind < LIMIT_COUNT; kind++)
        if (profile.least[kind] > MEANS_RELAY ||
            (profile.limits.of[kind].value && profile.limits.of[kind].origin != ORIGIN_PROFILE))
            abort();
    return 0;
}
