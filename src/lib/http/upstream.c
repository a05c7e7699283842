/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/http/http-upstream.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/memory.h"

struct http_upstream {
    struct http_upstream_config config;
    int fd;
    SSL *ssl;
    uint64_t ends_us;  /* all of it */
    uint64_t until_us; /* what is being waited for */
    struct buf head_text;
    struct http_head head;
    struct http_body body;
    char input[HTTP_INPUT_BYTES];
    struct str rest; /* of the input, not yet looked at */
    bool has_ended;  /* the other side's end of the connection */
};

/* ---- addresses ---- */

static bool is_host(struct str host)
{
    for (size_t i = 0; i < host.n; i++) {
        char c = host.p[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '.' || c == '-' || c == ':'))
            return false;
    }
    return host.n > 0 && host.n <= HTTP_ORIGIN_HOST_MAX;
}

static int parse_host(struct str authority, struct http_origin *out, struct err *err)
{
    bool is_six = str_starts(authority, "[");
    struct str host = authority, port;
    uint64_t number = 0;

    if (is_six && !memchr(authority.p, ']', authority.n))
        return err_set(err, ERR_INVALID, "the address of the upstream is malformed");
    if (is_six) {
        host = (struct str){authority.p + 1, authority.n - 1};
        port = host;
        host = str_cut(&port, ']');
        if (port.n && port.p[0] == ':')
            port = (struct str){port.p + 1, port.n - 1};
        else if (port.n)
            return err_set(err, ERR_INVALID, "the address of the upstream is malformed");
    } else {
        port = authority;
        host = str_cut(&port, ':');
    }
    if (!is_host(host) || (port.n && (!str_u64(port, &number) || !number || number > 65535)))
        return err_set(err, ERR_INVALID, "the address of the upstream is malformed");
    (void)snprintf(out->host, sizeof out->host, STR_FMT, STR_ARG(host));
    (void)snprintf(out->port, sizeof out->port, "%u",
                   number        ? (unsigned)number
                   : out->is_tls ? 443U
                                 : 80U);
    (void)snprintf(out->name, sizeof out->name, is_six ? "[%s]%s%s" : "%s%s%s", out->host,
                   number ? ":" : "", number ? out->port : "");
    return 0;
}

static bool is_loopback_name(const char *host)
{
    struct in_addr four;
    struct in6_addr six;

    return strcmp(host, "localhost") == 0 ||
           (inet_pton(AF_INET, host, &four) == 1 && ntohl(four.s_addr) >> 24 == 127) ||
           (inet_pton(AF_INET6, host, &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six));
}

int http_origin_parse(const char *url, struct http_origin *out, struct err *err)
{
    struct str rest = str_of(url), authority;
    const char *path;

    *out = (struct http_origin){.is_tls = str_starts(rest, "https://")};
    if (!out->is_tls && !str_starts(rest, "http://"))
        return err_set(err, ERR_INVALID, "an address begins with https:// or http://");
    rest = (struct str){rest.p + (out->is_tls ? 8 : 7), rest.n - (out->is_tls ? 8 : 7)};
    path = memchr(rest.p, '/', rest.n);
    authority = path ? (struct str){rest.p, (size_t)(path - rest.p)} : rest;
    if (parse_host(authority, out, err) < 0)
        return -1;
    if (!out->is_tls && !is_loopback_name(out->host))
        return err_set(err, ERR_INVALID, "an address of another machine begins with https://");
    rest = path ? str_of(path) : (struct str){0};
    while (rest.n && rest.p[rest.n - 1] == '/')
        rest.n--;
    if (rest.n >= sizeof out->path || (rest.n && strpbrk(path, "?# \t\r\n")))
        return err_set(err, ERR_INVALID, "the path of an address has no query and no blanks");
    if (rest.n)
        memcpy(out->path, rest.p, rest.n);
    return 0;
}

static bool is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr) >> 24 ==
               127;
    return address->sa_family == AF_INET6 &&
           IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
}

/* ---- waiting ---- */

