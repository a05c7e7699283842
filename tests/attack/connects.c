/* SPDX-License-Identifier: Apache-2.0 */

/* Ways to connect, and to have somebody else connect. Where a connection stands, whatever its
 * other end says is printed; otherwise "ATTEMPT: ERRNO". */

#include "attack.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>

#ifndef TCP_FASTOPEN_CONNECT
#define TCP_FASTOPEN_CONNECT 30
#endif

static struct sockaddr_storage to;
static socklen_t to_n;

static void set_target(const char *address, const char *port)
{
    struct sockaddr_in *in = (void *)&to;
    struct sockaddr_in6 *in6 = (void *)&to;

    if (inet_pton(AF_INET, address, &in->sin_addr) == 1) {
        in->sin_family = AF_INET;
        in->sin_port = htons((uint16_t)atoi(port));
        to_n = sizeof *in;
    } else if (inet_pton(AF_INET6, address, &in6->sin6_addr) == 1) {
        in6->sin6_family = AF_INET6;
        in6->sin6_port = htons((uint16_t)atoi(port));
        to_n = sizeof *in6;
    } else {
        usage("connects WAY ADDRESS PORT");
    }
}

static int make_socket(int type)
{
    return socket(to.ss_family, type | SOCK_CLOEXEC, 0);
}

static void print_answer(int fd)
{
    char line[8192];
    ssize_t n;

    while ((n = read(fd, line, sizeof line)) > 0)
        (void)!write(STDOUT_FILENO, line, (size_t)n);
    if (n < 0)
        answer("read", errno);
}

static int dial(int fd)
{
    return connect(fd, (struct sockaddr *)&to, to_n);
}

static void plainly(void)
{
    int fd = make_socket(SOCK_STREAM);

    if (dial(fd) < 0)
        answer("connect", errno);
    else
        print_answer(fd);
}

/* First until somebody has written into two pipes: it runs, it may go on. */
static void after_waiting(char **pipes)
{
    char byte;

    for (; *pipes; pipes++) {
        int fd = open(*pipes, O_RDONLY | O_CLOEXEC);

        while (read(fd, &byte, 1) > 0)
            continue;
        (void)close(fd);
    }
    plainly();
}

static void datagram(void)
{
    int fd = make_socket(SOCK_DGRAM);
    char bytes[64];
    ssize_t n;

    if (dial(fd) < 0 || send(fd, "ask", 3, 0) < 0) {
        answer("send", errno);
        return;
    }
    n = recv(fd, bytes, sizeof bytes, 0);
    if (n < 0)
        answer("recv", errno);
    else
        (void)!write(STDOUT_FILENO, bytes, (size_t)n);
}

static void *in_thread(void *unused)
{
    (void)unused;
    plainly();
    return NULL;
}

static void by_thread(void)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, in_thread, NULL) == 0)
        (void)pthread_join(thread, NULL);
}

static void by_vfork(void)
{
    int fd = make_socket(SOCK_STREAM);
    pid_t pid = vfork();

    if (pid == 0)
        _exit(dial(fd) < 0 ? errno : 0);
    (void)waitpid(pid, NULL, 0);
    print_answer(fd);
}

/* By a process whose parent is gone: it belongs to PID 1. */
static void by_orphan(void)
{
    int pipes[2];
    char line[8192];
    ssize_t n;

    if (pipe(pipes) < 0)
        return;
    if (fork() == 0) {
        pid_t parent = getpid();

        if (fork() > 0)
            _exit(0);
        while (getppid() == parent)
            (void)usleep(1000);
        (void)dup2(pipes[1], STDOUT_FILENO);
        plainly();
        _exit(0);
    }
    (void)close(pipes[1]);
    (void)wait(NULL);
    while ((n = read(pipes[0], line, sizeof line)) > 0)
        (void)!write(STDOUT_FILENO, line, (size_t)n);
}

static void by_sibling(void)
{
    (void)attempt("clone", syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0));
}

static int shared_fd;

static int dial_shared(void *unused)
{
    (void)unused;
    return dial(shared_fd) < 0 ? errno : 0;
}

/* A process that shares our descriptors, and nothing else. */
static void by_clone(void)
{
    static char stack[65536];
    pid_t pid;

    shared_fd = make_socket(SOCK_STREAM);
    pid = clone(dial_shared, stack + sizeof stack, CLONE_FILES | SIGCHLD, NULL);
    (void)waitpid(pid, NULL, 0);
    print_answer(shared_fd);
}

