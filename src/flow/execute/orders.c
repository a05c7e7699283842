/* SPDX-License-Identifier: Apache-2.0 */

/* Orders to what runs: to end, to get a signal, to be of another size. A process with one run gets
 * them as its own signals; one with many gives each run a descriptor, which says the same in the
 * same form, so whoever reads orders need not know which it is. */

#include "flow/execute/orders.h"
#include "flow/execute/backend.h"
#include "lib/base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#define ORDERS_BYTES_MAX (64UL * 1024) /* what a pipe holds */

static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

void execute_obey(struct execute *execute, int fd)
{
    execute->orders_fd = fd;
}

int order_give(int fd, enum order_kind kind, unsigned value, struct err *err)
{
    struct signalfd_siginfo order = {.ssi_signo = value ? value : SIGTERM};

    if (kind == ORDER_SIGNAL) {
        order.ssi_signo = value;
        order.ssi_code = ORDER_PLAIN_SIGNAL;
    } else if (kind == ORDER_RESIZE) {
        order.ssi_signo = SIGWINCH;
        order.ssi_code = ORDER_HAS_SIZE;
        order.ssi_int = (int32_t)value;
    } else if (kind == ORDER_LEFT) {
        order.ssi_code = ORDER_NOBODY_LEFT;
    }
    /* One that cannot be taken now is one of many: a pipe holds hundreds of them. */
    if (write(fd, &order, sizeof order) != (ssize_t)sizeof order)
        return errno == EAGAIN ? err_set(err, ERR_LIMIT, "too many orders at once")
                               : err_os(err, "giving an order");
    return 0;
}

static int listen_for(const struct execute *execute, const sigset_t *signals, int *out,
                      struct err *err)
{
    *out = execute->orders_fd >= 0 ? fcntl(execute->orders_fd, F_DUPFD_CLOEXEC, 3)
                                   : signalfd(-1, signals, SFD_CLOEXEC | SFD_NONBLOCK);
    return *out < 0 ? err_os(err, "listening for orders") : 0;
}

static void add_ending(sigset_t *out)
{
    (void)sigemptyset(out);
    for (size_t i = 0; i < sizeof ending / sizeof *ending; i++)
        (void)sigaddset(out, ending[i]);
}

int orders_open(const struct execute *execute, int *out, struct err *err)
{
    sigset_t ours;

    add_ending(&ours);
    (void)sigaddset(&ours, SIGWINCH);
    if (sigprocmask(SIG_BLOCK, &ours, NULL) < 0)
        return err_os(err, "holding back signals");
    (void)signal(SIGPIPE, SIG_IGN);
    return listen_for(execute, &ours, out, err);
}

int orders_hold(const struct execute *execute, sigset_t *before, int *out, struct err *err)
{
    sigset_t ours, held;

    add_ending(&ours);
    held = ours;
    (void)sigaddset(&held, SIGPIPE); /* a reader that is gone shows as an error of the write */
    if (sigprocmask(SIG_BLOCK, &held, before) < 0)
        return err_os(err, "holding back signals");
    return listen_for(execute, &ours, out, err);
}

void orders_release(const struct execute *execute, const sigset_t *before, int fd)
{
    struct signalfd_siginfo info;
    struct timespec none = {0};
    sigset_t pipe_only;

    /* What was acted on must not act again. */
    while (fd >= 0 && execute->orders_fd < 0 &&
           read(fd, &info, sizeof info) == (ssize_t)sizeof info)
        continue;
    (void)sigemptyset(&pipe_only);
    (void)sigaddset(&pipe_only, SIGPIPE);
    (void)sigtimedwait(&pipe_only, NULL, &none);
    if (fd >= 0)
        (void)close(fd);
    (void)sigprocmask(SIG_SETMASK, before, NULL);
}

enum reason order_reason(const struct signalfd_siginfo *order)
{
    return order->ssi_code == ORDER_NOBODY_LEFT ? REASON_RUN_ABANDONED : REASON_CANCELLED;
}

/* Orders lie in a pipe, whose bytes can be doubled without being taken. */
enum reason execute_told_to_end(const struct execute *execute)
{
    struct signalfd_siginfo order;
    AUTO_FD int from = -1;
    AUTO_FD int to = -1;
    int ends[2];

    if (execute->orders_fd < 0 || pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return REASON_NONE;
    from = ends[0];
    to = ends[1];
    if (tee(execute->orders_fd, to, ORDERS_BYTES_MAX, SPLICE_F_NONBLOCK) <= 0)
        return REASON_NONE;
    while (read(from, &order, sizeof order) == (ssize_t)sizeof order)
        if (order.ssi_code != ORDER_PLAIN_SIGNAL && order.ssi_code != ORDER_HAS_SIZE)
            return order_reason(&order);
    return REASON_NONE;
}

bool order_size(const struct signalfd_siginfo *order, struct winsize *out)
{
    if (!order || order->ssi_code != ORDER_HAS_SIZE)
        return ioctl(STDIN_FILENO, TIOCGWINSZ, out) == 0;
    *out = (struct winsize){.ws_row = (unsigned short)((uint32_t)order->ssi_int >> 16),
                            .ws_col = (unsigned short)order->ssi_int};
    return true;
}
