/* SPDX-License-Identifier: Apache-2.0 */

/* A command that runs without its caller (exec-wire.h). Its keeper reads what it writes, keeps the
 * end of it in the log, and passes it on to whoever is attached, one at a time; a reader that does
 * not take it makes the command wait, as a terminal would. With nobody attached its input stays
 * open and empty. When it has ended, the log says how, and the lock is let go. */

#include "cmd/box/box.h"

#include "flow/execute/exec-wire.h"
#include "lib/base/clock.h"
#include "lib/linux/fd-pass.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define CHUNK_BYTES 4096U
#define GRACE_US 250000U
#define FLUSH_WAIT_MS 2000
#define REFUSE_WAIT_MS 200

/* Bytes on their way from one descriptor to another. */
struct stream {
    int from; /* -1: ended */
    int to;   /* -1: nobody listens */
    int log;  /* which ring, or -1 */
    char held[CHUNK_BYTES];
    size_t held_at, held_n;
};

struct detached {
    struct command command;
    struct exec_log log;
    int listen_fd, log_fd, lock_fd;
    int client_fd;                /* of whoever is attached, or -1 */
    struct stream in, streams[2]; /* with a terminal the second is never open */
    uint64_t began_us, deadline_us, kill_us;
    bool attached; /* the client has brought its streams */
};

/* ---- the log ---- */

/* A full disk costs the log, not the command. */
static void log_write(struct detached *d)
{
    (void)!pwrite(d->log_fd, &d->log, sizeof d->log, 0);
}

static void log_add(struct detached *d, int which, const char *bytes, size_t n)
{
    uint64_t ring_at = EXEC_RINGS_AT + (uint64_t)which * EXEC_RING_BYTES;

    while (n > 0) {
        size_t at = d->log.total[which] % EXEC_RING_BYTES;
        size_t room = EXEC_RING_BYTES - at;
        size_t part = n < room ? n : room;

        (void)!pwrite(d->log_fd, bytes, part, (off_t)(ring_at + at));
        d->log.total[which] += part;
        bytes += part;
        n -= part;
    }
    log_write(d);
}

/* ---- streams ---- */

static void close_fd(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}

