/* SPDX-License-Identifier: Apache-2.0 */
/* Redirections, and the here-documents behind the line. */
#include "lib/shell/redirect-private.h"

#include <string.h>

static void add_redirect(struct reader *r, struct redirect_list *list,
                         struct shell_redirect redirect)
{
    struct redirect_node *node = arena_new(r->look->mem, struct redirect_node);

    node->redirect = redirect;
    if (!list->first)
        list->last = &list->first;
    *list->last = node;
    list->last = &node->next;
    list->n++;
}

/* More digits than any of ours has, or a continued line among them: a word in some shells, a
 * descriptor in others. */
static void note_long_descriptor(struct reader *r, size_t at)
{
    while (at < r->end && (is_kind(r->text.p[at], KIND_DIGIT) || r->text.p[at] == '\\' ||
                           (r->text.p[at] == '\n' && r->text.p[at - 1] == '\\')))
        at++;
    if (at < r->end && (r->text.p[at] == '<' || r->text.p[at] == '>'))
        note_unseen(r);
}

/* Digits that a < or > follows at once: the descriptor. -1: none. */
static int read_descriptor(struct reader *r)
{
    size_t at = r->pos;
    int fd = 0;

    while (at < r->end && at - r->pos < 4 && r->text.p[at] >= '0' && r->text.p[at] <= '9')
        fd = fd * 10 + (r->text.p[at++] - '0');
    if (at > r->pos && at < r->end && (r->text.p[at] == '\\' || is_kind(r->text.p[at], KIND_DIGIT)))
        note_long_descriptor(r, at);
    if (at == r->pos || at >= r->end || (r->text.p[at] != '<' && r->text.p[at] != '>'))
        return -1;
    r->pos = at;
    return fd;
}

bool is_redirect(struct reader *r)
{
    size_t before = r->pos;
    int c = peek(r);

    if (c >= '0' && c <= '9') {
        bool is = read_descriptor(r) >= 0;

        r->pos = before;
        return is;
    }
    if (c == '&' && peek_second(r) == '>') {
        if (!r->bash)
            note_unseen(r); /* two operators, or one */
        return r->bash;
    }
    return (c == '<' || c == '>') && peek_second(r) != '(';
}

enum arrow {
    ARROW_READ,
    ARROW_WRITE,
    ARROW_BOTH,
    ARROW_COPY,
    ARROW_HERE,
    ARROW_HERE_STRIP,
    ARROW_STRING,
};

static enum arrow read_arrow(struct reader *r)
{
    int first = peek(r);
    int second;

    r->pos++;
    second = peek(r);
    if (first == '&') { /* &> &>> */
        r->pos++;
        if (peek(r) == '>')
            r->pos++;
        return ARROW_BOTH;
    }
    if (second == '&') {
        r->pos++;
        return ARROW_COPY;
    }
    if (second == '>' || (first == '>' && second == '|')) {
        r->pos++;
        return ARROW_WRITE;
    }
    if (first == '>')
        return ARROW_WRITE;
    if (second != '<')
        return ARROW_READ;
    r->pos++;
    if (peek(r) == '<') {
        r->pos++;
        return ARROW_STRING;
    }
    if (peek(r) != '-')
        return ARROW_HERE;
    r->pos++;
    return ARROW_HERE_STRIP;
}

static bool is_number_or_dash(struct str s)
{
    return s.n && strspn(s.p, "0123456789-") == s.n;
}

static int read_target(struct reader *r, struct shell_word *out)
{
    size_t mark = r->look->scratch.n;
    size_t start;

    while (is_blank(peek(r)))
        r->pos++;
    start = r->pos;
    if (read_settled(r, 0, out))
        return 0;
    if (read_raw_word(r) < 0)
        return -1;
    if (r->pos == start)
        return fail_at(r, start, "a redirection without a target");
    *out = one_word(r, mark, span_at(r, start, r->pos), true);
    if ((peek(r) == '<' || peek(r) == '>') && is_number_or_dash(out->text))
        r->unsure = true; /* 2>&1>x: whose number it is */
    return 0;
}

