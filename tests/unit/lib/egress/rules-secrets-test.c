/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/egress/rules.h"
#include "lib/vault/vault.h"
#include "test.h"

static struct net_rules *rules_of(const char *json)
{
    struct net_rules *rules = NULL;
    struct err err;

    if (net_rules_read(str_of(json), &rules, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    return rules;
}

static struct vault_question question_of(const char *name, const char *slot)
{
    struct vault_question question = {.tenant = "other",
                                      .subject = "uid:1000",
                                      .pack = "",
                                      .host = "api.test",
                                      .port = 443,
                                      .scheme = "https",
                                      .method = "GET",
                                      .path = "/v1/x",
                                      .name = name};
    struct err err;

    CHECK_INT(vault_slot_parse(str_of(slot), &question.slot, &err), 0);
    return question;
}

static const char policy[] =
    "{\"secrets\":["
    "{\"host\":\"api.test\",\"line\":3,\"method\":\"GET\",\"name\":\"KEY\",\"path\":\"/v1/**\","
    "\"slot\":\"header:authorization\"},"
    "{\"host\":\"api.test\",\"line\":4,\"name\":\"KEY\",\"port\":8080,\"scheme\":\"http\","
    "\"slot\":\"query:key\"}]}";

TEST(what_is_listed_goes_and_nothing_else)
{
    static const struct {
        const char *name, *slot, *host, *scheme, *method, *path;
        unsigned port;
        bool goes;
    } cases[] = {
        {"KEY",   "header:authorization", "api.test", "https", "GET",  "/v1/x",    443,  true },
        {"KEY",   "query:key",            "api.test", "http",  "POST", "/any",     8080, true },
        {"OTHER", "header:authorization", "api.test", "https", "GET",  "/v1/x",    443,  false},
        {"KEY",   "header:x-api-key",     "api.test", "https", "GET",  "/v1/x",    443,  false},
        {"KEY",   "header:authorization", "www.test", "https", "GET",  "/v1/x",    443,  false},
        {"KEY",   "header:authorization", "api.test", "http",  "GET",  "/v1/x",    443,  false},
        {"KEY",   "header:authorization", "api.test", "https", "POST", "/v1/x",    443,  false},
        {"KEY",   "header:authorization", "api.test", "https", "GET",  "/v2/x",    443,  false},
        {"KEY",   "header:authorization", "api.test", "https", "GET",  "/v1/../x", 443,  false},
        {"KEY",   "header:authorization", "api.test", "https", "GET",  "/v1/x",    8080, false},
        {"KEY",   "query:key",            "api.test", "https", "GET",  "/v1/x",    443,  false},
    };
    AUTO(net_rules) struct net_rules *rules = rules_of(policy);

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct vault_question question = question_of(cases[i].name, cases[i].slot);

        question.host = cases[i].host;
        question.scheme = cases[i].scheme;
        question.method = cases[i].method;
        question.path = cases[i].path;
        question.port = cases[i].port;
        if (net_rules_secret(rules, &question) != cases[i].goes)
            test_fail(__FILE__, __LINE__, "case %zu", i);
    }
}

TEST(no_list_leaves_it_to_the_vault_and_an_empty_one_lets_nothing_go)
{
    AUTO(net_rules) struct net_rules *none = rules_of("{\"network_policies\":{}}");
    AUTO(net_rules) struct net_rules *empty = rules_of("{\"secrets\":[]}");
    struct vault_question question = question_of("KEY", "header:authorization");

    CHECK(net_rules_secret(none, &question));
    CHECK(!net_rules_secret(empty, &question));
}

TEST(texts_that_list_no_secrets_compile_to_nothing)
{
    static const char *const cases[] = {
        "{\"secrets\":{}}",
        "{\"secrets\":[1]}",
        "{\"secrets\":[{}]}",
        "{\"secrets\":[{\"host\":\"a.test\",\"slot\":\"query:k\"}]}",
        "{\"secrets\":[{\"name\":\"K\",\"slot\":\"query:k\"}]}",
        "{\"secrets\":[{\"host\":\"a.test\",\"name\":\"K\"}]}",
        "{\"secrets\":[{\"host\":\"*.test\",\"name\":\"K\",\"slot\":\"query:k\"}]}",
        "{\"secrets\":[{\"host\":\"a.test\",\"name\":\"K\",\"port\":0,\"slot\":\"query:k\"}]}",
        "{\"secrets\":[{\"host\":\"a.test\",\"name\":\"K\",\"slot\":\"query:k\",\"x\":1}]}",
        "{\"secrets\":[{\"host\":\"a.test\",\"method\":\"get\",\"name\":\"K\",\"slot\":\"query:k\"}]}",
        "{\"secrets\":[{\"host\":\"a.test\",\"name\":\"a\\u0000b\",\"slot\":\"query:k\"}]}",
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct net_rules *rules = NULL;
        struct err err;

        if (net_rules_read(str_of(cases[i]), &rules, &err) == 0)
            test_fail(__FILE__, __LINE__, "case %zu was read", i);
        CHECK(rules == NULL);
    }
}
