/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Rules against the words of a command: one level, nothing about what is inside.
 *
 * A rule matches when its words do and every condition of it holds. What is not known counts
 * closed: a condition of a deny or ask rule holds then, one of an allow rule does not. */

#include <stdbool.h>

#include "flow/decide/carrier.h"
#include "flow/decide/effects.h"
#include "lib/expr/expr.h"
#include "model/run.h"

struct policy;
struct rule;
struct conditions;
struct place;

/* Where relative paths may begin. */
#define FOLDERS_MAX 64
struct folders {
    const char *of[FOLDERS_MAX];
    size_t n;
    bool lost; /* also elsewhere */
};

/* What is known about a request besides the words at hand, for the time of one decision. */
struct subject {
    const struct policy *policy;
    struct run *run;
    bool bare_names_trusted; /* the request does not bring a PATH of its own */
    struct folders folders;
    struct words assigned;     /* names of variables that commands seen inside it set */
    int64_t now;               /* seconds since 1970 */
    uint32_t steps;            /* left for expressions, of all rules together */
    char *space;               /* for expressions; NULL until one is evaluated */
    struct effect_seen effect; /* the gravest of all words that were looked at */
    const struct rule *closed; /* the last rule whose condition could not be evaluated, */
    const char *closed_why;    /* and why; such a rule matched, or did not, on the closed side */
    struct {
        bool asked, known;
        uint64_t micros; /* at most */
        const char *why; /* it is not known */
    } cost;              /* found out when the first rule wants to know it */
};

/* The strictest rule that matches these words from their first one, of equals the first in the
 * file; NULL: none does. later: the words are the end of longer ones that have been looked at. */
const struct rule *rule_find(struct subject *subject, struct slice words, bool later);

/* Whether a deny or ask rule could match a command that begins with this word, whatever follows. */
bool rule_concerns(const struct policy *policy, const char *program);

/* One look at words: what conditions want to know about them is found out when it is wanted. */
struct scene {
    struct subject *subject;
    struct slice words;
    struct str typed; /* the first word */
    struct str base;  /* behind its last slash */
    bool is_tool;     /* they are the call of a tool, not what is inside it, nor a program */
    struct effect_seen effect;
    struct arena mem;          /* for what lives no longer than this look */
    struct expr_value *values; /* of expressions; those of lists when one is read */
};

struct scene scene_of(struct subject *subject, struct slice words);
/* Whether these words are the call of the tool that the action is. A program may be called
 * "tool:x", too. */
bool names_tool(const struct action *action, struct slice words);

/* The parts of it: what rule_find() asks of a rule, in this order. */
bool places_match(const struct place *places, size_t place_n, struct slice words, bool allowing);
bool rule_program_matches(const struct scene *scene, const struct rule *rule);
bool rule_words_fit(const struct scene *scene, const struct rule *rule);
bool conditions_hold(struct scene *scene, const struct rule *rule);

/* ---- paths among words (rule-paths.c) ---- */

/* Calls each for every text in the words behind the first that could be a path, absolute and
 * without "." and ".."; ends when it returns false. False: there are more than can be looked at. */
bool paths_each(struct slice words, const struct folders *folders,
                bool (*each)(void *context, struct str), void *context);
/* Every operand is plain, absolute or below plain folders, and a path for which fits is true, from
 * whichever of them; and there is one. */
bool paths_all_plain(struct slice words, const struct folders *folders,
                     bool (*fits)(void *context, struct str), void *context);
/* Absolute, with no empty, "." or ".." component: only then does the text say which file. */
bool is_plain_path(struct str path);
/* path, below folder unless it is absolute, without empty, "." and ".." components; out has room
 * for both and two bytes more. */
struct str path_resolve(struct str folder, struct str path, char *out);
/* Where the run begins; lost where only its image says that (rule-folders.c). */
struct folders folders_start(const struct run *run);
/* That, and the folders that the commands may go to. */
struct folders folders_of(struct arena *mem, const struct folders *start,
                          const struct shell_script *script);

/* ---- variables (rule-conditions.c) ---- */

/* Names of those that the commands set: before their words, with export and its like, and in the
 * words of carriers in front of what they run (env A=b make). */
struct words env_assigned(struct arena *mem, const struct shell_script *script);

/* ---- cost (rule-conditions.c) ---- */

/* False: it is not known, and subject->cost.why says why. */
bool subject_cost(struct subject *subject, uint64_t *out);

/* ---- when (rule-when.c) ---- */

/* The variables of expressions, see docs/policy.md. */
const struct expr_name *when_names(size_t *n);
/* Whether it is about who asks or what is to run, and not only about when, with which variables or
 * at what cost. */
bool when_narrows(const struct expr *expr);
/* -1: it could not be evaluated, and err says why. */
int when_holds(struct scene *scene, const struct expr *expr, bool *out, struct err *err);

/* ---- the index (rule-index.c) ---- */

/* Rules by the name of their program; built once when a policy has been read. */
struct rule_index;
struct rule_index *rule_index_new(struct arena *mem, const struct rule *rules, size_t n);

/* Rules that can match words whose program has this base name, strictest first, then in the order
 * of the file. */
struct rule_walk {
    const struct rule_index *index;
    const uint32_t *named; /* by this name; ends in UINT32_MAX */
    const uint32_t *rest;  /* without one */
};
bool rule_index_knows(struct str base); /* false: every rule has to be looked at */
struct rule_walk rule_walk_begin(const struct rule_index *index, struct str base);
const struct rule *rule_walk_next(struct rule_walk *walk); /* NULL: no more */
