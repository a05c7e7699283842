/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Expressions of rules: a subset of CEL (the Common Expression Language), compiled once and
 * evaluated often.
 *
 *     program == "git" && command.exists(w, w == "--force") && !(principal in ["ana", "ben"])
 *
 * Values are null, bool, int (64 bits), string, list and map. Left out, each by name and with a
 * sentence: bytes, uint, double, timestamps, messages, matches(). What is known about types is
 * checked when it is compiled: a name nobody declared, an operator that does not fit.
 *
 * Evaluation always ends: every node and every piece of text that is looked at costs steps, of
 * which there is a fixed number, and what it builds goes into a space of fixed size. Running out of
 * either is an error that no && or || absorbs. Time is linear in the steps. */

#include "lib/base/err.h"
#include "lib/base/memory.h"
#include "lib/base/text.h"

/* Zero is the closed side: a value nobody filled in is not known. */
enum expr_kind {
    EXPR_UNKNOWN, /* as a value: not known, an error to read; as a type: any */
    EXPR_NULL,
    EXPR_BOOL,
    EXPR_INT,
    EXPR_STRING,
    EXPR_LIST,
    EXPR_MAP,
};

const char *expr_kind_name(enum expr_kind kind);

struct expr_entry;

struct expr_value {
    enum expr_kind kind;
    union {
        bool boolean;
        int64_t number;
        struct str text;
        struct {
            const struct expr_value *v;
            size_t n;
        } list;
        struct {
            const struct expr_entry *v;
            size_t n;
        } map;
    };
};

struct expr_entry {
    struct expr_value key; /* bool, int or string */
    struct expr_value value;
};

struct expr_type {
    enum expr_kind kind;
    enum expr_kind of; /* LIST: of what; MAP: its values; UNKNOWN: mixed */
};

/* A variable. Names may be qualified ("now.hour"); then "now" alone is no value. */
struct expr_name {
    const char *name;
    struct expr_type type;
};

struct expr;

/* On failure *where is the place in the text (line and column from 1) and err says what is wrong
 * there. Names are borrowed and must outlive the expression; the text need not. */
int expr_compile(struct arena *mem, struct str text, const struct expr_name *names, size_t n,
                 const struct expr **out, struct mark *where, struct err *err) MUST_CHECK;

struct expr_type expr_result(const struct expr *expr);
/* Whether it reads the variable that was declared in this place. */
bool expr_reads(const struct expr *expr, size_t name);

struct expr_scope {
    const struct expr_value *values; /* one for each name, in the order of the declaration */
    char *space;                     /* for texts and lists that come about; aligned for a value */
    size_t space_bytes;
    uint32_t steps; /* how many there are; lowered by those taken */
};

/* The result lives in the space, in the values or in the expression. -1: an error, which is never a
 * value: ERR_LIMIT when steps or space ran out, ERR_INVALID for the others. */
int expr_eval(const struct expr *expr, struct expr_scope *scope, struct expr_value *out,
              struct err *err) MUST_CHECK;
/* The same for a result that must be true or false. */
int expr_holds(const struct expr *expr, struct expr_scope *scope, bool *out,
               struct err *err) MUST_CHECK;
