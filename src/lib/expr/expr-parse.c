/* SPDX-License-Identifier: Apache-2.0 */
/* CEL's grammar, one function a level, and what compiling consists of.
 *
 * Two ceilings hold the tree: how deep brackets and prefixes may nest while it is read, and how
 * deep it is in the end, which a long chain of + also makes it. */
#include <string.h>

#include "lib/expr/expr-private.h"

struct parser {
    struct lexer *lexer;
    struct token token; /* the one at hand */
    unsigned nesting;
    size_t nodes;
};

static int parse_expr(struct parser *parser, struct node **out);

static int bad(struct parser *parser, const char *text)
{
    return lex_bad(parser->lexer, parser->token.from, "%s", text);
}

static bool is_sign(const struct parser *parser, const char *sign)
{
    return parser->token.kind == TOKEN_SIGN && str_is(parser->token.text, sign);
}

static int step(struct parser *parser)
{
    return lex_next(parser->lexer, &parser->token);
}

static int expect(struct parser *parser, const char *sign)
{
    if (!is_sign(parser, sign))
        return parser->token.kind == TOKEN_END
                   ? lex_bad(parser->lexer, parser->token.from,
                             "the expression ends where \"%s\" is missing", sign)
                   : lex_bad(parser->lexer, parser->token.from, "\"%s\" expected here", sign);
    return step(parser);
}

/* ---- nodes ---- */

static int make(struct parser *parser, enum node_kind kind, const char *from, struct node **of,
                size_t n, struct node **out)
{
    struct node *node;

    if (++parser->nodes > EXPR_NODES_MAX)
        return lex_bad(parser->lexer, from, "an expression may have at most %d parts",
                       EXPR_NODES_MAX);
    node = arena_new(parser->lexer->mem, struct node);
    *node = (struct node){.kind = kind, .from = from, .n = n};
    node->of = n ? arena_array(parser->lexer->mem, struct node *, n) : NULL;
    for (size_t i = 0; i < n; i++) {
        node->of[i] = of[i];
        if (of[i] && of[i]->depth >= node->depth)
            node->depth = of[i]->depth + 1;
    }
    if (node->depth > EXPR_DEPTH_MAX)
        return lex_bad(parser->lexer, from, "an expression may be at most %d levels deep",
                       EXPR_DEPTH_MAX);
    *out = node;
    return 0;
}

static int make_op(struct parser *parser, enum op op, const char *from, struct node **of, size_t n,
                   struct node **out)
{
    if (make(parser, NODE_OP, from, of, n, out) < 0)
        return -1;
    (*out)->op = op;
    return 0;
}

static int make_literal(struct parser *parser, const char *from, struct expr_value value,
                        struct node **out)
{
    if (make(parser, NODE_LITERAL, from, NULL, 0, out) < 0)
        return -1;
    (*out)->value = value;
    (*out)->type.kind = value.kind;
    return 0;
}

/* Nodes whose number is not known beforehand. */
struct gathered {
    struct node **of;
    size_t n, room;
};

static void gather(struct parser *parser, struct gathered *all, struct node *node)
{
    if (all->n == all->room) {
        struct node **grown = arena_array(parser->lexer->mem, struct node *, 2 * all->room + 4);

        for (size_t i = 0; i < all->n; i++)
            grown[i] = all->of[i];
        all->of = grown;
        all->room = 2 * all->room + 4;
    }
    all->of[all->n++] = node;
}

/* ---- what stands alone ---- */

/* Up to the closing sign, which is taken, too; a comma may stand before it where trailing. */
static int parse_list(struct parser *parser, const char *closing, bool pairs, bool trailing,
                      struct gathered *all)
{
    while (!is_sign(parser, closing)) {
        struct node *node = NULL;

        if (parse_expr(parser, &node) < 0)
            return -1;
        gather(parser, all, node);
        if (pairs) {
            if (expect(parser, ":") < 0 || parse_expr(parser, &node) < 0)
                return -1;
            gather(parser, all, node);
        }
        if (!is_sign(parser, ","))
            break;
        if (step(parser) < 0)
            return -1;
        if (is_sign(parser, closing) && !trailing)
            return bad(parser, "a value is missing behind the comma");
    }
    return expect(parser, closing);
}

