/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

#include "lib/base/limits.h"
#include "lib/expr/expr.h"

/* clang-format off */
static const struct expr_name names[] = {
    {"who",      {EXPR_STRING, EXPR_UNKNOWN}},
    {"words",    {EXPR_LIST, EXPR_STRING}   },
    {"n",        {EXPR_INT, EXPR_UNKNOWN}   },
    {"yes",      {EXPR_BOOL, EXPR_UNKNOWN}  },
    {"m",        {EXPR_MAP, EXPR_UNKNOWN}   },
    {"any",      {EXPR_UNKNOWN, EXPR_UNKNOWN}},
    {"lost",     {EXPR_STRING, EXPR_UNKNOWN}},
    {"now.hour", {EXPR_INT, EXPR_UNKNOWN}   },
    {"now.day",  {EXPR_STRING, EXPR_UNKNOWN}},
};
/* clang-format on */

#define TEXT(t)                                                                                    \
    {                                                                                              \
        .kind = EXPR_STRING, .text = STR_LIT(t)                                                    \
    }
#define INT(i)                                                                                     \
    {                                                                                              \
        .kind = EXPR_INT, .number = (i)                                                            \
    }

static const struct expr_value words_v[] = {TEXT("git"), TEXT("push"), TEXT("--force")};
static const struct expr_entry m_v[] = {
    {TEXT("a"), INT(1)       },
    {TEXT("b"), TEXT("two")  },
    {INT(7),    TEXT("seven")},
};

static void fill(struct expr_value *values)
{
    values[0] = (struct expr_value)TEXT("ana");
    values[1] = (struct expr_value){
        .kind = EXPR_LIST, .list = {words_v, COUNT(words_v)}
    };
    values[2] = (struct expr_value)INT(5);
    values[3] = (struct expr_value){.kind = EXPR_BOOL, .boolean = true};
    values[4] = (struct expr_value){
        .kind = EXPR_MAP, .map = {m_v, COUNT(m_v)}
    };
    values[5] = (struct expr_value)INT(9);
    values[6] = (struct expr_value){0};
    values[7] = (struct expr_value)INT(23);
    values[8] = (struct expr_value)TEXT("mon");
}

static int run_steps(const char *text, uint32_t steps, size_t space, struct expr_value *out,
                     struct err *err)
{
    static char room[EXPR_SPACE_MAX] __attribute__((aligned(16)));
    static struct arena mem = ARENA(16 * MIB); /* results live on until the test ends */
    const struct expr *expr = NULL;
    struct expr_value values[COUNT(names)] = {0};
    struct expr_scope scope = {
        .values = values, .space = room, .space_bytes = space, .steps = steps};
    struct mark where;

    fill(values);
    if (expr_compile(&mem, str_of(text), names, COUNT(names), &expr, &where, err) < 0) {
        test_fail(__FILE__, __LINE__, "%s: does not compile: %s", text, err->text);
        return -2;
    }
    return expr_eval(expr, &scope, out, err);
}

static int run(const char *text, struct expr_value *out, struct err *err)
{
    return run_steps(text, EXPR_STEPS_MAX, EXPR_SPACE_MAX, out, err);
}

