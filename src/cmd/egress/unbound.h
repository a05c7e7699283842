/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Requests for which the keeper of the vault said that nothing is bound, so that the next one like
 * it is not asked for again. Only as long as the vault's file is the very one it spoke of: a
 * binding that was added holds for the next request. Answers that name a slot are never kept, and
 * no secret ever is. */

#include <sys/stat.h>

#include "lib/crypto/crypto.h"
#include "lib/vault/vault.h"

#define UNBOUND_MAX 512

struct unbound {
    int state_fd; /* the state directory, to look at only; -1: nothing is kept */
    struct stat file;
    struct hash known[UNBOUND_MAX]; /* all zero: nobody */
};

/* A question, and the vault before it was asked. */
struct unbound_asked {
    struct hash question;
    struct stat file; /* st_ino 0: there was none */
};

void unbound_init(struct unbound *unbound, int state_fd);
/* True: nothing is bound. False: *out is to be asked, and said if the answer is nothing. */
bool unbound_has(struct unbound *unbound, const struct vault_question *question,
                 struct unbound_asked *out);
void unbound_add(struct unbound *unbound, const struct unbound_asked *asked);
