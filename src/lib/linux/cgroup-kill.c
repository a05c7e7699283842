/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/linux/cgroup.h"

/* Ending, freezing and removing: everything here waits for the kernel, and every wait has an
 * end. v2 wakes us when a group runs empty or is frozen, but tells a second change within 10 ms
 * only when those are over; v1 never tells. So we also look ourselves, often at first. */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/io.h"
#include "lib/linux/cgroup-parts.h"

#define FIRST_LOOK_US 100U
#define LAST_LOOK_US 10000U

/* ---- waiting ---- */

struct patience {
    uint64_t end_us;
    unsigned look_us; /* how long the next wait is at most */
};

static struct patience patience_of(unsigned timeout_ms)
{
    return (struct patience){clock_us() + (uint64_t)timeout_ms * 1000, FIRST_LOOK_US};
}

static bool is_over(const struct patience *patience)
{
    return clock_us() >= patience->end_us;
}

/* Until something about the groups may have changed. events_fd: cgroup.events of the v2 group,
 * read a moment ago, or -1. */
static void wait_a_moment(struct patience *patience, int events_fd)
{
    struct pollfd change = {.fd = events_fd, .events = POLLPRI};
    struct timespec moment = {.tv_nsec = (long)patience->look_us * 1000};

    (void)ppoll(&change, 1, &moment, NULL);
    if (patience->look_us < LAST_LOOK_US / 2)
        patience->look_us *= 2;
    else
        patience->look_us = LAST_LOOK_US;
}

static int open_events(const struct cgroup_set *set)
{
    int dir_fd = cgroup_set_v2_fd(set);

    return dir_fd < 0 ? -1 : openat(dir_fd, "cgroup.events", O_RDONLY | O_CLOEXEC);
}

/* Reading also arms the next wake-up. */
static bool event_is(int events_fd, const char *key, uint64_t wanted)
{
    char text[128] = "";
    uint64_t value;

    return pread(events_fd, text, sizeof text - 1, 0) > 0 &&
           cgroup_flat_value(str_of(text), key, &value) && value == wanted;
}

/* ---- who is in there ---- */

#define PIDS_AT_ONCE 512

/* The first so many processes of one group. A group that is being removed has none. */
static int read_pids(int dir_fd, pid_t pids[PIDS_AT_ONCE], size_t *n, struct err *err)
{
    char text[CGROUP_TEXT_BYTES];
    struct str list;

    *n = 0;
    if (cgroup_file_read(dir_fd, "cgroup.procs", text, err) < 0)
        return err->os == ENODEV || err->os == ENOENT ? 0 : -1;
    list = str_of(text);
    /* The last line may be cut off by the buffer; then it lacks its newline. */
    while (*n < PIDS_AT_ONCE && memchr(list.p, '\n', list.n)) {
        uint64_t pid;

        /* "0" is a process outside our pid namespace: it counts, but we have no name for it. */
        if (str_u64(str_cut(&list, '\n'), &pid))
            pids[(*n)++] = (pid_t)pid;
    }
    return 0;
}

int cgroup_set_is_empty(const struct cgroup_set *set, bool *out, struct err *err)
{
    pid_t pids[PIDS_AT_ONCE];
    bool empty = true;

    for (size_t i = 0; set->host && i < set->host->tree_n; i++) {
        size_t n;

        if (set->dir_fd[i] < 0)
            continue;
        if (read_pids(set->dir_fd[i], pids, &n, err) < 0)
            return err_in(err, "%s/%s", set->host->trees[i].base, set->name);
        empty = empty && n == 0;
    }
    *out = empty;
    return 0;
}

/* ---- kill ---- */

static bool is_among(pid_t pid, const pid_t *pids, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (pids[i] == pid)
            return true;
    return false;
}

/* A listed process may end and its number go to a stranger before the signal. So: pin each with
 * a descriptor, look again, and signal only those that are still listed and thus were ours when
 * pinned. */
