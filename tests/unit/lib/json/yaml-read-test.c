/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/limits.h"
#include "lib/json/json.h"
#include "test.h"

#define T(literal)                                                                                 \
    {                                                                                              \
        literal, sizeof(literal) - 1                                                               \
    }
#define QUOTE ", or put it in quotes if it is a text"

static int read_yaml(struct arena *mem, struct str text, const struct json **out,
                     struct mark *where, struct err *err)
{
    *out = NULL;
    *where = (struct mark){0, 0};
    memset(err, 0, sizeof *err);
    return yaml_parse(mem, text, out, where, err);
}

TEST(accepted_yaml_becomes_json)
{
    static const struct {
        const char *yaml;
        const char *json;
    } cases[] = {
        {"a: 1\nb: two\n",                                            "{\"a\":1,\"b\":\"two\"}"                           },
        {"a: 1\r\nb: two\r\n",                                        "{\"a\":1,\"b\":\"two\"}"                           },
        {"# only\n---\na: b # c\n...\n",                              "{\"a\":\"b\"}"                                     },
        {"- a\n- [b, {c: d}]\n- - e\n  - f\n",                        "[\"a\",[\"b\",{\"c\":\"d\"}],[\"e\",\"f\"]]"       },
        {"a:\n- b\n- c\nd: {}\ne: []\n",                              "{\"a\":[\"b\",\"c\"],\"d\":{},\"e\":[]}"           },
        {"{a, b: , \"c\": d}",                                        "{\"a\":null,\"b\":null,\"c\":\"d\"}"               },
        {"a: |\n  x\n   y\nb: >-\n  x\n  y\n",                        "{\"a\":\"x\\n y\\n\",\"b\":\"x y\"}"               },
        {"a: 'it''s'\nb: \"\\t\\u00e9\\x41\"\n",                      "{\"a\":\"it's\",\"b\":\"\\t\xc3\xa9"
                                                 "A\"}"                   },
        {"? a\n: b\n",                                                "{\"a\":\"b\"}"                                     },
        {"a: b\n  c\n",                                               "{\"a\":\"b c\"}"                                   },
        {"plain",                                                     "\"plain\""                                         },
        {"---\n",                                                     "null"                                              },
 /* null and the truth values of the core schema, and nothing else */
        {"[~, null, Null, NULL, nULL]",                               "[null,null,null,null,\"nULL\"]"                    },
        {"a:\nb: ''\n",                                               "{\"a\":null,\"b\":\"\"}"                           },
        {"[true, True, TRUE, tRUE]",                                  "[true,true,true,\"tRUE\"]"                         },
        {"[false, False, FALSE, fALSE]",                              "[false,false,false,\"fALSE\"]"                     },
        {"[NO, no, n, Yes, y, on, Off]",                              "[\"NO\",\"no\",\"n\",\"Yes\",\"y\",\"on\",\"Off\"]"},
        {"['true', \"null\", '1', \"~\"]",                            "[\"true\",\"null\",\"1\",\"~\"]"                   },
 /* numbers keep their text as far as JSON can say it */
        {"[0, -0, 12, -12, 9007199254740991, -9007199254740991]",
         "[0,-0,12,-12,9007199254740991,-9007199254740991]"                                                               },
        {"[1.5, 1.50, -0.0, 1e3, 1E+3, 1.5e-3]",                      "[1.5,1.50,-0.0,1e3,1E+3,1.5e-3]"                   },
        {"[.5, -.5, 1., 1.e5, -2.e-5]",                               "[0.5,-0.5,1,1e5,-2e-5]"                            },
 /* looks a little like a number and is a text everywhere we mean it */
        {"[12:30, 1.2.3, 2001-12-14, 10.0.0.1, 1/2]",
         "[\"12:30\",\"1.2.3\",\"2001-12-14\",\"10.0.0.1\",\"1/2\"]"                                                      },
        {"[., .e5, e5, 1e, 1e+, -, --1, +, _1, 1 2]",
         "[\".\",\".e5\",\"e5\",\"1e\",\"1e+\",\"-\",\"--1\",\"+\",\"_1\",\"1 2\"]"                                       },
        {"[0x, 0xg, 0o8, 0b2, 512M, 30s, 022x, .infinity, nan, inf]",
         "[\"0x\",\"0xg\",\"0o8\",\"0b2\",\"512M\",\"30s\",\"022x\",\".infinity\",\"nan\",\"inf\"]"                       },
        {"['022', \"0x1F\", '.inf', '1_000', '+1']",
         "[\"022\",\"0x1F\",\".inf\",\"1_000\",\"+1\"]"                                                                   },
 /* keys are texts, whatever they look like */
        {"1: a\ntrue: b\n022: c\n~: d\n'': e\n\"<<\": f\n1.0: g\n",
         "{\"1\":\"a\",\"true\":\"b\",\"022\":\"c\",\"~\":\"d\",\"\":\"e\",\"<<\":\"f\",\"1.0\":\"g\"}"                   },
        {"\xc3\xa9: \xf0\x9f\x98\x80\n",                              "{\"\xc3\xa9\":\"\xf0\x9f\x98\x80\"}"               },
        {"a: \"\\u2028\\N\\ufeff\"",                                  "{\"a\":\"\xe2\x80\xa8\xc2\x85\xef\xbb\xbf\"}"      },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        AUTO_ARENA struct arena mem = ARENA(MIB);
        AUTO_BUF struct buf out = BUF(1024);
        const struct json *value;
        struct mark where;
        struct err err;

        CHECK_INT(read_yaml(&mem, str_of(cases[i].yaml), &value, &where, &err), 0);
        CHECK_TEXT(err.text, "");
        if (!value)
            continue;
        CHECK_INT(json_compact(value, &out, &err), 0);
        CHECK_TEXT(buf_text(&out), cases[i].json);
    }
}

