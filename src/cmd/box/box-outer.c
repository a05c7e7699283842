/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/box/box.h"

#include "cmd/box/box-callers.h"
#include "cmd/box/box-identity.h"
#include "lib/base/clock.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/linux/cgroup.h"
#include "lib/linux/fd-pass.h"
#include "lib/linux/process.h"
#include "lib/linux/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define NAMESPACES                                                                                 \
    (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS)
#define WATCH_PAUSE_MS 50
#define IDLE_PAUSE_MS 30000
#define REMOVE_WAIT_MS 2000

/* As box_lacks(): namespaces shared with the host. */
#ifndef BOX_WITHOUT_NAMESPACES
#define BOX_WITHOUT_NAMESPACES 0
#endif

struct outer {
    struct box *box;
    struct cgroup_set groups;
    struct watch watch;
    pid_t pid; /* PID 1 of the sandbox */
    int pidfd;
    enum reason reason; /* what made us end it */
    struct life life;
    bool released;   /* a kept sandbox serves: from now on it needs no caller */
    bool noted;      /* its lock says why it ended */
    bool supervised; /* somebody is at the other end of BOX_FD_SUPERVISOR */
};

static int begin_groups(struct outer *outer, struct err *err)
{
    const struct box_plan *plan = outer->box->plan;

    if (!plan->cgroup_name)
        return 0;
    /* The caller has just looked for them, and planned by what it found. */
    return cgroup_set_begin(plan_array(plan, plan->cgroup_host), plan_text(plan, plan->cgroup_name),
                            &outer->groups, err);
}

static int complete_groups(struct outer *outer, struct err *err)
{
    const struct box_plan *plan = outer->box->plan;
    struct cgroup_limits limits = {
        .memory_bytes = plan->cgroup_memory_bytes,
        .pids = plan->cgroup_pids,
        .cpu_millis = plan->cgroup_cpu_millis,
    };

    if (!plan->cgroup_name)
        return 0;
    if (cgroup_set_complete(&outer->groups, err) < 0)
        return -1;
    return box_lacks("group limits") ? 0 : cgroup_set_limit(&outer->groups, &limits, err);
}

/* For PID 1, to whom our groups are closed. */
static int hand_over_groups(struct outer *outer, struct err *err)
{
    int fds[CGROUP_TREES_MAX];
    size_t n = 0;
    int failed = 0;

    if (!outer->box->groups || box_lacks("group membership"))
        return 0;
    failed = cgroup_set_doors(&outer->groups, fds, &n, err);
    if (!failed)
        failed = fds_send(outer->box->sync_fd, "g", 1, fds, n, err);
    for (size_t i = 0; i < n; i++)
        (void)close(fds[i]);
    return failed;
}

static int say_ready(int fd, struct err *err)
{
    if (send(fd, "r", 1, MSG_NOSIGNAL) != 1)
        return err_os(err, "telling the sandbox to go on");
    return 0;
}

void be_inside(struct box *box)
{
    struct box_message failed = {.kind = BOX_FAILED};
    struct err err;

    commands_use(box->commands);
    (void)close(BOX_FD_SUPERVISOR);
    (void)close(BOX_FD_LOCK);
    if (box->spawner_fd >= 0)
        (void)close(box->spawner_fd);
    if (box->plan->control_fd >= 0)
        (void)close(box->plan->control_fd);
    if (steps_run(box, &err) == 0 && report_send(box, &err) == 0 &&
        command_wait_for_release(&err) == 0 &&
        (box->plan->execs_fd >= 0 ? serve_run(box, &err) : command_run(box->plan, &err)) >= 0)
        _exit(0);
    failed.err = err;
    _exit(message_send(BOX_FD_INSIDE, &failed, &err) < 0 ? 2 : 1);
}

