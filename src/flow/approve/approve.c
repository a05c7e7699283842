/* SPDX-License-Identifier: Apache-2.0 */
#include "flow/approve/store.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/base/limits.h"
#include "lib/json/json.h"

#define APPLICATION_ID 0x42726970    /* "Brip" */
#define KEPT_S (30LL * 24 * 60 * 60) /* what is over is kept so long; the receipts stay */
#define FORGOTTEN_AT_ONCE 64         /* rows a new request clears away, at most */
#define SUBJECT_BYTES_MAX (4 * MIB)

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
};

static const struct store_schema schema = {
    .what = "list of approvals",
    .application_id = APPLICATION_ID,
    .migrations = migrations,
    .version = COUNT(migrations),
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

int approvals_open(const char *state_dir, struct approvals **out, struct err *err)
{
    AUTO(approvals) struct approvals *approvals = xcalloc(1, sizeof *approvals);
    AUTO_FREE char *path = NULL;

    if (asprintf(&path, "%s/approvals.db", state_dir) < 0) {
        path = NULL;
        return err_os(err, "naming the list of approvals");
    }
    if (store_open(path, &schema, &approvals->store, err) < 0)
        return -1;
    *out = TAKE(approvals);
    return 0;
}

void approvals_free(struct approvals *approvals)
{
    if (!approvals)
        return;
    store_free(approvals->store);
    free(approvals);
}

/* ---- rows ---- */

#define COLUMNS                                                                                    \
    "seq, id, digest, requester, subject, state, asked_at, expires_at, decided_at, decided_by, "   \
    "comment"

static int64_t now_s(void)
{
    return (int64_t)time(NULL);
}

/* What waits too long is over, whether or not anybody has written that down. */
static enum approval_state state_at(int64_t stored, int64_t expires_at, int64_t now)
{
    bool is_open = stored == APPROVAL_PENDING || stored == APPROVAL_CONFIRMED;

    return is_open && expires_at <= now ? APPROVAL_EXPIRED : (enum approval_state)stored;
}

static int read_row(const struct statement *st, struct arena *mem, struct approval *out,
                    struct err *err)
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
    };
    out->state = state_at(state, out->expires_at, now_s());
    return 0;
}

/* 1: found. */
static int find_row(struct approvals *approvals, struct arena *mem, const char *sql,
                    const char *text, struct approval *out, struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};
    int got;

    if (statement_prepare(approvals->store, sql, &st, err) < 0)
        return -1;
    statement_bind_text(&st, 1, str_of(text));
    statement_bind_int(&st, 2, now_s());
    got = statement_step(&st, err);
    if (got == 1 && read_row(&st, mem, out, err) < 0)
        return -1;
    return got;
}

/* What a statement that answers nothing is given: texts first, then numbers. */
struct given {
    const char *texts[3];
    size_t text_n;
    int64_t numbers[3];
    size_t number_n;
};

static int change(struct approvals *approvals, const char *sql, const struct given *given,
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

/* ---- asking ---- */

static int count_pending(struct approvals *approvals, const char *sql, const char *requester,
                         int64_t *out, struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};

    if (statement_prepare(approvals->store, sql, &st, err) < 0)
        return -1;
    statement_bind_int(&st, 1, now_s());
    if (requester)
        statement_bind_text(&st, 2, str_of(requester));
    if (statement_step(&st, err) < 0)
        return -1;
    *out = statement_int(&st, 0);
    return 0;
}

/* Nobody can keep everybody else from being asked. */
static int check_room(struct approvals *approvals, const char *requester, struct err *err)
{
    int64_t all = 0, own = 0;

    if (count_pending(approvals,
                      "SELECT count(*) FROM approvals WHERE state = 0 AND expires_at > ?1", NULL,
                      &all, err) < 0 ||
        count_pending(approvals,
                      "SELECT count(*) FROM approvals WHERE state = 0 AND expires_at > ?1 AND "
                      "requester = ?2",
                      requester, &own, err) < 0)
        return -1;
    if (own >= APPROVALS_PENDING_EACH_MAX)
        return err_set(err, ERR_LIMIT, "%d requests of %.100s wait for a person already",
                       APPROVALS_PENDING_EACH_MAX, requester);
    if (all >= APPROVALS_PENDING_MAX)
        return err_set(err, ERR_LIMIT, "%d requests wait for a person already",
                       APPROVALS_PENDING_MAX);
    return 0;
}

