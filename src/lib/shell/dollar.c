/* SPDX-License-Identifier: Apache-2.0 */
/* Expansions: parameters, command substitution, arithmetic. */
#include "lib/shell/reader-private.h"

#include <string.h>

#define AS_WRITTEN_MAX 96 /* of an expansion, kept in the text of its word */

/* What is not known stands in the word as it was written; what is long, by its first bytes, so
 * that nested ones are not copied again at every level. */
static void put_unknown(struct reader *r, size_t start, size_t mark, enum byte_class class)
{
    size_t n = r->pos - start;

    r->look->scratch.n = mark;
    if (n <= AS_WRITTEN_MAX) {
        put(r, r->text.p + start, n, class);
    } else {
        put(r, r->text.p + start, 2, class);
        put(r, "...", 3, class);
        put(r, r->text.p + r->pos - 1, 1, class);
    }
}

static void put_value(struct reader *r, struct str value, size_t start, size_t mark, bool quoted)
{
    r->look->scratch.n = mark;
    if (!spend(r->look, value.n)) {
        put_unknown(r, start, mark, quoted ? BYTE_ONE : BYTE_MANY);
        return;
    }
    if (quoted) {
        put(r, value.p, value.n, BYTE_QUOTED);
    } else if (splits_at_blanks(r)) {
        put(r, value.p, value.n, BYTE_FIELD);
    } else {
        put_unknown(r, start, mark, BYTE_MANY);
    }
}

static bool is_number(struct str name)
{
    return str_is(name, "#") || str_is(name, "?") || str_is(name, "$");
}

static void put_variable(struct reader *r, struct str name, size_t start, bool quoted)
{
    size_t mark = r->look->scratch.n;
    struct str value;

    if (var_get(r, name, &value))
        put_value(r, value, start, mark, quoted);
    else
        put_unknown(r, start, mark,
                    is_number(name) || (quoted && !str_is(name, "@")) ? BYTE_ONE : BYTE_MANY);
}

static bool is_special_parameter(int c)
{
    return c >= 0 && (strchr("@*#?$!-", c) != NULL || (c >= '0' && c <= '9')) && c != '\0';
}

/* A name, or one special character; lines may be continued inside a name, which is given up on. */
static struct str read_parameter_name(struct reader *r, bool all_digits)
{
    size_t start = r->pos;

    if (r->pos < r->end && is_name_start((unsigned char)r->text.p[r->pos])) {
        while (r->pos < r->end && is_name_byte((unsigned char)r->text.p[r->pos]))
            r->pos++;
        if (r->pos < r->end && r->text.p[r->pos] == '\\' && peek(r) >= 0 && is_name_byte(peek(r)) &&
            r->text.p[r->pos - 1] == '\n')
            note_unseen(r);
    } else if (r->pos < r->end && is_special_parameter((unsigned char)r->text.p[r->pos])) {
        bool digit = r->text.p[r->pos] >= '0' && r->text.p[r->pos] <= '9';

        r->pos++;
        while (digit && all_digits && r->pos < r->end && r->text.p[r->pos] >= '0' &&
               r->text.p[r->pos] <= '9')
            r->pos++;
    }
    return (struct str){r->text.p + start, r->pos - start};
}

/* ---- command substitution ---- */

static struct str without_last_newlines(struct str text)
{
    while (text.n && text.p[text.n - 1] == '\n')
        text.n--;
    return text;
}

/* What a substitution yields when all it runs is a pipeline whose output can be computed. */
static void put_output(struct reader *r, size_t start, size_t mark, bool quoted)
{
    struct str output;

    if (r->alone != SHELL_NONE && output_of(r->look, r->alone, &output) && text_fits_word(output))
        put_value(r, without_last_newlines(output), start, mark, quoted);
    else
        put_unknown(r, start, mark, quoted ? BYTE_ONE : BYTE_MANY);
}

struct outside {
    const struct var *vars;
    struct heredoc *first, **last;
    size_t current;
    size_t piped_from;
    bool piped;
};

static struct outside go_inside(struct reader *r)
{
    struct outside outside = {r->vars, r->first, r->last, r->current, r->piped_from, r->piped};

