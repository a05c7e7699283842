/* SPDX-License-Identifier: Apache-2.0 */

/* AWS' Signature Version 4, made anew: the sandbox signs with a placeholder for the id of its key
 * and with whatever secret it likes; what it signed stays, the key becomes the vault's. */

#include <string.h>
#include <strings.h>

#include "lib/base/text.h"
#include "lib/crypto/crypto.h"
#include "lib/vault/use-parts.h"

/* ---- what the sandbox signed ---- */

bool is_sigv4(struct str value)
{
    return str_starts(value, SIGV4_ALGORITHM " ");
}

/* "NAME=value" at the start of *rest, up to a comma. */
static bool take_part(struct str *rest, const char *name, struct str *out)
{
    struct str part = str_trim(str_cut(rest, ','));
    struct str key = str_cut(&part, '=');

    *out = part;
    return part.n && str_eq(key, str_of(name));
}

static bool is_date(struct str text)
{
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] < '0' || text.p[i] > '9')
            return false;
    return text.n == 8;
}

bool sigv4_read(struct str value, struct sigv4 *out)
{
    struct str rest, credential, signature;

    if (!is_sigv4(value))
        return false;
    rest = str_trim(
        (struct str){value.p + strlen(SIGV4_ALGORITHM), value.n - strlen(SIGV4_ALGORITHM)});
    if (!take_part(&rest, "Credential", &credential) ||
        !take_part(&rest, "SignedHeaders", &out->headers) ||
        !take_part(&rest, "Signature", &signature) || rest.n)
        return false;
    out->key = str_cut(&credential, '/');
    out->date = str_cut(&credential, '/');
    out->region = str_cut(&credential, '/');
    out->service = str_cut(&credential, '/');
    return is_date(out->date) && str_eq(credential, STR_LIT(SIGV4_TERMINATOR));
}

const struct http_header *header_find(const struct http_header *headers, size_t n, struct str name,
                                      size_t *count)
{
    const struct http_header *found = NULL;

    *count = 0;
    for (size_t i = 0; i < n; i++)
        if (headers[i].name.n == name.n && strncasecmp(headers[i].name.p, name.p, name.n) == 0) {
            found = &headers[i];
            ++*count;
        }
    return found;
}

struct str header_value(const struct http_header *headers, size_t n, const char *name)
{
    size_t count;
    const struct http_header *header = header_find(headers, n, str_of(name), &count);

    return count == 1 ? str_trim(header->value) : (struct str){"", 0};
}

/* Sorted and in lower case, each at most once, and the host among them. */
static bool are_signable(const struct vault_request *request, struct str names)
{
    struct str last = {"", 0};
    bool has_host = false;

    while (names.n) {
        struct str name = str_cut(&names, ';');
        size_t count;

        for (size_t i = 0; i < name.n; i++)
            if (name.p[i] >= 'A' && name.p[i] <= 'Z')
                return false;
        (void)header_find(request->headers, request->header_count, name, &count);
        if (str_cmp(last, name) >= 0 || count > 1 || str_eq(name, STR_LIT("authorization")))
            return false;
        has_host = has_host || str_eq(name, STR_LIT("host"));
        last = name;
    }
    return has_host;
}

static bool is_hex_hash(struct str text)
{
    unsigned char hash[HASH_BYTES];

    return hex_decode(text, hash, sizeof hash);
}

/* Chunks that are signed one by one would each have to be signed anew. */
static bool is_payload(struct str said)
{
    return is_hex_hash(said) || str_eq(said, STR_LIT("UNSIGNED-PAYLOAD")) ||
           str_eq(said, STR_LIT("STREAMING-UNSIGNED-PAYLOAD-TRAILER"));
}

struct str sigv4_payload(const struct vault_request *request)
{
    return header_value(request->headers, request->header_count, "x-amz-content-sha256");
}

static size_t count_fields(struct str query)
{
    size_t n = 1;

    for (size_t i = 0; i < query.n; i++)
        n += query.p[i] == '&';
    return n;
}

enum vault_fault sigv4_check(const struct vault_request *request, const struct sigv4 *signature)
{
    struct str at = header_value(request->headers, request->header_count, "x-amz-date");
    struct str payload = sigv4_payload(request);

    if (at.n != 16 || strncmp(at.p, signature->date.p, 8) != 0 || at.p[8] != 'T' || at.p[15] != 'Z')
        return VAULT_FAULT_SIGNATURE;
    if (!are_signable(request, signature->headers) || (payload.n && !is_payload(payload)) ||
        count_fields(target_query(request->target)) > SIGV4_FIELDS_MAX)
        return VAULT_FAULT_SIGNATURE;
    return payload.n == 0 && request->has_more ? VAULT_FAULT_BODY : VAULT_NO_FAULT;
}

enum vault_payload vault_payload(const struct vault_request *request)
{
    struct str said = sigv4_payload(request);

    if (said.n == 0)
        return VAULT_PAYLOAD_UNSAID;
    return is_hex_hash(said) ? VAULT_PAYLOAD_HASHED : VAULT_PAYLOAD_UNSIGNED;
}

/* ---- the value ---- */

static bool is_word(struct str text)
{
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] <= ' ' || text.p[i] >= 0x7f)
            return false;
    return text.n > 0;
}

bool sigv4_value_read(struct str value, struct sigv4_value *out)
{
    bool has_token;

    out->id = str_cut(&value, ':');
    has_token = memchr(value.p, ':', value.n) != NULL;
    out->secret = str_cut(&value, ':');
    out->token = value;
    return is_word(out->id) && !memchr(out->id.p, '/', out->id.n) && out->id.n <= 128 &&
           is_word(out->secret) && out->secret.n >= VAULT_VALUE_MIN &&
           (!has_token || is_word(out->token));
}

size_t vault_use_secrets(const struct vault_use *use, struct str value,
                         struct str out[VAULT_SECRET_PARTS])
{
    struct sigv4_value key;

    out[0] = value;
    if (use->slot.kind != VAULT_SIGV4 || !sigv4_value_read(value, &key))
        return 1;
    out[0] = key.secret;
    out[1] = key.token;
    return key.token.n >= VAULT_VALUE_MIN ? 2 : 1;
}
