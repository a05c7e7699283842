/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/linux/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
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

/* The first version of the kernel's struct pidfd_info; a newer kernel fills as much. */
struct pidfd_info_first {
    uint64_t mask, cgroup;
    uint32_t thread, process, parent;
    uint32_t owners[8]; /* not asked for */
    int32_t exit_code;
};
#define PIDFD_GET_INFO_FIRST _IOWR(0xFF, 11, struct pidfd_info_first)
#define PIDFD_INFO_NUMBERS 1U

_Static_assert(sizeof(struct pidfd_info_first) == 64, "as the kernel has it");
_Static_assert(sizeof(ino_t) == 8, "the number of a process fits");

int sys_pidfd_facts(int pidfd, struct pidfd_facts *out)
{
    struct pidfd_info_first info = {.mask = PIDFD_INFO_NUMBERS};
    struct stat st;

    if (ioctl(pidfd, PIDFD_GET_INFO_FIRST, &info) < 0 || fstat(pidfd, &st) < 0)
        return -1;
    if (!(info.mask & PIDFD_INFO_NUMBERS)) {
        errno = ESRCH;
        return -1;
    }
    /* A kernel that has the call also numbers its descriptors of processes without end (pidfs). */
    *out = (struct pidfd_facts){.thread = (pid_t)info.thread,
                                .process = (pid_t)info.process,
                                .parent = (pid_t)info.parent,
                                .serial = st.st_ino};
    return 0;
}
