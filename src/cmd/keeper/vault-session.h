/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One conversation with whoever may ask for secrets: which request is allowed when, and what it
 * does (lib/keeper/keeper-wire.h). Knows no sockets, so that a test can be the other side. */

#include "lib/keeper/keeper-wire.h"
#include "lib/vault/vault.h"

enum vault_session_state {
    VAULT_SESSION_NEW,
    VAULT_SESSION_READY,
    VAULT_SESSION_OPEN,
};

struct vault_session {
    enum vault_session_state state;
    int dir_fd; /* the vault's folder; borrowed */
    struct vault *vault;
    uint64_t credit_us; /* what may still be spent on reveals */
    uint64_t counted_us;
};

void vault_session_init(struct vault_session *session, int dir_fd);
void vault_session_done(struct vault_session *session);

/* Fills the answer; false: it is the last one. */
bool vault_session_take(struct vault_session *session, const unsigned char *bytes, size_t n,
                        size_t fd_n, struct keeper_vault_answer *out);
