/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/limits.h"
#include "lib/json/json.h"
#include "test.h"

#include <stdio.h>

#define T(literal)                                                                                 \
    {                                                                                              \
        literal, sizeof(literal) - 1                                                               \
    }

static int read_json(struct arena *mem, struct str text, const struct json **out,
                     struct mark *where, struct err *err)
{
    *out = NULL;
    *where = (struct mark){0, 0};
    memset(err, 0, sizeof *err);
    return json_parse(mem, text, out, where, err);
}

TEST(what_the_grammar_allows_is_read)
{
    static const struct {
        struct str text;
        const char *compact;
    } cases[] = {
        {T("0"),                              "0"                             },
        {T(" \t\r\n1 \t\r\n"),                "1"                             },
        {T("-0"),                             "-0"                            },
        {T("1e5"),                            "1e5"                           },
        {T("1E+5"),                           "1E+5"                          },
        {T("-1.50e-07"),                      "-1.50e-07"                     },
        {T("1e400"),                          "1e400"                         },
        {T("123456789012345678901234567890"), "123456789012345678901234567890"},
        {T("true"),                           "true"                          },
        {T("false"),                          "false"                         },
        {T("null"),                           "null"                          },
        {T("\"\""),                           "\"\""                          },
        {T("[]"),                             "[]"                            },
        {T("[ ]"),                            "[]"                            },
        {T("{ }"),                            "{}"                            },
        {T("[1,[2,[3]]]"),                    "[1,[2,[3]]]"                   },
        {T("{\"b\":1,\"a\":2}"),              "{\"b\":1,\"a\":2}"             },
        {T("{\"\":{}}"),                      "{\"\":{}}"                     },
        {T("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\""), "\"\\\"\\\\/\\b\\f\\n\\r\\t\""  },
        {T("\"\\u0041\\u00e9\\u20AC\""),      "\"A\xc3\xa9\xe2\x82\xac\""     },
        {T("\"\\ud83d\\ude00\""),             "\"\xf0\x9f\x98\x80\""          },
        {T("\"\\uDBFF\\uDFFF\""),             "\"\xf4\x8f\xbf\xbf\""          },
        {T("\"\\u0000\""),                    "\"\\u0000\""                   },
        {T("\"\x7f\""),                       "\"\x7f\""                      },
        {T("\"\xef\xbf\xbf\""),               "\"\xef\xbf\xbf\""              },
        {T("\"\xef\xbb\xbf\""),               "\"\xef\xbb\xbf\""              },
        {T("\"a\\nb\xc3\xa9\\tc\""),          "\"a\\nb\xc3\xa9\\tc\""         },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        AUTO_ARENA struct arena mem = ARENA(MIB);
        AUTO_BUF struct buf out = BUF(1024);
        const struct json *value;
        struct mark where;
        struct err err;

        CHECK_INT(read_json(&mem, cases[i].text, &value, &where, &err), 0);
        CHECK_TEXT(err.text, "");
        if (!value)
            continue;
        CHECK_INT(json_compact(value, &out, &err), 0);
        CHECK_TEXT(buf_text(&out), cases[i].compact);
    }
}

