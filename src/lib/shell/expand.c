/* SPDX-License-Identifier: Apache-2.0 */
/* From the bytes of a word and their classes to the words a program gets: braces, fields, globs. */
#include "lib/shell/reader-private.h"

#include <string.h>

#define BRACE_NEST_MAX 32
#define BRACE_WORDS_MAX 1024
#define WORD_COST 64 /* what a word costs beside its bytes */

void grow_words(struct word_stack *s)
{
    s->cap = s->cap ? s->cap * 2 : 32;
    s->v = xrealloc(s->v, s->cap * sizeof *s->v);
}

/* Bytes with their classes, wherever they lie. */
struct piece {
    const char *bytes;
    const uint8_t *classes;
    size_t n;
};

struct judged {
    size_t n;     /* bytes of text */
    bool known;   /* something of it is */
    bool certain; /* all of it is */
};

/* A [ is a pattern only when a ] follows. */
static bool has_bracket(struct piece p, size_t at)
{
    return memchr(p.bytes + at, ']', p.n - at) != NULL;
}

static bool is_tilde(struct piece p, size_t i)
{
    if (p.bytes[i] != '~' || p.classes[i] != BYTE_PLAIN)
        return false;
    return i == 0 || p.bytes[i - 1] == '=' || p.bytes[i - 1] == ':';
}

/* Kinds of bytes that are not simply themselves, by their class; every byte has KIND_ANY. */
#define KIND_ANY 0x8000U
static const uint16_t watched[] = {
    [BYTE_PLAIN] = KIND_EXPAND, [BYTE_QUOTED] = 0,     [BYTE_FIELD] = KIND_EXPAND,
    [BYTE_GUESS] = KIND_ANY,    [BYTE_ONE] = KIND_ANY, [BYTE_MANY] = KIND_ANY,
    [BYTE_EMPTY] = KIND_ANY,
};

/* How many bytes from there on are themselves. */
static size_t run_of_themselves(struct piece p, size_t from)
{
    size_t i = from;

    while (i < p.n && !((byte_kinds[(unsigned char)p.bytes[i]] | KIND_ANY) & watched[p.classes[i]]))
        i++;
    return i - from;
}

/* How many are of an expansion that is as it was written. */
static size_t run_as_written(struct piece p, size_t from)
{
    size_t i = from;

    while (i < p.n && (p.classes[i] == BYTE_ONE || p.classes[i] == BYTE_MANY))
        i++;
    return i - from;
}

static struct judged judge(struct piece p, bool globs)
{
    struct judged out = {.certain = true};
    bool bracket = false;

    for (size_t i = 0; i < p.n; i++) {
        size_t run = run_of_themselves(p, i);
        enum byte_class class;
        char c;
        bool open;

        out.n += run;
        out.known = out.known || run;
        i += run;
        if (i == p.n)
            break; /* most of them end here */
        class = p.classes[i];
        if (class == BYTE_EMPTY)
            continue;
        if (class == BYTE_ONE || class == BYTE_MANY) {
            run = run_as_written(p, i);
            out.n += run;
            out.certain = false;
            i += run - 1;
            continue;
        }
        c = p.bytes[i];
        out.n++;
        out.known = true;
        open = globs && class < BYTE_GUESS;
        if (class >= BYTE_GUESS || is_tilde(p, i) || (open && (c == '*' || c == '?')))
            out.certain = false;
        if (open && c == '[' && !bracket) {
            bracket = true;
            out.certain = out.certain && !has_bracket(p, i);
        }
    }
    out.known = out.known || out.certain;
    return out;
}

static bool may_have(const struct reader *r, enum byte_class class)
{
    return (r->look->scratch.seen & 1U << class) != 0;
}

static bool has_class(const struct reader *r, struct piece p, enum byte_class class)
{
    return may_have(r, class) && memchr(p.classes, (int)class, p.n) != NULL;
}

/* Without the marks of quotes. */
static void copy_bytes(char *out, struct piece p)
{
    while (p.n) {
        const uint8_t *mark = memchr(p.classes, BYTE_EMPTY, p.n);
        size_t n = mark ? (size_t)(mark - p.classes) : p.n;

        memcpy(out, p.bytes, n);
        out += n;
        n += mark != NULL;
        p = (struct piece){p.bytes + n, p.classes + n, p.n - n};
    }
}

