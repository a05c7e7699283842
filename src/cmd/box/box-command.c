/* SPDX-License-Identifier: Apache-2.0 */

/* One command: started, waited for, told about. In a one-shot sandbox PID 1 does this itself and
 * ends with it, and with PID 1 every process that is left. In a kept one a process per command
 * does it (box-serve.c). */

#include "cmd/box/box.h"

#include "cmd/box/box-identity.h"
#include "lib/base/limits.h"
#include "lib/base/memory.h"
#include "lib/linux/fd-pass.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define RUSAGE_BLOCK 512U /* the unit of ru_inblock and ru_oublock, whatever the disk has */

static char **words_of(const struct box_plan *plan, uint32_t at, uint32_t n)
{
    const uint32_t *texts = plan_array(plan, at);
    char **words = xcalloc(n + 1, sizeof *words);

    /* exec never writes to its arguments; its prototype is older than const. */
    for (uint32_t i = 0; i < n; i++)
        words[i] = (char *)(uintptr_t)plan_text(plan, texts[i]);
    return words;
}

static const char *search_path(char *const *env)
{
    for (; *env; env++)
        if (strncmp(*env, "PATH=", 5) == 0)
            return *env + 5;
    return "/usr/bin:/bin";
}

/* A terminal of the sandbox's own; the caller gets our end of it and relays. */
static int open_terminal(const struct box_plan *plan, struct command *command, struct err *err)
{
    static char path[64];
    struct winsize size = {.ws_row = plan->tty_rows, .ws_col = plan->tty_columns};
    int unlock = 0;
    unsigned number = 0;

    command->tty_fd = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (command->tty_fd < 0 || ioctl(command->tty_fd, TIOCSPTLCK, &unlock) < 0 ||
        ioctl(command->tty_fd, TIOCGPTN, &number) < 0)
        return err_os(err, "opening a terminal");
    /* Before anybody can look; later changes come from the caller. */
    (void)ioctl(command->tty_fd, TIOCSWINSZ, &size);
    (void)snprintf(path, sizeof path, "/dev/pts/%u", number);
    command->tty_path = path;
    return plan->detached ? 0 : fd_send(BOX_FD_INSIDE, command->tty_fd, err);
}

/* Signals we ignore, because whoever started us does. Asked once: nothing here changes them. */
static const sigset_t *ignored_signals(void)
{
    static sigset_t ignored;
    static bool asked;

    if (!asked)
        (void)sigemptyset(&ignored);
    for (int number = 1; !asked && number < NSIG; number++) {
        struct sigaction action;

        if (sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN)
            (void)sigaddset(&ignored, number);
    }
    asked = true;
    return &ignored;
}

/* What only the new process can do; an errno, or nothing any more. It shares our memory. */
static int become(const struct command *command, const char *path, const sigset_t *ignored)
{
    const struct sigaction usual = {.sa_handler = SIG_DFL};
    sigset_t none;

    for (int number = 1; number < NSIG; number++)
        if (sigismember(ignored, number) == 1)
            (void)sigaction(number, &usual, NULL);
    if (setsid() < 0 || (command->workdir_fd >= 0 && fchdir(command->workdir_fd) < 0))
        return errno;
    for (int fd = 0; command->streams && fd <= 2; fd++)
        if (dup2(command->streams[fd], fd) < 0)
            return errno;
    if (command->tty_path) {
        /* The first terminal a session leader opens becomes its controlling one. */
        (void)close(0);
        if (open(command->tty_path, O_RDWR) != 0 || dup2(0, 1) < 0 || dup2(0, 2) < 0)
            return errno;
    }
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    commands_note();
    if (command->exec_once)
        return once_exec(path, command->argv, command->env);
    (void)execve(path, command->argv, command->env);
    return errno;
}

/* One attempt; what the kernel answered comes back as an errno, 0 for started. As posix_spawn()
 * does it, but without a call for every signal there is. No signal reaches the new process while it
 * shares our memory. */
static int spawn_at(struct command *command, const char *path)
{
    const sigset_t *ignored = ignored_signals();
    volatile int error = 0;
    sigset_t all, before;
    pid_t pid;

    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, &before);
    pid = vfork(); /* NOLINT(clang-analyzer-security.insecureAPI.vfork): see above */
    if (pid == 0) {
        error = become(command, path, ignored); /* NOLINT(clang-analyzer-unix.Vfork) */
        _exit(127);
    }
    if (pid < 0)
        error = errno;
    once_forget();
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    if (error == 0)
        command->pid = pid;
    else
        while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            continue;
    return error;
}

/* 0 when a file of that name can be executed; folders cannot. */
static int look_at(const char *path)
{
    struct stat st;

    if (stat(path, &st) < 0)
        return errno;
    return S_ISREG(st.st_mode) && access(path, X_OK) == 0 ? 0 : EACCES;
}

/* As a shell would find it, in the PATH the command is given. A file that is found but cannot
 * be executed is remembered: "permission denied" says more than "not found". Looking before
 * trying spares a process for every folder of the PATH, and the command's terminal a first
 * owner that leaves at once. */
