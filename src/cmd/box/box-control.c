/* SPDX-License-Identifier: Apache-2.0 */

/* A kept sandbox outlives the program that made it. Its outer process holds it: it knows when its
 * time is over, and takes orders on a socket in the sandbox's own folder, which only the owner of
 * the state directory can reach. One connection, one order, one answer. */

#include "cmd/box/box.h"

#include "lib/base/clock.h"
#include "lib/base/limits.h"
#include "lib/linux/cgroup.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/time.h>

#define ORDER_WAIT_S 2

static uint64_t later(uint64_t from_us, uint64_t ms)
{
    return ms ? from_us + ms * 1000U : UINT64_MAX;
}

static void expire(struct life *life, uint64_t ttl_ms)
{
    life->expires_us = later(clock_us(), ttl_ms);
    if (life->expires_us > life->limit_us)
        life->expires_us = life->limit_us;
}

void life_begin(struct life *life, const struct box_plan *plan)
{
    life->limit_us = later(clock_us(), plan->max_ms);
    life->idle_us = plan->idle_ms * 1000U;
    life->busy_us = clock_us();
    life->paused = false;
    life->tied = plan->prepared;
    expire(life, plan->ttl_ms);
}

void life_settle(struct life *life, const struct box_message *message)
{
    life->limit_us = later(clock_us(), message->max_ms);
    life->idle_us = message->idle_ms * 1000U;
    life->busy_us = clock_us();
    life->tied = false;
    expire(life, message->value);
}

/* Whoever has the connection has the sandbox, and it has no other time than theirs. */
static int be_taken(const struct box *box, struct life *life, int fd, struct err *err)
{
    if (!box->plan->prepared || life->tied || life->taken)
        return err_set(err, ERR_CONFLICT, "it is not in the pool, or somebody has taken it");
    if (fd >= 0 && dup3(fd, BOX_FD_SUPERVISOR, O_CLOEXEC) < 0)
        return err_os(err, "taking over the connection");
    life->tied = life->taken = true;
    life->expires_us = life->limit_us = UINT64_MAX;
    return 0;
}

/* A paused sandbox is not idle: somebody put it aside on purpose. Its time runs all the same. */
enum reason life_over(struct life *life, uint64_t processes)
{
    uint64_t now = clock_us();

    if (processes > 1 || life->paused || life->hold_fd >= 0)
        life->busy_us = now;
    if (now >= life->expires_us)
        return REASON_SANDBOX_EXPIRED;
    if (life->idle_us && now - life->busy_us >= life->idle_us)
        return REASON_SANDBOX_IDLE;
    return REASON_NONE;
}

uint64_t life_left_ms(const struct life *life)
{
    uint64_t now = clock_us();
    uint64_t next_us = life->expires_us;

    if (life->idle_us && life->busy_us + life->idle_us < next_us)
        next_us = life->busy_us + life->idle_us;
    return next_us <= now ? 0 : (next_us - now) / 1000U;
}

/* Whoever wants to run something finds it there without asking us; one who does not find it where
 * it could not be made waits until it is resumed, or gives up. */
void paused_mark(const struct box_plan *plan, bool paused)
{
    char path[PATH_BYTES_MAX];
    AUTO_FD int fd = -1;

    (void)snprintf(path, sizeof path, "%s/" PAUSED_MARK, plan_text(plan, plan->run_dir));
    if (paused)
        fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    else
        (void)unlink(path);
}

static int pause_or_resume(const struct hold *hold, bool pause, struct err *err)
{
    int failed = 0;

    /* Whoever has it hold still lets go of it later: then it stays, or goes on. */
    if (pause)
        paused_mark(hold->box->plan, true);
    if (hold->life->hold_fd < 0 && hold->life->paused != pause)
        failed = hold_processes(hold, pause, err);
    if (failed == 0)
        hold->life->paused = pause;
    if (!hold->life->paused)
        paused_mark(hold->box->plan, false);
    return failed;
}

