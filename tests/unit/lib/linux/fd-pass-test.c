/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/linux/fd-pass.h"

#include "test.h"

#include <sys/socket.h>
#include <unistd.h>

TEST(who_leaves_with_something_unread_is_heard_to_the_end)
{
    int pair[2], fd = -1;
    char byte = 0;
    struct err err;

    CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    CHECK_INT(fds_send(pair[0], "u", 1, NULL, 0, &err), 0);
    CHECK_INT(fd_send(pair[1], STDOUT_FILENO, &err), 0);
    CHECK_INT(fds_send(pair[1], "l", 1, NULL, 0, &err), 0);
    (void)close(pair[1]);
    CHECK_INT(fd_receive(pair[0], &fd, &err), 0);
    (void)close(fd);
    CHECK_INT(fds_receive(pair[0], &byte, 1, NULL, 0, &err), 1);
    CHECK_INT(byte, 'l');
    CHECK_INT(fds_receive(pair[0], &byte, 1, NULL, 0, &err), 0);
    (void)close(pair[0]);
}