static int begin_inside(struct outer *outer, int sync[2], int *cgroup_fd, struct err *err)
{
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sync) < 0)
        return err_os(err, "making a socket to the sandbox");
    outer->box->groups = outer->box->plan->cgroup_name ? &outer->groups : NULL;
    *cgroup_fd = box_lacks("group membership") ? -1 : cgroup_set_v2_fd(&outer->groups);
    return 0;
}

static int clone_inside(struct outer *outer, struct err *err)
{
    struct clone_request request = {.flags = NAMESPACES & ~(uint64_t)BOX_WITHOUT_NAMESPACES};
    int sync[2];

    if (begin_groups(outer, err) < 0 || complete_groups(outer, err) < 0 ||
        begin_inside(outer, sync, &request.cgroup_fd, err) < 0)
        return -1;
    outer->pid = sys_clone(&request, &outer->pidfd);
    if (outer->pid == 0) {
        (void)close(sync[0]);
        outer->box->sync_fd = sync[1];
        be_inside(outer->box);
    }
    (void)close(sync[1]);
    outer->box->sync_fd = sync[0];
    if (outer->pid < 0)
        return err_os(err, "making the namespaces of the sandbox");
    return 0;
}

/* Out of a template PID 1 can do much before it needs its groups: they are made meanwhile. */
static int enter_inside(struct outer *outer, struct err *err)
{
    struct entering entering;
    struct err late;
    int cgroup_fd;
    int sync[2];
    int failed;

    if (begin_groups(outer, err) < 0 || begin_inside(outer, sync, &cgroup_fd, err) < 0)
        return -1;
    outer->box->sync_fd = sync[1];
    failed = enter_begin(outer->box, cgroup_fd, &entering, err);
    (void)close(sync[1]);
    outer->box->sync_fd = sync[0];
    if (failed)
        return -1;
    failed = complete_groups(outer, err);
    if (!failed)
        failed = hand_over_groups(outer, err);
    if (enter_end(outer->box, &entering, &outer->pid, &outer->pidfd, &late) == 0)
        return failed;
    if (!failed)
        *err = late;
    return -1;
}

/* What belongs to the sandbox must end with it, not with us. */
static void let_go(struct box *box)
{
    streams_let_go();
    (void)close(BOX_FD_INSIDE);
    for (uint32_t i = 0; i < box->plan->mount_n; i++)
        if (box->tree_fds[i] >= 0)
            (void)close(box->tree_fds[i]);
}

/* Our caller is not our parent then, and has no other way to hold on to us. */
static int send_placed(const struct box_message *placed, struct err *err)
{
    AUTO_FD int self_fd = pidfd_open(getpid(), 0);

    if (self_fd < 0)
        return err_os(err, "opening ourselves");
    return fds_send(BOX_FD_SUPERVISOR, placed, sizeof *placed, &self_fd, 1, err);
}

/* PID 1 hands it over with the last wall. */
static int hear_connects(const struct outer *outer, struct err *err)
{
    AUTO_FD int heard_fd = -1;

    if (outer->box->plan->egress_fd < 0)
        return 0;
    if (fd_receive(outer->box->sync_fd, &heard_fd, err) < 0 ||
        callers_start(heard_fd, outer->box->plan->egress_fd, outer->pid, outer->box->commands,
                      err) < 0)
        return err_in(err, "watching who connects");
    heard_fd = -1; /* the thread's */
    return 0;
}

static int hear_attempts(const struct outer *outer, struct err *err)
{
    AUTO_FD int heard_fd = -1;

    if (!outer->box->plan->exec_once || box_lacks("one program"))
        return 0;
    if (fd_receive(outer->box->sync_fd, &heard_fd, err) < 0 || attempts_start(heard_fd, err) < 0)
        return err_in(err, "watching what else it would run");
    heard_fd = -1; /* the thread's */
    return 0;
}

