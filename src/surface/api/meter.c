/* SPDX-License-Identifier: Apache-2.0 */

/* Shares: so many requests a second, so many at once, for each token and each peer. */

#include "surface/api/api-private.h"

#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/limits.h"

struct meter {
    char who[PRINCIPAL_BYTES];
    uint64_t seen_us;
    uint64_t credit_us; /* a request costs 1 s divided by the rate */
    unsigned under_way;
};

static struct meter *find(struct api *api, const char *who)
{
    for (size_t i = 0; i < api->meter_n; i++)
        if (strcmp(api->meters[i].who, who) == 0)
            return &api->meters[i];
    return NULL;
}

/* Those that have their whole share again need not be remembered. */
static void forget_rested(struct api *api, uint64_t now)
{
    size_t kept = 0;

    for (size_t i = 0; i < api->meter_n; i++)
        if (api->meters[i].under_way || now - api->meters[i].seen_us < METER_BURST_US)
            api->meters[kept++] = api->meters[i];
    api->meter_n = kept;
}

static struct meter *add(struct api *api, const char *who, uint64_t now)
{
    struct meter *meter;

    if (api->meter_n == api->meter_room) {
        forget_rested(api, now);
        if (api->meter_n * 2 >= api->meter_room) {
            api->meter_room = api->meter_room ? api->meter_room * 2 : 16;
            api->meters = xrealloc(api->meters, api->meter_room * sizeof *api->meters);
        }
    }
    meter = &api->meters[api->meter_n++];
    *meter = (struct meter){.seen_us = now, .credit_us = METER_BURST_US};
    memcpy(meter->who, who, strlen(who) + 1);
    return meter;
}

int meter_enter(struct api *api, const struct token *token, const char *who, struct err *err)
{
    uint64_t now = clock_us();
    unsigned rate = token && token->per_second ? token->per_second : REQUESTS_PER_SECOND;
    unsigned at_once = token && token->at_once ? token->at_once : REQUESTS_AT_ONCE;
    uint64_t cost = 1000000U / rate ? 1000000U / rate : 1;
    struct meter *meter = find(api, who);

    if (!meter)
        meter = add(api, who, now);
    meter->credit_us += now - meter->seen_us;
    if (meter->credit_us > METER_BURST_US)
        meter->credit_us = METER_BURST_US;
    meter->seen_us = now;
    if (meter->under_way >= at_once)
        return err_set(err, ERR_LIMIT, "%u requests of this token are under way already", at_once);
    if (meter->credit_us < cost)
        return err_set(err, ERR_LIMIT, "more than %u requests a second with this token", rate);
    meter->credit_us -= cost;
    meter->under_way++;
    return 0;
}

void meter_leave(struct api *api, const char *who)
{
    struct meter *meter = find(api, who);

    if (meter && meter->under_way)
        meter->under_way--;
}
