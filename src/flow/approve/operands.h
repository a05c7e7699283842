/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to flow/approve: files and folders by content, within bounds. */

#include "flow/approve/approve.h"

#include "lib/base/limits.h"

struct stat;

/* What may still be read and listed, for all operands of a command together. */
struct operand_bounds {
    uint64_t bytes;
    uint64_t entries;
};
#define OPERAND_BOUNDS ((struct operand_bounds){512 * MIB, 4096})
#define OPERAND_FILE_MAX (256 * MIB)

/* Fills all but the path of *out for what the O_PATH descriptor shows; why says what is not bound.
 */
void operand_hash(struct arena *mem, int fd, const struct stat *st, struct operand_bounds *left,
                  struct operand *out);
