/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lib/shell/shell.h"

/* A part of an argument vector: no NULL behind it. */
struct slice {
    const char *const *v;
    size_t n;
};

static inline const char *program_base(const char *program) /* behind the last slash */
{
    return shell_base(program);
}
