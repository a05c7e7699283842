/* SPDX-License-Identifier: Apache-2.0 */

/* One side of a connection. OpenSSL reads from and writes to two queues of ours, each with a
 * ceiling: what does not fit is not taken, and the caller keeps it. */

#include <openssl/err.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/memory.h"
#include "lib/tls/tls-private.h"

#define RECORD_PLAIN_MAX 16384
#define RECORD_WIRE_MAX (RECORD_PLAIN_MAX + 512) /* head, padding, tag */

/* ---- what OpenSSL reads from and writes to ---- */

static int on_read(BIO *bio, char *to, int room)
{
    struct tls_side *side = BIO_get_data(bio);
    size_t n = side->in.n < (size_t)room ? side->in.n : (size_t)room;

    BIO_clear_retry_flags(bio);
    if (n == 0 && !side->in_ended)
        BIO_set_retry_read(bio);
    if (n == 0)
        return side->in_ended ? 0 : -1;
    memcpy(to, side->in.p + side->in.at, n);
    queue_drop(&side->in, n);
    return (int)n;
}

static int on_write(BIO *bio, const char *bytes, int n)
{
    struct tls_side *side = BIO_get_data(bio);
    size_t taken = queue_add(&side->out, bytes, (size_t)n, TLS_SIDE_OUT_MAX);

    BIO_clear_retry_flags(bio);
    if (taken == 0)
        BIO_set_retry_write(bio);
    return taken == 0 ? -1 : (int)taken;
}

static long on_control(BIO *bio, int command, long number, void *pointer)
{
    const struct tls_side *side = BIO_get_data(bio);

    (void)number;
    (void)pointer;
    if (command == BIO_CTRL_EOF)
        return side->in_ended && side->in.n == 0;
    return command == BIO_CTRL_FLUSH;
}

static BIO_METHOD *bio_method(void)
{
    static BIO_METHOD *method;

    if (method)
        return method;
    method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "queues");
    if (!method || BIO_meth_set_read(method, on_read) != 1 ||
        BIO_meth_set_write(method, on_write) != 1 || BIO_meth_set_ctrl(method, on_control) != 1)
        abort(); /* no memory, for a size we chose */
    return method;
}

/* ---- new ones ---- */

int tls_side_new(SSL_CTX *context, struct tls_side **out, struct err *err)
{
    struct tls_side *side = xcalloc(1, sizeof(*side));
    BIO *bio = BIO_new(bio_method());

    side->ssl = SSL_new(context);
    if (!side->ssl || !bio) {
        BIO_free(bio);
        tls_side_free(side);
        return tls_err(err, ERR_LIMIT, "no memory for a TLS connection");
    }
    BIO_set_data(bio, side);
    BIO_set_init(bio, 1);
    SSL_set_bio(side->ssl, bio, bio);
    SSL_set_app_data(side->ssl, side);
    *out = side;
    return 0;
}

