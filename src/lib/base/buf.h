/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lib/base/err.h"
#include "lib/base/str.h"

/* A growing byte buffer with a ceiling. Whatever the outside can make longer is collected in
 * one of these, so every such place names its limit. Always NUL-terminated once non-empty.
 * After a failed append the buffer keeps what it had. */
struct buf {
    char *p;
    size_t n;
    size_t cap;
    size_t max;
};

#define BUF(ceiling) ((struct buf){.max = (ceiling)})

void buf_done(struct buf *b);
#define AUTO_BUF __attribute__((cleanup(buf_done)))

int buf_add(struct buf *b, const void *bytes, size_t n, struct err *err) MUST_CHECK;
int buf_add_str(struct buf *b, struct str s, struct err *err) MUST_CHECK;
int buf_add_text(struct buf *b, const char *c_string, struct err *err) MUST_CHECK;
int buf_add_byte(struct buf *b, char byte, struct err *err) MUST_CHECK;
int buf_addf(struct buf *b, struct err *err, const char *fmt, ...) PRINTF(3, 4) MUST_CHECK;

struct str buf_str(const struct buf *b);
const char *buf_text(const struct buf *b); /* "" when empty */
void buf_clear(struct buf *b);

/* Hands the bytes to the caller, who frees them; the buffer is empty and reusable. */
char *buf_take(struct buf *b, size_t *n);
