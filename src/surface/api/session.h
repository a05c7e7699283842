/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to surface/api: the advisory session a path names, in the caller's tenant. */

#include "surface/api/call.h"

struct advise;
struct advisory_result;

/* By which rules is judged: what a field of them may say. */
#define SESSION_PROFILES "default strict-seed"
bool session_is_strict(const char *profile); /* or NULL: default */

int session_open(struct call *call, struct advise **out, struct err *err) MUST_CHECK;
/* The same for who speaks for its agent: whoever began it over the API, and nobody else. */
int session_open_own(struct call *call, struct advise **out, struct err *err) MUST_CHECK;

/* A page of what agents said ends after this, whatever its limit: a connection holds no more of an
 * answer that is not taken than HTTP_OUTPUT_MAX. */
#define SESSION_PAGE_BYTES_MAX (1 * MIB)
/* Counts what is about to be added to a page; false: it is for the next one. The first one is
 * always for this one. */
bool session_page_takes(size_t *bytes, const struct json *one);

struct json *session_findings(struct arena *mem, const struct advisory_result *result);
