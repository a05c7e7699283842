/* SPDX-License-Identifier: Apache-2.0 */

/* PID 1 of a kept sandbox. Callers come as connections. PID 1 answers them itself for as long as
 * that takes no time, and runs one command itself (box-direct.c). What comes meanwhile, has a
 * terminal, or goes on without its caller gets a keeper, a child of ours that takes over the
 * connection, the command's plan and streams, starts it, tells its caller how it went, and ends
 * what it left behind. A keeper adopts the orphans of its command, so "what it left behind" is
 * exactly its own children. Told to leave them, it stays with them until the last has ended: so
 * a child of PID 1 that is no keeper belongs to the command PID 1 runs itself, or has lost its own
 * keeper and ends. Which of both, cannot be told apart when a keeper was killed: then all of them
 * end but that command itself. Whoever can kill a keeper can kill those, too.
 *
 * The walls stand already; all of this happens inside them. A command that kills its keeper harms
 * its own caller's answer and nobody else; PID 1 it cannot kill. */

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
#define CALLERS_MAX 32
#define LOOK_WAIT_US 20000U
#define CHILDREN_TEXT_MAX 16384

/* ---- a keeper ---- */

/* Through no link, one name after the other: the seccomp filter no longer lets through the call
 * that does this in one go. */
int workdir_open(const char *path, struct err *err)
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
    return at < 0 ? err_os(err, "working directory %.200s", path) : TAKE_FD(at);
}

static int enter_workdir(const char *path, struct err *err)
{
    AUTO_FD int at = workdir_open(path, err);

    if (at < 0)
        return -1;
    return fchdir(at) < 0 ? err_os(err, "working directory %.200s", path) : 0;
}

static bool is_among(long pid, const pid_t *spared, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (spared[i] == pid)
            return true;
    return false;
}

size_t children_kill(const pid_t *spared, size_t spared_n)
{
    static char text[CHILDREN_TEXT_MAX];
    size_t killed = 0;
    char path[64];
    ssize_t n;
    int fd;

    (void)snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        (void)close(fd);
    if (n < 0)
        return 1; /* somebody, for all we know */
    text[n] = '\0';
    for (char *at = text, *end; *at; at = end) {
        long pid = strtol(at, &end, 10);

        if (end == at)
            break;
        if (pid > 1 && !is_among(pid, spared, spared_n)) {
            (void)kill((pid_t)pid, SIGKILL);
            killed++;
        }
    }
    return killed;
}

/* Orphans of those we end become our children in turn, so we go on until there are none. */
void leftovers_end(void)
{
    uint64_t give_up_us = clock_us() + LEFTOVERS_WAIT_US;

    while (clock_us() < give_up_us) {
        (void)children_kill(NULL, 0);
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

static int obey_caller(const struct box *box, const struct box_message *message, const int *fds,
                       struct err *err)
{
    if (message->kind == BOX_EXEC && fds[PASSED_PLAN] >= 0)
        return run_passed(fds, err);
    if (message->kind == BOX_FILE)
        return files_serve(box, err);
    if (message->kind == BOX_CONNECT)
        return ports_serve(message, err);
    return err_set(err, ERR_INVALID, "not an order for a command");
}

/* A message and what came along; 0: it is gone. */
static int hear_caller(int fd, struct box_message *message, int fds[PASSED_COUNT], struct err *err)
{
    int got = fds_receive(fd, message, sizeof *message, fds, PASSED_COUNT, err);

    if (got > 0 && got != (int)sizeof *message)
        return err_set(err, ERR_INTEGRITY, "a message of %d bytes", got);
    return got;
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
            got = hear_caller(BOX_FD_INSIDE, &message, fds, err);
        if (got <= 0)
            return got; /* gone, or never came to the point */
        if (message.kind != BOX_REPORT)
            return obey_caller(box, &message, fds, err);
        if (report_send(box, err) < 0)
            return -1;
    }
}

/* With its first message, or none yet. */
static NORETURN void be_keeper(const struct box *box, int fd, const struct box_message *first,
                               const int *fds)
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
    if ((first ? obey_caller(box, first, fds, &err) : answer_caller(box, &err)) == 0)
        _exit(0);
    failed.err = err;
    _exit(message_send(BOX_FD_INSIDE, &failed, &err) < 0 ? 2 : 1);
}

/* ---- PID 1 ---- */

struct server {
    const struct box *box;
    int signals_fd;
    bool still;                     /* nobody new, and nobody moves */
    pid_t keepers[KEEPERS_MAX + 1]; /* and room for one more */
    size_t keeper_n;
    int callers[CALLERS_MAX]; /* connected, and nothing of theirs runs */
    size_t caller_n;
    struct direct direct;
    bool strays;      /* there may be children that belong to nobody */
    uint64_t look_us; /* when outer is to look again, because somebody came; UINT64_MAX: not */
    bool rests;       /* nothing has happened for a moment */
};

