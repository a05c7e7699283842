/* SPDX-License-Identifier: Apache-2.0 */
#include "flow/approve/store.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lib/base/limits.h"
#include "lib/json/json.h"

#define APPLICATION_ID 0x42726970 /* "Brip" */
#define CLOCK_STEP_S 10           /* a clock that is set right may go back so far */
#define ENDED_AT_ONCE 16          /* rows a change writes down as over, at most */

/* How many wait is counted as they come and go: a sum over all of them would cost each request as
 * much as there are others. Requester '' stands for everybody. */
#define COUNT_UP(row)                                                                              \
    " INSERT INTO waiting (requester, n) VALUES (" row ".requester, 1), ('', 1)"                   \
    "  ON CONFLICT (requester) DO UPDATE SET n = n + 1;"
#define COUNT_DOWN(row)                                                                            \
    " UPDATE waiting SET n = n - 1 WHERE requester IN (" row ".requester, '');"                    \
    " DELETE FROM waiting WHERE requester = " row ".requester AND n <= 0;"

static const char *const migrations[] = {
    "CREATE TABLE approvals ("
    " seq INTEGER PRIMARY KEY AUTOINCREMENT,"
    " id TEXT NOT NULL UNIQUE,"
    " digest TEXT NOT NULL,"
    " requester TEXT NOT NULL,"
    " subject TEXT NOT NULL,"
    " state INTEGER NOT NULL,"
    " asked_at INTEGER NOT NULL,"
    " expires_at INTEGER NOT NULL,"
    " decided_at INTEGER NOT NULL,"
    " decided_by TEXT NOT NULL,"
    " comment TEXT NOT NULL"
    ") STRICT;"
    "CREATE INDEX approvals_by_digest ON approvals (digest, state);"
    "CREATE INDEX approvals_by_state ON approvals (state, requester, expires_at);"
    "CREATE INDEX approvals_in_order ON approvals (state, seq);"
    "CREATE INDEX approvals_by_end ON approvals (expires_at);"
    "CREATE TABLE custodians ("
    " name TEXT PRIMARY KEY,"
    " public_key BLOB NOT NULL UNIQUE,"
    " sealed BLOB NOT NULL," /* empty: signs elsewhere */
    " enrolled_at INTEGER NOT NULL"
    ") STRICT",

    "ALTER TABLE approvals ADD COLUMN frame TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE approvals ADD COLUMN terms TEXT NOT NULL DEFAULT '{}';"
    "ALTER TABLE approvals ADD COLUMN confirmations INTEGER NOT NULL DEFAULT 0;"
    "DROP INDEX approvals_by_state;"
    "CREATE INDEX approvals_by_frame ON approvals (frame, seq);"
    "CREATE INDEX approvals_of ON approvals (requester, state, seq);"
    "CREATE INDEX approvals_open ON approvals (state, expires_at);"
    "CREATE TABLE words ("
    " approval INTEGER NOT NULL,"
    " by TEXT NOT NULL,"
    " made_by TEXT NOT NULL," /* who made the token it came with; '': no token */
    " confirms INTEGER NOT NULL,"
    " at INTEGER NOT NULL,"
    " comment TEXT NOT NULL,"
    " PRIMARY KEY (approval, by)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE TABLE clock (one INTEGER PRIMARY KEY CHECK (one = 1), seen INTEGER NOT NULL) STRICT;"
    "INSERT INTO clock VALUES (1, 0);"
    "CREATE TABLE waiting (requester TEXT PRIMARY KEY, n INTEGER NOT NULL) STRICT, WITHOUT ROWID;"
    "INSERT INTO waiting SELECT requester, count(*) FROM approvals WHERE state = 0 GROUP BY "
    "requester;"
    "INSERT INTO waiting SELECT '', count(*) FROM approvals WHERE state = 0;"
    "CREATE TRIGGER waiting_comes AFTER INSERT ON approvals WHEN new.state = 0"
    " BEGIN" COUNT_UP(
        "new") " END;"
               "CREATE TRIGGER waiting_ends AFTER UPDATE OF state ON approvals"
               " WHEN old.state = 0 AND new.state <> 0"
               " BEGIN" COUNT_DOWN(
                   "old") " END;"
                          "CREATE TRIGGER waiting_goes AFTER DELETE ON approvals WHEN old.state = 0"
                          " BEGIN" COUNT_DOWN(
                              "old") " END;"
                                     "CREATE TRIGGER words_go AFTER DELETE ON approvals"
                                     " BEGIN DELETE FROM words WHERE approval = old.seq; END;"
                                     "ALTER TABLE custodians ADD COLUMN revoked_at INTEGER NOT NULL DEFAULT 0",

    /* Which receipt says that it is asked; NULL: none does yet, and nobody sees it. Of those from
     * before it is not known (0). */
    "ALTER TABLE approvals ADD COLUMN receipt_seq INTEGER DEFAULT 0;"
    /* Who was removed before that took his words along: what is open with one is asked for again.
     */
    "UPDATE approvals SET state = 4 WHERE state IN (0, 1) AND EXISTS (SELECT 1 FROM words JOIN "
    "custodians ON words.by = 'custodian:' || custodians.name WHERE words.approval = approvals.seq "
    "AND words.confirms <> 0 AND custodians.revoked_at <> 0)",

    /* Under which run the ledger has a word. A word from before says none, and is not used. */
    "ALTER TABLE words ADD COLUMN run_id TEXT NOT NULL DEFAULT ''",

    /* Under which run the ledger has, or will have, that nobody answered in time; and that it has.
     * What was over before has no such receipt. */
    "ALTER TABLE approvals ADD COLUMN end_run TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE approvals ADD COLUMN end_told INTEGER NOT NULL DEFAULT 0;"
    "UPDATE approvals SET end_told = 1 WHERE state = 4;"
    "CREATE INDEX approvals_untold ON approvals (seq) WHERE state = 4 AND end_told = 0",
};

