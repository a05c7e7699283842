/* SPDX-License-Identifier: Apache-2.0 */
/* Compound commands and functions: what is run, and what may or may not be. */
#include "lib/shell/grammar-private.h"

#include <string.h>

/* A list that must not be empty. */
static int read_some(struct reader *r)
{
    size_t before = r->look->n;
    size_t start = r->pos;

    if (read_list(r) < 0)
        return -1;
    if (r->look->n == before && memchr(r->text.p + start, '(', r->pos - start) == NULL &&
        memchr(r->text.p + start, '{', r->pos - start) == NULL)
        return fail_at(r, r->pos, "a command is missing here");
    return 0;
}

static int read_branch(struct reader *r, const struct var *base)
{
    if (read_some(r) < 0)
        return -1;
    vars_demote(r, base);
    return 0;
}

static int read_if(struct reader *r)
{
    const struct var *base;

    if (read_some(r) < 0)
        return -1;
    base = r->vars; /* the first condition is always run */
    if (expect_keyword(r, WORD_THEN) < 0 || read_branch(r, base) < 0)
        return -1;
    base = r->vars;
    while (accept_keyword(r, WORD_ELIF))
        if (read_branch(r, base) < 0 || expect_keyword(r, WORD_THEN) < 0 ||
            read_branch(r, base) < 0)
            return -1;
    if (accept_keyword(r, WORD_ELSE) && read_branch(r, base) < 0)
        return -1;
    return expect_keyword(r, WORD_FI);
}

/* What a loop sets may have been set the last time round. */
static int read_loop_body(struct reader *r, const struct var *base)
{
    bool braces;

    if (skip_lines(r) < 0)
        return -1;
    braces = accept_keyword(r, WORD_OPEN);
    if (braces)
        r->unsure = true;
    else if (expect_keyword(r, WORD_DO) < 0)
        return -1;
    if (read_some(r) < 0)
        return -1;
    vars_demote(r, base);
    return expect_keyword(r, braces ? WORD_CLOSE : WORD_DONE);
}

static int read_while(struct reader *r)
{
    const struct var *base = r->vars;

    vars_hide(r);
    if (read_some(r) < 0)
        return -1;
    return read_loop_body(r, base);
}

/* Arithmetic between two parentheses as a command of its own: what is evaluated in it is noted
 * there. `start` is where that command begins. */
static int read_sums(struct reader *r, size_t start, size_t *entry)
{
    *entry = add_entry(r, start);
    if (*entry == SHELL_NONE)
        return -1;
    r->current = *entry;
    r->pos++;
    (void)peek(r);
    r->pos++;
    if (read_arithmetic(r) < 0)
        return -1;
    r->current = SHELL_NONE;
    r->look->v[*entry].span = span_at(r, start, r->pos);
    return 0;
}

/* The head of a loop that counts; `start` is where the loop begins. *head stays SHELL_NONE when
 * there are only numbers in it. */
static int read_count(struct reader *r, size_t start, size_t *head)
{
    size_t from = r->pos, entry;

    r->unsure = r->unsure || !r->bash;
    if (read_sums(r, start, &entry) < 0)
        return -1;
    r->look->v[entry].known = SHELL_LITERAL; /* there is no word in it */
    if (r->look->v[entry].flags & SHELL_HIDES)
        r->lost = true;
    for (; from < r->pos && *head == SHELL_NONE; from++)
        if (is_name_start((unsigned char)r->text.p[from]))
            *head = entry;
    return 0;
}

/* What it counts held numbers when it began, and does so for as long as the body sets nothing; a
 * function could, so those are looked for. Behind it nothing is known. */
static void end_count(struct reader *r, size_t head, const struct var *base)
{
    if (r->lost || r->vars != base || r->look->careful)
        r->look->v[head].flags |= SHELL_HIDES;
    r->look->followed = true;
    r->lost = true;
}

static struct str read_name(struct reader *r)
{
    size_t start;

    (void)peek(r);
    start = r->pos;
    while (r->pos < r->end && is_name_byte((unsigned char)r->text.p[r->pos]))
        r->pos++;
    return (struct str){r->text.p + start, r->pos - start};
}

