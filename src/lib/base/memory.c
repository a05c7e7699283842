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
    size_t used;
    size_t cap;
    _Alignas(max_align_t) char bytes[];
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

void arena_done(struct arena *mem)
{
    while (mem->first) {
        struct arena_block *block = mem->first;

        mem->first = block->next;
        free(block);
    }
    mem->used = 0;
}

static struct arena_block *block_new(struct arena *mem, size_t size)
{
    size_t cap = size > BLOCK_BYTES ? size : BLOCK_BYTES;
    struct arena_block *block = xmalloc(sizeof *block + cap);

    block->cap = cap;
    block->used = 0;
    block->next = mem->first;
    mem->first = block;
    return block;
}

void *arena_alloc(struct arena *mem, size_t size)
{
    const size_t align = _Alignof(max_align_t);
    struct arena_block *block = mem->first;
    void *p;

    if (size > mem->max || mem->used > mem->max - size)
        out_of_memory(size);
    size = (size + align - 1) & ~(align - 1);
    if (!block || block->cap - block->used < size)
        block = block_new(mem, size);
    p = block->bytes + block->used;
    block->used += size;
    mem->used += size;
    return memset(p, 0, size);
}

char *arena_text(struct arena *mem, struct str s)
{
    char *copy = arena_alloc(mem, s.n + 1);

    if (s.n)
        memcpy(copy, s.p, s.n);
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
