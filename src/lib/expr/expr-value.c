/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on values: each looks at the kinds first, and pays for the bytes it touches. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/expr/expr-private.h"

#define BYTES_A_STEP 64

/* ---- what everything is counted with ---- */

bool eval_bad(struct eval *eval, const char *fmt, ...)
{
    char text[sizeof eval->err->text];
    va_list args;

    if (eval->over)
        return false;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    (void)err_set(eval->err, ERR_INVALID, "%s", text);
    return false;
}

static bool run_out(struct eval *eval, const char *of)
{
    if (!eval->over)
        (void)err_set(eval->err, ERR_LIMIT, "the expression ran out of %s", of);
    eval->over = true;
    return false;
}

bool eval_steps(struct eval *eval, size_t n)
{
    if (eval->over || n > eval->scope->steps) {
        eval->scope->steps = 0;
        return run_out(eval, "steps");
    }
    eval->scope->steps -= (uint32_t)n;
    return true;
}

void *eval_space(struct eval *eval, size_t bytes)
{
    size_t aligned = (bytes + 15) & ~(size_t)15;
    void *p = eval->scope->space + eval->used;

    if (aligned < bytes || aligned > eval->scope->space_bytes - eval->used) {
        (void)run_out(eval, "space");
        return NULL;
    }
    eval->used += aligned;
    return p;
}

static bool pay_bytes(struct eval *eval, size_t bytes)
{
    return eval_steps(eval, 1 + bytes / BYTES_A_STEP);
}

/* ---- comparing ---- */

static bool lists_equal(struct eval *eval, const struct expr_value *a, const struct expr_value *b,
                        bool *out)
{
    *out = a->list.n == b->list.n;
    for (size_t i = 0; *out && i < a->list.n; i++)
        if (!value_equal(eval, &a->list.v[i], &b->list.v[i], out))
            return false;
    return true;
}

static bool maps_equal(struct eval *eval, const struct expr_value *a, const struct expr_value *b,
                       bool *out)
{
    *out = a->map.n == b->map.n;
    for (size_t i = 0; *out && i < a->map.n; i++) {
        const struct expr_value *other = map_find(eval, b, &a->map.v[i].key);

        if (eval->over)
            return false;
        *out = other != NULL;
        if (other && !value_equal(eval, &a->map.v[i].value, other, out))
            return false;
    }
    return true;
}

/* Values of different kinds are never equal. Nesting is bounded by the depth of the tree that made
 * them, or by whoever filled the variables. */
bool value_equal(struct eval *eval, const struct expr_value *a, const struct expr_value *b,
                 bool *out)
{
    if (!eval_steps(eval, 1))
        return false;
    *out = false;
    if (a->kind != b->kind)
        return true;
    switch (a->kind) {
    case EXPR_UNKNOWN:
        return eval_bad(eval, "a value is not known");
    case EXPR_NULL:
        *out = true;
        return true;
    case EXPR_BOOL:
        *out = a->boolean == b->boolean;
        return true;
    case EXPR_INT:
        *out = a->number == b->number;
        return true;
    case EXPR_STRING:
        *out = str_eq(a->text, b->text);
        return pay_bytes(eval, a->text.n == b->text.n ? a->text.n : 0);
    case EXPR_LIST:
        return lists_equal(eval, a, b, out);
    case EXPR_MAP:
        return maps_equal(eval, a, b, out);
    }
    return false;
}

static bool compare(struct eval *eval, const struct expr_value *a, const struct expr_value *b,
                    int *out)
{
    if (a->kind == EXPR_INT && b->kind == EXPR_INT) {
        *out = (a->number > b->number) - (a->number < b->number);
        return true;
    }
    if (a->kind == EXPR_BOOL && b->kind == EXPR_BOOL) {
        *out = a->boolean - b->boolean;
        return true;
    }
    if (a->kind != EXPR_STRING || b->kind != EXPR_STRING)
        return eval_bad(eval, "%s and %s have no order", expr_kind_name(a->kind),
                        expr_kind_name(b->kind));
    *out = str_cmp(a->text, b->text);
    return pay_bytes(eval, a->text.n < b->text.n ? a->text.n : b->text.n);
}

static bool order(struct eval *eval, enum op op, const struct expr_value *args,
                  struct expr_value *out)
{
    int sign = 0;
    bool holds;

    if (!compare(eval, &args[0], &args[1], &sign))
        return false;
    if (op == OP_LESS)
        holds = sign < 0;
    else if (op == OP_LESS_EQUAL)
        holds = sign <= 0;
    else if (op == OP_GREATER)
        holds = sign > 0;
    else
        holds = sign >= 0;
    *out = (struct expr_value){.kind = EXPR_BOOL, .boolean = holds};
    return true;
}

/* ---- looking into lists and maps ---- */

const struct expr_value *map_find(struct eval *eval, const struct expr_value *map,
                                  const struct expr_value *key)
{
    for (size_t i = 0; i < map->map.n; i++) {
        bool equal = false;

        if (!value_equal(eval, &map->map.v[i].key, key, &equal))
            return NULL;
        if (equal)
            return &map->map.v[i].value;
    }
    return NULL;
}

