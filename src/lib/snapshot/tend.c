/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/snapshot/store-private.h"

#include "lib/base/crash.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/linux/beside.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define PATIENT 19

static int open_stack(struct snapshot_store *store, const struct snapshot *snapshot, int *fds,
                      size_t *n, struct err *err)
{
    for (size_t i = 0; i < snapshot->stack.n; i++) {
        if (snapshot_set_open(store, snapshot->stack.v[i], &fds[*n], err) < 0)
            return -1;
        ++*n;
    }
    return 0;
}

/* All that it shows, hashed; and copied into out_fd, unless that is -1. */
static int read_stack(struct snapshot_store *store, const struct snapshot *snapshot, int out_fd,
                      struct tree_result *out, struct err *err)
{
    const char *const arguments[] = {out_fd < 0 ? "hash" : "merge", NULL};
    int fds[SNAPSHOT_STACK_MAX + 1] = {out_fd < 0 ? store->dir_fd : out_fd};
    size_t n = 0;
    int failed = open_stack(store, snapshot, fds + 1, &n, err);

    if (!failed)
        failed = layers_run(arguments, fds, n + 1, out, err);
    for (size_t i = 0; i < n; i++)
        (void)close(fds[i + 1]);
    return failed;
}

int snapshot_merge(struct snapshot_store *store, const struct snapshot *snapshot, int out_fd,
                   struct err *err)
{
    struct tree_result result;

    return read_stack(store, snapshot, out_fd, &result, err);
}

int snapshot_verify(struct snapshot_store *store, const struct snapshot *snapshot, struct err *err)
{
    struct tree_result result;

    if (!*snapshot->digest)
        return err_set(err, ERR_UNAVAILABLE,
                       "snapshot %s has no digest yet; \"brig snapshot tend\" makes it",
                       snapshot->id);
    if (read_stack(store, snapshot, -1, &result, err) < 0)
        return -1;
    if (strcmp(result.digest, snapshot->digest) != 0)
        return err_set(err, ERR_INTEGRITY, "snapshot %s was %s and has become %s", snapshot->id,
                       snapshot->digest, result.digest);
    return 0;
}

/* Content that a power cut takes away afterwards is noticed by it. */
static int seal(struct snapshot_store *store, const struct snapshot *snapshot, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(RUN_MEMORY_MAX);
    struct tree_result result;

    if (read_stack(store, snapshot, -1, &result, err) < 0)
        return -1;
    return file_exchange(arena_printf(&mem, "%s/%s/digest", store->dir, snapshot->id),
                         result.digest, strlen(result.digest), 0600, err);
}

/* Beside what it stands on, complete before the record says so. */
static int flatten(struct snapshot_store *store, struct snapshot *snapshot, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(RUN_MEMORY_MAX);
    const char *unfinished = arena_printf(&mem, "%s/flat-unfinished", snapshot->id);
    const char *flat = arena_printf(&mem, "%s/flat", snapshot->id);
    struct tree_result result;
    AUTO_FD int out_fd = -1;

    if (dir_remove(store->dir_fd, unfinished, err) < 0 || dir_remove(store->dir_fd, flat, err) < 0)
        return -1;
    if (mkdirat(store->dir_fd, unfinished, 0700) < 0)
        return err_os(err, "creating %s/%s", store->dir, unfinished);
    if (snapshot_set_open(store, unfinished, &out_fd, err) < 0 ||
        read_stack(store, snapshot, out_fd, &result, err) < 0)
        return -1;
    if (*snapshot->digest && strcmp(result.digest, snapshot->digest) != 0)
        return err_set(err, ERR_INTEGRITY, "snapshot %s was %s and has become %s", snapshot->id,
                       snapshot->digest, result.digest);
    CRASH_POINT("snapshot merged");
    if (syncfs(store->dir_fd) < 0 || renameat(store->dir_fd, unfinished, store->dir_fd, flat) < 0)
        return err_os(err, "finishing %s/%s", store->dir, flat);
    snapshot->stack = (struct words){(const char *const[]){flat}, 1};
    return snapshot_record_write(store, snapshot, "record", err);
}

