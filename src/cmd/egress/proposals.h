/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What sandboxes asked for and people have not answered yet, or have since we run.
 *
 * Each is a line of STATE/egress/proposals before the sandbox hears its id, and each answer
 * another one before the sandbox hears that; the lines are in docs/formats/egress-proposals.md.
 * When we begin, those that still wait are read and the rest is left out. A proposal belongs to a
 * sandbox by its id, and outlives us and a restart of the sandbox; after a day it is gone. */

#include "cmd/egress/ceilings.h"
#include "lib/base/clock.h"
#include "lib/crypto/crypto.h"
#include "lib/egress/control-wire.h"
#include "lib/egress/proposal.h"

#define PROPOSAL_ID_BYTES (5 + ID_BYTES) /* "prop-" */

enum proposal_status {
    PROPOSAL_PENDING = 0,
    PROPOSAL_APPROVED,
    PROPOSAL_REJECTED,
    PROPOSAL_EXPIRED,
};

struct waiting {
    struct waiting *next;
    char id[PROPOSAL_ID_BYTES];
    char sandbox[EGRESS_NAME_BYTES];
    enum proposal_status status;
    uint64_t expires_ns;               /* by the clock on the wall: it outlives us */
    char *name;                        /* of the entry */
    char *rule;                        /* the entry as canonical JSON */
    char *record;                      /* the line it was written as, without its end */
    char *reason;                      /* of a person, or NULL */
    char policy_hash[HASH_TEXT_BYTES]; /* of the rules that hold with it; or "" */
};

struct proposals {
    struct waiting *first; /* the latest first */
    size_t n;
    int fd;
    uint64_t size; /* of the file */
};

const char *proposal_status_name(enum proposal_status status);

/* Reads and rewrites the file in that folder, and keeps it open. */
int proposals_open(struct proposals *proposals, int dir_fd, struct err *err) MUST_CHECK;
/* Closes the file and forgets what waits; also after an open that failed. */
void proposals_done(struct proposals *proposals);

struct proposal_new {
    const char *sandbox;
    const struct egress_who_text *who;
    struct str intent;
    struct str binary;      /* who asked; empty: not known */
    const char *rules_hash; /* of the rules it is made against */
    const struct proposal *proposal;
};
/* *out is the id. One that waits already, word for word, is that one again. -1: the reason, for who
 * asked. */
int proposals_add(struct proposals *proposals, const struct proposal_new *ask, const char **out,
                  struct err *err) MUST_CHECK;

/* One of this sandbox, or NULL. */
struct waiting *proposals_find(struct proposals *proposals, const char *sandbox, struct str id);

struct proposal_word {
    bool approve;
    struct str by, reason;
    struct str policy_hash; /* of an approval; else empty */
};
/* A person's word. ERR_CONFLICT: there is one already. */
int proposals_decide(struct proposals *proposals, struct waiting *waiting,
                     const struct proposal_word *word, struct err *err) MUST_CHECK;

/* All of them, or (sandbox not NULL) those of one, the latest first. */
struct json *proposals_json(struct proposals *proposals, const char *sandbox, struct arena *mem);
