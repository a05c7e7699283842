/* SPDX-License-Identifier: Apache-2.0 */

/* PID 1 out of a template.
 *
 * A PID namespace belongs to the user namespace of whoever makes it, and only children are in it.
 * So somebody between outer and PID 1 enters the template's user namespace, makes PID 1 there as a
 * child of outer's, and is gone. On the way it opens an ordinary user's sources where this
 * machine's mounts are seen. PID 1 begins there, too, and mounts its /proc before it goes where
 * there is none. Outer makes the groups meanwhile. */

#include "cmd/box/box.h"

#include "lib/linux/cgroup.h"
#include "lib/linux/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/wait.h>

/* As box_lacks(): namespaces shared with the host. */
#ifndef BOX_WITHOUT_NAMESPACES
#define BOX_WITHOUT_NAMESPACES 0
#endif
#define NAMESPACES (CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS)

/* What the one between tells outer before it ends. */
struct told {
    pid_t pid; /* 0: there is none, and err says why */
    struct err err;
};

static int enter_ahead(const struct ahead *ahead, struct err *err)
{
    if ((ahead->net_fd >= 0 && setns(ahead->net_fd, CLONE_NEWNET) < 0) ||
        (ahead->ipc_fd >= 0 && setns(ahead->ipc_fd, CLONE_NEWIPC) < 0) ||
        (ahead->uts_fd >= 0 && setns(ahead->uts_fd, CLONE_NEWUTS) < 0))
        return err_os(err, "entering the namespaces that were made ahead");
    return 0;
}

/* What is still to be made together with PID 1. */
static uint64_t namespaces_of(const struct box *box)
{
    uint64_t flags = NAMESPACES & ~(uint64_t)BOX_WITHOUT_NAMESPACES;

    if (box->plan->sockets_none || box->ahead.net_fd >= 0)
        flags &= ~(uint64_t)CLONE_NEWNET;
    if (box->ahead.ipc_fd >= 0)
        flags &= ~(uint64_t)CLONE_NEWIPC;
    if (box->ahead.uts_fd >= 0)
        flags &= ~(uint64_t)CLONE_NEWUTS;
    return flags;
}

static int enter_namespaces(struct box *box, struct err *err)
{
    if (setns(box->template.user_fd, CLONE_NEWUSER) < 0)
        return err_os(err, "entering the user namespace of the template");
    /* It cannot be used from inside: there is nothing to keep apart. */
    if (box->plan->sockets_none && setns(box->template.net_fd, CLONE_NEWNET) < 0)
        return err_os(err, "entering the network namespace of the template");
    if (enter_ahead(&box->ahead, err) < 0)
        return -1;
    if (setns(box->template.host_fd, CLONE_NEWNS) < 0)
        return err_os(err, "entering the mounts of this machine");
    return box->plan->started_by_root ? 0 : root_open_sources(box, false, err);
}

static void close_template(const struct template *template)
{
    (void)close(template->user_fd);
    (void)close(template->host_fd);
    (void)close(template->mount_fd);
    (void)close(template->net_fd);
}

/* The kernel mounts a /proc only where another can be seen whole, and a template shows none. */
int enter_mounts(struct box *box, struct err *err)
{
    bool ahead = box->ahead.mount_fd >= 0;

    if (!box->prepared)
        return 0;
    if (root_open_proc(box, err) < 0)
        return -1;
    if (setns(ahead ? box->ahead.mount_fd : box->template.mount_fd, CLONE_NEWNS) < 0)
        return err_os(err, "entering the mounts of the template");
    if (!ahead && unshare(CLONE_NEWNS) < 0)
        return err_os(err, "copying the mounts of the template");
    close_template(&box->template);
    ahead_close_spaces(&box->ahead);
    return 0;
}

static int make_inside(struct box *box, struct told *told, struct err *err)
{
    struct clone_request request = {.flags = namespaces_of(box) | CLONE_PARENT, .cgroup_fd = -1};
    AUTO_FD int pidfd = -1;
    pid_t pid;

    if (enter_namespaces(box, err) < 0)
        return -1;
    pid = sys_clone(&request, &pidfd);
    if (pid < 0)
        return err_os(err, "making the namespaces of the sandbox");
    if (pid == 0) {
        if (box->groups)
            cgroup_set_done(box->groups); /* our copy: outer keeps its own */
        be_inside(box);
    }
    told->pid = pid;
    return 0;
}

int enter_begin(struct box *box, int cgroup_fd, struct entering *out, struct err *err)
{
    struct clone_request request = {.cgroup_fd = cgroup_fd};
    AUTO_FD int between_fd = -1;
    struct told *told =
        mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t between;

    if (told == MAP_FAILED)
        return err_os(err, "making room for an answer");
    between = sys_clone(&request, &between_fd);
    if (between == 0)
        _exit(make_inside(box, told, &told->err) < 0 ? 1 : 0);
    if (between < 0)
        return err_os(err, "making a process of the sandbox");
    *out = (struct entering){between, told};
    return 0;
}

int enter_end(struct box *box, const struct entering *entering, pid_t *pid, int *pidfd,
              struct err *err)
{
    struct told *told = entering->told;

    while (waitpid(entering->between, NULL, 0) < 0 && errno == EINTR)
        continue;
    close_template(&box->template);
    /* Its mounts stay until we end ourselves. With the last process in it gone, the kernel takes a
     * mount namespace apart at once and waits for all processors on the way; so nobody waits for
     * that but us, who have nothing left to do. */
    box->ahead.mount_fd = -1;
    ahead_close(&box->ahead);
    if (told->pid <= 0) {
        *err = told->err;
        return told->err.text[0] ? -1 : err_set(err, ERR_UNAVAILABLE, "a process was killed");
    }
    *pid = told->pid;
    /* Our child, not yet waited for: the number cannot be somebody else's. */
    *pidfd = pidfd_open(*pid, 0);
    (void)munmap(told, sizeof *told);
    return *pidfd < 0 ? err_os(err, "opening PID 1 of the sandbox") : 0;
}
