/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lib/base/err.h"

#include <stddef.h>

/* The path of another program of ours: from the same build, beside the running one or where the
 * build or the package puts it. Whoever can change it can be whatever we start, so it must be
 * ours or root's alone. ERR_UNAVAILABLE when there is none. */
int program_beside(const char *name, char *out, size_t size, struct err *err) MUST_CHECK;
