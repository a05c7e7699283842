/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to surface/cli: where "policy suggest" has its refusals from, and what else those want to
 * know who tell what a rule would open. */

#include "lib/egress/suggest.h"
#include "surface/cli/cli.h"

/* Refusals of --refusals, --sandbox or --run, whichever one was given. Of a sandbox that stands
 * *policy is the text it has, "" for the built-in one; else NULL. */
int refusals_read(struct invocation *inv, struct suggest *suggest, const char **policy,
                  struct err *err) MUST_CHECK;

/* Hosts that a binding of the vault names. Without the passphrase nobody knows which are bound:
 * then the sentence that says so comes back, else NULL. */
const char *vault_hosts(struct invocation *inv, const char *state_dir,
                        void (*on_host)(void *context, struct str host, unsigned port),
                        void *context);
