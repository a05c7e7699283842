/* SPDX-License-Identifier: Apache-2.0 */

/* Any bytes are read or refused; what is read comes out of every writer as the same value, and
 * the canonical form is a fixed point. */

#include "fuzz.h"

#include "lib/base/limits.h"
#include "lib/json/json.h"

#include <stdlib.h>

#define MEMORY_MAX (64 * MIB)
#define OUTPUT_MAX (64 * MIB)

typedef int (*writer)(const struct json *, struct buf *, struct err *);

static const struct json *read_or_abort(struct arena *mem, const struct buf *text)
{
    const struct json *value = NULL;
    struct mark where;
    struct err err;

    if (json_parse(mem, buf_str(text), &value, &where, &err) < 0)
        abort();
    return value;
}

/* Writes, reads back, and compares what the canonical writer makes of both. */
static void check_round_trip(struct arena *mem, const struct json *value, writer write,
                             const struct buf *canonical)
{
    AUTO_BUF struct buf written = BUF(OUTPUT_MAX);
    AUTO_BUF struct buf again = BUF(OUTPUT_MAX);
    struct err err;

    if (write(value, &written, &err) < 0 ||
        json_canonical(read_or_abort(mem, &written), &again, &err) < 0 ||
        !str_eq(buf_str(&again), buf_str(canonical)))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    AUTO_ARENA struct arena mem = ARENA(MEMORY_MAX);
    AUTO_BUF struct buf canonical = BUF(OUTPUT_MAX);
    const struct json *value = NULL;
    struct mark where = {0, 0};
    struct err err;

    if (json_parse(&mem, (struct str){(const char *)bytes, n}, &value, &where, &err) < 0) {
        if (where.line == 0 || where.column == 0 || where.column > n + 1 || !err.text[0] || value)
            abort();
        return 0;
    }
    if (json_canonical(value, &canonical, &err) < 0)
        return 0; /* a number no double can hold */
    check_round_trip(&mem, value, json_canonical, &canonical);
    check_round_trip(&mem, value, json_compact, &canonical);
    check_round_trip(&mem, value, json_pretty, &canonical);
    return 0;
}
