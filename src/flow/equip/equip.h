/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lib/base/err.h"

struct run;

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

/* Which provider the profile names, or NULL. */
const char *equip_provider(const struct equip *equip);

/* Fills run->plan, run->intended and run->planned from run->action, run->demand and run->offer.
 * What cannot be honoured turns the verdict into a denial with its reason; that is success. */
int equip_plan(struct equip *equip, struct run *run, struct err *err) MUST_CHECK;

/* Fills run->observed and run->checks from run->seen. Any difference turns the verdict into a
 * denial whose reason is that of the first failed check. */
int equip_compare(struct equip *equip, struct run *run, struct err *err) MUST_CHECK;
