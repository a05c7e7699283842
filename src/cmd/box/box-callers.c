/* SPDX-License-Identifier: Apache-2.0 */

/* Every connect() of the sandbox waits here until egress has been told who makes it: the cookie of
 * the socket, and the caller's program. The call's other arguments are never looked at: they are
 * memory of the caller's, who could change them behind our back. So a call always goes on in the
 * end, wherever it leads; egress refuses a connection whose caller it was not told of, and what
 * does not lead to egress leads nowhere. Whoever cannot be looked at is simply not told of.
 *
 * The caller waits as long as its notification is valid. One that is valid after we looked was
 * waiting all the time, so it was the same process running the same program. If another thread
 * puts another socket under the number meanwhile, that one's cookie was not told.
 *
 * A thread of its own, so that a flood of calls waits for itself and for nobody else. It speaks to
 * nobody but the kernel and egress. */

#include "cmd/box/box-callers.h"

#include "cmd/box/box-identity.h"
#include "lib/base/memory.h"
#include "lib/linux/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#ifndef PIDFD_THREAD
#define PIDFD_THREAD O_EXCL /* Linux 6.9; before, only the first thread of a process has one */
#endif
#define NOTIF_SET_FLAGS SECCOMP_IOW(4, uint64_t) /* Linux 6.6 */
#define NOTIF_SYNC_WAKE_UP 1UL
#define STACK_BYTES (256UL << 10)
#define FULL_WAIT_MS 1000 /* for egress to read, before a call fails */
#define STATUS_BYTES 512

struct callers {
    int heard_fd;
    int pair_fd;
    union {
        struct seccomp_notif notice;
        char room[NOTICE_BYTES];
    } in;
    union {
        struct seccomp_notif_resp answer;
        char room[NOTICE_BYTES];
    } out;
    struct identity identity;
    char message[HANDOVER_MESSAGE_MAX];
};

/* What the call answers instead of going on; 0: it goes on. */
#define GO_ON 0

