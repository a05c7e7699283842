/* SPDX-License-Identifier: Apache-2.0 */

/* Any bytes are a git config; reading one ends, and each path it names is shorter than a path. */

#include "fuzz.h"

#include "flow/equip/workspace.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    struct str rest = {(const char *)bytes, n}, section = {"", 0};
    char value[PATH_BYTES_MAX];
    bool is_hooks = false;
    size_t before = n + 1;

    while (git_config_next(&rest, &section, &is_hooks, value)) {
        if (rest.n >= before || strlen(value) >= PATH_BYTES_MAX)
            abort();
        before = rest.n;
    }
    if (rest.n != 0)
        abort();
    return 0;
}
