/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* TLS between memory and memory, for whoever stands between a client and a server.
 *
 * The order of one intercepted connection, all of it the caller's:
 *
 *     1. tls_hello_read() on the client's first bytes, which stay where they are;
 *     2. the name is compared with CONNECT and judged; a wrong one never gets a certificate;
 *     3. the server is dialled, tls_client_new() with the protocols the client offers and we speak;
 *     4. once that is open, tls_server_new() for the judged name with the protocol the server took,
 *        and the bytes of 1 are fed to it.
 *
 * Nothing here knows sockets, rules or time beyond the dates in certificates. One thread. */

#include "lib/base/buf.h"

/* ---- faults ---- */

/* Why a connection ended, told apart as far as somebody can act on it:
 *    id               reason code                     sentence */
#define TLS_FAULTS(X)                                                                              \
    X(HELLO, "TLS_HELLO", "the first bytes are not a TLS client hello that is understood here")    \
    X(VERSION, "TLS_VERSION", "the other side speaks no TLS 1.2 or later")                         \
    X(NAME, "TLS_NAME", "the name in the client hello is not the one that was allowed")            \
    X(PROTOCOL, "TLS_PROTOCOL", "the other side broke the TLS protocol")                           \
    X(NO_CIPHER, "TLS_NO_CIPHER", "both sides have no cipher or curve in common")                  \
    X(ALPN, "TLS_ALPN", "both sides have no application protocol in common")                       \
    X(ALERT, "TLS_ALERT", "the other side ended the handshake")                                    \
    X(CLIENT_DISTRUST, "TLS_CLIENT_DISTRUST",                                                      \
      "the client does not trust the sandbox's certificate authority")                             \
    X(TRUNCATED, "TLS_TRUNCATED", "the connection was cut without a goodbye")                      \
    X(TIMEOUT, "TLS_TIMEOUT", "the other side did not finish the handshake in time")               \
    X(CERT_EXPIRED, "TLS_CERTIFICATE_EXPIRED", "the server's certificate has expired")             \
    X(CERT_NOT_YET, "TLS_CERTIFICATE_NOT_YET_VALID", "the server's certificate is not valid yet")  \
    X(CERT_NAME, "TLS_CERTIFICATE_NAME", "the server's certificate is for another name")           \
    X(CERT_ROOT, "TLS_CERTIFICATE_UNKNOWN_ROOT",                                                   \
      "the server's certificate leads to no root this machine trusts")                             \
    X(CERT_SELF_SIGNED, "TLS_CERTIFICATE_SELF_SIGNED",                                             \
      "the server's certificate is signed by itself")                                              \
    X(CERT_REVOKED, "TLS_CERTIFICATE_REVOKED", "the server's certificate was revoked")             \
    X(CERT_WEAK, "TLS_CERTIFICATE_WEAK",                                                           \
      "a key or signature in the server's certificates is too weak")                               \
    X(CERT_PURPOSE, "TLS_CERTIFICATE_PURPOSE",                                                     \
      "a certificate of the server is not made for this use")                                      \
    X(CERT_INVALID, "TLS_CERTIFICATE_INVALID", "the server's certificate does not hold")           \
    X(CLIENT_CERT, "TLS_CERTIFICATE_WANTED",                                                       \
      "the server wants a certificate of the client, which interception cannot give")

enum tls_fault {
    TLS_NO_FAULT = 0,
#define X(id, name, text) TLS_FAULT_##id,
    TLS_FAULTS(X)
#undef X
};

const char *tls_fault_name(enum tls_fault fault); /* "TLS_CERTIFICATE_EXPIRED" */
const char *tls_fault_text(enum tls_fault fault);
bool tls_fault_is_certificate(enum tls_fault fault); /* of the server */

/* ---- the client's first message ---- */

#define TLS_NAME_BYTES 254           /* the longest host name, and a NUL */
#define TLS_HELLO_MAX (32 * 1024)    /* with record heads */
#define TLS_HELLO_RECORDS_MAX 64     /* a hello may be cut into records, within reason */
#define TLS_PROTOCOLS_MAX (8 * 1024) /* bytes of all offered protocols */

/* What a client hello says. The name is lower case, without a dot at its end, of the characters of
 * host names only: an address or anything else in its place is a refused hello.
 *
 * With encrypted_hello the client sent an encrypted inner hello (or a decoy, which looks the same).
 * Its name is then the outer one. Whoever terminates TLS may use it: the certificate is made for
 * the outer name and the inner hello is never opened. Whoever passes the bytes on must take the
 * connection for one without a name, because the server would obey the inner one. */
struct tls_hello {
    char name[TLS_NAME_BYTES]; /* "" without one */
    bool encrypted_hello;
    bool has_protocols; /* ALPN was there */
    bool offers_h2;
    bool offers_http1;
    bool offers_tls12; /* or later */
};

/* Reads it from the start of `in`, which holds everything received so far. Returns 1 when it is
 * whole (then *out is filled), 0 when more is needed, -1 when it is refused; *out is then
 * untouched. The verdict never depends on how the bytes were cut into reads. */
int tls_hello_read(struct str in, struct tls_hello *out) MUST_CHECK;
/* Whether these bytes can be the start of one: at least 1 byte. */
bool tls_hello_is_start(struct str in);

/* ---- the authority ---- */

/* The key and certificate that leaves are signed with: P-256, one for each state directory, made at
 * first use. Its certificate may sign servers only and no other authority. It names no hosts: rules
 * change while sandboxes that trust it run. */
struct tls_authority;

#define TLS_AUTHORITY_FILE "ca.key"        /* key and certificate, 0600 */
#define TLS_AUTHORITY_CERTIFICATE "ca.pem" /* the certificate alone, for everyone */

