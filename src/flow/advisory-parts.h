/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to flow: what the ledger knows of advisory sessions and of who judges them, and how one
 * with a box begins. */

#include "lib/base/err.h"
#include "lib/base/memory.h"

struct advise;
struct advise_talk;
struct advise_terms;
struct govern;
struct json;
struct public_key;
struct request;

/* Who was a custodian from when on, and the words on an agent's reports: as the receipts say it, in
 * whose order. What is on disk besides is believed as far as it is here. */
struct enrolled;
struct spoken;
struct gate_ledger {
    struct arena *mem;
    struct enrolled *custodians; /* the last one first, as below */
    struct spoken *words;
};

/* When it was made, since 1970; 0: nobody knows. */
int64_t receipt_seconds(const struct json *receipt);
/* An outcome of something that was done. */
bool receipt_is_done(const struct json *receipt);
/* The next receipt of an agent with "advisory", or the next one about a custodian. */
void gate_ledger_hear(struct gate_ledger *ledger, const struct json *receipt);
/* The receipt since which this is his key; 0: it is not. */
uint64_t gate_ledger_enrolled(const struct gate_ledger *ledger, const char *name,
                              const struct public_key *key);
/* Whether one of that name ever was one. */
bool gate_ledger_tells_of(const struct gate_ledger *ledger, const char *name);
/* Why a word with this signature does not count any more, or NULL. */
const char *gate_ledger_doubts(const struct gate_ledger *ledger, const char *signature);

/* Both ends of one chain. */
struct anchor {
    const char *id;
    const char *agent_id;
    const char *version;
    const char *constitution;
    const char *channel;
    int64_t started;    /* seconds since 1970 */
    const char *intent; /* receipt of its beginning, */
    uint64_t seq;       /* and its number */
    bool is_stray;      /* it is on disk, and the ledger does not know it (any more) */
    bool has_end;
    uint64_t events;
    const char *head;
};

struct anchors {
    struct arena *mem;
    const char *agent_id; /* only of this one, or NULL */
    struct anchor *of;    /* oldest first */
    size_t n;
    size_t cap;
    const char *released;    /* report of the last release that was not revoked, or NULL, */
    int64_t released_at;     /* and when that was */
    struct gate_ledger gate; /* of an agent */
};

/* From a ledger that holds: ERR_INTEGRITY. */
int anchors_read(struct govern *govern, struct arena *mem, const char *agent_id,
                 struct anchors *out, struct err *err) MUST_CHECK;
/* The same at a cost that does not grow with the ledger: what was verified before is verified no
 * more, but for the receipts of this agent. */
int anchors_recall(struct govern *govern, struct arena *mem, const char *agent_id,
                   struct anchors *out, struct err *err) MUST_CHECK;
/* Adds the sessions of this agent that are on disk though the ledger, which once had them, does not
 * know them: somebody cut it off or put an older one in its place. since: only those that were
 * changed since then (seconds since 1970). */
int anchors_add_strays(struct govern *govern, struct anchors *anchors, int64_t since,
                       struct err *err) MUST_CHECK;
/* What the receipts say of custodians, and nothing else. From a ledger that holds: ERR_INTEGRITY.
 */
int custodians_read(struct govern *govern, struct arena *mem, struct gate_ledger *out,
                    struct err *err) MUST_CHECK;
struct anchor *anchor_find(const struct anchors *anchors, const char *id);
/* Why a chain is not the one the ledger holds both ends of, or NULL. */
const char *anchor_differs(struct arena *mem, const struct anchor *anchor,
                           const struct advise *advise);

/* While something is made in the folder of all sessions, which is made, too; it is let go with
 * *out. What others left there who were killed is cleared when nobody else holds it.
 * ERR_UNAVAILABLE: somebody has been clearing for too long. */
#define AGENT_COPY_PREFIX ".agent-"
int sessions_hold(const char *folder, int *out, struct err *err) MUST_CHECK;

/* A session, with a copy of the agent's program as "agent" in its folder. Whatever was wrong with
 * what its operator named, there is none. */
int agent_begin(struct govern *govern, const struct request *request,
                const struct advise_terms *terms, const struct advise_talk *talk, struct arena *mem,
                struct advise **out, struct err *err) MUST_CHECK;
