/* SPDX-License-Identifier: Apache-2.0 */

/* What is in the pool: keys, entries, specs. */

#include "flow/execute/pool.h"

#include "flow/execute/kept.h"
#include "lib/base/crash.h"
#include "lib/base/io.h"
#include "lib/crypto/crypto.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define SETTLE_WAIT_US 5000000U
#define ENTRIES_MAX 4096U
#define FILL_WAIT_US 60000000U
#define FILL_PAUSE_MS 20

/* ---- the key ---- */

/* With its end: "ab" "c" is not "a" "bc". */
static void add_text(struct hasher *hasher, const char *text)
{
    hasher_add(hasher, text ? text : "", text ? strlen(text) + 1 : 1);
}

static void add_number(struct hasher *hasher, uint64_t value)
{
    hasher_add(hasher, &value, sizeof value);
}

static void add_mount(struct hasher *hasher, const struct plan_mount *mount)
{
    const uint64_t numbers[] = {
        mount->kind,      mount->access,    mount->noexec,    mount->from_user, mount->is_file,
        mount->is_device, mount->device,    mount->inode,     mount->fd >= 0,   mount->size_bytes,
        mount->idmapped,  mount->owner_uid, mount->owner_gid, mount->lower_n};

    hasher_add(hasher, numbers, sizeof numbers);
    add_text(hasher, mount->source);
    add_text(hasher, mount->target);
    for (size_t i = 0; i < mount->lower_n; i++) {
        add_text(hasher, mount->lowers[i].path);
        add_number(hasher, mount->lowers[i].device);
        add_number(hasher, mount->lowers[i].inode);
    }
}

static void add_path(struct hasher *hasher, const struct plan_path *path)
{
    const uint64_t numbers[] = {path->write, path->exec, path->device, path->list_only,
                                path->optional};

    hasher_add(hasher, numbers, sizeof numbers);
    add_text(hasher, path->path);
}

static void add_limits(struct hasher *hasher, const struct plan *plan)
{
    for (enum limit_kind kind = 0; kind < LIMIT_COUNT; kind++) {
        const struct limit *limit = &plan->limits.of[kind];

        /* What Brig holds itself, box never hears of. */
        add_number(hasher, limit->means);
        add_number(hasher, limit->means == MEANS_RELAY ? 0 : limit->value);
    }
    for (size_t i = 0; i < plan->rlimit_n; i++) {
        add_number(hasher, plan->rlimits[i].resource);
        add_number(hasher, plan->rlimits[i].value);
    }
}

void pool_key(const struct run *run, char out[POOL_KEY_BYTES])
{
    const struct posture *planned = &run->planned;
    const struct plan *plan = &run->plan;
    const uint64_t ids[] = {plan->inside_uid, plan->inside_gid, run->offer.host_uid,
                            run->offer.host_gid, run->offer.started_by_root};
    char text[HASH_TEXT_BYTES];
    struct hasher hasher;
    struct hash hash;

    hasher_init(&hasher);
    add_text(&hasher, run->action.tenant);
    add_text(&hasher, planned->provider_version);
    add_text(&hasher, planned->sandbox_spec_hash);
    add_text(&hasher, planned->image_digest);
    add_text(&hasher, planned->mounts_hash);
    add_text(&hasher, planned->egress_policy_hash);
    add_text(&hasher, plan->hostname);
    hasher_add(&hasher, ids, sizeof ids);
    add_number(&hasher, plan->mount_n);
    for (size_t i = 0; i < plan->mount_n; i++)
        add_mount(&hasher, &plan->mounts[i]);
    add_number(&hasher, plan->path_n);
    for (size_t i = 0; i < plan->path_n; i++)
        add_path(&hasher, &plan->paths[i]);
    add_limits(&hasher, plan);
    hasher_end(&hasher, &hash);
    hash_text(&hash, text);
    (void)snprintf(out, POOL_KEY_BYTES, "%.*s", POOL_KEY_BYTES - 1, strchr(text, ':') + 1);
}

/* A folder of this machine that may be written has protected files, which are looked at when it is
 * asked for; a snapshot is somebody's. */
