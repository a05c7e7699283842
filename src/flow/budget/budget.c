/* SPDX-License-Identifier: Apache-2.0 */

/* The store: accounts, what is reserved from them, the operator's limits, prices, and how late it
 * has been. */

#include "flow/budget/store.h"

#include "lib/base/limits.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define APPLICATION_ID 0x42726962 /* "Brib" */
#define BUDGET_FILE "budget.db"

#define AMOUNTS(prefix)                                                                            \
    " " prefix "_runs INTEGER NOT NULL," prefix "_wall INTEGER NOT NULL," prefix                   \
    "_cpu INTEGER NOT NULL," prefix "_egress INTEGER NOT NULL," prefix "_cost INTEGER NOT NULL"
#define ALL_OF(prefix)                                                                             \
    prefix "_runs, " prefix "_wall, " prefix "_cpu, " prefix "_egress, " prefix "_cost"

static const char *const migrations[] = {
    "CREATE TABLE clock (one INTEGER PRIMARY KEY CHECK (one = 1), latest INTEGER NOT NULL) STRICT;"
    "INSERT INTO clock VALUES (1, 0);"
    "CREATE TABLE prices (one INTEGER PRIMARY KEY CHECK (one = 1), run INTEGER NOT NULL,"
    " vcpu_second INTEGER NOT NULL, gib_second INTEGER NOT NULL) STRICT;"
    "INSERT INTO prices VALUES (1, 0, 0, 0);"
    "CREATE TABLE limits ("
    " scope INTEGER NOT NULL,"
    " name TEXT NOT NULL," /* '': each */
    " window_s INTEGER NOT NULL," AMOUNTS(
        "most") ","
                " egress_run INTEGER NOT NULL,"
                " PRIMARY KEY (scope, name, window_s)) STRICT, WITHOUT ROWID;"
                "CREATE TABLE accounts ("
                " scope INTEGER NOT NULL,"
                " name TEXT NOT NULL,"
                " window_s INTEGER NOT NULL,"
                " began_at INTEGER NOT NULL," AMOUNTS("used") "," AMOUNTS(
                    "held") ","
                            " PRIMARY KEY (scope, name, window_s)) STRICT, WITHOUT ROWID;"
                            "CREATE INDEX accounts_by_age ON accounts (began_at);"
                            "CREATE TABLE runs ("
                            " run_id TEXT PRIMARY KEY,"
                            " owner TEXT NOT NULL,"
                            " cpu_millis INTEGER NOT NULL,"
                            " memory_bytes INTEGER NOT NULL,"
                            " price_run INTEGER NOT NULL,"
                            " price_vcpu_second INTEGER NOT NULL,"
                            " price_gib_second INTEGER NOT NULL) STRICT, WITHOUT ROWID;"
                            "CREATE TABLE holds ("
                            " run_id TEXT NOT NULL,"
                            " scope INTEGER NOT NULL,"
                            " name TEXT NOT NULL,"
                            " window_s INTEGER NOT NULL," AMOUNTS(
                                "held") ","
                                        " PRIMARY KEY (run_id, scope, name, window_s)) STRICT, WITHOUT ROWID",
    "CREATE INDEX accounts_by_end ON accounts (began_at + window_s) WHERE window_s > 0",
};

static const struct store_schema schema = {
    .what = "list of budgets",
    .application_id = APPLICATION_ID,
    .migrations = migrations,
    .version = COUNT(migrations),
    .if_lost = "brig budget renew",
};

static void budget_path(const char *state_dir, char out[PATH_BYTES_MAX])
{
    (void)snprintf(out, PATH_BYTES_MAX, "%.3000s/" BUDGET_FILE, state_dir);
}

bool budgets_exist(const char *state_dir)
{
    char path[PATH_BYTES_MAX];

    budget_path(state_dir, path);
    /* What cannot be looked at may be there; what is gone may have held a limit. */
    return access(path, F_OK) == 0 || errno != ENOENT || store_was_made(path);
}

static int open_by(int (*way)(const char *path, const struct store_schema *schema,
                              struct store **out, struct err *err),
                   const char *state_dir, struct budgets **out, struct err *err)
{
    AUTO(budgets) struct budgets *budgets = xcalloc(1, sizeof *budgets);
    char path[PATH_BYTES_MAX];

    budget_path(state_dir, path);
    if (way(path, &schema, &budgets->store, err) < 0)
        return -1;
    *out = TAKE(budgets);
    return 0;
}

