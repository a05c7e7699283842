/* SPDX-License-Identifier: Apache-2.0 */
/* Walking the checked tree.
 *
 * An error is not a value; it goes up to the nearest && or || that another side decides: false && …
 * is false and true || … is true whatever is wrong with the other sides, in whichever order they
 * stand. all() and exists() are the same over a list. Steps or space that ran out are absorbed by
 * nothing. */
#include "lib/expr/expr-private.h"

static bool eval_node(struct eval *eval, const struct node *node, struct expr_value *out);

static bool eval_bool(struct eval *eval, const struct node *node, bool *out)
{
    struct expr_value value = {0};

    if (!eval_node(eval, node, &value))
        return false;
    if (value.kind != EXPR_BOOL)
        return eval_bad(eval, "true or false is needed here, not %s", expr_kind_name(value.kind));
    *out = value.boolean;
    return true;
}

/* Sides seen one by one: one that decides ends it, an error waits for one that does. */
struct absorb {
    bool decider; /* false for &&, true for || */
    bool decided;
    bool failed;
};

/* True: go on with the next side. */
static bool absorb_side(struct eval *eval, struct absorb *absorb, const struct node *node)
{
    bool value = false;

    if (!eval_bool(eval, node, &value))
        absorb->failed = true;
    else
        absorb->decided = value == absorb->decider;
    return !absorb->decided && !eval->over;
}

static bool absorb_result(const struct eval *eval, const struct absorb *absorb,
                          struct expr_value *out)
{
    if (eval->over || (absorb->failed && !absorb->decided))
        return false;
    *out = (struct expr_value){.kind = EXPR_BOOL, .boolean = absorb->decided == absorb->decider};
    return true;
}

static bool eval_logic(struct eval *eval, const struct node *node, struct expr_value *out)
{
    struct absorb absorb = {.decider = node->kind == NODE_OR};

    for (size_t i = 0; i < node->n; i++)
        if (!absorb_side(eval, &absorb, node->of[i]))
            break;
    return absorb_result(eval, &absorb, out);
}

/* ---- loops ---- */

static bool range_of(struct eval *eval, const struct node *node, struct expr_value *range)
{
    if (!eval_node(eval, node, range))
        return false;
    if (range->kind != EXPR_LIST && range->kind != EXPR_MAP)
        return eval_bad(eval, "this runs through a list or a map, not %s",
                        expr_kind_name(range->kind));
    return true;
}

static size_t range_n(const struct expr_value *range)
{
    return range->kind == EXPR_LIST ? range->list.n : range->map.n;
}

static struct expr_value range_at(const struct expr_value *range, size_t i)
{
    return range->kind == EXPR_LIST ? range->list.v[i] : range->map.v[i].key;
}

static bool eval_quantifier(struct eval *eval, const struct node *node,
                            const struct expr_value *range, struct expr_value *out)
{
    struct absorb absorb = {.decider = node->loop == LOOP_EXISTS};

    for (size_t i = 0; i < range_n(range); i++) {
        eval->locals[node->slot] = range_at(range, i);
        if (!absorb_side(eval, &absorb, node->of[1]))
            break;
    }
    return absorb_result(eval, &absorb, out);
}

static bool eval_exists_one(struct eval *eval, const struct node *node,
                            const struct expr_value *range, struct expr_value *out)
{
    size_t count = 0;

    for (size_t i = 0; i < range_n(range); i++) {
        bool holds = false;

        eval->locals[node->slot] = range_at(range, i);
        if (!eval_bool(eval, node->of[1], &holds))
            return false;
        count += holds;
    }
    *out = (struct expr_value){.kind = EXPR_BOOL, .boolean = count == 1};
    return true;
}

/* filter and map: a list of at most as many. */
static bool eval_transform(struct eval *eval, const struct node *node,
                           const struct expr_value *range, struct expr_value *out)
{
    size_t n = range_n(range), kept = 0;
    struct expr_value *v = eval_space(eval, n * sizeof *v);

    if (!v)
        return false;
    for (size_t i = 0; i < n; i++) {
        struct expr_value item = range_at(range, i);
        bool holds = true;

        eval->locals[node->slot] = item;
        if (node->of[1] && !eval_bool(eval, node->of[1], &holds))
            return false;
        if (holds && node->of[2] && !eval_node(eval, node->of[2], &item))
            return false;
        if (holds)
            v[kept++] = item;
    }
    out->kind = EXPR_LIST;
    out->list.v = v;
    out->list.n = kept;
    return true;
}

static bool eval_loop(struct eval *eval, const struct node *node, struct expr_value *out)
{
    struct expr_value range = {0};

    if (!range_of(eval, node->of[0], &range))
        return false;
    switch (node->loop) {
    case LOOP_ALL:
    case LOOP_EXISTS:
        return eval_quantifier(eval, node, &range, out);
    case LOOP_EXISTS_ONE:
        return eval_exists_one(eval, node, &range, out);
    case LOOP_FILTER:
    case LOOP_MAP:
        break;
    }
    return eval_transform(eval, node, &range, out);
}