/* Outer looks a few times a second anyway as long as it sees somebody: who is gone before it would
 * look does not wake it for himself alone. */
static void somebody_came(struct server *server)
{
    if (server->look_us == UINT64_MAX)
        server->look_us = clock_us() + LOOK_WAIT_US;
}

static void wake_outer(struct server *server)
{
    if (clock_us() < server->look_us)
        return;
    server->look_us = UINT64_MAX;
    (void)send(server->box->sync_fd, "s", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* The connection goes with it; none of it shows as a closed one. */
static void start_keeper(struct server *server, int fd, const struct box_message *first,
                         const int *fds)
{
    pid_t pid = server->keeper_n < KEEPERS_MAX ? fork() : -1;

    if (pid == 0) {
        for (size_t i = 0; i < server->caller_n; i++)
            (void)close(server->callers[i]);
        if (server->direct.caller_fd >= 0)
            (void)close(server->direct.caller_fd);
        be_keeper(server->box, fd, first, fds);
    }
    if (pid > 0)
        server->keepers[server->keeper_n++] = pid;
    (void)close(fd);
    somebody_came(server);
}

static void welcome(struct server *server)
{
    int fd = accept4(server->box->plan->execs_fd, NULL, NULL, SOCK_CLOEXEC);

    if (fd < 0)
        return; /* whoever it was is gone */
    if (server->caller_n < CALLERS_MAX)
        server->callers[server->caller_n++] = fd;
    else
        start_keeper(server, fd, NULL, NULL);
}

static void close_passed(const int fds[PASSED_COUNT])
{
    for (size_t i = 0; i < PASSED_COUNT; i++)
        if (fds[i] >= 0)
            (void)close(fds[i]);
}

/* False: it is for a keeper. The connection is ours either way until it is taken over. */
static bool run_here(struct server *server, int fd, const int fds[PASSED_COUNT])
{
    struct box_message failed = {.kind = BOX_FAILED};
    const struct box_plan *plan = NULL;
    bool here;

    if (plan_open(fds[PASSED_PLAN], &plan, &failed.err) < 0)
        return false; /* it will say what is wrong with it */
    here = direct_fits(&server->direct, plan);
    if (here) {
        somebody_came(server);
        if (direct_start(&server->direct, plan, fd, fds, &failed.err) < 0) {
            (void)send(fd, &failed, sizeof failed, MSG_NOSIGNAL | MSG_DONTWAIT);
            (void)close(fd);
        }
    }
    plan_close(plan);
    return here;
}

/* One message of one who waits; it leaves the list when something of his runs. */
static void answer(struct server *server, size_t i)
{
    int fd = server->callers[i];
    struct box_message message = {0};
    int fds[PASSED_COUNT];
    struct err err;
    int got = hear_caller(fd, &message, fds, &err);

    if (got > 0 && message.kind == BOX_REPORT &&
        report_answer(server->box, fd, message.value, &err) == 0)
        return;
    server->callers[i] = server->callers[--server->caller_n];
    if (got <= 0 || message.kind == BOX_REPORT) {
        (void)close(fd);
        return;
    }
    if (message.kind != BOX_EXEC || fds[PASSED_PLAN] < 0 || !run_here(server, fd, fds))
        start_keeper(server, fd, &message, fds);
    close_passed(fds);
}

static bool forget_keeper(struct server *server, pid_t pid)
{
    for (size_t i = 0; i < server->keeper_n; i++)
        if (server->keepers[i] == pid) {
            server->keepers[i] = server->keepers[--server->keeper_n];
            return true;
        }
    return false;
}

/* Those of a keeper that was killed, and whoever else is ours without being a command; true when
 * there were none any more. */
static bool end_strays(struct server *server)
{
    size_t n = server->keeper_n;

    if (server->direct.caller_fd >= 0 && server->direct.pid > 0)
        server->keepers[n++] = server->direct.pid;
    return children_kill(server->keepers, n) == 0;
}

static void take_back(struct server *server, int caller)
{
    if (caller >= 0 && server->caller_n < CALLERS_MAX)
        server->callers[server->caller_n++] = caller;
    else if (caller >= 0)
        (void)close(caller);
}

/* Ends of children wake us, so those whom the end of a stray makes ours are met the next time. */
static void reap(struct server *server)
{
    struct rusage usage;
    int status = 0;
    pid_t pid;

    while ((pid = wait4(-1, &status, WNOHANG, &usage)) > 0) {
        bool kept = forget_keeper(server, pid);

        if (!kept)
            direct_reaped(&server->direct, pid, status, &usage);
        server->strays |= server->direct.caller_fd < 0 || (kept && WIFSIGNALED(status));
    }
    take_back(server, direct_look(&server->direct, server->keepers, server->keeper_n));
    if (server->strays)
        server->strays = pid == 0 && !end_strays(server);
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

static int begin_serving(struct server *server, struct err *err)
{
    struct box_message serving = {.kind = BOX_STARTED};
    sigset_t child;

    (void)sigemptyset(&child);
    (void)sigaddset(&child, SIGCHLD);
    (void)sigprocmask(SIG_BLOCK, &child, NULL);
    server->signals_fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    streams_let_go();
    if (server->signals_fd < 0 || send(server->box->sync_fd, "s", 1, MSG_NOSIGNAL) != 1)
        return err_os(err, "beginning to serve");
    if (message_send(BOX_FD_INSIDE, &serving, err) < 0)
        return -1;
    /* Keepers put their caller there: nothing else may get the number. */
    if (dup3(server->signals_fd, BOX_FD_INSIDE, O_CLOEXEC) < 0)
        return err_os(err, "beginning to serve");
    return 0;
}

enum { WAIT_SIGNALS, WAIT_ORDERS, WAIT_EXECS, WAIT_DIRECT, WAIT_CALLERS };

static size_t fill_poll(const struct server *server, struct pollfd *polled)
{
    const struct box *box = server->box;
    bool waits = server->direct.caller_fd >= 0 && !server->direct.caller_gone;

    polled[WAIT_SIGNALS] = (struct pollfd){.fd = server->signals_fd, .events = POLLIN};
    polled[WAIT_ORDERS] = (struct pollfd){.fd = box->sync_fd, .events = POLLIN};
    polled[WAIT_EXECS] =
        (struct pollfd){.fd = server->still ? -1 : box->plan->execs_fd, .events = POLLIN};
    polled[WAIT_DIRECT] = (struct pollfd){
        .fd = waits && !server->still ? server->direct.caller_fd : -1, .events = POLLIN};
    for (size_t i = 0; i < server->caller_n; i++)
        polled[WAIT_CALLERS + i] =
            (struct pollfd){.fd = server->still ? -1 : server->callers[i], .events = POLLIN};
    return WAIT_CALLERS + server->caller_n;
}

/* Until outer is to be told, or what a command left has had its time. */
static int patience_ms(const struct server *server)
{
    const struct direct *direct = &server->direct;
    uint64_t until = server->look_us;

    if (direct->caller_fd >= 0 && direct->pid == 0 && direct->give_up_us < until)
        until = direct->give_up_us;
    if (until == UINT64_MAX)
        return server->rests || server->keeper_n ? -1 : IDLE_AFTER_MS;
    return clock_ms_until(until);
}

/* From the last to the first: whoever is answered may leave the list, and one behind him, who has
 * been looked at, takes his place. */
static void answer_all(struct server *server, const struct pollfd *polled, size_t n)
{
    for (size_t i = n; i-- > 0;)
        if (polled[WAIT_CALLERS + i].revents)
            answer(server, i);
}

static int serve_once(struct server *server, struct err *err)
{
    struct pollfd polled[WAIT_CALLERS + CALLERS_MAX];
    size_t n = fill_poll(server, polled);
    struct signalfd_siginfo info;
    int came = poll(polled, n, patience_ms(server));

    if (came < 0 && errno != EINTR)
        return err_os(err, "waiting for commands");
    server->rests = came == 0;
    if (server->rests)
        idle_give_back();
    if (polled[WAIT_SIGNALS].revents)
        (void)!read(server->signals_fd, &info, sizeof info); /* only wakes us */
    if (polled[WAIT_DIRECT].revents)
        direct_obey(&server->direct, server->keepers, server->keeper_n);
    answer_all(server, polled, n - WAIT_CALLERS);
    reap(server);
    if (polled[WAIT_EXECS].revents)
        welcome(server);
    wake_outer(server);
    if (polled[WAIT_ORDERS].revents && !on_order(server->box->sync_fd, &server->still))
        return 0; /* the supervisor is gone, and we with it */
    return 1;
}

int serve_run(const struct box *box, struct err *err)
{
    static struct server server;
    int goes_on;

    server.box = box;
    server.look_us = UINT64_MAX;
    server.direct.caller_fd = -1;
    if (begin_serving(&server, err) < 0)
        return -1;
    if (box->plan->prepared)
        report_prepare(box);
    while ((goes_on = serve_once(&server, err)) > 0)
        continue;
    return goes_on;
}
