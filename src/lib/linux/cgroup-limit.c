/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/linux/cgroup.h"

/* Writing limits, reading them back, and what was used. The two versions differ in file names
 * and in the word for "no limit"; v1's cpu limit is two files. */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/io.h"
#include "lib/linux/cgroup-parts.h"

#define CPU_PERIOD_US 100000U
#define CPU_PERIOD_LONG_US 1000000U /* the kernel's longest, for less than 1 % of a processor */
#define CPU_QUOTA_MIN_US 1000U      /* the kernel's smallest */

/* v1 counts pages in a long and shows the largest count as bytes when there is no limit. */
#define V1_NO_LIMIT_BYTES (UINT64_C(1) << 62)

static bool has_file(int dir_fd, const char *file)
{
    return faccessat(dir_fd, file, F_OK, 0) == 0;
}

/* The group that serves the power, or -1. */
static int group_for(const struct cgroup_set *set, enum cgroup_power power, bool *v2)
{
    int i = set->host ? cgroup_tree_for(set->host, power) : -1;

    if (i < 0)
        return -1;
    *v2 = set->host->trees[i].v2;
    return set->dir_fd[i];
}

static int write_number(int dir_fd, const char *file, uint64_t value, struct err *err)
{
    char text[24];

    (void)snprintf(text, sizeof text, "%" PRIu64, value);
    return file_write(dir_fd, file, text, err);
}

/* ---- writing ---- */

uint64_t cgroup_memory_round(uint64_t bytes)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

    return bytes < page ? page : bytes - bytes % page;
}

static int limit_memory_v1(int dir_fd, uint64_t bytes, struct err *err)
{
    static const char memory[] = "memory.limit_in_bytes";
    static const char with_swap[] = "memory.memsw.limit_in_bytes";
    struct err first;

    if (!has_file(dir_fd, with_swap))
        return write_number(dir_fd, memory, bytes, err);
    /* Memory alone may never exceed memory with swap, so lowering starts with the former and
     * raising with the latter. */
    if (write_number(dir_fd, memory, bytes, &first) == 0)
        return write_number(dir_fd, with_swap, bytes, err);
    if (first.os != EINVAL) {
        *err = first;
        return -1;
    }
    if (write_number(dir_fd, with_swap, bytes, err) < 0)
        return -1;
    return write_number(dir_fd, memory, bytes, err);
}

static int limit_memory(int dir_fd, bool v2, bool fresh, uint64_t bytes, struct err *err)
{
    (void)fresh;
    bytes = cgroup_memory_round(bytes);
    if (!v2)
        return limit_memory_v1(dir_fd, bytes, err);
    if (write_number(dir_fd, "memory.max", bytes, err) < 0)
        return -1;
    /* Without swap support in the kernel there is nothing to forbid. */
    if (has_file(dir_fd, "memory.swap.max") && write_number(dir_fd, "memory.swap.max", 0, err) < 0)
        return -1;
    /* A sandbox that lost one process to the limit is not left half alive. */
    return file_write(dir_fd, "memory.oom.group", "1", err);
}

static int limit_pids(int dir_fd, bool v2, bool fresh, uint64_t count, struct err *err)
{
    (void)v2; /* the same file in both */
    (void)fresh;
    return write_number(dir_fd, "pids.max", count, err);
}

static int limit_cpu(int dir_fd, bool v2, bool fresh, uint64_t millis, struct err *err)
{
    uint64_t period =
        millis * CPU_PERIOD_US / 1000 < CPU_QUOTA_MIN_US ? CPU_PERIOD_LONG_US : CPU_PERIOD_US;
    uint64_t quota = millis * (period / 1000);
    char text[48];

    if (v2) {
        (void)snprintf(text, sizeof text, "%" PRIu64 " %" PRIu64, quota, period);
        return file_write(dir_fd, "cpu.max", text, err);
    }
    /* With a quota in force each half is checked against the other; start from none. A new group
     * has none, and the kernel's own period is ours. */
    if (fresh && period == CPU_PERIOD_US)
        return write_number(dir_fd, "cpu.cfs_quota_us", quota, err);
    if (file_write(dir_fd, "cpu.cfs_quota_us", "-1", err) < 0 ||
        write_number(dir_fd, "cpu.cfs_period_us", period, err) < 0)
        return -1;
    return write_number(dir_fd, "cpu.cfs_quota_us", quota, err);
}

