/* SPDX-License-Identifier: Apache-2.0 */
#include "flow/approve/store.h"

#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/limits.h"

static bool is_name(const char *name)
{
    size_t n = strlen(name);

    return n > 0 && n < ID_BYTES && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789") == n;
}

int words_read(struct approvals *approvals, struct arena *mem, struct approval *out,
               struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};
    struct approval_voice *words = arena_array(mem, struct approval_voice, APPROVAL_WORDS_MAX);
    int got = 0;

    out->words = words;
    out->word_n = 0;
    if (statement_prepare(approvals->store,
                          "SELECT by, made_by, confirms, at, comment, run_id FROM words WHERE "
                          "approval = ?1 ORDER BY at, by",
                          &st, err) < 0)
        return -1;
    statement_bind_int(&st, 1, (int64_t)out->seq);
    while (out->word_n < APPROVAL_WORDS_MAX && (got = statement_step(&st, err)) == 1)
        words[out->word_n++] = (struct approval_voice){
            .by = arena_text(mem, statement_bytes(&st, 0)),
            .made_by = arena_text(mem, statement_bytes(&st, 1)),
            .confirm = statement_int(&st, 2) != 0,
            .at = statement_int(&st, 3),
            .comment = arena_text(mem, statement_bytes(&st, 4)),
            .run_id = arena_text(mem, statement_bytes(&st, 5)),
        };
    return got < 0 ? -1 : 0;
}

static int not_there(struct err *err)
{
    return err_set(err, ERR_NOT_FOUND, "nothing of that id waits or waited for a person");
}

int approvals_show(struct approvals *approvals, struct arena *mem, const char *name,
                   struct approval *out, struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};
    struct moment moment;
    int got;

    if (!is_name(name))
        return not_there(err);
    if (moment_read(approvals, &moment, err) < 0 ||
        statement_prepare(
            approvals->store,
            "SELECT " APPROVAL_COLUMNS
            " FROM approvals WHERE id >= ?1 AND id < ?1 || '~' AND receipt_seq IS NOT "
            "NULL ORDER BY id LIMIT 2",
            &st, err) < 0)
        return -1;
    statement_bind_text(&st, 1, str_of(name));
    got = statement_step(&st, err);
    if (got == 1 && row_read(&st, mem, &moment, out, err) < 0)
        return -1;
    if (got == 0)
        return not_there(err);
    if (got == 1)
        got = statement_step(&st, err);
    if (got == 1)
        return err_set(err, ERR_CONFLICT, "several begin with %s; write more of it", name);
    return got < 0 ? -1 : words_read(approvals, mem, out, err);
}

int approvals_by_digest(struct approvals *approvals, struct arena *mem, const char *digest,
                        struct approval *out, struct err *err)
{
    struct moment moment;
    int got;

    if (moment_read(approvals, &moment, err) < 0)
        return -1;
    got = row_find(approvals, mem,
                   "SELECT " APPROVAL_COLUMNS
                   " FROM approvals WHERE digest = ?1 AND state = 0 AND expires_at > ?2 AND "
                   "receipt_seq IS NOT NULL ORDER BY seq DESC LIMIT 1",
                   digest, &moment, out, err);
    if (got == 0 || (got == 1 && out->state != APPROVAL_PENDING))
        return err_set(err, ERR_NOT_FOUND, "nothing with this hash waits for a person");
    return got < 0 ? -1 : 0;
}

/* One statement for each kind of look, so that each has an index that ends it after a page. */
static const char *page_sql(bool by_state, bool by_requester)
{
#define PAGE(where)                                                                                \
    "SELECT " APPROVAL_COLUMNS " FROM approvals WHERE " where                                      \
    " seq > ?1 AND receipt_seq IS NOT NULL ORDER BY seq"
    if (by_state && by_requester)
        return PAGE("requester = ?3 AND state = ?2 AND");
    if (by_state)
        return PAGE("state = ?2 AND");
    return by_requester ? PAGE("requester = ?3 AND") : PAGE("");
#undef PAGE
}

/* About so many values it is as JSON, and never more. */
static size_t count_values(const char *subject)
{
    size_t n = 1;

    for (const char *p = subject; (p = strpbrk(p, ",{[")); p++)
        n++;
    return n;
}

int approvals_each(struct approvals *approvals, const struct approvals_query *query,
                   int (*visit)(void *context, const struct approval *approval, struct err *err),
                   void *context, struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};
    /* What is over may not be written down as that yet. */
    bool is_stored = query->state >= 0 && query->state != APPROVAL_EXPIRED;
    unsigned left = query->limit;
    size_t bytes = 0, values = 0;
    struct moment moment;
    int got = 0;

    if (moment_read(approvals, &moment, err) < 0 ||
        statement_prepare(approvals->store, page_sql(is_stored, query->requester != NULL), &st,
                          err) < 0)
        return -1;
    statement_bind_int(&st, 1, (int64_t)query->after_seq);
    if (is_stored)
        statement_bind_int(&st, 2, query->state);
    if (query->requester)
        statement_bind_text(&st, 3, str_of(query->requester));
    while (left && bytes < APPROVALS_PAGE_BYTES_MAX && values < APPROVALS_PAGE_VALUES_MAX &&
           (got = statement_step(&st, err)) == 1) {
        AUTO_ARENA struct arena mem = ARENA(2 * SUBJECT_BYTES_MAX);
        struct approval approval;

        if (row_read(&st, &mem, &moment, &approval, err) < 0)
            return -1;
        if (query->state >= 0 && (int)approval.state != query->state)
            continue;
        left--;
        bytes += strlen(approval.subject);
        values += count_values(approval.subject);
        if (visit(context, &approval, err) < 0)
            return -1;
    }
    return got;
}
