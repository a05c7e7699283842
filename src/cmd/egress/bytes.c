/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/egress/bytes.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/egress/ceilings.h"
#include "lib/base/memory.h"
#include "lib/crypto/secret.h"

/* Blocks that were used before: their pages are there. */
static char *kept[BLOCKS_KEPT];
static size_t kept_n;
static bool wipes;

void bytes_wipe(void)
{
    wipes = true;
}

static char *block_new(void)
{
    return kept_n ? kept[--kept_n] : xmalloc(BLOCK_BYTES);
}

void bytes_done(struct bytes *b)
{
    if (!b->block)
        return;
    if (wipes)
        secret_wipe(b->block, b->used);
    if (kept_n < BLOCKS_KEPT)
        kept[kept_n++] = b->block;
    else
        free(b->block);
    *b = (struct bytes){0};
}

struct str bytes_str(const struct bytes *b)
{
    return b->block ? (struct str){b->block + b->at, b->n} : (struct str){"", 0};
}

size_t bytes_room(const struct bytes *b)
{
    return BLOCK_BYTES - b->n;
}

char *bytes_end(struct bytes *b)
{
    if (!b->block)
        b->block = block_new();
    if (b->at) {
        memmove(b->block, b->block + b->at, b->n);
        b->at = 0;
    }
    return b->block + b->n;
}

void bytes_added(struct bytes *b, size_t n)
{
    assert(n <= bytes_room(b));
    b->n += n;
    b->used = b->at + b->n > b->used ? b->at + b->n : b->used;
    if (b->n == 0)
        bytes_done(b);
}

void bytes_take(struct bytes *b, size_t n)
{
    assert(n <= b->n);
    b->at += n;
    b->n -= n;
    if (b->n == 0)
        bytes_done(b);
}

size_t bytes_put(struct bytes *b, const void *from, size_t n)
{
    size_t room = bytes_room(b);

    if (n > room)
        n = room;
    if (n == 0)
        return 0;
    memcpy(bytes_end(b), from, n);
    bytes_added(b, n);
    return n;
}
