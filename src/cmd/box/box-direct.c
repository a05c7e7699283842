/* SPDX-License-Identifier: Apache-2.0 */

/* The command PID 1 of a kept sandbox runs itself: no process stands between them, and none has to
 * be made first. There is one at a time, because its orphans become children of PID 1, where all
 * that is no keeper is its own. Nothing here waits: its caller and its end wake PID 1's loop. */

#include "cmd/box/box.h"

#include "lib/base/clock.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define LEFTOVERS_WAIT_US 2000000U
#define RUSAGE_BLOCK 512U /* the unit of ru_inblock and ru_oublock, whatever the disk has */
#define OWN_NAME "box"

/* What has a terminal waits for it; what stays behind needs somebody to belong to. */
bool direct_fits(const struct direct *direct, const struct box_plan *plan)
{
    return direct->caller_fd < 0 && !plan->tty && !plan->keep_background && !plan->detached;
}

/* A caller that does not read what it is told is none. */
static bool tell(const struct direct *direct, const struct box_message *message)
{
    return send(direct->caller_fd, message, sizeof *message, MSG_NOSIGNAL | MSG_DONTWAIT) ==
           (ssize_t)sizeof *message;
}

int direct_start(struct direct *direct, const struct box_plan *plan, int caller_fd,
                 const int fds[PASSED_COUNT], struct err *err)
{
    struct box_message started = {.kind = BOX_STARTED};
    AUTO_FD int workdir_fd = workdir_open(plan_text(plan, plan->workdir), err);
    struct command command;

    if (workdir_fd < 0)
        return -1;
    command_init(&command, plan);
    command.streams = fds + PASSED_IN;
    command.workdir_fd = workdir_fd;
    started.err.os = command_spawn(&command);
    command_done(&command);
    *direct = (struct direct){.caller_fd = caller_fd,
                              .pid = started.err.os ? 0 : command.pid,
                              .give_up_us = clock_us() + LEFTOVERS_WAIT_US};
    if (started.err.os) {
        started.kind = BOX_NOT_STARTED;
        direct->exited.kind = BOX_CLEAR;
    } else {
        /* What the list of processes shows of whom its processes belong to. */
        (void)prctl(PR_SET_NAME, plan_text(plan, plan->run_id), 0, 0, 0);
    }
    if (!tell(direct, &started))
        direct->caller_gone = true;
    return 0;
}

static void end_all(struct direct *direct, const pid_t *keepers, size_t keeper_n)
{
    (void)children_kill(keepers, keeper_n);
    direct->give_up_us = clock_us() + LEFTOVERS_WAIT_US;
}

void direct_obey(struct direct *direct, const pid_t *keepers, size_t keeper_n)
{
    struct box_message message;
    struct err ignored;

    if (message_receive(direct->caller_fd, &message, &ignored) <= 0) {
        direct->caller_gone = true;
        end_all(direct, keepers, keeper_n);
    } else if (message.kind == BOX_KILL) {
        end_all(direct, keepers, keeper_n);
    } else if (message.kind == BOX_SIGNAL && direct->pid > 0) {
        (void)kill(-direct->pid, message.status); /* gone already is as good */
    }
}

static uint64_t cpu_us(const struct rusage *usage)
{
    return (uint64_t)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * 1000000U +
           (uint64_t)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec);
}

/* What orphans used counts as far as they ended before it. */
void direct_reaped(struct direct *direct, pid_t pid, int status, const struct rusage *usage)
{
    struct box_message *exited = &direct->exited;
    uint64_t peak = (uint64_t)usage->ru_maxrss * 1024U;

    if (direct->caller_fd < 0 || direct->pid == 0)
        return;
    exited->cpu_us += cpu_us(usage);
    exited->read_bytes += (uint64_t)usage->ru_inblock * RUSAGE_BLOCK;
    exited->written_bytes += (uint64_t)usage->ru_oublock * RUSAGE_BLOCK;
    if (peak > exited->peak_memory_bytes)
        exited->peak_memory_bytes = peak;
    if (pid != direct->pid)
        return;
    exited->kind = BOX_EXITED;
    exited->status = status;
    direct->pid = 0;
    direct->give_up_us = clock_us() + LEFTOVERS_WAIT_US;
}

/* Without keepers the kernel says so itself: we have no child at all. */
static bool is_clear(const pid_t *keepers, size_t keeper_n)
{
    siginfo_t info;

    if (keeper_n == 0 && waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0)
        return errno == ECHILD;
    return children_kill(keepers, keeper_n) == 0;
}

int direct_look(struct direct *direct, const pid_t *keepers, size_t keeper_n)
{
    int caller_fd = direct->caller_fd;
    bool clear;

    if (caller_fd < 0 || direct->pid > 0)
        return -1;
    clear = is_clear(keepers, keeper_n) || clock_us() >= direct->give_up_us;
    direct->exited.value = clear;
    if ((clear || direct->exited.kind == BOX_EXITED) && !direct->caller_gone)
        direct->caller_gone = !tell(direct, &direct->exited);
    direct->exited.kind = BOX_CLEAR; /* the end itself is told once */
    if (!clear)
        return -1;
    direct->caller_fd = -1;
    (void)prctl(PR_SET_NAME, OWN_NAME, 0, 0, 0);
    if (!direct->caller_gone)
        return caller_fd;
    (void)close(caller_fd);
    return -1;
}
