/* SPDX-License-Identifier: Apache-2.0 */

/* Towards servers: what they must prove, and the sessions that save proving it again.
 *
 * A session was verified when it was made, for its host. It is taken up for an hour at most and
 * only by the partition it was made for, so that what two sandboxes do cannot be told to be one
 * machine's by a server that hands out tickets. */

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/memory.h"
#include "lib/tls/tls-private.h"

#define SESSION_US (3600ULL * 1000 * 1000)

struct kept_session {
    struct session_key key;
    SSL_SESSION *session;
    uint64_t made_us;
    uint64_t turn;
};

/* ---- roots ---- */

static int add_roots(X509_STORE *store, struct str roots, struct err *err)
{
    BIO *bio = BIO_new_mem_buf(roots.p, (int)roots.n);
    X509 *certificate;
    size_t n = 0;
    bool added = bio != NULL;

    while (added && (certificate = PEM_read_bio_X509_AUX(bio, NULL, NULL, NULL))) {
        added = X509_STORE_add_cert(store, certificate) == 1;
        X509_free(certificate);
        n++;
    }
    BIO_free(bio);
    if (!added || n == 0 || ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE)
        return tls_err(err, ERR_INVALID, "the root certificates of this machine cannot be read");
    ERR_clear_error();
    return 0;
}

static int set_up_context(SSL_CTX *context, struct str roots, struct err *err)
{
    X509_VERIFY_PARAM *verify = SSL_CTX_get0_param(context);

    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_security_level(context, 2);
    X509_VERIFY_PARAM_set_hostflags(verify, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    (void)SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION); /* known to this OpenSSL */
    (void)SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    (void)SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                                        SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    /* Sessions are ours to keep: OpenSSL's own table knows neither hosts nor partitions. */
    (void)SSL_CTX_set_session_cache_mode(context,
                                         SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    return add_roots(SSL_CTX_get_cert_store(context), roots, err);
}

int tls_trust_new(struct str roots, struct tls_trust **out, struct err *err)
{
    AUTO(tls_trust) struct tls_trust *trust = xcalloc(1, sizeof(*trust));

    tls_ready();
    if (roots.n > TLS_BUNDLE_MAX)
        return err_set(err, ERR_LIMIT, "the root certificates have more than %lu bytes",
                       TLS_BUNDLE_MAX);
    trust->context = SSL_CTX_new(TLS_client_method());
    if (!trust->context)
        return tls_err(err, ERR_INTERNAL, "OpenSSL has no TLS");
    if (set_up_context(trust->context, roots, err) < 0)
        return -1;
    trust->sessions = xcalloc(TLS_SESSIONS_MAX, sizeof(*trust->sessions));
    *out = TAKE(trust);
    return 0;
}

void tls_trust_free(struct tls_trust *trust)
{
    if (trust == NULL)
        return;
    for (size_t i = 0; trust->sessions && i < TLS_SESSIONS_MAX; i++)
        SSL_SESSION_free(trust->sessions[i].session);
    free(trust->sessions);
    SSL_CTX_free(trust->context);
    free(trust);
}

/* ---- sessions ---- */

static bool is_same_key(const struct session_key *a, const struct session_key *b)
{
    return a->partition == b->partition && a->offers == b->offers && strcmp(a->host, b->host) == 0;
}

/* The one of this key, else the one to give up: empty, or used longest ago. */
static struct kept_session *find_place(struct tls_trust *trust, const struct session_key *key)
{
    struct kept_session *oldest = &trust->sessions[0];

    for (size_t i = 0; i < TLS_SESSIONS_MAX; i++) {
        struct kept_session *kept = &trust->sessions[i];

        if (kept->session && is_same_key(&kept->key, key))
            return kept;
        if (kept->turn < oldest->turn)
            oldest = kept;
    }
    return oldest;
}

SSL_SESSION *tls_session_find(struct tls_trust *trust, const struct session_key *key)
{
    struct kept_session *kept = find_place(trust, key);

    if (!kept->session || !is_same_key(&kept->key, key) ||
        clock_us() - kept->made_us > SESSION_US || SSL_SESSION_is_resumable(kept->session) != 1)
        return NULL;
    kept->turn = ++trust->turn;
    return kept->session;
}

void tls_session_keep(struct tls_trust *trust, const struct session_key *key, SSL_SESSION *session)
{
    struct kept_session *kept = find_place(trust, key);

    SSL_SESSION_free(kept->session);
    *kept = (struct kept_session){
        .key = *key, .session = session, .made_us = clock_us(), .turn = ++trust->turn};
}
