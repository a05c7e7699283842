/* SPDX-License-Identifier: Apache-2.0 */

/* server: what everybody in bench/egress/run is measured against, a thread for each connection.
 *
 *     server CERTIFICATE KEY READY-FILE
 *
 * 80 answers every request with the same few bytes, 443 the same over TLS, 7000 gives back what
 * comes, 7001 writes as fast as it is read. Every socket has a time limit, so nobody who went
 * away keeps a thread. */

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "../common.h"
#include "lib/base/limits.h"

#define IDLE_SECONDS 60
#define BLOCK_BYTES 65536
#define ANSWER                                                                                     \
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 15\r\n\r\n"              \
    "{\"hello\":\"you\"}"

static SSL_CTX *context;

/* ---- one connection ---- */

struct wire {
    int fd;
    SSL *ssl; /* NULL: plain */
};

static ssize_t take(const struct wire *wire, char *bytes, size_t n)
{
    return wire->ssl ? SSL_read(wire->ssl, bytes, (int)n) : read(wire->fd, bytes, n);
}

static ssize_t give(const struct wire *wire, const char *bytes, size_t n)
{
    return wire->ssl ? SSL_write(wire->ssl, bytes, (int)n) : write(wire->fd, bytes, n);
}

/* Requests have no bodies, and a client asks again only after an answer. */
static void answer(const struct wire *wire)
{
    char head[8192];
    size_t n = 0;

    for (;;) {
        ssize_t more = take(wire, head + n, sizeof head - n);

        if (more <= 0)
            return;
        n += (size_t)more;
        if (n >= 4 && memcmp(head + n - 4, "\r\n\r\n", 4) == 0) {
            n = 0;
            if (give(wire, ANSWER, sizeof ANSWER - 1) <= 0)
                return;
        }
        if (n == sizeof head)
            return;
    }
}

static void echo(const struct wire *wire)
{
    char bytes[BLOCK_BYTES];
    ssize_t n;

    while ((n = take(wire, bytes, sizeof bytes)) > 0)
        if (give(wire, bytes, (size_t)n) != n)
            return;
}

static void pour(const struct wire *wire)
{
    static const char bytes[BLOCK_BYTES];

    while (give(wire, bytes, sizeof bytes) > 0)
        continue;
}

static void answer_tls(const struct wire *plain)
{
    struct wire wire = {.fd = plain->fd, .ssl = SSL_new(context)};

    if (wire.ssl && SSL_set_fd(wire.ssl, wire.fd) == 1 && SSL_accept(wire.ssl) == 1)
        answer(&wire);
    SSL_free(wire.ssl);
}

static struct service {
    uint16_t port;
    void (*serve)(const struct wire *wire);
    int fd;
} services[] = {
    {80,   answer,     -1},
    {443,  answer_tls, -1},
    {7000, echo,       -1},
    {7001, pour,       -1},
};

/* ---- all of them ---- */

struct guest {
    int fd;
    void (*serve)(const struct wire *wire);
};

static void *host_one(void *memory)
{
    struct guest guest = *(struct guest *)memory;
    struct timeval limit = {.tv_sec = IDLE_SECONDS};
    int on = 1;

    free(memory);
    (void)setsockopt(guest.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)setsockopt(guest.fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    (void)setsockopt(guest.fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    guest.serve(&(struct wire){.fd = guest.fd});
    (void)close(guest.fd);
    return NULL;
}

static int listen_on(uint16_t port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int on = 1;

    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0 ||
        bind(fd, (struct sockaddr *)&at, sizeof at) < 0 || listen(fd, 1024) < 0)
        give_up("listening", strerror(errno));
    return fd;
}

static void *accept_all(void *memory)
{
    const struct service *service = memory;

    for (;;) {
        struct guest *guest = malloc(sizeof *guest);
        pthread_t thread;

        if (!guest)
            give_up("accepting", strerror(ENOMEM));
        *guest = (struct guest){accept4(service->fd, NULL, NULL, SOCK_CLOEXEC), service->serve};
        if (guest->fd < 0 || pthread_create(&thread, NULL, host_one, guest) != 0)
            give_up("accepting", strerror(errno));
        (void)pthread_detach(thread);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[COUNT(services)];

    if (argc != 4)
        give_up("usage", "server CERTIFICATE KEY READY-FILE");
    (void)signal(SIGPIPE, SIG_IGN);
    context = SSL_CTX_new(TLS_server_method());
    if (!context || SSL_CTX_use_certificate_file(context, argv[1], SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_use_PrivateKey_file(context, argv[2], SSL_FILETYPE_PEM) != 1)
        give_up("certificate", argv[1]);
    for (size_t i = 0; i < COUNT(services); i++) {
        services[i].fd = listen_on(services[i].port);
        if (pthread_create(&threads[i], NULL, accept_all, &services[i]) != 0)
            give_up("thread", strerror(errno));
    }
    if (creat(argv[3], 0600) < 0)
        give_up("cannot write", argv[3]);
    (void)pthread_join(threads[0], NULL);
    return 0;
}
