/* SPDX-License-Identifier: Apache-2.0 */
#include "flow/execute/local.h"

#include "lib/base/memory.h"
#include "lib/linux/beside.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

_Static_assert(PROGRAM_FDS_MAX >= BOX_FD_FIRST_MOUNT + HANDED_MAX, "box could not be started");

struct born_with {
    int fds[BOX_FD_FIRST_MOUNT + HANDED_MAX]; /* index: the number inside box */
    size_t n;
};

static void close_all(const int *fds, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (fds[i] >= 0)
            (void)close(fds[i]);
}

int box_start(const int *fds, size_t n, const char *argument, pid_t *out, struct err *err)
{
    const char *argv[] = {"box", argument, NULL};

    return program_start(argv, NULL, fds, n, out, err);
}

/* Two ends each; ours are close-on-exec from birth, as everything is. */
struct ends {
    int supervisor[2], inside[2], in[2], out[2], err[2];
};

static int make_ends(struct ends *ends, struct err *err)
{
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends->supervisor) < 0 ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends->inside) < 0 ||
        pipe2(ends->in, O_CLOEXEC) < 0 || pipe2(ends->out, O_CLOEXEC) < 0 ||
        pipe2(ends->err, O_CLOEXEC) < 0)
        return err_os(err, "making the streams of the sandbox");
    return 0;
}

int box_spawn(struct run *run, struct local *local, struct spawner *spawner, struct err *err)
{
    struct ends ends = {
        {-1, -1},
        {-1, -1},
        {-1, -1},
        {-1, -1},
        {-1, -1}
    };
    struct handed handed = {.n = 0};
    AUTO_FD int plan_fd = -1;
    struct born_with born = {.n = 0};
    int failed;

    if (box_plan_seal(run, local, &handed, &plan_fd, err) < 0)
        return -1;
    failed = make_ends(&ends, err);
    if (!failed) {
        int fixed[BOX_FD_FIRST_MOUNT] = {ends.in[0],         ends.out[1],    ends.err[1],
                                         ends.supervisor[1], ends.inside[1], plan_fd,
                                         local->lock_fd};

        memcpy(born.fds, fixed, sizeof fixed);
        memcpy(born.fds + BOX_FD_FIRST_MOUNT, handed.fds, handed.n * sizeof handed.fds[0]);
        born.n = BOX_FD_FIRST_MOUNT + handed.n;
        local->spawned = spawner != NULL;
        failed = spawner ? spawner_ask(spawner, born.fds, born.n, err)
                         : box_start(born.fds, born.n, NULL, &local->outer, err);
    }
    close_all((int[]){ends.in[0], ends.out[1], ends.err[1], ends.supervisor[1], ends.inside[1]}, 5);
    local->in_fd = ends.in[1];
    local->out_fd = ends.out[0];
    local->err_fd = ends.err[0];
    local->supervisor_fd = ends.supervisor[0];
    local->inside_fd = ends.inside[0];
    return failed;
}
