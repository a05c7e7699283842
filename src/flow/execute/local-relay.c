/* SPDX-License-Identifier: Apache-2.0 */

/* From the release of a parked sandbox to its end: streams pass through, are counted and hashed;
 * time runs out; signals to us become the command's; box says how it ended. Everything waits in one
 * poll. */

#include "flow/execute/local.h"
#include "flow/execute/orders.h"
#include "flow/execute/relay-flow.h"

#include "lib/base/clock.h"
#include "lib/base/memory.h"
#include "lib/crypto/crypto.h"
#include "lib/linux/fd-pass.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define GRACE_US 250000U
#define TERMINAL_WAIT_MS 5000
#define CANCEL_GRACE_US 2000000U
#define SAME_BREATH_US 300000U
#define READER_WAIT_US 1000000U

struct relay {
    struct run *run;
    struct local *local;
    struct flow in, out, err;
    uint64_t deadline_us; /* of the command; UINT64_MAX once it was acted on */
    uint64_t cancel_us;   /* when the caller asked for its end first */
    uint64_t kill_us;     /* when patience ends; UINT64_MAX: no end in sight */
    uint64_t give_up_us;  /* when readers that do not read are left behind, once it was ended */
    int tty_fd;           /* our end of the command's terminal, or -1 */
    bool exited;
    bool clear; /* nothing of it is left inside, and the connection is as good as new */
    bool killed;
};

/* ---- signals and time ---- */

int box_say(int fd, enum box_message_kind kind, int status)
{
    struct box_message message = {.kind = kind, .status = status};

    return send(fd, &message, sizeof message, MSG_NOSIGNAL) == (ssize_t)sizeof message ? 0 : -1;
}

/* The whole sandbox, not just a command in it. */
static bool is_ours(const struct local *local)
{
    return !local->joined || local->taken;
}

static void kill_now(struct relay *relay)
{
    relay->killed = true;
    relay->kill_us = UINT64_MAX;
    relay->give_up_us = clock_us() + READER_WAIT_US;
    /* Gone already is as good. */
    (void)box_say(is_ours(relay->local) ? relay->local->supervisor_fd : relay->local->inside_fd,
                  BOX_KILL, 0);
}

static void ask_to_end(struct relay *relay, int signal, uint64_t patience_us)
{
    (void)box_say(relay->local->inside_fd, BOX_SIGNAL, signal);
    if (relay->kill_us == UINT64_MAX)
        relay->kill_us = clock_us() + patience_us;
}

/* The command's terminal is as large as the caller's. */
static void take_size(const struct relay *relay, const struct signalfd_siginfo *order)
{
    struct winsize size;

    if (relay->tty_fd >= 0 && order_size(order, &size))
        (void)ioctl(relay->tty_fd, TIOCSWINSZ, &size);
}

/* False: there is none. */
static bool on_signal(struct relay *relay)
{
    struct signalfd_siginfo info;

    if (read(relay->local->signals_fd, &info, sizeof info) != (ssize_t)sizeof info)
        return false;
    if (info.ssi_signo == SIGWINCH) {
        take_size(relay, &info);
        return true;
    }
    if (info.ssi_code == ORDER_PLAIN_SIGNAL) {
        (void)box_say(relay->local->inside_fd, BOX_SIGNAL, (int)info.ssi_signo);
        return true;
    }
    if (relay->local->cancelled_by) {
        /* timeout(1) and a shell signal both the process and its group: that is asked once. */
        if (clock_us() - relay->cancel_us > SAME_BREATH_US)
            kill_now(relay);
        return true;
    }
    relay->local->cancelled_by = (int)info.ssi_signo;
    relay->local->cancel_reason = order_reason(&info);
    relay->cancel_us = clock_us();
    ask_to_end(relay, (int)info.ssi_signo, CANCEL_GRACE_US);
    return true;
}

