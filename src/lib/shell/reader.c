/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/shell/shell.h"

#include "lib/base/limits.h"
#include "lib/shell/reader-private.h"

#include <string.h>

#define SPARE_BYTES (64 * KIB)
#define SPARE_FACTOR 2
#define SPARE_MAX (4 * MIB)
#define GROWTH 4 /* what is not used of it is never touched */
#define COMMANDS_A_KIB 256

int fail_at(struct reader *r, size_t pos, const char *what)
{
    if (!r->err)
        return -1;
    return err_set(r->err, ERR_INVALID, "byte %zu: %s", r->base + pos, what);
}

void note_unseen(struct reader *r)
{
    r->unsure = r->unseen = true;
}

void note_evaluates(struct reader *r)
{
    if (r->current == SHELL_NONE)
        note_unseen(r); /* between commands: the words of a loop, of a case */
    else
        r->look->v[r->current].flags |= SHELL_HIDES;
}

int enter(struct reader *r)
{
    if (r->look->nest < SHELL_NEST_MAX) {
        r->look->nest++;
        return 0;
    }
    if (!r->err)
        return -1;
    return err_set(r->err, ERR_LIMIT, "byte %zu: nested deeper than %d", r->base + r->pos,
                   SHELL_NEST_MAX);
}

void leave(struct reader *r)
{
    r->look->nest--;
}

void join_lines(struct reader *r)
{
    while (r->pos + 1 < r->end && r->text.p[r->pos] == '\\' && r->text.p[r->pos + 1] == '\n')
        r->pos += 2;
}

int peek_second(const struct reader *r)
{
    size_t at = r->pos + 1;

    while (at + 1 < r->end && r->text.p[at] == '\\' && r->text.p[at + 1] == '\n')
        at += 2;
    return at < r->end ? (unsigned char)r->text.p[at] : -1;
}

/* clang-format off */
#define NAME KIND_NAME
#define KEYWORD KIND_KEYWORD
#define META (KIND_META | KIND_NO_FUNCTION)
#define WORD (KIND_WORD | KIND_NO_FUNCTION)
#define EXPAND KIND_EXPAND
const uint16_t byte_kinds[256] = {
    [' '] = META | KIND_SPACE | KIND_HEAD, ['\t'] = META | KIND_SPACE | KIND_HEAD, ['#'] = KIND_SPACE, ['\n'] = META,
    [';'] = META, ['&'] = META | KIND_ARROW, ['|'] = META, ['('] = META | KIND_HEAD, [')'] = META,
    ['<'] = META | KIND_ARROW, ['>'] = META | KIND_ARROW,
    ['\''] = WORD, ['"'] = WORD, ['$'] = WORD, ['`'] = WORD,
    ['\\'] = WORD | KIND_SPACE | KEYWORD | KIND_ARROW | KIND_HEAD,
    ['*'] = EXPAND, ['?'] = EXPAND, ['~'] = EXPAND, ['['] = EXPAND | KEYWORD,
    ['{'] = EXPAND | KEYWORD | KIND_NO_FUNCTION, ['}'] = EXPAND | KEYWORD | KIND_NO_FUNCTION,
    ['!'] = KEYWORD, ['='] = KIND_NO_FUNCTION,
    ['0' ... '9'] = KIND_DIGIT | KIND_ARROW,
    ['A' ... 'Z'] = NAME, ['_'] = NAME,
    ['a'] = NAME, ['b'] = NAME, ['c'] = NAME | KEYWORD, ['d'] = NAME | KEYWORD, ['e'] = NAME | KEYWORD,
    ['f'] = NAME | KEYWORD, ['g'] = NAME, ['h'] = NAME, ['i'] = NAME | KEYWORD, ['j' ... 'r'] = NAME,
    ['s'] = NAME | KEYWORD, ['t'] = NAME | KEYWORD, ['u'] = NAME | KEYWORD, ['v'] = NAME,
    ['w'] = NAME | KEYWORD, ['x'] = NAME, ['y'] = NAME, ['z'] = NAME,
};
/* clang-format on */

