/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The way to `keeper vault`, the process that hands out secrets (lib/keeper/keeper-wire.h). */

#include <sys/types.h>

#include "lib/keeper/keeper-wire.h"
#include "lib/vault/vault.h"

/* Starts one for the vault of this state directory, opens it, and gives the end of the pair that
 * asks; it ends by itself when that is closed. The passphrase counts only where one is needed.
 * With out_pid NULL it is nobody's child, and outlives whoever started it. */
int vault_keeper_start(const char *state_dir, struct str passphrase, int *out_fd, pid_t *out_pid,
                       struct err *err) MUST_CHECK;

/* For one who waits for many things: the message to be sent, and what an answer to it says. -1 of
 * the first: something is longer than a message has room for (ERR_LIMIT). The answer is wiped. */
int vault_ask_write(enum keeper_vault_verb verb, uint32_t serial, const char *sandbox,
                    const struct vault_question *question, struct keeper_vault_request *out,
                    struct err *err) MUST_CHECK;
int vault_ask_value(struct keeper_vault_answer *answer, uint32_t serial, struct secret **out,
                    struct err *err) MUST_CHECK;
int vault_ask_slots(struct keeper_vault_answer *answer, uint32_t serial,
                    struct vault_slot out[VAULT_BOUND_MAX], size_t *n, struct err *err) MUST_CHECK;

/* For one who can wait: at most wait_ms. ERR_KEEPER: it is gone. */
int vault_ask_reveal(int fd, const char *sandbox, const struct vault_question *question,
                     unsigned wait_ms, struct secret **out, struct err *err) MUST_CHECK;
int vault_ask_bound(int fd, const char *sandbox, const struct vault_question *question,
                    unsigned wait_ms, struct vault_slot out[VAULT_BOUND_MAX], size_t *n,
                    struct err *err) MUST_CHECK;