/* Whoever leaves closes everything, in whatever order: that is no end of input. */
static bool has_left(const struct detached *d)
{
    char byte;

    return d->client_fd < 0 || recv(d->client_fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static void stream_read(struct detached *d, struct stream *stream)
{
    ssize_t got = read(stream->from, stream->held, sizeof stream->held);

    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (got <= 0) {
        /* Input that ends, ends the command's; a terminal has no end. */
        close_fd(&stream->from);
        if (stream == &d->in && !d->log.tty && !has_left(d))
            close_fd(&stream->to);
        return;
    }
    if (stream->log >= 0)
        log_add(d, stream->log, stream->held, (size_t)got);
    else
        d->log.stdin_bytes += (uint64_t)got;
    stream->held_at = 0;
    stream->held_n = stream->to >= 0 ? (size_t)got : 0;
}

static void stream_write(struct stream *stream)
{
    ssize_t wrote = write(stream->to, stream->held + stream->held_at, stream->held_n);

    if (wrote < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (wrote < 0) {
        close_fd(&stream->to); /* whoever listened is gone; the command goes on */
        stream->held_n = 0;
        return;
    }
    stream->held_at += (size_t)wrote;
    stream->held_n -= (size_t)wrote;
}

static struct pollfd stream_poll(const struct stream *stream)
{
    if (stream->held_n)
        return (struct pollfd){.fd = stream->to, .events = POLLOUT};
    return (struct pollfd){.fd = stream->from, .events = POLLIN};
}

static void stream_act(struct detached *d, struct stream *stream, const struct pollfd *polled)
{
    if (!polled->revents || polled->fd < 0)
        return;
    if (stream->held_n)
        stream_write(stream);
    else
        stream_read(d, stream);
}

/* ---- whoever is attached ---- */

static void let_go(struct detached *d)
{
    close_fd(&d->client_fd);
    close_fd(&d->in.from);
    d->in.held_n = 0;
    for (int i = 0; i < 2; i++) {
        close_fd(&d->streams[i].to);
        d->streams[i].held_n = 0;
    }
    d->attached = false;
}

/* What was sent is taken first: bytes nobody read would end the connection before our answer. */
static void refuse(int fd, const char *why)
{
    struct box_message failed = {.kind = BOX_FAILED};
    struct pollfd polled = {.fd = fd, .events = POLLIN};
    struct box_message message;
    int fds[3] = {-1, -1, -1};
    struct err ignored; /* it learns it from the closed connection, too */

    (void)err_set(&failed.err, ERR_CONFLICT, "%s", why);
    if (poll(&polled, 1, REFUSE_WAIT_MS) == 1 &&
        fds_receive(fd, &message, sizeof message, fds, 3, &ignored) > 0)
        (void)!message_send(fd, &failed, &ignored);
    for (int i = 0; i < 3; i++)
        close_fd(&fds[i]);
}

static void on_connection(struct detached *d)
{
    int fd = accept4(d->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd < 0)
        return;
    if (d->client_fd < 0) {
        d->client_fd = fd;
        return;
    }
    refuse(fd, "somebody else is attached to it");
    (void)close(fd);
}

static void attach(struct detached *d, const int fds[3])
{
    struct box_message started = {
        .kind = BOX_STARTED, .value = d->log.total[0], .processes = d->log.total[1]};
    struct err ignored;

    for (int i = 0; i < 3; i++)
        (void)fcntl(fds[i], F_SETFL, O_NONBLOCK);
    d->in.from = fds[0];
    d->streams[0].to = fds[1];
    d->streams[1].to = fds[2];
    d->attached = true;
    if (message_send(d->client_fd, &started, &ignored) < 0)
        let_go(d);
}

static void resize(const struct detached *d, uint64_t value)
{
    struct winsize size = {.ws_row = (unsigned short)(value >> 16),
                           .ws_col = (unsigned short)(value & 0xffffU)};

    if (d->command.tty_fd >= 0)
        (void)ioctl(d->command.tty_fd, TIOCSWINSZ, &size);
}

static void on_client(struct detached *d)
{
    struct box_message message;
    int fds[3];
    struct err ignored;
    int got = fds_receive(d->client_fd, &message, sizeof message, fds, 3, &ignored);

    if (got != (int)sizeof message) {
        let_go(d);
        return;
    }
    if (message.kind == BOX_ATTACH && fds[0] >= 0 && !d->attached)
        attach(d, fds);
    else
        for (int i = 0; i < 3; i++)
            close_fd(&fds[i]);
    if (message.kind == BOX_SIGNAL)
        (void)kill(-d->command.pid, message.status); /* gone already is as good */
    if (message.kind == BOX_RESIZE)
        resize(d, message.value);
}

/* ---- its life ---- */

static int wait_ms(const struct detached *d)
{
    uint64_t next = d->deadline_us < d->kill_us ? d->deadline_us : d->kill_us;

    if (next == UINT64_MAX)
        return -1;
    return clock_ms_until(next);
}

/* True: it is over, whatever it wants. */
static bool on_time(struct detached *d)
{
    uint64_t now = clock_us();

    if (now >= d->deadline_us) {
        d->deadline_us = UINT64_MAX;
        d->kill_us = now + GRACE_US;
        d->log.reason = REASON_LIMIT_TIME;
        (void)kill(-d->command.pid, SIGTERM);
    }
    return now >= d->kill_us;
}

static void pass_on(struct detached *d, int timeout_ms)
{
    struct pollfd polled[] = {
        {.fd = d->command.signals_fd, .events = POLLIN},
        {.fd = d->listen_fd,          .events = POLLIN},
        {.fd = d->client_fd,          .events = POLLIN},
        stream_poll(&d->in),
        stream_poll(&d->streams[0]),
        stream_poll(&d->streams[1]),
    };
    struct signalfd_siginfo info;

    if (poll(polled, COUNT(polled), timeout_ms) <= 0)
        return;
    if (polled[0].revents)
        (void)!read(polled[0].fd, &info, sizeof info); /* only wakes us */
    stream_act(d, &d->in, &polled[3]);
    stream_act(d, &d->streams[0], &polled[4]);
    stream_act(d, &d->streams[1], &polled[5]);
    if (polled[2].revents && d->client_fd >= 0)
        on_client(d);
    if (polled[1].revents)
        on_connection(d);
}

static bool is_flowing(const struct detached *d)
{
    for (int i = 0; i < 2; i++)
        if (d->streams[i].held_n || d->streams[i].from >= 0)
            return true;
    return false;
}

/* What it wrote before it ended. With leftovers that stay, the streams have no end to wait for. */
static void drain(struct detached *d)
{
    uint64_t give_up_us = clock_us() + FLUSH_WAIT_MS * 1000U;

    while (is_flowing(d) && clock_us() < give_up_us) {
        struct pollfd polled[] = {stream_poll(&d->streams[0]), stream_poll(&d->streams[1])};

        if (poll(polled, COUNT(polled), d->streams[0].held_n || d->streams[1].held_n ? 100 : 0) <=
            0) {
            if (!d->streams[0].held_n && !d->streams[1].held_n)
                return;
            continue;
        }
        stream_act(d, &d->streams[0], &polled[0]);
        stream_act(d, &d->streams[1], &polled[1]);
    }
}

static void finish(struct detached *d, int status)
{
    struct box_message exited = {.kind = BOX_EXITED,
                                 .status = status,
                                 .reason = d->log.reason,
                                 .cpu_us = command_cpu_us(),
                                 .peak_memory_bytes = command_peak_bytes()};
    struct err ignored; /* the log says it as well */

    command_io(&exited.read_bytes, &exited.written_bytes);
    d->log.read_bytes = exited.read_bytes;
    d->log.written_bytes = exited.written_bytes;
    drain(d);
    d->log.ended = 1;
    d->log.status = status;
    d->log.cpu_us = exited.cpu_us;
    d->log.peak_memory_bytes = exited.peak_memory_bytes;
    d->log.duration_us = clock_us() - d->began_us;
    log_write(d);
    close_fd(&d->lock_fd); /* whoever is told next finds it ended */
    if (d->client_fd >= 0 && message_send(d->client_fd, &exited, &ignored) < 0)
        close_fd(&d->client_fd);
    let_go(d);
    close_fd(&d->listen_fd);
    close_fd(&d->log_fd);
    close_fd(&d->in.to);
    close_fd(&d->streams[0].from);
    close_fd(&d->streams[1].from);
}

static void live(struct detached *d, bool keep)
{
    int status = 0;

    while (!command_reap(&d->command, &status)) {
        if (on_time(d)) {
            leftovers_end();
            status = SIGKILL;
            break;
        }
        pass_on(d, wait_ms(d));
    }
    if (!keep)
        leftovers_end();
    finish(d, status);
}

/* ---- its start ---- */

/* 0, 1 and 2 become the command's ends; ours are kept. */
static int make_streams(struct detached *d, struct err *err)
{
    int *ours[] = {&d->in.to, &d->streams[0].from, &d->streams[1].from};

    for (int i = 0; i < 3; i++) {
        int ends[2];

        if (pipe2(ends, O_CLOEXEC) < 0)
            return err_os(err, "making the streams of the command");
        *ours[i] = fcntl(ends[i == 0], F_DUPFD_CLOEXEC, 16);
        (void)close(ends[i == 0]);
        if (*ours[i] < 0 || dup2(ends[i != 0], i) < 0)
            return err_os(err, "making the streams of the command");
        if (ends[i != 0] != i)
            (void)close(ends[i != 0]);
    }
    return 0;
}

static int take_terminal(struct detached *d, struct err *err)
{
    d->log.tty = 1;
    close_fd(&d->in.to);
    close_fd(&d->streams[0].from);
    close_fd(&d->streams[1].from);
    d->in.to = fcntl(d->command.tty_fd, F_DUPFD_CLOEXEC, 16);
    d->streams[0].from = fcntl(d->command.tty_fd, F_DUPFD_CLOEXEC, 16);
    if (d->in.to < 0 || d->streams[0].from < 0)
        return err_os(err, "sharing the terminal");
    return 0;
}

int detached_run(const struct box_plan *plan, const int fds[3], struct err *err)
{
    static struct detached d;
    struct box_message started = {.kind = BOX_STARTED};

    d = (struct detached){
        .log = {.magic = EXEC_LOG_MAGIC, .version = EXEC_LOG_VERSION},
        .listen_fd = fds[0],
        .log_fd = fds[1],
        .lock_fd = fds[2],
        .client_fd = -1,
        .in = {.from = -1,              .to = -1,                    .log = -1},
        .streams = {{.from = -1, .to = -1, .log = 0},                       {.from = -1, .to = -1, .log = 1}                  },
        .began_us = clock_us(),
        .deadline_us = plan->wall_ms ? clock_us() + plan->wall_ms * 1000U : UINT64_MAX,
        .kill_us = UINT64_MAX,
    };
    (void)signal(SIGPIPE, SIG_IGN);
    if (make_streams(&d, err) < 0 || command_start(plan, &d.command, &started.err.os, err) < 0)
        return -1;
    if (started.err.os)
        started.kind = BOX_NOT_STARTED;
    else if (plan->tty && take_terminal(&d, err) < 0)
        return -1;
    (void)fcntl(d.in.to, F_SETFL, O_NONBLOCK);
    log_write(&d);
    if (message_send(BOX_FD_INSIDE, &started, err) < 0 || started.err.os)
        return started.err.os ? 0 : -1;
    (void)close(BOX_FD_INSIDE); /* from here on it needs no caller */
    live(&d, plan->keep_background);
    return 0;
}