/* Not where it is copied: compilers would make of it what it is not to be. */
const struct shell_command empty_command = {.input_from = SHELL_NONE};

static struct look look_new(struct arena *mem, size_t n, bool careful)
{
    size_t spare = SPARE_BYTES + n * SPARE_FACTOR;
    size_t expected = (n / KIB + 1) * COMMANDS_A_KIB;

    return (struct look){.mem = mem,
                         .careful = careful,
                         .expected = expected < SHELL_COMMANDS_MAX ? expected : SHELL_COMMANDS_MAX,
                         .spare = spare < SPARE_MAX ? spare : SPARE_MAX};
}

/* A function that is found anywhere may have been called before, in a loop or by a trap, and have
 * set what was taken for known. */
static bool look_is_over(const struct look *look)
{
    return look->careful || !look->functions || !look->followed;
}

size_t add_command(struct look *look)
{
    if (look->n == SHELL_COMMANDS_MAX)
        return SHELL_NONE;
    if (look->n == look->cap) {
        look->cap = look->cap ? look->cap * GROWTH : look->expected;
        look->v = xrealloc(look->v, look->cap * sizeof *look->v);
        look->about = xrealloc(look->about, look->cap * sizeof *look->about);
    }
    return look->n++;
}

static void look_done(struct look *look)
{
    free(look->v);
    free(look->about);
    free(look->words.v);
    free(look->pieces);
    free(look->scratch.bytes);
    free(look->scratch.classes);
}

/* Where shells differ about a text, none of its commands is certain. */
static void demote(struct look *look, size_t from)
{
    for (size_t i = from; i < look->n; i++)
        if (look->v[i].known == SHELL_LITERAL)
            look->v[i].known = SHELL_PARTLY;
}

static int read_all_of(struct reader *r, const struct inner *inner)
{
    size_t first = r->look->n;
    unsigned nest = r->look->nest;
    int ok = 0;

    r->last = &r->first;
    r->end = r->text.n;
    if (memchr(r->text.p, '\0', r->text.n))
        ok = fail_at(r, strlen(r->text.p), "a NUL byte, which no shell takes");
    if (ok == 0)
        ok = inner && inner->words ? read_given(r, inner->words, inner->word_n) : read_list(r);
    if (ok == 0 && r->pos < r->end)
        ok = fail_at(r, r->pos, "this ends something that has not begun");
    if (ok == 0 && r->first)
        ok = fail_at(r, r->end, "a here-document without its end");
    r->look->nest = nest;
    if (r->unsure || ok < 0)
        demote(r->look, first);
    if (r->unseen && first < r->look->n)
        r->look->v[first].flags |= SHELL_HIDES;
    return ok;
}

static void hand_out(struct look *look, struct shell_script *out)
{
    *out = (struct shell_script){look->v, look->n};
    arena_adopt(look->mem, TAKE(look->v), look->cap * sizeof *look->v);
}

static void unwrap_all(struct look *look, struct str outermost)
{
    for (size_t i = 0; i < look->n; i++)
        if (look->v[i].word_n && !look->about[i].dull)
            unwrap(look, i, outermost);
    if (look->streams)
        look_takers(look);
}

static int read_once(struct arena *mem, struct str text, enum shell_dialect dialect, bool careful,
                     bool *over, struct shell_script *out, struct err *err)
{
    struct look look = look_new(mem, text.n, careful);
    struct reader r = {.look = &look,
                       .text = text,
                       .exact = true,
                       .bash = dialect == SHELL_BASH,
                       .parent = SHELL_NONE,
                       .current = SHELL_NONE,
                       .err = err};
    int ok = text.n ? read_all_of(&r, NULL) : 0;

    if (ok == 0) {
        unwrap_all(&look, text);
        *over = look_is_over(&look);
        if (*over)
            hand_out(&look, out);
    }
    look_done(&look);
    return ok;
}

