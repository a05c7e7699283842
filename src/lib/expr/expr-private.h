/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* From text to tree: the lexer gives tokens, the parser nodes that are only syntax, the checker
 * puts meaning into them (operations, variables, types). Evaluation walks the checked tree, whose
 * depth is bounded. */

#include "lib/base/limits.h"
#include "lib/expr/expr.h"

/* ---- tokens ---- */

enum token_kind {
    TOKEN_END,
    TOKEN_NAME,
    TOKEN_INT,
    TOKEN_STRING,
    TOKEN_SIGN, /* an operator or bracket; text is it */
};

struct token {
    enum token_kind kind;
    struct str text;  /* STRING: decoded */
    uint64_t number;  /* INT: without its sign */
    const char *from; /* in the source */
};

struct lexer {
    struct arena *mem;
    const char *at;
    const char *end; /* a NUL */
    char *decoded;   /* where the next text goes; nothing gets longer by being decoded */
    const char *bad; /* where the complaint points */
    struct err *err;
};

int lex_next(struct lexer *lexer, struct token *out) MUST_CHECK;
/* Fills err, remembers the place, returns -1. */
int lex_bad(struct lexer *lexer, const char *from, const char *fmt, ...) PRINTF(3, 4);

/* ---- nodes ---- */

enum node_kind {
    NODE_LITERAL,
    NODE_NAME,   /* syntax only: the checker makes a VARIABLE or LOCAL of it */
    NODE_CALL,   /* syntax only: the checker makes an OP or LOOP of it */
    NODE_SELECT, /* of[0].text */
    NODE_HAS,    /* has(of[0].text) */
    NODE_VARIABLE,
    NODE_LOCAL, /* of a LOOP */
    NODE_LIST,
    NODE_MAP, /* key, value, key, value … */
    NODE_AND,
    NODE_OR,
    NODE_CHOICE, /* of[0] ? of[1] : of[2] */
    NODE_OP,
    NODE_LOOP, /* of[0] is run through, of[1] the test or NULL, of[2] the value or NULL */
};

enum op {
    OP_NOT,
    OP_NEGATE,
    OP_ADD,
    OP_SUBTRACT,
    OP_MULTIPLY,
    OP_DIVIDE,
    OP_MODULO,
    OP_EQUAL,
    OP_UNEQUAL,
    OP_LESS,
    OP_LESS_EQUAL,
    OP_GREATER,
    OP_GREATER_EQUAL,
    OP_IN,
    OP_INDEX,
    OP_SIZE,
    OP_STARTS_WITH,
    OP_ENDS_WITH,
    OP_CONTAINS,
    OP_INT,
    OP_STRING,
};

enum loop {
    LOOP_ALL,
    LOOP_EXISTS,
    LOOP_EXISTS_ONE,
    LOOP_FILTER,
    LOOP_MAP,
};

struct node {
    enum node_kind kind;
    enum op op;
    enum loop loop;
    bool is_method;  /* CALL: of[0] is what stands before the dot */
    struct str text; /* NAME, SELECT, CALL: the name; LOOP: its variable */
    const char *from;
    unsigned depth; /* of the tree below */
    size_t slot;    /* VARIABLE: which; LOCAL, LOOP: place among those open at once */
    struct expr_type type;
    struct expr_value value; /* LITERAL; SELECT, HAS: the name as a value */
    struct node **of;
    size_t n;
};

struct expr {
    struct node *root;
    size_t loops; /* open at once, at most */
    uint64_t reads[(EXPR_NAMES_MAX + 63) / 64];
};

int parse_tree(struct lexer *lexer, struct node **out) MUST_CHECK;

struct checker {
    struct lexer *lexer; /* for complaints */
    const struct expr_name *names;
    size_t name_n;
    struct {
        struct str name;
        struct expr_type type;
    } locals[EXPR_LOOPS_MAX];
    size_t local_n;
    struct expr *expr;
};

int check_tree(struct checker *checker, struct node *node) MUST_CHECK;

/* ---- evaluation ---- */

struct eval {
    struct expr_scope *scope;
    size_t used; /* of the space */
    struct expr_value locals[EXPR_LOOPS_MAX];
    bool over; /* steps or space ran out: every further result is an error */
    struct err *err;
};

/* Fills err and returns false, so that a failing operation ends in one line. */
bool eval_bad(struct eval *eval, const char *fmt, ...) PRINTF(2, 3);
/* Takes steps; false when there are not as many. */
bool eval_steps(struct eval *eval, size_t n);
void *eval_space(struct eval *eval, size_t bytes);

bool value_equal(struct eval *eval, const struct expr_value *a, const struct expr_value *b,
                 bool *out);
/* An operation on values that are known: false with err filled when it cannot be done. */
bool value_op(struct eval *eval, enum op op, const struct expr_value *args, struct expr_value *out);
/* NULL: there is no such key, or the steps ran out (then eval->over). */
const struct expr_value *map_find(struct eval *eval, const struct expr_value *map,
                                  const struct expr_value *key);
