/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to flow/record: the chain in its database. */

#include "flow/record/queue.h"
#include "flow/record/receipt.h"
#include "lib/store/store.h"

struct signers;

struct record {
    char *dir;
    struct store *store;
    struct signer *signer;
    char key_id[KEY_ID_BYTES];
    struct signers *signers;
    struct statement head;
    struct statement insert;
    struct statement of_run;
    struct queue queue;
    struct chain_head known; /* the entry that was last read or written whole */
};

/* bell.c: after a commit. */
void bell_ring(const char *dir);

int ledger_open(const char *dir, struct store **out, struct err *err) MUST_CHECK;

/* The last entry, after its hash has been recomputed: a ledger whose end was changed is not
 * written to. Only true inside the transaction it was read in. */
int ledger_head(struct record *record, struct arena *mem, struct chain_head *out,
                struct err *err) MUST_CHECK;
int ledger_insert(struct record *record, const struct receipt *receipt, struct err *err) MUST_CHECK;

/* What the ledger knows of a run. */
enum run_state {
    RUN_UNKNOWN,
    RUN_OPEN,  /* an intent without an end */
    RUN_ENDED, /* or denied at once */
};

/* *out_intent, unless that is NULL, is the body of the receipt that opened it, parsed; NULL when
 * unknown. */
int ledger_run(struct record *record, struct arena *mem, const char *run_id, enum run_state *out,
               const struct json **out_intent, struct err *err) MUST_CHECK;

/* A row as it stands, borrowed until the next step. Columns: seq, receipt_id, run_id, kind, body,
 * hash, signature. */
#define LEDGER_ROW "seq, receipt_id, ifnull(run_id, ''), kind, body, hash, signature"

struct row {
    int64_t seq;
    struct str receipt_id;
    struct str run_id;
    struct str kind;
    struct str body;
    struct str hash;
    struct str signature;
};

void ledger_row(const struct statement *st, struct row *out);
/* The row as a complete receipt; ERR_INTEGRITY when it cannot be one. */
int ledger_row_json(struct arena *mem, const struct row *row, const struct json **out,
                    struct err *err) MUST_CHECK;

/* Reads all rows in order, in pieces: no lock is held for long, and the log can be emptied
 * meanwhile. The visitor answers 1 to stop, -1 on failure. */
typedef int row_visitor(void *context, const struct row *row, struct err *err);
int ledger_each(struct record *record, row_visitor *visit, void *context,
                struct err *err) MUST_CHECK;
/* The same behind a number. */
int ledger_each_after(struct record *record, int64_t after, row_visitor *visit, void *context,
                      struct err *err) MUST_CHECK;

/* Signs many while they are being written: helpers on other processors take what has been sealed,
 * and the writer takes part when it needs a signature that is not there yet. For a few receipts no
 * helper is woken, and none for a signer that takes many at once; the rest is the same.
 *
 *     signers_begin(&signers, signer, receipts, n);
 *     seal receipt i … signers_offer(signers, i + 1);
 *     signers_await(signers, i); … insert receipt i
 *     signers_end(signers);        on every path, before the receipts go away */
void signers_free(struct signers *signers);
void signers_begin(struct signers **signers, struct signer *signer, struct receipt *receipts,
                   size_t n);
void signers_offer(struct signers *signers, size_t sealed);
int signers_await(struct signers *signers, size_t i, struct err *err) MUST_CHECK;
void signers_end(struct signers *signers);
