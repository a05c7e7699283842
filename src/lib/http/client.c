/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/http/http-client.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "lib/base/memory.h"
#include "lib/base/text.h"
#include "lib/http/http-limits.h"

#define CONNECT_S 5
#define READ_BYTES (64 * KIB)
#define WS_KEY_BYTES 16

struct http_client {
    int fd;
    unsigned peer;
    int wait_ms; /* -1: as long as it takes */
    struct buf in;
    size_t at; /* what stands before it was handed out */
    struct http_body body;
    bool in_body;
    bool closed; /* by the other side */
    struct buf out;
};

/* ---- the connection ---- */

static int fill_address(const char *path, struct sockaddr_un *out, struct err *err)
{
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof out->sun_path)
        return err_set(err, ERR_INVALID, "%.200s: too long for the path of a socket", path);
    memcpy(out->sun_path, path, strlen(path));
    return 0;
}

static int connect_to(int fd, const char *path, struct err *err)
{
    const struct timeval patience = {.tv_sec = CONNECT_S}; /* a full backlog is waited for */
    const struct timeval none = {0};
    struct sockaddr_un address;
    int failed;

    if (fill_address(path, &address, err) < 0)
        return -1;
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    do
        failed = connect(fd, (const struct sockaddr *)&address, sizeof address);
    while (failed && errno == EINTR);
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &none, sizeof none);
    if (!failed)
        return 0;
    (void)err_os(err, "connecting to %s", path);
    err->code = ERR_UNAVAILABLE;
    return -1;
}

int http_client_open(const char *path, struct http_client **out, struct err *err)
{
    AUTO_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct ucred peer = {0};
    socklen_t size = sizeof peer;
    struct http_client *client;

    if (fd < 0)
        return err_os(err, "making a socket");
    if (connect_to(fd, path, err) < 0)
        return -1;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
        return err_os(err, "asking who listens at %s", path);
    client = xcalloc(1, sizeof *client);
    client->fd = TAKE_FD(fd);
    client->peer = peer.uid;
    client->wait_ms = -1;
    client->in = BUF(HTTP_CLIENT_INPUT_MAX);
    client->out = BUF(HTTP_CLIENT_OUTPUT_MAX);
    *out = client;
    return 0;
}

void http_client_free(struct http_client *client)
{
    if (!client)
        return;
    (void)close(client->fd);
    buf_done(&client->in);
    buf_done(&client->out);
    free(client);
}

unsigned http_client_peer(const struct http_client *client)
{
    return client->peer;
}

void http_client_patience(struct http_client *client, unsigned wait_ms)
{
    client->wait_ms = wait_ms ? (int)wait_ms : -1;
}

int http_client_fd(const struct http_client *client)
{
    return client->fd;
}

/* ---- sending ---- */

static int broken(struct err *err)
{
    (void)err_os(err, "the other side is gone");
    err->code = ERR_UNAVAILABLE;
    return -1;
}

/* Everything, or the other side is gone. 1: it said something meanwhile, and does not read on. */
static int send_bytes(struct http_client *client, struct str bytes, struct err *err)
{
    while (bytes.n) {
        ssize_t n = send(client->fd, bytes.p, bytes.n, MSG_NOSIGNAL | MSG_DONTWAIT);
        struct pollfd polled = {.fd = client->fd, .events = POLLIN | POLLOUT};

        if (n > 0) {
            bytes.p += n;
            bytes.n -= (size_t)n;
            continue;
        }
        if (n < 0 && (errno == EPIPE || errno == ECONNRESET))
            return 1; /* its last words may still be there to read */
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return broken(err);
        if (poll(&polled, 1, client->wait_ms) == 0)
            return err_set(err, ERR_TIMEOUT, "the other side takes nothing any more");
        if ((polled.revents & (POLLIN | POLLHUP)) && !(polled.revents & POLLOUT))
            return 1;
    }
    return 0;
}

int http_client_ask(struct http_client *client, const struct http_ask *ask, struct str body,
                    struct err *err)
{
    int sent;

    buf_clear(&client->out);
    client->in_body = false;
    if (http_ask_write(ask, &client->out, err) < 0)
        return -1;
    sent = send_bytes(client, buf_str(&client->out), err);
    if (sent == 0 && body.n)
        sent = send_bytes(client, body, err);
    return sent < 0 ? -1 : 0;
}

