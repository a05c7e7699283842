/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to lib/vault: what the files behind vault-use.h share. */

#include "lib/vault/vault-use.h"

/* How many placeholders seem to begin in there. */
unsigned scan_count(struct str bytes);

/* The text is a placeholder and nothing else. */
bool placeholder_read(struct str text, char name[VAULT_NAME_BYTES]);
/* Bytes of the placeholder the text begins with, or 0. */
size_t placeholder_length(struct str text);
/* For a text that has the beginning of one in it: what is wrong with that. */
enum vault_fault placeholder_fault(struct str text);

/* Undoes percent escapes, and '+' for a blank. -1: malformed, or longer than there is room. */
#define DECODED_MAX 512
int percent_decode(struct str raw, char out[DECODED_MAX]);

/* "user:password" of a Basic header's value. False: it is none, or cannot be read. */
#define BASIC_MAX 4096
struct basic {
    size_t at; /* of the base64 text in the header's value */
    char bytes[BASIC_MAX];
    struct str user;
    struct str password;
};
bool basic_read(struct str value, struct basic *out);
bool is_basic(struct str value);

enum body_kind {
    BODY_OPAQUE,
    BODY_JSON,
    BODY_FORM,
};
enum body_kind body_kind(const struct vault_request *request);

/* One more use; VAULT_FAULT_TOO_MANY, VAULT_FAULT_SECOND when its slot is taken. */
enum vault_fault uses_add(struct vault_uses *uses, const struct vault_use *use);

/* Fields "key=value&…", which stand at `base` of the whole: those with placeholders become uses of
 * this kind. */
enum vault_fault fields_find(struct str text, size_t base, enum vault_slot_kind kind,
                             struct vault_uses *uses);
bool fields_have(struct str text, struct str key);

enum vault_fault json_find(struct str body, struct vault_uses *uses);
/* Also when it is no JSON to us. */
bool json_has(struct str body, const char *pointer);

struct str target_query(struct str target);
