/* SPDX-License-Identifier: Apache-2.0 */
#include "flow/execute/local.h"

#include "test.h"

#include <sys/socket.h>
#include <unistd.h>

static void say(int fd, const struct box_message *message)
{
    CHECK_INT(send(fd, message, sizeof *message, MSG_NOSIGNAL), sizeof *message);
}

static void open_pair(int pair[2])
{
    CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
}

/* An order that crosses with the end it asks for is read by nobody. */
TEST(what_is_said_last_is_heard_of_whoever_ended_before_it_was_told_to)
{
    const struct box_message exited = {.kind = BOX_EXITED, .status = 7 << 8};
    const struct box_message gone = {.kind = BOX_GONE, .cpu_us = 11};
    const struct streams streams = {.in_fd = -1, .out_fd = -1, .err_fd = -1};
    struct local local = {.signals_fd = -1, .in_fd = -1, .out_fd = -1, .err_fd = -1};
    int inside[2], outer[2];
    struct run run;
    struct err err;

    open_pair(inside);
    open_pair(outer);
    local.inside_fd = inside[0];
    local.supervisor_fd = outer[0];
    say(outer[0], &(struct box_message){.kind = BOX_KILL});
    say(inside[1], &exited);
    say(outer[1], &gone);
    (void)close(outer[1]);
    run_init(&run);
    run.plan.limits.of[LIMIT_WALL].value = 60000;
    (void)shutdown(inside[1], SHUT_WR);
    CHECK_INT(relay(&run, &local, &streams, &err), 0);
    CHECK_INT(run.outcome.reason, REASON_NONE);
    CHECK_INT(run.outcome.exit_code, 7);
    CHECK_INT(run.outcome.signal, 0);
    CHECK_INT(run.outcome.cpu_us, 11);
    CHECK(run.outcome.execs_counted);
    run_done(&run);
    (void)close(inside[1]);
    (void)close(inside[0]);
    (void)close(outer[0]);
}
