/* SPDX-License-Identifier: Apache-2.0 */
/* What names and calls mean, and whether the types go together, as far as they are known. A type
 * that is not known goes with everything; evaluation looks again. */
#include <string.h>

#include "lib/expr/expr-private.h"

#define ANY ((struct expr_type){EXPR_UNKNOWN, EXPR_UNKNOWN})
#define OF(k) ((struct expr_type){(k), EXPR_UNKNOWN})

static int bad(struct checker *checker, const struct node *node, const char *text)
{
    return lex_bad(checker->lexer, node->from, "%s", text);
}

static bool fits(struct expr_type a, enum expr_kind kind)
{
    return a.kind == EXPR_UNKNOWN || a.kind == kind;
}

static bool same(struct expr_type a, struct expr_type b)
{
    return a.kind == EXPR_UNKNOWN || b.kind == EXPR_UNKNOWN ||
           (a.kind == b.kind && (a.of == EXPR_UNKNOWN || b.of == EXPR_UNKNOWN || a.of == b.of));
}

const char *expr_kind_name(enum expr_kind kind)
{
    static const char *const names[] = {
        [EXPR_UNKNOWN] = "unknown", [EXPR_NULL] = "null", [EXPR_BOOL] = "bool", [EXPR_INT] = "int",
        [EXPR_STRING] = "string",   [EXPR_LIST] = "list", [EXPR_MAP] = "map",
    };

    return names[kind];
}

static int wants(struct checker *checker, const struct node *node, enum expr_kind kind,
                 const char *what)
{
    if (fits(node->type, kind))
        return 0;
    return lex_bad(checker->lexer, node->from, "%s takes %s, not %s", what, expr_kind_name(kind),
                   expr_kind_name(node->type.kind));
}

/* ---- names ---- */

static bool find_local(struct checker *checker, struct node *node)
{
    for (size_t i = checker->local_n; i-- > 0;)
        if (str_eq(checker->locals[i].name, node->text)) {
            node->kind = NODE_LOCAL;
            node->slot = i;
            node->type = checker->locals[i].type;
            return true;
        }
    return false;
}

static bool find_name(struct checker *checker, struct str name, struct node *node)
{
    for (size_t i = 0; i < checker->name_n; i++)
        if (str_is(name, checker->names[i].name)) {
            node->kind = NODE_VARIABLE;
            node->slot = i;
            node->type = checker->names[i].type;
            checker->expr->reads[i / 64] |= UINT64_C(1) << (i % 64);
            return true;
        }
    return false;
}

static bool is_qualifier(const struct checker *checker, struct str name)
{
    for (size_t i = 0; i < checker->name_n; i++)
        if (strlen(checker->names[i].name) > name.n && checker->names[i].name[name.n] == '.' &&
            memcmp(checker->names[i].name, name.p, name.n) == 0)
            return true;
    return false;
}

/* "now.hour, now.minute, …", or every name when there is no qualifier. */
static const char *known_names(struct checker *checker, struct str qualifier)
{
    const char *text = "";

    for (size_t i = 0; i < checker->name_n; i++) {
        const char *name = checker->names[i].name;

        if (qualifier.n && (strlen(name) <= qualifier.n || name[qualifier.n] != '.' ||
                            memcmp(name, qualifier.p, qualifier.n) != 0))
            continue;
        text = arena_printf(checker->lexer->mem, "%s%s%s", text, *text ? ", " : "", name);
    }
    return text;
}

#define NAME_SHOWN_MAX 40

static int check_name(struct checker *checker, struct node *node)
{
    struct str none = {0};
    int shown = (int)(node->text.n < NAME_SHOWN_MAX ? node->text.n : NAME_SHOWN_MAX);

    if (find_local(checker, node) || find_name(checker, node->text, node))
        return 0;
    if (is_qualifier(checker, node->text))
        return lex_bad(checker->lexer, node->from, "\"%.*s\" alone is no value; there are: %.300s",
                       shown, node->text.p, known_names(checker, node->text));
    return lex_bad(checker->lexer, node->from, "unknown name \"%.*s\"; known are: %.300s", shown,
                   node->text.p, known_names(checker, none));
}

