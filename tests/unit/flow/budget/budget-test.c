/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "flow/budget/store.h"
#include "lib/base/limits.h"

static char state_dir[64];

static struct budgets *open_store(void)
{
    struct budgets *budgets = NULL;
    struct err err;

    if (!state_dir[0]) {
        (void)strcpy(state_dir, "/tmp/brig-budget-XXXXXX");
        CHECK(mkdtemp(state_dir) != NULL);
    }
    if (budgets_open(state_dir, &budgets, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    return budgets;
}

__attribute__((destructor)) static void remove_store(void)
{
    static const char *const names[] = {"budget.db", "budget.db-wal", "budget.db-shm"};
    char path[128];

    for (size_t i = 0; state_dir[0] && i < COUNT(names); i++) {
        (void)snprintf(path, sizeof path, "%s/%s", state_dir, names[i]);
        (void)unlink(path);
    }
    if (state_dir[0])
        (void)rmdir(state_dir);
}

static struct budget_ask ask_for(const char *run_id, const struct budget_limit *limits, size_t n)
{
    return (struct budget_ask){
        .run_id = run_id,
        .of = {"uid:1", "default", "box1"},
        .limits = limits,
        .limit_n = n,
        .wall_us = 30 * 1000000,
        .cpu_millis = 2000,
        .memory_bytes = 1ULL << 30,
    };
}

static struct budget_answer reserve(struct budgets *budgets, struct arena *mem,
                                    const struct budget_ask *ask)
{
    struct budget_answer answer = {0};
    struct err err;

    if (budgets_reserve(budgets, mem, ask, &answer, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    return answer;
}

static struct budget_account account(struct budgets *budgets, struct arena *mem)
{
    struct budget_account *accounts = NULL;
    size_t n = 0;
    struct err err;

    CHECK_INT(budgets_accounts(budgets, mem, &accounts, &n, &err), 0);
    CHECK_INT(n, 1);
    return n ? accounts[0] : (struct budget_account){0};
}

static void sql(struct budgets *budgets, const char *text)
{
    AUTO_STATEMENT struct statement st = {0};
    struct err err;

    CHECK_INT(statement_prepare(budgets->store, text, &st, &err), 0);
    CHECK(statement_step(&st, &err) >= 0);
}

TEST(amounts_are_read_exactly_or_not_at_all)
{
    static const struct {
        enum budget_kind kind;
        const char *text;
        uint64_t value; /* 0: refused */
    } cases[] = {
        {BUDGET_RUNS,   "10",                   10               },
        {BUDGET_RUNS,   "0",                    0                },
        {BUDGET_RUNS,   "-1",                   0                },
        {BUDGET_RUNS,   "1e3",                  0                },
        {BUDGET_RUNS,   "18446744073709551615", 0                },
        {BUDGET_RUNS,   "18446744073709551617", 0                },
        {BUDGET_WALL,   "30m",                  1800ULL * 1000000},
        {BUDGET_WALL,   "500ms",                500000           },
        {BUDGET_WALL,   "99999999999h",         0                },
        {BUDGET_CPU,    "1h",                   3600ULL * 1000000},
        {BUDGET_EGRESS, "1G",                   1ULL << 30       },
        {BUDGET_EGRESS, "1024T",                1ULL << 50       },
        {BUDGET_EGRESS, "99999999T",            0                },
        {BUDGET_COST,   "5.00",                 5000000          },
        {BUDGET_COST,   "0.000001",             1                },
        {BUDGET_COST,   "0.0000001",            0                },
        {BUDGET_COST,   "5.",                   0                },
        {BUDGET_COST,   ".5",                   0                },
        {BUDGET_COST,   "1000000001",           0                },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        uint64_t value = 0;

        if (budget_amount_parse(cases[i].kind, str_of(cases[i].text), &value) !=
                (cases[i].value != 0) ||
            value != cases[i].value)
            test_fail(__FILE__, __LINE__, "%s: %llu", cases[i].text, (unsigned long long)value);
    }
}

TEST(windows_are_whole_seconds_up_to_a_year)
{
    uint64_t s = 0;

    CHECK(budget_window_parse(str_of("1h"), &s) && s == 3600);
    CHECK(budget_window_parse(str_of("30d"), &s) && s == 30 * 86400);
    CHECK(budget_window_parse(str_of("366d"), &s) && s == BUDGET_WINDOW_MAX_S);
    CHECK(!budget_window_parse(str_of("367d"), &s));
    CHECK(!budget_window_parse(str_of("0d"), &s));
    CHECK(!budget_window_parse(str_of("d"), &s));
    CHECK(!budget_window_parse(str_of("1500ms"), &s));
    CHECK(!budget_window_parse(str_of("0"), &s));
    CHECK(!budget_window_parse(str_of("18446744073709551616d"), &s));
}

TEST(costs_round_up_and_never_overflow)
{
    struct budget_rate rate = {
        {100, 50, 10},
        2000, 1ULL << 30
    };
    struct budget_rate dear = {
        {BUDGET_PRICE_MAX, BUDGET_PRICE_MAX, BUDGET_PRICE_MAX},
        1024000, 1ULL << 50
    };

    CHECK_INT(rate_cost(&rate, 0), 100);
    CHECK_INT(rate_cost(&rate, 1000000), 100 + 2 * 50 + 10);
    CHECK_INT(rate_cost(&rate, 1), 101); /* a part of a millionth is one */
    CHECK_INT(rate_wall_us(&rate, 100 + 110), 1000000);
    CHECK_INT(rate_wall_us(&rate, 99), 0);
    CHECK_INT(rate_cost(&dear, UINT64_MAX), BUDGET_MOST);
    CHECK_INT(rate_cost(&dear, BUDGET_NO_END), BUDGET_MOST);
    CHECK_INT(rate_wall_us(&(struct budget_rate){0}, 5), BUDGET_NO_END);
    /* What the time costs that a sum gives is never more than the sum. */
    for (uint64_t cost = 100; cost < 5000; cost += 7)
        CHECK(rate_cost(&rate, rate_wall_us(&rate, cost)) <= cost);
    CHECK_INT(budget_add(UINT64_MAX, UINT64_MAX), BUDGET_MOST);
    CHECK_INT(budget_less(1, 2), 0);
}

TEST(what_is_reserved_is_given_back_and_what_was_used_is_not)
{
    AUTO_ARENA struct arena mem = ARENA(4 * MIB);
    AUTO(budgets) struct budgets *budgets = open_store();
    const struct budget_limit limit = {
        .scope = BUDGET_PRINCIPAL,
        .window_s = 3600,
        .line = 3,
        .of = {[BUDGET_RUNS] = 2, [BUDGET_CPU] = 50 * 1000000}
    };
    struct budget_ask ask = ask_for("run1", &limit, 1);
    struct budget_answer answer = reserve(budgets, &mem, &ask);
    struct budget_used used = {.wall_us = 1000000, .cpu_us = 500000, .cpu_is_whole = true};
    struct budget_account now;
    struct err err;

    /* Two processors for 30 seconds would be 60: it gets 25. */
    CHECK(answer.is_held && answer.is_cut && !answer.is_refused);
    CHECK_INT(answer.wall_us, 25 * 1000000);
    now = account(budgets, &mem);
    CHECK_INT(now.held[BUDGET_RUNS], 1);
    CHECK_INT(now.held[BUDGET_CPU], 50 * 1000000);
    ask.run_id = "run2";
    answer = reserve(budgets, &mem, &ask);
    CHECK(answer.is_refused);
    CHECK(strstr(answer.by, "the cpu budget of principal uid:1 is used up: 50s in 1h") != NULL);
    CHECK(strstr(answer.by, "50s reserved (set by line 3 of the policy); it renews at 20") != NULL);
    CHECK_INT(budgets_settle(budgets, "run1", BUDGET_CHARGE, &used, &err), 0);
    CHECK_INT(budgets_settle(budgets, "run1", BUDGET_CHARGE, &used, &err), 0);
    now = account(budgets, &mem);
    CHECK_INT(now.held[BUDGET_RUNS], 0);
    CHECK_INT(now.held[BUDGET_CPU], 0);
    CHECK_INT(now.used[BUDGET_RUNS], 1);
    CHECK_INT(now.used[BUDGET_CPU], 500000);
    CHECK(!reserve(budgets, &mem, &ask).is_refused);
    CHECK_INT(budgets_settle(budgets, "run2", BUDGET_RELEASE, NULL, &err), 0);
    CHECK_INT(account(budgets, &mem).used[BUDGET_RUNS], 1);
    ask.run_id = "run3";
    CHECK(!reserve(budgets, &mem, &ask).is_refused);
    CHECK_INT(budgets_settle(budgets, "run3", BUDGET_CHARGE_ALL, NULL, &err), 0);
    CHECK_INT(account(budgets, &mem).used[BUDGET_RUNS], 2);
    CHECK(account(budgets, &mem).used[BUDGET_CPU] > 49 * 1000000);
}

TEST(processor_time_that_nobody_saw_all_of_is_charged_as_if_all_was_used)
{
    AUTO_ARENA struct arena mem = ARENA(4 * MIB);
    AUTO(budgets) struct budgets *budgets = open_store();
    const struct budget_limit limit = {
        .scope = BUDGET_PRINCIPAL, .window_s = 3600, .of = {[BUDGET_CPU] = 3600ULL * 1000000}};
    struct budget_ask ask = ask_for("run1", &limit, 1);
    struct budget_used used = {.wall_us = 1000001, .cpu_us = 500000};
    struct err err;

    CHECK(reserve(budgets, &mem, &ask).is_held);
    CHECK_INT(budgets_settle(budgets, "run1", BUDGET_CHARGE, &used, &err), 0);
    CHECK_INT(account(budgets, &mem).used[BUDGET_CPU], 2000002);
    used.cpu_us = 3000000; /* what was seen was used, whatever it should have been */
    CHECK(reserve(budgets, &mem, &ask).is_held);
    CHECK_INT(budgets_settle(budgets, "run1", BUDGET_CHARGE, &used, &err), 0);
    CHECK_INT(account(budgets, &mem).used[BUDGET_CPU], 5000002);
}

TEST(a_clock_that_goes_back_renews_nothing)
{
    AUTO_ARENA struct arena mem = ARENA(4 * MIB);
    AUTO(budgets) struct budgets *budgets = open_store();
    const struct budget_limit limit = {
        .scope = BUDGET_TENANT, .window_s = 3600, .of = {[BUDGET_RUNS] = 1}};
    struct budget_ask ask = ask_for("run1", &limit, 1);
    struct err err;

    /* It was tomorrow once. */
    sql(budgets, "UPDATE clock SET latest = unixepoch() + 86400");
    CHECK(!reserve(budgets, &mem, &ask).is_refused);
    CHECK_INT(budgets_settle(budgets, "run1", BUDGET_CHARGE, &(struct budget_used){0}, &err), 0);
    CHECK(account(budgets, &mem).began_at > (int64_t)time(NULL) + 86000);
    ask.run_id = "run2";
    CHECK(reserve(budgets, &mem, &ask).is_refused);
    /* And then it is an hour later than that. */
    sql(budgets, "UPDATE clock SET latest = unixepoch() + 86400 + 3600");
    CHECK(!reserve(budgets, &mem, &ask).is_refused);
    CHECK_INT(account(budgets, &mem).used[BUDGET_RUNS], 0);
    CHECK_INT(account(budgets, &mem).held[BUDGET_RUNS], 1);
    /* The operator believes the clock again. */
    CHECK_INT(budgets_reset(budgets, BUDGET_TENANT, NULL, &err), 0);
    CHECK(account(budgets, &mem).began_at <= (int64_t)time(NULL));
}

TEST(what_runs_across_a_renewal_is_neither_lost_nor_counted_twice)
{
    AUTO_ARENA struct arena mem = ARENA(4 * MIB);
    AUTO(budgets) struct budgets *budgets = open_store();
    const struct budget_limit limit = {
        .scope = BUDGET_TENANT, .window_s = 3600, .of = {[BUDGET_RUNS] = 2}};
    struct budget_ask ask = ask_for("run1", &limit, 1);
    struct err err;

    CHECK(!reserve(budgets, &mem, &ask).is_refused);
    sql(budgets, "UPDATE clock SET latest = unixepoch() + 4000");
    CHECK_INT(account(budgets, &mem).held[BUDGET_RUNS], 1);
    ask.run_id = "run2";
    CHECK(!reserve(budgets, &mem, &ask).is_refused);
    ask.run_id = "run3";
    CHECK(reserve(budgets, &mem, &ask).is_refused);
    CHECK_INT(budgets_settle(budgets, "run1", BUDGET_CHARGE, &(struct budget_used){0}, &err), 0);
    CHECK_INT(account(budgets, &mem).used[BUDGET_RUNS], 1);
    CHECK_INT(account(budgets, &mem).held[BUDGET_RUNS], 1);
    CHECK(reserve(budgets, &mem, &ask).is_refused);
}

TEST(a_session_that_is_a_run_leaves_nothing_behind)
{
    AUTO_ARENA struct arena mem = ARENA(4 * MIB);
    AUTO(budgets) struct budgets *budgets = open_store();
    const struct budget_limit limit = {.scope = BUDGET_SESSION, .of = {[BUDGET_RUNS] = 1}};
    struct budget_ask ask = ask_for("run1", &limit, 1);
    struct budget_account *accounts;
    size_t n;
    struct err err;

    ask.of[BUDGET_SESSION] = "run1";
    CHECK(!reserve(budgets, &mem, &ask).is_refused);
    CHECK_INT(budgets_settle(budgets, "run1", BUDGET_CHARGE, &(struct budget_used){0}, &err), 0);
    CHECK_INT(budgets_accounts(budgets, &mem, &accounts, &n, &err), 0);
    CHECK_INT(n, 0);
}

static int64_t account_count(struct budgets *budgets)
{
    AUTO_STATEMENT struct statement st = {0};
    struct err err;

    CHECK_INT(statement_prepare(budgets->store, "SELECT count(*) FROM accounts", &st, &err), 0);
    CHECK_INT(statement_step(&st, &err), 1);
    return statement_int(&st, 0);
}

/* One principal after the other, or one sandbox, each with a window of its own. */
static void use_once(struct budgets *budgets, struct arena *mem, enum budget_scope scope,
                     const char *name, uint64_t window_s)
{
    const struct budget_limit limit = {
        .scope = scope, .window_s = window_s, .of = {[BUDGET_RUNS] = 50}};
    struct budget_ask ask = ask_for("run1", &limit, 1);
    struct err err;

    ask.of[scope] = name;
    CHECK(reserve(budgets, mem, &ask).is_held);
    CHECK_INT(budgets_settle(budgets, "run1", BUDGET_CHARGE, &(struct budget_used){0}, &err), 0);
}

TEST(windows_that_are_over_leave_nothing_behind)
{
    AUTO_ARENA struct arena mem = ARENA(64 * MIB);
    AUTO(budgets) struct budgets *budgets = open_store();
    char name[32];

    for (unsigned i = 0; i < 200; i++) {
        (void)snprintf(name, sizeof name, "uid:%u", i);
        use_once(budgets, &mem, BUDGET_PRINCIPAL, name, 60 + i);
    }
    CHECK_INT(account_count(budgets), 200);
    sql(budgets, "UPDATE clock SET latest = unixepoch() + 86400");
    for (unsigned i = 0; i < 20; i++)
        use_once(budgets, &mem, BUDGET_PRINCIPAL, "uid:7", 7);
    CHECK_INT(account_count(budgets), 1);
}

TEST(a_session_that_ends_leaves_nothing_behind)
{
    AUTO_ARENA struct arena mem = ARENA(64 * MIB);
    AUTO(budgets) struct budgets *budgets = open_store();
    const struct budget_limit limit = {.scope = BUDGET_SESSION, .of = {[BUDGET_RUNS] = 1}};
    struct budget_ask ask = ask_for("last", &limit, 1);
    struct err err;

    use_once(budgets, &mem, BUDGET_SESSION, "box1", 0);
    use_once(budgets, &mem, BUDGET_SESSION, "box2", 3600);
    use_once(budgets, &mem, BUDGET_SESSION, "box3", 0);
    ask.of[BUDGET_SESSION] = "box4"; /* has a command that is still under way */
    CHECK(reserve(budgets, &mem, &ask).is_held);
    CHECK_INT(account_count(budgets), 4);
    CHECK_INT(budgets_end_session(budgets, "box1", &err), 0);
    CHECK_INT(budgets_end_session(budgets, "box2", &err), 0);
    CHECK_INT(budgets_end_session(budgets, "box4", &err), 0);
    CHECK_INT(budgets_end_session(budgets, "box5", &err), 0);
    use_once(budgets, &mem, BUDGET_PRINCIPAL, "uid:1", 60);
    CHECK_INT(account_count(budgets), 3); /* box3, box4, uid:1 */
    CHECK_INT(budgets_settle(budgets, "last", BUDGET_CHARGE, &(struct budget_used){0}, &err), 0);
    use_once(budgets, &mem, BUDGET_PRINCIPAL, "uid:1", 60);
    CHECK_INT(account_count(budgets), 2);
}

TEST(no_more_is_counted_than_there_is_room_for)
{
    AUTO_ARENA struct arena mem = ARENA(64 * MIB);
    AUTO(budgets) struct budgets *budgets = open_store();
    const struct budget_limit limit = {
        .scope = BUDGET_PRINCIPAL, .window_s = 3600, .of = {[BUDGET_RUNS] = 5}};
    struct budget_ask ask = ask_for("run1", &limit, 1);
    struct budget_answer answer;
    struct err err;

    sql(budgets,
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 65535) "
        "INSERT INTO accounts SELECT 0, 'p' || i, 3600, unixepoch(), 1,0,0,0,0, 0,0,0,0,0 FROM n");
    use_once(budgets, &mem, BUDGET_PRINCIPAL, "uid:1", 3600);
    ask.of[BUDGET_PRINCIPAL] = "uid:2";
    CHECK_INT(budgets_reserve(budgets, &mem, &ask, &answer, &err), -1);
    CHECK_INT(err.code, ERR_LIMIT);
    CHECK(strstr(err.text, "65536 budgets are counted already") != NULL);
    use_once(budgets, &mem, BUDGET_PRINCIPAL, "uid:1", 3600); /* is there already */
    CHECK_INT(budgets_reset(budgets, BUDGET_PRINCIPAL, NULL, &err), 0);
    CHECK_INT(account_count(budgets), 0);
    CHECK_INT(budgets_reserve(budgets, &mem, &ask, &answer, &err), 0);
}

TEST(what_cannot_be_looked_at_may_limit_something)
{
    char path[128];

    budgets_free(open_store());
    CHECK(budgets_exist(state_dir));
    CHECK(!budgets_exist("/nowhere"));
    (void)snprintf(path, sizeof path, "%s/budget.db", state_dir);
    CHECK(budgets_exist(path)); /* ENOTDIR */
}

TEST(a_cost_without_prices_cannot_be_held)
{
    AUTO_ARENA struct arena mem = ARENA(4 * MIB);
    AUTO(budgets) struct budgets *budgets = open_store();
    const struct budget_limit limit = {
        .scope = BUDGET_TENANT, .window_s = 60, .of = {[BUDGET_COST] = 1000000}};
    struct budget_ask ask = ask_for("run1", &limit, 1);
    struct budget_answer answer = reserve(budgets, &mem, &ask);
    struct err err;

    CHECK(answer.is_refused && answer.is_uncountable);
    CHECK_INT(budgets_price(budgets, &(struct budget_prices){500000, 100000, 0}, &err), 0);
    answer = reserve(budgets, &mem, &ask);
    CHECK(!answer.is_refused && answer.is_cut);
    CHECK_INT(answer.wall_us, 2500000); /* half of it, at two processors */
    ask.run_id = "run2";
    ask.is_uncounted = true;
    CHECK(reserve(budgets, &mem, &ask).is_uncountable);
}

TEST(bytes_are_given_as_far_as_they_go)
{
    AUTO_ARENA struct arena mem = ARENA(4 * MIB);
    AUTO(budgets) struct budgets *budgets = open_store();
    const struct budget_limit limits[] = {
        {.scope = BUDGET_TENANT, .window_s = 60, .of = {[BUDGET_EGRESS] = 1000}, .egress_run = 600},
        {.scope = BUDGET_PRINCIPAL,                      .window_s = 60,            .of = {[BUDGET_EGRESS] = 5000}      },
    };
    const struct budget_used used = {.wall_us = 1, .egress_bytes = 250};
    struct budget_ask ask = ask_for("run1", limits, 2);
    struct budget_answer answer;
    struct err err;

    CHECK_INT(reserve(budgets, &mem, &ask).egress_bytes, 0); /* it has no network */
    ask.has_network = true;
    ask.run_id = "run2";
    answer = reserve(budgets, &mem, &ask);
    CHECK_INT(answer.egress_bytes, 600);
    CHECK(strstr(answer.egress_by, "of tenant") && strstr(answer.egress_by, "no more than 600"));
    ask.run_id = "run3";
    CHECK_INT(reserve(budgets, &mem, &ask).egress_bytes, 400);
    ask.run_id = "run4";
    CHECK(reserve(budgets, &mem, &ask).is_refused);
    CHECK_INT(budgets_settle(budgets, "run2", BUDGET_CHARGE, &used, &err), 0);
    CHECK_INT(reserve(budgets, &mem, &ask).egress_bytes, 350);
    ask.run_id = "run5";
    ask.is_unmetered = true;
    CHECK(reserve(budgets, &mem, &ask).is_uncountable);
}

/* Rules see the one before a run, budgets hold the other for it. */
TEST(what_a_run_costs_at_most_is_what_is_reserved)
{
    AUTO_ARENA struct arena mem = ARENA(16 * MIB);
    AUTO(budgets) struct budgets *budgets = open_store();
    const struct budget_prices prices = {7, 50, 11};
    const struct budget_limit limit = {.scope = BUDGET_PRINCIPAL,
                                       .window_s = 3600,
                                       .line = 3,
                                       .of = {[BUDGET_COST] = BUDGET_MOST / 8}};
    struct budget_ask ask = ask_for("cost", &limit, 1);
    uint64_t cost = 0;
    struct err err;

    CHECK_INT(budgets_reset(budgets, BUDGET_PRINCIPAL, NULL, &err), 0);
    CHECK_INT(budgets_price(budgets, &(struct budget_prices){0}, &err), 0);
    CHECK_INT(budgets_cost(budgets, &ask, &cost, &err), -1);
    CHECK(strstr(err.text, "nothing has a price") != NULL);
    CHECK_INT(budgets_price(budgets, &prices, &err), 0);
    for (uint64_t i = 1; i < 40; i++) {
        ask.wall_us = i * i * i * 977;
        ask.cpu_millis = 1 + i * 613 % 4000;
        ask.memory_bytes = i << (i % 32);
        CHECK_INT(budgets_cost(budgets, &ask, &cost, &err), 0);
        CHECK(reserve(budgets, &mem, &ask).is_held);
        CHECK_INT(account(budgets, &mem).held[BUDGET_COST], cost);
        CHECK_INT(budgets_settle(budgets, "cost", BUDGET_RELEASE, NULL, &err), 0);
    }
    ask.is_uncounted = true;
    CHECK_INT(budgets_cost(budgets, &ask, &cost, &err), -1);
    ask.is_uncounted = false;
    ask.wall_us = BUDGET_NO_END;
    CHECK_INT(budgets_cost(budgets, &ask, &cost, &err), -1);
    CHECK_TEXT(err.text, "it has no time limit");
    CHECK_INT(budgets_price(budgets, &(struct budget_prices){0}, &err), 0);
}

TEST(the_operators_limit_holds_beside_the_policys)
{
    AUTO_ARENA struct arena mem = ARENA(4 * MIB);
    AUTO(budgets) struct budgets *budgets = open_store();
    const struct budget_limit wide = {
        .scope = BUDGET_PRINCIPAL, .window_s = 3600, .of = {[BUDGET_RUNS] = 1000}};
    struct budget_limit own = {
        .scope = BUDGET_PRINCIPAL, .name = "uid:1", .window_s = 3600, .of = {[BUDGET_RUNS] = 1}};
    struct budget_ask ask = ask_for("run1", &wide, 1);
    struct budget_limit *limits;
    size_t n;
    struct err err;

    CHECK_INT(budgets_limit(budgets, &own, &err), 0);
    CHECK(!reserve(budgets, &mem, &ask).is_refused);
    ask.run_id = "run2";
    CHECK(reserve(budgets, &mem, &ask).is_refused);
    ask.of[BUDGET_PRINCIPAL] = "uid:2";
    CHECK(!reserve(budgets, &mem, &ask).is_refused);
    CHECK_INT(budgets_limits(budgets, &mem, &limits, &n, &err), 0);
    CHECK_INT(n, 1);
    CHECK_TEXT(limits[0].name, "uid:1");
    own.of[BUDGET_RUNS] = 0;
    CHECK_INT(budgets_limit(budgets, &own, &err), 0);
    CHECK_INT(budgets_limit(budgets, &own, &err), -1);
    CHECK_INT(err.code, ERR_NOT_FOUND);
}

/* Each asks for 25 runs; there are 60 for the 8 of them. */
TEST(processes_that_ask_at_once_get_no_more_than_there_is)
{
    const struct budget_limit limit = {
        .scope = BUDGET_PRINCIPAL, .window_s = 3600, .of = {[BUDGET_RUNS] = 60}};
    int granted = 0;

    budgets_free(open_store());
    for (int child = 0; child < 8; child++)
        if (fork() == 0) {
            AUTO_ARENA struct arena mem = ARENA(64 * MIB);
            AUTO(budgets) struct budgets *budgets = open_store();
            char id[32];
            int got = 0;

            for (int i = 0; i < 25; i++) {
                struct budget_ask ask = ask_for(id, &limit, 1);
                struct budget_answer answer;
                struct err err;

                (void)snprintf(id, sizeof id, "c%dr%d", child, i);
                if (budgets_reserve(budgets, &mem, &ask, &answer, &err) == 0 && answer.is_held) {
                    got++;
                    if (budgets_settle(budgets, id, BUDGET_CHARGE, &(struct budget_used){0}, &err) <
                        0)
                        got += 100;
                }
            }
            _exit(got);
        }
    for (int child = 0; child < 8; child++) {
        int status = 0;

        CHECK(wait(&status) > 0);
        granted += WEXITSTATUS(status);
    }
    CHECK_INT(granted, 60);
}

TEST(whoever_reserved_and_is_gone_is_known)
{
    AUTO_ARENA struct arena mem = ARENA(4 * MIB);
    AUTO(budgets) struct budgets *budgets = open_store();
    const struct budget_limit limit = {
        .scope = BUDGET_PRINCIPAL, .window_s = 3600, .of = {[BUDGET_RUNS] = 60}};
    struct budget_ask ask = ask_for("mine", &limit, 1);
    struct budget_open_run *runs = NULL;
    size_t n = 0;
    struct err err;
    int status;

    CHECK(reserve(budgets, &mem, &ask).is_held);
    if (fork() == 0) {
        AUTO(budgets) struct budgets *other = open_store();

        ask.run_id = "others";
        _exit(!reserve(other, &mem, &ask).is_held);
    }
    CHECK(wait(&status) > 0 && status == 0);
    CHECK_INT(budgets_open_runs(budgets, &mem, &runs, &n, &err), 0);
    CHECK_INT(n, 2);
    for (size_t i = 0; i < n; i++)
        CHECK_INT(runs[i].has_owner, strcmp(runs[i].run_id, "mine") == 0);
}