static const struct {
    enum cgroup_power power;
    const char *unit;
    uint64_t most; /* what fits into the kernel's arithmetic, and ours */
    int (*write)(int dir_fd, bool v2, bool fresh, uint64_t value, struct err *err);
} limits_known[] = {
    {CGROUP_MEMORY, "bytes",                UINT64_C(1) << 60, limit_memory},
    {CGROUP_PIDS,   "processes",            4194304,           limit_pids  },
    {CGROUP_CPU,    "thousandths of a CPU", 1000000,           limit_cpu   },
};

static uint64_t *limit_of(struct cgroup_limits *limits, enum cgroup_power power)
{
    return power == CGROUP_MEMORY ? &limits->memory_bytes
           : power == CGROUP_PIDS ? &limits->pids
                                  : &limits->cpu_millis;
}

int cgroup_set_limit(struct cgroup_set *set, const struct cgroup_limits *limits, struct err *err)
{
    struct cgroup_limits wanted = *limits;

    for (size_t i = 0; i < COUNT(limits_known); i++) {
        enum cgroup_power power = limits_known[i].power;
        uint64_t value = *limit_of(&wanted, power);
        bool v2 = false;
        int dir_fd = group_for(set, power, &v2);

        if (value == 0)
            continue;
        if (value > limits_known[i].most)
            return err_set(err, ERR_INVALID, "a %s limit of %" PRIu64 " %s; the most is %" PRIu64,
                           cgroup_power_name(power), value, limits_known[i].unit,
                           limits_known[i].most);
        if (dir_fd < 0)
            return err_set(err, ERR_UNAVAILABLE, "the %s limit cannot be held by a cgroup: %s",
                           cgroup_power_name(power),
                           set->host ? set->host->why[power] : "no cgroup was made");
        if (limits_known[i].write(dir_fd, v2, set->made && !set->limited, value, err) < 0)
            return err_in(err, "limiting %s in the cgroup %s", cgroup_power_name(power), set->name);
    }
    set->limited = true;
    return 0;
}

/* ---- reading ---- */

/* A number, or "max" (and v1's huge one) as 0: no limit. */
static int read_number(int dir_fd, const char *file, uint64_t *out, struct err *err)
{
    char text[CGROUP_TEXT_BYTES];
    struct str word;

    if (cgroup_file_read(dir_fd, file, text, err) < 0)
        return -1;
    word = (struct str){text, strcspn(text, " \n")};
    if (str_is(word, "max") || str_is(word, "-1")) {
        *out = 0;
        return 0;
    }
    if (!str_u64(word, out))
        return err_set(err, ERR_INTEGRITY, "%s says \"%.40s\", which is no number", file, text);
    return 0;
}

static int read_memory_limit(int dir_fd, bool v2, uint64_t *out, struct err *err)
{
    if (read_number(dir_fd, v2 ? "memory.max" : "memory.limit_in_bytes", out, err) < 0)
        return -1;
    if (!v2 && *out >= V1_NO_LIMIT_BYTES)
        *out = 0;
    return 0;
}

static int read_cpu_limit(int dir_fd, bool v2, uint64_t *out, struct err *err)
{
    char text[CGROUP_TEXT_BYTES];
    struct str rest;
    uint64_t quota;
    uint64_t period;

    if (read_number(dir_fd, v2 ? "cpu.max" : "cpu.cfs_quota_us", &quota, err) < 0)
        return -1;
    if (v2) {
        if (cgroup_file_read(dir_fd, "cpu.max", text, err) < 0)
            return -1;
        rest = (struct str){text, strcspn(text, "\n")};
        (void)str_cut(&rest, ' ');
        if (!str_u64(rest, &period) || period == 0)
            return err_set(err, ERR_INTEGRITY, "cpu.max says \"%.40s\"", text);
    } else if (read_number(dir_fd, "cpu.cfs_period_us", &period, err) < 0) {
        return -1;
    }
    *out = period ? quota * 1000 / period : 0;
    return 0;
}

