/* SPDX-License-Identifier: Apache-2.0 */

/* A spawner: one process that makes boxes for one owner, each as a fork of itself.
 *
 * It spares every sandbox the start of a program and, with templates, most of its mounts. It
 * reads messages of a fixed size and sealed plans of its owner's, nothing a sandbox wrote, and
 * keeps nothing of a sandbox. All its sandboxes belong to one tenant. When its owner is gone it
 * ends; when it ends, each of its outer processes notices and takes its sandbox down. */

#include "cmd/box/box.h"

#include "lib/base/memory.h"
#include "lib/linux/fd-pass.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/socket.h>

#define HIGH_FD 512 /* above every number box is born with */
#define BESIDES                                                                                    \
    10 /* descriptors of ours a box gets: template, who made it, what was made ahead               \
        */

struct request {
    struct spawn_request head;
    int fds[FD_PASS_MAX];
    size_t fd_n;
};

/* 0: the owner is gone. */
static int take_request(struct request *out, struct err *err)
{
    int got = fds_receive_any(SPAWN_FD, &out->head, sizeof out->head, out->fds, &out->fd_n, err);

    if (got <= 0)
        return got;
    if (got != (int)sizeof out->head || out->head.magic != SPAWN_REQUEST_MAGIC ||
        out->head.version != BOX_PLAN_VERSION || out->head.fd_n != out->fd_n ||
        out->fd_n < BOX_FD_FIRST_MOUNT)
        return err_set(err, ERR_INTEGRITY, "a request that is none");
    return 1;
}

static void close_request(const struct request *request)
{
    for (size_t i = 0; i < request->fd_n; i++)
        (void)close(request->fds[i]);
}

static void refuse(const struct request *request, const struct err *why)
{
    struct box_message failed = {.kind = BOX_FAILED, .err = *why};
    struct err ignored; /* whoever asked is gone */

    if (request->fd_n > BOX_FD_SUPERVISOR &&
        message_send(request->fds[BOX_FD_SUPERVISOR], &failed, &ignored) < 0)
        return;
}

/* The numbers a box is born with, behind them what it has of us, and nothing else. */
static int settle(const struct request *request, const int besides[BESIDES], struct err *err)
{
    int high[FD_PASS_MAX + BESIDES];
    int n = (int)request->fd_n + BESIDES;

    for (int i = 0; i < n; i++) {
        int fd = i < (int)request->fd_n ? request->fds[i] : besides[i - (int)request->fd_n];

        high[i] = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, HIGH_FD);
        if (fd >= 0 && high[i] < 0)
            return err_os(err, "preparing the descriptors of box");
    }
    for (int i = 0; i < n; i++)
        if (high[i] < 0)
            (void)close(i);
        else if (dup3(high[i], i, i > 2 ? O_CLOEXEC : 0) < 0)
            return err_os(err, "preparing the descriptors of box");
    if (close_range((unsigned)n, ~0U, 0) < 0)
        return err_os(err, "closing what is not the box's");
    return 0;
}

/* What was made ahead, and how much of Landlock is in it already. */
static void take_over(struct box *box, const struct template *template, const struct ahead *ahead,
                      int at)
{
    bool *covered = xcalloc(box->plan->path_n + 1, sizeof *covered);

    box->ahead = (struct ahead){
        ahead->net_fd < 0 ? -1 : at,         ahead->ipc_fd < 0 ? -1 : at + 1,
        ahead->uts_fd < 0 ? -1 : at + 2,     ahead->mount_fd < 0 ? -1 : at + 3,
        ahead->ruleset_fd < 0 ? -1 : at + 4,
    };
    box->net_ahead = box->ahead.net_fd >= 0;
    box->mounts_ahead = box->ahead.mount_fd >= 0;
    box->covered = covered;
    if (box->ahead.ruleset_fd >= 0 && !ahead_covers(box->plan, buf_str(&template->rules), covered))
        (void)close(TAKE_FD(box->ahead.ruleset_fd)); /* made for a plan that allows more */
}

static NORETURN void be_outer(const struct request *request, const struct template *template,
                              const struct ahead *ahead, int self_fd)
{
    struct box box = {
        .sync_fd = -1, .prepared = template != NULL, .ahead = AHEAD_NONE, .spawner_fd = -1};
    int besides[BESIDES] = {-1,
                            -1,
                            -1,
                            -1,
                            self_fd,
                            ahead->net_fd,
                            ahead->ipc_fd,
                            ahead->uts_fd,
                            ahead->mount_fd,
                            ahead->ruleset_fd};
    int at = (int)request->fd_n;
    struct err err;

    (void)signal(SIGCHLD, SIG_DFL);
    for (size_t i = 0; i < BOX_MOUNTS_MAX; i++)
        box.tree_fds[i] = -1;
    if (template) {
        besides[0] = template->user_fd;
        besides[1] = template->host_fd;
        besides[2] = template->mount_fd;
        besides[3] = template->net_fd;
    }
    if (settle(request, besides, &err) < 0) {
        refuse(request, &err);
        _exit(1);
    }
    box.template = (struct template){at, at + 1, at + 2, at + 3, -1, BUF(0)};
    box.spawner_fd = at + 4;
    if (plan_open(BOX_FD_PLAN, &box.plan, &err) < 0) {
        struct box_message failed = {.kind = BOX_FAILED, .err = err};

        _exit(message_send(BOX_FD_SUPERVISOR, &failed, &err) < 0 ? 2 : 1);
    }
    if (template)
        take_over(&box, template, ahead, at + 5);
    _exit(outer_run(&box, &err) < 0 ? 1 : 0);
}

/* The plan is looked at only for the template it needs; the box opens it again. */
static int find_template(struct templates *templates, const struct request *request,
                         struct template **out, struct err *err)
{
    const struct box_plan *plan = NULL;
    int failed = 0;

    *out = NULL;
    if (plan_open(request->fds[BOX_FD_PLAN], &plan, err) < 0)
        return -1;
    /* Our working directory is not our owner's. */
    if (plan_text(plan, plan->run_dir)[0] != '/')
        failed = err_set(err, ERR_INVALID, "the state directory is not given as an absolute path");
    else if (root_has_template(plan))
        failed = templates_find(templates, plan, out, err);
    (void)munmap((void *)(uintptr_t)plan, plan->size);
    return failed;
}

static int serve(struct templates *templates, const struct request *request, int self_fd,
                 struct err *err)
{
    struct template *template = NULL;
    struct ahead ahead = AHEAD_NONE;
    pid_t pid;

    if (find_template(templates, request, &template, err) < 0)
        return -1;
    if (template)
        ahead_take(template, &ahead);
    pid = fork();
    if (pid == 0)
        be_outer(request, template, &ahead, self_fd);
    ahead_close(&ahead);
    return pid < 0 ? err_os(err, "making a box") : 0;
}

int spawner_run(void)
{
    struct templates *templates = templates_new();
    int self_fd = pidfd_open(getpid(), 0);
    struct err err;

    if (self_fd < 0)
        return 71;
    /* Signals of the owner's terminal are the owner's to answer. Outer processes are nobody's to
     * wait for: their callers hold on to them by descriptor. */
    (void)setsid();
    (void)signal(SIGCHLD, SIG_IGN);
    for (;;) {
        struct request request = {.fd_n = 0};
        int got = take_request(&request, &err);

        if (got == 0)
            return 0;
        if (got < 0 || serve(templates, &request, self_fd, &err) < 0)
            refuse(&request, &err);
        close_request(&request);
        if (got < 0 && request.fd_n == 0)
            return 71; /* nobody to tell, and the next one would be the same */
    }
}
