/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "cmd/image/challenge.h"

#include <string.h>

TEST(challenges_are_read)
{
    static const struct {
        const char *header;
        bool bearer;
        const char *realm, *service;
    } cases[] = {
        {"Bearer realm=\"https://a/t\",service=\"s\",scope=\"x:y:z\"", true,  "https://a/t", "s"},
        {"bearer  realm=\"https://a/t\" , service=s",                  true,  "https://a/t", "s"},
        {"Basic realm=\"here\"",                                       false, "here",        "" },
        {"Basic",                                                      false, "",            "" },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        AUTO_ARENA struct arena mem = ARENA(1 << 16);
        struct challenge challenge;
        struct err err;

        CHECK_INT(challenge_parse(&mem, str_of(cases[i].header), &challenge, &err), 0);
        CHECK_INT(challenge.bearer, cases[i].bearer);
        CHECK_TEXT(challenge.realm, cases[i].realm);
        CHECK_TEXT(challenge.service, cases[i].service);
    }
}

TEST(challenges_that_make_no_sense_are_refused)
{
    static const char *const cases[] = {
        "",
        "Negotiate",
        "Digest realm=\"x\"",
        "Bearer",
        "Bearer service=\"x\"",
        "Bearer realm",
        "Bearer realm=\"open",
        "Bearer realm=\"a\\\"b\"",
        "Bearer =x",
        "Bearer \"x\"",
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        AUTO_ARENA struct arena mem = ARENA(1 << 16);
        struct challenge challenge;
        struct err err;

        if (challenge_parse(&mem, str_of(cases[i]), &challenge, &err) == 0)
            test_fail(__FILE__, __LINE__, "accepted: %s", cases[i]);
    }
}

TEST(queries_are_escaped)
{
    AUTO_ARENA struct arena mem = ARENA(1 << 16);

    CHECK_TEXT(url_escape(&mem, "a b&c=d/\xff~"), "a%20b%26c%3Dd%2F%FF~");
}