static int signal_group(int dir_fd, struct err *err)
{
    pid_t pids[PIDS_AT_ONCE];
    pid_t still[PIDS_AT_ONCE];
    int pinned[PIDS_AT_ONCE];
    size_t n;
    size_t still_n = 0;
    int failed = 0;

    if (read_pids(dir_fd, pids, &n, err) < 0)
        return -1;
    for (size_t i = 0; i < n; i++)
        pinned[i] = pids[i] ? (int)syscall(SYS_pidfd_open, pids[i], 0) : -1;
    if (n)
        failed = read_pids(dir_fd, still, &still_n, err);
    for (size_t i = 0; i < n; i++) {
        if (pinned[i] < 0)
            continue;
        if (!failed && is_among(pids[i], still, still_n))
            (void)syscall(SYS_pidfd_send_signal, pinned[i], SIGKILL, NULL, 0);
        (void)close(pinned[i]);
    }
    return failed;
}

static void write_state(const struct cgroup_set *set, enum cgroup_power power, const char *file,
                        const char *text)
{
    int i = cgroup_tree_for(set->host, power);

    /* Only helps the kill along; whether that worked is looked at anyway. */
    if (i >= 0 && set->dir_fd[i] >= 0 && !(power == CGROUP_FREEZE && set->host->trees[i].v2))
        (void)cgroup_try_write(set->dir_fd[i], file, text);
}

/* One round. With v2 the kernel does it at once, forks included; a process that is only in v1
 * groups (its start was cut off half way) is signalled one by one. */
static int kill_round(const struct cgroup_set *set, struct err *err)
{
    int v2_fd = cgroup_set_v2_fd(set);
    bool all_at_once = v2_fd >= 0 && cgroup_try_write(v2_fd, "cgroup.kill", "1");

    if (!all_at_once) {
        write_state(set, CGROUP_PIDS, "pids.max", "0");
        write_state(set, CGROUP_FREEZE, "freezer.state", "FROZEN");
    }
    for (size_t i = 0; i < set->host->tree_n; i++)
        if (set->dir_fd[i] >= 0 && !(set->host->trees[i].v2 && all_at_once) &&
            signal_group(set->dir_fd[i], err) < 0)
            return -1;
    /* The v1 freezer holds even the killed until they thaw. */
    write_state(set, CGROUP_FREEZE, "freezer.state", "THAWED");
    return 0;
}

int cgroup_set_kill(struct cgroup_set *set, unsigned timeout_ms, struct err *err)
{
    AUTO_FD int events_fd = open_events(set);
    struct patience patience = patience_of(timeout_ms);

    if (!set->host)
        return 0;
    for (;;) {
        bool empty = false;

        (void)event_is(events_fd, "populated", 0);
        if (cgroup_set_is_empty(set, &empty, err) < 0)
            return -1;
        if (empty)
            return 0;
        if (kill_round(set, err) < 0)
            return err_in(err, "killing the processes of the cgroup %s", set->name);
        if (is_over(&patience))
            return err_set(err, ERR_TIMEOUT, "the cgroup %s still holds processes after %u ms",
                           set->name, timeout_ms);
        wait_a_moment(&patience, events_fd);
    }
}

/* ---- freeze ---- */

static bool freeze_is(int dir_fd, int events_fd, bool frozen)
{
    char text[CGROUP_TEXT_BYTES];
    struct err ignored;

    if (events_fd >= 0)
        return event_is(events_fd, "frozen", frozen);
    return cgroup_file_read(dir_fd, "freezer.state", text, &ignored) == 0 &&
           strcmp(text, frozen ? "FROZEN\n" : "THAWED\n") == 0;
}

