/* SPDX-License-Identifier: Apache-2.0 */
#include "pki.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdlib.h>

static void add_extension(X509 *certificate, X509 *issuer, int kind, const char *value)
{
    X509V3_CTX context;
    X509_EXTENSION *extension;

    X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
    extension = X509V3_EXT_conf_nid(NULL, &context, kind, value);
    if (!extension || X509_add_ext(certificate, extension, -1) != 1)
        abort();
    X509_EXTENSION_free(extension);
}

static X509 *certificate_new(EVP_PKEY *key, const char *name, long starts, long ends)
{
    static long serial = 1;
    X509 *certificate = X509_new();

    if (!certificate || !X509_set_version(certificate, X509_VERSION_3) ||
        !ASN1_INTEGER_set(X509_get_serialNumber(certificate), serial++) ||
        !X509_gmtime_adj(X509_getm_notBefore(certificate), starts) ||
        !X509_gmtime_adj(X509_getm_notAfter(certificate), ends) ||
        !X509_NAME_add_entry_by_NID(X509_get_subject_name(certificate), NID_commonName,
                                    MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0) ||
        !X509_set_pubkey(certificate, key))
        abort();
    return certificate;
}

static X509 *root_new(EVP_PKEY *key, const char *name)
{
    X509 *root = certificate_new(key, name, -3600, 3600);

    X509_set_issuer_name(root, X509_get_subject_name(root));
    add_extension(root, root, NID_basic_constraints, "critical,CA:TRUE");
    add_extension(root, root, NID_subject_key_identifier, "hash");
    if (X509_sign(root, key, EVP_sha256()) <= 0)
        abort();
    return root;
}

void pki_init(struct pki *pki)
{
    struct err err;
    BIO *bio = BIO_new(BIO_s_mem());
    char *text = NULL;
    long n;

    pki->key = EVP_EC_gen("P-256");
    pki->root = root_new(pki->key, "Test root");
    pki->pem = BUF(65536);
    if (PEM_write_bio_X509(bio, pki->root) != 1)
        abort();
    n = BIO_get_mem_data(bio, &text);
    if (buf_add(&pki->pem, text, (size_t)n, &err) < 0)
        abort();
    BIO_free(bio);
}

void pki_done(struct pki *pki)
{
    EVP_PKEY_free(pki->key);
    X509_free(pki->root);
    buf_done(&pki->pem);
}

static void sign_leaf(const struct pki *pki, X509 *leaf, EVP_PKEY *own, enum pki_flaw flaw)
{
    EVP_PKEY *other = EVP_EC_gen("P-256");
    X509 *stranger = root_new(other, "Stranger");
    X509 *issuer = flaw == PKI_SELF_SIGNED ? leaf : flaw == PKI_UNKNOWN_ROOT ? stranger : pki->root;
    EVP_PKEY *key = flaw == PKI_SELF_SIGNED ? own : flaw == PKI_UNKNOWN_ROOT ? other : pki->key;

    X509_set_issuer_name(leaf, X509_get_subject_name(issuer));
    if (X509_sign(leaf, key, EVP_sha256()) <= 0)
        abort();
    X509_free(stranger);
    EVP_PKEY_free(other);
}

SSL_CTX *pki_server(const struct pki *pki, const char *name, enum pki_flaw flaw)
{
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *leaf = certificate_new(key, "server", flaw == PKI_NOT_YET ? 1800 : -3600,
                                 flaw == PKI_EXPIRED ? -60 : 3600);

    add_extension(leaf, pki->root, NID_subject_alt_name, name);
    add_extension(leaf, pki->root, NID_ext_key_usage,
                  flaw == PKI_CLIENT_ONLY ? "clientAuth" : "serverAuth");
    sign_leaf(pki, leaf, key, flaw);
    if (SSL_CTX_use_certificate(context, leaf) != 1 || SSL_CTX_use_PrivateKey(context, key) != 1)
        abort();
    X509_free(leaf);
    EVP_PKEY_free(key);
    return context;
}

SSL_CTX *pki_client(struct str roots)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    BIO *bio = BIO_new_mem_buf(roots.p, (int)roots.n);
    X509 *root;

    while ((root = PEM_read_bio_X509(bio, NULL, NULL, NULL))) {
        X509_STORE_add_cert(SSL_CTX_get_cert_store(context), root);
        X509_free(root);
    }
    BIO_free(bio);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    return context;
}

void peer_init(struct peer *peer, SSL_CTX *context, bool is_server)
{
    peer->ssl = SSL_new(context);
    peer->in = BIO_new(BIO_s_mem());
    peer->out = BIO_new(BIO_s_mem());
    BIO_set_mem_eof_return(peer->in, -1);
    SSL_set_bio(peer->ssl, peer->in, peer->out);
    if (is_server)
        SSL_set_accept_state(peer->ssl);
    else
        SSL_set_connect_state(peer->ssl);
}

void peer_done(struct peer *peer)
{
    SSL_free(peer->ssl);
}
