/* SPDX-License-Identifier: Apache-2.0 */

/* What a run may have, out of what is left for everybody it belongs to.
 *
 * Everything but the number of runs and the bytes grows with the time a run takes, at most: so much
 * processor time as it has processors, and so much a second as those and its memory cost. So there
 * is one question, how long it may run, and every limit answers it with a time of its own. The
 * least of them is what the run gets, and what it can use in it is what is reserved. A run that
 * never waits cannot use more than that; one that does gets the rest back when it ends. */

#include "flow/budget/store.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LEAST_US 1000U                /* less is no time to run in */
#define KEPT_S (400LL * 24 * 60 * 60) /* an account of a session whose end nobody told */
#define FORGOTTEN_AT_ONCE 16 /* accounts a reservation clears away besides as many as it makes */
#define CONCERNED_MAX (4 * BUDGETS_MAX)

/* A limit that concerns the run, and what it is about. */
struct concern {
    const struct budget_limit *limit;
    struct budget_account *account; /* of several limits the same */
};

struct desk {
    struct budgets *budgets;
    struct arena *mem;
    const struct budget_ask *ask;
    struct budget_rate rate;
    int64_t now;
    struct concern concerns[CONCERNED_MAX];
    size_t concern_n;
    struct budget_account accounts[CONCERNED_MAX];
    size_t account_n;
    bool has_new; /* an account that is not in the store yet */
};

const char *budget_window_text(struct arena *mem, uint64_t window_s)
{
    if (window_s == 0)
        return "the session";
    if (window_s % 86400 == 0)
        return arena_printf(mem, "%llud", (unsigned long long)(window_s / 86400));
    return budget_amount_text(mem, BUDGET_WALL, window_s * 1000000);
}

static const char *whose_text(const struct desk *desk, const struct concern *concern)
{
    return arena_printf(desk->mem, "%s %.200s", budget_scope_name(concern->account->scope),
                        concern->account->name);
}

static const char *moment_text(struct arena *mem, int64_t at)
{
    char text[sizeof "2026-11-16T20:59:01Z"];
    time_t seconds = (time_t)at;
    struct tm parts;

    if (!gmtime_r(&seconds, &parts) || !strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts))
        return "an unknown time";
    return arena_text(mem, str_of(text));
}

/* Whose, how much, what became of it, and when there is more. */
static const char *explain(const struct desk *desk, const struct concern *concern,
                           enum budget_kind kind, const char *verb)
{
    const struct budget_account *account = concern->account;
    struct arena *mem = desk->mem;
    const char *renews = account->renews_at ? arena_printf(mem, "; it renews at %s",
                                                           moment_text(mem, account->renews_at))
                                            : "; it does not renew";
    const char *set_by =
        concern->limit->line
            ? arena_printf(mem, "line %u of the %s", concern->limit->line,
                           concern->limit->layer ? concern->limit->layer : "policy")
            : "the operator";

    return arena_printf(mem,
                        "the %s budget of %s %s: %s in %s, of which %s is used and %s "
                        "reserved (set by %s)%s",
                        budget_kind_name(kind), whose_text(desk, concern), verb,
                        budget_amount_text(mem, kind, concern->limit->of[kind]),
                        budget_window_text(mem, account->window_s),
                        budget_amount_text(mem, kind, account->used[kind]),
                        budget_amount_text(mem, kind, account->held[kind]), set_by, renews);
}

/* ---- what concerns it ---- */

static struct budget_account *find_account(struct desk *desk, const struct budget_limit *limit)
{
    for (size_t i = 0; i < desk->account_n; i++)
        if (desk->accounts[i].scope == limit->scope &&
            desk->accounts[i].window_s == limit->window_s)
            return &desk->accounts[i];
    return NULL;
}

static bool concerns(const struct desk *desk, const struct budget_limit *limit)
{
    return !limit->name || strcmp(limit->name, desk->ask->of[limit->scope]) == 0;
}

static int add_concern(struct desk *desk, const struct budget_limit *limit, struct err *err)
{
    struct budget_account *account = find_account(desk, limit);

    if (!concerns(desk, limit))
        return 0;
    if (desk->concern_n == CONCERNED_MAX)
        return err_set(err, ERR_LIMIT, "more than %d limits concern this run", CONCERNED_MAX);
    if (!account) {
        int got;

        account = &desk->accounts[desk->account_n++];
        got = account_read(desk->budgets, limit->scope, desk->ask->of[limit->scope],
                           limit->window_s, desk->now, account, err);
        if (got < 0)
            return -1;
        desk->has_new |= got == 0;
    }
    desk->concerns[desk->concern_n++] = (struct concern){limit, account};
    return 0;
}

