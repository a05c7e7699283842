/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/box/box.h"

#include "cmd/box/box-egress.h"
#include "lib/base/io.h"
#include "lib/linux/cgroup.h"
#include "lib/linux/fd-pass.h"
#include "lib/linux/filters.h"
#include "lib/linux/landlock.h"
#include "lib/linux/process.h"
#include "lib/linux/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/openat2.h>
#include <linux/securebits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

/* Outer says when it has done what only it may do. End of file means it is gone. */
static int wait_for(const struct box *box, const char *what, struct err *err)
{
    char ready = 0;
    ssize_t got;

    do
        got = read(box->sync_fd, &ready, 1);
    while (got < 0 && errno == EINTR);
    if (got != 1)
        return err_set(err, ERR_UNAVAILABLE, "waiting for %s: the supervisor is gone", what);
    return 0;
}

/* By ourselves, while we still are whoever made them, and before any thread exists: moving
 * oneself spares the kernel the lock that makes moving another process take ten milliseconds. */
static int enter_groups(struct box *box, struct err *err)
{
    enum cgroup_join which;

    if (!box->groups || box->prepared)
        return 0; /* there are none, or we join them later */
    which = cgroup_set_v2_fd(box->groups) >= 0 ? CGROUP_JOIN_V1 : CGROUP_JOIN_ALL;
    if (cgroup_set_enter(box->groups, which, err) < 0)
        return -1;
    cgroup_set_done(box->groups); /* our copy: outer keeps its own */
    return 0;
}

/* Out of a template we are nobody to the groups from the beginning: outer, who makes them while we
 * build our root, opens them for us. */
static int join_groups(struct box *box, struct err *err)
{
    int fds[FD_PASS_MAX];
    size_t n = 0;
    char byte = 0;
    int got, failed;

    if (!box->groups || !box->prepared)
        return 0;
    got = fds_receive_any(box->sync_fd, &byte, 1, fds, &n, err);
    if (got < 0)
        return -1;
    failed = got == 1 ? cgroup_enter_doors(fds, n, err)
                      : err_set(err, ERR_UNAVAILABLE, "the supervisor is gone");
    for (size_t i = 0; i < n; i++)
        (void)close(fds[i]);
    return failed;
}

/* Our ids exist once the maps are written. Capabilities must survive the change of user, because
 * the mounts need them; the exec of the command could not bring any back. */
int become_user(struct box *box, struct err *err)
{
    const struct box_plan *plan = box->plan;

    if (!box->prepared && wait_for(box, "the id maps", err) < 0)
        return -1;
    if (prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP | SECBIT_KEEP_CAPS, 0, 0, 0) < 0)
        return err_os(err, "keeping capabilities over the change of user");
    if (plan->started_by_root && !box_lacks("group loss") && setgroups(0, NULL) < 0)
        return err_os(err, "leaving the supplementary groups");
    if (setresgid(plan->inside_gid, plan->inside_gid, plan->inside_gid) < 0 ||
        setresuid(plan->inside_uid, plan->inside_uid, plan->inside_uid) < 0)
        return err_os(err, "becoming user %u", plan->inside_uid);
    return 0;
}

/* After the change of user, which would undo it. Not dumpable: nobody of the same user may trace
 * PID 1 or open its memory, its program or its descriptors. */
static int tie_to_parent(struct box *box, struct err *err)
{
    (void)box;
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
        return err_os(err, "tying our life to the supervisor's");
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        return err_os(err, "closing our memory to others");
    return 0;
}

/* Out of a template we are in the user namespace all sandboxes of its spawner begin in, and have
 * its rights over the mounts. One of our own gives up those, and counts processes for us alone:
 * it comes before the limits, which would otherwise hold for the others, too. Its maps are files
 * of our own /proc, ours only as long as we are dumpable. */
static int enter_userns(struct box *box, struct err *err)
{
    const struct box_plan *plan = box->plan;

    if (!box->prepared)
        return 0;
    if (unshare(CLONE_NEWUSER) < 0)
        return err_os(err, "entering a user namespace");
    if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)
        return err_os(err, "opening our id maps");
    if (idmap_write(1, plan->inside_uid, plan->inside_uid, plan->inside_gid, plan->inside_gid, 1,
                    err) < 0)
        return -1;
    return tie_to_parent(box, err);
}

static int name_host(struct box *box, struct err *err)
{
    const char *name = plan_text(box->plan, box->plan->hostname);

    if (sethostname(name, strlen(name)) < 0)
        return err_os(err, "setting the host name");
    return 0;
}

/* Nobody could use it where no socket can be made; what was made ahead has it up. */
static int close_network(struct box *box, struct err *err)
{
    return box->plan->sockets_none || box->net_ahead ? 0 : loopback_up(err);
}

/* Of this network namespace. Where we may not write, what is said here holds less:
 *
 *    tcp_fastopen    data before a connection stands would go out without connect(); the filters
 *                    refuse it, too, and so does egress
 *    tcp_syncookies  of more connections at once than wait at a listener, some stand for who made
 *                    them and not for egress: whoever waits there to be greeted waits for ever */
