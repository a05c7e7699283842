/* SPDX-License-Identifier: Apache-2.0 */

/* An elevated command from its first to its last process.
 *
 *     we ──life──▶ keeper ──▶ command ──▶ …
 *        ◀─said──    ▲                     │
 *                    └── what it orphans ◀─┘
 *
 * The keeper hears on `life` when time is up, and that we are gone by its end. It ends whatever has
 * become its child, until there is none, and then says how the command ended. */

#include "flow/execute/host.h"

#include "flow/execute/execute.h"
#include "flow/execute/orders.h"
#include "flow/execute/relay-flow.h"
#include "lib/base/clock.h"
#include "lib/base/io.h"
#include "lib/base/memory.h"
#include "lib/crypto/crypto.h"
#include "model/run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define GRACE_US 250000U
#define CANCEL_GRACE_US 2000000U
#define SAME_BREATH_US 300000U
#define END_WAIT_US 10000000U /* for what does not die */
#define KEEPER_WAIT_US 1000000U
#define READER_WAIT_US 1000000U
#define PROCESSES_MAX 512
#define FILES_MAX 1024

/* What comes over `said`. */
struct said {
    int not_started; /* errno, or 0 */
    int status;
    uint64_t cpu_us;
    uint64_t peak_bytes;
    bool left_over; /* something could not be ended */
};

struct pipes {
    int life[2];
    int said[2];
    int out[2];
    int err[2];
};

static void close_all(struct pipes *pipes)
{
    int *all[] = {pipes->life, pipes->said, pipes->out, pipes->err};

    for (size_t i = 0; i < COUNT(all); i++)
        for (size_t end = 0; end < 2; end++)
            if (all[i][end] >= 0)
                (void)close(TAKE_FD(all[i][end]));
}
#define AUTO_PIPES __attribute__((cleanup(close_all)))

static int open_pipes(struct pipes *pipes, struct err *err)
{
    if (pipe2(pipes->life, O_CLOEXEC) < 0 || pipe2(pipes->said, O_CLOEXEC) < 0 ||
        pipe2(pipes->out, O_CLOEXEC) < 0 || pipe2(pipes->err, O_CLOEXEC) < 0)
        return err_os(err, "making pipes");
    return 0;
}

/* ---- the command ---- */

static bool set_limit(__rlimit_resource_t what, rlim_t value)
{
    struct rlimit now;

    if (getrlimit(what, &now) < 0)
        return false;
    if (now.rlim_max != RLIM_INFINITY && now.rlim_max < value)
        value = now.rlim_max;
    return setrlimit(what, &(struct rlimit){value, value}) == 0;
}

static bool become(const struct plan *plan)
{
    if (getuid() != 0)
        return true;
    return setgroups(0, NULL) == 0 &&
           setresgid(plan->inside_gid, plan->inside_gid, plan->inside_gid) == 0 &&
           setresuid(plan->inside_uid, plan->inside_uid, plan->inside_uid) == 0;
}

