/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "lib/base/attrs.h"
#include "lib/vault/vault-use.h"

#define SECRET "S3cr/t+ \"K%y\""

static const struct str secret = STR_LIT(SECRET);

/* Many stars are one: how many there are follows from the length, which stays. */
static void check_scrubbed(const struct buf *got, size_t length, const char *wanted)
{
    AUTO_BUF struct buf short_form = BUF(1024);
    struct err err;

    CHECK_INT(got->n, length);
    for (size_t i = 0; i < got->n; i++)
        if (i == 0 || got->p[i] != '*' || got->p[i - 1] != '*')
            CHECK_INT(buf_add_byte(&short_form, got->p[i], &err), 0);
    CHECK_TEXT(buf_text(&short_form), wanted);
}

TEST(every_form_is_taken_out_however_it_is_cut)
{
    static const struct {
        const char *in;
        const char *out;
    } cases[] = {
  /* clang-format off */
        {"a " SECRET " b", "a * b"},
        {SECRET SECRET, "*"},
        {"S3cr/S3cr/t+ \"K%y\"", "S3cr/*"},
        {"S3cr/t+ \"K%x\"", "S3cr/t+ \"K%x\""},
        {"x=S3cr%2Ft%2B%20%22K%25y%22&", "x=*&"},
        {"x=S3cr%2ft%2b+%22K%25y%22&", "x=*&"},
        {"x=%53%33%63%72%2F%74%2B%20%22%4B%25%79%22&", "x=*&"},
        {"S3cr%252Ft%252B%2520%2522K%2525y%2522", "*"},
        {"\"S3cr/t+ \\\"K%y\\\"\"", "\"*\""},
        {"\"S3cr\\/t\\u002b \\u0022K%y\\\"\"", "\"*\""},
        {"S3cr%25252Ft%25252B%252520%252522K%252525y%252522", "*"},
        {"533363722f742b20224b257922", "*"},
        {"533363722F742B20224B257922", "*"},
        {"", ""},
        {"S", "S"},
  /* clang-format on */
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct str in = str_of(cases[i].in);

        for (size_t cut = 0; cut <= in.n; cut++) {
            AUTO(vault_scrub) struct vault_scrub *scrub = NULL;
            AUTO_BUF struct buf out = BUF(1024);
            struct err err;

            CHECK_INT(vault_scrub_new(&secret, 1, &scrub, &err), 0);
            CHECK_INT(vault_scrub_feed(scrub, (struct str){in.p, cut}, false, &out, &err), 0);
            CHECK_INT(
                vault_scrub_feed(scrub, (struct str){in.p + cut, in.n - cut}, true, &out, &err), 0);
            check_scrubbed(&out, in.n, cases[i].out);
        }
    }
}

TEST(base64_is_taken_out_at_every_alignment)
{
    static const char *const cases[] = {
        "UzNjci90KyAiSyV5Ig==",         /* the secret */
        "eFMzY3IvdCsgIksleSI=",         /* x before it */
        "eHhTM2NyL3QrICJLJXki",         /* xx before it */
        "eHhTM2NyL3QrICJLJXkiZnJvbQ==", /* and something behind */
        "eHhTM2NyL3QrICJLJXki",         "eHg6UzNjci90KyAiSyV5Ig",
        "dXNlcjpTM2NyL3QrICJLJXki",     "eHg_UzNjci90KyAiSyV5Ig",
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        AUTO(vault_scrub) struct vault_scrub *scrub = NULL;
        char text[64];
        struct err err;

        (void)strcpy(text, cases[i]);
        CHECK_INT(vault_scrub_new(&secret, 1, &scrub, &err), 0);
        CHECK(vault_scrub_text(scrub, text, strlen(text)));
        CHECK_INT(vault_scrub_hits(scrub), 1);
        CHECK(strstr(text, "***************") != NULL);
    }
}

