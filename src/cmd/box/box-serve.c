/* SPDX-License-Identifier: Apache-2.0 */

/* PID 1 of a kept sandbox. Commands arrive as connections; each gets a keeper, a child of ours
 * that takes the command's plan and streams, starts it, tells its caller how it went, and ends
 * what it left behind unless told otherwise. A keeper adopts the orphans of its command, so "what
 * it left behind" is exactly its own children.
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

static void kill_children(void)
{
    char path[64];
    char text[4096];
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
        if (pid > 1)
            (void)kill((pid_t)pid, SIGKILL);
    }
}

/* Orphans of those we end become our children in turn, so we go on until there are none. */
static void end_leftovers(void)
{
    uint64_t give_up_us = clock_us() + LEFTOVERS_WAIT_US;

    while (clock_us() < give_up_us) {
        kill_children();
        while (waitpid(-1, NULL, WNOHANG) > 0)
            continue;
        if (waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD)
            return;
        (void)poll(NULL, 0, 1);
    }
}

static int run_passed(const int *fds, struct err *err)
{
    const struct box_plan *plan = NULL;
    int failed;

    if (plan_open(fds[PASSED_PLAN], &plan, err) < 0 ||
        enter_workdir(plan_text(plan, plan->workdir), err) < 0)
        return -1;
    for (int i = 0; i < 3; i++)
        if (dup2(fds[PASSED_IN + i], i) < 0)
            return err_os(err, "taking over the streams");
    for (int i = 0; i < PASSED_COUNT; i++)
        (void)close(fds[i]);
    failed = command_run(plan, err);
    if (failed || !plan->keep_background)
        end_leftovers();
    return failed;
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

static void start_keeper(const struct box *box)
{
    int fd = accept4(box->plan->execs_fd, NULL, NULL, SOCK_CLOEXEC);

    if (fd < 0)
        return; /* whoever it was is gone */
    if (fork() == 0)
        be_keeper(box, fd);
    (void)close(fd); /* a failed fork shows as a closed connection */
}

/* Everybody but us, in one call that no fork can slip through. */
static bool on_order(int fd)
{
    char order = 0;

    if (recv(fd, &order, 1, 0) != 1)
        return false;
    if (order == 'p')
        (void)kill(-1, SIGSTOP);
    if (order == 'c')
        (void)kill(-1, SIGCONT);
    return true;
}

int serve_run(const struct box *box, struct err *err)
{
    struct pollfd polled[] = {
        {.fd = box->plan->execs_fd, .events = POLLIN},
        {.fd = box->sync_fd,        .events = POLLIN},
        {.fd = -1,                  .events = POLLIN},
    };
    struct box_message serving = {.kind = BOX_STARTED};
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
        while (waitpid(-1, NULL, WNOHANG) > 0)
            continue;
        if (polled[0].revents)
            start_keeper(box);
        if (polled[1].revents && !on_order(box->sync_fd))
            return 0; /* the supervisor is gone, and we with it */
    }
}
