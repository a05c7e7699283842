/* SPDX-License-Identifier: Apache-2.0 */
/* What agents say, as envelopes and as requests: whatever it is, there is a verdict whose places
 * and quotes are within bounds, and what may be shown instead holds nothing that had to be
 * replaced. */
#include "fuzz.h"

#include "lib/advisory/advisory.h"
#include "lib/base/limits.h"

#include <stdlib.h>

static void check_result(const struct advisory_result *result, size_t n)
{
    if (result->span.start > result->span.end || result->span.end > n || result->offset > n)
        abort();
    if (result->finding_n > ADVISORY_FINDINGS_MAX ||
        (result->finding_n > 0) != (result->rule[0] != 0))
        abort();
    if (result->compliance > 100 || result->drift_thousands > 1000)
        abort();
    for (size_t i = 0; i < result->finding_n; i++) {
        const struct advisory_finding *finding = &result->findings[i];

        if (finding->span.start > finding->span.end || finding->span.end > n ||
            finding->excerpt.n > ADVISORY_EXCERPT_MAX || !str_is_utf8(finding->excerpt))
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    AUTO_ARENA struct arena mem = ARENA(2 * ADVISORY_MEMORY_MAX);
    struct str value = {(const char *)bytes, n};
    struct advisory_options options = {.strict_seed = false};
    struct advisory_result result, again;
    struct err err;

    if (advisory_check(&mem, ADVISORY_ACTION, value, &options, &result, &err) < 0)
        return 0;
    check_result(&result, n);
    if (result.is_valid ? result.verdict > ADVISORY_GATE : result.verdict != ADVISORY_REJECT)
        abort(); /* no request is ever let through, or only advised about */
    if (advisory_check(&mem, ADVISORY_OUTPUT, value, &options, &result, &err) < 0)
        return 0;
    check_result(&result, n);
    if (!result.is_valid || result.normalized.n == 0 || result.normalized.n > ADVISORY_VALUE_MAX)
        return 0;
    if (advisory_check(&mem, ADVISORY_OUTPUT, result.normalized, &options, &again, &err) < 0)
        abort();
    check_result(&again, result.normalized.n);
    if (again.is_valid &&
        (again.counts[ADVISORY_IS_UNSAFE_COMMAND] || again.counts[ADVISORY_IS_PATH_VIOLATION]))
        abort();
    return 0;
}
