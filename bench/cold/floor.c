/* SPDX-License-Identifier: Apache-2.0 */

/* floor: the kernel's price of one sandbox.
 *
 * One process makes the namespaces, the cgroups, the root, the Landlock rules and the filters that
 * `brig sandbox exec` makes with its defaults, runs one command in it, removes everything, and
 * appends two receipts of 2 KiB to a file with a data sync each: the first before the command may
 * run, the second after it is gone. No policy, no plan, no signature, no observation, no relay of
 * streams, no answer to anybody's mistakes. What Brig needs above this is Brig's own.
 *
 *     floor [-w WITHOUT,...] [-s RUNS] DIR PROGRAM [WORDS...]
 *     floor -b | -o DIR      the same mounts, as words for bubblewrap, as JSON for an OCI runtime
 *
 * -w leaves out some of: cgroup netns sync landlock seccomp masks. -s does it so many times and
 * prints the median microseconds of each step. DIR is for the receipts and the writable layer. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/mount.h>
#include <linux/securebits.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "lib/base/err.h"
#include "lib/linux/cgroup.h"
#include "lib/linux/filters.h"
#include "lib/linux/landlock.h"
#include "lib/linux/process.h"
#include "lib/linux/sys.h"

#define RECEIPT_BYTES 2048
#define RUNS_MAX 5000
#define HOST_ID 0x700003e8U /* what Brig uses when root starts it */
#define INSIDE_ID 1000U

/* ---- the mounts Brig makes by default, in its order ---- */

enum kind { BIND, LINK, TEXT, DEVICE, PROC, DEVPTS, TMPFS, READONLY, MASK, FOLDER, LAYER };

