/* SPDX-License-Identifier: Apache-2.0 */

/* Runs while Brig is built: turns the rules below into the filters of filters.h and prints
 * them as C.
 *
 * Why two. A filter whose verdict depends on the number alone lets the kernel keep a bitmap of
 * allowed calls, so the common call costs nothing. And libseccomp cannot say "everything but
 * this argument": an allow rule with a "not equal" compares 64 bits where the kernel reads 32,
 * which is the hole of CVE-2019-10063 (TIOCSTI with a bit set above). So the first filter knows
 * numbers only, and the second one, allow by default, refuses by masked comparison. Of several
 * filters the strictest answer counts.
 *
 * Why at build time. Building the list takes libseccomp milliseconds; a sandbox starts in less.
 * The numbers are those of the machine it is built for, as for every other line of the program. */

#include <asm/termbits.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/linux/filters-tree.h"

#define INSTRUCTIONS_MAX 1000
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Lists read better as text than one word a line. */
/* clang-format off */

/* What ordinary programs, compilers, interpreters, servers and test suites use. */
static const char *const allowed[] = {
    /* files */
    "read", "write", "readv", "writev", "pread64", "pwrite64", "preadv", "pwritev", "preadv2",
    "pwritev2", "open", "openat", "creat", "close", "close_range", "lseek", "_llseek", "stat",
    "fstat", "lstat", "newfstatat", "statx", "statfs", "fstatfs", "access", "faccessat",
    "faccessat2", "dup", "dup2", "dup3", "fcntl", "ioctl", "flock", "truncate", "ftruncate",
    "fallocate", "fsync", "fdatasync", "sync", "syncfs", "sync_file_range", "rename", "renameat",
    "renameat2", "mkdir", "mkdirat", "rmdir", "link", "linkat", "unlink", "unlinkat", "symlink",
    "symlinkat", "readlink", "readlinkat", "mknod", "mknodat", "chmod", "fchmod", "fchmodat",
    "chown", "fchown", "lchown", "fchownat", "utime", "utimes", "utimensat", "futimesat", "umask",
    "getdents", "getdents64", "chdir", "fchdir", "getcwd", "sendfile", "copy_file_range",
    "splice", "tee", "vmsplice", "pipe", "pipe2", "fadvise64", "readahead", "getxattr",
    "lgetxattr", "fgetxattr", "listxattr", "llistxattr", "flistxattr", "setxattr", "lsetxattr",
    "fsetxattr", "removexattr", "lremovexattr", "fremovexattr", "inotify_init", "inotify_init1",
    "inotify_add_watch", "inotify_rm_watch", "memfd_create", "ustat", "sysfs",
    /* memory */
    "mmap", "munmap", "mremap", "mprotect", "madvise", "brk", "msync", "mincore", "mlock",
    "mlock2", "munlock", "mlockall", "munlockall", "membarrier", "pkey_mprotect", "pkey_alloc",
    "pkey_free", "mbind", "get_mempolicy", "set_mempolicy", "shmget", "shmat", "shmdt", "shmctl",
    "semget", "semop", "semtimedop", "semctl", "msgget", "msgsnd", "msgrcv", "msgctl",
    "mq_open", "mq_unlink", "mq_timedsend", "mq_timedreceive", "mq_notify", "mq_getsetattr",
    /* processes */
    "clone", "fork", "vfork", "execve", "execveat", "exit", "exit_group", "wait4", "waitid",
    "getpid", "getppid", "gettid", "getpgid", "setpgid", "getpgrp", "getsid", "setsid", "kill",
    "tkill", "tgkill", "pidfd_open", "pidfd_send_signal", "set_tid_address", "set_robust_list",
    "get_robust_list", "futex", "futex_waitv", "rseq", "arch_prctl", "prctl", "sched_yield",
    "sched_getaffinity", "sched_getparam", "sched_getscheduler", "sched_get_priority_max",
    "sched_get_priority_min", "sched_setparam", "sched_setscheduler", "sched_getattr",
    "sched_setattr", "sched_rr_get_interval", "getpriority", "setpriority", "ioprio_get",
    "ioprio_set", "getrlimit", "setrlimit", "prlimit64", "getrusage", "times", "sysinfo",
    "uname", "getcpu", "restart_syscall", "seccomp", "landlock_create_ruleset",
    "landlock_add_rule", "landlock_restrict_self",
    /* identity: the sandbox has one, these only ask for it or set it again */
    "getuid", "geteuid", "getgid", "getegid", "getgroups", "getresuid", "getresgid", "setuid",
    "setgid", "setreuid", "setregid", "setresuid", "setresgid", "setfsuid", "setfsgid",
    "setgroups", "capget", "capset",
    /* signals and time */
    "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "rt_sigpending", "rt_sigtimedwait",
    "rt_sigqueueinfo", "rt_tgsigqueueinfo", "rt_sigsuspend", "sigaltstack", "pause", "alarm",
    "getitimer", "setitimer", "nanosleep", "clock_nanosleep", "clock_gettime", "clock_getres",
    "gettimeofday", "time", "timer_create", "timer_settime", "timer_gettime", "timer_getoverrun",
    "timer_delete", "timerfd_create", "timerfd_settime", "timerfd_gettime", "signalfd",
    "signalfd4", "eventfd", "eventfd2",
    /* waiting */
    "poll", "ppoll", "select", "pselect6", "epoll_create", "epoll_create1", "epoll_ctl",
    "epoll_wait", "epoll_pwait", "epoll_pwait2", "epoll_ctl_old", "epoll_wait_old", "io_setup",
    "io_destroy", "io_submit", "io_cancel", "io_getevents", "io_pgetevents",
    /* sockets; families and protocols are looked at in refused_arguments() */
    "socket", "socketpair", "bind", "listen", "accept", "accept4", "connect", "getsockname",
    "getpeername", "sendto", "recvfrom", "sendmsg", "recvmsg", "sendmmsg", "recvmmsg",
    "setsockopt", "getsockopt", "shutdown",
    "getrandom",
};

