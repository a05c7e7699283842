/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Tables in which every command is looked up by its name.
 *
 * Rows begin with the first eight bytes of their name as one number, and stand in its order, which
 * is that of bytes. No two rows have the same eight. */

#define NAME_BYTE(name, i)                                                                         \
    ((uint64_t)(unsigned char)(name)[(i) < sizeof(name) ? (i) : sizeof(name) - 1] << (56 - 8 * (i)))
#define NAME_KEY(name)                                                                             \
    (NAME_BYTE(name, 0) | NAME_BYTE(name, 1) | NAME_BYTE(name, 2) | NAME_BYTE(name, 3) |           \
     NAME_BYTE(name, 4) | NAME_BYTE(name, 5) | NAME_BYTE(name, 6) | NAME_BYTE(name, 7))

struct name_row {
    uint64_t key;
    const char *name;
};

/* The first member of a row; for literals only. */
#define NAMED(literal) .row = {NAME_KEY(literal), (literal)}

static inline uint64_t name_key(const char *name)
{
    uint64_t key = 0;

    for (unsigned i = 0; i < 8 && name[i]; i++)
        key |= (uint64_t)(unsigned char)name[i] << (56 - 8 * i);
    return key;
}

/* The row of that name, whose key this is, in a table of n rows of `size` bytes each, or NULL. */
const void *name_find(const void *table, size_t n, size_t size, const char *name, uint64_t key);

/* Names are mostly used again: what was found for some short ones, NULL included. Begins empty. */
#define NAMES_KEPT 16
struct name_kept {
    uint64_t key;
    const void *found;
    bool dull; /* and the other tables have nothing, either */
};

/* Where the answer for a name is, if its key is there; NULL: it is one that is not kept. */
static inline struct name_kept *name_place(struct name_kept *kept, uint64_t key)
{
    return key & 0xff ? NULL : &kept[(key * 0x9e3779b97f4a7c15U) >> 60];
}

/* The same, of a table whose answers are kept. */
static inline const void *name_recall(struct name_kept *kept, const void *table, size_t n,
                                      size_t size, const char *name, uint64_t key)
{
    struct name_kept *place = name_place(kept, key);

    if (!place)
        return name_find(table, n, size, name, key);
    if (place->key != key)
        *place = (struct name_kept){key, name_find(table, n, size, name, key), false};
    return place->found;
}