int budgets_open(const char *state_dir, struct budgets **out, struct err *err)
{
    return open_by(store_open, state_dir, out, err);
}

int budgets_open_copy(const char *state_dir, struct budgets **out, struct err *err)
{
    return open_by(store_open_copy, state_dir, out, err);
}

int budgets_renew(const char *state_dir, struct budgets **out, struct err *err)
{
    return open_by(store_renew, state_dir, out, err);
}

void budgets_free(struct budgets *budgets)
{
    if (!budgets)
        return;
    store_free(budgets->store);
    free(budgets);
}

void read_amounts(const struct statement *st, int first, uint64_t out[BUDGET_KINDS])
{
    for (int i = 0; i < BUDGET_KINDS; i++) {
        int64_t value = statement_int(st, first + i);

        out[i] = value > 0 ? (uint64_t)value : 0;
    }
}

int bind_amounts(struct statement *st, int first, const uint64_t of[BUDGET_KINDS])
{
    for (int i = 0; i < BUDGET_KINDS; i++)
        statement_bind_int(st, first + i, (int64_t)(of[i] < BUDGET_MOST ? of[i] : BUDGET_MOST));
    return first + BUDGET_KINDS;
}

/* ---- time ---- */

int budget_now(struct budgets *budgets, bool keep, int64_t *out, struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};
    AUTO_STATEMENT struct statement later = {0};
    int64_t now = (int64_t)time(NULL);
    int64_t latest;

    if (statement_prepare(budgets->store, "SELECT latest FROM clock", &st, err) < 0 ||
        statement_step(&st, err) < 0)
        return -1;
    latest = statement_int(&st, 0);
    statement_reset(&st);
    *out = now > latest ? now : latest;
    if (!keep || now <= latest)
        return 0;
    if (statement_prepare(budgets->store, "UPDATE clock SET latest = ?1", &later, err) < 0)
        return -1;
    statement_bind_int(&later, 1, now);
    return statement_step(&later, err) < 0 ? -1 : 0;
}

/* ---- accounts ---- */

void account_renew(struct budget_account *account, int64_t now)
{
    account->renews_at = account->window_s ? account->began_at + (int64_t)account->window_s : 0;
    if (!account->window_s || now < account->renews_at)
        return;
    account->began_at = now;
    account->renews_at = now + (int64_t)account->window_s;
    memset(account->used, 0, sizeof account->used);
}

int account_read(struct budgets *budgets, enum budget_scope scope, const char *name,
                 uint64_t window_s, int64_t now, struct budget_account *out, struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};
    int got;

    *out = (struct budget_account){
        .scope = scope, .name = name, .window_s = window_s, .began_at = now};
    if (!budgets) {
        account_renew(out, now);
        return 0;
    }
    if (statement_prepare(budgets->store,
                          "SELECT began_at, " ALL_OF("used") ", " ALL_OF(
                              "held") " FROM accounts"
                                      " WHERE scope = ?1 AND name = ?2 AND window_s = ?3",
                          &st, err) < 0)
        return -1;
    statement_bind_int(&st, 1, (int64_t)scope);
    statement_bind_text(&st, 2, str_of(name));
    statement_bind_int(&st, 3, (int64_t)window_s);
    got = statement_step(&st, err);
    if (got == 1) {
        out->began_at = statement_int(&st, 0);
        read_amounts(&st, 1, out->used);
        read_amounts(&st, 1 + BUDGET_KINDS, out->held);
    }
    account_renew(out, now);
    return got;
}

int account_write(struct budgets *budgets, const struct budget_account *account, struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};
    int next;

    if (statement_prepare(
            budgets->store,
            "INSERT OR REPLACE INTO accounts (scope, name, window_s, began_at, " ALL_OF(
                "used") ", " ALL_OF("held") ")"
                                            " VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14)",
            &st, err) < 0)
        return -1;
    statement_bind_int(&st, 1, (int64_t)account->scope);
    statement_bind_text(&st, 2, str_of(account->name));
    statement_bind_int(&st, 3, (int64_t)account->window_s);
    statement_bind_int(&st, 4, account->began_at);
    next = bind_amounts(&st, 5, account->used);
    (void)bind_amounts(&st, next, account->held);
    return statement_step(&st, err) < 0 ? -1 : 0;
}

static int read_account(const struct statement *st, struct arena *mem, int64_t now,
                        struct budget_account *out, struct err *err)
{
    int64_t scope = statement_int(st, 0);