static int place(struct outer *outer, struct err *err)
{
    const struct box_plan *plan = outer->box->plan;
    struct box_message placed = {.kind = BOX_PLACED, .pid = outer->pid};
    uint32_t host_uid = box_lacks("foreign id") ? 0 : plan->host_uid;

    if (!outer->box->prepared &&
        (idmap_write(outer->pid, plan->inside_uid, host_uid, plan->inside_gid, plan->host_gid,
                     !plan->started_by_root, err) < 0 ||
         say_ready(outer->box->sync_fd, err) < 0))
        return -1;
    if (fd_receive(outer->box->sync_fd, &outer->watch.proc_fd, err) < 0 ||
        fd_receive(outer->box->sync_fd, &outer->watch.shm_fd, err) < 0 ||
        hear_attempts(outer, err) < 0 || hear_connects(outer, err) < 0)
        return -1;
    return outer->box->spawner_fd >= 0 ? send_placed(&placed, err)
                                       : message_send(BOX_FD_SUPERVISOR, &placed, err);
}

static void end_inside(const struct outer *outer)
{
    (void)pidfd_send_signal(outer->pidfd, SIGKILL, NULL, 0); /* gone already is as good */
}

/* Whoever finds the lock of a kept sandbox free reads there why it ended, and so does the caller of
 * a command that ends with it: written before the first process goes. */
static int note_reason(struct outer *outer, struct err *err)
{
    if (outer->box->plan->control_fd < 0 || outer->noted)
        return 0;
    outer->noted = true;
    if (dprintf(BOX_FD_LOCK, "%s\n", reason_code(outer->reason)) < 0)
        return err_os(err, "noting why the sandbox ended");
    return 0;
}

static void end_for_reason(struct outer *outer)
{
    struct err ignored; /* then it is told as a sandbox that was abandoned */

    (void)!note_reason(outer, &ignored);
    end_inside(outer);
}

/* There for the callers to come: neither the end of the one it has nor of whoever made it is its
 * own. */
static bool is_kept(const struct outer *outer)
{
    return outer->box->plan->control_fd >= 0 && outer->released && !outer->life.tied;
}

/* A caller that is gone wants nothing more from a one-shot sandbox; a kept one is there for the
 * callers to come. */
static void on_supervisor(struct outer *outer)
{
    struct box_message answer = {.kind = BOX_STATUS, .pid = outer->pid};
    struct box_message message;
    struct err ignored; /* whoever is gone shows at the next look */
    int got = message_receive(BOX_FD_SUPERVISOR, &message, &ignored);

    outer->supervised = got > 0;
    if ((got <= 0 && !is_kept(outer)) || (got > 0 && message.kind == BOX_KILL))
        end_inside(outer);
    if (got > 0 && message.kind == BOX_SETTLE && outer->life.tied) {
        life_settle(&outer->life, &message);
        (void)!message_send(BOX_FD_SUPERVISOR, &answer, &ignored);
    }
}

static void look_after(struct outer *outer)
{
    if (outer->reason != REASON_NONE)
        return;
    outer->reason = watch_look(&outer->watch);
    if (outer->reason == REASON_NONE && outer->released)
        outer->reason = life_over(&outer->life, outer->watch.processes);
    if (outer->reason != REASON_NONE)
        end_for_reason(outer);
}

/* With nobody in it there is nothing to measure, only its time to keep: PID 1 wakes us when
 * somebody comes. */
static bool is_idle(const struct outer *outer)
{
    return outer->released && outer->watch.processes <= 1 && !outer->watch.disk_left;
}

static int pause_ms(const struct outer *outer, bool rests)
{
    uint64_t pause = rests ? IDLE_PAUSE_MS : IDLE_AFTER_MS;
    uint64_t left_ms;

    if (!is_idle(outer))
        return WATCH_PAUSE_MS;
    left_ms = life_left_ms(&outer->life);
    return left_ms < pause ? (int)left_ms + 1 : (int)pause;
}

