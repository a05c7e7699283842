/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to surface/api: the advisory session a path names, in the caller's tenant. */

#include "surface/api/call.h"

struct advise;
struct advisory_result;

int session_open(struct call *call, struct advise **out, struct err *err) MUST_CHECK;
/* The same for who speaks for its agent: whoever began it over the API, and nobody else. */
int session_open_own(struct call *call, struct advise **out, struct err *err) MUST_CHECK;
struct json *session_findings(struct arena *mem, const struct advisory_result *result);
