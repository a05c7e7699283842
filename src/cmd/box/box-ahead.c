/* SPDX-License-Identifier: Apache-2.0 */

/* Made ahead: what a sandbox has for itself but nothing of its run decides.
 *
 * Beside every template lives the process that built it. Whenever it is asked it makes a set: a
 * network namespace with `lo` up, an IPC and a UTS namespace, a copy of the template's mounts with
 * the file systems that are each sandbox's own, and a Landlock ruleset with the rules that hold for
 * all sandboxes of the template. A set is taken by one sandbox, once; whoever finds none ready
 * makes all of it itself. Making a network namespace takes the kernel longer than anything else,
 * and another processor does it while the sandbox before runs.
 *
 * This process is in the template's user namespace and never in a sandbox's PID namespace. It reads
 * one byte per set, and ends with the spawner or its template. */

#include "cmd/box/box.h"

#include "lib/linux/fd-pass.h"
#include "lib/linux/landlock.h"
#include "lib/linux/process.h"
#include "lib/linux/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>

/* As box_lacks(): namespaces shared with the host. */
#ifndef BOX_WITHOUT_NAMESPACES
#define BOX_WITHOUT_NAMESPACES 0
#endif
#define READY 4 /* sets; each is 0.3 MiB of kernel memory */
#define FIRST_WAIT_MS 1000

/* ---- Landlock rules that hold for every sandbox of the template ---- */