/* With a terminal there is one stream each way, over one descriptor. */
static int take_terminal(struct relay *relay, struct err *err)
{
    struct pollfd polled = {.fd = relay->local->inside_fd, .events = POLLIN};
    int in_fd;

    if (poll(&polled, 1, TERMINAL_WAIT_MS) != 1)
        return err_set(err, ERR_TIMEOUT, "the sandbox opened no terminal");
    if (fd_receive(relay->local->inside_fd, &relay->tty_fd, err) < 0)
        return -1;
    take_size(relay, relay->local->size.ssi_signo ? &relay->local->size : NULL);
    while (on_signal(relay))
        continue; /* a size that was told before it ran counts from the start */
    in_fd = fcntl(relay->tty_fd, F_DUPFD_CLOEXEC, 0);
    if (in_fd < 0)
        return err_os(err, "sharing the terminal");
    if (relay->in.to >= 0)
        (void)close(relay->in.to);
    relay->in.to = in_fd;
    flow_close_source(&relay->out);
    flow_close_source(&relay->err);
    relay->out.from = relay->tty_fd;
    return 0;
}

static void on_time(struct relay *relay)
{
    uint64_t now = clock_us();

    if (now >= relay->deadline_us && !relay->exited) {
        relay->deadline_us = UINT64_MAX;
        relay->run->outcome.timed_out = true;
        relay->run->outcome.reason = REASON_LIMIT_TIME;
        if (relay->run->budget.wall_ms) { /* less than its own, or it would not be there */
            relay->run->outcome.reason = REASON_BUDGET_EXCEEDED;
            relay->run->outcome.failure = relay->run->budget.by;
        }
        ask_to_end(relay, SIGTERM, GRACE_US);
    }
    if (now >= relay->kill_us && !relay->killed)
        kill_now(relay);
}

static int wait_ms(const struct relay *relay)
{
    uint64_t now = clock_us();
    /* The deadline is the command's; whoever reads its output slowly may do so after its end. */
    uint64_t deadline_us = relay->exited ? UINT64_MAX : relay->deadline_us;
    uint64_t next = deadline_us < relay->kill_us ? deadline_us : relay->kill_us;

    if (relay->give_up_us > now && relay->give_up_us < next)
        next = relay->give_up_us;
    if (next == UINT64_MAX)
        return -1;
    return clock_ms_until(next);
}

/* ---- what box says ---- */

void outcome_exited(struct outcome *outcome, int status)
{
    outcome->ended = true;
    if (WIFSIGNALED(status))
        outcome->signal = WTERMSIG(status);
    else
        outcome->exit_code = WEXITSTATUS(status);
}

void outcome_not_started(struct run *run, int os)
{
    struct outcome *outcome = &run->outcome;
    bool missing = os == ENOENT || os == ENOTDIR;

    outcome->ended = true;
    outcome->exit_code = missing ? 127 : 126;
    outcome->reason = missing ? REASON_COMMAND_NOT_FOUND : REASON_COMMAND_NOT_EXECUTABLE;
    outcome->failure = arena_printf(&run->mem, "%s", strerrordesc_np(os));
}

/* A sandbox of its own ends with its command; one out of the pool has to be told. */
static void on_end(struct relay *relay)
{
    relay->exited = true;
    if (relay->local->taken)
        (void)box_say(relay->local->supervisor_fd, BOX_KILL, 0); /* gone already is as good */
}

/* PID 1 may fail, too, and has not counted any. */
static void note_attempts(struct outcome *outcome, const struct box_message *end)
{
    if (end->value > outcome->execs_refused)
        outcome->execs_refused = end->value;
}

