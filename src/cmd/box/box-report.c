/* SPDX-License-Identifier: Apache-2.0 */

/* What PID 1 sees once every wall stands, as text in sections:
 *
 *     "= " name " " bytes "\n" then so many bytes
 *
 *     mountinfo   the kernel's own table, after the root was entered
 *     targets     "index device inode" of what is found where the plan binds something
 *     namespaces  "name inode"
 *     net         /proc/self/net/dev
 *     rlimits     "resource soft hard"
 *     processors  how many we may run on
 *     probes      "name outcome": forbidden things that were tried; "refused" is what we want
 *
 * When PID 1 parks, nothing of the caller's has run yet, so all of this is ours. Later ones ask PID
 * 1 of a kept sandbox again, before every command. It looks again at all that can have become
 * different since (decision 0018):
 *
 *     always      interfaces, limits, processors
 *     by event    the mount table, and what is found where the plan binds something: the kernel
 *                 tells whoever polls the table of every change. Renaming a folder that something
 *                 is mounted below is none; where such folders can be renamed, both are looked at
 *                 each time
 *     never       what a process cannot lose and nobody else can take from it: its namespaces, its
 *                 filters and its Landlock domain */

#include "cmd/box/box.h"

#include "lib/base/buf.h"
#include "lib/base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

static int add_section(struct buf *report, const char *name, const struct buf *body,
                       struct err *err)
{
    if (buf_addf(report, err, "= %s %zu\n", name, body->n) < 0)
        return -1;
    return buf_add(report, buf_text(body), body->n, err);
}

static int see_file(const struct box *box, const char *path, struct buf *body, struct err *err)
{
    (void)box;
    return file_read(AT_FDCWD, path, body, err);
}

static int see_mounts(const struct box *box, struct buf *body, struct err *err)
{
    return see_file(box, "/proc/self/mountinfo", body, err);
}

static int see_net(const struct box *box, struct buf *body, struct err *err)
{
    return see_file(box, "/proc/self/net/dev", body, err);
}

static int see_targets(const struct box *box, struct buf *body, struct err *err)
{
    const struct box_mount *mounts = plan_array(box->plan, box->plan->mounts);

    for (uint32_t i = 0; i < box->plan->mount_n; i++) {
        bool bound = mounts[i].kind == MOUNT_BIND || mounts[i].kind == MOUNT_LAYER ||
                     mounts[i].kind == MOUNT_PROTECTED;
        struct stat st;

        if (!bound || lstat(plan_text(box->plan, mounts[i].target), &st) < 0)
            continue; /* absent from the list is a difference the caller notices */
        if (buf_addf(body, err, "%u %llu %llu\n", i, (unsigned long long)st.st_dev,
                     (unsigned long long)st.st_ino) < 0)
            return -1;
    }
    return 0;
}

static int see_namespaces(const struct box *box, struct buf *body, struct err *err)
{
    static const char *const names[] = {"user", "mnt", "pid", "net", "ipc", "uts", "cgroup"};

    (void)box;
    for (size_t i = 0; i < COUNT(names); i++) {
        char path[64];
        struct stat st;

        (void)snprintf(path, sizeof path, "/proc/self/ns/%s", names[i]);
        if (stat(path, &st) < 0)
            return err_os(err, "looking at %s", path);
        if (buf_addf(body, err, "%s %llu\n", names[i], (unsigned long long)st.st_ino) < 0)
            return -1;
    }
    return 0;
}

static int see_rlimits(const struct box *box, struct buf *body, struct err *err)
{
    const struct box_rlimit *limits = plan_array(box->plan, box->plan->rlimits);

    for (uint32_t i = 0; i < box->plan->rlimit_n; i++) {
        struct rlimit limit;

        if (getrlimit((__rlimit_resource_t)limits[i].resource, &limit) < 0)
            return err_os(err, "reading resource limit %u", limits[i].resource);
        if (buf_addf(body, err, "%u %llu %llu\n", limits[i].resource,
                     (unsigned long long)limit.rlim_cur, (unsigned long long)limit.rlim_max) < 0)
            return -1;
    }
    return 0;
}