static int check_select(struct checker *checker, struct node *node)
{
    struct node *of = node->of[0];

    if (of->kind == NODE_NAME && is_qualifier(checker, of->text)) {
        struct node probe = *of;
        struct str qualified = str_of(arena_printf(checker->lexer->mem, STR_FMT "." STR_FMT,
                                                   STR_ARG(of->text), STR_ARG(node->text)));

        if (!find_local(checker, &probe)) {
            if (find_name(checker, qualified, node))
                return 0;
            return lex_bad(checker->lexer, node->from, "there is no " STR_FMT "; there are: %.300s",
                           (int)(qualified.n < NAME_SHOWN_MAX ? qualified.n : NAME_SHOWN_MAX),
                           qualified.p, known_names(checker, of->text));
        }
    }
    if (check_tree(checker, of) < 0)
        return -1;
    if (!fits(of->type, EXPR_MAP))
        return lex_bad(checker->lexer, node->from, "only a map has members, and this is %s",
                       expr_kind_name(of->type.kind));
    node->type = OF(of->type.of);
    return 0;
}

/* ---- operators ---- */

static int check_add(struct checker *checker, struct node *node)
{
    struct expr_type a = node->of[0]->type, b = node->of[1]->type;
    struct expr_type sum = a.kind == EXPR_UNKNOWN ? b : a;

    if ((a.kind != EXPR_UNKNOWN && b.kind != EXPR_UNKNOWN && a.kind != b.kind) ||
        sum.kind == EXPR_NULL || sum.kind == EXPR_BOOL || sum.kind == EXPR_MAP)
        return lex_bad(checker->lexer, node->from,
                       "+ takes two int, two string or two list, not %s and %s",
                       expr_kind_name(a.kind), expr_kind_name(b.kind));
    node->type = sum.kind == EXPR_LIST && a.of != b.of ? OF(EXPR_LIST) : sum;
    return 0;
}

static int check_order(struct checker *checker, struct node *node)
{
    struct expr_type a = node->of[0]->type, b = node->of[1]->type;
    struct expr_type known = a.kind == EXPR_UNKNOWN ? b : a;

    node->type = OF(EXPR_BOOL);
    if (!same(a, b) || known.kind == EXPR_LIST || known.kind == EXPR_MAP || known.kind == EXPR_NULL)
        return lex_bad(checker->lexer, node->from,
                       "this compares two int, two string or two bool, not %s and %s",
                       expr_kind_name(a.kind), expr_kind_name(b.kind));
    return 0;
}

static int check_equal(struct checker *checker, struct node *node)
{
    struct expr_type a = node->of[0]->type, b = node->of[1]->type;

    node->type = OF(EXPR_BOOL);
    if (!same(a, b))
        return lex_bad(checker->lexer, node->from, "%s is never equal to %s",
                       expr_kind_name(a.kind == b.kind ? a.of : a.kind),
                       expr_kind_name(a.kind == b.kind ? b.of : b.kind));
    return 0;
}

static int check_in(struct checker *checker, struct node *node)
{
    struct expr_type a = node->of[0]->type, b = node->of[1]->type;

    node->type = OF(EXPR_BOOL);
    if (b.kind != EXPR_UNKNOWN && b.kind != EXPR_LIST && b.kind != EXPR_MAP)
        return lex_bad(checker->lexer, node->from, "in looks into a list or a map, not into %s",
                       expr_kind_name(b.kind));
    if (b.kind == EXPR_LIST && !same(a, OF(b.of)))
        return lex_bad(checker->lexer, node->from, "%s is never in a list of %s",
                       expr_kind_name(a.kind), expr_kind_name(b.of));
    return 0;
}

static int check_index(struct checker *checker, struct node *node)
{
    struct expr_type of = node->of[0]->type, key = node->of[1]->type;

    if (of.kind != EXPR_UNKNOWN && of.kind != EXPR_LIST && of.kind != EXPR_MAP)
        return lex_bad(checker->lexer, node->from, "only a list or a map has entries, not %s",
                       expr_kind_name(of.kind));
    if (of.kind == EXPR_LIST && !fits(key, EXPR_INT))
        return lex_bad(checker->lexer, node->from, "a list is indexed by int, not by %s",
                       expr_kind_name(key.kind));
    node->type = of.kind == EXPR_UNKNOWN ? ANY : OF(of.of);
    return 0;
}