static void wait_until(struct http_upstream *client, unsigned ms)
{
    uint64_t then_us = clock_us() + (uint64_t)ms * 1000;

    client->until_us = then_us < client->ends_us ? then_us : client->ends_us;
}

static int wait_for(struct http_upstream *client, short events, struct err *err)
{
    struct pollfd fds[] = {
        {.fd = client->fd,               .events = events},
        {.fd = client->config.cancel_fd, .events = POLLIN},
    };

    for (;;) {
        int n;

        if (clock_us() >= client->until_us)
            return err_set(err, ERR_TIMEOUT, "the upstream took too long");
        n = poll(fds, COUNT(fds), clock_ms_until(client->until_us));
        if (n < 0 && errno != EINTR)
            return err_os(err, "waiting for the upstream");
        if (n > 0 && fds[1].revents)
            return err_set(err, ERR_CONFLICT, "whoever asked has left");
        if (n > 0 && fds[0].revents)
            return 0;
    }
}

/* ---- connecting ---- */

static int connect_to(struct http_upstream *client, const struct addrinfo *to, struct err *err)
{
    int error = 0, on = 1;
    socklen_t size = sizeof error;

    if (!client->config.origin->is_tls && !is_loopback(to->ai_addr))
        return err_set(err, ERR_FORBIDDEN, "plain HTTP beyond this machine");
    client->fd = socket(to->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (client->fd < 0)
        return err_os(err, "making a socket");
    (void)setsockopt(client->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(client->fd, to->ai_addr, to->ai_addrlen) == 0)
        return 0;
    if (errno != EINPROGRESS)
        return err_set(err, ERR_UNAVAILABLE, "the upstream cannot be reached: %s", strerror(errno));
    if (wait_for(client, POLLOUT, err) < 0)
        return -1;
    if (getsockopt(client->fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0 || error)
        return err_set(err, ERR_UNAVAILABLE, "the upstream cannot be reached: %s", strerror(error));
    return 0;
}

static int connect_any(struct http_upstream *client, struct err *err)
{
    const struct http_origin *origin = client->config.origin;
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    int failed = -1;
    int answer = getaddrinfo(origin->host, origin->port, &hints, &found);

    if (answer != 0)
        return err_set(err, ERR_UNAVAILABLE, "the name of the upstream: %s", gai_strerror(answer));
    for (const struct addrinfo *to = found; to && failed; to = to->ai_next) {
        if (client->fd >= 0)
            (void)close(client->fd);
        client->fd = -1;
        failed = connect_to(client, to, err);
        if (failed && err->code == ERR_CONFLICT)
            break;
    }
    freeaddrinfo(found);
    return failed;
}

/* ---- TLS ---- */

/* A thread that is left alone, because it keeps no deadline, may be in OpenSSL when the process
 * ends: nothing is taken from under it then. Only the first call of a process can say so. */
__attribute__((constructor)) static void keep_openssl(void)
{
    (void)OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL);
}

int http_upstream_tls(struct ssl_ctx_st **out, struct err *err)
{
    SSL_CTX *tls = SSL_CTX_new(TLS_client_method());

    if (!tls)
        return err_set(err, ERR_INTERNAL, "OpenSSL has no TLS");
    (void)SSL_CTX_set_min_proto_version(tls, TLS1_2_VERSION);
    SSL_CTX_set_verify(tls, SSL_VERIFY_PEER, NULL);
    if (SSL_CTX_set_default_verify_paths(tls) != 1) {
        SSL_CTX_free(tls);
        return err_set(err, ERR_UNAVAILABLE, "there are no certificates to verify an upstream by");
    }
    *out = tls;
    return 0;
}

void http_upstream_tls_free(struct ssl_ctx_st *tls)
{
    SSL_CTX_free(tls);
}

/* 0: done, or to be tried again; -1. */
static int settle_tls(struct http_upstream *client, int answer, struct err *err)
{
    long verdict = client->ssl ? SSL_get_verify_result(client->ssl) : X509_V_OK;

    switch (SSL_get_error(client->ssl, answer)) {
    case SSL_ERROR_WANT_READ:
        return wait_for(client, POLLIN, err);
    case SSL_ERROR_WANT_WRITE:
        return wait_for(client, POLLOUT, err);
    default:
        break;
    }
    ERR_clear_error();
    if (verdict != X509_V_OK)
        return err_set(err, ERR_INTEGRITY, "the certificate of the upstream: %s",
                       X509_verify_cert_error_string(verdict));
    return err_set(err, ERR_UNAVAILABLE, "the connection to the upstream broke off");
}

static int begin_tls(struct http_upstream *client, struct err *err)
{
    const char *host = client->config.origin->host;
    struct in6_addr address;
    bool is_address =
        inet_pton(AF_INET, host, &address) == 1 || inet_pton(AF_INET6, host, &address) == 1;
    int answer;

    client->ssl = SSL_new(client->config.tls);
    if (!client->ssl || SSL_set_fd(client->ssl, client->fd) != 1)
        return err_set(err, ERR_INTERNAL, "OpenSSL has no connection");
    if (is_address ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(client->ssl), host) != 1
                   : (SSL_set1_host(client->ssl, host) != 1 ||
                      SSL_ctrl(client->ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                               (void *)(uintptr_t)host) != 1))
        return err_set(err, ERR_INVALID, "the name of the upstream cannot be verified");
    while ((answer = SSL_connect(client->ssl)) != 1)
        if (settle_tls(client, answer, err) < 0)
            return -1;
    return 0;
}

