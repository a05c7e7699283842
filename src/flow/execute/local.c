/* SPDX-License-Identifier: Apache-2.0 */

/* The local provider: one sandbox on this machine, built by box, held by the kernel. */

#include "flow/execute/local.h"
#include "flow/execute/kept.h"
#include "flow/execute/orders.h"
#include "flow/execute/pool.h"
#include "flow/execute/spawner-default.h"

#include "lib/base/clock.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/base/memory.h"
#include "lib/linux/fd-pass.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define BUILD_WAIT_US 10000000U
#define END_WAIT_US 5000000U

/* ---- the sandbox of this process ---- */

struct local *local_new(void)
{
    struct local *local = xcalloc(1, sizeof *local);

    local->lock_fd = local->supervisor_fd = local->inside_fd = local->signals_fd = -1;
    local->in_fd = local->out_fd = local->err_fd = -1;
    local->execs_fd = local->control_fd = local->outer_fd = local->box_lock_fd = -1;
    for (size_t i = 0; i < COUNT(local->passed_fds); i++)
        local->passed_fds[i] = -1;
    local->outer = local->inside = -1;
    return local;
}

bool wait_for_end(int pidfd, uint64_t wait_us)
{
    struct pollfd polled = {.fd = pidfd, .events = POLLIN};
    uint64_t deadline_us = clock_us() + wait_us;

    for (;;) {
        uint64_t now = clock_us();

        if (poll(&polled, 1, clock_ms_until(deadline_us)) > 0)
            return true;
        if (now >= deadline_us)
            return false;
    }
}

/* box ends by itself once nobody listens any more. One that hangs all the same is killed: PID 1
 * goes with it, and what it made is removed from here. */
static void end_outer(pid_t outer)
{
    AUTO_FD int pidfd = pidfd_open(outer, 0);

    if (pidfd < 0 || !wait_for_end(pidfd, END_WAIT_US))
        (void)kill(outer, SIGKILL);
    while (waitpid(outer, NULL, 0) < 0 && errno == EINTR)
        continue;
}

/* A spawner's box is not ours to wait for. It closes its end of the socket when it ends: until then
 * we listen, having said that we want nothing more. */
static void end_spawned(struct local *local)
{
    uint64_t deadline_us = clock_us() + END_WAIT_US;
    struct pollfd polled = {.fd = local->supervisor_fd, .events = POLLIN};
    struct box_message message;

    if (local->gone || local->supervisor_fd < 0)
        return; /* nothing is left but a process on its way out */
    (void)shutdown(local->supervisor_fd, SHUT_WR);
    while (clock_us() < deadline_us)
        if (poll(&polled, 1, clock_ms_until(deadline_us)) > 0 &&
            recv(local->supervisor_fd, &message, sizeof message, MSG_DONTWAIT) <= 0)
            return;
    if (local->outer_fd >= 0 && pidfd_send_signal(local->outer_fd, SIGKILL, NULL, 0) == 0)
        (void)wait_for_end(local->outer_fd, END_WAIT_US);
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        (void)close(TAKE_FD(*fd));
}

/* Ends the sandbox and removes what was made for it. The lock stays until local_free(): the run
 * is still to get its closing receipt, and whoever finds the lock free writes another. */
static void local_end(struct local *local)
{
    if (local->spawned && !local->stays)
        end_spawned(local);
    close_fd(&local->outer_fd);
    if (local->taken && !local->stays)
        pool_untake(local);
    local->taken = false;
    close_fd(&local->supervisor_fd);
    close_fd(&local->inside_fd);
    if (local->outer > 0 && !local->stays)
        end_outer(local->outer);
    local->outer = -1;
    run_dir_clear(local);
    close_fd(&local->in_fd);
    close_fd(&local->out_fd);
    close_fd(&local->err_fd);
    close_fd(&local->signals_fd);
    close_fd(&local->box_lock_fd);
    joint_free(TAKE(local->joint));
    for (size_t i = 0; i < COUNT(local->passed_fds); i++)
        close_fd(&local->passed_fds[i]);
}

void local_free(struct local *local)
{
    if (!local)
        return;
    local_end(local);
    run_dir_close(local);
    free(local);
}

/* ---- outer processes of sandboxes that stay ---- */

static void remember_outer(struct execute *execute, pid_t outer)
{
    execute->outers = xrealloc(execute->outers, (execute->outer_n + 1) * sizeof execute->outers[0]);
    execute->outers[execute->outer_n++] = outer;
}

void local_reap(struct execute *execute)
{
    for (size_t i = 0; i < execute->outer_n;)
        if (waitpid(execute->outers[i], NULL, WNOHANG) != 0)
            execute->outers[i] = execute->outers[--execute->outer_n];
        else
            i++;
}

int execute_claim(struct execute *execute, struct run *run, struct err *err)
{
    local_free(TAKE(execute->local)); /* holds the lock of what it made until now */
    local_free(TAKE(execute->claim));
    execute->claim = local_new();
    execute->claim->joined = true;
    return exec_lock_make(execute, run, execute->claim, err);
}

