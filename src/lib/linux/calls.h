/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lib/base/err.h"

#include <stddef.h>

/* From now on this process, all of its threads and its children make these system calls and no
 * others: the rest is refused with EPERM, and so is memory that is both new and executable. Another
 * architecture's calls end the process. Needs no_new_privs. */
int calls_allow_only(const int *numbers, size_t n, struct err *err) MUST_CHECK;
