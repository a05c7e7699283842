/* SPDX-License-Identifier: Apache-2.0 */

/* client: asks the server of bench/egress/run, straight or through a proxy, and says how long it
 * took.
 *
 *     client [-a ADDRESS] [-x PORT] [-c ROOTS] [-n SAMPLES] [-s SECONDS] [-t THREADS] WHAT HOST
 *
 * With -x a proxy at ADDRESS:PORT, without it the server itself at ADDRESS. WHAT is one of
 *
 *     tunnel      a new connection (with a proxy: CONNECT) and one byte there and back
 *     http        a request on a connection that stands
 *     https       the same over TLS
 *     vault       as http, with a vault that has nothing for the host
 *     bound       as http, with a vault that has a secret for the host, which is not asked for
 *     handshake   a new connection up to the end of its full TLS handshake
 *     first       the same up to the first answer
 *     bulk        what a connection carries
 *     rate        plain requests of several connections at once
 *
 * The first seven print the median and p99 in microseconds, bulk MB/s, rate requests a second. A
 * wrong answer ends it: what failed fast is not fast. */

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "../common.h"
#include "lib/base/limits.h"

#define SAMPLES_MAX 100000
#define THREADS_MAX 256
#define WARM_UP 20
#define PATIENCE_SECONDS 20
#define PATH "/api/hello"

static struct {
    const char *address;
    uint16_t proxy_port; /* 0: none */
    const char *host;
    size_t samples;
    double seconds;
    size_t threads;
    SSL_CTX *context;
} bench = {.address = "127.0.0.1", .samples = 2000, .seconds = 3, .threads = 16};

struct wire {
    int fd;
    SSL *ssl; /* NULL: plain */
};

/* ---- bytes ---- */

static void give(const struct wire *wire, const char *bytes, size_t n)
{
    ssize_t done = wire->ssl ? SSL_write(wire->ssl, bytes, (int)n) : write(wire->fd, bytes, n);

    if (done != (ssize_t)n)
        give_up("sending", strerror(errno));
}

static size_t take(const struct wire *wire, char *bytes, size_t n)
{
    ssize_t got = wire->ssl ? SSL_read(wire->ssl, bytes, (int)n) : read(wire->fd, bytes, n);

    if (got <= 0)
        give_up("reading", got == 0 ? "the other side closed" : strerror(errno));
    return (size_t)got;
}

/* Head and, where it says so, body of one answer; whatever is not 200 is the end. */
static void take_answer(const struct wire *wire, bool of_connect)
{
    char text[8192];
    size_t n = 0;
    const char *end = NULL, *length;
    size_t body;

    while (!end) {
        if (n == sizeof text - 1)
            give_up("answer", "its head is too long");
        n += take(wire, text + n, sizeof text - 1 - n);
        text[n] = '\0';
        end = strstr(text, "\r\n\r\n");
    }
    if (strncmp(text + strcspn(text, " "), " 200", 4) != 0)
        give_up("answer", text);
    length = strcasestr(text, "\r\ncontent-length:");
    body = !of_connect && length && length < end ? strtoul(length + 17, NULL, 10) : 0;
    while (n < (size_t)(end + 4 - text) + body)
        n += take(wire, text, sizeof text); /* only the count matters */
}

/* ---- connections ---- */

static int dial(uint16_t port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct timeval limit = {.tv_sec = PATIENCE_SECONDS};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int on = 1;

    if (inet_pton(AF_INET, bench.address, &at.sin_addr) != 1)
        give_up("not an address", bench.address);
    if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) < 0 ||
        connect(fd, (struct sockaddr *)&at, sizeof at) < 0)
        give_up("connecting", strerror(errno));
    return fd;
}

/* A connection to this port of the server, through a tunnel where there is a proxy. */
static struct wire reach(uint16_t port)
{
    struct wire wire = {.fd = dial(bench.proxy_port ? bench.proxy_port : port)};
    char text[512];
    int n;

    if (!bench.proxy_port)
        return wire;
    n = snprintf(text, sizeof text, "CONNECT %s:%u HTTP/1.1\r\nHost: %s:%u\r\n\r\n", bench.host,
                 port, bench.host, port);
    give(&wire, text, (size_t)n);
    take_answer(&wire, true);
    return wire;
}

static struct wire reach_tls(void)
{
    struct wire wire = reach(443);
    SSL *ssl = SSL_new(bench.context);

    if (!ssl || SSL_set_fd(ssl, wire.fd) != 1 || SSL_set_tlsext_host_name(ssl, bench.host) != 1 ||
        SSL_set1_host(ssl, bench.host) != 1 || SSL_connect(ssl) != 1)
        give_up("handshake", X509_verify_cert_error_string(ssl ? SSL_get_verify_result(ssl) : 0));
    wire.ssl = ssl;
    return wire;
}

static void leave(struct wire *wire)
{
    SSL_free(wire->ssl);
    (void)close(wire->fd);
}

static void ask(const struct wire *wire)
{
    char text[512];
    bool whole = bench.proxy_port && !wire->ssl; /* a proxy wants the whole address */
    int n = snprintf(text, sizeof text, "GET %s%s" PATH " HTTP/1.1\r\nHost: %s\r\n\r\n",
                     whole ? "http://" : "", whole ? bench.host : "", bench.host);

    give(wire, text, (size_t)n);
    take_answer(wire, false);
}

/* ---- one sample each ---- */

static struct wire warm; /* the connection that stands */