void execute_rest(struct execute *execute)
{
    local_free(TAKE(execute->claim));
    local_free(TAKE(execute->local));
    execute_turn_end(execute);
    run_lock_drop(execute);
    local_reap(execute);
    execute->wants_refill = false;
}

void execute_unclaim(struct execute *execute)
{
    local_free(TAKE(execute->claim));
}

/* ---- out of the pool ---- */

bool execute_take(struct execute *execute, struct run *run)
{
    struct local *local;
    struct err ignored; /* what cannot be taken is built */

    if (execute->backend != &backend_local || run->action.no_pool ||
        (run->action.kind != ACTION_RUN && run->action.kind != ACTION_CREATE))
        return false;
    local_free(TAKE(execute->local)); /* of an earlier run, which has its receipts by now */
    local = local_new();
    local->groups = execute->groups;
    local->joined = true;
    local->state_dir = execute->state_dir;
    if (pool_take(execute, run, local) && exec_lock_make(execute, run, local, &ignored) == 0) {
        execute->local = local;
        return true;
    }
    local_free(local);
    memcpy(run->sandbox_id, run->id, sizeof run->id);
    return false;
}

bool execute_has_taken(const struct execute *execute)
{
    return execute->local && execute->local->taken;
}

enum reason execute_cancel_reason(const struct execute *execute)
{
    return execute->local && execute->local->cancelled_by ? execute->local->cancel_reason
                                                          : REASON_CANCELLED;
}

bool execute_untake(struct execute *execute, struct run *run)
{
    bool cancelled = execute->local->cancelled_by != 0;

    if (cancelled)
        run->outcome.reason = execute->local->cancel_reason;
    else
        run_lock_keep(execute, run, execute->local);
    local_free(TAKE(execute->local));
    memcpy(run->sandbox_id, run->id, sizeof run->id);
    return !cancelled;
}

static int begin_taken(struct execute *execute, struct run *run, struct err *err)
{
    struct local *local = execute->local;

    if (orders_open(execute, &local->signals_fd, err) < 0 ||
        kept_connect(local->run_dir, "execs", &local->inside_fd, err) < 0)
        return -1;
    if (box_say(local->inside_fd, BOX_REPORT, 0) < 0)
        return err_os(err, "asking the sandbox for its report");
    return run->action.kind == ACTION_RUN ? joined_streams(local, err) : 0;
}

int local_spawn(struct execute *execute, struct run *run, struct err *err)
{
    if (spawner_by_default && !execute->spawner) {
        if (spawner_open(&execute->spawner_owned, err) < 0)
            return -1;
        execute->spawner = execute->spawner_owned;
    }
    return box_spawn(run, execute->local, execute->spawner, err);
}

static int begin(struct execute *execute, struct run *run, struct err *err)
{
    struct local *local;

    local_free(TAKE(execute->claim)); /* of an earlier run, which has its receipts by now */
    local_reap(execute);
    if (execute_has_taken(execute))
        return begin_taken(execute, run, err);
    local_free(TAKE(execute->local));
    local = execute->local = local_new();
    local->groups = execute->groups;
    if (orders_open(execute, &local->signals_fd, err) < 0)
        return -1;
    if (run->action.kind == ACTION_EXEC)
        return joined_begin(execute, run, local, err);
    if (run_dir_make(execute, run, local, err) < 0 ||
        (action_keeps(run->action.kind) && kept_prepare(run, local, err) < 0) ||
        (run->plan.mirror_fd >= 0 && mirror_fill(run, local, err) < 0))
        return -1;
    return local_spawn(execute, run, err);
}

/* 1 for a message, 0 when that end is gone. Of outer a pidfd may come along. */
static int take(struct local *local, int fd, struct box_message *out, struct err *err)
{
    int came = -1;
    int got = fds_receive(fd, out, sizeof *out, &came, 1, err);

    if (came >= 0) {
        close_fd(&local->outer_fd);
        local->outer_fd = came;
    }
    return got < 0 ? err_in(err, "listening to box") : got == (int)sizeof *out;
}

int box_wait(struct local *local, uint64_t deadline_us, struct box_message *out, bool *from_inside,
             struct err *err)
{
    struct pollfd polled[] = {
        {.fd = local->inside_fd,     .events = POLLIN},
        {.fd = local->supervisor_fd, .events = POLLIN},
        {.fd = local->signals_fd,    .events = POLLIN}
    };

    for (;;) {
        struct signalfd_siginfo info;
        int n, got;

        if (clock_us() >= deadline_us)
            return err_set(err, ERR_TIMEOUT, "the sandbox did not stand in time");
        n = poll(polled, COUNT(polled), clock_ms_until(deadline_us));
        if (n < 0 && errno != EINTR)
            return err_os(err, "waiting for box");
        if (n <= 0)
            continue;
        if (polled[2].revents && read(local->signals_fd, &info, sizeof info) > 0) {
            if (info.ssi_signo != SIGWINCH) {
                local->cancelled_by = (int)info.ssi_signo;
                local->cancel_reason = order_reason(&info);
                return err_set(err, ERR_CONFLICT, "cancelled while the sandbox was built");
            }
            local->size = info; /* there is no terminal yet */
        }
        *from_inside = polled[0].revents != 0;
        if (!polled[0].revents && !polled[1].revents)
            continue;
        got = take(local, *from_inside ? local->inside_fd : local->supervisor_fd, out, err);
        if (got != 0)
            return got < 0 ? -1 : 0;
        if (!*from_inside)
            return err_set(err, ERR_UNAVAILABLE, "box ended before the sandbox stood");
        polled[0].fd = -1; /* the supervisor knows why */
        polled[0].revents = 0;
    }
}

