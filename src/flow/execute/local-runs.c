/* SPDX-License-Identifier: Apache-2.0 */

/* What a run leaves on the machine while it exists: a folder under the state directory with the
 * writable layer in it, and cgroups of the same name. Whoever finds the folder with its lock free
 * knows that every process that could have cleaned up is dead, and does it for them. */

#include "flow/execute/local.h"

#include "lib/base/clock.h"
#include "lib/base/io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#define REMOVE_WAIT_MS 2000
#define SWEEP_MAX 1000
#define LOCK_WAIT_US 5000000U
#define LOCK_PAUSE_US 500U

void cgroup_name_of(const char *run_id, char out[CGROUP_NAME_BYTES])
{
    (void)snprintf(out, CGROUP_NAME_BYTES, "brig-%s", run_id);
}

int layer_fd(struct local *local, const char *name, struct err *err)
{
    char path[RUN_DIR_BYTES + 32];
    struct layer *layer;

    for (size_t i = 0; i < local->layer_n; i++)
        if (strcmp(local->layers[i].name, name) == 0)
            return local->layers[i].fd;
    if (local->layer_n == LAYERS_MAX || strlen(name) >= sizeof layer->name)
        return err_set(err, ERR_INTERNAL, "there is no room for the layer \"%s\"", name);
    (void)snprintf(path, sizeof path, "%s/%s", local->run_dir, name);
    layer = &local->layers[local->layer_n];
    layer->fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (layer->fd < 0)
        return err_os(err, "opening %s", path);
    (void)strcpy(layer->name, name);
    local->layer_n++;
    return layer->fd;
}

/* A folder the sandbox's user owns, whoever that is outside. */
static int make_folder(const struct run *run, int dir_fd, const char *name, unsigned mode,
                       struct err *err)
{
    if (mkdirat(dir_fd, name, 0700) < 0 || fchmodat(dir_fd, name, mode, 0) < 0)
        return err_os(err, "creating the layer \"%s\"", name);
    if (run->offer.started_by_root &&
        fchownat(dir_fd, name, run->offer.host_uid, run->offer.host_gid, AT_SYMLINK_NOFOLLOW) < 0)
        return err_os(err, "giving the layer \"%s\" to the sandbox", name);
    return 0;
}

/* The folder itself shows through from below with everything but its mode, which is the upper's. */
static unsigned layer_mode(const struct plan_mount *mount)
{
    struct stat st;

    if (mount->lower_n && lstat(mount->lowers[0].path, &st) == 0)
        return st.st_mode & 01777;
    return strcmp(mount->source, "tmp") == 0 ? 01777
           : strcmp(mount->target, "/") == 0 ? 0755
                                             : 0700;
}

/* What is written to it; when something lies below, overlayfs wants a folder to work in, too. */
static int make_layer(const struct run *run, int dir_fd, const struct plan_mount *mount,
                      struct err *err)
{
    struct stat st;
    char work[64];

