/* SPDX-License-Identifier: Apache-2.0 */
#include "flow/execute/local.h"

#include "lib/base/buf.h"
#include "lib/base/io.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* Puts n bytes at the end, aligned for any member, and answers where they are. */
static int put(struct buf *block, const void *bytes, size_t n, uint32_t *out, struct err *err)
{
    static const char zeros[8];

    if (block->n % 8 && buf_add(block, zeros, 8 - block->n % 8, err) < 0)
        return -1;
    *out = (uint32_t)block->n;
    return buf_add(block, bytes, n, err);
}

static int put_text(struct buf *block, const char *text, uint32_t *out, struct err *err)
{
    *out = (uint32_t)block->n;
    return buf_add(block, text, strlen(text) + 1, err);
}

static int put_words(struct buf *block, struct words words, uint32_t *at, uint32_t *n,
                     struct err *err)
{
    AUTO_FREE uint32_t *texts = xcalloc(words.n + 1, sizeof *texts);

    for (size_t i = 0; i < words.n; i++)
        if (put_text(block, words.v[i], &texts[i], err) < 0)
            return -1;
    *n = (uint32_t)words.n;
    return put(block, texts, words.n * sizeof *texts, at, err);
}

/* A folder of the run's own layer: its identity is known only now that it was made. */
static int locate_layer(struct local *local, const struct plan_mount *mount, struct box_mount *out,
                        int *fd, struct err *err)
{
    struct stat st;

    *fd = layer_fd(local, mount->source, err);
    if (*fd < 0)
        return -1;
    if (fstat(*fd, &st) < 0)
        return err_os(err, "looking at the layer \"%s\"", mount->source);
    out->device = st.st_dev;
    out->inode = st.st_ino;
    return 0;
}

static int put_lowers(struct buf *block, const struct plan_mount *mount, struct box_mount *out,
                      struct err *err)
{
    AUTO_FREE struct box_lower *lowers = xcalloc(mount->lower_n + 1, sizeof *lowers);

    if (mount->lower_n > BOX_LOWERS_MAX)
        return err_set(err, ERR_LIMIT, "more than %d layers", BOX_LOWERS_MAX);
    for (size_t i = 0; i < mount->lower_n; i++) {
        lowers[i].device = mount->lowers[i].device;
        lowers[i].inode = mount->lowers[i].inode;
        if (put_text(block, mount->lowers[i].path, &lowers[i].path, err) < 0)
            return -1;
    }
    out->lower_n = (uint32_t)mount->lower_n;
    return put(block, lowers, mount->lower_n * sizeof *lowers, &out->lowers, err);
}

static int put_mount(struct buf *block, struct run *run, struct local *local,
                     const struct plan_mount *mount, struct handed *handed, struct box_mount *out,
                     struct err *err)
{
    char layer[RUN_DIR_BYTES + 16];
    const char *source = mount->source;
    int fd = mount->fd;

    *out = (struct box_mount){
        .kind = mount->kind,
        .fd = -1,
        .device = mount->device,
        .inode = mount->inode,
        .size_bytes = mount->size_bytes,
        .idmap_uid = mount->owner_uid,
        .idmap_gid = mount->owner_gid,
        .writable = mount->access == MOUNT_RW,
        .noexec = mount->noexec,
        .is_file = mount->is_file,
        .idmapped = mount->idmapped,
        .is_device = mount->is_device,
        .own = mount->kind == MOUNT_LAYER || mount->from_user || mount->is_trust,
    };
    if (mount->kind == MOUNT_LAYER) {
        if (locate_layer(local, mount, out, &fd, err) < 0)
            return -1;
        (void)snprintf(layer, sizeof layer, "%s/%s", local->run_dir, mount->source);
        source = layer;
    }
    /* An ordinary user's box must open its sources itself, in its own mount namespace. */
    if (fd >= 0 && run->offer.started_by_root) {
        out->fd = (int32_t)(BOX_FD_FIRST_MOUNT + (int)handed->n);
        handed->fds[handed->n++] = fd;
    }
    if (put_text(block, source, &out->source, err) < 0 || put_lowers(block, mount, out, err) < 0)
        return -1;
    return put_text(block, mount->target, &out->target, err);
}

static int put_mounts(struct buf *block, struct run *run, struct local *local,
                      struct handed *handed, struct box_plan *plan, struct err *err)
{
    AUTO_FREE struct box_mount *mounts = xcalloc(run->plan.mount_n + 1, sizeof *mounts);