static bool is_in(struct eval *eval, const struct expr_value *args, struct expr_value *out)
{
    const struct expr_value *in = &args[1];
    bool found = false;

    if (in->kind == EXPR_MAP) {
        found = map_find(eval, in, &args[0]) != NULL;
        if (eval->over)
            return false;
    } else if (in->kind == EXPR_LIST) {
        for (size_t i = 0; !found && i < in->list.n; i++)
            if (!value_equal(eval, &args[0], &in->list.v[i], &found))
                return false;
    } else {
        return eval_bad(eval, "in looks into a list or a map, not into %s",
                        expr_kind_name(in->kind));
    }
    *out = (struct expr_value){.kind = EXPR_BOOL, .boolean = found};
    return true;
}

static bool entry(struct eval *eval, const struct expr_value *args, struct expr_value *out)
{
    const struct expr_value *found;

    if (args[0].kind == EXPR_MAP) {
        found = map_find(eval, &args[0], &args[1]);
        if (!found)
            return eval_bad(eval, "no such key");
        *out = *found;
        return true;
    }
    if (args[0].kind != EXPR_LIST || args[1].kind != EXPR_INT)
        return eval_bad(eval, "%s has no entries by %s", expr_kind_name(args[0].kind),
                        expr_kind_name(args[1].kind));
    if (args[1].number < 0 || (uint64_t)args[1].number >= args[0].list.n)
        return eval_bad(eval, "index %" PRId64 " is outside of a list of %zu", args[1].number,
                        args[0].list.n);
    *out = args[0].list.v[args[1].number];
    return true;
}

/* Characters; a byte where the text is not UTF-8. */
static bool text_size(struct eval *eval, struct str text, int64_t *out)
{
    int64_t n = 0;

    while (text.n) {
        size_t length = str_utf8_length(text);

        length = length ? length : 1;
        text = (struct str){text.p + length, text.n - length};
        n++;
    }
    *out = n;
    return pay_bytes(eval, (size_t)n);
}

static bool size(struct eval *eval, const struct expr_value *of, struct expr_value *out)
{
    *out = (struct expr_value){.kind = EXPR_INT};
    if (of->kind == EXPR_STRING)
        return text_size(eval, of->text, &out->number);
    if (of->kind == EXPR_LIST)
        out->number = (int64_t)of->list.n;
    else if (of->kind == EXPR_MAP)
        out->number = (int64_t)of->map.n;
    else
        return eval_bad(eval, "%s has no size", expr_kind_name(of->kind));
    return true;
}

/* ---- arithmetic and texts ---- */

static bool arithmetic(struct eval *eval, enum op op, const struct expr_value *args,
                       struct expr_value *out)
{
    int64_t a = args[0].number, b = args[1].number;
    bool divides = op == OP_DIVIDE || op == OP_MODULO;
    bool over = false;

    if (args[0].kind != EXPR_INT || args[1].kind != EXPR_INT)
        return eval_bad(eval, "arithmetic takes int, not %s and %s", expr_kind_name(args[0].kind),
                        expr_kind_name(args[1].kind));
    *out = (struct expr_value){.kind = EXPR_INT};
    if (divides && b == 0)
        return eval_bad(eval, "division by zero");
    if (op == OP_ADD)
        over = __builtin_add_overflow(a, b, &out->number);
    else if (op == OP_SUBTRACT)
        over = __builtin_sub_overflow(a, b, &out->number);
    else if (op == OP_MULTIPLY)
        over = __builtin_mul_overflow(a, b, &out->number);
    else if (a == INT64_MIN && b == -1)
        over = true;
    else
        out->number = op == OP_DIVIDE ? a / b : a % b;
    return over ? eval_bad(eval, "a number does not fit into 64 bits") : true;
}

static bool join_texts(struct eval *eval, struct str a, struct str b, struct expr_value *out)
{
    char *text = eval_space(eval, a.n + b.n);

    if (!text || !pay_bytes(eval, a.n + b.n))
        return false;
    if (a.n)
        memcpy(text, a.p, a.n);
    if (b.n)
        memcpy(text + a.n, b.p, b.n);
    *out = (struct expr_value){
        .kind = EXPR_STRING, .text = {text, a.n + b.n}
    };
    return true;
}

static bool join_lists(struct eval *eval, const struct expr_value *a, const struct expr_value *b,
                       struct expr_value *out)
{
    size_t n = a->list.n + b->list.n;
    struct expr_value *v = eval_space(eval, n * sizeof *v);

    if (!v || !eval_steps(eval, n))
        return false;
    for (size_t i = 0; i < n; i++)
        v[i] = i < a->list.n ? a->list.v[i] : b->list.v[i - a->list.n];
    out->kind = EXPR_LIST;
    out->list.v = v;
    out->list.n = n;
    return true;
}

