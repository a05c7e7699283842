/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* File requests to the keeper of a kept sandbox, and what comes back.
 *
 * A caller says BOX_FILE once on its connection; from then on each message is one file_request and
 * each answer one box_message: BOX_FILE, with a descriptor where the request asks for one, or
 * BOX_FAILED. Paths mean what they mean inside. Only regular files leave the sandbox as
 * descriptors, and of folders the workspace alone, to be read while the sandbox holds still.
 *
 * What comes out was in the hands of a process of the sandbox's own user: the caller believes
 * nothing of it. */

#include "lib/base/err.h"
#include "lib/base/str.h"

#include <stdint.h>

#define FILE_PATH_BYTES 4096
#define FILE_LISTING_MAX (16UL << 20)
#define FILE_ENTRIES_MAX 100000U /* of one folder */

enum file_op {
    FILE_LIST,   /* records of all entries of a folder; value 1: there are more */
    FILE_STAT,   /* one record, called "." */
    FILE_READ,   /* the file, read-only */
    FILE_CREATE, /* a new file beside path, write-only; one at a time; answers how long it may be */
    FILE_COMMIT, /* that file gets mode and time and takes its place */
    FILE_ABORT,  /* or goes away */
    FILE_REMOVE,
    FILE_MOVE, /* path to other */
    FILE_MAKE_DIR,
    FILE_MAKE_LINK, /* at path, with other as its text */
    FILE_SET,       /* mode and time of a folder */
    FILE_WORKSPACE, /* the folder a mirrored workspace is in: the only folder that leaves */
    FILE_WATCH,     /* file_event messages follow until the connection ends */
};

enum file_flag {
    FILE_FOLLOW = 1,    /* a link at the end of the path is followed */
    FILE_RECURSIVE = 2, /* REMOVE: with all that is in it; MAKE_DIR: with its parents */
    FILE_TIMES = 4,     /* mtime is to be set */
    FILE_KEEP_MODE = 8, /* COMMIT: mode of the file that is replaced, if there is one */
};

struct file_request {
    uint32_t op;
    uint32_t flags;
    uint32_t mode;
    uint32_t mtime_ns;
    int64_t mtime_s;
    char path[FILE_PATH_BYTES];
    char other[FILE_PATH_BYTES];
};

/* Followed by name_n bytes of name and target_n bytes of link text. */
struct file_record {
    uint32_t mode;
    uint32_t uid, gid;
    uint32_t mtime_ns;
    int64_t mtime_s;
    uint64_t size;
    uint16_t name_n;
    uint16_t target_n;
    uint32_t pad;
};

struct file_event {
    uint32_t mask; /* IN_* */
    uint32_t cookie;
    char name[256];
};