/* What is not on this machine is left out, and a link stays a link. */
static const struct {
    enum kind kind;
    const char *target;
    const char *source; /* where a link points, which layer */
} wanted[] = {
    {BIND,     "/usr",                 NULL                   },
    {BIND,     "/bin",                 NULL                   },
    {BIND,     "/sbin",                NULL                   },
    {BIND,     "/lib",                 NULL                   },
    {BIND,     "/lib32",               NULL                   },
    {BIND,     "/lib64",               NULL                   },
    {BIND,     "/libx32",              NULL                   },
    {BIND,     "/etc/alternatives",    NULL                   },
    {BIND,     "/etc/debian_version",  NULL                   },
    {BIND,     "/etc/fonts",           NULL                   },
    {BIND,     "/etc/ld.so.cache",     NULL                   },
    {BIND,     "/etc/ld.so.conf",      NULL                   },
    {BIND,     "/etc/ld.so.conf.d",    NULL                   },
    {BIND,     "/etc/magic",           NULL                   },
    {BIND,     "/etc/mime.types",      NULL                   },
    {BIND,     "/etc/perl",            NULL                   },
    {BIND,     "/etc/ssl/certs",       NULL                   },
    {BIND,     "/etc/ssl/openssl.cnf", NULL                   },
    {BIND,     "/etc/terminfo",        NULL                   },
    {BIND,     "/etc/python3",         NULL                   },
    {BIND,     "/etc/python3.11",      NULL                   },
    {BIND,     "/etc/java-17-openjdk", NULL                   },
    {TEXT,     "/etc/hostname",        NULL                   },
    {TEXT,     "/etc/hosts",           NULL                   },
    {TEXT,     "/etc/nsswitch.conf",   NULL                   },
    {TEXT,     "/etc/resolv.conf",     NULL                   },
    {TEXT,     "/etc/shells",          NULL                   },
    {TEXT,     "/etc/services",        NULL                   },
    {TEXT,     "/etc/protocols",       NULL                   },
    {TEXT,     "/etc/passwd",          NULL                   },
    {TEXT,     "/etc/group",           NULL                   },
    {DEVICE,   "/dev/null",            NULL                   },
    {DEVICE,   "/dev/zero",            NULL                   },
    {DEVICE,   "/dev/full",            NULL                   },
    {DEVICE,   "/dev/random",          NULL                   },
    {DEVICE,   "/dev/urandom",         NULL                   },
    {DEVICE,   "/dev/tty",             NULL                   },
    {DEVPTS,   "/dev/pts",             NULL                   },
    {TMPFS,    "/dev/shm",             NULL                   },
    {PROC,     "/proc",                NULL                   },
    {READONLY, "/proc/sys",            NULL                   },
    {READONLY, "/proc/bus",            NULL                   },
    {READONLY, "/proc/fs",             NULL                   },
    {READONLY, "/proc/irq",            NULL                   },
    {READONLY, "/proc/sysrq-trigger",  NULL                   },
    {MASK,     "/proc/acpi",           NULL                   },
    {MASK,     "/proc/asound",         NULL                   },
    {MASK,     "/proc/config.gz",      NULL                   },
    {MASK,     "/proc/dynamic_debug",  NULL                   },
    {MASK,     "/proc/interrupts",     NULL                   },
    {MASK,     "/proc/kallsyms",       NULL                   },
    {MASK,     "/proc/kcore",          NULL                   },
    {MASK,     "/proc/key-users",      NULL                   },
    {MASK,     "/proc/keys",           NULL                   },
    {MASK,     "/proc/kmsg",           NULL                   },
    {MASK,     "/proc/kpagecgroup",    NULL                   },
    {MASK,     "/proc/kpagecount",     NULL                   },
    {MASK,     "/proc/kpageflags",     NULL                   },
    {MASK,     "/proc/latency_stats",  NULL                   },
    {MASK,     "/proc/modules",        NULL                   },
    {MASK,     "/proc/sched_debug",    NULL                   },
    {MASK,     "/proc/scsi",           NULL                   },
    {MASK,     "/proc/slabinfo",       NULL                   },
    {MASK,     "/proc/timer_list",     NULL                   },
    {MASK,     "/proc/timer_stats",    NULL                   },
    {MASK,     "/proc/tty",            NULL                   },
    {MASK,     "/proc/vmallocinfo",    NULL                   },
    {MASK,     "/proc/zoneinfo",       NULL                   },
    {TMPFS,    "/run",                 NULL                   },
    {LINK,     "/dev/fd",              "/proc/self/fd"        },
    {LINK,     "/dev/stdin",           "/proc/self/fd/0"      },
    {LINK,     "/dev/stdout",          "/proc/self/fd/1"      },
    {LINK,     "/dev/stderr",          "/proc/self/fd/2"      },
    {LINK,     "/dev/ptmx",            "pts/ptmx"             },
    {LINK,     "/etc/mtab",            "/proc/self/mounts"    },
    {LINK,     "/etc/os-release",      "../usr/lib/os-release"},
    {LINK,     "/var/run",             "/run"                 },
    {LINK,     "/var/tmp",             "/tmp"                 },
    {FOLDER,   "/var/empty",           NULL                   },
    {FOLDER,   "/sandbox/input",       NULL                   },
    {FOLDER,   "/workspace",           NULL                   },
    {FOLDER,   "/mnt",                 NULL                   },
    {LAYER,    "/sandbox/output",      "output"               },
    {LAYER,    "/sandbox/tmp",         "tmp"                  },
    {LAYER,    "/tmp",                 "tmp"                  },
    {LAYER,    "/home/sandbox",        "home"                 },
};
static const char *const layers[] = {"output", "tmp", "home"};

struct mount {
    enum kind kind;
    const char *target;
    const char *source;
    bool is_file;
    int tree_fd;
};

/* ---- one run ---- */

enum step {
    LOOK,
    FOLDERS,
    GROUPS,
    CLONE,
    JOIN,
    MAPS,
    USER,
    SOURCES,
    ROOT,
    PIVOT,
    MASKS,
    LIMITS,
    CAPS,
    LANDLOCK,
    SECCOMP,
    INTENT,
    COMMAND,
    REAP,
    REMOVE,
    OUTCOME,
    STEPS,
};

/* The first nine of the child run beside the parent's intent; their sum is not the whole. */
static const char *const step_names[STEPS] = {
    [LOOK] = "look at the machine",
    [FOLDERS] = "folders of the layer",
    [GROUPS] = "make and limit cgroups",
    [CLONE] = "clone3 until the child runs",
    [JOIN] = "child: enter its cgroups",
    [MAPS] = "child: wait for id maps",
    [USER] = "child: user, host name, lo",
    [SOURCES] = "child: take source mounts",
    [ROOT] = "child: put the root together",
    [PIVOT] = "child: pivot_root, old root off",
    [MASKS] = "child: masks in /proc, root ro",
    [LIMITS] = "child: cgroup ns, rlimits",
    [CAPS] = "child: capabilities",
    [LANDLOCK] = "child: Landlock",
    [SECCOMP] = "child: seccomp",
    [INTENT] = "child: wait for the first sync",
    [COMMAND] = "child: exec, run, reap",
    [REAP] = "end of the namespaces, reap",
    [REMOVE] = "remove cgroups and folders",
    [OUTCOME] = "second sync",
};

