/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/linux/sys.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

pid_t sys_clone(const struct clone_request *request, int *pidfd)
{
    struct clone_args args = {
        .flags = request->flags | CLONE_PIDFD,
        .pidfd = (uintptr_t)pidfd,
        /* A sibling has the signal of who makes it; the kernel wants none named. */
        .exit_signal = request->flags & CLONE_PARENT ? 0 : SIGCHLD,
    };

    if (request->cgroup_fd >= 0) {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = (__u64)(unsigned)request->cgroup_fd;
    }
    return (pid_t)syscall(SYS_clone3, &args, sizeof args);
}

int sys_pivot_root(const char *new_root, const char *put_old)
{
    return (int)syscall(SYS_pivot_root, new_root, put_old);
}

int sys_openat2(int dir_fd, const char *path, int flags, uint64_t resolve)
{
    struct open_how how = {
        .flags = (__u64)(unsigned)(flags | O_CLOEXEC),
        .resolve = resolve | RESOLVE_NO_MAGICLINKS,
    };

    return (int)syscall(SYS_openat2, dir_fd, path, &how, sizeof how);
}