int command_spawn(struct command *command)
{
    const char *name = command->argv[0];
    const char *path = search_path(command->env);
    int answer = ENOENT;

    if (strchr(name, '/'))
        return spawn_at(command, name);
    while (*name && *path) {
        size_t n = strcspn(path, ":");
        char candidate[PATH_BYTES_MAX];
        int written = snprintf(candidate, sizeof candidate, "%.*s/%s", (int)n, path, name);
        int found = n > 0 && (size_t)written < sizeof candidate ? look_at(candidate) : ENOENT;

        if (found == 0)
            return spawn_at(command, candidate);
        if (found == EACCES)
            answer = EACCES;
        path += n + (path[n] == ':');
    }
    return answer;
}

uint64_t command_cpu_us(void)
{
    struct rusage usage;

    if (getrusage(RUSAGE_CHILDREN, &usage) < 0)
        return 0;
    return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000U +
           (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

void command_io(uint64_t *read_bytes, uint64_t *written_bytes)
{
    struct rusage usage = {0};

    (void)getrusage(RUSAGE_CHILDREN, &usage); /* what cannot be measured is reported as 0 */
    *read_bytes = (uint64_t)usage.ru_inblock * RUSAGE_BLOCK;
    *written_bytes = (uint64_t)usage.ru_oublock * RUSAGE_BLOCK;
}

uint64_t command_peak_bytes(void)
{
    struct rusage usage;

    return getrusage(RUSAGE_CHILDREN, &usage) < 0 ? 0 : (uint64_t)usage.ru_maxrss * 1024U;
}

bool command_reap(const struct command *command, int *status)
{
    bool ended = false;

    for (;;) {
        int each = 0;
        pid_t pid = waitpid(-1, &each, WNOHANG);

        if (pid <= 0)
            return ended;
        if (pid == command->pid) {
            *status = each;
            ended = true;
        }
    }
}

/* Messages while it runs. False: end it. */
static bool obey(const struct command *command, const struct box_message *message)
{
    if (message->kind == BOX_SIGNAL)
        (void)kill(-command->pid, message->status); /* gone already is as good */
    return message->kind != BOX_KILL;
}

static int wait_for_end(const struct command *command, struct err *err)
{
    struct pollfd polled[] = {
        {.fd = command->signals_fd, .events = POLLIN},
        {.fd = BOX_FD_INSIDE,       .events = POLLIN}
    };
    struct box_message message;
    int status = 0;

    for (;;) {
        struct signalfd_siginfo info;

        if (command_reap(command, &status))
            break;
        if (poll(polled, COUNT(polled), -1) < 0 && errno != EINTR)
            return err_os(err, "waiting for the command");
        if (polled[0].revents)
            (void)!read(polled[0].fd, &info, sizeof info); /* only wakes us */
        if (polled[1].revents) {
            int got = message_receive(BOX_FD_INSIDE, &message, err);

            if (got <= 0)
                return got < 0 ? -1 : err_set(err, ERR_UNAVAILABLE, "the caller is gone");
            if (!obey(command, &message))
                return 1;
        }
    }
    message = (struct box_message){.kind = BOX_EXITED,
                                   .status = status,
                                   .cpu_us = command_cpu_us(),
                                   .peak_memory_bytes = command_peak_bytes()};
    command_io(&message.read_bytes, &message.written_bytes);
    return message_send(BOX_FD_INSIDE, &message, err);
}

void command_init(struct command *command, const struct box_plan *plan)
{
    *command = (struct command){
        .argv = words_of(plan, plan->argv, plan->argv_n),
        .env = words_of(plan, plan->env, plan->env_n),
        .tty_fd = -1,
        .signals_fd = -1,
        .workdir_fd = -1,
        .exec_once = plan->exec_once != 0,
    };
}

void command_done(struct command *command)
{
    free(command->argv);
    free(command->env);
}

int command_start(const struct box_plan *plan, struct command *out, int *exec_errno,
                  struct err *err)
{
    sigset_t child;

    command_init(out, plan);
    (void)sigemptyset(&child);
    (void)sigaddset(&child, SIGCHLD);
    (void)sigprocmask(SIG_BLOCK, &child, NULL);
    out->signals_fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    if (out->signals_fd < 0)
        return err_os(err, "preparing to wait for the command");
    if (plan->tty && open_terminal(plan, out, err) < 0)
        return -1;
    *exec_errno = command_spawn(out);
    streams_let_go();
    return 0;
}

int command_run(const struct box_plan *plan, struct err *err)
{
    struct box_message started = {.kind = BOX_STARTED};
    struct command command;

    if (command_start(plan, &command, &started.err.os, err) < 0)
        return -1;
    if (started.err.os)
        started.kind = BOX_NOT_STARTED;
    if (message_send(BOX_FD_INSIDE, &started, err) < 0 || started.err.os)
        return started.err.os ? 0 : -1;
    return wait_for_end(&command, err);
}

int command_wait_for_release(struct err *err)
{
    struct box_message message;

    for (;;) {
        int got = message_receive(BOX_FD_INSIDE, &message, err);

        if (got < 0)
            return -1;
        if (got == 0)
            return err_set(err, ERR_UNAVAILABLE, "the caller is gone");
        if (message.kind == BOX_RELEASE)
            return 0;
    }
}