int cgroup_set_read(const struct cgroup_set *set, struct cgroup_limits *out, struct err *err)
{
    struct cgroup_limits limits = {.pids = 0};
    bool v2 = false;
    int memory = group_for(set, CGROUP_MEMORY, &v2);
    bool memory_v2 = v2;
    int pids = group_for(set, CGROUP_PIDS, &v2);
    int cpu = group_for(set, CGROUP_CPU, &v2);

    if ((memory >= 0 && read_memory_limit(memory, memory_v2, &limits.memory_bytes, err) < 0) ||
        (pids >= 0 && read_number(pids, "pids.max", &limits.pids, err) < 0) ||
        (cpu >= 0 && read_cpu_limit(cpu, v2, &limits.cpu_millis, err) < 0))
        return err_in(err, "reading the limits of the cgroup %s", set->name);
    *out = limits;
    return 0;
}

/* ---- usage ---- */

/* Counters that an older kernel does not have stay 0. */
static void read_optional(int dir_fd, const char *file, uint64_t *out)
{
    struct err ignored;

    if (read_number(dir_fd, file, out, &ignored) < 0)
        *out = 0;
}

static void read_counter(int dir_fd, const char *file, const char *key, uint64_t *out)
{
    char text[CGROUP_TEXT_BYTES];
    struct err ignored;

    if (cgroup_file_read(dir_fd, file, text, &ignored) < 0 ||
        !cgroup_flat_value(str_of(text), key, out))
        *out = 0;
}

static uint64_t read_peak(const struct cgroup_set *set, int dir_fd, bool v2)
{
    char text[32] = "";
    uint64_t peak = 0;

    switch (set->peak) {
    case CGROUP_PEAK_OF_GROUP:
        read_optional(dir_fd, v2 ? "memory.peak" : "memory.max_usage_in_bytes", &peak);
        break;
    case CGROUP_PEAK_OF_FD:
        if (pread(set->peak_fd, text, sizeof text - 1, 0) <= 0 ||
            !str_u64((struct str){text, strcspn(text, "\n")}, &peak))
            peak = 0;
        break;
    case CGROUP_PEAK_UNKNOWN:
        break;
    }
    return peak;
}

static void read_refusals(const struct cgroup_set *set, struct cgroup_usage *out)
{
    bool v2 = false;
    int dir_fd = group_for(set, CGROUP_MEMORY, &v2);

    if (dir_fd >= 0)
        read_counter(dir_fd, v2 ? "memory.events" : "memory.oom_control", "oom_kill",
                     &out->oom_kills);
    dir_fd = group_for(set, CGROUP_PIDS, &v2);
    if (dir_fd >= 0)
        read_counter(dir_fd, "pids.events", "max", &out->pids_refused);
}

void cgroup_set_refusals(const struct cgroup_set *set, struct cgroup_usage *out)
{
    *out = (struct cgroup_usage){.cpu_us = 0};
    if (set->host)
        read_refusals(set, out);
}

/* Counters of the groups since they exist. */
static void read_usage(const struct cgroup_set *set, struct cgroup_usage *out)
{
    bool v2 = false;
    int dir_fd = group_for(set, CGROUP_CPU_TIME, &v2);

    *out = (struct cgroup_usage){.cpu_us = 0};
    if (dir_fd >= 0 && v2) {
        read_counter(dir_fd, "cpu.stat", "usage_usec", &out->cpu_us);
    } else if (dir_fd >= 0) {
        read_optional(dir_fd, "cpuacct.usage", &out->cpu_us);
        out->cpu_us /= 1000;
    }
    dir_fd = group_for(set, CGROUP_MEMORY, &v2);
    if (dir_fd >= 0) {
        read_optional(dir_fd, v2 ? "memory.current" : "memory.usage_in_bytes", &out->memory_bytes);
        out->peak_memory_bytes = read_peak(set, dir_fd, v2);
    }
    read_refusals(set, out);
}

