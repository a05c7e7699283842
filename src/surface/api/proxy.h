/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to surface/api: a request for a server inside a sandbox, and its answer.
 *
 * That server is whatever the sandbox made of it. It sees nothing of ours: no token, no cookie, no
 * name. Its answer is shown under our name, so it must not be able to act under it: pages get an
 * origin of their own (CSP sandbox), no cookie is set, no redirect leads a client that carries our
 * token anywhere but back to the same port. */

#include "surface/api/call.h"

/* The head of the request as the server inside gets it. */
int proxy_ask(struct call *call, uint16_t port, struct buf *out, struct err *err) MUST_CHECK;
/* What the client sees of the head of the answer, as headers of the call. */
void proxy_answer(struct call *call, const struct http_head *head, uint16_t port);

/* Where a Location leads, as a path of ours that stays behind the prefix; NULL: somewhere else. */
const char *proxy_location(struct arena *mem, struct str prefix, struct str path, uint16_t port,
                           struct str location);

/* Both ways until both are done; takes the socket. */
int proxy_relay(struct call *call, int socket, uint16_t port, struct err *err) MUST_CHECK;