static int add_row(struct approvals *approvals, struct arena *mem, const struct run *run,
                   const char *digest, struct approval *out, struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};
    AUTO_BUF struct buf subject = BUF(SUBJECT_BYTES_MAX);
    char id[ID_BYTES];

    if (json_canonical(approval_subject(mem, run), &subject, err) < 0 ||
        statement_prepare(approvals->store,
                          "INSERT INTO approvals (id, digest, requester, subject, state, asked_at,"
                          " expires_at, decided_at, decided_by, comment)"
                          " VALUES (?1, ?2, ?3, ?4, 0, ?5, ?6, 0, '', '')",
                          &st, err) < 0)
        return -1;
    id_new(id);
    *out = (struct approval){
        .id = arena_text(mem, str_of(id)),
        .digest = arena_text(mem, str_of(digest)),
        .requester = arena_text(mem, str_of(run->action.principal)),
        .subject = arena_text(mem, buf_str(&subject)),
        .state = APPROVAL_PENDING,
        .asked_at = now_s(),
        .expires_at = now_s() + APPROVAL_PENDING_S,
        .decided_by = "",
        .comment = "",
    };
    statement_bind_text(&st, 1, str_of(out->id));
    statement_bind_text(&st, 2, str_of(out->digest));
    statement_bind_text(&st, 3, str_of(out->requester));
    statement_bind_text(&st, 4, str_of(out->subject));
    statement_bind_int(&st, 5, out->asked_at);
    statement_bind_int(&st, 6, out->expires_at);
    return statement_step(&st, err) < 0 ? -1 : 0;
}

static int forget_old(struct approvals *approvals, struct err *err)
{
    const struct given given = {
        .numbers = {now_s() - KEPT_S, FORGOTTEN_AT_ONCE},
          .number_n = 2
    };

    return change(approvals,
                  "DELETE FROM approvals WHERE seq IN (SELECT seq FROM approvals WHERE expires_at "
                  "< ?1 ORDER BY expires_at LIMIT ?2)",
                  &given, err);
}

static int use(struct approvals *approvals, struct approval *approval, struct err *err)
{
    const struct given given = {
        .texts[0] = approval->id, .text_n = 1, .numbers[0] = APPROVAL_USED, .number_n = 1};

    approval->state = APPROVAL_USED;
    return change(approvals, "UPDATE approvals SET state = ?2 WHERE id = ?1", &given, err);
}

int approvals_ask(struct approvals *approvals, struct arena *mem, const struct run *run,
                  struct approval *out, struct err *err)
{
    AUTO_TRANSACTION struct transaction t = {0};
    char digest[MODEL_HASH_BYTES];
    int got;

    if (approval_digest(run, digest, err) < 0 || transaction_begin(approvals->store, &t, err) < 0)
        return -1;
    got = find_row(approvals, mem,
                   "SELECT " COLUMNS " FROM approvals WHERE digest = ?1 AND state < 3 AND "
                   "expires_at > ?2 ORDER BY seq DESC LIMIT 1",
                   digest, out, err);
    if (got < 0)
        return -1;
    if (got == 0 &&
        (check_room(approvals, run->action.principal, err) < 0 || forget_old(approvals, err) < 0 ||
         add_row(approvals, mem, run, digest, out, err) < 0))
        return -1;
    if (out->state == APPROVAL_CONFIRMED && use(approvals, out, err) < 0)
        return -1;
    return transaction_commit(&t, err);
}

/* ---- looking ---- */

static bool is_name(const char *name)
{
    size_t n = strlen(name);

    return n > 0 && n < ID_BYTES && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789") == n;
}

