/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to flow/approve: files and folders by content, within bounds. */

#include <sys/stat.h>

#include "flow/approve/approve.h"
#include "lib/base/limits.h"

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

/* ---- operand-way.c: what somebody can change, and the way there ---- */

/* A place of the sandbox, as it is made; later ones lie over earlier ones. */
struct operand_place {
    char *target;
    int fd;       /* of what is shown there; -1: through the root */
    bool is_open; /* somebody can change what is there */
};

struct operand_view {
    int root_fd;                         /* of a kept sandbox, or of the machine; -1: none */
    bool is_host;                        /* of the machine: for what runs without walls */
    const struct operand_reader *reader; /* inside of one, instead; or NULL */
    const char *workdir;                 /* of the command that is looked at */
    struct operand_place *places;
    size_t n;
};

/* The last that is at the path or above it, or NULL. */
const struct operand_place *operand_place_of(const struct operand_view *view, const char *path);
/* Whether there is one that somebody can change below the path; and whether there is any. Without,
 * there is nothing to look for, however many words there are. */
bool operand_place_below(const struct operand_view *view, const char *path);
bool operand_has_place(const struct operand_view *view);

struct operand_way {
    char path[PATH_BYTES_MAX];     /* without links, so far */
    char rest[2 * PATH_BYTES_MAX]; /* still to go */
    unsigned links;
    int fd; /* of path; -1: not there, or in nobody's hands */
    struct stat st;
    const char *why; /* it cannot be told where it leads */
};
/* way->fd is what the path leads to, if that is somewhere somebody could change it; the caller
 * closes it. */
void operand_go(const struct operand_view *view, const char *path, struct operand_way *way);

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