TEST(expressions_that_are_true)
{
    /* clang-format off */
    static const char *const all[] = {
        /* literals */
        "true", "!false", "null == null", "1 == 1", "0x1F == 31", "-1 == 0 - 1",
        "-9223372036854775808 < 9223372036854775807", "'a' == \"a\"", "r'\\n' == '\\\\n'",
        "'''a'b\"c''' == 'a\\'b\"c'", "\"\"\"x\ny\"\"\" == 'x\\ny'", "R\"a\\\" == 'a\\\\'",
        "'\\x41\\u00e9\\U0001F600\\101\\a\\b\\f\\v\\t\\r\\?\\`' == 'Aé😀A\\x07\\x08\\x0c\\x0b\\x09\\x0d?`'",
        "'\\377' == 'ÿ'", "[1, 2, 3,] == [1, 2, 3]", "{'a': 1,} == {'a': 1}", "[] == []",
        "{} == {}", "{1: 'a', true: 'b', 'x': null}.size() == 3",
        "// a comment\n1 == 1 // and one more", "  (\t(1)\n)==1",
        /* variables and members */
        "who == 'ana'", "words[0] == 'git'", "m.a == 1", "m['b'] == 'two'", "m[7] == 'seven'",
        "now.hour == 23 && now.day == 'mon'", "has(m.a) && !has(m.zzz)", "any == 9",
        "any != 'nine'",
        /* operators */
        "1 + 2 * 3 == 7", "(1 + 2) * 3 == 9", "7 / 2 == 3 && -7 / 2 == -3 && -7 % 3 == -1",
        "10 - 3 - 2 == 5", "'a' + 'b' == 'ab'", "[1] + [2] == [1, 2]", "!!true", "--5 == 5",
        "-n == -5", "1 < 2 && 2 <= 2 && 3 > 2 && 3 >= 3", "'a' < 'b' && 'a' < 'ab'",
        "'Z' < 'a' && 'z' < 'é'", "false < true", "who in ['ana', 'ben']", "'a' in m && 7 in m",
        "!('x' in words)", "!(1 in [])", "yes ? true : false", "false ? false : true ? true : false",
        "true || false && false", "1 in [1] == true", "[[1], [2]] == [[1], [2]]",
        "{'a': [1]} == {'a': [1]}", "{'a': 1, 'b': 2} == {'b': 2, 'a': 1}",
        /* functions */
        "size('') == 0 && size('é😀') == 2 && 'abc'.size() == 3", "size([1, 2]) == 2",
        "words.size() == 3 && size(m) == 3", "who.startsWith('an') && who.startsWith('')",
        "who.endsWith('na') && !who.endsWith('anaa')", "'abcabd'.contains('abd')",
        "''.contains('') && !''.contains('a')", "int('-42') == -42 && int('+7') == 7 && int(3) == 3",
        "string(-42) == '-42' && string(true) == 'true' && string('x') == 'x'",
        "string(-9223372036854775808) == '-9223372036854775808'",
        /* macros */
        "words.all(w, size(w) > 2)", "words.exists(w, w == '--force')",
        "words.exists_one(w, w.startsWith('--'))", "!words.exists_one(w, size(w) > 2)",
        "words.filter(w, w.startsWith('p')) == ['push']", "[1, 2].map(x, x * 2) == [2, 4]",
        "[1, 2, 3].map(x, x > 1, x * x) == [4, 9]", "[].all(x, x) && ![].exists(x, x)",
        "{'a': 1}.all(k, k == 'a')", "[[1, 2], [3]].all(l, l.exists(x, x > 1))",
        "[1].all(x, [2].all(x, x == 2) && x == 1)", "[1, 2].map(x, [x]).size() == 2",
        /* an error that the other side makes up for */
        "true || lost == 'x'", "lost == 'x' || true", "!(false && 1 / 0 == 1)",
        "!(1 / 0 == 1 && false)", "[1, 0].exists(x, 10 / x == 10)", "[0, 1].exists(x, 10 / x == 10)",
        "![0, 1].all(x, 10 / x == 11)", "any || true", "false ? 1 / 0 == 1 : true",
    };
    /* clang-format on */

    for (size_t i = 0; i < COUNT(all); i++) {
        struct expr_value value = {0};
        struct err err = {0};
        int result = run(all[i], &value, &err);

        if (result < 0)
            test_fail(__FILE__, __LINE__, "%s: %s", all[i], err.text);
        else if (value.kind != EXPR_BOOL || !value.boolean)
            test_fail(__FILE__, __LINE__, "%s is not true", all[i]);
    }
}