    if (scope < 0 || scope >= BUDGET_SCOPE_COUNT || statement_int(st, 2) < 0)
        return err_set(err, ERR_INTEGRITY, "the budgets hold something else");
    *out = (struct budget_account){.scope = (enum budget_scope)scope,
                                   .name = arena_text(mem, statement_bytes(st, 1)),
                                   .window_s = (uint64_t)statement_int(st, 2),
                                   .began_at = statement_int(st, 3)};
    read_amounts(st, 4, out->used);
    read_amounts(st, 4 + BUDGET_KINDS, out->held);
    account_renew(out, now);
    return 0;
}

int budgets_accounts(struct budgets *budgets, struct arena *mem, struct budget_account **out,
                     size_t *n, struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};
    struct budget_account *accounts =
        arena_array(mem, struct budget_account, BUDGET_ACCOUNTS_SHOWN);
    int64_t now = 0;
    int got;

    *n = 0;
    if (budget_now(budgets, false, &now, err) < 0 ||
        statement_prepare(budgets->store,
                          "SELECT scope, name, window_s, began_at, " ALL_OF("used") ", " ALL_OF(
                              "held") " FROM accounts ORDER BY began_at DESC LIMIT ?1",
                          &st, err) < 0)
        return -1;
    statement_bind_int(&st, 1, BUDGET_ACCOUNTS_SHOWN);
    while ((got = statement_step(&st, err)) == 1)
        if (read_account(&st, mem, now, &accounts[(*n)++], err) < 0)
            return -1;
    *out = accounts;
    return got;
}

/* ---- the operator's ---- */

static bool is_empty(const struct budget_limit *limit)
{
    for (int i = 0; i < BUDGET_KINDS; i++)
        if (limit->of[i])
            return false;
    return true;
}

/* Statements that name one limit by its scope, its name and its window. */
static int on_limit(struct budgets *budgets, const char *sql, const struct budget_limit *limit,
                    struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};

    if (statement_prepare(budgets->store, sql, &st, err) < 0)
        return -1;
    statement_bind_int(&st, 1, (int64_t)limit->scope);
    statement_bind_text(&st, 2, str_of(limit->name ? limit->name : ""));
    statement_bind_int(&st, 3, (int64_t)limit->window_s);
    return statement_step(&st, err);
}

static int count_limits(struct budgets *budgets, int64_t *out, struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};

    if (statement_prepare(budgets->store, "SELECT count(*) FROM limits", &st, err) < 0 ||
        statement_step(&st, err) < 0)
        return -1;
    *out = statement_int(&st, 0);
    return 0;
}

static int write_limit(struct budgets *budgets, const struct budget_limit *limit, struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};
    int next;

    if (statement_prepare(budgets->store,
                          "INSERT OR REPLACE INTO limits (scope, name, window_s, " ALL_OF(
                              "most") ", egress_run) VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9)",
                          &st, err) < 0)
        return -1;
    statement_bind_int(&st, 1, (int64_t)limit->scope);
    statement_bind_text(&st, 2, str_of(limit->name ? limit->name : ""));
    statement_bind_int(&st, 3, (int64_t)limit->window_s);
    next = bind_amounts(&st, 4, limit->of);
    statement_bind_int(&st, next, (int64_t)limit->egress_run);
    return statement_step(&st, err) < 0 ? -1 : 0;
}

int budgets_limit(struct budgets *budgets, const struct budget_limit *limit, struct err *err)
{
    AUTO_TRANSACTION struct transaction t = {0};
    int64_t n = 0;
    int got;

    if (transaction_begin(budgets->store, &t, err) < 0)
        return -1;
    got = on_limit(budgets, "SELECT 1 FROM limits WHERE scope = ?1 AND name = ?2 AND window_s = ?3",
                   limit, err);
    if (got < 0 || count_limits(budgets, &n, err) < 0)
        return -1;
    if (is_empty(limit) && got == 0)
        return err_set(err, ERR_NOT_FOUND,
                       "there is no such limit; \"brig budget show\" lists them");
    if (!is_empty(limit) && got == 0 && n >= BUDGETS_MAX)
        return err_set(err, ERR_LIMIT, "there are %d limits already, as many as there may be",
                       BUDGETS_MAX);
    if (is_empty(limit)
            ? on_limit(budgets,
                       "DELETE FROM limits WHERE scope = ?1 AND name = ?2 AND window_s = ?3", limit,
                       err) < 0
            : write_limit(budgets, limit, err) < 0)
        return -1;
    return transaction_commit(&t, err);
}