static void on_message(struct relay *relay, const struct box_message *message)
{
    struct run *run = relay->run;

    switch ((enum box_message_kind)message->kind) {
    case BOX_STARTED:
        run->outcome.started = true;
        return;
    case BOX_NOT_STARTED:
        outcome_not_started(run, message->err.os);
        on_end(relay);
        return;
    case BOX_EXITED:
        outcome_exited(&run->outcome, message->status);
        run->outcome.cpu_us = message->cpu_us;
        run->outcome.peak_memory_bytes = message->peak_memory_bytes;
        run->outcome.read_bytes = message->read_bytes;
        run->outcome.written_bytes = message->written_bytes;
        relay->clear = message->value == 1;
        on_end(relay);
        return;
    case BOX_CLEAR:
        relay->clear = true;
        return;
    case BOX_FAILED:
        note_attempts(&run->outcome, message);
        run->outcome.reason = REASON_SANDBOX_FAILED;
        run->outcome.failure = arena_text(&run->mem, str_of(message->err.text));
        return;
    case BOX_GONE:
        note_attempts(&run->outcome, message);
        run->outcome.execs_counted = true;
        relay->local->gone = true;
        relay->local->end = *message;
        return;
    case BOX_PLACED:
    case BOX_PARKED:
    case BOX_RELEASE:
    case BOX_SIGNAL:
    case BOX_KILL:
    case BOX_REPORT:
    case BOX_EXEC:
    case BOX_ATTACH:
    case BOX_RESIZE:
    case BOX_STATUS:
    case BOX_EXTEND:
    case BOX_HOLD:
    case BOX_YIELD:
    case BOX_PAUSE:
    case BOX_FILE:
    case BOX_CONNECT:
    case BOX_RESUME:
    case BOX_TAKE:
    case BOX_SETTLE:
    case BOX_DISCARD:
        return;
    }
}

/* Whoever ends while we tell it to leaves that unread, which resets the connection: we hear of it
 * once, and before what it said last. */
static ssize_t next_message(int fd, struct box_message *out)
{
    ssize_t got = recv(fd, out, sizeof *out, MSG_DONTWAIT);

    return got < 0 && errno == ECONNRESET ? recv(fd, out, sizeof *out, MSG_DONTWAIT) : got;
}

/* false: the other end is gone. */
static bool take_message(struct relay *relay, int fd)
{
    struct box_message message;
    ssize_t got = next_message(fd, &message);

    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return true;
    if (got != (ssize_t)sizeof message)
        return false;
    on_message(relay, &message);
    return true;
}

/* Outer speaks after PID 1 is gone, so by then all that PID 1 ever said has arrived; but how the
 * command ended may still wait behind a message that was taken in the same round. */
static void take_rest(struct relay *relay, int inside_fd)
{
    struct box_message message;

    while (inside_fd >= 0 && next_message(inside_fd, &message) == (ssize_t)sizeof message)
        on_message(relay, &message);
}

/* ---- the loop ---- */

enum { WAIT_IN, WAIT_OUT, WAIT_ERR, WAIT_INSIDE, WAIT_SUPERVISOR, WAIT_SIGNALS, WAIT_COUNT };

/* A sandbox of our own is over when box says so; a command in a kept one when PID 1 says so, or its
 * keeper closes the connection. What stays in the background may hold the streams open for as long
 * as it likes: they are read as far as they are filled. A reader of ours may be slow, but one that
 * does not read at all does not hold up the end of what was cancelled or ran out of time. */
static bool is_over(const struct relay *relay, int inside_fd, int supervisor_fd)
{
    const struct local *local = relay->local;
    bool ended = is_ours(local) ? local->gone || supervisor_fd < 0 : inside_fd < 0 || relay->clear;

    return ended && (relay->run->action.keep_background || clock_us() >= relay->give_up_us ||
                     (!flow_is_open(&relay->out) && !flow_is_open(&relay->err)));
}

