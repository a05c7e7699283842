/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a person must confirm before it happens (STATE/approvals.db).
 *
 * A verdict of ASK becomes a pending approval, bound to a digest of exactly what would run: the
 * request (argv, environment, working directory), the files it works on, the planned walls, the
 * policy, the sandbox, who asks. Confirmed, it lets exactly that happen, once; anything else asks
 * anew. Nobody confirms what he asked for himself. No answer in time is a refusal.
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
#define APPROVAL_WORDS_MAX 64 /* on one request, that are shown */

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

/* Whose word, and how it came. */
struct approval_voice {
    const char *by;
    const char *made_by; /* who made the token it came with, and theirs, and so on, with spaces
                          * between; "": it came without one, or nobody knows */
    bool is_custodian;   /* proven by a signature */
    bool confirm;
    const char *comment; /* or "" */
    const char *run_id;  /* under which the ledger has it; "": kept by a Brig that did not say */
    int64_t at;          /* of one that was kept */
};

/* What it points to lives in the arena it was read into. */
struct approval {
    uint64_t seq;
    const char *id;
    const char *digest;
    const char *frame; /* the digest without the content of operands */
    const char *requester;
    const char *subject; /* canonical JSON: what would happen, for the person */
    enum approval_state state;
    int64_t asked_at; /* seconds since 1970 */
    int64_t expires_at;
    int64_t decided_at;     /* 0: nobody has */
    const char *decided_by; /* or "" */
    const char *comment;    /* or "" */
    struct approval_terms terms;
    unsigned confirmations;
    const struct approval_voice *words; /* so far; not filled by a list, nor by approvals_ask()
                                         * unless it is USED */
    size_t word_n;
    bool stands;          /* its receipt is in the ledger: people see it, and may answer */
    uint64_t receipt_seq; /* the number of that one; 0: not known */
    /* Of one that was just asked for: an earlier one that is the same but for what its operands
     * hold, and which of them that are; or NULL. */
    const char *earlier_id;
    const char *changed;
};

struct approvals;
/* ERR_INTEGRITY: it was there and is gone, with what waited and with the custodians. */
int approvals_open(const char *state_dir, struct approvals **out, struct err *err) MUST_CHECK;
/* Begins anew where it is gone: nothing waits, and nobody is a custodian. ERR_CONFLICT: it is
 * there.
 */
int approvals_renew(const char *state_dir, struct approvals **out, struct err *err) MUST_CHECK;
void approvals_free(struct approvals *approvals);
AUTO_TYPE(approvals)

/* ---- what a command works on, by content (operands.c) ---- */

enum operand_kind {
    OPERAND_FILE,
    OPERAND_FOLDER,
};

struct operand {
    const char *path; /* inside */
    enum operand_kind kind;
    uint64_t bytes;
    uint64_t entries;            /* of a folder */
    char hash[MODEL_HASH_BYTES]; /* of a folder: over all that is in it; "": not bound */
    const char *why;             /* it is not bound; or NULL */
};

struct operands {
    const struct operand *of;
    size_t n;
    const char *unbound; /* the first that is not bound, and why, as a sentence; NULL: none */
};

/* Through which a run's files can be looked at before it begins: its mounts, or the root of the
 * kept sandbox it happens in (taken; -1: none). Looks as often as asked, at what is there then. */
struct operand_view;
/* Where the root of a kept sandbox may not be opened: somebody inside who opens files. 1: *out is
 * the file, or -1 when it is something else; 0: there is nothing. */
struct operand_reader {
    int (*open)(void *context, const char *path, int *out, struct err *err);
    void *context;
};
int operand_view_open(const struct run *run, int root_fd, const struct operand_reader *reader,
                      struct operand_view **out, struct err *err) MUST_CHECK;
void operand_view_free(struct operand_view *view);
AUTO_TYPE(operand_view)
int operand_view_look(struct operand_view *view, struct arena *mem, const struct run *run,
                      struct operands *out, struct err *err) MUST_CHECK;
/* The paths of those that differ, for a person; NULL: none do. */
const char *operands_differ(struct arena *mem, const struct operands *a, const struct operands *b);

/* For a planned run whose verdict is ASK: what stands for exactly this. USED: it was confirmed, and
 * that is now used up. PENDING: somebody must be asked, as of now if nobody was before. ERR_LIMIT:
 * too many wait already, or what it works on is more than can be bound.
 *
 * One that does not stand is seen by nobody but this function, whatever happens next: its receipt
 * comes first, then approvals_stand(). */
int approvals_ask(struct approvals *approvals, struct arena *mem, const struct run *run,
                  const struct operands *operands, struct approval *out,
                  struct err *err) MUST_CHECK;

/* The ledger has the receipt of this number, which says that it is asked: from now on it waits for
 * a person, for as long as he has. *is_new: it did not stand before. */
