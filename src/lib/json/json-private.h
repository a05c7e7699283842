/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lib/json/json.h"

/* A member on its way to be sorted: the first eight bytes of its key as one number, so that most
 * comparisons touch no string. */
struct json_member {
    uint64_t prefix;
    const struct json *json;
};

/* The members by the UTF-16 code units of their keys; equal keys in order of appearance. */
void json_members_sort(const struct json *object, struct json_member *out);

/* Refuses an object that has a key twice; *where is the later of the two. */
int json_members_unique(const struct json *object, struct mark *where, struct err *err) MUST_CHECK;
int json_refuse_duplicate(const struct json *member, struct err *err);

/* The text of a number as ECMAScript prints it. Fails when it is no finite double. */
#define JSON_NUMBER_BYTES 48
int json_number_canonical(struct str number, char out[JSON_NUMBER_BYTES],
                          struct err *err) MUST_CHECK;
bool json_number_is_finite(struct str number);

/* A node that counts its own text in: one allocation. The text is the caller's to fill. */
struct json *json_leaf(struct arena *mem, enum json_kind kind, size_t text_bytes, char **out_text);
struct json *json_node(struct arena *mem, enum json_kind kind);
void json_append(struct json *container, struct json *value);