static struct shell_word make_word(struct reader *r, struct piece p, struct shell_span span,
                                   bool globs, bool certain)
{
    struct judged j = judge(p, globs);
    char *text = arena_take(r->look->mem, j.n + 1);
    struct shell_word word = {
        SHELL_OPAQUE, {text, j.n},
         span
    };

    if (j.n == p.n)
        memcpy(text, p.bytes, p.n);
    else
        copy_bytes(text, p);
    text[j.n] = '\0';
    if (j.certain && certain)
        word.known = SHELL_LITERAL;
    else if (j.known)
        word.known = SHELL_PARTLY;
    return word;
}

/* Every byte of it is itself. */
static struct shell_word make_plain_word(struct reader *r, struct piece p, struct shell_span span,
                                         bool certain)
{
    char *text = arena_take(r->look->mem, p.n + 1);

    memcpy(text, p.bytes, p.n);
    text[p.n] = '\0';
    return (struct shell_word){
        certain ? SHELL_LITERAL : SHELL_PARTLY, {text, p.n},
             span
    };
}

static inline bool is_field_blank(struct piece p, size_t i)
{
    char c = p.bytes[i];

    if ((unsigned char)c > ' ')
        return false; /* most of them */
    return p.classes[i] == BYTE_FIELD && (c == ' ' || c == '\t' || c == '\n');
}

/* Where a run of bytes of one class ends: mostly they are an expansion's. */
static size_t same_class_until(struct piece p, size_t i)
{
    const uint8_t class = p.classes[i];
    uint64_t eight, same;

    memset(&same, class, sizeof same);
    for (; p.n - i >= sizeof eight; i += sizeof eight) {
        memcpy(&eight, p.classes + i, sizeof eight);
        if (eight != same)
            break;
    }
    while (i < p.n && p.classes[i] == class)
        i++;
    return i;
}

/* Over as many bytes, eight at a time, as have nothing among them that stops. */
static size_t skip_eights(struct piece p, size_t i, size_t end, unsigned stop)
{
    for (; end - i >= 8; i += 8) {
        unsigned kinds = KIND_ANY;

#pragma GCC unroll 8
        for (size_t k = 0; k < 8; k++)
            kinds |= byte_kinds[(unsigned char)p.bytes[i + k]];
        if (kinds & stop)
            break;
    }
    return i;
}

/* *at moves to the blank behind the field; whether all bytes up to there are themselves. */
static bool find_field_end(struct piece p, size_t *at)
{
    static const uint16_t stops[] = {
        [BYTE_PLAIN] = KIND_EXPAND,
        [BYTE_QUOTED] = 0,
        [BYTE_FIELD] = KIND_EXPAND | KIND_META, /* blanks are among those */
        [BYTE_GUESS] = KIND_ANY,
        [BYTE_ONE] = KIND_ANY,
        [BYTE_MANY] = KIND_ANY,
        [BYTE_EMPTY] = KIND_ANY,
    };
    bool plain = true;
    size_t i = *at;

    while (i < p.n) {
        const unsigned stop = stops[p.classes[i]];
        const size_t end = same_class_until(p, i);

        for (i = skip_eights(p, i, end, stop); i < end; i++) {
            if (!((byte_kinds[(unsigned char)p.bytes[i]] | KIND_ANY) & stop))
                continue;
            *at = i;
            if (is_field_blank(p, i))
                return plain;
            plain = false;
        }
    }
    *at = i;
    return plain;
}

/* bash does not split an expansion in a word that also has a dollar that expands nothing. */
static bool has_lone_dollar(struct piece p)
{
    const char *at = memchr(p.bytes, '$', p.n);

    while (at && p.classes[at - p.bytes] != BYTE_PLAIN)
        at = memchr(at + 1, '$', p.n - (size_t)(at + 1 - p.bytes));
    return at != NULL;
}