static struct {
    bool cgroup, netns, sync, landlock, seccomp, masks; /* all on but for -w */
    bool by_root;
    const char *dir;
    char **argv;
    struct mount mounts[COUNT(wanted)];
    size_t mount_n;
    struct cgroup_host host;
    struct cgroup_set groups;
    int receipts_fd;
    int sync_fd;             /* between parent and child: one byte for each thing that is ready */
    uint64_t (*took)[STEPS]; /* shared with the child; NULL when nobody asks */
    size_t run;
    uint64_t last_ns;
} f = {true, true, true, true, true, true, .receipts_fd = -1};

static NORETURN void PRINTF(1, 2) stop(const char *fmt, ...)
{
    int os = errno;
    va_list args;

    va_start(args, fmt);
    (void)fputs("floor: ", stderr);
    (void)vfprintf(stderr, fmt, args);
    (void)fprintf(stderr, " (%s)\n", strerrordesc_np(os));
    va_end(args);
    exit(1);
}

#define must(call)                                                                                 \
    do {                                                                                           \
        if ((call) < 0)                                                                            \
            stop("%s", #call);                                                                     \
    } while (0)
/* For functions of Brig's own, which say what failed. */
#define must_err(call)                                                                             \
    do {                                                                                           \
        struct err *err = &(struct err){0};                                                        \
        if ((call) < 0)                                                                            \
            stop("%s", err->text);                                                                 \
    } while (0)

static uint64_t now_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

static void done(enum step step)
{
    uint64_t now;

    if (!f.took)
        return;
    now = now_ns();
    f.took[f.run][step] = now - f.last_ns;
    f.last_ns = now;
}

static void look(void)
{
    static char links[COUNT(wanted)][256];

    f.mount_n = 0;
    for (size_t i = 0; i < COUNT(wanted); i++) {
        struct mount *m = &f.mounts[f.mount_n];
        struct stat st;

        *m = (struct mount){wanted[i].kind, wanted[i].target, wanted[i].source, false, -1};
        if (m->kind == BIND || m->kind == DEVICE || m->kind == READONLY || m->kind == MASK) {
            if (lstat(m->target, &st) < 0 || (m->kind == MASK && !f.masks))
                continue;
            m->is_file = !S_ISDIR(st.st_mode);
            m->source = m->target;
            if (S_ISLNK(st.st_mode)) {
                m->kind = LINK;
                must(readlink(m->target, links[i], sizeof links[i] - 1));
                m->source = links[i];
            }
        }
        f.mount_n++;
    }
    if (f.cgroup)
        must_err(cgroup_probe(&f.host, err));
}

static void make_folders(void)
{
    for (size_t i = 0; i < COUNT(layers); i++) {
        char path[4096];

        (void)snprintf(path, sizeof path, "%s/%s", f.dir, layers[i]);
        must(mkdir(path, 0700));
        if (f.by_root)
            must(chown(path, HOST_ID, HOST_ID));
    }
}

static void make_groups(void)
{
    struct cgroup_limits limits = {512U << 20, 256, 1000};
    char name[CGROUP_NAME_BYTES];

    (void)snprintf(name, sizeof name, "floor-%d", (int)getpid());
    must_err(cgroup_set_make(&f.host, name, &f.groups, err));
    must_err(cgroup_set_limit(&f.groups, &limits, err));
}

/* ---- inside ---- */

static void wait_for_byte(void)
{
    char byte;

    if (read(f.sync_fd, &byte, 1) != 1)
        stop("the parent is gone");
}

static int tree_clone(int fd, const char *path, int flags)
{
    return (int)syscall(SYS_open_tree, fd, path,
                        OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | (unsigned)(AT_RECURSIVE | flags));
}

static int tree_set(int fd, uint64_t set)
{
    struct mount_attr attr = {.attr_set = set};

    return (int)syscall(SYS_mount_setattr, fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr,
                        sizeof attr);
}

static int tree_attach(int fd, int dir_fd, const char *path)
{
    return (int)syscall(SYS_move_mount, fd, "", dir_fd, path, MOVE_MOUNT_F_EMPTY_PATH);
}

static void take_source(struct mount *m)
{
    uint64_t flags = MOUNT_ATTR_NOSUID;
    char path[4096];

    if (m->kind == LAYER)
        (void)snprintf(path, sizeof path, "%s/%s", f.dir, m->source);
    m->tree_fd = tree_clone(AT_FDCWD, m->kind == LAYER ? path : m->source, 0);
    must(m->tree_fd);
    if (m->kind != DEVICE)
        flags |= MOUNT_ATTR_NODEV;
    if (m->kind == BIND)
        flags |= MOUNT_ATTR_RDONLY;
    if (m->kind == DEVICE)
        flags |= MOUNT_ATTR_NOEXEC;
    must(tree_set(m->tree_fd, flags));
}

/* Root takes the layers before it becomes somebody else, everything else is for all to see. */
static void take_sources(bool layers_too)
{
    for (size_t i = 0; i < f.mount_n; i++) {
        struct mount *m = &f.mounts[i];

        if (m->tree_fd < 0 && ((m->kind == LAYER && layers_too) ||
                               (!layers_too && (m->kind == BIND || m->kind == DEVICE)) ||
                               (m->kind == LAYER && !f.by_root)))
            take_source(m);
    }
}

static int new_fs(const char *type, const char *const *options, unsigned flags)
{
    int fs = (int)syscall(SYS_fsopen, type, FSOPEN_CLOEXEC);
    int fd;

    must(fs);
    for (; options && *options; options += 2)
        must(syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, options[0], options[1], 0));
    must(syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0));
    fd = (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, flags);
    must(fd);
    (void)close(fs);
    return fd;
}