/* The socket is made here, connected by the program in argv (which is this one again), used here.
 */
static void by_other(char **argv)
{
    int fd = make_socket(SOCK_STREAM);
    char number[16];
    pid_t pid;

    (void)fcntl(fd, F_SETFD, 0);
    (void)snprintf(number, sizeof number, "%d", fd);
    (void)setenv("CONNECTS_FD", number, 1);
    pid = fork();
    if (pid == 0) {
        (void)execv(argv[0], argv);
        _exit(127);
    }
    (void)waitpid(pid, NULL, 0);
    print_answer(fd);
}

static void given(void)
{
    const char *number = getenv("CONNECTS_FD");

    if (!number || dial(atoi(number)) < 0)
        answer("connect", errno);
}

/* Data that goes before a connection, three ways. */
static void fast_open(void)
{
    char byte[] = "x";
    struct iovec io = {byte, 1};
    struct msghdr message = {.msg_name = &to, .msg_namelen = to_n, .msg_iov = &io, .msg_iovlen = 1};
    struct mmsghdr messages = {.msg_hdr = message};

    (void)attempt("sendto", sendto(make_socket(SOCK_STREAM), "x", 1, MSG_FASTOPEN,
                                   (struct sockaddr *)&to, to_n));
    (void)attempt("sendmsg", sendmsg(make_socket(SOCK_STREAM), &message, MSG_FASTOPEN));
    (void)attempt("sendmmsg", sendmmsg(make_socket(SOCK_STREAM), &messages, 1, MSG_FASTOPEN));
}

/* connect() that sends nothing until there is data. */
static void late_open(void)
{
    int fd = make_socket(SOCK_STREAM);
    int on = 1;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &on, sizeof on);
    if (dial(fd) < 0 || write(fd, "x", 1) < 0)
        answer("connect", errno);
    else
        print_answer(fd);
}

/* Our own bytes as a file without a name, run with words of our choice. */
static void by_memfd(char *address, char *port)
{
    char name[] = "/usr/bin/curl", way[] = "plainly";
    char *const argv[] = {name, way, address, port, NULL};
    int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    int fd = memfd_create("curl", 0);
    char bytes[65536];
    ssize_t n;

    if (fd < 0) {
        answer("memfd_create", errno);
        return;
    }
    while ((n = read(self, bytes, sizeof bytes)) > 0)
        if (write(fd, bytes, (size_t)n) != n)
            answer("write", errno);
    (void)syscall(SYS_execveat, fd, "", argv, environ, 0x1000 /* AT_EMPTY_PATH */);
    answer("execveat", errno);
}

/* Another listener, another name. */
static void be_another(void)
{
    struct sock_filter allow = {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW};
    struct sock_fprog program = {1, &allow};
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    int pid = getppid();
    char path[64];

    (void)attempt("listener", syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                                      SECCOMP_FILTER_FLAG_NEW_LISTENER, &program));
    (void)attempt("filter", syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program));
    (void)attempt("exe", prctl(PR_SET_MM, PR_SET_MM_EXE_FILE, fd, 0, 0));
    (void)attempt("ptrace", syscall(SYS_ptrace, 16 /* PTRACE_ATTACH */, pid, 0, 0));
    (void)attempt("process_vm_writev", syscall(SYS_process_vm_writev, pid, NULL, 0, NULL, 0, 0));
    (void)attempt("pidfd_getfd", syscall(SYS_pidfd_getfd, 0, 0, 0));
    (void)snprintf(path, sizeof path, "/proc/%d/mem", pid);
    (void)attempt("memory", open(path, O_WRONLY | O_CLOEXEC));
}

/* Many processes at once, each with a connection: how many were told who they are. */
static void many(int n)
{
    int pipes[2];
    int told = 0;
    char mark;

    if (pipe(pipes) < 0)
        return;
    for (int i = 0; i < n; i++)
        if (fork() == 0) {
            char line[256] = "";
            int fd = make_socket(SOCK_STREAM);

            if (dial(fd) == 0 && read(fd, line, sizeof line - 1) > 0 &&
                strncmp(line, "/mnt/attack/connects ", 21) == 0)
                (void)!write(pipes[1], "y", 1);
            _exit(0);
        }
    (void)close(pipes[1]);
    while (read(pipes[0], &mark, 1) == 1)
        told++;
    while (wait(NULL) > 0)
        continue;
    (void)printf("%d of %d\n", told, n);
}

