/* SPDX-License-Identifier: Apache-2.0 */

/* Programs a command tries to run that may run none (box-once.c): each such call waits here, is
 * counted and refused. Nothing of it is looked at, neither who calls nor what it would have run:
 * that is memory of the caller's. A call whose process was killed before we got to it is not
 * counted.
 *
 * A thread of its own, so that a flood of calls waits for itself and for nobody else. */

#include "cmd/box/box.h"

#include "cmd/box/box-callers.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static int heard_fd = -1;
static _Atomic uint64_t counted;

static void refuse(uint64_t id)
{
    union {
        struct seccomp_notif_resp answer;
        char room[NOTICE_BYTES];
    } out;

    memset(&out, 0, sizeof out);
    out.answer.id = id;
    out.answer.error = -EPERM;
    (void)ioctl(heard_fd, SECCOMP_IOCTL_NOTIF_SEND, &out.answer); /* it may be gone by now */
}

/* One call; false: there will be none any more. */
static bool serve_one(void)
{
    struct pollfd polled = {.fd = heard_fd, .events = POLLIN};
    union {
        struct seccomp_notif notice;
        char room[NOTICE_BYTES];
    } in;

    if (poll(&polled, 1, -1) < 0)
        return errno == EINTR;
    if (!(polled.revents & POLLIN))
        return false;
    memset(&in, 0, sizeof in); /* the kernel insists */
    if (ioctl(heard_fd, SECCOMP_IOCTL_NOTIF_RECV, &in.notice) < 0)
        return errno == EINTR || errno == ENOENT;
    atomic_fetch_add(&counted, 1);
    refuse(in.notice.id);
    return true;
}

static void *serve(void *arg)
{
    (void)arg;
    while (serve_one())
        continue;
    (void)close(heard_fd);
    return NULL;
}

int attempts_start(int fd, struct err *err)
{
    if (notices_check(err) < 0)
        return -1;
    heard_fd = fd;
    errno = watcher_start(serve, NULL);
    return errno ? err_os(err, "starting the thread that counts them") : 0;
}

/* The first one is PID 1's own, whose answer is part of its report: no command is released without
 * it, and none runs before. */
uint64_t attempts_count(void)
{
    uint64_t n = atomic_load(&counted);

    return n ? n - 1 : 0;
}
