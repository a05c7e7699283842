/* SPDX-License-Identifier: Apache-2.0 */

/* The judge of a chain.
 *
 * A chain is intact when every entry's hash recomputes, every signature holds under the trusted
 * key, the sequence numbers count up from 1 without a gap, and every prev_hash is the hash of the
 * entry before. The first entry that is not so is named. An authentic entry in a wrong place tells
 * more than "wrong": one that was there before is a duplicate, one that comes too early leaves a
 * gap, and whether the gap's entry is missing or only moved is known when the rest was looked at.
 *
 * All this says nothing about entries cut off at the end. Only a head that was kept elsewhere
 * does, and that is the other half of the report. */

#include "flow/record/verify.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "flow/record/ledger.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"

/* A cut inside a literal or an escape is noticed where that began. */
#define TORN_BACK 12
#define LINE_MAX_BYTES (2 * RECEIPT_TEXT_MAX)
#define READ_BYTES 65536

const char *record_integrity_name(enum record_integrity integrity)
{
    static const char *const names[] = {
        [INTEGRITY_UNKNOWN] = "unknown",
        [INTEGRITY_INTACT] = "intact",
        [INTEGRITY_TORN] = "torn",
        [INTEGRITY_TAMPERED] = "tampered",
    };

    return names[integrity];
}

const char *record_completeness_name(enum record_completeness completeness)
{
    static const char *const names[] = {
        [COMPLETENESS_NOT_PROVEN] = "not proven",
        [COMPLETENESS_PROVEN] = "proven",
        [COMPLETENESS_TRUNCATED] = "truncated",
    };

    return names[completeness];
}

const char *record_fault_name(enum record_fault fault)
{
    static const char *const names[] = {
        [FAULT_NONE] = "none",       [FAULT_CHANGED] = "changed",
        [FAULT_MOVED] = "moved",     [FAULT_DUPLICATED] = "duplicated",
        [FAULT_MISSING] = "missing", [FAULT_FOREIGN] = "foreign key",
        [FAULT_TORN] = "torn",       [FAULT_TRUNCATED] = "truncated",
    };

    return names[fault];
}

void verifier_begin(struct verifier *v, const struct record_check *check,
                    struct record_report *report)
{
    *report = (struct record_report){.integrity = INTEGRITY_INTACT, .key_why = check->trust->why};
    key_id(&check->trust->key, report->key_id);
    *v = (struct verifier){.check = check, .report = report};
}

bool verifier_wants_more(const struct verifier *v)
{
    return v->report->fault == FAULT_NONE || v->searching;
}

static void name_fault(struct verifier *v, enum record_fault fault, uint64_t seq, struct str id)
{
    struct record_report *r = v->report;

    r->integrity = fault == FAULT_TORN ? INTEGRITY_TORN : INTEGRITY_TAMPERED;
    r->fault = fault;
    r->fault_seq = seq;
    r->fault_line = v->line;
    (void)snprintf(r->fault_id, sizeof r->fault_id, STR_FMT, STR_ARG(id));
}

/* "entry 5 (abc…, line 5)", as much of it as is known. */
static void name_entry(const struct verifier *v, uint64_t seq, struct str id, char *out, size_t n)
{
    char line[32] = "";

    if (v->line)
        (void)snprintf(line, sizeof line, "%sline %llu", id.n ? ", " : "",
                       (unsigned long long)v->line);
    (void)snprintf(out, n, "entry %llu%s" STR_FMT "%s%s", (unsigned long long)seq,
                   id.n || v->line ? " (" : "", STR_ARG(id), line, id.n || v->line ? ")" : "");
}

void verifier_fault(struct verifier *v, enum record_fault fault, struct str id, const char *what)
{
    uint64_t seq = v->last.seq + 1;
    char name[96];

    if (v->report->fault != FAULT_NONE)
        return;
    name_fault(v, fault, seq, id);
    name_entry(v, seq, id, name, sizeof name);
    (void)snprintf(v->report->fault_text, sizeof v->report->fault_text, "%s is %s: %s", name,
                   record_fault_name(fault), what);
}

