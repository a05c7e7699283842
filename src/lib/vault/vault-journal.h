/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Secrets that were handed out and have no receipt yet. Whoever hands one out writes it down here
 * and syncs first; whoever keeps the ledger makes receipts of them, each exactly once:
 *
 *     AUTO(vault_journal) struct vault_journal *journal = NULL;
 *     vault_journal_take(state_dir, &mem, &journal, &uses, &n, err)
 *     … a receipt for each, whose run id is the use's id; one that has it already is passed over
 *     vault_journal_forget(journal, err)
 *
 * What was taken and not forgotten comes again. */

#include "lib/base/clock.h"
#include "lib/base/memory.h"
#include "lib/vault/vault.h"

#define VAULT_SANDBOX_BYTES 32
#define VAULT_USES_TAKEN_MAX 100000 /* in one go */

struct vault_used {
    const char *id; /* random, as ids of runs are */
    const char *at; /* timestamp */
    const char *sandbox;
    struct vault_question question;
    uint64_t version;
    const char *binding;
};

/* Durable when it returns; makes up id and time. ERR_LIMIT: so many wait that something is wrong.
 */
int vault_journal_add(int dir_fd, const char *sandbox, const struct vault_question *question,
                      const struct vault_answer *answer, struct err *err) MUST_CHECK;

struct vault_journal;
/* ERR_CONFLICT: somebody else is at it. Everything lives in mem; *n may be 0. */
int vault_journal_take(const char *state_dir, struct arena *mem, struct vault_journal **out,
                       struct vault_used **uses, size_t *n, struct err *err) MUST_CHECK;
int vault_journal_forget(struct vault_journal *journal, struct err *err) MUST_CHECK;
void vault_journal_free(struct vault_journal *journal);
AUTO_TYPE(vault_journal)
