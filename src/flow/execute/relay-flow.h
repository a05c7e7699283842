/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lib/base/buf.h"
#include "lib/crypto/crypto.h"

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct stream_result;

/* One direction: bytes wait in `held` until the sink takes them. */
struct flow {
    int from;   /* -1: closed */
    int to;     /* -1: nobody listens; bytes are still counted */
    char *held; /* CHUNK_BYTES of them, once there was something to hold */
    size_t held_at, held_n;
    size_t step; /* how much one write may take */
    uint64_t bytes;
    struct hasher hasher;
    struct buf kept;
    bool keep;
    bool truncated;
    bool unread;
    bool close_to;   /* the sink is ours to close when the source ends */
    bool close_from; /* the source is ours to close when the sink is gone */
};

/* keep: the first keep_max bytes stay in `kept`, which the caller ends, as he frees `held`. */
void flow_init(struct flow *flow, int from, int to, bool keep, uint64_t keep_max);

/* Nothing more comes; the sink goes when it has what is held. */
void flow_close_source(struct flow *flow);

/* What this flow waits for now, and what is done once poll has answered. */
struct pollfd flow_poll(const struct flow *flow);
void flow_act(struct flow *flow, const struct pollfd *polled);

bool flow_is_open(const struct flow *flow);

/* What is there by now, and no more than a pipe holds: whoever goes on writing is not waited for.
 */
void flow_take_rest(struct flow *flow);
/* Nobody is waited for any more: what is still open was left unread. */
void flow_leave(struct flow *flow);

/* What is known of it. It ends with that. */
void flow_end(struct flow *flow, struct arena *mem, struct stream_result *out);