static int new_mount(enum kind kind)
{
    static const char *const tmpfs[] = {"size", "64k", "nr_inodes", "65536", "mode", "1777", NULL};
    static const char *const pts[] = {"ptmxmode", "0666", "mode", "0620", NULL};
    unsigned flags = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;

    if (kind == DEVPTS)
        return new_fs("devpts", pts, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
    return kind == PROC ? new_fs("proc", NULL, flags) : new_fs("tmpfs", tmpfs, flags);
}

static void put(struct mount *m, int root_fd)
{
    static const char *const parents[] = {"etc", "etc/ssl", "dev", "var", "sandbox", "home"};
    const char *at = m->target + 1;
    int fd;

    if (m->target[1] == 'u') /* the first one: /usr */
        for (size_t i = 0; i < COUNT(parents); i++)
            must(mkdirat(root_fd, parents[i], 0755));
    if (m->kind == LINK) {
        must(symlinkat(m->source, root_fd, at));
        return;
    }
    if (m->kind == TEXT || m->is_file) {
        fd = openat(root_fd, at, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        must(fd);
        if (m->kind == TEXT)
            must(write(fd, "floor\n", 6));
        (void)close(fd);
    } else {
        must(mkdirat(root_fd, at, 0755));
    }
    if (m->kind == TEXT || m->kind == FOLDER)
        return;
    if (m->tree_fd < 0)
        m->tree_fd = new_mount(m->kind);
    must(tree_attach(m->tree_fd, root_fd, at));
    (void)close(m->tree_fd);
}

static void build_root(void)
{
    static const char *const options[] = {"size", "4m", "nr_inodes", "1024", "mode", "0755", NULL};
    int root_fd = new_fs("tmpfs", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);

    must(tree_attach(root_fd, AT_FDCWD, "/tmp"));
    for (size_t i = 0; i < f.mount_n; i++)
        if (f.mounts[i].kind != MASK && f.mounts[i].kind != READONLY)
            put(&f.mounts[i], root_fd);
    done(ROOT);
    must(fchdir(root_fd));
    must(sys_pivot_root(".", "."));
    must(syscall(SYS_umount2, ".", 2 /* MNT_DETACH */));
    must(chdir("/"));
    (void)close(root_fd);
    done(PIVOT);
}

static void cover(void)
{
    for (size_t i = 0; i < f.mount_n; i++) {
        const struct mount *m = &f.mounts[i];
        const char *from = m->kind == READONLY ? m->target
                           : m->is_file        ? "/dev/null"
                                               : "/var/empty";
        int fd;

        if (m->kind != MASK && m->kind != READONLY)
            continue;
        fd = tree_clone(AT_FDCWD, from, 0);
        must(fd);
        must(tree_set(fd, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
                              MOUNT_ATTR_NOEXEC));
        must(tree_attach(fd, AT_FDCWD, m->target));
        (void)close(fd);
    }
    must(syscall(SYS_mount_setattr, AT_FDCWD, "/", 0,
                 &(struct mount_attr){.attr_set = MOUNT_ATTR_RDONLY}, sizeof(struct mount_attr)));
}

static void become_user(void)
{
    must(prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP | SECBIT_KEEP_CAPS, 0, 0, 0));
    if (f.by_root)
        must(setgroups(0, NULL));
    must(setresgid(INSIDE_ID, INSIDE_ID, INSIDE_ID));
    must(setresuid(INSIDE_ID, INSIDE_ID, INSIDE_ID));
    must(prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0));
    must(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0));
    must(sethostname("sandbox", 7));
    if (f.netns)
        must_err(loopback_up(err));
}