static void push_split(struct reader *r, struct piece p, struct shell_span span, bool certain)
{
    bool has_fields = has_class(r, p, BYTE_FIELD);

    if (r->current != SHELL_NONE && has_class(r, p, BYTE_MANY))
        r->look->about[r->current].splits = true;
    if (!has_fields) {
        if (p.n)
            push_word(r->look, make_word(r, p, span, true, certain));
        return;
    }
    certain = certain && !has_lone_dollar(p);
    for (size_t i = 0; i < p.n;) {
        size_t from = i;
        bool plain = find_field_end(p, &i);
        struct piece field = {p.bytes + from, p.classes + from, i - from};

        if (field.n && plain)
            push_word(r->look, make_plain_word(r, field, span, certain));
        else if (field.n)
            push_word(r->look, make_word(r, field, span, true, certain));
        while (i < p.n && is_field_blank(p, i))
            i++;
    }
}

/* ---- braces ---- */

/* The first {...} with a comma of its own. */
struct brace {
    size_t open;
    size_t close;
    bool tidy; /* every brace has a comma of its own, and every one that is opened is closed */
};

enum braces {
    BRACES_NONE,
    BRACES_FOUND,
    BRACES_GIVEN_UP, /* too deep, or a sequence */
};

struct open_brace {
    size_t at;
    bool comma;
    bool dots;
};

/* A byte that may mean something; NUL: it is quoted. */
static char plain_at(struct piece p, size_t i)
{
    if (p.classes[i] != BYTE_PLAIN)
        return '\0';
    return p.bytes[i];
}

/* Bytes that are still to come, and what comes behind them. */
struct rest {
    size_t from;
    size_t to;
    size_t n; /* bytes in all */
    const struct rest *next;
};

/* A brace some of whose alternatives are still to come. */
struct group {
    struct group *around;
    size_t shared; /* bytes of the word that stand before any of them */
    size_t next;   /* where the next one begins */
    struct rest behind;
};

/* Large, and mostly unused: never cleared. */
struct pieces {
    struct open_brace open[BRACE_NEST_MAX];
    union {
        struct {
            struct piece v[BRACE_WORDS_MAX];
            bool clean[BRACE_WORDS_MAX]; /* as find_brace means it */
            size_t n;
        };
        struct group groups[BRACE_WORDS_MAX]; /* of tidy ones */
    };
};

/* `open` has room for BRACE_NEST_MAX. With `clean`, what follows the brace that is found has been
 * looked through, from where all braces were closed as well, and need not be again. */
static enum braces find_brace(struct open_brace *open, struct piece p, bool clean,
                              struct brace *out)
{
    size_t n = 0;
    bool found = false;
    enum braces result = BRACES_NONE;

    out->tidy = true;
    for (size_t i = 0; i < p.n; i++) {
        switch (p.bytes[i]) {
        case '{':
        case '}':
        case ',':
        case '.':
            break;
        default:
            continue;
        }
        if (p.classes[i] != BYTE_PLAIN)
            continue;
        if (p.bytes[i] == '{') {
            if (n == BRACE_NEST_MAX)
                return BRACES_GIVEN_UP;
            open[n++] = (struct open_brace){i, false, false};
        } else if (n == 0) {
            out->tidy = out->tidy && p.bytes[i] != '}';
        } else if (p.bytes[i] == ',') {
            open[n - 1].comma = true;
        } else if (p.bytes[i] == '}') {
            n--;
            if (open[n].comma && (!found || open[n].at < out->open)) {
                out->open = open[n].at;
                out->close = i;
                found = true;
            }
            out->tidy = out->tidy && open[n].comma;
            if (open[n].dots && !open[n].comma)
                result = BRACES_GIVEN_UP;
            if (clean && found && n == 0)
                break;
        } else if (i + 1 < p.n && p.bytes[i + 1] == '.') {
            open[n - 1].dots = true;
        }
    }
    out->tidy = out->tidy && n == 0;
    return result == BRACES_GIVEN_UP ? result : found ? BRACES_FOUND : BRACES_NONE;
}

static struct piece build(struct reader *r, struct piece p, struct brace b, size_t from, size_t to)
{
    size_t tail = p.n - b.close - 1;
    size_t n = b.open + (to - from) + tail;
    char *bytes = arena_take(r->look->mem, 2 * n);
    uint8_t *classes = (uint8_t *)bytes + n;

    memcpy(bytes, p.bytes, b.open);
    memcpy(classes, p.classes, b.open);
    memcpy(bytes + b.open, p.bytes + from, to - from);
    memcpy(classes + b.open, p.classes + from, to - from);
    memcpy(bytes + b.open + (to - from), p.bytes + b.close + 1, tail);
    memcpy(classes + b.open + (to - from), p.classes + b.close + 1, tail);
    return (struct piece){bytes, classes, n};
}

