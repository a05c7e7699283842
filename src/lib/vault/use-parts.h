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
/* The last of this name, and how many there are. */
const struct http_header *header_find(const struct http_header *headers, size_t n, struct str name,
                                      size_t *count);
/* Of the only one of this name, or empty. */
struct str header_value(const struct http_header *headers, size_t n, const char *name);

/* ---- writing ---- */

/* Written one behind the other into the caller's memory, whose size was computed for the worst. */
struct pen {
    char *at;
    const char *end;
};

void pen_put(struct pen *pen, struct str text);
void pen_byte(struct pen *pen, char c);
/* All but letters, digits and "-._~" as %XX. */
void pen_percent(struct pen *pen, struct str value);
void pen_json(struct pen *pen, struct str value);
void pen_base64(struct pen *pen, struct str bytes);
struct str pen_since(const struct pen *pen, const char *from);

/* ---- signatures ---- */

/* "Authorization: AWS4-HMAC-SHA256 Credential=KEY/20260131/REGION/SERVICE/aws4_request,
 * SignedHeaders=a;b, Signature=…". */
struct sigv4 {
    struct str key;
    struct str date, region, service;
    struct str headers; /* the names, sorted */
};
#define SIGV4_ALGORITHM "AWS4-HMAC-SHA256"
#define SIGV4_TERMINATOR "aws4_request"
#define SIGV4_FIELDS_MAX 256 /* of a query, which is sorted */
bool is_sigv4(struct str value);
bool sigv4_read(struct str value, struct sigv4 *out);
/* What keeps the request from being signed anew, before there is a value. */
enum vault_fault sigv4_check(const struct vault_request *request, const struct sigv4 *signature);

/* "ID:SECRET" or "ID:SECRET:TOKEN". */
struct sigv4_value {
    struct str id, secret, token;
};
bool sigv4_value_read(struct str value, struct sigv4_value *out);

/* What x-amz-content-sha256 says, or nothing. */
struct str sigv4_payload(const struct vault_request *request);

/* More than the parts of the request and the value need. */
size_t sigv4_bytes(const struct vault_request *request);
/* The header's value for the request with these headers, which are those that are sent. */
struct str sigv4_sign(const struct vault_request *request, const struct sigv4 *signature,
                      const struct sigv4_value *value, const struct vault_filled *filled,
                      struct pen *pen);