bool pool_fits(const struct run *run)
{
    bool fits = run->plan.base_hold_n == 0 && run->plan.mirror_fd < 0 &&
                !plan_has_network(&run->plan.egress);

    for (size_t i = 0; i < run->plan.mount_n; i++) {
        const struct plan_mount *mount = &run->plan.mounts[i];

        fits &= mount->kind != MOUNT_PROTECTED && !(mount->from_user && mount->access == MOUNT_RW);
    }
    return fits;
}

int execute_pool_key(const struct run *run, char out[POOL_KEY_BYTES], struct err *err)
{
    if (!pool_fits(run))
        return err_set(
            err, ERR_INVALID,
            "a sandbox that has network rules, may write a folder of this machine, or begins at a snapshot, "
            "cannot be made ahead; fill the pool without that");
    pool_key(run, out);
    return 0;
}

static bool is_key(const char *name)
{
    return strlen(name) == POOL_KEY_BYTES - 1 &&
           strspn(name, "0123456789abcdef") == POOL_KEY_BYTES - 1;
}

static void path_of(const struct execute *execute, const char *key, const char *name,
                    char out[RUN_DIR_BYTES])
{
    (void)snprintf(out, RUN_DIR_BYTES, "%.2000s/pool%s%s%s%s", execute->state_dir, *key ? "/" : "",
                   key, *name ? "/" : "", name);
}

static int make_folders(const struct execute *execute, const char *key, struct err *err)
{
    char path[RUN_DIR_BYTES];

    path_of(execute, "", "", path);
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return err_os(err, "creating %s", path);
    path_of(execute, key, "", path);
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return err_os(err, "creating %s", path);
    return 0;
}

/* ---- entries ---- */

int pool_put(const struct execute *execute, struct run *run, struct local *local, struct err *err)
{
    struct box_message settle = {.kind = BOX_SETTLE, .value = run->action.lifetime.ttl_ms};
    uint64_t deadline_us = clock_us() + SETTLE_WAIT_US;
    struct box_message answer = {0};
    char key[POOL_KEY_BYTES];
    char path[RUN_DIR_BYTES];
    bool from_inside = false;
    int fd;

    pool_key(run, key);
    path_of(execute, key, run->sandbox_id, path);
    if (make_folders(execute, key, err) < 0)
        return -1;
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return err_os(err, "creating %s", path);
    (void)close(fd);
    CRASH_POINT("pool-entered");
    /* Until it hears this, it ends with us. */
    if (send(local->supervisor_fd, &settle, sizeof settle, MSG_NOSIGNAL) != (ssize_t)sizeof settle)
        return err_os(err, "leaving the sandbox in the pool");
    while (answer.kind != BOX_STATUS)
        if (box_wait(local, deadline_us, &answer, &from_inside, err) < 0)
            return -1;
    return 0;
}

/* Dead ones are swept under their own lock; here only what points to them goes. */
static bool is_there(const struct execute *execute, const char *key, const char *id)
{
    char path[RUN_DIR_BYTES];

    if (kept_box_is_held(execute, id))
        return true;
    path_of(execute, key, id, path);
    (void)unlink(path); /* somebody else did, or will */
    return false;
}

int execute_pool_each(struct execute *execute, const char *key,
                      int (*on_box)(void *context, const char *id, struct err *err), void *context,
                      struct err *err)
{
    char path[RUN_DIR_BYTES];
    const struct dirent *entry;
    int failed = 0;
    DIR *dir;

    path_of(execute, key, "", path);
    dir = opendir(path);
    if (!dir)
        return errno == ENOENT ? 0 : err_os(err, "opening %s", path);
    for (unsigned n = 0; !failed && n < ENTRIES_MAX && (entry = readdir(dir)) != NULL; n++)
        if (kept_is_id(entry->d_name) && is_there(execute, key, entry->d_name))
            failed = on_box(context, entry->d_name, err);
    (void)closedir(dir);
    return failed;
}

static int count_one(void *context, const char *id, struct err *err)
{
    size_t *n = context;

    (void)id;
    (void)err;
    ++*n;
    return 0;
}

int execute_pool_count(struct execute *execute, const char *key, size_t *out, struct err *err)
{
    *out = 0;
    return execute_pool_each(execute, key, count_one, out, err);
}

int execute_pool_keys(struct execute *execute, struct arena *mem, struct words *out,
                      struct err *err)
{
    const char **keys = arena_array(mem, const char *, POOL_KEYS_MAX + 1);
    char path[RUN_DIR_BYTES];
    const struct dirent *entry;
    size_t n = 0;
    DIR *dir;