TEST(refused_yaml_says_what_and_where)
{
    static const struct {
        struct str yaml;
        struct mark where;
        const char *message;
    } cases[] = {
        {T(""),                                                      {1, 1},  "the text is empty"                                             },
        {T("# nothing\n"),                                           {2, 1},  "the text is empty"                                             },
        {T("a: 1\nb: 2\na: 3\n"),                                    {3, 1},  "duplicate key \"a\""                                           },
        {T("a: {b: 1, c: 2, \"b\": 3}"),                             {1, 17}, "duplicate key \"b\""                                           },
        {T("\"\\u00e9\": 1\n\xc3\xa9: 2\n"),                         {2, 1},  "duplicate key \"\xc3\xa9\""                                    },
        {T("1: a\n'1': b\n"),                                        {2, 1},  "duplicate key \"1\""                                           },
        {T("a: &x 1\n"),                                             {1, 4},  "anchors (&name) are not accepted"                              },
        {T("a: &x [1]\n"),                                           {1, 4},  "anchors (&name) are not accepted"                              },
        {T("&x a: 1\n"),                                             {1, 1},  "anchors (&name) are not accepted"                              },
        {T("a:\n  &x\n  b: 1\n"),                                    {2, 3},  "anchors (&name) are not accepted"                              },
        {T("a: *x\n"),                                               {1, 4},  "aliases (*name) are not accepted: write the value out"         },
        {T("*x : 1\n"),                                              {1, 1},  "aliases (*name) are not accepted: write the value out"         },
        {T("a: !!str 1\n"),                                          {1, 4},  "tags (!name) are not accepted"                                 },
        {T("a: ! 1\n"),                                              {1, 4},  "tags (!name) are not accepted"                                 },
        {T("!!map {a: 1}\n"),                                        {1, 1},  "tags (!name) are not accepted"                                 },
        {T("[!!seq []]\n"),                                          {1, 2},  "tags (!name) are not accepted"                                 },
        {T("!!str a: 1\n"),                                          {1, 1},  "tags (!name) are not accepted"                                 },
        {T("b: 1\n<<: {a: 1}\n"),
         {2, 1},
         "merge keys (<<) are not accepted: write the members out"                                                                            },
        {T("a: 1\n---\nb: 2\n"),                                     {2, 1},  "a second document: one is accepted"                            },
        {T("%YAML 1.2\n---\na: 1\n"),
         {1, 1},
         "directives (lines that begin with %) are not accepted"                                                                              },
        {T("%TAG ! tag:x,1:\n---\na\n"),
         {1, 1},
         "directives (lines that begin with %) are not accepted"                                                                              },
        {T("? [a]\n: b\n"),                                          {1, 3},  "a key must be a text"                                          },
        {T("{{a: b}: c}\n"),                                         {1, 2},  "a key must be a text"                                          },
        {T("{: a}\n"),                                               {1, 2},  "expected a key or a value"                                     },
        {T("?\n: a\n"),                                              {1, 2},  "a ':' without a key before it"                                 },
 /* look-alikes */
        {T("a: 022\n"),                                              {1, 4},  "022 starts with a zero: write the number without it" QUOTE     },
        {T("[-00]"),                                                 {1, 2},  "-00 starts with a zero: write the number without it" QUOTE     },
        {T("[01.5]"),                                                {1, 2},  "01.5 starts with a zero: write the number without it" QUOTE    },
        {T("[1, 0o17]"),                                             {1, 5},  "0o17 is not decimal: write the number in decimal" QUOTE        },
        {T("a: 0x1F"),                                               {1, 4},  "0x1F is not decimal: write the number in decimal" QUOTE        },
        {T("a: -0b11"),                                              {1, 4},  "-0b11 is not decimal: write the number in decimal" QUOTE       },
        {T("a: .inf"),                                               {1, 4},  ".inf is not finite: write a number that is" QUOTE              },
        {T("a: -.INF"),                                              {1, 4},  "-.INF is not finite: write a number that is" QUOTE             },
        {T("a: .NaN"),                                               {1, 4},  ".NaN is not finite: write a number that is" QUOTE              },
        {T("a: 1_000"),                                              {1, 4},  "1_000 has underscores: write the number without them" QUOTE    },
        {T("a: 1_0.5_0"),                                            {1, 4},  "1_0.5_0 has underscores: write the number without them" QUOTE  },
        {T("a: +1"),                                                 {1, 4},  "+1 has a plus sign: write the number without it" QUOTE         },
        {T("a: +.5"),                                                {1, 4},  "+.5 has a plus sign: write the number without it" QUOTE        },
        {T("a: 9007199254740992"),
         {1, 4},
         "9007199254740992 is too large: stay within 2^53-1" QUOTE                                                                            },
        {T("a: -9007199254740992"),
         {1, 4},
         "-9007199254740992 is too large: stay within 2^53-1" QUOTE                                                                           },
        {T("a: 1e999"),                                              {1, 4},  "1e999 is too large: stay within the range of a double" QUOTE   },
        {T("a: 12345678901234567890123456789012345678901234567890"),
         {1, 4},
         "1234567890123456789012345678901234567890... is too large: stay within 2^53-1" QUOTE                                                 },
 /* characters */
        {T("a: \xff\n"),                                             {1, 4},  "not UTF-8"                                                     },
        {T("a: 1\nb: \xc0\x80\n"),                                   {2, 4},  "not UTF-8"                                                     },
        {T("a: \xed\xa0\x80"),                                       {1, 4},  "not UTF-8"                                                     },
        {T("a: x\0y"),                                               {1, 5},  "a NUL character"                                               },
        {T("a: \"x\\0y\""),                                          {1, 4},  "a NUL character in a text"                                     },
        {T("\"\\0\": 1"),                                            {1, 1},  "a NUL character in a text"                                     },
        {T("a: \"\\ud800\""),                                        {1, 7},  "found invalid Unicode character escape code"                   },
        {T("\xef\xbb\xbf"
           "a: 1"),
         {1, 1},
         "a byte order mark: save the text without one"                                                                                       },
        {T("# fine\rdefault: allow\n"),                              {1, 7},  "a carriage return without a line feed behind it"               },
        {T("a\r"),                                                   {1, 2},  "a carriage return without a line feed behind it"               },
        {T("# fine\xc2\x85"
           "b: 1\n"),
         {1, 7},
         "a control character: write it as an escape in a text in double quotes"                                                              },
        {T("a: \x1b[2J"),
         {1, 4},
         "a control character: write it as an escape in a text in double quotes"                                                              },
        {T("a: \x7f"),
         {1, 4},
         "a control character: write it as an escape in a text in double quotes"                                                              },
        {T("# fine\xe2\x80\xa8"
           "b: 1\n"),
         {1, 7},
         "a line separator: write it as an escape in a text in double quotes"                                                                 },
        {T("a: \xef\xbf\xbf"),                                       {1, 4},  "not a character"                                               },
 /* structure */
        {T("a: b: c\n"),
         {1, 5},
         "a ':' is not allowed here: check the indentation, or put the text in quotes"                                                        },
        {T("a: 1\n b: 2\n"),
         {2, 3},
         "a ':' is not allowed here: check the indentation, or put the text in quotes"                                                        },
        {T("a:\n  b: 1\n c: 2\n"),                                   {3, 2},  "expected a key: check the indentation"                         },
        {T("- a\nb: c\n"),                                           {2, 1},  "expected '-': check the indentation"                           },
        {T("a: - b\n"),                                              {1, 4},  "a list item is not allowed here: start it on a line of its own"},
        {T("a: 1\nb\n"),                                             {3, 1},  "expected ':' after the key"                                    },
        {T("a: [b\n"),                                               {2, 1},  "expected ',' or ']'"                                           },
        {T("{a: 1"),                                                 {1, 6},  "expected ',' or '}'"                                           },
        {T("a: [,]\n"),                                              {1, 5},  "expected a key or a value"                                     },
        {T("a: \"x\nb: 1\n"),                                        {1, 4},  "a text without its closing quote"                              },
        {T("a:\n\t- b\n"),                                           {2, 1},  "a tab cannot indent: use blanks"                               },
        {T("a: @b\n"),                                               {1, 4},  "a text cannot start with this character: put it in quotes"     },
        {T("a: %b\n"),                                               {1, 4},  "a text cannot start with this character: put it in quotes"     },
        {T("{a: 1} b\n"),                                            {1, 8},  "expected the end of the document"                              },
 /* columns count bytes */
        {T("\xc3\xa9: [\xe2\x82\xac, \xf0\x9f\x98\x80, 022]"),
         {1, 17},
         "022 starts with a zero: write the number without it" QUOTE                                                                          },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        AUTO_ARENA struct arena mem = ARENA(MIB);
        const struct json *value;
        struct mark where;
        struct err err;

        CHECK_INT(read_yaml(&mem, cases[i].yaml, &value, &where, &err), -1);
        CHECK_INT(err.code, ERR_INVALID);
        CHECK_TEXT(err.text, cases[i].message);
        CHECK_INT(where.line, cases[i].where.line);
        CHECK_INT(where.column, cases[i].where.column);
        CHECK(value == NULL);
    }
}

