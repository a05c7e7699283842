/* SPDX-License-Identifier: Apache-2.0 */

/* The single looks of "brig doctor". Where asking the kernel is not enough (a feature may be
 * built in and still forbidden), a child process tries. */

#include "surface/cli/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/linux/cgroup.h"
#include "lib/linux/filters.h"
#include "lib/linux/landlock.h"
#include "lib/linux/process.h"
#include "surface/cli/commands.h"

#define KERNEL_MAJOR 5
#define KERNEL_MINOR 19
#define TRY_SECONDS 5 /* no try takes longer than milliseconds; a hanging kernel ends it */

void finding_good(struct finding *out, const char *fmt, ...)
{
    va_list args;

    out->result = FINDING_GOOD;
    va_start(args, fmt);
    (void)vsnprintf(out->seen, sizeof out->seen, fmt, args);
    va_end(args);
}

void finding_bad(struct finding *out, enum finding_result result, const char *seen, const char *fix)
{
    out->result = result;
    (void)snprintf(out->seen, sizeof out->seen, "%s", seen);
    (void)snprintf(out->fix, sizeof out->fix, "%s", fix);
}

/* Runs the attempt in a child that is thrown away. -1 with the child's own error when it failed. */
static int try_in_child(int (*attempt)(struct err *err), struct err *err)
{
    struct err said = {0};
    int status = 0;
    int report[2];
    ssize_t n;
    pid_t pid;

    if (pipe2(report, O_CLOEXEC) < 0)
        return err_os(err, "making a pipe");
    pid = fork();
    if (pid < 0) {
        (void)close(report[0]);
        (void)close(report[1]);
        return err_os(err, "starting a child");
    }
    if (pid == 0) {
        (void)alarm(TRY_SECONDS);
        if (attempt(&said) == 0)
            _exit(0);
        n = write(report[1], &said, sizeof said); /* atomic: smaller than PIPE_BUF */
        _exit(n == (ssize_t)sizeof said ? 1 : 2);
    }
    (void)close(report[1]);
    n = read(report[0], &said, sizeof said); /* ends with the child: it holds the other end */
    (void)close(report[0]);
    if (n == (ssize_t)sizeof said)
        *err = said;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    if (n != (ssize_t)sizeof said)
        return err_set(err, ERR_UNAVAILABLE, "the attempt ended without an answer");
    return -1;
}

void look_at_release(struct invocation *inv, struct finding *out)
{
    struct utsname name;
    unsigned major = 0;
    unsigned minor = 0;
    char seen[128];

    (void)inv;
    if (uname(&name) < 0 || sscanf(name.release, "%u.%u", &major, &minor) != 2) {
        finding_bad(out, FINDING_MISSING, "the kernel does not say its version",
                    "run on Linux 5.19 or later");
        return;
    }
    if (major > KERNEL_MAJOR || (major == KERNEL_MAJOR && minor >= KERNEL_MINOR)) {
        finding_good(out, "Linux %.64s", name.release);
        return;
    }
    (void)snprintf(seen, sizeof seen, "Linux %.64s", name.release);
    finding_bad(out, FINDING_MISSING, seen, "run on Linux 5.19 or later; Debian 12 has 6.1");
}

static int unshare_all(struct err *err)
{
    static const struct {
        const char *name;
        int flag;
    } kinds[] = {
        {"user",    CLONE_NEWUSER  },
        {"mount",   CLONE_NEWNS    },
        {"pid",     CLONE_NEWPID   },
        {"network", CLONE_NEWNET   },
        {"ipc",     CLONE_NEWIPC   },
        {"uts",     CLONE_NEWUTS   },
        {"cgroup",  CLONE_NEWCGROUP},
    };

    for (size_t i = 0; i < COUNT(kinds); i++)
        if (unshare(kinds[i].flag) < 0)
            return err_os(err, "no new %s namespace", kinds[i].name);
    return 0;
}

/* "0\n" in a file of /proc/sys. Missing is not off. */
static bool sysctl_is(const char *path, const char *value)
{
    AUTO_BUF struct buf text = BUF(64);
    struct err err;

    return file_read(AT_FDCWD, path, &text, &err) == 0 && str_starts(buf_str(&text), value);
}

