/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/json/json.h"
#include "test.h"

#include <fcntl.h>
#include <stdio.h>

static const struct json *read_json(struct arena *mem, struct str text)
{
    const struct json *value = NULL;
    struct mark where;
    struct err err;

    if (json_parse(mem, text, &value, &where, &err) < 0)
        test_fail(__FILE__, __LINE__, "%u:%u: %s", where.line, where.column, err.text);
    return value;
}

static void check_canonical(struct str text, const char *wanted)
{
    AUTO_ARENA struct arena mem = ARENA(MIB);
    AUTO_BUF struct buf out = BUF(64 * KIB);
    const struct json *value = read_json(&mem, text);
    struct err err = {0};

    if (!value)
        return;
    CHECK_INT(json_canonical(value, &out, &err), 0);
    CHECK_TEXT(err.text, "");
    CHECK_TEXT(buf_text(&out), wanted);
}

TEST(canonical_examples_of_rfc_8785_come_out_byte_for_byte)
{
    static const char *const names[] = {"arrays",  "french", "structures",
                                        "unicode", "values", "weird"};
    const char *vectors = getenv("VECTORS");

    if (!vectors)
        test_skip("VECTORS does not say where tests/vectors is");
    for (size_t i = 0; i < COUNT(names); i++) {
        AUTO_BUF struct buf text = BUF(MIB);
        AUTO_BUF struct buf wanted = BUF(MIB);
        char path[PATH_BYTES_MAX];
        struct err err = {0};

        (void)snprintf(path, sizeof path, "%s/json-canonical/%s.json", vectors, names[i]);
        CHECK_INT(file_read(AT_FDCWD, path, &text, &err), 0);
        (void)snprintf(path, sizeof path, "%s/json-canonical/%s.canonical", vectors, names[i]);
        CHECK_INT(file_read(AT_FDCWD, path, &wanted, &err), 0);
        CHECK_TEXT(err.text, "");
        check_canonical(buf_str(&text), buf_text(&wanted));
    }
}

/* RFC 8785, appendix B. */
TEST(doubles_are_printed_as_in_the_table_of_rfc_8785)
{
    static const struct {
        uint64_t bits;
        const char *text;
    } cases[] = {
        {0x0000000000000000, "0"                        },
        {0x8000000000000000, "0"                        },
        {0x0000000000000001, "5e-324"                   },
        {0x8000000000000001, "-5e-324"                  },
        {0x7fefffffffffffff, "1.7976931348623157e+308"  },
        {0xffefffffffffffff, "-1.7976931348623157e+308" },
        {0x4340000000000000, "9007199254740992"         },
        {0xc340000000000000, "-9007199254740992"        },
        {0x4430000000000000, "295147905179352830000"    },
        {0x44b52d02c7e14af5, "9.999999999999997e+22"    },
        {0x44b52d02c7e14af6, "1e+23"                    },
        {0x44b52d02c7e14af7, "1.0000000000000001e+23"   },
        {0x444b1ae4d6e2ef4e, "999999999999999700000"    },
        {0x444b1ae4d6e2ef4f, "999999999999999900000"    },
        {0x444b1ae4d6e2ef50, "1e+21"                    },
        {0x3eb0c6f7a0b5ed8c, "9.999999999999997e-7"     },
        {0x3eb0c6f7a0b5ed8d, "0.000001"                 },
        {0x41b3de4355555553, "333333333.3333332"        },
        {0x41b3de4355555554, "333333333.33333325"       },
        {0x41b3de4355555555, "333333333.3333333"        },
        {0x41b3de4355555556, "333333333.3333334"        },
        {0x41b3de4355555557, "333333333.33333343"       },
        {0xbecbf647612f3696, "-0.0000033333333333333333"},
        {0x43143ff3c1cb0959, "1424953923781206.2"       },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[64];
        double value;

        memcpy(&value, &cases[i].bits, sizeof value);
        (void)snprintf(text, sizeof text, "%.30e", value);
        check_canonical(str_of(text), cases[i].text);
    }
}

