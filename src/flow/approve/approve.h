/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a person must confirm before it happens (STATE/approvals.db).
 *
 * A verdict of ASK becomes a pending approval, bound to a digest of exactly what would run: the
 * request (argv, environment, working directory, operands), the planned walls, the policy, the
 * sandbox, who asks. Confirmed, it lets exactly that happen, once; anything else asks anew. Nobody
 * confirms what he asked for himself. No answer in time is a refusal.
 *
 *     PENDING ──confirm──▶ CONFIRMED ──the same request again──▶ USED
 *        │ └────reject───▶ REJECTED
 *        └ or CONFIRMED, too late: EXPIRED
 *
 * Several processes may use one store; a struct approvals is for one thread. */

#include "lib/base/memory.h"
#include "lib/crypto/crypto.h"
#include "model/run.h"

#define APPROVAL_PENDING_S (60 * 60) /* how long a person has */
#define APPROVAL_USE_S (10 * 60)     /* and then who asked */
#define APPROVALS_PENDING_MAX 100000
#define APPROVALS_PENDING_EACH_MAX 1000 /* of one requester */
#define APPROVAL_COMMENT_MAX 1024
#define APPROVAL_NAME_MAX 64

#define APPROVAL_STATES(X)                                                                         \
    X(PENDING, "pending")                                                                          \
    X(CONFIRMED, "confirmed")                                                                      \
    X(REJECTED, "rejected")                                                                        \
    X(USED, "used")                                                                                \
    X(EXPIRED, "expired")

enum approval_state {
#define X(id, name) APPROVAL_##id,
    APPROVAL_STATES(X)
#undef X
        APPROVAL_STATE_COUNT
};
const char *approval_state_name(enum approval_state state);

/* What it points to lives in the arena it was read into. */
struct approval {
    uint64_t seq;
    const char *id;
    const char *digest;
    const char *requester;
    const char *subject; /* canonical JSON: what would happen, for the person */
    enum approval_state state;
    int64_t asked_at; /* seconds since 1970 */
    int64_t expires_at;
    int64_t decided_at;     /* 0: nobody has */
    const char *decided_by; /* or "" */
    const char *comment;    /* or "" */
};

struct approvals;
int approvals_open(const char *state_dir, struct approvals **out, struct err *err) MUST_CHECK;
void approvals_free(struct approvals *approvals);
AUTO_TYPE(approvals)

/* For a planned run whose verdict is ASK: what stands for exactly this. USED: it was confirmed, and
 * that is now used up. PENDING: somebody must be asked, as of now if nobody was before. ERR_LIMIT:
 * too many wait already. */
int approvals_ask(struct approvals *approvals, struct arena *mem, const struct run *run,
                  struct approval *out, struct err *err) MUST_CHECK;

/* By id or an unambiguous beginning of one. */
int approvals_show(struct approvals *approvals, struct arena *mem, const char *name,
                   struct approval *out, struct err *err) MUST_CHECK;

struct approvals_query {
    int state;          /* an enum approval_state, or -1: any */
    uint64_t after_seq; /* only later ones */
    unsigned limit;
};
/* Oldest first. What a visitor is shown lives until it returns. */
int approvals_each(struct approvals *approvals, const struct approvals_query *query,
                   int (*visit)(void *context, const struct approval *approval, struct err *err),
                   void *context, struct err *err) MUST_CHECK;

/* A person's word. ERR_FORBIDDEN: he confirms what he asked for himself. ERR_CONFLICT: it is no
 * longer pending.
 */
int approvals_decide(struct approvals *approvals, struct arena *mem, const char *id, bool confirm,
                     const char *by, const char *comment, struct approval *out,
                     struct err *err) MUST_CHECK;

/* ---- custodians: people who sign what they confirm ---- */

struct custodian {
    const char *name;
    struct public_key key;
    bool has_passphrase; /* the other half is here, sealed */
    int64_t enrolled_at;
};

/* With a passphrase a key is made and kept sealed; or (passphrase.p NULL) only *key is known here,
 * and its owner signs elsewhere. Once there is one, another needs the word of one: by, with his
 * passphrase. */
int custodian_enroll(struct approvals *approvals, const char *name, struct str passphrase,
                     const struct public_key *key, const char *by, struct str by_passphrase,
                     struct custodian *out, struct err *err) MUST_CHECK;
int custodian_each(struct approvals *approvals,
                   int (*visit)(void *context, const struct custodian *custodian, struct err *err),
                   void *context, struct err *err) MUST_CHECK;
int custodian_by_key(struct approvals *approvals, struct arena *mem, const struct public_key *key,
                     struct custodian *out, struct err *err) MUST_CHECK;
/* What a custodian signs: SHA-256 over "brig/approval/1", NUL, "confirm" or "reject", NUL, id, NUL,
 * digest. */
void approval_preimage(const struct approval *approval, bool confirm, struct hash *out);
int custodian_sign(struct approvals *approvals, const char *name, struct str passphrase,
                   const struct hash *hash, struct signature *out, struct err *err) MUST_CHECK;
/* ERR_FORBIDDEN: not by him. */
int custodian_check(struct approvals *approvals, const char *name, const struct hash *hash,
                    const struct signature *signature, struct err *err) MUST_CHECK;
