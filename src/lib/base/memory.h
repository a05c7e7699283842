/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lib/base/str.h"

#include <stddef.h>

/* For sizes the code chose. When there is no memory left for those, the process stops with a
 * sentence: nothing useful can be done, and half of a decision is worse than none. */
void *xmalloc(size_t size);
void *xcalloc(size_t count, size_t size);
void *xrealloc(void *p, size_t size);
char *xstrdup(const char *text);

/* Many small pieces with one lifetime. Allocation never fails below the ceiling; at the
 * ceiling the process stops, so an arena's ceiling is chosen above what the inputs that feed
 * it may reach (their own ceilings are in limits.h). */
struct arena {
    struct arena_block *first;
    struct arena_adopted *adopted;
    char *at;    /* where the next piece begins */
    size_t room; /* bytes from there that it may have: of its block, and below the ceiling */
    size_t used;
    size_t max;
};

#define ARENA(ceiling) ((struct arena){.max = (ceiling)})

void arena_done(struct arena *mem);

/* Gives back what was allocated since the mark was taken, and nothing older. */
struct arena_mark {
    struct arena_block *block;
    struct arena_adopted *adopted;
    char *at;
    size_t room;
    size_t used;
};
struct arena_mark arena_mark(const struct arena *mem);
void arena_rewind(struct arena *mem, struct arena_mark mark);
#define AUTO_ARENA __attribute__((cleanup(arena_done)))

/* Whole units for each piece: what is behind it is aligned for any object. */
#define ARENA_ALIGN _Alignof(max_align_t)

void *arena_take_new(struct arena *mem, size_t size); /* for arena_take() */

/* Not zeroed: for what is filled at once. Here, because much is taken and mostly there is room. */
static inline void *arena_take(struct arena *mem, size_t size)
{
    char *p = mem->at;

    if (size - 1 >= mem->room)
        return arena_take_new(mem, size); /* nothing at all is looked at there, too */
    size = (size + ARENA_ALIGN - 1) & ~(ARENA_ALIGN - 1);
    mem->at += size;
    mem->room -= size;
    mem->used += size;
    return p;
}

void *arena_alloc(struct arena *mem, size_t size); /* zeroed, aligned for any object */
char *arena_text(struct arena *mem, struct str s); /* copy, NUL-terminated */
struct str arena_str(struct arena *mem, struct str s);
char *arena_printf(struct arena *mem, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* What xmalloc or xrealloc gave, or NULL, belongs to the arena from now on. */
void arena_adopt(struct arena *mem, void *p, size_t size);

#define arena_new(mem, type) ((type *)arena_alloc((mem), sizeof(type)))
#define arena_array(mem, type, n) ((type *)arena_alloc((mem), sizeof(type) * (n)))
