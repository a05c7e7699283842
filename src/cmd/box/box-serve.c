/* SPDX-License-Identifier: Apache-2.0 */

/* PID 1 of a kept sandbox. Commands arrive as connections; each gets a keeper, a child of ours
 * that takes the command's plan and streams, starts it, tells its caller how it went, and ends
 * what it left behind. A keeper adopts the orphans of its command, so "what it left behind" is
 * exactly its own children. Told to leave them, it stays with them until the last has ended: so
 * a child of PID 1 that is no keeper has lost its own, and ends.
 *
 * The walls stand already; all of this happens inside them. A command that kills its keeper harms
 * its own caller's answer and nobody else. */

#include "cmd/box/box.h"

#include "lib/base/clock.h"
#include "lib/linux/fd-pass.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define LEFTOVERS_WAIT_US 2000000U
#define REQUEST_WAIT_MS 30000
#define KEEPERS_MAX 1024
#define CHILDREN_TEXT_MAX 16384

enum { PASSED_PLAN, PASSED_IN, PASSED_OUT, PASSED_ERR, PASSED_COUNT };

/* ---- a keeper ---- */

/* Through no link, one name after the other: the seccomp filter no longer lets through the call
 * that does this in one go. */
static int enter_workdir(const char *path, struct err *err)
{
    AUTO_FD int at = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    char name[256];

    for (const char *part = path + strspn(path, "/"); at >= 0 && *part;) {
        size_t n = strcspn(part, "/");
        int next;

        if (n >= sizeof name)
            return err_set(err, ERR_INVALID, "working directory %.200s", path);
        memcpy(name, part, n);
        name[n] = '\0';
        next = openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        (void)close(at);
        at = next;
        part += n + strspn(part + n, "/");
    }
    if (at < 0 || fchdir(at) < 0)
        return err_os(err, "working directory %.200s", path);
    return 0;
}

static bool is_among(long pid, const pid_t *spared, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (spared[i] == pid)
            return true;
    return false;
}

static void kill_children_but(const pid_t *spared, size_t spared_n)
{
    static char text[CHILDREN_TEXT_MAX];
    char path[64];
    ssize_t n;
    int fd;

    (void)snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        (void)close(fd);
    if (n <= 0)
        return;
    text[n] = '\0';
    for (char *at = text, *end; *at; at = end) {
        long pid = strtol(at, &end, 10);

        if (end == at)
            return;
        if (pid > 1 && !is_among(pid, spared, spared_n))
            (void)kill((pid_t)pid, SIGKILL);
    }
}

/* Orphans of those we end become our children in turn, so we go on until there are none. */
void leftovers_end(void)
{
    uint64_t give_up_us = clock_us() + LEFTOVERS_WAIT_US;

    while (clock_us() < give_up_us) {
        kill_children_but(NULL, 0);
        while (waitpid(-1, NULL, WNOHANG) > 0)
            continue;
        if (waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD)
            return;
        (void)poll(NULL, 0, 1);
    }
}

/* The caller has its answer; what it wanted to stay needs somebody to belong to. */
static void stay_with_children(void)
{
    (void)close(BOX_FD_INSIDE);
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
        continue;
}

/* What the sandbox's process list shows of a keeper: which run it is. */
static void take_name(const struct box_plan *plan)
{
    (void)prctl(PR_SET_NAME, plan_text(plan, plan->run_id), 0, 0, 0);
}

static int run_passed(const int *fds, struct err *err)
{
    const struct box_plan *plan = NULL;
    int failed;

    if (plan_open(fds[PASSED_PLAN], &plan, err) < 0 ||
        enter_workdir(plan_text(plan, plan->workdir), err) < 0)
        return -1;
    take_name(plan);
    if (plan->detached) {
        (void)close(fds[PASSED_PLAN]);
        failed = detached_run(plan, fds + PASSED_IN, err);
        if (failed == 0 && plan->keep_background)
            stay_with_children();
        return failed;
    }
    for (int i = 0; i < 3; i++)
        if (dup2(fds[PASSED_IN + i], i) < 0)
            return err_os(err, "taking over the streams");
    for (int i = 0; i < PASSED_COUNT; i++)
        (void)close(fds[i]);
    failed = command_run(plan, err);
    if (failed || !plan->keep_background)
        leftovers_end();
    else
        stay_with_children();
    return failed < 0 ? -1 : 0;
}

