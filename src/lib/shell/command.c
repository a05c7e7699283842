/* SPDX-License-Identifier: Apache-2.0 */
/* One simple command: assignments and words. */
#include "lib/base/limits.h"
#include "lib/shell/redirect-private.h"

#include <string.h>

size_t add_entry(struct reader *r, size_t start)
{
    size_t at = add_command(r->look);
    struct shell_command *command;

    if (at == SHELL_NONE && !r->err)
        return SHELL_NONE;
    if (at == SHELL_NONE) {
        (void)err_set(r->err, ERR_LIMIT, "byte %zu: more than %d commands", r->base + start,
                      SHELL_COMMANDS_MAX);
        return SHELL_NONE;
    }
    r->look->about[at] = (struct about){.vars = r->vars, .lost = r->lost, .bash = r->bash};
    command = &r->look->v[at];
    *command = empty_command;
    command->parent = r->parent;
    command->within = r->within;
    command->depth = r->depth;
    command->flags = r->flags | (r->in_function ? (unsigned)SHELL_FUNCTION : 0U);
    command->span = span_at(r, start, start);
    return at;
}

void skip_some_space(struct reader *r)
{
    while (is_blank(peek(r)))
        r->pos++;
    if (peek(r) == '#') {
        const char *newline = memchr(r->text.p + r->pos, '\n', r->end - r->pos);

        r->pos = newline ? (size_t)(newline - r->text.p) : r->end;
    }
}

/* ---- words ---- */

/* NAME= or NAME+= at this place: the bytes before the value; 0: no assignment. */
static size_t assignment_length(const struct reader *r, size_t start)
{
    size_t at = start;

    if (at >= r->end || !is_name_start((unsigned char)r->text.p[at]))
        return 0;
    while (at < r->end && is_name_byte((unsigned char)r->text.p[at]))
        at++;
    if (at + 1 < r->end && r->text.p[at] == '+' && r->text.p[at + 1] == '=')
        return at + 2 - start;
    return at < r->end && r->text.p[at] == '=' ? at + 1 - start : 0;
}

/* a=(...): what is in it counts, the value is not followed. */
static int read_array(struct reader *r, struct str name)
{
    r->unsure = r->unsure || !r->bash;
    r->pos++;
    var_lose(r, name);
    for (;;) {
        size_t mark = r->look->scratch.n;
        size_t start;

        skip_space(r);
        if (peek(r) == '\n') {
            if (r->first)
                return fail_at(r, r->pos, "a here-document that begins inside a list");
            r->pos++;
            continue;
        }
        if (peek(r) == ')')
            break;
        start = r->pos;
        if (peek(r) == '[')
            note_evaluates(r); /* a subscript */
        if (read_raw_word(r) < 0)
            return -1;
        if (r->pos == start)
            return fail_at(r, start, "a list without its end");
        r->look->scratch.n = mark;
    }
    r->pos++;
    if (peek(r) >= 0 && !is_meta(peek(r)))
        return fail_at(r, r->pos, "a list that goes on behind its parenthesis");
    put(r, "(...)", 5, BYTE_ONE);
    return 0;
}

static int read_unsettled(struct reader *r, struct str name, size_t length, struct shell_word *out)
{
    size_t mark = r->look->scratch.n;
    size_t start = r->pos;

    put(r, r->text.p + start, length, BYTE_PLAIN);
    r->pos += length;
    if (peek(r) == '(' ? read_array(r, name) < 0 : read_raw_word(r) < 0)
        return -1;
    *out = one_word(r, mark, span_at(r, start, r->pos), false);
    return 0;
}

static int read_assignment(struct reader *r, size_t length)
{
    size_t start = r->pos;
    bool adds = r->text.p[start + length - 2] == '+';
    struct str name = {r->text.p + start, length - (adds ? 2 : 1)};
    struct shell_word word, value;

    if (!read_settled(r, length, &word) && read_unsettled(r, name, length, &word) < 0)
        return -1;
    value = word;
    value.text = (struct str){word.text.p + length, word.text.n - length};
    if (adds)
        var_lose(r, name);
    else
        var_set(r, name, &value);
    push_word(r->look, word);
    return 0;
}

static int read_plain_word(struct reader *r)
{
    size_t mark = r->look->scratch.n;
    size_t start = r->pos;

    bool expands = start < r->end && (r->text.p[start] == '$' || r->text.p[start] == '`');

    if (!expands && read_settled(r, 0, next_word(r->look))) {
        r->look->words.n++;
        return 0;
    }
    if (read_raw_word(r) < 0)
        return -1;
    if (r->pos > start && r->text.p[start] == '{' && r->text.p[r->pos - 1] == '}' &&
        r->pos < r->end && (r->text.p[r->pos] == '<' || r->text.p[r->pos] == '>'))
        note_unseen(r); /* {name}>: a variable for the descriptor, in some shells */
    push_fields(r, mark, span_at(r, start, r->pos));
    return 0;
}

