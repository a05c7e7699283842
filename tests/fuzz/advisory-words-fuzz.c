/* SPDX-License-Identifier: Apache-2.0 */
/* Commands and paths of agents: a verdict with a place within bounds; and a path that is let
 * through is in /sandbox, has no way up in it, and is let through again as it is then written. */
#include "fuzz.h"

#include "lib/advisory/advisory.h"
#include "lib/base/limits.h"

#include <stdlib.h>
#include <string.h>

static void check_path(struct arena *mem, const struct advisory_result *first)
{
    struct advisory_options options = {.access = ACCESS_LIST};
    struct advisory_result again;
    struct err err;

    if (first->verdict == ADVISORY_REJECT)
        return;
    if (!str_starts(first->normalized, "/sandbox") ||
        memmem(first->normalized.p, first->normalized.n, "/../", 4) ||
        str_ends(first->normalized, "/.."))
        abort();
    if (advisory_check(mem, ADVISORY_PATH, first->normalized, &options, &again, &err) < 0 ||
        again.verdict == ADVISORY_REJECT || !str_eq(again.normalized, first->normalized))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    AUTO_ARENA struct arena mem = ARENA(2 * ADVISORY_MEMORY_MAX);
    struct str value = {(const char *)bytes, n};
    struct advisory_options options = {.access = ACCESS_LIST};
    struct advisory_result result;
    struct err err;

    if (advisory_check(&mem, ADVISORY_PATH, value, &options, &result, &err) < 0)
        return 0;
    if (result.span.start > result.span.end || result.span.end > n)
        abort();
    check_path(&mem, &result);
    if (advisory_check(&mem, ADVISORY_COMMAND, value, &options, &result, &err) < 0)
        return 0;
    if (result.span.start > result.span.end || result.span.end > n ||
        (result.verdict != ADVISORY_ALLOW && result.verdict != ADVISORY_ADVISE))
        abort();
    return 0;
}
