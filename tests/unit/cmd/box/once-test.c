/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "cmd/box/box.h"
#include "lib/linux/fd-pass.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Each in a process of its own: the filter cannot be taken back. What it ends with says where it
 * went wrong; 0 is the end of /bin/true. */

static char *const words[] = {(char[]){"true"}, NULL};
static char *const none[] = {NULL};

static int load(int *heard_fd)
{
    struct err err;

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || once_load(heard_fd, &err) < 0 ? -1 : 0;
}

/* The errno of running /bin/true without the word. */
static int try_exec(void)
{
    (void)execve("/bin/true", words, none);
    return errno;
}

static int try_execat(void)
{
    (void)syscall(SYS_execveat, AT_FDCWD, "/bin/true", words, none, 0);
    return errno;
}

static int end_of(pid_t pid)
{
    int status = -1;

    CHECK(waitpid(pid, &status, 0) == pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 200;
}

NORETURN static void be_heard(int fd)
{
    int heard_fd = -1;
    struct err err;

    if (load(&heard_fd) < 0 || fd_send(fd, heard_fd, &err) < 0 || close(heard_fd) < 0)
        _exit(101);
    if (once_probe() == 0) /* the first; it is ours */
        _exit(102);
    for (int i = 0; i < 3; i++)
        if (try_exec() != EPERM || try_execat() != EPERM)
            _exit(103);
    (void)once_exec("/bin/true", words, none);
    _exit(104);
}

TEST(one_program_runs_and_every_other_is_refused_and_counted)
{
    AUTO_FD int heard_fd = -1;
    int pair[2];
    struct err err;
    pid_t pid;

    CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    pid = fork();
    if (pid == 0)
        be_heard(pair[1]);
    CHECK_INT(fd_receive(pair[0], &heard_fd, &err), 0);
    CHECK_INT(attempts_count(), 0);
    CHECK_INT(attempts_start(heard_fd, &err), 0);
    heard_fd = -1; /* the thread's */
    CHECK_INT(end_of(pid), 0);
    CHECK_INT(attempts_count(), 6);
    (void)close(pair[0]);
    (void)close(pair[1]);
}

NORETURN static void be_unheard(void)
{
    struct sock_filter filter[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {.len = 1, .filter = filter};
    int heard_fd = -1;

    if (load(&heard_fd) < 0 || close(heard_fd) < 0)
        _exit(101);
    if (try_exec() != ENOSYS || try_execat() != ENOSYS)
        _exit(102);
    /* Else somebody inside could answer from now on. */
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program) !=
            -1 ||
        errno != EPERM)
        _exit(103);
    (void)once_exec("/bin/true", words, none);
    _exit(104);
}

TEST(with_nobody_listening_it_is_refused_all_the_same)
{
    pid_t pid = fork();

    if (pid == 0)
        be_unheard();
    CHECK_INT(end_of(pid), 0);
}

NORETURN static void be_late(bool loads)
{
    int heard_fd = -1;

    if (loads && load(&heard_fd) < 0)
        _exit(101);
    once_forget();
    _exit(once_exec("/bin/true", words, none) == EPERM ? 0 : 102);
}

TEST(without_the_word_or_the_filter_there_is_not_even_one)
{
    for (int loads = 0; loads <= 1; loads++) {
        pid_t pid = fork();

        if (pid == 0)
            be_late(loads);
        CHECK_INT(end_of(pid), 0);
    }
}
