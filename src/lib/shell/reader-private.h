/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lib/shell/name-private.h"
#include "lib/shell/shell.h"

#include <stdint.h>

/* ---- what a whole look shares ---- */

/* Every byte of a word that is being read has a class beside it. */
enum byte_class {
    BYTE_PLAIN,  /* as typed: may be a glob, a brace, a tilde */
    BYTE_QUOTED, /* itself */
    BYTE_FIELD,  /* from an expansion outside quotes: splits, globs */
    BYTE_GUESS,  /* itself in some shells */
    BYTE_ONE,    /* as written, of an expansion that stays within its word */
    BYTE_MANY,   /* as written, of an expansion that may be any number of words */
    BYTE_EMPTY,  /* no byte: quotes stood here, so there is a word */
};

/* One buffer for all words that are being read, the outer ones below the inner ones. */
struct scratch {
    char *bytes;
    uint8_t *classes;
    size_t n;
    size_t cap;
    unsigned seen; /* a bit for every class that may be among them */
};

struct word_stack {
    struct shell_word *v;
    size_t n;
    size_t cap;
};

/* What only the reader needs to know of a command. */
struct about {
    const struct var *vars; /* as they were when it ran */
    bool lost;              /* and then any of them may have been changed */
    bool splits;            /* some of its words may be any number of words */
    bool same;              /* a shell that reads its words again finds the same */
    bool dull;              /* by its name it runs nothing but itself, and does nothing else */
    bool bash;
    bool streams; /* a shell that runs what it reads as its input */
};

struct look {
    struct arena *mem;
    struct shell_command *v;
    struct about *about; /* each of them */
    size_t n;
    size_t cap;
    size_t expected; /* commands of a text so long: mostly they need no more room than that */
    size_t spare;    /* bytes that expansions may still add: keeps the whole linear */
    unsigned nest;
    bool functions; /* some name may stand for a function, or a trap may run between commands */
    bool followed;  /* a variable, or what a command prints, was taken for known */
    bool careful;   /* nothing is */
    bool streams;   /* one of them is such a shell */
    struct pieces *pieces; /* for braces */
    struct scratch scratch;
    struct word_stack words;
    struct name_kept carriers[NAMES_KEPT];
    struct name_kept builtins[NAMES_KEPT];
    struct name_kept effects[NAMES_KEPT];
};

/* ---- variables ---- */

enum var_kind {
    VAR_ALL_LOST, /* nothing older is known */
    VAR_BARRIER,  /* the body of a loop or function: nothing older is known inside */
    VAR_LOST,
    VAR_KNOWN,
};

/* What is known of IFS, without looking further on. */
enum ifs {
    IFS_LOST,
    IFS_SET,   /* an assignment says */
    IFS_FIRST, /* it is what it is in the beginning */
};

/* Newest first, never changed: a subshell goes back to an older head. */
struct var {
    enum var_kind kind;
    enum ifs ifs;
    unsigned length; /* of the list from here */
    struct str name;
    struct str value;
    const struct var *next;
};

/* ---- one text ---- */

struct heredoc {
    struct shell_redirect *at;
    size_t entry;
    size_t place;   /* among the redirections of its command */
    struct str end; /* the line that ends it */
    bool quoted;
    bool strip;
    struct heredoc *next;
};

struct reader {
    struct look *look;
    struct str text;
    size_t pos;
    size_t end;
    char *pool; /* a copy of the text, in which words that are no longer than there can stand */
    struct shell_span outer; /* the span of everything, where positions cannot be given */
    size_t base;
    bool exact;
    bool bash;
    bool unsure; /* shells differ about something in it */
    bool unseen; /* and it may run what was not found */
    bool lost;   /* something may have changed any variable, now or later */
    bool in_function;
    bool in_here; /* the text of a here-document */
    size_t parent;
    const char *within;
    unsigned depth;
    unsigned flags; /* for every command */
    const struct var *vars;
    struct heredoc *first, **last;
    size_t current; /* the command being read, or SHELL_NONE */
    bool piped;     /* the next command reads a pipe */
    size_t piped_from;
    size_t alone;    /* the list just read was one pipeline, which ends in this command */
    struct err *err; /* NULL: nobody asks, of a text inside */
};

int fail_at(struct reader *r, size_t pos, const char *what);
void note_unseen(struct reader *r);    /* what it runs is not what was read, or not all of it */
void note_evaluates(struct reader *r); /* the command being read runs something unseen */
int enter(struct reader *r);
void leave(struct reader *r);

static inline struct shell_span span_at(const struct reader *r, size_t start, size_t end)
{
    return r->exact ? (struct shell_span){r->base + start, r->base + end} : r->outer;
}

/* What a byte can be outside quotes. */
enum byte_kind {
    KIND_META = 1,   /* ends a word */
    KIND_WORD = 2,   /* quotes, escapes, expansions: something begins inside a word */
    KIND_EXPAND = 4, /* may be a glob, a brace, a tilde, a comment */
    KIND_NAME = 8,
    KIND_DIGIT = 16,
    KIND_KEYWORD = 32,      /* may begin one, or be a line that is continued there */
    KIND_SPACE = 64,        /* a blank, a comment, or a line that is continued */
    KIND_ARROW = 128,       /* may begin a redirection, or be such a line */
    KIND_NO_FUNCTION = 256, /* cannot stand in the name of one */
    KIND_HEAD = 512,        /* may stand behind it, before its parentheses end */
};
extern const uint16_t byte_kinds[256];

static inline bool is_kind(int c, unsigned kinds)
{
    return c >= 0 && (byte_kinds[c & 0xff] & kinds) != 0;
}

static inline bool is_blank(int c)
{
    return c == ' ' || c == '\t';
}