/* Opens both in a folder, making them at first use: the first file appears whole or not at all and
 * is never replaced, the second one is mended from it. ERR_INTEGRITY: a file that others may read
 * or write, that is not ours, not regular, or does not hold what it should. Errors call the folder
 * `shown`. */
int tls_authority_open(int dir_fd, const char *shown, struct tls_authority **out,
                       struct err *err) MUST_CHECK;
void tls_authority_free(struct tls_authority *authority);
AUTO_TYPE(tls_authority)

struct str tls_authority_certificate(const struct tls_authority *authority); /* PEM */

/* Leaves kept, and how long each holds; one is made anew when less than half of that is left or the
 * clock went back behind its start. */
#define TLS_LEAVES_MAX 256
#define TLS_LEAF_SECONDS (72L * 3600)
#define TLS_LEAF_SLACK_SECONDS (24L * 3600) /* it starts that long ago, for clocks that go back */

/* ---- trust put into a sandbox ---- */

#define TLS_BUNDLE_MAX (4UL * 1024 * 1024)
#define TLS_TRUST_STORE_PASSWORD "changeit" /* what Java assumes; nothing in it is secret */

/* The roots of this machine in PEM: SSL_CERT_FILE when set, else the usual files of distributions,
 * else those of SSL_CERT_DIR or the usual folder. ERR_NOT_FOUND: there are none. */
int tls_roots_read(struct buf *out, struct err *err) MUST_CHECK;
/* roots, then the authority's certificate: for SSL_CERT_FILE, CURL_CA_BUNDLE, REQUESTS_CA_BUNDLE,
 * GIT_SSL_CAINFO. */
int tls_bundle_write(struct str roots, struct str authority, struct buf *out,
                     struct err *err) MUST_CHECK;
/* Every certificate of a bundle as a PKCS#12 trust store, for Java's javax.net.ssl.trustStore. */
int tls_trust_store_write(struct str bundle, struct buf *out, struct err *err) MUST_CHECK;

/* ---- trust towards servers ---- */

/* The roots a server's certificate must lead to, and the sessions that can be taken up again. */
struct tls_trust;

#define TLS_SESSIONS_MAX 256

int tls_trust_new(struct str roots, struct tls_trust **out, struct err *err) MUST_CHECK;
void tls_trust_free(struct tls_trust *trust);
AUTO_TYPE(tls_trust)

/* ---- one side of a connection ---- */

/* Protocols above TLS: what is offered to a server, and what one side settled on. */
enum tls_protocol {
    TLS_NONE = 0, /* no ALPN: HTTP/1.1 by custom */
    TLS_HTTP1 = 1,
    TLS_H2 = 2,
};

enum tls_phase {
    TLS_SHAKING = 0,
    TLS_OPEN,
    TLS_FAILED, /* tls_side_fault() says why; what is in tls_side_wire() (an alert) may still be
                   sent */
};

struct tls_side;

/* Towards the client: answers as `host`, a name or an address that was allowed, and as nobody else:
 * a hello with another name fails with TLS_FAULT_NAME, one without is answered. `protocol` is what
 * the server took (TLS_NONE: none is answered). -1: no certificate can be made for this name. */
int tls_server_new(struct tls_authority *authority, const char *host, enum tls_protocol protocol,
                   struct tls_side **out, struct err *err) MUST_CHECK;

/* Towards the server: it must prove to be `host`, a name or an address, by a certificate that leads
 * to a root of `trust`. `offers` is a set of enum tls_protocol. `partition` tells apart those whose
 * sessions must not meet (a sandbox's number). Always verified, TLS 1.2 or later, no renegotiation.
 */
int tls_client_new(struct tls_trust *trust, const char *host, unsigned offers, uint64_t partition,
                   struct tls_side **out, struct err *err) MUST_CHECK;
void tls_side_free(struct tls_side *side);
AUTO_TYPE(tls_side)

/* A side holds at most this much each way; beyond it takes nothing. */
#define TLS_SIDE_IN_MAX (32UL * 1024)
#define TLS_SIDE_OUT_MAX (64UL * 1024)

/* Bytes off the wire; returns how many were taken, fewer than n while the plain bytes are not read.
 * Goes on with the handshake by itself. */
size_t tls_side_feed(struct tls_side *side, const void *bytes, size_t n);
/* The wire ended. Without a goodbye before it, reading ends in TLS_FAULT_TRUNCATED, not in an end.
 */
void tls_side_feed_end(struct tls_side *side);

/* Bytes for the wire: look, send, and say how many went. A client's side has some from the start.
 */
struct str tls_side_wire(const struct tls_side *side);
void tls_side_sent(struct tls_side *side, size_t n);

/* Plain bytes: how many were read; 0 when there are none now (or the side is not open yet); -1 at
 * the end (tls_side_has_ended) or on a failure (tls_side_fault). */
int tls_side_read(struct tls_side *side, void *to, size_t room) MUST_CHECK;
/* How many were taken, maybe 0 while the wire does not drain; -1 when the side failed or is shut.
 */
int tls_side_write(struct tls_side *side, const void *bytes, size_t n) MUST_CHECK;
/* Says goodbye in this direction; the other one stays open. Before the handshake is over: gives up.
 */
void tls_side_shut(struct tls_side *side);

enum tls_phase tls_side_phase(const struct tls_side *side);
enum tls_fault tls_side_fault(const struct tls_side *side);
const char *tls_side_detail(const struct tls_side *side); /* what OpenSSL says to it, for people */
bool tls_side_has_ended(const struct tls_side *side);     /* the other side said goodbye */
enum tls_protocol tls_side_protocol(const struct tls_side *side);
bool tls_side_was_resumed(const struct tls_side *side);
const char *tls_side_version(const struct tls_side *side); /* "TLSv1.3" */
