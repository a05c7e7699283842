/* SPDX-License-Identifier: Apache-2.0 */

/* The ledger by session, and by hash. Receipts are found by reading: the ledger keeps no index for
 * questions that are asked this rarely, because every run would pay for it. */

#include "flow/record/record.h"

#include "flow/record/ledger.h"
#include "lib/base/limits.h"

#define SESSION_OF "json_extract(body, '$.session_id')"

int record_sessions(struct record *record, uint64_t limit, uint64_t offset,
                    record_session_visitor *visit, void *context, struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};
    int got;

    if (statement_prepare(record->store,
                          "SELECT s, count(*), max(clock), min(json_extract(body, '$.timestamp'))"
                          " FROM (SELECT " SESSION_OF " AS s, seq, body,"
                          "  json_extract(body, '$.lamport_clock') AS clock FROM receipts)"
                          " WHERE s IS NOT NULL GROUP BY s ORDER BY max(seq) DESC"
                          " LIMIT ?1 OFFSET ?2",
                          &st, err) < 0)
        return -1;
    statement_bind_int(&st, 1, (int64_t)limit);
    statement_bind_int(&st, 2, (int64_t)offset);
    while ((got = statement_step(&st, err)) == 1) {
        const struct record_session session = {
            .id = statement_bytes(&st, 0),
            .receipts = (uint64_t)statement_int(&st, 1),
            .lamport_clock = (uint64_t)statement_int(&st, 2),
            .began_at = statement_bytes(&st, 3),
        };

        if (visit(context, &session, err) < 0)
            return -1;
    }
    return got;
}

int record_of_session(struct record *record, const char *session_id, uint64_t up_to,
                      record_visitor *visit, void *context, struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};
    int got;

    if (statement_prepare(record->store,
                          "SELECT " LEDGER_ROW " FROM receipts WHERE " SESSION_OF
                          " = ?1 AND seq <= ?2 ORDER BY seq",
                          &st, err) < 0)
        return -1;
    statement_bind_text(&st, 1, str_of(session_id));
    statement_bind_int(&st, 2, up_to && up_to <= (uint64_t)SEQ_MAX ? (int64_t)up_to : INT64_MAX);
    while ((got = statement_step(&st, err)) == 1) {
        AUTO_ARENA struct arena mem = ARENA(RECEIPT_MEMORY_MAX);
        const struct json *json = NULL;
        struct row row;

        ledger_row(&st, &row);
        if (ledger_row_json(&mem, &row, &json, err) < 0 || visit(context, json, err) < 0)
            return -1;
    }
    return got;
}

int record_by_hash(struct record *record, struct arena *mem, const struct hash *hash,
                   const struct json **out, struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};
    struct row row;
    int got;

    if (statement_prepare(record->store,
                          "SELECT " LEDGER_ROW " FROM receipts WHERE hash = ? LIMIT 1", &st,
                          err) < 0)
        return -1;
    statement_bind_blob(&st, 1, (struct str){(const char *)hash->b, sizeof hash->b});
    got = statement_step(&st, err);
    if (got < 0)
        return -1;
    if (got == 0)
        return err_set(err, ERR_NOT_FOUND, "there is no receipt with this hash");
    ledger_row(&st, &row);
    return ledger_row_json(mem, &row, out, err);
}

int record_has(struct record *record, uint64_t seq, const struct hash *hash, bool *out,
               struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};
    int got;

    if (statement_prepare(record->store, "SELECT hash FROM receipts WHERE seq = ?", &st, err) < 0)
        return -1;
    statement_bind_int(&st, 1, (int64_t)seq);
    got = statement_step(&st, err);
    if (got < 0)
        return -1;
    *out = got == 1 &&
           str_eq(statement_bytes(&st, 0), (struct str){(const char *)hash->b, sizeof hash->b});
    return 0;
}
