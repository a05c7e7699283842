/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lib/base/limits.h"

/* Every ceiling of the HTTP core. What a server may choose for itself (struct http_limits in
 * http-server.h) starts from the numbers here and a route may lower or raise its own body. */

/* A message's head. */
#define HTTP_START_LINE_MAX (8 * KIB)
#define HTTP_HEAD_MAX (16 * KIB) /* start line and all headers */
#define HTTP_HEADERS_MAX 100
#define HTTP_METHOD_MAX 32
#define HTTP_PATH_SEGMENTS_MAX 64

/* Its body. */
#define HTTP_BODY_DEFAULT_MAX (1 * MIB) /* for a route that says nothing else */
#define HTTP_CHUNK_LINE_MAX 256         /* size and extensions of one chunk */
#define HTTP_CHUNK_DIGITS_MAX 15        /* 2^60 - 1: a sum of sizes stays far from overflow */
#define HTTP_TRAILERS_MAX (4 * KIB)     /* all lines together */
#define HTTP_TRAILER_COUNT_MAX 16
#define HTTP_DRAIN_MAX (64 * KIB) /* unread body that is thrown away to keep a connection */

/* Compressed bodies: refused when they become larger than the route's body, or grow more than
 * this many times past a free share that short texts need. Deflate itself ends at 1032. */
#define HTTP_GZIP_RATIO_MAX 100
#define HTTP_GZIP_RATIO_FREE (64 * KIB)

/* multipart/form-data. */
#define HTTP_PARTS_MAX 64
#define HTTP_PART_HEAD_MAX (4 * KIB)
#define HTTP_PART_NAME_MAX 1024 /* of a field, and of a file */
#define HTTP_BOUNDARY_MAX 70    /* RFC 2046 */

/* What a connection holds in memory: one input (head, then whatever is not delivered yet, which
 * also bounds how far a client may pipeline), and what it has not taken of its answer. */
#define HTTP_INPUT_BYTES (64 * KIB)
#define HTTP_INPUTS_KEPT 64             /* free ones kept for the next connection */
#define HTTP_PIPELINE_MAX 64            /* requests answered before others get their turn */
#define HTTP_OUTPUT_HIGH (256 * KIB)    /* a sender is told to wait, */
#define HTTP_OUTPUT_LOW (64 * KIB)      /* and to go on */
#define HTTP_OUTPUT_MAX (8 * MIB)       /* a sender that did not wait loses the connection */
#define HTTP_ANSWER_HEAD_MAX (32 * KIB) /* what our own side may put into one head */

/* Deadlines. */
#define HTTP_HEAD_MS 10000        /* from the first byte to the end of the head; also TLS */
#define HTTP_BODY_MS 30000        /* between two pieces of a body */
#define HTTP_IDLE_MS 60000        /* between requests */
#define HTTP_WRITE_MS 30000       /* between two pieces of the answer being taken */
#define HTTP_LINGER_MS 3000       /* waiting for the other side to close first */
#define HTTP_LINGER_MAX (1 * MIB) /* read and thrown away meanwhile, then left unread */
#define HTTP_TICK_MS 100          /* how late a deadline may be noticed */

/* A server. */
#define HTTP_CONNECTIONS_MAX 4096
#define HTTP_OVERFLOW_MAX 64 /* beyond the ceiling, told 503; beyond that, closed */
#define HTTP_FDS_RESERVED 64 /* descriptors connections leave for everything else */
#define HTTP_LISTENERS_MAX 16
#define HTTP_BACKLOG 1024

/* WebSocket. */
#define HTTP_WS_MESSAGE_MAX (1 * MIB)
#define HTTP_WS_FRAGMENTS_MAX 1024 /* frames of one message */
#define HTTP_WS_PING_MS 30000
#define HTTP_WS_CLOSE_MS 2000 /* for the other side's close frame */

/* Our own clients. */
#define HTTP_CLIENT_MESSAGE_MAX (5 * MIB)
#define HTTP_CLIENT_INPUT_MAX (HTTP_CLIENT_MESSAGE_MAX + 128 * KIB)
#define HTTP_CLIENT_OUTPUT_MAX (HTTP_WS_MESSAGE_MAX + 64 * KIB)

/* Server-sent events. */
#define HTTP_SSE_NAME_MAX 128 /* event, id */
