/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Who a process of the sandbox is, seen from outside through its folder in /proc: the content of
 * the file it runs, never a name it gives itself. */

#include "lib/egress/handover.h"

#include <sys/stat.h>
#include <sys/types.h>

/* ---- box-content.c: the hash of a file's content, remembered while the file stays the same ----
 */

#define CONTENT_FILE_MAX (512UL << 20) /* a larger one has no hash */
#define CONTENT_SETS 64
#define CONTENT_WAYS 4

struct content {
    uint64_t device, inode, size;
    struct timespec modified, changed;
    struct hash hash;
};

struct contents {
    struct content of[CONTENT_SETS][CONTENT_WAYS]; /* size 0: nothing there */
    uint8_t next[CONTENT_SETS];                    /* which one goes when all are taken */
    uint64_t window_us;                            /* since when the bytes below were hashed */
    uint64_t hashed_bytes;
};

/* The file of this name, of which st is what was just seen; false: it has no hash, because it
 * cannot be read, is too large, changed meanwhile, or so much was hashed of late that it is
 * enough. */
bool content_hash(struct contents *contents, int dir_fd, const char *name, const struct stat *st,
                  struct hash *out);

/* ---- box-script.c ---- */

/* What its arguments claim an interpreter runs, as a path inside: SCRIPT_NONE when the program is
 * no interpreter that we know, SCRIPT_UNKNOWN when it runs something that is no file. */
enum script { SCRIPT_NONE, SCRIPT_UNKNOWN, SCRIPT_CLAIMED };
enum script script_claim(struct str exe_path, struct str cmdline, struct str *out);

/* ---- box-identity.c ---- */

#define IDENTITY_TEXT_BYTES (HANDOVER_PATH_MAX + 16) /* " (deleted)", and one byte too many */

struct identity {
    struct handover_caller caller; /* its paths are in the texts */
    char texts[HANDOVER_ANCESTORS_MAX + 2][IDENTITY_TEXT_BYTES];
    struct contents contents;
    pid_t first;     /* PID 1 of the sandbox */
    struct stat box; /* our own program, which others of ours run in there */
};

void identity_init(struct identity *identity, pid_t first);
/* Fills the caller's programs and flags. -1: the process cannot be looked at. */
int identity_see(struct identity *identity, pid_t pid);