static const struct store_schema schema = {
    .what = "list of approvals",
    .application_id = APPLICATION_ID,
    .migrations = migrations,
    .version = COUNT(migrations),
    .if_lost = "brig approvals renew",
};

const char *approval_state_name(enum approval_state state)
{
    static const char *const names[] = {
#define X(id, name) name,
        APPROVAL_STATES(X)
#undef X
    };

    return names[state];
}

static int open_by(int (*way)(const char *path, const struct store_schema *schema,
                              struct store **out, struct err *err),
                   const char *state_dir, struct approvals **out, struct err *err)
{
    AUTO(approvals) struct approvals *approvals = xcalloc(1, sizeof *approvals);
    AUTO_FREE char *path = NULL;

    if (asprintf(&path, "%s/approvals.db", state_dir) < 0) {
        path = NULL;
        return err_os(err, "naming the list of approvals");
    }
    if (way(path, &schema, &approvals->store, err) < 0)
        return -1;
    *out = TAKE(approvals);
    return 0;
}

int approvals_open(const char *state_dir, struct approvals **out, struct err *err)
{
    return open_by(store_open, state_dir, out, err);
}

int approvals_renew(const char *state_dir, struct approvals **out, struct err *err)
{
    return open_by(store_renew, state_dir, out, err);
}

void approvals_free(struct approvals *approvals)
{
    if (!approvals)
        return;
    store_free(approvals->store);
    free(approvals);
}

/* ---- terms ---- */

static struct json *by_json(struct arena *mem, struct words by)
{
    struct json *list = json_array(mem);

    for (size_t i = 0; i < by.n; i++)
        json_push(list, json_text(mem, str_of(by.v[i])));
    return list;
}

struct json *terms_json(struct arena *mem, const struct approval_terms *terms)
{
    struct json *json = json_object(mem), *also = json_array(mem);