TEST(bytes_one_by_one_give_the_same)
{
    static const char in[] = "{\"echo\": \"" SECRET "\", \"b\": \"UzNjci90KyAiSyV5Ig==\"} S3cr";
    AUTO(vault_scrub) struct vault_scrub *scrub = NULL;
    AUTO_BUF struct buf out = BUF(1024);
    struct err err;

    CHECK_INT(vault_scrub_new(&secret, 1, &scrub, &err), 0);
    for (size_t i = 0; i < sizeof in - 1; i++) {
        CHECK_INT(vault_scrub_feed(scrub, (struct str){in + i, 1}, false, &out, &err), 0);
        CHECK(i + 1 - out.n <= vault_scrub_held_max(scrub));
    }
    CHECK_INT(vault_scrub_feed(scrub, (struct str){"", 0}, true, &out, &err), 0);
    check_scrubbed(&out, sizeof in - 1, "{\"echo\": \"*\", \"b\": \"*g==\"} S3cr");
    CHECK_INT(vault_scrub_hits(scrub), 2);
}

TEST(several_values_are_looked_for_at_once)
{
    const struct str values[] = {STR_LIT("first-value"), STR_LIT("second-value")};
    AUTO(vault_scrub) struct vault_scrub *scrub = NULL;
    char text[] = "a second-value and a first-value";
    struct err err;

    CHECK_INT(vault_scrub_new(values, 2, &scrub, &err), 0);
    CHECK(vault_scrub_text(scrub, text, strlen(text)));
    CHECK_TEXT(text, "a ************ and a ***********");
}

TEST(a_value_that_comes_later_is_looked_for_from_there_on)
{
    const struct str values[] = {STR_LIT("first-value"), STR_LIT("a-longer-second-value")};
    static const char in[] = "first-value first-value, a-longer-second-value";

    for (size_t cut = 0; cut < sizeof in; cut++) {
        AUTO(vault_scrub) struct vault_scrub *before = NULL;
        AUTO(vault_scrub) struct vault_scrub *scrub = NULL;
        AUTO_BUF struct buf out = BUF(1024);
        struct err err;

        CHECK_INT(vault_scrub_new(values, 1, &before, &err), 0);
        CHECK_INT(vault_scrub_feed(before, (struct str){in, cut}, false, &out, &err), 0);
        CHECK_INT(vault_scrub_new(values, 2, &scrub, &err), 0);
        vault_scrub_follow(scrub, before);
        CHECK_INT(
            vault_scrub_feed(scrub, (struct str){in + cut, sizeof in - 1 - cut}, true, &out, &err),
            0);
        CHECK_INT(out.n, sizeof in - 1);
        CHECK(memcmp(out.p, "*********** ***********, ", 25) == 0);
        if (cut <= 25) { /* it began behind that */
            CHECK(memcmp(out.p + 25, "*********************", 21) == 0);
            CHECK_INT(vault_scrub_hits(scrub), 3);
        }
    }
}

TEST(short_values_are_no_secrets)
{
    const struct str value = STR_LIT("short");
    struct vault_scrub *scrub = NULL;
    struct err err;

    CHECK_INT(vault_scrub_new(&value, 1, &scrub, &err), -1);
    CHECK_TEXT(err.text, "a secret has 8 to 8192 bytes");
    CHECK(scrub == NULL);
}

TEST(a_compressed_answer_is_a_fault)
{
    const struct http_header plain = {STR_LIT("Content-Encoding"), STR_LIT("identity")};
    const struct http_header coded = {STR_LIT("Content-Encoding"), STR_LIT("gzip")};

    CHECK_INT(vault_answer_check(&plain, 1), VAULT_NO_FAULT);
    CHECK_INT(vault_answer_check(NULL, 0), VAULT_NO_FAULT);
    CHECK_INT(vault_answer_check(&coded, 1), VAULT_FAULT_ENCODED_ANSWER);
}