static bool is_reserved(struct str name)
{
    static const char *const words[] = {
        "in",     "as",  "break", "const",   "continue",  "else",   "for", "function", "if",
        "import", "let", "loop",  "package", "namespace", "return", "var", "void",     "while"};

    for (size_t i = 0; i < COUNT(words); i++)
        if (str_is(name, words[i]))
            return true;
    return false;
}

static bool parse_word_literal(struct str word, struct expr_value *out)
{
    if (str_is(word, "null")) {
        *out = (struct expr_value){.kind = EXPR_NULL};
    } else if (str_is(word, "true") || str_is(word, "false")) {
        *out = (struct expr_value){.kind = EXPR_BOOL, .boolean = word.p[0] == 't'};
    } else {
        return false;
    }
    return true;
}

static int parse_call(struct parser *parser, struct str name, const char *from, struct node *target,
                      struct node **out)
{
    struct gathered all = {0};

    if (target)
        gather(parser, &all, target);
    if (step(parser) < 0 || parse_list(parser, ")", false, false, &all) < 0 ||
        make(parser, NODE_CALL, from, all.of, all.n, out) < 0)
        return -1;
    (*out)->text = name;
    (*out)->is_method = target != NULL;
    return 0;
}

static int parse_name(struct parser *parser, struct node **out)
{
    struct token name = parser->token;
    struct expr_value value;

    if (is_reserved(name.text))
        return lex_bad(parser->lexer, name.from, "\"" STR_FMT "\" is a word of CEL's own",
                       STR_ARG(name.text));
    if (step(parser) < 0)
        return -1;
    if (parse_word_literal(name.text, &value))
        return make_literal(parser, name.from, value, out);
    if (is_sign(parser, "("))
        return parse_call(parser, name.text, name.from, NULL, out);
    if (make(parser, NODE_NAME, name.from, NULL, 0, out) < 0)
        return -1;
    (*out)->text = name.text;
    return 0;
}

static int parse_int(struct parser *parser, const char *from, bool negative, struct node **out)
{
    uint64_t number = parser->token.number;
    uint64_t most = (uint64_t)INT64_MAX + negative;
    struct expr_value value = {.kind = EXPR_INT};

    if (number > most)
        return lex_bad(parser->lexer, from, "the number does not fit into 64 bits");
    value.number = !negative ? (int64_t)number : number == most ? INT64_MIN : -(int64_t)number;
    return step(parser) < 0 ? -1 : make_literal(parser, from, value, out);
}

static int parse_container(struct parser *parser, bool is_map, struct node **out)
{
    const char *from = parser->token.from;
    struct gathered all = {0};

    if (step(parser) < 0 || parse_list(parser, is_map ? "}" : "]", is_map, true, &all) < 0)
        return -1;
    return make(parser, is_map ? NODE_MAP : NODE_LIST, from, all.of, all.n, out);
}

static int parse_primary(struct parser *parser, struct node **out)
{
    struct token token = parser->token;

    switch (token.kind) {
    case TOKEN_END:
        return bad(parser, "the expression ends where a value is missing");
    case TOKEN_NAME:
        return parse_name(parser, out);
    case TOKEN_INT:
        return parse_int(parser, token.from, false, out);
    case TOKEN_STRING:
        return step(parser) < 0
                   ? -1
                   : make_literal(parser, token.from,
                                  (struct expr_value){.kind = EXPR_STRING, .text = token.text},
                                  out);
    case TOKEN_SIGN:
        break;
    }
    if (is_sign(parser, "["))
        return parse_container(parser, false, out);
    if (is_sign(parser, "{"))
        return parse_container(parser, true, out);
    if (!is_sign(parser, "("))
        return lex_bad(parser->lexer, token.from, "a value is missing before \"" STR_FMT "\"",
                       STR_ARG(token.text));
    return step(parser) < 0 || parse_expr(parser, out) < 0 ? -1 : expect(parser, ")");
}

/* ---- members ---- */

