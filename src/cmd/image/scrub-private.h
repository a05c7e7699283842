/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cmd/image/scrub.h"

/* ---- scrub-names.c ---- */

enum scrub_kind {
    SCRUB_KIND_TEXT,
    SCRUB_KIND_JSON,
    SCRUB_KIND_JSON_LINES,
    SCRUB_KIND_YAML,
    SCRUB_KIND_SETTINGS, /* NAME=VALUE: .env, shell start files, npmrc, ini, toml */
    SCRUB_KIND_LOCK,     /* what package managers write: names in it are those of packages */
};

enum scrub_kind scrub_kind_of(struct str path);
/* Whether a docker client's configuration: its "auths" are credentials. */
bool scrub_has_auths(struct str path);

/* What the name of a field says about its value; SCRUB_RULES when nothing. */
enum scrub_rule scrub_field(struct str name);
/* The same for NAME in NAME=VALUE. */
enum scrub_rule scrub_variable(struct str name);
/* "api-key" in "dependencies" is a package. */
bool scrub_names_packages(struct str name);

/* Nothing, yes or no, or a text that stands for a value kept elsewhere. */
bool scrub_is_harmless(struct str value);

/* ---- scrub-shapes.c ---- */

struct scrub_hit {
    size_t at;
    size_t n;
    enum scrub_rule rule;
};

/* The first secret at or behind from. In binary files a mention of a key's header is not enough. */
bool scrub_next(struct str text, size_t from, bool binary, struct scrub_hit *out);
/* scheme://user:THIS@host */
bool scrub_next_url(struct str text, size_t from, struct scrub_hit *out);

/* ---- scrub-text.c ---- */

/* Each appends the text with what it finds replaced, and counts it. */
int scrub_shapes(struct str text, struct buf *out, uint64_t counts[SCRUB_RULES],
                 struct err *err) MUST_CHECK;
int scrub_urls(struct str text, struct buf *out, uint64_t counts[SCRUB_RULES],
               struct err *err) MUST_CHECK;
int scrub_settings(struct str text, struct buf *out, uint64_t counts[SCRUB_RULES],
                   struct err *err) MUST_CHECK;
/* Whether any "name: value" or "name=value" in it, quoted or not, would be replaced, or any shape
 * of a secret is there: for texts that cannot be read otherwise. */
bool scrub_is_suspicious(struct str text);

/* ---- scrub-tree.c ---- */

enum scrub_tree_end {
    SCRUB_TREE_UNREAD, /* not what its name says */
    SCRUB_TREE_CLEAN,
    SCRUB_TREE_CHANGED, /* *out has it, as JSON */
    SCRUB_TREE_TOO_LARGE,
};

struct scrub_tree_options {
    bool yaml;
    bool one_line;
    bool auths;
};

enum scrub_tree_end scrub_tree(struct str text, const struct scrub_tree_options *options,
                               struct buf *out, uint64_t counts[SCRUB_RULES]);
