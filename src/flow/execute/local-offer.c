/* SPDX-License-Identifier: Apache-2.0 */

/* What the local provider can do on this machine.
 *
 * Finding the cgroups takes fifty system calls. The answer is kept while the mounts and our own
 * groups stay as they were, and for a second at most: who delegates a tree, or takes it back,
 * leaves no trace to look at. An answer that is too old promises less than could be had, or what
 * box then fails to do; what is observed of the sandbox decides in any case. */

#include "flow/execute/local.h"

#include "lib/base/clock.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/base/memory.h"
#include "lib/crypto/crypto.h"
#include "lib/linux/beside.h"
#include "lib/linux/build-id.h"
#include "lib/linux/filters.h"
#include "lib/linux/landlock.h"
#include "lib/linux/mount-table.h"
#include "lib/linux/sandbox-ids.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/utsname.h>

#define GROUPS_KNOWN_US 1000000U

struct offer_memory {
    pthread_mutex_t lock;
    /* Under the lock: */
    struct mount_table table;
    uint64_t table_version; /* when the groups were looked for */
    uint64_t groups_until_us;
    struct buf own_groups;
    struct cgroup_host groups;
    bool walls_known;
    unsigned own_filters;
    char filters_hash[HASH_TEXT_BYTES];
    struct build_memo box;
};

struct offer_memory *offer_memory_new(void)
{
    struct offer_memory *memory = xcalloc(1, sizeof *memory);

    (void)pthread_mutex_init(&memory->lock, NULL);
    mount_table_init(&memory->table);
    memory->own_groups = BUF(PROC_TEXT_MAX);
    return memory;
}

void offer_memory_free(struct offer_memory *memory)
{
    if (!memory)
        return;
    mount_table_done(&memory->table);
    buf_done(&memory->own_groups);
    (void)pthread_mutex_destroy(&memory->lock);
    free(memory);
}

static int offer_ids(struct run *run, struct err *err)
{
    struct offer *offer = &run->offer;
    struct sandbox_ids ids;

    if (sandbox_ids(&ids, err) < 0)
        return -1;
    offer->started_by_root = geteuid() == 0;
    offer->host_uid = ids.uid;
    offer->host_gid = ids.gid;
    return 0;
}

/* ---- walls ---- */

static unsigned own_filters(void)
{
    AUTO_BUF struct buf text = BUF(PROC_TEXT_MAX);
    struct err ignored;
    const char *at;

    if (file_read(AT_FDCWD, "/proc/self/status", &text, &ignored) < 0)
        return 0;
    at = strstr(buf_text(&text), "\nSeccomp_filters:");
    return at ? (unsigned)strtoul(at + strlen("\nSeccomp_filters:"), NULL, 10) : 0;
}

static void filters_hash(char out[HASH_TEXT_BYTES])
{
    struct hasher hasher;
    struct hash hash;

    hasher_init(&hasher);
    hasher_add(&hasher, seccomp_names, seccomp_names_n * sizeof seccomp_names[0]);
    hasher_add(&hasher, seccomp_arguments, seccomp_arguments_n * sizeof seccomp_arguments[0]);
    hasher_add(&hasher, seccomp_segments, seccomp_segments_n * sizeof seccomp_segments[0]);
    hasher_add(&hasher, seccomp_sockets, seccomp_sockets_n * sizeof seccomp_sockets[0]);
    hasher_end(&hasher, &hash);
    hash_text(&hash, out);
}

/* Part of this process and its program: neither changes while it lives. */
static void offer_filters(struct offer_memory *memory, struct run *run)
{
    (void)pthread_mutex_lock(&memory->lock);
    if (!memory->walls_known) {
        memory->own_filters = own_filters();
        filters_hash(memory->filters_hash);
        memory->walls_known = true;
    }
    run->offer.holds_network = true;
    run->offer.seccomp_filters = memory->own_filters + 2;
    run->offer.seccomp_hash = arena_text(&run->mem, str_of(memory->filters_hash));
    (void)pthread_mutex_unlock(&memory->lock);
}

/* Who builds the sandbox is box, whoever asks it to. */
static int find_build(struct offer_memory *memory, char out[BUILD_ID_BYTES], struct err *err)
{
    int failed;

    (void)pthread_mutex_lock(&memory->lock);
    failed = build_id_beside("box", &memory->box, err);
    memcpy(out, memory->box.id, BUILD_ID_BYTES);
    (void)pthread_mutex_unlock(&memory->lock);
    return failed;
}