static void once_tunnel(void)
{
    struct wire wire = reach(7000);
    char byte = 'x';

    give(&wire, &byte, 1);
    (void)take(&wire, &byte, 1);
    leave(&wire);
}

static void once_request(void)
{
    ask(&warm);
}

static void once_handshake(void)
{
    struct wire wire = reach_tls();

    leave(&wire);
}

static void once_first(void)
{
    struct wire wire = reach_tls();

    ask(&wire);
    leave(&wire);
}

static void measure_latency(void (*once)(void))
{
    static uint64_t ns[SAMPLES_MAX];

    for (size_t i = 0; i < WARM_UP; i++)
        once();
    for (size_t i = 0; i < bench.samples; i++) {
        uint64_t began = now_ns();

        once();
        ns[i] = now_ns() - began;
    }
    sort_ns(ns, bench.samples);
    (void)printf("%.1f %.1f\n", 1000 * ms_at(ns, bench.samples, 500),
                 1000 * ms_at(ns, bench.samples, 990));
}

/* ---- for a time ---- */

static void measure_bulk(void)
{
    static char bytes[262144];
    struct wire wire = reach(7001);
    uint64_t began, until, count = 0;

    (void)take(&wire, bytes, sizeof bytes);
    began = now_ns();
    until = began + (uint64_t)(bench.seconds * 1e9);
    while (now_ns() < until)
        count += take(&wire, bytes, sizeof bytes);
    (void)printf("%.0f\n", (double)count * 1e3 / (double)(now_ns() - began));
    leave(&wire);
}

struct worker {
    pthread_t thread;
    pthread_barrier_t *start;
    uint64_t done;
};

static void *work(void *memory)
{
    struct worker *worker = memory;
    struct wire wire = {.fd = dial(bench.proxy_port ? bench.proxy_port : 80)};
    uint64_t until;

    ask(&wire);
    (void)pthread_barrier_wait(worker->start);
    until = now_ns() + (uint64_t)(bench.seconds * 1e9);
    for (; now_ns() < until; worker->done++)
        ask(&wire);
    leave(&wire);
    return NULL;
}

static void measure_rate(void)
{
    static struct worker workers[THREADS_MAX];
    pthread_barrier_t start;
    uint64_t began, done = 0;

    (void)pthread_barrier_init(&start, NULL, (unsigned)bench.threads + 1);
    for (size_t i = 0; i < bench.threads; i++) {
        workers[i].start = &start;
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            give_up("thread", strerror(errno));
    }
    (void)pthread_barrier_wait(&start);
    began = now_ns();
    for (size_t i = 0; i < bench.threads; i++) {
        (void)pthread_join(workers[i].thread, NULL);
        done += workers[i].done;
    }
    (void)printf("%.0f\n", (double)done * 1e9 / (double)(now_ns() - began));
    (void)pthread_barrier_destroy(&start);
}

/* ---- the command line ---- */

static void trust(const char *roots)
{
    bench.context = SSL_CTX_new(TLS_client_method());
    if (!bench.context)
        give_up("TLS", "no context");
    SSL_CTX_set_verify(bench.context, SSL_VERIFY_PEER, NULL);
    if (roots ? SSL_CTX_load_verify_file(bench.context, roots) != 1
              : SSL_CTX_set_default_verify_paths(bench.context) != 1)
        give_up("roots", roots ? roots : "those of this machine");
}

static void read_options(int argc, char **argv)
{
    const char *roots = NULL;
    int option;

    while ((option = getopt(argc, argv, "a:x:c:n:s:t:")) != -1) {
        if (option == 'a')
            bench.address = optarg;
        else if (option == 'x')
            bench.proxy_port = (uint16_t)strtoul(optarg, NULL, 10);
        else if (option == 'c')
            roots = optarg;
        else if (option == 'n')
            bench.samples = strtoul(optarg, NULL, 10);
        else if (option == 's')
            bench.seconds = strtod(optarg, NULL);
        else if (option == 't')
            bench.threads = strtoul(optarg, NULL, 10);
        else
            exit(64);
    }
    if (argc - optind != 2 || bench.samples == 0 || bench.samples > SAMPLES_MAX ||
        bench.threads == 0 || bench.threads > THREADS_MAX)
        give_up("usage", "client [OPTIONS] WHAT HOST; -n 1 to 100000, -t 1 to 256");
    bench.host = argv[optind + 1];
    trust(roots);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*once)(void);
    } samples[] = {
        {"tunnel",    once_tunnel   },
        {"http",      once_request  },
        {"https",     once_request  },
        {"vault",     once_request  },
        {"bound",     once_request  },
        {"handshake", once_handshake},
        {"first",     once_first    },
    };
    const char *what;

    (void)signal(SIGPIPE, SIG_IGN);
    read_options(argc, argv);
    what = argv[optind];
    if (strcmp(what, "http") == 0 || strcmp(what, "vault") == 0 || strcmp(what, "bound") == 0)
        warm.fd = dial(bench.proxy_port ? bench.proxy_port : 80);
    if (strcmp(what, "https") == 0)
        warm = reach_tls();
    for (size_t i = 0; i < COUNT(samples); i++)
        if (strcmp(what, samples[i].name) == 0) {
            measure_latency(samples[i].once);
            return 0;
        }
    if (strcmp(what, "bulk") == 0)
        measure_bulk();
    else if (strcmp(what, "rate") == 0)
        measure_rate();
    else
        give_up("nothing is called", what);
    return 0;
}
