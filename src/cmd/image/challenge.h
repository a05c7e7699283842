/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lib/base/err.h"
#include "lib/base/memory.h"

/* The header with which a registry asks who we are (RFC 9110, 11.6.1). */
struct challenge {
    bool bearer; /* else basic */
    const char *realm;
    const char *service; /* "" when it names none */
};

int challenge_parse(struct arena *mem, struct str header, struct challenge *out,
                    struct err *err) MUST_CHECK;

/* For a query: everything but unreserved characters as %XX. */
const char *url_escape(struct arena *mem, const char *text);
