/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lib/base/err.h"

#include <stdint.h>

/* Landlock, with the names of all ABIs up to 7: the C library's headers end at 2. */

enum landlock_right {
    LANDLOCK_EXECUTE = 1 << 0,
    LANDLOCK_WRITE_FILE = 1 << 1,
    LANDLOCK_READ_FILE = 1 << 2,
    LANDLOCK_READ_DIR = 1 << 3,
    LANDLOCK_REMOVE_DIR = 1 << 4,
    LANDLOCK_REMOVE_FILE = 1 << 5,
    LANDLOCK_MAKE_CHAR = 1 << 6,
    LANDLOCK_MAKE_DIR = 1 << 7,
    LANDLOCK_MAKE_REG = 1 << 8,
    LANDLOCK_MAKE_SOCK = 1 << 9,
    LANDLOCK_MAKE_FIFO = 1 << 10,
    LANDLOCK_MAKE_BLOCK = 1 << 11,
    LANDLOCK_MAKE_SYM = 1 << 12,
    LANDLOCK_REFER = 1 << 13,     /* ABI 2 */
    LANDLOCK_TRUNCATE = 1 << 14,  /* ABI 3 */
    LANDLOCK_IOCTL_DEV = 1 << 15, /* ABI 5 */
};

#define LANDLOCK_READ (LANDLOCK_READ_FILE | LANDLOCK_READ_DIR)
/* Everything that changes a tree, but never a device node. */
#define LANDLOCK_WRITE                                                                             \
    (LANDLOCK_WRITE_FILE | LANDLOCK_REMOVE_DIR | LANDLOCK_REMOVE_FILE | LANDLOCK_MAKE_DIR |        \
     LANDLOCK_MAKE_REG | LANDLOCK_MAKE_SOCK | LANDLOCK_MAKE_FIFO | LANDLOCK_MAKE_SYM |             \
     LANDLOCK_REFER | LANDLOCK_TRUNCATE)
/* What can be granted on something that is not a folder. */
#define LANDLOCK_ON_FILE                                                                           \
    (LANDLOCK_EXECUTE | LANDLOCK_WRITE_FILE | LANDLOCK_READ_FILE | LANDLOCK_TRUNCATE |             \
     LANDLOCK_IOCTL_DEV)

#define LANDLOCK_ABI_LEAST 2U /* below it, files could not be linked or renamed across folders */
#define LANDLOCK_ABI_KNOWN 7U /* the newest whose rights are listed above */

/* The ABI of this kernel, at most LANDLOCK_ABI_KNOWN; 0 when Landlock is absent or off. */
unsigned landlock_abi(void);

/* A ruleset that denies every file right of the ABI and, from ABI 6, signals and abstract
 * sockets to anything outside; then what landlock_allow() grants beneath path_fd; then it binds
 * this process and its children for good. Needs no_new_privs. */
int landlock_open(unsigned abi, int *out_fd, struct err *err) MUST_CHECK;
int landlock_allow(int ruleset_fd, unsigned abi, int path_fd, uint64_t rights,
                   struct err *err) MUST_CHECK;
int landlock_enforce(int ruleset_fd, struct err *err) MUST_CHECK;