static int read_heredoc(struct reader *r, size_t entry, size_t place, bool strip)
{
    struct heredoc *here = arena_new(r->look->mem, struct heredoc);

    while (is_blank(peek(r)))
        r->pos++;
    if (read_delimiter(r, &here->end, &here->quoted) < 0)
        return -1;
    here->entry = entry;
    here->place = place;
    here->strip = strip;
    *r->last = here;
    r->last = &here->next;
    return 0;
}

/* >&FILE is bash's, which expands FILE once more when it has seen that it is no descriptor. */
static void note_file_of_copy(struct reader *r, size_t entry, const struct shell_redirect *out)
{
    r->unsure = r->unsure || !r->bash || out->fd != 1;
    if (out->fd == 1 && strpbrk(out->target.text.p, "$`"))
        r->look->v[entry].flags |= SHELL_HIDES;
}

int read_redirect(struct reader *r, size_t entry, struct redirect_list *list)
{
    struct shell_redirect out = {.kind = SHELL_WRITE};
    size_t start = r->pos;
    enum arrow arrow;
    bool reads;

    out.fd = read_descriptor(r);
    reads = peek(r) == '<';
    arrow = read_arrow(r);
    if (out.fd > 9)
        r->unsure = r->unsure || !r->bash; /* a word, in some shells */
    if (out.fd < 0 && arrow != ARROW_BOTH)
        out.fd = reads ? 0 : 1;
    switch (arrow) {
    case ARROW_HERE:
    case ARROW_HERE_STRIP:
        out.kind = SHELL_TEXT;
        out.target = (struct shell_word){
            SHELL_OPAQUE, {"", 0},
             span_at(r, start, r->pos)
        };
        if (read_heredoc(r, entry, list->n, arrow == ARROW_HERE_STRIP) < 0)
            return -1;
        break;
    case ARROW_STRING:
        r->unsure = r->unsure || !r->bash;
        out.kind = SHELL_TEXT;
        break;
    case ARROW_READ:
        out.kind = SHELL_READ;
        break;
    case ARROW_WRITE:
    case ARROW_BOTH:
    case ARROW_COPY:
        break;
    }
    if (arrow != ARROW_HERE && arrow != ARROW_HERE_STRIP && read_target(r, &out.target) < 0)
        return -1;
    if (arrow == ARROW_COPY && out.target.known == SHELL_LITERAL &&
        is_number_or_dash(out.target.text))
        out.kind = SHELL_COPIES;
    else if (arrow == ARROW_COPY)
        note_file_of_copy(r, entry, &out);
    if (arrow == ARROW_STRING)
        out.target.text =
            (struct str){arena_printf(r->look->mem, STR_FMT "\n", STR_ARG(out.target.text)),
                         out.target.text.n + 1};
    add_redirect(r, list, out);
    return 0;
}

void keep_redirects(struct reader *r, size_t entry, const struct redirect_list *list,
                    struct heredoc **here)
{
    struct shell_command *command = &r->look->v[entry];
    struct shell_redirect *v;
    size_t n = 0;

    if (list->n == 0)
        return;
    v = arena_array(r->look->mem, struct shell_redirect, list->n);
    for (const struct redirect_node *node = list->first; node && n < list->n; node = node->next)
        v[n++] = node->redirect;
    for (struct heredoc *at = *here; at; at = at->next)
        at->at = &v[at->place];
    command->redirects = v;
    command->redirect_n = n;
    for (size_t i = 0; i < n; i++) {
        if (v[i].fd != 0)
            continue;
        command->input_kind = v[i].kind == SHELL_TEXT ? SHELL_INPUT_TEXT : SHELL_INPUT_FILE;
        command->input = v[i].target;
        command->input_from = SHELL_NONE;
    }
}