TEST(every_yaml_node_knows_where_it_stood)
{
    static const struct {
        const char *pointer;
        struct mark key, value;
    } cases[] = {
        {"/version",         {2, 1}, {2, 10}},
        {"/commands",        {3, 1}, {4, 3} },
        {"/commands/0",      {0, 0}, {4, 5} },
        {"/commands/0/deny", {4, 5}, {4, 11}},
        {"/commands/0/why",  {5, 5}, {5, 10}},
        {"/commands/1",      {0, 0}, {7, 5} },
        {"/empty",           {8, 1}, {8, 7} },
        {"/l\xc3\xa9",       {9, 1}, {9, 6} },
        {"/l\xc3\xa9/1",     {0, 0}, {9, 11}},
    };
    AUTO_ARENA struct arena mem = ARENA(MIB);
    const struct json *root;
    struct mark where;
    struct err err;

    CHECK_INT(read_yaml(&mem,
                        str_of("# policy\n"
                               "version: 1\n"
                               "commands:\n"
                               "  - deny: [rm]\n"
                               "    why: |\n"
                               "      because\n"
                               "  - plain\n"
                               "empty:\n"
                               "l\xc3\xa9: [\xc3\xa9, x]\n"),
                        &root, &where, &err),
              0);
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct json *node = json_at(root, cases[i].pointer);

        CHECK(node != NULL);
        if (!node)
            continue;
        CHECK_INT(node->key_mark.line, cases[i].key.line);
        CHECK_INT(node->key_mark.column, cases[i].key.column);
        CHECK_INT(node->mark.line, cases[i].value.line);
        CHECK_INT(node->mark.column, cases[i].value.column);
    }
}