int http_client_send(struct http_client *client, struct str piece, struct err *err)
{
    char head[HTTP_CHUNK_HEAD_BYTES];
    struct pollfd polled = {.fd = client->fd, .events = POLLIN};
    int sent;

    if (client->at < client->in.n || poll(&polled, 1, 0) > 0)
        return 1;
    if (!piece.n)
        return send_bytes(client, STR_LIT(HTTP_LAST_CHUNK), err);
    sent = send_bytes(client, (struct str){head, http_chunk_head(piece.n, head)}, err);
    if (sent == 0)
        sent = send_bytes(client, piece, err);
    return sent ? sent : send_bytes(client, STR_LIT("\r\n"), err);
}

/* ---- hearing ---- */

static struct str input(const struct http_client *client)
{
    if (!client->in.p)
        return (struct str){0}; /* nothing came yet, and nothing has no places to count from */
    return (struct str){client->in.p + client->at, client->in.n - client->at};
}

static void forget_taken(struct http_client *client)
{
    if (client->at == 0)
        return;
    memmove(client->in.p, client->in.p + client->at, client->in.n - client->at);
    client->in.n -= client->at;
    client->at = 0;
}

/* 1: there is more; 0: the other side has closed. */
static int read_more(struct http_client *client, int flags, struct err *err)
{
    char piece[READ_BYTES];
    struct pollfd polled = {.fd = client->fd, .events = POLLIN};
    ssize_t n;

    do {
        if (!(flags & MSG_DONTWAIT) && client->wait_ms >= 0 &&
            poll(&polled, 1, client->wait_ms) == 0)
            return err_set(err, ERR_TIMEOUT, "no answer within %d s", client->wait_ms / 1000);
        n = recv(client->fd, piece, sizeof piece, flags);
    } while (n < 0 && errno == EINTR);
    if (n < 0 && errno == EAGAIN)
        return 1;
    if (n < 0 && errno != ECONNRESET)
        return broken(err);
    if (n <= 0) {
        client->closed = true;
        return 0;
    }
    return buf_add(&client->in, piece, (size_t)n, err) < 0 ? -1 : 1;
}

static int read_head(struct http_client *client, enum http_method asked, struct http_head *out,
                     struct err *err)
{
    struct http_scan scan = {0};
    int n;

    forget_taken(client);
    while ((n = http_answer_read(&scan, input(client), asked, out)) == 0) {
        int more = read_more(client, 0, err);

        if (more < 0)
            return -1;
        if (more == 0)
            return err_set(err, ERR_UNAVAILABLE, "the other side closed without an answer");
    }
    if (n < 0)
        return err_set(err, ERR_INTEGRITY, "an answer that is not HTTP as we speak it: %s",
                       http_fault_text(scan.fault));
    client->at = (size_t)n;
    return 0;
}

int http_client_answer(struct http_client *client, enum http_method asked, struct http_head *out,
                       struct err *err)
{
    do
        if (read_head(client, asked, out, err) < 0)
            return -1;
    while (out->status < 200 && out->status != 101);
    client->in_body = true;
    http_body_init(&client->body, out, UINT64_MAX);
    return 0;
}

int http_client_body(struct http_client *client, struct str *out, struct err *err)
{
    for (;;) {
        struct str in = input(client);
        enum http_body_event event = http_body_next(&client->body, &in, out);
        int more;

        client->at = client->in.n - in.n;
        if (event == HTTP_BODY_DATA)
            return 1;
        if (event == HTTP_BODY_END)
            return 0;
        if (event == HTTP_BODY_REFUSED)
            return err_set(err, ERR_INTEGRITY, "an answer that is not HTTP as we speak it: %s",
                           http_fault_text(client->body.fault));
        forget_taken(client);
        more = read_more(client, 0, err);
        if (more < 0)
            return -1;
        if (more == 0)
            return http_body_close(&client->body) == 0
                       ? 0
                       : err_set(err, ERR_UNAVAILABLE, "the answer broke off");
    }
}

int http_client_body_all(struct http_client *client, struct buf *out, struct err *err)
{
    struct str piece;
    int got;

    while ((got = http_client_body(client, &piece, err)) == 1)
        if (buf_add_str(out, piece, err) < 0)
            return -1;
    return got;
}

/* ---- WebSocket ---- */