static void fault_in_place(struct verifier *v, const struct entry *entry)
{
    struct record_report *r = v->report;
    uint64_t wanted = v->last.seq + 1;
    char name[96];

    name_entry(v, entry->seq, entry->receipt_id, name, sizeof name);
    if (entry->seq < wanted) {
        name_fault(v, FAULT_DUPLICATED, entry->seq, entry->receipt_id);
        (void)snprintf(r->fault_text, sizeof r->fault_text,
                       "%s is duplicated: it was there already and stands again behind entry %llu",
                       name, (unsigned long long)v->last.seq);
        return;
    }
    name_fault(v, FAULT_MISSING, wanted, STR_LIT(""));
    v->searching = true;
    (void)snprintf(r->fault_text, sizeof r->fault_text,
                   "entry %llu is missing: %s stands in its place", (unsigned long long)wanted,
                   name);
}

/* The gap's entry has turned up. */
static void fault_moved(struct verifier *v, const struct entry *entry)
{
    struct record_report *r = v->report;
    uint64_t line = r->fault_line;
    char name[96];

    name_entry(v, entry->seq, entry->receipt_id, name, sizeof name);
    name_fault(v, FAULT_MOVED, entry->seq, entry->receipt_id);
    r->fault_line = line;
    v->searching = false;
    (void)snprintf(r->fault_text, sizeof r->fault_text,
                   "%s is moved: it does not stand behind entry %llu, where it belongs", name,
                   (unsigned long long)entry->seq - 1);
}

static bool same_hash(const struct hash *a, const struct hash *b)
{
    return memcmp(a->b, b->b, sizeof a->b) == 0;
}

/* What is wrong with an authentic entry that has the right number, or NULL. */
static const char *link_fault(const struct verifier *v, const struct entry *entry)
{
    const struct record_head *head = v->check->head;
    struct hash named;

    if (str_is(entry->kind, "head"))
        return "it is a signed head, not a receipt";
    if (entry->misfiled)
        return "the columns it is found by do not say what its content says";
    if (!same_hash(&entry->prev_hash, &v->last.hash))
        return "its prev_hash is not the hash of the entry before it";
    if (entry->lamport_clock <= v->last.lamport_clock)
        return "its lamport_clock does not grow";
    if (head && head->seq == entry->seq &&
        (!hash_from_text(str_of(head->hash), &named) || !same_hash(&named, &entry->hash)))
        return "the signed head names another entry with this number";
    return NULL;
}

static void accept(struct verifier *v, const struct entry *entry)
{
    struct record_report *r = v->report;

    v->last = (struct chain_head){entry->seq, entry->lamport_clock, entry->hash};
    r->entries++;
    r->last_seq = entry->seq;
    hash_text(&entry->hash, r->last_hash);
    if (v->check->head && v->check->head->seq == entry->seq)
        v->head_seen = true;
    if (str_is(entry->kind, "intent"))
        v->intents++;
    else if (json_get(entry->json, "intent_id"))
        v->endings++;
}

void verifier_entry(struct verifier *v, const struct entry *entry)
{
    const char *what;

    if (v->searching) {
        if (entry->seq == v->report->fault_seq)
            fault_moved(v, entry);
        return;
    }
    if (v->report->fault != FAULT_NONE)
        return;
    if (!str_is(entry->key_id, v->report->key_id)) {
        verifier_fault(v, FAULT_FOREIGN, entry->receipt_id,
                       "another key than the trusted one signed it");
        return;
    }
    what = entry_fault(entry, &v->check->trust->key);
    if (what) {
        verifier_fault(v, FAULT_CHANGED, entry->receipt_id, what);
        return;
    }
    /* A piece may begin anywhere; what it begins with is taken for what goes before. */
    if (v->check->part && v->report->entries == 0 && entry->seq > 0)
        v->last = (struct chain_head){entry->seq - 1, entry->lamport_clock - 1, entry->prev_hash};
    if (entry->seq != v->last.seq + 1) {
        fault_in_place(v, entry);
        return;
    }
    what = link_fault(v, entry);
    if (what)
        verifier_fault(v, FAULT_CHANGED, entry->receipt_id, what);
    else
        accept(v, entry);
}

static void judge_completeness(struct verifier *v)
{
    const struct record_head *head = v->check->head;
    struct record_report *r = v->report;

    if (!head || r->integrity == INTEGRITY_TAMPERED)
        return;
    if (v->head_seen || head->seq == 0) {
        r->completeness = COMPLETENESS_PROVEN;
        return;
    }
    r->completeness = COMPLETENESS_TRUNCATED;
    if (r->fault != FAULT_NONE)
        return;
    r->fault = FAULT_TRUNCATED;
    r->fault_seq = r->last_seq + 1;
    (void)snprintf(r->fault_text, sizeof r->fault_text,
                   "entry %llu is missing: the chain ends with entry %llu, but the head signed at "
                   "%s names entry %llu",
                   (unsigned long long)r->fault_seq, (unsigned long long)r->last_seq,
                   head->timestamp, (unsigned long long)head->seq);
}

