/* SPDX-License-Identifier: Apache-2.0 */

/* TLS between memory and memory: OpenSSL never sees the socket. */

#include "lib/http/server-private.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <string.h>

#include "lib/base/memory.h"

struct tls {
    SSL *ssl;
    BIO *in;  /* records from the other side; both belong to ssl */
    BIO *out; /* and for it */
    bool said_goodbye;
};

/* ---- the context ---- */

static int tls_fail(const char *what, const char *path, struct err *err)
{
    unsigned long code = ERR_peek_last_error();
    const char *why = ERR_reason_error_string(code);

    ERR_clear_error();
    return err_set(err, ERR_INVALID, "%s %s: %s", what, path, why ? why : "not usable");
}

static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_length,
                           const unsigned char *in, unsigned in_length, void *unused)
{
    static const unsigned char ours[] = "\x08http/1.1";
    unsigned char *chosen = NULL;

    (void)ssl;
    (void)unused;
    /* RFC 7301: who offers only others (h2) is told so, instead of being misunderstood. */
    if (SSL_select_next_proto(&chosen, out_length, ours, sizeof(ours) - 1, in, in_length) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

static int load_files(SSL_CTX *tls, const char *certificate_path, const char *key_path,
                      struct err *err)
{
    if (SSL_CTX_use_certificate_chain_file(tls, certificate_path) != 1)
        return tls_fail("certificate", certificate_path, err);
    if (SSL_CTX_use_PrivateKey_file(tls, key_path, SSL_FILETYPE_PEM) != 1)
        return tls_fail("key", key_path, err);
    if (SSL_CTX_check_private_key(tls) != 1)
        return tls_fail("the key does not belong to the certificate:", key_path, err);
    return 0;
}

int http_tls_new(const char *certificate_path, const char *key_path, struct ssl_ctx_st **out,
                 struct err *err)
{
    SSL_CTX *tls = SSL_CTX_new(TLS_server_method());

    if (tls == NULL)
        return err_set(err, ERR_INTERNAL, "OpenSSL has no TLS");
    (void)SSL_CTX_set_min_proto_version(tls, TLS1_2_VERSION); /* known to this OpenSSL */
    (void)SSL_CTX_set_options(tls, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                       SSL_OP_CIPHER_SERVER_PREFERENCE);
    /* Idle connections do not keep their record buffers. */
    (void)SSL_CTX_set_mode(tls, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_alpn_select_cb(tls, choose_protocol, NULL);
    if (load_files(tls, certificate_path, key_path, err) < 0) {
        SSL_CTX_free(tls);
        return -1;
    }
    *out = tls;
    return 0;
}

void http_tls_free(struct ssl_ctx_st *tls)
{
    SSL_CTX_free(tls);
}

/* ---- one connection ---- */

struct tls *tls_open(struct ssl_ctx_st *context)
{
    struct tls *tls = xcalloc(1, sizeof(*tls));

    tls->ssl = SSL_new(context);
    tls->in = BIO_new(BIO_s_mem());
    tls->out = BIO_new(BIO_s_mem());
    if (tls->ssl == NULL || tls->in == NULL || tls->out == NULL)
        abort(); /* no memory, for a size we chose */
    SSL_set_bio(tls->ssl, tls->in, tls->out);
    SSL_set_accept_state(tls->ssl);
    return tls;
}

void tls_close(struct tls *tls)
{
    if (tls == NULL)
        return;
    SSL_free(tls->ssl);
    free(tls);
}

int tls_feed(struct tls *tls, const char *bytes, size_t n)
{
    return BIO_write(tls->in, bytes, (int)n) == (int)n ? 0 : -1;
}

int tls_read(struct tls *tls, char *to, size_t room)
{
    int n;

    ERR_clear_error();
    n = SSL_read(tls->ssl, to, (int)room);
    if (n > 0)
        return n;
    switch (SSL_get_error(tls->ssl, n)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
        return 0;
    case SSL_ERROR_ZERO_RETURN:
        return -1;
    default:
        return -2;
    }
}

int tls_write(struct tls *tls, struct str plain)
{
    ERR_clear_error();
    return SSL_write(tls->ssl, plain.p, (int)plain.n) == (int)plain.n ? 0 : -1;
}

void tls_goodbye(struct tls *tls)
{
    if (tls->said_goodbye || !tls_is_open(tls))
        return;
    tls->said_goodbye = true;
    ERR_clear_error();
    (void)SSL_shutdown(tls->ssl); /* 0: ours is said, theirs we do not wait for */
}

int tls_drain(struct tls *tls, struct buf *wire)
{
    char *records = NULL;
    long n = BIO_get_mem_data(tls->out, &records);
    struct err err;

    if (n <= 0)
        return 0;
    if (buf_add(wire, records, (size_t)n, &err) < 0)
        return -1;
    return BIO_reset(tls->out) == 1 ? 0 : -1;
}

bool tls_is_open(const struct tls *tls)
{
    return SSL_is_init_finished(tls->ssl) == 1;
}