TEST(what_the_grammar_does_not_allow_is_refused_where_it_stands)
{
    static const struct {
        struct str text;
        struct mark where;
        const char *message;
    } cases[] = {
        {T(""),                                {1, 1},  "expected a value, but the text ends here"                           },
        {T(" \n "),                            {2, 2},  "expected a value, but the text ends here"                           },
        {T("\xef\xbb\xbf{}"),                  {1, 1},  "a byte order mark: save the text without one"                       },
        {T("{} x"),                            {1, 4},  "expected the end of the text, found 'x'"                            },
        {T("1 2"),                             {1, 3},  "expected the end of the text, found '2'"                            },
        {T("{}\0"),                            {1, 3},  "expected the end of the text, found the byte 0x00"                  },
        {T("\0"),                              {1, 1},  "expected a value, found the byte 0x00"                              },
        {T("[1,]"),                            {1, 4},  "expected a value, found ']'"                                        },
        {T("[,1]"),                            {1, 2},  "expected a value, found ','"                                        },
        {T("[1 2]"),                           {1, 4},  "expected ',' or ']', found '2'"                                     },
        {T("[1"),                              {1, 3},  "expected ',' or ']', but the text ends here"                        },
        {T("[1}"),                             {1, 3},  "expected ',' or ']', found '}'"                                     },
        {T("{\"a\":1,}"),                      {1, 8},  "expected a key in quotes, found '}'"                                },
        {T("{a:1}"),                           {1, 2},  "expected a key in quotes, found 'a'"                                },
        {T("{'a':1}"),                         {1, 2},  "expected a key in quotes, found '''"                                },
        {T("{1:1}"),                           {1, 2},  "expected a key in quotes, found '1'"                                },
        {T("{\"a\" 1}"),                       {1, 6},  "expected ':' after the key, found '1'"                              },
        {T("{\"a\":}"),                        {1, 6},  "expected a value, found '}'"                                        },
        {T("{\"a\":1 \"b\":2}"),               {1, 8},  "expected ',' or '}', found '\"'"                                    },
        {T("[1] // no"),                       {1, 5},  "expected the end of the text, found '/'"                            },
        {T("tru"),                             {1, 1},  "expected a value, found 't'"                                        },
        {T("truex"),                           {1, 5},  "expected the end of the text, found 'x'"                            },
        {T("True"),                            {1, 1},  "expected a value, found 'T'"                                        },
        {T("NaN"),                             {1, 1},  "expected a value, found 'N'"                                        },
        {T("-Infinity"),                       {1, 2},  "expected a digit, found 'I'"                                        },
        {T("01"),                              {1, 1},  "a number must not start with a zero"                                },
        {T("-012"),                            {1, 2},  "a number must not start with a zero"                                },
        {T("+1"),                              {1, 1},  "expected a value, found '+'"                                        },
        {T(".5"),                              {1, 1},  "expected a value, found '.'"                                        },
        {T("1."),                              {1, 3},  "expected a digit, but the text ends here"                           },
        {T("1.e1"),                            {1, 3},  "expected a digit, found 'e'"                                        },
        {T("1e"),                              {1, 3},  "expected a digit, but the text ends here"                           },
        {T("1e+]"),                            {1, 4},  "expected a digit, found ']'"                                        },
        {T("-"),                               {1, 2},  "expected a digit, but the text ends here"                           },
        {T("0x1F"),                            {1, 2},  "expected the end of the text, found 'x'"                            },
        {T("1_000"),                           {1, 2},  "expected the end of the text, found '_'"                            },
        {T("\"a"),                             {1, 3},  "a string without its closing quote"                                 },
        {T("\"a\\"),                           {1, 3},  "unknown escape; known are \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX"},
        {T("\"\\x41\""),
         {1, 2},
         "unknown escape; known are \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX"                                               },
        {T("\"\\u12g4\""),                     {1, 2},  "\\u needs four hex digits"                                          },
        {T("\"\\u12"),                         {1, 2},  "\\u needs four hex digits"                                          },
        {T("\"a\nb\""),                        {1, 3},  "a control character in a string: write it as \\u000a"               },
        {T("\"a\tb\""),                        {1, 3},  "a control character in a string: write it as \\u0009"               },
        {T("\"a\0b\""),                        {1, 3},  "a control character in a string: write it as \\u0000"               },
        {T("\"\\ud800\""),                     {1, 2},  "half a surrogate pair: \\ud800"                                     },
        {T("\"\\ud800x\""),                    {1, 2},  "half a surrogate pair: \\ud800"                                     },
        {T("\"\\ud800\\n\""),                  {1, 2},  "half a surrogate pair: \\ud800"                                     },
        {T("\"\\ud800\\u0041\""),              {1, 2},  "half a surrogate pair: \\ud800"                                     },
        {T("\"\\ud800\\ud800\""),              {1, 2},  "half a surrogate pair: \\ud800"                                     },
        {T("\"x\\udc00\""),                    {1, 3},  "half a surrogate pair: \\udc00"                                     },
        {T("\"\xff\""),                        {1, 2},  "not UTF-8"                                                          },
        {T("\"a\xc0\x80\""),                   {1, 3},  "not UTF-8"                                                          },
        {T("\"\xe0\x80\xaf\""),                {1, 2},  "not UTF-8"                                                          },
        {T("\"\xed\xa0\x80\""),                {1, 2},  "not UTF-8"                                                          },
        {T("\"\xf4\x90\x80\x80\""),            {1, 2},  "not UTF-8"                                                          },
        {T("\"\xc3\""),                        {1, 2},  "not UTF-8"                                                          },
        {T("\"\\n\xc3\xa9\x80\""),             {1, 6},  "not UTF-8"                                                          },
        {T("[\xc2\xa0]"),                      {1, 2},  "expected a value, found the byte 0xc2"                              },
        {T("[\x0c]"),                          {1, 2},  "expected a value, found the byte 0x0c"                              },
        {T("{\"a\":1,\n \"a\":2}"),            {2, 2},  "duplicate key \"a\""                                                },
        {T("{\"a\":1,\"\\u0061\":2}"),         {1, 8},  "duplicate key \"a\""                                                },
        {T("[{\"x\":{\"\\n\":1,\"\\n\":1}}]"), {1, 15}, "duplicate key \"\\x0a\""                                            },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        AUTO_ARENA struct arena mem = ARENA(MIB);
        const struct json *value;
        struct mark where;
        struct err err;

        CHECK_INT(read_json(&mem, cases[i].text, &value, &where, &err), -1);
        CHECK_INT(err.code, ERR_INVALID);
        CHECK_TEXT(err.text, cases[i].message);
        CHECK_INT(where.line, cases[i].where.line);
        CHECK_INT(where.column, cases[i].where.column);
        CHECK(value == NULL);
    }
}

