/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <stdio.h>

#include "cmd/egress/account.h"

static struct refusal refusal_of(const char *host)
{
    return (struct refusal){.host = str_of(host),
                            .port = 443,
                            .method = STR_LIT("GET"),
                            .path = STR_LIT("/users/17"),
                            .binary = STR_LIT("/usr/bin/curl"),
                            .reason = "EGRESS_NO_RULE"};
}

static int64_t number(const struct json *root, const char *pointer)
{
    int64_t value = -1;

    (void)json_is_int(json_at(root, pointer), &value);
    return value;
}

TEST(sums_and_rules_agree)
{
    AUTO_ARENA struct arena mem = ARENA(1 * MIB);
    AUTO(account) struct account *account = account_new();
    const struct json *told;

    account_add(account, "a", &(struct counts){.requests = 2, .bytes_out = 10});
    account_add(account, "b",
                &(struct counts){.requests = 3, .bytes_in = 5, .secrets = 2, .scrubbed = 1});
    account_add(account, "a", &(struct counts){.connections = 1});
    account_add(account, "", &(struct counts){.bytes_in = 1});
    told = account_json(account, &mem);
    CHECK_INT(number(told, "/requests"), 5);
    CHECK_INT(number(told, "/bytes_in"), 6);
    CHECK_INT(number(told, "/secrets"), 2);
    CHECK_INT(number(told, "/rules/1/scrubbed"), 1);
    CHECK_INT(number(told, "/rules/0/requests"), 2);
    CHECK_INT(number(told, "/rules/0/connections"), 1);
    CHECK_INT(number(told, "/rules/1/bytes_in"), 5);
    CHECK_INT(number(told, "/rules_left_out"), 0);
}

TEST(the_same_refusal_is_one_line)
{
    AUTO_ARENA struct arena mem = ARENA(1 * MIB);
    AUTO(account) struct account *account = account_new();
    struct refusal refusal = refusal_of("evil.test");
    const struct json *told;

    for (unsigned i = 0; i < 1000; i++)
        account_refuse(account, "", &refusal);
    refusal.path = STR_LIT("/users/18"); /* of the same shape */
    account_refuse(account, "", &refusal);
    told = account_json(account, &mem);
    CHECK_INT(json_get(told, "refusals")->n, 1);
    CHECK_INT(number(told, "/refusals/0/count"), 1001);
    CHECK_INT(number(told, "/refused"), 1001);
}

TEST(a_flood_of_refusals_is_counted_and_bounded)
{
    AUTO_ARENA struct arena mem = ARENA(16 * MIB);
    AUTO(account) struct account *account = account_new();
    const struct json *told;
    char host[32];

    for (unsigned i = 0; i < 5000; i++) {
        struct refusal refusal;

        (void)snprintf(host, sizeof host, "h%u.test", i);
        refusal = refusal_of(host);
        account_refuse(account, "", &refusal);
    }
    told = account_json(account, &mem);
    CHECK_INT(number(told, "/refused"), 5000);
    CHECK_INT(json_get(told, "refusals")->n, ACCOUNT_REFUSALS_MAX);
    CHECK_INT(number(told, "/refusals_left_out"), 5000 - ACCOUNT_REFUSALS_MAX);
}

TEST(more_rules_than_fit_are_in_the_sums)
{
    AUTO_ARENA struct arena mem = ARENA(16 * MIB);
    AUTO(account) struct account *account = account_new();
    const struct json *told;
    char rule[32];

    for (unsigned i = 0; i < 2 * ACCOUNT_RULES_MAX; i++) {
        (void)snprintf(rule, sizeof rule, "rule-%u", i);
        account_add(account, rule, &(struct counts){.requests = 1});
    }
    told = account_json(account, &mem);
    CHECK_INT(number(told, "/requests"), 2 * ACCOUNT_RULES_MAX);
    CHECK_INT(json_get(told, "rules")->n, ACCOUNT_RULES_MAX);
    CHECK_INT(number(told, "/rules_left_out"), ACCOUNT_RULES_MAX);
}

TEST(paths_have_shapes)
{
    static const struct {
        const char *path;
        const char *shape;
    } cases[] = {
        {"/",                                         "/"             },
        {"/users/17/keys",                            "/users/{}/keys"},
        {"/v1/chat",                                  "/v1/chat"      },
        {"/o/3f2a9c4e-1111-4222-8333-abcdefabcdef/x", "/o/{}/x"       },
        {"/deadbeef",                                 "/deadbeef"     },
        {"/a b\x01\xff",                              "/a?b??"        },
        {"//17//",                                    "//{}//"        },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char out[SAID_PATH_MAX + 1];

        CHECK_INT(path_shape(str_of(cases[i].path), out), strlen(cases[i].shape));
        CHECK_TEXT(out, cases[i].shape);
    }
}
