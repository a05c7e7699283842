/* SPDX-License-Identifier: Apache-2.0 */

/* The two ends of an intercepted connection: as a server towards the client, as a client towards
 * the server. What each insists on is set here and nowhere else. */

#include <openssl/err.h>
#include <string.h>

#include "lib/tls/tls-private.h"

/* ---- towards the client ---- */

static bool is_same_name(const char *asked, const char *host)
{
    size_t n = strlen(asked);

    if (n > 0 && asked[n - 1] == '.')
        n--;
    return n == strlen(host) && strncasecmp(asked, host, n) == 0;
}

static int on_name(SSL *ssl, int *alert, void *unused)
{
    struct tls_side *side = SSL_get_app_data(ssl);
    const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);

    (void)unused;
    if (!name)
        return SSL_TLSEXT_ERR_NOACK;
    if (is_same_name(name, side->key.host))
        return SSL_TLSEXT_ERR_OK;
    side->fault = TLS_FAULT_NAME;
    *alert = SSL_AD_UNRECOGNIZED_NAME;
    return SSL_TLSEXT_ERR_ALERT_FATAL;
}

static int on_protocols(SSL *ssl, const unsigned char **out, unsigned char *out_length,
                        const unsigned char *in, unsigned in_length, void *unused)
{
    const struct tls_side *side = SSL_get_app_data(ssl);
    bool is_h2 = side->protocol == TLS_H2;
    const unsigned char *ours = (const unsigned char *)(is_h2 ? "\x02h2" : "\x08http/1.1");
    unsigned char *chosen = NULL;

    (void)unused;
    if (side->protocol == TLS_NONE)
        return SSL_TLSEXT_ERR_NOACK;
    if (SSL_select_next_proto(&chosen, out_length, ours, is_h2 ? 3 : 9, in, in_length) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

int tls_server_context(SSL_CTX **out, struct err *err)
{
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());

    if (!context)
        return tls_err(err, ERR_INTERNAL, "OpenSSL has no TLS");
    (void)SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION); /* known to this OpenSSL */
    (void)SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                           SSL_OP_CIPHER_SERVER_PREFERENCE);
    (void)SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                                        SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    /* Both ends are on this machine: the cheapest of the good ones. */
    (void)SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:"
                                            "TLS_CHACHA20_POLY1305_SHA256");
    /* Tickets only: a table of sessions would be memory that clients fill. */
    (void)SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    (void)SSL_CTX_set_num_tickets(context, 1);
    SSL_CTX_set_tlsext_servername_callback(context, on_name);
    SSL_CTX_set_alpn_select_cb(context, on_protocols, NULL);
    *out = context;
    return 0;
}

/* A ticket is good for the host it was given for: the hash of its name is the context's. */
static bool bind_tickets(SSL *ssl, const char *host)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned n = 0;

    return EVP_Digest(host, strlen(host), digest, &n, EVP_sha256(), NULL) == 1 &&
           SSL_set_session_id_context(ssl, digest, n) == 1;
}

int tls_server_new(struct tls_authority *authority, const char *host, enum tls_protocol protocol,
                   struct tls_side **out, struct err *err)
{
    AUTO(tls_side) struct tls_side *side = NULL;
    X509 *certificate = NULL;

    if (tls_leaf_find(authority, host, &certificate, err) < 0 ||
        tls_side_new(authority->context, &side, err) < 0)
        return -1;
    side->is_server = true;
    side->protocol = protocol;
    memcpy(side->key.host, host, strlen(host) + 1); /* tls_leaf_find() has looked at its length */
    if (SSL_use_certificate(side->ssl, certificate) != 1 ||
        SSL_use_PrivateKey(side->ssl, authority->leaf_key) != 1 || !bind_tickets(side->ssl, host))
        return tls_err(err, ERR_INTERNAL, "preparing a TLS connection");
    SSL_set_accept_state(side->ssl);
    *out = TAKE(side);
    return 0;
}

/* ---- towards the server ---- */

static int on_session(SSL *ssl, SSL_SESSION *session)
{
    struct tls_side *side = SSL_get_app_data(ssl);

    tls_session_keep(side->trust, &side->key, session);
    return 1; /* it is ours now */
}

static int on_certificate_wanted(SSL *ssl, X509 **certificate, EVP_PKEY **key)
{
    struct tls_side *side = SSL_get_app_data(ssl);

    (void)certificate;
    (void)key;
    side->asked_for_certificate = true;
    return 0; /* goes on without one */
}

static bool offer_protocols(SSL *ssl, unsigned offers)
{
    static const unsigned char both[] = "\x02h2\x08http/1.1";
    bool h2 = offers & TLS_H2;
    bool http1 = offers & TLS_HTTP1;

    if (!h2 && !http1)
        return true;
    return SSL_set_alpn_protos(ssl, h2 ? both : both + 3, (h2 ? 3U : 0) + (http1 ? 9U : 0)) == 0;
}

static bool expect_host(SSL *ssl, const char *host)
{
    if (tls_is_address(host))
        return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1;
    return SSL_set1_host(ssl, host) == 1 &&
           SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                    (void *)(uintptr_t)host) == 1;
}

int tls_client_new(struct tls_trust *trust, const char *host, unsigned offers, uint64_t partition,
                   struct tls_side **out, struct err *err)
{
    AUTO(tls_side) struct tls_side *side = NULL;
    SSL_SESSION *session;

    if (host[0] == '\0' || strlen(host) >= TLS_NAME_BYTES)
        return err_set(err, ERR_INVALID, "the server's name is empty or too long");
    if (tls_side_new(trust->context, &side, err) < 0)
        return -1;
    side->trust = trust;
    side->key.offers = offers;
    side->key.partition = partition;
    memcpy(side->key.host, host, strlen(host) + 1);
    if (!expect_host(side->ssl, host) || !offer_protocols(side->ssl, offers))
        return tls_err(err, ERR_INTERNAL, "preparing a TLS connection");
    SSL_CTX_sess_set_new_cb(trust->context, on_session);
    SSL_CTX_set_client_cert_cb(trust->context, on_certificate_wanted);
    session = tls_session_find(trust, &side->key);
    if (session && SSL_set_session(side->ssl, session) != 1)
        ERR_clear_error(); /* then without */
    SSL_set_connect_state(side->ssl);
    tls_side_go_on(side);
    *out = TAKE(side);
    return 0;
}
