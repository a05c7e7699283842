/* SPDX-License-Identifier: Apache-2.0 */
#include "flow/execute/execute.h"

#include "flow/execute/local.h"
#include "lib/base/memory.h"

#include <string.h>

static const struct backend *const backends[] = {&backend_local, &backend_mock};

int execute_open(const char *state_dir, struct execute **out, struct err *err)
{
    struct execute *execute = xcalloc(1, sizeof *execute);

    (void)err;
    execute->turn_fd = execute->orders_fd = -1;
    execute->state_dir_owned = xstrdup(state_dir);
    execute->state_dir = execute->state_dir_owned;
    execute->run_lock_fd = execute->program_fd = -1;
    execute->memory = execute->memory_owned = offer_memory_new();
    *out = execute;
    return 0;
}

void execute_use(struct execute *execute, struct spawner *spawner)
{
    execute->spawner = spawner;
}

void execute_recall(struct execute *execute, struct offer_memory *memory)
{
    execute->memory = memory;
}

const char *execute_state_dir(const struct execute *execute)
{
    return execute->state_dir;
}

void execute_free(struct execute *execute)
{
    if (!execute)
        return;
    local_free(execute->local);
    local_free(execute->claim);
    joints_free(execute->joints);
    execute_turn_end(execute);
    if (execute->program_fd >= 0)
        (void)close(TAKE_FD(execute->program_fd));
    spawner_free(execute->spawner_owned);
    run_lock_drop(execute);
    offer_memory_free(execute->memory_owned);
    free(execute->groups);
    free(execute->outers);
    free(execute->state_dir_owned);
    free(execute);
}

const char *const *execute_providers(void)
{
    static const char *names[COUNT(backends) + 1];

    for (size_t i = 0; i < COUNT(backends); i++)
        names[i] = backends[i]->name;
    return names;
}

int execute_offer(struct execute *execute, struct run *run, struct err *err)
{
    const char *name = run->action.provider;

    if (run->action.kind == ACTION_ELEVATE) {
        execute->backend = &backend_host;
        return backend_host.offer(execute, run, err);
    }
    for (size_t i = 0; i < COUNT(backends); i++)
        if (strcmp(backends[i]->name, name) == 0) {
            execute->backend = backends[i];
            run->offer.provider = backends[i]->name;
            return backends[i]->offer(execute, run, err);
        }
    for (size_t i = 0; provider_names[i]; i++)
        if (strcmp(provider_names[i], name) == 0)
            return err_set(err, ERR_UNAVAILABLE,
                           "provider %s is not part of this version; use local or mock", name);
    return err_set(err, ERR_NOT_FOUND, "there is no provider \"%.100s\"; there are local and mock",
                   name);
}

int execute_begin(struct execute *execute, struct run *run, struct err *err)
{
    return execute->backend->begin(execute, run, err);
}

int execute_park(struct execute *execute, struct run *run, struct err *err)
{
    return execute->backend->park(execute, run, err);
}

int execute_release(struct execute *execute, struct run *run, const struct streams *streams,
                    struct err *err)
{
    if (streams->is_released)
        atomic_store(streams->is_released, true);
    return execute->backend->release(execute, run, streams, err);
}

int execute_change(struct execute *execute, struct run *run, struct err *err)
{
    return local_change(execute, run, err);
}

bool execute_wants_refill(const struct execute *execute)
{
    return execute->wants_refill;
}

void execute_drop(struct execute *execute, struct run *run)
{
    if (execute->backend)
        execute->backend->drop(execute, run);
}
