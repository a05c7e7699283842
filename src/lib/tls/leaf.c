/* SPDX-License-Identifier: Apache-2.0 */

/* Certificates: the authority's own, and one for each name that a connection was allowed to. */

#include <openssl/err.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <string.h>
#include <time.h>

#include "lib/base/memory.h"
#include "lib/tls/tls-private.h"

#define SERIAL_BYTES 16
#define COMMON_NAME_MAX 64 /* RFC 5280 */
#define AUTHORITY_NAME "Brig sandbox authority"

struct leaf {
    char host[TLS_NAME_BYTES]; /* "" where there is none */
    X509 *certificate;
    time_t starts;
    time_t renews;
    uint64_t turn;
};

/* ---- making one ---- */

static bool set_serial(X509 *certificate)
{
    unsigned char bytes[SERIAL_BYTES];
    BIGNUM *number;
    bool done;

    if (RAND_bytes(bytes, sizeof bytes) != 1)
        return false;
    bytes[0] = (unsigned char)((bytes[0] & 0x7f) | 0x40); /* positive, and always as long */
    number = BN_bin2bn(bytes, sizeof bytes, NULL);
    done = number && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate));
    BN_free(number);
    return done;
}

static bool add_name(X509_NAME *name, const char *text)
{
    return X509_NAME_add_entry_by_NID(name, NID_commonName, MBSTRING_ASC,
                                      (const unsigned char *)text, -1, -1, 0) == 1;
}

static bool add_extension(X509 *certificate, X509 *issuer, int kind, const char *value)
{
    X509V3_CTX context;
    X509_EXTENSION *extension;
    bool done;

    X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
    extension = X509V3_EXT_conf_nid(NULL, &context, kind, value);
    done = extension && X509_add_ext(certificate, extension, -1) == 1;
    X509_EXTENSION_free(extension);
    return done;
}

/* The name as what it is, not as text in OpenSSL's configuration language. */
static bool add_alternative_name(X509 *certificate, const char *host)
{
    GENERAL_NAMES *names = sk_GENERAL_NAME_new_null();
    GENERAL_NAME *name =
        a2i_GENERAL_NAME(NULL, NULL, NULL, tls_is_address(host) ? GEN_IPADD : GEN_DNS, host, 0);
    bool done = false;

    if (names && name && sk_GENERAL_NAME_push(names, name) > 0) {
        name = NULL; /* theirs */
        done =
            X509_add1_ext_i2d(certificate, NID_subject_alt_name, names, 0, X509V3_ADD_DEFAULT) == 1;
    }
    GENERAL_NAME_free(name);
    sk_GENERAL_NAME_pop_free(names, GENERAL_NAME_free);
    return done;
}

struct extension {
    int kind;
    const char *value;
};

static bool add_extensions(X509 *certificate, X509 *issuer, const struct extension *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!add_extension(certificate, issuer, list[i].kind, list[i].value))
            return false;
    }
    return true;
}

/* Fixed dates, so that no clock makes the authority invalid: what it signs is short-lived. */
static bool fill_authority(X509 *certificate, EVP_PKEY *key)
{
    static const struct extension extensions[] = {
        {NID_basic_constraints,      "critical,CA:TRUE,pathlen:0"  },
        {NID_key_usage,              "critical,keyCertSign,cRLSign"},
        {NID_ext_key_usage,          "serverAuth"                  },
        {NID_subject_key_identifier, "hash"                        },
    };

    return X509_set_version(certificate, X509_VERSION_3) == 1 && set_serial(certificate) &&
           ASN1_TIME_set_string(X509_getm_notBefore(certificate), "20200101000000Z") == 1 &&
           ASN1_TIME_set_string(X509_getm_notAfter(certificate), "20491231235959Z") == 1 &&
           add_name(X509_get_subject_name(certificate), AUTHORITY_NAME) &&
           X509_set_issuer_name(certificate, X509_get_subject_name(certificate)) == 1 &&
           X509_set_pubkey(certificate, key) == 1 &&
           add_extensions(certificate, certificate, extensions, COUNT(extensions)) &&
           X509_sign(certificate, key, EVP_sha256()) > 0;
}

