/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to surface/cli: documents of approvals as text. */

#include "lib/json/json.h"
#include "surface/cli/commands.h"

void print_approval_line(struct invocation *inv, const struct json *doc);
/* All of it, or with --json the document. */
int print_approval(struct invocation *inv, const struct json *doc);