static void set_rlimits(void)
{
    static const struct {
        __rlimit_resource_t resource;
        rlim_t value;
    } limits[] = {
        {RLIMIT_CORE,    0       },
        {RLIMIT_NOFILE,  4096    },
        {RLIMIT_MEMLOCK, 65536   },
        {RLIMIT_RTPRIO,  0       },
        {RLIMIT_NICE,    0       },
        {RLIMIT_FSIZE,   1U << 30},
        {RLIMIT_NPROC,   256     },
    };

    for (size_t i = 0; i < COUNT(limits); i++)
        must(setrlimit(limits[i].resource, &(struct rlimit){limits[i].value, limits[i].value}));
}

static void apply_landlock(void)
{
    unsigned abi = landlock_abi();
    int ruleset = -1;

    must_err(landlock_open(abi, &ruleset, err));
    for (size_t i = 0; i < f.mount_n; i++) {
        const struct mount *m = &f.mounts[i];
        uint64_t rights = LANDLOCK_READ;
        int fd;

        if (m->kind == LINK || m->kind == FOLDER || m->kind == MASK || m->kind == READONLY ||
            strcmp(m->target, "/run") == 0)
            continue;
        fd = open(m->target, O_PATH | O_CLOEXEC);
        must(fd);
        if (m->kind == BIND)
            rights |= LANDLOCK_EXECUTE;
        if (m->kind == LAYER || m->kind == DEVICE || m->kind == TMPFS)
            rights |= LANDLOCK_WRITE;
        must_err(landlock_allow(ruleset, abi, fd, rights, err));
        (void)close(fd);
    }
    must_err(landlock_enforce(ruleset, err));
    (void)close(ruleset);
}

static void run_command(void)
{
    static char *env[] = {NULL};
    int status = 0;
    pid_t pid = vfork();

    if (pid == 0) {
        (void)execve(f.argv[0], f.argv, env);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
        stop("%s ended with status %#x", f.argv[0], (unsigned)status);
}

static NORETURN void be_inside(void)
{
    done(CLONE);
    if (f.cgroup)
        must_err(cgroup_set_enter(
            &f.groups, cgroup_set_v2_fd(&f.groups) >= 0 ? CGROUP_JOIN_V1 : CGROUP_JOIN_ALL, err));
    done(JOIN);
    wait_for_byte();
    done(MAPS);
    become_user();
    done(USER);
    must(syscall(SYS_mount, NULL, "/", NULL, 16384UL | 1UL << 18, NULL)); /* MS_REC | MS_PRIVATE */
    take_sources(false);
    done(SOURCES);
    build_root();
    cover();
    done(MASKS);
    must(unshare(CLONE_NEWCGROUP));
    set_rlimits();
    done(LIMITS);
    must_err(caps_drop_all(err));
    must_err(no_new_privs(err));
    done(CAPS);
    if (f.landlock)
        apply_landlock();
    done(LANDLOCK);
    if (f.seccomp) {
        must_err(seccomp_load(seccomp_arguments, seccomp_arguments_n, err));
        must_err(seccomp_load(seccomp_names, seccomp_names_n, err));
    }
    done(SECCOMP);
    wait_for_byte();
    done(INTENT);
    run_command();
    done(COMMAND);
    _exit(0);
}

/* ---- outside ---- */

static void append_receipt(void)
{
    static char receipt[RECEIPT_BYTES];

    must(write(f.receipts_fd, receipt, sizeof receipt));
    if (f.sync)
        must(fdatasync(f.receipts_fd));
}

static void say_ready(void)
{
    if (send(f.sync_fd, "r", 1, MSG_NOSIGNAL) != 1)
        stop("the child is gone");
}

static pid_t clone_child(void)
{
    struct clone_request request = {.flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID |
                                             CLONE_NEWIPC | CLONE_NEWUTS,
                                    .cgroup_fd = f.cgroup ? cgroup_set_v2_fd(&f.groups) : -1};
    int sockets[2];
    int pidfd = -1;
    pid_t pid;

    if (f.netns)
        request.flags |= CLONE_NEWNET;
    must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets));
    pid = sys_clone(&request, &pidfd);
    must(pid);
    f.sync_fd = sockets[pid == 0];
    (void)close(sockets[pid != 0]);
    if (pid == 0)
        be_inside();
    (void)close(pidfd);
    return pid;
}

