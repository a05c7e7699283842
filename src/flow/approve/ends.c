/* SPDX-License-Identifier: Apache-2.0 */

/* What ended without an answer, until the ledger has that it did. */

#include "flow/approve/store.h"

#include <string.h>

#include "lib/base/limits.h"

/* Those people saw: what has no receipt that it was asked needs none that it is over. Left to
 * itself SQLite looks through all that are over. */
#define UNTOLD                                                                                     \
    "INDEXED BY approvals_untold WHERE state = 4 AND end_told = 0 AND receipt_seq IS NOT NULL"

int approvals_have_ends(struct approvals *approvals, bool *out, struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};
    struct moment moment;
    int got;

    if (moment_read(approvals, &moment, err) < 0 ||
        statement_prepare(approvals->store,
                          "SELECT EXISTS (SELECT 1 FROM approvals " UNTOLD ") OR "
                          "EXISTS (SELECT 1 FROM approvals WHERE state IN (0, 1) AND "
                          "expires_at <= ?1 AND receipt_seq IS NOT NULL)",
                          &st, err) < 0)
        return -1;
    statement_bind_int(&st, 1, moment.went_back ? INT64_MAX : moment.now);
    got = statement_step(&st, err);
    *out = got == 1 && statement_int(&st, 0) != 0;
    return got < 0 ? -1 : 0;
}

/* Whoever is first says under which run; whoever comes next uses the same. */
static int name_runs(struct approvals *approvals, struct approval_end *ends, size_t n,
                     struct err *err)
{
    for (size_t i = 0; i < n; i++) {
        const struct given given = {
            .texts = {ends[i].id, ends[i].run_id},
              .text_n = 2
        };

        if (row_change(approvals, "UPDATE approvals SET end_run = ?2 WHERE id = ?1", &given, err) <
            0)
            return -1;
    }
    return 0;
}

static int read_ends(struct approvals *approvals, struct arena *mem, struct approval_end *ends,
                     size_t max, size_t *n, struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};
    int got = 0;

    *n = 0;
    if (statement_prepare(approvals->store,
                          "SELECT id, digest, requester, end_run FROM approvals " UNTOLD
                          " ORDER BY seq LIMIT ?1",
                          &st, err) < 0)
        return -1;
    statement_bind_int(&st, 1, (int64_t)max);
    while (*n < max && (got = statement_step(&st, err)) == 1) {
        struct approval_end *end = &ends[(*n)++];
        struct str run = statement_bytes(&st, 3);

        *end = (struct approval_end){.id = arena_text(mem, statement_bytes(&st, 0)),
                                     .digest = arena_text(mem, statement_bytes(&st, 1)),
                                     .requester = arena_text(mem, statement_bytes(&st, 2))};
        id_new(end->run_id);
        if (run.n == strlen(end->run_id))
            memcpy(end->run_id, run.p, run.n);
    }
    return got < 0 ? -1 : 0;
}

int approvals_ends(struct approvals *approvals, struct arena *mem, struct approval_end *ends,
                   size_t max, size_t *n, struct err *err)
{
    AUTO_TRANSACTION struct transaction t = {0};
    struct moment moment;

    if (transaction_begin(approvals->store, &t, err) < 0 ||
        moment_keep(approvals, &moment, err) < 0 ||
        read_ends(approvals, mem, ends, max, n, err) < 0 || name_runs(approvals, ends, *n, err) < 0)
        return -1;
    return transaction_commit(&t, err);
}

static int tell(struct approvals *approvals, const struct approval_end *ends, size_t n,
                struct err *err)
{
    for (size_t i = 0; i < n; i++) {
        const struct given given = {.texts[0] = ends[i].id, .text_n = 1};

        if (row_change(approvals, "UPDATE approvals SET end_told = 1 WHERE id = ?1", &given, err) <
            0)
            return -1;
    }
    return 0;
}

int approvals_ends_told(struct approvals *approvals, const struct approval_end *ends, size_t n,
                        struct err *err)
{
    AUTO_TRANSACTION struct transaction t = {0};

    if (transaction_begin(approvals->store, &t, err) < 0 || tell(approvals, ends, n, err) < 0)
        return -1;
    return transaction_commit(&t, err);
}
