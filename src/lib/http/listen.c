/* SPDX-License-Identifier: Apache-2.0 */

/* Sockets that are listened on: our own, by address or path, and those that are handed over. */

#include "lib/http/server-private.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "lib/base/memory.h"

static int uv_fail(int code, const char *what, struct err *err)
{
    errno = -code;
    return err_os(err, "%s", what);
}

static int add_listener(struct http_server *server, bool is_unix, struct ssl_ctx_st *tls,
                        struct listener **out, struct err *err)
{
    struct listener *listener;
    int code;

    if (server->listener_count == HTTP_LISTENERS_MAX)
        return err_set(err, ERR_LIMIT, "more than %d listening sockets", HTTP_LISTENERS_MAX);
    listener = xcalloc(1, sizeof(*listener));
    listener->server = server;
    listener->tls = tls;
    listener->is_unix = is_unix;
    code = is_unix ? uv_pipe_init(server->loop, &listener->io.pipe, 0)
                   : uv_tcp_init(server->loop, &listener->io.tcp);
    if (code < 0) {
        free(listener);
        return uv_fail(code, "making a socket", err);
    }
    listener->io.handle.data = listener;
    server->listeners[server->listener_count++] = listener;
    server->open_handles++;
    if (tls != NULL && server->scratch == NULL)
        server->scratch = xmalloc(HTTP_INPUT_BYTES);
    *out = listener;
    return 0;
}

static void on_listener_closed(uv_handle_t *handle)
{
    struct listener *listener = handle->data;
    struct http_server *server = listener->server;

    free(listener->path);
    free(listener);
    server->open_handles--;
    server_maybe_stopped(server);
}

void listener_drop(struct http_server *server, struct listener *listener)
{
    for (size_t i = 0; i < server->listener_count; i++)
        if (server->listeners[i] == listener)
            server->listeners[i] = server->listeners[--server->listener_count];
    if (listener->path != NULL)
        (void)unlink(listener->path); /* already gone is as good */
    uv_close(&listener->io.handle, on_listener_closed);
}

static int start_listening(struct http_server *server, struct listener *listener, const char *where,
                           struct err *err)
{
    int code = uv_listen(&listener->io.stream, HTTP_BACKLOG, server_on_connection);

    if (code == 0)
        return 0;
    listener_drop(server, listener);
    errno = -code;
    return err_os(err, "listening on %s", where);
}

/* "address:port", "[address]:port" */
static int parse_address(const char *text, struct sockaddr_storage *out, struct err *err)
{
    const char *colon = strrchr(text, ':');
    struct str host = {text, colon ? (size_t)(colon - text) : 0};
    bool is_six = host.n > 2 && host.p[0] == '[' && host.p[host.n - 1] == ']';
    char name[64];
    uint64_t port = 0;
    int code;

    if (is_six)
        host = (struct str){host.p + 1, host.n - 2};
    if (colon == NULL || !str_u64(str_of(colon + 1), &port) || port > 65535 || host.n == 0 ||
        host.n >= sizeof(name))
        return err_set(err, ERR_INVALID,
                       "\"%s\" is not ADDRESS:PORT, such as 127.0.0.1:8080 or "
                       "[::1]:8080",
                       text);
    memcpy(name, host.p, host.n);
    name[host.n] = '\0';
    code = is_six ? uv_ip6_addr(name, (int)port, (struct sockaddr_in6 *)out)
                  : uv_ip4_addr(name, (int)port, (struct sockaddr_in *)out);
    if (code < 0)
        return err_set(err, ERR_INVALID, "\"%s\" is not an IP address; names are not looked up",
                       name);
    return 0;
}

static unsigned bound_port(const struct listener *listener)
{
    struct sockaddr_storage address = {0};
    int n = sizeof(address);

    if (uv_tcp_getsockname(&listener->io.tcp, (struct sockaddr *)&address, &n) < 0)
        return 0;
    if (address.ss_family == AF_INET6)
        return ntohs(((struct sockaddr_in6 *)&address)->sin6_port);
    return ntohs(((struct sockaddr_in *)&address)->sin_port);
}

