/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Control groups: what this process may use of them, and the groups of one sandbox.
 *
 * A machine has one v2 tree, any number of v1 trees, or both, and each controller sits in
 * exactly one of them. cgroup_probe() finds out which; everything after that works on a
 * `struct cgroup_set`: the same name in every tree that serves us.
 *
 * Groups that already exist are left alone, with two exceptions, both in the v2 tree and both
 * only where the kernel demands it of whoever wants to make limited groups there:
 *
 *  - `cgroup.subtree_control` of the directory in which our groups are made gets the missing
 *    ones of memory, pids and cpu;
 *  - if that directory is our own group and we are the only process in it, we move ourselves
 *    into a new group `brig.self` below it, because a group with processes cannot limit its
 *    children. Other people's processes are never moved.
 *
 * Who made a set holds a lock on it until his process ends (also by SIGKILL), so another
 * process can tell leftovers from sets in use: cgroup_list(), cgroup_set_find(),
 * cgroup_set_claim(), cgroup_set_kill(), cgroup_set_remove(). The lock lives in a descriptor
 * that exec closes; a child that is only forked shares it until it calls cgroup_set_done(). */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/base/err.h"

#define CGROUP_PATH_BYTES 1024
#define CGROUP_NAME_BYTES 64
#define CGROUP_TREES_MAX 6
#define CGROUP_WHY_BYTES 320

/* What a tree can do for us. The first three are limits. */
enum cgroup_power {
    CGROUP_MEMORY,
    CGROUP_PIDS,
    CGROUP_CPU,
    CGROUP_LIMITS, /* how many limits there are */
    CGROUP_FREEZE = CGROUP_LIMITS,
    CGROUP_CPU_TIME, /* measures, does not limit */
    CGROUP_KILL,     /* all at once; also CLONE_INTO_CGROUP and a wake-up when empty */
    CGROUP_POWERS,
};

enum cgroup_mode {
    CGROUP_NONE, /* zero: nothing can be enforced */
    CGROUP_V1,
    CGROUP_V2,
};

/* One hierarchy in which we may create groups. */
struct cgroup_tree {
    bool v2;
    bool vacate;                   /* we must leave `base` ourselves before it can limit */
    unsigned serves;               /* bits 1 << enum cgroup_power */
    char base[CGROUP_PATH_BYTES];  /* directory in which our groups are made */
    size_t mount_n;                /* so much of it is the mount point */
    char group[CGROUP_PATH_BYTES]; /* the same place as /proc/PID/cgroup writes it */
    char controllers[64];          /* its second field there; empty for v2 */
};

/* What this process may use: plain data, valid until somebody changes the mounts, delegates
 * differently or moves us. All zero: nothing. */
struct cgroup_host {
    struct cgroup_tree trees[CGROUP_TREES_MAX];
    size_t tree_n;
    /* For each limit that is CGROUP_NONE: a sentence that says why and what would help. */
    char why[CGROUP_LIMITS][CGROUP_WHY_BYTES];
};

/* Looks, creates nothing, changes nothing. A machine without usable cgroups is no failure:
 * every mode is then CGROUP_NONE. -1 only when /proc cannot be read or makes no sense. */
int cgroup_probe(struct cgroup_host *out, struct err *err) MUST_CHECK;

/* For a process that will start others beside itself: leaves a group that was delegated to it while
 * it is still alone there, so that sandboxes can be limited in it later. Nothing happens elsewhere.
 */
int cgroup_settle(struct err *err) MUST_CHECK;

enum cgroup_mode cgroup_mode(const struct cgroup_host *host, enum cgroup_power power);
const char *cgroup_mode_name(enum cgroup_mode mode); /* "none", "v1", "v2" */
const char *cgroup_power_name(enum cgroup_power power);

/* The groups of one sandbox. Borrows the host. All zero: no groups. The functions below may be
 * called from any thread as long as no two change the same set at once. */
struct cgroup_usage {
    uint64_t cpu_us; /* 0 where it cannot be measured, like all of these */
    uint64_t memory_bytes;
    uint64_t peak_memory_bytes;
    uint64_t oom_kills;    /* v2 may count one event twice, for the process and for the group */
    uint64_t pids_refused; /* how often the process limit said no */
};

struct cgroup_set {
    const struct cgroup_host *host;
    char name[CGROUP_NAME_BYTES];
    int dir_fd[CGROUP_TREES_MAX]; /* host->tree_n of them, -1 where there is no such group */
    bool made;                    /* by us: in the base of each tree */
    bool limited;                 /* since then */
    struct cgroup_usage before;   /* what earlier users of a recycled set had used */
    int peak_fd;                  /* see `peak`: an own, resettable view of the v2 peak */
    enum {
        CGROUP_PEAK_OF_GROUP, /* nobody used it before us */
        CGROUP_PEAK_OF_FD,
        CGROUP_PEAK_UNKNOWN, /* recycled, and this kernel cannot start again from zero */
    } peak;
};

/* Makes a group `name` ([a-z0-9.-], begins with a letter) in every tree, or none at all.
 * ERR_CONFLICT when the name exists, ERR_UNAVAILABLE when the host has no tree. Close with
 * cgroup_set_done(), which leaves the groups where they are; remove with cgroup_set_remove(). */
int cgroup_set_make(const struct cgroup_host *host, const char *name, struct cgroup_set *out,
                    struct err *err) MUST_CHECK;

/* The same in two parts: first what a process can be born into (v2) and the lock, then the rest.
 * After a failed second part the set is as it was, and still to be removed. */
int cgroup_set_begin(const struct cgroup_host *host, const char *name, struct cgroup_set *out,
                     struct err *err) MUST_CHECK;
