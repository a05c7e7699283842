/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lib/base/err.h"
#include "lib/base/memory.h"

/* What a shell text, or an argument vector, would run, as far as words can tell.
 *
 * Nothing is guessed: what depends on the machine, on the environment or on which shell it is
 * makes a word partly known or opaque. A literal word is byte for byte what bash and dash pass.
 * Reading takes time in proportion to the text, whatever the text is. */

/* Zero is the closed side. */
enum shell_known {
    SHELL_OPAQUE,  /* nothing is known; the text is as it was written */
    SHELL_PARTLY,  /* one reading of it, parts of which may be as they were written */
    SHELL_LITERAL, /* exactly this */
};

/* With SHELL_ANY, what bash and dash read differently is at most partly known. */
enum shell_dialect {
    SHELL_ANY,
    SHELL_BASH,
};

/* Bytes of the text that was given. For an argument vector: of its words with one blank between
 * them. What is found in a text inside another has the span of the word around it, unless that
 * word says it byte for byte. */
struct shell_span {
    size_t start;
    size_t end;
};

struct shell_word {
    enum shell_known known;
    struct str text; /* NUL-terminated */
    struct shell_span span;
};

enum shell_redirect_kind {
    SHELL_WRITE,  /* > >> >| <> &> and their like: a file may be changed */
    SHELL_READ,   /* < FILE */
    SHELL_TEXT,   /* << and <<<: the target is the text itself */
    SHELL_COPIES, /* 2>&1, >&-: no file is opened */
};

struct shell_redirect {
    enum shell_redirect_kind kind;
    int fd; /* -1: chosen by the shell, or both 1 and 2 */
    struct shell_word target;
};

/* Where standard input comes from. */
enum shell_input {
    SHELL_INPUT_OUTER, /* wherever the whole gets it from */
    SHELL_INPUT_PIPE,  /* from the command `input_from`; SHELL_NONE: from more than one */
    SHELL_INPUT_TEXT,  /* `input` is the text */
    SHELL_INPUT_FILE,  /* `input` is its name */
};

#define SHELL_NONE ((size_t)-1)

/* What is to be said of one command besides its words. */
enum shell_flag {
    SHELL_HIDES = 1,       /* also, or only, runs something that cannot be seen */
    SHELL_SCANS = 2,       /* and that may begin at any of its later words */
    SHELL_FILE = 4,        /* is a file that an interpreter is to run */
    SHELL_RUNS_FILE = 8,   /* is an interpreter that runs a file, or files of its own first */
    SHELL_IS_SHELL = 16,   /* is a shell */
    SHELL_INLINE = 32,     /* is an interpreter with code in its words, or on its input */
    SHELL_DECODED = 64,    /* its text was computed: echo cm0= | base64 -d | sh */
    SHELL_DELETES = 128,   /* find -delete */
    SHELL_LOOKUP = 256,    /* only asks where something is: command -v, type, which */
    SHELL_MORE = 512,      /* gets more words than these: xargs, find -exec */
    SHELL_FUNCTION = 1024, /* stands in the body of a function */
    SHELL_REMOTE = 2048,   /* runs on another machine, or in a container */
};

/* One simple command: assignments, words, redirections, each possibly none. A group that is
 * redirected is a command without words. */
struct shell_command {
    const struct shell_word *words;
    const struct shell_word *assignments; /* NAME=value, also those of export and its like */
    const struct shell_redirect *redirects;
    size_t word_n;
    size_t assignment_n;
    size_t redirect_n;
    enum shell_known known; /* opaque: it is not known what runs; literal: every word is */
    unsigned flags;         /* enum shell_flag */
    const char *carrier;    /* it runs others: its name without folders; or NULL */
    const char *within;     /* the name of the carrier that runs it, or NULL */
    size_t parent;          /* that carrier's place in the list, or SHELL_NONE */
    unsigned depth;         /* carriers around it */
    struct shell_span span;
    enum shell_input input_kind;
    size_t input_from;
    struct shell_word input;
};

/* Commands of the text in the order in which they begin; behind them what carriers run, carriers
 * in the order of the list. A carrier stands before what it runs. */
struct shell_script {
    const struct shell_command *commands;
    size_t n;
};

/* A text. ERR_INVALID: no shell would read it, or two would read two things; ERR_LIMIT: it is
 * larger, deeper or longer than any that is read. Both name the byte. The arena needs
 * SHELL_MEMORY_MAX. */
int shell_read(struct arena *mem, struct str text, enum shell_dialect dialect,
               struct shell_script *out, struct err *err) MUST_CHECK;

/* An argument vector: itself, and what it carries. What cannot be read is flagged, so this does
 * not fail. */
void shell_look(struct arena *mem, const char *const *argv, size_t n, struct shell_script *out);

/* Names without folders. Every carrier may carry, and so may programs that run the value of some
 * option. */
bool shell_is_carrier(const char *name);
bool shell_may_carry(const char *name);
const char *shell_base(const char *program); /* behind the last slash */

/* Variables through which a program can be made to run something else: PATH, LD_PRELOAD,
 * BASH_ENV, GIT_SSH_COMMAND and their like. */
bool is_steering_variable(const char *assignment);