static bool is_valid(const struct callers *callers)
{
    uint64_t id = callers->in.notice.id;

    return ioctl(callers->heard_fd, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
}

/* The process a thread belongs to: "Tgid:" stands among the first lines of its status. */
static pid_t process_of(pid_t thread)
{
    char path[48];
    char text[STATUS_BYTES];
    AUTO_FD int fd = -1;
    const char *at;
    ssize_t n;

    (void)snprintf(path, sizeof path, "/proc/%d/status", thread);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (n <= 0)
        return -1;
    text[n] = '\0';
    at = strstr(text, "\nTgid:"); /* a name before it has its line ends escaped */
    return at ? (pid_t)strtol(at + strlen("\nTgid:"), NULL, 10) : -1;
}

/* The thread itself, whose descriptors may be its own, and the process it belongs to. */
static int open_thread(pid_t thread, pid_t *process)
{
    struct pidfd_facts facts;
    int fd = pidfd_open(thread, 0);

    *process = thread;
    if (fd >= 0 || (errno != EINVAL && errno != ENOENT)) /* kernels differ */
        return fd;                                       /* the first of its process, or gone */
    fd = pidfd_open(thread, PIDFD_THREAD);
    *process = fd >= 0 && sys_pidfd_facts(fd, &facts) == 0 ? facts.process : process_of(thread);
    return fd >= 0 ? fd : pidfd_open(*process, 0);
}

static uint64_t socket_number(int fd, int option)
{
    uint64_t number = 0;
    socklen_t n = sizeof number;

    return getsockopt(fd, SOL_SOCKET, option, &number, &n) == 0 ? number : 0;
}

/* The socket the call is about, by the descriptor of the thread; false: not one that egress hears
 * of. */
static bool see_socket(const struct callers *callers, int thread_fd, struct handover_caller *out)
{
    AUTO_FD int fd = pidfd_getfd(thread_fd, (int)callers->in.notice.data.args[0], 0);

    if (fd < 0 || socket_number(fd, SO_TYPE) != SOCK_STREAM)
        return false;
    out->family = (uint32_t)socket_number(fd, SO_DOMAIN);
    out->cookie = socket_number(fd, SO_COOKIE);
    return (out->family == AF_INET || out->family == AF_INET6) && out->cookie != 0;
}

/* Egress that is gone has taken its listeners along: the kernel refuses what it would have. */
static int tell(struct callers *callers, size_t n)
{
    struct pollfd polled = {.fd = callers->pair_fd, .events = POLLOUT};

    for (int tries = 0; tries < 2; tries++) {
        if (send(callers->pair_fd, callers->message, n, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
            return GO_ON;
        if (errno != EAGAIN)
            return GO_ON;
        if (poll(&polled, 1, FULL_WAIT_MS) <= 0)
            break;
    }
    return EAGAIN;
}

static int look(struct callers *callers)
{
    pid_t thread = (pid_t)callers->in.notice.pid, process;
    AUTO_FD int thread_fd = open_thread(thread, &process);
    struct handover_caller seen = {.cookie = 0};
    struct handover_caller *caller = &callers->identity.caller;
    int process_fd;

    /* Valid now: the number was the caller's when it was opened. */
    if (thread_fd < 0 || !is_valid(callers) || !see_socket(callers, thread_fd, &seen))
        return GO_ON;
    process_fd = process == thread ? TAKE_FD(thread_fd) : pidfd_open(process, 0);
    if (identity_see(&callers->identity, process, process_fd) < 0 || !is_valid(callers))
        return GO_ON;
    caller->cookie = seen.cookie;
    caller->family = seen.family;
    return tell(callers, handover_caller(caller, callers->message));
}

static void answer(struct callers *callers, int error)
{
    struct seccomp_notif_resp *out = &callers->out.answer;

    memset(&callers->out, 0, sizeof callers->out);
    out->id = callers->in.notice.id;
    out->error = -error;
    out->flags = error == GO_ON ? SECCOMP_USER_NOTIF_FLAG_CONTINUE : 0;
    (void)ioctl(callers->heard_fd, SECCOMP_IOCTL_NOTIF_SEND, out); /* it may be gone by now */
}

/* One call; false: there will be none any more. */
static bool serve_one(struct callers *callers)
{
    struct pollfd polled = {.fd = callers->heard_fd, .events = POLLIN};

    if (poll(&polled, 1, -1) < 0)
        return errno == EINTR;
    if (!(polled.revents & POLLIN))
        return false;
    memset(&callers->in, 0, sizeof callers->in); /* the kernel insists */
    if (ioctl(callers->heard_fd, SECCOMP_IOCTL_NOTIF_RECV, &callers->in.notice) < 0)
        return errno == EINTR || errno == ENOENT;
    answer(callers, look(callers));
    return true;
}

/* With our end closed every call that still comes fails at once. */
static void *serve(void *arg)
{
    struct callers *callers = arg;

    while (serve_one(callers))
        continue;
    (void)close(callers->heard_fd);
    (void)close(callers->pair_fd);
    free(callers);
    return NULL;
}

int notices_check(struct err *err)
{
    struct seccomp_notif_sizes sizes;

    if (syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes) < 0)
        return err_os(err, "asking what a notification of seccomp looks like");
    if (sizes.seccomp_notif > NOTICE_BYTES || sizes.seccomp_notif_resp > NOTICE_BYTES)
        return err_set(err, ERR_UNAVAILABLE, "this kernel's notifications are longer than %d bytes",
                       NOTICE_BYTES);
    return 0;
}

/* Whoever calls waits for us, and we for the next call: whoever is woken goes on where the other
 * one ran, instead of on a processor that has to be woken first. Linux 6.6; it works without. */
static void stay_on_processor(int heard_fd)
{
    (void)ioctl(heard_fd, NOTIF_SET_FLAGS, NOTIF_SYNC_WAKE_UP);
}

/* Signals are the main thread's. */
int watcher_start(void *(*serves)(void *arg), void *arg)
{
    pthread_attr_t attr;
    sigset_t all, before;
    pthread_t thread;
    int error = pthread_attr_init(&attr);

    if (error)
        return error;
    (void)sigfillset(&all);
    (void)pthread_attr_setstacksize(&attr, STACK_BYTES);
    (void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&thread, &attr, serves, arg);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attr);
    return error;
}

int callers_start(int heard_fd, int pair_fd, pid_t first, const struct commands *commands,
                  struct err *err)
{
    AUTO_FREE struct callers *callers = NULL;

    if (notices_check(err) < 0)
        return -1;
    callers = xcalloc(1, sizeof *callers);
    callers->heard_fd = heard_fd;
    callers->pair_fd = pair_fd;
    identity_init(&callers->identity, first, commands);
    stay_on_processor(heard_fd);
    errno = watcher_start(serve, callers);
    if (errno)
        return err_os(err, "starting the thread that sees who connects");
    callers = NULL; /* the thread's */
    return 0;
}
