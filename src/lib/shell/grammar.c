/* SPDX-License-Identifier: Apache-2.0 */
/* Lists and pipelines, and the words that begin and end what is in them. */
#include "lib/shell/grammar-private.h"

#include <string.h>

#define KEYWORD_MAX 8 /* bytes of the longest */

static const char *const keywords[] = {
    [WORD_NONE] = "",     [WORD_IF] = "if",         [WORD_THEN] = "then",
    [WORD_ELSE] = "else", [WORD_ELIF] = "elif",     [WORD_FI] = "fi",
    [WORD_DO] = "do",     [WORD_DONE] = "done",     [WORD_CASE] = "case",
    [WORD_ESAC] = "esac", [WORD_WHILE] = "while",   [WORD_UNTIL] = "until",
    [WORD_FOR] = "for",   [WORD_SELECT] = "select", [WORD_FUNCTION] = "function",
    [WORD_TIME] = "time", [WORD_COPROC] = "coproc", [WORD_OPEN] = "{",
    [WORD_CLOSE] = "}",   [WORD_NOT] = "!",         [WORD_TEST] = "[[",
    [WORD_IN] = "in",
};

static enum keyword keyword_of(struct str word)
{
    switch (word.n ? word.p[0] : '\0') {
    case '{':
        return str_is(word, "{") ? WORD_OPEN : WORD_NONE;
    case '}':
        return str_is(word, "}") ? WORD_CLOSE : WORD_NONE;
    case '!':
        return str_is(word, "!") ? WORD_NOT : WORD_NONE;
    case '[':
        return str_is(word, "[[") ? WORD_TEST : WORD_NONE;
    case 'c':
        return str_is(word, "case") ? WORD_CASE : str_is(word, "coproc") ? WORD_COPROC : WORD_NONE;
    case 'd':
        return str_is(word, "do") ? WORD_DO : str_is(word, "done") ? WORD_DONE : WORD_NONE;
    case 'e':
        return str_is(word, "else")   ? WORD_ELSE
               : str_is(word, "elif") ? WORD_ELIF
               : str_is(word, "esac") ? WORD_ESAC
                                      : WORD_NONE;
    case 'f':
        return str_is(word, "fi")         ? WORD_FI
               : str_is(word, "for")      ? WORD_FOR
               : str_is(word, "function") ? WORD_FUNCTION
                                          : WORD_NONE;
    case 'i':
        return str_is(word, "if") ? WORD_IF : str_is(word, "in") ? WORD_IN : WORD_NONE;
    case 's':
        return str_is(word, "select") ? WORD_SELECT : WORD_NONE;
    case 't':
        return str_is(word, "then") ? WORD_THEN : str_is(word, "time") ? WORD_TIME : WORD_NONE;
    case 'u':
        return str_is(word, "until") ? WORD_UNTIL : WORD_NONE;
    case 'w':
        return str_is(word, "while") ? WORD_WHILE : WORD_NONE;
    default:
        return WORD_NONE;
    }
}

/* One in which a line is continued. */
static enum keyword joined_keyword_at(const struct reader *r, size_t *end)
{
    char word[KEYWORD_MAX];
    size_t n = 0;
    size_t at = r->pos;

    for (;; at++) {
        while (at + 1 < r->end && r->text.p[at] == '\\' && r->text.p[at + 1] == '\n')
            at += 2;
        if (at >= r->end || is_meta((unsigned char)r->text.p[at]))
            break;
        if (n == sizeof word)
            return WORD_NONE;
        word[n++] = r->text.p[at];
    }
    *end = at;
    return keyword_of((struct str){word, n});
}

enum keyword find_keyword(const struct reader *r, size_t *end)
{
    const char *word = r->text.p + r->pos;
    size_t most = r->end - r->pos, n = 0;