    if (run->plan.mount_n > BOX_MOUNTS_MAX)
        return err_set(err, ERR_LIMIT, "more than %d mounts", BOX_MOUNTS_MAX);
    for (size_t i = 0; i < run->plan.mount_n; i++)
        if (put_mount(block, run, local, &run->plan.mounts[i], handed, &mounts[i], err) < 0)
            return -1;
    plan->mount_n = (uint32_t)run->plan.mount_n;
    return put(block, mounts, run->plan.mount_n * sizeof *mounts, &plan->mounts, err);
}

static int put_paths(struct buf *block, const struct run *run, struct box_plan *plan,
                     struct err *err)
{
    AUTO_FREE struct box_path *paths = xcalloc(run->plan.path_n + 1, sizeof *paths);

    for (size_t i = 0; i < run->plan.path_n; i++) {
        const struct plan_path *path = &run->plan.paths[i];

        paths[i] = (struct box_path){.write = path->write,
                                     .exec = path->exec,
                                     .device = path->device,
                                     .list_only = path->list_only,
                                     .optional = path->optional};
        if (put_text(block, path->path, &paths[i].path, err) < 0)
            return -1;
    }
    plan->path_n = (uint32_t)run->plan.path_n;
    return put(block, paths, run->plan.path_n * sizeof *paths, &plan->paths, err);
}

static int put_rlimits(struct buf *block, const struct run *run, struct box_plan *plan,
                       struct err *err)
{
    struct box_rlimit limits[RLIMITS_MAX] = {{0}};

    for (size_t i = 0; i < run->plan.rlimit_n; i++)
        limits[i] = (struct box_rlimit){.value = run->plan.rlimits[i].value,
                                        .resource = run->plan.rlimits[i].resource};
    plan->rlimit_n = (uint32_t)run->plan.rlimit_n;
    return put(block, limits, run->plan.rlimit_n * sizeof *limits, &plan->rlimits, err);
}

static uint64_t held_by(const struct run *run, enum limit_kind kind, enum limit_means means)
{
    const struct limit *limit = &run->plan.limits.of[kind];

    return limit->means == means ? limit->value : 0;
}

static void put_limits(const struct run *run, struct box_plan *plan)
{
    plan->cgroup_memory_bytes = held_by(run, LIMIT_MEMORY, MEANS_CGROUP);
    plan->cgroup_pids = held_by(run, LIMIT_PIDS, MEANS_CGROUP);
    plan->cgroup_cpu_millis = held_by(run, LIMIT_CPU, MEANS_CGROUP);
    plan->watch_memory_bytes = held_by(run, LIMIT_MEMORY, MEANS_WATCH);
    plan->watch_disk_bytes = held_by(run, LIMIT_DISK, MEANS_WATCH);
    plan->watch_inodes = held_by(run, LIMIT_INODES, MEANS_WATCH);
    plan->pids = run->plan.limits.of[LIMIT_PIDS].value;
    plan->cpus = (uint32_t)(held_by(run, LIMIT_CPU, MEANS_AFFINITY) / 1000);
}

/* The sockets of a kept sandbox go along behind the mounts. */
static void put_kept(const struct run *run, const struct local *local, struct handed *handed,
                     struct box_plan *plan)
{
    const struct lifetime *life = &run->action.lifetime;

    if (!action_keeps(run->action.kind))
        return;
    plan->execs_fd = (int32_t)(BOX_FD_FIRST_MOUNT + (int)handed->n);
    handed->fds[handed->n++] = local->execs_fd;
    plan->control_fd = (int32_t)(BOX_FD_FIRST_MOUNT + (int)handed->n);
    handed->fds[handed->n++] = local->control_fd;
    plan->prepared = run->action.kind == ACTION_PREPARE;
    plan->ttl_ms = life->ttl_ms;
    plan->idle_ms = life->idle_ms;
    plan->max_ms = life->max_ms;
}

/* The way out: box's end of the pair over which egress gets its listeners. */
static int put_egress(struct buf *block, const struct run *run, struct handed *handed,
                      struct box_plan *plan, struct err *err)
{
    const struct plan_egress *egress = &run->plan.egress;

    if (egress->handover_fd < 0)
        return 0;
    plan->egress_fd = (int32_t)(BOX_FD_FIRST_MOUNT + (int)handed->n);
    handed->fds[handed->n++] = egress->handover_fd;
    plan->egress_port_n = (uint32_t)egress->port_n;
    return put(block, egress->ports, egress->port_n * sizeof *egress->ports, &plan->egress_ports,
               err);
}

