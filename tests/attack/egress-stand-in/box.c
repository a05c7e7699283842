/* SPDX-License-Identifier: Apache-2.0 */

/* Stands where brig looks for box: gives every plan that has sockets a way out, with a stand-in for
 * egress at its other end, and hands it to the real box, which lies beside as "box-real". */

#include "flow/execute/box-wire.h"
#include "lib/base/buf.h"
#include "lib/base/io.h"
#include "lib/linux/fd-pass.h"
#include "stand-in.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

static const uint16_t ports[4] = {80, 443, STAND_IN_QUIT_PORT, STAND_IN_DEAF_PORT};

static _Noreturn void die(const char *what)
{
    perror(what);
    exit(70);
}

static char *real_box(void)
{
    static char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 8);

    if (n <= 0)
        die("finding ourselves");
    memcpy(path + n, "-real", sizeof "-real");
    return path;
}

/* A process of nobody's, with nothing but its end of the pair. */
static void start_stand_in(int pair_fd)
{
    pid_t pid = fork();

    if (pid < 0)
        die("fork");
    if (pid > 0) {
        (void)close(pair_fd);
        return;
    }
    (void)setsid();
    (void)signal(SIGCHLD, SIG_DFL);
    for (int i = 0; i < 3; i++)
        (void)dup2(open("/dev/null", O_RDWR), i);
    (void)dup2(pair_fd, 3);
    (void)close_range(4, ~0U, 0);
    stand_in_serve(3);
    _exit(0);
}

/* The plan with a way out at descriptor `at`; -1: it can have none. */
static int plan_with(int plan_fd, int at)
{
    struct stat st;
    const struct box_plan *before;
    struct box_plan plan;
    struct buf block = BUF(BOX_PLAN_MAX);
    struct err err;
    int fd;

    if (fstat(plan_fd, &st) < 0 || st.st_size < (off_t)sizeof plan)
        return -1;
    before = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, plan_fd, 0);
    if (before == MAP_FAILED)
        die("mmap");
    plan = *before;
    if (plan.magic != BOX_PLAN_MAGIC || plan.sockets_none || plan.egress_fd >= 0)
        return -1;
    if (buf_add(&block, before, (size_t)st.st_size, &err) < 0)
        die(err.text);
    while (block.n % 8)
        if (buf_add_byte(&block, '\0', &err) < 0)
            die(err.text);
    plan.egress_fd = at;
    plan.egress_ports = (uint32_t)block.n;
    plan.egress_port_n = (uint32_t)COUNT(ports);
    if (buf_add(&block, ports, sizeof ports, &err) < 0)
        die(err.text);
    plan.size = (uint32_t)block.n;
    memcpy(block.p, &plan, sizeof plan);
    fd = memfd_create("plan", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || write_all(fd, block.p, block.n, &err) < 0 || fcntl(fd, F_ADD_SEALS, SEALS) < 0)
        die("sealing the plan");
    buf_done(&block);
    (void)munmap((void *)(uintptr_t)before, (size_t)st.st_size);
    return fd;
}

/* ---- one box ---- */

static void be_box(char **argv)
{
    int n = 0, plan_fd;
    int pair[2];

    while (fcntl(n, F_GETFD) >= 0)
        n++;
    plan_fd = plan_with(BOX_FD_PLAN, n);
    if (plan_fd >= 0) {
        if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) < 0)
            die("socketpair");
        start_stand_in(pair[1]);
        if (dup2(plan_fd, BOX_FD_PLAN) < 0 || (pair[0] != n && dup2(pair[0], n) < 0))
            die("dup2");
        (void)close_range((unsigned)n + 1, ~0U, 0);
    }
    (void)execve(real_box(), argv, (char *[]){NULL});
    die("box-real");
}

/* ---- a spawner ---- */

static pid_t start_spawner(char **argv, int fd, int other)
{
    pid_t pid = fork();

    if (pid < 0)
        die("fork");
    if (pid > 0)
        return pid;
    (void)close(other);
    if (dup2(fd, SPAWN_FD) < 0)
        die("dup2");
    (void)close_range(SPAWN_FD + 1, ~0U, 0);
    (void)execve(real_box(), argv, (char *[]){NULL});
    die("box-real");
}

static void relay(int to_fd)
{
    struct spawn_request request;
    int fds[FD_PASS_MAX];
    size_t n;
    struct err err;

    while (fds_receive_any(SPAWN_FD, &request, sizeof request, fds, &n, &err) > 0) {
        int pair[2];
        int plan_fd = n > BOX_FD_PLAN && n < FD_PASS_MAX ? plan_with(fds[BOX_FD_PLAN], (int)n) : -1;

        if (plan_fd >= 0) {
            if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                die("socketpair");
            start_stand_in(pair[1]);
            (void)close(fds[BOX_FD_PLAN]);
            fds[BOX_FD_PLAN] = plan_fd;
            fds[n++] = pair[0];
            request.fd_n++;
        }
        if (fds_send(to_fd, &request, sizeof request, fds, n, &err) < 0)
            die(err.text);
        for (size_t i = 0; i < n; i++)
            (void)close(fds[i]);
    }
}

int main(int argc, char **argv)
{
    int pair[2];

    if (argc < 2 || strcmp(argv[1], "spawner") != 0)
        be_box(argv);
    (void)signal(SIGCHLD, SIG_IGN);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        die("socketpair");
    (void)start_spawner(argv, pair[1], pair[0]);
    (void)close(pair[1]);
    relay(pair[0]);
    return 0;
}
