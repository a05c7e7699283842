/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <linux/filter.h>
#include <stddef.h>

/* The same filter, smaller: for filters-export.c, while Brig is built.
 *
 * libseccomp compares every call number it was told about. Neighbours with the same answer can
 * share one comparison: what is left is a search among ranges, a quarter of the instructions. The
 * kernel translates a filter whenever it is loaded, so a sandbox starts earlier by as much.
 *
 * The given filter stays the judge: its answer is worked out for every possible call number, and
 * what depends on arguments is copied from it. The result is compared with it afterwards over all
 * numbers, and over arguments around every constant in it; a difference ends the build.
 *
 * Returns how many instructions were written to out, at most `most`; 0: it cannot be done, and
 * *why says why. */
size_t filter_shrink(const struct sock_filter *from, size_t n, struct sock_filter *out, size_t most,
                     const char **why);
