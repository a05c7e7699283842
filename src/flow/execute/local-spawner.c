/* SPDX-License-Identifier: Apache-2.0 */

/* The owner's side of a spawner (cmd/box/box-spawner.c). A request is one message on one socket, so
 * threads need no lock for it; only starting a spawner does. */

#include "flow/execute/local.h"

#include "lib/base/memory.h"
#include "lib/linux/fd-pass.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>

#define END_WAIT_US 5000000U
#define ASK_WAIT_S 10

struct spawner {
    pthread_rwlock_t lock; /* written to when the process is exchanged */
    pid_t pid;
    int fd;
};

static int start(struct spawner *spawner, struct err *err)
{
    AUTO_FD int ours = -1;
    AUTO_FD int theirs = -1;
    AUTO_FD int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    int sockets[2];
    struct timeval patience = {.tv_sec = ASK_WAIT_S};
    int born[SPAWN_FD + 1];

    if (null_fd < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
        return err_os(err, "making a socket to a spawner");
    ours = sockets[0];
    theirs = sockets[1];
    if (setsockopt(ours, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) < 0)
        return err_os(err, "bounding the wait for a spawner");
    for (size_t i = 0; i < COUNT(born); i++)
        born[i] = i == SPAWN_FD ? theirs : null_fd;
    if (box_start(born, COUNT(born), "spawner", &spawner->pid, err) < 0)
        return -1;
    spawner->fd = TAKE_FD(ours);
    return 0;
}

/* Without its socket it ends by itself, once it has noticed. */
static void stop(struct spawner *spawner)
{
    AUTO_FD int pidfd = spawner->pid > 0 ? pidfd_open(spawner->pid, 0) : -1;

    if (spawner->fd >= 0)
        (void)close(TAKE_FD(spawner->fd));
    if (spawner->pid <= 0)
        return;
    if (pidfd < 0 || !wait_for_end(pidfd, END_WAIT_US))
        (void)kill(spawner->pid, SIGKILL);
    while (waitpid(spawner->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    spawner->pid = -1;
}

int spawner_open(struct spawner **out, struct err *err)
{
    AUTO(spawner) struct spawner *spawner = xcalloc(1, sizeof *spawner);

    spawner->pid = spawner->fd = -1;
    (void)pthread_rwlock_init(&spawner->lock, NULL);
    if (start(spawner, err) < 0)
        return -1;
    *out = TAKE(spawner);
    return 0;
}

void spawner_free(struct spawner *spawner)
{
    if (!spawner)
        return;
    stop(spawner);
    (void)pthread_rwlock_destroy(&spawner->lock);
    free(spawner);
}

static int ask(struct spawner *spawner, const int *fds, size_t n, int *seen_fd, struct err *err)
{
    struct spawn_request request = {
        .magic = SPAWN_REQUEST_MAGIC, .version = BOX_PLAN_VERSION, .fd_n = (uint32_t)n};
    int failed;

    (void)pthread_rwlock_rdlock(&spawner->lock);
    *seen_fd = spawner->fd;
    failed = fds_send(spawner->fd, &request, sizeof request, fds, n, err);
    (void)pthread_rwlock_unlock(&spawner->lock);
    return failed;
}

/* Somebody else may have started one meanwhile. */
static int start_again(struct spawner *spawner, int seen_fd, struct err *err)
{
    int failed = 0;

    (void)pthread_rwlock_wrlock(&spawner->lock);
    if (spawner->fd == seen_fd) {
        stop(spawner);
        failed = start(spawner, err);
    }
    (void)pthread_rwlock_unlock(&spawner->lock);
    return failed;
}

int spawner_ask(struct spawner *spawner, const int *fds, size_t n, struct err *err)
{
    int seen_fd = -1;

    if (n > FD_PASS_MAX)
        return err_set(err, ERR_LIMIT, "more than %d descriptors for a sandbox", FD_PASS_MAX);
    if (ask(spawner, fds, n, &seen_fd, err) == 0)
        return 0;
    if (err->os != EPIPE && err->os != ECONNRESET && err->os != EBADF)
        return err_in(err, "asking the spawner");
    if (start_again(spawner, seen_fd, err) < 0)
        return -1;
    return ask(spawner, fds, n, &seen_fd, err) < 0 ? err_in(err, "asking the spawner") : 0;
}
