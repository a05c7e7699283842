/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/* What a sandbox may use, and how each bound is held.
 *
 *    id       name in policy, receipt      unit        default */
#define LIMIT_KINDS(X)                                                                             \
    X(CPU, "cpu_millis", "thousandths of a CPU", 1000)                                             \
    X(MEMORY, "memory_bytes", "bytes", 512ULL << 20)                                               \
    X(PIDS, "pids", "processes", 256)                                                              \
    X(DISK, "disk_bytes", "bytes", 1ULL << 30)                                                     \
    X(INODES, "inodes", "files", 200000)                                                           \
    X(WALL, "wall_ms", "milliseconds", 30000)                                                      \
    X(OUTPUT, "output_bytes", "bytes kept per stream", 10ULL << 20)

enum limit_kind {
#define X(id, name, unit, value) LIMIT_##id,
    LIMIT_KINDS(X)
#undef X
        LIMIT_COUNT
};

/* How a bound is held, weakest first; zero holds nothing.
 *
 *    watch     a supervisor measures a few times a second and ends the sandbox
 *    affinity  the kernel keeps it on so many processors (whole CPUs only)
 *    rlimit    the kernel refuses, per process or per user namespace
 *    cgroup    the kernel refuses or kills, for all processes together
 *    relay     every byte passes through Brig (output), or Brig's own timer ends it (wall) */
enum limit_means {
    MEANS_NONE,
    MEANS_WATCH,
    MEANS_AFFINITY,
    MEANS_RLIMIT,
    MEANS_CGROUP,
    MEANS_RELAY,
};

/* Who wants it so. What somebody asked for and cannot be held is refused; a built-in default
 * takes the strongest means there is and says which. */
enum limit_origin {
    ORIGIN_DEFAULT,
    ORIGIN_POLICY,
    ORIGIN_PROFILE,
    ORIGIN_FLAG,
};

struct limit {
    uint64_t value; /* 0: not set by this source */
    enum limit_means means;
    enum limit_origin origin;
};

struct limits {
    struct limit of[LIMIT_COUNT];
};

const char *limit_name(enum limit_kind kind);
const char *limit_unit(enum limit_kind kind);
uint64_t limit_default(enum limit_kind kind);
const char *limit_means_name(enum limit_means means);
const char *limit_origin_name(enum limit_origin origin);
