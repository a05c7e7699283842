/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Work that blocks, on threads of its own: the loop never waits for a sandbox.
 *
 * A pool has a ceiling of threads and of waiting jobs. Threads are made when there is work and
 * none is free, and end when they have been idle for a while. Jobs of different owners take turns:
 * whoever queues ten thousand waits for himself. */

#include "lib/base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct jobs;

struct jobs_config {
    const char *name; /* of the threads, at most 15 characters */
    size_t threads_max;
    size_t waiting_max;
    size_t stack_bytes;
};

/* One piece of work; stands in the caller's own struct and belongs to the pool until run returns.
 * Jobs with the same owner keep their order. */
struct job {
    void (*run)(struct job *job);
    void (*drop)(struct job *job); /* instead of run, from jobs_stop() */
    const void *owner;
    struct job *next; /* private */
};

struct jobs_numbers {
    size_t threads;
    size_t running;
    size_t waiting;
};

int jobs_open(const struct jobs_config *config, struct jobs **out, struct err *err) MUST_CHECK;
/* Nothing is taken any more, and what waits is dropped, in this thread; what runs goes on. */
void jobs_stop(struct jobs *jobs);
/* Waits until what runs has ended. */
void jobs_free(struct jobs *jobs);
AUTO_TYPE(jobs)

/* ERR_LIMIT: too many are waiting; ERR_UNAVAILABLE: there is no thread and none can be made. The
 * job is the caller's again then. */
int jobs_take(struct jobs *jobs, struct job *job, struct err *err) MUST_CHECK;
struct jobs_numbers jobs_look(struct jobs *jobs);
