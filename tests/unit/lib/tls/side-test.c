/* SPDX-License-Identifier: Apache-2.0 */

/* Both sides of an interception against plain OpenSSL, over memory. */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "lib/tls/tls.h"
#include "pki.h"
#include "test.h"

#define HOST "api.example.org"
#define TURNS_MAX 4000

/* Moves bytes between a side of ours and a peer, at most `step` at once, until nothing moves. */
static bool pump_once(struct tls_side *side, struct peer *peer, size_t step)
{
    struct str wire = tls_side_wire(side);
    char bytes[16384];
    bool moved = false;
    int n;

    if (wire.n > 0) {
        size_t take = wire.n < step ? wire.n : step;

        CHECK_INT(BIO_write(peer->in, wire.p, (int)take), take);
        tls_side_sent(side, take);
        moved = true;
    }
    if (!SSL_is_init_finished(peer->ssl))
        (void)SSL_do_handshake(peer->ssl);
    n = BIO_read(peer->out, bytes, (int)(step < sizeof bytes ? step : sizeof bytes));
    if (n > 0) {
        CHECK_INT(tls_side_feed(side, bytes, (size_t)n), n);
        moved = true;
    }
    return moved;
}

static void pump(struct tls_side *side, struct peer *peer, size_t step)
{
    for (int i = 0; i < TURNS_MAX * 8; i++) {
        if (!pump_once(side, peer, step))
            return;
    }
    CHECK_TEXT("it never came to rest", "");
}

static struct tls_trust *trust_of(const struct pki *pki)
{
    struct tls_trust *trust = NULL;
    struct err err;

    CHECK_INT(tls_trust_new(buf_str(&pki->pem), &trust, &err), 0);
    return trust;
}

static struct tls_authority *authority_new(void)
{
    char path[] = "/tmp/tls-side-test.XXXXXX";
    struct tls_authority *authority = NULL;
    struct err err;
    char name[64];
    int fd;

    CHECK(mkdtemp(path) != NULL);
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK_INT(tls_authority_open(fd, path, &authority, &err), 0);
    (void)unlinkat(fd, TLS_AUTHORITY_FILE, 0);
    (void)unlinkat(fd, TLS_AUTHORITY_CERTIFICATE, 0);
    (void)snprintf(name, sizeof name, "%s", path);
    (void)rmdir(name);
    (void)close(fd);
    return authority;
}

/* ---- towards servers ---- */

/* How a handshake with such a server ends. */
static enum tls_fault meet(const char *name, enum pki_flaw flaw, const char *host)
{
    struct pki pki;
    struct peer peer;
    struct err err;
    struct tls_side *side = NULL;
    struct tls_trust *trust;
    SSL_CTX *server;
    enum tls_fault fault;

    pki_init(&pki);
    server = pki_server(&pki, name, flaw);
    trust = trust_of(&pki);
    peer_init(&peer, server, true);
    CHECK_INT(tls_client_new(trust, host, TLS_HTTP1, 0, &side, &err), 0);
    pump(side, &peer, 16384);
    fault = tls_side_fault(side);
    CHECK_INT(tls_side_phase(side), fault == TLS_NO_FAULT ? TLS_OPEN : TLS_FAILED);
    if (fault != TLS_NO_FAULT) {
        char byte;

        CHECK_INT(tls_side_write(side, "x", 1), -1);
        CHECK_INT(tls_side_read(side, &byte, 1), -1);
        CHECK(tls_side_detail(side)[0] != '\0');
    }
    tls_side_free(side);
    tls_trust_free(trust);
    peer_done(&peer);
    SSL_CTX_free(server);
    pki_done(&pki);
    return fault;
}

TEST(server_must_prove_its_name)
{
    CHECK_INT(meet("DNS:" HOST, PKI_GOOD, HOST), TLS_NO_FAULT);
    CHECK_INT(meet("DNS:*.example.org", PKI_GOOD, HOST), TLS_NO_FAULT);
    CHECK_INT(meet("IP:192.0.2.7", PKI_GOOD, "192.0.2.7"), TLS_NO_FAULT);
    CHECK_INT(meet("IP:2001:db8::7", PKI_GOOD, "2001:db8::7"), TLS_NO_FAULT);

    CHECK_INT(meet("DNS:other.example.org", PKI_GOOD, HOST), TLS_FAULT_CERT_NAME);
    CHECK_INT(meet("DNS:*.org", PKI_GOOD, HOST), TLS_FAULT_CERT_NAME);
    CHECK_INT(meet("DNS:a*.example.org", PKI_GOOD, HOST), TLS_FAULT_CERT_NAME);
    CHECK_INT(meet("DNS:192.0.2.7", PKI_GOOD, "192.0.2.7"), TLS_FAULT_CERT_NAME);
    CHECK_INT(meet("IP:192.0.2.8", PKI_GOOD, "192.0.2.7"), TLS_FAULT_CERT_NAME);
}