    if (!terms)
        return json;
    for (const struct approval_terms *one = terms->also; one; one = one->also)
        json_push(also, by_json(mem, one->by));
    json_put(json, "also", also);
    json_put(json, "by", by_json(mem, terms->by));
    json_put_text(mem, json, "group", terms->group);
    json_put_int(mem, json, "quorum", terms->quorum);
    json_put_bool(mem, json, "reason_required", terms->reason_required);
    json_put_int(mem, json, "use_s", (int64_t)terms->use_s);
    return json;
}

static struct words by_read(struct arena *mem, const struct json *list)
{
    const char **v;
    size_t n = 0;

    if (!list || list->kind != JSON_ARRAY || list->n == 0)
        return (struct words){0};
    v = arena_array(mem, const char *, list->n + 1);
    json_each(item, list) v[n++] = arena_text(mem, item->text);
    return (struct words){v, n};
}

static int64_t number_in(const struct json *json, const char *key)
{
    const struct json *member = json_get(json, key);
    int64_t value = 0;

    return member && json_is_int(member, &value) ? value : 0;
}

static const struct approval_terms *also_read(struct arena *mem, const struct json *list)
{
    struct approval_terms *first = NULL;

    if (!list || list->kind != JSON_ARRAY)
        return NULL;
    json_each(item, list)
    {
        struct approval_terms *one = arena_new(mem, struct approval_terms);

        one->by = by_read(mem, item);
        one->also = first;
        first = one;
    }
    return first;
}

/* We wrote it. What cannot be read has a quorum nobody reaches. */
void terms_read(struct arena *mem, const char *text, struct approval_terms *out)
{
    const struct json *json = NULL, *member;
    struct str group = {0};
    struct mark where;
    struct err err;

    *out = (struct approval_terms){.quorum = UINT32_MAX, .reason_required = true};
    if (json_parse(mem, str_of(text), &json, &where, &err) < 0 || json->kind != JSON_OBJECT)
        return;
    out->quorum = json_get(json, "quorum") ? (unsigned)number_in(json, "quorum") : 1;
    out->use_s = (uint64_t)number_in(json, "use_s");
    member = json_get(json, "reason_required");
    out->reason_required = member && member->kind == JSON_BOOL && member->boolean;
    out->by = by_read(mem, json_get(json, "by"));
    out->also = also_read(mem, json_get(json, "also"));
    member = json_get(json, "group");
    if (member && json_is_text(member, &group))
        out->group = arena_text(mem, group);
}

/* ---- time ---- */

static int mark_read(struct approvals *approvals, int64_t *out, struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};

    if (statement_prepare(approvals->store, "SELECT seen FROM clock", &st, err) < 0)
        return -1;
    switch (statement_step(&st, err)) {
    case 1:
        *out = statement_int(&st, 0);
        return 0;
    case 0:
        return err_set(err, ERR_INTEGRITY, "the list of approvals has lost its clock");
    default:
        return -1;
    }
}

int moment_read(struct approvals *approvals, struct moment *out, struct err *err)
{
    int64_t seen = 0, now = (int64_t)time(NULL);

    if (mark_read(approvals, &seen, err) < 0)
        return -1;
    *out = (struct moment){.now = now > seen ? now : seen, .went_back = now + CLOCK_STEP_S < seen};
    return 0;
}

/* Some of what is over becomes so in the store; the rest is over all the same and has its turn
 * later. In no order: to find the oldest, all that is over would be sorted each time. */
static int write_ends(struct approvals *approvals, int64_t until, int64_t at_once, struct err *err)
{
    const struct given given = {
        .numbers = {until, at_once},
          .number_n = 2
    };

    return row_change(approvals,
                      "UPDATE approvals SET state = 4 WHERE seq IN (SELECT seq FROM approvals "
                      "WHERE state IN (0, 1) AND expires_at <= ?1 LIMIT ?2)",
                      &given, err);
}

int moment_end_of(struct approvals *approvals, const char *requester, const struct moment *moment,
                  struct err *err)
{
    const struct given given = {
        .texts[0] = requester,
        .text_n = 1,
        .numbers = {moment->now, ENDED_AT_ONCE},
        .number_n = 2,
    };