int approvals_show(struct approvals *approvals, struct arena *mem, const char *name,
                   struct approval *out, struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};
    int got;

    if (!is_name(name))
        return err_set(err, ERR_NOT_FOUND, "nothing of that id waits or waited for a person");
    if (statement_prepare(approvals->store,
                          "SELECT " COLUMNS " FROM approvals WHERE id >= ?1 AND id < ?1 || '~' "
                          "ORDER BY id LIMIT 2",
                          &st, err) < 0)
        return -1;
    statement_bind_text(&st, 1, str_of(name));
    got = statement_step(&st, err);
    if (got == 1 && read_row(&st, mem, out, err) < 0)
        return -1;
    if (got == 0)
        return err_set(err, ERR_NOT_FOUND, "nothing of that id waits or waited for a person");
    if (got == 1)
        got = statement_step(&st, err);
    if (got == 1)
        return err_set(err, ERR_CONFLICT, "several begin with %s; write more of it", name);
    return got;
}

int approvals_each(struct approvals *approvals, const struct approvals_query *query,
                   int (*visit)(void *context, const struct approval *approval, struct err *err),
                   void *context, struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};
    bool is_stored = query->state >= 0 && query->state != APPROVAL_EXPIRED;
    unsigned left = query->limit;
    int got = 0;

    if (statement_prepare(approvals->store,
                          is_stored
                              ? "SELECT " COLUMNS " FROM approvals WHERE state = ?2 AND seq > "
                                "?1 ORDER BY seq"
                              : "SELECT " COLUMNS " FROM approvals WHERE seq > ?1 ORDER BY seq",
                          &st, err) < 0)
        return -1;
    statement_bind_int(&st, 1, (int64_t)query->after_seq);
    if (is_stored)
        statement_bind_int(&st, 2, query->state);
    while (left && (got = statement_step(&st, err)) == 1) {
        AUTO_ARENA struct arena mem = ARENA(2 * SUBJECT_BYTES_MAX);
        struct approval approval;

        if (read_row(&st, &mem, &approval, err) < 0)
            return -1;
        if (query->state >= 0 && (int)approval.state != query->state)
            continue;
        left--;
        if (visit(context, &approval, err) < 0)
            return -1;
    }
    return left && got < 0 ? -1 : 0;
}

/* ---- a person's word ---- */

/* Whoever asks may take it back, too. */
static int check_pending(const struct approval *approval, bool confirm, const char *by,
                         struct err *err)
{
    if (approval->state == APPROVAL_EXPIRED)
        return err_set(err, ERR_CONFLICT, "%s has expired; it has to be asked for again",
                       approval->id);
    if (approval->state != APPROVAL_PENDING)
        return err_set(err, ERR_CONFLICT, "%s is %s already, by %.100s", approval->id,
                       approval_state_name(approval->state), approval->decided_by);
    if (confirm && strcmp(approval->requester, by) == 0)
        return err_set(err, ERR_FORBIDDEN,
                       "whoever asks cannot answer: somebody else has to, or an enrolled "
                       "custodian with a passphrase (\"brig approvals enroll\")");
    return 0;
}

int approvals_decide(struct approvals *approvals, struct arena *mem, const char *id, bool confirm,
                     const char *by, const char *comment, struct approval *out, struct err *err)
{
    AUTO_TRANSACTION struct transaction t = {0};
    struct given given;

    if (strlen(comment) > APPROVAL_COMMENT_MAX)
        return err_set(err, ERR_LIMIT, "a comment of more than %d bytes", APPROVAL_COMMENT_MAX);
    if (transaction_begin(approvals->store, &t, err) < 0 ||
        approvals_show(approvals, mem, id, out, err) < 0 ||
        check_pending(out, confirm, by, err) < 0)
        return -1;
    out->state = confirm ? APPROVAL_CONFIRMED : APPROVAL_REJECTED;
    out->decided_at = now_s();
    out->decided_by = arena_text(mem, str_of(by));
    out->comment = arena_text(mem, str_of(comment));
    /* A refusal stands as long as the request would have waited. */
    if (confirm)
        out->expires_at = out->decided_at + APPROVAL_USE_S;
    given.texts[0] = out->id;
    given.texts[1] = out->decided_by;
    given.texts[2] = out->comment;
    given.text_n = 3;
    given.numbers[0] = (int64_t)out->state;
    given.numbers[1] = out->decided_at;
    given.numbers[2] = out->expires_at;
    given.number_n = 3;
    if (change(approvals,
               "UPDATE approvals SET decided_by = ?2, comment = ?3, state = ?4, decided_at = ?5, "
               "expires_at = ?6 WHERE id = ?1",
               &given, err) < 0)
        return -1;
    return transaction_commit(&t, err);
}