TEST(each_certificate_error_has_its_fault)
{
    CHECK_INT(meet("DNS:" HOST, PKI_EXPIRED, HOST), TLS_FAULT_CERT_EXPIRED);
    CHECK_INT(meet("DNS:" HOST, PKI_NOT_YET, HOST), TLS_FAULT_CERT_NOT_YET);
    CHECK_INT(meet("DNS:" HOST, PKI_SELF_SIGNED, HOST), TLS_FAULT_CERT_SELF_SIGNED);
    CHECK_INT(meet("DNS:" HOST, PKI_UNKNOWN_ROOT, HOST), TLS_FAULT_CERT_ROOT);
    CHECK_INT(meet("DNS:" HOST, PKI_CLIENT_ONLY, HOST), TLS_FAULT_CERT_PURPOSE);
    CHECK_TEXT(tls_fault_name(TLS_FAULT_CERT_EXPIRED), "TLS_CERTIFICATE_EXPIRED");
    CHECK(tls_fault_is_certificate(TLS_FAULT_CERT_NAME));
    CHECK(!tls_fault_is_certificate(TLS_FAULT_ALPN));
}

/* One that speaks to a server of `version`, or that wants a certificate. */
static enum tls_fault meet_with(int version, int verify)
{
    struct pki pki;
    struct peer peer;
    struct err err;
    struct tls_side *side = NULL;
    struct tls_trust *trust;
    SSL_CTX *server;
    enum tls_fault fault;
    char byte;

    pki_init(&pki);
    server = pki_server(&pki, "DNS:" HOST, PKI_GOOD);
    trust = trust_of(&pki);
    SSL_CTX_set_verify(server, verify, NULL);
    if (version) {
        SSL_CTX_set_security_level(server, 0);
        SSL_CTX_set_min_proto_version(server, version);
        SSL_CTX_set_max_proto_version(server, version);
    }
    peer_init(&peer, server, true);
    CHECK_INT(tls_client_new(trust, HOST, 0, 0, &side, &err), 0);
    pump(side, &peer, 16384);
    (void)!tls_side_read(side, &byte, 1); /* TLS 1.3 says it behind the handshake */
    fault = tls_side_fault(side);
    tls_side_free(side);
    tls_trust_free(trust);
    peer_done(&peer);
    SSL_CTX_free(server);
    pki_done(&pki);
    return fault;
}

TEST(old_versions_and_wanted_certificates_are_told_apart)
{
    CHECK_INT(meet_with(TLS1_1_VERSION, SSL_VERIFY_NONE), TLS_FAULT_VERSION);
    CHECK_INT(meet_with(TLS1_2_VERSION, SSL_VERIFY_NONE), TLS_NO_FAULT);
    CHECK_INT(meet_with(0, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT),
              TLS_FAULT_CLIENT_CERT);
    CHECK_INT(meet_with(TLS1_2_VERSION, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT),
              TLS_FAULT_CLIENT_CERT);
    CHECK_INT(meet_with(0, SSL_VERIFY_PEER), TLS_NO_FAULT); /* a wish only */
}

static int take_first(SSL *ssl, const unsigned char **out, unsigned char *n,
                      const unsigned char *in, unsigned in_n, void *wanted)
{
    (void)ssl;
    (void)in;
    (void)in_n;
    *out = (const unsigned char *)wanted + 1;
    *n = *(const unsigned char *)wanted;
    return SSL_TLSEXT_ERR_OK;
}

/* What comes of an offer when the server insists on something. */
static enum tls_fault offer(unsigned offers, char *takes, enum tls_protocol *settled)
{
    struct pki pki;
    struct peer peer;
    struct err err;
    struct tls_side *side = NULL;
    struct tls_trust *trust;
    SSL_CTX *server;
    enum tls_fault fault;

    pki_init(&pki);
    server = pki_server(&pki, "DNS:" HOST, PKI_GOOD);
    trust = trust_of(&pki);
    SSL_CTX_set_alpn_select_cb(server, take_first, takes);
    peer_init(&peer, server, true);
    CHECK_INT(tls_client_new(trust, HOST, offers, 0, &side, &err), 0);
    pump(side, &peer, 16384);
    fault = tls_side_fault(side);
    *settled = tls_side_protocol(side);
    tls_side_free(side);
    tls_trust_free(trust);
    peer_done(&peer);
    SSL_CTX_free(server);
    pki_done(&pki);
    return fault;
}

