/* SPDX-License-Identifier: Apache-2.0 */
#include "flow/execute/kept.h"

#include "test.h"

#include <sys/socket.h>
#include <unistd.h>

/* Both ends of what a sandbox is heard over: from inside, and from outside. */
struct ends {
    int inside_fd, outer_fd;
};

static void open_ends(struct local *local, struct ends *out)
{
    int inside[2], outer[2];

    CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, inside), 0);
    CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, outer), 0);
    *local = (struct local){.inside_fd = inside[0], .supervisor_fd = outer[0], .signals_fd = -1};
    *out = (struct ends){inside[1], outer[1]};
}

static void say(int fd, enum box_message_kind kind, enum reason reason)
{
    const struct box_message message = {.kind = kind, .reason = reason};

    CHECK_INT(send(fd, &message, sizeof message, MSG_NOSIGNAL), sizeof message);
}

TEST(a_sandbox_whose_time_was_over_before_it_was_heard_of_was_made_all_the_same)
{
    static const struct {
        enum box_message_kind kind;
        enum reason reason;
        bool made;
    } cases[] = {
        {BOX_GONE,   REASON_SANDBOX_EXPIRED, true },
        {BOX_GONE,   REASON_SANDBOX_IDLE,    true },
        {BOX_GONE,   REASON_NONE,            false},
        {BOX_GONE,   REASON_LIMIT_MEMORY,    false},
        {BOX_FAILED, REASON_NONE,            false},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct local local;
        struct ends ends;
        struct run run;
        struct err err;

        open_ends(&local, &ends);
        run_init(&run);
        CHECK_INT(shutdown(ends.inside_fd, SHUT_WR), 0); /* PID 1 was ended before it said so */
        say(ends.outer_fd, cases[i].kind, cases[i].reason);
        (void)close(ends.outer_fd);
        CHECK_INT(kept_release(&run, &local, &err), cases[i].made ? 0 : -1);
        CHECK(local.stays == cases[i].made);
        CHECK(run.outcome.started == cases[i].made);
        run_done(&run);
        (void)close(ends.inside_fd);
        (void)close(local.inside_fd);
        (void)close(local.supervisor_fd);
    }
}
