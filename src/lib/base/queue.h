/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lib/base/str.h"

/* Bytes on their way through: added at the end, dropped at the start. Whoever adds says how many it
 * may hold; what does not fit is not taken. All zero is an empty one, and an empty one that was
 * large keeps no memory. */
struct queue {
    char *p;
    size_t at; /* of the first byte */
    size_t n;
    size_t cap;
};

/* How many were taken. */
size_t queue_add(struct queue *queue, const void *bytes, size_t n, size_t max);
void queue_drop(struct queue *queue, size_t n);
struct str queue_str(const struct queue *queue); /* everything in it */
void queue_done(struct queue *queue);