TEST(server_takes_only_what_was_offered)
{
    char h2[] = "\x02h2";
    char http1[] = "\x08http/1.1";
    char other[] = "\x03xyz";
    enum tls_protocol settled = TLS_NONE;

    CHECK_INT(offer(TLS_H2 | TLS_HTTP1, h2, &settled), TLS_NO_FAULT);
    CHECK_INT(settled, TLS_H2);
    CHECK_INT(offer(TLS_H2 | TLS_HTTP1, http1, &settled), TLS_NO_FAULT);
    CHECK_INT(settled, TLS_HTTP1);
    CHECK(offer(TLS_HTTP1, h2, &settled) != TLS_NO_FAULT);
    CHECK(offer(TLS_H2, http1, &settled) != TLS_NO_FAULT);
    CHECK(offer(TLS_HTTP1, other, &settled) != TLS_NO_FAULT);
    CHECK_INT(offer(0, h2, &settled), TLS_NO_FAULT); /* not asked, not answered */
    CHECK_INT(settled, TLS_NONE);
}

static bool connect_again(struct tls_trust *trust, SSL_CTX *server, const char *host,
                          uint64_t partition)
{
    struct tls_side *side = NULL;
    struct peer peer;
    struct err err;
    char byte;
    bool resumed;

    peer_init(&peer, server, true);
    CHECK_INT(tls_client_new(trust, host, TLS_H2, partition, &side, &err), 0);
    pump(side, &peer, 16384);
    CHECK_INT(tls_side_phase(side), TLS_OPEN);
    CHECK_INT(tls_side_read(side, &byte, 1), 0); /* takes the tickets */
    resumed = tls_side_was_resumed(side);
    tls_side_free(side);
    peer_done(&peer);
    return resumed;
}

TEST(sessions_are_taken_up_by_those_who_made_them)
{
    struct pki pki;
    struct tls_trust *trust;
    SSL_CTX *server;

    pki_init(&pki);
    server = pki_server(&pki, "DNS:" HOST ",DNS:other.example.org", PKI_GOOD);
    trust = trust_of(&pki);
    SSL_CTX_set_session_id_context(server, (const unsigned char *)"t", 1);
    CHECK(!connect_again(trust, server, HOST, 1));
    CHECK(connect_again(trust, server, HOST, 1));
    CHECK(!connect_again(trust, server, HOST, 2));
    CHECK(!connect_again(trust, server, "other.example.org", 1));
    tls_trust_free(trust);
    SSL_CTX_free(server);
    pki_done(&pki);
}

/* ---- towards clients ---- */

struct met {
    struct tls_side *side;
    struct peer peer;
    SSL_CTX *context;
};

static void greet(struct met *met, struct tls_authority *authority, const char *sni,
                  const char *host, enum tls_protocol protocol, const char *alpn, size_t step)
{
    struct err err;

    met->context = pki_client(tls_authority_certificate(authority));
    peer_init(&met->peer, met->context, false);
    if (sni)
        SSL_set_tlsext_host_name(met->peer.ssl, (uintptr_t)sni);
    SSL_set1_host(met->peer.ssl, host);
    if (alpn)
        SSL_set_alpn_protos(met->peer.ssl, (const unsigned char *)alpn, (unsigned)strlen(alpn));
    CHECK_INT(tls_server_new(authority, host, protocol, &met->side, &err), 0);
    pump(met->side, &met->peer, step);
}

static void met_done(struct met *met)
{
    tls_side_free(met->side);
    peer_done(&met->peer);
    SSL_CTX_free(met->context);
}

