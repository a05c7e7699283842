/* SPDX-License-Identifier: Apache-2.0 */
#include "surface/api/keys.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/base/limits.h"
#include "lib/store/store.h"

#define APPLICATION_ID 0x42726963 /* "Bric" */
#define KEPT_S (24 * 3600)

static const char *const migrations[] = {
    "CREATE TABLE calls ("
    " tenant TEXT NOT NULL,"
    " key TEXT NOT NULL,"
    " hash TEXT NOT NULL,"
    " daemon TEXT NOT NULL," /* whose call it was, while it has no answer */
    " status INTEGER NOT NULL,"
    " answer BLOB NOT NULL,"
    " created_at INTEGER NOT NULL,"
    " PRIMARY KEY (tenant, key)"
    ") STRICT",
};

static const struct store_schema schema = {
    .what = "list of answered requests",
    .application_id = APPLICATION_ID,
    .migrations = migrations,
    .version = COUNT(migrations),
};

struct keys {
    pthread_mutex_t lock;
    struct store *store;
    char daemon[ID_BYTES];
};

static int forget_old(struct keys *keys, struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};

    if (statement_prepare(keys->store, "DELETE FROM calls WHERE created_at < ?1", &st, err) < 0)
        return -1;
    statement_bind_int(&st, 1, (int64_t)time(NULL) - KEPT_S);
    return statement_step(&st, err);
}

int keys_open(const char *state_dir, struct keys **out, struct err *err)
{
    AUTO(keys) struct keys *keys = xcalloc(1, sizeof *keys);
    AUTO_FREE char *path = NULL;

    (void)pthread_mutex_init(&keys->lock, NULL);
    id_new(keys->daemon);
    if (asprintf(&path, "%s/calls.db", state_dir) < 0) {
        path = NULL;
        return err_os(err, "naming the list of answered requests");
    }
    if (store_open(path, &schema, &keys->store, err) < 0)
        return -1;
    *out = TAKE(keys);
    return 0;
}

void keys_free(struct keys *keys)
{
    if (!keys)
        return;
    store_free(keys->store);
    (void)pthread_mutex_destroy(&keys->lock);
    free(keys);
}

static int answered(struct keys *keys, const struct keyed *request, const struct statement *st,
                    int *status, struct buf *answer, struct err *err)
{
    if (!str_is(statement_bytes(st, 0), request->hash))
        return err_set(err, ERR_CONFLICT, "this Idempotency-Key was used for another request");
    *status = (int)statement_int(st, 2);
    if (*status)
        return buf_add_str(answer, statement_bytes(st, 3), err) < 0 ? -1 : 1;
    if (str_is(statement_bytes(st, 1), keys->daemon))
        return err_set(err, ERR_CONFLICT, "the request of this Idempotency-Key is under way");
    return err_set(err, ERR_CONFLICT,
                   "the daemon ended while it did this; what came of it is in the receipts");
}

static int find(struct keys *keys, const struct keyed *request, int *status, struct buf *answer,
                struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};
    int got;

    if (statement_prepare(keys->store,
                          "SELECT hash, daemon, status, answer FROM calls "
                          "WHERE tenant = ?1 AND key = ?2",
                          &st, err) < 0)
        return -1;
    statement_bind_text(&st, 1, str_of(request->tenant));
    statement_bind_text(&st, 2, str_of(request->key));
    got = statement_step(&st, err);
    return got == 1 ? answered(keys, request, &st, status, answer, err) : got;
}

static int put(struct keys *keys, const struct keyed *request, struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};

    if (statement_prepare(
            keys->store,
            "INSERT INTO calls (tenant, key, hash, daemon, status, answer, created_at)"
            " VALUES (?1, ?2, ?3, ?4, 0, x'', ?5)",
            &st, err) < 0)
        return -1;
    statement_bind_text(&st, 1, str_of(request->tenant));
    statement_bind_text(&st, 2, str_of(request->key));
    statement_bind_text(&st, 3, str_of(request->hash));
    statement_bind_text(&st, 4, str_of(keys->daemon));
    statement_bind_int(&st, 5, (int64_t)time(NULL));
    return statement_step(&st, err);
}

static int begin_locked(struct keys *keys, const struct keyed *request, int *status,
                        struct buf *answer, struct err *err)
{
    AUTO_TRANSACTION struct transaction t = {0};
    int found;

    if (transaction_begin(keys->store, &t, err) < 0 || forget_old(keys, err) < 0)
        return -1;
    found = find(keys, request, status, answer, err);
    if (found != 0)
        return found;
    return put(keys, request, err) < 0 ? -1 : transaction_commit(&t, err);
}

int keys_begin(struct keys *keys, const struct keyed *request, int *status, struct buf *answer,
               struct err *err)
{
    int result;

    (void)pthread_mutex_lock(&keys->lock);
    result = begin_locked(keys, request, status, answer, err);
    (void)pthread_mutex_unlock(&keys->lock);
    return result;
}

static int end_locked(struct keys *keys, const struct keyed *request, int status, struct str answer,
                      struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};
    AUTO_TRANSACTION struct transaction t = {0};

    if (transaction_begin(keys->store, &t, err) < 0 ||
        statement_prepare(keys->store,
                          status ? "UPDATE calls SET status = ?3, answer = ?4 "
                                   "WHERE tenant = ?1 AND key = ?2"
                                 : "DELETE FROM calls WHERE tenant = ?1 AND key = ?2",
                          &st, err) < 0)
        return -1;
    statement_bind_text(&st, 1, str_of(request->tenant));
    statement_bind_text(&st, 2, str_of(request->key));
    if (status) {
        statement_bind_int(&st, 3, status);
        statement_bind_blob(&st, 4, answer);
    }
    if (statement_step(&st, err) < 0)
        return -1;
    return transaction_commit(&t, err);
}

int keys_end(struct keys *keys, const struct keyed *request, int status, struct str answer,
             struct err *err)
{
    int result;

    (void)pthread_mutex_lock(&keys->lock);
    result = end_locked(keys, request, status, answer, err);
    (void)pthread_mutex_unlock(&keys->lock);
    return result;
}