static int gather(struct desk *desk, const struct budget_limit *own, size_t own_n, struct err *err)
{
    for (size_t i = 0; i < own_n; i++)
        if (add_concern(desk, &own[i], err) < 0)
            return -1;
    for (size_t i = 0; i < desk->ask->limit_n; i++)
        if (add_concern(desk, &desk->ask->limits[i], err) < 0)
            return -1;
    return 0;
}

/* ---- what it may have ---- */

static uint64_t left_of(const struct concern *concern, enum budget_kind kind)
{
    return budget_less(concern->limit->of[kind],
                       budget_add(concern->account->used[kind], concern->account->held[kind]));
}

/* The time this limit leaves it; BUDGET_NO_END: it does not say. */
static uint64_t time_by(const struct desk *desk, enum budget_kind kind, uint64_t left)
{
    switch (kind) {
    case BUDGET_WALL:
        return left;
    case BUDGET_CPU:
        return desk->rate.cpu_millis ? left * 1000 / desk->rate.cpu_millis : BUDGET_NO_END;
    case BUDGET_COST:
        return left < desk->rate.prices.run ? 0 : rate_wall_us(&desk->rate, left);
    case BUDGET_RUNS:
    case BUDGET_EGRESS:
    case BUDGET_KINDS:
        break;
    }
    return BUDGET_NO_END;
}

static void refuse(struct budget_answer *out, const char *why)
{
    out->is_refused = true;
    out->by = why;
}

static bool has_prices(const struct budget_prices *prices)
{
    return prices->run || prices->vcpu_second || prices->gib_second;
}

/* A limit nobody could hold the run to is not one that holds. */
static const char *uncountable(const struct desk *desk, const struct concern *concern)
{
    const struct budget_limit *limit = concern->limit;

    if (limit->of[BUDGET_COST] && !has_prices(&desk->rate.prices))
        return arena_printf(desk->mem,
                            "the cost budget of %s cannot be held: nothing has a price; \"brig "
                            "budget price\" sets them",
                            whose_text(desk, concern));
    if (limit->of[BUDGET_EGRESS] && desk->ask->is_unmetered)
        return arena_printf(desk->mem,
                            "the egress budget of %s cannot be held for what runs on the machine "
                            "itself: run it in a sandbox",
                            whose_text(desk, concern));
    if (desk->ask->is_uncounted && (limit->of[BUDGET_WALL] || limit->of[BUDGET_CPU] ||
                                    limit->of[BUDGET_EGRESS] || limit->of[BUDGET_COST]))
        return arena_printf(desk->mem,
                            "the budget of %s cannot be held for what a command leaves running, or "
                            "for the network of one that goes on alone: run it without that",
                            whose_text(desk, concern));
    return NULL;
}

static void apply_egress(const struct desk *desk, const struct concern *concern,
                         struct budget_answer *out)
{
    uint64_t left = left_of(concern, BUDGET_EGRESS);
    uint64_t once = concern->limit->egress_run;

    if (!concern->limit->of[BUDGET_EGRESS] || !desk->ask->has_network)
        return;
    if (left == 0) {
        refuse(out, explain(desk, concern, BUDGET_EGRESS, "is used up"));
        return;
    }
    if (once && once < left)
        left = once;
    if (out->egress_bytes && left >= out->egress_bytes)
        return;
    out->egress_bytes = left;
    out->egress_by = explain(desk, concern, BUDGET_EGRESS,
                             arena_printf(desk->mem, "leaves no more than %s",
                                          budget_amount_text(desk->mem, BUDGET_EGRESS, left)));
}

static void apply(const struct desk *desk, const struct concern *concern, struct budget_answer *out)
{
    const char *why = uncountable(desk, concern);

    if (why) {
        out->is_uncountable = true;
        refuse(out, why);
        return;
    }
    if (concern->limit->of[BUDGET_RUNS] && left_of(concern, BUDGET_RUNS) == 0) {
        refuse(out, explain(desk, concern, BUDGET_RUNS, "is used up"));
        return;
    }
    for (int i = 0; i < BUDGET_KINDS && !out->is_refused; i++) {
        enum budget_kind kind = (enum budget_kind)i;
        uint64_t time;

        if (!concern->limit->of[kind])
            continue;
        time = time_by(desk, kind, left_of(concern, kind));
        if (time < LEAST_US) {
            refuse(out, explain(desk, concern, kind, "is used up"));
        } else if (time < out->wall_us) {
            out->wall_us = time;
            out->is_cut = true;
            out->by = explain(desk, concern, kind, "leaves no more time");
        }
    }
    if (!out->is_refused)
        apply_egress(desk, concern, out);
}

