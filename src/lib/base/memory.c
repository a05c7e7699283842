/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/memory.h"

#include "lib/base/attrs.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define BLOCK_BYTES 4096

struct arena_block {
    struct arena_block *next;
    _Alignas(max_align_t) char bytes[];
};

struct arena_adopted {
    struct arena_adopted *next;
    void *p;
};

static NORETURN void out_of_memory(size_t size)
{
    (void)fprintf(stderr, "brig: out of memory: %zu bytes were asked for\n", size);
    abort();
}

void *xmalloc(size_t size)
{
    void *p = malloc(size ? size : 1);

    if (!p)
        out_of_memory(size);
    return p;
}

void *xcalloc(size_t count, size_t size)
{
    void *p = calloc(count ? count : 1, size ? size : 1);

    if (!p)
        out_of_memory(size);
    return p;
}

void *xrealloc(void *p, size_t size)
{
    void *grown = realloc(p, size ? size : 1);

    if (!grown)
        out_of_memory(size);
    return grown;
}

char *xstrdup(const char *text)
{
    size_t n = strlen(text) + 1;

    return memcpy(xmalloc(n), text, n);
}

struct arena_mark arena_mark(const struct arena *mem)
{
    return (struct arena_mark){mem->first, mem->adopted, mem->at, mem->room, mem->used};
}

void arena_rewind(struct arena *mem, struct arena_mark mark)
{
    for (; mem->adopted != mark.adopted; mem->adopted = mem->adopted->next)
        free(mem->adopted->p);
    while (mem->first != mark.block) {
        struct arena_block *block = mem->first;

        mem->first = block->next;
        free(block);
    }
    mem->at = mark.at;
    mem->room = mark.room;
    mem->used = mark.used;
}

void arena_done(struct arena *mem)
{
    arena_rewind(mem, (struct arena_mark){0});
}

static void *block_new(struct arena *mem, size_t cap)
{
    struct arena_block *block = xmalloc(sizeof *block + cap);

    block->next = mem->first;
    mem->first = block;
    return block->bytes;
}

/* What is taken without another look stays below the ceiling. */
static void lower_room(struct arena *mem)
{
    size_t left = mem->used < mem->max ? mem->max - mem->used : 0;

    left &= ~(ARENA_ALIGN - 1);
    mem->room = mem->room < left ? mem->room : left;
}

void *arena_take_new(struct arena *mem, size_t size)
{
    size_t cap;
    char *p;

    if (size > mem->max || mem->used > mem->max - size)
        out_of_memory(size);
    if (!size && mem->first)
        return mem->at;
    size = (size + ARENA_ALIGN - 1) & ~(ARENA_ALIGN - 1);
    cap = size > BLOCK_BYTES ? size : BLOCK_BYTES;
    p = block_new(mem, cap);
    mem->at = p + size;
    mem->room = cap - size;
    mem->used += size;
    lower_room(mem);
    return p;
}

void *arena_alloc(struct arena *mem, size_t size)
{
    return memset(arena_take(mem, size), 0, size);
}

void arena_adopt(struct arena *mem, void *p, size_t size)
{
    struct arena_adopted *adopted;

    if (!p)
        return;
    adopted = arena_new(mem, struct arena_adopted);
    if (size > mem->max || mem->used > mem->max - size)
        out_of_memory(size);
    *adopted = (struct arena_adopted){mem->adopted, p};
    mem->adopted = adopted;
    mem->used += size;
    lower_room(mem);
}

char *arena_text(struct arena *mem, struct str s)
{
    char *copy = arena_take(mem, s.n + 1);

    if (s.n)
        memcpy(copy, s.p, s.n);
    copy[s.n] = '\0';
    return copy;
}

struct str arena_str(struct arena *mem, struct str s)
{
    return (struct str){arena_text(mem, s), s.n};
}

char *arena_printf(struct arena *mem, const char *fmt, ...)
{
    va_list args;
    char *text;
    int n;

    va_start(args, fmt);
    n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (n < 0)
        abort();
    text = arena_alloc(mem, (size_t)n + 1);
    va_start(args, fmt);
    (void)vsnprintf(text, (size_t)n + 1, fmt, args);
    va_end(args);
    return text;
}
