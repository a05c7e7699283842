/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A database file of ours: SQLite, durable at every commit, shared by concurrent processes.
 *
 * What has been committed survives a power cut (write-ahead log, synced at each commit). All
 * waits for other processes end after STORE_WAIT_MS with ERR_TIMEOUT. Failures are told apart
 * by their code:
 *
 *    ERR_INTEGRITY    the file is damaged, or is something else than it should be
 *    ERR_LIMIT        the disk is full
 *    ERR_UNAVAILABLE  the file or its folder cannot be read or written by us; newer schema
 *    ERR_TIMEOUT      another process held the lock all the time
 *    ERR_OS           anything else the system refused
 *
 * One connection belongs to one thread at a time. */

#include "lib/base/buf.h"

#define STORE_WAIT_MS 4000

struct store;

/* What a file must be. A file whose version is i gets migrations i, i+1, … in one transaction
 * each; migrations are added, never changed. */
struct store_schema {
    const char *what;        /* for errors: "receipt ledger" */
    uint32_t application_id; /* stands in the file's header */
    const char *const *migrations;
    unsigned version; /* how many there are */
    /* Where an empty file would open what this one has closed: what makes one anew, a command. One
     * that was made, and is missing or empty, is then refused. NULL: it is made again. */
    const char *if_lost;
};

/* Opens the file, making it (0600) when there is none. ERR_INTEGRITY, too: it is lost. */
int store_open(const char *path, const struct store_schema *schema, struct store **out,
               struct err *err) MUST_CHECK;
void store_free(struct store *store);
AUTO_TYPE(store)

/* What is in the file now, in memory: whatever is done to it is gone with it, and the file stays as
 * it is. ERR_NOT_FOUND: there is none. */
int store_open_copy(const char *path, const struct store_schema *schema, struct store **out,
                    struct err *err) MUST_CHECK;
/* Makes a file that is lost anew, empty. ERR_CONFLICT: it is not lost. */
int store_renew(const char *path, const struct store_schema *schema, struct store **out,
                struct err *err) MUST_CHECK;
/* Whether there ever was a file here, of a schema that says if_lost. Costs one look for another. */
bool store_was_made(const char *path);

/* One transaction that may write, so that what is read inside it stays true until the commit.
 *
 *     AUTO_TRANSACTION struct transaction t = {0};
 *     if (transaction_begin(store, &t, err) < 0 || … || transaction_commit(&t, err) < 0)
 *         return -1;
 *
 * Leaving the block without a commit undoes everything. */
struct transaction {
    struct store *store; /* NULL when none is open */
};

int transaction_begin(struct store *store, struct transaction *out, struct err *err) MUST_CHECK;
int transaction_commit(struct transaction *t, struct err *err) MUST_CHECK;
void transaction_done(struct transaction *t);
#define AUTO_TRANSACTION __attribute__((cleanup(transaction_done)))

struct statement {
    struct sqlite3_stmt *handle;
    struct store *store;
};

int statement_prepare(struct store *store, const char *sql, struct statement *out,
                      struct err *err) MUST_CHECK;
void statement_done(struct statement *st);
#define AUTO_STATEMENT __attribute__((cleanup(statement_done)))

/* Places are counted from 1. The bytes stay the caller's and must outlive the steps. */
void statement_bind_int(struct statement *st, int place, int64_t value);
void statement_bind_text(struct statement *st, int place, struct str text);
void statement_bind_blob(struct statement *st, int place, struct str bytes);

/* 1: a row is there; 0: no more; -1. A statement that answered 0 or -1 is reset and may be
 * stepped again. */
int statement_step(struct statement *st, struct err *err) MUST_CHECK;
/* Ends a reading early, so that no lock outlives the need for it. */
void statement_reset(struct statement *st);

/* Columns are counted from 0; bytes are borrowed until the next step or reset. */
int64_t statement_int(const struct statement *st, int column);
struct str statement_bytes(const struct statement *st, int column);