/* ---- writing it down ---- */

/* Who reserves: still there as long as a process of this number began when it did. */
bool owner_text(pid_t pid, char *out, size_t size)
{
    char path[64], stat[1024];
    const char *at;
    ssize_t got;
    int fd;

    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    got = fd < 0 ? -1 : read(fd, stat, sizeof stat - 1);
    if (fd >= 0)
        (void)close(fd);
    if (got <= 0)
        return false;
    stat[got] = '\0';
    at = strrchr(stat, ')'); /* the name may hold anything */
    /* Behind it a blank and the third field; the beginning is the 22nd. */
    for (int field = 3; at && field <= 22; field++)
        at = strchr(at + 1, ' ');
    if (!at)
        return false;
    (void)snprintf(out, size, "%d %.*s", (int)pid, (int)strcspn(at + 1, " "), at + 1);
    return true;
}

static int write_run(const struct desk *desk, struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};
    char owner[OWNER_BYTES] = "";

    if (!owner_text(getpid(), owner, sizeof owner))
        return err_set(err, ERR_UNAVAILABLE, "/proc does not tell who this process is");
    if (statement_prepare(desk->budgets->store, "INSERT INTO runs VALUES (?1,?2,?3,?4,?5,?6,?7)",
                          &st, err) < 0)
        return -1;
    statement_bind_text(&st, 1, str_of(desk->ask->run_id));
    statement_bind_text(&st, 2, str_of(owner));
    statement_bind_int(&st, 3, (int64_t)desk->rate.cpu_millis);
    statement_bind_int(&st, 4, (int64_t)desk->rate.memory_bytes);
    statement_bind_int(&st, 5, (int64_t)desk->rate.prices.run);
    statement_bind_int(&st, 6, (int64_t)desk->rate.prices.vcpu_second);
    statement_bind_int(&st, 7, (int64_t)desk->rate.prices.gib_second);
    return statement_step(&st, err) < 0 ? -1 : 0;
}

static int write_hold(const struct desk *desk, const struct budget_account *account,
                      const uint64_t of[BUDGET_KINDS], struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};

    if (statement_prepare(desk->budgets->store,
                          "INSERT INTO holds VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9)", &st, err) < 0)
        return -1;
    statement_bind_text(&st, 1, str_of(desk->ask->run_id));
    statement_bind_int(&st, 2, (int64_t)account->scope);
    statement_bind_text(&st, 3, str_of(account->name));
    statement_bind_int(&st, 4, (int64_t)account->window_s);
    (void)bind_amounts(&st, 5, of);
    return statement_step(&st, err) < 0 ? -1 : 0;
}

/* What it may use at most in the time it has; without an end to that nothing counts time. */
static void amounts_of(const struct desk *desk, const struct budget_answer *answer,
                       uint64_t out[BUDGET_KINDS])
{
    bool ends = answer->wall_us < BUDGET_NO_END;
    unsigned __int128 cpu = (unsigned __int128)answer->wall_us * desk->rate.cpu_millis / 1000;

    out[BUDGET_RUNS] = 1;
    out[BUDGET_WALL] = ends ? answer->wall_us : 0;
    out[BUDGET_CPU] = !ends ? 0 : cpu < BUDGET_MOST ? (uint64_t)cpu : BUDGET_MOST;
    out[BUDGET_EGRESS] = answer->egress_bytes;
    out[BUDGET_COST] = ends ? rate_cost(&desk->rate, answer->wall_us) : 0;
}

static int hold(struct desk *desk, const struct budget_answer *answer, struct err *err)
{
    uint64_t of[BUDGET_KINDS] = {0};

    amounts_of(desk, answer, of);
    if (write_run(desk, err) < 0)
        return -1;
    for (size_t i = 0; i < desk->account_n; i++) {
        struct budget_account *account = &desk->accounts[i];

        for (int kind = 0; kind < BUDGET_KINDS; kind++)
            account->held[kind] = budget_add(account->held[kind], of[kind]);
        if (account_write(desk->budgets, account, err) < 0 ||
            write_hold(desk, account, of, err) < 0)
            return -1;
    }
    return 0;
}

static int forget(const struct desk *desk, const char *sql, int64_t until, struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};

    if (statement_prepare(desk->budgets->store, sql, &st, err) < 0)
        return -1;
    statement_bind_int(&st, 1, until);
    statement_bind_int(&st, 2, (int64_t)desk->account_n + FORGOTTEN_AT_ONCE);
    return statement_step(&st, err) < 0 ? -1 : 0;
}