static int check_number_op(struct checker *checker, struct node *node)
{
    node->type = OF(EXPR_INT);
    for (size_t i = 0; i < node->n; i++)
        if (wants(checker, node->of[i], EXPR_INT, "arithmetic") < 0)
            return -1;
    return 0;
}

static int check_text_op(struct checker *checker, struct node *node)
{
    node->type = OF(EXPR_BOOL);
    for (size_t i = 0; i < node->n; i++)
        if (wants(checker, node->of[i], EXPR_STRING, "this function") < 0)
            return -1;
    return 0;
}

static int check_size(struct checker *checker, struct node *node)
{
    enum expr_kind kind = node->of[0]->type.kind;

    node->type = OF(EXPR_INT);
    if (kind == EXPR_NULL || kind == EXPR_BOOL || kind == EXPR_INT)
        return lex_bad(checker->lexer, node->from, "size takes string, list or map, not %s",
                       expr_kind_name(kind));
    return 0;
}

static int check_convert(struct checker *checker, struct node *node)
{
    enum expr_kind kind = node->of[0]->type.kind;
    bool to_int = node->op == OP_INT;

    node->type = OF(to_int ? EXPR_INT : EXPR_STRING);
    if (kind == EXPR_UNKNOWN || kind == EXPR_INT || kind == EXPR_STRING ||
        (kind == EXPR_BOOL && !to_int))
        return 0;
    return lex_bad(checker->lexer, node->from, "%s cannot be made a %s", expr_kind_name(kind),
                   to_int ? "int" : "string");
}

static int check_op(struct checker *checker, struct node *node)
{
    for (size_t i = 0; i < node->n; i++)
        if (check_tree(checker, node->of[i]) < 0)
            return -1;
    switch (node->op) {
    case OP_NOT:
        node->type = OF(EXPR_BOOL);
        return wants(checker, node->of[0], EXPR_BOOL, "!");
    case OP_ADD:
        return check_add(checker, node);
    case OP_NEGATE:
    case OP_SUBTRACT:
    case OP_MULTIPLY:
    case OP_DIVIDE:
    case OP_MODULO:
        return check_number_op(checker, node);
    case OP_EQUAL:
    case OP_UNEQUAL:
        return check_equal(checker, node);
    case OP_LESS:
    case OP_LESS_EQUAL:
    case OP_GREATER:
    case OP_GREATER_EQUAL:
        return check_order(checker, node);
    case OP_IN:
        return check_in(checker, node);
    case OP_INDEX:
        return check_index(checker, node);
    case OP_SIZE:
        return check_size(checker, node);
    case OP_STARTS_WITH:
    case OP_ENDS_WITH:
    case OP_CONTAINS:
        return check_text_op(checker, node);
    case OP_INT:
    case OP_STRING:
        return check_convert(checker, node);
    }
    return bad(checker, node, "an operation without a meaning");
}

/* ---- calls ---- */

#define ALONE 1U  /* f(x) */
#define METHOD 2U /* x.f() */

static const struct {
    const char *name;
    unsigned how;
    size_t n; /* with what stands before the dot */
    enum op op;
} functions[] = {
    {"size",       ALONE | METHOD, 1, OP_SIZE       },
    {"startsWith", METHOD,         2, OP_STARTS_WITH},
    {"endsWith",   METHOD,         2, OP_ENDS_WITH  },
    {"contains",   METHOD,         2, OP_CONTAINS   },
    {"int",        ALONE,          1, OP_INT        },
    {"string",     ALONE,          1, OP_STRING     },
};

static const struct {
    const char *name;
    enum loop loop;
} loops[] = {
    {"all",        LOOP_ALL       },
    {"exists",     LOOP_EXISTS    },
    {"exists_one", LOOP_EXISTS_ONE},
    {"filter",     LOOP_FILTER    },
    {"map",        LOOP_MAP       },
};

