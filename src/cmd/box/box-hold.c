/* SPDX-License-Identifier: Apache-2.0 */

/* A sandbox is held still while somebody outside copies its files, and left to another box when it
 * is to be built again on other layers. Both are bounded: whoever has it hold still does so over
 * a connection whose end lets it go on, and for so long at most; whoever takes it over gets its
 * lock, so that at no moment it looks like one that has ended. */

#include "cmd/box/box.h"

#include "lib/base/clock.h"
#include "lib/linux/cgroup.h"
#include "lib/linux/fd-pass.h"

#include <poll.h>
#include <sys/socket.h>

#define STILL_WAIT_MS 2000
#define STILL_PAUSE_MS 1
#define ENDING_WAIT_MS 25
#define ENDING_PAUSE_MS 1
#define HOLD_MAX_US (15ULL * 60 * 1000000)
#define REMOVE_WAIT_MS 2000

static bool has_freezer(const struct hold *hold)
{
    return hold->box->plan->cgroup_name &&
           cgroup_mode(hold->groups->host, CGROUP_FREEZE) != CGROUP_NONE;
}

/* PID 1 says so once it starts nothing any more; other words of its may come before. */
static int wait_for_pid_one(int sync_fd, char word, struct err *err)
{
    uint64_t deadline_us = clock_us() + STILL_WAIT_MS * 1000U;

    while (clock_us() < deadline_us) {
        struct pollfd polled = {.fd = sync_fd, .events = POLLIN};
        char said = 0;

        if (poll(&polled, 1, STILL_WAIT_MS) == 1 && recv(sync_fd, &said, 1, MSG_DONTWAIT) == 0)
            break;
        if (said == word)
            return 0;
    }
    return err_set(err, ERR_TIMEOUT, "PID 1 of the sandbox does not answer");
}

static int wait_until_stopped(const struct watch *watch, struct err *err)
{
    uint64_t deadline_us = clock_us() + STILL_WAIT_MS * 1000U;

    while (!watch_all_stopped(watch)) {
        if (clock_us() >= deadline_us)
            return err_set(err, ERR_TIMEOUT, "the sandbox does not hold still");
        (void)poll(NULL, 0, STILL_PAUSE_MS);
    }
    return 0;
}

/* By the freezer where there is one; otherwise PID 1 stops all the others at once. */
int hold_processes(const struct hold *hold, bool still, struct err *err)
{
    char order = still ? 'p' : 'c';
    int sync_fd = hold->box->sync_fd;

    if (has_freezer(hold))
        return still ? cgroup_set_freeze(hold->groups, STILL_WAIT_MS, err)
                     : cgroup_set_thaw(hold->groups, STILL_WAIT_MS, err);
    if (send(sync_fd, &order, 1, MSG_NOSIGNAL) != 1)
        return err_os(err, "telling PID 1 to stop the others");
    if (wait_for_pid_one(sync_fd, order, err) < 0)
        return -1;
    return still ? wait_until_stopped(hold->watch, err) : 0;
}

int hold_begin(const struct hold *hold, struct err *err)
{
    struct err ignored;

    if (hold->life->hold_fd >= 0)
        return err_set(err, ERR_UNAVAILABLE, "somebody else is copying this sandbox; try again");
    if (!hold->life->paused && hold_processes(hold, true, err) < 0) {
        (void)!hold_processes(hold, false, &ignored); /* some may have stopped */
        return -1;
    }
    hold->life->hold_until_us = clock_us() + HOLD_MAX_US;
    return 0;
}

void hold_end(const struct hold *hold)
{
    struct err ignored; /* nobody is left to tell; pause and resume try again */

    if (!hold->life->paused)
        (void)!hold_processes(hold, false, &ignored);
    if (hold->life->hold_fd >= 0)
        (void)close(TAKE_FD(hold->life->hold_fd));
}

/* Whoever served a command says that it has ended a moment before it ends itself; held still, it
 * would be there for good. */
static void wait_for_the_ending(const struct hold *hold)
{
    uint64_t deadline_us = clock_us() + ENDING_WAIT_MS * 1000U;

    while (!hold->life->paused && watch_count(hold->watch) > 1 && clock_us() < deadline_us)
        (void)poll(NULL, 0, ENDING_PAUSE_MS);
}

int yield_begin(const struct hold *hold, bool whoever_lives, struct err *err)
{
    uint64_t processes;

    if (!whoever_lives)
        wait_for_the_ending(hold);
    if (hold_begin(hold, err) < 0)
        return -1;
    processes = watch_count(hold->watch);
    if (processes > 1 && !whoever_lives) {
        hold_end(hold);
        return err_set(err, ERR_CONFLICT, "%llu processes live in it",
                       (unsigned long long)processes - 1);
    }
    return 0;
}

int yield_end(const struct hold *hold, struct box_message *gone, struct err *err)
{
    const struct box_plan *plan = hold->box->plan;
    const struct life *life = hold->life;
    uint64_t now = clock_us();
    const int fds[YIELDED_COUNT] = {[YIELDED_LOCK] = BOX_FD_LOCK,
                                    [YIELDED_EXECS] = plan->execs_fd,
                                    [YIELDED_CONTROL] = plan->control_fd};

    if (plan->cgroup_name && cgroup_set_remove(hold->groups, REMOVE_WAIT_MS, err) < 0)
        return -1;
    paused_mark(plan, false); /* whoever builds it again pauses that one */
    gone->kind = BOX_GONE;
    gone->status = life->paused;
    gone->value = life->expires_us == UINT64_MAX ? UINT64_MAX : (life->expires_us - now) / 1000U;
    gone->limit_ms = life->limit_us == UINT64_MAX ? UINT64_MAX : (life->limit_us - now) / 1000U;
    return fds_send(life->heir_fd, gone, sizeof *gone, fds, YIELDED_COUNT, err);
}
