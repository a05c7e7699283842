/* SPDX-License-Identifier: Apache-2.0 */

/* Templates: what all sandboxes of one plan have in common, built once.
 *
 * A template is four namespaces that no process has to live in (its builder does, box-ahead.c): a
 * user namespace with the ids of the sandbox, a mount namespace that sees what this machine sees,
 * one whose root is that of a sandbox, read-only and without what is each one's own, and a network
 * namespace with nothing in it, for sandboxes that can make no socket to use one. Every sandbox
 * gets a copy of the last one from the kernel. It is found again by all of the plan it was made
 * from, the identity of every source included: when the machine changes, the next plan is another
 * one. */

#include "cmd/box/box.h"

#include "lib/base/buf.h"
#include "lib/base/limits.h"
#include "lib/base/memory.h"
#include "lib/linux/fd-pass.h"
#include "lib/linux/process.h"
#include "lib/linux/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define TEMPLATES_MAX 8
#define BUILD_WAIT_MS 10000

struct templates {
    struct {
        struct buf key;
        struct template template;
    } of[TEMPLATES_MAX];
    size_t n;
    size_t next; /* to give way when there is no room */
};

struct templates *templates_new(void)
{
    return xcalloc(1, sizeof(struct templates));
}

/* ---- which one ---- */

static int key_mount(const struct box_plan *plan, const struct box_mount *mount, struct buf *key,
                     struct err *err)
{
    struct box_mount same = *mount;
    const char *source = plan_text(plan, mount->source);
    const char *target = plan_text(plan, mount->target);

    if (mount->kind == MOUNT_PROTECTED)
        return 0;                                /* below something that is not in the template */
    same.source = same.target = same.lowers = 0; /* where they stand differs with every command */
    if (!root_is_shared(mount) && !root_is_ahead(mount)) {
        /* Only its place belongs to the template. */
        same = (struct box_mount){.kind = mount->kind, .is_file = mount->is_file};
        source = "";
    }
    if (buf_add(key, &same, sizeof same, err) < 0 ||
        buf_add(key, source, strlen(source) + 1, err) < 0)
        return -1;
    return buf_add(key, target, strlen(target) + 1, err);
}

static int make_key(const struct box_plan *plan, struct buf *key, struct err *err)
{
    const struct box_mount *mounts = plan_array(plan, plan->mounts);
    uint32_t ids[] = {plan->inside_uid,      plan->inside_gid,   plan->host_uid,    plan->host_gid,
                      plan->started_by_root, plan->sockets_none, plan->landlock_abi};

    if (buf_add(key, ids, sizeof ids, err) < 0)
        return -1;
    for (uint32_t i = 0; i < plan->mount_n; i++)
        if (key_mount(plan, &mounts[i], key, err) < 0)
            return -1;
    return 0;
}

/* ---- making one ---- */

static int open_namespaces(struct template *out, struct err *err)
{
    out->user_fd = open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);
    out->host_fd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    if (out->user_fd < 0 || out->host_fd < 0)
        return err_os(err, "opening our namespaces");
    /* What is mounted on the machine later shows here, too; never the other way round. */
    if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0 || unshare(CLONE_NEWNS) < 0)
        return err_os(err, "separating our mounts from the host's");
    out->mount_fd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    if (unshare(CLONE_NEWNET) < 0)
        return err_os(err, "making a network namespace");
    out->net_fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    return out->mount_fd < 0 || out->net_fd < 0 ? err_os(err, "opening our namespaces") : 0;
}

/* Builds it, and from then on makes sets of it ahead. What our spawner holds is none of ours. */
static NORETURN void be_builder(const struct box_plan *plan, int from_fd)
{
    const int sync_fd = SPAWN_FD;
    struct box box = {.plan = plan, .sync_fd = sync_fd, .ahead = AHEAD_NONE, .spawner_fd = -1};
    struct template made = {-1, -1, -1, -1, -1, BUF(0)};
    AUTO_FD int spaces_fd = -1;
    struct err err;

    if (dup3(from_fd, sync_fd, O_CLOEXEC) < 0 || close_range(SPAWN_FD + 1, ~0U, 0) < 0)
        _exit(2);
    spaces_fd = open("/proc/self/ns", O_PATH | O_DIRECTORY | O_CLOEXEC);

    for (size_t i = 0; i < BOX_MOUNTS_MAX; i++)
        box.tree_fds[i] = -1;
    if (become_user(&box, &err) == 0 && open_namespaces(&made, &err) == 0 &&
        root_build_template(&box, &err) == 0) {
        int fds[] = {made.user_fd, made.host_fd, made.mount_fd, made.net_fd};
        struct err done = {.code = 0};

        if (fds_send(sync_fd, &done, sizeof done, fds, COUNT(fds), &err) == 0 && spaces_fd >= 0)
            ahead_serve(plan, made.mount_fd, spaces_fd, sync_fd);
        _exit(1);
    }
    _exit(send(sync_fd, &err, sizeof err, MSG_NOSIGNAL) < 0 ? 2 : 1);
}

