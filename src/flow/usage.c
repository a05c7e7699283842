/* SPDX-License-Identifier: Apache-2.0 */

/* What was used, by day and principal: sums over the ledger. They are kept (STATE/usage.db) with
 * the receipt they reach to, so that asking again costs what has happened since; they prove
 * nothing, and are made again when the ledger is not the one they were made from. */

#include "flow/govern-parts.h"

#include "flow/record/record.h"
#include "lib/base/limits.h"
#include "lib/json/json.h"
#include "lib/store/store.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define APPLICATION_ID 0x42726975 /* "Briu" */
#define AT_ONCE 2000              /* receipts a transaction */
#define DAY_CHARS 10              /* of a timestamp: 2026-11-16 */

static const char *const migrations[] = {
    "CREATE TABLE reached (one INTEGER PRIMARY KEY CHECK (one = 1), seq INTEGER NOT NULL,"
    " hash TEXT NOT NULL) STRICT;"
    "CREATE TABLE used ("
    " day TEXT NOT NULL,"
    " principal TEXT NOT NULL,"
    " commands INTEGER NOT NULL,"
    " sandboxes INTEGER NOT NULL,"
    " denied INTEGER NOT NULL,"
    " duration_us INTEGER NOT NULL,"
    " cpu_us INTEGER NOT NULL,"
    " output_bytes INTEGER NOT NULL,"
    " disk_written_bytes INTEGER NOT NULL,"
    " PRIMARY KEY (day, principal)"
    ") STRICT, WITHOUT ROWID",
};

static const struct store_schema schema = {
    .what = "sums of what was used",
    .application_id = APPLICATION_ID,
    .migrations = migrations,
    .version = COUNT(migrations),
};

struct sums {
    struct store *store;
    struct statement add;
    uint64_t seq;                /* up to here */
    char hash[MODEL_HASH_BYTES]; /* of the receipt there; "": none yet */
    bool is_behind;              /* there was something to add, so there may be more */
};

static void sums_done(struct sums *sums)
{
    statement_done(&sums->add);
    store_free(sums->store);
}
#define AUTO_SUMS __attribute__((cleanup(sums_done)))

static int sums_open(const char *state_dir, struct sums *out, struct err *err)
{
    AUTO_FREE char *path = NULL;

    if (asprintf(&path, "%s/usage.db", state_dir) < 0) {
        path = NULL;
        return err_os(err, "naming the sums of what was used");
    }
    if (store_open(path, &schema, &out->store, err) < 0)
        return -1;
    return statement_prepare(
        out->store,
        "INSERT INTO used VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT DO UPDATE SET"
        " commands = commands + ?3, sandboxes = sandboxes + ?4, denied = denied + ?5,"
        " duration_us = duration_us + ?6, cpu_us = cpu_us + ?7,"
        " output_bytes = output_bytes + ?8, disk_written_bytes = disk_written_bytes + ?9",
        &out->add, err);
}

/* ---- adding ---- */

static int64_t count_of(const struct json *object, const char *key)
{
    int64_t value = 0;

    return json_is_int(json_get(object, key), &value) ? value : 0;
}

static struct str text_of(const struct json *object, const char *key)
{
    struct str text = {0};

    (void)json_is_text(json_get(object, key), &text);
    return text;
}

/* Commands and sandboxes count when they end, refusals when they are told. */
static int add_receipt(struct sums *sums, const struct json *receipt, struct err *err)
{
    const struct json *outcome = json_get(receipt, "outcome");
    struct str action = text_of(receipt, "action"), kind = text_of(receipt, "kind");
    struct str day = text_of(receipt, "timestamp");
    bool is_create = str_is(action, "create");
    bool counts = !action.p || str_is(action, "exec") || is_create;
    bool is_end = str_is(kind, "outcome"), is_denied = str_is(kind, "denial");

    if (!counts || !(is_end || is_denied) || day.n < DAY_CHARS)
        return 0;
    statement_bind_text(&sums->add, 1, (struct str){day.p, DAY_CHARS});
    statement_bind_text(&sums->add, 2, text_of(receipt, "principal"));
    statement_bind_int(&sums->add, 3, is_end && !is_create);
    statement_bind_int(&sums->add, 4, is_end && is_create);
    statement_bind_int(&sums->add, 5, is_denied);
    statement_bind_int(&sums->add, 6, is_create ? 0 : count_of(outcome, "duration_us"));
    statement_bind_int(&sums->add, 7, count_of(outcome, "cpu_us"));
    statement_bind_int(&sums->add, 8,
                       count_of(outcome, "stdout_bytes") + count_of(outcome, "stderr_bytes"));
    statement_bind_int(&sums->add, 9, count_of(outcome, "disk_written_bytes"));
    return statement_step(&sums->add, err) < 0 ? -1 : 0;
}

static int on_line(void *context, uint64_t seq, struct str line, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(16 * MIB);
    struct sums *sums = context;
    const struct json *receipt = NULL;
    struct mark where;
    struct str hash;

    if (json_parse(&mem, line, &receipt, &where, err) < 0)
        return err_in(err, "receipt %llu", (unsigned long long)seq);
    hash = text_of(receipt, "hash");
    if (hash.n >= sizeof sums->hash)
        return err_set(err, ERR_INTEGRITY, "receipt %llu has no hash", (unsigned long long)seq);
    memcpy(sums->hash, hash.p, hash.n);
    sums->hash[hash.n] = '\0';
    sums->is_behind = true;
    sums->seq = seq;
    return add_receipt(sums, receipt, err);
}

