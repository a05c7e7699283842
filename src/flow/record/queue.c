/* SPDX-License-Identifier: Apache-2.0 */

/* Threads of one process that append to one ledger.
 *
 * A commit waits for the disk, and a second one would wait for the first. So receipts that come
 * meanwhile become durable together, by the next commit. No thread is there only for that: whoever
 * has the turn takes along those who wait, and then hands it to the next one. A thread that is
 * alone never waits and wakes nobody. */

#include "flow/record/queue.h"

void queue_init(struct queue *queue)
{
    *queue = (struct queue){.last = NULL};
    queue->last = &queue->first;
    (void)pthread_mutex_init(&queue->lock, NULL);
}

void queue_done(struct queue *queue)
{
    (void)pthread_mutex_destroy(&queue->lock);
}

static struct turn *pop(struct queue *queue)
{
    struct turn *turn = queue->first;

    queue->first = turn->next;
    if (!queue->first)
        queue->last = &queue->first;
    return turn;
}

enum turn_state turn_take(struct queue *queue, struct turn *turn, struct receipt *receipt)
{
    *turn = (struct turn){.receipt = receipt};
    (void)pthread_cond_init(&turn->wake, NULL);
    (void)pthread_mutex_lock(&queue->lock);
    if (queue->busy) {
        *queue->last = turn;
        queue->last = &turn->next;
        while (turn->state == TURN_WAITS)
            (void)pthread_cond_wait(&turn->wake, &queue->lock);
    } else {
        queue->busy = true;
        turn->state = TURN_HELD;
    }
    (void)pthread_mutex_unlock(&queue->lock);
    if (turn->state != TURN_HELD)
        (void)pthread_cond_destroy(&turn->wake);
    return turn->state;
}

size_t turn_others(struct queue *queue, struct turn **others, size_t n)
{
    size_t found = 0;

    (void)pthread_mutex_lock(&queue->lock);
    while (found < n && queue->first && queue->first->receipt)
        others[found++] = pop(queue);
    (void)pthread_mutex_unlock(&queue->lock);
    return found;
}

void turn_tell(struct queue *queue, struct turn *other, enum turn_state state)
{
    (void)pthread_mutex_lock(&queue->lock);
    other->state = state;
    (void)pthread_cond_signal(&other->wake); /* under the lock: afterwards it may be gone */
    (void)pthread_mutex_unlock(&queue->lock);
}

void turn_end(struct queue *queue, struct turn *turn)
{
    (void)pthread_mutex_lock(&queue->lock);
    if (queue->first) {
        struct turn *next = pop(queue);

        next->state = TURN_HELD;
        (void)pthread_cond_signal(&next->wake);
    } else {
        queue->busy = false;
    }
    (void)pthread_mutex_unlock(&queue->lock);
    (void)pthread_cond_destroy(&turn->wake);
}
