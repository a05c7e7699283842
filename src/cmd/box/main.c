/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/box/box.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    struct box box = {.sync_fd = -1, .ahead = AHEAD_NONE, .spawner_fd = -1};
    struct box_message failed = {.kind = BOX_FAILED};
    struct err err;

    for (size_t i = 0; i < BOX_MOUNTS_MAX; i++)
        box.tree_fds[i] = -1;
    /* Nothing we were born with may reach the command but 0, 1 and 2. */
    if (close_range(BOX_FD_SUPERVISOR, ~0U, CLOSE_RANGE_CLOEXEC) < 0) {
        (void)fprintf(stderr, "box is started by brig, not by hand\n");
        return 64;
    }
    if (argc == 2 && strcmp(argv[1], "spawner") == 0)
        return spawner_run();
    if (plan_open(BOX_FD_PLAN, &box.plan, &err) == 0)
        return outer_run(&box, &err) < 0 ? 1 : 0;
    failed.err = err;
    if (message_send(BOX_FD_SUPERVISOR, &failed, &err) < 0)
        (void)fprintf(stderr, "box is started by brig, not by hand\n");
    return 64;
}
