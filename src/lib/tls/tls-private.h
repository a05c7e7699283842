/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to lib/tls.
 *
 *     hello.c      the client's first message
 *     authority.c  the key file, and what opening one means
 *     leaf.c       certificates for names, and the ones kept
 *     roots.c      what this machine trusts, and what a sandbox is given to trust
 *     trust.c      the context towards servers, and the sessions kept
 *     ends.c       what a connection insists on, towards a client and towards a server
 *     side.c       its bytes
 *     verdict.c    from OpenSSL's many words to ours */

#include <openssl/ssl.h>

#include "lib/base/queue.h"
#include "lib/tls/tls.h"

/* OpenSSL without its configuration file: what we allow does not depend on the machine's. */
void tls_ready(void);
/* Fills *err with what OpenSSL says last, and forgets it. */
int tls_err(struct err *err, enum err_code code, const char *what);
/* False for a name; true and 4 or 16 bytes for an address. */
bool tls_is_address(const char *host);

struct leaf;

struct tls_authority {
    EVP_PKEY *key;
    X509 *certificate;
    struct buf pem;     /* of the certificate */
    EVP_PKEY *leaf_key; /* one for all leaves of this process */
    SSL_CTX *context;
    struct leaf *leaves; /* TLS_LEAVES_MAX */
    uint64_t turn;       /* grows with every use of a leaf: the smallest was used longest ago */
};

/* Key and certificate of a new authority. */
int tls_authority_make(struct tls_authority *authority, struct err *err) MUST_CHECK;
/* The certificate for a name, which stays the cache's. */
int tls_leaf_find(struct tls_authority *authority, const char *host, X509 **out,
                  struct err *err) MUST_CHECK;
void tls_leaves_new(struct tls_authority *authority);
void tls_leaves_free(struct tls_authority *authority);
/* The context of all sides towards clients. */
int tls_server_context(SSL_CTX **out, struct err *err) MUST_CHECK;

struct kept_session;

struct tls_trust {
    SSL_CTX *context;
    struct kept_session *sessions; /* TLS_SESSIONS_MAX */
    uint64_t turn;
};

/* Whose session it is. */
struct session_key {
    char host[TLS_NAME_BYTES];
    unsigned offers;
    uint64_t partition;
};

/* The session kept for it, borrowed, or NULL. */
SSL_SESSION *tls_session_find(struct tls_trust *trust, const struct session_key *key);
void tls_session_keep(struct tls_trust *trust, const struct session_key *key, SSL_SESSION *session);

struct tls_side {
    SSL *ssl;
    struct tls_trust *trust; /* of a client's side */
    struct session_key key;
    struct queue in;
    struct queue out;
    enum tls_phase phase;
    enum tls_fault fault;
    enum tls_protocol protocol;
    bool is_server;
    bool in_ended;  /* the wire, with or without a goodbye */
    bool has_ended; /* with one */
    bool is_shut;   /* ours is said */
    bool asked_for_certificate;
    char detail[160];
};

int tls_side_new(SSL_CTX *context, struct tls_side **out, struct err *err) MUST_CHECK;
/* A step of the handshake, as far as it goes. */
void tls_side_go_on(struct tls_side *side);

/* What the failure that OpenSSL just reported on this side means. */
enum tls_fault tls_verdict(const struct tls_side *side, char *detail, size_t detail_size);