TEST(client_is_answered_as_the_allowed_host_and_no_other)
{
    static const struct {
        const char *sni;
        enum tls_protocol protocol;
        const char *alpn;
        enum tls_fault fault;
    } cases[] = {
        {HOST,               TLS_H2,    "\x02h2\x08http/1.1", TLS_NO_FAULT  },
        {HOST,               TLS_HTTP1, "\x02h2\x08http/1.1", TLS_NO_FAULT  },
        {"API.Example.org.", TLS_HTTP1, "\x08http/1.1",       TLS_NO_FAULT  },
        {NULL,               TLS_NONE,  NULL,                 TLS_NO_FAULT  },
        {HOST,               TLS_NONE,  "\x02h2",             TLS_NO_FAULT  },
        {HOST,               TLS_H2,    "\x08http/1.1",       TLS_FAULT_ALPN},
        {"evil.example.org", TLS_H2,    "\x02h2",             TLS_FAULT_NAME},
        {"example.org",      TLS_H2,    "\x02h2",             TLS_FAULT_NAME},
    };
    struct tls_authority *authority = authority_new();

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct met met;

        greet(&met, authority, cases[i].sni, HOST, cases[i].protocol, cases[i].alpn, 16384);
        CHECK_INT(tls_side_fault(met.side), cases[i].fault);
        CHECK_INT(SSL_is_init_finished(met.peer.ssl), cases[i].fault == TLS_NO_FAULT);
        if (cases[i].fault == TLS_NO_FAULT)
            CHECK_INT(tls_side_protocol(met.side), cases[i].protocol);
        met_done(&met);
    }
    tls_authority_free(authority);
}

TEST(client_that_does_not_trust_us_is_named)
{
    struct tls_authority *authority = authority_new();
    struct tls_authority *other = authority_new();
    struct met met;
    struct err err;

    met.context = pki_client(tls_authority_certificate(other));
    peer_init(&met.peer, met.context, false);
    CHECK_INT(tls_server_new(authority, HOST, TLS_NONE, &met.side, &err), 0);
    pump(met.side, &met.peer, 16384);
    CHECK_INT(tls_side_fault(met.side), TLS_FAULT_CLIENT_DISTRUST);
    met_done(&met);
    tls_authority_free(authority);
    tls_authority_free(other);
}

TEST(handshake_and_bytes_survive_any_cut)
{
    struct tls_authority *authority = authority_new();

    for (size_t step = 1; step < 40; step += 6) {
        struct met met;
        char got[32] = "";

        greet(&met, authority, HOST, HOST, TLS_HTTP1, "\x08http/1.1", step);
        CHECK_INT(tls_side_phase(met.side), TLS_OPEN);
        CHECK_INT(SSL_write(met.peer.ssl, "hello", 5), 5);
        pump(met.side, &met.peer, step);
        CHECK_INT(tls_side_read(met.side, got, sizeof got), 5);
        CHECK_INT(tls_side_write(met.side, "world", 5), 5);
        pump(met.side, &met.peer, step);
        CHECK_INT(SSL_read(met.peer.ssl, got, sizeof got), 5);
        CHECK(memcmp(got, "world", 5) == 0);
        met_done(&met);
    }
    tls_authority_free(authority);
}

TEST(tickets_are_good_for_their_host_only)
{
    static const char *const hosts[] = {HOST, "other.example.org"};
    struct tls_authority *authority = authority_new();
    struct met first;
    struct met again;
    struct err err;
    SSL_SESSION *session;
    char byte;

    greet(&first, authority, HOST, HOST, TLS_NONE, NULL, 16384);
    (void)SSL_read(first.peer.ssl, &byte, 1);
    session = SSL_get1_session(first.peer.ssl);
    for (size_t i = 0; i < COUNT(hosts); i++) {
        peer_init(&again.peer, first.context, false);
        SSL_set_session(again.peer.ssl, session);
        SSL_set_tlsext_host_name(again.peer.ssl, (uintptr_t)hosts[i]);
        CHECK_INT(tls_server_new(authority, hosts[i], TLS_NONE, &again.side, &err), 0);
        pump(again.side, &again.peer, 16384);
        CHECK_INT(tls_side_phase(again.side), TLS_OPEN);
        CHECK_INT(tls_side_was_resumed(again.side), i == 0);
        tls_side_free(again.side);
        peer_done(&again.peer);
    }
    SSL_SESSION_free(session);
    met_done(&first);
    tls_authority_free(authority);
}

TEST(what_is_not_read_is_not_taken)
{
    struct tls_authority *authority = authority_new();
    char block[16384];
    size_t taken = 0;
    size_t total = 0;
    struct met met;
    int n;

    greet(&met, authority, HOST, HOST, TLS_NONE, NULL, 16384);
    memset(block, 'a', sizeof block);
    /* Out: the ceiling, and nothing lost when the wire drains. */
    while ((n = tls_side_write(met.side, block, sizeof block)) > 0)
        taken += (size_t)n;
    CHECK_INT(n, 0);
    CHECK(taken >= 16384 && taken <= TLS_SIDE_OUT_MAX);
    CHECK(tls_side_wire(met.side).n <= TLS_SIDE_OUT_MAX);
    pump(met.side, &met.peer, 16384);
    while ((n = SSL_read(met.peer.ssl, block, sizeof block)) > 0)
        total += (size_t)n;
    CHECK_INT(total, taken);
    /* In: as much as fits, the rest later. */
    for (int i = 0; i < 8; i++)
        CHECK_INT(SSL_write(met.peer.ssl, block, sizeof block), sizeof block);
    total = 0;
    taken = 0;
    for (int i = 0; i < TURNS_MAX && total < 8 * sizeof block; i++) {
        char *wire = NULL;
        size_t left = (size_t)BIO_get_mem_data(met.peer.out, &wire) - taken;
        size_t step = tls_side_feed(met.side, wire + taken, left);

        CHECK(step <= TLS_SIDE_IN_MAX + 16384 + 512);
        taken += step;
        n = tls_side_read(met.side, block, sizeof block);
        total += n > 0 ? (size_t)n : 0;
    }
    CHECK_INT(total, 8 * sizeof block);
    met_done(&met);
    tls_authority_free(authority);
}

