/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What happened, one JSON object each, in the words of OCSF (docs/formats/egress-events.md): the
 * latest in memory for who asks, and all of them in a journal of two files that take turns, each
 * begun anew when it is its turn. What was dropped is counted. */

#include "cmd/egress/ceilings.h"
#include "lib/json/json.h"

enum event_class {
    EVENT_CONNECTION, /* OCSF network activity, 4001 */
    EVENT_REQUEST,    /* OCSF HTTP activity, 4002 */
    EVENT_NAME,       /* OCSF DNS activity, 4003 */
    EVENT_RULES,      /* OCSF entity management, 3004: other rules */
};

/* Texts may be the sandbox's own words; they are cut and escaped here. */
struct event {
    enum event_class class;
    bool allowed;
    const char *sandbox;
    struct str host;
    uint16_t port;
    struct str method;
    struct str path; /* without its query, where secrets are */
    const char *rule;
    const char *reason; /* a code, or "" */
    struct str binary;
    int status; /* of the answer, or 0 */
};

struct events {
    char *ring[EVENTS_KEPT];
    uint64_t next; /* number of the next one; they begin with 1 */
    int journal[2];
    unsigned turn;
    uint64_t size; /* of the one whose turn it is */
};

/* The journal's files in a folder. */
int events_open(struct events *events, int dir_fd, struct err *err) MUST_CHECK;
void events_add(struct events *events, const struct event *event);
/* As lib/egress/control.h has it. */
int events_json(const struct events *events, uint64_t after, struct buf *out,
                struct err *err) MUST_CHECK;
/* The last refusals of a sandbox, the latest first, as a JSON list. */
int events_denials(const struct events *events, const char *sandbox, unsigned last, struct buf *out,
                   struct err *err) MUST_CHECK;
