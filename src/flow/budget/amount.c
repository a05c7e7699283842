/* SPDX-License-Identifier: Apache-2.0 */

/* Amounts, as numbers and as people write them. Nothing here overflows: a sum stops at BUDGET_MOST,
 * and products are made in 128 bits. */

#include "flow/budget/store.h"

#include <stdio.h>
#include <string.h>

__extension__ typedef unsigned __int128 wide;

#define MILLION 1000000ULL
#define RUNNING_NUMERATOR_ONE (1000ULL * (1ULL << 30)) /* millis of a CPU, bytes of a GiB */

uint64_t budget_add(uint64_t a, uint64_t b)
{
    return a >= BUDGET_MOST || b >= BUDGET_MOST - a ? BUDGET_MOST : a + b;
}

uint64_t budget_less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* Millionths a second, times RUNNING_NUMERATOR_ONE: below 2^128 for any memory and price there is.
 */
static wide rate_of(const struct budget_rate *rate)
{
    return (wide)rate->cpu_millis * rate->prices.vcpu_second * (1ULL << 30) +
           (wide)rate->memory_bytes * rate->prices.gib_second * 1000U;
}

uint64_t rate_cost(const struct budget_rate *rate, uint64_t wall_us)
{
    const wide unit = (wide)RUNNING_NUMERATOR_ONE * MILLION;
    wide each = rate_of(rate);
    wide cost;

    if (each && wall_us > (~(wide)0 - unit) / each)
        return BUDGET_MOST;
    cost = (each * wall_us + unit - 1) / unit;
    return budget_add(rate->prices.run, cost < BUDGET_MOST ? (uint64_t)cost : BUDGET_MOST);
}

uint64_t rate_cpu_us(const struct budget_rate *rate, uint64_t wall_us)
{
    wide cpu_us = ((wide)wall_us * rate->cpu_millis + 999) / 1000;

    return cpu_us < BUDGET_MOST ? (uint64_t)cpu_us : BUDGET_MOST;
}

uint64_t rate_wall_us(const struct budget_rate *rate, uint64_t cost)
{
    const wide unit = (wide)RUNNING_NUMERATOR_ONE * MILLION;
    uint64_t left = budget_less(cost, rate->prices.run);
    wide each = rate_of(rate);
    wide time;

    if (each == 0)
        return BUDGET_NO_END;
    time = (wide)left * unit / each;
    return time < BUDGET_NO_END ? (uint64_t)time : BUDGET_NO_END;
}

/* ---- in words ---- */

static const char *time_text(struct arena *mem, uint64_t us)
{
    uint64_t ms = us / 1000;

    if (us < MILLION)
        return arena_printf(mem, "%llums", (unsigned long long)ms);
    if (ms % 1000)
        return arena_printf(mem, "%llu.%03llus", (unsigned long long)(ms / 1000),
                            (unsigned long long)(ms % 1000));
    if (ms % 60000)
        return arena_printf(mem, "%llus", (unsigned long long)(ms / 1000));
    return ms % 3600000 ? arena_printf(mem, "%llum", (unsigned long long)(ms / 60000))
                        : arena_printf(mem, "%lluh", (unsigned long long)(ms / 3600000));
}

static const char *size_text(struct arena *mem, uint64_t bytes)
{
    static const char units[] = "KMGT";

    for (size_t i = sizeof units - 1; i > 0; i--)
        if (bytes >> (10 * i) && bytes % (1ULL << (10 * i)) == 0)
            return arena_printf(mem, "%llu%c", (unsigned long long)(bytes >> (10 * i)),
                                units[i - 1]);
    return arena_printf(mem, "%llu bytes", (unsigned long long)bytes);
}

const char *budget_amount_text(struct arena *mem, enum budget_kind kind, uint64_t amount)
{
    switch (kind) {
    case BUDGET_WALL:
    case BUDGET_CPU:
        return time_text(mem, amount);
    case BUDGET_EGRESS:
        return size_text(mem, amount);
    case BUDGET_COST:
        return arena_printf(mem, "%llu.%06llu", (unsigned long long)(amount / MILLION),
                            (unsigned long long)(amount % MILLION));
    case BUDGET_RUNS:
    case BUDGET_KINDS:
        break;
    }
    return arena_printf(mem, "%llu", (unsigned long long)amount);
}
