/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One conversation with a daemon: which request is allowed when, and what it does
 * (lib/keeper/keeper-wire.h). Knows no sockets, so that a test can be the other side. */

#include <pthread.h>

#include "lib/keeper/keeper-wire.h"

enum session_state {
    SESSION_NEW,
    SESSION_READY,   /* the daemon has said hello */
    SESSION_HOLDING, /* at least one key */
};

struct session {
    pthread_mutex_t lock;
    enum session_state state;
    struct signing_key *keys[KEEPER_KEYS_MAX];
    uint32_t key_n;
};

void session_init(struct session *session);
void session_done(struct session *session);

/* A message as it came: n bytes of it, at most one more than a request has, and its descriptors,
 * which stay the caller's. */
struct session_input {
    const unsigned char *bytes;
    size_t n;
    const int *fds;
    size_t fd_n;
};

/* Fills the answer; false: it is the last one. Any thread may call it. */
bool session_take(struct session *session, const struct session_input *in,
                  struct keeper_answer *out);
