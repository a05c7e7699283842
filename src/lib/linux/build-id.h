/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lib/base/err.h"
#include "lib/base/limits.h"

#include <sys/stat.h>

/* The first 8 bytes of a program's build id as 16 hex digits, or "unknown". */
#define BUILD_ID_BYTES 17

/* What was read of one before; all zero: nothing. */
struct build_memo {
    char path[PATH_BYTES_MAX];
    struct stat seen;
    char id[BUILD_ID_BYTES];
};

/* Of a program of ours (beside.h), into memo->id; the file is read again when it is another. */
int build_id_beside(const char *program, struct build_memo *memo, struct err *err) MUST_CHECK;