TEST(evaluation_fails_with_a_reason)
{
    /* clang-format off */
    static const struct {
        const char *text;
        const char *why;
    } all[] = {
        {"1 / 0 == 1", "division by zero"},
        {"n % 0 == 1", "division by zero"},
        {"9223372036854775807 + n > 0", "a number does not fit into 64 bits"},
        {"-9223372036854775807 - n < 0", "a number does not fit into 64 bits"},
        {"9223372036854775807 * n > 0", "a number does not fit into 64 bits"},
        {"-(-9223372036854775808) > 0", "a number does not fit into 64 bits"},
        {"-9223372036854775808 / -1 > 0", "a number does not fit into 64 bits"},
        {"-9223372036854775808 % -1 == 0", "a number does not fit into 64 bits"},
        {"words[3] == ''", "index 3 is outside of a list of 3"},
        {"words[-1] == ''", "index -1 is outside of a list of 3"},
        {"m.zzz == 1", "no such key"},
        {"m['zzz'] == 1", "no such key"},
        {"lost == 'x'", "a value is not known"},
        {"lost == 'x' || false", "a value is not known"},
        {"true && lost == 'x'", "a value is not known"},
        {"any.x == 1", "only a map has members, and this is int"},
        {"any && true", "true or false is needed here, not int"},
        {"any ? true : true", "true or false is needed here, not int"},
        {"any + 'x' == ''", "arithmetic takes int, not int and string"},
        {"any < 'x'", "int and string have no order"},
        {"m.b > 1", "string and int have no order"},
        {"size(any) == 1", "int has no size"},
        {"any.startsWith('x')", "this function takes string, not int and string"},
        {"1 in any", "in looks into a list or a map, not into int"},
        {"any[0] == 1", "int has no entries by int"},
        {"any.all(x, true)", "this runs through a list or a map, not int"},
        {"!any", "! takes bool, not int"},
        {"-m.b == 1", "arithmetic takes int, not int and string"},
        {"int('x') == 1", "the text is no int"},
        {"int('') == 1", "the text is no int"},
        {"int('--1') == 1", "the text is no int"},
        {"int('9223372036854775808') == 1", "the text is no int"},
        {"{'a': 1, 'a': 2} == {}", "the map has a key twice"},
        {"{any: 1, [1][0]: 2, 9: 3} == {}", "the map has a key twice"},
        {"{m['b']: 1}['x'] == 1", "no such key"},
        {"[1, 2, 0].exists_one(x, 1 / x == 1)", "division by zero"},
        {"[0].map(x, 1 / x) == []", "division by zero"},
        {"[1, 0].exists(x, 1 / x == 5)", "division by zero"},
        {"[any].filter(x, x) == []", "true or false is needed here, not int"},
    };
    /* clang-format on */

    for (size_t i = 0; i < COUNT(all); i++) {
        struct expr_value value = {0};
        struct err err = {0};

        CHECK_INT(run(all[i].text, &value, &err), -1);
        CHECK_INT(err.code, ERR_INVALID);
        CHECK_TEXT(err.text, all[i].why);
        CHECK_INT(value.kind, EXPR_UNKNOWN);
    }
}