static int make_key(char out[WS_KEY_BYTES * 2], struct err *err)
{
    AUTO_BUF struct buf text = BUF(WS_KEY_BYTES * 2);
    unsigned char bytes[WS_KEY_BYTES];

    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return err_os(err, "getting random bytes");
    if (base64_encode((struct str){(const char *)bytes, sizeof bytes}, &text, err) < 0)
        return -1;
    memcpy(out, text.p, text.n + 1);
    return 0;
}

static int check_accept(const struct http_head *head, const char *key, struct err *err)
{
    char accept[HTTP_WS_ACCEPT_BYTES];

    http_ws_accept_key(str_of(key), accept);
    if (!head->has_upgrade || !http_list_has(http_find(head, "upgrade"), "websocket") ||
        !str_is(http_find(head, "sec-websocket-accept"), accept))
        return err_set(err, ERR_INTEGRITY, "the handshake was not answered as it must be");
    return 0;
}

int http_client_upgrade(struct http_client *client, struct str target,
                        const struct http_header *headers, size_t n, int *status, struct err *err)
{
    struct http_header all[16];
    char key[WS_KEY_BYTES * 2];
    struct http_ask ask = {.method = STR_LIT("GET"),
                           .target = target,
                           .host = STR_LIT("localhost"),
                           .headers = all,
                           .upgrade = true};
    struct http_head head;

    if (n + 3 > COUNT(all))
        return err_set(err, ERR_INTERNAL, "too many headers");
    if (make_key(key, err) < 0)
        return -1;
    all[0] = (struct http_header){STR_LIT("Upgrade"), STR_LIT("websocket")};
    all[1] = (struct http_header){STR_LIT("Sec-WebSocket-Version"), STR_LIT("13")};
    all[2] = (struct http_header){STR_LIT("Sec-WebSocket-Key"), str_of(key)};
    for (size_t i = 0; i < n; i++)
        all[3 + i] = headers[i];
    ask.header_count = n + 3;
    if (http_client_ask(client, &ask, (struct str){0}, err) < 0 ||
        http_client_answer(client, HTTP_GET, &head, err) < 0)
        return -1;
    *status = head.status;
    return head.status == 101 ? check_accept(&head, key, err) : 0;
}

int http_client_say(struct http_client *client, enum http_ws_kind kind, struct str payload,
                    struct err *err)
{
    unsigned char mask[4];
    struct str rest;

    buf_clear(&client->out);
    if (getrandom(mask, sizeof mask, 0) != (ssize_t)sizeof mask)
        return err_os(err, "getting random bytes");
    if (http_ws_write(kind, payload, mask, &client->out, err) < 0)
        return -1;
    /* A server that waits for us to read meanwhile must not make us wait for it to read. */
    for (rest = buf_str(&client->out); rest.n;) {
        ssize_t n = send(client->fd, rest.p, rest.n, MSG_NOSIGNAL | MSG_DONTWAIT);
        struct pollfd polled = {.fd = client->fd, .events = POLLIN | POLLOUT};

        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return broken(err);
        if (n > 0) {
            rest.p += n;
            rest.n -= (size_t)n;
            continue;
        }
        (void)poll(&polled, 1, -1);
        if ((polled.revents & (POLLIN | POLLHUP)) && read_more(client, MSG_DONTWAIT, err) < 0)
            return -1;
        if (client->closed)
            return broken(err);
    }
    return 0;
}

int http_client_hear(struct http_client *client, enum http_ws_kind *kind, struct str *payload,
                     struct err *err)
{
    for (;;) {
        long n = http_ws_read(input(client), HTTP_CLIENT_MESSAGE_MAX, kind, payload, err);
        size_t before;

        if (n < 0)
            return -1;
        client->at += (size_t)n;
        if (n && *kind == HTTP_WS_PING) {
            if (http_client_say(client, HTTP_WS_PONG, *payload, err) < 0)
                return -1;
            continue;
        }
        if (n && *kind != HTTP_WS_PONG)
            return 1;
        if (n)
            continue;
        if (client->closed)
            return err_set(err, ERR_UNAVAILABLE, "the other side closed the connection");
        forget_taken(client);
        before = client->in.n;
        if (read_more(client, MSG_DONTWAIT, err) < 0)
            return -1;
        if (client->in.n == before && !client->closed)
            return 0;
    }
}
