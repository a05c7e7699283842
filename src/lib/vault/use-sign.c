/* SPDX-License-Identifier: Apache-2.0 */

/* The signature itself: the request in AWS' canonical form, and the key of one day. */

#include <stdlib.h>
#include <string.h>

#include "lib/base/text.h"
#include "lib/crypto/crypto.h"
#include "lib/crypto/secret.h"
#include "lib/vault/use-parts.h"

#define TOKEN_HEADER "x-amz-security-token"
#define HEX_BYTES (2 * HASH_BYTES + 1)

/* ---- the request in its canonical form ---- */

static void add(struct hasher *hasher, struct str text)
{
    hasher_add(hasher, text.p, text.n);
}

static void add_text(struct hasher *hasher, const char *text)
{
    add(hasher, str_of(text));
}

/* S3 takes a path as it is; everybody else has it encoded once more. */
static void add_path(struct hasher *hasher, struct str target, struct str service, struct pen *pen)
{
    const char *mark = memchr(target.p, '?', target.n);
    struct str path = {target.p, mark ? (size_t)(mark - target.p) : target.n};
    const char *from = pen->at;

    for (size_t i = 0; i < path.n; i++)
        if (path.p[i] == '/' || str_starts(service, "s3"))
            pen_byte(pen, path.p[i]);
        else
            pen_percent(pen, (struct str){path.p + i, 1});
    add(hasher, pen_since(pen, from));
    add_text(hasher, "\n");
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Whichever way the sandbox wrote it, as it is signed. */
static struct str normalize(struct str text, struct pen *pen)
{
    const char *from = pen->at;

    for (size_t i = 0; i < text.n; i++) {
        char c = (char)(text.p[i] == '+' ? ' ' : text.p[i]);

        if (c == '%' && i + 2 < text.n && hex_value(text.p[i + 1]) >= 0 &&
            hex_value(text.p[i + 2]) >= 0) {
            c = (char)(hex_value(text.p[i + 1]) * 16 + hex_value(text.p[i + 2]));
            i += 2;
        }
        pen_percent(pen, (struct str){&c, 1});
    }
    return pen_since(pen, from);
}

struct field {
    struct str key, value;
};

static int compare_fields(const void *a, const void *b)
{
    const struct field *x = a, *y = b;
    int keys = str_cmp(x->key, y->key);

    return keys ? keys : str_cmp(x->value, y->value);
}

static void add_query(struct hasher *hasher, struct str query, struct pen *pen)
{
    struct field fields[SIGV4_FIELDS_MAX] = {0};
    size_t n = 0;

    while (query.n && n < SIGV4_FIELDS_MAX) {
        struct str value = str_cut(&query, '&');
        struct str key = str_cut(&value, '=');

        if (key.n == 0 && value.n == 0)
            continue;
        fields[n].key = normalize(key, pen);
        fields[n++].value = normalize(value, pen);
    }
    qsort(fields, n, sizeof *fields, compare_fields);
    for (size_t i = 0; i < n; i++) {
        add_text(hasher, i ? "&" : "");
        add(hasher, fields[i].key);
        add_text(hasher, "=");
        add(hasher, fields[i].value);
    }
    add_text(hasher, "\n");
}

/* Without the blanks around it; several in it are one. */
static void add_value(struct hasher *hasher, struct str value)
{
    value = str_trim(value);
    for (size_t i = 0; i < value.n; i++)
        if (value.p[i] != ' ' || value.p[i - 1] != ' ')
            hasher_add(hasher, value.p + i, 1);
}

/* Egress takes these off, or writes them anew. */
static bool is_ours(struct str name)
{
    static const char *const ours[] = {
        "accept-encoding", "connection",        "content-length", "expect",
        "if-range",        "keep-alive",        "range",          "te",
        "trailer",         "transfer-encoding", "upgrade",
    };

    for (size_t i = 0; i < COUNT(ours); i++)
        if (http_name_is(name, ours[i]))
            return true;
    return false;
}

struct signing {
    const struct vault_request *request;
    const struct vault_filled *filled;
    struct hasher hasher;
    struct pen *pen; /* the names of what is signed go here */
    const char *names;
};

static void add_header(struct signing *signing, struct str name, struct str value)
{
    if (signing->pen->at > signing->names)
        pen_byte(signing->pen, ';');
    pen_put(signing->pen, name);
    add(&signing->hasher, name);
    add_text(&signing->hasher, ":");
    add_value(&signing->hasher, value);
    add_text(&signing->hasher, "\n");
}

/* Those that the sandbox signed and that are sent, and the token, which it did not know of. */
static struct str add_headers(struct signing *signing, struct str names, struct str token)
{
    const struct vault_filled *filled = signing->filled;
    bool has_token = token.n == 0;

    signing->names = signing->pen->at;
    while (names.n || !has_token) {
        struct str name = str_cut(&names, ';');
        size_t count;
        const struct http_header *header =
            header_find(filled->headers, filled->header_count, name, &count);

        if (!has_token && (name.n == 0 || str_cmp(name, STR_LIT(TOKEN_HEADER)) >= 0)) {
            add_header(signing, STR_LIT(TOKEN_HEADER), token);
            has_token = true;
        }
        if (str_eq(name, STR_LIT("host")))
            add_header(signing, name, signing->request->host);
        else if (header && !is_ours(name) && (token.n == 0 || !str_eq(name, STR_LIT(TOKEN_HEADER))))
            add_header(signing, name, header->value);
    }
    return pen_since(signing->pen, signing->names);
}

static void add_payload(struct signing *signing)
{
    struct str said = sigv4_payload(signing->request);
    char hex[HEX_BYTES];
    struct hash hash;

    if (said.n) {
        add(&signing->hasher, said);
        return;
    }
    hash_of(signing->filled->body, &hash);
    hex_encode(hash.b, sizeof hash.b, hex);
    add_text(&signing->hasher, hex);
}

/* ---- the signature ---- */

static struct str hash_str(const struct hash *hash)
{
    return (struct str){(const char *)hash->b, sizeof hash->b};
}

/* The key of one day, region and service. */
static void derive_key(const struct sigv4 *signature, struct str secret, struct hash *out)
{
    const struct str words[] = {signature->date, signature->region, signature->service,
                                STR_LIT(SIGV4_TERMINATOR)};
    char first[4 + VAULT_VALUE_MAX] = "AWS4";
    struct str key = {first, 4 + secret.n};

    memcpy(first + 4, secret.p, secret.n);
    for (size_t i = 0; i < COUNT(words); i++) {
        struct hash next;

        hmac_with(key, words[i], &next);
        *out = next;
        key = hash_str(out);
        secret_wipe(&next, sizeof next);
    }
    secret_wipe(first, sizeof first);
}

static void put_scope(struct pen *pen, const struct sigv4 *signature)
{
    const struct str words[] = {signature->date, signature->region, signature->service};

    for (size_t i = 0; i < COUNT(words); i++) {
        pen_put(pen, words[i]);
        pen_byte(pen, '/');
    }
    pen_put(pen, STR_LIT(SIGV4_TERMINATOR));
}

static void sign(const struct signing *signing, const struct sigv4 *signature,
                 const struct hash *canonical, const struct sigv4_value *value, char hex[HEX_BYTES])
{
    struct pen *pen = signing->pen;
    const char *from = pen->at;
    struct hash key, mac;

    hex_encode(canonical->b, sizeof canonical->b, hex);
    pen_put(pen, STR_LIT(SIGV4_ALGORITHM "\n"));
    pen_put(pen,
            header_value(signing->request->headers, signing->request->header_count, "x-amz-date"));
    pen_byte(pen, '\n');
    put_scope(pen, signature);
    pen_byte(pen, '\n');
    pen_put(pen, str_of(hex));
    derive_key(signature, value->secret, &key);
    hmac_with(hash_str(&key), pen_since(pen, from), &mac);
    hex_encode(mac.b, sizeof mac.b, hex);
    secret_wipe(&key, sizeof key);
}

size_t sigv4_bytes(const struct vault_request *request)
{
    /* Path and query encoded, the names twice (in the header and the list), scope and hash. */
    size_t n = 3 * request->target.n + 1024;

    for (size_t i = 0; i < request->header_count; i++)
        n += 2 * request->headers[i].name.n + 2;
    return n;
}

struct str sigv4_sign(const struct vault_request *request, const struct sigv4 *signature,
                      const struct sigv4_value *value, const struct vault_filled *filled,
                      struct pen *pen)
{
    struct signing signing = {.request = request, .filled = filled, .pen = pen};
    struct hasher *hasher = &signing.hasher;
    char hex[HEX_BYTES];
    struct hash canonical;
    struct str names;
    const char *from;

    hasher_init(hasher);
    add(hasher, request->method);
    add_text(hasher, "\n");
    add_path(hasher, filled->target, signature->service, pen);
    add_query(hasher, target_query(filled->target), pen);
    names = add_headers(&signing, signature->headers, value->token);
    add_text(hasher, "\n");
    add(hasher, names);
    add_text(hasher, "\n");
    add_payload(&signing);
    hasher_end(hasher, &canonical);
    sign(&signing, signature, &canonical, value, hex);

    from = pen->at;
    pen_put(pen, STR_LIT(SIGV4_ALGORITHM " Credential="));
    pen_put(pen, value->id);
    pen_byte(pen, '/');
    put_scope(pen, signature);
    pen_put(pen, STR_LIT(", SignedHeaders="));
    pen_put(pen, names);
    pen_put(pen, STR_LIT(", Signature="));
    pen_put(pen, str_of(hex));
    return pen_since(pen, from);
}