/* A window that is over counts as one that never was. */
static int forget_old(const struct desk *desk, struct err *err)
{
    if (forget(desk,
               "DELETE FROM accounts WHERE (scope, name, window_s) IN (SELECT scope, name, window_s"
               " FROM accounts WHERE window_s > 0 AND began_at + window_s <= ?1 AND held_runs = 0"
               " ORDER BY began_at + window_s LIMIT ?2)",
               desk->now, err) < 0)
        return -1;
    return forget(desk,
                  "DELETE FROM accounts WHERE (scope, name, window_s) IN (SELECT scope, name,"
                  " window_s FROM accounts WHERE began_at < ?1 AND held_runs = 0"
                  " ORDER BY began_at LIMIT ?2)",
                  desk->now - KEPT_S, err);
}

/* There is a place for another one. */
static int check_room(const struct desk *desk, struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};

    if (statement_prepare(desk->budgets->store,
                          "SELECT count(*) FROM (SELECT 1 FROM accounts LIMIT ?1)", &st, err) < 0)
        return -1;
    statement_bind_int(&st, 1, BUDGET_ACCOUNTS_MAX);
    if (statement_step(&st, err) < 0)
        return -1;
    return statement_int(&st, 0) < BUDGET_ACCOUNTS_MAX
               ? 0
               : err_set(err, ERR_LIMIT,
                         "%d budgets are counted already, as many as there may be; \"brig budget "
                         "reset\" forgets what was used",
                         BUDGET_ACCOUNTS_MAX);
}

static int look_up(struct desk *desk, struct err *err)
{
    if (desk->budgets)
        return budget_now(desk->budgets, !desk->ask->only_look, &desk->now, err) < 0
                   ? -1
                   : budgets_prices(desk->budgets, &desk->rate.prices, err);
    desk->now = (int64_t)time(NULL);
    return 0;
}

static int answer_with(struct desk *desk, const struct budget_limit *own, size_t own_n,
                       struct budget_answer *out, struct err *err)
{
    AUTO_TRANSACTION struct transaction t = {0};

    if ((desk->budgets && transaction_begin(desk->budgets->store, &t, err) < 0) ||
        look_up(desk, err) < 0 || gather(desk, own, own_n, err) < 0)
        return -1;
    for (size_t i = 0; i < desk->concern_n && !out->is_refused; i++)
        apply(desk, &desk->concerns[i], out);
    if (desk->concern_n == 0 || out->is_refused || desk->ask->only_look)
        return 0;
    if (forget_old(desk, err) < 0 || (desk->has_new && check_room(desk, err) < 0) ||
        hold(desk, out, err) < 0 || transaction_commit(&t, err) < 0)
        return -1;
    out->is_held = true;
    return 0;
}

int budgets_reserve(struct budgets *budgets, struct arena *mem, const struct budget_ask *ask,
                    struct budget_answer *out, struct err *err)
{
    struct desk *desk = arena_new(mem, struct desk);
    struct budget_limit *own = NULL;
    size_t own_n = 0;

    *out = (struct budget_answer){.wall_us = ask->wall_us};
    desk->budgets = budgets;
    desk->mem = mem;
    desk->ask = ask;
    desk->rate.cpu_millis = ask->cpu_millis;
    desk->rate.memory_bytes = ask->memory_bytes;
    /* Without anything to hold it to, nothing is written. */
    if (budgets && budgets_limits(budgets, mem, &own, &own_n, err) < 0)
        return -1;
    if (own_n == 0 && ask->limit_n == 0)
        return 0;
    return answer_with(desk, own, own_n, out, err);
}

int budgets_cost(struct budgets *budgets, const struct budget_ask *ask, uint64_t *out,
                 struct err *err)
{
    struct budget_rate rate = {.cpu_millis = ask->cpu_millis, .memory_bytes = ask->memory_bytes};

    if (budgets_prices(budgets, &rate.prices, err) < 0)
        return -1;
    if (!has_prices(&rate.prices))
        return err_set(err, ERR_UNAVAILABLE,
                       "nothing has a price; \"brig budget price\" sets them");
    if (ask->wall_us >= BUDGET_NO_END)
        return err_set(err, ERR_UNAVAILABLE, "it has no time limit");
    if (ask->is_uncounted)
        return err_set(err, ERR_UNAVAILABLE,
                       "what a command leaves running, and one that goes on alone with a network, "
                       "is not counted");
    *out = rate_cost(&rate, ask->wall_us);
    return 0;
}
