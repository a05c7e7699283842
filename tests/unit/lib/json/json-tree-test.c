/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/limits.h"
#include "lib/json/json.h"
#include "test.h"

#include <signal.h>
#include <sys/wait.h>

#define EXACT_MAX 9007199254740991

static const struct json *read_json(struct arena *mem, const char *text)
{
    const struct json *value = NULL;
    struct mark where;
    struct err err;

    if (json_parse(mem, str_of(text), &value, &where, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    return value;
}

TEST(what_is_built_is_written_in_order)
{
    AUTO_ARENA struct arena mem = ARENA(MIB);
    AUTO_BUF struct buf out = BUF(1024);
    struct json *object = json_object(&mem);
    struct json *array = json_array(&mem);
    char text[] = "text";
    struct err err;

    json_put_text(&mem, object, "z", text);
    memset(text, 'x', sizeof text - 1); /* texts are copied */
    json_put_int(&mem, object, "int", -42);
    json_put_bool(&mem, object, "yes", true);
    json_put_bool(&mem, object, "no", false);
    json_put(object, "null", json_null(&mem));
    json_put(object, "array", array);
    json_push(array, json_int(&mem, 0));
    json_push(array, json_text(&mem, STR_LIT("")));
    json_push(array, json_object(&mem));
    CHECK_INT(json_compact(object, &out, &err), 0);
    CHECK_TEXT(buf_text(&out), "{\"z\":\"text\",\"int\":-42,\"yes\":true,\"no\":false,"
                               "\"null\":null,\"array\":[0,\"\",{}]}");
    CHECK_INT(object->n, 6);
    CHECK_INT(array->n, 3);
    CHECK_INT(object->mark.line, 0);
}

TEST(integers_keep_their_value_up_to_the_last_exact_one)
{
    static const struct {
        int64_t value;
        const char *text;
    } cases[] = {
        {0,          "0"                },
        {-1,         "-1"               },
        {10,         "10"               },
        {EXACT_MAX,  "9007199254740991" },
        {-EXACT_MAX, "-9007199254740991"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        AUTO_ARENA struct arena mem = ARENA(MIB);
        AUTO_BUF struct buf out = BUF(64);
        struct json *node = json_int(&mem, cases[i].value);
        int64_t back = 77;
        struct err err;

        CHECK_INT(json_canonical(node, &out, &err), 0);
        CHECK_TEXT(buf_text(&out), cases[i].text);
        CHECK(json_is_int(node, &back));
        CHECK_INT(back, cases[i].value);
    }
}

TEST(an_integer_beyond_the_exact_ones_stops_the_program)
{
    pid_t pid = fork();
    int status = 0;

    if (pid == 0) {
        AUTO_ARENA struct arena mem = ARENA(MIB);

        (void)close(STDERR_FILENO); /* the assertion's words are expected */
        (void)json_int(&mem, EXACT_MAX + 1);
        _exit(0);
    }
    CHECK_INT(waitpid(pid, &status, 0), pid);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

TEST(bytes_become_text_or_base64_under_another_key)
{
    static const struct {
        struct str bytes;
        const char *json;
    } cases[] = {
        {{"plain", 5},       "{\"stdout\":\"plain\"}"           },
        {{"", 0},            "{\"stdout\":\"\"}"                },
        {{NULL, 0},          "{\"stdout\":\"\"}"                },
        {{"a\0\xc3\xa9", 4}, "{\"stdout\":\"a\\u0000\xc3\xa9\"}"},
        {{"\xff", 1},        "{\"stdout_b64\":\"/w==\"}"        },
        {{"\xff\xfe", 2},    "{\"stdout_b64\":\"//4=\"}"        },
        {{"ok\xc3", 3},      "{\"stdout_b64\":\"b2vD\"}"        },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        AUTO_ARENA struct arena mem = ARENA(MIB);
        AUTO_BUF struct buf out = BUF(256);
        struct json *object = json_object(&mem);
        struct err err;

        json_put_bytes(&mem, object, "stdout", cases[i].bytes);
        CHECK_INT(json_compact(object, &out, &err), 0);
        CHECK_TEXT(buf_text(&out), cases[i].json);
    }
}

/* The document and the table of RFC 6901, section 5, and what must find nothing. */
TEST(pointers_find_what_they_name)
{
    static const char document[] =
        "{\"foo\":[\"bar\",\"baz\"],\"\":0,\"a/b\":1,\"c%d\":2,\"e^f\":3,\"g|h\":4,"
        "\"i\\\\j\":5,\"k\\\"l\":6,\" \":7,\"m~n\":8,\"~1\":9,\"o\":{\"\":{\"p\":[[10]]}}}";
    static const struct {
        const char *pointer;
        const char *found;
    } cases[] = {
        {"/foo",                      "[\"bar\",\"baz\"]"},
        {"/foo/0",                    "\"bar\""          },
        {"/foo/1",                    "\"baz\""          },
        {"/",                         "0"                },
        {"/a~1b",                     "1"                },
        {"/c%d",                      "2"                },
        {"/e^f",                      "3"                },
        {"/g|h",                      "4"                },
        {"/i\\j",                     "5"                },
        {"/k\"l",                     "6"                },
        {"/ ",                        "7"                },
        {"/m~0n",                     "8"                },
        {"/~01",                      "9"                },
        {"/o//p/0/0",                 "10"               },
        {"foo",                       NULL               },
        {"/bar",                      NULL               },
        {"/fo",                       NULL               },
        {"/foox",                     NULL               },
        {"/foo/",                     NULL               },
        {"/foo/2",                    NULL               },
        {"/foo/-",                    NULL               },
        {"/foo/-1",                   NULL               },
        {"/foo/00",                   NULL               },
        {"/foo/01",                   NULL               },
        {"/foo/1e0",                  NULL               },
        {"/foo/0/x",                  NULL               },
        {"/foo/18446744073709551616", NULL               },
        {"/m~n",                      NULL               },
        {"/m~2n",                     NULL               },
        {"/m~",                       NULL               },
    };
    AUTO_ARENA struct arena mem = ARENA(MIB);
    const struct json *root = read_json(&mem, document);

    CHECK(json_at(root, "") == root);
    CHECK(json_at(NULL, "/a") == NULL);
    for (size_t i = 0; i < COUNT(cases); i++) {
        AUTO_BUF struct buf out = BUF(256);
        const struct json *found = json_at(root, cases[i].pointer);
        struct err err;

        if (found)
            CHECK_INT(json_compact(found, &out, &err), 0);
        CHECK_TEXT(found ? buf_text(&out) : NULL, cases[i].found);
    }
}

TEST(members_are_found_by_their_whole_key)
{
    AUTO_ARENA struct arena mem = ARENA(MIB);
    const struct json *root = read_json(&mem, "{\"ab\":1,\"a\":2,\"a\\u0000\":3}");

    CHECK(json_get(root, "ab") == root->first);
    CHECK(json_get(root, "a") == root->first->next);
    CHECK(json_get(root, "abc") == NULL);
    CHECK(json_get(root, "") == NULL);
    CHECK(json_get(root->first, "a") == NULL);
    CHECK(json_get(NULL, "a") == NULL);
}

TEST(values_are_given_only_as_what_they_are)
{
    static const struct {
        const char *text;
        bool is_text, is_int, is_bool;
    } cases[] = {
        {"\"1\"",                      true,  false, false},
        {"1",                          false, true,  false},
        {"-0",                         false, true,  false},
        {"true",                       false, false, true },
        {"null",                       false, false, false},
        {"[1]",                        false, false, false},
        {"{}",                         false, false, false},
        {"1.0",                        false, false, false},
        {"1e3",                        false, false, false},
        {"9007199254740991",           false, true,  false},
        {"-9007199254740991",          false, true,  false},
        {"9007199254740992",           false, false, false},
        {"-9007199254740992",          false, false, false},
        {"99999999999999999999999999", false, false, false},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        AUTO_ARENA struct arena mem = ARENA(MIB);
        const struct json *value = read_json(&mem, cases[i].text);
        struct str text = {NULL, 0};
        int64_t number = 77;
        bool truth = false;

        CHECK_INT(json_is_text(value, &text), cases[i].is_text);
        CHECK_INT(json_is_int(value, &number), cases[i].is_int);
        CHECK_INT(json_is_bool(value, &truth), cases[i].is_bool);
        CHECK_INT(number != 77, cases[i].is_int); /* untouched otherwise */
        CHECK_INT(text.p != NULL, cases[i].is_text);
        CHECK_INT(truth, cases[i].is_bool);
    }
    CHECK(!json_is_text(NULL, &(struct str){NULL, 0}));
    CHECK(!json_is_int(NULL, &(int64_t){0}));
    CHECK(!json_is_bool(NULL, &(bool){false}));
}