void look_at_namespaces(struct invocation *inv, struct finding *out)
{
    struct err err;

    (void)inv;
    if (try_in_child(unshare_all, &err) == 0) {
        finding_good(out, "user, mount, pid, network, ipc, uts and cgroup can be made");
        return;
    }
    if (sysctl_is("/proc/sys/kernel/unprivileged_userns_clone", "0"))
        finding_bad(out, FINDING_MISSING, err.text,
                    "as root: sysctl -w kernel.unprivileged_userns_clone=1");
    else if (sysctl_is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"))
        finding_bad(out, FINDING_MISSING, err.text,
                    "as root: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or give "
                    "the box helper an AppArmor profile that allows userns");
    else if (sysctl_is("/proc/sys/user/max_user_namespaces", "0\n"))
        finding_bad(out, FINDING_MISSING, err.text,
                    "as root: sysctl -w user.max_user_namespaces=10000");
    else
        finding_bad(
            out, FINDING_MISSING, err.text,
            "inside a container or another sandbox: let the outer one allow user namespaces");
}

void look_at_landlock(struct invocation *inv, struct finding *out)
{
    unsigned abi = landlock_abi();
    char seen[64];

    (void)inv;
    if (abi >= LANDLOCK_ABI_LEAST) {
        finding_good(out, "ABI %u", abi);
        return;
    }
    (void)snprintf(seen, sizeof seen, abi ? "ABI %u, at least %u is needed" : "absent or off", abi,
                   LANDLOCK_ABI_LEAST);
    finding_bad(out, FINDING_MISSING, seen,
                abi ? "run on Linux 5.19 or later"
                    : "boot with landlock in the lsm= parameter, in front of the others, and "
                      "CONFIG_SECURITY_LANDLOCK in the kernel");
}

static int load_filters(struct err *err)
{
    if (no_new_privs(err) < 0 || seccomp_load(seccomp_names, seccomp_names_n, err) < 0 ||
        seccomp_load(seccomp_arguments, seccomp_arguments_n, err) < 0)
        return -1;
    return 0;
}

void look_at_seccomp(struct invocation *inv, struct finding *out)
{
    struct err err;

    (void)inv;
    if (try_in_child(load_filters, &err) == 0)
        finding_good(out, "both filters load (%zu and %zu instructions)", seccomp_names_n,
                     seccomp_arguments_n);
    else
        finding_bad(out, FINDING_MISSING, err.text,
                    "a kernel with CONFIG_SECCOMP_FILTER; inside a container: allow seccomp there");
}

static void look_at_cgroup(enum cgroup_power power, struct finding *out)
{
    struct cgroup_host host = {0};
    struct err err;

    if (cgroup_probe(&host, &err) < 0) {
        finding_bad(out, FINDING_WEAK, err.text, "make /proc readable");
        return;
    }
    if (cgroup_mode(&host, power) == CGROUP_NONE)
        finding_bad(out, FINDING_WEAK, "this user cannot use it", host.why[power]);
    else
        finding_good(out, "cgroup %s", cgroup_mode_name(cgroup_mode(&host, power)));
}

void look_at_memory(struct invocation *inv, struct finding *out)
{
    (void)inv;
    look_at_cgroup(CGROUP_MEMORY, out);
}

void look_at_pids(struct invocation *inv, struct finding *out)
{
    (void)inv;
    look_at_cgroup(CGROUP_PIDS, out);
}

void look_at_cpu(struct invocation *inv, struct finding *out)
{
    (void)inv;
    look_at_cgroup(CGROUP_CPU, out);
}

void look_at_state(struct invocation *inv, struct finding *out)
{
    const char *path = NULL;
    bool exists = false;
    struct err err;

    if (cli_state_find(inv, &path, &exists, &err) < 0)
        finding_bad(out, FINDING_MISSING, err.text, "set BRIG_HOME to a directory of your own");
    else
        finding_good(out, "%.200s%s", path, exists ? "" : " (made at first use)");
}

/* A file in the state directory; false when there is none, which is no fault. */
static bool state_file(struct invocation *inv, const char *name, const char **out, struct stat *s)
{
    const char *dir = NULL;
    bool exists = false;
    struct err err;

    if (cli_state_find(inv, &dir, &exists, &err) < 0 || !exists)
        return false;
    *out = arena_printf(&inv->mem, "%s/%s", dir, name);
    return lstat(*out, s) == 0;
}

void look_at_key(struct invocation *inv, struct finding *out)
{
    const char *path = NULL;
    struct stat s;

    if (!state_file(inv, "receipts.key", &path, &s)) {
        finding_good(out, "none yet (made at first use)");
    } else if (!S_ISREG(s.st_mode) || s.st_uid != geteuid() || (s.st_mode & 077)) {
        finding_bad(out, FINDING_MISSING,
                    arena_printf(&inv->mem, "%s can be read by others or is not yours", path),
                    "others may have signed with it: move it away and keep it, a new one is made; "
                    "or chmod 600 it if you know that nobody else could reach it");
    } else {
        finding_good(out, "%.200s", path);
    }
}

void look_at_ledger(struct invocation *inv, struct finding *out)
{
    const char *path = NULL;
    struct stat s;

    if (!state_file(inv, "receipts.db", &path, &s))
        finding_good(out, "none yet (made at first use)");
    else if (!S_ISREG(s.st_mode) || access(path, R_OK | W_OK) < 0)
        finding_bad(out, FINDING_MISSING, arena_printf(&inv->mem, "%s is not writable", path),
                    "no receipt, no run: make the file and its file system writable");
    else
        finding_good(out, "%.200s, %lld bytes; \"receipts verify\" checks it", path,
                     (long long)s.st_size);
}