/* Reports as often as asked, then runs one command. */
static int answer_caller(const struct box *box, struct err *err)
{
    for (;;) {
        struct pollfd polled = {.fd = BOX_FD_INSIDE, .events = POLLIN};
        struct box_message message;
        int fds[PASSED_COUNT];
        int got = poll(&polled, 1, REQUEST_WAIT_MS);

        if (got == 1)
            got = fds_receive(BOX_FD_INSIDE, &message, sizeof message, fds, PASSED_COUNT, err);
        if (got <= 0)
            return got; /* gone, or never came to the point */
        if (got != (int)sizeof message)
            return err_set(err, ERR_INTEGRITY, "a message of %d bytes", got);
        if (message.kind == BOX_EXEC && fds[PASSED_PLAN] >= 0)
            return run_passed(fds, err);
        if (message.kind == BOX_FILE)
            return files_serve(box, err);
        if (message.kind == BOX_CONNECT)
            return ports_serve(&message, err);
        if (message.kind != BOX_REPORT || report_send(box, err) < 0)
            return -1;
    }
}

static NORETURN void be_keeper(const struct box *box, int fd)
{
    struct box_message failed = {.kind = BOX_FAILED};
    struct err err = {.code = ERR_INVALID, .text = "not an order for a command"};

    (void)close(box->plan->execs_fd);
    (void)close(box->sync_fd);
    if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0 || dup2(fd, BOX_FD_INSIDE) < 0)
        _exit(1);
    (void)fcntl(BOX_FD_INSIDE, F_SETFD, FD_CLOEXEC);
    if (fd != BOX_FD_INSIDE)
        (void)close(fd);
    if (answer_caller(box, &err) == 0)
        _exit(0);
    failed.err = err;
    _exit(message_send(BOX_FD_INSIDE, &failed, &err) < 0 ? 2 : 1);
}

/* ---- PID 1 ---- */

struct keepers {
    pid_t pids[KEEPERS_MAX];
    size_t n;
};

static void start_keeper(const struct box *box, struct keepers *keepers)
{
    int fd = accept4(box->plan->execs_fd, NULL, NULL, SOCK_CLOEXEC);
    pid_t pid;

    if (fd < 0)
        return; /* whoever it was is gone */
    pid = keepers->n < KEEPERS_MAX ? fork() : -1;
    if (pid == 0)
        be_keeper(box, fd);
    if (pid > 0)
        keepers->pids[keepers->n++] = pid;
    (void)close(fd); /* none of it shows as a closed connection */
    (void)send(box->sync_fd, "s", 1, MSG_NOSIGNAL | MSG_DONTWAIT); /* outer looks again */
}

/* Ends of children wake us, so those whom an orphan's end makes ours are met the next time. */
static void reap(struct keepers *keepers)
{
    bool reaped = false;
    pid_t pid;

    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0) {
        reaped = true;
        for (size_t i = 0; i < keepers->n; i++)
            if (keepers->pids[i] == pid) {
                keepers->pids[i] = keepers->pids[--keepers->n];
                break;
            }
    }
    if (reaped)
        kill_children_but(keepers->pids, keepers->n);
}

/* Everybody but us, in one call that no fork can slip through; and nobody new meanwhile. */
static bool on_order(int fd, bool *still)
{
    char order = 0;

    if (recv(fd, &order, 1, 0) != 1)
        return false;
    if (order == 'p')
        (void)kill(-1, SIGSTOP);
    if (order == 'c')
        (void)kill(-1, SIGCONT);
    *still = order == 'p';
    return send(fd, &order, 1, MSG_NOSIGNAL) == 1;
}

int serve_run(const struct box *box, struct err *err)
{
    struct pollfd polled[] = {
        {.fd = box->plan->execs_fd, .events = POLLIN},
        {.fd = box->sync_fd,        .events = POLLIN},
        {.fd = -1,                  .events = POLLIN},
    };
    static struct keepers keepers;
    struct box_message serving = {.kind = BOX_STARTED};
    bool still = false;
    sigset_t child;

    (void)sigemptyset(&child);
    (void)sigaddset(&child, SIGCHLD);
    (void)sigprocmask(SIG_BLOCK, &child, NULL);
    polled[2].fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    streams_let_go();
    if (polled[2].fd < 0 || send(box->sync_fd, "s", 1, MSG_NOSIGNAL) != 1)
        return err_os(err, "beginning to serve");
    if (message_send(BOX_FD_INSIDE, &serving, err) < 0)
        return -1;
    (void)close(BOX_FD_INSIDE); /* keepers put their caller there */
    for (;;) {
        struct signalfd_siginfo info;

        if (poll(polled, COUNT(polled), -1) < 0 && errno != EINTR)
            return err_os(err, "waiting for commands");
        if (polled[2].revents)
            (void)!read(polled[2].fd, &info, sizeof info); /* only wakes us */
        reap(&keepers);
        if (polled[0].revents)
            start_keeper(box, &keepers);
        if (polled[1].revents && !on_order(box->sync_fd, &still))
            return 0; /* the supervisor is gone, and we with it */
        polled[0].fd = still ? -1 : box->plan->execs_fd;
        polled[0].revents = 0;
    }
}
