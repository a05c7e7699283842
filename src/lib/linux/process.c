/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/linux/process.h"

#include "lib/base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <net/if.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

int caps_drop_all(struct err *err)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {{0}};

    if (prctl(PR_SET_SECUREBITS, SECURE_ALL_BITS | SECURE_ALL_LOCKS, 0, 0, 0) < 0)
        return err_os(err, "locking the securebits");
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
        return err_os(err, "clearing the ambient capabilities");
    /* The kernel may know more capabilities than our headers: it answers EINVAL past the last. */
    for (unsigned long cap = 0; cap < 64; cap++) {
        if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0)
            continue;
        if (errno == EINVAL)
            break;
        return err_os(err, "dropping capability %lu", cap);
    }
    if (syscall(SYS_capset, &header, none) < 0)
        return err_os(err, "giving up the capabilities");
    return 0;
}

int caps_give_up(struct err *err)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {{0}};

    if (syscall(SYS_capset, &header, none) < 0)
        return err_os(err, "giving up the capabilities");
    return 0;
}

int dumps_forbid(struct err *err)
{
    const struct rlimit none = {0, 0};

    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || setrlimit(RLIMIT_CORE, &none) < 0)
        return err_os(err, "forbidding dumps");
    return 0;
}

int no_new_privs(struct err *err)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return err_os(err, "forbidding new privileges");
    return 0;
}

int seccomp_load(const struct sock_filter *filter, size_t n, struct err *err)
{
    /* The kernel does not write through this pointer; its header only forgot to say so. */
    struct sock_fprog program = {
        .len = (unsigned short)n,
        .filter = (struct sock_filter *)(uintptr_t)filter,
    };

    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
        return err_os(err, "loading a seccomp filter of %zu instructions", n);
    return 0;
}

/* While its call is being looked at, only a fatal signal disturbs a process: runtimes that signal
 * their threads all the time would otherwise begin every call again. Kernels before 5.19 do not
 * know that flag. */
int seccomp_load_heard(const struct sock_filter *filter, size_t n, int *out, struct err *err)
{
    struct sock_fprog program = {
        .len = (unsigned short)n,
        .filter = (struct sock_filter *)(uintptr_t)filter,
    };
    const unsigned flags[] = {
        SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV,
        SECCOMP_FILTER_FLAG_NEW_LISTENER,
    };

    for (size_t i = 0; i < COUNT(flags); i++) {
        int fd = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags[i], &program);

        if (fd >= 0) {
            *out = fd;
            return 0;
        }
        if (errno != EINVAL)
            break;
    }
    return err_os(err, "loading a seccomp filter that is heard");
}

int loopback_up(struct err *err)
{
    AUTO_FD int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq request = {.ifr_name = "lo"};

    request.ifr_flags = IFF_UP | IFF_RUNNING;
    if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) < 0)
        return err_os(err, "bringing up the loopback interface");
    return 0;
}

static int map_write(int pid, const char *file, uint32_t inside, uint32_t host, struct err *err)
{
    char path[64];
    char line[64];

    (void)snprintf(path, sizeof path, "/proc/%d/%s", pid, file);
    (void)snprintf(line, sizeof line, "%u %u 1", inside, host);
    return file_write(AT_FDCWD, path, line, err);
}

int idmap_write(int pid, uint32_t inside_uid, uint32_t host_uid, uint32_t inside_gid,
                uint32_t host_gid, int deny_setgroups, struct err *err)
{
    char path[64];

    (void)snprintf(path, sizeof path, "/proc/%d/setgroups", pid);
    if (deny_setgroups && file_write(AT_FDCWD, path, "deny", err) < 0)
        return -1;
    if (map_write(pid, "uid_map", inside_uid, host_uid, err) < 0)
        return -1;
    return map_write(pid, "gid_map", inside_gid, host_gid, err);
}
