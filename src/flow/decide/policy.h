/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A policy after loading. Everything lives in its arena. */

#include "flow/decide/decide.h"
#include "lib/base/glob.h"
#include "lib/crypto/crypto.h"
#include "model/run.h"

/* How the first word of a rule names a program. */
struct program {
    bool has_slash;
    const struct glob *word; /* the pattern as written */
    const struct glob *path; /* has_slash: for allow, `*` stays within a component */
    const struct glob *site; /* has_slash: for deny and ask, with /usr/bin read as /bin */
    const struct glob *base; /* has_slash: for deny and ask, what stands behind the last slash */
};

/* One place in a rule: any number of words, or one word that matches one of the patterns. */
struct place {
    bool rest; /* ** */
    const struct glob *const *any;
    const bool *has_slash; /* of each pattern */
    size_t n;
};

struct rule {
    enum verdict_kind kind;
    const char *name;
    const char *reason; /* or NULL */
    unsigned line;
    bool literal; /* no wildcard anywhere: it spells out one command */
    const struct program *programs;
    size_t program_n; /* 0: the first place is ** */
    const struct place *places;
    size_t place_n;
};

struct policy {
    struct arena mem;
    char hash[HASH_TEXT_BYTES];

    bool has_commands;
    bool has_default;
    enum verdict_kind fallback;
    unsigned fallback_line;
    unsigned commands_line;
    struct rule *rules;
    size_t rule_n;
    bool restricts; /* some rule denies or asks */

    struct demand demand;
    unsigned not_enforceable_line;
};
