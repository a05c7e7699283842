/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/egress/budget.h"
#include "test.h"

static struct net_rules *rules_of(const char *json)
{
    struct net_rules *rules = NULL;
    struct err err;

    if (net_rules_read(str_of(json), &rules, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    return rules;
}

static struct net_verdict connect_to(const struct net_rules *rules, const char *host)
{
    struct net_caller caller = {.flags = NET_CALLER_KNOWN, .exe = {.path = str_of("/bin/a")}};
    struct net_knock knock = {.host = str_of(host), .port = 443, .caller = &caller};
    struct net_verdict verdict;

    net_rules_connect(rules, &knock, &verdict);
    CHECK(verdict.kind != NET_DENY);
    return verdict;
}

#define POLICY(first, bounds)                                                                      \
    "{\"network_policies\":{" first "\"a\":{\"binaries\":[{\"path\":\"/bin/a\"}],\"endpoints\":["  \
    "{" bounds "\"host\":\"a.example.com\",\"port\":443},"                                         \
    "{\"host\":\"free.example.com\",\"port\":443}]}}}"

static enum net_reason request(struct net_budget *budget, const struct net_rules *rules,
                               const char *host, uint64_t now_ms)
{
    struct net_verdict by = connect_to(rules, host), out;

    net_budget_request(budget, rules, &by, now_ms, &out);
    CHECK((out.kind == NET_ALLOW) == (out.reason == NET_REASON_NONE));
    return out.reason;
}

static enum net_reason bytes(struct net_budget *budget, const struct net_rules *rules,
                             const char *host, uint64_t bytes_out, uint64_t bytes_in)
{
    struct net_verdict by = connect_to(rules, host), out;
    struct net_purse purse;

    net_budget_purse(budget, rules, &by, &purse);
    net_budget_bytes(budget, &purse, bytes_out, bytes_in, &out);
    return out.reason;
}

TEST(requests_are_counted_up_to_the_budget)
{
    AUTO(net_rules) struct net_rules *rules = rules_of(POLICY("", "\"budget\":{\"requests\":2},"));
    AUTO(net_budget) struct net_budget *budget = net_budget_new();

    CHECK_INT(request(budget, rules, "a.example.com", 1), NET_REASON_NONE);
    CHECK_INT(request(budget, rules, "a.example.com", 1), NET_REASON_NONE);
    CHECK_INT(request(budget, rules, "a.example.com", 1), NET_REASON_BUDGET);
    for (int i = 0; i < 10; i++)
        CHECK_INT(request(budget, rules, "free.example.com", 1), NET_REASON_NONE);
}

TEST(bytes_stop_before_they_are_too_many)
{
    AUTO(net_rules)
    struct net_rules *rules =
        rules_of(POLICY("", "\"budget\":{\"bytes_in\":100,\"bytes_out\":10},"));
    AUTO(net_budget) struct net_budget *budget = net_budget_new();
    struct net_verdict by = connect_to(rules, "a.example.com");
    struct net_purse purse;
    uint64_t left_out, left_in;

    net_budget_purse(budget, rules, &by, &purse);
    CHECK_INT(bytes(budget, rules, "a.example.com", 10, 40), NET_REASON_NONE);
    CHECK_INT(bytes(budget, rules, "a.example.com", 1, 0), NET_REASON_BUDGET);
    CHECK_INT(bytes(budget, rules, "a.example.com", 0, 60), NET_REASON_NONE);
    CHECK_INT(bytes(budget, rules, "a.example.com", 0, 1), NET_REASON_BUDGET);
    CHECK_INT(bytes(budget, rules, "a.example.com", UINT64_MAX, 0), NET_REASON_BUDGET);
    net_budget_left(budget, &purse, &left_out, &left_in);
    CHECK_INT(left_out, 0);
    CHECK_INT(left_in, 0);
    CHECK_INT(request(budget, rules, "a.example.com", 1), NET_REASON_BUDGET);
    by = connect_to(rules, "free.example.com");
    net_budget_purse(budget, rules, &by, &purse);
    net_budget_left(budget, &purse, &left_out, &left_in);
    CHECK(left_out == UINT64_MAX && left_in == UINT64_MAX);
}

TEST(a_purse_outlives_its_rules_and_an_empty_one_pays_nothing)
{
    const char *text = POLICY("", "\"budget\":{\"bytes_out\":10},");
    struct net_rules *rules = rules_of(text);
    AUTO(net_budget) struct net_budget *budget = net_budget_new();
    struct net_verdict by = connect_to(rules, "a.example.com"), out;
    struct net_purse purse, none = {0};

    net_budget_purse(budget, rules, &by, &purse);
    net_rules_free(rules);
    net_budget_bytes(budget, &purse, 6, 1000, &out);
    CHECK_INT(out.kind, NET_ALLOW);
    net_budget_bytes(budget, &purse, 6, 0, &out);
    CHECK_INT(out.reason, NET_REASON_BUDGET);
    net_budget_bytes(budget, &none, 1, 0, &out);
    CHECK_INT(out.reason, NET_REASON_BUDGET);
    rules = rules_of(text);
    CHECK_INT(bytes(budget, rules, "a.example.com", 4, 0), NET_REASON_NONE);
    CHECK_INT(bytes(budget, rules, "a.example.com", 1, 0), NET_REASON_BUDGET);
    net_rules_free(rules);
}

TEST(a_rate_fills_steadily_and_holds_one_period)
{
    AUTO(net_rules)
    struct net_rules *rules = rules_of(POLICY("", "\"rate\":{\"per_ms\":1000,\"requests\":4},"));
    AUTO(net_budget) struct net_budget *budget = net_budget_new();

    for (int i = 0; i < 4; i++)
        CHECK_INT(request(budget, rules, "a.example.com", 5000), NET_REASON_NONE);
    CHECK_INT(request(budget, rules, "a.example.com", 5000), NET_REASON_RATE);
    CHECK_INT(request(budget, rules, "a.example.com", 5249), NET_REASON_RATE);
    CHECK_INT(request(budget, rules, "a.example.com", 5250), NET_REASON_NONE);
    CHECK_INT(request(budget, rules, "a.example.com", 5250), NET_REASON_RATE);
    CHECK_INT(request(budget, rules, "a.example.com", 4000), NET_REASON_RATE); /* never back */
    for (int i = 0; i < 4; i++)
        CHECK_INT(request(budget, rules, "a.example.com", 1000000), NET_REASON_NONE);
    CHECK_INT(request(budget, rules, "a.example.com", 1000000), NET_REASON_RATE);
}

TEST(what_was_used_stays_used_under_other_rules)
{
    AUTO(net_rules) struct net_rules *before = rules_of(POLICY("", "\"budget\":{\"requests\":1},"));
    AUTO(net_rules)
    struct net_rules *after =
        rules_of(POLICY("\"Z\":{\"endpoints\":[{\"host\":\"z.example.com\",\"port\":443}]},",
                        "\"budget\":{\"requests\":2},"));
    AUTO(net_budget) struct net_budget *budget = net_budget_new();

    CHECK_INT(request(budget, before, "a.example.com", 1), NET_REASON_NONE);
    CHECK_INT(request(budget, before, "a.example.com", 1), NET_REASON_BUDGET);
    CHECK_INT(request(budget, after, "a.example.com", 1), NET_REASON_NONE);
    CHECK_INT(request(budget, after, "a.example.com", 1), NET_REASON_BUDGET);
}