static bool is_within(const char *path, const char *folder)
{
    size_t n = strlen(folder);

    return strncmp(path, folder, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

/* Whether the path leads to the same thing in all of them, or to one that a set brings along. */
static bool is_ahead(const struct box_plan *plan, const char *path)
{
    const struct box_mount *mounts = plan_array(plan, plan->mounts);

    for (uint32_t i = 0; i < plan->mount_n; i++)
        if (!root_is_shared(&mounts[i]) && !root_is_ahead(&mounts[i]) &&
            is_within(path, plan_text(plan, mounts[i].target)))
            return false;
    return true;
}

static struct box_path rule_of(const struct box_path *path)
{
    struct box_path rule = *path;

    rule.path = 0;
    return rule;
}

int ahead_rules(const struct box_plan *plan, struct buf *out, struct err *err)
{
    const struct box_path *paths = plan_array(plan, plan->paths);

    for (uint32_t i = 0; i < plan->path_n; i++) {
        const char *path = plan_text(plan, paths[i].path);
        struct box_path rule = rule_of(&paths[i]);

        if (is_ahead(plan, path) && (buf_add(out, &rule, sizeof rule, err) < 0 ||
                                     buf_add(out, path, strlen(path) + 1, err) < 0))
            return -1;
    }
    return 0;
}

bool ahead_covers(const struct box_plan *plan, struct str rules, bool *covered)
{
    const struct box_path *paths = plan_array(plan, plan->paths);

    for (uint32_t i = 0; i < plan->path_n; i++) {
        const char *path = plan_text(plan, paths[i].path);
        struct box_path rule = rule_of(&paths[i]);
        size_t n = sizeof rule + strlen(path) + 1;

        covered[i] = rules.n >= n && memcmp(rules.p, &rule, sizeof rule) == 0 &&
                     memcmp(rules.p + sizeof rule, path, n - sizeof rule) == 0;
        if (covered[i])
            rules = (struct str){rules.p + n, rules.n - n};
    }
    return rules.n == 0;
}

/* A link on the way may lead to what is a sandbox's own: /var/tmp to its /tmp. Then no rules are
 * made ahead, and *out stays as it is. */
static int open_rules(const struct box_plan *plan, int *out, struct err *err)
{
    const struct box_path *paths = plan_array(plan, plan->paths);
    AUTO_FD int ruleset = -1;

    if (landlock_open(plan->landlock_abi, &ruleset, err) < 0)
        return -1;
    for (uint32_t i = 0; i < plan->path_n; i++) {
        const char *path = plan_text(plan, paths[i].path);
        AUTO_FD int fd = -1;

        if (!is_ahead(plan, path))
            continue;
        fd = sys_openat2(AT_FDCWD, path, O_PATH, RESOLVE_NO_SYMLINKS);
        if (fd < 0 && errno == ELOOP)
            return 0;
        if (allow_opened(plan, &paths[i], fd, ruleset, err) < 0)
            return -1;
    }
    *out = TAKE_FD(ruleset);
    return 0;
}

/* ---- a set ---- */

struct maker {
    const struct box_plan *plan;
    int mount_fd;  /* the template's mounts, to come back to */
    int spaces_fd; /* our /proc/self/ns, which no path leads to from there */
};

static int open_space(const struct maker *maker, const char *name, int *out, struct err *err)
{
    *out = openat(maker->spaces_fd, name, O_RDONLY | O_CLOEXEC);
    return *out < 0 ? err_os(err, "opening the %s namespace of a set", name) : 0;
}

static int make_spaces(const struct maker *maker, struct ahead *out, struct err *err)
{
    int flags = CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET;

    if (maker->plan->sockets_none)
        flags &= ~CLONE_NEWNET; /* the template's own serves all */
    flags &= ~BOX_WITHOUT_NAMESPACES;
    if (unshare(flags) < 0)
        return err_os(err, "making the namespaces of a set");
    if ((flags & CLONE_NEWNET) &&
        (loopback_up(err) < 0 || open_space(maker, "net", &out->net_fd, err) < 0))
        return -1;
    if ((flags & CLONE_NEWIPC) && open_space(maker, "ipc", &out->ipc_fd, err) < 0)
        return -1;
    return flags & CLONE_NEWUTS ? open_space(maker, "uts", &out->uts_fd, err) : 0;
}

static int make_mounts(const struct maker *maker, struct ahead *out, struct err *err)
{
    if (unshare(CLONE_NEWNS) < 0)
        return err_os(err, "copying the mounts of the template");
    if (root_attach_ahead(maker->plan, err) < 0 ||
        open_space(maker, "mnt", &out->mount_fd, err) < 0 ||
        open_rules(maker->plan, &out->ruleset_fd, err) < 0)
        return -1;
    if (setns(maker->mount_fd, CLONE_NEWNS) < 0)
        return err_os(err, "going back to the template");
    return 0;
}

void ahead_close_spaces(struct ahead *ahead)
{
    int *fds[] = {&ahead->net_fd, &ahead->ipc_fd, &ahead->uts_fd, &ahead->mount_fd};

    for (size_t i = 0; i < COUNT(fds); i++)
        if (*fds[i] >= 0)
            (void)close(TAKE_FD(*fds[i]));
}

void ahead_close(struct ahead *ahead)
{
    ahead_close_spaces(ahead);
    if (ahead->ruleset_fd >= 0)
        (void)close(TAKE_FD(ahead->ruleset_fd));
}

/* Which of them a message carries: those that are there, in the order of struct ahead. */
static int send_set(int fd, const struct ahead *set, struct err *err)
{
    const int all[AHEAD_FDS] = {set->net_fd, set->ipc_fd, set->uts_fd, set->mount_fd,
                                set->ruleset_fd};
    int fds[AHEAD_FDS];
    unsigned char there = 0;
    size_t n = 0;

    for (size_t i = 0; i < AHEAD_FDS; i++)
        if (all[i] >= 0) {
            there |= (unsigned char)(1U << i);
            fds[n++] = all[i];
        }
    return fds_send(fd, &there, 1, fds, n, err);
}

/* A name of its own in the list of processes. Nobody of the same user may look into it. */
static int settle_down(struct err *err)
{
    (void)prctl(PR_SET_NAME, "box-ahead", 0, 0, 0);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        return err_os(err, "tying our life to the spawner's");
    return 0;
}

void ahead_serve(const struct box_plan *plan, int mount_fd, int spaces_fd, int fd)
{
    struct maker maker = {plan, mount_fd, spaces_fd};
    struct err err;
    char asked;

    if (settle_down(&err) < 0)
        _exit(1);
    for (;;) {
        struct ahead set = AHEAD_NONE;
        ssize_t got = recv(fd, &asked, 1, 0);

        if (got < 0 && errno == EINTR)
            continue;
        /* What cannot be made ahead is made, and told of, by the sandbox that needs it. */
        if (got != 1 || make_spaces(&maker, &set, &err) < 0 ||
            make_mounts(&maker, &set, &err) < 0 || send_set(fd, &set, &err) < 0)
            _exit(got == 0 ? 0 : 1);
        ahead_close(&set);
    }
}

/* ---- the spawner's side ---- */

static void ask(struct template *template)
{
    if (send(template->maker_fd, "m", 1, MSG_NOSIGNAL | MSG_DONTWAIT) != 1)
        (void)close(TAKE_FD(template->maker_fd)); /* it has ended: sandboxes do without */
}

/* The sandbox the template was built for takes the first one: it would only do the same itself. */
void ahead_begin(struct template *template)
{
    struct pollfd polled = {.events = POLLIN};

    for (int i = 0; i < READY && template->maker_fd >= 0; i++)
        ask(template);
    polled.fd = template->maker_fd;
    (void)poll(&polled, 1, FIRST_WAIT_MS); /* none in time: it does */
}

void ahead_take(struct template *template, struct ahead *out)
{
    int *fds[AHEAD_FDS] = {&out->net_fd, &out->ipc_fd, &out->uts_fd, &out->mount_fd,
                           &out->ruleset_fd};
    int came[FD_PASS_MAX];
    unsigned char there = 0;
    size_t n = 0, taken = 0;
    struct err ignored; /* nothing is ready */
    int got;

    *out = (struct ahead)AHEAD_NONE;
    if (template->maker_fd < 0)
        return;
    got = fds_receive_any(template->maker_fd, &there, 1, came, &n, &ignored);
    for (size_t i = 0; got == 1 && i < AHEAD_FDS; i++)
        if ((there & 1U << i) && taken < n)
            *fds[i] = came[taken++];
    while (taken < n)
        (void)close(came[taken++]);
    if (got == 1)
        ask(template);
    else if (got == 0)
        (void)close(TAKE_FD(template->maker_fd));
}
