/* SPDX-License-Identifier: Apache-2.0 */

/* What a run has really used. What it had reserved comes off every account it was reserved from and
 * what it used goes on, in one transaction with forgetting the reservation: so settling twice is
 * settling once, whoever does it. It is charged to the window that is open by then. */

#include "flow/budget/store.h"

#include "lib/base/crash.h"

#include <stdlib.h>
#include <string.h>

#define OPEN_RUNS_MAX 4096

struct settlement {
    struct budgets *budgets;
    const char *run_id;
    enum budget_end end;
    struct budget_used used;
    struct budget_rate rate;
    int64_t now;
};

/* What a process used that nobody waits for is in no count but a cgroup's, so only that is believed
 * to be all. */
static uint64_t cpu_used(const struct settlement *s)
{
    uint64_t most = rate_cpu_us(&s->rate, s->used.wall_us);

    return s->used.cpu_is_whole || s->used.cpu_us > most ? s->used.cpu_us : most;
}

static void charge(const struct settlement *s, const uint64_t held[BUDGET_KINDS],
                   uint64_t out[BUDGET_KINDS])
{
    memset(out, 0, BUDGET_KINDS * sizeof *out);
    switch (s->end) {
    case BUDGET_CHARGE_ALL:
        memcpy(out, held, BUDGET_KINDS * sizeof *out);
        return;
    case BUDGET_CHARGE:
        out[BUDGET_RUNS] = 1;
        out[BUDGET_WALL] = s->used.wall_us;
        out[BUDGET_CPU] = cpu_used(s);
        out[BUDGET_EGRESS] = s->used.egress_bytes;
        out[BUDGET_COST] = rate_cost(&s->rate, s->used.wall_us);
        return;
    case BUDGET_RELEASE:
        return;
    }
}

/* 1: something is reserved for it. */
static int read_run(struct settlement *s, struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};
    int got;

    if (statement_prepare(s->budgets->store,
                          "SELECT cpu_millis, memory_bytes, price_run, price_vcpu_second,"
                          " price_gib_second FROM runs WHERE run_id = ?1",
                          &st, err) < 0)
        return -1;
    statement_bind_text(&st, 1, str_of(s->run_id));
    got = statement_step(&st, err);
    if (got == 1) {
        s->rate.cpu_millis = (uint64_t)statement_int(&st, 0);
        s->rate.memory_bytes = (uint64_t)statement_int(&st, 1);
        s->rate.prices.run = (uint64_t)statement_int(&st, 2);
        s->rate.prices.vcpu_second = (uint64_t)statement_int(&st, 3);
        s->rate.prices.gib_second = (uint64_t)statement_int(&st, 4);
    }
    return got;
}

static int change(struct settlement *s, const char *sql, struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};

    if (statement_prepare(s->budgets->store, sql, &st, err) < 0)
        return -1;
    statement_bind_text(&st, 1, str_of(s->run_id));
    return statement_step(&st, err) < 0 ? -1 : 0;
}

/* One account: less reserved, more used. */
static int settle_one(struct settlement *s, const struct statement *row, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(64 * 1024);
    int64_t scope = statement_int(row, 0);
    const char *name = arena_text(&mem, statement_bytes(row, 1));
    uint64_t window_s = (uint64_t)statement_int(row, 2);
    uint64_t held[BUDGET_KINDS], used[BUDGET_KINDS];
    struct budget_account account;

    if (scope < 0 || scope >= BUDGET_SCOPE_COUNT)
        return err_set(err, ERR_INTEGRITY, "the budgets hold something else");
    read_amounts(row, 3, held);
    charge(s, held, used);
    if (account_read(s->budgets, (enum budget_scope)scope, name, window_s, s->now, &account, err) <
        0)
        return -1;
    for (int i = 0; i < BUDGET_KINDS; i++) {
        account.held[i] = budget_less(account.held[i], held[i]);
        account.used[i] = budget_add(account.used[i], used[i]);
    }
    return account_write(s->budgets, &account, err);
}

static int settle_all(struct settlement *s, struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};
    int got;

    if (statement_prepare(s->budgets->store,
                          "SELECT scope, name, window_s, held_runs, held_wall, held_cpu,"
                          " held_egress, held_cost FROM holds WHERE run_id = ?1",
                          &st, err) < 0)
        return -1;
    statement_bind_text(&st, 1, str_of(s->run_id));
    while ((got = statement_step(&st, err)) == 1)
        if (settle_one(s, &st, err) < 0)
            return -1;
    return got;
}

int budgets_settle(struct budgets *budgets, const char *run_id, enum budget_end end,
                   const struct budget_used *used, struct err *err)
{
    AUTO_TRANSACTION struct transaction t = {0};
    struct settlement s = {.budgets = budgets, .run_id = run_id, .end = end};
    int got;

    if (used)
        s.used = *used;
    if (transaction_begin(budgets->store, &t, err) < 0)
        return -1;
    got = read_run(&s, err);
    if (got <= 0)
        return got;
    if (budget_now(budgets, true, &s.now, err) < 0 || settle_all(&s, err) < 0 ||
        change(&s, "DELETE FROM holds WHERE run_id = ?1", err) < 0 ||
        change(&s, "DELETE FROM runs WHERE run_id = ?1", err) < 0 ||
        /* A run that was its own session is never met again. */
        change(&s, "DELETE FROM accounts WHERE scope = 2 AND name = ?1", err) < 0)
        return -1;
    CRASH_POINT("budget-settling");
    return transaction_commit(&t, err);
}

static bool is_alive(const char *owner)
{
    char now[OWNER_BYTES];
    char *end;
    long pid = strtol(owner, &end, 10);

    return pid > 0 && *end == ' ' && owner_text((pid_t)pid, now, sizeof now) &&
           strcmp(now, owner) == 0;
}

int budgets_open_runs(struct budgets *budgets, struct arena *mem, struct budget_open_run **out,
                      size_t *n, struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};
    struct budget_open_run *runs;
    int got;

    *n = 0;
    *out = NULL;
    if (statement_prepare(budgets->store, "SELECT run_id, owner FROM runs LIMIT 4096", &st, err) <
        0)
        return -1;
    got = statement_step(&st, err);
    if (got <= 0)
        return got;
    *out = runs = arena_array(mem, struct budget_open_run, OPEN_RUNS_MAX);
    for (; got == 1; got = statement_step(&st, err))
        runs[(*n)++] = (struct budget_open_run){arena_text(mem, statement_bytes(&st, 0)),
                                                is_alive(arena_text(mem, statement_bytes(&st, 1)))};
    return got;
}
