/* SPDX-License-Identifier: Apache-2.0 */

/* What interception costs the processor, without sockets: a client and a server of plain OpenSSL
 * over memory, once joined directly and once through lib/tls. All of it runs in one thread, so
 * times are sums over client, server and whoever is between.
 *
 *     ninja -C build bench/egress-tls && build/bench/egress-tls */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/base/io.h"
#include "lib/tls/tls.h"
#include "pki.h"

#define HOST "api.example.org"
#define ROUNDS 400
#define REQUESTS 4000
#define REQUEST_BYTES 300
#define ANSWER_BYTES 1024

static double now_us(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *times, size_t n)
{
    qsort(times, n, sizeof *times, by_size);
    return times[n / 2];
}

/* ---- moving bytes ---- */

static bool move(struct peer *from, struct peer *to)
{
    char bytes[16384];
    int n = BIO_read(from->out, bytes, sizeof bytes);

    return n > 0 && BIO_write(to->in, bytes, n) == n;
}

static bool to_side(struct peer *from, struct tls_side *side)
{
    char bytes[16384];
    int n = BIO_read(from->out, bytes, sizeof bytes);

    return n > 0 && tls_side_feed(side, bytes, (size_t)n) == (size_t)n;
}

static bool from_side(struct tls_side *side, struct peer *to)
{
    struct str wire = tls_side_wire(side);

    if (wire.n == 0)
        return false;
    (void)BIO_write(to->in, wire.p, (int)wire.n);
    tls_side_sent(side, wire.n);
    return true;
}

static void shake(struct peer *peer)
{
    if (!SSL_is_init_finished(peer->ssl))
        (void)SSL_do_handshake(peer->ssl);
}

/* ---- the two ways ---- */

struct way {
    struct peer client;
    struct peer server;
    struct tls_side *inner; /* towards the client; NULL: direct */
    struct tls_side *outer;
};

struct world {
    struct pki pki;
    SSL_CTX *server;
    SSL_CTX *direct; /* trusts the root */
    SSL_CTX *inside; /* trusts the authority */
    struct tls_authority *authority;
    struct tls_trust *trust;
    SSL_SESSION *session[2]; /* of direct and inside */
};

static void connect_direct(struct world *world, struct way *way, bool resumes)
{
    peer_init(&way->server, world->server, true);
    peer_init(&way->client, world->direct, false);
    SSL_set1_host(way->client.ssl, HOST);
    SSL_set_tlsext_host_name(way->client.ssl, HOST);
    if (resumes && world->session[0])
        SSL_set_session(way->client.ssl, world->session[0]);
    for (bool moved = true; moved;) {
        shake(&way->client);
        moved = move(&way->client, &way->server);
        shake(&way->server);
        moved |= move(&way->server, &way->client);
    }
}

static void connect_intercepted(struct world *world, struct way *way, bool resumes, uint64_t who)
{
    struct err err;

    peer_init(&way->server, world->server, true);
    peer_init(&way->client, world->inside, false);
    SSL_set1_host(way->client.ssl, HOST);
    SSL_set_tlsext_host_name(way->client.ssl, HOST);
    if (resumes && world->session[1])
        SSL_set_session(way->client.ssl, world->session[1]);
    shake(&way->client);
    if (tls_client_new(world->trust, HOST, 0, who, &way->outer, &err) < 0)
        abort();
    for (bool moved = true; moved;) {
        moved = from_side(way->outer, &way->server);
        shake(&way->server);
        moved |= to_side(&way->server, way->outer);
    }
    if (tls_server_new(world->authority, HOST, TLS_NONE, &way->inner, &err) < 0)
        abort();
    for (bool moved = true; moved;) {
        moved = to_side(&way->client, way->inner);
        moved |= from_side(way->inner, &way->client);
        shake(&way->client);
    }
}

static void way_done(struct way *way)
{
    tls_side_free(way->inner);
    tls_side_free(way->outer);
    peer_done(&way->client);
    peer_done(&way->server);
}

/* Tickets come behind the handshake. */
static void take_tickets(struct world *world, struct way *way, size_t which)
{
    char byte;

    (void)SSL_read(way->client.ssl, &byte, 1);
    if (way->outer)
        (void)!tls_side_read(way->outer, &byte, 1);
    SSL_SESSION_free(world->session[which]);
    world->session[which] = SSL_get1_session(way->client.ssl);
}

