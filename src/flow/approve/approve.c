/* SPDX-License-Identifier: Apache-2.0 */

/* Asking, and using up what was confirmed. */

#include "flow/approve/store.h"

#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/limits.h"
#include "lib/json/json.h"

#define KEPT_S (30LL * 24 * 60 * 60) /* what is over is kept so long; the receipts stay */
#define FORGOTTEN_AT_ONCE 64         /* rows a new request clears away, at most */

static int count_waiting(struct approvals *approvals, const char *requester, int64_t *out,
                         struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};
    int got;

    if (statement_prepare(approvals->store, "SELECT n FROM waiting WHERE requester = ?1", &st,
                          err) < 0)
        return -1;
    statement_bind_text(&st, 1, str_of(requester));
    got = statement_step(&st, err);
    *out = got == 1 ? statement_int(&st, 0) : 0;
    return got < 0 ? -1 : 0;
}

/* Nobody can keep everybody else from being asked. */
static int check_room(struct approvals *approvals, const char *requester,
                      const struct moment *moment, struct err *err)
{
    int64_t all = 0, own = 0;

    if (count_waiting(approvals, requester, &own, err) < 0)
        return -1;
    if (own >= APPROVALS_PENDING_EACH_MAX &&
        (moment_end_of(approvals, requester, moment, err) < 0 ||
         count_waiting(approvals, requester, &own, err) < 0))
        return -1;
    if (count_waiting(approvals, "", &all, err) < 0)
        return -1;
    if (own >= APPROVALS_PENDING_EACH_MAX)
        return err_set(err, ERR_LIMIT, "%d requests of %.100s wait for a person already",
                       APPROVALS_PENDING_EACH_MAX, requester);
    if (all >= APPROVALS_PENDING_MAX)
        return err_set(err, ERR_LIMIT, "%d requests wait for a person already",
                       APPROVALS_PENDING_MAX);
    return 0;
}

static int terms_text(const struct run *run, struct buf *out, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(1 * MIB);

    return json_canonical(terms_json(&mem, run->verdict.terms), out, err);
}

static void bind_row(struct statement *st, const struct approval *row, const char *terms)
{
    statement_bind_text(st, 1, str_of(row->id));
    statement_bind_text(st, 2, str_of(row->digest));
    statement_bind_text(st, 3, str_of(row->requester));
    statement_bind_text(st, 4, str_of(row->subject));
    statement_bind_int(st, 5, row->asked_at);
    statement_bind_int(st, 6, row->expires_at);
    statement_bind_text(st, 7, str_of(row->frame));
    statement_bind_text(st, 8, str_of(terms));
}

/* What is asked, without the row it becomes. */
struct asked {
    const struct run *run;
    const struct operands *operands;
    char digest[MODEL_HASH_BYTES];
    char frame[MODEL_HASH_BYTES];
};

static int add_row(struct approvals *approvals, struct arena *mem, const struct asked *asked,
                   int64_t now, struct approval *out, struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};
    AUTO_BUF struct buf subject = BUF(SUBJECT_BYTES_MAX);
    AUTO_BUF struct buf terms = BUF(64 * KIB);
    const struct approval_terms *wanted = asked->run->verdict.terms;
    char id[ID_BYTES];

    if (json_canonical(approval_subject(mem, asked->run, asked->operands), &subject, err) < 0 ||
        terms_text(asked->run, &terms, err) < 0 ||
        statement_prepare(approvals->store,
                          "INSERT INTO approvals (id, digest, requester, subject, state, asked_at,"
                          " expires_at, decided_at, decided_by, comment, frame, terms, receipt_seq)"
                          " VALUES (?1, ?2, ?3, ?4, 0, ?5, ?6, 0, '', '', ?7, ?8, NULL) RETURNING "
                          "seq",
                          &st, err) < 0)
        return -1;
    id_new(id);
    *out = (struct approval){
        .id = arena_text(mem, str_of(id)),
        .digest = arena_text(mem, str_of(asked->digest)),
        .frame = arena_text(mem, str_of(asked->frame)),
        .requester = arena_text(mem, str_of(asked->run->action.principal)),
        .subject = arena_text(mem, buf_str(&subject)),
        .state = APPROVAL_PENDING,
        .asked_at = now,
        .expires_at =
            now + (int64_t)(wanted && wanted->wait_s ? wanted->wait_s : APPROVAL_PENDING_S),
        .decided_by = "",
        .comment = "",
        .terms.quorum = wanted ? wanted->quorum : 1,
    };
    bind_row(&st, out, arena_text(mem, buf_str(&terms)));
    if (statement_step(&st, err) < 0)
        return -1;
    out->seq = (uint64_t)statement_int(&st, 0);
    return 0;
}

