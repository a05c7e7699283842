/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to flow/approve. */

#include "flow/approve/approve.h"
#include "lib/store/store.h"

#define SUBJECT_BYTES_MAX (4 * MIB)
#define SUBJECT_MEMORY_MAX (256 * MIB) /* read: a word may be one byte of it */

struct approvals {
    struct store *store;
};

#define APPROVAL_CUSTODIAN "custodian:" /* before the name of one who signs */

/* ---- custodians.c ---- */

/* ERR_FORBIDDEN: he was removed, perhaps since his signature was looked at. */
int custodian_still(struct approvals *approvals, const char *name, struct err *err) MUST_CHECK;

/* ---- rows.c ---- */

#define APPROVAL_COLUMNS                                                                           \
    "seq, id, digest, requester, subject, state, asked_at, expires_at, decided_at, decided_by, "   \
    "comment, frame, terms, confirmations, coalesce(receipt_seq, -1)"

/* What time it is for the store: never earlier than it was, as far as anybody has written down.
 * A clock that was put back ends everything that is open, since how long it has waited cannot be
 * told any more. */
struct moment {
    int64_t now;
    bool went_back;
};
int moment_read(struct approvals *approvals, struct moment *out, struct err *err) MUST_CHECK;
/* The same inside a transaction: the mark moves, and some of what is over is written down. */
int moment_keep(struct approvals *approvals, struct moment *out, struct err *err) MUST_CHECK;
/* Some of what of this requester is over, too: behind that of many others his turn may be long in
 * coming. Looks at all of his that wait. */
int moment_end_of(struct approvals *approvals, const char *requester, const struct moment *moment,
                  struct err *err) MUST_CHECK;

int row_read(const struct statement *st, struct arena *mem, const struct moment *moment,
             struct approval *out, struct err *err) MUST_CHECK;
/* 1: found. sql has its text as ?1 and the time as ?2. */
int row_find(struct approvals *approvals, struct arena *mem, const char *sql, const char *text,
             const struct moment *moment, struct approval *out, struct err *err) MUST_CHECK;

/* What a statement that answers nothing is given: texts first, then numbers. */
struct given {
    const char *texts[4];
    size_t text_n;
    int64_t numbers[4];
    size_t number_n;
};
int row_change(struct approvals *approvals, const char *sql, const struct given *given,
               struct err *err) MUST_CHECK;
/* The words so far, into out->words. */
int words_read(struct approvals *approvals, struct arena *mem, struct approval *out,
               struct err *err) MUST_CHECK;
/* Who has confirmed, by the words that were read, and then (unless that is NULL) this one. */
const char *words_names(struct arena *mem, const struct approval *approval, const char *last);

struct json;
/* Terms as they are kept with a request. */
struct json *terms_json(struct arena *mem, const struct approval_terms *terms);
void terms_read(struct arena *mem, const char *text, struct approval_terms *out);

/* ---- subject.c ---- */

/* What would happen, complete, for the person who is asked. */
#define APPROVAL_PROGRAM "program_sha256" /* in it: of an elevated run, hash of its program */
struct json *approval_subject(struct arena *mem, const struct run *run,
                              const struct operands *operands);
/* Over what decides, as approve.h says; frame is the same without the content of operands. */
int approval_digest(const struct run *run, const struct operands *operands,
                    char out[MODEL_HASH_BYTES], char frame[MODEL_HASH_BYTES],
                    struct err *err) MUST_CHECK;
