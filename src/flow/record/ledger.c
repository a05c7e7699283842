/* SPDX-License-Identifier: Apache-2.0 */

/* The chain in its database.
 *
 * A row holds the exact canonical bytes of the body, its hash and signature; the other columns
 * repeat members of the body so that they can be found, and the verifier compares them. Nothing
 * updates or deletes a row. */

#include "flow/record/ledger.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/limits.h"

#define APPLICATION_ID 0x42726967 /* "Brig" */
#define PIECE_ROWS 256

static const char *const migrations[] = {
    /* role: 0 opens the run, 1 closes it; a run does either once. */
    "CREATE TABLE receipts ("
    " seq INTEGER PRIMARY KEY,"
    " receipt_id TEXT NOT NULL UNIQUE,"
    " run_id TEXT,"
    " role INTEGER,"
    " kind TEXT NOT NULL,"
    " body TEXT NOT NULL,"
    " hash BLOB NOT NULL,"
    " signature BLOB NOT NULL,"
    " UNIQUE (run_id, role)"
    ") STRICT",
};

static const struct store_schema schema = {
    .what = "receipt ledger",
    .application_id = APPLICATION_ID,
    .migrations = migrations,
    .version = COUNT(migrations),
};

int ledger_open(const char *dir, struct store **out, struct err *err)
{
    AUTO_FREE char *path = NULL;

    if (asprintf(&path, "%s/receipts.db", dir) < 0) {
        path = NULL;
        return err_os(err, "naming the ledger");
    }
    return store_open(path, &schema, out, err);
}

static int prepare(struct record *record, struct statement *kept, const char *sql, struct err *err)
{
    return kept->handle ? 0 : statement_prepare(record->store, sql, kept, err);
}

void ledger_row(const struct statement *st, struct row *out)
{
    *out = (struct row){
        .seq = statement_int(st, 0),
        .receipt_id = statement_bytes(st, 1),
        .run_id = statement_bytes(st, 2),
        .kind = statement_bytes(st, 3),
        .body = statement_bytes(st, 4),
        .hash = statement_bytes(st, 5),
        .signature = statement_bytes(st, 6),
    };
}

static int tampered_head(const struct row *row, const char *what, struct err *err)
{
    return err_set(err, ERR_INTEGRITY,
                   "the last entry of the ledger, %lld (" STR_FMT "), has been changed: %s; "
                   "nothing is recorded behind it and nothing runs; \"brig receipts verify\" "
                   "checks all entries",
                   (long long)row->seq, STR_ARG(row->receipt_id), what);
}

/* The hash is over the place in the chain as well. */
static bool is_known(const struct chain_head *known, const struct row *row, const struct hash *hash)
{
    return known->seq && row->seq == (int64_t)known->seq &&
           memcmp(hash->b, known->hash.b, sizeof hash->b) == 0;
}

static int head_of_row(struct arena *mem, const struct chain_head *known, const struct row *row,
                       struct chain_head *out, struct err *err)
{
    const struct json *body = NULL;
    struct mark where;
    struct hash hash;
    int64_t seq = 0;
    int64_t lamport_clock = 0;

    receipt_hash(row->body, &hash);
    if (!str_eq(row->hash, (struct str){(const char *)hash.b, sizeof hash.b}))
        return tampered_head(row, "its content does not match its hash", err);
    if (is_known(known, row, &hash)) {
        *out = *known;
        return 0;
    }
    if (json_parse(mem, row->body, &body, &where, err) < 0)
        return tampered_head(row, "its content is not JSON", err);
    if (!json_is_int(json_get(body, "seq"), &seq) || seq != row->seq || seq < 1)
        return tampered_head(row, "it stands in another place than it says", err);
    if (!json_is_int(json_get(body, "lamport_clock"), &lamport_clock) || lamport_clock < 1)
        return tampered_head(row, "it has no lamport_clock", err);
    *out = (struct chain_head){(uint64_t)seq, (uint64_t)lamport_clock, hash};
    return 0;
}

int ledger_head(struct record *record, struct arena *mem, struct chain_head *out, struct err *err)
{
    struct statement *st = &record->head;
    struct row row;
    int got;
    int failed = 0;

    if (prepare(record, st, "SELECT " LEDGER_ROW " FROM receipts ORDER BY seq DESC LIMIT 1", err) <
        0)
        return -1;
    got = statement_step(st, err);
    if (got < 0)
        return -1;
    if (got == 0) {
        *out = (struct chain_head){0};
        return 0;
    }
    ledger_row(st, &row);
    failed = head_of_row(mem, &record->known, &row, out, err);
    statement_reset(st);
    return failed;
}