static void settle_tcp(const struct box *box)
{
    static const char *const off[] = {"sys/net/ipv4/tcp_fastopen", "sys/net/ipv4/tcp_syncookies"};
    const struct box_mount *mounts = plan_array(box->plan, box->plan->mounts);
    AUTO_FD int own_fd = -1;
    struct err ignored;
    int proc_fd = -1; /* a template shows no /proc, but we have the one that is to be mounted */

    for (uint32_t i = 0; i < box->plan->mount_n; i++)
        if (mounts[i].kind == MOUNT_PROC)
            proc_fd = box->tree_fds[i];
    if (proc_fd < 0)
        proc_fd = own_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; proc_fd >= 0 && i < COUNT(off); i++)
        (void)!file_write(proc_fd, off[i], "0", &ignored);
}

/* Everything after this step meets the way out as it is; the other end of the pair is outer's. */
static int open_egress(struct box *box, struct err *err)
{
    const struct box_plan *plan = box->plan;
    int fds[HANDOVER_FD_COUNT];
    int failed;

    if (plan->egress_fd < 0)
        return 0;
    settle_tcp(box);
    if (egress_build(plan_array(plan, plan->egress_ports), plan->egress_port_n, fds, err) < 0)
        return -1;
    failed = egress_hand_over(plan->egress_fd, fds, err);
    (void)close(plan->egress_fd);
    return failed;
}

static int set_rlimits(struct box *box, struct err *err)
{
    const struct box_rlimit *limits = plan_array(box->plan, box->plan->rlimits);

    for (uint32_t i = 0; i < box->plan->rlimit_n; i++) {
        struct rlimit limit = {limits[i].value, limits[i].value};

        if (setrlimit((__rlimit_resource_t)limits[i].resource, &limit) < 0)
            return err_os(err, "setting resource limit %u", limits[i].resource);
    }
    return 0;
}

/* So many of the processors we may use, beginning at the one we happen to run on. */
static int stay_on_processors(struct box *box, struct err *err)
{
    cpu_set_t allowed, chosen;
    unsigned wanted = box->plan->cpus;
    unsigned first = (unsigned)sched_getcpu(); /* a failed call starts somewhere, too */

    if (wanted == 0)
        return 0;
    if (sched_getaffinity(0, sizeof allowed, &allowed) < 0)
        return err_os(err, "reading the processors we may use");
    CPU_ZERO(&chosen);
    for (unsigned i = 0; i < CPU_SETSIZE && (unsigned)CPU_COUNT(&chosen) < wanted; i++) {
        unsigned cpu = (first + i) % CPU_SETSIZE;

        if (CPU_ISSET(cpu, &allowed))
            CPU_SET(cpu, &chosen);
    }
    if (sched_setaffinity(0, sizeof chosen, &chosen) < 0)
        return err_os(err, "staying on %u processors", wanted);
    return 0;
}

/* The supervisor counts our processes and what they hold; it sees them through our /proc, and
 * what lies in memory without being in one of them through our /dev/shm. */
