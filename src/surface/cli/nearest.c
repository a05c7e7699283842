/* SPDX-License-Identifier: Apache-2.0 */

/* "Did you mean": edit distance with swaps of neighbours, over words short enough to be ours. */

#include "surface/cli/commands.h"

#include <string.h>

#define WORD_MAX 40

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t distance(const char *a, const char *b)
{
    size_t rows[3][WORD_MAX + 1]; /* the row before last, the last, this one */
    size_t an = strlen(a);
    size_t bn = strlen(b);

    if (an > WORD_MAX || bn > WORD_MAX)
        return SIZE_MAX;
    for (size_t j = 0; j <= bn; j++)
        rows[1][j] = j;
    for (size_t i = 1; i <= an; i++) {
        rows[2][0] = i;
        for (size_t j = 1; j <= bn; j++) {
            size_t replaced = rows[1][j - 1] + (a[i - 1] != b[j - 1]);

            rows[2][j] = least(replaced, least(rows[1][j], rows[2][j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                rows[2][j] = least(rows[2][j], rows[0][j - 2] + 1);
        }
        memcpy(rows[0], rows[1], sizeof rows[0]);
        memcpy(rows[1], rows[2], sizeof rows[1]);
    }
    return rows[1][bn];
}

void nearest_try(struct nearest *nearest, const char *candidate)
{
    size_t d = distance(nearest->wanted, candidate);
    size_t tolerated = strlen(candidate) / 3 + 1;

    if (d <= tolerated && (!nearest->best || d < nearest->distance)) {
        nearest->best = candidate;
        nearest->distance = d;
    }
}

const char *nearest_found(const struct nearest *nearest)
{
    return nearest->best;
}
