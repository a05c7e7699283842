/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One connection out of a sandbox, from accept to its end. What others may do with it; how it goes
 * on by itself is in conn-private.h. */

#include "cmd/egress/hub.h"

/* Takes the descriptor, and the caller, which may be NULL: nobody is known to have called. */
void conn_open(struct entrance *entrance, int fd, const struct tuple *tuple, struct caller *caller);
/* At once, without a word. */
void conn_close(struct conn *conn);
struct conn *conn_next(struct conn *conn); /* of the same sandbox */
/* The sandbox has other rules: closes it if it could not be opened under these. */
void conn_judge_again(struct conn *conn);
/* What it carried since the last time goes into the accounts. */
void conn_count(struct conn *conn);