/* ---- bytes ---- */

static int write_bytes(struct http_upstream *client, struct str bytes, struct err *err)
{
    while (bytes.n) {
        int most = bytes.n > 1 << 20 ? 1 << 20 : (int)bytes.n;
        ssize_t n = client->ssl ? SSL_write(client->ssl, bytes.p, most)
                                : send(client->fd, bytes.p, (size_t)most, MSG_NOSIGNAL);

        if (n > 0) {
            bytes = (struct str){bytes.p + n, bytes.n - (size_t)n};
            continue;
        }
        if (client->ssl) {
            if (settle_tls(client, (int)n, err) < 0)
                return -1;
        } else if (errno == EAGAIN) {
            if (wait_for(client, POLLOUT, err) < 0)
                return -1;
        } else if (errno != EINTR) {
            return err_set(err, ERR_UNAVAILABLE, "the upstream does not listen: %s",
                           strerror(errno));
        }
    }
    return 0;
}

/* More input, behind what is there; has_ended when there is none. */
static int read_bytes(struct http_upstream *client, char *to, size_t room, size_t *out,
                      struct err *err)
{
    for (;;) {
        ssize_t n =
            client->ssl ? SSL_read(client->ssl, to, (int)room) : recv(client->fd, to, room, 0);

        if (n > 0) {
            *out = (size_t)n;
            return 0;
        }
        if (client->ssl ? SSL_get_error(client->ssl, (int)n) == SSL_ERROR_ZERO_RETURN : n == 0) {
            client->has_ended = true;
            *out = 0;
            return 0;
        }
        if (client->ssl) {
            if (settle_tls(client, (int)n, err) < 0)
                return -1;
        } else if (errno == EAGAIN) {
            if (wait_for(client, POLLIN, err) < 0)
                return -1;
        } else if (errno != EINTR) {
            return err_set(err, ERR_UNAVAILABLE, "the upstream broke off: %s", strerror(errno));
        }
    }
}

/* ---- for the caller ---- */

int http_upstream_open(const struct http_upstream_config *config, struct http_upstream **out,
                       struct err *err)
{
    AUTO(http_upstream) struct http_upstream *client = xcalloc(1, sizeof *client);

    client->config = *config;
    client->fd = -1;
    client->head_text = BUF(HTTP_HEAD_MAX);
    client->ends_us = clock_us() + (uint64_t)config->all_ms * 1000;
    wait_until(client, config->connect_ms);
    if (connect_any(client, err) < 0 || (config->origin->is_tls && begin_tls(client, err) < 0))
        return -1;
    *out = TAKE(client);
    return 0;
}