TEST(numbers_are_printed_like_ecmascript)
{
    static const struct {
        const char *text;
        const char *canonical;
    } cases[] = {
        {"-0",                      "0"                      },
        {"-0.0e-5",                 "0"                      },
        {"1.0",                     "1"                      },
        {"10e-1",                   "1"                      },
        {"100",                     "100"                    },
        {"1e2",                     "100"                    },
        {"1e20",                    "100000000000000000000"  },
        {"1e21",                    "1e+21"                  },
        {"-12e-8",                  "-1.2e-7"                },
        {"1e-400",                  "0"                      },
        {"9007199254740991",        "9007199254740991"       },
        {"-9007199254740991",       "-9007199254740991"      },
        {"9007199254740993",        "9007199254740992"       },
        {"18446744073709551615",    "18446744073709552000"   },
        {"123456789012345678901",   "123456789012345680000"  },
        {"0.1",                     "0.1"                    },
        {"5.684341886080802e-14",   "5.684341886080802e-14"  }, /* 2^-44: one unit from nearest */
        {"2.2250738585072014e-308", "2.2250738585072014e-308"},
        {"2.2250738585072011e-308", "2.225073858507201e-308" },
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        check_canonical(str_of(cases[i].text), cases[i].canonical);
}

TEST(a_number_of_a_thousand_digits_is_rounded_once)
{
    const struct str whole = STR_LIT("9007199254740993.");
    char text[1100];

    memset(text, '0', sizeof text);
    memcpy(text, whole.p, whole.n);
    memcpy(text + sizeof text - 2, "1", 2); /* just above half way */
    check_canonical(str_of(text), "9007199254740994");
}

TEST(numbers_that_are_not_finite_doubles_are_refused_when_signed)
{
    AUTO_ARENA struct arena mem = ARENA(MIB);
    AUTO_BUF struct buf out = BUF(1024);
    struct err err;

    CHECK_INT(buf_add_text(&out, "before", &err), 0);
    CHECK_INT(json_canonical(read_json(&mem, STR_LIT("[1,-1e400]")), &out, &err), -1);
    CHECK_INT(err.code, ERR_INVALID);
    CHECK_TEXT(err.text, "number -1e400 is outside the range of a double");
    CHECK_TEXT(buf_text(&out), "before");
}

TEST(texts_escape_only_what_must_be_escaped)
{
    AUTO_ARENA struct arena mem = ARENA(MIB);
    AUTO_BUF struct buf canonical = BUF(1024);
    AUTO_BUF struct buf pretty = BUF(1024);
    struct json *text =
        json_text(&mem, STR_LIT("\0\x01\b\t\n\v\f\r\x1f\"\\/<\x7f\xc2\x9b\xc2\xa0"));
    struct err err;

    CHECK_INT(json_canonical(text, &canonical, &err), 0);
    CHECK_TEXT(buf_text(&canonical), "\"\\u0000\\u0001\\b\\t\\n\\u000b\\f\\r\\u001f\\\"\\\\/<\x7f"
                                     "\xc2\x9b\xc2\xa0\"");
    /* what goes to a terminal must not drive it */
    CHECK_INT(json_pretty(text, &pretty, &err), 0);
    CHECK_TEXT(buf_text(&pretty), "\"\\u0000\\u0001\\b\\t\\n\\u000b\\f\\r\\u001f\\\"\\\\/<\\u007f"
                                  "\\u009b\xc2\xa0\"");
}

TEST(what_misleads_on_a_terminal_is_escaped_on_a_stream)
{
    AUTO_ARENA struct arena mem = ARENA(MIB);
    AUTO_FREE char *printed = NULL;
    size_t printed_n = 0;
    FILE *to = open_memstream(&printed, &printed_n);
    struct json *text = json_text(
        &mem,
        STR_LIT(
            "a\xe2\x80\xae\xe2\x80\x8b\xf3\xa0\x81\x81\xc2\xa0\x7f\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"));
    struct err err;

    CHECK_INT(json_print(text, to, &err), 0);
    CHECK_INT(fclose(to), 0);
    CHECK_TEXT(
        printed,
        "\"a\\u202e\\u200b\\udb40\\udc41\\u00a0\\u007f\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"\n");
}

/* One byte written the long way, as the rules say it. */
static void add_escaped(struct buf *out, unsigned char c, bool for_people)
{
    static const char shorts[] = "\"\"\\\\\bb\tt\nn\ff\rr";
    struct err err;

    for (size_t i = 0; i < sizeof shorts - 1; i += 2)
        if (c == (unsigned char)shorts[i]) {
            CHECK_INT(buf_addf(out, &err, "\\%c", shorts[i + 1]), 0);
            return;
        }
    if (c < 0x20 || (for_people && c == 0x7F))
        CHECK_INT(buf_addf(out, &err, "\\u%04x", c), 0);
    else
        CHECK_INT(buf_add_byte(out, (char)c, &err), 0);
}

static void check_byte_at(unsigned char c, size_t at, bool for_people)
{
    AUTO_ARENA struct arena mem = ARENA(MIB);
    AUTO_BUF struct buf wanted = BUF(64);
    AUTO_BUF struct buf got = BUF(64);
    char text[20];
    struct err err;

    memset(text, 'a', sizeof text);
    text[at] = (char)c;
    CHECK_INT(buf_add_byte(&wanted, '"', &err), 0);
    for (size_t i = 0; i < sizeof text; i++)
        add_escaped(&wanted, (unsigned char)text[i], for_people);
    CHECK_INT(buf_add_byte(&wanted, '"', &err), 0);
    CHECK_INT((for_people ? json_pretty : json_canonical)(
                  json_text(&mem, (struct str){text, sizeof text}), &got, &err),
              0);
    CHECK_TEXT(buf_text(&got), buf_text(&wanted));
}

/* Texts are looked at eight bytes at a time; every byte must be seen in every place. */
TEST(a_byte_is_escaped_wherever_it_stands)
{
    for (unsigned c = 0; c < 0x80; c++)
        for (size_t at = 0; at < 20; at++) {
            check_byte_at((unsigned char)c, at, false);
            check_byte_at((unsigned char)c, at, true);
        }
}

TEST(a_byte_that_is_not_utf8_is_refused_wherever_it_stands)
{
    for (unsigned c = 0x80; c < 0x100; c++)
        for (size_t at = 0; at < 20; at++) {
            AUTO_ARENA struct arena mem = ARENA(MIB);
            AUTO_BUF struct buf out = BUF(64);
            char text[20];
            struct err err;

            memset(text, 'a', sizeof text);
            text[at] = (char)c;
            CHECK_INT(json_canonical(json_text(&mem, (struct str){text, sizeof text}), &out, &err),
                      -1);
            CHECK_TEXT(err.text, "a text is not UTF-8");
        }
}

TEST(texts_and_keys_that_are_not_utf8_are_refused)
{
    AUTO_ARENA struct arena mem = ARENA(MIB);
    AUTO_BUF struct buf out = BUF(1024);
    struct json *object = json_object(&mem);
    struct err err;

    CHECK_INT(json_canonical(json_text(&mem, STR_LIT("\xff")), &out, &err), -1);
    CHECK_INT(err.code, ERR_INVALID);
    CHECK_TEXT(err.text, "a text is not UTF-8");
    json_put_int(&mem, object, "\xc3", 1);
    CHECK_INT(json_compact(object, &out, &err), -1);
    CHECK_TEXT(err.text, "a text is not UTF-8");
    CHECK_INT(out.n, 0);
}

TEST(canonical_refuses_an_object_built_with_a_key_twice)
{
    AUTO_ARENA struct arena mem = ARENA(MIB);
    AUTO_BUF struct buf out = BUF(1024);
    struct json *object = json_object(&mem);
    struct err err;

    json_put_int(&mem, object, "verdict", 1);
    json_put_int(&mem, object, "a", 1);
    json_put_int(&mem, object, "verdict", 2);
    CHECK_INT(json_canonical(object, &out, &err), -1);
    CHECK_INT(err.code, ERR_INVALID);
    CHECK_TEXT(err.text, "duplicate key \"verdict\"");
    CHECK_INT(out.n, 0);
}

TEST(keys_are_sorted_by_utf16_code_units)
{
    static const struct {
        const char *text;
        const char *canonical;
    } cases[] = {
        {"{\"b\":1,\"a\":2,\"\":3,\"ab\":4,\"B\":5}",                                             "{\"\":3,\"B\":5,\"a\":2,\"ab\":4,\"b\":1}"},
        {"{\"\xee\x80\x80\":1,\"\xf0\x90\x80\x80\":2,\"\xed\x9f\xbf\":3,\"\xf4\x8f\xbf\xbf\":4}",
         "{\"\xed\x9f\xbf\":3,\"\xf0\x90\x80\x80\":2,\"\xf4\x8f\xbf\xbf\":4,\"\xee\x80\x80\":1}"                                             },
        {"{\"prefixed\xef\xbf\xbd\":1,\"prefixed\xf0\x9f\x98\x80\":2,\"prefixed\":3}",
         "{\"prefixed\":3,\"prefixed\xf0\x9f\x98\x80\":2,\"prefixed\xef\xbf\xbd\":1}"                                                        },
        {"{\"a\\u0000\":1,\"a\":2}",                                                              "{\"a\":2,\"a\\u0000\":1}"                 },
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        check_canonical(str_of(cases[i].text), cases[i].canonical);
}

/* Small objects are sorted one way, large ones another. */
TEST(objects_of_any_size_are_sorted)
{
    for (int n = 0; n < 300; n += 7) {
        AUTO_BUF struct buf text = BUF(64 * KIB);
        AUTO_BUF struct buf wanted = BUF(64 * KIB);
        struct err err;

        CHECK_INT(buf_add_byte(&text, '{', &err), 0);
        CHECK_INT(buf_add_byte(&wanted, '{', &err), 0);
        for (int i = 0; i < n; i++) {
            int mixed = i * 7919 % n; /* a permutation: 7919 is a prime above n */

            CHECK_INT(buf_addf(&text, &err, "%s\"a_long_prefix_%03d\":0", i ? "," : "", mixed), 0);
            CHECK_INT(buf_addf(&wanted, &err, "%s\"a_long_prefix_%03d\":0", i ? "," : "", i), 0);
        }
        CHECK_INT(buf_add_byte(&text, '}', &err), 0);
        CHECK_INT(buf_add_byte(&wanted, '}', &err), 0);
        check_canonical(buf_str(&text), buf_text(&wanted));
    }
}

TEST(pretty_keeps_the_order_and_indents_by_two)
{
    AUTO_ARENA struct arena mem = ARENA(MIB);
    AUTO_BUF struct buf out = BUF(1024);
    struct err err;

    CHECK_INT(json_pretty(read_json(&mem, STR_LIT("{\"b\":[1,{\"c\":1.50}],\"a\":{},\"d\":[]}")),
                          &out, &err),
              0);
    CHECK_TEXT(buf_text(&out), "{\n"
                               "  \"b\": [\n"
                               "    1,\n"
                               "    {\n"
                               "      \"c\": 1.50\n"
                               "    }\n"
                               "  ],\n"
                               "  \"a\": {},\n"
                               "  \"d\": []\n"
                               "}");
}

TEST(writing_stops_at_the_ceiling_of_the_buffer)
{
    AUTO_ARENA struct arena mem = ARENA(MIB);
    const struct json *value = read_json(&mem, STR_LIT("{\"b\":[1,\"x\\ny\",true],\"a\":null}"));
    const size_t whole = strlen("{\"a\":null,\"b\":[1,\"x\\ny\",true]}");

    for (size_t max = 0; max <= whole; max++) {
        AUTO_BUF struct buf out = BUF(max);
        struct err err;

        CHECK_INT(json_canonical(value, &out, &err), max < whole ? -1 : 0);
        CHECK_INT(out.n, max < whole ? 0 : whole);
        if (max < whole)
            CHECK_INT(err.code, ERR_LIMIT);
    }
}

TEST(printing_to_a_stream_gives_the_pretty_form_whatever_the_size)
{
    static const size_t sizes[] = {0, 1, 1000, 65535, 65536, 65537, 300000};

    for (size_t i = 0; i < COUNT(sizes); i++)
        for (unsigned char filling = 0; filling < 2; filling++) {
            AUTO_ARENA struct arena mem = ARENA(8 * MIB);
            AUTO_BUF struct buf wanted = BUF(4 * MIB);
            AUTO_FREE char *text = xmalloc(sizes[i] + 1);
            AUTO_FREE char *printed = NULL;
            size_t printed_n = 0;
            FILE *to = open_memstream(&printed, &printed_n);
            struct json *object = json_object(&mem);
            struct err err;

            memset(text, filling ? 'x' : 0, sizes[i]); /* zeros take six characters each */
            json_put_bytes(&mem, object, "text", (struct str){text, sizes[i]});
            json_put_int(&mem, object, "n", 1);
            CHECK_INT(json_pretty(object, &wanted, &err), 0);
            CHECK_INT(buf_add_byte(&wanted, '\n', &err), 0);
            CHECK_INT(json_print(object, to, &err), 0);
            CHECK_INT(fclose(to), 0);
            CHECK_INT(printed_n, wanted.n);
            CHECK(printed_n == wanted.n && memcmp(printed, wanted.p, printed_n) == 0);
        }
}