/* knows_server: the session with the server is taken up; resumes: the client's is, too. */
static double measure_connections(struct world *world, bool intercepts, bool knows_server,
                                  bool resumes)
{
    static double times[ROUNDS];

    for (size_t i = 0; i < ROUNDS; i++) {
        struct way way = {.inner = NULL};
        double began = now_us();

        if (intercepts) /* a new sandbox each time has no session to take up */
            connect_intercepted(world, &way, resumes, knows_server ? 0 : i + 1);
        else
            connect_direct(world, &way, resumes);
        times[i] = now_us() - began;
        if (!SSL_is_init_finished(way.client.ssl) || !SSL_is_init_finished(way.server.ssl))
            abort();
        take_tickets(world, &way, intercepts);
        way_done(&way);
    }
    return median(times, ROUNDS);
}

/* ---- requests on a warm connection ---- */

static void pass_on(struct tls_side *from, struct tls_side *to)
{
    char bytes[16384];
    int n;

    while ((n = tls_side_read(from, bytes, sizeof bytes)) > 0) {
        if (tls_side_write(to, bytes, (size_t)n) != n)
            abort();
    }
}

static void carry(struct way *way, bool to_server)
{
    if (!way->inner) {
        (void)(to_server ? move(&way->client, &way->server) : move(&way->server, &way->client));
        return;
    }
    if (to_server) {
        (void)to_side(&way->client, way->inner);
        pass_on(way->inner, way->outer);
        (void)from_side(way->outer, &way->server);
    } else {
        (void)to_side(&way->server, way->outer);
        pass_on(way->outer, way->inner);
        (void)from_side(way->inner, &way->client);
    }
}

static double measure_requests(struct world *world, bool intercepts)
{
    static double times[REQUESTS];
    static char bytes[ANSWER_BYTES];
    struct way way = {.inner = NULL};

    if (intercepts)
        connect_intercepted(world, &way, false, 0);
    else
        connect_direct(world, &way, false);
    for (size_t i = 0; i < REQUESTS; i++) {
        double began = now_us();

        (void)SSL_write(way.client.ssl, bytes, REQUEST_BYTES);
        carry(&way, true);
        if (SSL_read(way.server.ssl, bytes, sizeof bytes) != REQUEST_BYTES)
            abort();
        (void)SSL_write(way.server.ssl, bytes, ANSWER_BYTES);
        carry(&way, false);
        if (SSL_read(way.client.ssl, bytes, sizeof bytes) != ANSWER_BYTES)
            abort();
        times[i] = now_us() - began;
    }
    way_done(&way);
    return median(times, REQUESTS);
}

/* ---- all of it ---- */

static void world_init(struct world *world)
{
    char path[] = "/tmp/egress-tls-bench.XXXXXX";
    struct err err;
    int fd;

    if (!mkdtemp(path) || (fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
        abort();
    pki_init(&world->pki);
    world->server = pki_server(&world->pki, "DNS:" HOST, PKI_GOOD);
    (void)SSL_CTX_set_session_id_context(world->server, (const unsigned char *)"b", 1);
    world->direct = pki_client(buf_str(&world->pki.pem));
    if (tls_authority_open(fd, path, &world->authority, &err) < 0 ||
        tls_trust_new(buf_str(&world->pki.pem), &world->trust, &err) < 0)
        abort();
    world->inside = pki_client(tls_authority_certificate(world->authority));
    (void)close(fd);
    if (dir_remove(AT_FDCWD, path, &err) < 0)
        abort();
}

static void show(const char *what, double direct, double intercepted)
{
    (void)printf("%-24s direct %7.1f us   intercepted %7.1f us   %.2fx, +%.1f us\n", what, direct,
                 intercepted, intercepted / direct, intercepted - direct);
}

int main(void)
{
    static struct world world;

    world_init(&world);
    show("first connection", measure_connections(&world, false, false, false),
         measure_connections(&world, true, false, false));
    show("new, server known", measure_connections(&world, false, false, false),
         measure_connections(&world, true, true, false));
    show("resumed on both sides", measure_connections(&world, false, true, true),
         measure_connections(&world, true, true, true));
    show("request, warm", measure_requests(&world, false), measure_requests(&world, true));
    return 0;
}
