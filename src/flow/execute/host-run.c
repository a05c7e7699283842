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
#define END_WAIT_US 10000000U /* for what does not die */
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

struct stream {
    int from, to;
    bool keep;
    struct hasher hasher;
    struct buf kept;
    struct stream_result *result;
};

static void stream_init(struct stream *stream, int from, int to, const struct streams *streams,
                        uint64_t most, struct stream_result *result)
{
    *stream = (struct stream){.from = from, .to = to, .keep = streams->keep, .result = result};
    stream->kept = BUF((size_t)most);
    hasher_init(&stream->hasher);
}

static void take_bytes(struct stream *stream)
{
    char bytes[16 * 1024];
    ssize_t got = read(stream->from, bytes, sizeof bytes);
    size_t room = stream->kept.max - stream->kept.n;
    struct err
        err; /* whoever listened is gone, or the room was measured: it is hashed all the same */

    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (got <= 0) {
        stream->from = -1;
        return;
    }
    hasher_add(&stream->hasher, bytes, (size_t)got);
    stream->result->bytes += (uint64_t)got;
    if (stream->to >= 0 && write_all(stream->to, bytes, (size_t)got, &err) < 0)
        stream->to = -1;
    if (!stream->keep)
        return;
    stream->result->truncated |= (size_t)got > room;
    if (buf_add(&stream->kept, bytes, (size_t)got < room ? (size_t)got : room, &err) < 0)
        stream->result->truncated = true;
}

static void stream_done(struct run *run, struct stream *stream)
{
    struct hash hash;

    hasher_end(&stream->hasher, &hash);
    hash_text(&hash, stream->result->hash);
    if (stream->keep)
        stream->result->kept = arena_str(&run->mem, buf_str(&stream->kept));
    buf_done(&stream->kept);
}

static uint64_t wall_us(const struct run *run)
{
    return (run->budget.wall_ms ? run->budget.wall_ms : run->plan.limits.of[LIMIT_WALL].value) *
           1000;
}

/* First asked, then made to. */
static void on_time(struct run *run, int life_fd, uint64_t *deadline_us)
{
    bool first = !run->outcome.timed_out;
    char order = first ? SIGTERM : SIGKILL;

    run->outcome.timed_out = true;
    run->outcome.reason = run->budget.wall_ms ? REASON_BUDGET_EXCEEDED : REASON_LIMIT_TIME;
    run->outcome.failure = run->budget.wall_ms ? run->budget.by : NULL;
    *deadline_us = first ? clock_us() + GRACE_US : UINT64_MAX;
    if (write(life_fd, &order, 1) < 0)
        *deadline_us = UINT64_MAX; /* the keeper is gone, and that shows */
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

static void follow(struct run *run, struct pipes *pipes, struct stream *out, struct stream *err)
{
    uint64_t deadline_us = clock_us() + wall_us(run);
    int said_fd = pipes->said[0];
    bool told = false;

    while (out->from >= 0 || err->from >= 0 || said_fd >= 0) {
        struct pollfd polled[] = {
            {.fd = out->from, .events = POLLIN},
            {.fd = err->from, .events = POLLIN},
            {.fd = said_fd,   .events = POLLIN},
        };
        uint64_t now = clock_us();
        struct said said;

        if (!told && now >= deadline_us)
            on_time(run, pipes->life[1], &deadline_us);
        if (poll(polled, COUNT(polled),
                 told || deadline_us == UINT64_MAX ? -1
                 : deadline_us <= now              ? 0
                                                   : (int)((deadline_us - now) / 1000 + 1)) < 0 &&
            errno != EINTR)
            return;
        if (polled[0].revents)
            take_bytes(out);
        if (polled[1].revents)
            take_bytes(err);
        if (!polled[2].revents)
            continue;
        if (read(said_fd, &said, sizeof said) == (ssize_t)sizeof said) {
            if (!told)
                take_said(run, &said);
            told = true;
        } else {
            said_fd = -1;
        }
    }
}

static void finish(struct run *run, uint64_t began_us)
{
    struct outcome *outcome = &run->outcome;
    char both[2 * MODEL_HASH_BYTES];

    outcome->duration_us = clock_us() - began_us;
    (void)snprintf(both, sizeof both, "%s|%s", outcome->out.hash, outcome->err.hash);
    hash_text_of(str_of(both), outcome->output_hash);
    hash_text_of(STR_LIT(""), outcome->stdin_hash);
    if (outcome->ended)
        return;
    outcome->started = outcome->ended = true;
    outcome->signal = SIGKILL;
    outcome->reason = REASON_SANDBOX_FAILED;
    outcome->failure = "whoever kept the command was killed; what it left behind may live on";
}

int host_run(struct run *run, int program_fd, const struct streams *streams, struct err *err)
{
    AUTO_PIPES struct pipes pipes = {
        {-1, -1},
        {-1, -1},
        {-1, -1},
        {-1, -1}
    };
    uint64_t most = run->plan.limits.of[LIMIT_OUTPUT].value, began_us = clock_us();
    struct stream out, error;
    pid_t keeper;

    if (open_pipes(&pipes, err) < 0)
        return -1;
    keeper = fork();
    if (keeper == 0)
        keep(run, program_fd, &pipes);
    if (keeper < 0)
        return err_os(err, "starting the keeper of the command");
    (void)close(TAKE_FD(pipes.life[0]));
    (void)close(TAKE_FD(pipes.said[1]));
    (void)close(TAKE_FD(pipes.out[1]));
    (void)close(TAKE_FD(pipes.err[1]));
    stream_init(&out, pipes.out[0], streams->out_fd, streams, most, &run->outcome.out);
    stream_init(&error, pipes.err[0], streams->err_fd, streams, most, &run->outcome.err);
    follow(run, &pipes, &out, &error);
    stream_done(run, &out);
    stream_done(run, &error);
    (void)waitpid(keeper, NULL, 0);
    finish(run, began_us);
    return 0;
}
