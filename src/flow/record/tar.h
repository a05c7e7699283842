/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to flow/record: the tar files evidence travels in. Written in one way only (POSIX ustar,
 * regular files, mode 0644, owner root, time 0), so the same content is the same bytes; read only
 * when it is written in that way. */

#include "lib/base/buf.h"

#define TAR_BLOCK 512
#define TAR_NAME_MAX 99

/* The head of one file, and what stands behind its content. */
int tar_head(const char *name, uint64_t size, char out[TAR_BLOCK], struct err *err) MUST_CHECK;
size_t tar_padding(uint64_t size);

struct tar_file {
    struct str name;
    struct str content;
};

/* The next file of *rest, which moves on. 1: *out; 0: the archive has ended as it should;
 * -1: ERR_INVALID says what is wrong. */
int tar_next(struct str *rest, struct tar_file *out, struct err *err) MUST_CHECK;