static int loop(struct relay *relay, struct err *err)
{
    int inside_fd = relay->local->inside_fd;
    int supervisor_fd = relay->local->supervisor_fd;

    while (!is_over(relay, inside_fd, supervisor_fd)) {
        struct pollfd polled[WAIT_COUNT] = {
            [WAIT_IN] = flow_poll(&relay->in),
            [WAIT_OUT] = flow_poll(&relay->out),
            [WAIT_ERR] = flow_poll(&relay->err),
            [WAIT_INSIDE] = {.fd = inside_fd,                .events = POLLIN},
            [WAIT_SUPERVISOR] = {.fd = supervisor_fd,            .events = POLLIN},
            [WAIT_SIGNALS] = {.fd = relay->local->signals_fd, .events = POLLIN},
        };

        if (poll(polled, WAIT_COUNT, wait_ms(relay)) < 0 && errno != EINTR)
            return err_os(err, "waiting for the sandbox");
        flow_act(&relay->in, &polled[WAIT_IN]);
        flow_act(&relay->out, &polled[WAIT_OUT]);
        flow_act(&relay->err, &polled[WAIT_ERR]);
        if (polled[WAIT_INSIDE].revents && !take_message(relay, inside_fd))
            inside_fd = -1;
        if (polled[WAIT_SUPERVISOR].revents && !take_message(relay, supervisor_fd))
            supervisor_fd = -1;
        if (polled[WAIT_SIGNALS].revents)
            (void)on_signal(relay);
        on_time(relay);
    }
    take_rest(relay, inside_fd);
    relay->local->clear = relay->clear && inside_fd >= 0 && !is_ours(relay->local);
    flow_take_rest(&relay->out);
    flow_take_rest(&relay->err);
    if (clock_us() >= relay->give_up_us) {
        flow_leave(&relay->out);
        flow_leave(&relay->err);
    }
    return 0;
}

static void finish_reason(struct relay *relay)
{
    struct outcome *outcome = &relay->run->outcome;
    const struct box_message *end = &relay->local->end;
    enum reason limit = (enum reason)end->reason;

    if (end->cpu_us) {
        outcome->cpu_us = end->cpu_us;
        outcome->cpu_is_whole = true;
    }
    if (end->peak_memory_bytes)
        outcome->peak_memory_bytes = end->peak_memory_bytes;
    outcome->oom_killed = limit == REASON_LIMIT_MEMORY;
    if (outcome->reason == REASON_NONE && relay->local->cancelled_by)
        outcome->reason = relay->local->cancel_reason;
    if (outcome->reason == REASON_NONE)
        outcome->reason = limit;
    /* The limit of a single file is the one for all of them. */
    if (outcome->reason == REASON_NONE && outcome->signal == SIGXFSZ)
        outcome->reason = REASON_LIMIT_DISK;
    if (!outcome->ended) {
        outcome->ended = true;
        outcome->signal = SIGKILL;
    }
    if (!(is_ours(relay->local) ? relay->local->gone : relay->exited) &&
        outcome->reason == REASON_NONE) {
        outcome->reason = REASON_SANDBOX_FAILED;
        outcome->failure = is_ours(relay->local)
                               ? "the supervisor of the sandbox was killed"
                               : "the sandbox ended, or the command killed its keeper";
    }
}

static void finish(struct relay *relay)
{
    struct outcome *outcome = &relay->run->outcome;
    struct stream_result in = {0};
    char both[2 * MODEL_HASH_BYTES];

    flow_end(&relay->in, &relay->run->mem, &in);
    outcome->stdin_bytes = in.bytes;
    memcpy(outcome->stdin_hash, in.hash, sizeof in.hash);
    flow_end(&relay->out, &relay->run->mem, &outcome->out);
    flow_end(&relay->err, &relay->run->mem, &outcome->err);
    (void)snprintf(both, sizeof both, "%s|%s", outcome->out.hash, outcome->err.hash);
    hash_text_of(str_of(both), outcome->output_hash);
    finish_reason(relay);
}

static uint64_t wall_ms(const struct run *run)
{
    if (run->budget.wall_ms)
        return run->budget.wall_ms;
    return run->action.wall_ms ? run->action.wall_ms : run->plan.limits.of[LIMIT_WALL].value;
}

