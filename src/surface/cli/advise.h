/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Shared by the commands of advisory sessions and of the gate. */

#include "surface/cli/cli.h"

#define ADVISORY_FOUND_STATUS 10      /* as "advisory check": something was found */
#define ADVISORY_UNANSWERED_STATUS 14 /* as there: no envelope, not even a bad one */

struct advise;
struct advise_action;
struct json;

/* advise-actions.c */

/* A custodian's word on it would count. */
bool action_waits(const struct advise *advise, const struct advise_action *action);
/* What advise_action_reading() says, and then the request in the agent's words. */
void print_action_shown(FILE *to, struct arena *mem, const struct advise *advise,
                        const struct advise_action *action, const struct json *reading);
/* How a custodian gives his word on it. */
void print_action_decide(FILE *to, const struct advise *advise, const struct advise_action *action);
/* In half a line: "delete /sandbox/output/a (irreversible)". */
void print_intent(FILE *to, const struct json *reading);
/* As JSON; with Brig's reading of it when it waits. */
struct json *action_doc(struct arena *mem, const struct advise *advise,
                        const struct advise_action *action);