int shell_read(struct arena *mem, struct str text, enum shell_dialect dialect,
               struct shell_script *out, struct err *err)
{
    struct arena_mark mark = arena_mark(mem);
    bool over = false;

    if (text.n > SHELL_TEXT_MAX)
        return err_set(err, ERR_LIMIT, "byte %zu: longer than %lu bytes", (size_t)SHELL_TEXT_MAX,
                       SHELL_TEXT_MAX);
    if (read_once(mem, text, dialect, false, &over, out, err) < 0)
        return -1;
    if (over)
        return 0;
    arena_rewind(mem, mark);
    return read_once(mem, text, dialect, true, &over, out, err);
}

/* Where the word says the text byte for byte, places inside it can be told. */
static bool find_inside(const struct inner *inner, struct str outermost, size_t *base)
{
    struct shell_span span = inner->word.span;
    struct str text = inner->word.text;
    size_t n = span.end - span.start;

    if (span.end < span.start || span.end > outermost.n || (n != text.n && n != text.n + 2) ||
        text.n == 0)
        return false;
    *base = span.start + (n != text.n);
    return memcmp(outermost.p + *base, text.p, text.n) == 0;
}

void read_inner(struct look *look, const struct inner *inner, struct str outermost)
{
    struct shell_command *parent = &look->v[inner->parent];
    struct reader r = {.look = look,
                       .text = inner->word.text,
                       .outer = inner->word.span,
                       .bash = inner->bash,
                       .parent = inner->parent,
                       .within = inner->within,
                       .depth = parent->depth + 1,
                       .flags = inner->flags,
                       .vars = inner->vars,
                       .lost = inner->lost,
                       .current = SHELL_NONE};

    if (inner->word.known != SHELL_LITERAL)
        parent->flags |= SHELL_HIDES;
    if (r.depth > SHELL_CARRIERS_MAX || r.text.n > SHELL_TEXT_MAX || !spend(look, r.text.n)) {
        parent->flags |= SHELL_HIDES;
        return;
    }
    r.unsure = inner->flags & SHELL_MORE; /* more words may follow its last ones */
    r.exact = find_inside(inner, outermost, &r.base);
    if (r.text.n && (read_all_of(&r, inner) < 0 || r.unseen))
        look->v[inner->parent].flags |= SHELL_HIDES;
}

/* The words with one blank between them, which spans count in. */
static struct str join(struct arena *mem, const char *const *argv, size_t n,
                       struct shell_word *words)
{
    size_t total = 1, at = 0;
    char *text;

    for (size_t i = 0; i < n; i++)
        total += strlen(argv[i]) + 1;
    text = arena_alloc(mem, total);
    for (size_t i = 0; i < n; i++) {
        size_t length = strlen(argv[i]);

        if (i)
            text[at++] = ' ';
        memcpy(text + at, argv[i], length);
        words[i] = (struct shell_word){
            SHELL_LITERAL, {argv[i], length     },
             {at,      at + length}
        };
        at += length;
    }
    return (struct str){text, at};
}

static bool look_once(struct arena *mem, const struct shell_word *words, size_t n,
                      struct str joined, bool careful, struct shell_script *out)
{
    struct look look = look_new(mem, joined.n, careful);
    size_t at = add_child(&look, SHELL_NONE, NULL, words, n, 0);
    bool over;

    look.spare += SHELL_CARRIERS_MAX * joined.n;
    look.v[at].span = (struct shell_span){0, joined.n};
    unwrap_all(&look, joined);
    over = look_is_over(&look);
    if (over)
        hand_out(&look, out);
    look_done(&look);
    return over;
}

void shell_look(struct arena *mem, const char *const *argv, size_t n, struct shell_script *out)
{
    struct shell_word *words = arena_array(mem, struct shell_word, n + 1);
    struct str joined = join(mem, argv, n, words);
    struct arena_mark mark = arena_mark(mem);

    if (look_once(mem, words, n, joined, false, out))
        return;
    arena_rewind(mem, mark);
    (void)look_once(mem, words, n, joined, true, out); /* which is always the last */
}