    if (r->first)
        note_unseen(r); /* which line its text begins on is a matter of taste */
    r->first = NULL;
    r->last = &r->first;
    r->piped = false;
    r->current = SHELL_NONE;
    return outside;
}

static void come_back(struct reader *r, const struct outside *outside)
{
    r->vars = outside->vars;
    r->first = outside->first;
    r->last = outside->first ? outside->last : &r->first;
    r->current = outside->current;
    r->piped = outside->piped;
    r->piped_from = outside->piped_from;
}

/* Behind the opening parenthesis, up to and over the closing one. */
static int read_in_parentheses(struct reader *r, size_t start)
{
    struct outside outside = go_inside(r);

    if (enter(r) < 0 || read_list(r) < 0)
        return -1;
    leave(r);
    if (peek(r) != ')')
        return fail_at(r, start, "a substitution without its end");
    if (r->first)
        return fail_at(r, r->pos, "a here-document that does not end within its substitution");
    r->pos++;
    come_back(r, &outside);
    return 0;
}

int read_process(struct reader *r)
{
    size_t start = r->pos;
    size_t mark = r->look->scratch.n;

    r->unsure = r->unsure || !r->bash;
    r->pos++;
    (void)peek(r);
    r->pos++;
    if (read_in_parentheses(r, start) < 0)
        return -1;
    put_unknown(r, start, mark, BYTE_ONE);
    return 0;
}

/* ---- backquotes ---- */

static bool is_escaped_in_backticks(char c, bool quoted)
{
    return c == '$' || c == '`' || c == '\\' || (c == '"' && quoted);
}

/* The text between them without one level of backslashes. */
static struct str unescape(struct reader *r, struct str inner, bool quoted)
{
    char *out = arena_alloc(r->look->mem, inner.n + 1);
    size_t n = 0;

    for (size_t i = 0; i < inner.n; i++) {
        if (inner.p[i] == '\\' && i + 1 < inner.n &&
            is_escaped_in_backticks(inner.p[i + 1], quoted))
            i++;
        out[n++] = inner.p[i];
    }
    return (struct str){out, n};
}

static int read_in_backticks(struct reader *r, struct str text, bool exact, size_t start,
                             size_t after)
{
    struct outside outside = go_inside(r);
    struct shell_span outer = r->outer;
    struct str around = r->text;
    size_t end = r->end;
    char *pool = r->pool;
    bool was_exact = r->exact;
    int ok;

    if (!exact) {
        r->outer = span_at(r, start, after);
        r->text = text;
        r->pool = NULL;
        r->pos = 0;
        r->exact = false;
    }
    r->end = exact ? after - 1 : text.n;
    ok = enter(r);
    ok = ok == 0 ? read_list(r) : ok;
    leave(r);
    if (ok == 0 && r->pos < r->end)
        ok = fail_at(r, r->pos, "this ends something that has not begun");
    if (ok == 0 && r->first)
        ok = fail_at(r, r->pos, "a here-document that does not end within its substitution");
    if (!exact)
        r->pool = pool;
    r->text = around;
    r->outer = outer;
    r->exact = was_exact;
    r->end = end;
    r->pos = after;
    come_back(r, &outside);
    return ok;
}

int read_backtick(struct reader *r, bool quoted)
{
    size_t start = r->pos;
    size_t mark = r->look->scratch.n;
    size_t at = r->pos + 1;
    bool escapes = false;
    struct str text;

    for (; at < r->end && r->text.p[at] != '`'; at++)
        if (r->text.p[at] == '\\' && at + 1 < r->end) {
            at++;
            escapes = escapes || is_escaped_in_backticks(r->text.p[at], quoted);
            if (r->in_here && r->text.p[at] == '"')
                note_unseen(r); /* a quote, or one that is escaped */
        }
    if (at >= r->end)
        return fail_at(r, start, "a backquote without its end");
    r->pos++;
    text = (struct str){r->text.p + r->pos, at - r->pos};
    if (escapes)
        text = unescape(r, text, quoted);
    if (read_in_backticks(r, text, !escapes, start, at + 1) < 0)
        return -1;
    put_output(r, start, mark, quoted);
    return 0;
}

/* ---- ${...} and $((...)) ---- */