int read_for_words(struct reader *r)
{
    size_t words = r->look->words.n;

    for (;;) {
        int c;

        skip_space(r);
        c = peek(r);
        if (c < 0 || (is_meta(c) && !((c == '<' || c == '>') && peek_second(r) == '(')))
            return 0;
        if (read_plain_word(r) < 0)
            return -1;
        r->look->words.n = words;
    }
}

int read_pattern(struct reader *r)
{
    size_t words = r->look->words.n;
    size_t start = r->pos;

    if (read_plain_word(r) < 0)
        return -1;
    r->look->words.n = words;
    return r->pos == start ? fail_at(r, start, "a pattern is missing") : 0;
}

/* ---- the command ---- */

static const struct shell_word *keep_words(struct look *look, size_t from, size_t to)
{
    struct shell_word *v;

    if (to == from)
        return NULL;
    v = arena_take(look->mem, (to - from) * sizeof *v);
    return memcpy(v, look->words.v + from, (to - from) * sizeof *v);
}

static enum shell_known known_of(const struct shell_word *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (words[i].known != SHELL_LITERAL)
            return i == 0 && words[i].known == SHELL_OPAQUE ? SHELL_OPAQUE : SHELL_PARTLY;
    return SHELL_LITERAL;
}

struct simple {
    size_t entry;
    size_t words;       /* where its assignments begin on the stack */
    size_t assignments; /* how many */
    bool has_words;
    const struct var *vars;
    struct redirect_list redirects;
};

/* Assignments before a command hold for that command only, and are made after its words have been
 * expanded; in some shells those before some commands stay. */
static void end_assignments(struct reader *r, struct simple *s)
{
    s->has_words = true;
    r->vars = s->vars;
    for (size_t i = 0; i < s->assignments; i++) {
        struct str rest = r->look->words.v[s->words + i].text;
        struct str name = str_cut(&rest, '=');

        if (name.n && name.p[name.n - 1] == '+')
            name.n--;
        var_lose(r, name);
    }
    r->look->about[s->entry].vars = r->vars;
}

static int read_item(struct reader *r, struct simple *s)
{
    size_t length;

    if (is_kind((unsigned char)r->text.p[r->pos], KIND_ARROW) && is_redirect(r))
        return read_redirect(r, s->entry, &s->redirects);
    length = s->has_words ? 0 : assignment_length(r, r->pos);
    if (length) {
        s->assignments++;
        return read_assignment(r, length);
    }
    if (!s->has_words)
        end_assignments(r, s);
    return read_plain_word(r);
}

static bool ends_simple(struct reader *r)
{
    int c = peek(r);

    if (!is_meta(c))
        return c < 0;
    return c != '<' && c != '>' && !(c == '&' && is_redirect(r));
}

static void finish(struct reader *r, struct simple *s, struct heredoc **here)
{
    struct look *look = r->look;
    struct shell_command *command = &look->v[s->entry];
    size_t words = s->words + s->assignments;

    if (r->piped) {
        command->input_kind = SHELL_INPUT_PIPE;
        command->input_from = r->piped_from;
    }
    command->assignments = keep_words(look, s->words, words);
    command->assignment_n = s->assignments;
    command->words = keep_words(look, words, look->words.n);
    command->word_n = look->words.n - words;
    command->known = known_of(command->words, command->word_n);
    if (s->has_words && command->word_n == 0)
        command->known = SHELL_PARTLY; /* nothing is left of its words, as far as is known */
    if (s->redirects.n)
        keep_redirects(r, s->entry, &s->redirects, here);
    look->words.n = s->words;
    disturb(r, command);
}

int read_simple(struct reader *r, size_t *out)
{
    struct simple s = {.words = r->look->words.n, .vars = r->vars};
    struct heredoc **here = r->last;
    size_t start = r->pos;
    size_t end = start;
    size_t outer = r->current;

    s.entry = r->current = add_entry(r, start);
    if (s.entry == SHELL_NONE)
        return -1;
    while (!ends_simple(r)) {
        if (read_item(r, &s) < 0)
            return -1;
        end = r->pos;
        skip_space(r);
    }
    r->current = outer;
    finish(r, &s, here);
    r->look->v[s.entry].span = span_at(r, start, end);
    *out = s.entry;
    return 0;
}

int take_simple(struct reader *r, const struct shell_word *words, size_t n)
{
    size_t at = add_entry(r, 0);
    struct shell_command *command;

    if (at == SHELL_NONE)
        return -1;
    r->pos = r->end;
    r->look->about[at].same = true;
    command = &r->look->v[at];
    command->words = words;
    command->word_n = n;
    command->known = SHELL_LITERAL;
    command->span = span_at(r, 0, r->end);
    disturb(r, command);
    return 0;
}
