/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to lib/snapshot. */

#include "lib/base/buf.h"
#include "lib/json/json.h"
#include "lib/snapshot/snapshot.h"
#include "lib/snapshot/tree.h"

struct snapshot_store {
    char *dir; /* STATE/snapshots */
    char *state_dir;
    int dir_fd;
};

#define FLAT_PAST 8 /* sets over each other, beyond which a stack is made one */

/* record.c */
bool snapshot_is_id(const char *name);
int snapshot_record_write(struct snapshot_store *store, const struct snapshot *snapshot,
                          const char *file, struct err *err) MUST_CHECK;
/* ERR_NOT_FOUND: there is no such snapshot. */
int snapshot_record_read(struct snapshot_store *store, struct arena *mem, const char *id,
                         struct snapshot *out, struct err *err) MUST_CHECK;
/* Every one there is, removed ones too. */
int snapshot_record_list(struct snapshot_store *store, struct arena *mem, struct snapshot **out,
                         size_t *n, struct err *err) MUST_CHECK;

/* "ID" of a set "ID/layers" or "ID/flat". */
const char *snapshot_set_id(struct arena *mem, const char *set);
int snapshot_set_open(const struct snapshot_store *store, const char *set, int *out,
                      struct err *err) MUST_CHECK;
/* How many sets this snapshot keeps; exclusive lock of its hold file, or -1: somebody stands on it.
 */
int snapshot_hold_alone(const struct snapshot_store *store, const char *id);

/* layers.c: the program `layers`, one request. fds: what it is born with from LAYERS_FD_OUT on. */
int layers_run(const char *const *arguments, const int *fds, size_t fd_n, struct tree_result *out,
               struct err *err) MUST_CHECK;