static int show_processes(struct box *box, struct err *err)
{
    AUTO_FD int proc_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    AUTO_FD int shm_fd = open("/dev/shm", O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (proc_fd < 0 || shm_fd < 0)
        return err_os(err, "opening /proc and /dev/shm");
    if (fd_send(box->sync_fd, proc_fd, err) < 0)
        return -1;
    return fd_send(box->sync_fd, shm_fd, err);
}

static int enter_cgroupns(struct box *box, struct err *err)
{
    (void)box;
    if (unshare(CLONE_NEWCGROUP) < 0)
        return err_os(err, "entering a cgroup namespace");
    return 0;
}

/* As an object inside the new root, through no link; the command inherits it. */
static int enter_workdir(struct box *box, struct err *err)
{
    const char *path = plan_text(box->plan, box->plan->workdir);
    AUTO_FD int fd = sys_openat2(AT_FDCWD, path, O_PATH | O_DIRECTORY, RESOLVE_NO_SYMLINKS);

    if (fd < 0)
        return err_os(err, "working directory %s", path);
    if (fchdir(fd) < 0)
        return err_os(err, "entering %s", path);
    return 0;
}

static int drop_capabilities(struct box *box, struct err *err)
{
    (void)box;
    return caps_drop_all(err);
}

static int forbid_new_privileges(struct box *box, struct err *err)
{
    (void)box;
    return no_new_privs(err);
}

int allow_opened(const struct box_plan *plan, const struct box_path *path, int fd, int ruleset_fd,
                 struct err *err)
{
    const char *name = plan_text(plan, path->path);
    uint64_t rights = path->list_only ? LANDLOCK_READ_DIR : LANDLOCK_READ;

    if (fd < 0 && errno == ENOENT && path->optional)
        return 0;
    if (fd < 0)
        return err_os(err, "opening %s for Landlock", name);
    if (path->write)
        rights |= LANDLOCK_WRITE;
    if (path->exec)
        rights |= LANDLOCK_EXECUTE;
    if (path->device)
        rights |= LANDLOCK_IOCTL_DEV;
    if (landlock_allow(ruleset_fd, plan->landlock_abi, fd, rights, err) < 0)
        return err_in(err, "%s", name);
    return 0;
}

static int allow_path(const struct box_plan *plan, const struct box_path *path, int ruleset_fd,
                      struct err *err)
{
    AUTO_FD int fd = open(plan_text(plan, path->path), O_PATH | O_CLOEXEC);

    return allow_opened(plan, path, fd, ruleset_fd, err);
}

static int apply_landlock(struct box *box, struct err *err)
{
    const struct box_path *paths = plan_array(box->plan, box->plan->paths);
    AUTO_FD int ruleset = TAKE_FD(box->ahead.ruleset_fd);
    bool begun = ruleset >= 0;

    if (!begun && landlock_open(box->plan->landlock_abi, &ruleset, err) < 0)
        return -1;
    for (uint32_t i = 0; i < box->plan->path_n; i++)
        if (!(begun && box->covered[i]) && allow_path(box->plan, &paths[i], ruleset, err) < 0)
            return -1;
    return landlock_enforce(ruleset, err);
}

/* With a way out, outer hears of every connect() from now on. */
static int load_arguments(const struct box *box, struct err *err)
{
    AUTO_FD int heard_fd = -1;

    if (box->plan->egress_fd < 0)
        return seccomp_load(seccomp_arguments, seccomp_arguments_n, err);
    if (seccomp_load_heard(seccomp_egress, seccomp_egress_n, &heard_fd, err) < 0)
        return -1;
    return fd_send(box->sync_fd, heard_fd, err);
}

/* Outer hears of every program that is tried besides the one. */
static int load_once(const struct box *box, struct err *err)
{
    AUTO_FD int heard_fd = -1;

    if (!box->plan->exec_once || box_lacks("one program"))
        return 0;
    return once_load(&heard_fd, err) < 0 ? -1 : fd_send(box->sync_fd, heard_fd, err);
}

/* Of several that refuse, the one loaded last says how: the narrower ones come first. */
static int load_seccomp(struct box *box, struct err *err)
{
    if (box->plan->sockets_none && !box_lacks("no sockets") &&
        seccomp_load(seccomp_sockets, seccomp_sockets_n, err) < 0)
        return -1;
    if (load_once(box, err) < 0 || load_arguments(box, err) < 0)
        return -1;
    if (box->plan->watch_memory_bytes &&
        seccomp_load(seccomp_segments, seccomp_segments_n, err) < 0)
        return -1;
    return seccomp_load(seccomp_names, seccomp_names_n, err);
}

/* The order is the design: each step uses a right that a later one gives up.
 *
 *  - the cgroups come first, entered as whoever made them; later we are nobody to them. Out of a
 *    template we always were, and join through what outer opens, as late as it has had time to;
 *  - their namespace follows, so that our leaf looks like the root of them;
 *  - then the user: files we make must belong to somebody the maps know, and the tie to the
 *    supervisor would not survive the change;
 *  - the way out is made while we may, and before a root is entered whose /proc is read-only;
 *  - the root is built while we still have CAP_SYS_ADMIN in our own namespaces;
 *  - a user namespace of our own, where we begin in a template's, follows the last mount;
 *  - resource limits come after the mounts, which a file size limit could hinder;
 *  - the working directory is opened with a call the seccomp filter does not let through;
 *  - capabilities go after the last mount;
 *  - no_new_privs precedes Landlock and seccomp, which the kernel refuses without it;
 *  - Landlock needs to open paths, so it precedes the filters;
 *  - seccomp is last, because it forbids most of what the steps above do. */
static const struct {
    const char *name;
    int (*run)(struct box *box, struct err *err);
} steps[] = {
    {"template",          enter_mounts         },
    {"group membership",  enter_groups         },
    {"user",              become_user          },
    {"parent",            tie_to_parent        },
    {"host name",         name_host            },
    {"network",           close_network        },
    {"egress",            open_egress          },
    {"root filesystem",   root_build           },
    {"group membership",  join_groups          },
    {"cgroup namespace",  enter_cgroupns       },
    {"supervision",       show_processes       },
    {"user namespace",    enter_userns         },
    {"resource limits",   set_rlimits          },
    {"processors",        stay_on_processors   },
    {"working directory", enter_workdir        },
    {"capabilities",      drop_capabilities    },
    {"no new privileges", forbid_new_privileges},
    {"landlock",          apply_landlock       },
    {"seccomp",           load_seccomp         },
};

int steps_run(struct box *box, struct err *err)
{
    for (size_t i = 0; i < COUNT(steps); i++)
        if (!box_lacks(steps[i].name) && steps[i].run(box, err) < 0)
            return err_in(err, "%s", steps[i].name);
    return 0;
}