int tls_authority_make(struct tls_authority *authority, struct err *err)
{
    authority->key = EVP_EC_gen("P-256");
    authority->certificate = X509_new();
    if (!authority->key || !authority->certificate ||
        !fill_authority(authority->certificate, authority->key))
        return tls_err(err, ERR_INTERNAL, "making the certificate authority");
    return 0;
}

static bool fill_leaf(struct tls_authority *authority, const char *host, time_t now,
                      X509 *certificate)
{
    static const struct extension extensions[] = {
        {NID_basic_constraints,        "critical,CA:FALSE"        },
        {NID_key_usage,                "critical,digitalSignature"},
        {NID_ext_key_usage,            "serverAuth"               },
        {NID_subject_key_identifier,   "hash"                     },
        {NID_authority_key_identifier, "keyid:always"             },
    };
    const char *shown = strlen(host) <= COMMON_NAME_MAX ? host : "a host of a long name";

    return X509_set_version(certificate, X509_VERSION_3) == 1 && set_serial(certificate) &&
           X509_time_adj_ex(X509_getm_notBefore(certificate), 0, -TLS_LEAF_SLACK_SECONDS, &now) &&
           X509_time_adj_ex(X509_getm_notAfter(certificate), 0, TLS_LEAF_SECONDS, &now) &&
           add_name(X509_get_subject_name(certificate), shown) &&
           X509_set_issuer_name(certificate, X509_get_subject_name(authority->certificate)) == 1 &&
           X509_set_pubkey(certificate, authority->leaf_key) == 1 &&
           add_extensions(certificate, authority->certificate, extensions, COUNT(extensions)) &&
           add_alternative_name(certificate, host) &&
           X509_sign(certificate, authority->key, EVP_sha256()) > 0;
}

/* ---- keeping them ---- */

static bool is_fresh(const struct leaf *leaf, time_t now)
{
    return now >= leaf->starts && now < leaf->renews;
}

/* The one for this name, else the one to give up: empty, or used longest ago. */
static struct leaf *find_place(struct tls_authority *authority, const char *host)
{
    struct leaf *oldest = &authority->leaves[0];

    for (size_t i = 0; i < TLS_LEAVES_MAX; i++) {
        struct leaf *leaf = &authority->leaves[i];

        if (leaf->certificate && strcmp(leaf->host, host) == 0)
            return leaf;
        if (leaf->turn < oldest->turn)
            oldest = leaf;
    }
    return oldest;
}

static bool is_usable(const char *host)
{
    size_t n = strlen(host);

    if (n == 0 || n >= TLS_NAME_BYTES)
        return false;
    /* A wildcard or anything with a meaning of its own never becomes part of a certificate. */
    return tls_is_address(host) || strspn(host, "abcdefghijklmnopqrstuvwxyz0123456789-_.") == n;
}

int tls_leaf_find(struct tls_authority *authority, const char *host, X509 **out, struct err *err)
{
    struct leaf *leaf = find_place(authority, host);
    time_t now = time(NULL);
    X509 *made;

    if (!is_usable(host))
        return err_set(err, ERR_INVALID, "no certificate can be made for this host name");
    if (!leaf->certificate || strcmp(leaf->host, host) != 0 || !is_fresh(leaf, now)) {
        made = X509_new();
        if (!made || !fill_leaf(authority, host, now, made)) {
            X509_free(made);
            return tls_err(err, ERR_INTERNAL, "making a certificate");
        }
        X509_free(leaf->certificate);
        leaf->certificate = made;
        leaf->starts = now - TLS_LEAF_SLACK_SECONDS;
        leaf->renews = now + TLS_LEAF_SECONDS / 2;
        memcpy(leaf->host, host, strlen(host) + 1);
    }
    leaf->turn = ++authority->turn;
    *out = leaf->certificate;
    return 0;
}

void tls_leaves_new(struct tls_authority *authority)
{
    authority->leaves = xcalloc(TLS_LEAVES_MAX, sizeof(*authority->leaves));
}

void tls_leaves_free(struct tls_authority *authority)
{
    for (size_t i = 0; authority->leaves && i < TLS_LEAVES_MAX; i++)
        X509_free(authority->leaves[i].certificate);
    free(authority->leaves);
}
