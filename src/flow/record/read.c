/* SPDX-License-Identifier: Apache-2.0 */

/* Looking things up in the ledger, and taking all of it out. */

#include "flow/record/record.h"

#include <stdio.h>
#include <string.h>

#include "flow/record/ledger.h"
#include "flow/record/verify.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"

static int visit_rows(struct statement *st, record_visitor *visit, void *context, struct err *err)
{
    int got;

    while ((got = statement_step(st, err)) == 1) {
        AUTO_ARENA struct arena mem = ARENA(RECEIPT_MEMORY_MAX);
        const struct json *json = NULL;
        struct row row;

        ledger_row(st, &row);
        if (ledger_row_json(&mem, &row, &json, err) < 0 || visit(context, json, err) < 0)
            return -1;
    }
    return got;
}

int record_list(struct record *record, const struct record_query *query, record_visitor *visit,
                void *context, struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};
    const char *sql = query->run_id ? "SELECT " LEDGER_ROW
                                      " FROM receipts WHERE seq < ? AND run_id = ?3"
                                      " ORDER BY seq DESC LIMIT ?2"
                                    : "SELECT " LEDGER_ROW " FROM receipts WHERE seq < ?"
                                      " ORDER BY seq DESC LIMIT ?2";
    uint64_t before = query->before_seq;

    if (statement_prepare(record->store, sql, &st, err) < 0)
        return -1;
    statement_bind_int(&st, 1, before && before <= (uint64_t)SEQ_MAX ? (int64_t)before : INT64_MAX);
    statement_bind_int(&st, 2, query->limit ? (int64_t)query->limit : -1);
    if (query->run_id)
        statement_bind_text(&st, 3, str_of(query->run_id));
    return visit_rows(&st, visit, context, err);
}

int record_about_approval(struct record *record, const char *approval_id, uint64_t behind_seq,
                          record_visitor *visit, void *context, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(4 * KIB);
    AUTO_STATEMENT struct statement st = {0};
    /* Canonical: members are written in one way only, and "action" is the first. */
    const char *words = arena_printf(&mem, "\"approval_id\":\"%s\"", approval_id);

    if (statement_prepare(record->store,
                          "SELECT " LEDGER_ROW " FROM receipts WHERE seq > ?1 AND "
                          "(instr(body, ?2) > 0 OR body GLOB '{\"action\":\"dismiss\"*' OR "
                          "body GLOB '{\"action\":\"approvals-renew\"*') ORDER BY seq",
                          &st, err) < 0)
        return -1;
    statement_bind_int(&st, 1, (int64_t)behind_seq);
    statement_bind_text(&st, 2, str_of(words));
    return visit_rows(&st, visit, context, err);
}

int record_with(struct record *record, const char *words, record_visitor *visit, void *context,
                struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};

    if (statement_prepare(record->store,
                          "SELECT " LEDGER_ROW
                          " FROM receipts WHERE instr(body, ?1) > 0 ORDER BY seq",
                          &st, err) < 0)
        return -1;
    statement_bind_text(&st, 1, str_of(words));
    return visit_rows(&st, visit, context, err);
}

struct found {
    const struct json *json;
    int64_t seq; /* of its row, whatever its text says */
};

static int find_row(struct statement *st, struct arena *mem, const char *name, struct found *out,
                    struct err *err)
{
    struct row row;
    int got = statement_step(st, err);

    if (got < 0)
        return -1;
    if (got == 0)
        return err_set(err, ERR_NOT_FOUND,
                       "there is no receipt \"%s\"; \"brig receipts list\" shows what there is",
                       name);
    ledger_row(st, &row);
    if (ledger_row_json(mem, &row, &out->json, err) < 0)
        return -1;
    out->seq = row.seq;
    got = statement_step(st, err);
    if (got > 0)
        return err_set(err, ERR_INVALID, "several receipts begin with \"%s\"; write more of the id",
                       name);
    return got;
}