void verifier_end(struct verifier *v)
{
    v->searching = false;
    v->report->open_runs = v->intents > v->endings ? v->intents - v->endings : 0;
    judge_completeness(v);
}

/* ---- the ledger ---- */

struct ledger_reading {
    struct verifier v;
    struct arena mem;
    struct buf line;
    struct buf body;
    entry_visitor *visit; /* or NULL */
    void *context;
};

static void reading_done(struct ledger_reading *reading)
{
    arena_done(&reading->mem);
    buf_done(&reading->line);
    buf_done(&reading->body);
}

static bool columns_agree(const struct row *row, const struct entry *entry)
{
    return row->seq == (int64_t)entry->seq && str_eq(row->receipt_id, entry->receipt_id) &&
           str_eq(row->kind, entry->kind) && str_eq(row->run_id, entry->run_id);
}

/* The row as the line an export would have: one judge, one form. */
static int parse_row(struct ledger_reading *reading, const struct row *row, struct entry *out,
                     struct err *err)
{
    const struct json *complete = NULL;

    buf_clear(&reading->line);
    if (ledger_row_json(&reading->mem, row, &complete, err) < 0 ||
        json_compact(complete, &reading->line, err) < 0 ||
        entry_parse(&reading->mem, buf_str(&reading->line), &reading->body, out, err) < 0)
        return -1;
    out->body = row->body; /* the hash is over the bytes as they are kept */
    return 0;
}

static int on_row(void *context, const struct row *row, struct err *err)
{
    struct ledger_reading *reading = context;
    struct verifier *v = &reading->v;
    struct entry entry;

    arena_done(&reading->mem);
    if (parse_row(reading, row, &entry, err) < 0) {
        verifier_fault(v, FAULT_CHANGED, row->receipt_id, err->text);
        return verifier_wants_more(v) ? 0 : 1;
    }
    entry.misfiled = !columns_agree(row, &entry);
    verifier_entry(v, &entry);
    if (reading->visit && v->report->fault == FAULT_NONE &&
        reading->visit(reading->context, &entry, err) < 0)
        return -1;
    return verifier_wants_more(v) ? 0 : 1;
}

int ledger_verify(struct record *record, const struct record_check *check, uint64_t from,
                  entry_visitor *visit, void *context, struct record_report *out, struct err *err)
{
    struct ledger_reading reading = {.mem = ARENA(RECEIPT_MEMORY_MAX),
                                     .line = BUF(LINE_MAX_BYTES),
                                     .body = BUF(LINE_MAX_BYTES),
                                     .visit = visit,
                                     .context = context};
    int failed;

    verifier_begin(&reading.v, check, out);
    failed = from ? ledger_each_after(record, (int64_t)from - 1, on_row, &reading, err)
                  : ledger_each(record, on_row, &reading, err);
    verifier_end(&reading.v);
    reading_done(&reading);
    return failed;
}

int record_verify(struct record *record, const struct record_check *check,
                  struct record_report *out, struct err *err)
{
    return ledger_verify(record, check, 0, NULL, NULL, out, err);
}

/* Why the entry is not the one that was good, or NULL. */
static const char *other_than(const struct place *place, const struct entry *entry,
                              const struct public_key *key)
{
    if (entry->misfiled || entry->seq != place->seq || !same_hash(&entry->hash, &place->hash))
        return "it is another one";
    return entry_fault(entry, key);
}

static int verify_again(struct ledger_reading *reading, struct statement *st,
                        const struct public_key *key, const struct place *place,
                        record_visitor *visit, void *context, struct err *err)
{
    const char *what = "it is missing";
    struct entry entry;
    struct row row;
    int got;

    arena_done(&reading->mem);
    statement_bind_int(st, 1, (int64_t)place->seq);
    got = statement_step(st, err);
    if (got < 0)
        return -1;
    if (got > 0) {
        ledger_row(st, &row);
        if (parse_row(reading, &row, &entry, err) < 0)
            return -1;
        entry.misfiled = !columns_agree(&row, &entry);
        what = other_than(place, &entry, key);
    }
    if (what)
        return err_set(err, ERR_INTEGRITY, "entry %llu of the ledger is not what it was: %s",
                       (unsigned long long)place->seq, what);
    if (visit(context, entry.json, err) < 0)
        return -1;
    statement_reset(st);
    return 0;
}

