/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to surface/cli: where "policy suggest" has its refusals from. */

#include "lib/egress/suggest.h"
#include "surface/cli/cli.h"

/* Refusals of --refusals, --sandbox or --run, whichever one was given. Of a sandbox that stands
 * *policy is the text it has, "" for the built-in one; else NULL. */
int refusals_read(struct invocation *inv, struct suggest *suggest, const char **policy,
                  struct err *err) MUST_CHECK;