static int fail_as_box_says(const struct box_message *message, struct err *err)
{
    *err = message->err;
    err->text[sizeof err->text - 1] = '\0';
    return err_in(err, "building the sandbox");
}

static int take_report(struct local *local, struct buf *report, struct err *err)
{
    char *bytes = xmalloc(BOX_REPORT_MAX);
    ssize_t n = recv(local->inside_fd, bytes, BOX_REPORT_MAX, 0);
    int failed = n <= 0 ? err_set(err, ERR_UNAVAILABLE, "box sent no report")
                        : buf_add(report, bytes, (size_t)n, err);

    free(bytes);
    return failed;
}

/* What PID 1 saw, or that it is what it told us last. */
static int on_parked(struct local *local, const struct box_message *message, struct buf *report,
                     struct err *err)
{
    struct joint *joint = local->joint;

    if (joint && message->value && message->value == joint->report_number)
        return buf_add(report, joint->report.p, joint->report.n, err);
    if (take_report(local, report, err) < 0)
        return -1;
    if (!joint)
        return 0;
    buf_clear(&joint->report);
    joint->report_number = message->value;
    return buf_add(&joint->report, report->p, report->n, err);
}

static int park_box(struct execute *execute, struct run *run, struct err *err)
{
    struct local *local = execute->local;
    uint64_t deadline_us = clock_us() + BUILD_WAIT_US;
    AUTO_BUF struct buf report = BUF(BOX_REPORT_MAX);
    bool outside = local->inside > 0; /* it stands already: look while it looks at itself */

    if (outside && observe_outside(run, local, err) < 0)
        return -1;
    while (!report.n || local->inside < 0) {
        struct box_message message;
        bool from_inside = false;

        if (box_wait(local, deadline_us, &message, &from_inside, err) < 0)
            return -1;
        if (message.kind == BOX_FAILED)
            return fail_as_box_says(&message, err);
        if (message.kind == BOX_PLACED)
            local->inside = message.pid;
        if (message.kind == BOX_PARKED && on_parked(local, &message, &report, err) < 0)
            return -1;
    }
    if (!outside && observe_outside(run, local, err) < 0)
        return -1;
    observe_inside(run, local, arena_str(&run->mem, buf_str(&report)));
    return 0;
}

static int park(struct execute *execute, struct run *run, struct err *err)
{
    int failed = park_box(execute, run, err);

    /* A command's keeper lives in the sandbox now, or there will be none. */
    if (execute->local->joined)
        execute_turn_end(execute);
    return failed;
}

static void close_sources(struct run *run)
{
    for (size_t i = 0; i < run->plan.mount_n; i++)
        if (run->plan.mounts[i].fd >= 0)
            (void)close(TAKE_FD(run->plan.mounts[i].fd));
    if (run->plan.hold_fd >= 0)
        (void)close(TAKE_FD(run->plan.hold_fd));
    while (run->plan.base_hold_n)
        (void)close(run->plan.base_holds[--run->plan.base_hold_n]);
    if (run->plan.mirror_fd >= 0)
        (void)close(TAKE_FD(run->plan.mirror_fd));
}

void execute_forget(struct run *run)
{
    close_sources(run);
}

static int stay(struct execute *execute, struct run *run, struct err *err)
{
    struct local *local = execute->local;

    if (local->taken)
        return pool_settle(run, local, err);
    if (kept_release(run, local, err) < 0)
        return -1;
    if (run->action.kind == ACTION_PREPARE && pool_put(execute, run, local, err) < 0) {
        local->stays = false;
        return -1;
    }
    return 0;
}

static int release(struct execute *execute, struct run *run, const struct streams *streams,
                   struct err *err)
{
    struct local *local = execute->local;
    int failed = action_keeps(run->action.kind) ? stay(execute, run, err)
                 : run->action.detach           ? detached_release(run, local, err)
                                                : relay(run, local, streams, err);

    if (local->joined && !local->taken)
        joined_end(execute, run, local);
    if (local->stays && !local->taken && local->outer > 0) /* a spawner's is not ours to reap */
        remember_outer(execute, local->outer);
    close_sources(run);
    local_end(local);
    return failed;
}

static void drop(struct execute *execute, struct run *run)
{
    if (execute->local && execute->local->joined)
        execute_turn_end(execute);
    if (execute->local && execute->local->cancelled_by)
        run->outcome.reason = execute->local->cancel_reason;
    close_sources(run);
    if (execute->local)
        local_end(execute->local);
}

const struct backend backend_local = {
    .name = "local",
    .offer = local_offer,
    .begin = begin,
    .park = park,
    .release = release,
    .drop = drop,
};
