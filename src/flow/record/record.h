/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What is kept of a run: signed receipts, each chained to the one before it.
 *
 * docs/formats/receipt.md is the format. The ledger, its key and the public half lie in the state
 * directory:
 *
 *    receipts.db     SQLite, every commit synced
 *    receipts.key    the signing key, 0600, made at first use
 *    receipts.pub    its public half, PEM, for openssl and for other machines
 *    receipts.spare  room that is given up when the disk is full, so that a run can still end
 *
 * Several processes append to one ledger: the head is read, the receipt signed and inserted in
 * one immediate transaction. Threads of a process may append to one struct record: receipts that
 * come while another one waits for the disk become durable together. Everything else is for one
 * thread at a time. After a fork the child opens its own. */

#include "lib/base/buf.h"
#include "lib/base/memory.h"
#include "lib/crypto/crypto.h"
#include "model/run.h"

struct json;
struct record;

/* Who opens the signer of a state directory, making its key at first use. */
struct record_signing {
    int (*open)(void *context, const char *state_dir, struct signer **out, struct err *err);
    void *context;
};

/* From now on no ledger of this process is signed by it, and it opens no key file, not even for
 * the public half. For the whole process, before it has threads: so no way through it can forget.
 */
void record_sign_elsewhere(const struct record_signing *signing);

/* Whether there is a ledger, or nobody can tell: opening it makes one. */
bool record_exists(const char *state_dir);
/* A key file others can reach, a damaged or foreign ledger: ERR_INTEGRITY. No room, no rights:
 * ERR_LIMIT, ERR_UNAVAILABLE. */
int record_open(const char *state_dir, struct record **out, struct err *err) MUST_CHECK;
/* The same for who only reads: nothing is made beside the ledger. */
int record_open_to_read(const char *state_dir, struct record **out, struct err *err) MUST_CHECK;
void record_free(struct record *record);
AUTO_TYPE(record)

/* ---- writing ---- */

/* Durable when it returns; fills run->intent. Kind "intent" for an allowed run, "denial" for
 * DENY and ASK (whose status is PENDING). Nothing may take effect before it returned 0. */
int record_intent(struct record *record, struct run *run, struct err *err) MUST_CHECK;

/* The end of a run that record_intent() allowed; fills run->closing. Kind "outcome", or "denial"
 * when the verdict became DENY since. A run ends once: ERR_CONFLICT when it has ended already.
 * On a full disk the spare room is used. */
int record_close(struct record *record, struct run *run, struct err *err) MUST_CHECK;

/* The outcome of a run whose supervisor died: reason RUN_ABANDONED. Nothing happens when the run
 * has ended already or was denied; ERR_NOT_FOUND when the ledger does not know it. */
int record_abandoned(struct record *record, const char *run_id, struct err *err) MUST_CHECK;

/* Whether there is any receipt of this run. */
int record_knows(struct record *record, const char *run_id, bool *out, struct err *err) MUST_CHECK;

/* The same for a run that went on without its Brig and whose end is known. */
int record_ended(struct record *record, const char *run_id, const struct outcome *outcome,
                 struct err *err) MUST_CHECK;

/* One of many receipts that become durable together. */
struct record_entry {
    struct run *run;
    bool closing; /* record_close(), else record_intent() */
};

/* All or none, in one transaction, in this order; as durable as one by one. */
int record_append_many(struct record *record, const struct record_entry *entries, size_t n,
                       struct err *err) MUST_CHECK;

/* The whole work but the disk: makes and signs what record_intent() would append to an empty
 * ledger, and fills run->intent. */
int record_rehearse(struct record *record, struct run *run, struct err *err) MUST_CHECK;

/* ---- reading ---- */

/* Called for each receipt with its complete JSON (hash and signature included), valid during the
 * call; -1 ends the reading. */
typedef int record_visitor(void *context, const struct json *receipt, struct err *err);

struct record_query {
    uint64_t before_seq; /* only earlier ones; 0: from the newest on */
    unsigned limit;      /* 0: all */
    const char *run_id;  /* only of this run, or NULL */
};

/* Newest first. */
int record_list(struct record *record, const struct record_query *query, record_visitor *visit,
                void *context, struct err *err) MUST_CHECK;

