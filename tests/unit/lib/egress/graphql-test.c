/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/buf.h"
#include "lib/base/limits.h"
#include "lib/egress/graphql.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

TEST(documents_are_read_as_far_as_rules_need_them)
{
    static const struct {
        const char *text;
        const char *seen; /* "type name: fields; ..." */
    } cases[] = {
        {"{a}",                                                      "query : a;"                         },
        {"query Q { a: b c(x: [1, 2.5e3, -1]) }",                    "query Q: b c;"                      },
        {"mutation M @d(a: {b: E}) { x { y { z } } }",               "mutation M: x;"                     },
        {"# c\n{a # }\n b}",                                         "query : a b;"                       },
        {"{a(s: \"}\\\"{\") b}",                                     "query : a b;"                       },
        {"{a(s: \"\"\"x \\\"\"\" } \"\"\") b}",                      "query : a b;"                       },
        {"query A {a} subscription B {b}",                           "query A: a;subscription B: b;"      },
        {"{...F c} fragment F on T @x {a ...G} fragment G on T {b}", "query : a b c;"                     },
        {"{... {a} ... on T {b} ... @include(if: $x) {c}}",          "query : a b c;"                     },
        {"query ($a: [[Int!]]! = [[1]] @x, $b: T) {a}",              "query : a;"                         },
        {"{query mutation fragment on}",                             "query : query mutation fragment on;"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        AUTO_ARENA struct arena mem = ARENA(16 * MIB);
        struct graphql_document doc;
        const char *fault = graphql_read(&mem, str_of(cases[i].text), &doc);
        char seen[256] = "";
        size_t n = 0;

        if (fault) {
            test_fail(__FILE__, __LINE__, "%s: %s", cases[i].text, fault);
            continue;
        }
        for (size_t k = 0; k < doc.operation_n; k++) {
            n += (size_t)snprintf(seen + n, sizeof seen - n, STR_FMT " " STR_FMT ":",
                                  STR_ARG(doc.operations[k].type), STR_ARG(doc.operations[k].name));
            for (size_t f = 0; f < doc.operations[k].field_n; f++)
                n += (size_t)snprintf(seen + n, sizeof seen - n, " " STR_FMT,
                                      STR_ARG(doc.operations[k].fields[f]));
            n += (size_t)snprintf(seen + n, sizeof seen - n, ";");
        }
        CHECK_TEXT(seen, cases[i].seen);
    }
}

TEST(what_is_no_executable_document_is_refused)
{
    static const char *const cases[] = {
        "",
        "{",
        "}",
        "{}",
        "{a",
        "{a}}",
        "query",
        "query {",
        "{a(}",
        "{a(x:)}",
        "{a(x 1)}",
        "{a:}",
        "{...}",
        "{...F}",
        "{...F} fragment F on T {...F}",
        "fragment F on T {a}",
        "{...F} fragment F on T {a} fragment F on T {b}",
        "type T {a: Int}",
        "schema {query: Q}",
        "extend type T {a: Int}",
        "{a \"x\"}",
        "{a(x: \"\n\")}",
        "{a(x: \"",
        "{a(x: \"\"\"",
        "{a} x",
        "{a;b}",
        "{a%}",
        "{1a}",
        "{a(x: 1a)}",
        "query Q($a Int) {a}",
        "query Q(a: Int) {a}",
        "{a @}",
        "{... on {a}}",
        "\xef\xbb\xbf{a}",
        "{a(x: $)}",
        "{a(x: ..)}",
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        AUTO_ARENA struct arena mem = ARENA(16 * MIB);
        struct graphql_document doc;

        if (!graphql_read(&mem, str_of(cases[i]), &doc))
            test_fail(__FILE__, __LINE__, "\"%s\" is read", cases[i]);
    }
}

TEST(depth_and_number_have_ends)
{
    AUTO_ARENA struct arena mem = ARENA(64 * MIB);
    AUTO_BUF struct buf text = BUF(MIB);
    struct graphql_document doc;
    struct err err;

    for (int i = 0; i < 10000; i++)
        CHECK_INT(buf_add_text(&text, "{a", &err), 0);
    CHECK(graphql_read(&mem, buf_str(&text), &doc) != NULL);
    buf_clear(&text);
    CHECK_INT(buf_add_text(&text, "{a(x:", &err), 0);
    for (int i = 0; i < 10000; i++)
        CHECK_INT(buf_add_byte(&text, '[', &err), 0);
    CHECK(graphql_read(&mem, buf_str(&text), &doc) != NULL);
    /* Each fragment uses the next one twice: a million fields in a few hundred bytes. */
    buf_clear(&text);
    CHECK_INT(buf_add_text(&text, "{...F0}", &err), 0);
    for (int i = 0; i < 30; i++)
        CHECK_INT(buf_addf(&text, &err, "fragment F%d on T{...F%d ...F%d}", i, i + 1, i + 1), 0);
    CHECK_INT(buf_add_text(&text, "fragment F30 on T{a}", &err), 0);
    CHECK_TEXT(graphql_read(&mem, buf_str(&text), &doc), "it selects too many fields");
}
