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

/* The first value at or behind from that only its name makes a secret: of "password=…",
 * "\"api_key\": \"…\"", "--token …", and the password of a URL. Of what is written as prose,
 * "password: …", only where the value is no word. */
bool shape_named_next(struct str text, size_t from, struct shape_hit *out);
/* Whether what is called so is a secret, whatever it is. */
bool shape_is_secret_name(struct str name);