/* Over quotes and expansions that have no effect on the text around them. */
static int skip_part(struct reader *r, int c, bool quoted, bool quotes_count)
{
    const char *end;

    switch (c) {
    case '\\':
        r->pos += r->pos + 1 < r->end ? 2 : 1;
        return 0;
    case '\'':
        r->pos++;
        if (quoted && !quotes_count) {
            note_unseen(r); /* bash looks for its end, but not in every mode */
            return 0;
        }
        end = memchr(r->text.p + r->pos, '\'', r->end - r->pos);
        if (!end)
            return fail_at(r, r->pos - 1, "a quote without its end");
        r->pos = (size_t)(end - r->text.p) + 1;
        return 0;
    case '"':
        r->pos++;
        return read_double(r);
    case '$':
        return read_dollar(r, quoted);
    case '`':
        return read_backtick(r, quoted);
    default:
        r->pos++;
        return 0;
    }
}

static int skip_to_brace(struct reader *r, size_t start, bool quoted, bool quotes_count)
{
    if (enter(r) < 0)
        return -1;
    for (int c = peek(r); c != '}'; c = peek(r)) {
        size_t mark = r->look->scratch.n;

        if (c < 0)
            return fail_at(r, start, "an expansion without its closing brace");
        if (!quoted && (c == '<' || c == '>') && peek_second(r) == '(') {
            if (read_process(r) < 0)
                return -1;
        } else if (skip_part(r, c, quoted, quotes_count) < 0) {
            return -1;
        }
        r->look->scratch.n = mark;
    }
    r->pos++;
    leave(r);
    return 0;
}

/* ${#x}, and what both shells know behind a name. */
static bool is_common_operator(struct reader *r, struct str name, int c)
{
    int second = c == ':' ? peek_second(r) : c;

    if (str_is(name, "#"))
        return is_name_start(c) || is_special_parameter(c);
    return name.n && !str_is(name, "!") && second >= 0 &&
           strchr(c == ':' ? "-=?+" : "-=?+#%", second) != NULL;
}

/* Over [0], [-1], [@] and [*]; false: a subscript that is arithmetic. */
static bool skip_plain_subscript(const struct reader *r, size_t *at)
{
    size_t end = *at;

    if (end >= r->end || r->text.p[end] != '[')
        return true;
    end++;
    if (end < r->end && (r->text.p[end] == '@' || r->text.p[end] == '*')) {
        end++;
    } else {
        end += end < r->end && r->text.p[end] == '-';
        while (end < r->end && r->text.p[end] >= '0' && r->text.p[end] <= '9')
            end++;
    }
    *at = end + 1;
    return end < r->end && r->text.p[end] == ']';
}

static bool ends_with(const struct reader *r, size_t at, const char *text)
{
    size_t n = strlen(text);

    return at >= n && memcmp(r->text.p + at - n, text, n) == 0;
}

/* ${!x} is whatever is in x, ${x@P} runs what is in it, and ${a[x]} and ${x:y} are arithmetic.
 * ${!a[@]} and ${!a*} are names. Where a line is continued in it, nothing is known. */
static bool evaluates(const struct reader *r, struct str name)
{
    bool indirect = str_is(name, "!");
    size_t at = r->pos;
    char c, next;

    if (indirect || str_is(name, "#"))
        while (at < r->end && is_name_byte((unsigned char)r->text.p[at]))
            at++;
    if (!skip_plain_subscript(r, &at))
        return true;
    c = (char)(at < r->end ? r->text.p[at] : '\0');
    next = (char)(at + 1 < r->end ? r->text.p[at + 1] : '\0');
    if (indirect)
        return !(c == '}' && (ends_with(r, at, "[@]") || ends_with(r, at, "[*]"))) &&
               !((c == '*' || c == '@') && next == '}');
    if (c == '=' || (c == ':' && next == '='))
        return ends_with(r, at, "]"); /* sets a variable by another name */
    if (c == '@')
        return next != 'Q';
    if (c != ':' || strchr("-?+", next))
        return c == '\\';
    while (at < r->end && strchr("0123456789: -()", r->text.p[at]))
        at++;
    return at == r->end || r->text.p[at] != '}';
}

