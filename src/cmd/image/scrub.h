/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The credential filter: what may leave with a tree, and what may not.
 *
 * It looks at one file at a time and decides: kept byte for byte, rewritten with values replaced
 * by SCRUBBED, or left out. It knows names (of files, fields, variables, headers) and shapes (of
 * tokens and keys); it does not know what is encoded, encrypted or compressed. What it cannot
 * read but has reason to suspect is left out. docs/images.md has the lists for people. */

#include "lib/base/buf.h"

#define SCRUBBED "[STRIPPED_BY_MIGRATION]"

#define SCRUB_RULE_TABLE(X)                                                                        \
    X(FILE_NAME, "file-name")     /* a file, or a folder, known for what is in it */               \
    X(TOO_LARGE, "too-large")     /* to be looked at */                                            \
    X(UNREADABLE, "unreadable")   /* JSON or YAML that cannot be read, with suspicious names */    \
    X(SECTION, "section")         /* a part of a document that is left out whole */                \
    X(FIELD, "field")             /* the name of a field */                                        \
    X(VARIABLE, "variable")       /* the name of an environment variable */                        \
    X(HEADER, "header")           /* the name of an HTTP header */                                 \
    X(TOKEN, "token")             /* the shape of a token */                                       \
    X(BEARER, "bearer")           /* behind "Bearer" or "Authorization:" */                        \
    X(PRIVATE_KEY, "private-key") /* a PEM block */                                                \
    X(URL, "url-password")        /* scheme://user:THIS@host */

enum scrub_rule {
#define X(id, name) SCRUB_##id,
    SCRUB_RULE_TABLE(X)
#undef X
        SCRUB_RULES
};

enum scrub_verdict {
    SCRUB_DROP,
    SCRUB_REPLACE,
    SCRUB_KEEP,
};

struct scrub_result {
    enum scrub_verdict verdict;
    uint64_t counts[SCRUB_RULES]; /* places, by what was found there */
};

const char *scrub_rule_name(size_t rule);

/* By the path in the layer alone. */
bool scrub_is_dropped(struct str path);
bool scrub_is_dropped_folder(struct str path);
/* Whether its names matter, so that it has to be read whole. */
bool scrub_is_structured(struct str path);

/* One file of at most SCRUB_TEXT_MAX bytes. *out is what to write when the verdict says replace. */
void scrub(struct str path, struct str bytes, struct buf *out, struct scrub_result *result);

/* Whether a text holds anything with the shape of a secret. */
bool scrub_has_secret(struct str text);

/* A large file, piece by piece: is there anything with the shape of a secret? Zero is its start. */
#define SCRUB_TAIL_BYTES 4096
struct scrub_scan {
    char tail[2 * SCRUB_TAIL_BYTES];
    size_t tail_n;
    bool found;
    enum scrub_rule rule;
};

void scrub_scan_add(struct scrub_scan *scan, struct str bytes);
bool scrub_scan_end(const struct scrub_scan *scan, enum scrub_rule *rule);
