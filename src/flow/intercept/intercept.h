/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lib/base/err.h"

#include <stdbool.h>

struct run;
struct str;

/* What a sandbox reaches for meanwhile: its rules at the egress program of the state directory,
 * from before it is built until nothing of it is left.
 *
 * The sandbox and egress meet over a pair of sockets. While the sandbox is built its end is held
 * here, too, so that counters can be asked for after its last process; from then on it is box's
 * alone, and the sandbox is gone from egress when box is: nothing is left of it whoever dies. */
struct intercept;

struct intercept *intercept_new(const char *state_dir);
void intercept_free(struct intercept *intercept);
AUTO_TYPE(intercept)

/* Makes sure that there is an egress program, which has made what a plan of such rules needs. */
int intercept_ready(struct intercept *intercept, const struct run *run, struct err *err) MUST_CHECK;

/* Each does nothing for a run whose plan has no network. */

/* Gives the sandbox its rules, and the plan box's end of the pair. A command in a sandbox
 * that stands comes to rules that are there. */
int intercept_begin(struct intercept *intercept, struct run *run, struct err *err) MUST_CHECK;

/* Asks egress what it holds for the sandbox, into run->seen: no answer is no rules. */
void intercept_observe(struct intercept *intercept, struct run *run);

/* Counting for this run begins, and ends: run->outcome.egress. Fails where a budget leaves the run
 * so many bytes and egress does not hold that: then it must not go on. */
int intercept_count(struct intercept *intercept, struct run *run, struct err *err) MUST_CHECK;
void intercept_collect(struct intercept *intercept, struct run *run);

/* Lets go of the sandbox: it is box's now or, unless it stays, ended. Twice is once. */
void intercept_end(struct intercept *intercept, struct run *run, bool stays);

/* What was counted for a kept sandbox since it was made, into run->outcome.egress. */
void intercept_total(struct intercept *intercept, struct run *run);

/* Other rules for a sandbox that stands; hash is of what egress has from now on. On -1 the old ones
 * hold. */
int intercept_swap(struct intercept *intercept, const char *sandbox, struct str rules, char *hash,
                   struct err *err) MUST_CHECK;

/* What sandboxes asked for at policy.local: egress_proposals(). */
struct arena;
struct json;
int intercept_proposals(const char *state_dir, struct arena *mem, const struct json **out,
                        struct err *err) MUST_CHECK;
/* A person's word on one of them: durable, and heard inside. */
struct intercept_word {
    bool approve;
    const char *by;
    const char *reason;       /* or "" */
    const char *network_hash; /* of the rules that hold with it; or "" */
};
int intercept_answer(struct intercept *intercept, const char *sandbox, const char *proposal,
                     const struct intercept_word *word, struct err *err) MUST_CHECK;

/* Lets go of egress after these: it ends by itself when nobody needs it. */
void intercept_rest(struct intercept *intercept);

/* Which rules egress has for a sandbox: "sha256:…" in hash. ERR_NOT_FOUND, ERR_UNAVAILABLE: it has
 * none any more, so there is no network until it is made again. */
int intercept_look(struct intercept *intercept, const char *sandbox, char *hash,
                   struct err *err) MUST_CHECK;
