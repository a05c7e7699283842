/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* GraphQL documents, as far as rules need them: which operations, of which type and name, and which
 * fields of the root each selects, under their real names. Strict: what is not an executable
 * document of the October 2021 specification is refused. */

#include "lib/base/memory.h"

#define GRAPHQL_DEPTH_MAX 64
#define GRAPHQL_OPERATIONS_MAX 64
#define GRAPHQL_FRAGMENTS_MAX 256
#define GRAPHQL_FIELDS_MAX 1024 /* of one selection, and of a root after fragments */

struct graphql_operation {
    struct str type; /* "query", "mutation", "subscription" */
    struct str name; /* empty: none */
    struct str *fields;
    size_t field_n;
};

struct graphql_document {
    struct graphql_operation *operations;
    size_t operation_n;
};

/* NULL, or what is wrong. Names are slices of text. */
const char *graphql_read(struct arena *mem, struct str text, struct graphql_document *out);