    *out = (struct words){keys, 0};
    path_of(execute, "", "", path);
    dir = opendir(path);
    if (!dir)
        return errno == ENOENT ? 0 : err_os(err, "opening %s", path);
    while (n < POOL_KEYS_MAX && (entry = readdir(dir)) != NULL)
        if (is_key(entry->d_name))
            keys[n++] = arena_text(mem, str_of(entry->d_name));
    (void)closedir(dir);
    out->n = n;
    return 0;
}

int execute_pool_end(struct execute *execute, const char *key, const char *id, struct err *err)
{
    struct box_message order = {.kind = BOX_DISCARD};
    struct box_message answer;
    char run_dir[RUN_DIR_BYTES];
    char path[RUN_DIR_BYTES];

    path_of(execute, key, id, path);
    if (unlink(path) < 0)
        return errno == ENOENT ? err_set(err, ERR_NOT_FOUND, "%s is not in the pool", id)
                               : err_os(err, "removing %s", path);
    kept_dir(execute, id, run_dir);
    if (kept_order(run_dir, &order, &answer, err) < 0)
        return err->code == ERR_NOT_FOUND ? 0 : -1;
    return kept_wait_gone(execute, id, false, err);
}

/* ---- specs ---- */

int execute_pool_spec(struct execute *execute, struct arena *mem, const char *key, const char **out,
                      struct err *err)
{
    AUTO_BUF struct buf text = BUF(KEPT_CONFIG_MAX);
    char path[RUN_DIR_BYTES];

    path_of(execute, key, "spec", path);
    if (!is_key(key) || access(path, F_OK) < 0)
        return err_set(err, ERR_NOT_FOUND, "there is no pool \"%.40s\"", key);
    if (file_read(AT_FDCWD, path, &text, err) < 0)
        return -1;
    *out = arena_text(mem, buf_str(&text));
    return 0;
}

int execute_pool_set_spec(struct execute *execute, const char *key, const char *spec,
                          struct err *err)
{
    char path[RUN_DIR_BYTES];

    if (make_folders(execute, key, err) < 0)
        return -1;
    path_of(execute, key, "spec", path);
    return file_replace(path, spec, strlen(spec), 0600, err);
}

int execute_pool_remove(struct execute *execute, const char *key, struct err *err)
{
    char path[RUN_DIR_BYTES];

    if (!is_key(key))
        return err_set(err, ERR_NOT_FOUND, "there is no pool \"%.40s\"", key);
    path_of(execute, key, "spec", path);
    if (unlink(path) < 0 && errno != ENOENT)
        return err_os(err, "removing %s", path);
    path_of(execute, key, "", path);
    /* An entry that came meanwhile keeps the folder; its sandbox ends with its time. */
    if (rmdir(path) < 0 && errno != ENOENT && errno != ENOTEMPTY)
        return err_os(err, "removing %s", path);
    return 0;
}

/* ---- one filler at a time ---- */

static int lock_file(const struct execute *execute, const char *name, uint64_t wait_us,
                     struct err *err)
{
    uint64_t deadline_us = clock_us() + wait_us;
    char path[RUN_DIR_BYTES];
    AUTO_FD int fd = -1;

    path_of(execute, "", name, path);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return err_os(err, "opening %s", path);
    while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return err_os(err, "locking %s", path);
        if (clock_us() >= deadline_us)
            return err_set(err, ERR_CONFLICT, "somebody else is filling the pool");
        (void)poll(NULL, 0, FILL_PAUSE_MS);
    }
    return TAKE_FD(fd);
}

int execute_pool_lock(struct execute *execute, bool wait, int *out, struct err *err)
{
    AUTO_FD int next = -1;
    char path[RUN_DIR_BYTES];
    int fd;

    path_of(execute, "", "", path);
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return err_os(err, "creating %s", path);
    /* Whoever waits already will look at all there is to do by then: one is enough. */
    next = lock_file(execute, "fill.next", wait ? FILL_WAIT_US : 0, err);
    if (next < 0)
        return -1;
    fd = lock_file(execute, "fill.lock", FILL_WAIT_US, err);
    if (fd < 0)
        return -1;
    *out = fd;
    return 0;
}