/* What nobody answered stays until the ledger has that. */
static int forget_old(struct approvals *approvals, int64_t now, struct err *err)
{
    const struct given given = {
        .numbers = {now - KEPT_S, FORGOTTEN_AT_ONCE},
          .number_n = 2
    };

    return row_change(approvals,
                      "DELETE FROM approvals WHERE seq IN (SELECT seq FROM approvals WHERE "
                      "expires_at < ?1 AND (state IN (2, 3) OR end_told = 1 OR receipt_seq IS "
                      "NULL) ORDER BY expires_at LIMIT ?2)",
                      &given, err);
}

/* Who confirmed is what the words say, which can be compared with the ledger. */
static int use(struct approvals *approvals, struct arena *mem, struct approval *approval,
               struct err *err)
{
    const struct given given = {
        .texts[0] = approval->id, .text_n = 1, .numbers[0] = APPROVAL_USED, .number_n = 1};

    if (words_read(approvals, mem, approval, err) < 0)
        return -1;
    approval->state = APPROVAL_USED;
    approval->decided_by = words_names(mem, approval, NULL);
    return row_change(approvals, "UPDATE approvals SET state = ?2 WHERE id = ?1", &given, err);
}

/* ---- one that was asked for before, about the same words and other files ---- */

static void read_operand(struct arena *mem, const struct json *json, struct operand *out)
{
    const struct json *hash = json_get(json, "sha256"), *path = json_get(json, "path");
    struct str text = {0};

    *out = (struct operand){.path = ""};
    if (path && json_is_text(path, &text))
        out->path = arena_text(mem, text);
    if (hash && json_is_text(hash, &text) && text.n < sizeof out->hash)
        memcpy(out->hash, text.p, text.n);
}

static void read_operands(struct arena *mem, const char *subject, struct operands *out)
{
    const struct json *json = NULL, *list;
    struct operand *of;
    struct mark where;
    struct err err;

    *out = (struct operands){0};
    if (json_parse(mem, str_of(subject), &json, &where, &err) < 0)
        return;
    list = json_get(json, "operands");
    if (!list || list->kind != JSON_ARRAY || list->n == 0)
        return;
    of = arena_array(mem, struct operand, list->n);
    json_each(item, list) read_operand(mem, item, &of[out->n++]);
    out->of = of;
}

/* An elevated run of another program by the same name has another frame: it is found by what was
 * asked for. */
static int find_other_program(struct approvals *approvals, struct arena *mem,
                              const struct asked *asked, const struct moment *moment,
                              struct approval *out, struct err *err)
{
    const struct run *run = asked->run;
    struct str before = {0};
    const struct json *json = NULL;
    struct approval earlier;
    struct mark where;
    int got;

    if (run->action.kind != ACTION_ELEVATE)
        return 0;
    got = row_find(approvals, mem,
                   "SELECT " APPROVAL_COLUMNS
                   " FROM approvals WHERE instr(subject, ?1) > 0 AND expires_at > ?2 AND "
                   "receipt_seq IS NOT NULL ORDER BY seq DESC LIMIT 1",
                   arena_printf(mem, "\"request_hash\":\"%s\"", run->action.request_hash), moment,
                   &earlier, err);
    if (got < 0)
        return -1;
    if (got == 0 || strcmp(earlier.requester, run->action.principal) != 0 ||
        json_parse(mem, str_of(earlier.subject), &json, &where, err) < 0 ||
        !json_is_text(json_get(json, APPROVAL_PROGRAM), &before) ||
        str_is(before, run->planned.image_digest))
        return 0;
    out->earlier_id = earlier.id;
    out->changed = arena_printf(mem, "the program %s", run->action.argv.v[0]);
    return 0;
}

static int find_earlier(struct approvals *approvals, struct arena *mem, const struct asked *asked,
                        const struct moment *moment, struct approval *out, struct err *err)
{
    struct approval earlier;
    struct operands before;
    int got = row_find(approvals, mem,
                       "SELECT " APPROVAL_COLUMNS
                       " FROM approvals WHERE frame = ?1 AND expires_at > ?2 AND receipt_seq IS "
                       "NOT NULL ORDER BY seq DESC LIMIT 1",
                       asked->frame, moment, &earlier, err);

    if (got < 0)
        return -1;
    if (got == 0)
        return find_other_program(approvals, mem, asked, moment, out, err);
    if (strcmp(earlier.digest, asked->digest) == 0)
        return 0;
    read_operands(mem, earlier.subject, &before);
    out->earlier_id = earlier.id;
    out->changed = operands_differ(mem, &before, asked->operands);
    return 0;
}

