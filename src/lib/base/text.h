/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lib/base/buf.h"

/* A place in a text somebody wrote; both count from 1, 0 means unknown. Columns count bytes. */
struct mark {
    unsigned line;
    unsigned column;
};

/* Appends the line the mark points at and a caret below it:
 *
 *     12 |   exec: [ls]
 *        |   ^
 */
int mark_show(struct mark mark, struct str text, struct buf *out, struct err *err) MUST_CHECK;

void hex_encode(const void *bytes, size_t n, char *out); /* 2n digits, lower case, and a NUL */
bool hex_decode(struct str hex, void *out, size_t n);    /* exactly 2n lower-case digits */

int base64_encode(struct str bytes, struct buf *out, struct err *err) MUST_CHECK;
/* With padding and nothing else between or behind; out has room for text.n / 4 * 3 bytes. */
bool base64_decode(struct str text, void *out, size_t *n);

/* Appends s so that it can be shown to a person on one line: controls, backslash, bytes that are
 * not UTF-8, and characters that turn round or hide what is around them become escapes. */
int text_escape(struct str s, struct buf *out, struct err *err) MUST_CHECK;
/* Bytes of the character at i of UTF-8, and which it is, when it drives a terminal, turns round
 * what is around it, or is drawn as nothing or as a blank that it is not; 0: it is another one. */
size_t text_misleads(struct str s, size_t i, uint32_t *point);

/* Whether an agent can be called so: 1 to POLICY_AGENT_MAX letters, digits, - _ . : @ +. It stands
 * in paths of the API, and so has no / and is neither "." nor "..". */
#define AGENT_ID_TEXT "letters, digits, - _ . : @ +"
bool is_agent_id(struct str id);

/* "512M", "1.5G", "10KiB", plain bytes: sizes in powers of 1024. "30s", "500ms", "2m", "1h":
 * durations. Anything else is ERR_INVALID and says what would be right. */
int size_parse(struct str s, uint64_t *out_bytes, struct err *err) MUST_CHECK;
int duration_parse(struct str s, uint64_t *out_ms, struct err *err) MUST_CHECK;