/* The next alternative of b that begins at `from`; returns where the one behind it begins. */
static size_t alternative_end(struct piece p, struct brace b, size_t from)
{
    unsigned nest = 0;
    size_t i;

    for (i = from; i < b.close; i++) {
        char c = plain_at(p, i);

        if (c == '{')
            nest++;
        else if (c == '}' && nest)
            nest--;
        else if (c == ',' && nest == 0)
            break;
    }
    return i;
}

/* Put in place of its braces, it changes nothing about those behind it. */
static bool has_no_braces(struct piece p, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        if (p.bytes[i] == '{' || p.bytes[i] == '}')
            return false;
    return true;
}

/* Alternatives of the last piece in the list, the first one last, so that it is taken next. */
static bool spread(struct reader *r, struct pieces *list, struct piece p, struct brace b)
{
    size_t first = list->n;

    for (size_t from = b.open + 1; from <= b.close;) {
        size_t to = alternative_end(p, b, from);

        if (list->n == BRACE_WORDS_MAX || !spend(r->look, p.n + WORD_COST))
            return false;
        list->clean[list->n] = has_no_braces(p, from, to);
        list->v[list->n++] = build(r, p, b, from, to);
        from = to + 1;
    }
    for (size_t i = first, j = list->n - 1; i < j; i++, j--) {
        struct piece swapped = list->v[i];
        bool clean = list->clean[i];

        list->v[i] = list->v[j];
        list->v[j] = swapped;
        list->clean[i] = list->clean[j];
        list->clean[j] = clean;
    }
    return true;
}

static bool has_brace(struct piece p)
{
    return p.n > 2 && memchr(p.bytes, '{', p.n) && memchr(p.bytes, '}', p.n);
}

static struct pieces *pieces_of(struct look *look)
{
    if (!look->pieces)
        look->pieces = xmalloc(sizeof *look->pieces);
    return look->pieces;
}

static bool push_braces(struct reader *r, struct piece p, struct shell_span span)
{
    struct pieces *list = pieces_of(r->look);
    size_t before = r->look->words.n;
    size_t made = 0;

    list->v[0] = p;
    list->clean[0] = false;
    list->n = 1;
    while (list->n) {
        struct piece next = list->v[--list->n];
        struct brace b;
        enum braces found =
            has_brace(next) ? find_brace(list->open, next, list->clean[list->n], &b) : BRACES_NONE;

        if (found == BRACES_FOUND && ++made < BRACE_WORDS_MAX && spread(r, list, next, b))
            continue;
        if (found != BRACES_NONE) {
            r->look->words.n = before;
            return false;
        }
        push_split(r, next, span, r->bash);
    }
    return true;
}

/* ---- tidy braces ---- */

/* Where braces are tidy, what is put in place of one changes nothing about the others. So words
 * share the bytes they begin with, and what is behind a brace is not copied for every alternative.
 * What is spent and what is given up on is the same as if it were. */
struct tidy {
    struct reader *r;
    struct piece from;
    char *bytes; /* the word that is being made */
    uint8_t *classes;
    size_t n;
    size_t made;    /* groups */
    size_t waiting; /* alternatives that are still to come */
};

/* The comma or the brace behind the alternative that begins there. */
static size_t tidy_end(struct piece p, size_t from)
{
    unsigned nest = 0;
    size_t i = from;

    for (;; i++) {
        char c = plain_at(p, i);

        if (nest == 0 && (c == ',' || c == '}'))
            return i;
        if (c == '{')
            nest++;
        else if (c == '}')
            nest--;
    }
}

/* Bytes up to the next brace; returns where it is, or `to`. */
static size_t take_bytes(struct tidy *t, size_t from, size_t to)
{
    for (; from < to && plain_at(t->from, from) != '{'; from++) {
        t->bytes[t->n] = t->from.bytes[from];
        t->classes[t->n++] = t->from.classes[from];
    }
    return from;
}

/* The one at `open`, among bytes that end where `at` does; NULL: there would be too much. */
static struct group *open_group(struct tidy *t, size_t open, const struct rest *at)
{
    size_t behind = at->next ? at->next->n : 0;
    size_t piece = t->n + (at->to - open) + behind;
    size_t end = open;
    struct group *group;

