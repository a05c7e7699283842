/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lib/base/buf.h"
#include "lib/base/memory.h"
#include "lib/base/text.h"

#include <stdio.h>

/* One tree for what we read (JSON, YAML) and for what we write (canonical JSON).
 *
 * All nodes belong to the arena they were made in. Strings are decoded UTF-8 and may contain
 * NUL; numbers keep the text they were written with, because signed formats need the exact
 * literal. Every node of a parsed text knows where it stood. */

enum json_kind {
    JSON_NULL,
    JSON_BOOL,
    JSON_NUMBER,
    JSON_STRING,
    JSON_ARRAY,
    JSON_OBJECT,
};

struct json {
    enum json_kind kind;
    bool boolean;
    struct mark mark;   /* 0:0 when built, not read */
    struct str text;    /* STRING: decoded; NUMBER: as written */
    struct json *first; /* ARRAY, OBJECT: children in order of appearance */
    struct json *last;
    size_t n;
    struct json *next; /* the sibling behind this one */
    struct str key;    /* inside an object: the name of this member */
    struct mark key_mark;
};

#define json_each(item, container)                                                                 \
    for (const struct json *item = (container)->first; item; item = item->next)

/* RFC 8259, strictly: UTF-8 checked, lone surrogates, duplicate keys, trailing bytes, a byte
 * order mark and anything past the ceilings of limits.h refused. On failure *where says
 * where and the text says only what; ERR_LIMIT for a ceiling, ERR_INVALID for the rest. */
int json_parse(struct arena *mem, struct str text, const struct json **out, struct mark *where,
               struct err *err) MUST_CHECK;

/* The YAML we accept: one document, block or flow, no anchors, aliases, tags, merges; duplicate
 * keys refused; plain scalars by the YAML 1.2 core schema (NO, on, 12:30 are strings; 022 and
 * other look-alikes are errors). */
int yaml_parse(struct arena *mem, struct str text, const struct json **out, struct mark *where,
               struct err *err) MUST_CHECK;

/* RFC 8785. Fails for numbers that are not finite doubles and for an object built with a key
 * twice. All three refuse texts that are not UTF-8, and leave the buffer as it was on failure. */
int json_canonical(const struct json *value, struct buf *out, struct err *err) MUST_CHECK;
/* For people: two blanks a level, members in order of appearance; characters that could drive a
 * terminal are escaped. */
int json_pretty(const struct json *value, struct buf *out, struct err *err) MUST_CHECK;
/* The same and a line break, to a stream, in little memory whatever the size. What the stream
 * makes of it is in its error state; on -1 a part may have been written. */
int json_print(const struct json *value, FILE *to, struct err *err) MUST_CHECK;
/* Compact, members in order of appearance. */
int json_compact(const struct json *value, struct buf *out, struct err *err) MUST_CHECK;

/* Looking things up: NULL when absent or when the container is of another kind. */
const struct json *json_get(const struct json *object, const char *key);
/* RFC 6901, e.g. "/posture/image_digest". */
const struct json *json_at(const struct json *root, const char *pointer);

/* The value as a C type, or false when it is of another kind or out of range. Only a number
 * written without point and exponent is an int. */
bool json_is_text(const struct json *value, struct str *out);
bool json_is_int(const struct json *value, int64_t *out); /* within ±(2^53-1) */
bool json_is_bool(const struct json *value, bool *out);

/* Building. Keys are literals of ours (borrowed); texts are copied into the arena. */
struct json *json_object(struct arena *mem);
struct json *json_array(struct arena *mem);
struct json *json_text(struct arena *mem, struct str text);
struct json *json_int(struct arena *mem, int64_t value); /* asserts ±(2^53-1) */
struct json *json_bool(struct arena *mem, bool value);
struct json *json_null(struct arena *mem);

void json_put(struct json *object, const char *key, struct json *value);
void json_put_text(struct arena *mem, struct json *object, const char *key, const char *text);
void json_put_int(struct arena *mem, struct json *object, const char *key, int64_t value);
void json_put_bool(struct arena *mem, struct json *object, const char *key, bool value);
void json_push(struct json *array, struct json *value);
/* A member of another object, with what is in it. */
void json_copy_member(struct arena *mem, struct json *object, const struct json *member);
/* Text when the bytes are UTF-8; otherwise base64 under the key with "_b64" behind it. */
void json_put_bytes(struct arena *mem, struct json *object, const char *key, struct str bytes);
