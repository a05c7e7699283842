/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A controller's side of the egress program: the one process of a state directory that carries
 * bytes between its sandboxes and the network.
 *
 * It is started by whoever needs it first and ends by itself a moment after its last sandbox and
 * its last controller are gone. A sandbox lives there until it is ended, or until the other end of
 * its handover pair is closed: with the box gone its rules are. When the program is gone, so are
 * the listeners in all sandboxes: no network; what is asked of it then fails with ERR_UNAVAILABLE.
 *
 * Every call ends within seconds. Any thread may call these. */

#include "lib/crypto/crypto.h"
#include "lib/json/json.h"

struct egress;

/* Finds the program of this state directory, or starts it. */
int egress_open(const char *state_dir, struct egress **out, struct err *err) MUST_CHECK;
/* The one that runs; ERR_NOT_FOUND: none does. */
int egress_find(const char *state_dir, struct egress **out, struct err *err) MUST_CHECK;
void egress_free(struct egress *egress);
AUTO_TYPE(egress)

/* Gives a sandbox rules, and the program one end of the pair through which the box will hand over
 * its listeners (lib/egress/handover.h); that descriptor stays the caller's to close. The
 * answer is the hash of what was compiled. ERR_CONFLICT: there is a sandbox of this id. A set of
 * rules that does not compile fails with its reason, and there is no sandbox. */
int egress_sandbox(struct egress *egress, const char *id, struct str rules, int handover_fd,
                   struct hash *out, struct err *err) MUST_CHECK;

/* Whose it is, for secrets that are bound to somebody; before it is said, the tenant "default"'s
 * and nobody's in particular. With a sandbox and with a window egress also gets the keeper of the
 * vault, if this state directory has a vault that opens without a passphrase. */
struct egress_who {
    const char *tenant;
    const char *subject;
    const char *pack; /* "": none */
    const char *name; /* what other sandboxes call it besides its id; too long is none */
};
int egress_who(struct egress *egress, const char *id, const struct egress_who *who,
               struct err *err) MUST_CHECK;

/* Other rules for it: from the answer on every new connection and request is judged by them, and
 * open connections that lost their rule are closed within a second. On -1 the old ones stay. */
int egress_swap(struct egress *egress, const char *id, struct str rules, struct hash *out,
                struct err *err) MUST_CHECK;

/* Begins to count for one run, whose mark is any name of the caller's. While that goes on no more
 * than so many bytes pass, both ways together, of the whole sandbox; UINT64_MAX: any number. A
 * window with such a bound is forgotten when this struct egress is. After the first one of a
 * sandbox nothing passes while no window is open. */
int egress_window(struct egress *egress, const char *id, const char *mark, uint64_t bytes,
                  struct err *err) MUST_CHECK;

/* What was counted for a run since its window began, or with mark NULL since the sandbox did:
 *
 *     {"connections":N,"requests":N,"refused":N,"bytes_out":N,"bytes_in":N,
 *      "secrets":N,"scrubbed":N,
 *      "rules":[{"rule":"…","connections":N,"requests":N,"refused":N,"bytes_out":N,"bytes_in":N,
 *                "secrets":N,"scrubbed":N,"latency_us":N}],
 *      "rules_left_out":N,
 *      "refusals":[{"host":"…","port":N,"method":"…","path":"…","binary":"…","reason":"…",
 *                   "count":N}],
 *      "refusals_left_out":N,"policy_hash":"sha256:…","spent":true}
 *
 * spent is there when something was kept back because the window's bytes were used up.
 * secrets counts those that were put into requests, scrubbed those that were taken out of answers.
 * latency_us is the sum over requests of the time between the last byte of the request's head and
 * the first of its answer. What was said by the sandbox (host, method, path) is cut to a bound and
 * holds no control bytes. With `last` the window is forgotten after the answer. The tree is the
 * arena's. */
int egress_counters(struct egress *egress, const char *id, const char *mark, bool last,
                    struct arena *mem, const struct json **out, struct err *err) MUST_CHECK;

/* Closes everything it has open, and takes its listeners away. Missing is success. */
int egress_end(struct egress *egress, const char *id, struct err *err) MUST_CHECK;

/* Events behind number `after`, oldest first, as many as one answer has room for:
 *
 *     {"events":[{"number":N,…}],"next":N,"lost":N}
 *
 * lost counts those that were dropped before anyone asked. docs/formats has the fields of one. */
int egress_events(struct egress *egress, uint64_t after, struct arena *mem, const struct json **out,
                  struct err *err) MUST_CHECK;

/* What sandboxes asked for at policy.local (docs/formats/egress-proposals.md), the latest first; of
 * one, or with id NULL of all: {"proposals":[{"id":…,"status":"pending",…}]}. */
int egress_proposals(struct egress *egress, const char *id, struct arena *mem,
                     const struct json **out, struct err *err) MUST_CHECK;

/* A person's word on one of them, durable when this returns; then the sandbox hears it. For a yes
 * policy_hash is that of the rules which hold with it, else "". ERR_CONFLICT: there is a word. */
struct egress_word {
    bool approve;
    const char *by;
    const char *reason; /* or "" */
    const char *policy_hash;
};
int egress_decide(struct egress *egress, const char *id, const char *proposal,
                  const struct egress_word *word, struct err *err) MUST_CHECK;
