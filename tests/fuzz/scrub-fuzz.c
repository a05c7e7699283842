/* SPDX-License-Identifier: Apache-2.0 */

/* Any file under any of a few names: it ends, within its bounds, and what the filter has written
 * it does not find fault with again. The first byte chooses the name. */

#include "fuzz.h"

#include "cmd/image/scrub.h"
#include "lib/base/attrs.h"
#include "lib/base/limits.h"

#include <stdlib.h>

static const char *const names[] = {
    "a.json", "a.yaml", ".env", "a.jsonl", "notes.txt", "package-lock.json", ".docker/config.json",
    ".npmrc"};

static bool has_counts(const struct scrub_result *result)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < SCRUB_RULES; i++)
        sum += result->counts[i];
    return sum > 0;
}

static void check_again(struct str path, const struct buf *written)
{
    AUTO_BUF struct buf out = BUF(2 * SCRUB_TEXT_MAX);
    struct scrub_result result;

    if (written->n > SCRUB_TEXT_MAX)
        return;
    scrub(path, buf_str(written), &out, &result);
    if (result.verdict != SCRUB_KEEP)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    AUTO_BUF struct buf out = BUF(2 * SCRUB_TEXT_MAX);
    struct scrub_result result;
    struct scrub_scan scan = {0};
    enum scrub_rule rule;
    struct str path, text;

    if (!n)
        return 0;
    path = str_of(names[bytes[0] % COUNT(names)]);
    text = (struct str){(const char *)bytes + 1, n - 1};
    scrub(path, text, &out, &result);
    if ((result.verdict == SCRUB_KEEP) == has_counts(&result))
        abort(); /* what is changed has a reason, what is kept has none */
    if (result.verdict == SCRUB_REPLACE)
        check_again(path, &out);
    scrub_scan_add(&scan, text);
    if (scrub_scan_end(&scan, &rule) && rule >= SCRUB_RULES)
        abort();
    return 0;
}
