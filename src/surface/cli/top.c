/* SPDX-License-Identifier: Apache-2.0 */

/* brig sandbox top: what kept sandboxes use, measured twice: a share of processor time is one
 * between two moments. */

#include "surface/cli/sandbox.h"

#include "lib/base/clock.h"
#include "lib/json/json.h"
#include "model/run.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

#define SHOWN_MAX 1024U
#define ONCE_PAUSE_MS 200
#define LIVE_PAUSE_MS 1000
#define NAME_BYTES 257
#define LOOK_MEMORY_MAX (16UL << 20)

struct sample {
    char id[ID_BYTES];
    char name[NAME_BYTES];
    struct kept_state state;
    uint64_t cpu_us;
    uint64_t at_us;
};

struct samples {
    struct invocation *inv;
    struct govern *govern;
    const char *wanted; /* only this one, or NULL */
    struct sample of[SHOWN_MAX];
    size_t n;
};

static int add_cpu(void *context, const struct kept_process *process, struct err *err)
{
    uint64_t *cpu_us = context;

    (void)err;
    *cpu_us += process->cpu_us;
    return 0;
}

/* A sandbox whose time nobody counts as a whole is the sum of the processes it has. */
static uint64_t cpu_of(struct govern *govern, const char *id, const struct kept_state *state)
{
    uint64_t cpu_us = 0;
    struct err gone; /* it may end while we look */

    if (state->cpu_us)
        return state->cpu_us;
    return execute_kept_processes(govern_execute(govern), id, add_cpu, &cpu_us, &gone) < 0 ? 0
                                                                                           : cpu_us;
}

static int on_sandbox(void *context, const char *id, struct err *err)
{
    struct samples *samples = context;
    struct sample *sample = &samples->of[samples->n];
    struct config config;
    struct err gone; /* it may end while we look; then it is not there */

    (void)err;
    if ((samples->wanted && strcmp(samples->wanted, id) != 0) || samples->n == SHOWN_MAX ||
        sandbox_look(samples->inv, samples->govern, id, &config, &sample->state, &gone) < 0)
        return 0;
    (void)snprintf(sample->id, sizeof sample->id, "%s", config.id);
    (void)snprintf(sample->name, sizeof sample->name, "%s", config.request.name);
    sample->cpu_us = cpu_of(samples->govern, id, &sample->state);
    sample->at_us = clock_us();
    samples->n++;
    return 0;
}

/* Percent of one processor since the sample before; 0 for one that was not there. */
static unsigned percent(const struct samples *before, const struct sample *now)
{
    for (size_t i = 0; i < before->n; i++)
        if (strcmp(before->of[i].id, now->id) == 0 && now->at_us > before->of[i].at_us &&
            now->cpu_us > before->of[i].cpu_us)
            return (unsigned)((now->cpu_us - before->of[i].cpu_us) * 100U /
                              (now->at_us - before->of[i].at_us));
    return 0;
}

static int print_json(struct invocation *inv, const struct samples *before,
                      const struct samples *now)
{
    struct json *result = json_object(&inv->mem);
    struct json *list = json_array(&inv->mem);

    for (size_t i = 0; i < now->n; i++) {
        const struct sample *sample = &now->of[i];
        struct json *object = json_object(&inv->mem);

        json_put_text(&inv->mem, object, "sandbox_id", sample->id);
        json_put_text(&inv->mem, object, "name", sample->name);
        json_put_text(&inv->mem, object, "state", kept_state_name(&sample->state));
        json_put_int(&inv->mem, object, "cpu_percent", percent(before, sample));
        json_put_int(&inv->mem, object, "cpu_us", (int64_t)sample->cpu_us);
        json_put_int(&inv->mem, object, "memory_bytes", (int64_t)sample->state.memory_bytes);
        json_put_int(&inv->mem, object, "peak_memory_bytes",
                     (int64_t)sample->state.peak_memory_bytes);
        json_put_int(&inv->mem, object, "processes", (int64_t)sample->state.processes);
        json_put_int(&inv->mem, object, "disk_bytes", (int64_t)sample->state.disk_bytes);
        json_put_int(&inv->mem, object, "disk_read_bytes", (int64_t)sample->state.read_bytes);
        json_put_int(&inv->mem, object, "disk_written_bytes", (int64_t)sample->state.written_bytes);
        json_push(list, object);
    }
    json_put(result, "sandboxes", list);
    return cli_json(inv, result);
}