int relay(struct run *run, struct local *local, const struct streams *streams, struct err *err)
{
    struct relay all = {.run = run, .local = local, .tty_fd = -1};
    struct relay *relay = &all;
    uint64_t keep_max = run->plan.limits.of[LIMIT_OUTPUT].value;
    uint64_t began_us = clock_us();
    int failed;

    relay->deadline_us = began_us + wall_ms(run) * 1000U;
    relay->kill_us = relay->give_up_us = UINT64_MAX;
    flow_init(&relay->in, streams->in_fd, local->in_fd, false, 0);
    relay->in.close_to = true;
    local->in_fd = -1; /* the flow closes it when our input ends */
    flow_init(&relay->out, local->out_fd, streams->out_fd, streams->keep, keep_max);
    flow_init(&relay->err, local->err_fd, streams->err_fd, streams->keep, keep_max);
    relay->out.close_from = relay->err.close_from = true;
    local->out_fd = local->err_fd = -1;
    if (streams->in_fd < 0)
        flow_close_source(&relay->in);
    if (local->joined)
        failed = joined_start(run, local, err);
    else
        failed = box_say(local->inside_fd, BOX_RELEASE, 0) < 0
                     ? err_os(err, "releasing the sandbox")
                     : 0;
    if (!failed && run->action.tty)
        failed = take_terminal(relay, err);
    if (!failed)
        failed = loop(relay, err);
    run->outcome.duration_us = clock_us() - began_us;
    if (relay->in.to >= 0)
        (void)close(relay->in.to);
    flow_close_source(&relay->out);
    flow_close_source(&relay->err);
    finish(relay);
    return failed;
}

/* ---- attached ---- */

static void send_size(int fd, const struct signalfd_siginfo *order)
{
    struct box_message message = {.kind = BOX_RESIZE};
    struct winsize size;

    if (!order_size(order, &size))
        return;
    message.value = (uint64_t)size.ws_row << 16 | size.ws_col;
    (void)send(fd, &message, sizeof message, MSG_NOSIGNAL); /* gone shows in the next poll */
}

/* False: leave. */
static bool on_attached_signal(int signals_fd, int fd)
{
    struct signalfd_siginfo info;

    if (read(signals_fd, &info, sizeof info) != (ssize_t)sizeof info)
        return true;
    if (info.ssi_code == ORDER_PLAIN_SIGNAL) {
        (void)box_say(fd, BOX_SIGNAL, (int)info.ssi_signo);
        return true;
    }
    if (info.ssi_signo == SIGWINCH)
        send_size(fd, &info);
    return info.ssi_signo == SIGWINCH;
}

int relay_attached(int fd, const int pipes[3], const struct streams *streams, int signals_fd,
                   bool tty, struct box_message *end, struct err *err)
{
    struct relay all = {.tty_fd = -1};
    struct relay *relay = &all;
    struct flow *flows[] = {&relay->in, &relay->out, &relay->err};
    int failed = 0;

    flow_init(&relay->in, streams->in_fd, pipes[0], false, 0);
    flow_init(&relay->out, pipes[1], streams->out_fd, false, 0);
    flow_init(&relay->err, pipes[2], streams->err_fd, false, 0);
    relay->in.close_to = relay->out.close_from = relay->err.close_from = true;
    if (tty)
        send_size(fd, NULL);
    while (fd >= 0 || flow_is_open(&relay->out) || flow_is_open(&relay->err)) {
        struct pollfd polled[] = {
            flow_poll(&relay->in),
            flow_poll(&relay->out),
            flow_poll(&relay->err),
            {.fd = fd,         .events = POLLIN},
            {.fd = signals_fd, .events = POLLIN},
        };

        if (poll(polled, COUNT(polled), -1) < 0 && errno != EINTR) {
            failed = err_os(err, "waiting for the command");
            break;
        }
        for (size_t i = 0; i < COUNT(flows); i++)
            flow_act(flows[i], &polled[i]);
        if (polled[4].revents && !on_attached_signal(signals_fd, fd)) {
            /* Told before our streams end: that is not the end of the command's input. */
            if (fd >= 0)
                (void)shutdown(fd, SHUT_RDWR);
            break;
        }
        if (polled[3].revents && fd >= 0) {
            ssize_t got = recv(fd, end, sizeof *end, MSG_DONTWAIT);

            if (got >= 0 || errno != EAGAIN)
                fd = -1; /* it says one thing, or is gone */
        }
    }
    for (size_t i = 0; i < COUNT(flows); i++) {
        flow_close_source(flows[i]);
        free(flows[i]->held);
    }
    if (relay->in.to >= 0)
        (void)close(relay->in.to);
    return failed;
}
