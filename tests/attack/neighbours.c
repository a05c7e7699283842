/* SPDX-License-Identifier: Apache-2.0 */

/* neighbours PID...: everything one process can do to another, against each of them. */

#include "attack.h"

#include <fcntl.h>
#include <linux/kcmp.h>
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/uio.h>

static void against(pid_t pid, const char *what, long result)
{
    char name[96];

    (void)snprintf(name, sizeof name, "%d %s", (int)pid, what);
    (void)attempt(name, result);
}

static void look(pid_t pid, const char *file, int flags)
{
    char path[96];
    char byte;
    int fd, error = 0;

    (void)snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
    fd = open(path, flags | O_CLOEXEC);
    /* Some of them open for all and answer when read. */
    if (fd < 0 || (flags == O_RDONLY && read(fd, &byte, 1) < 0))
        error = errno;
    if (fd >= 0)
        (void)close(fd);
    (void)snprintf(path, sizeof path, "%d %s %s", (int)pid, flags & O_ACCMODE ? "writes" : "reads",
                   file);
    answer(path, error);
}

static void harm(pid_t pid)
{
    struct rlimit limit = {0, 0};
    struct sched_param param = {0};
    union sigval value = {.sival_int = 1};
    char byte = 0;
    struct iovec local = {&byte, 1}, remote = {&byte, 1};
    long pidfd;

    against(pid, "ptrace", syscall(SYS_ptrace, PTRACE_SEIZE, pid, 0, 0));
    against(pid, "process_vm_readv", syscall(SYS_process_vm_readv, pid, &local, 1, &remote, 1, 0));
    against(pid, "process_vm_writev",
            syscall(SYS_process_vm_writev, pid, &local, 1, &remote, 1, 0));
    against(pid, "kcmp", syscall(SYS_kcmp, getpid(), pid, KCMP_FILE, 0, 0));
    pidfd = syscall(SYS_pidfd_open, pid, 0);
    against(pid, "pidfd_open", pidfd);
    against(pid, "pidfd_getfd", syscall(SYS_pidfd_getfd, pidfd < 0 ? 0 : pidfd, 0, 0));
    look(pid, "mem", O_RDONLY);
    look(pid, "mem", O_RDWR);
    look(pid, "environ", O_RDONLY);
    look(pid, "maps", O_RDONLY);
    look(pid, "fd", O_RDONLY | O_DIRECTORY);
    look(pid, "root", O_RDONLY | O_DIRECTORY);
    look(pid, "cwd", O_RDONLY | O_DIRECTORY);
    look(pid, "exe", O_RDONLY);
    look(pid, "ns/mnt", O_RDONLY);
    look(pid, "oom_score_adj", O_WRONLY);
    if (pid == 1)
        return; /* of this sandbox: signals and limits are its own affair */
    against(pid, "kill", kill(pid, SIGKILL));
    against(pid, "kill of its group", kill(-pid, SIGKILL));
    against(pid, "sigqueue", sigqueue(pid, SIGTERM, value));
    against(pid, "prlimit", prlimit(pid, RLIMIT_NOFILE, &limit, NULL));
    against(pid, "setpriority", setpriority(PRIO_PROCESS, (id_t)pid, 19));
    against(pid, "sched_setscheduler", sched_setscheduler(pid, SCHED_IDLE, &param));
    against(pid, "getsid", getsid(pid));
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        harm((pid_t)atoi(argv[i]));
    return 0;
}