static int read_for(struct reader *r, size_t start, bool select)
{
    const struct var *base;
    size_t head = SHELL_NONE;
    struct str name;

    skip_space(r);
    if (peek(r) == '(' && peek_second(r) == '(') {
        if (read_count(r, start, &head) < 0)
            return -1;
        name = STR_LIT("_");
    } else {
        name = read_name(r);
    }
    if (name.n == 0 || !is_name_start((unsigned char)name.p[0]))
        return fail_at(r, r->pos, "a loop needs a variable");
    r->unsure = r->unsure || (select && !r->bash);
    if (select)
        note_takes(r->look, r->parent); /* it reads an answer */
    if (is_steering_variable(arena_text(r->look->mem, name)))
        note_unseen(r);
    var_lose(r, name);
    base = r->vars;
    if (skip_lines(r) < 0 || (accept_keyword(r, WORD_IN) && read_for_words(r) < 0))
        return -1;
    skip_space(r);
    if (peek(r) == ';')
        r->pos++;
    vars_hide(r);
    if (read_loop_body(r, base) < 0)
        return -1;
    if (head != SHELL_NONE)
        end_count(r, head, base);
    return 0;
}

/* ;; and, in bash, ;& and ;;&. false: none of them is here. */
static bool skip_arm_end(struct reader *r)
{
    if (peek(r) != ';')
        return false;
    r->pos++;
    if (peek(r) == ';')
        r->pos++;
    if (peek(r) == '&') {
        r->unsure = r->unsure || !r->bash;
        r->pos++;
    }
    return true;
}

static int read_patterns(struct reader *r)
{
    if (peek(r) == '(')
        r->pos++;
    for (;;) {
        skip_space(r);
        if (read_pattern(r) < 0)
            return -1;
        skip_space(r);
        if (peek(r) != '|')
            break;
        r->pos++;
    }
    if (peek(r) != ')')
        return fail_at(r, r->pos, "a pattern without its parenthesis");
    r->pos++;
    return 0;
}

static int read_case(struct reader *r)
{
    const struct var *base;

    skip_space(r);
    if (read_pattern(r) < 0 || expect_keyword(r, WORD_IN) < 0 || skip_lines(r) < 0)
        return -1;
    base = r->vars;
    while (!accept_keyword(r, WORD_ESAC)) {
        if (read_patterns(r) < 0 || read_list(r) < 0)
            return -1;
        vars_demote(r, base);
        base = r->vars;
        if (!skip_arm_end(r))
            return expect_keyword(r, WORD_ESAC);
        if (skip_lines(r) < 0)
            return -1;
    }
    return 0;
}

static int read_group(struct reader *r)
{
    return read_some(r) < 0 ? -1 : expect_keyword(r, WORD_CLOSE);
}

static int read_subshell(struct reader *r)
{
    const struct var *base = r->vars;
    size_t start = r->pos++;

    if (read_some(r) < 0)
        return -1;
    if (peek(r) != ')')
        return fail_at(r, start, "a subshell without its end");
    r->pos++;
    r->vars = base;
    return 0;
}

/* What a test can run besides what is expanded in it: -v and -R look a name up, and both sides of
 * -eq and its like are arithmetic. Which words are operators is settled before anything is
 * expanded. */
struct testing {
    struct str before; /* the last word, as it was written */
    bool compares;     /* and it compares numbers */
    bool evaluates;
};

/* $? and $# are numbers, too. */
static bool is_number(struct str word)
{
    return is_integer(word) || str_is(word, "$?") || str_is(word, "$#");
}

static void note_operand(struct testing *t, struct str word)
{
    static const char *const names[] = {"-eq", "-ne", "-lt", "-le", "-gt", "-ge"};
    bool compares = false;

    for (size_t i = 0; i < COUNT(names); i++)
        compares |= str_is(word, names[i]);
    t->evaluates |= str_is(word, "-v") || str_is(word, "-R") || memchr(word.p, '\\', word.n) ||
                    (compares && !is_number(t->before)) || (t->compares && !is_number(word));
    t->before = word;
    t->compares = compares;
}