/* The number of the last one; 0: there is none. */
int record_last(struct record *record, uint64_t *out, struct err *err) MUST_CHECK;
/* Those behind a number, oldest first, at most so many. Each as the line an export has, without its
 * end. The visitor answers 1 to stop. Nothing is locked once it returns. */
typedef int record_line_visitor(void *context, uint64_t seq, struct str line, struct err *err);
int record_after(struct record *record, uint64_t seq, unsigned limit, record_line_visitor *visit,
                 void *context, struct err *err) MUST_CHECK;

/* Tells when something was appended to the ledger in this state directory by this process: fd is
 * readable then (an eventfd). Other processes append as well, so look now and then. */
struct record_bell;
int record_bell_open(const char *state_dir, struct record_bell **out, int *fd,
                     struct err *err) MUST_CHECK;
void record_bell_free(struct record_bell *bell);
AUTO_TYPE(record_bell)

/* By sequence number, by receipt id or an unambiguous beginning of one. */
int record_show(struct record *record, struct arena *mem, const char *name, const struct json **out,
                struct err *err) MUST_CHECK;

/* The same; 1 when it is not what was signed with this key, or does not follow the entry before it:
 * then *err says so, with ERR_INTEGRITY, and *out is what there is all the same. */
int record_show_checked(struct record *record, const struct public_key *key, struct arena *mem,
                        const char *name, const struct json **out, struct err *err) MUST_CHECK;

/* Those whose text holds these words exactly, oldest first. Canonical JSON writes a member in one
 * way only, and quotes in texts differently: "\"advisory\":{" finds receipts with that member.
 * Looks at all there are. */
int record_with(struct record *record, const char *words, record_visitor *visit, void *context,
                struct err *err) MUST_CHECK;

/* Behind that number, oldest first: what names this approval, and what ends the word of a custodian
 * or of all. As it is kept; whether it holds is not looked at. */
int record_about_approval(struct record *record, const char *approval_id, uint64_t behind_seq,
                          record_visitor *visit, void *context, struct err *err) MUST_CHECK;

/* The receipt with which a run ended, shown when its hash and its signature by this ledger's key
 * hold. 1: it was; 0: the run has begun and not ended. ERR_NOT_FOUND: nothing is known of it.
 * ERR_INTEGRITY: it does not hold. Costs no more in a long ledger. */
int record_end_of(struct record *record, const char *run_id, record_visitor *visit, void *context,
                  struct err *err) MUST_CHECK;

/* JSON lines, oldest first, as they stand in the ledger. */
int record_export(struct record *record, int fd, uint64_t *out_count, struct err *err) MUST_CHECK;

struct record_trust;

/* ---- by session ---- */

struct record_session {
    struct str id;
    struct str began_at; /* of its first receipt */
    uint64_t receipts;
    uint64_t lamport_clock; /* of its last one */
};
typedef int record_session_visitor(void *context, const struct record_session *session,
                                   struct err *err);
/* Last used first. */
int record_sessions(struct record *record, uint64_t limit, uint64_t offset,
                    record_session_visitor *visit, void *context, struct err *err) MUST_CHECK;
/* All of one, oldest first, up to a sequence number (0: all). */
int record_of_session(struct record *record, const char *session_id, uint64_t up_to,
                      record_visitor *visit, void *context, struct err *err) MUST_CHECK;
int record_by_hash(struct record *record, struct arena *mem, const struct hash *hash,
                   const struct json **out, struct err *err) MUST_CHECK;
/* Whether the ledger has exactly this there. */
int record_has(struct record *record, uint64_t seq, const struct hash *hash, bool *out,
               struct err *err) MUST_CHECK;

/* ---- bundles ---- */

/* A session, or (NULL) all there is, as a tar file; the same receipts are the same bytes. What does
 * not fit into memory lies in spool_dir meanwhile. */
int record_bundle(struct record *record, const char *session_id, const char *spool_dir, int fd,
                  struct err *err) MUST_CHECK;

#define BUNDLE_ERRORS_MAX 32
#define BUNDLE_ERROR_BYTES 200

struct record_bundle_check {
    const struct record_trust *trust;
    struct record *ledger; /* a replay: what it must agree with; or NULL */
};

struct record_bundle_report {
    struct arena mem;
    bool signatures;
    bool causal_chain;
    bool policy_compliance;
    uint64_t receipts;
    char errors[BUNDLE_ERRORS_MAX][BUNDLE_ERROR_BYTES]; /* "causal_chain: line 4 is out of order" */
    size_t error_n;
};