TEST(goodbye_half_close_and_truncation_differ)
{
    struct tls_authority *authority = authority_new();
    struct met met;
    char got[8];

    greet(&met, authority, HOST, HOST, TLS_NONE, NULL, 16384);
    CHECK_INT(SSL_write(met.peer.ssl, "bye", 3), 3);
    CHECK_INT(SSL_shutdown(met.peer.ssl), 0);
    pump(met.side, &met.peer, 7);
    CHECK_INT(tls_side_read(met.side, got, sizeof got), 3);
    CHECK_INT(tls_side_read(met.side, got, sizeof got), -1);
    CHECK(tls_side_has_ended(met.side));
    CHECK_INT(tls_side_fault(met.side), TLS_NO_FAULT);
    /* The other direction goes on. */
    CHECK_INT(tls_side_write(met.side, "late", 4), 4);
    tls_side_shut(met.side);
    CHECK_INT(tls_side_write(met.side, "no", 2), -1);
    pump(met.side, &met.peer, 16384);
    CHECK_INT(SSL_read(met.peer.ssl, got, sizeof got), 4);
    CHECK_INT(SSL_read(met.peer.ssl, got, sizeof got), 0);
    CHECK_INT(SSL_get_shutdown(met.peer.ssl), SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    met_done(&met);

    greet(&met, authority, HOST, HOST, TLS_NONE, NULL, 16384);
    CHECK_INT(SSL_write(met.peer.ssl, "cut", 3), 3);
    pump(met.side, &met.peer, 16384);
    tls_side_feed_end(met.side);
    CHECK_INT(tls_side_read(met.side, got, sizeof got), 3);
    CHECK_INT(tls_side_read(met.side, got, sizeof got), -1);
    CHECK(!tls_side_has_ended(met.side));
    CHECK_INT(tls_side_fault(met.side), TLS_FAULT_TRUNCATED);
    met_done(&met);
    tls_authority_free(authority);
}

TEST(nobody_renegotiates)
{
    struct tls_authority *authority = authority_new();
    struct met met;
    struct err err;
    char byte;

    met.context = pki_client(tls_authority_certificate(authority));
    SSL_CTX_set_max_proto_version(met.context, TLS1_2_VERSION);
    peer_init(&met.peer, met.context, false);
    CHECK_INT(tls_server_new(authority, HOST, TLS_NONE, &met.side, &err), 0);
    pump(met.side, &met.peer, 16384);
    CHECK_INT(tls_side_phase(met.side), TLS_OPEN);
    CHECK_INT(SSL_renegotiate(met.peer.ssl), 1);
    CHECK_INT(SSL_do_handshake(met.peer.ssl), -1);
    for (int i = 0; i < 8; i++) {
        (void)pump_once(met.side, &met.peer, 16384);
        (void)!tls_side_read(met.side, &byte, 1);
        (void)SSL_do_handshake(met.peer.ssl);
    }
    CHECK(!SSL_is_init_finished(met.peer.ssl));
    met_done(&met);
    tls_authority_free(authority);
}

TEST(garbage_fails_and_does_not_grow)
{
    struct tls_authority *authority = authority_new();
    struct tls_side *side = NULL;
    struct err err;
    char junk[4096];

    memset(junk, 'G', sizeof junk);
    CHECK_INT(tls_server_new(authority, HOST, TLS_NONE, &side, &err), 0);
    CHECK_INT(tls_side_feed(side, junk, sizeof junk), sizeof junk);
    CHECK_INT(tls_side_phase(side), TLS_FAILED);
    CHECK_INT(tls_side_fault(side), TLS_FAULT_PROTOCOL);
    tls_side_free(side);
    tls_authority_free(authority);
}