/* [[ ... ]] as bash reads it: operators are words. `start` is where it begins. */
static int read_test(struct reader *r, size_t start)
{
    size_t entry = add_entry(r, start);
    struct testing testing = {0};
    struct shell_word word = {
        SHELL_LITERAL, STR_LIT("[["), {0, 0}
    };
    size_t end;

    if (entry == SHELL_NONE)
        return -1;
    r->current = entry;
    for (;;) {
        if (skip_lines(r) < 0)
            return -1;
        end = r->pos + 2;
        if (end <= r->end && r->text.p[r->pos] == ']' && r->text.p[r->pos + 1] == ']' &&
            (end == r->end || is_meta((unsigned char)r->text.p[end])))
            break;
        if (peek(r) < 0)
            return fail_at(r, r->pos, "[[ without its end");
        if (is_meta(peek(r)) && peek_second(r) != '(') {
            r->pos++;
        } else {
            size_t from = r->pos;

            if (read_pattern(r) < 0)
                return -1;
            note_operand(&testing, (struct str){r->text.p + from, r->pos - from});
        }
    }
    r->pos = end;
    word.span = span_at(r, start, start + 2);
    r->look->v[entry].span = span_at(r, start, end);
    r->look->v[entry].words =
        memcpy(arena_new(r->look->mem, struct shell_word), &word, sizeof word);
    r->look->v[entry].word_n = 1;
    r->look->v[entry].known = SHELL_PARTLY; /* its operands are not followed */
    if (testing.evaluates || testing.compares)
        r->look->v[entry].flags |= SHELL_HIDES;
    r->current = SHELL_NONE;
    return 0;
}

/* ---- functions ---- */

int read_function_body(struct reader *r)
{
    const struct var *base = r->vars;
    bool outer = r->in_function;
    size_t only;

    r->look->functions = true;
    vars_hide(r);
    r->in_function = true;
    if (skip_lines(r) < 0 || read_command(r, &only) < 0)
        return -1;
    r->unsure = r->unsure || only != SHELL_NONE;
    r->in_function = outer;
    r->vars = base;
    return 0;
}

bool accept_function_head(struct reader *r)
{
    size_t before = r->pos;
    size_t end = before;

    while (end < r->end && !is_kind((unsigned char)r->text.p[end], KIND_NO_FUNCTION))
        end++;
    if (end == r->end || !is_kind((unsigned char)r->text.p[end], KIND_HEAD))
        return false;
    r->pos = end;
    while (is_blank(peek(r)))
        r->pos++;
    if (end > before && peek(r) == '(') {
        r->pos++;
        while (is_blank(peek(r)))
            r->pos++;
        if (peek(r) == ')') {
            r->pos++;
            return true;
        }
    }
    r->pos = before;
    return false;
}

static int read_function(struct reader *r)
{
    r->unsure = r->unsure || !r->bash;
    skip_space(r);
    if (!accept_function_head(r)) {
        size_t start = r->pos;

        while (r->pos < r->end && !is_meta((unsigned char)r->text.p[r->pos]))
            r->pos++;
        if (r->pos == start)
            return fail_at(r, start, "a function without a name");
    }
    return read_function_body(r);
}

/* ---- any of them ---- */

static int read_by_keyword(struct reader *r, size_t start, enum keyword word)
{
    switch (word) {
    case WORD_IF:
        return read_if(r);
    case WORD_CASE:
        return read_case(r);
    case WORD_WHILE:
    case WORD_UNTIL:
        return read_while(r);
    case WORD_FOR:
        return read_for(r, start, false);
    case WORD_SELECT:
        return read_for(r, start, true);
    case WORD_OPEN:
        return read_group(r);
    case WORD_FUNCTION:
        return read_function(r);
    case WORD_TEST:
        return read_test(r, start);
    case WORD_NONE:
    case WORD_THEN:
    case WORD_ELSE:
    case WORD_ELIF:
    case WORD_FI:
    case WORD_DO:
    case WORD_DONE:
    case WORD_ESAC:
    case WORD_TIME:
    case WORD_COPROC:
    case WORD_CLOSE:
    case WORD_NOT:
    case WORD_IN:
        break;
    }
    return fail_at(r, r->pos, "this word cannot stand here");
}

int read_compound(struct reader *r, enum keyword word, size_t end)
{
    size_t redirects, start = r->pos, entry;
    bool piped = r->piped;
    int ok;

    if (enter(r) < 0)
        return -1;
    r->piped = false;
    if (word != WORD_NONE) {
        r->pos = end;
        ok = read_by_keyword(r, start, word);
    } else if (r->bash && peek_second(r) == '(') {
        ok = read_sums(r, start, &entry);
    } else {
        if (peek_second(r) == '(')
            note_unseen(r); /* arithmetic, in some */
        ok = read_subshell(r);
    }
    leave(r);
    r->piped = piped;
    return ok < 0 ? -1 : read_redirects(r, &redirects);
}
