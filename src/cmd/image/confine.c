/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/image/worker.h"

#include "lib/base/limits.h"
#include "lib/linux/landlock.h"
#include "lib/linux/process.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

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

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#elif defined(__riscv)
#define ARCHITECTURE AUDIT_ARCH_RISCV64
#endif

int become(uid_t uid, gid_t gid, struct err *err)
{
    if (geteuid() == 0) {
        if (uid == 0 || gid == 0)
            return err_set(err, ERR_INTERNAL, "strangers' files are not read as root");
        if (setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
            return err_os(err, "becoming user %u", uid);
    }
    /* After the change of user, which takes it away. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
        return err_os(err, "binding our life to brig's");
    return 0;
}

/* The capability counts for files whose owner and group the namespace knows. Of all that a new
 * namespace gives, only this one is kept. */
int open_own_files(uid_t uid, gid_t gid, struct err *err)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct kept[2] = {{0}};

    if (geteuid() == 0)
        return err_set(err, ERR_INTERNAL, "trees are not read as root");
    /* Who has changed its user finds its files in /proc closed until it says otherwise. */
    if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)
        return err_os(err, "opening our own files in /proc");
    if (unshare(CLONE_NEWUSER) < 0)
        return err_os(err, "making a user namespace, which reading a sandbox's files needs");
    if (idmap_write(getpid(), uid, uid, gid, gid, 1, err) < 0)
        return err_in(err, "naming the user of a sandbox's files");
    kept[0].effective = kept[0].permitted = 1U << CAP_DAC_READ_SEARCH;
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || syscall(SYS_capset, &header, kept) < 0)
        return err_os(err, "giving up what a user namespace gives");
    return 0;
}

/* A blob is written through one descriptor, a layer has a few open at a time. The memory has room
 * for the largest documents as trees and for a decompressor's window. */
static int set_limits(struct err *err)
{
    static const struct {
        rlim_t most;
        __rlimit_resource_t what;
        bool when_sanitized;
    } limits[] = {
        {0,                      RLIMIT_CORE,   true },
        {512,                    RLIMIT_NOFILE, true },
        {2 * IMAGE_UNPACKED_MAX, RLIMIT_FSIZE,  true },
        {2 * GIB,                RLIMIT_AS,     false},
    };

    for (size_t i = 0; i < COUNT(limits); i++) {
        struct rlimit limit = {limits[i].most, limits[i].most}, now;

        if (SANITIZED && !limits[i].when_sanitized)
            continue;
        if (getrlimit(limits[i].what, &now) == 0 && now.rlim_max < limit.rlim_max)
            limit.rlim_cur = limit.rlim_max = now.rlim_max;
        if (setrlimit(limits[i].what, &limit) < 0)
            return err_os(err, "limiting ourselves");
    }
    return 0;
}

/* Public files of the machine that names and certificates need; those that are missing are not
 * needed. Name service modules are loaded at the first look-up. */
static const char *const readable[] = {
    "/etc/ssl",
    "/etc/ca-certificates",
    "/etc/pki",
    "/usr/share/ca-certificates",
    "/usr/local/share/ca-certificates",
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/host.conf",
    "/etc/nsswitch.conf",
    "/etc/gai.conf",
    "/etc/services",
    "/usr/lib",
    "/lib",
    "/lib64",
    "/etc/ld.so.cache",
};

static int wall_files(const struct job *job, const struct walls *walls, struct err *err)
{
    /* A whiteout of overlayfs is a character device 0/0, the only one an ordinary user can make. */
    const uint64_t rights = LANDLOCK_READ | LANDLOCK_WRITE | LANDLOCK_MAKE_CHAR;
    unsigned abi = landlock_abi();
    AUTO_FD int ruleset = -1;

    if (abi < LANDLOCK_ABI_LEAST)
        return err_set(err, ERR_UNAVAILABLE,
                       "this kernel has no Landlock to confine the reading of images with; boot "
                       "with lsm=landlock,… or use \"host\"");
    if (landlock_open(abi, &ruleset, err) < 0 ||
        landlock_allow(ruleset, abi, job->content_fd, rights, err) < 0)
        return -1;
    for (size_t i = 0; i < job->tree_n; i++)
        if (landlock_allow(ruleset, abi, job->trees[i].fd,
                           walls->write_trees ? rights : LANDLOCK_READ, err) < 0)
            return -1;
    for (size_t i = 0; i < COUNT(readable); i++) {
        AUTO_FD int fd = open(readable[i], O_PATH | O_CLOEXEC);

        if (fd >= 0 && landlock_allow(ruleset, abi, fd, LANDLOCK_READ, err) < 0)
            return -1;
    }
    return landlock_enforce(ruleset, err);
}

/* Nothing below is part of fetching or unpacking; most of it is how a foothold becomes more. */
static const int refused[] = {
    SYS_execve,
    SYS_execveat,
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_pidfd_getfd,
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_setns,
    SYS_unshare,
    SYS_move_mount,
    SYS_open_tree,
    SYS_fsopen,
    SYS_fsmount,
    SYS_fsconfig,
    SYS_fspick,
    SYS_mount_setattr,
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    SYS_io_uring_setup,
    SYS_io_uring_enter,
    SYS_io_uring_register,
    SYS_keyctl,
    SYS_add_key,
    SYS_request_key,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_kexec_load,
    SYS_open_by_handle_at,
    SYS_name_to_handle_at,
    SYS_fanotify_init,
    SYS_quotactl,
    SYS_reboot,
    SYS_swapon,
    SYS_swapoff,
    SYS_personality,
    SYS_kcmp,
    SYS_acct,
    SYS_sethostname,
    SYS_setdomainname,
};

/* Only a registry needs these. */
static const int refused_without_network[] = {SYS_socket, SYS_connect, SYS_bind, SYS_listen};

#define REFUSE(number) (SECCOMP_RET_ERRNO | ((number)&SECCOMP_RET_DATA))

static int wall_calls(bool network, struct err *err)
{
    struct sock_filter filter[COUNT(refused) + COUNT(refused_without_network) + 8];
    size_t more = network ? 0 : COUNT(refused_without_network), count = COUNT(refused) + more;
    size_t n = 0;

    filter[n++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
    filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0);
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    filter[n++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    /* Numbers of the x32 ABI and beyond anything known. */
    filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000U,
                                               (unsigned char)(count + 1), 0);
    for (size_t i = 0; i < count; i++) {
        int call = i < more ? refused_without_network[i] : refused[i - more];

        filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call,
                                                   (unsigned char)(count - i), 0);
    }
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, REFUSE(EPERM));
    return seccomp_load(filter, n, err);
}

int confine(const struct job *job, const struct walls *walls, struct err *err)
{
    if (set_limits(err) < 0 || no_new_privs(err) < 0 || wall_files(job, walls, err) < 0)
        return -1;
    return wall_calls(walls->network, err);
}