int approvals_stand(struct approvals *approvals, struct arena *mem, const char *id,
                    uint64_t receipt_seq, struct approval *out, bool *is_new,
                    struct err *err) MUST_CHECK;

/* For a planned run that follows from a question: whether the word that one had was given for
 * exactly this. *changed: what is other than it was then, for a person; NULL: nothing.
 * ERR_FORBIDDEN: that one has no word. */
int approvals_recall(struct approvals *approvals, struct arena *mem, const struct run *run,
                     const struct operands *operands, const char *id, const char **changed,
                     struct err *err) MUST_CHECK;

/* By id or an unambiguous beginning of one. */
int approvals_show(struct approvals *approvals, struct arena *mem, const char *name,
                   struct approval *out, struct err *err) MUST_CHECK;

/* The pending one for exactly this. */
int approvals_by_digest(struct approvals *approvals, struct arena *mem, const char *digest,
                        struct approval *out, struct err *err) MUST_CHECK;

struct approvals_query {
    int state;             /* an enum approval_state, or -1: any */
    const char *requester; /* or NULL: anybody */
    uint64_t after_seq;    /* only later ones */
    unsigned limit;
};
/* What requests ask for may have megabytes each, and tens of thousands of words; a page ends behind
 * the one with which it has more than this, so that whoever asks for it can read it. */
#define APPROVALS_PAGE_BYTES_MAX (1 * MIB)
#define APPROVALS_PAGE_VALUES_MAX (JSON_NODES_MAX / 2)
/* Oldest first. What a visitor is shown lives until it returns. 1: the page is full, and there may
 * be more. */
int approvals_each(struct approvals *approvals, const struct approvals_query *query,
                   int (*visit)(void *context, const struct approval *approval, struct err *err),
                   void *context, struct err *err) MUST_CHECK;

/* A person's word: *out is what stands then, CONFIRMED once there are enough. ERR_FORBIDDEN: he
 * asked for it himself, or is not among those who may. ERR_CONFLICT: it is no longer pending, or he
 * has said so before. ERR_INVALID: a reason is wanted. */
int approvals_decide(struct approvals *approvals, struct arena *mem, const char *id,
                     const struct approval_voice *voice, struct approval *out,
                     struct err *err) MUST_CHECK;

/* Whether its words are those of as many different people as these terms (NULL: one, whoever may)
 * want, none of whom asked. Terms and requester of the run that is about to use it: what the list
 * says they are could have been written by anybody who can write the list. ERR_FORBIDDEN: they are
 * not. */
int approval_enough(const struct approval *approval, const struct approval_terms *terms,
                    const char *requester, struct err *err) MUST_CHECK;

/* ---- what is over without an answer (ends.c) ---- */

/* One whose receipt is still to be written: under this run, whoever writes it. */
struct approval_end {
    const char *id;
    const char *digest;
    const char *requester;
    char run_id[ID_BYTES];
};
int approvals_have_ends(struct approvals *approvals, bool *out, struct err *err) MUST_CHECK;
/* What is over becomes so in the list; *n are those without a receipt, at most max. */
int approvals_ends(struct approvals *approvals, struct arena *mem, struct approval_end *ends,
                   size_t max, size_t *n, struct err *err) MUST_CHECK;
/* The ledger has these. */
int approvals_ends_told(struct approvals *approvals, const struct approval_end *ends, size_t n,
                        struct err *err) MUST_CHECK;

/* ---- custodians: people who sign what they confirm ---- */

struct custodian {
    const char *name;
    struct public_key key;
    bool has_passphrase; /* the other half is here, sealed */
    int64_t enrolled_at;
    int64_t revoked_at; /* 0: he is one */
};

/* With a passphrase a key is made and kept sealed; or (passphrase.p NULL) only *key is known here,
 * and its owner signs elsewhere. Once there is one, another needs the word of one: by, with his
 * passphrase. */
int custodian_enroll(struct approvals *approvals, const char *name, struct str passphrase,
                     const struct public_key *key, const char *by, struct str by_passphrase,
                     struct custodian *out, struct err *err) MUST_CHECK;
/* Whether he is one already, and this is he: with the same passphrase or the same key, and, unless
 * he is the only one, with the word of another. ERR_FORBIDDEN, ERR_NOT_FOUND: not so. */
int custodian_again(struct approvals *approvals, struct arena *mem, const char *name,
                    struct str passphrase, const struct public_key *key, const char *by,
                    struct str by_passphrase, struct custodian *out, struct err *err) MUST_CHECK;
/* His word counts no longer, by that of a custodian, who may be himself: nor do those he gave on
 * what has not happened yet, so that what they were needed for waits or is asked for again. Never
 * the last one. */
int custodian_remove(struct approvals *approvals, struct arena *mem, const char *name,
                     const char *by, struct str by_passphrase, struct custodian *out,
                     struct err *err) MUST_CHECK;
/* All there are and were. */
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