static int parse_selector(struct parser *parser, struct node **node)
{
    struct token name;

    if (step(parser) < 0)
        return -1;
    name = parser->token;
    if (name.kind != TOKEN_NAME || is_reserved(name.text))
        return bad(parser, "the name of a member is missing behind the dot");
    if (step(parser) < 0)
        return -1;
    if (is_sign(parser, "("))
        return parse_call(parser, name.text, name.from, *node, node);
    if (make(parser, NODE_SELECT, name.from, (struct node *[]){*node}, 1, node) < 0)
        return -1;
    (*node)->text = name.text;
    (*node)->value = (struct expr_value){.kind = EXPR_STRING, .text = name.text};
    return 0;
}

static int parse_index(struct parser *parser, struct node **node)
{
    const char *from = parser->token.from;
    struct node *key = NULL;

    if (step(parser) < 0 || parse_expr(parser, &key) < 0 || expect(parser, "]") < 0)
        return -1;
    return make_op(parser, OP_INDEX, from, (struct node *[]){*node, key}, 2, node);
}

static int parse_member(struct parser *parser, struct node **out)
{
    struct node *node = NULL;

    if (parse_primary(parser, &node) < 0)
        return -1;
    while (is_sign(parser, ".") || is_sign(parser, "["))
        if ((is_sign(parser, ".") ? parse_selector(parser, &node) : parse_index(parser, &node)) < 0)
            return -1;
    *out = node;
    return 0;
}

/* ---- operators ---- */

/* One kind of sign may be repeated (!!x, --x); they do not mix without brackets. */
static int parse_unary(struct parser *parser, struct node **out)
{
    const char *from = parser->token.from;
    bool negate = is_sign(parser, "-");
    const char *sign = negate ? "-" : "!";
    struct node *node = NULL;
    size_t n = 0;

    for (; is_sign(parser, sign); n++)
        if (step(parser) < 0)
            return -1;
    if (n > EXPR_DEPTH_MAX)
        return lex_bad(parser->lexer, from, "an expression may be at most %d levels deep",
                       EXPR_DEPTH_MAX);
    if (negate && n && parser->token.kind == TOKEN_INT) {
        n--; /* the sign belongs to the number: the smallest one has no positive */
        if (parse_int(parser, from, true, &node) < 0)
            return -1;
        if (is_sign(parser, ".") || is_sign(parser, "["))
            return bad(parser, "a number has no members");
    } else if (parse_member(parser, &node) < 0) {
        return -1;
    }
    for (; n; n--)
        if (make_op(parser, negate ? OP_NEGATE : OP_NOT, from, (struct node *[]){node}, 1, &node) <
            0)
            return -1;
    *out = node;
    return 0;
}

static const struct {
    const char *sign;
    unsigned level;
    enum op op;
} binary[] = {
    {"==", 0, OP_EQUAL        },
    {"!=", 0, OP_UNEQUAL      },
    {"<",  0, OP_LESS         },
    {"<=", 0, OP_LESS_EQUAL   },
    {">",  0, OP_GREATER      },
    {">=", 0, OP_GREATER_EQUAL},
    {"in", 0, OP_IN           },
    {"+",  1, OP_ADD          },
    {"-",  1, OP_SUBTRACT     },
    {"*",  2, OP_MULTIPLY     },
    {"/",  2, OP_DIVIDE       },
    {"%",  2, OP_MODULO       },
};
#define BINARY_LEVELS 3

static bool binary_at(const struct parser *parser, unsigned level, enum op *out)
{
    if (parser->token.kind != TOKEN_SIGN && parser->token.kind != TOKEN_NAME)
        return false;
    for (size_t i = 0; i < COUNT(binary); i++)
        if (binary[i].level == level && str_is(parser->token.text, binary[i].sign)) {
            *out = binary[i].op;
            return true;
        }
    return false;
}

static int parse_binary(struct parser *parser, unsigned level, struct node **out)
{
    struct node *left = NULL, *right = NULL;
    enum op op;

    if (level == BINARY_LEVELS)
        return parse_unary(parser, out);
    if (parse_binary(parser, level + 1, &left) < 0)
        return -1;
    while (binary_at(parser, level, &op)) {
        const char *from = parser->token.from;

        if (step(parser) < 0 || parse_binary(parser, level + 1, &right) < 0 ||
            make_op(parser, op, from, (struct node *[]){left, right}, 2, &left) < 0)
            return -1;
    }
    *out = left;
    return 0;
}