TEST(what_does_not_compile_says_where_and_why)
{
    /* clang-format off */
    static const struct {
        const char *text;
        unsigned line, column;
        const char *why;
    } all[] = {
        {"", 1, 1, "the expression ends where a value is missing"},
        {"1 +", 1, 4, "the expression ends where a value is missing"},
        {"whom == 'x'", 1, 1,
         "unknown name \"whom\"; known are: who, words, n, yes, m, any, lost, now.hour, now.day"},
        {"true &&\n  whom", 2, 3,
         "unknown name \"whom\"; known are: who, words, n, yes, m, any, lost, now.hour, now.day"},
        {"now == 1", 1, 1, "\"now\" alone is no value; there are: now.hour, now.day"},
        {"now.year == 1", 1, 5, "there is no now.year; there are: now.hour, now.day"},
        {"x.exists(y, true)", 1, 1,
         "unknown name \"x\"; known are: who, words, n, yes, m, any, lost, now.hour, now.day"},
        {"words.all(w, true) && w == 'x'", 1, 23,
         "unknown name \"w\"; known are: who, words, n, yes, m, any, lost, now.hour, now.day"},
        {"who = 'x'", 1, 5, "write == to compare"},
        {"yes & yes", 1, 5, "write &&"},
        {"yes | yes", 1, 5, "write ||"},
        {"who == 'x", 1, 8, "the text has no end"},
        {"'a\nb'", 1, 1, "the text has no end"},
        {"'a\\", 1, 1, "the text has no end"},
        {"'\\q'", 1, 2, "an escape CEL does not have; write \\\\ for a backslash"},
        {"'\\8'", 1, 2, "an escape CEL does not have; write \\\\ for a backslash"},
        {"'\\x4'", 1, 4, "an escape of this kind has 2 hexadecimal digits"},
        {"'\\ud800'", 1, 1, "an escape that is no Unicode character"},
        {"'\\U00110000'", 1, 1, "an escape that is no Unicode character"},
        {"'\\18'", 1, 3, "an escape of this kind has 3 octal digits"},
        {"b'x'", 1, 1, "bytes are not part of this subset; write a text"},
        {"rb'x'", 1, 1, "bytes are not part of this subset; write a text"},
        {"1u", 1, 1, "unsigned numbers are not part of this subset; leave the u away"},
        {"1.5", 1, 1, "only whole numbers are part of this subset"},
        {"1e3", 1, 1, "only whole numbers are part of this subset"},
        {".5", 1, 1, "only whole numbers are part of this subset"},
        {"9223372036854775808", 1, 1, "the number does not fit into 64 bits"},
        {"-9223372036854775809", 1, 1, "the number does not fit into 64 bits"},
        {"99999999999999999999", 1, 1, "the number does not fit into 64 bits"},
        {"12abc", 1, 3, "a name cannot begin right behind a number"},
        {"who # x", 1, 5, "a character that no expression has outside of a text"},
        {"(1", 1, 3, "the expression ends where \")\" is missing"},
        {"[1 2]", 1, 4, "\"]\" expected here"},
        {"{1}", 1, 3, "\":\" expected here"},
        {"1)", 1, 2, "an operator is missing here, or a bracket is too many"},
        {"size(1,)", 1, 8, "a value is missing behind the comma"},
        {"true ? 1", 1, 9, "the expression ends where \":\" is missing"},
        {"m.", 1, 3, "the name of a member is missing behind the dot"},
        {"m.in", 1, 3, "the name of a member is missing behind the dot"},
        {"if", 1, 1, "\"if\" is a word of CEL's own"},
        {"1 == 'a'", 1, 3, "int is never equal to string"},
        {"[1] == ['a']", 1, 5, "int is never equal to string"},
        {"who == null", 1, 5, "string is never equal to null"},
        {"1 + 'a' == 'a'", 1, 3, "+ takes two int, two string or two list, not int and string"},
        {"yes + yes", 1, 5, "+ takes two int, two string or two list, not bool and bool"},
        {"n - who", 1, 5, "arithmetic takes int, not string"},
        {"-who", 1, 2, "arithmetic takes int, not string"},
        {"!n", 1, 2, "! takes bool, not int"},
        {"n && yes", 1, 1, "&& takes bool, not int"},
        {"yes || who", 1, 8, "|| takes bool, not string"},
        {"n ? 1 : 2", 1, 1, "the condition before ? takes bool, not int"},
        {"yes ? 1 : 'a'", 1, 5, "both sides of : must be of one type, not int and string"},
        {"n < who", 1, 3, "this compares two int, two string or two bool, not int and string"},
        {"[1] < [2]", 1, 5, "this compares two int, two string or two bool, not list and list"},
        {"1 in words", 1, 3, "int is never in a list of string"},
        {"who in who", 1, 5, "in looks into a list or a map, not into string"},
        {"who[0]", 1, 4, "only a list or a map has entries, not string"},
        {"words['a']", 1, 6, "a list is indexed by int, not by string"},
        {"who.x", 1, 5, "only a map has members, and this is string"},
        {"size(1)", 1, 1, "size takes string, list or map, not int"},
        {"who.startsWith(1)", 1, 16, "this function takes string, not int"},
        {"startsWith(who, 'a')", 1, 1, "startsWith is written text.NAME(text)"},
        {"who.int()", 1, 5, "int is written NAME(value)"},
        {"size()", 1, 1, "size is written NAME(value) or value.NAME()"},
        {"int(words)", 1, 1, "list cannot be made a int"},
        {"string(null)", 1, 1, "null cannot be made a string"},
        {"has(m)", 1, 1, "has() takes one member of a map: has(m.name)"},
        {"has(now.hour)", 1, 1, "has() is about members of a map, and this is a variable"},
        {"words.all(1, true)", 1, 7, "write it as list.all(x, …) with a name for x"},
        {"words.all(w)", 1, 7, "write it as list.all(x, …) with a name for x"},
        {"words.all(w, w)", 1, 14, "the test of a loop takes bool, not string"},
        {"n.all(x, true)", 1, 3, "this runs through a list or a map, not int"},
        {"{[1]: 2}", 1, 2, "a key is a string, an int or a bool, not list"},
        {"who.matches('^a+$')", 1, 5,
         "matches() is not part of this subset; use startsWith, endsWith, contains, or patterns in "
         "the rule's other fields"},
        {"timestamp('x')", 1, 1, "timestamps are not part of this subset; use int seconds"},
        {"rm(who)", 1, 1,
         "unknown function \"rm\"; known are: size, startsWith, endsWith, contains, int, string, "
         "has, all, exists, exists_one, filter, map"},
        {"'\xff'", 1, 1, "an expression is UTF-8"},
    };
    /* clang-format on */

    for (size_t i = 0; i < COUNT(all); i++) {
        AUTO_ARENA struct arena mem = ARENA(16 * MIB);
        const struct expr *expr = NULL;
        struct mark where = {0, 0};
        struct err err = {0};

        if (expr_compile(&mem, str_of(all[i].text), names, COUNT(names), &expr, &where, &err) ==
            0) {
            test_fail(__FILE__, __LINE__, "%s compiles", all[i].text);
            continue;
        }
        CHECK(expr == NULL);
        CHECK_TEXT(err.text, all[i].why);
        if (where.line != all[i].line || where.column != all[i].column)
            test_fail(__FILE__, __LINE__, "%s: %u:%u, not %u:%u", all[i].text, where.line,
                      where.column, all[i].line, all[i].column);
    }
}

