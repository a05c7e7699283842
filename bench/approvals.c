/* SPDX-License-Identifier: Apache-2.0 */

/* What a person's word costs while 100 000 others wait: asking, a page of the list, one of them,
 * and confirming, each next to a bare SQLite statement of the same size on the same disk; and what
 * whoever gives a word waits for in all, with both receipts, also where many have just ended
 * without an answer.
 *
 *     bench/approvals FOLDER        (a new, empty one; see bench/approvals/run) */

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "common.h"
#include "flow/approve/approve.h"
#include "flow/decide/decide.h"
#include "flow/govern.h"
#include "lib/base/limits.h"
#include "lib/store/store.h"

#define WAITING APPROVALS_PENDING_MAX
#define SAMPLES 1000
#define PAGE 100
#define TOGETHER 1000 /* bare rows in one transaction while filling */
#define ENDED 50000   /* of those that wait, without an answer */
#define WHILE_ENDED 500

static uint64_t took[SAMPLES];

static void tell(const char *what, size_t n)
{
    sort_ns(took, n);
    (void)printf("%-44s p50 %8.3f ms   p99 %8.3f ms\n", what, ms_at(took, n, 500),
                 ms_at(took, n, 990));
}

static void must(int result, const char *what, const struct err *err)
{
    if (result < 0)
        give_up(what, err->text);
}

/* ---- requests ---- */

/* The i-th command of its requester, planned. */
static void make_run(struct run *run, size_t i)
{
    static const char *argv[] = {"git", "push", "origin", NULL, NULL};

    run_init(run);
    argv[3] = arena_printf(&run->mem, "branch-%zu", i);
    run->action.principal =
        arena_printf(&run->mem, "agent-%zu", i / (APPROVALS_PENDING_EACH_MAX - 20));
    run->action.tenant = "default";
    run->action.provider = "local";
    run->action.image = "host";
    run->action.argv = (struct words){argv, 4};
    run->verdict.kind = VERDICT_ASK;
    run->verdict.rule = "push";
    (void)snprintf(run->planned.preimage_hash, sizeof run->planned.preimage_hash, "sha256:%064d",
                   7);
    (void)snprintf(run->action.request_hash, sizeof run->action.request_hash, "sha256:%064zu", i);
}

static void ask(struct approvals *approvals, size_t i, char id[ID_BYTES])
{
    const struct operands none = {0};
    struct approval approval;
    struct run run;
    struct err err;
    bool is_new;

    make_run(&run, i);
    must(approvals_ask(approvals, &run.mem, &run, &none, &approval, &err), "asking", &err);
    must(approvals_stand(approvals, &run.mem, approval.id, 1, &approval, &is_new, &err), "asking",
         &err);
    if (approval.state != APPROVAL_PENDING)
        give_up("asking", "it does not wait");
    memcpy(id, approval.id, ID_BYTES);
    run_done(&run);
}

/* ---- bare SQLite ---- */

static const char *const bare_tables[] = {
    "CREATE TABLE rows (seq INTEGER PRIMARY KEY, id TEXT NOT NULL, state INTEGER NOT NULL, "
    "text TEXT NOT NULL) STRICT; CREATE INDEX in_order ON rows (state, seq)",
};
static const struct store_schema bare_schema = {
    .what = "bench", .application_id = 1, .migrations = bare_tables, .version = 1};

static void bare_insert(struct store *store, size_t from, size_t n, const char *text)
{
    AUTO_TRANSACTION struct transaction t = {0};
    AUTO_STATEMENT struct statement st = {0};
    struct err err;

    must(transaction_begin(store, &t, &err), "bare", &err);
    must(statement_prepare(store, "INSERT INTO rows VALUES (?1, ?2, 0, ?3)", &st, &err), "bare",
         &err);
    for (size_t i = from; i < from + n; i++) {
        statement_bind_int(&st, 1, (int64_t)i + 1);
        statement_bind_text(&st, 2, str_of("aaaaaaaaaaaaaaaaaaaa"));
        statement_bind_text(&st, 3, str_of(text));
        must(statement_step(&st, &err), "bare", &err);
    }
    must(transaction_commit(&t, &err), "bare", &err);
}

static void bare_update(struct store *store, size_t i)
{
    AUTO_TRANSACTION struct transaction t = {0};
    AUTO_STATEMENT struct statement st = {0};
    struct err err;

    must(transaction_begin(store, &t, &err), "bare", &err);
    must(statement_prepare(store, "UPDATE rows SET state = 1 WHERE seq = ?1", &st, &err), "bare",
         &err);
    statement_bind_int(&st, 1, (int64_t)i + 1);
    must(statement_step(&st, &err), "bare", &err);
    must(transaction_commit(&t, &err), "bare", &err);
}

static void bare_page(struct store *store, size_t after)
{
    AUTO_STATEMENT struct statement st = {0};
    size_t bytes = 0;
    struct err err;

    must(statement_prepare(
             store, "SELECT seq, id, text FROM rows WHERE state = 0 AND seq > ?1 ORDER BY seq", &st,
             &err),
         "bare", &err);
    statement_bind_int(&st, 1, (int64_t)after);
    for (size_t i = 0; i < PAGE && statement_step(&st, &err) == 1; i++)
        bytes += statement_bytes(&st, 2).n;
    if (!bytes)
        give_up("bare", "nothing was read");
}

