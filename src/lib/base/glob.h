/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lib/base/err.h"
#include "lib/base/memory.h"

/* Patterns over one text:
 *
 *     *       any characters, also none        [abc] [a-z]   one of these
 *     ?       one character                    [!abc]        one, but none of these
 *     \x      x itself                         anything else stands for itself
 *
 * GLOB_WORD: `*` matches everything. GLOB_PATH: `*`, `?` and classes stay inside one component,
 * `**` crosses `/`. A character is one UTF-8 sequence, or one byte where the text is not UTF-8.
 *
 * Matching follows all possibilities at once, so its time is at most length of text × length
 * of pattern, whatever either of them is. */
enum glob_kind {
    GLOB_WORD,
    GLOB_PATH,
};

struct glob;

/* -1: longer than GLOB_TEXT_MAX, an open class, an empty range, a backslash at the end. */
int glob_new(struct arena *mem, struct str pattern, enum glob_kind kind, const struct glob **out,
             struct err *err) MUST_CHECK;

bool glob_match(const struct glob *glob, struct str text);

/* A text that it matches, with `many` in the place of each star; false: it does not fit, or there
 * is none. */
bool glob_example(const struct glob *glob, const char *many, char *out, size_t size);

/* No wildcard in it. */
bool glob_is_literal(const struct glob *glob);
/* Characters before the first wildcard, and the bytes they stand for. */
size_t glob_plain_length(const struct glob *glob);
struct str glob_plain(const struct glob *glob);
