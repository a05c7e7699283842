/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lib/base/err.h"
#include "lib/egress/control-wire.h"

/* A connection to the egress program of a state directory, which is started when there is none.
 * Of several who want it at once one starts it. */
/* The same where one runs; ERR_NOT_FOUND: none does. */
int egress_connect_running(const char *state_dir, int *out_fd, struct err *err) MUST_CHECK;
int egress_connect(const char *state_dir, int *out_fd, struct err *err) MUST_CHECK;

/* A new `keeper vault` for this state directory, and the end of the pair that asks; or -1, and
 * why. A network without secrets is a network; who asks for one is told. */
int egress_vault_start(const char *state_dir, enum egress_absence *why);