/* Its time counts from when it can be used: what it took to build is nobody's to lose. */
static void begin_life(struct outer *outer)
{
    if (!outer->released)
        life_begin(&outer->life, outer->box->plan);
    outer->life.busy_us = clock_us(); /* whoever came may have left already */
    outer->released = outer->life.serves = true;
}

/* PID 1 says that it serves, that a command came, or is gone, which shows at the pidfd. */
static bool hear_pid_one(struct outer *outer)
{
    char released;

    if (recv(outer->box->sync_fd, &released, 1, MSG_DONTWAIT) != 1)
        return false;
    begin_life(outer);
    return true;
}

/* A spawner takes its boxes with it, but for one that serves already: PID 1 said so before anybody
 * could end the spawner for being done. */
static bool is_orphaned(struct outer *outer)
{
    if (!outer->released)
        (void)hear_pid_one(outer);
    return !is_kept(outer);
}

/* Killed before it is let go on: none of it runs again. */
static void leave(struct outer *outer, const struct hold *hold)
{
    struct err ignored; /* the killed need nobody's leave to end but the v1 freezer's */

    end_inside(outer);
    if (outer->box->plan->cgroup_name)
        (void)!hold_processes(hold, false, &ignored);
}

/* Until PID 1 is gone: the kernel has then ended every process of the sandbox. */
static void supervise(struct outer *outer)
{
    struct pollfd polled[] = {
        {.fd = outer->pidfd,                 .events = POLLIN},
        {.fd = -1,                           .events = POLLIN},
        {.fd = outer->box->plan->control_fd, .events = POLLIN},
        {.fd = outer->box->sync_fd,          .events = POLLIN},
        {.fd = -1,                           .events = POLLIN},
        {.fd = outer->box->spawner_fd,       .events = POLLIN},
    };
    const struct hold hold = {outer->box, &outer->life, &outer->watch, &outer->groups};
    /* Whoever wakes us makes us look; in a one-shot sandbox not at once, for mostly it is the end.
     */
    uint64_t next_us = clock_us() + WATCH_PAUSE_MS * 1000U;
    bool woken = false;
    bool rests = false; /* nothing has happened for a moment */

    for (;;) {
        bool orphaned;
        int n;

        polled[1].fd = outer->supervised ? BOX_FD_SUPERVISOR : -1;
        polled[5].fd = is_kept(outer) ? -1 : outer->box->spawner_fd;
        polled[4].fd = outer->life.hold_fd;
        n = poll(polled, COUNT(polled), woken ? WATCH_PAUSE_MS : pause_ms(outer, rests));
        if (n > 0 && polled[0].revents)
            return;
        if (n > 0 && polled[3].revents && !hear_pid_one(outer) && !outer->released)
            polled[3].fd = -1;
        if (n > 0 && polled[1].revents)
            on_supervisor(outer);
        if (n > 0 && polled[2].revents) {
            bool taken = outer->life.taken;

            outer->reason = control_answer(outer->box, &outer->life, &outer->watch, &outer->groups,
                                           outer->pid, outer->reason);
            outer->supervised |= !taken && outer->life.taken && outer->reason == REASON_NONE;
        }
        orphaned = n > 0 && polled[5].revents && is_orphaned(outer);
        if (orphaned && outer->reason == REASON_NONE)
            outer->reason = REASON_SANDBOX_FAILED;
        if (outer->reason == REASON_SANDBOX_DESTROYED || orphaned)
            end_for_reason(outer);
        if (outer->life.heir_fd >= 0)
            leave(outer, &hold);
        else if (outer->life.hold_fd >= 0 &&
                 ((n > 0 && polled[4].revents) || clock_us() >= outer->life.hold_until_us))
            hold_end(&hold);
        woken = n != 0 && outer->box->plan->control_fd < 0 && clock_us() < next_us;
        if (!woken &&
            outer->life.heir_fd < 0) { /* what is left to another one is that one's to watch */
            look_after(outer);
            next_us = clock_us() + WATCH_PAUSE_MS * 1000U;
        }
        rests = n == 0 && is_idle(outer);
        if (rests)
            idle_give_back();
    }
}

