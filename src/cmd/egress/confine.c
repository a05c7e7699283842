/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/egress/confine.h"

#include <sys/syscall.h>

#include "lib/linux/calls.h"
#include "lib/linux/landlock.h"
#include "lib/linux/process.h"

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/* Nothing is granted: what we write to is open already. */
static int wall_files(struct err *err)
{
    unsigned abi = landlock_abi();
    AUTO_FD int ruleset = -1;

    if (abi < LANDLOCK_ABI_LEAST)
        return err_set(err, ERR_UNAVAILABLE,
                       "this kernel has no Landlock to confine egress with; boot with "
                       "lsm=landlock,…");
    if (landlock_open(abi, &ruleset, err) < 0)
        return -1;
    return landlock_enforce(ruleset, err);
}

static const int allowed[] = {
    /* the loop */
    SYS_epoll_wait,
    SYS_epoll_pwait,
    SYS_epoll_ctl,
    /* connections */
    SYS_accept4,
    SYS_socket,
    SYS_connect,
    SYS_recvfrom,
    SYS_sendto,
    SYS_recvmsg,
    SYS_sendmsg,
    SYS_getsockopt,
    SYS_setsockopt,
    SYS_getsockname,
    SYS_shutdown,
    SYS_close,
    SYS_splice,
    SYS_pipe2,
    SYS_fcntl, /* of pipes and seals */
    SYS_dup,
    /* the journal, documents */
    SYS_write,
    SYS_ftruncate,
    SYS_fdatasync, /* proposals */
    SYS_memfd_create,
    SYS_fstat,
    SYS_newfstatat,
    SYS_flock,
    /* memory, time, the end */
    SYS_mmap,
    SYS_munmap,
    SYS_mremap,
    SYS_mprotect,
    SYS_madvise,
    SYS_mlock, /* secrets */
    SYS_munlock,
    SYS_brk,
    SYS_clock_gettime,
    SYS_getrandom,
    SYS_geteuid,
    SYS_getpid,
    SYS_gettid,
    SYS_tgkill,
    SYS_futex,
    SYS_rt_sigprocmask,
    SYS_rt_sigaction,
    SYS_rt_sigreturn,
    SYS_restart_syscall,
    SYS_exit,
    SYS_exit_group,
#if SANITIZED
    SYS_sigaltstack,
    SYS_sched_yield,
    SYS_read,
    SYS_prlimit64,
#endif
};

static int wall_calls(struct err *err)
{
    return calls_allow_only(allowed, COUNT(allowed), err);
}

/* The order is the design: each step uses a right that a later one gives up. */
static const struct {
    const char *name;
    int (*run)(struct err *err);
} steps[] = {
    {"dumps",             dumps_forbid},
    {"capabilities",      caps_give_up},
    {"no new privileges", no_new_privs},
    {"landlock",          wall_files  },
    {"seccomp",           wall_calls  },
};

int confine(struct err *err)
{
    for (size_t i = 0; i < COUNT(steps); i++)
        if (steps[i].run(err) < 0)
            return err_in(err, "%s", steps[i].name);
    return 0;
}