static int await_template(int sync_fd, struct template *out, struct err *err)
{
    struct pollfd polled = {.fd = sync_fd, .events = POLLIN};
    struct err answer;
    int fds[4];
    int n;

    do
        n = poll(&polled, 1, BUILD_WAIT_MS);
    while (n < 0 && errno == EINTR);
    if (n != 1)
        return err_set(err, ERR_TIMEOUT, "the template was not built in time");
    n = fds_receive(sync_fd, &answer, sizeof answer, fds, COUNT(fds), err);
    if (n < 0)
        return -1;
    if (n != (int)sizeof answer)
        return err_set(err, ERR_UNAVAILABLE, "the builder of the template is gone");
    if (fds[0] < 0) {
        *err = answer;
        return -1;
    }
    *out = (struct template){fds[0], fds[1], fds[2], fds[3], -1, BUF(BOX_PLAN_MAX)};
    return 0;
}

static int build(const struct box_plan *plan, struct template *out, struct err *err)
{
    struct clone_request request = {.flags = CLONE_NEWUSER | CLONE_NEWNS, .cgroup_fd = -1};
    AUTO_FD int pidfd = -1;
    AUTO_FD int ours = -1;
    AUTO_FD int theirs = -1;
    uint32_t host_uid = box_lacks("foreign id") ? 0 : plan->host_uid;
    int sync[2];
    int failed;
    pid_t pid;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sync) < 0)
        return err_os(err, "making a socket to the builder");
    ours = sync[0];
    theirs = sync[1];
    pid = sys_clone(&request, &pidfd);
    if (pid < 0)
        return err_os(err, "making a user namespace");
    if (pid == 0) {
        (void)close(ours);
        be_builder(plan, theirs);
    }
    (void)close(TAKE_FD(theirs));
    failed = idmap_write(pid, plan->inside_uid, host_uid, plan->inside_gid, plan->host_gid,
                         !plan->started_by_root, err);
    if (!failed && send(ours, "r", 1, MSG_NOSIGNAL) != 1)
        failed = err_os(err, "telling the builder to go on");
    if (!failed)
        failed = await_template(ours, out, err);
    if (!failed && ahead_rules(plan, &out->rules, err) == 0 &&
        fcntl(ours, F_SETFL, O_NONBLOCK) == 0) {
        out->maker_fd = TAKE_FD(ours);
        ahead_begin(out);
        return 0;
    }
    (void)pidfd_send_signal(pidfd, SIGKILL, NULL, 0);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    return failed < 0 ? err_in(err, "template") : 0;
}

static void template_done(struct template *template)
{
    const int fds[] = {template->user_fd, template->host_fd, template->mount_fd, template->net_fd,
                       template->maker_fd};

    for (size_t i = 0; i < COUNT(fds); i++)
        if (fds[i] >= 0)
            (void)close(fds[i]);
    buf_done(&template->rules);
}

int templates_find(struct templates *templates, const struct box_plan *plan, struct template **out,
                   struct err *err)
{
    AUTO_BUF struct buf key = BUF(BOX_PLAN_MAX);
    struct template made;
    size_t at;

    if (make_key(plan, &key, err) < 0)
        return -1;
    for (size_t i = 0; i < templates->n; i++)
        if (templates->of[i].key.n == key.n && memcmp(templates->of[i].key.p, key.p, key.n) == 0) {
            *out = &templates->of[i].template;
            return 0;
        }
    if (build(plan, &made, err) < 0)
        return -1;
    at = templates->n < TEMPLATES_MAX ? templates->n++ : templates->next++ % TEMPLATES_MAX;
    if (templates->of[at].key.p) {
        buf_done(&templates->of[at].key);
        template_done(&templates->of[at].template);
    }
    templates->of[at].key = key;
    key = BUF(0);
    templates->of[at].template = made;
    *out = &templates->of[at].template;
    return 0;
}
