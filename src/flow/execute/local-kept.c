/* SPDX-License-Identifier: Apache-2.0 */
#include "flow/execute/kept.h"

#include "lib/base/clock.h"
#include "lib/base/io.h"
#include "lib/base/memory.h"
#include "lib/linux/fd-pass.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>

#define SERVE_WAIT_US 5000000U
#define GONE_WAIT_US 5000000U

/* ---- made to stay ---- */

/* It served, and its time was over before its PID 1 came to tell us: nothing failed. */
static bool has_lived(const struct box_message *message)
{
    return message->kind == BOX_GONE &&
           (message->reason == REASON_SANDBOX_EXPIRED || message->reason == REASON_SANDBOX_IDLE);
}

int kept_release(struct run *run, struct local *local, struct err *err)
{
    uint64_t deadline_us = clock_us() + SERVE_WAIT_US;
    struct box_message message;
    bool from_inside = false;

    if (box_say(local->inside_fd, BOX_RELEASE, 0) < 0)
        return err_os(err, "releasing the sandbox");
    do {
        if (box_wait(local, deadline_us, &message, &from_inside, err) < 0)
            return -1;
    } while (message.kind != BOX_STARTED && message.kind != BOX_FAILED && !has_lived(&message));
    if (message.kind == BOX_FAILED) {
        *err = message.err;
        return err_in(err, "beginning to serve");
    }
    /* From here on it belongs to its outer process, and to whoever finds its folder. */
    local->stays = true;
    run->outcome.started = run->outcome.ended = true;
    return 0;
}

/* ---- a command in one that stays ---- */

int joined_streams(struct local *local, struct err *err)
{
    int in[2], out[2], error[2];

    if (pipe2(in, O_CLOEXEC) < 0)
        return err_os(err, "making the streams of the command");
    local->passed_fds[0] = in[0];
    local->in_fd = in[1];
    if (pipe2(out, O_CLOEXEC) < 0)
        return err_os(err, "making the streams of the command");
    local->out_fd = out[0];
    local->passed_fds[1] = out[1];
    if (pipe2(error, O_CLOEXEC) < 0)
        return err_os(err, "making the streams of the command");
    local->err_fd = error[0];
    local->passed_fds[2] = error[1];
    return 0;
}

/* Kept open: whoever clears up behind the sandbox removes its name. */
static int open_box_lock(struct local *local, struct err *err)
{
    char path[RUN_DIR_BYTES + 16];

    (void)snprintf(path, sizeof path, "%s.lock", local->run_dir);
    local->box_lock_fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    return local->box_lock_fd < 0 ? err_os(err, "opening %s", path) : 0;
}

/* Its groups, if it has any: PID 1 is in them, or in none of ours. */
static void find_groups(struct joint *joint, const struct local *local)
{
    char name[CGROUP_NAME_BYTES];
    struct err ignored; /* then nothing is held by them, which is seen at every command */

    joint->host = *local->groups;
    cgroup_name_of(joint->sandbox, name);
    if (joint->host.tree_n && cgroup_set_find(&joint->host, name, &joint->groups, &ignored) < 0)
        joint->groups = (struct cgroup_set){0};
}

/* Once opened it is of this process for good, whoever gets its number later. */
static int open_status(struct joint *joint, struct err *err)
{
    char path[64];

    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)joint->inside);
    joint->status_fd = open(path, O_RDONLY | O_CLOEXEC);
    return joint->status_fd < 0 ? err_os(err, "opening %s", path) : 0;
}

static int join_first(struct execute *execute, const char *sandbox, struct local *local,
                      struct err *err)
{
    struct box_message order = {.kind = BOX_STATUS};
    struct box_message answer;

    if (kept_open(execute, sandbox, local->run_dir, err) < 0 || open_box_lock(local, err) < 0 ||
        kept_order(local->run_dir, &order, &answer, err) < 0)
        return -1;
    if (answer.status == 2)
        return err_set(err, ERR_UNAVAILABLE, "the sandbox is still being made; try again");
    local->inside = answer.pid;
    if (kept_connect(local->run_dir, "execs", &local->inside_fd, err) < 0)
        return -1;
    local->joint = xcalloc(1, sizeof *local->joint);
    *local->joint = (struct joint){
        .inside_fd = -1, .box_lock_fd = -1, .inside = answer.pid, .report = BUF(BOX_REPORT_MAX)};
    (void)strcpy(local->joint->sandbox, sandbox);
    find_groups(local->joint, local);
    return open_status(local->joint, err);
}

static int join_again(struct execute *execute, struct joint *joint, struct local *local)
{
    kept_dir(execute, joint->sandbox, local->run_dir);
    local->joint = joint;
    local->inside = joint->inside;
    local->inside_fd = TAKE_FD(joint->inside_fd);
    local->box_lock_fd = TAKE_FD(joint->box_lock_fd);
    return 0;
}

static int join(struct execute *execute, const char *sandbox, struct local *local, struct err *err)
{
    struct joint *joint = joint_take(execute, sandbox);

    return joint ? join_again(execute, joint, local) : join_first(execute, sandbox, local, err);
}

