/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lib/egress/rules.h"
#include "model/run.h"

#include <stdio.h>

/* The rules about commands: policy explain with one (policy-explain-command.c). */
struct invocation;
int policy_explain_command(struct invocation *inv);

/* What the reader of commands makes of one (policy-explain-seen.c), as lines, unless there is
 * nothing to say besides the command. */
void print_seen(FILE *to, struct words argv);

/* "POST https://host:port/path?query", "GET wss://host/path": what is asked of whom
 * (policy-explain.c). */
int policy_request_line(const char *text, struct net_knock *knock, struct net_request *out,
                        struct err *err) MUST_CHECK;
