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

/* ---- operand-fill.c: what a shell puts in place of words ---- */

/* Where one piece of a word may end: what shells and options put between names. */
#define OPERAND_BETWEEN " \t\r\n;|&<>()'\"`${}=,:@"

const char *operand_workdir(const struct run *run);
/* A variable as the command will have it; NULL: nobody knows. */
const char *operand_value(const struct run *run, struct str name);
/* 1: *out are its words with ~, $NAME and ${NAME} put in as far as they are known, quoted or not:
 * too much is found rather than too little. 0: they stay as they are. -1: that would be more than
 * is looked at. */
int operand_fill(struct arena *mem, const struct run *run, struct words *out);
