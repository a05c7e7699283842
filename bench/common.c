/* SPDX-License-Identifier: Apache-2.0 */
#include "common.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

uint64_t now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

NORETURN void give_up(const char *what, const char *why)
{
    (void)fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, why);
    exit(1);
}

static int by_size(const void *a, const void *b)
{
    const uint64_t *x = a;
    const uint64_t *y = b;

    return *x < *y ? -1 : *x > *y;
}

void sort_ns(uint64_t *ns, size_t n)
{
    qsort(ns, n, sizeof *ns, by_size);
}

double ms_at(const uint64_t *ns, size_t n, unsigned permille)
{
    return (double)ns[(n - 1) * permille / 1000] / 1e6;
}
