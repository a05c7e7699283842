/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/box/box.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

int message_send(int fd, const struct box_message *message, struct err *err)
{
    if (send(fd, message, sizeof *message, MSG_NOSIGNAL) != (ssize_t)sizeof *message)
        return err_os(err, "sending message %u", message->kind);
    return 0;
}

int message_receive(int fd, struct box_message *out, struct err *err)
{
    ssize_t got;

    do
        got = recv(fd, out, sizeof *out, 0);
    while (got < 0 && errno == EINTR);
    if (got == 0 || (got < 0 && errno == ECONNRESET))
        return 0;
    if (got < 0)
        return err_os(err, "receiving a message");
    if (got != (ssize_t)sizeof *out)
        return err_set(err, ERR_INTEGRITY, "a message of %zd bytes", got);
    return 1;
}

union control {
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr align;
};

int descriptor_send(int socket_fd, int fd, struct err *err)
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

int descriptor_receive(int socket_fd, int *out, struct err *err)
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