    while (n < most && n <= KEYWORD_MAX && !is_kind((unsigned char)word[n], KIND_META) &&
           word[n] != '\\')
        n++;
    if (n < most && word[n] == '\\')
        return joined_keyword_at(r, end);
    *end = r->pos + n;
    return keyword_of((struct str){word, n});
}

int skip_lines(struct reader *r)
{
    for (;;) {
        skip_space(r);
        if (peek(r) != '\n')
            return 0;
        if (read_newline(r) < 0)
            return -1;
    }
}

int expect_keyword(struct reader *r, enum keyword wanted)
{
    char text[32];
    size_t end;

    if (skip_lines(r) < 0)
        return -1;
    if (keyword_at(r, &end) == wanted) {
        r->pos = end;
        return 0;
    }
    (void)strcpy(text, "\"");
    (void)strcat(text, keywords[wanted]);
    (void)strcat(text, "\" is missing here");
    return fail_at(r, r->pos, text);
}

bool accept_keyword(struct reader *r, enum keyword wanted)
{
    char c = (char)(r->pos < r->end ? r->text.p[r->pos] : '\0');
    size_t end;

    if ((c != keywords[wanted][0] && c != '\\') || keyword_at(r, &end) != wanted)
        return false;
    r->pos = end;
    return true;
}

/* ---- one command ---- */

static bool begins_compound(enum keyword word)
{
    return word == WORD_IF || word == WORD_CASE || word == WORD_WHILE || word == WORD_UNTIL ||
           word == WORD_FOR || word == WORD_SELECT || word == WORD_OPEN;
}

/* What time and coproc can stand before that is not a simple command. */
static bool is_at_compound(struct reader *r)
{
    enum keyword next;
    size_t ignored;

    (void)peek(r);
    next = keyword_at(r, &ignored);
    return peek(r) == '(' || begins_compound(next) || next == WORD_TEST || next == WORD_NOT;
}

/* coproc NAME before a compound command sets NAME. */
static void skip_coproc_name(struct reader *r)
{
    size_t before = r->pos;

    while (is_name_byte(peek(r)))
        r->pos++;
    if (is_blank(peek(r)) && is_name_start((unsigned char)r->text.p[before])) {
        if (is_steering_variable(
                arena_text(r->look->mem, (struct str){r->text.p + before, r->pos - before})))
            note_unseen(r);
        while (is_blank(peek(r)))
            r->pos++;
        if (is_at_compound(r))
            return;
    }
    r->pos = before;
}

/* time and coproc before a compound command, or before nothing, are not programs. */
static bool accept_prefix(struct reader *r, enum keyword word, size_t end)
{
    size_t before = r->pos;

    if (word != WORD_TIME && word != WORD_COPROC)
        return false;
    r->pos = end;
    while (is_blank(peek(r)))
        r->pos++;
    if (peek(r) == '-' && peek_second(r) == 'p')
        r->pos += 2;
    while (is_blank(peek(r)))
        r->pos++;
    if (word == WORD_COPROC && !is_at_compound(r))
        skip_coproc_name(r);
    if (!is_at_compound(r)) {
        r->pos = before;
        return false;
    }
    r->unsure = r->unsure || !r->bash;
    if (word == WORD_COPROC)
        vars_lose(r);
    return true;
}

int read_command(struct reader *r, size_t *only)
{
    enum keyword word;
    size_t end = r->pos;

    *only = SHELL_NONE;
    (void)peek(r);
    word = keyword_at(r, &end);
    while (accept_prefix(r, word, end))
        word = keyword_at(r, &end);
    if (word == WORD_TEST && !r->bash) {
        note_unseen(r);
        word = WORD_NONE;
    }
    if (word == WORD_TIME || word == WORD_COPROC || word == WORD_IN)
        word = WORD_NONE;
    if (word != WORD_NONE || peek(r) == '(')
        return read_compound(r, word, end);
    if (accept_function_head(r)) {
        if (enter(r) < 0 || read_function_body(r) < 0)
            return -1;
        leave(r);
        return 0;
    }
    end = r->pos;
    if (read_simple(r, only) < 0)
        return -1;
    if (r->pos == end)
        return fail_at(r, r->pos, "a command is missing here");
    if (peek(r) == '(')
        return fail_at(r, r->pos, "a parenthesis cannot stand here");
    return 0;
}