int joined_begin(struct execute *execute, struct run *run, struct local *local, struct err *err)
{
    struct box_message ask = {.kind = BOX_REPORT};

    local->joined = true;
    local->state_dir = execute->state_dir;
    if (exec_lock_make(execute, run, local, err) < 0 ||
        join(execute, run->action.sandbox, local, err) < 0)
        return -1;
    if (kept_is_paused(local->run_dir))
        return err_set(err, ERR_CONFLICT, "the sandbox is paused; resume it first");
    ask.value = local->joint->report_number;
    if (send(local->inside_fd, &ask, sizeof ask, MSG_NOSIGNAL) != (ssize_t)sizeof ask)
        return err_os(err, "asking the sandbox for its report");
    /* Meanwhile PID 1 looks at itself. */
    cgroup_set_refusals(&local->joint->groups, &local->before);
    return run->action.detach ? detached_prepare(run, local, err) : joined_streams(local, err);
}

int joined_start(struct run *run, struct local *local, struct err *err)
{
    struct box_message order = {.kind = BOX_EXEC};
    AUTO_FD int plan_fd = -1;
    int failed;

    if (command_plan_seal(run, local, &plan_fd, err) < 0)
        return -1;
    failed = fds_send(
        local->inside_fd, &order, sizeof order,
        (int[]){plan_fd, local->passed_fds[0], local->passed_fds[1], local->passed_fds[2]}, 4, err);
    for (size_t i = 0; i < COUNT(local->passed_fds); i++) {
        (void)close(local->passed_fds[i]);
        local->passed_fds[i] = -1;
    }
    return failed;
}

/* A command whose keeper did not get to say how it ended, ended with the sandbox, for its reason;
 * or the keeper was killed, and the sandbox has none. */
static bool ended_with_sandbox(struct outcome *outcome, const struct local *local)
{
    enum reason reason = reason_in(local->box_lock_fd);

    if (outcome->reason != REASON_SANDBOX_FAILED || reason == REASON_RUN_ABANDONED)
        return false;
    outcome->reason = reason;
    outcome->oom_killed = reason == REASON_LIMIT_MEMORY;
    outcome->failure = NULL;
    return true;
}

/* What the limits of the sandbox as a whole did while the command ran. */
static void see_refusals(struct outcome *outcome, const struct local *local)
{
    struct cgroup_usage now = {0};

    cgroup_set_refusals(&local->joint->groups, &now);
    outcome->oom_killed = now.oom_kills > local->before.oom_kills;
    if (outcome->reason != REASON_NONE)
        return;
    if (outcome->oom_killed)
        outcome->reason = REASON_LIMIT_MEMORY;
    else if (now.pids_refused > local->before.pids_refused)
        outcome->reason = REASON_LIMIT_PIDS;
}

void joined_end(struct execute *execute, struct run *run, struct local *local)
{
    if (!ended_with_sandbox(&run->outcome, local))
        see_refusals(&run->outcome, local);
    if (!local->clear)
        return;
    local->joint->inside_fd = TAKE_FD(local->inside_fd);
    local->joint->box_lock_fd = TAKE_FD(local->box_lock_fd);
    joint_put(execute, TAKE(local->joint));
}

/* ---- orders ---- */

int kept_wait_gone(const struct execute *execute, const char *id, bool clear, struct err *err)
{
    char boxes[RUN_DIR_BYTES];
    char name[64];
    uint64_t deadline_us = clock_us() + GONE_WAIT_US;
    AUTO_FD int boxes_fd = -1;

    (void)snprintf(boxes, sizeof boxes, "%.2000s/boxes", execute->state_dir);
    (void)snprintf(name, sizeof name, "%.20s.lock", id);
    boxes_fd = open(boxes, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (boxes_fd < 0)
        return err_os(err, "opening %s", boxes);
    while (clock_us() < deadline_us) {
        AUTO_FD int fd = openat(boxes_fd, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);

        if (fd < 0 && errno == ENOENT)
            return 0;
        if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
            return !clear                                 ? 0
                   : faccessat(boxes_fd, id, F_OK, 0) < 0 ? dir_remove(boxes_fd, name, err)
                                                          : run_remove(boxes_fd, id, err);
        (void)poll(NULL, 0, 2);
    }
    return err_set(err, ERR_TIMEOUT, "the sandbox does not end");
}

int local_change(struct execute *execute, struct run *run, struct err *err)
{
    static const enum box_message_kind orders[] = {
        [ACTION_PAUSE] = BOX_PAUSE,
        [ACTION_RESUME] = BOX_RESUME,
        [ACTION_EXTEND] = BOX_EXTEND,
        [ACTION_DESTROY] = BOX_KILL,
    };
    struct box_message order = {.kind = orders[run->action.kind], .value = run->action.extend_ms};
    struct box_message answer;
    char run_dir[RUN_DIR_BYTES];
    uint64_t began_us = clock_us();

    bool destroys = run->action.kind == ACTION_DESTROY;

    /* Of one we made ourselves we may still hold the lock; whoever made it has its receipts. */
    if (destroys && execute->local && execute->local->stays)
        local_free(TAKE(execute->local));
    if (kept_open(execute, run->action.sandbox, run_dir, err) < 0 ||
        kept_order(run_dir, &order, &answer, err) < 0) {
        /* Whoever was faster has done what was asked of us. */
        if (!destroys || err->code != ERR_NOT_FOUND)
            return -1;
        answer = (struct box_message){0};
    }
    if (destroys && kept_wait_gone(execute, run->action.sandbox, true, err) < 0)
        return -1;
    if (destroys) {
        joint_free(joint_take(execute, run->action.sandbox));
        joints_forget(execute);
    }
    run->outcome.started = run->outcome.ended = true;
    run->outcome.cpu_us = answer.cpu_us;
    run->outcome.peak_memory_bytes = answer.peak_memory_bytes;
    run->outcome.duration_us = clock_us() - began_us;
    return 0;
}