static void fill_nested(char *text, unsigned levels)
{
    memset(text, '[', levels);
    memset(text + levels, ']', levels);
}

TEST(nesting_is_read_up_to_the_ceiling_and_refused_beyond)
{
    AUTO_ARENA struct arena mem = ARENA(MIB);
    char text[2 * (JSON_DEPTH_MAX + 1)];
    const struct json *value;
    struct mark where;
    struct err err;

    fill_nested(text, JSON_DEPTH_MAX);
    CHECK_INT(read_json(&mem, (struct str){text, 2 * JSON_DEPTH_MAX}, &value, &where, &err), 0);
    fill_nested(text, JSON_DEPTH_MAX + 1);
    CHECK_INT(read_json(&mem, (struct str){text, sizeof text}, &value, &where, &err), -1);
    CHECK_INT(err.code, ERR_LIMIT);
    CHECK_TEXT(err.text, "nested deeper than 64 levels");
    CHECK_INT(where.column, JSON_DEPTH_MAX + 1);
}

/* Depth counts what is open, not what was. */
TEST(many_containers_side_by_side_are_not_deep)
{
    AUTO_ARENA struct arena mem = ARENA(MIB);
    AUTO_BUF struct buf text = BUF(MIB);
    const struct json *value;
    struct mark where;
    struct err err;

    CHECK_INT(buf_add_text(&text, "[{}", &err), 0);
    for (int i = 0; i < 3 * JSON_DEPTH_MAX; i++)
        CHECK_INT(buf_add_text(&text, ",[{}]", &err), 0);
    CHECK_INT(buf_add_text(&text, "]", &err), 0);
    CHECK_INT(read_json(&mem, buf_str(&text), &value, &where, &err), 0);
}

/* An array of n zeros. */
static void add_zeros(struct buf *text, size_t n)
{
    struct err err;

    CHECK_INT(buf_add_text(text, "[0", &err), 0);
    for (size_t i = 1; i < n; i++)
        CHECK_INT(buf_add_text(text, ",0", &err), 0);
    CHECK_INT(buf_add_text(text, "]", &err), 0);
}

TEST(values_are_read_up_to_the_ceiling_and_refused_beyond)
{
    AUTO_ARENA struct arena mem = ARENA(128 * MIB);
    AUTO_BUF struct buf fits = BUF(JSON_TEXT_MAX);
    AUTO_BUF struct buf exceeds = BUF(JSON_TEXT_MAX);
    const struct json *value;
    struct mark where;
    struct err err;

    add_zeros(&fits, JSON_NODES_MAX - 1);
    CHECK_INT(read_json(&mem, buf_str(&fits), &value, &where, &err), 0);
    add_zeros(&exceeds, JSON_NODES_MAX);
    CHECK_INT(read_json(&mem, buf_str(&exceeds), &value, &where, &err), -1);
    CHECK_INT(err.code, ERR_LIMIT);
    CHECK_TEXT(err.text, "more than 262144 values");
}

