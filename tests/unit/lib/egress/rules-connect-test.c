/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/egress/rules.h"
#include "test.h"

#include <string.h>

static struct net_rules *rules_of(const char *json)
{
    struct net_rules *rules = NULL;
    struct err err;

    if (net_rules_read(str_of(json), &rules, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    return rules;
}

static struct net_caller caller_of(const char *path)
{
    return (struct net_caller){.flags = NET_CALLER_KNOWN | NET_CALLER_COMPLETE,
                               .exe = {.path = str_of(path)}};
}

static struct net_verdict knock(const struct net_rules *rules, const char *host, uint16_t port,
                                const char *exe)
{
    struct net_caller caller = caller_of(exe);
    struct net_knock knock = {.host = str_of(host), .port = port, .caller = &caller};
    struct net_verdict verdict;

    net_rules_connect(rules, &knock, &verdict);
    return verdict;
}

static const char policy[] =
    "{\"network_policies\":{"
    "\"alpha\":{\"line\":3,\"binaries\":[{\"path\":\"/usr/bin/curl\"}],\"endpoints\":["
    "{\"host\":\"api.example.com\",\"line\":4,\"port\":443},"
    "{\"host\":\"*.wild.example.com\",\"line\":5,\"ports\":[443,8443]},"
    "{\"host\":\"**.deep.example.com\",\"line\":6,\"port\":443},"
    "{\"host\":\"s3.*.mid.example.com\",\"line\":7,\"port\":443},"
    "{\"host\":\"part-*.example.org\",\"line\":8,\"port\":443},"
    "{\"host\":\"192.168.7.7\",\"line\":9,\"port\":80},"
    "{\"host\":\"rest.example.com\",\"line\":10,\"port\":443,\"protocol\":\"rest\","
    "\"access\":\"read-only\"},"
    "{\"host\":\"skip.example.com\",\"line\":11,\"port\":443,\"tls\":\"skip\"}]},"
    "\"beta\":{\"line\":20,\"binaries\":[{\"path\":\"/usr/bin/git\"},"
    "{\"children\":true,\"path\":\"/opt/agent\"},{\"interpreter\":true,\"path\":\"/usr/bin/node\"},"
    "{\"path\":\"/usr/bin/python3*\"},{\"path\":\"/opt/tools/*\"}],\"endpoints\":["
    "{\"allowed_ips\":[\"10.4.0.0/24\"],\"host\":\"db.example.com\",\"line\":21,\"port\":5432,"
    "\"protocol\":\"tcp\"},"
    "{\"allowed_ips\":[\"10.9.0.0/16\"],\"line\":22,\"port\":9000},"
    "{\"line\":23,\"port\":8080,\"sandbox\":\"build-*\"}]},"
    "\"gamma\":{\"binaries\":[],\"endpoints\":[{\"host\":\"none.example.com\",\"port\":443}]}"
    "}}";

TEST(connections_are_judged_by_host_port_and_binary)
{
    static const struct {
        const char *host;
        uint16_t port;
        const char *exe;
        enum net_verdict_kind kind;
        enum net_reason reason;
        const char *entry;
        unsigned line;
    } cases[] = {
        {"api.example.com",          443,  "/usr/bin/curl",       NET_TUNNEL,  NET_REASON_NONE,         "alpha", 4 },
        {"API.Example.COM",          443,  "/usr/bin/curl",       NET_TUNNEL,  NET_REASON_NONE,         "alpha", 4 },
        {"api.example.com",          80,   "/usr/bin/curl",       NET_DENY,    NET_REASON_PORT,         "alpha", 4 },
        {"api.example.com",          443,  "/usr/bin/git",        NET_DENY,    NET_REASON_BINARY,       "alpha", 4 },
        {"api.example.com",          443,  "/usr/bin/curl2",      NET_DENY,    NET_REASON_BINARY,       "alpha", 4 },
        {"api.example.net",          443,  "/usr/bin/curl",       NET_DENY,    NET_REASON_NO_RULE,      "",      0 },
        {"xapi.example.com",         443,  "/usr/bin/curl",       NET_DENY,    NET_REASON_NO_RULE,      "",      0 },
        {"api.example.com.",         443,  "/usr/bin/curl",       NET_DENY,    NET_REASON_HOST_FORM,    "",      0 },
        {"api%2eexample.com",        443,  "/usr/bin/curl",       NET_DENY,    NET_REASON_HOST_FORM,    "",      0 },
        {"a.wild.example.com",       443,  "/usr/bin/curl",       NET_TUNNEL,  NET_REASON_NONE,         "alpha", 5 },
        {"a.wild.example.com",       8443, "/usr/bin/curl",       NET_TUNNEL,  NET_REASON_NONE,         "alpha", 5 },
        {"wild.example.com",         443,  "/usr/bin/curl",       NET_DENY,    NET_REASON_NO_RULE,      "",      0 },
        {"a.b.wild.example.com",     443,  "/usr/bin/curl",       NET_DENY,    NET_REASON_NO_RULE,      "",      0 },
        {"a.b.deep.example.com",     443,  "/usr/bin/curl",       NET_TUNNEL,  NET_REASON_NONE,         "alpha", 6 },
        {"deep.example.com",         443,  "/usr/bin/curl",       NET_DENY,    NET_REASON_NO_RULE,      "",      0 },
        {"s3.eu.mid.example.com",    443,  "/usr/bin/curl",       NET_TUNNEL,  NET_REASON_NONE,         "alpha", 7 },
        {"s4.eu.mid.example.com",    443,  "/usr/bin/curl",       NET_DENY,    NET_REASON_NO_RULE,      "",      0 },
        {"part-1.example.org",       443,  "/usr/bin/curl",       NET_TUNNEL,  NET_REASON_NONE,         "alpha", 8 },
        {"192.168.7.7",              80,   "/usr/bin/curl",       NET_TUNNEL,  NET_REASON_NONE,         "alpha", 9 },
        {"192.168.7.8",              80,   "/usr/bin/curl",       NET_DENY,    NET_REASON_NO_RULE,      "",      0 },
        {"0xc0a80707",               80,   "/usr/bin/curl",       NET_DENY,    NET_REASON_HOST_FORM,    "",      0 },
        {"rest.example.com",         443,  "/usr/bin/curl",       NET_INSPECT, NET_REASON_NONE,         "alpha", 10},
        {"skip.example.com",         443,  "/usr/bin/curl",       NET_TUNNEL,  NET_REASON_NONE,         "alpha", 11},
        {"127.0.0.1",                443,  "/usr/bin/curl",       NET_DENY,    NET_REASON_ADDRESS,      "",      0 },
        {"[::1]",                    443,  "/usr/bin/curl",       NET_DENY,    NET_REASON_ADDRESS,      "",      0 },
        {"169.254.169.254",          80,   "/usr/bin/curl",       NET_DENY,    NET_REASON_ADDRESS,      "",      0 },
        {"metadata.google.internal", 80,   "/usr/bin/curl",       NET_DENY,    NET_REASON_ADDRESS,      "",      0 },
        {"localhost",                443,  "/usr/bin/curl",       NET_DENY,    NET_REASON_ADDRESS,      "",      0 },
        {"api.example.com",          6443, "/usr/bin/curl",       NET_DENY,    NET_REASON_CONTROL_PORT, "",      0 },
        {"none.example.com",         443,  "/usr/bin/curl",       NET_DENY,    NET_REASON_BINARY,       "gamma", 0 },
        {"db.example.com",           5432, "/usr/bin/git",        NET_TUNNEL,  NET_REASON_NONE,         "beta",  21},
        {"db.example.com",           5432, "/usr/bin/node",       NET_TUNNEL,  NET_REASON_NONE,         "beta",  21},
        {"db.example.com",           5432, "/usr/bin/python3.11", NET_DENY,    NET_REASON_INTERPRETER,  "beta",
         21                                                                                                        },
        {"db.example.com",           5432, "/opt/tools/a",        NET_TUNNEL,  NET_REASON_NONE,         "beta",  21},
        {"db.example.com",           5432, "/opt/tools/a/b",      NET_DENY,    NET_REASON_BINARY,       "beta",  21},
        {"anything.example.net",     9000, "/usr/bin/git",        NET_TUNNEL,  NET_REASON_NONE,         "beta",  22},
        {"10.9.1.1",                 9000, "/usr/bin/git",        NET_TUNNEL,  NET_REASON_NONE,         "beta",  22},
        {"10.8.1.1",                 9000, "/usr/bin/git",        NET_DENY,    NET_REASON_PRIVATE,      "beta",  22},
        {"build-7.sandbox.internal", 8080, "/usr/bin/git",        NET_TUNNEL,  NET_REASON_NONE,         "beta",  23},
        {"other.sandbox.internal",   8080, "/usr/bin/git",        NET_DENY,    NET_REASON_NO_RULE,      "",      0 },
    };
    AUTO(net_rules) struct net_rules *rules = rules_of(policy);

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct net_verdict v = knock(rules, cases[i].host, cases[i].port, cases[i].exe);

        if (v.kind != cases[i].kind || v.reason != cases[i].reason ||
            strcmp(v.entry, cases[i].entry) != 0 || v.line != cases[i].line)
            test_fail(__FILE__, __LINE__, "%s:%u for %s: kind %d, %s, %s line %u: %s",
                      cases[i].host, cases[i].port, cases[i].exe, (int)v.kind,
                      net_reason_code(v.reason), v.entry, v.line, v.text);
        if (v.kind == NET_DENY && !v.text[0])
            test_fail(__FILE__, __LINE__, "%s: a refusal without a sentence", cases[i].host);
    }
    CHECK(knock(rules, "build-7.sandbox.internal", 8080, "/usr/bin/git").flags & NET_FLAG_SANDBOX);
    CHECK(knock(rules, "skip.example.com", 443, "/usr/bin/curl").flags & NET_FLAG_TLS_SKIP);
}

TEST(nobody_is_allowed_by_nothing)
{
    AUTO(net_rules) struct net_rules *rules = rules_of("{}");
    struct net_verdict v = knock(rules, "api.example.com", 443, "/usr/bin/curl");
    size_t n = 1;

    CHECK_INT(v.kind, NET_DENY);
    CHECK_INT(v.reason, NET_REASON_NO_RULES);
    (void)net_rules_ports(rules, &n);
    CHECK_INT(n, 0);
    CHECK(!net_rules_name(rules, str_of("api.example.com")));
}

TEST(a_caller_counts_only_when_it_is_known)
{
    static const struct {
        unsigned flags;
        enum net_reason reason;
    } cases[] = {
        {0,                                       NET_REASON_CALLER        },
        {NET_CALLER_COMPLETE,                     NET_REASON_CALLER        },
        {NET_CALLER_KNOWN | NET_CALLER_AMBIGUOUS, NET_REASON_CALLER        },
        {NET_CALLER_KNOWN | NET_CALLER_REPLACED,  NET_REASON_CALLER_CHANGED},
        {NET_CALLER_KNOWN | NET_CALLER_WRITABLE,  NET_REASON_BINARY        },
        {NET_CALLER_KNOWN,                        NET_REASON_NONE          },
    };
    AUTO(net_rules) struct net_rules *rules = rules_of(policy);
    struct net_caller caller = caller_of("/usr/bin/curl");
    struct net_knock it = {.host = str_of("api.example.com"), .port = 443, .caller = &caller};
    struct net_verdict v;

    for (size_t i = 0; i < COUNT(cases); i++) {
        caller.flags = cases[i].flags;
        net_rules_connect(rules, &it, &v);
        CHECK_INT(v.reason, cases[i].reason);
        CHECK((v.kind == NET_DENY) == (v.reason != NET_REASON_NONE));
    }
    it.caller = NULL;
    net_rules_connect(rules, &it, &v);
    CHECK_INT(v.reason, NET_REASON_CALLER);
}

TEST(a_parent_grants_only_where_the_entry_says_so)
{
    AUTO(net_rules) struct net_rules *rules = rules_of(policy);
    const struct net_program parents[] = {{.path = str_of("/bin/sh")},
                                          {.path = str_of("/opt/agent")}};
    const struct net_program others[] = {{.path = str_of("/bin/sh")},
                                         {.path = str_of("/usr/bin/git")}};
    struct net_caller caller = caller_of("/tmp/x");
    struct net_knock it = {.host = str_of("db.example.com"), .port = 5432, .caller = &caller};
    struct net_verdict v;

    caller.ancestors = parents;
    caller.ancestor_n = COUNT(parents);
    net_rules_connect(rules, &it, &v);
    CHECK_INT(v.kind, NET_TUNNEL);
    caller.flags = NET_CALLER_KNOWN; /* one of them is lost */
    net_rules_connect(rules, &it, &v);
    CHECK_INT(v.reason, NET_REASON_CALLER);
    caller.flags = NET_CALLER_KNOWN | NET_CALLER_COMPLETE;
    caller.ancestors = others; /* git may, what it starts may not */
    net_rules_connect(rules, &it, &v);
    CHECK_INT(v.reason, NET_REASON_BINARY);
}

TEST(addresses_are_judged_before_they_are_dialled)
{
    static const struct {
        const char *host;
        uint16_t port;
        const char *exe, *addr;
        enum net_reason reason;
    } cases[] = {
        {"api.example.com",      443,  "/usr/bin/curl", "93.184.216.34",    NET_REASON_NONE   },
        {"api.example.com",      443,  "/usr/bin/curl", "127.0.0.1",        NET_REASON_ADDRESS},
        {"api.example.com",      443,  "/usr/bin/curl", "::ffff:127.0.0.1", NET_REASON_ADDRESS},
        {"api.example.com",      443,  "/usr/bin/curl", "169.254.169.254",  NET_REASON_ADDRESS},
        {"api.example.com",      443,  "/usr/bin/curl", "0.0.0.0",          NET_REASON_ADDRESS},
        {"api.example.com",      443,  "/usr/bin/curl", "198.18.0.5",       NET_REASON_ADDRESS},
        {"api.example.com",      443,  "/usr/bin/curl", "10.0.0.1",         NET_REASON_PRIVATE},
        {"api.example.com",      443,  "/usr/bin/curl", "fd00::1",          NET_REASON_PRIVATE},
        {"a.wild.example.com",   443,  "/usr/bin/curl", "192.168.1.1",      NET_REASON_PRIVATE},
        {"192.168.7.7",          80,   "/usr/bin/curl", "192.168.7.7",      NET_REASON_NONE   },
        {"192.168.7.7",          80,   "/usr/bin/curl", "192.168.7.8",      NET_REASON_PRIVATE},
        {"db.example.com",       5432, "/usr/bin/git",  "10.4.0.12",        NET_REASON_NONE   },
        {"db.example.com",       5432, "/usr/bin/git",  "10.4.1.12",        NET_REASON_PRIVATE},
        {"db.example.com",       5432, "/usr/bin/git",  "93.184.216.34",    NET_REASON_PRIVATE},
        {"anything.example.net", 9000, "/usr/bin/git",  "10.9.0.1",         NET_REASON_NONE   },
        {"anything.example.net", 9000, "/usr/bin/git",  "93.184.216.34",    NET_REASON_PRIVATE},
        {"api.example.com",      443,  "/usr/bin/curl", "93.184.216.35",    NET_REASON_ADDRESS},
    };
    AUTO(net_rules) struct net_rules *rules = rules_of(policy);
    struct net_addr own;

    CHECK(net_addr_read(str_of("93.184.216.35"), &own));
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct net_caller caller = caller_of(cases[i].exe);
        struct net_knock it = {
            .host = str_of(cases[i].host), .port = cases[i].port, .caller = &caller};
        struct net_verdict v;
        struct net_addr addr;

        CHECK(net_addr_read(str_of(cases[i].addr), &addr));
        net_rules_address(rules, &it, &addr, &own, 1, &v);
        if (v.reason != cases[i].reason || (v.kind == NET_ALLOW) != (v.reason == NET_REASON_NONE))
            test_fail(__FILE__, __LINE__, "%s at %s: %s: %s", cases[i].host, cases[i].addr,
                      net_reason_code(v.reason), v.text);
    }
}