/* All that is looked at when it is for a sandbox that stands. */
static int put_command(struct buf *block, const struct run *run, const struct local *local,
                       struct box_plan *plan, struct err *err)
{
    if (put_text(block, run->plan.hostname, &plan->hostname, err) < 0 ||
        put_text(block, run->plan.workdir, &plan->workdir, err) < 0 ||
        put_text(block, run->id, &plan->run_id, err) < 0 ||
        put_text(block, local->run_dir, &plan->run_dir, err) < 0 ||
        put_words(block, run->action.argv, &plan->argv, &plan->argv_n, err) < 0)
        return -1;
    return put_words(block, run->plan.env, &plan->env, &plan->env_n, err);
}

static int put_walls(struct buf *block, struct run *run, struct local *local, struct handed *handed,
                     struct box_plan *plan, struct err *err)
{
    char group[CGROUP_NAME_BYTES];

    if (put_mounts(block, run, local, handed, plan, err) < 0 ||
        put_paths(block, run, plan, err) < 0 || put_rlimits(block, run, plan, err) < 0 ||
        put_egress(block, run, handed, plan, err) < 0)
        return -1;
    put_limits(run, plan);
    put_kept(run, local, handed, plan);
    /* Not mentioned anywhere: box only has to keep it open. */
    if (run->plan.hold_fd >= 0)
        handed->fds[handed->n++] = run->plan.hold_fd;
    for (size_t i = 0; i < run->plan.base_hold_n; i++)
        handed->fds[handed->n++] = run->plan.base_holds[i];
    if (!plan->cgroup_memory_bytes && !plan->cgroup_pids && !plan->cgroup_cpu_millis)
        return 0;
    cgroup_name_of(run->sandbox_id, group);
    if (put_text(block, group, &plan->cgroup_name, err) < 0)
        return -1;
    return put(block, local->groups, sizeof *local->groups, &plan->cgroup_host, err);
}

/* The command's terminal is as large as its caller said, else as ours, before it begins. */
static void put_size(const struct action *action, struct box_plan *plan)
{
    struct winsize size = {.ws_row = action->tty_rows, .ws_col = action->tty_columns};
    bool is_said = size.ws_row && size.ws_col;

    if (!plan->tty || (!is_said && ioctl(STDIN_FILENO, TIOCGWINSZ, &size) < 0))
        return;
    plan->tty_rows = size.ws_row;
    plan->tty_columns = size.ws_col;
}

static int seal(const struct buf *block, int *out_fd, struct err *err)
{
    AUTO_FD int fd = memfd_create("brig-plan", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd < 0)
        return err_os(err, "making a file for the plan");
    if (write_all(fd, block->p, block->n, err) < 0)
        return err_in(err, "the plan");
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
        return err_os(err, "sealing the plan");
    *out_fd = TAKE_FD(fd);
    return 0;
}

static void plan_init(const struct run *run, struct box_plan *plan)
{
    *plan = (struct box_plan){
        .magic = BOX_PLAN_MAGIC,
        .version = BOX_PLAN_VERSION,
        .inside_uid = run->plan.inside_uid,
        .inside_gid = run->plan.inside_gid,
        .host_uid = run->offer.host_uid,
        .host_gid = run->offer.host_gid,
        .landlock_abi = run->offer.landlock_abi,
        .started_by_root = run->offer.started_by_root,
        .tty = run->action.tty,
        .keep_background = run->action.keep_background,
        .sockets_none = run->plan.sockets_none,
        .exec_once = run->plan.exec_once,
        .detached = run->action.detach,
        .wall_ms = run->action.detach ? run->action.wall_ms : 0,
        .execs_fd = -1,
        .control_fd = -1,
        .egress_fd = -1,
    };
    put_size(&run->action, plan);
}

static int finish(struct buf *block, struct box_plan *plan, int *out_fd, struct err *err)
{
    plan->size = (uint32_t)block->n;
    memcpy(block->p, plan, sizeof *plan);
    return seal(block, out_fd, err);
}

int box_plan_seal(struct run *run, struct local *local, struct handed *handed, int *out_fd,
                  struct err *err)
{
    AUTO_BUF struct buf block = BUF(BOX_PLAN_MAX);
    struct box_plan plan;

    plan_init(run, &plan);
    if (buf_add(&block, &plan, sizeof plan, err) < 0 ||
        put_command(&block, run, local, &plan, err) < 0 ||
        put_walls(&block, run, local, handed, &plan, err) < 0)
        return err_in(err, "the plan");
    return finish(&block, &plan, out_fd, err);
}

int command_plan_seal(struct run *run, const struct local *local, int *out_fd, struct err *err)
{
    AUTO_BUF struct buf block = BUF(BOX_PLAN_MAX);
    struct box_plan plan;

    plan_init(run, &plan);
    if (buf_add(&block, &plan, sizeof plan, err) < 0 ||
        put_command(&block, run, local, &plan, err) < 0)
        return err_in(err, "the plan of the command");
    return finish(&block, &plan, out_fd, err);
}
