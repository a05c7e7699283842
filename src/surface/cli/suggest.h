/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to surface/cli: where "policy suggest" has its refusals from. */

#include "lib/egress/suggest.h"
#include "surface/cli/cli.h"

/* Refusals of --refusals, --sandbox or --run, whichever one was given. */
int refusals_read(struct invocation *inv, struct suggest *suggest, struct err *err) MUST_CHECK;