int ledger_verify_again(struct record *record, const struct public_key *key,
                        const struct place *places, size_t n, record_visitor *visit, void *context,
                        struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};
    struct ledger_reading reading = {
        .mem = ARENA(RECEIPT_MEMORY_MAX), .line = BUF(LINE_MAX_BYTES), .body = BUF(LINE_MAX_BYTES)};
    int failed = statement_prepare(record->store,
                                   "SELECT " LEDGER_ROW " FROM receipts WHERE seq = ?", &st, err);

    for (size_t i = 0; failed == 0 && i < n; i++)
        failed = verify_again(&reading, &st, key, &places[i], visit, context, err);
    reading_done(&reading);
    return failed;
}

static int show_end(struct ledger_reading *reading, struct statement *st,
                    const struct public_key *key, record_visitor *visit, void *context,
                    struct err *err)
{
    int got = statement_step(st, err);
    struct entry entry;
    const char *what;
    struct row row;

    if (got < 0)
        return -1;
    if (got == 0)
        return err_set(err, ERR_NOT_FOUND, "the ledger knows nothing of that run");
    ledger_row(st, &row);
    if (str_is(row.kind, "intent"))
        return 0;
    if (parse_row(reading, &row, &entry, err) < 0) {
        err->code = ERR_INTEGRITY;
        return -1;
    }
    what = columns_agree(&row, &entry) ? entry_fault(&entry, key) : "it is filed as another one";
    if (what)
        return err_set(err, ERR_INTEGRITY, "entry %lld of the ledger does not hold: %s",
                       (long long)row.seq, what);
    return visit(context, entry.json, err) < 0 ? -1 : 1;
}

int record_end_of(struct record *record, const char *run_id, record_visitor *visit, void *context,
                  struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};
    struct ledger_reading reading = {
        .mem = ARENA(RECEIPT_MEMORY_MAX), .line = BUF(LINE_MAX_BYTES), .body = BUF(LINE_MAX_BYTES)};
    int got;

    if (statement_prepare(record->store,
                          "SELECT " LEDGER_ROW
                          " FROM receipts WHERE run_id = ?1 ORDER BY role DESC LIMIT 1",
                          &st, err) < 0)
        return -1;
    statement_bind_text(&st, 1, str_of(run_id));
    got = show_end(&reading, &st, &record->signer->public_key, visit, context, err);
    reading_done(&reading);
    return got;
}

/* ---- one entry ---- */

static const char *entry_alone_fault(const struct verifier *before, const struct entry *entry,
                                     const struct public_key *key)
{
    const char *what;
    char id[KEY_ID_BYTES];

    key_id(key, id);
    if (!str_is(entry->key_id, id))
        return "another key than the one of this ledger signed it";
    what = entry_fault(entry, key);
    if (what)
        return what;
    if (entry->seq != before->last.seq + 1)
        return "the entry before it is missing";
    return link_fault(before, entry);
}

/* The next row as an entry; *fault when it is none. 0: there is no row. */
static int read_entry(struct ledger_reading *reading, struct statement *st, struct row *row,
                      struct entry *out, const char **fault, struct err *err)
{
    int got = statement_step(st, err);

    *fault = NULL;
    if (got <= 0)
        return got;
    ledger_row(st, row);
    *out = (struct entry){0};
    if (parse_row(reading, row, out, err) < 0)
        *fault = err->text;
    else
        out->misfiled = !columns_agree(row, out);
    return 1;
}

/* Its row is behind that of the entry before it, if that is there. */
static int find_fault(struct ledger_reading *reading, struct statement *st, int64_t seq,
                      const struct public_key *key, const char **fault, struct err *err)
{
    struct verifier *before = &reading->v;
    struct entry entry;
    struct row row;
    int got = read_entry(reading, st, &row, &entry, fault, err);

    if (got > 0 && row.seq != seq) {
        before->last = (struct chain_head){(uint64_t)row.seq, entry.lamport_clock, entry.hash};
        got = read_entry(reading, st, &row, &entry, fault, err);
    }
    if (got < 0)
        return -1;
    if (got == 0)
        *fault = "it is missing";
    else if (!*fault)
        *fault = entry_alone_fault(before, &entry, key);
    return 0;
}

