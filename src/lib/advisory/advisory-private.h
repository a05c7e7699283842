/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files of this folder share. */

#include "lib/advisory/advisory.h"

/* A copy of a text that was made plain, and for each of its bytes where that stood. */
struct copy {
    char *p;
    uint32_t *at; /* n + 1 of them */
    size_t n;
    bool is_confusable; /* letters became ASCII, or what is not seen stood beside some */
};

enum fold_flags {
    FOLD_ANSI = 1,      /* takes sequences for terminals out */
    FOLD_INVISIBLE = 2, /* takes what has no shape out: zero width, joiners, turns of direction */
    FOLD_QUOTES = 4,    /* printers' quotes as typewriters have them */
    FOLD_CASE = 8,      /* ASCII letters as small ones */
    FOLD_LOOKS = 16,    /* letters that look like ASCII, among letters of ASCII, as those */
};
/* NFKC as far as it leads to ASCII. What is no UTF-8 stays. */
void fold_copy(struct arena *mem, struct str text, unsigned flags, struct copy *out);
/* The same of a copy: places are those in the first text. */
void fold_again(struct arena *mem, const struct copy *text, unsigned flags, struct copy *out);
struct str copy_str(const struct copy *copy);
/* The first character that nobody sees, or that does something instead: controls, turns of
 * direction, zero width, ends of lines. Bytes that are no UTF-8 are passed over. */
bool find_unseen(struct str text, size_t *start, size_t *end);
/* White space, what nobody sees and what a terminal swallows, and nothing else. */
bool is_blank_text(struct str text);
char small_letter(char c); /* of ASCII; anything else as it is */

/* Where in a document something stands, as far out as it goes; told only when it is asked for. */
struct place {
    const struct place *outer; /* NULL: the document */
    struct str key;            /* of an object's member */
    size_t index;              /* of an array's, when the key has no bytes (key.p is NULL) */
};

/* A text within the value, and where its bytes stand there. */
struct passage {
    struct str text;
    const uint32_t *at; /* n + 1 of them; NULL: as they are */
    const struct place *place;
};

/* What is being checked, and what was found. */
struct checking {
    struct arena *mem;
    struct str value;
    const struct advisory_options *options;
    struct advisory_result *out;
    struct str covered; /* the text that was quoted last, its secrets covered */
    const char *covered_of;
    unsigned spans; /* pieces of code that were read */
};

struct found {
    enum advisory_category category;
    enum advisory_verdict verdict;
    enum advisory_drift drift;
    const char *rule;
    size_t start, end; /* in the passage */
};
/* The excerpt is of the passage's own text. */
void advisory_note(struct checking *checking, const struct passage *passage,
                   const struct found *found);
/* With the category's own drift. */
void advisory_note_plain(struct checking *checking, const struct passage *passage,
                         enum advisory_category category, enum advisory_verdict verdict,
                         const char *rule, size_t start, size_t end);
/* Marks the document as none: what is wrong, and where. The first fault stays. */
void advisory_note_fault(struct checking *checking, const char *rule, const char *fault,
                         size_t offset);
/* Bytes before a mark, and the mark of a byte. */
size_t mark_offset(struct str text, struct mark mark);
struct mark offset_mark(struct str text, size_t offset);

/* ---- command.c ---- */

enum command_flags {
    COMMAND_STRICT_SEED = 1,
    COMMAND_LENIENT = 2, /* text that may be no shell: only what is clearly banned counts */
};

/* What a command is that may not be. */
struct command_hit {
    const char *rule;   /* NULL: nothing */
    const char *about;  /* what it would do */
    size_t start, end;  /* of the text */
    bool is_banned;     /* one of the list, or of its aliases */
    bool is_confusable; /* only its plain copy says so */
};
void advisory_command_read(struct str text, unsigned flags, struct command_hit *out);
/* The rule by which this name is banned, and what it does; NULL: it is not. */
const char *advisory_command_rule(struct str name, bool strict_seed, const char **about);
void check_command(struct checking *checking);

/* ---- path.c ---- */

enum zone {
    ZONE_NONE, /* in /sandbox, in none of the three */
    ZONE_ROOT,
    ZONE_INPUT,
    ZONE_OUTPUT,
    ZONE_TMP,
};

struct sandbox_path {
    const char *rule;  /* NULL: within bounds */
    size_t start, end; /* what breaks it */
    enum zone zone;
    struct str path; /* relative to /sandbox, normalised; "" for itself */
};
void sandbox_path_read(struct arena *mem, struct str text, struct str cwd,
                       struct sandbox_path *out);
/* NULL: it may be done, perhaps by a person (*gated). */
const char *zone_fault(enum zone zone, enum advisory_access access, bool *gated);
void check_path(struct checking *checking);

/* ---- path-open.c ---- */

int path_refuse(const char **rule, const char *which, struct err *err);
/* The folder a path's last name is in; *name is that one. */
int path_folder(struct arena *mem, int root_fd, struct str path, const char **name,
                const char **rule, struct err *err) MUST_CHECK;

/* ---- prose-command.c, prose-path.c: words outside of code ---- */

struct token {
    size_t start, end;
};
struct str token_str(struct str s, struct token t);
/* The next word, without what prose puts around words. */
bool token_next(struct str s, size_t *from, struct token *out);

struct prose_command {
    size_t start, end;
    const char *rule;
    const char *about;
};
/* Whether the word at t, with those from *from on, is a banned command; before is the word in front
 * of it, or empty. Only then *out is all of it. */
bool prose_command(struct str s, struct token before, struct token t, size_t from, bool strict_seed,
                   struct prose_command *out);

/* Whether the word is meant as a path that may lead elsewhere; *t is without marks for print then.
 */
bool prose_path(struct str s, struct token *t);
/* The next part of it that is, from *from on, which is t.start at first. */
bool prose_path_part(struct str s, struct token t, size_t *from, struct token *out);

/* ---- text.c ---- */

/* "HUMAN_CONFIRMED: true" in whatever form: only a custodian says it, never an agent. And
 * "actions_permitted: true", which is never so. */
void check_confirmation(struct checking *checking, const struct passage *passage);
/* What prose says: agency, orders, claims of permission, hedging. */
void check_prose(struct checking *checking, const struct passage *passage);
/* Commands and paths in prose; each is replaced in *safe, which is the text otherwise. */
void check_mentions(struct checking *checking, const struct passage *passage, struct str *safe);
/* One sentence after another, trimmed; false: no more. */
bool sentence_next(struct str text, size_t *from, struct str *out);
enum label {
    LABEL_NONE,
    LABEL_ONE,     /* [FACT], [HYPOTHESIS] or [ASSUMPTION], once, in front */
    LABEL_NESTED,  /* and another one */
    LABEL_UNKNOWN, /* a fourth */
};
/* *rest is what stands behind it. */
enum label sentence_label(struct str sentence, struct str *rest);

void check_output(struct checking *checking);
void check_action(struct checking *checking);
