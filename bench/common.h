/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What every program here needs: a clock, an end, and the order of its samples. */

#include "lib/base/attrs.h"

#include <stddef.h>
#include <stdint.h>

uint64_t now_ns(void);
/* "NAME-OF-THE-PROGRAM: what: why", and the end. */
NORETURN void give_up(const char *what, const char *why);
void sort_ns(uint64_t *ns, size_t n);
/* Of sorted ones: so many thousandths are no longer than this. */
double ms_at(const uint64_t *ns, size_t n, unsigned permille);