/* What CEL has and this subset does not, and what to write instead. */
static const struct {
    const char *name;
    const char *text;
} left_out[] = {
    {"matches",   "matches() is not part of this subset; use startsWith, endsWith, contains, or "
                "patterns in the rule's other fields"       },
    {"double",    "only whole numbers are part of this subset"             },
    {"uint",      "unsigned numbers are not part of this subset; use int"  },
    {"bytes",     "bytes are not part of this subset; use texts"           },
    {"timestamp", "timestamps are not part of this subset; use int seconds"},
    {"duration",  "durations are not part of this subset; use int seconds" },
    {"type",      "type() is not part of this subset"                      },
    {"dyn",       "dyn() is not part of this subset"                       },
};

static int check_has(struct checker *checker, struct node *node)
{
    struct node *of = node->n == 1 ? node->of[0] : NULL;

    if (!of || of->kind != NODE_SELECT)
        return bad(checker, node, "has() takes one member of a map: has(m.name)");
    if (check_tree(checker, of) < 0)
        return -1;
    if (of->kind != NODE_SELECT) /* a qualified variable, which is declared and so there */
        return bad(checker, node, "has() is about members of a map, and this is a variable");
    *node = (struct node){.kind = NODE_HAS,
                          .from = node->from,
                          .depth = node->depth,
                          .type = OF(EXPR_BOOL),
                          .value = of->value,
                          .of = of->of,
                          .n = 1};
    return 0;
}

static struct expr_type loop_type(enum loop loop, const struct node *range,
                                  const struct node *value)
{
    switch (loop) {
    case LOOP_ALL:
    case LOOP_EXISTS:
    case LOOP_EXISTS_ONE:
        return OF(EXPR_BOOL);
    case LOOP_FILTER:
        return range->type.kind == EXPR_LIST ? range->type : OF(EXPR_LIST);
    case LOOP_MAP:
        break;
    }
    return (struct expr_type){EXPR_LIST, value ? value->type.kind : EXPR_UNKNOWN};
}

/* range.all(x, test) and its like; map has (x, value) or (x, test, value). */
static int check_loop(struct checker *checker, struct node *node, enum loop loop)
{
    struct node *range = node->of[0];
    struct node *name = node->n > 1 ? node->of[1] : NULL;
    struct node *test, *value;

    if (!name || name->kind != NODE_NAME || (node->n != 3 && !(loop == LOOP_MAP && node->n == 4)))
        return lex_bad(checker->lexer, node->from,
                       "write it as list." STR_FMT "(x, …) with a name for x", STR_ARG(node->text));
    if (checker->local_n == EXPR_LOOPS_MAX)
        return lex_bad(checker->lexer, node->from, "loops may nest at most %d deep",
                       EXPR_LOOPS_MAX);
    if (check_tree(checker, range) < 0)
        return -1;
    if (range->type.kind != EXPR_UNKNOWN && range->type.kind != EXPR_LIST &&
        range->type.kind != EXPR_MAP)
        return lex_bad(checker->lexer, node->from, "this runs through a list or a map, not %s",
                       expr_kind_name(range->type.kind));
    node->slot = checker->local_n++;
    checker->locals[node->slot].name = name->text;
    checker->locals[node->slot].type = range->type.kind == EXPR_LIST ? OF(range->type.of) : ANY;
    test = loop == LOOP_MAP && node->n == 3 ? NULL : node->of[2];
    value = loop == LOOP_MAP ? node->of[node->n - 1] : NULL;
    if ((test && (check_tree(checker, test) < 0 ||
                  wants(checker, test, EXPR_BOOL, "the test of a loop") < 0)) ||
        (value && check_tree(checker, value) < 0))
        return -1;
    checker->local_n--;
    node->kind = NODE_LOOP;
    node->loop = loop;
    node->text = name->text;
    node->type = loop_type(loop, range, value);
    node->of = arena_array(checker->lexer->mem, struct node *, 3);
    node->of[0] = range;
    node->of[1] = test;
    node->of[2] = value;
    node->n = 3;
    return 0;
}

static int unknown_function(struct checker *checker, const struct node *node)
{
    for (size_t i = 0; i < COUNT(left_out); i++)
        if (str_is(node->text, left_out[i].name))
            return bad(checker, node, left_out[i].text);
    return lex_bad(checker->lexer, node->from,
                   "unknown function \"%.*s\"; known are: size, startsWith, endsWith, contains, "
                   "int, string, has, all, exists, exists_one, filter, map",
                   (int)(node->text.n < NAME_SHOWN_MAX ? node->text.n : NAME_SHOWN_MAX),
                   node->text.p);
}