/* -1 only when verifying was not possible; what it found is in *out, whose arena is the caller's.
 */
int record_bundle_verify(struct str tar, const struct record_bundle_check *check,
                         struct record_bundle_report *out, struct err *err) MUST_CHECK;

/* ---- verifying ---- */

/* The key a verifier believes, and why. */
struct record_trust {
    struct public_key key;
    const char *why; /* "given with --key" */
};

/* The public half of this state directory's own key; ERR_NOT_FOUND when there is none. */
int record_own_key(const char *state_dir, struct public_key *out, struct err *err) MUST_CHECK;

/* A statement of how long the ledger was: signed, to be kept elsewhere. */
struct record_head {
    uint64_t seq; /* entries there were; 0: none */
    char hash[HASH_TEXT_BYTES];
    char timestamp[TIMESTAMP_BYTES];
};

/* The signed head as JSON, one line. */
int record_head(struct record *record, struct buf *out, struct err *err) MUST_CHECK;
/* Reads one and checks it: ERR_INTEGRITY when the signature does not hold. */
int record_head_read(struct str text, const struct record_trust *trust, struct record_head *out,
                     struct err *err) MUST_CHECK;

enum record_integrity {
    INTEGRITY_UNKNOWN,
    INTEGRITY_INTACT,
    INTEGRITY_TORN,     /* intact, but the last line of the file is incomplete */
    INTEGRITY_TAMPERED, /* an entry is changed, moved, duplicated or missing */
};

enum record_completeness {
    COMPLETENESS_NOT_PROVEN, /* no head was given */
    COMPLETENESS_PROVEN,     /* everything up to the head is there */
    COMPLETENESS_TRUNCATED,  /* the head names more than there is */
};

enum record_fault {
    FAULT_NONE,
    FAULT_CHANGED,
    FAULT_MOVED,
    FAULT_DUPLICATED,
    FAULT_MISSING,
    FAULT_FOREIGN, /* signed by a key that is not trusted here */
    FAULT_TORN,
    FAULT_TRUNCATED,
};

struct record_report {
    enum record_integrity integrity;
    enum record_completeness completeness;
    uint64_t entries;   /* good ones, from the first on */
    uint64_t open_runs; /* intents among them without an end */
    uint64_t last_seq;  /* of the last good one; 0: none */
    char last_hash[HASH_TEXT_BYTES];
    char key_id[KEY_ID_BYTES]; /* of the trusted key */
    const char *key_why;
    /* The first thing that is wrong; FAULT_NONE: nothing. */
    enum record_fault fault;
    uint64_t fault_seq;      /* 0: the entry does not say */
    char fault_id[ID_BYTES]; /* "": likewise */
    uint64_t fault_line;     /* of the file, 0 in a ledger */
    char fault_text[256];    /* a sentence */
};

const char *record_integrity_name(enum record_integrity integrity);
const char *record_completeness_name(enum record_completeness completeness);
const char *record_fault_name(enum record_fault fault);

struct record_check {
    const struct record_trust *trust;
    const struct record_head *head; /* or NULL */
    bool part;                      /* a piece of a chain will do: it may begin anywhere */
};

/* -1 only when verifying was not possible; what it found is in *out. */
int record_verify(struct record *record, const struct record_check *check,
                  struct record_report *out, struct err *err) MUST_CHECK;
/* The same for an export, or any file with one receipt a line. */
int record_verify_fd(int fd, const struct record_check *check, struct record_report *out,
                     struct err *err) MUST_CHECK;

/* ---- what the gate wants to know at every run ---- */

struct record_advised {
    const struct record_trust *trust;
    const char *agent_id;
    const char *path; /* of what is known already (docs/formats/ledger-checked.md) */
    record_visitor *visit;
    void *context;
    bool only_look; /* what is found is not kept in path */
};

/* The receipts of this agent that have the member "advisory", and all about custodians, oldest
 * first, from a ledger that holds. The first time all of it is verified; later on what came since,
 * and these receipts once more, wherever they stand. After -1 what was shown does not count, and
 * only record_verify() says what is wrong. *verified: entries whose hash and signature were looked
 * at. */
int record_advised(struct record *record, const struct record_advised *ask, uint64_t *verified,
                   struct err *err) MUST_CHECK;
