/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/box/box.h"

#include <errno.h>
#include <fcntl.h>
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

    /* That somebody left with a message of ours unread is told once, before what he said last. */
    do
        got = recv(fd, out, sizeof *out, 0);
    while (got < 0 && (errno == EINTR || errno == ECONNRESET));
    if (got == 0)
        return 0;
    if (got < 0)
        return err_os(err, "receiving a message");
    if (got != (ssize_t)sizeof *out)
        return err_set(err, ERR_INTEGRITY, "a message of %zd bytes", got);
    return 1;
}

void streams_let_go(void)
{
    int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

    for (int fd = 0; fd <= 2; fd++)
        if (null_fd < 0 || dup2(null_fd, fd) < 0)
            (void)close(fd);
    if (null_fd > 2)
        (void)close(null_fd);
}