static int ask_anew(struct approvals *approvals, struct arena *mem, const struct asked *asked,
                    const struct moment *moment, struct approval *out, struct err *err)
{
    struct approval about = {0};

    if (check_room(approvals, asked->run->action.principal, moment, err) < 0 ||
        forget_old(approvals, moment->now, err) < 0 ||
        find_earlier(approvals, mem, asked, moment, &about, err) < 0 ||
        add_row(approvals, mem, asked, moment->now, out, err) < 0)
        return -1;
    out->earlier_id = about.earlier_id;
    out->changed = about.changed;
    return 0;
}

/* What is not bound could become anything once somebody has said yes. */
static int check_bound(const struct run *run, const struct operands *operands, struct err *err)
{
    if (!operands->unbound || (run->verdict.terms && run->verdict.terms->allow_unbound))
        return 0;
    return err_set(err, ERR_LIMIT,
                   "nobody can be asked about what cannot be bound by its content: %.300s; name "
                   "less, or let the policy's approvals allow_unbound",
                   operands->unbound);
}

int approvals_ask(struct approvals *approvals, struct arena *mem, const struct run *run,
                  const struct operands *operands, struct approval *out, struct err *err)
{
    AUTO_TRANSACTION struct transaction t = {0};
    struct asked asked = {.run = run, .operands = operands};
    struct moment moment;
    int got;

    if (check_bound(run, operands, err) < 0 ||
        approval_digest(run, operands, asked.digest, asked.frame, err) < 0 ||
        transaction_begin(approvals->store, &t, err) < 0 ||
        moment_keep(approvals, &moment, err) < 0)
        return -1;
    got = row_find(approvals, mem,
                   "SELECT " APPROVAL_COLUMNS
                   " FROM approvals WHERE digest = ?1 AND state < 3 AND expires_at > ?2 ORDER BY "
                   "seq DESC LIMIT 1",
                   asked.digest, &moment, out, err);
    if (got < 0 || (got == 0 && ask_anew(approvals, mem, &asked, &moment, out, err) < 0))
        return -1;
    if (out->state == APPROVAL_CONFIRMED && use(approvals, mem, out, err) < 0)
        return -1;
    return transaction_commit(&t, err);
}

/* Its time begins now: however long its receipt took, it is not over before anybody could see it.
 */
int approvals_stand(struct approvals *approvals, struct arena *mem, const char *id,
                    uint64_t receipt_seq, struct approval *out, bool *is_new, struct err *err)
{
    AUTO_TRANSACTION struct transaction t = {0};
    AUTO_STATEMENT struct statement st = {0};
    struct moment moment;
    int got;

    if (transaction_begin(approvals->store, &t, err) < 0 ||
        moment_keep(approvals, &moment, err) < 0 ||
        statement_prepare(approvals->store,
                          "UPDATE approvals SET state = 0, receipt_seq = ?2, expires_at = ?3 + "
                          "expires_at - asked_at, asked_at = ?3 WHERE id = ?1 AND receipt_seq IS "
                          "NULL AND state IN (0, 4) RETURNING seq",
                          &st, err) < 0)
        return -1;
    statement_bind_text(&st, 1, str_of(id));
    statement_bind_int(&st, 2, (int64_t)receipt_seq);
    statement_bind_int(&st, 3, moment.now);
    got = statement_step(&st, err);
    if (got < 0)
        return -1;
    statement_reset(&st);
    if (transaction_commit(&t, err) < 0 || approvals_show(approvals, mem, id, out, err) < 0)
        return -1;
    *is_new = got == 1;
    return 0;
}

int approvals_recall(struct approvals *approvals, struct arena *mem, const struct run *run,
                     const struct operands *operands, const char *id, const char **changed,
                     struct err *err)
{
    char digest[MODEL_HASH_BYTES], frame[MODEL_HASH_BYTES];
    struct approval approval;
    struct operands before;

    if (check_bound(run, operands, err) < 0 ||
        approval_digest(run, operands, digest, frame, err) < 0 ||
        approvals_show(approvals, mem, id, &approval, err) < 0)
        return -1;
    if (approval.state != APPROVAL_USED)
        return err_set(err, ERR_FORBIDDEN, "approval %s has nobody's word", approval.id);
    *changed = NULL;
    if (strcmp(approval.digest, digest) == 0)
        return 0;
    read_operands(mem, approval.subject, &before);
    if (strcmp(approval.frame, frame) == 0)
        *changed = operands_differ(mem, &before, operands);
    if (!*changed)
        *changed = "the policy, the sandbox or the command";
    return 0;
}