    return row_change(approvals,
                      "UPDATE approvals SET state = 4 WHERE seq IN (SELECT seq FROM approvals "
                      "WHERE requester = ?1 AND state = 0 AND expires_at <= ?2 LIMIT ?3)",
                      &given, err);
}

int moment_keep(struct approvals *approvals, struct moment *out, struct err *err)
{
    static const char move[] = "UPDATE clock SET seen = ?1 WHERE seen <> ?1";
    struct given given = {.number_n = 1};

    if (moment_read(approvals, out, err) < 0)
        return -1;
    if (!out->went_back) {
        given.numbers[0] = out->now;
        return row_change(approvals, move, &given, err) < 0
                   ? -1
                   : write_ends(approvals, out->now, ENDED_AT_ONCE, err);
    }
    /* Everything that is open ends; then time goes on from where the clock is. */
    if (write_ends(approvals, INT64_MAX, INT64_MAX, err) < 0)
        return -1;
    *out = (struct moment){.now = (int64_t)time(NULL)};
    given.numbers[0] = out->now;
    return row_change(approvals, move, &given, err);
}

/* ---- rows ---- */

/* What waits too long is over, whether or not anybody has written that down. */
static enum approval_state state_at(int64_t stored, int64_t expires_at, const struct moment *moment)
{
    bool is_open = stored == APPROVAL_PENDING || stored == APPROVAL_CONFIRMED;

    return is_open && (moment->went_back || expires_at <= moment->now)
               ? APPROVAL_EXPIRED
               : (enum approval_state)stored;
}

int row_read(const struct statement *st, struct arena *mem, const struct moment *moment,
             struct approval *out, struct err *err)
{
    int64_t state = statement_int(st, 5);

    if (state < 0 || state >= APPROVAL_STATE_COUNT)
        return err_set(err, ERR_INTEGRITY, "the list of approvals holds something else");
    *out = (struct approval){
        .seq = (uint64_t)statement_int(st, 0),
        .id = arena_text(mem, statement_bytes(st, 1)),
        .digest = arena_text(mem, statement_bytes(st, 2)),
        .requester = arena_text(mem, statement_bytes(st, 3)),
        .subject = arena_text(mem, statement_bytes(st, 4)),
        .asked_at = statement_int(st, 6),
        .expires_at = statement_int(st, 7),
        .decided_at = statement_int(st, 8),
        .decided_by = arena_text(mem, statement_bytes(st, 9)),
        .comment = arena_text(mem, statement_bytes(st, 10)),
        .frame = arena_text(mem, statement_bytes(st, 11)),
        .confirmations = (unsigned)statement_int(st, 13),
        .stands = statement_int(st, 14) >= 0,
        .receipt_seq = statement_int(st, 14) > 0 ? (uint64_t)statement_int(st, 14) : 0,
    };
    terms_read(mem, arena_text(mem, statement_bytes(st, 12)), &out->terms);
    out->state = state_at(state, out->expires_at, moment);
    return 0;
}

int row_find(struct approvals *approvals, struct arena *mem, const char *sql, const char *text,
             const struct moment *moment, struct approval *out, struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};
    int got;

    if (statement_prepare(approvals->store, sql, &st, err) < 0)
        return -1;
    statement_bind_text(&st, 1, str_of(text));
    statement_bind_int(&st, 2, moment->now);
    got = statement_step(&st, err);
    if (got == 1 && row_read(&st, mem, moment, out, err) < 0)
        return -1;
    return got;
}

int row_change(struct approvals *approvals, const char *sql, const struct given *given,
               struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};
    int place = 1;

    if (statement_prepare(approvals->store, sql, &st, err) < 0)
        return -1;
    for (size_t i = 0; i < given->text_n; i++)
        statement_bind_text(&st, place++, str_of(given->texts[i]));
    for (size_t i = 0; i < given->number_n; i++)
        statement_bind_int(&st, place++, given->numbers[i]);
    return statement_step(&st, err) < 0 ? -1 : 0;
}