/* Known, and refused with EPERM so that a program can tell "forbidden" from "old kernel".
 * Everything in neither list answers ENOSYS, and the C library falls back. */
static const char *const refused[] = {
    /* other namespaces, mounts, roots */
    "mount", "umount2", "pivot_root", "chroot", "open_tree", "move_mount", "fsopen", "fsconfig",
    "fsmount", "fspick", "mount_setattr", "unshare", "setns",
    /* looking into other processes */
    "ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "process_mrelease",
    "pidfd_getfd", "kcmp",
    /* wide kernel surface */
    "bpf", "perf_event_open", "userfaultfd", "fanotify_init", "fanotify_mark", "io_uring_setup",
    "io_uring_enter", "io_uring_register", "open_by_handle_at", "name_to_handle_at",
    "lookup_dcookie", "vhangup", "remap_file_pages", "modify_ldt", "migrate_pages", "move_pages",
    /* the machine */
    "init_module", "finit_module", "delete_module", "create_module", "kexec_load",
    "kexec_file_load", "iopl", "ioperm", "reboot", "swapon", "swapoff", "acct", "quotactl",
    "quotactl_fd", "syslog", "nfsservctl", "uselib", "_sysctl", "sethostname", "setdomainname",
    "settimeofday", "stime", "clock_settime", "adjtimex", "clock_adjtime",
    /* keys would be charged to, and shared with, the user outside */
    "add_key", "request_key", "keyctl",
    /* the processors a sandbox may use are part of its limits */
    "sched_setaffinity",
};

/* clang-format on */

static void die(const char *what, int error)
{
    (void)fprintf(stderr, "filters-export: %s: error %d\n", what, error);
    exit(1);
}