int budgets_limits(struct budgets *budgets, struct arena *mem, struct budget_limit **out, size_t *n,
                   struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};
    struct budget_limit *limits = arena_array(mem, struct budget_limit, BUDGETS_MAX);
    int got;

    *n = 0;
    if (statement_prepare(budgets->store,
                          "SELECT scope, name, window_s, " ALL_OF(
                              "most") ", egress_run"
                                      " FROM limits ORDER BY scope, name, window_s",
                          &st, err) < 0)
        return -1;
    while ((got = statement_step(&st, err)) == 1) {
        int64_t scope = statement_int(&st, 0);
        struct str name = statement_bytes(&st, 1);

        if (*n == BUDGETS_MAX || scope < 0 || scope >= BUDGET_SCOPE_COUNT)
            return err_set(err, ERR_INTEGRITY, "the budgets hold something else");
        limits[*n] =
            (struct budget_limit){.scope = (enum budget_scope)scope,
                                  .name = name.n ? arena_text(mem, name) : NULL,
                                  .window_s = (uint64_t)statement_int(&st, 2),
                                  .egress_run = (uint64_t)statement_int(&st, 3 + BUDGET_KINDS)};
        read_amounts(&st, 3, limits[(*n)++].of);
    }
    *out = limits;
    return got;
}

int budgets_price(struct budgets *budgets, const struct budget_prices *prices, struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};

    if (statement_prepare(budgets->store,
                          "UPDATE prices SET run = ?1, vcpu_second = ?2, gib_second = ?3", &st,
                          err) < 0)
        return -1;
    statement_bind_int(&st, 1, (int64_t)prices->run);
    statement_bind_int(&st, 2, (int64_t)prices->vcpu_second);
    statement_bind_int(&st, 3, (int64_t)prices->gib_second);
    return statement_step(&st, err) < 0 ? -1 : 0;
}

int budgets_prices(struct budgets *budgets, struct budget_prices *out, struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};

    if (statement_prepare(budgets->store, "SELECT run, vcpu_second, gib_second FROM prices", &st,
                          err) < 0 ||
        statement_step(&st, err) < 0)
        return -1;
    *out = (struct budget_prices){(uint64_t)statement_int(&st, 0), (uint64_t)statement_int(&st, 1),
                                  (uint64_t)statement_int(&st, 2)};
    return 0;
}

#define FORGOTTEN "used_runs = 0, used_wall = 0, used_cpu = 0, used_egress = 0, used_cost = 0"

int budgets_reset(struct budgets *budgets, enum budget_scope scope, const char *name,
                  struct err *err)
{
    AUTO_TRANSACTION struct transaction t = {0};
    AUTO_STATEMENT struct statement st = {0};
    AUTO_STATEMENT struct statement empty = {0};
    AUTO_STATEMENT struct statement clock = {0};
    int64_t now = (int64_t)time(NULL);

    if (transaction_begin(budgets->store, &t, err) < 0 ||
        statement_prepare(budgets->store,
                          name ? "UPDATE accounts SET began_at = ?1, " FORGOTTEN
                                 " WHERE scope = ?2 AND name = ?3"
                               : "UPDATE accounts SET began_at = ?1, " FORGOTTEN,
                          &st, err) < 0 ||
        statement_prepare(budgets->store,
                          "DELETE FROM accounts WHERE held_runs = 0 AND used_runs = 0", &empty,
                          err) < 0 ||
        statement_prepare(budgets->store, "UPDATE clock SET latest = ?1", &clock, err) < 0)
        return -1;
    if (name && budget_now(budgets, false, &now, err) < 0)
        return -1;
    statement_bind_int(&st, 1, now);
    if (name) {
        statement_bind_int(&st, 2, (int64_t)scope);
        statement_bind_text(&st, 3, str_of(name));
    }
    if (statement_step(&st, err) < 0 || statement_step(&empty, err) < 0)
        return -1;
    statement_bind_int(&clock, 1, now);
    if (!name && statement_step(&clock, err) < 0)
        return -1;
    return transaction_commit(&t, err);
}

/* It is as old as can be then, and goes with the next reservation, or the one after its last
 * command is settled. */
int budgets_end_session(struct budgets *budgets, const char *session, struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};

    if (statement_prepare(budgets->store,
                          "UPDATE accounts SET began_at = 0 WHERE scope = ?1 AND name = ?2", &st,
                          err) < 0)
        return -1;
    statement_bind_int(&st, 1, BUDGET_SESSION);
    statement_bind_text(&st, 2, str_of(session));
    return statement_step(&st, err) < 0 ? -1 : 0;
}
