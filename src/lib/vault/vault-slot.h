/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Names of secrets, and places in a request where one can go. */

#include "lib/base/buf.h"

#define VAULT_NAME_BYTES 65     /* with the NUL */
#define VAULT_SLOT_NAME_MAX 255 /* a header's name, a query key, a JSON pointer */
#define VAULT_VALUE_MIN 8       /* shorter ones are found everywhere in an answer */
#define VAULT_VALUE_MAX 8192

enum vault_slot_kind {
    VAULT_NO_SLOT = 0,
    VAULT_HEADER,     /* the value, or what stands behind its scheme ("Bearer ") */
    VAULT_QUERY,      /* the value of a key */
    VAULT_BODY,       /* a text in JSON, by pointer; a field of a form is "/field" */
    VAULT_BASIC_USER, /* of "Authorization: Basic" */
    VAULT_BASIC_PASSWORD,
    VAULT_WEBSOCKET, /* a text in a message that is JSON, by pointer */
    VAULT_SIGV4, /* the key of a signature, made anew: the value is "ID:SECRET[:SESSION TOKEN]" */
};

/* Written "header:x-api-key", "query:key", "body:/auth/token", "basic:user", "basic:password",
 * "sigv4:s3/eu-west-1", "websocket:/token". */
struct vault_slot {
    enum vault_slot_kind kind;
    char name[VAULT_SLOT_NAME_MAX + 1]; /* headers in lower case; of basic: empty */
};

#define VAULT_SLOT_TEXT_BYTES (VAULT_SLOT_NAME_MAX + 17)
int vault_slot_parse(struct str text, struct vault_slot *out, struct err *err) MUST_CHECK;
void vault_slot_text(const struct vault_slot *slot, char out[VAULT_SLOT_TEXT_BYTES]);
bool vault_slot_is_same(const struct vault_slot *a, const struct vault_slot *b);

/* 1 to 64 of [A-Za-z0-9_.-], the first a letter, a digit or _. Not "v1_X" or "s<64 hex>_X", which
 * are OpenShell's revisions of X. */
bool vault_is_name(struct str name);