static scmp_filter_ctx filter_new(uint32_t otherwise)
{
    scmp_filter_ctx filter = seccomp_init(otherwise);

    if (!filter)
        die("init", 0);
    /* As a search tree: the kernel walks the filter once per call number when it is loaded. */
    if (seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2) != 0)
        die("optimise", 0);
    if (seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS) != 0)
        die("foreign architectures", 0);
    return filter;
}

static void add_names(scmp_filter_ctx filter, uint32_t action, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int call = seccomp_syscall_resolve_name(names[i]);
        int error;

        if (call == __NR_SCMP_ERROR)
            die(names[i], call);
        if (call < 0)
            continue; /* not on this architecture */
        error = seccomp_rule_add(filter, action, call, 0);
        if (error != 0)
            die(names[i], error);
    }
}

static void refuse_if(scmp_filter_ctx filter, int error_code, int call, struct scmp_arg_cmp a,
                      const struct scmp_arg_cmp *b)
{
    uint32_t action = SCMP_ACT_ERRNO((uint32_t)error_code);
    int error = b ? seccomp_rule_add(filter, action, call, 2, a, *b)
                  : seccomp_rule_add(filter, action, call, 1, a);

    if (error != 0)
        die("argument rule", error);
}

/* AF_UNIX, AF_INET, AF_INET6 with TCP and UDP, and AF_NETLINK for asking about interfaces. */
static void refuse_sockets(scmp_filter_ctx filter)
{
    static const uint64_t families[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};
    static const uint64_t protocols[] = {0, 6, 17};
    static const int inet[] = {AF_INET, AF_INET6};
    int call = SCMP_SYS(socket);

    refuse_if(filter, EAFNOSUPPORT, call, SCMP_A0(SCMP_CMP_GT, AF_NETLINK), NULL);
    for (uint64_t family = 0; family < AF_NETLINK; family++) {
        int known = 0;

        for (size_t i = 0; i < COUNT(families); i++)
            known |= families[i] == family;
        if (!known)
            refuse_if(filter, EAFNOSUPPORT, call, SCMP_A0(SCMP_CMP_EQ, family), NULL);
    }
    for (size_t f = 0; f < COUNT(inet); f++) {
        struct scmp_arg_cmp above = SCMP_A2(SCMP_CMP_GT, 17);

        refuse_if(filter, EPROTONOSUPPORT, call, SCMP_A0(SCMP_CMP_EQ, (uint64_t)inet[f]), &above);
        for (uint64_t protocol = 0; protocol < 17; protocol++) {
            struct scmp_arg_cmp is = SCMP_A2(SCMP_CMP_EQ, protocol);
            int known = 0;

            for (size_t i = 0; i < COUNT(protocols); i++)
                known |= protocols[i] == protocol;
            if (!known)
                refuse_if(filter, EPROTONOSUPPORT, call, SCMP_A0(SCMP_CMP_EQ, (uint64_t)inet[f]),
                          &is);
        }
    }
    {
        struct scmp_arg_cmp not_route = SCMP_A2(SCMP_CMP_NE, 0);

        refuse_if(filter, EPROTONOSUPPORT, call, SCMP_A0(SCMP_CMP_EQ, AF_NETLINK), &not_route);
    }
}

