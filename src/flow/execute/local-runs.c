/* SPDX-License-Identifier: Apache-2.0 */

/* What a run leaves on the machine while it exists: a folder under the state directory with the
 * writable layer in it, and cgroups of the same name. Whoever finds the folder with its lock free
 * knows that every process that could have cleaned up is dead, and does it for them. */

#include "flow/execute/local.h"

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

void cgroup_name_of(const char *run_id, char out[CGROUP_NAME_BYTES])
{
    (void)snprintf(out, CGROUP_NAME_BYTES, "brig-%s", run_id);
}

static int make_layers(struct run *run, struct local *local, struct err *err)
{
    static const char *const names[] = {"output", "tmp", "home"};
    AUTO_FD int dir = open(local->run_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (dir < 0)
        return err_os(err, "opening %s", local->run_dir);
    for (size_t i = 0; i < COUNT(names); i++) {
        if (mkdirat(dir, names[i], 0700) < 0)
            return err_os(err, "creating %s/%s", local->run_dir, names[i]);
        local->layer_fds[i] = openat(dir, names[i], O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (local->layer_fds[i] < 0)
            return err_os(err, "opening %s/%s", local->run_dir, names[i]);
        if (run->offer.started_by_root && fchownat(dir, names[i], run->offer.host_uid,
                                                   run->offer.host_gid, AT_SYMLINK_NOFOLLOW) < 0)
            return err_os(err, "giving %s/%s to the sandbox", local->run_dir, names[i]);
        if (strcmp(names[i], "tmp") == 0 && fchmodat(dir, names[i], 01777, 0) < 0)
            return err_os(err, "opening %s/%s to all", local->run_dir, names[i]);
    }
    return 0;
}

/* The lock is taken on a file of another name first, so that a sweeper never sees a folder
 * without a lock that somebody is still filling. */
int run_dir_make(const struct execute *execute, struct run *run, struct local *local,
                 struct err *err)
{
    char runs[RUN_DIR_BYTES / 2];
    char lock[RUN_DIR_BYTES + 16];

    (void)snprintf(runs, sizeof runs, "%s/runs", execute->state_dir);
    if (mkdir(runs, 0700) < 0 && errno != EEXIST)
        return err_os(err, "creating %s", runs);
    (void)snprintf(local->run_dir, sizeof local->run_dir, "%s/%s", runs, run->id);
    (void)snprintf(lock, sizeof lock, "%s.lock", local->run_dir);
    local->lock_fd = open(lock, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (local->lock_fd < 0)
        return err_os(err, "creating %s", lock);
    if (flock(local->lock_fd, LOCK_EX | LOCK_NB) < 0)
        return err_os(err, "locking %s", lock);
    if (mkdir(local->run_dir, 0700) < 0)
        return err_os(err, "creating %s", local->run_dir);
    return make_layers(run, local, err);
}

static int remove_groups(const char *run_id, struct err *err)
{
    AUTO_CGROUP_SET struct cgroup_set set = {0};
    struct cgroup_host host;
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

static int remove_run(int runs_fd, const char *run_id, struct err *err)
{
    char lock[64];

    (void)snprintf(lock, sizeof lock, "%.20s.lock", run_id);
    if (remove_groups(run_id, err) < 0 || dir_remove(runs_fd, run_id, err) < 0)
        return -1;
    return dir_remove(runs_fd, lock, err);
}

void run_dir_close(struct local *local)
{
    char lock[RUN_DIR_BYTES + 16];
    const char *name = strrchr(local->run_dir, '/');
    struct err ignored; /* what stays is found by the next sweep */

    for (size_t i = 0; i < COUNT(local->layer_fds); i++)
        if (local->layer_fds[i] >= 0)
            (void)close(local->layer_fds[i]);
    if (name) {
        /* box removes the folder itself; what is left means that it could not. */
        if (access(local->run_dir, F_OK) == 0 &&
            (remove_groups(name + 1, &ignored) < 0 ||
             dir_remove(AT_FDCWD, local->run_dir, &ignored) < 0))
            name = NULL;
        (void)snprintf(lock, sizeof lock, "%s.lock", local->run_dir);
        if (name)
            (void)unlink(lock);
    }
    if (local->lock_fd >= 0)
        (void)close(local->lock_fd);
}

/* Nobody holds the lock of a dead run. */
static bool is_dead(int runs_fd, const char *lock_name, int *out_fd)
{
    int fd = openat(runs_fd, lock_name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);

    if (fd < 0)
        return false;
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        (void)close(fd);
        return false;
    }
    *out_fd = fd;
    return true;
}

static int sweep_one(int runs_fd, const char *lock_name,
                     int (*on_dead_run)(void *context, const char *run_id, struct err *err),
                     void *context, struct err *err)
{
    size_t n = strlen(lock_name);
    AUTO_FD int lock_fd = -1;
    char run_id[ID_BYTES];

    if (n != ID_BYTES - 1 + strlen(".lock") || strcmp(lock_name + ID_BYTES - 1, ".lock") != 0 ||
        !is_dead(runs_fd, lock_name, &lock_fd))
        return 0;
    memcpy(run_id, lock_name, ID_BYTES - 1);
    run_id[ID_BYTES - 1] = '\0';
    /* The receipt comes before the traces go: dying here only repeats the work. */
    if (on_dead_run(context, run_id, err) < 0)
        return -1;
    return remove_run(runs_fd, run_id, err);
}

int execute_sweep(struct execute *execute,
                  int (*on_dead_run)(void *context, const char *run_id, struct err *err),
                  void *context, struct err *err)
{
    char runs[RUN_DIR_BYTES / 2];
    DIR *dir;
    const struct dirent *entry;
    int failed = 0;

    (void)snprintf(runs, sizeof runs, "%s/runs", execute->state_dir);
    dir = opendir(runs);
    if (!dir)
        return errno == ENOENT ? 0 : err_os(err, "opening %s", runs);
    for (unsigned seen = 0; !failed && seen < SWEEP_MAX && (entry = readdir(dir)) != NULL; seen++)
        failed = sweep_one(dirfd(dir), entry->d_name, on_dead_run, context, err);
    (void)closedir(dir);
    return failed;
}