static void remove_all(void)
{
    if (f.cgroup)
        must_err(cgroup_set_remove(&f.groups, 2000, err));
    for (size_t i = 0; i < COUNT(layers); i++) {
        char path[4096];

        (void)snprintf(path, sizeof path, "%s/%s", f.dir, layers[i]);
        must(rmdir(path));
    }
    for (size_t i = 0; i < f.mount_n; i++)
        if (f.mounts[i].tree_fd >= 0)
            (void)close(f.mounts[i].tree_fd);
}

static void run_once(void)
{
    uid_t uid = f.by_root ? HOST_ID : geteuid();
    gid_t gid = f.by_root ? HOST_ID : getegid();
    int status = 0;
    pid_t pid;

    f.last_ns = f.took ? now_ns() : 0;
    look();
    done(LOOK);
    make_folders();
    if (f.by_root)
        take_sources(true);
    done(FOLDERS);
    if (f.cgroup)
        make_groups();
    done(GROUPS);
    pid = clone_child();
    must_err(idmap_write(pid, INSIDE_ID, uid, INSIDE_ID, gid, !f.by_root, err));
    say_ready();
    append_receipt();
    say_ready();
    if (waitpid(pid, &status, 0) != pid || status != 0)
        stop("the sandbox ended with status %#x", (unsigned)status);
    if (f.took) { /* go on where the child left off */
        uint64_t sum = 0;
        uint64_t now = now_ns();

        for (size_t i = LOOK; i < REAP; i++)
            sum += f.took[f.run][i];
        f.took[f.run][REAP] =
            now - f.last_ns -
            (sum - f.took[f.run][LOOK] - f.took[f.run][FOLDERS] - f.took[f.run][GROUPS]);
        f.last_ns = now;
    }
    remove_all();
    done(REMOVE);
    append_receipt();
    done(OUTCOME);
    (void)close(f.sync_fd);
}

/* ---- what is printed ---- */

static int by_value(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

    return left < right ? -1 : left > right;
}

static void print_steps(size_t runs)
{
    uint64_t *column = calloc(runs, sizeof *column);
    uint64_t total = 0;

    for (size_t step = 0; column && step < STEPS; step++) {
        for (size_t i = 0; i < runs; i++)
            column[i] = f.took[i][step];
        qsort(column, runs, sizeof *column, by_value);
        (void)printf("%-34s %7.0f µs  p95 %7.0f\n", step_names[step],
                     (double)column[runs / 2] / 1e3, (double)column[runs * 95 / 100] / 1e3);
        total += column[runs / 2];
    }
    (void)printf("%-34s %7.0f µs\n", "sum of the medians", (double)total / 1e3);
    free(column);
}

