/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to surface/api: bytes between a handler's thread and the client, through pipes, so both
 * sides wait for each other without knowing each other. */

#include "surface/api/call.h"

/* What becomes of the bytes of a source on their way out. */
enum frame {
    FRAME_RAW,    /* they are the body */
    FRAME_NDJSON, /* {"event":"stdout","data":…} a line */
    FRAME_SSE,    /* the same as events, with ids to resume from */
    FRAME_WS,     /* the same as text messages */
};

#define STREAM_SOURCES 2 /* standard output, standard error */

struct stream_config {
    enum frame frame;
    const char *type;              /* RAW: of the content */
    unsigned sources;              /* how many; RAW has one */
    uint64_t from[STREAM_SOURCES]; /* where each source begins: ids count from there */
    const struct json *first;      /* the first event, or NULL */
    uint64_t window; /* WS: bytes of a source on the way, until the client has taken them; 0: any */
    bool is_binary;  /* WS: output is binary messages, a byte 1 or 2 for the source in front */
    int status;      /* RAW: 0 means 200; 101 leaves HTTP, with no headers but extra */
    uint64_t length; /* RAW: exactly so many bytes; 0: who knows */
    bool is_lazy; /* RAW: begins with its first byte; a handler that fails before that is answered
                   * as if there were no stream */
    const char *trailer; /* RAW: names of the fields that come behind it (call_trailer), or NULL */
};

/* In the handler's thread: the answer begins, and fds are where its bytes go. The handler closes
 * them; what it answers afterwards is the last event ("exit", or "error" when it fails), and a RAW
 * stream whose handler fails is cut off. */
int stream_open(struct call *call, const struct stream_config *config, int fds[STREAM_SOURCES],
                struct err *err) MUST_CHECK;
void stream_free(struct stream *stream); /* of a call that is over */

/* In the handler's thread: an event "waiting", for a person to answer this approval. A RAW stream
 * has no events. */
void stream_tell_waiting(struct call *call, const char *approval_id);

/* In the loop: the handler is done. */
void stream_finish(struct call *call, struct http_exchange *x);
/* In the loop: there is room again; the exchange is gone. */
void stream_writable(struct call *call, struct http_exchange *x);
void stream_gone(struct call *call);
/* In the loop: the client does not want to hear this source any more; whoever writes there finds
 * out. */
void stream_close(struct call *call, unsigned source);
/* In the loop: the client has taken so many bytes of it. */
void stream_taken(struct call *call, unsigned source, uint64_t bytes);

/* A body that is handed on as it comes: the handler's end is call->body_fd, from when its job
 * begins (inflow_begin, in its thread). Of a WebSocket's a part waits here, because orders come
 * behind it; how much was taken is told in events "stdin". */
void inflow_open(struct call *call);
int inflow_begin(struct call *call, struct err *err) MUST_CHECK;
void inflow_bytes(struct call *call, struct http_exchange *x, struct str bytes);
void inflow_end(struct call *call);
/* The handler is done. Not before: a body that stopped half way must not look complete, so when
 * the client leaves, the handler is told by an order and never reads an end. */
void inflow_finish(struct call *call);
void inflow_free(struct inflow *inflow);
