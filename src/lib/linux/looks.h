/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* Places of this machine as they were when something was made from them, so that it need not be
 * made again while they stay as they were. */

#define LOOKS_MAX 64

enum look_for {
    LOOK_WHICH,   /* which object is there, or that there is none */
    LOOK_CONTENT, /* and that it has not been changed: of a folder, which names are in it */
};

struct look {
    const char *path; /* borrowed */
    enum look_for what;
    bool found;
    uint64_t device;
    uint64_t inode;
    uint32_t mode;
    uint64_t special; /* which device a device node is */
    int64_t size;
    struct timespec modified;
    struct timespec changed;
};

struct looks {
    struct look of[LOOKS_MAX];
    size_t n;
    bool unsettled; /* something changed so recently that a further change might not show */
    time_t now_s;   /* when they were taken */
};

void looks_begin(struct looks *looks);
/* Looks at a place, through links. Before it is used: what happens to it afterwards then shows. */
void looks_add(struct looks *looks, const char *path, enum look_for what);
/* Whether every place is as it was. False also when that cannot be told. */
bool looks_hold(const struct looks *looks);
