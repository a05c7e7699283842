/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* JSON bodies by description: a table says which members an object may have and where each goes
 * in a struct. The reader refuses everything else, and the schema in the OpenAPI document is made
 * of the same rows. */

#include "lib/base/err.h"
#include "lib/base/memory.h"
#include "lib/base/str.h"

#include <stdbool.h>
#include <stddef.h>

struct json;

/* What a member is, and what it becomes. */
enum field_kind {
    FIELD_END,    /* closes a table */
    FIELD_TEXT,   /* const char *; without NUL bytes */
    FIELD_BYTES,  /* struct str; "NAME_b64" gives the same as base64, here and where .raw is set */
    FIELD_BOOL,   /* bool */
    FIELD_COUNT,  /* uint64_t, from min to max */
    FIELD_WORDS,  /* struct words: an array of texts */
    FIELD_MAP,    /* struct words of "K=V": an object of texts */
    FIELD_OBJECT, /* members of its own, in the same struct */
    FIELD_JSON,   /* const struct json *: anything */
};

struct field {
    const char *name;
    enum field_kind kind;
    size_t offset;
    bool required;
    bool raw;            /* TEXT, WORDS, MAP: may be no UTF-8; a map is an array of "K=V" then */
    uint64_t min, max;   /* COUNT: both 0 means 0 to 2^53-1; TEXT, WORDS: most bytes or items */
    const char *choices; /* TEXT: blank-separated, all there are; NULL: any */
    const struct field *members;
    const char *help;
    size_t given; /* 1 + the offset of a bool that says it was there; 0: nobody asks */
};

/* Fills the struct at *out, whose members are zero before. NULL stands for an absent body, which
 * is read as {}. ERR_INVALID names the member as a JSON pointer. */
int fields_read(struct arena *mem, const struct field *fields, const struct json *object, void *out,
                struct err *err) MUST_CHECK;
/* The member of that name as it stands in a query: what should be a number or a truth value and
 * looks like one becomes one, the rest stays text. fields may be NULL. */
struct json *fields_from_text(struct arena *mem, const struct field *fields, struct str name,
                              struct str text);
/* A JSON Schema of it. */
struct json *fields_schema(struct arena *mem, const struct field *fields);
