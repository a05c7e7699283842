/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lib/base/err.h"

#include <stddef.h>
#include <sys/types.h>

/* The path of another program of ours: from the same build, beside the running one or where the
 * build or the package puts it. Whoever can change it can be whatever we start, so it must be
 * ours or root's alone. ERR_UNAVAILABLE when there is none. */
int program_beside(const char *name, char *out, size_t size, struct err *err) MUST_CHECK;

/* Starts such a program. It is born with these descriptors as 0, 1, 2 and so on, whatever numbers
 * they have here, and with no other; with every signal as the kernel has it; and with nothing in
 * its environment but env. argv ends in NULL and begins with the name; env may be NULL. */
#define PROGRAM_FDS_MAX 640
int program_start(const char *const *argv, const char *const *env, const int *fds, size_t n,
                  pid_t *out, struct err *err) MUST_CHECK;