/* ---- looking ---- */

static int on_one(void *context, const struct approval *approval, struct err *err)
{
    size_t *bytes = context;

    (void)err;
    *bytes += strlen(approval->subject);
    return 0;
}

static void page(struct approvals *approvals, size_t after)
{
    const struct approvals_query query = {
        .state = APPROVAL_PENDING, .after_seq = after, .limit = PAGE};
    size_t bytes = 0;
    struct err err;

    must(approvals_each(approvals, &query, on_one, &bytes, &err), "a page", &err);
    if (!bytes)
        give_up("a page", "nothing was read");
}

static void show(struct approvals *approvals, const char *id)
{
    AUTO_ARENA struct arena mem = ARENA(16 * MIB);
    struct approval approval;
    struct err err;

    must(approvals_show(approvals, &mem, id, &approval, &err), "one", &err);
}

static void confirm(struct approvals *approvals, const char *id)
{
    const struct approval_voice voice = {
        .by = "person", .made_by = "", .confirm = true, .comment = "fine", .run_id = id};
    AUTO_ARENA struct arena mem = ARENA(16 * MIB);
    struct approval approval;
    struct err err;

    must(approvals_decide(approvals, &mem, id, &voice, &approval, &err), "confirming", &err);
    if (approval.state != APPROVAL_CONFIRMED)
        give_up("confirming", "it is not confirmed");
}

/* ---- all that whoever gives a word waits for ---- */

static struct govern *open_govern(const char *folder, struct policy **policy)
{
    struct govern_config config = {.state_dir = folder};
    struct govern *govern = NULL;
    struct err err;

    must(policy_builtin(policy, &err), "opening", &err);
    config.policy = *policy;
    must(govern_open(&config, &govern, &err), "opening", &err);
    return govern;
}

static void confirm_governed(struct govern *govern, const char *id)
{
    const struct request request = {
        .kind = ACTION_APPROVE, .principal = "person", .tenant = "default", .provider = "local"};
    const struct approval_word word = {.id = id, .confirm = true, .comment = "fine"};
    struct approval approval;
    struct run run;
    struct err err;

    run_init(&run);
    must(govern_approve(govern, &request, &word, &run, &approval, &err), "confirming", &err);
    if (approval.state != APPROVAL_CONFIRMED)
        give_up("confirming", "it is not confirmed");
    run_done(&run);
}

/* The first of those that wait ended a second ago. */
static void end_some(const char *folder)
{
    char path[4096], sql[256];
    sqlite3 *db = NULL;

    (void)snprintf(path, sizeof path, "%.4000s/approvals.db", folder);
    (void)snprintf(
        sql, sizeof sql,
        "UPDATE approvals SET expires_at = unixepoch() - 1 WHERE state = 0 AND seq <= %d", ENDED);
    if (sqlite3_open(path, &db) != SQLITE_OK ||
        sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        give_up("ending", sqlite3_errmsg(db));
    (void)sqlite3_close(db);
}

/* ---- */

static char ids[SAMPLES][ID_BYTES], others[SAMPLES + WHILE_ENDED][ID_BYTES];

#define MEASURE_N(what, call, count)                                                               \
    do {                                                                                           \
        for (size_t i = 0; i < (count); i++) {                                                     \
            uint64_t began = now_ns();                                                             \
            call;                                                                                  \
            took[i] = now_ns() - began;                                                            \
        }                                                                                          \
        tell(what, count);                                                                         \
    } while (0)
#define MEASURE(what, call) MEASURE_N(what, call, SAMPLES)

int main(int argc, char **argv)
{
    AUTO(approvals) struct approvals *approvals = NULL;
    AUTO(store) struct store *bare = NULL;
    AUTO(govern) struct govern *govern = NULL;
    AUTO(policy) struct policy *policy = NULL;
    char path[4096], text[512];
    struct err err;

    if (argc != 2)
        give_up("FOLDER", "name an empty one");
    (void)snprintf(path, sizeof path, "%.4000s/bare.db", argv[1]);
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    must(approvals_open(argv[1], &approvals, &err), "opening", &err);
    must(store_open(path, &bare_schema, &bare, &err), "opening", &err);
    for (size_t i = 0; i < WAITING - SAMPLES; i++)
        ask(approvals, i, others[i % COUNT(others)]); /* the last of them stay */
    for (size_t i = 0; i < WAITING - SAMPLES; i += TOGETHER)
        bare_insert(bare, i, TOGETHER, text);
    (void)printf("%d waiting\n", WAITING);
    MEASURE("ask, durable", ask(approvals, WAITING - SAMPLES + i, ids[i]));
    MEASURE("  bare insert and commit", bare_insert(bare, WAITING - SAMPLES + i, 1, text));
    MEASURE("a page of 100", page(approvals, i * 90));
    MEASURE("  bare page of 100", bare_page(bare, i * 90));
    MEASURE("show one", show(approvals, ids[i]));
    MEASURE("confirm, durable", confirm(approvals, ids[i]));
    MEASURE("  bare update and commit", bare_update(bare, i));
    govern = open_govern(argv[1], &policy);
    MEASURE("confirm, with both receipts", confirm_governed(govern, others[i]));
    end_some(argv[1]);
    MEASURE_N("the same, 50 000 have just ended unanswered",
              confirm_governed(govern, others[SAMPLES + i]), WHILE_ENDED);
    return 0;
}
