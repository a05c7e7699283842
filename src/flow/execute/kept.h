/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to execute: kept sandboxes, found again by their folder.
 *
 *    STATE/boxes/ID.lock        held by the sandbox's outer process; free: it is over, and the
 *                               file says why
 *    STATE/boxes/ID/            its writable layer, and
 *    STATE/boxes/ID/config      what it was made from
 *    STATE/boxes/ID/turn        locked by whoever joins or exchanges it
 *    STATE/boxes/ID/paused      there while it is paused
 *    STATE/boxes/ID/execs       socket of PID 1: commands
 *    STATE/boxes/ID/control     socket of outer: orders
 *
 * A sandbox exists exactly as long as its lock is held. One without a config is being made, or was
 * made for the pool (pool.h), and is nobody's yet. */

#include "flow/execute/local.h"

#define KEPT_CONFIG_MAX (256UL << 10)

/* The two listening sockets of a sandbox that is being made, and its config. */
int kept_prepare(const struct run *run, struct local *local, struct err *err) MUST_CHECK;

/* Whole or not there; it need not outlive the machine, because no sandbox does. */
int kept_write_config(const struct run *run, const struct local *local, struct err *err) MUST_CHECK;

bool kept_is_id(const char *name);
void kept_dir(const struct execute *execute, const char *id, char out[RUN_DIR_BYTES]);
bool kept_box_is_held(const struct execute *execute, const char *id); /* somebody's or not */
bool kept_is_paused(const char *run_dir);
/* Until its lock is free: its outer process has removed everything then, or was killed before it
 * could. To clear is to remove the rest and the lock, too: who does that tells of its end. */
int kept_wait_gone(const struct execute *execute, const char *id, bool clear,
                   struct err *err) MUST_CHECK;

/* ERR_NOT_FOUND: there is no such sandbox (any more). */
int kept_open(const struct execute *execute, const char *id, char run_dir[RUN_DIR_BYTES],
              struct err *err) MUST_CHECK;
int kept_listen(const char *dir, const char *name, int *out, struct err *err) MUST_CHECK;
/* A connection to PID 1, for one command. */
int kept_connect(const char *run_dir, const char *name, int *out, struct err *err) MUST_CHECK;
/* The same, over a connection that stays open; fds come with the answer, or -1 for each. */
int kept_ask(const char *run_dir, const struct box_message *order, struct box_message *answer,
             int *fds, size_t fd_n, int *out_fd, struct err *err) MUST_CHECK;
/* One order to outer and its answer; a refusal is an error with its words. */
int kept_order(const char *run_dir, const struct box_message *order, struct box_message *answer,
               struct err *err) MUST_CHECK;
