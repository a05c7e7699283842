/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a connection's first bytes say it is, and SOCKS5 (RFC 1928) as bytes. The verdict never
 * depends on how the bytes were cut into reads. */

#include "lib/base/str.h"

enum first_kind {
    FIRST_MORE = 0, /* not told yet */
    FIRST_HTTP,     /* HTTP/1: a method and a blank */
    FIRST_TLS,      /* a handshake record */
    FIRST_SOCKS5,
    FIRST_OTHER,
};

enum first_kind first_kind_of(struct str in);

/* ---- SOCKS5 ---- */

#define SOCKS_HOST_BYTES 256

enum socks_reply {
    SOCKS_DONE = 0,
    SOCKS_FAILED = 1,
    SOCKS_NOT_ALLOWED = 2,
    SOCKS_UNREACHABLE = 4,
    SOCKS_REFUSED = 5,
    SOCKS_EXPIRED = 6,
    SOCKS_COMMAND = 7,
    SOCKS_ADDRESS = 8,
};

/* Bytes of the greeting, 0 when it is not whole, -1 when it is none. *open: "no authentication" is
 * among the methods, the only one we have. */
int socks_greeting_read(struct str in, bool *open);

struct socks_request {
    char host[SOCKS_HOST_BYTES]; /* a name as sent, or an address as text */
    uint16_t port;
};

/* Bytes of the request, 0 when it is not whole, -1 and what to reply. CONNECT only. */
int socks_request_read(struct str in, struct socks_request *out, enum socks_reply *reply);

#define SOCKS_CHOICE_BYTES 2
#define SOCKS_REPLY_BYTES 10
void socks_choice_write(bool open, char out[SOCKS_CHOICE_BYTES]);
void socks_reply_write(enum socks_reply reply, char out[SOCKS_REPLY_BYTES]);
