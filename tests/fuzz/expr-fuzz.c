/* SPDX-License-Identifier: Apache-2.0 */

/* Any text is an expression or is refused with a sentence and a place inside it; what is an
 * expression has a value of the kind it was said to have, or fails with a sentence, within its
 * steps and its space. Evaluated twice it gives the same. */

#include "fuzz.h"

#include "lib/base/limits.h"
#include "lib/expr/expr.h"

#include <stdlib.h>
#include <string.h>

static const struct expr_name names[] = {
    {"t",     {EXPR_STRING, EXPR_UNKNOWN} },
    {"l",     {EXPR_LIST, EXPR_STRING}    },
    {"n",     {EXPR_INT, EXPR_UNKNOWN}    },
    {"b",     {EXPR_BOOL, EXPR_UNKNOWN}   },
    {"m",     {EXPR_MAP, EXPR_UNKNOWN}    },
    {"d",     {EXPR_UNKNOWN, EXPR_UNKNOWN}},
    {"u",     {EXPR_STRING, EXPR_UNKNOWN} },
    {"now.h", {EXPR_INT, EXPR_UNKNOWN}    },
};

static void fill(struct expr_value *values)
{
    static const struct expr_value texts[] = {
        {.kind = EXPR_STRING, .text = {"git", 3}      },
        {.kind = EXPR_STRING, .text = {"\xff\x00x", 3}},
        {.kind = EXPR_STRING, .text = {"", 0}         },
        {.kind = EXPR_STRING, .text = {"\xc3\xa9", 2} },
    };
    static const struct expr_entry entries[] = {
        {{.kind = EXPR_STRING, .text = {"a", 1}}, {.kind = EXPR_INT, .number = INT64_MIN}},
        {{.kind = EXPR_INT, .number = 1},         {.kind = EXPR_NULL}                    },
    };

    values[0] = texts[0];
    values[1].kind = EXPR_LIST;
    values[1].list.v = texts;
    values[1].list.n = COUNT(texts);
    values[2] = (struct expr_value){.kind = EXPR_INT, .number = 3};
    values[3] = (struct expr_value){.kind = EXPR_BOOL, .boolean = true};
    values[4].kind = EXPR_MAP;
    values[4].map.v = entries;
    values[4].map.n = COUNT(entries);
    values[5] = values[4];
    values[7] = values[2];
}

static int evaluate(const struct expr *expr, struct expr_value *out, struct err *err)
{
    static char space[4096] __attribute__((aligned(16)));
    struct expr_value values[COUNT(names)] = {0};
    struct expr_scope scope = {
        .values = values, .space = space, .space_bytes = sizeof space, .steps = 10000};
    int result;

    fill(values);
    result = expr_eval(expr, &scope, out, err);
    if (scope.steps > 10000 || (result < 0 && !err->text[0]) ||
        (result == 0 && out->kind == EXPR_UNKNOWN))
        abort();
    return result;
}

static void check(const struct expr *expr)
{
    enum expr_kind said = expr_result(expr).kind;
    struct expr_value first = {0}, second = {0};
    struct err err = {0};
    int result = evaluate(expr, &first, &err);

    if (result == 0 && said != EXPR_UNKNOWN && first.kind != said)
        abort();
    if (evaluate(expr, &second, &err) != result || first.kind != second.kind)
        abort();
    if (result == 0 && first.kind == EXPR_INT && first.number != second.number)
        abort();
}

static void check_refusal(struct str text, struct mark where, const struct err *err)
{
    unsigned lines = 1;

    for (size_t i = 0; i < text.n; i++)
        lines += text.p[i] == '\n';
    if (!err->text[0] || where.line == 0 || where.line > lines || where.column == 0 ||
        where.column > text.n + 1)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    struct str text = {(const char *)bytes, n};
    AUTO_ARENA struct arena mem = ARENA(4 * MIB);
    const struct expr *expr = NULL;
    struct mark where = {0, 0};
    struct err err = {0};

    if (expr_compile(&mem, text, names, COUNT(names), &expr, &where, &err) < 0)
        check_refusal(text, where, &err);
    else
        check(expr);
    return 0;
}