TEST(names_are_answered_when_a_rule_names_them)
{
    AUTO(net_rules) struct net_rules *rules = rules_of(policy);

    CHECK(net_rules_name(rules, str_of("api.example.com")));
    CHECK(net_rules_name(rules, str_of("API.example.com")));
    CHECK(net_rules_name(rules, str_of("a.b.deep.example.com")));
    CHECK(!net_rules_name(rules, str_of("secret.attacker.example")));
    CHECK(!net_rules_name(rules, str_of("x.api.example.com")));
    CHECK(!net_rules_name(rules, str_of("localhost")));
    CHECK(!net_rules_name(rules, str_of("10.9.1.1")));
}

TEST(ports_are_listed_once_and_in_order)
{
    static const uint16_t wanted[] = {80, 443, 5432, 8080, 8443, 9000};
    AUTO(net_rules) struct net_rules *rules = rules_of(policy);
    size_t n;
    const uint16_t *ports = net_rules_ports(rules, &n);

    CHECK_INT(n, COUNT(wanted));
    CHECK(n == COUNT(wanted) && memcmp(ports, wanted, sizeof wanted) == 0);
}

TEST(connections_that_lost_their_rule_are_told)
{
    static const char narrower[] =
        "{\"network_policies\":{\"alpha\":{\"binaries\":[{\"path\":\"/usr/bin/curl\"}],"
        "\"endpoints\":[{\"host\":\"api.example.com\",\"port\":443,\"protocol\":\"rest\","
        "\"access\":\"full\"},{\"host\":\"skip.example.com\",\"port\":443},"
        "{\"host\":\"rest.example.com\",\"port\":443}]}}}";
    static const struct {
        const char *host;
        bool still;
    } cases[] = {
        {"api.example.com",    false}, /* was a tunnel, would be looked into */
        {"skip.example.com",   true },
        {"rest.example.com",   true },
        {"a.wild.example.com", false},
    };
    AUTO(net_rules) struct net_rules *before = rules_of(policy);
    AUTO(net_rules) struct net_rules *after = rules_of(narrower);
    struct net_caller caller = caller_of("/usr/bin/curl");

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct net_knock it = {.host = str_of(cases[i].host), .port = 443, .caller = &caller};
        struct net_verdict was;

        net_rules_connect(before, &it, &was);
        CHECK(was.kind != NET_DENY);
        CHECK(net_rules_still_allows(before, &it, &was));
        if (net_rules_still_allows(after, &it, &was) != cases[i].still)
            test_fail(__FILE__, __LINE__, "%s", cases[i].host);
    }
}