int read_redirects(struct reader *r, size_t *out)
{
    struct redirect_list list = {0};
    struct heredoc **here = r->last;
    size_t start;

    *out = SHELL_NONE;
    skip_space(r);
    start = r->pos;
    while (is_redirect(r)) {
        if (*out == SHELL_NONE && (*out = add_entry(r, start)) == SHELL_NONE)
            return -1;
        if (read_redirect(r, *out, &list) < 0)
            return -1;
        skip_space(r);
    }
    if (*out == SHELL_NONE)
        return 0;
    keep_redirects(r, *out, &list, here);
    r->look->v[*out].known = SHELL_LITERAL;
    r->look->v[*out].span = span_at(r, start, r->pos);
    return 0;
}

/* ---- here-documents ---- */

/* Whether the line at `at` is the one that ends it; *next is behind the line then. */
static bool line_ends(const struct reader *r, const struct heredoc *here, size_t at, size_t *next)
{
    size_t n = 0;

    while (here->strip && at < r->end && r->text.p[at] == '\t')
        at++;
    for (;; at++) {
        while (!here->quoted && at + 1 < r->end && r->text.p[at] == '\\' &&
               r->text.p[at + 1] == '\n')
            at += 2;
        if (at >= r->end || r->text.p[at] == '\n')
            break;
        if (n == here->end.n || here->end.p[n] != r->text.p[at])
            return false;
        n++;
    }
    *next = at < r->end ? at + 1 : at;
    return n == here->end.n;
}

/* The start of the next line that is not the continuation of this one; SHELL_NONE: there is none.
 */
static size_t next_line(const struct reader *r, const struct heredoc *here, size_t at)
{
    for (;;) {
        const char *newline = memchr(r->text.p + at, '\n', r->end - at);
        size_t slashes = 0, end;

        if (!newline)
            return SHELL_NONE;
        end = (size_t)(newline - r->text.p);
        while (!here->quoted && end - slashes > at && r->text.p[end - slashes - 1] == '\\')
            slashes++;
        at = end + 1;
        if (slashes % 2 == 0)
            return at;
    }
}

static void put_quoted_body(struct reader *r, size_t from, size_t to, bool strip)
{
    while (from < to) {
        const char *newline = memchr(r->text.p + from, '\n', to - from);
        size_t end = newline ? (size_t)(newline - r->text.p) + 1 : to;

        while (strip && from < end && r->text.p[from] == '\t')
            from++;
        put(r, r->text.p + from, end - from, BYTE_QUOTED);
        from = end;
    }
}

static int read_body(struct reader *r, const struct heredoc *here, size_t from, size_t to)
{
    struct shell_span span = span_at(r, from, to);
    size_t mark = r->look->scratch.n;
    size_t end = r->end;
    size_t current = r->current;
    int ok = 0;

    r->end = to;
    r->current = here->entry;
    if (here->quoted) {
        put_quoted_body(r, from, to, here->strip);
        r->pos = to;
    } else {
        ok = read_here_text(r, here->strip);
    }
    r->end = end;
    r->current = current;
    if (ok < 0)
        return -1;
    here->at->target = one_word(r, mark, span, false);
    if (here->at->fd == 0 && r->look->v[here->entry].input_kind == SHELL_INPUT_TEXT)
        r->look->v[here->entry].input = here->at->target;
    return 0;
}

static int read_heredoc_body(struct reader *r, const struct heredoc *here)
{
    size_t from = r->pos;
    size_t at = from;
    size_t next = 0;

    while (at != SHELL_NONE && at < r->end && !line_ends(r, here, at, &next))
        at = next_line(r, here, at);
    if (at == SHELL_NONE || at >= r->end)
        return fail_at(r, from, "a here-document without its end");
    if (read_body(r, here, from, at) < 0)
        return -1;
    r->pos = next;
    return 0;
}

int read_newline(struct reader *r)
{
    struct heredoc *here = r->first;

    r->pos++;
    r->first = NULL;
    r->last = &r->first;
    for (; here; here = here->next)
        if (read_heredoc_body(r, here) < 0)
            return -1;
    return 0;
}
