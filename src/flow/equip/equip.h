/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lib/base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct arena;
struct run;
struct words;

/* With what a run is equipped: the plan before anything happens, and afterwards whether the
 * sandbox that stands is the one that was planned. */
struct equip;

/* The profile is optional; a bad one is an error here, before any run. */
int equip_open(const char *state_dir, const char *profile_path, struct equip **out,
               struct err *err) MUST_CHECK;
/* The same with a profile that was read before; NULL: none. */
int equip_open_with(const char *state_dir, const char *profile_text, struct equip **out,
                    struct err *err) MUST_CHECK;
void equip_free(struct equip *equip);
AUTO_TYPE(equip)

/* What is known of this machine from one run to the next; governors of one process may share one,
 * in any of its threads. Without, each has its own. */
struct plan_memory;
struct plan_memory *plan_memory_new(void);
void plan_memory_free(struct plan_memory *memory);
void equip_recall(struct equip *equip, struct plan_memory *memory);

/* Which provider the profile names, or NULL. */
const char *equip_provider(const struct equip *equip);

/* Fills run->plan, run->intended and run->planned from run->action, run->demand and run->offer.
 * What cannot be honoured turns the verdict into a denial with its reason; that is success. */
int equip_plan(struct equip *equip, struct run *run, struct err *err) MUST_CHECK;

/* Of that only run->plan.limits, for those who want to know them before there is a plan. */
int equip_limits(struct equip *equip, struct run *run, struct err *err) MUST_CHECK;

/* Files that tools of this machine run by themselves, and who does: protected below every folder
 * that may be written. */
struct protected_rule {
    const char *holder; /* the folder it must lie in, or NULL: any */
    const char *name;
    const char *why;
};
const struct protected_rule *equip_protected_rules(size_t *n);
/* Whether a path below a workspace is one, or lies in one, by its name alone. Type: 'd' for a
 * folder. */
bool equip_protected_path(const char *path, char type);
/* Those that a folder of this machine has now, by paths below it. */
int equip_protected_below(struct arena *mem, const char *folder, struct words *out,
                          struct err *err) MUST_CHECK;
/* One of the places that were protected, as a kept sandbox keeps it. */
struct plan_mount;
const char *equip_protected_text(struct arena *mem, const struct plan_mount *mount);

/* How they are now, kept for a sandbox that stays; until it is dropped. */
int equip_guard_keep(struct equip *equip, struct run *run, struct err *err) MUST_CHECK;
void equip_guard_drop(struct equip *equip, const char *sandbox);
/* Looks at them again and fills run->outcome.protected_changes with what changed since the start of
 * the run or, for a kept sandbox, since somebody last looked. */
void equip_look_again(struct equip *equip, struct run *run);

/* Fills run->observed and run->checks from run->seen. Any difference turns the verdict into a
 * denial whose reason is that of the first failed check. */
int equip_compare(struct equip *equip, struct run *run, struct err *err) MUST_CHECK;