/* Between fork and exec; answers only when there is no exec. */
static int start_command(const struct run *run, int program_fd, const struct pipes *pipes)
{
    int nothing = open("/dev/null", O_RDONLY);
    sigset_t none;

    (void)sigemptyset(&none);
    if (nothing < 0 || dup2(nothing, 0) < 0 || dup2(pipes->out[1], 1) < 0 ||
        dup2(pipes->err[1], 2) < 0 || sigprocmask(SIG_SETMASK, &none, NULL) < 0 || setsid() < 0 ||
        !set_limit(RLIMIT_CORE, 0) || !set_limit(RLIMIT_NPROC, PROCESSES_MAX) ||
        !set_limit(RLIMIT_NOFILE, FILES_MAX) || !become(&run->plan) || getuid() == 0 ||
        geteuid() == 0 || chdir(run->plan.workdir) < 0 ||
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return errno ? errno : EPERM;
    (void)umask(022);
    for (int i = 1; i < NSIG; i++)
        (void)signal(i, SIG_DFL);
    (void)syscall(SYS_execveat, program_fd, "", run->action.argv.v, run->plan.env.v, AT_EMPTY_PATH);
    return errno;
}

/* ---- the keeper ---- */

static void end_children(int signal)
{
    DIR *proc = opendir("/proc");
    const struct dirent *entry;

    while (proc && (entry = readdir(proc)) != NULL) {
        char path[300], text[512], *at;
        int fd, parent = 0;
        ssize_t got;

        if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
            continue;
        (void)snprintf(path, sizeof path, "/proc/%s/stat", entry->d_name);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
        if (fd >= 0)
            (void)close(fd);
        if (got <= 0)
            continue;
        text[got] = '\0';
        at = strrchr(text, ')');
        if (at && sscanf(at + 1, " %*c %d", &parent) == 1 && parent == getpid())
            (void)kill((pid_t)strtol(entry->d_name, NULL, 10), signal);
    }
    if (proc)
        (void)closedir(proc);
}

/* Whoever dies leaves its children to us: again, until nobody is left. */
static bool end_all(void)
{
    uint64_t until_us = clock_us() + END_WAIT_US;

    while (clock_us() < until_us) {
        pid_t got;

        end_children(SIGKILL);
        do
            got = waitpid(-1, NULL, WNOHANG);
        while (got > 0);
        if (got < 0 && errno == ECHILD)
            return true;
        (void)poll(NULL, 0, 1);
    }
    return false;
}

/* True: the command has ended. */
static bool reap(pid_t command, int *status)
{
    bool ended = false;
    int one;
    pid_t got;

    while ((got = waitpid(-1, &one, WNOHANG)) > 0)
        if (got == command) {
            *status = one;
            ended = true;
        }
    return ended;
}

static void watch(pid_t command, int life_fd, int children_fd, struct said *said)
{
    struct pollfd polled[] = {
        {.fd = life_fd,     .events = POLLIN},
        {.fd = children_fd, .events = POLLIN},
    };
    bool ended = false;

    while (!ended) {
        struct signalfd_siginfo info;
        char order;

        if (poll(polled, COUNT(polled), -1) < 0 && errno != EINTR)
            break;
        if (polled[1].revents && read(children_fd, &info, sizeof info) < 0)
            break;
        ended = reap(command, &said->status);
        if (polled[0].revents && !ended) {
            /* An order is a signal; its end is that of whoever gives orders. */
            if (read(life_fd, &order, 1) != 1)
                break;
            (void)kill(-command, order);
        }
    }
    /* What was killed with the rest ended by that. */
    if (!ended)
        said->status = SIGKILL;
    said->left_over = !end_all();
}

static void tell(int fd, const struct said *said)
{
    if (write(fd, said, sizeof *said) < 0)
        _exit(2); /* nobody is there to hear it */
}

_Noreturn static void keep(const struct run *run, int program_fd, struct pipes *pipes)
{
    struct said said = {0};
    struct rusage used;
    sigset_t children;
    int children_fd;
    pid_t command;

    (void)sigfillset(&children);
    (void)sigprocmask(SIG_SETMASK, &children, NULL);
    (void)sigemptyset(&children);
    (void)sigaddset(&children, SIGCHLD);
    children_fd = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
    (void)close(TAKE_FD(pipes->life[1]));
    if (children_fd < 0 || setsid() < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
        _exit(2);
    command = fork();
    if (command == 0) {
        said.not_started = start_command(run, program_fd, pipes);
        tell(pipes->said[1], &said);
        _exit(126);
    }
    (void)close(TAKE_FD(pipes->out[1]));
    (void)close(TAKE_FD(pipes->err[1]));
    if (command < 0)
        _exit(2);
    watch(command, pipes->life[0], children_fd, &said);
    if (getrusage(RUSAGE_CHILDREN, &used) == 0) {
        said.cpu_us = (uint64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000 +
                      (uint64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
        said.peak_bytes = (uint64_t)used.ru_maxrss * 1024;
    }
    tell(pipes->said[1], &said);
    _exit(0);
}

/* ---- our side ---- */

struct following {
    struct run *run;
    pid_t keeper;
    int life_fd;
    int said_fd; /* -1: the keeper is gone */
    int orders_fd;
    struct flow out, err;
    bool told;            /* how it ended, and with it that all of it has */
    uint64_t deadline_us; /* of the command; in these four UINT64_MAX is never */
    uint64_t kill_us;     /* asked to end, it and whoever reads of it have so long */
    uint64_t keeper_us;   /* the same for whoever was told to kill it */
    uint64_t give_up_us;  /* who reads what it wrote has so long */
    uint64_t cancel_us;   /* 0: nobody has */
    enum reason cancel_reason;
};

static uint64_t wall_us(const struct run *run)
{
    return (run->budget.wall_ms ? run->budget.wall_ms : run->plan.limits.of[LIMIT_WALL].value) *
           1000;
}

/* One that was stopped by its command hears it all the same; one that is gone shows that. */
static void order(const struct following *f, int signal)
{
    char word = (char)signal;

    if (write(f->life_fd, &word, 1) == 1)
        (void)kill(f->keeper, SIGCONT);
}

static void ask_to_end(struct following *f, int signal, uint64_t patience_us)
{
    order(f, signal);
    if (f->kill_us == UINT64_MAX)
        f->kill_us = clock_us() + patience_us;
}

static void kill_now(struct following *f)
{
    order(f, SIGKILL);
    f->kill_us = UINT64_MAX;
    f->keeper_us = clock_us() + END_WAIT_US + KEEPER_WAIT_US;
    f->give_up_us = clock_us() + READER_WAIT_US;
}

/* Until it is waited for, nobody else can have its number. */
static void end_keeper(struct following *f)
{
    (void)kill(f->keeper, SIGKILL);
    f->keeper_us = UINT64_MAX;
}

/* First asked, then made to. */
static void on_time(struct following *f)
{
    struct outcome *outcome = &f->run->outcome;
    uint64_t now = clock_us();

    if (now >= f->deadline_us && !f->told) {
        f->deadline_us = UINT64_MAX;
        outcome->timed_out = true;
        outcome->reason = f->run->budget.wall_ms ? REASON_BUDGET_EXCEEDED : REASON_LIMIT_TIME;
        outcome->failure = f->run->budget.wall_ms ? f->run->budget.by : NULL;
        ask_to_end(f, SIGTERM, GRACE_US);
    }
    if (now >= f->kill_us)
        kill_now(f);
    if (now >= f->keeper_us)
        end_keeper(f);
}

/* What ends us ends the command, and then there is a receipt of it. */
static void on_order(struct following *f)
{
    struct signalfd_siginfo info;

    if (read(f->orders_fd, &info, sizeof info) != (ssize_t)sizeof info ||
        info.ssi_code == ORDER_HAS_SIZE)
        return;
    if (info.ssi_code == ORDER_PLAIN_SIGNAL) {
        order(f, (int)info.ssi_signo);
        return;
    }
    if (!f->cancel_us) {
        f->cancel_us = clock_us();
        f->cancel_reason = order_reason(&info);
        ask_to_end(f, (int)info.ssi_signo, CANCEL_GRACE_US);
    } else if (clock_us() - f->cancel_us > SAME_BREATH_US) {
        kill_now(f);
    }
}

static void take_said(struct run *run, const struct said *said)
{
    struct outcome *outcome = &run->outcome;

    outcome->ended = true;
    if (said->not_started) {
        outcome->exit_code = 126;
        outcome->reason = REASON_COMMAND_NOT_EXECUTABLE;
        outcome->failure = arena_text(&run->mem, str_of(strerror(said->not_started)));
        return;
    }
    outcome->started = true;
    outcome->cpu_us = said->cpu_us;
    outcome->peak_memory_bytes = said->peak_bytes;
    if (WIFSIGNALED(said->status))
        outcome->signal = WTERMSIG(said->status);
    else
        outcome->exit_code = WEXITSTATUS(said->status);
    if (said->left_over)
        outcome->failure = "some of what it started could not be ended";
}

/* What could not be ended may hold the streams open as long as it likes. */
static void on_said(struct following *f)
{
    struct said said;
    bool is_whole = read(f->said_fd, &said, sizeof said) == (ssize_t)sizeof said;

    if (!is_whole)
        f->said_fd = -1;
    if (is_whole && !f->told)
        take_said(f->run, &said);
    f->told |= is_whole;
    if ((!f->told || (is_whole && said.left_over)) && f->give_up_us == UINT64_MAX)
        f->give_up_us = clock_us() + READER_WAIT_US;
}

static int wait_ms(const struct following *f)
{
    uint64_t now = clock_us(), next = f->keeper_us;

    if (!f->told && f->deadline_us < next)
        next = f->deadline_us;
    if (f->kill_us < next)
        next = f->kill_us;
    if (f->give_up_us > now && f->give_up_us < next)
        next = f->give_up_us;
    if (next == UINT64_MAX)
        return -1;
    return clock_ms_until(next);
}

/* A reader may be slow, but one that does not read at all does not hold up the end of what was
 * cancelled or ran out of time. */
static bool is_over(const struct following *f)
{
    return (f->told || f->said_fd < 0) &&
           (clock_us() >= f->give_up_us || (!flow_is_open(&f->out) && !flow_is_open(&f->err)));
}

static int follow(struct following *f, struct err *err)
{
    while (!is_over(f)) {
        struct pollfd polled[] = {
            flow_poll(&f->out),
            flow_poll(&f->err),
            {.fd = f->said_fd,   .events = POLLIN},
            {.fd = f->orders_fd, .events = POLLIN},
        };

        if (poll(polled, COUNT(polled), wait_ms(f)) < 0 && errno != EINTR)
            return err_os(err, "waiting for the command");
        flow_act(&f->out, &polled[0]);
        flow_act(&f->err, &polled[1]);
        if (polled[2].revents)
            on_said(f);
        if (polled[3].revents)
            on_order(f);
        on_time(f);
    }
    flow_take_rest(&f->out);
    flow_take_rest(&f->err);
    if (clock_us() >= f->give_up_us) {
        flow_leave(&f->out);
        flow_leave(&f->err);
    }
    return 0;
}

static void finish(struct following *f, uint64_t began_us)
{
    struct run *run = f->run;
    struct outcome *outcome = &run->outcome;
    char both[2 * MODEL_HASH_BYTES];

    outcome->duration_us = clock_us() - began_us;
    flow_close_source(&f->out);
    flow_close_source(&f->err);
    flow_end(&f->out, &run->mem, &outcome->out);
    flow_end(&f->err, &run->mem, &outcome->err);
    (void)snprintf(both, sizeof both, "%s|%s", outcome->out.hash, outcome->err.hash);
    hash_text_of(str_of(both), outcome->output_hash);
    hash_text_of(STR_LIT(""), outcome->stdin_hash);
    if (outcome->reason == REASON_NONE && f->cancel_us)
        outcome->reason = f->cancel_reason;
    if (outcome->ended)
        return;
    outcome->started = outcome->ended = true;
    outcome->signal = SIGKILL;
    if (outcome->reason == REASON_NONE)
        outcome->reason = REASON_SANDBOX_FAILED;
    outcome->failure = "whoever kept the command was killed; what it left behind may live on";
}

static int start_keeper(struct run *run, int program_fd, struct pipes *pipes, pid_t *out,
                        struct err *err)
{
    *out = fork();
    if (*out == 0)
        keep(run, program_fd, pipes);
    if (*out < 0)
        return err_os(err, "starting the keeper of the command");
    (void)close(TAKE_FD(pipes->life[0]));
    (void)close(TAKE_FD(pipes->said[1]));
    (void)close(TAKE_FD(pipes->out[1]));
    (void)close(TAKE_FD(pipes->err[1]));
    return 0;
}

static int run_and_follow(struct run *run, int program_fd, int orders_fd,
                          const struct streams *streams, struct err *err)
{
    AUTO_PIPES struct pipes pipes = {
        {-1, -1},
        {-1, -1},
        {-1, -1},
        {-1, -1}
    };
    uint64_t most = run->plan.limits.of[LIMIT_OUTPUT].value, began_us = clock_us();
    struct following f = {.run = run, .orders_fd = orders_fd};
    int failed;

    if (open_pipes(&pipes, err) < 0 || start_keeper(run, program_fd, &pipes, &f.keeper, err) < 0)
        return -1;
    f.life_fd = pipes.life[1];
    f.said_fd = pipes.said[0];
    f.deadline_us = began_us + wall_us(run);
    f.kill_us = f.keeper_us = f.give_up_us = UINT64_MAX;
    flow_init(&f.out, TAKE_FD(pipes.out[0]), streams->out_fd, streams->keep, most);
    flow_init(&f.err, TAKE_FD(pipes.err[0]), streams->err_fd, streams->keep, most);
    f.out.close_from = f.err.close_from = true;
    failed = follow(&f, err);
    if (failed)
        (void)close(TAKE_FD(pipes.life[1])); /* which it hears, and ends all */
    else
        end_keeper(&f); /* it has said all it had to */
    while (waitpid(f.keeper, NULL, 0) < 0 && errno == EINTR)
        continue;
    finish(&f, began_us);
    return failed;
}

int host_run(struct execute *execute, struct run *run, int program_fd,
             const struct streams *streams, struct err *err)
{
    sigset_t before;
    int orders_fd = -1;
    int failed = orders_hold(execute, &before, &orders_fd, err);

    if (failed)
        return -1;
    failed = run_and_follow(run, program_fd, orders_fd, streams, err);
    orders_release(execute, &before, orders_fd);
    return failed;
}