static void add_nested(struct buf *text, unsigned levels)
{
    struct err err;

    for (unsigned i = 0; i < levels; i++)
        CHECK_INT(buf_add_byte(text, '[', &err), 0);
    for (unsigned i = 0; i < levels; i++)
        CHECK_INT(buf_add_byte(text, ']', &err), 0);
}

TEST(yaml_nesting_is_read_up_to_the_ceiling_and_refused_beyond)
{
    AUTO_ARENA struct arena mem = ARENA(MIB);
    AUTO_BUF struct buf fits = BUF(1024);
    AUTO_BUF struct buf exceeds = BUF(1024);
    const struct json *value;
    struct mark where;
    struct err err;

    add_nested(&fits, YAML_DEPTH_MAX);
    CHECK_INT(read_yaml(&mem, buf_str(&fits), &value, &where, &err), 0);
    add_nested(&exceeds, YAML_DEPTH_MAX + 1);
    CHECK_INT(read_yaml(&mem, buf_str(&exceeds), &value, &where, &err), -1);
    CHECK_INT(err.code, ERR_LIMIT);
    CHECK_TEXT(err.text, "nested deeper than 32 levels");
    CHECK_INT(where.column, YAML_DEPTH_MAX + 1);
}

/* "[,,,]" is no YAML, but "a,a,a" on one line is the worst for positions too. */
static void add_list(struct buf *text, size_t n)
{
    struct err err;

    CHECK_INT(buf_add_byte(text, '[', &err), 0);
    for (size_t i = 0; i < n; i++)
        CHECK_INT(buf_add_text(text, "a,", &err), 0);
    CHECK_INT(buf_add_byte(text, ']', &err), 0);
}

