/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to flow/record: whose turn it is to write. See queue.c. */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

struct receipt;

enum turn_state {
    TURN_WAITS,
    TURN_HELD,    /* nobody else writes until turn_end() */
    TURN_WRITTEN, /* somebody wrote for us: durable */
    TURN_FAILED,
    TURN_ALONE, /* it failed for several at once: make the receipt again and write it alone */
};

struct turn {
    struct turn *next;
    pthread_cond_t wake;
    struct receipt *receipt; /* to be written with others; NULL: this one writes itself */
    enum turn_state state;
};

struct queue {
    pthread_mutex_t lock;
    struct turn *first;
    struct turn **last;
    bool busy; /* somebody holds the turn */
};

void queue_init(struct queue *queue);
void queue_done(struct queue *queue);

/* Waits until it is this one's turn, or until somebody has written its receipt. */
enum turn_state turn_take(struct queue *queue, struct turn *turn, struct receipt *receipt);
/* With the turn: those who wait next with a receipt, at most n of them. Each gets turn_tell(). */
size_t turn_others(struct queue *queue, struct turn **others, size_t n);
void turn_tell(struct queue *queue, struct turn *other, enum turn_state state);
void turn_end(struct queue *queue, struct turn *turn);
