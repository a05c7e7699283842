/* SPDX-License-Identifier: Apache-2.0 */

/* namespaces: every way to a namespace of one's own. */

#include "attack.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/wait.h>

static const struct {
    const char *name;
    unsigned long flag;
} kinds[] = {
    {"user",   CLONE_NEWUSER  },
    {"mount",  CLONE_NEWNS    },
    {"pid",    CLONE_NEWPID   },
    {"net",    CLONE_NEWNET   },
    {"ipc",    CLONE_NEWIPC   },
    {"uts",    CLONE_NEWUTS   },
    {"cgroup", CLONE_NEWCGROUP},
    {"time",   CLONE_NEWTIME  },
};

/* The child does nothing; whether there was one is the answer. */
static void try_clone(const char *name, unsigned long flags)
{
    long pid = syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
    int error = errno;

    if (pid == 0)
        _exit(0);
    if (pid > 0)
        (void)waitpid((pid_t)pid, NULL, 0);
    answer(name, pid < 0 ? error : 0);
}

/* In a child, because outside, where it works, the next attempt must start afresh. */
static void try_unshare(const char *name, unsigned long flags)
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0)
        _exit(syscall(SYS_unshare, flags) < 0 ? errno : 0);
    (void)waitpid(pid, &status, 0);
    answer(name, WEXITSTATUS(status));
}

static void try_clone3(void)
{
    struct clone_args args = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
    long pid = syscall(SYS_clone3, &args, sizeof args);
    int error = errno;

    if (pid == 0)
        _exit(0);
    if (pid > 0)
        (void)waitpid((pid_t)pid, NULL, 0);
    answer("clone3", pid < 0 ? error : 0);
}

int main(void)
{
    char name[64];
    int own = open("/proc/self/ns/uts", O_RDONLY | O_CLOEXEC);

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        (void)snprintf(name, sizeof name, "unshare %s", kinds[i].name);
        try_unshare(name, kinds[i].flag);
        if (kinds[i].flag == CLONE_NEWTIME)
            continue; /* that bit means something else to clone */
        (void)snprintf(name, sizeof name, "clone %s", kinds[i].name);
        try_clone(name, kinds[i].flag);
        /* The kernel looks at 32 bits only; so must the filter. */
        (void)snprintf(name, sizeof name, "clone %s with high bits", kinds[i].name);
        try_clone(name, kinds[i].flag | 1UL << 63);
    }
    try_clone3();
    (void)attempt("setns", syscall(SYS_setns, own, 0));
    try_clone("clone of nothing new", 0);
    return 0;
}
