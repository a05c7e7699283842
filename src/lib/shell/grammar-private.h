/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lib/shell/reader-private.h"

/* ---- words that mean something (grammar.c) ---- */

enum keyword {
    WORD_NONE,
    WORD_IF,
    WORD_THEN,
    WORD_ELSE,
    WORD_ELIF,
    WORD_FI,
    WORD_DO,
    WORD_DONE,
    WORD_CASE,
    WORD_ESAC,
    WORD_WHILE,
    WORD_UNTIL,
    WORD_FOR,
    WORD_SELECT,
    WORD_FUNCTION,
    WORD_TIME,
    WORD_COPROC,
    WORD_OPEN,
    WORD_CLOSE,
    WORD_NOT,
    WORD_TEST,
    WORD_IN,
};

/* A word that means something to the shell at this place; *end is behind it. Lines may be
 * continued in the middle of it. */
enum keyword find_keyword(const struct reader *r, size_t *end);

static inline enum keyword keyword_at(const struct reader *r, size_t *end)
{
    bool may_be = r->pos < r->end && is_kind((unsigned char)r->text.p[r->pos], KIND_KEYWORD);

    return may_be ? find_keyword(r, end) : WORD_NONE;
}
int expect_keyword(struct reader *r, enum keyword wanted); /* it must be here */
bool accept_keyword(struct reader *r, enum keyword wanted);
int skip_lines(struct reader *r);

/* *only: the simple command it is, or SHELL_NONE. */
int read_command(struct reader *r, size_t *only);

/* ---- compound commands (compound.c) ---- */

/* What begins with this keyword, which ends at `end`, or, without one, with a parenthesis; and
 * its redirections. */
int read_compound(struct reader *r, enum keyword word, size_t end);
/* NAME ( ) at this place? Takes it. */
bool accept_function_head(struct reader *r);
int read_function_body(struct reader *r);