static void take_usage(struct outer *outer, struct box_message *gone)
{
    struct cgroup_usage usage = {0};
    struct err ignored; /* what cannot be measured is reported as 0 */

    gone->peak_memory_bytes = outer->watch.peak_memory_bytes;
    gone->value = attempts_count();
    gone->reason = outer->reason;
    if (outer->watch.pids_reached && gone->reason == REASON_NONE)
        gone->reason = REASON_LIMIT_PIDS;
    if (!outer->box->plan->cgroup_name || cgroup_set_usage(&outer->groups, &usage, &ignored) < 0)
        return;
    gone->cpu_us = usage.cpu_us;
    if (usage.peak_memory_bytes)
        gone->peak_memory_bytes = usage.peak_memory_bytes;
    if (usage.oom_kills)
        gone->reason = REASON_LIMIT_MEMORY;
    else if (usage.pids_refused && outer->reason == REASON_NONE)
        gone->reason = REASON_LIMIT_PIDS;
}

/* Whoever took it out of the pool is there and tells of its end; nobody else has to. */
static void remove_lock(const struct box_plan *plan)
{
    char path[PATH_BYTES_MAX];

    (void)snprintf(path, sizeof path, "%s.lock", plan_text(plan, plan->run_dir));
    (void)unlink(path); /* one that stays is swept, and its end told twice */
}

static int clean_up(struct outer *outer, struct err *err)
{
    const struct box_plan *plan = outer->box->plan;
    int failed = note_reason(outer, err);

    if (plan->cgroup_name && outer->groups.host)
        failed = cgroup_set_remove(&outer->groups, REMOVE_WAIT_MS, err);
    if (dir_remove(AT_FDCWD, plan_text(plan, plan->run_dir), err) < 0)
        failed = -1;
    if (failed == 0 && outer->life.taken && outer->life.tied && outer->supervised)
        remove_lock(plan);
    return failed;
}

static int build(struct outer *outer, struct err *err)
{
    /* Signals of the caller's terminal are the caller's to answer. */
    (void)setsid();
    if (root_open_sources(outer->box, true, err) < 0)
        return -1;
    if (outer->box->plan->egress_fd >= 0 && commands_make(&outer->box->commands, err) < 0)
        return -1;
    if ((outer->box->prepared ? enter_inside(outer, err) : clone_inside(outer, err)) < 0)
        return -1;
    let_go(outer->box);
    return place(outer, err);
}

int outer_run(struct box *box, struct err *err)
{
    struct outer outer = {
        .box = box,
        .pid = -1,
        .pidfd = -1,
        .supervised = true,
        .watch = {.plan = box->plan, .proc_fd = -1, .shm_fd = -1},
        .life = {.hold_fd = -1,                 .heir_fd = -1                 }
    };
    struct box_message gone = {.kind = BOX_GONE};
    const struct hold hold = {box, &outer.life, &outer.watch, &outer.groups};
    int failed;

    life_begin(&outer.life, box->plan);
    failed = build(&outer, err);

    if (failed < 0) {
        gone.kind = BOX_FAILED;
        gone.err = *err;
        if (outer.pid > 0)
            end_inside(&outer);
    } else {
        supervise(&outer);
    }
    if (outer.pid > 0)
        while (waitpid(outer.pid, &gone.status, 0) < 0 && errno == EINTR)
            continue;
    take_usage(&outer, &gone);
    if (outer.life.heir_fd >= 0 && yield_end(&hold, &gone, err) == 0)
        return 0;
    if (clean_up(&outer, err) < 0 && failed == 0) {
        gone.kind = BOX_FAILED;
        gone.err = *err;
        failed = -1;
    }
    return message_send(BOX_FD_SUPERVISOR, &gone, err) < 0 ? 0 : failed;
}