static int see_processors(const struct box *box, struct buf *body, struct err *err)
{
    cpu_set_t set;

    (void)box;
    if (sched_getaffinity(0, sizeof set, &set) < 0)
        return err_os(err, "reading the processors we may use");
    return buf_addf(body, err, "%d\n", CPU_COUNT(&set));
}

/* Mounts and owner would allow each of these: only Landlock or the filters stand in the way. */
static int make_in_run(void)
{
    int fd = open("/run/probe", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (fd >= 0) {
        (void)close(fd);
        (void)unlink("/run/probe");
        return 0;
    }
    return -1;
}

static int make_folder_in_run(void)
{
    return mkdir("/run/probe", 0700) == 0 ? rmdir("/run/probe") : -1;
}

static int change_personality(void)
{
    return personality(ADDR_NO_RANDOMIZE) == -1 ? -1 : 0;
}

static int open_crypto_socket(void)
{
    int fd = socket(AF_ALG, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    (void)close(fd);
    return 0;
}

static int open_socket(void)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    (void)close(fd);
    return 0;
}

static int open_socket_pair(void)
{
    int fds[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
        return -1;
    (void)close(fds[0]);
    (void)close(fds[1]);
    return 0;
}

static int make_user_namespace(void)
{
    return unshare(CLONE_NEWUSER);
}

static bool is_once;

static int exec_again(void)
{
    return is_once ? once_probe() : 0;
}

static const struct {
    const char *name;
    int (*attempt)(void);
    int refusal; /* the errno of the wall itself, not of the kernel behind it */
} probes[] = {
    {"landlock_make_file",   make_in_run,         EACCES      },
    {"landlock_make_folder", make_folder_in_run,  EACCES      },
    {"seccomp_personality",  change_personality,  ENOSYS      },
    {"seccomp_socket",       open_crypto_socket,  EAFNOSUPPORT},
    {"seccomp_namespace",    make_user_namespace, EPERM       },
    {"sockets_any",          open_socket,         EACCES      }, /* only where none are allowed */
    {"sockets_pair",         open_socket_pair,    EACCES      },
    {"exec_again",           exec_again,          EPERM       }, /* only where one program runs */
};

static int see_probes(const struct box *box, struct buf *body, struct err *err)
{
    is_once = box->plan->exec_once != 0; /* asking costs a process */
    for (size_t i = 0; i < COUNT(probes); i++) {
        bool refused = probes[i].attempt() < 0 && errno == probes[i].refusal;

        if (buf_addf(body, err, "%s %s\n", probes[i].name, refused ? "refused" : "allowed") < 0)
            return -1;
    }
    return 0;
}

enum how_often { ALWAYS, BY_EVENT, ONCE };

static const struct {
    const char *name;
    int (*see)(const struct box *box, struct buf *body, struct err *err);
    enum how_often again;
} sections[] = {
    {"mountinfo",  see_mounts,     BY_EVENT},
    {"targets",    see_targets,    BY_EVENT},
    {"namespaces", see_namespaces, ONCE    },
    {"net",        see_net,        ALWAYS  },
    {"rlimits",    see_rlimits,    ALWAYS  },
    {"processors", see_processors, ALWAYS  },
    {"probes",     see_probes,     ONCE    },
};

static int add_seen(const struct box *box, size_t i, struct buf *report, struct err *err)
{
    AUTO_BUF struct buf body = BUF(BOX_REPORT_MAX);

    if (sections[i].see(box, &body, err) < 0 ||
        add_section(report, sections[i].name, &body, err) < 0)
        return err_in(err, "reporting %s", sections[i].name);
    return 0;
}

int report_send(const struct box *box, struct err *err)
{
    AUTO_BUF struct buf report = BUF(BOX_REPORT_MAX);
    struct box_message parked = {.kind = BOX_PARKED};

    for (size_t i = 0; i < COUNT(sections); i++)
        if (add_seen(box, i, &report, err) < 0)
            return -1;
    if (message_send(BOX_FD_INSIDE, &parked, err) < 0)
        return -1;
    if (send(BOX_FD_INSIDE, report.p, report.n, MSG_NOSIGNAL) != (ssize_t)report.n)
        return err_os(err, "sending the report");
    return 0;
}

/* ---- again ---- */

/* Of PID 1 only: a process that is forked from it shares the open table, and with it who was told
 * of a change. */
static struct {
    int table_fd;    /* /proc/self/mountinfo; 0: not opened yet */
    uint64_t number; /* of the report */
    struct buf report;
    size_t at[COUNT(sections) + 1]; /* where each section begins in it */
} last = {.report = {.max = BOX_REPORT_MAX}};

static bool is_below(const char *path, const char *folder)
{
    size_t n = strlen(folder);

    if (strcmp(folder, "/") == 0)
        return strcmp(path, "/") != 0;
    return strncmp(path, folder, n) == 0 && path[n] == '/';
}

/* Below something that can be written, what is mounted can be moved by the name of a folder it is
 * in. The plan stays the same, so this is found out once. */
static bool mounts_can_move(const struct box_plan *plan)
{
    static enum { UNKNOWN, NEVER, SOME } known;
    const struct box_mount *mounts = plan_array(plan, plan->mounts);

    for (uint32_t i = 0; known == UNKNOWN && i < plan->mount_n; i++)
        for (uint32_t j = 0; mounts[i].writable && j < plan->mount_n; j++)
            if (mounts[j].kind != MOUNT_SYMLINK && mounts[j].kind != MOUNT_FOLDER &&
                mounts[j].kind != MOUNT_FILE &&
                is_below(plan_text(plan, mounts[j].target), plan_text(plan, mounts[i].target)))
                known = SOME;
    if (known == UNKNOWN)
        known = NEVER;
    return known == SOME;
}

static bool table_has_changed(const struct box *box)
{
    struct pollfd polled = {.events = POLLPRI};

    if (last.table_fd <= 0) {
        last.table_fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
        return true;
    }
    polled.fd = last.table_fd;
    return poll(&polled, 1, 0) != 0 || mounts_can_move(box->plan);
}

static int look_again(const struct box *box, struct err *err)
{
    struct buf report = BUF(BOX_REPORT_MAX);
    bool changed = table_has_changed(box);
    size_t at[COUNT(sections) + 1] = {0};
    int failed = 0;

    for (size_t i = 0; i < COUNT(sections) && !failed; i++) {
        bool again = !last.number || sections[i].again == ALWAYS ||
                     (sections[i].again == BY_EVENT && changed);

        failed =
            again ? add_seen(box, i, &report, err)
                  : buf_add(&report, last.report.p + last.at[i], last.at[i + 1] - last.at[i], err);
        at[i + 1] = report.n;
    }
    if (failed == 0 &&
        (report.n != last.report.n || memcmp(report.p, last.report.p, report.n) != 0)) {
        struct buf before = last.report;

        last.report = report;
        report = before;
        memcpy(last.at, at, sizeof at);
        last.number++;
    }
    buf_done(&report);
    return failed;
}

void report_prepare(const struct box *box)
{
    struct err ignored; /* then it is said when somebody asks */

    (void)!look_again(box, &ignored);
}

int report_answer(const struct box *box, int fd, uint64_t number, struct err *err)
{
    const struct buf *report = &last.report;
    struct box_message parked = {.kind = BOX_PARKED};

    if (look_again(box, err) < 0)
        return -1;
    parked.value = last.number;
    if (send(fd, &parked, sizeof parked, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)sizeof parked ||
        (number != last.number &&
         send(fd, report->p, report->n, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)report->n))
        return err_os(err, "sending the report");
    return 0;
}