static void print_bubblewrap(void)
{
    static const char *const words[] = {
        [BIND] = "--ro-bind",     [LINK] = "--symlink", [TEXT] = "--dir",
        [DEVICE] = NULL, /* --dev makes these, pts and shm */
        [PROC] = "--proc",        [DEVPTS] = NULL,      [TMPFS] = "--tmpfs",
        [READONLY] = "--ro-bind", [MASK] = "--ro-bind", [FOLDER] = "--dir",
        [LAYER] = "--bind",
    };

    (void)puts("--dev\n/dev");
    for (size_t i = 0; i < f.mount_n; i++) {
        const struct mount *m = &f.mounts[i];

        if (!words[m->kind] || strncmp(m->target, "/dev/", 5) == 0)
            continue;
        (void)puts(words[m->kind]);
        if (m->kind == LAYER)
            (void)printf("%s/%s\n", f.dir, m->source);
        else if (m->kind == MASK && !m->is_file)
            (void)printf("%s/empty\n", f.dir);
        else if (m->kind == MASK)
            (void)puts("/dev/null");
        else if (m->source)
            (void)puts(m->source);
        (void)puts(m->target);
    }
}

static void print_oci(void)
{
    const char *comma = "";

    for (size_t i = 0; i < f.mount_n; i++) {
        const struct mount *m = &f.mounts[i];
        const char *type = m->kind == PROC     ? "proc"
                           : m->kind == DEVPTS ? "devpts"
                           : m->kind == TMPFS  ? "tmpfs"
                                               : "bind";

        if (m->kind == LINK || m->kind == FOLDER || m->kind == TEXT || m->kind == DEVICE)
            continue; /* in the prepared root; devices are made by the runtime */
        (void)printf("%s{\"destination\":\"%s\",\"type\":\"%s\",\"source\":\"", comma, m->target,
                     type);
        if (m->kind == LAYER || (m->kind == MASK && !m->is_file))
            (void)printf("%s/%s", f.dir, m->kind == LAYER ? m->source : "empty");
        else if (m->kind == MASK)
            (void)fputs("/dev/null", stdout);
        else
            (void)fputs(m->source ? m->source : type, stdout);
        (void)printf("\",\"options\":[%s\"nosuid\"%s]}\n",
                     strcmp(type, "bind") == 0 ? "\"rbind\"," : "",
                     m->kind == BIND || m->kind == READONLY || m->kind == MASK ? ",\"ro\"" : "");
        comma = ",";
    }
}

/* ---- the command line ---- */

static void leave_out(const char *names)
{
    static const struct {
        const char *name;
        bool *on;
    } parts[] = {
        {"cgroup",   &f.cgroup  },
        {"netns",    &f.netns   },
        {"sync",     &f.sync    },
        {"landlock", &f.landlock},
        {"seccomp",  &f.seccomp },
        {"masks",    &f.masks   },
    };

    while (*names) {
        size_t n = strcspn(names, ",");
        size_t i = 0;

        while (i < COUNT(parts) &&
               (strlen(parts[i].name) != n || strncmp(parts[i].name, names, n) != 0))
            i++;
        if (i == COUNT(parts))
            stop("-w knows cgroup, netns, sync, landlock, seccomp, masks; not %s", names);
        *parts[i].on = false;
        names += n + (names[n] == ',');
    }
}

static void open_receipts(void)
{
    char path[4096];

    (void)snprintf(path, sizeof path, "%s/receipts", f.dir);
    f.receipts_fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    must(f.receipts_fd);
}

int main(int argc, char **argv)
{
    size_t runs = 0;
    int print = 0;
    int option;

    f.by_root = geteuid() == 0;
    f.cgroup = f.by_root;
    while ((option = getopt(argc, argv, "+w:s:bo")) != -1) {
        if (option == 'w')
            leave_out(optarg);
        else if (option == 's')
            runs = strtoul(optarg, NULL, 10);
        else if (option == 'b' || option == 'o')
            print = option;
        else
            stop("usage: floor [-w WITHOUT,...] [-s RUNS] DIR PROGRAM... | floor -b|-o DIR");
    }
    f.dir = argv[optind];
    f.argv = argv + optind + 1;
    if (argc - optind < (print ? 1 : 2) || runs > RUNS_MAX)
        stop("a folder and a program are needed, and at most %d runs", RUNS_MAX);
    if (print) {
        look();
        (print == 'b' ? print_bubblewrap : print_oci)();
        return 0;
    }
    open_receipts();
    if (runs == 0) {
        run_once();
        return 0;
    }
    f.took = mmap(NULL, runs * sizeof *f.took, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                  -1, 0);
    if (f.took == MAP_FAILED)
        stop("no memory");
    for (f.run = 0; f.run < runs; f.run++)
        run_once();
    print_steps(runs);
    return 0;
}
