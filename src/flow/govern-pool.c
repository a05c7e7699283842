/* SPDX-License-Identifier: Apache-2.0 */

/* Keeping the pool filled. Each prepared sandbox is a governed run of its own, made by
 * govern_prepare(); here is only how many there are and should be.
 *
 * A spec is "SIZE\n" and the config a sandbox of that kind would have. Its key follows from the
 * plan that is made of it now: when the machine, the image or Brig itself has changed, that is
 * another key than the one it is filed under, and what is there is not what would be made today. */

#include "flow/govern.h"

#include "lib/base/limits.h"
#include "lib/base/memory.h"

#include <stdio.h>
#include <string.h>

struct ending {
    struct govern *govern;
    struct pool_report *report;
    size_t leave; /* so many */
    size_t seen;
};

static int end_one(void *context, const char *id, struct err *err)
{
    struct ending *ending = context;

    if (ending->seen++ < ending->leave)
        return 0;
    if (execute_pool_end(govern_execute(ending->govern), ending->report->key, id, err) < 0)
        return err->code == ERR_NOT_FOUND ? 0 : -1; /* somebody has just taken it */
    ending->report->ended++;
    return 0;
}

/* Ends all but so many; the sweep writes down what ended. */
static int end_surplus(struct govern *govern, size_t leave, struct pool_report *report,
                       struct err *err)
{
    struct ending ending = {.govern = govern, .report = report, .leave = leave};

    if (execute_pool_each(govern_execute(govern), report->key, end_one, &ending, err) < 0)
        return -1;
    return govern_sweep(govern, err);
}

/* What would be made of the request now; denied: *key is empty, and the run says why. */
static int find_key(struct govern *govern, const struct request *request, struct run *run,
                    char key[POOL_KEY_BYTES], struct err *err)
{
    struct config config;
    int failed;

    key[0] = '\0';
    failed = govern_rehearse(govern, request, run, &config, err);
    if (!failed && run->verdict.kind == VERDICT_ALLOW)
        failed = execute_pool_key(run, key, err);
    execute_forget(run);
    return failed;
}

static int write_spec(struct govern *govern, const struct run *run, struct pool_report *report,
                      struct err *err)
{
    AUTO_BUF struct buf spec = BUF(JSON_TEXT_MAX);

    if (buf_addf(&spec, err, "%zu\n%s", report->size, run->action.config) < 0)
        return -1;
    return execute_pool_set_spec(govern_execute(govern), report->key, buf_text(&spec), err);
}

static bool is_made(const struct run *run)
{
    return run->verdict.kind == VERDICT_ALLOW && run->outcome.reason == REASON_NONE;
}

static int make_missing(struct govern *govern, const struct request *request, struct run *run,
                        struct pool_report *report, struct err *err)
{
    if (execute_pool_count(govern_execute(govern), report->key, &report->ready, err) < 0)
        return -1;
    while (report->ready < report->size) {
        run_done(run);
        run_init(run);
        if (govern_prepare(govern, request, run, err) < 0)
            return -1;
        if (!is_made(run))
            return 0;
        report->made++;
        report->ready++;
    }
    return 0;
}

static int fill(struct govern *govern, const struct request *request, struct run *run,
                struct pool_report *report, struct err *err)
{
    if (find_key(govern, request, run, report->key, err) < 0)
        return -1;
    if (!report->key[0])
        return 0;
    if (write_spec(govern, run, report, err) < 0 ||
        end_surplus(govern, report->size, report, err) < 0)
        return -1;
    return make_missing(govern, request, run, report, err);
}

int govern_pool_fill(struct govern *govern, const struct request *request, size_t size,
                     struct run *run, struct pool_report *out, struct err *err)
{
    AUTO_FD int lock_fd = -1;

    *out = (struct pool_report){.size = size};
    if (size == 0 || size > POOL_SIZE_MAX)
        return err_set(err, ERR_INVALID, "a pool has from 1 to %u sandboxes", POOL_SIZE_MAX);
    if (execute_pool_lock(govern_execute(govern), true, &lock_fd, err) < 0)
        return -1;
    return fill(govern, request, run, out, err);
}

int govern_pool_request(struct execute *execute, struct arena *mem, const char *key,
                        struct request *out, size_t *size, struct err *err)
{
    const char *text = NULL;
    struct config config;
    struct str json, head;
    uint64_t number = 0;

    if (execute_pool_spec(execute, mem, key, &text, err) < 0)
        return -1;
    json = str_of(text);
    head = str_cut(&json, '\n');
    if (!str_u64(head, &number) || number == 0 || number > POOL_SIZE_MAX)
        return err_set(err, ERR_INTEGRITY, "the spec of pool %s is damaged; drain it", key);
    if (config_read(mem, json, &config, err) < 0)
        return -1;
    *out = config.request;
    *size = (size_t)number;
    return 0;
}

static int drain(struct govern *govern, const char *key, struct pool_report *report,
                 struct err *err)
{
    (void)snprintf(report->key, sizeof report->key, "%s", key);
    if (end_surplus(govern, 0, report, err) < 0)
        return -1;
    return execute_pool_remove(govern_execute(govern), key, err);
}

/* Filed under another key than it would have today: all of it goes, and is made anew there. */
static int move_stale(struct govern *govern, const char *key, const char *now,
                      struct pool_report *report, struct err *err)
{
    struct pool_report old = {0};

    if (strcmp(key, now) == 0)
        return 0;
    if (drain(govern, key, &old, err) < 0)
        return -1;
    report->ended += old.ended;
    return 0;
}

int govern_pool_refill(struct govern *govern, const char *key, struct run *run,
                       struct pool_report *out, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(RUN_MEMORY_MAX);
    AUTO_FD int lock_fd = -1;
    struct request request;
    char now[POOL_KEY_BYTES];

    *out = (struct pool_report){0};
    if (execute_pool_lock(govern_execute(govern), false, &lock_fd, err) < 0 ||
        govern_pool_request(govern_execute(govern), &mem, key, &request, &out->size, err) < 0 ||
        find_key(govern, &request, run, now, err) < 0)
        return -1;
    if (move_stale(govern, key, now, out, err) < 0)
        return -1;
    if (!now[0])
        return 0; /* denied today: what was made before is not to be had either */
    run_done(run);
    run_init(run);
    return fill(govern, &request, run, out, err);
}

int govern_pool_drain(struct govern *govern, const char *key, struct pool_report *out,
                      struct err *err)
{
    AUTO_FD int lock_fd = -1;

    *out = (struct pool_report){0};
    if (execute_pool_lock(govern_execute(govern), true, &lock_fd, err) < 0)
        return -1;
    return drain(govern, key, out, err);
}