static inline bool is_meta(int c)
{
    return is_kind(c, KIND_META);
}

static inline bool is_name_start(int c)
{
    return is_kind(c, KIND_NAME);
}

static inline bool is_name_byte(int c)
{
    return is_kind(c, KIND_NAME | KIND_DIGIT);
}

/* Over lines that are continued. */
void join_lines(struct reader *r);

/* The next byte, or -1; lines that are continued are joined on the way. */
static inline int peek(struct reader *r)
{
    int c = r->pos < r->end ? (unsigned char)r->text.p[r->pos] : -1;

    if (c != '\\')
        return c;
    join_lines(r);
    return r->pos < r->end ? (unsigned char)r->text.p[r->pos] : -1;
}
int peek_second(const struct reader *r);

void skip_some_space(struct reader *r);

/* Over blanks and a comment. */
static inline void skip_space(struct reader *r)
{
    if (r->pos < r->end && r->text.p[r->pos] == ' ')
        r->pos++; /* mostly it is one of them */
    if (r->pos < r->end && is_kind((unsigned char)r->text.p[r->pos], KIND_SPACE))
        skip_some_space(r);
}

/* ---- commands (grammar.c, command.c, redirect.c) ---- */

/* Until something that ends a list: `)`, `}`, fi, done, ;;, the end. The caller looks which. */
int read_list(struct reader *r);
/* The same, where it is known which words it would find, all of them literal. */
int read_given(struct reader *r, const struct shell_word *words, size_t n);
int read_newline(struct reader *r);              /* with the here-documents behind it */
extern const struct shell_command empty_command; /* copied faster than cleared */
size_t add_entry(struct reader *r, size_t start);
size_t add_command(struct look *look); /* SHELL_NONE: there is no room for it */
int read_simple(struct reader *r, size_t *out);
int take_simple(struct reader *r, const struct shell_word *words, size_t n); /* the whole text */
int read_redirects(struct reader *r, size_t *out); /* of a group; SHELL_NONE: there are none */
int read_for_words(struct reader *r);
int read_pattern(struct reader *r);
void disturb(struct reader *r, struct shell_command *command);

/* ---- words (word.c, dollar.c, ansi.c, expand.c) ---- */

void put(struct reader *r, const char *bytes, size_t n, enum byte_class class);
int read_raw_word(struct reader *r);
/* A word in which there is nothing but plain bytes, quotes and escapes. Its first bytes may be
 * taken as they stand: NAME=. false: it has to be read in full, and nothing has been yet. */
bool read_settled(struct reader *r, size_t taken, struct shell_word *out);
int read_double(struct reader *r); /* behind its opening quote */
int read_dollar(struct reader *r, bool quoted);
int read_ansi(struct reader *r, size_t start); /* behind the opening quote of $'...' */
int read_backtick(struct reader *r, bool quoted);
int read_process(struct reader *r);
int read_here_text(struct reader *r, bool strip);
int read_arithmetic(struct reader *r); /* behind the second parenthesis */
int read_delimiter(struct reader *r, struct str *out, bool *quoted);

/* The bytes from mark on, split and expanded, pushed onto look->words. */
void push_fields(struct reader *r, size_t mark, struct shell_span span);
/* The same as one word: an assignment, a here-document, the target of a redirection. */
struct shell_word one_word(struct reader *r, size_t mark, struct shell_span span, bool splits);
void grow_words(struct word_stack *s);

/* Where one can be put; it counts when n does. */
static inline struct shell_word *next_word(struct look *look)
{
    if (look->words.n == look->words.cap)
        grow_words(&look->words);
    return &look->words.v[look->words.n];
}

static inline void push_word(struct look *look, struct shell_word word)
{
    *next_word(look) = word;
    look->words.n++;
}

/* ---- sums (arithmetic.c) ---- */

bool is_integer(struct str text);
/* Whether it can run nothing: numbers, and names that are known to hold some. */
bool is_plain_arithmetic(struct reader *r, struct str text);

/* ---- variables (vars.c) ---- */

void var_set(struct reader *r, struct str name, const struct shell_word *value);
void var_lose(struct reader *r, struct str name);
void vars_lose(struct reader *r);
void vars_hide(struct reader *r);
/* What was set since `base` may or may not have been. */
void vars_demote(struct reader *r, const struct var *base);
bool var_get(const struct reader *r, struct str name, struct str *out);
bool splits_at_blanks(const struct reader *r); /* IFS is what it is in the beginning */

/* Takes bytes from what expansions may still add; false: there are not so many. */
static inline bool spend(struct look *look, size_t bytes)
{
    bool can = bytes <= look->spare;

    look->spare -= can ? bytes : 0;
    return can;
}

/* ---- what is printed (output.c), what is carried (carrier.c) ---- */

bool output_of(struct look *look, size_t entry, struct str *out);
bool text_fits_word(struct str text); /* no NUL */

/* A text inside, read for the command `parent`. */
struct inner {
    struct shell_word word;
    size_t parent;
    const char *within;
    unsigned flags;
    bool bash;
    bool lost;
    const struct var *vars;
    const struct shell_word *words; /* which it would be read as, where that is known; or NULL */
    size_t word_n;
};
void read_inner(struct look *look, const struct inner *inner, struct str outermost);
size_t add_child(struct look *look, size_t parent, const char *within,
                 const struct shell_word *words, size_t n, unsigned flags);
/* What `parent` runs takes lines of the input that it has from there. */
void note_takes(struct look *look, size_t parent);
/* The same for commands that do. */
void look_takers(struct look *look);
void unwrap(struct look *look, size_t at, struct str outermost);

/* Options of set and of shells that change nothing about how a text is read. */
bool is_plain_option(struct str name);
bool is_plain_shopt(struct str name);