/* The arena ceilings in limits.h hold for the worst text there can be. */
TEST(a_text_at_its_ceiling_fits_a_receipt_arena)
{
    AUTO_ARENA struct arena mem = ARENA(RECEIPT_MEMORY_MAX);
    AUTO_BUF struct buf text = BUF(JSON_TEXT_MAX + 1);
    const struct json *value;
    struct mark where;
    struct err err;

    add_zeros(&text, JSON_NODES_MAX - 1);
    while (text.n < JSON_TEXT_MAX)
        CHECK_INT(buf_add_byte(&text, ' ', &err), 0);
    CHECK_INT(read_json(&mem, buf_str(&text), &value, &where, &err), 0);
    CHECK_INT(buf_add_byte(&text, ' ', &err), 0);
    CHECK_INT(read_json(&mem, buf_str(&text), &value, &where, &err), -1);
    CHECK_INT(err.code, ERR_LIMIT);
    CHECK_TEXT(err.text, "more than 4194304 bytes");
}

/* Takes minutes when every key is compared with every other. */
TEST(duplicates_among_many_keys_are_found_in_time)
{
    AUTO_ARENA struct arena mem = ARENA(64 * MIB);
    AUTO_BUF struct buf text = BUF(JSON_TEXT_MAX);
    const struct json *value;
    struct mark where;
    struct err err;

    for (int i = 0; i < 200000; i++)
        CHECK_INT(buf_addf(&text, &err, "%c\"%d\":0", i ? ',' : '{', i), 0);
    CHECK_INT(buf_add_byte(&text, '}', &err), 0);
    CHECK_INT(read_json(&mem, buf_str(&text), &value, &where, &err), 0);
    text.n--;
    CHECK_INT(buf_add_text(&text, ",\n\"77777\":1,\"5\":1}", &err), 0);
    CHECK_INT(read_json(&mem, buf_str(&text), &value, &where, &err), -1);
    CHECK_TEXT(err.text, "duplicate key \"77777\"");
    CHECK_INT(where.line, 2);
    CHECK_INT(where.column, 1);
}

TEST(a_long_duplicate_key_is_shown_in_part)
{
    AUTO_ARENA struct arena mem = ARENA(MIB);
    const struct json *value;
    struct mark where;
    struct err err;
    char text[256], key[81] = {0};
    char message[128];

    memset(key, 'k', sizeof key - 1);
    key[63] = '\xc3'; /* the cut must not divide a character */
    key[64] = '\xa9';
    (void)snprintf(text, sizeof text, "{\"%s\":1,\"%s\":2}", key, key);
    (void)snprintf(message, sizeof message, "duplicate key \"%.63s...\"", key);
    CHECK_INT(read_json(&mem, str_of(text), &value, &where, &err), -1);
    CHECK_TEXT(err.text, message);
}

TEST(every_node_knows_where_it_stood)
{
    AUTO_ARENA struct arena mem = ARENA(MIB);
    const struct json *value, *inner, *item;
    struct mark where;
    struct err err;

    CHECK_INT(
        read_json(&mem, str_of("{\n  \"a\\u0041\": 1,\n\t\"b\" :\n [null]}"), &value, &where, &err),
        0);
    CHECK_INT(value->mark.line, 1);
    CHECK_INT(value->mark.column, 1);
    inner = json_get(value, "aA");
    CHECK_INT(inner->key_mark.line, 2);
    CHECK_INT(inner->key_mark.column, 3);
    CHECK_INT(inner->mark.column, 14);
    inner = json_get(value, "b");
    CHECK_INT(inner->key_mark.line, 3);
    CHECK_INT(inner->key_mark.column, 2);
    CHECK_INT(inner->mark.line, 4);
    CHECK_INT(inner->mark.column, 2);
    item = inner->first;
    CHECK_INT(item->mark.column, 3);
}

TEST(the_tree_outlives_the_text_it_was_read_from)
{
    AUTO_ARENA struct arena mem = ARENA(MIB);
    AUTO_BUF struct buf out = BUF(256);
    char text[] = "{\"key\":[\"text\",12.5]}";
    const struct json *value;
    struct mark where;
    struct err err;

    CHECK_INT(read_json(&mem, str_of(text), &value, &where, &err), 0);
    memset(text, 'x', sizeof text);
    CHECK_INT(json_compact(value, &out, &err), 0);
    CHECK_TEXT(buf_text(&out), "{\"key\":[\"text\",12.5]}");
}
