/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to execute: sandboxes built ahead, for whoever asks for exactly that.
 *
 *    STATE/boxes/ID           one of them: a kept sandbox without a config, which is what makes a
 *                             sandbox somebody's (kept.h)
 *    STATE/pool/KEY/ID        an empty file: ID may be taken by whose plan has this key
 *    STATE/pool/KEY/spec      what those of this key are made from, and how many there should be
 *
 * The entry is only how it is found. Who gets it is said by its outer process, which gives itself
 * away once and for all time: from then on it lives as long as the connection of whoever took it,
 * until that one settles it as a sandbox that stays. So wherever anybody dies, a prepared sandbox
 * is in the pool, has one owner, or is gone; and it never goes back. */

#include "flow/execute/local.h"

/* All of the plan that box makes walls of, and for which tenant. What belongs to a command (argv,
 * environment, working directory, time and output) is not part of it. */
void pool_key(const struct run *run, char out[POOL_KEY_BYTES]);

bool pool_fits(const struct run *run); /* such a one can be made ahead */

/* The sandbox of the run was made for the pool and stands: from now on it can be taken. */
int pool_put(const struct execute *execute, struct run *run, struct local *local,
             struct err *err) MUST_CHECK;

/* Takes one for the run: 1, or 0 when there is none, for whatever reason. */
int pool_take(struct execute *execute, struct run *run, struct local *local);
/* The one that was taken becomes the run's sandbox that stays. */
int pool_settle(struct run *run, struct local *local, struct err *err) MUST_CHECK;
/* Ends the one that was taken, and waits until nothing of it is left. */
void pool_untake(struct local *local);
