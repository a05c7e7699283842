/* SPDX-License-Identifier: Apache-2.0 */

/* The guard before wslay: any frames, whole or byte by byte, stop at the same byte with the same
 * code, and what it lets through is masked. */

#include "fuzz.h"

#include <stdlib.h>

#include "lib/http/ws-private.h"

static size_t take(struct str in, size_t step, unsigned *code)
{
    struct ws_guard guard = {0};
    size_t taken = 0;

    *code = 0;
    while (taken < in.n && *code == 0) {
        size_t n = in.n - taken < step ? in.n - taken : step;

        taken += ws_guard_take(&guard, (struct str){in.p + taken, n}, code);
    }
    return taken;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    struct str in = {(const char *)bytes, n};
    unsigned whole = 0;
    unsigned single = 0;
    size_t taken = take(in, n ? n : 1, &whole);

    if (taken != take(in, 1, &single) || whole != single || taken > n)
        abort();
    if (whole == 0 && taken != n)
        abort();
    if (whole != 0 && whole != 1002 && whole != 1009)
        abort();
    if (n >= 2 && (bytes[1] & 0x80) == 0 && whole == 0)
        abort();
    return 0;
}
