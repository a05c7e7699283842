/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/egress/first.h"

#include <arpa/inet.h>
#include <string.h>

#include "lib/http/http.h"

#define SOCKS_VERSION 5
#define SOCKS_NO_AUTHENTICATION 0
#define SOCKS_NO_METHOD 0xff
#define SOCKS_CONNECT 1
#define SOCKS_REQUEST_HEAD 4
#define TLS_HANDSHAKE 22
#define TLS_MAJOR 3

enum socks_address {
    SOCKS_V4 = 1,
    SOCKS_NAME = 3,
    SOCKS_V6 = 4,
};

static enum first_kind tell_tls(struct str in)
{
    if (in.n < 2)
        return FIRST_MORE;
    return in.p[1] == TLS_MAJOR ? FIRST_TLS : FIRST_OTHER;
}

/* HTTP/2's own first line is one that HTTP/1 forbids: PRI * HTTP/2.0. It is told by the codec. */
static enum first_kind tell_http(struct str in)
{
    size_t most = in.n < HTTP_METHOD_MAX + 1 ? in.n : HTTP_METHOD_MAX + 1;
    const char *blank = memchr(in.p, ' ', most);
    struct str method = {in.p, blank ? (size_t)(blank - in.p) : most};

    if (!http_is_token(method))
        return FIRST_OTHER;
    if (blank)
        return FIRST_HTTP;
    return most > HTTP_METHOD_MAX ? FIRST_OTHER : FIRST_MORE;
}

enum first_kind first_kind_of(struct str in)
{
    if (in.n == 0)
        return FIRST_MORE;
    switch (in.p[0]) {
    case TLS_HANDSHAKE:
        return tell_tls(in);
    case SOCKS_VERSION:
        return FIRST_SOCKS5;
    default:
        return tell_http(in);
    }
}

/* ---- SOCKS5 ---- */

int socks_greeting_read(struct str in, bool *open)
{
    size_t methods;

    if (in.n >= 1 && in.p[0] != SOCKS_VERSION)
        return -1;
    if (in.n < 2)
        return 0;
    methods = (unsigned char)in.p[1];
    if (methods == 0)
        return -1;
    if (in.n < 2 + methods)
        return 0;
    *open = memchr(in.p + 2, SOCKS_NO_AUTHENTICATION, methods) != NULL;
    return (int)(2 + methods);
}

static int refuse(enum socks_reply why, enum socks_reply *reply)
{
    *reply = why;
    return -1;
}

/* A name that ends early or has control bytes in it would be another one to somebody else. */
static bool is_plain(struct str name)
{
    for (size_t i = 0; i < name.n; i++)
        if ((unsigned char)name.p[i] <= ' ' || (unsigned char)name.p[i] >= 0x7f)
            return false;
    return name.n > 0;
}

/* Bytes of the address behind the head, 0 for an unknown kind; *skip of them say how long it is. */
static size_t address_bytes(struct str in, size_t *skip)
{
    *skip = 0;
    switch (in.p[SOCKS_REQUEST_HEAD - 1]) {
    case SOCKS_V4:
        return 4;
    case SOCKS_V6:
        return 16;
    case SOCKS_NAME:
        *skip = 1;
        return 1 + (size_t)(unsigned char)in.p[SOCKS_REQUEST_HEAD];
    default:
        return 0;
    }
}

static bool read_host(struct str in, size_t skip, size_t n, struct socks_request *out)
{
    const char *at = in.p + SOCKS_REQUEST_HEAD + skip;
    struct str name = {at, n - skip};

    if (skip) {
        if (!is_plain(name))
            return false;
        memcpy(out->host, name.p, name.n);
        out->host[name.n] = '\0';
        return true;
    }
    return inet_ntop(n == 4 ? AF_INET : AF_INET6, at, out->host, sizeof out->host) != NULL;
}

int socks_request_read(struct str in, struct socks_request *out, enum socks_reply *reply)
{
    struct socks_request read = {.port = 0};
    size_t skip, n, whole;

    if (in.n >= 1 && in.p[0] != SOCKS_VERSION)
        return refuse(SOCKS_FAILED, reply);
    if (in.n >= 2 && in.p[1] != SOCKS_CONNECT)
        return refuse(SOCKS_COMMAND, reply);
    if (in.n >= 3 && in.p[2] != 0)
        return refuse(SOCKS_FAILED, reply);
    if (in.n < SOCKS_REQUEST_HEAD + 1)
        return 0;
    n = address_bytes(in, &skip);
    if (n == 0)
        return refuse(SOCKS_ADDRESS, reply);
    whole = SOCKS_REQUEST_HEAD + n + 2;
    if (in.n < whole)
        return 0;
    if (!read_host(in, skip, n, &read))
        return refuse(SOCKS_ADDRESS, reply);
    read.port =
        (uint16_t)((unsigned)(unsigned char)in.p[whole - 2] << 8 | (unsigned char)in.p[whole - 1]);
    *out = read;
    return (int)whole;
}

void socks_choice_write(bool open, char out[SOCKS_CHOICE_BYTES])
{
    out[0] = SOCKS_VERSION;
    out[1] = open ? SOCKS_NO_AUTHENTICATION : (char)SOCKS_NO_METHOD;
}

/* Where we are bound is nobody's business. */
void socks_reply_write(enum socks_reply reply, char out[SOCKS_REPLY_BYTES])
{
    memset(out, 0, SOCKS_REPLY_BYTES);
    out[0] = SOCKS_VERSION;
    out[1] = (char)reply;
    out[3] = SOCKS_V4;
}
