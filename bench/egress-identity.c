/* SPDX-License-Identifier: Apache-2.0 */

/* egress-identity: what the way out costs a sandbox, with the code box has for it.
 *
 *     egress-identity [-n ROUNDS] [-p PROCESSES]
 *
 * First the way out of a new network namespace: routes, redirect, listeners. Then connect() to a
 * server on the loopback interface, alone and with so many other processes about: as the kernel
 * does it, and with somebody who tells who connects. */

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cmd/box/box-callers.h"
#include "cmd/box/box-egress.h"
#include "cmd/box/box-identity.h"
#include "lib/linux/fd-pass.h"
#include "lib/linux/filters.h"
#include "lib/linux/process.h"

#define ROUNDS_MAX 100000
#define BUILDS 50

static size_t rounds = 2000;
static int processes = 500;
static struct err err;

static NORETURN void give_up(const char *what)
{
    (void)fprintf(stderr, "egress-identity: %s: %s (%s)\n", what, err.text, strerror(errno));
    exit(1);
}

static uint64_t now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
    const uint64_t *x = a;
    const uint64_t *y = b;

    return *x < *y ? -1 : *x > *y;
}

static void print_row(const char *name, uint64_t *ns, size_t n)
{
    qsort(ns, n, sizeof *ns, by_size);
    (void)printf("%-44s %8.1f %8.1f us\n", name, (double)ns[n / 2] / 1000,
                 (double)ns[n * 99 / 100] / 1000);
    (void)fflush(stdout);
}

/* ---- the namespace ---- */

static void measure_build(void)
{
    static const uint16_t ports[] = {80, 443};
    uint64_t ns[BUILDS];

    for (size_t i = 0; i < BUILDS; i++) {
        int fds[HANDOVER_FD_COUNT];
        uint64_t before;

        if (unshare(i ? CLONE_NEWNET : CLONE_NEWUSER | CLONE_NEWNET) < 0)
            give_up("namespaces");
        if (loopback_up(&err) < 0)
            give_up("loopback");
        before = now_ns();
        if (egress_build(ports, COUNT(ports), fds, &err) < 0)
            give_up("the way out");
        ns[i] = now_ns() - before;
        for (size_t k = 0; k < HANDOVER_FD_COUNT; k++)
            (void)close(fds[k]);
    }
    print_row("way out of a namespace", ns, BUILDS);
}

/* ---- connect ---- */

static void measure_connects(const char *name)
{
    static uint64_t ns[ROUNDS_MAX];
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof at;
    int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (bind(server, (struct sockaddr *)&at, n) < 0 || listen(server, 16) < 0 ||
        getsockname(server, (struct sockaddr *)&at, &n) < 0)
        give_up("a server");
    for (size_t i = 0; i < rounds; i++) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        uint64_t before = now_ns();

        if (connect(fd, (struct sockaddr *)&at, sizeof at) < 0)
            give_up("connect");
        ns[i] = now_ns() - before;
        (void)close(accept(server, NULL, NULL));
        (void)close(fd);
    }
    print_row(name, ns, rounds);
}

static void add_processes(int n)
{
    for (int i = 0; i < n; i++)
        if (fork() == 0) {
            (void)pause();
            _exit(0);
        }
}

/* As a command of a sandbox that starts another program: it has executed something. */
static NORETURN void be_command(const char *name)
{
    char count[16];
    char self[] = "egress-identity", n[] = "-n", c[] = "-c", shown[64];
    char *words[] = {self, n, count, c, shown, NULL};

    (void)snprintf(count, sizeof count, "%zu", rounds);
    (void)snprintf(shown, sizeof shown, "%s", name);
    commands_note();
    (void)execv("/proc/self/exe", words);
    give_up("executing this program again");
}

static void measure_from_child(const char *name)
{
    pid_t pid = fork();

    if (pid == 0) {
        measure_connects(name);
        _exit(0);
    }
    (void)waitpid(pid, NULL, 0);
}

/* As PID 1 of a sandbox is: all are its descendants, whoever measures is its grandchild. */
static NORETURN void be_first(const char *name, int others, int heard_to)
{
    pid_t pid;

    (void)setpgid(0, 0);
    if (heard_to >= 0) {
        int heard_fd = -1;

        if (no_new_privs(&err) < 0 ||
            seccomp_load_heard(seccomp_egress, seccomp_egress_n, &heard_fd, &err) < 0 ||
            fd_send(heard_to, heard_fd, &err) < 0)
            give_up("the filter");
        (void)close(heard_fd);
    }
    add_processes(others);
    pid = fork();
    if (pid == 0)
        be_command(name);
    (void)waitpid(pid, NULL, 0);
    (void)signal(SIGTERM, SIG_IGN);
    (void)kill(0, SIGTERM);
    while (wait(NULL) > 0)
        continue;
    _exit(0);
}

static void *drain(void *fd)
{
    char bytes[HANDOVER_MESSAGE_MAX];

    while (recv(*(int *)fd, bytes, sizeof bytes, 0) > 0)
        continue;
    return NULL;
}

static void measure(const char *name, int others, bool heard)
{
    struct commands *commands = NULL;
    pthread_t thread;
    int sync[2], pair[2], heard_fd = -1;
    pid_t pid;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sync) < 0 ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0 ||
        commands_make(&commands, &err) < 0)
        give_up("sockets");
    commands_use(commands);
    pid = fork();
    if (pid == 0)
        be_first(name, others, heard ? sync[1] : -1);
    if (heard && (pthread_create(&thread, NULL, drain, &pair[1]) != 0 ||
                  fd_receive(sync[0], &heard_fd, &err) < 0 ||
                  callers_start(heard_fd, pair[0], pid, commands, &err) < 0))
        give_up("who connects");
    (void)waitpid(pid, NULL, 0);
    if (heard)
        (void)pthread_join(thread, NULL); /* callers' end is closed with the last process */
}

int main(int argc, char **argv)
{
    const char *command = NULL; /* we are one, and measure */
    char name[64];
    pid_t pid;
    int option;

    while ((option = getopt(argc, argv, "n:p:c:")) != -1) {
        if (option == 'n' && atoi(optarg) > 0 && atoi(optarg) <= ROUNDS_MAX)
            rounds = (size_t)atoi(optarg);
        else if (option == 'p' && atoi(optarg) >= 0)
            processes = atoi(optarg);
        else if (option == 'c')
            command = optarg;
        else
            return 64;
    }
    if (command) {
        measure_from_child(command);
        return 0;
    }
    (void)printf("%-44s %8s %8s\n", "", "median", "p99");
    (void)fflush(stdout);
    pid = fork();
    if (pid == 0) {
        measure_build();
        _exit(0);
    }
    (void)waitpid(pid, NULL, 0);
    measure("connect, as the kernel does it", 0, false);
    measure("connect, told of", 0, true);
    (void)snprintf(name, sizeof name, "the same with %d processes more", processes);
    measure(name, processes, true);
    return 0;
}
