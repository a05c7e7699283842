/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/shell/name-private.h"

#include <stdbool.h>
#include <string.h>

/* Names that are shorter are in their number, with the zero that ends them. */
static bool is_all_in(uint64_t key)
{
    return (key & 0xff) == 0;
}

static const struct name_row *row_at(const char *at)
{
    return (const void *)at;
}

const void *name_find(const void *table, size_t n, size_t size, const char *name, uint64_t key)
{
    const char *from = table;

    while (n > 1) { /* the last row that is not behind the name is among these n */
        const char *middle = from + n / 2 * size;

        from = row_at(middle)->key <= key ? middle : from;
        n -= n / 2;
    }
    if (n == 0 || row_at(from)->key != key)
        return NULL;
    return is_all_in(key) || strcmp(row_at(from)->name, name) == 0 ? from : NULL;
}