/* ---- ceilings ---- */

static char *repeated(const char *head, const char *part, size_t n, const char *tail)
{
    char *text = calloc(1, strlen(head) + n * strlen(part) + strlen(tail) + 1);
    char *at = stpcpy(text, head);

    for (size_t i = 0; i < n; i++)
        at = stpcpy(at, part);
    (void)strcpy(at, tail);
    return text;
}

TEST(trees_have_ceilings)
{
    /* clang-format off */
    static const struct {
        const char *head, *part;
        size_t fits, over;
        const char *tail, *why;
    } all[] = {
        {"", "(", 63, 64, "1", "brackets may nest at most 64 deep"},
        {"", "[", 63, 64, "1", "brackets may nest at most 64 deep"},
        {"1", " + 1", 128, 129, "", "an expression may be at most 128 levels deep"},
        {"", "!", 127, 129, "true", "an expression may be at most 128 levels deep"},
        {"", "-", 127, 130, "1", "an expression may be at most 128 levels deep"},
        {"m", ".a", 127, 129, "", "an expression may be at most 128 levels deep"},
        {"[1", ",1", 1000, 1024, "]", "an expression may have at most 1024 parts"},
        {"yes", "||yes", 600, 600, "", NULL},
        {"'", "x", 4000, 4100, "'", "an expression may have at most 4096 bytes"},
    };
    /* clang-format on */

    for (size_t i = 0; i < COUNT(all); i++) {
        for (int over = 0; over < 2; over++) {
            AUTO_ARENA struct arena mem = ARENA(16 * MIB);
            AUTO_FREE char *text =
                repeated(all[i].head, all[i].part, over ? all[i].over : all[i].fits, all[i].tail);
            const struct expr *expr = NULL;
            struct mark where;
            struct err err = {0};
            int result = expr_compile(&mem, str_of(text), names, COUNT(names), &expr, &where, &err);

            if (over && all[i].why)
                CHECK_TEXT(err.text, all[i].why);
            else if (result < 0) /* brackets that are left open, and nothing else */
                CHECK(strstr(err.text, "is missing") != NULL);
        }
    }
}