    if (fstatat(dir_fd, mount->source, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return 0; /* two places may show one layer */
    if (make_folder(run, dir_fd, mount->source, layer_mode(mount), err) < 0)
        return -1;
    if (mount->lower_n == 0)
        return 0;
    (void)snprintf(work, sizeof work, "%.40s" LAYER_WORK, mount->source);
    return make_folder(run, dir_fd, work, 0700, err);
}

int layers_make(struct run *run, struct local *local, struct err *err)
{
    AUTO_FD int dir = open(local->run_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (dir < 0)
        return err_os(err, "opening %s", local->run_dir);
    for (size_t i = 0; i < run->plan.mount_n; i++)
        if (run->plan.mounts[i].kind == MOUNT_LAYER &&
            make_layer(run, dir, &run->plan.mounts[i], err) < 0)
            return -1;
    return 0;
}

/* A sweeper may come between the making of the file and the lock, take it for a dead run's and
 * remove it: then it is made again. */
static int make_lock(const char *path, int *out, struct err *err)
{
    uint64_t deadline_us = clock_us() + LOCK_WAIT_US;

    while (clock_us() < deadline_us) {
        AUTO_FD int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        struct stat st;

        if (fd < 0)
            return err_os(err, "creating %s", path);
        if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
            if (errno != EWOULDBLOCK && errno != EINTR)
                return err_os(err, "locking %s", path);
            (void)usleep(LOCK_PAUSE_US);
            continue;
        }
        if (fstat(fd, &st) < 0)
            return err_os(err, "looking at %s", path);
        if (st.st_nlink > 0) {
            *out = TAKE_FD(fd);
            return 0;
        }
    }
    return err_set(err, ERR_TIMEOUT, "%s: somebody else holds it", path);
}

/* Between two sandboxes out of the pool a run keeps the lock it had: whoever finds it free closes
 * the run. */
static bool has_lock(const struct execute *execute, const struct run *run)
{
    return execute->run_lock_fd >= 0 && strcmp(execute->run_lock_of, run->id) == 0;
}

void run_lock_keep(struct execute *execute, const struct run *run, struct local *local)
{
    execute->run_lock_fd = TAKE_FD(local->lock_fd);
    memcpy(execute->run_lock_of, run->id, sizeof run->id);
    local->cleared = false;
}

void run_lock_drop(struct execute *execute)
{
    char lock[RUN_DIR_BYTES];

    if (execute->run_lock_fd < 0)
        return;
    (void)snprintf(lock, sizeof lock, "%.2000s/runs/%s.lock", execute->state_dir,
                   execute->run_lock_of);
    (void)unlink(lock);
    (void)close(TAKE_FD(execute->run_lock_fd));
}

/* STATE/FOLDER/RUN with its lock taken; the folder itself is the caller's to make. */
static int claim(struct execute *execute, const char *folder, struct run *run,
                 char dir[RUN_DIR_BYTES], int *lock_fd, struct err *err)
{
    char runs[RUN_DIR_BYTES / 2];
    char lock[RUN_DIR_BYTES + 16];

    (void)snprintf(runs, sizeof runs, "%s/%s", execute->state_dir, folder);
    /* What one-shot runs leave behind is little, and gone at once. */
    if (strcmp(folder, "boxes") == 0) {
        if (dir_make_apart(AT_FDCWD, runs, err) < 0)
            return -1;
    } else if (mkdir(runs, 0700) < 0 && errno != EEXIST) {
        return err_os(err, "creating %s", runs);
    }
    (void)snprintf(dir, RUN_DIR_BYTES, "%s/%s", runs, run->id);
    (void)snprintf(lock, sizeof lock, "%s.lock", dir);
    if (strcmp(folder, "runs") == 0 && has_lock(execute, run)) {
        *lock_fd = TAKE_FD(execute->run_lock_fd);
        return 0;
    }
    if (make_lock(lock, lock_fd, err) < 0)
        return -1;
    if (has_lock(execute, run))
        run_lock_drop(execute);
    return 0;
}

int exec_lock_make(struct execute *execute, struct run *run, struct local *local, struct err *err)
{
    const char *word = run->action.kind != ACTION_EXEC ? "change"
                       : run->action.detach            ? "detached"
                                                       : "exec";

    if (claim(execute, "runs", run, local->exec_dir, &local->lock_fd, err) < 0)
        return -1;
    local->cleared = true; /* there is nothing but the lock */
    if (dprintf(local->lock_fd, "%s %s\n", word, run->sandbox_id) < 0)
        return err_os(err, "writing %s.lock", local->exec_dir);
    return 0;
}

int run_dir_make(struct execute *execute, struct run *run, struct local *local, struct err *err)
{
    const char *folder = action_keeps(run->action.kind) ? "boxes" : "runs";

    if (claim(execute, folder, run, local->run_dir, &local->lock_fd, err) < 0)
        return -1;
    if (mkdir(local->run_dir, 0700) < 0)
        return err_os(err, "creating %s", local->run_dir);
    return layers_make(run, local, err);
}

static int remove_groups(const char *run_id, struct err *err)
{
    struct cgroup_host host; /* outlives the set, which borrows it */
    AUTO_CGROUP_SET struct cgroup_set set = {0};
    char name[CGROUP_NAME_BYTES];

    cgroup_name_of(run_id, name);
    if (cgroup_probe(&host, err) < 0)
        return -1;
    if (host.tree_n == 0 || cgroup_set_find(&host, name, &set, err) < 0)
        return 0; /* there are none */
    if (cgroup_set_kill(&set, REMOVE_WAIT_MS, err) < 0)
        return -1;
    return cgroup_set_remove(&set, REMOVE_WAIT_MS, err);
}

int run_remove(int runs_fd, const char *run_id, struct err *err)
{
    char lock[64];

    (void)snprintf(lock, sizeof lock, "%.20s.lock", run_id);
    if (remove_groups(run_id, err) < 0 || dir_remove(runs_fd, run_id, err) < 0)
        return -1;
    return dir_remove(runs_fd, lock, err);
}

/* box removes the folder itself; what is left means that it could not. */
static bool clear_folder(const struct local *local)
{
    const char *name = strrchr(local->run_dir, '/');
    struct err ignored; /* what stays is found by the next sweep */

    if (!name || local->stays || local->joined)
        return false;
    return access(local->run_dir, F_OK) < 0 ||
           (remove_groups(name + 1, &ignored) == 0 &&
            dir_remove(AT_FDCWD, local->run_dir, &ignored) == 0);
}

void run_dir_clear(struct local *local)
{
    for (size_t i = 0; i < local->layer_n; i++)
        (void)close(local->layers[i].fd);
    local->layer_n = 0;
    if (local->execs_fd >= 0)
        (void)close(TAKE_FD(local->execs_fd));
    if (local->control_fd >= 0)
        (void)close(TAKE_FD(local->control_fd));
    local->cleared = local->cleared || clear_folder(local);
}

void run_dir_close(struct local *local)
{
    char lock[RUN_DIR_BYTES + 16];

    (void)snprintf(lock, sizeof lock, "%s.lock", local->joined ? local->exec_dir : local->run_dir);
    if (local->cleared)
        (void)unlink(lock);
    if (local->lock_fd >= 0)
        (void)close(TAKE_FD(local->lock_fd));
}

/* Nobody holds the lock of a dead run. */
static bool is_dead(int runs_fd, const char *lock_name, int *out_fd)
{
    int fd = openat(runs_fd, lock_name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    struct stat st;

    if (fd < 0)
        return false;
    /* Without a name it was removed, by whoever ended in order, since we opened it. */
    if (flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &st) < 0 || st.st_nlink == 0) {
        (void)close(fd);
        return false;
    }
    *out_fd = fd;
    return true;
}

enum reason reason_in(int lock_fd)
{
    char text[64];
    ssize_t n = lock_fd < 0 ? -1 : pread(lock_fd, text, sizeof text - 1, 0);

    text[n > 0 ? n : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    for (enum reason reason = REASON_NONE; reason < REASON_COUNT; reason++)
        if (*text && strcmp(reason_code(reason), text) == 0)
            return reason;
    return REASON_RUN_ABANDONED;
}

/* ---- clearing up ---- */

struct sweep {
    const struct execute *execute;
    int (*on_dead)(void *context, const struct dead *dead, struct err *err);
    void *context;
    const char *over; /* a kept sandbox whose lock we hold, because it is over; or NULL */
};

/* Why a sandbox that a command was detached in is over. Whoever destroys one in order removes its
 * lock, and nobody else does before its commands have been told about. */
static enum reason why_over(const struct execute *execute, const char *sandbox)
{
    char path[RUN_DIR_BYTES];
    AUTO_FD int fd = -1;

    (void)snprintf(path, sizeof path, "%.2000s/boxes/%s.lock", execute->state_dir, sandbox);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    return fd < 0 && errno == ENOENT ? REASON_SANDBOX_DESTROYED : reason_in(fd);
}

/* A detached command is told about once; what is kept of its output stays as long as its
 * sandbox does. */
static int sweep_detached(const struct sweep *sweep, int runs_fd, int lock_fd,
                          const struct dead *dead, bool *stays, struct err *err)
{
    struct outcome outcome = {0};
    struct dead told = *dead;
    char sandbox[ID_BYTES];
    bool recorded = false;
    enum reason why;

    *stays = false;
    if (!detached_lock(lock_fd, sandbox, &recorded))
        return sweep->on_dead(sweep->context, dead, err);
    why = why_over(sweep->execute, sandbox);
    *stays = why == REASON_RUN_ABANDONED && kept_is_held(sweep->execute, sandbox) &&
             !(sweep->over && strcmp(sweep->over, sandbox) == 0);
    if (recorded)
        return 0;
    if (detached_outcome(runs_fd, dead->id, &outcome))
        told.outcome = &outcome;
    else if (why != REASON_RUN_ABANDONED) {
        detached_taken(runs_fd, dead->id, why, &outcome);
        told.outcome = &outcome;
    }
    if (sweep->on_dead(sweep->context, &told, err) < 0)
        return -1;
    if (*stays && (lseek(lock_fd, 0, SEEK_END) < 0 || dprintf(lock_fd, "recorded\n") < 0))
        return err_os(err, "noting that the end of %s was recorded", dead->id);
    return 0;
}

static int sweep_folder(const struct sweep *sweep, bool kept, struct err *err);

/* The commands that were detached in it first: afterwards nobody knows why it ended. */
static int sweep_kept(const struct sweep *sweep, const struct dead *dead, struct err *err)
{
    struct sweep with_it = *sweep;

    with_it.over = dead->id;
    if (sweep_folder(&with_it, false, err) < 0)
        return -1;
    return sweep->on_dead(sweep->context, dead, err);
}

static int sweep_one(const struct sweep *sweep, int runs_fd, const char *lock_name, bool kept,
                     struct err *err)
{
    struct dead dead = {.kept = kept};
    bool stays = false;
    size_t n = strlen(lock_name);
    AUTO_FD int lock_fd = -1;
    char id[ID_BYTES];

    if (n != ID_BYTES - 1 + strlen(".lock") || strcmp(lock_name + ID_BYTES - 1, ".lock") != 0 ||
        !is_dead(runs_fd, lock_name, &lock_fd))
        return 0;
    memcpy(id, lock_name, ID_BYTES - 1);
    id[ID_BYTES - 1] = '\0';
    /* The receipt comes before the traces go: dying here only repeats the work. */
    dead.id = id;
    dead.reason = reason_in(lock_fd);
    if (kept ? sweep_kept(sweep, &dead, err) < 0
             : sweep_detached(sweep, runs_fd, lock_fd, &dead, &stays, err) < 0)
        return -1;
    return stays ? 0 : run_remove(runs_fd, id, err);
}

static int sweep_folder(const struct sweep *sweep, bool kept, struct err *err)
{
    char path[RUN_DIR_BYTES];
    DIR *dir;
    const struct dirent *entry;
    int failed = 0;

    (void)snprintf(path, sizeof path, "%.2000s/%s", sweep->execute->state_dir,
                   kept ? "boxes" : "runs");
    dir = opendir(path);
    if (!dir)
        return errno == ENOENT ? 0 : err_os(err, "opening %s", path);
    for (unsigned seen = 0; !failed && seen < SWEEP_MAX && (entry = readdir(dir)) != NULL; seen++)
        failed = sweep_one(sweep, dirfd(dir), entry->d_name, kept, err);
    (void)closedir(dir);
    return failed;
}

int execute_sweep(struct execute *execute,
                  int (*on_dead)(void *context, const struct dead *dead, struct err *err),
                  void *context, struct err *err)
{
    struct sweep sweep = {.execute = execute, .on_dead = on_dead, .context = context};

    local_reap(execute);
    joints_forget(execute);
    return sweep_folder(&sweep, false, err) < 0 ? -1 : sweep_folder(&sweep, true, err);
}
