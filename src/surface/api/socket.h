/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to surface/api: a command over a WebSocket. The first message is the body a POST would
 * have; the events of a stream come back. Meanwhile binary messages are its input, and text
 * messages are objects with a "type":
 *
 *    {"type":"stdin","data":…}  or "data_b64"      {"type":"stdin_end"}
 *    {"type":"signal","signal":15}                 {"type":"resize","rows":24,"cols":80} */

#include "surface/api/call.h"

/* In the loop: answers the handshake; -1: it was refused and answered. */
int socket_accept(struct call *call, struct http_exchange *x, const struct http_head *head);
/* In the loop: the handler is done and never began a stream. */
void socket_finish(struct call *call);
