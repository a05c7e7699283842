/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to equip: see memory.c. */

#include "flow/equip/parts.h"
#include "lib/linux/looks.h"
#include "lib/linux/mount-table.h"

/* The mount table of now, copied. */
struct mount_view {
    struct str text;
    uint64_t version;
};
int memory_table(struct plan_memory *memory, struct arena *mem, struct mount_view *out,
                 struct err *err) MUST_CHECK;

/* The host root as it was made last, if it would be made the same now; and that it was made. */
bool memory_root(struct plan_memory *memory, struct run *run, uint64_t table_version,
                 struct mount_list *out);
void memory_keep_root(struct plan_memory *memory, const struct run *run, uint64_t table_version,
                      const struct looks *looks, const struct mount_list *list);

/* Its digest, likewise. */
bool memory_digest(struct plan_memory *memory, const struct run *run, char out[MODEL_HASH_BYTES]);
void memory_keep_digest(struct plan_memory *memory, const struct run *run,
                        const struct looks *looks, const char *digest);

/* Fills run->planned from run->intended. */
int memory_posture(struct plan_memory *memory, struct run *run, struct err *err) MUST_CHECK;