void tls_side_free(struct tls_side *side)
{
    if (side == NULL)
        return;
    /* OpenSSL takes a session for spoilt when its connection ends without goodbyes, as most do. */
    if (side->ssl && side->phase == TLS_OPEN)
        SSL_set_shutdown(side->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    SSL_free(side->ssl);
    queue_done(&side->in);
    queue_done(&side->out);
    free(side);
}

static void fail(struct tls_side *side)
{
    enum tls_fault fault = tls_verdict(side, side->detail, sizeof side->detail);

    side->phase = TLS_FAILED;
    if (side->fault == TLS_NO_FAULT) /* a callback of ours knew it better */
        side->fault = fault;
}

static void fail_with(struct tls_side *side, enum tls_fault fault, const char *detail)
{
    side->phase = TLS_FAILED;
    side->fault = fault;
    (void)snprintf(side->detail, sizeof side->detail, "%s", detail);
}

/* ---- the handshake ---- */

/* What the server took must be something that was offered; OpenSSL does not look. */
static bool settle_protocol(struct tls_side *side)
{
    const unsigned char *name = NULL;
    unsigned n = 0;

    SSL_get0_alpn_selected(side->ssl, &name, &n);
    if (n == 0)
        side->protocol = TLS_NONE;
    else if (n == 2 && memcmp(name, "h2", 2) == 0)
        side->protocol = TLS_H2;
    else if (n == 8 && memcmp(name, "http/1.1", 8) == 0)
        side->protocol = TLS_HTTP1;
    else
        return false;
    return side->is_server || side->protocol == TLS_NONE || (side->key.offers & side->protocol);
}

static void on_open(struct tls_side *side)
{
    side->phase = TLS_OPEN;
    if (!settle_protocol(side))
        fail_with(side, TLS_FAULT_ALPN, "the server chose what was not offered");
    else if (!side->is_server && (SSL_get_verify_result(side->ssl) != X509_V_OK ||
                                  SSL_get0_peer_certificate(side->ssl) == NULL))
        fail_with(side, TLS_FAULT_CERT_INVALID, "the server has not proved who it is");
}

void tls_side_go_on(struct tls_side *side)
{
    int answer;

    if (side->phase != TLS_SHAKING)
        return;
    ERR_clear_error();
    answer = SSL_do_handshake(side->ssl);
    if (answer == 1) {
        on_open(side);
        return;
    }
    switch (SSL_get_error(side->ssl, answer)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
        return;
    default:
        fail(side);
    }
}

/* ---- the wire ---- */

size_t tls_side_feed(struct tls_side *side, const void *bytes, size_t n)
{
    size_t taken = 0;
    size_t step;

    if (side->phase == TLS_FAILED || side->in_ended)
        return n; /* nobody will read it */
    /* A handshake takes what it is given; plain bytes wait for their reader. */
    do {
        step = queue_add(&side->in, (const char *)bytes + taken, n - taken, TLS_SIDE_IN_MAX);
        taken += step;
        tls_side_go_on(side);
    } while (step > 0 && taken < n && side->phase == TLS_SHAKING);
    return side->phase == TLS_FAILED ? n : taken;
}

void tls_side_feed_end(struct tls_side *side)
{
    side->in_ended = true;
    tls_side_go_on(side);
}

struct str tls_side_wire(const struct tls_side *side)
{
    return queue_str(&side->out);
}

void tls_side_sent(struct tls_side *side, size_t n)
{
    queue_drop(&side->out, n);
    tls_side_go_on(side);
}

/* ---- plain bytes ---- */

/* What a call that moved nothing means: 0 for later, -1 for never. */
static int settle(struct tls_side *side, int answer)
{
    switch (SSL_get_error(side->ssl, answer)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
        return 0;
    case SSL_ERROR_ZERO_RETURN:
        side->has_ended = true;
        return -1;
    default:
        fail(side);
        return -1;
    }
}

int tls_side_read(struct tls_side *side, void *to, size_t room)
{
    size_t n = 0;
    int answer;

    if (side->phase == TLS_FAILED || side->has_ended)
        return -1;
    if (side->phase == TLS_SHAKING || room == 0)
        return 0;
    ERR_clear_error();
    answer = SSL_read_ex(side->ssl, to, room < INT32_MAX ? room : INT32_MAX, &n);
    return answer == 1 ? (int)n : settle(side, answer);
}

/* Only whole records: one that is begun must be gone on with, with the same bytes. */
int tls_side_write(struct tls_side *side, const void *bytes, size_t n)
{
    size_t taken = 0;

    if (side->phase == TLS_FAILED || side->is_shut)
        return -1;
    if (side->phase == TLS_SHAKING)
        return 0;
    while (taken < n && side->out.n + RECORD_WIRE_MAX <= TLS_SIDE_OUT_MAX) {
        size_t left = n - taken;
        size_t step = 0;
        int answer;

        ERR_clear_error();
        answer = SSL_write_ex(side->ssl, (const char *)bytes + taken,
                              left < RECORD_PLAIN_MAX ? left : RECORD_PLAIN_MAX, &step);
        if (answer != 1) {
            if (settle(side, answer) < 0)
                return -1;
            break;
        }
        taken += step;
    }
    return (int)taken;
}

void tls_side_shut(struct tls_side *side)
{
    if (side->is_shut || side->phase == TLS_FAILED)
        return;
    side->is_shut = true;
    ERR_clear_error();
    if (side->phase == TLS_OPEN)
        (void)SSL_shutdown(side->ssl); /* 0: ours is said, theirs we wait for in reading */
    else
        fail_with(side, TLS_FAULT_TRUNCATED, "given up by us");
    ERR_clear_error();
}

/* ---- looking at it ---- */

enum tls_phase tls_side_phase(const struct tls_side *side)
{
    return side->phase;
}

enum tls_fault tls_side_fault(const struct tls_side *side)
{
    return side->fault;
}

const char *tls_side_detail(const struct tls_side *side)
{
    return side->detail;
}

bool tls_side_has_ended(const struct tls_side *side)
{
    return side->has_ended;
}

enum tls_protocol tls_side_protocol(const struct tls_side *side)
{
    return side->protocol;
}

bool tls_side_was_resumed(const struct tls_side *side)
{
    return SSL_session_reused(side->ssl) == 1;
}

const char *tls_side_version(const struct tls_side *side)
{
    return SSL_get_version(side->ssl);
}
