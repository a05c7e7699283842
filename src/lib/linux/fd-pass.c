/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/linux/fd-pass.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

union control {
    char bytes[CMSG_SPACE(FD_PASS_MAX * sizeof(int))];
    struct cmsghdr align;
};

int fds_send(int socket_fd, const void *bytes, size_t n, const int *fds, size_t fd_n,
             struct err *err)
{
    union control control = {{0}};
    struct iovec io = {(void *)(uintptr_t)bytes, n}; /* sending does not write there */
    struct msghdr message = {.msg_iov = &io, .msg_iovlen = 1};
    struct cmsghdr *head;

    assert(fd_n <= FD_PASS_MAX);
    if (fd_n) {
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(fd_n * sizeof(int));
        head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(fd_n * sizeof(int));
        memcpy(CMSG_DATA(head), fds, fd_n * sizeof(int));
    }
    if (sendmsg(socket_fd, &message, MSG_NOSIGNAL) != (ssize_t)n)
        return err_os(err, "handing over descriptors");
    return 0;
}

static size_t take_fds(struct msghdr *message, int fds[FD_PASS_MAX])
{
    const struct cmsghdr *head = CMSG_FIRSTHDR(message);
    size_t n;

    if (!head || head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS)
        return 0;
    n = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    memcpy(fds, CMSG_DATA(head), n * sizeof(int));
    return n;
}

int fds_receive_any(int socket_fd, void *bytes, size_t n, int fds[FD_PASS_MAX], size_t *fd_n,
                    struct err *err)
{
    union control control = {{0}};
    struct iovec io = {bytes, n};
    struct msghdr message = {.msg_iov = &io,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    ssize_t got;

    *fd_n = 0;
    /* That somebody left with a message of ours unread is told once, before what he said last. */
    do
        got = recvmsg(socket_fd, &message, MSG_CMSG_CLOEXEC);
    while (got < 0 && (errno == EINTR || errno == ECONNRESET));
    if (got < 0)
        return err_os(err, "receiving descriptors");
    *fd_n = take_fds(&message, fds);
    return (int)got;
}

int fds_receive(int socket_fd, void *bytes, size_t n, int *fds, size_t fd_n, struct err *err)
{
    int came[FD_PASS_MAX];
    size_t came_n;
    int got = fds_receive_any(socket_fd, bytes, n, came, &came_n, err);

    for (size_t i = 0; i < fd_n; i++)
        fds[i] = got >= 0 && came_n == fd_n ? came[i] : -1;
    if (got < 0 || came_n == 0 || came_n == fd_n)
        return got;
    /* More than we asked for were never wanted. */
    for (size_t i = 0; i < came_n; i++)
        (void)close(came[i]);
    return err_set(err, ERR_INTEGRITY, "%zu descriptors came along instead of %zu", came_n, fd_n);
}

int fd_send(int socket_fd, int fd, struct err *err)
{
    return fds_send(socket_fd, "f", 1, &fd, 1, err);
}

int fd_receive(int socket_fd, int *out, struct err *err)
{
    char byte = 0;
    int fd = -1;

    if (fds_receive(socket_fd, &byte, 1, &fd, 1, err) < 0)
        return -1;
    if (fd < 0)
        return err_set(err, ERR_UNAVAILABLE, "no descriptor arrived");
    *out = fd;
    return 0;
}
