/* SPDX-License-Identifier: Apache-2.0 */
#include "flow/approve/operands.h"

#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/limits.h"

#define FILLED_MAX (1 * MIB) /* of all words that are other than they were written */
#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

const char *operand_workdir(const struct run *run)
{
    return run->plan.workdir ? run->plan.workdir : "/";
}

const char *operand_value(const struct run *run, struct str name)
{
    if (str_is(name, "PWD"))
        return operand_workdir(run);
    for (size_t i = 0; i < run->plan.env.n; i++) {
        struct str value = str_of(run->plan.env.v[i]);

        if (str_eq(str_cut(&value, '='), name))
            return value.p;
    }
    return NULL;
}

/* The end of a text is an end of a piece, too. */
static bool is_between(char c)
{
    return strchr(OPERAND_BETWEEN, c) != NULL;
}

/* "~", "$NAME" or "${NAME}" at p: what it stands for, and how many bytes it is written in. NULL: it
 * is something else. */
static const char *stands_for(const struct run *run, const char *word, const char *p, size_t *n)
{
    bool is_braced = p[0] == '$' && p[1] == '{';
    struct str name = {p + 1 + is_braced, 0};

    *n = 1;
    if (p[0] == '~')
        return (p == word || is_between(p[-1])) && (p[1] == '/' || is_between(p[1]))
                   ? operand_value(run, STR_LIT("HOME"))
                   : NULL;
    name.n = strspn(name.p, NAME_CHARACTERS);
    *n += name.n + 2 * (size_t)is_braced;
    return p[0] == '$' && name.n && (!is_braced || name.p[name.n] == '}') ? operand_value(run, name)
                                                                          : NULL;
}

/* 1: *out is another word; 0: nothing in it stands for anything. */
static int fill_word(struct arena *mem, const struct run *run, const char *word, size_t *room,
                     const char **out)
{
    AUTO_BUF struct buf text = BUF(*room);
    bool is_other = false;
    struct err ignored;

    if (!strpbrk(word, "$~"))
        return 0;
    for (const char *p = word; *p;) {
        size_t n = 1;
        const char *value = stands_for(run, word, p, &n);

        if ((value ? buf_add_text(&text, value, &ignored) : buf_add(&text, p, 1, &ignored)) < 0)
            return -1;
        p += value ? n : 1;
        is_other |= value != NULL;
    }
    if (!is_other)
        return 0;
    *room -= text.n;
    *out = arena_text(mem, buf_str(&text));
    return 1;
}

int operand_fill(struct arena *mem, const struct run *run, struct words *out)
{
    const struct words argv = run->action.argv;
    const char **v = arena_array(mem, const char *, argv.n + 1);
    size_t room = FILLED_MAX;
    int is_other = 0;

    for (size_t i = 0; i < argv.n; i++) {
        int got;

        v[i] = argv.v[i];
        got = fill_word(mem, run, argv.v[i], &room, &v[i]);
        if (got < 0)
            return -1;
        is_other |= got;
    }
    *out = (struct words){v, argv.n};
    return is_other;
}
