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

/* All that came along; more than we asked for were never wanted. */
static size_t take_fds(struct msghdr *message, int *fds, size_t fd_n)
{
    const struct cmsghdr *head = CMSG_FIRSTHDR(message);
    int got[FD_PASS_MAX];
    size_t n;

    if (!head || head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS)
        return 0;
    n = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    memcpy(got, CMSG_DATA(head), n * sizeof(int));
    for (size_t i = 0; i < n; i++)
        if (n == fd_n)
            fds[i] = got[i];
        else
            (void)close(got[i]);
    return n;
}

int fds_receive(int socket_fd, void *bytes, size_t n, int *fds, size_t fd_n, struct err *err)
{
    union control control = {{0}};
    struct iovec io = {bytes, n};
    struct msghdr message = {.msg_iov = &io,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    size_t came;
    ssize_t got;

    for (size_t i = 0; i < fd_n; i++)
        fds[i] = -1;
    do
        got = recvmsg(socket_fd, &message, MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    if (got < 0 && errno == ECONNRESET)
        return 0;
    if (got < 0)
        return err_os(err, "receiving descriptors");
    came = take_fds(&message, fds, fd_n);
    if (came != 0 && came != fd_n)
        return err_set(err, ERR_INTEGRITY, "%zu descriptors came along instead of %zu", came, fd_n);
    return (int)got;
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
