/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/egress/rules.h"
#include "test.h"

static struct net_rules *rules_of(const char *json)
{
    struct net_rules *rules = NULL;
    struct err err;

    if (net_rules_read(str_of(json), &rules, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    return rules;
}

static const char policy[] = "{\"network_peers\":{"
                             "\"web\":{\"line\":3,\"ports\":[80,8080],\"sandbox\":\"web-*\"},"
                             "\"one\":{\"line\":4,\"port\":9,\"sandbox\":\"kxyz234\"},"
                             "\"all\":{\"line\":5,\"port\":7,\"sandbox\":\"*\"}}}";

TEST(who_is_named_comes_in_to_the_port_that_is_named)
{
    static const struct {
        const char *id, *name;
        uint16_t port;
        enum net_verdict_kind kind;
        const char *entry;
        unsigned line;
    } cases[] = {
        {"abc",     "web-1",  80,   NET_ALLOW, "network_peers.web", 3},
        {"abc",     "web-1",  8080, NET_ALLOW, "network_peers.web", 3},
        {"abc",     "web-1",  81,   NET_DENY,  "network_peers.web", 3},
        {"abc",     "other",  80,   NET_DENY,  "network_peers.all", 5},
        {"abc",     "",       80,   NET_DENY,  "network_peers.all", 5},
        {"kxyz234", "",       9,    NET_ALLOW, "network_peers.one", 4},
        {"abc",     "",       9,    NET_DENY,  "network_peers.all", 5},
        {"abc",     "",       7,    NET_ALLOW, "network_peers.all", 5},
 /* an id that a pattern fits by chance, and names that cannot be one */
        {"web-2",   "",       80,   NET_DENY,  "network_peers.all", 5},
        {"abc",     "web-A",  80,   NET_DENY,  "network_peers.all", 5},
        {"abc",     "web-.x", 80,   NET_DENY,  "network_peers.all", 5},
        {"abc",     "web-",   80,   NET_DENY,  "network_peers.all", 5},
    };
    AUTO(net_rules) struct net_rules *rules = rules_of(policy);

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct net_guest guest = {str_of(cases[i].id), str_of(cases[i].name), cases[i].port};
        struct net_verdict verdict;

        net_rules_guest(rules, &guest, &verdict);
        if (verdict.kind != cases[i].kind)
            test_fail(__FILE__, __LINE__, "case %zu: %s", i, verdict.text);
        CHECK_TEXT(verdict.entry, cases[i].entry);
        CHECK_INT(verdict.line, cases[i].line);
        CHECK_TEXT(net_reason_code(verdict.reason),
                   cases[i].kind == NET_ALLOW ? "" : "EGRESS_PEER");
    }
}

TEST(without_the_section_nobody_comes_in)
{
    AUTO(net_rules) struct net_rules *rules = rules_of("{\"network_policies\":{}}");
    struct net_guest guest = {STR_LIT("abc"), STR_LIT("web-1"), 80};
    struct net_verdict verdict;

    net_rules_guest(rules, &guest, &verdict);
    CHECK_INT(verdict.kind, NET_DENY);
    CHECK_TEXT(verdict.entry, "");
    CHECK_TEXT(verdict.text,
               "the sandbox that is reached does not let this one in; its policy has to name it, "
               "and port 80, in \"network_peers\"");
}

TEST(texts_that_are_no_peers_compile_to_nothing)
{
    static const char *const cases[] = {
        "{\"network_peers\":[]}",
        "{\"network_peers\":{\"a\":[]}}",
        "{\"network_peers\":{\"a\":{}}}",
        "{\"network_peers\":{\"a\":{\"sandbox\":\"x\"}}}",
        "{\"network_peers\":{\"a\":{\"port\":1}}}",
        "{\"network_peers\":{\"a\":{\"port\":0,\"sandbox\":\"x\"}}}",
        "{\"network_peers\":{\"a\":{\"port\":1,\"ports\":[2],\"sandbox\":\"x\"}}}",
        "{\"network_peers\":{\"a\":{\"port\":1,\"sandbox\":\"\"}}}",
        "{\"network_peers\":{\"a\":{\"port\":1,\"sandbox\":\"**\"}}}",
        "{\"network_peers\":{\"a\":{\"port\":1,\"sandbox\":\"a.b\"}}}",
        "{\"network_peers\":{\"a\":{\"host\":\"x\",\"port\":1,\"sandbox\":\"x\"}}}",
        "{\"network_peers\":{\"a\":{\"port\":3128,\"sandbox\":\"x\"}}}",
        "{\"network_peers\":{\"a\":{\"ports\":[80,15001],\"sandbox\":\"x\"}}}",
        "{\"network_peers\":{\"a\":{\"port\":15002,\"sandbox\":\"x\"}}}",
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct net_rules *rules = NULL;
        struct err err;

        if (net_rules_read(str_of(cases[i]), &rules, &err) == 0)
            test_fail(__FILE__, __LINE__, "%s is read", cases[i]);
        CHECK(rules == NULL);
    }
}

TEST(names_of_sandboxes_are_one_label_below_their_suffix)
{
    static const struct {
        const char *host;
        bool is_sandbox;
        const char *label;
    } cases[] = {
        {"db.sandbox.internal",    true,  "db"  },
        {"a.db.sandbox.internal",  true,  "a.db"},
        {"sandbox.internal",       true,  ""    },
        {"notasandbox.internal",   false, ""    },
        {"db.sandbox.internal.eu", false, ""    },
        {"",                       false, ""    },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct str host = str_of(cases[i].host);

        CHECK_INT(net_host_is_sandbox(host), cases[i].is_sandbox);
        CHECK(str_is(net_sandbox_label(host), cases[i].label));
    }
}

TEST(a_name_is_answered_only_where_a_sandbox_is_meant)
{
    AUTO(net_rules)
    struct net_rules *rules = rules_of("{\"network_policies\":{\"a\":{\"endpoints\":["
                                       "{\"host\":\"**.sandbox.internal.test\",\"port\":1},"
                                       "{\"port\":1,\"sandbox\":\"db-*\"}]}}}");

    CHECK(net_rules_name(rules, STR_LIT("db-1.sandbox.internal")));
    CHECK(!net_rules_name(rules, STR_LIT("web.sandbox.internal")));
    CHECK(!net_rules_name(rules, STR_LIT("a.db-1.sandbox.internal")));
}