/* ---- pipelines and lists ---- */

/* A single bar; |& is bash's, and carries standard error, too. */
static bool accept_pipe(struct reader *r)
{
    if (peek(r) != '|' || peek_second(r) == '|')
        return false;
    r->pos++;
    if (peek(r) == '&') {
        r->unsure = r->unsure || !r->bash;
        r->pos++;
    }
    return true;
}

static int read_pipeline(struct reader *r, size_t *only)
{
    const struct var *base = r->vars;
    bool many = false;
    bool negated = false;

    while (peek(r) == '!' && accept_keyword(r, WORD_NOT)) {
        r->unsure = r->unsure || (negated && !r->bash);
        negated = true;
        skip_space(r);
    }
    r->piped = false;
    for (;;) {
        if (read_command(r, only) < 0)
            return -1;
        skip_space(r);
        if (!accept_pipe(r))
            break;
        many = true;
        r->piped = true;
        r->piped_from = *only;
        r->vars = base;
        if (skip_lines(r) < 0)
            return -1;
    }
    r->piped = false;
    if (many)
        r->vars = base;
    if (negated)
        *only = SHELL_NONE;
    return 0;
}

enum joint {
    JOINT_NONE,
    JOINT_AND,
    JOINT_OR,
};

static enum joint accept_joint(struct reader *r)
{
    int c = peek(r);

    if ((c != '&' && c != '|') || peek_second(r) != c)
        return JOINT_NONE;
    r->pos++;
    (void)peek(r);
    r->pos++;
    return c == '&' ? JOINT_AND : JOINT_OR;
}

/* a && b || c: of what the later ones set it is known only while it is certain that they ran. */
static int read_and_or(struct reader *r, size_t *only)
{
    const struct var *base;
    enum joint joint;
    bool certain = true;

    if (read_pipeline(r, only) < 0)
        return -1;
    base = r->vars;
    while ((joint = accept_joint(r)) != JOINT_NONE) {
        certain = certain && joint == JOINT_AND;
        if (!certain)
            vars_demote(r, base);
        if (skip_lines(r) < 0 || read_pipeline(r, only) < 0)
            return -1;
        *only = SHELL_NONE;
    }
    vars_demote(r, base);
    return 0;
}

static bool ends_list(struct reader *r)
{
    enum keyword word;
    size_t end;
    int c = peek(r);

    if (c < 0 || c == ')' || (c == ';' && (peek_second(r) == ';' || peek_second(r) == '&')))
        return true;
    word = keyword_at(r, &end);
    return word == WORD_THEN || word == WORD_ELSE || word == WORD_ELIF || word == WORD_FI ||
           word == WORD_DO || word == WORD_DONE || word == WORD_ESAC || word == WORD_CLOSE;
}

int read_list(struct reader *r)
{
    size_t items = 0;
    size_t only = SHELL_NONE;

    for (;;) {
        const struct var *base;

        if (skip_lines(r) < 0)
            return -1;
        if (ends_list(r))
            break;
        base = r->vars;
        if (read_and_or(r, &only) < 0)
            return -1;
        skip_space(r);
        items++;
        if (peek(r) == '&') {
            r->vars = base;
            only = SHELL_NONE;
            r->pos++;
        } else if (peek(r) == ';' && peek_second(r) != ';' && peek_second(r) != '&') {
            r->pos++;
        } else if (peek(r) != '\n') {
            break;
        }
    }
    r->alone = items == 1 ? only : SHELL_NONE;
    return 0;
}

int read_given(struct reader *r, const struct shell_word *words, size_t n)
{
    size_t end;

    return keyword_at(r, &end) == WORD_NONE ? take_simple(r, words, n) : read_list(r);
}
