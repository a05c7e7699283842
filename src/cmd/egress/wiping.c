/* SPDX-License-Identifier: Apache-2.0 */

/* The linker leads every call of free() and realloc() in this program, and in the libraries it
 * contains, to here (--wrap). */

#include "cmd/egress/wiping.h"

#include <malloc.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/egress/bytes.h"
#include "lib/crypto/secret.h"

void __real_free(void *p);
void *__real_realloc(void *p, size_t n);
void __wrap_free(void *p);
void *__wrap_realloc(void *p, size_t n);

static bool wipes;

void wiping_begin(void)
{
    wipes = true;
    bytes_wipe();
}

void __wrap_free(void *p)
{
    if (p && wipes)
        secret_wipe(p, malloc_usable_size(p));
    __real_free(p);
}

/* What moves leaves a copy behind. */
void *__wrap_realloc(void *p, size_t n)
{
    size_t had = p && wipes ? malloc_usable_size(p) : 0;
    void *moved;

    if (had == 0 || n <= had)
        return __real_realloc(p, n);
    moved = malloc(n);
    if (!moved)
        return NULL;
    memcpy(moved, p, had);
    __wrap_free(p);
    return moved;
}
