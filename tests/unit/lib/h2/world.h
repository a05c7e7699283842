/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A client and a server of plain nghttp2 with a relay between them, all in memory. */

#include <nghttp2/nghttp2.h>

#include "lib/base/queue.h"
#include "lib/h2/h2.h"

#define WORLD_STREAMS 16
#define WORLD_BODY_MAX (4UL * 1024 * 1024)

/* What became of one stream at the client. */
struct seen {
    int status;
    int interim;
    struct buf body;
    struct buf headers; /* "name: value\n", trailers behind a "--\n" */
    bool is_closed;
    uint32_t code;
};

/* One request at the server. */
struct served {
    struct buf head; /* "name: value\n" */
    struct buf body;
    size_t sent; /* of a large answer */
    char path[256];
    bool ended;
};

struct world {
    struct h2_relay *relay;
    nghttp2_session *client;
    nghttp2_session *server;
    struct seen seen[WORLD_STREAMS];     /* by stream number / 2 */
    struct served served[WORLD_STREAMS]; /* by stream number / 2 */
    size_t served_n;
    /* the owner */
    unsigned judged;
    unsigned ended;
    enum h2_ending ending;
    char fault[64];
    struct h2_stream *waiting;
    uint64_t budget;     /* bytes of requests; 0: any */
    bool is_scrubbing;   /* '#' in answers becomes '*', held back by one byte */
    bool client_is_deaf; /* takes no bytes */
    bool server_is_deaf;
    bool relay_failed;
    struct err err;
    /* what the client sends as bodies */
    struct buf upload;
    size_t uploaded[WORLD_STREAMS];
    bool has_upload_trailers;
};

void world_init(struct world *world);
void world_done(struct world *world);
/* Moves bytes, at most `step` at once, until nothing moves. */
void world_pump(struct world *world, size_t step);

/* A request of the client: "name: value\n" lines behind method and path; with_body sends
 * world->upload. Returns its place in seen[]. */
size_t world_ask(struct world *world, const char *method, const char *path, const char *lines,
                 bool with_body);
/* With all pseudo headers as the caller wants them. */
size_t world_ask_raw(struct world *world, const char *lines, bool with_body);
const char *seen_text(const struct buf *buf);