/* Its own layers are of no use any more once it is flat and nobody has them mounted. */
static int clear_layers(struct snapshot_store *store, const struct snapshot *list, size_t n,
                        const struct snapshot *snapshot, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(RUN_MEMORY_MAX);
    const char *layers = arena_printf(&mem, "%s/layers", snapshot->id);
    AUTO_FD int lock_fd = -1;

    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < list[i].stack.n; j++)
            if (strcmp(list[i].stack.v[j], layers) == 0)
                return 0;
    lock_fd = snapshot_hold_alone(store, snapshot->id);
    return lock_fd < 0 ? 0 : dir_remove(store->dir_fd, layers, err);
}

static int tend_all(struct snapshot_store *store, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(SNAPSHOT_MEMORY_MAX);
    struct snapshot *list = NULL;
    size_t n = 0;

    if (snapshot_sweep(store, err) < 0 || snapshot_list(store, &mem, &list, &n, err) < 0)
        return -1;
    for (size_t i = 0; i < n; i++) {
        int holds[SNAPSHOT_STACK_MAX];
        size_t hold_n = 0;
        struct err gone;
        int failed;

        if (snapshot_hold(store, &list[i], holds, &hold_n, &gone) < 0)
            continue; /* it was removed meanwhile */
        failed = *list[i].digest ? 0 : seal(store, &list[i], err);
        if (!failed && list[i].stack.n > FLAT_PAST)
            failed = flatten(store, &list[i], err);
        for (size_t j = 0; j < hold_n; j++)
            (void)close(holds[j]);
        if (failed)
            return err_in(err, "snapshot %s", list[i].id);
    }
    if (snapshot_record_list(store, &mem, &list, &n, err) < 0)
        return -1;
    for (size_t i = 0; i < n; i++)
        if (clear_layers(store, list, n, &list[i], err) < 0)
            return -1;
    return 0;
}

int snapshot_tend(struct snapshot_store *store, bool wait, struct err *err)
{
    AUTO_FD int lock_fd = openat(store->dir_fd, "tend.lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    if (lock_fd < 0)
        return err_os(err, "opening %s/tend.lock", store->dir);
    if (!wait)
        (void)setpriority(PRIO_PROCESS, 0, PATIENT); /* sandboxes and their owners come first */
    if (flock(lock_fd, LOCK_EX | (wait ? 0 : LOCK_NB)) < 0)
        return errno == EWOULDBLOCK ? 0 : err_os(err, "locking %s/tend.lock", store->dir);
    return tend_all(store, err);
}

/* Those we have started and not heard the end of. A process that lives long, like the daemon, must
 * take note of each end, and needs no more of them than fit here. */
#define TENDERS_MAX 4
static struct {
    pthread_mutex_t lock;
    pid_t pids[TENDERS_MAX];
} tenders = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Under the lock. NULL: enough of them are at work. */
static pid_t *free_place(void)
{
    pid_t *place = NULL;

    for (size_t i = 0; i < TENDERS_MAX; i++) {
        pid_t *pid = &tenders.pids[i];

        if (*pid > 0 && waitpid(*pid, NULL, WNOHANG) != 0)
            *pid = 0;
        if (*pid == 0)
            place = pid;
    }
    return place;
}

void snapshot_tend_later(const struct snapshot_store *store)
{
    char path[PATH_BYTES_MAX], home[PATH_BYTES_MAX + 16];
    char brig[] = "brig", noun[] = "snapshot", verb[] = "tend", option[] = "--if-free";
    char *argv[] = {brig, noun, verb, option, NULL};
    char *env[] = {home, NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t none;
    struct err ignored; /* the next one who can will do it */
    pid_t pid, *place;

    /* In a program that is not installed, such as a test, there may be none. */
    if (program_beside("brig", path, sizeof path, &ignored) < 0)
        return;
    (void)snprintf(home, sizeof home, "BRIG_HOME=%s", store->state_dir);
    (void)sigemptyset(&none);
    (void)posix_spawn_file_actions_init(&files);
    (void)posix_spawnattr_init(&attr);
    (void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSID);
    (void)posix_spawnattr_setsigmask(&attr, &none);
    for (int fd = 0; fd < 3; fd++)
        (void)posix_spawn_file_actions_addopen(&files, fd, "/dev/null", O_RDWR, 0);
    (void)posix_spawn_file_actions_addclosefrom_np(&files, 3);
    (void)pthread_mutex_lock(&tenders.lock);
    place = free_place();
    if (place && posix_spawn(&pid, path, &files, &attr, argv, env) == 0)
        *place = pid;
    (void)pthread_mutex_unlock(&tenders.lock);
    (void)posix_spawn_file_actions_destroy(&files);
    (void)posix_spawnattr_destroy(&attr);
}
