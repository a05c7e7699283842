/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Bytes that belong to somebody else: pointer and length, not terminated. */
struct str {
    const char *p;
    size_t n;
};

#define STR_FMT "%.*s"
#define STR_ARG(s) (int)(s).n, (s).p
#define STR_LIT(literal) ((struct str){(literal), sizeof(literal) - 1})

/* A list of C strings, borrowed: argument vectors, environments, path lists. */
struct words {
    const char *const *v; /* v[n] is NULL */
    size_t n;
};

static inline struct str str_of(const char *c_string)
{
    return (struct str){c_string, strlen(c_string)};
}

static inline bool str_eq(struct str a, struct str b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

/* Here, so that the length of a literal is known where it is compared. */
static inline bool str_is(struct str s, const char *c_string)
{
    return str_eq(s, str_of(c_string));
}

static inline bool str_starts(struct str s, const char *prefix)
{
    return s.n >= strlen(prefix) && memcmp(s.p, prefix, strlen(prefix)) == 0;
}

bool str_ends(struct str s, const char *suffix);
int str_cmp(struct str a, struct str b); /* byte order; a prefix sorts first */

/* Cuts at the first separator: returns what stands before it, *rest becomes what stands
 * behind it. Without a separator everything is returned and *rest is empty. */
struct str str_cut(struct str *rest, char separator);
struct str str_trim(struct str s); /* blanks and tabs at both ends */

bool str_is_utf8(struct str s);
/* Bytes of the well-formed character at the start of s, or 0. */
size_t str_utf8_length(struct str s);
size_t str_utf8_prefix(struct str s); /* bytes before the first that is not UTF-8, or s.n */

/* Whole decimal numbers only: no sign, no blank, no overflow. */
bool str_u64(struct str s, uint64_t *out);
