/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/buf.h"

#include "lib/base/memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define FIRST_CAPACITY 256

void buf_done(struct buf *b)
{
    free(b->p);
    *b = BUF(b->max);
}

/* Makes room for n more bytes and the terminator. */
static int grow(struct buf *b, size_t n, struct err *err)
{
    size_t need;
    size_t cap = b->cap ? b->cap : FIRST_CAPACITY;

    if (n > b->max || b->n > b->max - n)
        return err_set(err, ERR_LIMIT, "more than %zu bytes", b->max);
    need = b->n + n + 1;
    if (need <= b->cap)
        return 0;
    while (cap < need)
        cap *= 2;
    b->p = xrealloc(b->p, cap);
    b->cap = cap;
    return 0;
}

int buf_add(struct buf *b, const void *bytes, size_t n, struct err *err)
{
    if (grow(b, n, err) < 0)
        return -1;
    if (n)
        memcpy(b->p + b->n, bytes, n);
    b->n += n;
    b->p[b->n] = '\0';
    return 0;
}

int buf_add_str(struct buf *b, struct str s, struct err *err)
{
    return buf_add(b, s.p, s.n, err);
}

int buf_add_text(struct buf *b, const char *c_string, struct err *err)
{
    return buf_add(b, c_string, strlen(c_string), err);
}

int buf_add_byte(struct buf *b, char byte, struct err *err)
{
    return buf_add(b, &byte, 1, err);
}

int buf_addf(struct buf *b, struct err *err, const char *fmt, ...)
{
    va_list args;
    int n;

    va_start(args, fmt);
    n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (n < 0)
        return err_set(err, ERR_INTERNAL, "format \"%s\"", fmt);
    if (grow(b, (size_t)n, err) < 0)
        return -1;
    va_start(args, fmt);
    (void)vsnprintf(b->p + b->n, (size_t)n + 1, fmt, args);
    va_end(args);
    b->n += (size_t)n;
    return 0;
}

struct str buf_str(const struct buf *b)
{
    return (struct str){buf_text(b), b->n};
}

const char *buf_text(const struct buf *b)
{
    return b->p ? b->p : "";
}

void buf_clear(struct buf *b)
{
    b->n = 0;
    if (b->p)
        b->p[0] = '\0';
}

char *buf_take(struct buf *b, size_t *n)
{
    char *taken = b->p;

    *n = b->n;
    *b = BUF(b->max);
    return taken;
}
