/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/queue.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/memory.h"

#define CAP_FIRST 1024
#define CAP_KEPT 4096

void queue_done(struct queue *queue)
{
    free(queue->p);
    *queue = (struct queue){0};
}

/* Room for n more behind what is there. */
static void make_room(struct queue *queue, size_t n)
{
    size_t cap = queue->cap ? queue->cap : CAP_FIRST;

    if (queue->at + queue->n + n <= queue->cap)
        return;
    if (queue->at > 0) {
        memmove(queue->p, queue->p + queue->at, queue->n);
        queue->at = 0;
    }
    while (cap < queue->n + n)
        cap *= 2;
    if (cap > queue->cap)
        queue->p = xrealloc(queue->p, cap);
    queue->cap = cap;
}

size_t queue_add(struct queue *queue, const void *bytes, size_t n, size_t max)
{
    size_t room = queue->n < max ? max - queue->n : 0;

    n = n < room ? n : room;
    if (n == 0)
        return 0;
    make_room(queue, n);
    memcpy(queue->p + queue->at + queue->n, bytes, n);
    queue->n += n;
    return n;
}

void queue_drop(struct queue *queue, size_t n)
{
    n = n < queue->n ? n : queue->n;
    queue->at += n;
    queue->n -= n;
    if (queue->n > 0)
        return;
    queue->at = 0;
    if (queue->cap > CAP_KEPT)
        queue_done(queue);
}

struct str queue_str(const struct queue *queue)
{
    return (struct str){queue->p ? queue->p + queue->at : "", queue->n};
}