/* Masked comparisons see the 32 bits the kernel sees. */
static void refuse_arguments(scmp_filter_ctx filter)
{
    static const uint64_t namespaces[] = {CLONE_NEWNS,  CLONE_NEWCGROUP, CLONE_NEWUTS,
                                          CLONE_NEWIPC, CLONE_NEWUSER,   CLONE_NEWPID,
                                          CLONE_NEWNET};
    static const uint64_t ioctls[] = {TIOCSTI, TIOCLINUX, TIOCSETD, TIOCCONS};
    static const uint64_t set_ids[] = {S_ISUID, S_ISGID};
    /* The flags that make open() look at its mode; a file without a name can get one later. */
    static const uint64_t creating[] = {O_CREAT, O_TMPFILE & ~O_DIRECTORY};

    for (size_t i = 0; i < COUNT(namespaces); i++)
        refuse_if(filter, EPERM, SCMP_SYS(clone),
                  SCMP_A0(SCMP_CMP_MASKED_EQ, namespaces[i], namespaces[i]), NULL);
    for (size_t i = 0; i < COUNT(ioctls); i++)
        refuse_if(filter, EPERM, SCMP_SYS(ioctl),
                  SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffffU, ioctls[i]), NULL);
    for (size_t i = 0; i < COUNT(set_ids); i++) {
        struct scmp_arg_cmp open_mode = SCMP_A2(SCMP_CMP_MASKED_EQ, set_ids[i], set_ids[i]);
        struct scmp_arg_cmp openat_mode = SCMP_A3(SCMP_CMP_MASKED_EQ, set_ids[i], set_ids[i]);

        refuse_if(filter, EPERM, SCMP_SYS(chmod),
                  SCMP_A1(SCMP_CMP_MASKED_EQ, set_ids[i], set_ids[i]), NULL);
        refuse_if(filter, EPERM, SCMP_SYS(fchmod),
                  SCMP_A1(SCMP_CMP_MASKED_EQ, set_ids[i], set_ids[i]), NULL);
        refuse_if(filter, EPERM, SCMP_SYS(fchmodat),
                  SCMP_A2(SCMP_CMP_MASKED_EQ, set_ids[i], set_ids[i]), NULL);
        refuse_if(filter, EPERM, SCMP_SYS(creat),
                  SCMP_A1(SCMP_CMP_MASKED_EQ, set_ids[i], set_ids[i]), NULL);
        refuse_if(filter, EPERM, SCMP_SYS(mknod),
                  SCMP_A1(SCMP_CMP_MASKED_EQ, set_ids[i], set_ids[i]), NULL);
        refuse_if(filter, EPERM, SCMP_SYS(mknodat),
                  SCMP_A2(SCMP_CMP_MASKED_EQ, set_ids[i], set_ids[i]), NULL);
        /* The mode of an open that creates nothing is whatever stood in the register. */
        for (size_t c = 0; c < COUNT(creating); c++) {
            refuse_if(filter, EPERM, SCMP_SYS(open),
                      SCMP_A1(SCMP_CMP_MASKED_EQ, creating[c], creating[c]), &open_mode);
            refuse_if(filter, EPERM, SCMP_SYS(openat),
                      SCMP_A2(SCMP_CMP_MASKED_EQ, creating[c], creating[c]), &openat_mode);
        }
    }
    refuse_sockets(filter);
}

/* connect() is told to whoever listens, before it happens. What would send without it, or put
 * another program's name on a process, or let somebody inside listen instead, is refused. */
static void watch_connects(scmp_filter_ctx filter)
{
    if (seccomp_rule_add(filter, SCMP_ACT_NOTIFY, SCMP_SYS(connect), 0) != 0)
        die("connect", 0);
    refuse_if(filter, EOPNOTSUPP, SCMP_SYS(sendto),
              SCMP_A3(SCMP_CMP_MASKED_EQ, MSG_FASTOPEN, MSG_FASTOPEN), NULL);
    refuse_if(filter, EOPNOTSUPP, SCMP_SYS(sendmsg),
              SCMP_A2(SCMP_CMP_MASKED_EQ, MSG_FASTOPEN, MSG_FASTOPEN), NULL);
    refuse_if(filter, EOPNOTSUPP, SCMP_SYS(sendmmsg),
              SCMP_A3(SCMP_CMP_MASKED_EQ, MSG_FASTOPEN, MSG_FASTOPEN), NULL);
    /* A child that is its parent's sibling hides who made it. */
    refuse_if(filter, EPERM, SCMP_SYS(clone),
              SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_PARENT, CLONE_PARENT), NULL);
    refuse_if(filter, EPERM, SCMP_SYS(prctl), SCMP_A0(SCMP_CMP_MASKED_EQ, 0xffffffffU, PR_SET_MM),
              NULL);
    refuse_if(filter, EPERM, SCMP_SYS(seccomp),
              SCMP_A1(SCMP_CMP_MASKED_EQ, SECCOMP_FILTER_FLAG_NEW_LISTENER,
                      SECCOMP_FILTER_FLAG_NEW_LISTENER),
              NULL);
}