int cgroup_set_usage(const struct cgroup_set *set, struct cgroup_usage *out, struct err *err)
{
    if (!set->host)
        return err_set(err, ERR_NOT_FOUND, "there are no cgroups to measure");
    read_usage(set, out);
    out->cpu_us -= set->before.cpu_us;
    out->oom_kills -= set->before.oom_kills;
    out->pids_refused -= set->before.pids_refused;
    return 0;
}

/* ---- recycling ---- */

static int unlimit_memory(int dir_fd, bool v2, struct err *err)
{
    if (v2)
        return file_write(dir_fd, "memory.max", "max", err) < 0 ||
                       (has_file(dir_fd, "memory.swap.max") &&
                        file_write(dir_fd, "memory.swap.max", "max", err) < 0)
                   ? -1
                   : 0;
    if (has_file(dir_fd, "memory.memsw.limit_in_bytes") &&
        file_write(dir_fd, "memory.memsw.limit_in_bytes", "-1", err) < 0)
        return -1;
    return file_write(dir_fd, "memory.limit_in_bytes", "-1", err);
}

/* Page cache the last user filled is charged to the group and would count against the next
 * one. How much comes back is the kernel's affair: a limit still reclaims the rest. */
static void give_back_memory(int dir_fd, bool v2)
{
    if (v2)
        (void)cgroup_try_write(dir_fd, "memory.reclaim", "1G");
    else
        (void)cgroup_try_write(dir_fd, "memory.force_empty", "0");
}

/* v1 sets the peak back for everybody; v2 since 6.12 for one descriptor, before that never. */
static void restart_peak(struct cgroup_set *set, int dir_fd, bool v2)
{
    if (!v2) {
        set->peak = cgroup_try_write(dir_fd, "memory.max_usage_in_bytes", "0")
                        ? CGROUP_PEAK_OF_GROUP
                        : CGROUP_PEAK_UNKNOWN;
        return;
    }
    if (set->peak_fd < 0)
        set->peak_fd = openat(dir_fd, "memory.peak", O_RDWR | O_CLOEXEC);
    set->peak = set->peak_fd >= 0 && write(set->peak_fd, "reset", 5) == 5 ? CGROUP_PEAK_OF_FD
                                                                          : CGROUP_PEAK_UNKNOWN;
}

int cgroup_set_reset(struct cgroup_set *set, struct err *err)
{
    bool memory_v2 = false;
    bool cpu_v2 = false;
    int memory = group_for(set, CGROUP_MEMORY, &memory_v2);
    int pids = group_for(set, CGROUP_PIDS, &cpu_v2);
    int cpu = group_for(set, CGROUP_CPU, &cpu_v2);
    bool empty = false;

    if (cgroup_set_is_empty(set, &empty, err) < 0)
        return -1;
    if (!empty)
        return err_set(err, ERR_CONFLICT, "the cgroup %s still holds processes", set->name);
    if ((memory >= 0 && unlimit_memory(memory, memory_v2, err) < 0) ||
        (pids >= 0 && file_write(pids, "pids.max", "max", err) < 0) ||
        (cpu >= 0 &&
         file_write(cpu, cpu_v2 ? "cpu.max" : "cpu.cfs_quota_us", cpu_v2 ? "max" : "-1", err) < 0))
        return err_in(err, "resetting the cgroup %s", set->name);
    if (memory >= 0) {
        give_back_memory(memory, memory_v2);
        restart_peak(set, memory, memory_v2);
    }
    read_usage(set, &set->before);
    return 0;
}