TEST(texts_that_are_no_rules_compile_to_nothing)
{
    static const char *const cases[] = {
        "",
        "[]",
        "{\"network_policy\":{}}",
        "{\"network_policies\":[]}",
        "{\"network_policies\":{\"a\":{\"endpoint\":[]}}}",
        "{\"network_policies\":{\"a\":{\"endpoints\":[{\"host\":\"a.example.com\"}]}}}",
        "{\"network_policies\":{\"a\":{\"endpoints\":[{\"host\":\"a.example.com\",\"port\":0}]}}}",
        "{\"network_policies\":{\"a\":{\"endpoints\":[{\"host\":\"127.0.0.1\",\"port\":1}]}}}",
        "{\"network_policies\":{\"a\":{\"endpoints\":[{\"host\":\"127.1\",\"port\":1}]}}}",
        "{\"network_policies\":{\"a\":{\"endpoints\":[{\"host\":\"*.com\",\"port\":1}]}}}",
        "{\"network_policies\":{\"a\":{\"endpoints\":[{\"host\":\"localhost\",\"port\":1}]}}}",
        "{\"network_policies\":{\"a\":{\"endpoints\":[{\"port\":1}]}}}",
        "{\"network_policies\":{\"a\":{\"endpoints\":[{\"allowed_ips\":[\"0.0.0.0/0\"],"
        "\"port\":1}]}}}",
        "{\"network_policies\":{\"a\":{\"endpoints\":[{\"host\":\"x.sandbox.internal\","
        "\"port\":1}]}}}",
        "{\"network_policies\":{\"a\":{\"binaries\":[{}]}}}",
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct net_rules *rules = NULL;
        struct err err;

        if (net_rules_read(str_of(cases[i]), &rules, &err) == 0)
            test_fail(__FILE__, __LINE__, "%s is read", cases[i]);
        CHECK(rules == NULL);
    }
}
