/* SPDX-License-Identifier: Apache-2.0 */

/* Prints docs/api-reference.md. */

#include "surface/api/api.h"

#include <stdio.h>

#define PAGE_MAX (4UL << 20)

int main(void)
{
    AUTO_BUF struct buf page = BUF(PAGE_MAX);
    struct err err;

    if (api_reference(&page, &err) < 0) {
        (void)fprintf(stderr, "api-reference: %s\n", err.text);
        return 1;
    }
    return fwrite(page.p, 1, page.n, stdout) == page.n && fflush(stdout) == 0 ? 0 : 1;
}