int ledger_fault(struct record *record, int64_t seq, const struct public_key *key,
                 struct arena *mem, const char **out, struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};
    const struct record_check check = {0}; /* without a head */
    struct ledger_reading reading = {.v = {.check = &check},
                                     .mem = ARENA(2 * RECEIPT_MEMORY_MAX),
                                     .line = BUF(LINE_MAX_BYTES),
                                     .body = BUF(LINE_MAX_BYTES)};
    const char *fault = NULL;
    int failed = statement_prepare(record->store,
                                   "SELECT " LEDGER_ROW
                                   " FROM receipts WHERE seq BETWEEN ?1 - 1 AND ?1 ORDER BY seq",
                                   &st, err);

    if (failed == 0) {
        statement_bind_int(&st, 1, seq);
        failed = find_fault(&reading, &st, seq, key, &fault, err);
    }
    if (failed == 0)
        *out = arena_text(mem, str_of(fault ? fault : ""));
    reading_done(&reading);
    return failed;
}

/* ---- a file ---- */

struct file_reading {
    struct verifier v;
    struct arena mem;
    struct buf line; /* the one being collected */
    struct buf body;
    bool too_long;
};

/* An incomplete last line that is well-formed as far as it goes was cut while it was written or
 * copied; anything else was written like that. */
static bool is_torn(struct file_reading *reading, bool last)
{
    const struct json *json = NULL;
    struct mark where = {0};
    struct err err;

    return last && !reading->too_long &&
           json_parse(&reading->mem, buf_str(&reading->line), &json, &where, &err) < 0 &&
           where.column + TORN_BACK > reading->line.n;
}

static void on_line(struct file_reading *reading, bool last)
{
    struct verifier *v = &reading->v;
    struct entry entry = {0};
    struct err err;

    v->line++;
    arena_done(&reading->mem);
    if (reading->too_long)
        verifier_fault(v, FAULT_CHANGED, STR_LIT(""), "the line is longer than any receipt");
    else if (entry_parse(&reading->mem, buf_str(&reading->line), &reading->body, &entry, &err) == 0)
        verifier_entry(v, &entry);
    else if (is_torn(reading, last))
        verifier_fault(v, FAULT_TORN, STR_LIT(""),
                       "the last line is incomplete; what stands before it is untouched");
    else
        verifier_fault(v, FAULT_CHANGED, STR_LIT(""), err.text);
    buf_clear(&reading->line);
    reading->too_long = false;
}

static void on_bytes(struct file_reading *reading, const char *p, size_t n)
{
    struct str rest = {p, n};
    struct err err;

    while (rest.n && verifier_wants_more(&reading->v)) {
        const char *end = memchr(rest.p, '\n', rest.n);
        size_t take = end ? (size_t)(end - rest.p) : rest.n;

        if (!reading->too_long && buf_add(&reading->line, rest.p, take, &err) < 0)
            reading->too_long = true;
        if (end)
            on_line(reading, false);
        rest.p += take + (end ? 1 : 0);
        rest.n -= take + (end ? 1 : 0);
    }
}

static int read_lines(int fd, struct file_reading *reading, struct err *err)
{
    AUTO_FREE char *bytes = xmalloc(READ_BYTES);
    ssize_t got = 1;

    while (got > 0 && verifier_wants_more(&reading->v)) {
        got = TEMP_FAILURE_RETRY(read(fd, bytes, READ_BYTES));
        if (got < 0)
            return err_os(err, "reading");
        on_bytes(reading, bytes, (size_t)got);
    }
    if ((reading->line.n || reading->too_long) && verifier_wants_more(&reading->v))
        on_line(reading, true);
    return 0;
}

int record_verify_fd(int fd, const struct record_check *check, struct record_report *out,
                     struct err *err)
{
    struct file_reading reading = {
        .mem = ARENA(RECEIPT_MEMORY_MAX), .line = BUF(LINE_MAX_BYTES), .body = BUF(LINE_MAX_BYTES)};
    int failed;

    verifier_begin(&reading.v, check, out);
    failed = read_lines(fd, &reading, err);
    verifier_end(&reading.v);
    arena_done(&reading.mem);
    buf_done(&reading.line);
    buf_done(&reading.body);
    return failed;
}
