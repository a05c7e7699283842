/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lib/base/err.h"

/* A connection to the egress program of a state directory, which is started when there is none.
 * Of several who want it at once one starts it. */
/* The same where one runs; ERR_NOT_FOUND: none does. */
int egress_connect_running(const char *state_dir, int *out_fd, struct err *err) MUST_CHECK;
int egress_connect(const char *state_dir, int *out_fd, struct err *err) MUST_CHECK;
