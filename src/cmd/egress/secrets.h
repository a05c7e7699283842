/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Questions to `keeper vault` (lib/keeper/keeper-wire.h), answered later. There are so many at once
 * and no more; when the keeper is gone, all fail, and every later one does at once. */

#include "cmd/egress/ceilings.h"
#include "cmd/egress/loop.h"
#include "cmd/egress/unbound.h"
#include "lib/egress/control-wire.h"
#include "lib/vault/vault-ask.h"

struct ask;

struct secrets {
    struct loop *loop;
    struct watch keeper;         /* fd -1: there is none */
    bool was_open;               /* there has been one */
    enum egress_absence absence; /* else: why, as the last controller found it */
    struct ask *first;           /* in the order they were asked */
    struct ask **last;
    size_t ask_n;
    size_t sent_n; /* on their way */
    uint32_t serial;
    struct unbound unbound; /* what need not be asked again */
};

/* One question. Its owner zeroes it, sets `on`, and cancels it before its memory goes away. */
struct ask {
    struct ask *next;
    struct ask **at; /* NULL: not under way */
    struct secrets *secrets;
    uint32_t serial;
    bool is_sent;
    bool wants_value;
    struct unbound_asked asked;           /* BOUND */
    struct keeper_vault_request *request; /* until it is sent */
    void (*on)(struct ask *ask);

    bool is_done;
    bool failed; /* err says why */
    struct err err;
    struct secret *value;                     /* REVEAL: the owner's to take and free */
    struct vault_slot slots[VAULT_BOUND_MAX]; /* BOUND */
    size_t slot_n;
};

/* The state directory is taken over, to look at; -1: there is none. */
void secrets_init(struct secrets *secrets, int state_fd);
/* Takes the descriptor on success; one that is there already stays, and the new one is closed. */
int secrets_take(struct secrets *secrets, struct loop *loop, int fd, struct err *err) MUST_CHECK;
bool secrets_are_open(const struct secrets *secrets);

/* Begins to ask; what cannot be asked, or need not be, is_done at once, and `on` is not called. */
void ask_begin(struct secrets *secrets, struct ask *ask, enum keeper_vault_verb verb,
               const char *sandbox, const struct vault_question *question);
void ask_cancel(struct ask *ask);
