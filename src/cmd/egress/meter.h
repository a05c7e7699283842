/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How many bytes of a sandbox may still pass between egress and servers, both ways together: what
 * budgets leave its commands (docs/budget.md). Whoever reads from a server or writes to one asks
 * first and takes no more than that, so not one byte passes beyond it.
 *
 * Whose bytes they are nobody can tell, so each command that is counted pays for all that pass
 * meanwhile, and the one with the least left decides. Once one had a bound, nothing passes while
 * none is counted: what is left behind has nothing to pay with. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define METER_NO_END UINT64_MAX

struct meter {
    uint64_t paid; /* since the sandbox began */
    uint64_t ends; /* paid does not get beyond it; METER_NO_END: there is no bound */
    uint64_t kept; /* times that something was kept back */
    bool is_bound; /* somebody had a bound, once */
};
#define METER_OPEN ((struct meter){.ends = METER_NO_END})

/* One command's, from when it is counted until it is not. All zero, nothing may pass. */
struct meter_claim {
    uint64_t began; /* with so much paid, */
    uint64_t kept;  /* and so often kept back */
    uint64_t bytes; /* may pass from there on; METER_NO_END: any number */
};

struct meter_claim meter_claim(struct meter *meter, uint64_t bytes);
/* After a claim was added or is gone: `next` gives one after the other, and then NULL. */
void meter_bind(struct meter *meter, const struct meter_claim *(*next)(void *context),
                void *context);
/* Whether this one has nothing left, and something was kept back since it began. */
bool meter_is_spent(const struct meter *meter, const struct meter_claim *claim);

/* A connection has one or two: of the sandbox it comes from, and of one it leads into. */
#define METERS_MAX 2
struct meters {
    struct meter *of[METERS_MAX]; /* NULL: none */
};
uint64_t meters_left(const struct meters *meters);
void meters_pay(const struct meters *meters, uint64_t bytes);
/* Something had to be kept back: of those that have nothing left. */
void meters_keep(const struct meters *meters);