    if (++t->made == BRACE_WORDS_MAX)
        return NULL;
    do {
        end = tidy_end(t->from, end + 1);
        if (t->waiting == BRACE_WORDS_MAX || !spend(t->r->look, piece + WORD_COST))
            return NULL;
        t->waiting++;
    } while (t->from.bytes[end] == ',');
    group = &t->r->look->pieces->groups[t->made];
    group->shared = t->n;
    group->next = open + 1;
    group->behind = (struct rest){end + 1, at->to, at->to - end - 1 + behind, at->next};
    return group;
}

/* Every byte is itself, but for the braces. */
static bool is_plain_around(struct piece p)
{
    for (size_t i = 0; i < p.n; i++)
        if ((byte_kinds[(unsigned char)p.bytes[i]] | KIND_ANY) & watched[p.classes[i]] &&
            p.bytes[i] != '{' && p.bytes[i] != '}')
            return false;
    return true;
}

static bool push_tidy(struct reader *r, struct piece p, struct shell_span span)
{
    char *bytes = arena_take(r->look->mem, 2 * p.n);
    struct tidy t = {.r = r, .from = p, .bytes = bytes, .classes = (uint8_t *)bytes + p.n};
    struct rest at = {0, p.n, p.n, NULL};
    bool plain = !has_class(r, p, BYTE_FIELD) && is_plain_around(p);
    size_t before = r->look->words.n;
    struct group *group = NULL;

    for (;;) {
        size_t open = take_bytes(&t, at.from, at.to);

        for (; open == at.to && at.next; open = take_bytes(&t, at.from, at.to))
            at = *at.next;
        if (open < at.to) {
            struct group *inner = open_group(&t, open, &at);

            if (!inner) {
                r->look->words.n = before;
                return false;
            }
            inner->around = group;
            group = inner;
        } else if (plain && t.n) {
            push_word(r->look,
                      make_plain_word(r, (struct piece){t.bytes, t.classes, t.n}, span, r->bash));
        } else {
            push_split(r, (struct piece){t.bytes, t.classes, t.n}, span, r->bash);
        }
        if (!group)
            return true;
        t.n = group->shared;
        t.waiting--;
        at = (struct rest){group->next, tidy_end(p, group->next), 0, &group->behind};
        group->next = at.to + 1;
        if (p.bytes[at.to] == '}')
            group = group->around;
    }
}

/* ---- whole words ---- */

static struct piece piece_from(struct reader *r, size_t mark)
{
    struct scratch *s = &r->look->scratch;

    if (s->n == mark)
        return (struct piece){"", (const uint8_t *)"", 0};
    return (struct piece){s->bytes + mark, s->classes + mark, s->n - mark};
}

/* Nothing but expansions of which nothing is known. */
static void push_unknown(struct reader *r, struct piece p, struct shell_span span)
{
    struct shell_word word = make_plain_word(r, p, span, false);

    word.known = SHELL_OPAQUE;
    push_word(r->look, word);
    if (r->current != SHELL_NONE)
        r->look->about[r->current].splits = true;
}

static void push_piece(struct reader *r, struct piece p, struct shell_span span)
{
    struct brace b;
    enum braces found =
        has_brace(p) ? find_brace(pieces_of(r->look)->open, p, false, &b) : BRACES_NONE;

    if (found != BRACES_FOUND || !(b.tidy ? push_tidy(r, p, span) : push_braces(r, p, span)))
        push_split(r, p, span, found == BRACES_NONE);
}

void push_fields(struct reader *r, size_t mark, struct shell_span span)
{
    struct piece p = piece_from(r, mark);

    if (p.n && r->look->scratch.seen == 1U << BYTE_MANY)
        push_unknown(r, p, span);
    else
        push_piece(r, p, span);
    r->look->scratch.n = mark;
}

struct shell_word one_word(struct reader *r, size_t mark, struct shell_span span, bool globs)
{
    struct piece p = piece_from(r, mark);
    struct brace b;
    bool braces =
        globs && has_brace(p) && find_brace(pieces_of(r->look)->open, p, false, &b) != BRACES_NONE;
    struct shell_word word = make_word(r, p, span, globs, !braces);

    r->look->scratch.n = mark;
    return word;
}
