/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files that build a root share among themselves. */

#include "cmd/box/box.h"

#define STAGE "/tmp" /* covered in our own mount namespace only */

/* Of <sys/mount.h>, which this C library cannot include together with <linux/mount.h>. */
#define REC_PRIVATE (16384UL | 1UL << 18)
#define PRIVATE (1UL << 18)
#define BIND 4096UL
#define DETACH 2
#define NOSUID_NODEV 6UL

const struct box_mount *mount_at(const struct box *box, uint32_t i);

/* box-root-sources.c: mounts that are nowhere yet; as the system calls, -1 with errno set. */
int tree_clone(int dir_fd, const char *path, unsigned flags);
int tree_set(int fd, uint64_t set, uint64_t propagation, int userns_fd);
int tree_attach(int tree_fd, int target_fd);

bool source_needed(const struct box_mount *mount);
/* Whether fd is what the caller looked at. */
int source_check(const struct box_mount *mount, int fd, const char *path,
                 struct err *err) MUST_CHECK;
/* Into box->tree_fds[i]. */
int source_open(struct box *box, uint32_t i, struct err *err) MUST_CHECK;
bool plan_has_overlays(const struct box_plan *plan);
int root_separate(struct err *err) MUST_CHECK;

/* box-root-targets.c: made and opened beneath the new root without following any link. */
int target_make(int root_fd, const struct box_mount *mount, const char *path, int *out,
                struct err *err) MUST_CHECK;
int target_link(int root_fd, const char *path, const char *to, struct err *err) MUST_CHECK;
int target_file(int root_fd, const char *path, const char *text, struct err *err) MUST_CHECK;

/* box-root.c: its steps, which a template has in common with a sandbox. */
int root_mount_proc(int *out, struct err *err) MUST_CHECK;
int root_stage(struct box *box, int *out, struct err *err) MUST_CHECK;
int root_attach(struct box *box, int root_fd, uint32_t i, struct err *err) MUST_CHECK;
int root_enter(int root_fd, struct err *err) MUST_CHECK;
int root_seal(const struct box *box, struct err *err) MUST_CHECK;
