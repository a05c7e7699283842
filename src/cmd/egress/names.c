/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/egress/names.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/egress/ceilings.h"
#include "lib/base/memory.h"

#define SLOTS (2U * NAMES_MAX) /* of the index by name; a power of two */

/* The place of a name is its address' number modulo the table: whoever takes a place takes it from
 * the name that had it before. */
struct entry {
    char *name;
    uint32_t number; /* of the address within the block; 0: free */
};

struct names {
    struct entry entries[NAMES_MAX];
    uint32_t next;
    uint16_t index[SLOTS]; /* 0: free, else the place and 1; those of forgotten names stay */
    uint32_t stale;        /* of those */
};

_Static_assert(NAMES_MAX < UINT16_MAX, "a place fits the index");

struct names *names_new(void)
{
    struct names *names = xcalloc(1, sizeof *names);

    names->next = NAMES_FIRST;
    return names;
}

void names_free(struct names *names)
{
    if (!names)
        return;
    for (size_t i = 0; i < NAMES_MAX; i++)
        free(names->entries[i].name);
    free(names);
}

static uint32_t hash_name(struct str name)
{
    uint32_t hash = 2166136261U; /* FNV-1a */

    for (size_t i = 0; i < name.n; i++)
        hash = (hash ^ (unsigned char)name.p[i]) * 16777619U;
    return hash;
}

static const struct entry *look_up(const struct names *names, struct str name)
{
    uint32_t at = hash_name(name) & (SLOTS - 1);

    for (; names->index[at]; at = (at + 1) & (SLOTS - 1)) {
        const struct entry *entry = &names->entries[names->index[at] - 1U];

        if (entry->name && str_is(name, entry->name))
            return entry;
    }
    return NULL;
}

static void put_index(struct names *names, size_t place)
{
    uint32_t at = hash_name(str_of(names->entries[place].name)) & (SLOTS - 1);

    while (names->index[at])
        at = (at + 1) & (SLOTS - 1);
    names->index[at] = (uint16_t)(place + 1);
}

/* Entries of forgotten names are cleared out together, before they fill the index. */
static void rebuild_index(struct names *names)
{
    memset(names->index, 0, sizeof names->index);
    names->stale = 0;
    for (size_t i = 0; i < NAMES_MAX; i++)
        if (names->entries[i].name)
            put_index(names, i);
}

static const struct entry *remember(struct names *names, struct str name)
{
    uint32_t number = names->next;
    struct entry *entry = &names->entries[number % NAMES_MAX];

    names->next = number == NAMES_LAST ? NAMES_FIRST : number + 1;
    if (entry->name) {
        free(entry->name);
        names->stale++;
    }
    entry->name = xmalloc(name.n + 1);
    memcpy(entry->name, name.p, name.n);
    entry->name[name.n] = '\0';
    entry->number = number;
    if (names->stale >= NAMES_MAX / 2)
        rebuild_index(names);
    else
        put_index(names, number % NAMES_MAX);
    return entry;
}

void names_give(struct names *names, struct str name, unsigned char out[4])
{
    const struct entry *entry = look_up(names, name);

    assert(name.n > 0);
    if (!entry)
        entry = remember(names, name);
    out[0] = 198;
    out[1] = (unsigned char)(18 + (entry->number >> 16));
    out[2] = (unsigned char)(entry->number >> 8);
    out[3] = (unsigned char)entry->number;
}

bool names_is_ours(const unsigned char address[4])
{
    return address[0] == 198 && (address[1] == 18 || address[1] == 19);
}

const char *names_find(const struct names *names, const unsigned char address[4])
{
    uint32_t number;
    const struct entry *entry;

    if (!names_is_ours(address))
        return NULL;
    number = (uint32_t)(address[1] - 18) << 16 | (uint32_t)address[2] << 8 | address[3];
    entry = &names->entries[number % NAMES_MAX];
    return entry->name && entry->number == number ? entry->name : NULL;
}
