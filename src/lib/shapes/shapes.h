/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a secret looks like when nothing beside it says so: tokens by their prefixes, credentials
 * behind a scheme of authentication, private keys. Placeholders of OpenShell's form are none. */

#include "lib/base/str.h"

enum shape_kind {
    SHAPE_TOKEN,
    SHAPE_BEARER,      /* behind "Bearer" or "Authorization:" */
    SHAPE_PRIVATE_KEY, /* a PEM block */
};

struct shape_hit {
    size_t at;
    size_t n;
    enum shape_kind kind;
};

/* The first secret at or behind from. In binary files a mention of a key's header is not enough. */
bool shape_next(struct str text, size_t from, bool binary, struct shape_hit *out);
