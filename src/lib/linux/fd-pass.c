/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/linux/fd-pass.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

union control {
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr align;
};

int fd_send(int socket_fd, int fd, struct err *err)
{
    union control control = {{0}};
    char byte = 'f';
    struct iovec io = {&byte, 1};
    struct msghdr message = {.msg_iov = &io,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);

    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(head), &fd, sizeof fd);
    if (sendmsg(socket_fd, &message, MSG_NOSIGNAL) != 1)
        return err_os(err, "handing over a descriptor");
    return 0;
}

int fd_receive(int socket_fd, int *out, struct err *err)
{
    union control control = {{0}};
    char byte = 0;
    struct iovec io = {&byte, 1};
    struct msghdr message = {.msg_iov = &io,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    const struct cmsghdr *head;
    ssize_t got;

    do
        got = recvmsg(socket_fd, &message, MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return err_os(err, "receiving a descriptor");
    head = CMSG_FIRSTHDR(&message);
    if (got == 0 || !head || head->cmsg_type != SCM_RIGHTS ||
        head->cmsg_len != CMSG_LEN(sizeof *out))
        return err_set(err, ERR_UNAVAILABLE, "no descriptor arrived");
    memcpy(out, CMSG_DATA(head), sizeof *out);
    return 0;
}