/* a && b && c is one node with three below it. */
static int parse_logic(struct parser *parser, bool is_or, struct node **out)
{
    const char *sign = is_or ? "||" : "&&";
    const char *from = parser->token.from;
    struct gathered all = {0};

    do {
        struct node *node = NULL;

        if (all.n && step(parser) < 0)
            return -1;
        if ((is_or ? parse_logic(parser, false, &node) : parse_binary(parser, 0, &node)) < 0)
            return -1;
        if (all.n == 0)
            *out = node;
        gather(parser, &all, node);
    } while (is_sign(parser, sign));
    if (all.n == 1)
        return 0;
    return make(parser, is_or ? NODE_OR : NODE_AND, from, all.of, all.n, out);
}

static int parse_choice(struct parser *parser, struct node **out)
{
    const char *from;
    struct node *of[3] = {0};

    if (parse_logic(parser, true, out) < 0)
        return -1;
    if (!is_sign(parser, "?"))
        return 0;
    from = parser->token.from;
    of[0] = *out;
    if (step(parser) < 0 || parse_logic(parser, true, &of[1]) < 0 || expect(parser, ":") < 0 ||
        parse_expr(parser, &of[2]) < 0)
        return -1;
    return make(parser, NODE_CHOICE, from, of, 3, out);
}

static int parse_expr(struct parser *parser, struct node **out)
{
    int result;

    if (++parser->nesting > EXPR_NESTING_MAX)
        return lex_bad(parser->lexer, parser->token.from, "brackets may nest at most %d deep",
                       EXPR_NESTING_MAX);
    result = parse_choice(parser, out);
    parser->nesting--;
    return result;
}

int parse_tree(struct lexer *lexer, struct node **out)
{
    struct parser parser = {.lexer = lexer};

    if (step(&parser) < 0 || parse_expr(&parser, out) < 0)
        return -1;
    if (parser.token.kind != TOKEN_END)
        return bad(&parser, "an operator is missing here, or a bracket is too many");
    return 0;
}

/* ---- compiling ---- */

static struct mark mark_of(const char *text, const char *at)
{
    struct mark mark = {1, 1};

    for (; text < at; text++) {
        mark.column++;
        if (*text == '\n')
            mark = (struct mark){mark.line + 1, 1};
    }
    return mark;
}

int expr_compile(struct arena *mem, struct str text, const struct expr_name *names, size_t n,
                 const struct expr **out, struct mark *where, struct err *err)
{
    struct lexer lexer = {.mem = mem, .err = err};
    struct expr *expr = arena_new(mem, struct expr);
    struct checker checker = {.lexer = &lexer, .names = names, .name_n = n, .expr = expr};
    const char *copy;

    *where = (struct mark){1, 1};
    if (text.n > EXPR_TEXT_MAX)
        return err_set(err, ERR_LIMIT, "an expression may have at most %lu bytes", EXPR_TEXT_MAX);
    if (!str_is_utf8(text))
        return err_set(err, ERR_INVALID, "an expression is UTF-8");
    if (n > EXPR_NAMES_MAX)
        return err_set(err, ERR_LIMIT, "more than %d variables", EXPR_NAMES_MAX);
    copy = arena_text(mem, text);
    lexer.at = copy;
    lexer.end = copy + text.n;
    lexer.decoded = arena_alloc(mem, text.n + 1);
    if (parse_tree(&lexer, &expr->root) < 0 || check_tree(&checker, expr->root) < 0) {
        *where = mark_of(copy, lexer.bad ? lexer.bad : copy);
        return -1;
    }
    *out = expr;
    return 0;
}

struct expr_type expr_result(const struct expr *expr)
{
    return expr->root->type;
}

bool expr_reads(const struct expr *expr, size_t name)
{
    return name < EXPR_NAMES_MAX && expr->reads[name / 64] >> (name % 64) & 1;
}
