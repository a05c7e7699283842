/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lib/base/buf.h"

/* Bytes that another process of ours is to read, in a file without a name that nobody can change
 * any more, not even who made it. */
int memory_file_make(const char *name, struct str bytes, int *out_fd, struct err *err) MUST_CHECK;

/* Reads one that came from elsewhere, up to the buffer's ceiling. One that is not a memory file or
 * not sealed against every change is refused: what was read is what it is. */
int memory_file_read(int fd, struct buf *out, struct err *err) MUST_CHECK;
