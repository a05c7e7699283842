/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* TLS that is looked into: between the client's hello and the first request inside.
 *
 *     hello          the name it says is the one that was allowed
 *     (lookup, dial) as for any connection, when it is not open yet
 *     shake server   upstream first, with the protocols the client offers and we speak
 *     shake client   as the allowed host, with the protocol the server took
 *     head, or h2    requests, each judged
 *
 * What goes wrong with the server is said to the client inside its own TLS, where it can read it.
 */

#include "cmd/egress/conn-private.h"
#include "lib/tls/tls.h"

struct h2_relay;

struct intercept {
    struct tls_hello hello;
    enum tls_fault fault; /* of the server, to be told */
    char text[256];       /* and what about it */
    struct h2_relay *h2;
    uint64_t h2_progress;
    bool h2_failed;
};

void intercept_free(struct intercept *intercept);
/* The first bytes are TLS, inside a connection whose rule looks at requests. */
enum step intercept_begin(struct conn *conn);
/* The server took too long with its handshake. */
enum step intercept_give_up(struct conn *conn);
/* The server's socket is open, and must speak TLS first. */
enum step intercept_dialled(struct conn *conn);

enum step step_hello(struct conn *conn);
enum step step_shake_server(struct conn *conn);
enum step step_shake_client(struct conn *conn);
enum step step_h2(struct conn *conn);

/* Both sides settled on HTTP/2. */
enum step h2_begin(struct conn *conn);
void h2_free(struct h2_relay *relay);