/* A thread puts another socket under the number all the time. */
static volatile int swapping = 1;
static int spare_fd, swapped_fd;

static void *swap(void *unused)
{
    (void)unused;
    while (swapping)
        (void)dup2(spare_fd, swapped_fd);
    return NULL;
}

static void by_swapping(void)
{
    pthread_t thread;
    int others = 0;

    for (int i = 0; i < 200; i++) {
        char line[256] = "";

        swapping = 1;
        swapped_fd = make_socket(SOCK_STREAM);
        spare_fd = make_socket(SOCK_STREAM);
        if (pthread_create(&thread, NULL, swap, NULL) != 0)
            return;
        if (dial(swapped_fd) == 0 && read(swapped_fd, line, sizeof line - 1) > 0 &&
            strncmp(line, "/mnt/attack/connects ", 21) != 0 && strcmp(line, "nobody\n") != 0)
            others++;
        swapping = 0;
        (void)pthread_join(thread, NULL);
        (void)close(spare_fd);
        (void)close(swapped_fd);
    }
    (void)printf("%d taken for another\n", others);
}

/* So many connections that stay, one after the other: the first error, if any. */
static void flood(int n)
{
    for (int i = 0; i < n; i++) {
        int fd = make_socket(SOCK_STREAM);

        if (dial(fd) < 0) {
            answer("connect", errno);
            return;
        }
        (void)close(fd);
    }
    answer("connect", 0);
}

static void serve_here(void)
{
    int server = make_socket(SOCK_STREAM);
    int fd;

    if (bind(server, (struct sockaddr *)&to, to_n) < 0 || listen(server, 1) < 0) {
        answer("listen", errno);
        return;
    }
    if (fork() == 0) {
        fd = accept(server, NULL, NULL);
        (void)!write(fd, "inside\n", 7);
        _exit(0);
    }
    plainly();
}

static void unix_pair(void)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX, .sun_path = "/tmp/connects.sock"};
    int server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)attempt("bind", bind(server, (struct sockaddr *)&at, sizeof at));
    (void)attempt("listen", listen(server, 1));
    (void)attempt("connect", connect(fd, (struct sockaddr *)&at, sizeof at));
}

int main(int argc, char **argv)
{
    const char *way = argc >= 4 ? argv[1] : "";

    (void)alarm(240); /* for who hangs; a busy machine takes long over many */
    if (argc < 4)
        usage("connects WAY ADDRESS PORT [ARG...]");
    set_target(argv[2], argv[3]);
    if (strcmp(way, "plainly") == 0)
        plainly();
    else if (strcmp(way, "waits") == 0 && argc > 4)
        after_waiting(argv + 4);
    else if (strcmp(way, "datagram") == 0)
        datagram();
    else if (strcmp(way, "thread") == 0)
        by_thread();
    else if (strcmp(way, "vfork") == 0)
        by_vfork();
    else if (strcmp(way, "clone") == 0)
        by_clone();
    else if (strcmp(way, "orphan") == 0)
        by_orphan();
    else if (strcmp(way, "sibling") == 0)
        by_sibling();
    else if (strcmp(way, "other") == 0 && argc > 4)
        by_other(argv + 4);
    else if (strcmp(way, "given") == 0)
        given();
    else if (strcmp(way, "fast") == 0)
        fast_open();
    else if (strcmp(way, "late") == 0)
        late_open();
    else if (strcmp(way, "memfd") == 0)
        by_memfd(argv[2], argv[3]);
    else if (strcmp(way, "another") == 0)
        be_another();
    else if (strcmp(way, "many") == 0 && argc > 4)
        many(atoi(argv[4]));
    else if (strcmp(way, "swapping") == 0)
        by_swapping();
    else if (strcmp(way, "flood") == 0 && argc > 4)
        flood(atoi(argv[4]));
    else if (strcmp(way, "serve") == 0)
        serve_here();
    else if (strcmp(way, "unix") == 0)
        unix_pair();
    else
        usage("connects WAY ADDRESS PORT [ARG...]");
    return 0;
}
