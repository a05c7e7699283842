/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One thread, one epoll: descriptors and deadlines. A callback does a small thing and returns. */

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"

#define LOOP_SLOTS 128
#define LOOP_BATCH 128

/* A descriptor somebody waits for. Its owner closes it, after loop_forget(). */
struct watch {
    int fd;
    uint32_t armed; /* EPOLL* as the kernel has them */
    bool known;     /* to the kernel */
    void (*on)(struct watch *watch, uint32_t events);
};

/* A deadline, noticed at most TICK_MS late. All zero but `on`: not set. */
struct timer {
    struct timer *next;
    struct timer **at; /* NULL: not set */
    uint64_t due_ms;
    void (*on)(struct timer *timer);
};

struct loop {
    int epoll_fd;
    uint64_t now_ms; /* taken once a round */
    uint64_t tick;   /* slots before it were looked at */
    size_t timers;
    struct timer *slots[LOOP_SLOTS];
    struct watch *batch[LOOP_BATCH]; /* of this round; NULL: forgotten meanwhile */
    int batch_n;
    bool over;
};

int loop_init(struct loop *loop, struct err *err) MUST_CHECK;

/* Waits for these events from now on; 0 keeps it known for errors and hang-ups only. */
int loop_watch(struct loop *loop, struct watch *watch, uint32_t events, struct err *err) MUST_CHECK;
/* No event of it is delivered any more, not even one that is there already. */
void loop_forget(struct loop *loop, struct watch *watch);

void loop_after(struct loop *loop, struct timer *timer,
                uint64_t ms); /* instead of an earlier one */
void loop_cancel(struct loop *loop, struct timer *timer);

/* Until loop->over. -1: the kernel does not let us wait. */
int loop_run(struct loop *loop, struct err *err) MUST_CHECK;