static int offer_walls(struct execute *execute, struct run *run, struct err *err)
{
    struct offer *offer = &run->offer;
    char build[BUILD_ID_BYTES];
    struct utsname kernel;

    offer->isolation = "namespaces";
    offer->landlock_abi = landlock_abi();
    if (offer->landlock_abi < LANDLOCK_ABI_LEAST)
        return err_set(err, ERR_UNAVAILABLE,
                       "this kernel has no Landlock, or an old one (ABI %u, at least %u is "
                       "needed); see brig doctor",
                       offer->landlock_abi, LANDLOCK_ABI_LEAST);
    offer_filters(execute->memory, run);
    if (uname(&kernel) < 0)
        return err_os(err, "asking for the kernel's release");
    if (find_build(execute->memory, build, err) < 0)
        return -1;
    offer->version = arena_printf(&run->mem, "local/%s+%s linux/%.64s landlock/%u", BRIG_VERSION,
                                  build, kernel.release, offer->landlock_abi);
    return 0;
}

/* ---- limits ---- */

/* Whether the groups that were found are still those to be found. *own: what we are in now. */
static int groups_hold(struct offer_memory *memory, struct buf *own, bool *out, struct err *err)
{
    if (mount_table_read(&memory->table, err) < 0)
        return -1;
    if (file_read(AT_FDCWD, "/proc/self/cgroup", own, err) < 0 && err->os != ENOENT)
        return -1;
    *out = memory->table_version == memory->table.version && clock_us() < memory->groups_until_us &&
           str_eq(buf_str(own), buf_str(&memory->own_groups));
    return 0;
}

static int find_groups(struct offer_memory *memory, struct cgroup_host *out, struct err *err)
{
    AUTO_BUF struct buf own = BUF(PROC_TEXT_MAX);
    uint64_t now_us = clock_us();
    bool hold = false;

    if (groups_hold(memory, &own, &hold, err) < 0)
        return -1;
    if (!hold) {
        memory->table_version = 0;
        if (cgroup_probe(&memory->groups, err) < 0)
            return -1;
        memory->table_version = memory->table.version;
        memory->groups_until_us = now_us + GROUPS_KNOWN_US;
        buf_clear(&memory->own_groups);
        if (buf_add_str(&memory->own_groups, buf_str(&own), err) < 0)
            return -1;
    }
    *out = memory->groups;
    return 0;
}

static int offer_groups(struct execute *execute, struct err *err)
{
    struct offer_memory *memory = execute->memory;
    int failed;

    if (!execute->groups)
        execute->groups = xcalloc(1, sizeof *execute->groups);
    (void)pthread_mutex_lock(&memory->lock);
    failed = find_groups(memory, execute->groups, err);
    (void)pthread_mutex_unlock(&memory->lock);
    return failed;
}

static int offer_limits(struct execute *execute, struct run *run, struct err *err)
{
    static const struct {
        enum limit_kind kind;
        enum cgroup_power power;
    } groups[] = {
        {LIMIT_MEMORY, CGROUP_MEMORY},
        {LIMIT_PIDS,   CGROUP_PIDS  },
        {LIMIT_CPU,    CGROUP_CPU   }
    };
    struct offer *offer = &run->offer;
    const struct cgroup_host *host;
    cpu_set_t set;

    if (offer_groups(execute, err) < 0)
        return -1;
    host = execute->groups;
    for (size_t i = 0; i < COUNT(groups); i++) {
        if (cgroup_mode(host, groups[i].power) != CGROUP_NONE)
            offer->means[groups[i].kind] |= 1U << MEANS_CGROUP;
        else
            offer->why[groups[i].kind] = arena_text(&run->mem, str_of(host->why[groups[i].power]));
    }
    offer->means[LIMIT_MEMORY] |= 1U << MEANS_WATCH;
    offer->means[LIMIT_PIDS] |= 1U << MEANS_RLIMIT;
    offer->means[LIMIT_CPU] |= 1U << MEANS_AFFINITY;
    offer->means[LIMIT_DISK] = 1U << MEANS_WATCH;
    offer->means[LIMIT_INODES] = 1U << MEANS_WATCH;
    offer->means[LIMIT_WALL] = 1U << MEANS_RELAY;
    offer->means[LIMIT_OUTPUT] = 1U << MEANS_RELAY;
    offer->processors = sched_getaffinity(0, sizeof set, &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1;
    return 0;
}

int local_offer(struct execute *execute, struct run *run, struct err *err)
{
    char path[RUN_DIR_BYTES];

    if (offer_ids(run, err) < 0 || offer_walls(execute, run, err) < 0 ||
        offer_limits(execute, run, err) < 0)
        return -1;
    return program_beside("box", path, sizeof path, err);
}
