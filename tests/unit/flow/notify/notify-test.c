/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "flow/notify/notify-private.h"
#include "lib/base/limits.h"
#include "lib/json/json.h"

/* The vector that the reference libraries of Standard Webhooks are tested with. */
TEST(signature_is_that_of_standard_webhooks)
{
    char signature[NOTIFY_SIGNATURE_BYTES];
    struct notify_key key;
    struct err err;

    CHECK_INT(notify_key_parse(STR_LIT("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), &key, &err), 0);
    CHECK_INT(key.n, 24);
    CHECK_INT(notify_sign(&key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330,
                          STR_LIT("{\"test\": 2432232314}"), signature, &err),
              0);
    CHECK_TEXT(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
}

TEST(secret_is_coded_or_bytes_and_long_enough)
{
    static const struct {
        const char *text;
        size_t n; /* 0: refused */
    } cases[] = {
        {"",                                                                  0 },
        {"whsec_",                                                            0 },
        {"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLa",                              0 },
        {"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS!",                            0 },
        {"a text of 23 bytes, no.",                                           0 },
        {"a text of 24 bytes, yes.",                                          24},
        {"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",  64},
        {"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0", 0 },
    };
    struct notify_key key;
    struct err err;

    for (size_t i = 0; i < COUNT(cases); i++) {
        int got = notify_key_parse(str_of(cases[i].text), &key, &err);

        CHECK_INT(got, cases[i].n ? 0 : -1);
        CHECK_INT(key.n, cases[i].n);
    }
}

static const char *summary(struct arena *mem, const char *subject)
{
    const struct notify_event event = {.type = "approval.pending",
                                       .tenant = "t",
                                       .id = "i",
                                       .digest = "d",
                                       .requester = "r\n",
                                       .state = "pending",
                                       .subject = subject,
                                       .quorum = 1};
    AUTO_BUF struct buf text = BUF(NOTIFY_BODY_MAX);
    const struct json *json = NULL;
    struct mark where;
    struct str got = {0};
    struct err err;

    CHECK_INT(notify_event_text(&event, &text, &err), 0);
    CHECK_INT(json_parse(mem, arena_str(mem, buf_str(&text)), &json, &where, &err), 0);
    CHECK(json_is_text(json_at(json, "/data/requester"), &got));
    CHECK(str_is(got, "r\\x0a"));
    return json_is_text(json_at(json, "/data/summary"), &got) ? arena_text(mem, got) : NULL;
}

TEST(summary_is_short_and_escaped)
{
    AUTO_ARENA struct arena mem = ARENA(8 * MIB);
    const char *long_one;

    CHECK_TEXT(summary(&mem, "{\"command\":[\"git\",\"push\"],\"env\":[\"A=hush\"]}"), "git push");
    CHECK_TEXT(summary(&mem, "{\"command\":[\"a\\u001b[1m\",{\"bytes_b64\":\"/w==\"}]}"),
               "a\\x1b[1m (bytes)");
    CHECK_TEXT(summary(&mem, "{\"command\":[]}"), "");
    CHECK_TEXT(summary(&mem, "{}"), "");
    CHECK(summary(&mem, "not json") == NULL);
    /* Cut between characters, wherever the end falls. */
    for (int shift = 0; shift < 4; shift++) {
        char subject[2048] = "{\"command\":[\"";

        for (int i = 0; i < shift; i++)
            (void)strcat(subject, "x");
        for (int i = 0; i < 300; i++)
            (void)strcat(subject, "€");
        (void)strcat(subject, "\"]}");
        long_one = summary(&mem, subject);
        CHECK(long_one && strlen(long_one) <= 200 && strlen(long_one) > 190);
        CHECK(long_one && str_is_utf8(str_of(long_one)) && str_ends(str_of(long_one), "…"));
    }
}
