/* SPDX-License-Identifier: Apache-2.0 */

/* Sandboxes whose time is over, commands that ended without their caller and requests that nobody
 * answered get their receipts while the daemon runs, not only when somebody asks; and pools are
 * filled up behind whoever took something out of them. */

#include "surface/api/api-private.h"

#include <stdio.h>
#include <uv.h>

#include "lib/base/limits.h"
#include "model/run.h"

#define SWEEP_MS 2000

struct reaper {
    struct job job; /* one at a time */
    uv_timer_t timer;
    struct api *api;
    bool is_busy; /* of the loop */
};

/* Under the rules it was asked for with. Somebody else may be at it already. */
static int refill_one(struct tenant *tenant, struct execute *execute, const char *key,
                      struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(RUN_MEMORY_MAX);
    struct pool_report report;
    struct request request;
    struct lent lent;
    size_t size = 0;
    struct run run;
    int failed;

    if (govern_pool_request(execute, &mem, key, &request, &size, err) < 0 ||
        tenant_borrow(tenant, request.policy_text, request.profile_text, &lent, err) < 0)
        return -1;
    run_init(&run);
    failed = govern_pool_refill(lent.govern, key, &run, &report, err);
    run_done(&run);
    tenant_return(tenant, &lent);
    return failed && err->code != ERR_CONFLICT ? -1 : 0;
}

static int refill(struct tenant *tenant, struct execute *execute, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(1 * MIB);
    struct words keys = {0};

    if (!tenant_wants_refill(tenant))
        return 0;
    if (execute_pool_keys(execute, &mem, &keys, err) < 0)
        return -1;
    for (size_t i = 0; i < keys.n; i++)
        if (refill_one(tenant, execute, keys.v[i], err) < 0)
            return -1;
    return 0;
}

static int sweep(void *context, struct tenant *tenant, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(1 * MIB);
    const char *policy_text = NULL, *profile_text = NULL;
    struct lent lent;
    int failed;

    (void)context;
    if (tenant_rules(tenant, &mem, &policy_text, &profile_text, err) < 0 ||
        tenant_borrow(tenant, policy_text, profile_text, &lent, err) < 0)
        return -1;
    failed = govern_sweep(lent.govern, err) < 0 ||
                     refill(tenant, govern_execute(lent.govern), err) < 0 ||
                     govern_record_expired(lent.govern, tenant_name(tenant), err) < 0
                 ? -1
                 : 0;
    tenant_return(tenant, &lent);
    return failed;
}

static void on_swept(struct http_exchange *none, void *argument)
{
    struct reaper *reaper = argument;

    (void)none;
    reaper->is_busy = false;
    api_check_stopped(reaper->api);
}

bool reaper_is_busy(const struct reaper *reaper)
{
    return reaper && reaper->is_busy;
}

static void run(struct job *job)
{
    struct reaper *reaper = (struct reaper *)job;
    struct err err;

    if (tenants_each(reaper->api->tenants, sweep, NULL, &err) < 0)
        (void)fprintf(stderr, "{\"level\":\"error\",\"event\":\"sweep\",\"code\":\"%s\"}\n",
                      err_name(err.code));
    posts_add(reaper->api->posts, 0, on_swept, reaper);
}

static void drop(struct job *job)
{
    ((struct reaper *)job)->is_busy = false;
}

static void on_time(uv_timer_t *timer)
{
    struct reaper *reaper = timer->data;
    struct err err;

    if (reaper->is_busy || reaper->api->is_stopping)
        return;
    reaper->job = (struct job){.run = run, .drop = drop, .owner = reaper};
    reaper->is_busy = jobs_take(reaper->api->look, &reaper->job, &err) == 0;
}

struct reaper *reaper_new(struct api *api)
{
    struct reaper *reaper = xcalloc(1, sizeof *reaper);

    reaper->api = api;
    (void)uv_timer_init(api->loop, &reaper->timer);
    reaper->timer.data = reaper;
    uv_unref((uv_handle_t *)&reaper->timer);
    (void)uv_timer_start(&reaper->timer, on_time, SWEEP_MS, SWEEP_MS);
    return reaper;
}

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void reaper_close(struct reaper *reaper)
{
    if (reaper)
        uv_close((uv_handle_t *)&reaper->timer, on_closed);
}
