/* SPDX-License-Identifier: Apache-2.0 */

/* Whatever a sandbox answers as a listing: records lie within it, and each takes something of it,
 * so it ends. A link that is said to stay has no way up behind a name. */

#include "fuzz.h"

#include "flow/execute/files.h"

#include <stdlib.h>
#include <string.h>

static void check_within(struct str part, const uint8_t *bytes, size_t n)
{
    const char *start = (const char *)bytes;

    if (part.n && (part.p < start || part.p + part.n > start + n))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    struct str rest = {(const char *)bytes, n};
    struct file_entry entry;
    struct err err = {0};
    int got;

    for (;;) {
        size_t before = rest.n;

        got = file_record_next(&rest, &entry, &err);
        if (got <= 0)
            break;
        if (rest.n >= before)
            abort();
        check_within(entry.name, bytes, n);
        check_within(entry.target, bytes, n);
        if (file_name_is_safe(entry.name) && memchr(entry.name.p, '/', entry.name.n))
            abort();
        if (file_link_stays(entry.target, 0) &&
            (entry.target.p[0] == '/' || str_is(entry.target, "..")))
            abort();
    }
    if (got < 0 && !err.text[0])
        abort();
    return 0;
}
