/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to lib/store. */

#include <sqlite3.h>

#include "lib/store/store.h"

struct store {
    sqlite3 *db;
    char *path;
    const char *what;
    uint64_t wait_until_us; /* of the lock being waited for, 0: none */
    int log_pages;          /* in the write-ahead log after our last commit */
    unsigned commits;       /* of this connection */
    struct statement begin;
    struct statement commit;
    struct statement rollback;
};

/* made.c: the mark of a file that is there; whether it could be written is nobody's matter now. */
void made_mark(const char *path, const struct store_schema *schema);
int made_unmark(const char *path, struct err *err) MUST_CHECK;

/* Turns the failure of the last call on this connection into a sentence. */
int store_failed(struct store *store, int code, struct err *err);