static bool add(struct eval *eval, const struct expr_value *args, struct expr_value *out)
{
    if (args[0].kind == EXPR_STRING && args[1].kind == EXPR_STRING)
        return join_texts(eval, args[0].text, args[1].text, out);
    if (args[0].kind == EXPR_LIST && args[1].kind == EXPR_LIST)
        return join_lists(eval, &args[0], &args[1], out);
    return arithmetic(eval, OP_ADD, args, out);
}

static bool text_test(struct eval *eval, enum op op, const struct expr_value *args,
                      struct expr_value *out)
{
    struct str text = args[0].text, part = args[1].text;
    bool holds = false;

    if (args[0].kind != EXPR_STRING || args[1].kind != EXPR_STRING)
        return eval_bad(eval, "this function takes string, not %s and %s",
                        expr_kind_name(args[0].kind), expr_kind_name(args[1].kind));
    if (op == OP_CONTAINS) /* memmem() is linear */
        holds = part.n == 0 || (part.n <= text.n && memmem(text.p, text.n, part.p, part.n));
    else if (part.n <= text.n)
        holds = part.n == 0 || memcmp(op == OP_STARTS_WITH ? text.p : text.p + text.n - part.n,
                                      part.p, part.n) == 0;
    *out = (struct expr_value){.kind = EXPR_BOOL, .boolean = holds};
    return pay_bytes(eval, op == OP_CONTAINS ? text.n + part.n : part.n);
}

/* ---- conversions ---- */

static bool text_int(struct eval *eval, struct str text, struct expr_value *out)
{
    bool negative = text.n && text.p[0] == '-';
    uint64_t most = (uint64_t)INT64_MAX + negative, number = 0;

    if (text.n && (negative || text.p[0] == '+'))
        text = (struct str){text.p + 1, text.n - 1};
    if (text.n > 64 || !str_u64(text, &number) || number > most)
        return eval_bad(eval, "the text is no int");
    *out = (struct expr_value){.kind = EXPR_INT};
    out->number = !negative ? (int64_t)number : number == most ? INT64_MIN : -(int64_t)number;
    return true;
}

static bool to_int(struct eval *eval, const struct expr_value *from, struct expr_value *out)
{
    if (from->kind == EXPR_STRING)
        return text_int(eval, from->text, out);
    if (from->kind != EXPR_INT)
        return eval_bad(eval, "%s cannot be made an int", expr_kind_name(from->kind));
    *out = *from;
    return true;
}

static bool to_string(struct eval *eval, const struct expr_value *from, struct expr_value *out)
{
    char text[24];
    int n;

    if (from->kind == EXPR_STRING) {
        *out = *from;
        return true;
    }
    if (from->kind == EXPR_BOOL) {
        *out = (struct expr_value){.kind = EXPR_STRING,
                                   .text = from->boolean ? STR_LIT("true") : STR_LIT("false")};
        return true;
    }
    if (from->kind != EXPR_INT)
        return eval_bad(eval, "%s cannot be made a string", expr_kind_name(from->kind));
    n = snprintf(text, sizeof text, "%" PRId64, from->number);
    return join_texts(eval, (struct str){text, (size_t)n}, (struct str){0}, out);
}

static bool negate(struct eval *eval, const struct expr_value *of, struct expr_value *out)
{
    struct expr_value args[2] = {{.kind = EXPR_INT}, *of};

    return arithmetic(eval, OP_SUBTRACT, args, out);
}

bool value_op(struct eval *eval, enum op op, const struct expr_value *args, struct expr_value *out)
{
    bool equal = false;

    switch (op) {
    case OP_NOT:
        if (args[0].kind != EXPR_BOOL)
            return eval_bad(eval, "! takes bool, not %s", expr_kind_name(args[0].kind));
        *out = (struct expr_value){.kind = EXPR_BOOL, .boolean = !args[0].boolean};
        return true;
    case OP_NEGATE:
        return negate(eval, &args[0], out);
    case OP_ADD:
        return add(eval, args, out);
    case OP_SUBTRACT:
    case OP_MULTIPLY:
    case OP_DIVIDE:
    case OP_MODULO:
        return arithmetic(eval, op, args, out);
    case OP_EQUAL:
    case OP_UNEQUAL:
        if (!value_equal(eval, &args[0], &args[1], &equal))
            return false;
        *out = (struct expr_value){.kind = EXPR_BOOL, .boolean = equal == (op == OP_EQUAL)};
        return true;
    case OP_LESS:
    case OP_LESS_EQUAL:
    case OP_GREATER:
    case OP_GREATER_EQUAL:
        return order(eval, op, args, out);
    case OP_IN:
        return is_in(eval, args, out);
    case OP_INDEX:
        return entry(eval, args, out);
    case OP_SIZE:
        return size(eval, &args[0], out);
    case OP_STARTS_WITH:
    case OP_ENDS_WITH:
    case OP_CONTAINS:
        return text_test(eval, op, args, out);
    case OP_INT:
        return to_int(eval, &args[0], out);
    case OP_STRING:
        return to_string(eval, &args[0], out);
    }
    return eval_bad(eval, "an operation without a meaning");
}
