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

/* Turns the failure of the last call on this connection into a sentence. */
int store_failed(struct store *store, int code, struct err *err);