static int set_freeze(struct cgroup_set *set, bool frozen, unsigned timeout_ms, struct err *err)
{
    AUTO_FD int events_fd = open_events(set);
    struct patience patience = patience_of(timeout_ms);
    int i = set->host ? cgroup_tree_for(set->host, CGROUP_FREEZE) : -1;
    int dir_fd = i < 0 ? -1 : set->dir_fd[i];
    const char *file = events_fd >= 0 ? "cgroup.freeze" : "freezer.state";
    const char *word = events_fd >= 0 ? (frozen ? "1" : "0") : (frozen ? "FROZEN" : "THAWED");

    if (dir_fd < 0)
        return err_set(err, ERR_UNAVAILABLE, "no cgroup here can freeze processes");
    if (file_write(dir_fd, file, word, err) < 0)
        return err_in(err, "cgroup %s", set->name);
    while (!freeze_is(dir_fd, events_fd, frozen)) {
        if (is_over(&patience))
            return err_set(err, ERR_TIMEOUT, "the cgroup %s is not %s after %u ms", set->name,
                           frozen ? "frozen" : "running", timeout_ms);
        wait_a_moment(&patience, events_fd);
    }
    return 0;
}

int cgroup_set_freeze(struct cgroup_set *set, unsigned timeout_ms, struct err *err)
{
    return set_freeze(set, true, timeout_ms, err);
}

int cgroup_set_thaw(struct cgroup_set *set, unsigned timeout_ms, struct err *err)
{
    return set_freeze(set, false, timeout_ms, err);
}

/* ---- remove ---- */

enum removal {
    REMOVED,
    BUSY, /* a process is still leaving */
    FAILED,
};

static enum removal judge(int failed, const char *name, struct err *err)
{
    if (failed == 0 || errno == ENOENT || errno == ENODEV)
        return REMOVED;
    if (errno == EBUSY)
        return BUSY;
    (void)err_os(err, "removing the cgroup %s", name);
    return FAILED;
}

/* Where we made it; or through the group's own "..": it may have been found elsewhere than we
 * would make it. */
static enum removal remove_group(const struct cgroup_set *set, size_t i, struct err *err)
{
    AUTO_FD int parent_fd = -1;
    char path[CGROUP_PATH_BYTES + CGROUP_NAME_BYTES];

    (void)snprintf(path, sizeof path, "%s/%s", set->host->trees[i].base, set->name);
    if (set->made && rmdir(path) == 0)
        return REMOVED;
    parent_fd = openat(set->dir_fd[i], "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
    return judge(parent_fd < 0 ? -1 : unlinkat(parent_fd, set->name, AT_REMOVEDIR), set->name, err);
}

/* Last tree first: the first one carries the lock that says the set belongs to us. */
static enum removal remove_groups(struct cgroup_set *set, struct err *err)
{
    for (size_t i = set->host->tree_n; i-- > 0;) {
        enum removal removal;

        if (set->dir_fd[i] < 0)
            continue;
        removal = remove_group(set, i, err);
        if (removal != REMOVED)
            return removal;
        (void)close(TAKE_FD(set->dir_fd[i]));
    }
    return REMOVED;
}

int cgroup_set_remove(struct cgroup_set *set, unsigned timeout_ms, struct err *err)
{
    AUTO_FD int events_fd = -1;
    struct patience patience = patience_of(timeout_ms);

    if (!set->host)
        return 0;
    for (bool waits = false;; waits = true) {
        if (waits && events_fd < 0)
            events_fd = open_events(set);
        if (waits)
            (void)event_is(events_fd, "populated", 0); /* arms the wake-up */
        switch (remove_groups(set, err)) {
        case REMOVED:
            cgroup_set_done(set);
            return 0;
        case FAILED:
            return -1;
        case BUSY:
            break;
        }
        if (is_over(&patience))
            return err_set(err, ERR_TIMEOUT,
                           "the cgroup %s cannot be removed after %u ms: processes are still in it",
                           set->name, timeout_ms);
        if (waits)
            wait_a_moment(&patience, events_fd);
    }
}