TEST(loops_nest_so_deep_and_no_deeper)
{
    AUTO_ARENA struct arena mem = ARENA(16 * MIB);
    AUTO_FREE char *text = repeated("", "words.all(w, ", 9, "true)))))))))");
    const struct expr *expr = NULL;
    struct mark where;
    struct err err = {0};

    CHECK_INT(expr_compile(&mem, str_of(text), names, COUNT(names), &expr, &where, &err), -1);
    CHECK_TEXT(err.text, "loops may nest at most 8 deep");
}

TEST(steps_run_out_and_nothing_absorbs_that)
{
    static const char *const all[] = {
        "words.all(a, words.all(b, words.all(c, words.all(d, words.all(e, size(e) > 0)))))",
        "words.all(a, words.all(b, words.all(c, words.all(d, words.all(e, size(e) > 0))))) || true",
        "true && words.all(a, words.all(b, words.all(c, words.all(d, size(a) > 0)))) || !false",
        "words.exists(a, words.all(b, words.all(c, words.all(d, words.all(e, true))))) || true",
    };

    for (size_t i = 0; i < COUNT(all); i++) {
        struct expr_value value = {0};
        struct err err = {0};

        CHECK_INT(run_steps(all[i], 100, EXPR_SPACE_MAX, &value, &err), -1);
        CHECK_INT(err.code, ERR_LIMIT);
        CHECK_TEXT(err.text, "the expression ran out of steps");
        CHECK_INT(run(all[i], &value, &err), 0);
    }
}

TEST(space_runs_out_and_nothing_absorbs_that)
{
    struct expr_value value = {0};
    struct err err = {0};

    CHECK_INT(run_steps("[1, 2, 3] == [] || true", EXPR_STEPS_MAX, 64, &value, &err), -1);
    CHECK_INT(err.code, ERR_LIMIT);
    CHECK_TEXT(err.text, "the expression ran out of space");
    CHECK_INT(run_steps("who + who == '' || true", EXPR_STEPS_MAX, 0, &value, &err), -1);
    CHECK_TEXT(err.text, "the expression ran out of space");
}

TEST(long_texts_cost_steps)
{
    static char long_text[MIB];
    AUTO_ARENA struct arena mem = ARENA(16 * MIB);
    static const struct expr_name name[] = {
        {"t", {EXPR_STRING, EXPR_UNKNOWN}}
    };
    struct expr_value values[1] = {
        {.kind = EXPR_STRING, .text = {long_text, sizeof long_text}}
    };
    struct expr_scope scope = {.values = values, .steps = EXPR_STEPS_MAX};
    const struct expr *expr = NULL;
    struct mark where;
    struct err err = {0};
    bool holds = true;

    memset(long_text, 'a', sizeof long_text);
    CHECK_INT(expr_compile(&mem, str_of("t.contains('b')"), name, 1, &expr, &where, &err), 0);
    CHECK_INT(expr_holds(expr, &scope, &holds, &err), 0);
    CHECK(!holds);
    CHECK(EXPR_STEPS_MAX - scope.steps > MIB / 64);
    CHECK(expr_reads(expr, 0) && !expr_reads(expr, 1));
}

TEST(a_condition_is_true_or_false)
{
    AUTO_ARENA struct arena mem = ARENA(16 * MIB);
    struct expr_value values[COUNT(names)] = {0};
    struct expr_scope scope = {.values = values, .steps = 100};
    const struct expr *expr = NULL;
    struct mark where;
    struct err err = {0};
    bool holds = false;

    fill(values);
    CHECK_INT(expr_compile(&mem, str_of("any"), names, COUNT(names), &expr, &where, &err), 0);
    CHECK_INT(expr_result(expr).kind, EXPR_UNKNOWN);
    CHECK_INT(expr_holds(expr, &scope, &holds, &err), -1);
    CHECK_TEXT(err.text, "the expression is int, not true or false");
    CHECK_INT(expr_compile(&mem, str_of("words"), names, COUNT(names), &expr, &where, &err), 0);
    CHECK_INT(expr_result(expr).kind, EXPR_LIST);
    CHECK_INT(expr_result(expr).of, EXPR_STRING);
}