static int check_call(struct checker *checker, struct node *node)
{
    if (!node->is_method && str_is(node->text, "has"))
        return check_has(checker, node);
    for (size_t i = 0; node->is_method && i < COUNT(loops); i++)
        if (str_is(node->text, loops[i].name))
            return check_loop(checker, node, loops[i].loop);
    for (size_t i = 0; i < COUNT(functions); i++) {
        if (!str_is(node->text, functions[i].name))
            continue;
        if (!(functions[i].how & (node->is_method ? METHOD : ALONE)) || node->n != functions[i].n)
            return lex_bad(checker->lexer, node->from, "%s is written %s", functions[i].name,
                           functions[i].how == METHOD  ? "text.NAME(text)"
                           : functions[i].how == ALONE ? "NAME(value)"
                                                       : "NAME(value) or value.NAME()");
        node->kind = NODE_OP;
        node->op = functions[i].op;
        return check_op(checker, node);
    }
    return unknown_function(checker, node);
}

/* ---- the rest ---- */

static int check_container(struct checker *checker, struct node *node)
{
    bool is_map = node->kind == NODE_MAP;
    enum expr_kind of = EXPR_UNKNOWN;

    for (size_t i = 0; i < node->n; i++) {
        bool is_key = is_map && i % 2 == 0;
        enum expr_kind kind;

        if (check_tree(checker, node->of[i]) < 0)
            return -1;
        kind = node->of[i]->type.kind;
        if (is_key && (kind == EXPR_NULL || kind == EXPR_LIST || kind == EXPR_MAP))
            return lex_bad(checker->lexer, node->of[i]->from,
                           "a key is a string, an int or a bool, not %s", expr_kind_name(kind));
        if (!is_key)
            of = i <= is_map || of == kind ? kind : EXPR_UNKNOWN;
    }
    node->type = (struct expr_type){is_map ? EXPR_MAP : EXPR_LIST, of};
    return 0;
}

static int check_logic(struct checker *checker, struct node *node)
{
    node->type = OF(EXPR_BOOL);
    for (size_t i = 0; i < node->n; i++)
        if (check_tree(checker, node->of[i]) < 0 ||
            wants(checker, node->of[i], EXPR_BOOL, node->kind == NODE_AND ? "&&" : "||") < 0)
            return -1;
    return 0;
}

static int check_choice(struct checker *checker, struct node *node)
{
    struct expr_type a, b;

    for (size_t i = 0; i < 3; i++)
        if (check_tree(checker, node->of[i]) < 0)
            return -1;
    if (wants(checker, node->of[0], EXPR_BOOL, "the condition before ?") < 0)
        return -1;
    a = node->of[1]->type;
    b = node->of[2]->type;
    if (!same(a, b))
        return lex_bad(checker->lexer, node->from,
                       "both sides of : must be of one type, not %s "
                       "and %s",
                       expr_kind_name(a.kind), expr_kind_name(b.kind));
    if (a.kind != EXPR_UNKNOWN && b.kind != EXPR_UNKNOWN)
        node->type = (struct expr_type){a.kind, a.of == b.of ? a.of : EXPR_UNKNOWN};
    return 0;
}

int check_tree(struct checker *checker, struct node *node)
{
    switch (node->kind) {
    case NODE_LITERAL:
    case NODE_VARIABLE:
    case NODE_LOCAL:
    case NODE_HAS:
    case NODE_LOOP:
        return 0;
    case NODE_NAME:
        return check_name(checker, node);
    case NODE_SELECT:
        return check_select(checker, node);
    case NODE_CALL:
        return check_call(checker, node);
    case NODE_LIST:
    case NODE_MAP:
        return check_container(checker, node);
    case NODE_AND:
    case NODE_OR:
        return check_logic(checker, node);
    case NODE_CHOICE:
        return check_choice(checker, node);
    case NODE_OP:
        return check_op(checker, node);
    }
    return bad(checker, node, "a part without a meaning");
}