void http_upstream_free(struct http_upstream *client)
{
    if (!client)
        return;
    SSL_free(client->ssl);
    if (client->fd >= 0)
        (void)close(client->fd);
    buf_done(&client->head_text);
    free(client);
}

int http_upstream_ask(struct http_upstream *client, const char *method, const char *target,
                      const struct http_header *headers, size_t n, struct str body, struct err *err)
{
    AUTO_BUF struct buf head = BUF(HTTP_ANSWER_HEAD_MAX);
    const struct http_ask ask = {
        .method = str_of(method),
        .target = str_of(target),
        .host = str_of(client->config.origin->name),
        .headers = headers,
        .header_count = n,
        .framing = HTTP_LENGTH,
        .length = body.n,
        .close = true,
    };

    wait_until(client, client->config.idle_ms);
    return http_ask_write(&ask, &head, err) < 0 || write_bytes(client, buf_str(&head), err) < 0
               ? -1
               : write_bytes(client, body, err);
}

static int read_head(struct http_upstream *client, int *taken, struct err *err)
{
    struct http_scan scan = {0};

    for (;;) {
        char piece[4096];
        size_t n = 0;

        *taken = http_answer_read(&scan, buf_str(&client->head_text), HTTP_POST, &client->head);
        if (*taken > 0)
            return 0;
        if (*taken < 0 || client->has_ended)
            return err_set(err, ERR_INTEGRITY, "the upstream does not speak HTTP: %s",
                           *taken < 0 ? http_fault_text(scan.fault) : "it closed the connection");
        if (read_bytes(client, piece, sizeof piece, &n, err) < 0)
            return -1;
        if (buf_add(&client->head_text, piece, n, err) < 0)
            return err_set(err, ERR_INTEGRITY, "the upstream's head has no end");
    }
}

/* Answers that only say that another one comes are passed over, a few of them. */
int http_upstream_head(struct http_upstream *client, uint64_t body_max,
                       const struct http_head **out, struct err *err)
{
    int taken = 0;

    wait_until(client, client->config.head_ms);
    for (int i = 0; i < 4; i++) {
        if (read_head(client, &taken, err) < 0)
            return -1;
        if (client->head.status >= 200) {
            http_body_init(&client->body, &client->head, body_max);
            client->rest =
                (struct str){client->head_text.p + taken, client->head_text.n - (size_t)taken};
            *out = &client->head;
            return 0;
        }
        memmove(client->head_text.p, client->head_text.p + taken,
                client->head_text.n - (size_t)taken);
        client->head_text.n -= (size_t)taken;
    }
    return err_set(err, ERR_INTEGRITY, "the upstream does not come to the point");
}

/* Most faults are the same on both sides; that one speaks of a request. */
static int refuse_body(const struct http_body *body, struct err *err)
{
    if (body->fault == HTTP_FAULT_BODY_TOO_LARGE)
        return err_set(err, ERR_INTEGRITY, "the upstream's answer has more than %llu bytes",
                       (unsigned long long)body->max);
    return err_set(err, ERR_INTEGRITY, "the upstream's body: %s", http_fault_text(body->fault));
}

int http_upstream_read(struct http_upstream *client, struct str *out, struct err *err)
{
    wait_until(client, client->config.idle_ms);
    for (;;) {
        size_t n = 0;

        switch (http_body_next(&client->body, &client->rest, out)) {
        case HTTP_BODY_DATA:
            return 1;
        case HTTP_BODY_END:
            return 0;
        case HTTP_BODY_REFUSED:
            return refuse_body(&client->body, err);
        case HTTP_BODY_MORE:
            break;
        }
        if (read_bytes(client, client->input, sizeof client->input, &n, err) < 0)
            return -1;
        client->rest = (struct str){client->input, n};
        if (n == 0)
            return http_body_close(&client->body) < 0
                       ? err_set(err, ERR_INTEGRITY, "the upstream's answer is cut off")
                       : 0;
    }
}