static void print_table(const struct invocation *inv, const struct samples *before,
                        const struct samples *now)
{
    (void)fprintf(inv->out, "%-20s %-8s %5s %9s %9s %6s %10s %10s %10s  %s\n", "SANDBOX", "STATE",
                  "CPU%", "MEMORY", "PEAK", "PROCS", "DISK", "READ", "WRITTEN", "NAME");
    for (size_t i = 0; i < now->n; i++) {
        const struct sample *sample = &now->of[i];

        (void)fprintf(inv->out, "%-20s %-8s %5u %8lluK %8lluK %6llu %9lluK %9lluK %9lluK  ",
                      sample->id, kept_state_name(&sample->state), percent(before, sample),
                      (unsigned long long)(sample->state.memory_bytes / 1024U),
                      (unsigned long long)(sample->state.peak_memory_bytes / 1024U),
                      (unsigned long long)sample->state.processes,
                      (unsigned long long)(sample->state.disk_bytes / 1024U),
                      (unsigned long long)(sample->state.read_bytes / 1024U),
                      (unsigned long long)(sample->state.written_bytes / 1024U));
        print_escaped(inv->out, str_of(sample->name));
        (void)fputc('\n', inv->out);
    }
    (void)fflush(inv->out);
}

/* Each look has memory of its own: we may go on for days. */
static int measure(struct samples *samples, struct err *err)
{
    struct arena mem = samples->inv->mem; /* put back below */
    int failed;

    samples->n = 0;
    samples->inv->mem = ARENA(LOOK_MEMORY_MAX);
    failed = execute_kept_each(govern_execute(samples->govern), on_sandbox, samples, err);
    arena_done(&samples->inv->mem);
    samples->inv->mem = mem;
    return failed;
}

static int show(struct invocation *inv, struct samples *before, struct samples *now,
                struct err *err)
{
    bool live = !inv->json && isatty(STDOUT_FILENO);

    if (measure(before, err) < 0)
        return -1;
    do {
        (void)poll(NULL, 0, live ? LIVE_PAUSE_MS : ONCE_PAUSE_MS);
        if (measure(now, err) < 0)
            return -1;
        if (live)
            (void)fputs("\033[H\033[2J", inv->out);
        if (!inv->json)
            print_table(inv, before, now);
        else if (print_json(inv, before, now) != 0)
            return err_set(err, ERR_OS, "writing the answer");
        memcpy(before->of, now->of, now->n * sizeof now->of[0]);
        before->n = now->n;
    } while (live);
    return 0;
}

int run_sandbox_top(struct invocation *inv)
{
    AUTO_SANDBOX_CALL struct sandbox_call call = {0};
    AUTO_FREE struct samples *before = xcalloc(1, sizeof *before);
    AUTO_FREE struct samples *now = xcalloc(1, sizeof *now);
    const char *wanted = NULL;
    struct err err;
    int status;

    if (sandbox_call_open(inv, &call, &status) < 0)
        return status;
    if (inv->operands.n && sandbox_find(inv, call.govern, inv->operands.v[0], &wanted, &err) < 0)
        return cli_error(inv, &err);
    before->inv = now->inv = inv;
    before->govern = now->govern = call.govern;
    before->wanted = now->wanted = wanted;
    return show(inv, before, now, &err) < 0 ? cli_error(inv, &err) : 0;
}
