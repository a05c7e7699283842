/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One end of a connection as plain bytes: those that came and were not taken, and those that are to
 * go. Below it is a socket, or TLS on a socket; above it nobody can tell. */

#include "cmd/egress/bytes.h"
#include "cmd/egress/loop.h"
#include "cmd/egress/meter.h"

struct tls_side;

struct side {
    struct watch watch;
    struct tls_side *tls; /* NULL: plain. Ours */
    struct bytes raw;     /* off the wire, which TLS has not taken yet */
    struct bytes in;
    struct bytes out;
    bool ended;      /* nothing more comes */
    bool wire_ended; /* the same of the wire; TLS may still hold some */
    bool broken;     /* reset, or TLS failed: nothing goes either */
    bool shut;       /* our direction ends behind `out` */
    bool has_shut;
    bool hung;     /* the kernel says so again and again: it is not watched any more, only read */
    bool is_due;   /* there is more to do than could be done in one turn */
    bool is_spent; /* there was more to pass than the meters had left: it is to end */
    uint64_t bytes_in; /* on the wire */
    uint64_t bytes_out;
    struct meters meters; /* of a server's side */
};

void side_open(struct side *side, int fd, void (*on)(struct watch *watch, uint32_t events));
/* Closes the descriptor too; with `reset` the other end is told that this was no goodbye. */
void side_close(struct loop *loop, struct side *side, bool reset);

/* Reads once, as far as there is room. True: something new, if only the end. */
bool side_fill(struct side *side);
/* Takes out of TLS what has arrived already and found no room before. True: something new. */
bool side_decode(struct side *side);
/* Sends what it can. True: something went. */
bool side_flush(struct side *side);
/* Whether everything has been sent that is to go. */
bool side_is_flushed(const struct side *side);

/* Of n bytes, how many may be read or written now. */
size_t side_most(const struct side *side, size_t n);
/* Bytes wait that must not pass. */
void side_keep(struct side *side);
/* When none may be read: 0 for the end, else -1 and errno as recv() has it. Bytes are kept back. */
ssize_t side_await_end(struct side *side);

/* Waits for what there is to wait for; `reads`: also for bytes, if there is room for them. */
int side_arm(struct loop *loop, struct side *side, bool reads, struct err *err) MUST_CHECK;
