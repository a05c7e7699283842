/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "cmd/box/box.h"
#include "lib/base/io.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#define FILES 300

/* A plan with one text behind it. */
struct plan_of {
    struct box_plan plan;
    char run_dir[128];
};

static void fill(const char *dir)
{
    for (int i = 0; i < FILES; i++) {
        char path[160];
        struct err err;

        (void)snprintf(path, sizeof path, "%s/%d", dir, i);
        CHECK_INT(file_exchange(path, "x", 1, 0600, &err), 0);
    }
}

/* Where somebody waits to be answered. */
static int listen_there(const char *dir, int *caller_fd)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    (void)snprintf(address.sun_path, sizeof address.sun_path, "%.80s/control", dir);
    CHECK_INT(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    CHECK_INT(listen(fd, 4), 0);
    *caller_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    CHECK_INT(connect(*caller_fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

TEST(an_order_cuts_one_look_at_the_disk_short_and_never_two_in_a_row)
{
    char dir[] = "/tmp/brig-watch-XXXXXX";
    struct plan_of of = {
        .plan = {.watch_inodes = FILES / 2, .control_fd = -1}
    };
    struct watch watch = {.plan = &of.plan, .proc_fd = -1, .shm_fd = -1};
    AUTO_FD int caller_fd = -1;
    AUTO_FD int control_fd = -1;
    struct err err;

    if (!mkdtemp(dir))
        test_skip("no temporary folder");
    of.plan.run_dir = (uint32_t)offsetof(struct plan_of, run_dir);
    (void)snprintf(of.run_dir, sizeof of.run_dir, "%s", dir);
    of.plan.size = sizeof of;
    fill(dir);
    control_fd = listen_there(dir, &caller_fd);

    of.plan.control_fd = control_fd;
    CHECK_INT(watch_look(&watch), REASON_NONE);
    CHECK(watch.disk_left);
    CHECK_INT(watch_look(&watch), REASON_LIMIT_INODES);
    CHECK(!watch.disk_left);
    CHECK_INT(dir_remove(AT_FDCWD, dir, &err), 0);
}

TEST(without_an_order_the_first_look_at_the_disk_is_whole)
{
    char dir[] = "/tmp/brig-watch-XXXXXX";
    struct plan_of of = {
        .plan = {.watch_disk_bytes = 1U << 30, .control_fd = -1}
    };
    struct watch watch = {.plan = &of.plan, .proc_fd = -1, .shm_fd = -1};
    struct err err;

    if (!mkdtemp(dir))
        test_skip("no temporary folder");
    of.plan.run_dir = (uint32_t)offsetof(struct plan_of, run_dir);
    (void)snprintf(of.run_dir, sizeof of.run_dir, "%s", dir);
    of.plan.size = sizeof of;
    fill(dir);
    CHECK_INT(watch_look(&watch), REASON_NONE);
    CHECK(!watch.disk_left);
    CHECK(watch.next_disk_us > 0);
    CHECK_INT(dir_remove(AT_FDCWD, dir, &err), 0);
}
