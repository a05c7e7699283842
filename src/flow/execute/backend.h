/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "flow/execute/execute.h"
#include "model/run.h"

#include <sys/types.h>

/* One provider. Adding one is a file that fills this and a row in execute.c. */
struct backend {
    const char *name;
    int (*offer)(struct execute *execute, struct run *run, struct err *err);
    int (*begin)(struct execute *execute, struct run *run, struct err *err);
    int (*park)(struct execute *execute, struct run *run, struct err *err);
    int (*release)(struct execute *execute, struct run *run, const struct streams *streams,
                   struct err *err);
    void (*drop)(struct execute *execute, struct run *run);
};

extern const struct backend backend_mock;
extern const struct backend backend_local;
extern const struct backend backend_host; /* in no table: nobody can ask for it by name */

struct cgroup_host;
struct joints;
struct local;
void local_free(struct local *local);
void local_reap(struct execute *execute); /* outer processes that have ended since */
int local_change(struct execute *execute, struct run *run, struct err *err) MUST_CHECK;

struct execute {
    const char *state_dir;
    const struct backend *backend;
    struct local *local;        /* the sandbox that stands, or NULL */
    struct local *claim;        /* of a run that has none of its own, or NULL */
    int orders_fd;              /* see execute_obey(); -1: signals */
    int turn_fd;                /* see execute_turn(); -1: none */
    struct joints *joints;      /* to kept sandboxes that commands of ours ran in, or NULL */
    struct cgroup_host *groups; /* as local found them for its offer, or NULL */
    pid_t *outers;              /* of sandboxes that stay: children of ours that will end one day */
    size_t outer_n;
    char *state_dir_owned;
    struct offer_memory *memory;
    struct offer_memory *memory_owned; /* the same, when nobody shares one with us */
    struct spawner *spawner;           /* or NULL: every sandbox by a box of its own */
    struct spawner *spawner_owned;
    bool wants_refill; /* a pool has fewer than it should */
    int program_fd;    /* of an elevated run that is about to begin, or -1 */
    int run_lock_fd;   /* of a run between two sandboxes out of the pool, or -1; and which run */
    char run_lock_of[ID_BYTES];
};
