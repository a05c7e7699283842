/* SPDX-License-Identifier: Apache-2.0 */

#include "test.h"

#include "lib/base/limits.h"
#include "lib/json/json.h"
#include "surface/helm/helm-private.h"

static struct err err;

static const struct json *parse(struct arena *mem, const char *text)
{
    const struct json *json = NULL;
    struct mark where;

    CHECK_INT(json_parse(mem, str_of(text), &json, &where, &err), 0);
    return json;
}

TEST(commands_in_arguments_are_found)
{
    static const struct {
        const char *arguments;
        size_t commands;
        size_t n; /* words of the last one */
        const char *last;
    } cases[] = {
        {"{}",                                        0, 0, NULL      },
        {"{\"command\":[\"rm\",\"-r\"]}",             1, 2, "-r"      },
        {"{\"cmd\":\"rm x\"}",                        1, 3, "rm x"    },
        {"{\"argv\":[\"ls\"],\"x\":1}",               1, 1, "ls"      },
        {"{\"command\":[],\"cmd\":\"ls\"}",           1, 3, "ls"      },
        {"{\"command\":[1],\"cmd\":\"ls\"}",          1, 3, "ls"      },
        {"{\"command\":\"ls\",\"cmd\":\"rm x\"}",     2, 3, "rm x"    },
        {"{\"argv\":[\"rm\"],\"cmd\":\"a\",\"x\":1}", 2, 1, "rm"      },
        {"{\"command\":[\"rm\",5]}",                  1, 3, "$command"},
        {"{\"command\":[\"rm\",\"a\\u0000\"]}",       1, 3, "$command"},
        {"{\"command\":\"\"}",                        0, 0, NULL      },
        {"{\"command\":\"a\\u0000b\"}",               1, 3, "$command"},
        {"{\"command\":{\"a\":1}}",                   0, 0, NULL      },
        {"{\"other\":\"rm\"}",                        0, 0, NULL      },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        AUTO_ARENA struct arena mem = ARENA(1 * MIB);
        struct words words[TOOL_COMMANDS_MAX] = {0};
        size_t n = intent_inner(&mem, parse(&mem, cases[i].arguments), words);

        CHECK_INT(n, cases[i].commands);
        if (n == 0)
            continue;
        CHECK_INT(words[n - 1].n, cases[i].n);
        CHECK_TEXT(words[n - 1].v[words[n - 1].n - 1], cases[i].last);
    }
}

TEST(intents_that_are_none)
{
    static const char *const cases[] = {
        "{}",
        "{\"messages\":[]}",
        "{\"messages\":[{\"role\":\"user\",\"content\":7}]}",
        "{\"messages\":[{\"role\":\"user\",\"content\":\"[]\"}]}",
        "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"{}\"},"
        "{\"type\":\"text\",\"text\":\"{}\"}]}]}",
        "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\",\"text\":\"{}\"}]}]}",
        "{\"messages\":[{\"role\":\"user\",\"content\":\"{\\\"type\\\":\\\"tool_call_intent\\\","
        "\\\"tool\\\":\\\"t\\\",\\\"arguments\\\":\\\"[]\\\"}\"}]}",
        "{\"stream\":true,\"messages\":[{\"role\":\"user\",\"content\":\"{\\\"type\\\":"
        "\\\"tool_call_intent\\\",\\\"tool\\\":\\\"t\\\",\\\"arguments\\\":{}}\"}]}",
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        AUTO_ARENA struct arena mem = ARENA(1 * MIB);
        struct intent intent;

        CHECK_INT(intent_read(&mem, parse(&mem, cases[i]), &intent, &err), -1);
        CHECK_INT(err.code, ERR_INVALID);
    }
}