TEST(yaml_values_are_read_up_to_the_ceiling_and_refused_beyond)
{
    AUTO_ARENA struct arena mem = ARENA(POLICY_MEMORY_MAX);
    AUTO_BUF struct buf fits = BUF(YAML_TEXT_MAX);
    AUTO_BUF struct buf exceeds = BUF(YAML_TEXT_MAX);
    const struct json *value;
    struct mark where;
    struct err err;

    add_list(&fits, YAML_NODES_MAX - 1);
    CHECK_INT(read_yaml(&mem, buf_str(&fits), &value, &where, &err), 0);
    add_list(&exceeds, YAML_NODES_MAX);
    CHECK_INT(read_yaml(&mem, buf_str(&exceeds), &value, &where, &err), -1);
    CHECK_INT(err.code, ERR_LIMIT);
    CHECK_TEXT(err.text, "more than 131072 values");
}

TEST(a_yaml_text_past_its_ceiling_is_refused)
{
    AUTO_ARENA struct arena mem = ARENA(MIB);
    AUTO_BUF struct buf text = BUF(YAML_TEXT_MAX + 1);
    const struct json *value;
    struct mark where;
    struct err err;

    CHECK_INT(buf_add_text(&text, "a: 1\n", &err), 0);
    while (text.n < YAML_TEXT_MAX)
        CHECK_INT(buf_add_byte(&text, '\n', &err), 0);
    CHECK_INT(read_yaml(&mem, buf_str(&text), &value, &where, &err), 0);
    CHECK_INT(buf_add_byte(&text, '\n', &err), 0);
    CHECK_INT(read_yaml(&mem, buf_str(&text), &value, &where, &err), -1);
    CHECK_INT(err.code, ERR_LIMIT);
    CHECK_TEXT(err.text, "more than 1048576 bytes");
    CHECK_INT(where.line, 1);
}

TEST(yaml_and_json_agree_on_json)
{
    static const char text[] =
        "{\"a\": [1, -2.5e3, \"x\\n\\u00e9\", null, true, {\"b\": {}}], \"c\": []}";
    AUTO_ARENA struct arena mem = ARENA(MIB);
    AUTO_BUF struct buf from_yaml = BUF(1024);
    AUTO_BUF struct buf from_json = BUF(1024);
    const struct json *value;
    struct mark where;
    struct err err;

    CHECK_INT(read_yaml(&mem, str_of(text), &value, &where, &err), 0);
    CHECK_INT(json_canonical(value, &from_yaml, &err), 0);
    CHECK_INT(json_parse(&mem, str_of(text), &value, &where, &err), 0);
    CHECK_INT(json_canonical(value, &from_json, &err), 0);
    CHECK_TEXT(buf_text(&from_yaml), buf_text(&from_json));
}