/* Only the ordinary personality, and asking for it. */
static void allow_personality(scmp_filter_ctx filter)
{
    static const uint64_t values[] = {0, 0xffffffffU};

    for (size_t i = 0; i < COUNT(values); i++)
        if (seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(personality), 1,
                             SCMP_A0(SCMP_CMP_EQ, values[i])) != 0)
            die("personality", 0);
}

static void print_filter(scmp_filter_ctx filter, const char *name)
{
    static struct sock_filter exported[INSTRUCTIONS_MAX];
    static struct sock_filter smaller[INSTRUCTIONS_MAX];
    FILE *file = tmpfile();
    const char *why = "";
    size_t n;

    if (!file || seccomp_export_bpf(filter, fileno(file)) != 0)
        die("export", errno);
    rewind(file);
    n = fread(exported, sizeof exported[0], COUNT(exported), file);
    n = filter_shrink(exported, n, smaller, COUNT(smaller), &why);
    if (n == 0) {
        (void)fprintf(stderr, "filters-export: the filter of %s: %s\n", name, why);
        exit(1);
    }
    (void)printf("const struct sock_filter seccomp_%s[] = {\n", name);
    for (size_t i = 0; i < n; i++)
        (void)printf("    {0x%02x, %u, %u, 0x%08x},\n", smaller[i].code, smaller[i].jt,
                     smaller[i].jf, smaller[i].k);
    (void)printf("};\nconst size_t seccomp_%s_n = %zu;\n\n", name, n);
    (void)fclose(file);
    seccomp_release(filter);
}

int main(void)
{
    scmp_filter_ctx names = filter_new(SCMP_ACT_ERRNO(ENOSYS));
    scmp_filter_ctx arguments = filter_new(SCMP_ACT_ALLOW);
    scmp_filter_ctx segments = filter_new(SCMP_ACT_ALLOW);
    scmp_filter_ctx sockets = filter_new(SCMP_ACT_ALLOW);
    scmp_filter_ctx egress = filter_new(SCMP_ACT_ALLOW);
    static const char *const socket_calls[] = {"socket", "socketpair"};
    static const char *const segment_calls[] = {"shmget"};
    static const char *const memory_files[] = {"memfd_create"}; /* libraries have a way without */

    add_names(sockets, SCMP_ACT_ERRNO(EACCES), socket_calls, COUNT(socket_calls));
    add_names(names, SCMP_ACT_ALLOW, allowed, COUNT(allowed));
    add_names(names, SCMP_ACT_ERRNO(EPERM), refused, COUNT(refused));
    allow_personality(names);
    refuse_arguments(arguments);
    refuse_arguments(egress);
    watch_connects(egress);
    add_names(segments, SCMP_ACT_ERRNO(EPERM), segment_calls, COUNT(segment_calls));
    add_names(segments, SCMP_ACT_ERRNO(ENOSYS), memory_files, COUNT(memory_files));
    (void)printf("/* Made by filters-export.c. */\n#include \"lib/linux/filters.h\"\n\n");
    print_filter(names, "names");
    print_filter(arguments, "arguments");
    print_filter(segments, "segments");
    print_filter(sockets, "sockets");
    print_filter(egress, "egress");
    return fflush(stdout) == 0 ? 0 : 1;
}
