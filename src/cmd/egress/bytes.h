/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Bytes on their way through: added at one end, taken at the other, at most BLOCK_BYTES at once.
 * Empty ones hold no memory, so a connection that waits costs little. */

#include "lib/base/str.h"

struct bytes {
    char *block;
    size_t at;
    size_t n;
    size_t used; /* how far the block has ever been written to */
};

void bytes_done(struct bytes *b);
/* From now on what passed is overwritten when a block is given back. */
void bytes_wipe(void);

struct str bytes_str(const struct bytes *b);
size_t bytes_room(const struct bytes *b);
/* Where the next bytes go, bytes_room() of them. What bytes_str() gave before may have moved. */
char *bytes_end(struct bytes *b);
void bytes_added(struct bytes *b, size_t n);
void bytes_take(struct bytes *b, size_t n);
/* As many as there is room for. */
size_t bytes_put(struct bytes *b, const void *from, size_t n);
