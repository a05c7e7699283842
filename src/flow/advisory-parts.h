/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to flow: what the ledger knows of advisory sessions, and how one with a box begins. */

#include "lib/base/err.h"
#include "lib/base/memory.h"

struct advise;
struct advise_talk;
struct advise_terms;
struct govern;
struct request;

/* Both ends of one chain. */
struct anchor {
    const char *id;
    const char *agent_id;
    const char *version;
    const char *constitution;
    const char *channel;
    const char *started; /* RFC 3339 */
    const char *intent;  /* receipt of its beginning */
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
    const char *released; /* report of the last release that was not revoked, or NULL */
};

/* From a ledger that holds: ERR_INTEGRITY. */
int anchors_read(struct govern *govern, struct arena *mem, const char *agent_id,
                 struct anchors *out, struct err *err) MUST_CHECK;
/* The same at a cost that does not grow with the ledger: what was verified before is verified no
 * more, but for the receipts of this agent. */
int anchors_recall(struct govern *govern, struct arena *mem, const char *agent_id,
                   struct anchors *out, struct err *err) MUST_CHECK;
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