/* ---- the rest ---- */

static bool eval_list(struct eval *eval, const struct node *node, struct expr_value *out)
{
    struct expr_value *v = eval_space(eval, node->n * sizeof *v);

    if (!v)
        return false;
    for (size_t i = 0; i < node->n; i++)
        if (!eval_node(eval, node->of[i], &v[i]))
            return false;
    out->kind = EXPR_LIST;
    out->list.v = v;
    out->list.n = node->n;
    return true;
}

static bool eval_map(struct eval *eval, const struct node *node, struct expr_value *out)
{
    size_t n = node->n / 2;
    struct expr_entry *v = eval_space(eval, n * sizeof *v);
    struct expr_value map = {.kind = EXPR_MAP};

    if (!v)
        return false;
    map.map.v = v;
    for (size_t i = 0; i < n; i++) {
        enum expr_kind kind;

        if (!eval_node(eval, node->of[2 * i], &v[i].key) ||
            !eval_node(eval, node->of[2 * i + 1], &v[i].value))
            return false;
        kind = v[i].key.kind;
        if (kind != EXPR_STRING && kind != EXPR_INT && kind != EXPR_BOOL)
            return eval_bad(eval, "a key is a string, an int or a bool, not %s",
                            expr_kind_name(kind));
        if (map_find(eval, &map, &v[i].key))
            return eval_bad(eval, "the map has a key twice");
        map.map.n = i + 1;
    }
    *out = map;
    return !eval->over;
}

static bool eval_select(struct eval *eval, const struct node *node, struct expr_value *out)
{
    struct expr_value of = {0};
    const struct expr_value *found;

    if (!eval_node(eval, node->of[0], &of))
        return false;
    if (of.kind != EXPR_MAP)
        return eval_bad(eval, "only a map has members, and this is %s", expr_kind_name(of.kind));
    found = map_find(eval, &of, &node->value);
    if (eval->over)
        return false;
    if (node->kind == NODE_HAS) {
        *out = (struct expr_value){.kind = EXPR_BOOL, .boolean = found != NULL};
        return true;
    }
    if (!found)
        return eval_bad(eval, "no such key");
    *out = *found;
    return true;
}

static bool eval_choice(struct eval *eval, const struct node *node, struct expr_value *out)
{
    bool condition = false;

    return eval_bool(eval, node->of[0], &condition) &&
           eval_node(eval, node->of[condition ? 1 : 2], out);
}

static bool eval_op(struct eval *eval, const struct node *node, struct expr_value *out)
{
    struct expr_value args[2] = {0};

    for (size_t i = 0; i < node->n; i++)
        if (!eval_node(eval, node->of[i], &args[i]))
            return false;
    return value_op(eval, node->op, args, out);
}

static bool eval_variable(struct eval *eval, const struct node *node, struct expr_value *out)
{
    *out = eval->scope->values[node->slot];
    return out->kind == EXPR_UNKNOWN ? eval_bad(eval, "a value is not known") : true;
}

static bool eval_node(struct eval *eval, const struct node *node, struct expr_value *out)
{
    if (!eval_steps(eval, 1))
        return false;
    switch (node->kind) {
    case NODE_LITERAL:
        *out = node->value;
        return true;
    case NODE_VARIABLE:
        return eval_variable(eval, node, out);
    case NODE_LOCAL:
        *out = eval->locals[node->slot];
        return true;
    case NODE_SELECT:
    case NODE_HAS:
        return eval_select(eval, node, out);
    case NODE_LIST:
        return eval_list(eval, node, out);
    case NODE_MAP:
        return eval_map(eval, node, out);
    case NODE_AND:
    case NODE_OR:
        return eval_logic(eval, node, out);
    case NODE_CHOICE:
        return eval_choice(eval, node, out);
    case NODE_OP:
        return eval_op(eval, node, out);
    case NODE_LOOP:
        return eval_loop(eval, node, out);
    case NODE_NAME:
    case NODE_CALL:
        break;
    }
    return eval_bad(eval, "a part without a meaning");
}

int expr_eval(const struct expr *expr, struct expr_scope *scope, struct expr_value *out,
              struct err *err)
{
    struct eval eval = {.scope = scope, .err = err};
    struct expr_value value = {0};

    if (!eval_node(&eval, expr->root, &value))
        return -1;
    *out = value;
    return 0;
}

int expr_holds(const struct expr *expr, struct expr_scope *scope, bool *out, struct err *err)
{
    struct expr_value value = {0};

    if (expr_eval(expr, scope, &value, err) < 0)
        return -1;
    if (value.kind != EXPR_BOOL)
        return err_set(err, ERR_INVALID, "the expression is %s, not true or false",
                       expr_kind_name(value.kind));
    *out = value.boolean;
    return 0;
}