static int run_plain(struct sums *sums, const char *sql, struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};

    if (statement_prepare(sums->store, sql, &st, err) < 0)
        return -1;
    return statement_step(&st, err) < 0 ? -1 : 0;
}

/* ---- where they reach to ---- */

static int read_reached(struct sums *sums, struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};
    struct str hash;
    int got;

    if (statement_prepare(sums->store, "SELECT seq, hash FROM reached", &st, err) < 0)
        return -1;
    sums->seq = 0;
    sums->hash[0] = '\0';
    got = statement_step(&st, err);
    if (got <= 0)
        return got;
    hash = statement_bytes(&st, 1);
    if (hash.n >= sizeof sums->hash)
        return err_set(err, ERR_INTEGRITY, "the sums of what was used hold something else");
    sums->seq = (uint64_t)statement_int(&st, 0);
    memcpy(sums->hash, hash.p, hash.n);
    sums->hash[hash.n] = '\0';
    return 0;
}

static int write_reached(struct sums *sums, struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};

    if (statement_prepare(sums->store, "INSERT OR REPLACE INTO reached VALUES (1, ?1, ?2)", &st,
                          err) < 0)
        return -1;
    statement_bind_int(&st, 1, (int64_t)sums->seq);
    statement_bind_text(&st, 2, str_of(sums->hash));
    return statement_step(&st, err) < 0 ? -1 : 0;
}

/* A ledger that was put back from a copy is another one from some point on. */
static int forget_if_other(struct sums *sums, struct record *record, struct err *err)
{
    struct hash hash;
    bool is_same = false;

    if (!sums->seq)
        return 0;
    if (hash_from_text(str_of(sums->hash), &hash) &&
        record_has(record, sums->seq, &hash, &is_same, err) < 0)
        return -1;
    if (is_same)
        return 0;
    sums->seq = 0;
    return run_plain(sums, "DELETE FROM used", err);
}

/* One transaction's worth; 1: there may be more. */
static int catch_up(struct sums *sums, struct record *record, struct err *err)
{
    AUTO_TRANSACTION struct transaction t = {0};

    sums->is_behind = false;
    if (transaction_begin(sums->store, &t, err) < 0 || read_reached(sums, err) < 0 ||
        forget_if_other(sums, record, err) < 0 ||
        record_after(record, sums->seq, AT_ONCE, on_line, sums, err) < 0)
        return -1;
    if (sums->is_behind && write_reached(sums, err) < 0)
        return -1;
    return transaction_commit(&t, err) < 0 ? -1 : sums->is_behind;
}

/* ---- telling ---- */

static int tell(struct sums *sums, const struct usage_query *query, usage_visitor *visit,
                void *context, struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};
    int got;

    if (statement_prepare(sums->store,
                          "SELECT day, principal, commands, sandboxes, denied, duration_us, cpu_us,"
                          " output_bytes, disk_written_bytes FROM used"
                          " WHERE day >= ?1 AND (?2 = '' OR principal = ?2)"
                          " ORDER BY day DESC, principal LIMIT ?3",
                          &st, err) < 0)
        return -1;
    statement_bind_text(&st, 1, str_of(query->since ? query->since : ""));
    statement_bind_text(&st, 2, str_of(query->principal ? query->principal : ""));
    statement_bind_int(&st, 3, query->limit);
    while ((got = statement_step(&st, err)) == 1) {
        struct usage usage = {
            .day = statement_bytes(&st, 0),
            .principal = statement_bytes(&st, 1),
            .commands = (uint64_t)statement_int(&st, 2),
            .sandboxes = (uint64_t)statement_int(&st, 3),
            .denied = (uint64_t)statement_int(&st, 4),
            .duration_us = (uint64_t)statement_int(&st, 5),
            .cpu_us = (uint64_t)statement_int(&st, 6),
            .output_bytes = (uint64_t)statement_int(&st, 7),
            .disk_written_bytes = (uint64_t)statement_int(&st, 8),
        };

        if (visit(context, &usage, err) < 0)
            return -1;
    }
    return got;
}

/* Days are compared as texts, so one is written in one way. */
static int check_day(const char *day, struct err *err)
{
    struct tm tm = {0}, made;
    const char *end = strptime(day, "%Y-%m-%d", &tm);

    made = tm;
    (void)timegm(&made); /* makes the third of March of the thirty-first of February */
    if (end && !*end && strspn(day, "0123456789-") == DAY_CHARS && made.tm_mday == tm.tm_mday)
        return 0;
    return err_set(err, ERR_INVALID, "since \"%.32s\" is no day; write one like 2026-11-16", day);
}

int govern_usage(struct govern *govern, const struct usage_query *query, usage_visitor *visit,
                 void *context, struct err *err)
{
    AUTO(record) struct record *record = NULL;
    AUTO_SUMS struct sums sums = {0};
    int more = 1;

    if ((query->since && check_day(query->since, err) < 0) ||
        govern_read_ledger(govern, &record, err) < 0 ||
        sums_open(govern->state_dir, &sums, err) < 0)
        return -1;
    while (more == 1)
        more = catch_up(&sums, record, err);
    return more < 0 ? -1 : tell(&sums, query, visit, context, err);
}
