/* SPDX-License-Identifier: Apache-2.0 */

/* Two texts as a unified diff, three lines around each change.
 *
 * What both begin and end with is set aside; of the rest the longest common part is found by table.
 * Where that would be too large the rest counts as replaced, which is longer and just as true. */

#include "surface/cli/sandbox.h"

#include "lib/base/buf.h"
#include "lib/base/memory.h"

#include <stdlib.h>
#include <string.h>

#define AROUND 3U
#define TABLE_MAX (4UL << 20)
#define BINARY_LOOK 8000U

struct lines {
    struct str *of; /* each with its line break, if it has one */
    size_t n;
};

/* One line of the way from one text to the other. */
struct step {
    char sign; /* ' ', '-', '+' */
    struct str text;
};

struct steps {
    struct step *of;
    size_t n;
};

static void lines_split(const struct buf *text, struct lines *out)
{
    const char *p = text ? text->p : NULL;
    size_t left = text ? text->n : 0, cap = 0;

    *out = (struct lines){0};
    while (left) {
        const char *end = memchr(p, '\n', left);
        size_t n = end ? (size_t)(end - p) + 1 : left;

        if (out->n == cap) {
            cap = cap ? cap * 2 : 256;
            out->of = xrealloc(out->of, cap * sizeof *out->of);
        }
        out->of[out->n++] = (struct str){p, n};
        p += n;
        left -= n;
    }
}

static void add_steps(struct steps *steps, char sign, const struct lines *lines, size_t from,
                      size_t to)
{
    for (size_t i = from; i < to; i++)
        steps->of[steps->n++] = (struct step){sign, lines->of[i]};
}

/* The middle, by the longest common part of both. */
static void add_middle(struct steps *steps, const struct lines *a, const struct lines *b,
                       size_t begin, size_t a_end, size_t b_end)
{
    size_t n = a_end - begin, m = b_end - begin;
    AUTO_FREE uint32_t *table = NULL;
    size_t i = 0, j = 0;

    if ((n + 1) * (m + 1) > TABLE_MAX) {
        add_steps(steps, '-', a, begin, a_end);
        add_steps(steps, '+', b, begin, b_end);
        return;
    }
    table = xcalloc((n + 1) * (m + 1), sizeof *table);
#define AT(x, y) table[(x) * (m + 1) + (y)]
    for (size_t x = n; x-- > 0;)
        for (size_t y = m; y-- > 0;)
            AT(x, y) = str_eq(a->of[begin + x], b->of[begin + y]) ? AT(x + 1, y + 1) + 1
                       : AT(x + 1, y) > AT(x, y + 1)              ? AT(x + 1, y)
                                                                  : AT(x, y + 1);
    while (i < n || j < m) {
        if (i < n && j < m && str_eq(a->of[begin + i], b->of[begin + j])) {
            add_steps(steps, ' ', a, begin + i, begin + i + 1);
            i++;
            j++;
        } else if (j == m || (i < n && AT(i + 1, j) >= AT(i, j + 1))) {
            add_steps(steps, '-', a, begin + i, begin + i + 1);
            i++;
        } else {
            add_steps(steps, '+', b, begin + j, begin + j + 1);
            j++;
        }
    }
#undef AT
}

static void find_steps(const struct lines *a, const struct lines *b, struct steps *out)
{
    size_t begin = 0, a_end = a->n, b_end = b->n;

    *out = (struct steps){xcalloc(a->n + b->n + 1, sizeof *out->of), 0};
    while (begin < a_end && begin < b_end && str_eq(a->of[begin], b->of[begin]))
        begin++;
    while (a_end > begin && b_end > begin && str_eq(a->of[a_end - 1], b->of[b_end - 1])) {
        a_end--;
        b_end--;
    }
    add_steps(out, ' ', a, 0, begin);
    add_middle(out, a, b, begin, a_end, b_end);
    add_steps(out, ' ', a, a_end, a->n);
}

static int write_step(struct buf *out, const struct step *step, struct err *err)
{
    if (buf_add_byte(out, step->sign, err) < 0 || buf_add_str(out, step->text, err) < 0)
        return -1;
    if (step->text.n && step->text.p[step->text.n - 1] == '\n')
        return 0;
    return buf_add_text(out, "\n\\ No newline at end of file\n", err);
}

/* Where the next hunk ends: behind the last change that is not further from the one before than the
 * lines around both. */
static size_t hunk_end(const struct steps *steps, size_t change)
{
    size_t last = change;

    for (size_t i = change; i < steps->n && i - last <= 2 * AROUND + 1; i++)
        if (steps->of[i].sign != ' ')
            last = i;
    return last + 1 + AROUND < steps->n ? last + 1 + AROUND : steps->n;
}

static int write_hunks(struct buf *out, const struct steps *steps, struct err *err)
{
    size_t at = 0, a_line = 1, b_line = 1;

    while (at < steps->n) {
        size_t change = at, begin, end, a_n = 0, b_n = 0;

        while (change < steps->n && steps->of[change].sign == ' ')
            change++;
        if (change == steps->n)
            return 0;
        begin = change - at > AROUND ? change - AROUND : at;
        end = hunk_end(steps, change);
        a_line += begin - at;
        b_line += begin - at;
        for (size_t i = begin; i < end; i++) {
            a_n += steps->of[i].sign != '+';
            b_n += steps->of[i].sign != '-';
        }
        if (buf_addf(out, err, "@@ -%zu,%zu +%zu,%zu @@\n", a_n ? a_line : a_line - 1, a_n,
                     b_n ? b_line : b_line - 1, b_n) < 0)
            return -1;
        for (size_t i = begin; i < end; i++)
            if (write_step(out, &steps->of[i], err) < 0)
                return -1;
        a_line += a_n;
        b_line += b_n;
        at = end;
    }
    return 0;
}

static bool is_binary(const struct buf *text)
{
    return text && text->n &&
           memchr(text->p, '\0', text->n < BINARY_LOOK ? text->n : BINARY_LOOK) != NULL;
}

int patch_write(struct buf *out, const char *path, const struct buf *from, const struct buf *to,
                struct err *err)
{
    struct lines a, b;
    struct steps steps;
    int failed;

    if (from && to && from->n == to->n && (from->n == 0 || memcmp(from->p, to->p, to->n) == 0))
        return 0; /* only its mode */
    if (is_binary(from) || is_binary(to))
        return buf_addf(out, err, "Binary files %s%s and %s%s differ\n", from ? "a/" : "",
                        from ? path : "/dev/null", to ? "b/" : "", to ? path : "/dev/null");
    if (buf_addf(out, err, "--- %s%s\n+++ %s%s\n", from ? "a/" : "", from ? path : "/dev/null",
                 to ? "b/" : "", to ? path : "/dev/null") < 0)
        return -1;
    lines_split(from, &a);
    lines_split(to, &b);
    find_steps(&a, &b, &steps);
    failed = write_hunks(out, &steps, err);
    free(a.of);
    free(b.of);
    free(steps.of);
    return failed;
}