int ledger_insert(struct record *record, const struct receipt *receipt, struct err *err)
{
    struct statement *st = &record->insert;

    if (prepare(record, st,
                "INSERT INTO receipts (seq, receipt_id, run_id, role, kind, body, hash, signature)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                err) < 0)
        return -1;
    statement_bind_int(st, 1, (int64_t)receipt->ref.seq);
    statement_bind_text(st, 2, str_of(receipt->ref.id));
    statement_bind_text(st, 3, str_of(receipt->run_id));
    statement_bind_int(st, 4, receipt->role);
    statement_bind_text(st, 5, str_of(receipt->kind));
    statement_bind_text(st, 6, buf_str(&receipt->body));
    statement_bind_blob(st, 7, (struct str){(const char *)receipt->hash.b, sizeof receipt->hash.b});
    statement_bind_blob(
        st, 8, (struct str){(const char *)receipt->signature.b, sizeof receipt->signature.b});
    return statement_step(st, err);
}

static int open_intent(struct arena *mem, struct str body, const struct json **out, struct err *err)
{
    struct mark where;

    if (json_parse(mem, body, out, &where, err) < 0) {
        err->code = ERR_INTEGRITY;
        return err_in(err, "an intent in the ledger cannot be read; \"brig receipts verify\" says "
                           "more");
    }
    return 0;
}

int ledger_run(struct record *record, struct arena *mem, const char *run_id, enum run_state *out,
               const struct json **out_intent, struct err *err)
{
    struct statement *st = &record->of_run;
    enum run_state state = RUN_UNKNOWN;
    const struct json *intent = NULL;
    int got;

    if (prepare(record, st, "SELECT role, kind, body FROM receipts WHERE run_id = ? ORDER BY role",
                err) < 0)
        return -1;
    statement_bind_text(st, 1, str_of(run_id));
    while ((got = statement_step(st, err)) == 1) {
        bool opens = statement_int(st, 0) == ROLE_OPENS;

        if (opens && out_intent && open_intent(mem, statement_bytes(st, 2), &intent, err) < 0) {
            statement_reset(st);
            return -1;
        }
        state = opens && str_is(statement_bytes(st, 1), "intent") ? RUN_OPEN : RUN_ENDED;
    }
    if (got < 0)
        return -1;
    *out = state;
    if (out_intent)
        *out_intent = intent;
    return 0;
}

int ledger_row_json(struct arena *mem, const struct row *row, const struct json **out,
                    struct err *err)
{
    const struct json *parsed = NULL;
    struct json *complete;
    struct mark where;
    struct hash hash;
    struct signature signature;

    if (row->hash.n != sizeof hash.b || row->signature.n != sizeof signature.b ||
        json_parse(mem, row->body, &parsed, &where, err) < 0 || parsed->kind != JSON_OBJECT)
        return err_set(err, ERR_INTEGRITY,
                       "entry %lld of the ledger is damaged; \"brig receipts verify\" says more",
                       (long long)row->seq);
    memcpy(hash.b, row->hash.p, sizeof hash.b);
    memcpy(signature.b, row->signature.p, sizeof signature.b);
    complete = arena_new(mem, struct json);
    *complete = *parsed;
    receipt_complete(mem, complete, &hash, &signature);
    *out = complete;
    return 0;
}

/* Returns how many rows there were, or -1; *stop when the visitor had enough. */
static int visit_piece(struct statement *st, row_visitor *visit, void *context, int64_t *after,
                       bool *stop, struct err *err)
{
    int rows = 0;
    int got;

    statement_bind_int(st, 1, *after);
    while ((got = statement_step(st, err)) == 1) {
        struct row row;
        int answer;

        ledger_row(st, &row);
        answer = visit(context, &row, err);
        *after = row.seq;
        rows++;
        if (answer == 0)
            continue;
        statement_reset(st);
        *stop = true;
        return answer < 0 ? -1 : rows;
    }
    return got < 0 ? -1 : rows;
}

int ledger_each_after(struct record *record, int64_t after, row_visitor *visit, void *context,
                      struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};
    bool stop = false;
    int rows = PIECE_ROWS;

    if (statement_prepare(record->store,
                          "SELECT " LEDGER_ROW
                          " FROM receipts WHERE seq > ? ORDER BY seq LIMIT 256",
                          &st, err) < 0)
        return -1;
    while (rows == PIECE_ROWS && !stop) {
        rows = visit_piece(&st, visit, context, &after, &stop, err);
        if (rows < 0)
            return -1;
    }
    return 0;
}

int ledger_each(struct record *record, row_visitor *visit, void *context, struct err *err)
{
    /* Also what does not belong there is seen. */
    return ledger_each_after(record, INT64_MIN, visit, context, err);
}
