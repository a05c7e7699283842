/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the cgroup files share among themselves and with their tests. */

#include "lib/base/str.h"
#include "lib/linux/cgroup.h"

#define CGROUP_HIERARCHIES_MAX 32
#define CGROUP_TEXT_BYTES 4096 /* every file of a group we read, except the list of processes */
#define CGROUP_LEFT_NAME "brig.self"

/* One line of /proc/self/cgroup with the mount that shows it; all borrowed from the texts. */
struct cgroup_hierarchy {
    bool v2;
    struct str controllers; /* "cpu,cpuacct"; empty for v2 */
    struct str group;       /* our own group, as the line says */
    struct str mount_root;  /* which group the mount shows at its top */
    struct str mount_point; /* still escaped as in mountinfo; empty: not mounted */
};

struct cgroup_layout {
    struct cgroup_hierarchy of[CGROUP_HIERARCHIES_MAX];
    size_t n;
};

int cgroup_layout_parse(struct str self_cgroup, struct str mountinfo, struct cgroup_layout *out,
                        struct err *err) MUST_CHECK;

/* The directory of our own group, of which *mount_n bytes are the mount point; false when no
 * mount shows it (or it is absurdly deep). */
bool cgroup_own_dir(const struct cgroup_hierarchy *hierarchy, char out[CGROUP_PATH_BYTES],
                    size_t *mount_n);

bool cgroup_list_has(struct str list, char separator, struct str word);

/* The line of /proc/PID/cgroup that belongs to the tree: is its group ours or below ours? */
bool cgroup_line_within(struct str proc_cgroup, const struct cgroup_tree *tree, const char *name);

/* "key value" lines, as in memory.events. */
bool cgroup_flat_value(struct str text, const char *key, uint64_t *out);

/* Index of the tree that serves the power, or -1. */
int cgroup_tree_for(const struct cgroup_host *host, enum cgroup_power power);

/* The whole file, NUL-terminated. */
int cgroup_file_read(int dir_fd, const char *file, char out[CGROUP_TEXT_BYTES],
                     struct err *err) MUST_CHECK;

/* A write that helps but may fail, on older kernels for one. */
bool cgroup_try_write(int dir_fd, const char *file, const char *text);

/* Puts limits into a v2 directory's reach: vacates it if need be and enables what is missing. */
int cgroup_tree_prepare(const struct cgroup_tree *tree, struct err *err) MUST_CHECK;