static void fill_status(const struct life *life, const struct watch *watch,
                        struct cgroup_set *groups, struct box_message *answer)
{
    struct cgroup_usage usage = {0};
    struct err ignored; /* what cannot be measured stays 0 */
    uint64_t now = clock_us();

    answer->status = life->paused ? 1 : life->serves ? 0 : 2;
    answer->value = life->expires_us == UINT64_MAX ? UINT64_MAX
                    : life->expires_us > now       ? (life->expires_us - now) / 1000U
                                                   : 0;
    answer->processes = watch_count(watch);
    watch_io(watch, &answer->read_bytes, &answer->written_bytes);
    answer->memory_bytes = watch->memory_bytes;
    answer->disk_bytes = watch->disk_bytes;
    answer->peak_memory_bytes = watch->peak_memory_bytes;
    if (groups->host && cgroup_set_usage(groups, &usage, &ignored) == 0) {
        answer->cpu_us = usage.cpu_us;
        answer->oom_kills = usage.oom_kills;
        answer->pids_refused = usage.pids_refused;
        answer->peak_memory_bytes = usage.peak_memory_bytes;
        if (usage.memory_bytes)
            answer->memory_bytes = usage.memory_bytes;
    }
}

/* One that is being ended is not there any more, for whatever order. */
static int obey(const struct hold *hold, int fd, const struct box_message *order,
                enum reason ending, struct err *err)
{
    if (ending != REASON_NONE)
        return err_set(err, ERR_NOT_FOUND,
                       "there is no such sandbox any more; it has just ended: %s",
                       reason_text(ending));
    switch (order->kind) {
    case BOX_EXTEND:
        expire(hold->life, order->value);
        return 0;
    case BOX_PAUSE:
    case BOX_RESUME:
        return pause_or_resume(hold, order->kind == BOX_PAUSE, err);
    case BOX_HOLD:
        return hold_begin(hold, err);
    case BOX_YIELD:
        return yield_begin(hold, order->status == 1, err);
    case BOX_TAKE:
        return be_taken(hold->box, hold->life, fd, err);
    case BOX_DISCARD: /* taken by nobody, for good */
        return be_taken(hold->box, hold->life, -1, err);
    case BOX_STATUS:
    case BOX_KILL:
        return 0;
    default:
        return err_set(err, ERR_INVALID, "order %u is none for the supervisor", order->kind);
    }
}

enum reason control_answer(struct box *box, struct life *life, const struct watch *watch,
                           struct cgroup_set *groups, int pid, enum reason before)
{
    AUTO_FD int fd = accept4(box->plan->control_fd, NULL, NULL, SOCK_CLOEXEC);
    struct timeval patience = {.tv_sec = ORDER_WAIT_S};
    struct box_message order;
    struct box_message answer = {.kind = BOX_STATUS, .pid = pid};
    struct hold hold = {box, life, watch, groups};
    struct err err;

    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) < 0 ||
        message_receive(fd, &order, &err) <= 0)
        return before; /* whoever it was has thought better of it */
    if (obey(&hold, fd, &order, before, &err) < 0) {
        answer.kind = BOX_FAILED;
        answer.err = err;
    } else if (order.kind == BOX_YIELD) {
        life->heir_fd = TAKE_FD(fd); /* answered when everything has ended */
        return before;
    }
    if (order.kind != BOX_TAKE) /* whoever takes it wants to begin */
        fill_status(life, watch, groups, &answer);
    if (message_send(fd, &answer, &err) < 0 || answer.kind == BOX_FAILED) {
        if (order.kind == BOX_HOLD && answer.kind != BOX_FAILED)
            hold_end(&hold);
        return before;
    }
    if (order.kind == BOX_HOLD)
        life->hold_fd = TAKE_FD(fd);
    return (order.kind == BOX_KILL || order.kind == BOX_DISCARD) && before == REASON_NONE
               ? REASON_SANDBOX_DESTROYED
               : before;
}