int cgroup_set_complete(struct cgroup_set *set, struct err *err) MUST_CHECK;

/* The set another process (or this one, earlier) made, also when that process made its groups
 * elsewhere in the trees than we would. ERR_NOT_FOUND when no tree has it. */
int cgroup_set_find(const struct cgroup_host *host, const char *name, struct cgroup_set *out,
                    struct err *err) MUST_CHECK;

/* Takes over a set that was found. ERR_CONFLICT as long as its maker lives. */
int cgroup_set_claim(const struct cgroup_set *set, struct err *err) MUST_CHECK;

void cgroup_set_done(struct cgroup_set *set);
#define AUTO_CGROUP_SET __attribute__((cleanup(cgroup_set_done)))

/* Calls on_group for the name of each set that begins with the prefix, wherever in our trees,
 * once per set. What it returns other than 0 ends the walk and is returned; it may remove the
 * set. ERR_LIMIT when the machine has more groups than we walk through. */
int cgroup_list(const struct cgroup_host *host, const char *prefix,
                int (*on_group)(void *context, const char *name, struct err *err), void *context,
                struct err *err) MUST_CHECK;

/* 0 leaves a limit as it is (in cgroup_set_read: there is no limit). */
struct cgroup_limits {
    uint64_t memory_bytes; /* whole pages, see cgroup_memory_round(); swap counts or is off */
    uint64_t pids;
    uint64_t cpu_millis; /* thousandths of one processor */
};

/* The kernel keeps memory limits in pages; a plan that wants to read back what it wrote uses
 * the rounded value. Never 0. */
uint64_t cgroup_memory_round(uint64_t bytes);

/* ERR_UNAVAILABLE with the host's reason when a limit is asked for that no tree serves. */
int cgroup_set_limit(struct cgroup_set *set, const struct cgroup_limits *limits,
                     struct err *err) MUST_CHECK;
/* What the kernel says now, not what was written. */
int cgroup_set_read(const struct cgroup_set *set, struct cgroup_limits *out,
                    struct err *err) MUST_CHECK;

/* Directory descriptor for CLONE_INTO_CGROUP, or -1. Belongs to the set. */
int cgroup_set_v2_fd(const struct cgroup_set *set);

enum cgroup_join {
    CGROUP_JOIN_ALL,
    CGROUP_JOIN_V1, /* the process was cloned into the v2 group already */
};

/* Moves the calling process in; it must have no second thread (ERR_INVALID), as a child right
 * after clone, also one in new namespaces as long as it has the ids of its parent. This is the
 * quick way into v1 groups: for the only thread of a process that moves itself the kernel
 * takes no global lock (0.06 ms a tree, after a rest as well). */
int cgroup_set_enter(const struct cgroup_set *set, enum cgroup_join which,
                     struct err *err) MUST_CHECK;

/* The same for somebody whom the groups would not let in: descriptors of the v1 groups, opened by
 * who may, through which he moves himself; the kernel asks for the rights of who opened them. The
 * first *n of fds are the caller's to close, also after a failure. */
int cgroup_set_doors(const struct cgroup_set *set, int fds[CGROUP_TREES_MAX], size_t *n,
                     struct err *err) MUST_CHECK;
int cgroup_enter_doors(const int *fds, size_t n, struct err *err) MUST_CHECK;

/* Moves another process in, with all its threads, before it makes a user namespace. The first
 * move after a rest waits 8-11 ms for the kernel (an RCU grace period), the following ones
 * 0.03 ms. May run in a thread of its own while the other process goes on. */
int cgroup_set_join(const struct cgroup_set *set, pid_t pid, enum cgroup_join which,
                    struct err *err) MUST_CHECK;

/* Whether the process is in this set (or below it) in every tree, at the place where we make
 * ours. A process that is gone is ERR_NOT_FOUND. */
int cgroup_set_contains(const struct cgroup_set *set, pid_t pid, bool *out,
                        struct err *err) MUST_CHECK;
int cgroup_set_is_empty(const struct cgroup_set *set, bool *out, struct err *err) MUST_CHECK;

int cgroup_set_usage(const struct cgroup_set *set, struct cgroup_usage *out,
                     struct err *err) MUST_CHECK;
/* Of that only oom_kills and pids_refused, since the groups exist; 0 without groups. */
void cgroup_set_refusals(const struct cgroup_set *set, struct cgroup_usage *out);

/* Ends every process in the set, frozen or not, and returns when none is left. ERR_TIMEOUT
 * when some are. Without CGROUP_KILL the process limit is set to 0 first, so that nothing
 * forks faster than we kill. */
int cgroup_set_kill(struct cgroup_set *set, unsigned timeout_ms, struct err *err) MUST_CHECK;

/* Return when every process stands still, or runs again. ERR_UNAVAILABLE without
 * CGROUP_FREEZE. */
int cgroup_set_freeze(struct cgroup_set *set, unsigned timeout_ms, struct err *err) MUST_CHECK;
int cgroup_set_thaw(struct cgroup_set *set, unsigned timeout_ms, struct err *err) MUST_CHECK;

/* Removes the groups, waiting for the last process to be gone. Missing groups are success, so
 * it can be repeated. After success the set is empty (all zero). */
int cgroup_set_remove(struct cgroup_set *set, unsigned timeout_ms, struct err *err) MUST_CHECK;

/* Makes a used set as good as new without removing it: no limits, usage from zero, what the
 * last user left in the page cache given back. ERR_CONFLICT when a process is still in it. */
int cgroup_set_reset(struct cgroup_set *set, struct err *err) MUST_CHECK;