static int find(struct record *record, struct arena *mem, const char *name, struct found *out,
                struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};
    char behind[ID_BYTES + 1];
    uint64_t seq = 0;
    bool by_seq = str_u64(str_of(name), &seq) && seq <= (uint64_t)SEQ_MAX;

    if (!by_seq && !is_receipt_id(str_of(name)))
        return err_set(err, ERR_INVALID,
                       "not a receipt: a number, or up to 20 of the letters a-z and digits that "
                       "\"brig receipts list\" shows");
    if (statement_prepare(record->store,
                          by_seq ? "SELECT " LEDGER_ROW " FROM receipts WHERE seq = ?"
                                 : "SELECT " LEDGER_ROW " FROM receipts WHERE receipt_id >= ?"
                                   " AND receipt_id < ? ORDER BY receipt_id LIMIT 2",
                          &st, err) < 0)
        return -1;
    if (by_seq) {
        statement_bind_int(&st, 1, (int64_t)seq);
    } else {
        (void)snprintf(behind, sizeof behind, "%s~", name); /* sorts behind all letters */
        statement_bind_text(&st, 1, str_of(name));
        statement_bind_text(&st, 2, str_of(behind));
    }
    return find_row(&st, mem, name, out, err);
}

int record_show(struct record *record, struct arena *mem, const char *name, const struct json **out,
                struct err *err)
{
    struct found found;

    if (find(record, mem, name, &found, err) < 0)
        return -1;
    *out = found.json;
    return 0;
}

int record_show_checked(struct record *record, const struct public_key *key, struct arena *mem,
                        const char *name, const struct json **out, struct err *err)
{
    const char *fault = NULL;
    struct found found;

    if (find(record, mem, name, &found, err) < 0 ||
        ledger_fault(record, found.seq, key, mem, &fault, err) < 0)
        return -1;
    *out = found.json;
    if (!*fault)
        return 0;
    (void)err_set(err, ERR_INTEGRITY,
                  "entry %lld of the ledger does not hold: %.200s; \"brig receipts verify\" checks "
                  "all entries",
                  (long long)found.seq, fault);
    return 1;
}

int record_last(struct record *record, uint64_t *out, struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};
    int got;

    if (statement_prepare(record->store, "SELECT ifnull(max(seq), 0) FROM receipts", &st, err) < 0)
        return -1;
    got = statement_step(&st, err);
    if (got < 0)
        return -1;
    *out = got ? (uint64_t)statement_int(&st, 0) : 0;
    return 0;
}

int record_after(struct record *record, uint64_t seq, unsigned limit, record_line_visitor *visit,
                 void *context, struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};
    AUTO_BUF struct buf line = BUF(2 * RECEIPT_TEXT_MAX);
    int got;

    if (statement_prepare(record->store,
                          "SELECT " LEDGER_ROW " FROM receipts WHERE seq > ? ORDER BY seq LIMIT ?",
                          &st, err) < 0)
        return -1;
    statement_bind_int(&st, 1, seq <= (uint64_t)SEQ_MAX ? (int64_t)seq : INT64_MAX);
    statement_bind_int(&st, 2, (int64_t)limit);
    while ((got = statement_step(&st, err)) == 1) {
        AUTO_ARENA struct arena mem = ARENA(RECEIPT_MEMORY_MAX);
        const struct json *json = NULL;
        struct row row;

        ledger_row(&st, &row);
        buf_clear(&line);
        if (ledger_row_json(&mem, &row, &json, err) < 0 || json_canonical(json, &line, err) < 0)
            return -1;
        got = visit(context, (uint64_t)row.seq, buf_str(&line), err);
        if (got)
            return got < 0 ? -1 : 0;
    }
    return got;
}

struct export
{
    struct arena mem;
    struct buf out;
    int fd;
    uint64_t count;
};

#define EXPORT_PIECE_BYTES (256 * KIB)

static int flush(struct export *export, struct err *err)
{
    if (export->out.n && write_all(export->fd, export->out.p, export->out.n, err) < 0)
        return -1;
    buf_clear(&export->out);
    return 0;
}

static int on_row(void *context, const struct row *row, struct err *err)
{
    struct export *export = context;
    const struct json *json = NULL;

    arena_done(&export->mem);
    if (ledger_row_json(&export->mem, row, &json, err) < 0 ||
        json_canonical(json, &export->out, err) < 0 || buf_add_byte(&export->out, '\n', err) < 0)
        return -1;
    export->count++;
    return export->out.n < EXPORT_PIECE_BYTES ? 0 : flush(export, err);
}

int record_export(struct record *record, int fd, uint64_t *out_count, struct err *err)
{
    struct export export = {.mem = ARENA(RECEIPT_MEMORY_MAX),
                            .out = BUF(EXPORT_PIECE_BYTES + 2 * RECEIPT_TEXT_MAX),
                            .fd = fd};
    int failed = ledger_each(record, on_row, &export, err);

    if (failed == 0)
        failed = flush(&export, err);
    if (failed == 0)
        *out_count = export.count;
    arena_done(&export.mem);
    buf_done(&export.out);
    return failed;
}
