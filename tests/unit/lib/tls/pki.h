/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A small world of certificates for tests: a root, and servers it vouches for or not. */

#include <openssl/ssl.h>

#include "lib/base/buf.h"

struct pki {
    EVP_PKEY *key;
    X509 *root;
    struct buf pem; /* of the root */
};

void pki_init(struct pki *pki);
void pki_done(struct pki *pki);

enum pki_flaw {
    PKI_GOOD = 0,
    PKI_EXPIRED,
    PKI_NOT_YET,
    PKI_SELF_SIGNED,
    PKI_UNKNOWN_ROOT,
    PKI_CLIENT_ONLY, /* made for clients, not for servers */
};

/* A server's context with a certificate for `name` ("DNS:..." or "IP:..."). */
SSL_CTX *pki_server(const struct pki *pki, const char *name, enum pki_flaw flaw);
/* A client's context that trusts this PEM and nothing else. */
SSL_CTX *pki_client(struct str roots);

/* One end that is plain OpenSSL, with memory on both sides. */
struct peer {
    SSL *ssl;
    BIO *in;
    BIO *out;
};

void peer_init(struct peer *peer, SSL_CTX *context, bool is_server);
void peer_done(struct peer *peer);
