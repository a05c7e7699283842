/* SPDX-License-Identifier: Apache-2.0 */

/* Whatever arrives at egress: what is taken says the same again, byte for byte. The first byte is
 * the number of descriptors. */

#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "lib/egress/handover.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static char again[HANDOVER_MESSAGE_MAX];
    struct handover got;
    struct err err;
    size_t again_n;

    if (n == 0)
        return 0;
    if (handover_read((struct str){(const char *)bytes + 1, n - 1}, bytes[0], &got, &err) < 0)
        return 0;
    again_n = got.kind == HANDOVER_CALLER ? handover_caller(&got.caller, again)
                                          : handover_listeners(again);
    if (again_n != n - 1 || memcmp(again, bytes + 1, again_n) != 0)
        abort();
    return 0;
}
