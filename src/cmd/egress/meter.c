/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/egress/meter.h"

struct meter_claim meter_claim(struct meter *meter, uint64_t bytes)
{
    if (bytes != METER_NO_END)
        meter->is_bound = true;
    return (struct meter_claim){.began = meter->paid, .kept = meter->kept, .bytes = bytes};
}

static uint64_t end_of(const struct meter_claim *claim)
{
    return claim->bytes < METER_NO_END - claim->began ? claim->began + claim->bytes : METER_NO_END;
}

void meter_bind(struct meter *meter, const struct meter_claim *(*next)(void *context),
                void *context)
{
    const struct meter_claim *claim = next(context);
    uint64_t ends = claim || !meter->is_bound ? METER_NO_END : meter->paid;

    for (; claim; claim = next(context))
        ends = end_of(claim) < ends ? end_of(claim) : ends;
    meter->ends = ends;
}

static uint64_t left_of(const struct meter *meter)
{
    if (meter->ends == METER_NO_END)
        return METER_NO_END;
    return meter->ends > meter->paid ? meter->ends - meter->paid : 0;
}

bool meter_is_spent(const struct meter *meter, const struct meter_claim *claim)
{
    return meter->kept > claim->kept && meter->paid >= end_of(claim);
}

uint64_t meters_left(const struct meters *meters)
{
    uint64_t least = METER_NO_END;

    for (size_t i = 0; i < METERS_MAX; i++)
        if (meters->of[i] && left_of(meters->of[i]) < least)
            least = left_of(meters->of[i]);
    return least;
}

void meters_pay(const struct meters *meters, uint64_t bytes)
{
    for (size_t i = 0; i < METERS_MAX; i++)
        if (meters->of[i])
            meters->of[i]->paid += bytes;
}

void meters_keep(const struct meters *meters)
{
    for (size_t i = 0; i < METERS_MAX; i++)
        if (meters->of[i] && left_of(meters->of[i]) == 0)
            meters->of[i]->kept++;
}