int http_server_listen(struct http_server *server, const char *address, struct ssl_ctx_st *tls,
                       unsigned *out_port, struct err *err)
{
    struct sockaddr_storage where = {0};
    struct listener *listener = NULL;
    int code;

    if (parse_address(address, &where, err) < 0 ||
        add_listener(server, false, tls, &listener, err) < 0)
        return -1;
    code = uv_tcp_bind(&listener->io.tcp, (const struct sockaddr *)&where, 0);
    if (code < 0) {
        listener_drop(server, listener);
        errno = -code;
        return err_os(err, "listening on %s", address);
    }
    if (start_listening(server, listener, address, err) < 0)
        return -1;
    if (out_port != NULL)
        *out_port = bound_port(listener);
    return 0;
}

/* A socket that a dead server left is in the way; one that answers is somebody's. */
static int clear_path(const struct sockaddr_un *where, struct err *err)
{
    AUTO_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct stat st;

    if (lstat(where->sun_path, &st) < 0)
        return errno == ENOENT ? 0 : err_os(err, "%s", where->sun_path);
    if (!S_ISSOCK(st.st_mode))
        return err_set(err, ERR_CONFLICT, "%s exists and is not a socket", where->sun_path);
    if (fd < 0)
        return err_os(err, "making a socket");
    if (connect(fd, (const struct sockaddr *)where, sizeof(*where)) == 0 || errno == EAGAIN)
        return err_set(err, ERR_CONFLICT, "another server listens on %s", where->sun_path);
    if (errno != ECONNREFUSED)
        return err_os(err, "%s", where->sun_path);
    if (unlink(where->sun_path) < 0 && errno != ENOENT)
        return err_os(err, "removing the old %s", where->sun_path);
    return 0;
}

/* The name comes into being with this mode less the umask, and is opened up afterwards: never wider
 * than asked, and without touching the umask, which belongs to all threads. */
static int bind_unix(const struct sockaddr_un *where, unsigned mode, int *out, struct err *err)
{
    AUTO_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return err_os(err, "making a socket");
    if (fchmod(fd, (mode_t)mode) < 0)
        return err_os(err, "setting the mode of %s", where->sun_path);
    if (bind(fd, (const struct sockaddr *)where, sizeof(*where)) < 0)
        return err_os(err, "listening on %s", where->sun_path);
    if (chmod(where->sun_path, (mode_t)mode) < 0)
        return err_os(err, "setting the mode of %s", where->sun_path);
    *out = TAKE_FD(fd);
    return 0;
}

int http_server_listen_unix(struct http_server *server, const char *path, unsigned mode,
                            struct err *err)
{
    struct sockaddr_un where = {.sun_family = AF_UNIX};
    struct listener *listener = NULL;
    AUTO_FD int fd = -1;
    int code;

    if (strlen(path) >= sizeof(where.sun_path))
        return err_set(err, ERR_INVALID, "the path of a unix socket has at most %zu bytes: %s",
                       sizeof(where.sun_path) - 1, path);
    memcpy(where.sun_path, path, strlen(path) + 1);
    if (clear_path(&where, err) < 0 || bind_unix(&where, mode, &fd, err) < 0)
        return -1;
    if (add_listener(server, true, NULL, &listener, err) < 0) {
        (void)unlink(path); /* ours, a moment ago */
        return -1;
    }
    listener->path = xstrdup(path);
    code = uv_pipe_open(&listener->io.pipe, fd);
    if (code < 0) {
        listener_drop(server, listener);
        return uv_fail(code, path, err);
    }
    (void)TAKE_FD(fd);
    return start_listening(server, listener, path, err);
}

int http_server_listen_fd(struct http_server *server, int given, struct ssl_ctx_st *tls,
                          struct err *err)
{
    AUTO_FD int fd = given;
    struct listener *listener = NULL;
    int domain = 0;
    int listening = 0;
    socklen_t n = sizeof(int);
    int code;

    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) < 0 ||
        getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &n) < 0)
        return err_os(err, "descriptor %d", given);
    if (!listening || (domain != AF_INET && domain != AF_INET6 && domain != AF_UNIX))
        return err_set(err, ERR_INVALID, "descriptor %d is not a listening stream socket", given);
    if (add_listener(server, domain == AF_UNIX, tls, &listener, err) < 0)
        return -1;
    code = domain == AF_UNIX ? uv_pipe_open(&listener->io.pipe, fd)
                             : uv_tcp_open(&listener->io.tcp, fd);
    if (code < 0) {
        listener_drop(server, listener);
        return uv_fail(code, "taking over a listening socket", err);
    }
    (void)TAKE_FD(fd);
    return start_listening(server, listener, "a socket that was handed over", err);
}
