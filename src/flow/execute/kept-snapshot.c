/* SPDX-License-Identifier: Apache-2.0 */

/* What a kept sandbox has written, put into a snapshot; and the sandbox built again over it.
 *
 * While somebody lives in it, open descriptors could go on writing into what was moved: then it is
 * held still and copied. With nobody in it the layers themselves become the snapshot, which takes
 * no time whatever their size; its PID 1 would go on holding them, so the box is exchanged for one
 * that stands on the snapshot. */

#include "flow/execute/kept.h"
#include "flow/execute/orders.h"

#include "lib/base/clock.h"
#include "lib/base/crash.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/snapshot/snapshot.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* ---- layers ---- */

static bool is_work(const char *name)
{
    size_t n = strlen(name);

    return n > strlen(LAYER_WORK) && strcmp(name + n - strlen(LAYER_WORK), LAYER_WORK) == 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The folders of a sandbox's folder are its layers, besides those overlayfs works in. */
static int list_folders(struct arena *mem, const char *run_dir, bool work, struct words *out,
                        struct err *err)
{
    const char **names = arena_array(mem, const char *, LAYERS_MAX);
    DIR *dir = opendir(run_dir);
    const struct dirent *entry;
    size_t n = 0;

    if (!dir)
        return err_os(err, "opening %s", run_dir);
    while (n < LAYERS_MAX && (entry = readdir(dir)) != NULL) {
        struct stat st;

        if (entry->d_name[0] != '.' && is_work(entry->d_name) == work &&
            fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISDIR(st.st_mode))
            names[n++] = arena_text(mem, str_of(entry->d_name));
    }
    (void)closedir(dir);
    qsort(names, n, sizeof *names, by_name);
    *out = (struct words){names, n};
    return 0;
}

int execute_layer_names(struct execute *execute, struct arena *mem, const char *id,
                        struct words *out, struct err *err)
{
    char run_dir[RUN_DIR_BYTES];

    if (kept_open(execute, id, run_dir, err) < 0)
        return -1;
    return list_folders(mem, run_dir, false, out, err);
}

/* ---- somebody lives in it ---- */

static int copy_held(const char *run_dir, struct snapshot_store *store, struct snapshot *snapshot,
                     struct err *err)
{
    AUTO_FD int dir_fd = open(run_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int fds[LAYERS_MAX];
    size_t n = 0;
    int failed = dir_fd < 0 ? err_os(err, "opening %s", run_dir) : 0;

    for (; !failed && n < snapshot->names.n; n++) {
        fds[n] =
            openat(dir_fd, snapshot->names.v[n], O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fds[n] < 0) {
            failed = err_os(err, "opening %s/%s", run_dir, snapshot->names.v[n]);
            break;
        }
    }
    if (!failed)
        failed = snapshot_copy(store, snapshot, fds, err);
    while (n)
        (void)close(fds[--n]);
    return failed;
}

int execute_copy_layers(struct execute *execute, struct arena *mem, const char *id,
                        struct snapshot_store *store, struct snapshot *snapshot, struct err *err)
{
    struct box_message order = {.kind = BOX_HOLD};
    struct box_message answer;
    char run_dir[RUN_DIR_BYTES];
    AUTO_FD int hold_fd = -1; /* its end lets the sandbox go on */
    uint64_t began_us = clock_us();
    int failed;

    if (kept_open(execute, id, run_dir, err) < 0 ||
        list_folders(mem, run_dir, false, &snapshot->names, err) < 0 ||
        kept_ask(run_dir, &order, &answer, NULL, 0, &hold_fd, err) < 0)
        return -1;
    failed = copy_held(run_dir, store, snapshot, err);
    snapshot->live = true;
    snapshot->held_us = clock_us() - began_us;
    return failed;
}

/* ---- nobody does ---- */

int execute_stop(struct execute *execute, const char *id, bool whoever_lives, struct kept_left *out,
                 struct err *err)
{
    struct box_message order = {.kind = BOX_YIELD, .status = whoever_lives};
    struct box_message gone;
    char run_dir[RUN_DIR_BYTES];
    int fds[YIELDED_COUNT];
    struct local *local;
    AUTO_FD int fd = -1;

    if (kept_open(execute, id, run_dir, err) < 0 ||
        kept_ask(run_dir, &order, &gone, fds, COUNT(fds), &fd, err) < 0)
        return -1;
    if (fds[YIELDED_LOCK] < 0)
        return err_set(err, ERR_INTEGRITY, "box left nothing behind");
    local_free(TAKE(execute->local));
    local = execute->local = local_new();
    local->groups = execute->groups;
    (void)snprintf(local->run_dir, sizeof local->run_dir, "%s", run_dir);
    local->lock_fd = fds[YIELDED_LOCK];
    local->execs_fd = fds[YIELDED_EXECS];
    local->control_fd = fds[YIELDED_CONTROL];
    *out = (struct kept_left){gone.value, gone.limit_ms, gone.status == 1};
    CRASH_POINT("sandbox stopped");
    return 0;
}

static int clear_work(struct arena *mem, const struct local *local, int dir_fd, struct err *err)
{
    struct words work;

    if (list_folders(mem, local->run_dir, true, &work, err) < 0)
        return -1;
    for (size_t i = 0; i < work.n; i++)
        if (dir_remove(dir_fd, work.v[i], err) < 0)
            return -1;
    return 0;
}

int execute_move_layers(struct execute *execute, struct snapshot_store *store,
                        const struct snapshot *snapshot, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(RUN_MEMORY_MAX);
    const struct local *local = execute->local;
    AUTO_FD int dir_fd = open(local->run_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct words names;

    if (dir_fd < 0)
        return err_os(err, "opening %s", local->run_dir);
    if (list_folders(&mem, local->run_dir, false, &names, err) < 0 ||
        clear_work(&mem, local, dir_fd, err) < 0)
        return -1;
    for (size_t i = 0; i < names.n; i++)
        if ((snapshot ? snapshot_move(store, snapshot, dir_fd, names.v[i], names.v[i], err)
                      : dir_remove(dir_fd, names.v[i], err)) < 0)
            return -1;
    return 0;
}

int execute_begin_again(struct execute *execute, struct run *run, struct err *err)
{
    struct local *local = execute->local;

    if (orders_open(execute, &local->signals_fd, err) < 0 || layers_make(run, local, err) < 0)
        return -1;
    return local_spawn(execute, run, err);
}

int execute_kept_rewrite(struct execute *execute, const char *id, const char *config,
                         struct err *err)
{
    char path[RUN_DIR_BYTES + 32];

    (void)snprintf(path, sizeof path, "%.2000s/boxes/%.20s/config", execute->state_dir, id);
    return file_exchange(path, config, strlen(config), 0600, err);
}