static int read_braced(struct reader *r, size_t start, bool quoted)
{
    size_t mark = r->look->scratch.n;
    struct str name;
    bool pattern;
    int c = peek(r);

    if (c < 0 || c == '}' || is_blank(c) || c == '\n' || c == '|')
        return fail_at(r, start, "an expansion without a name");
    name = read_parameter_name(r, true);
    c = peek(r);
    if (name.n && c == '}') {
        r->pos++;
        put_variable(r, name, start, quoted);
        return 0;
    }
    if (c == '=' || (c == ':' && peek_second(r) == '=')) {
        var_lose(r, name);
        if (is_steering_variable(arena_text(r->look->mem, name)))
            note_evaluates(r);
    }
    if (!r->bash && !is_common_operator(r, name, c))
        r->unsure = true;
    if (evaluates(r, name)) {
        r->lost = true;
        note_evaluates(r);
    }
    pattern = c == '#' || c == '%' || c == '/' || c == '^' || c == ',';
    if (skip_to_brace(r, start, quoted, pattern) < 0)
        return -1;
    put_unknown(r, start, mark, quoted && !str_is(name, "@") ? BYTE_ONE : BYTE_MANY);
    return 0;
}

/* Names in arithmetic are looked up and evaluated again, where a subscript can run a command; so
 * is what an expansion leaves there. */
static bool evaluates_again(struct reader *r, int c)
{
    if (c == '=' || ((c == '+' || c == '-') && peek_second(r) == c))
        vars_lose(r);
    return is_name_start(c) || (c > 0 && strchr("$`\"\\", c));
}

/* Of what was read since `start`, with the variables there were then. */
static void note_arithmetic(struct reader *r, size_t start, const struct var *before)
{
    const struct var *now = r->vars;

    r->vars = before;
    if (!is_plain_arithmetic(r, (struct str){r->text.p + start, r->pos - start}))
        note_evaluates(r);
    r->vars = now;
}

int read_arithmetic(struct reader *r)
{
    const struct var *before = r->vars;
    size_t start = r->pos;
    unsigned open = 0;
    bool evaluates = false;

    if (enter(r) < 0)
        return -1;
    for (;;) {
        size_t mark = r->look->scratch.n;
        int c = peek(r);

        if (c < 0)
            return fail_at(r, start, "arithmetic without its end");
        evaluates |= evaluates_again(r, c);
        if (c == '(') {
            open++;
        } else if (c == ')' && open) {
            open--;
        } else if (c == ')') {
            if (peek_second(r) != ')')
                return fail_at(r, r->pos, "arithmetic or a subshell: write $( ( for the latter");
            if (evaluates)
                note_arithmetic(r, start, before);
            r->pos++;
            (void)peek(r);
            r->pos++;
            leave(r);
            return 0;
        }
        if (skip_part(r, c, true, false) < 0)
            return -1;
        r->look->scratch.n = mark;
    }
}

/* ---- what follows a dollar ---- */

static int read_substitution(struct reader *r, size_t start, bool quoted)
{
    size_t mark = r->look->scratch.n;

    r->pos++;
    if (peek(r) == '(') {
        r->pos++;
        if (read_arithmetic(r) < 0)
            return -1;
        put_unknown(r, start, mark, BYTE_ONE);
        return 0;
    }
    if (read_in_parentheses(r, start) < 0)
        return -1;
    put_output(r, start, mark, quoted);
    return 0;
}

int read_dollar(struct reader *r, bool quoted)
{
    size_t start = r->pos;
    int c;

    r->pos++;
    c = peek(r);
    if (c == '{') {
        r->pos++;
        return read_braced(r, start, quoted);
    }
    if (c == '(')
        return read_substitution(r, start, quoted);
    if (c == '\'' && !quoted) {
        r->pos++;
        return read_ansi(r, start);
    }
    if (c == '"' && !quoted) {
        r->unsure = true; /* a translation, or a dollar */
        r->pos++;
        return read_double(r);
    }
    if (is_name_start(c) || is_special_parameter(c)) {
        put_variable(r, read_parameter_name(r, false), start, quoted);
        return 0;
    }
    if (c == '[')
        note_unseen(r); /* arithmetic, in some */
    put(r, "$", 1, quoted ? BYTE_QUOTED : BYTE_PLAIN);
    return 0;
}
