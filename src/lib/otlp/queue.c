/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/otlp/otlp.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define WAIT_FIRST_MS 500U
#define WAIT_MOST_MS 30000U
#define ASKED_MOST_S 60U

struct otlp_item {
    char *p;
    size_t n;
};

void otlp_queue_init(struct otlp_queue *queue, size_t max, size_t bytes_max)
{
    *queue = (struct otlp_queue){
        .items = xcalloc(max, sizeof *queue->items), .max = max, .bytes_max = bytes_max};
}

void otlp_queue_done(struct otlp_queue *queue)
{
    otlp_queue_drop(queue, queue->n);
    free(queue->items);
    *queue = (struct otlp_queue){0};
}

bool otlp_queue_add(struct otlp_queue *queue, struct str text)
{
    struct otlp_item *item = &queue->items[(queue->first + queue->n) % queue->max];

    if (queue->n == queue->max || text.n > queue->bytes_max - queue->bytes)
        return false;
    item->p = xmalloc(text.n + 1);
    memcpy(item->p, text.p, text.n);
    item->n = text.n;
    queue->n++;
    queue->bytes += text.n;
    return true;
}

struct str otlp_queue_at(const struct otlp_queue *queue, size_t i)
{
    const struct otlp_item *item = &queue->items[(queue->first + i) % queue->max];

    assert(i < queue->n);
    return (struct str){item->p, item->n};
}

size_t otlp_queue_batch(const struct otlp_queue *queue, size_t n_max, size_t bytes_max)
{
    size_t n = 0, bytes = 0;

    while (n < queue->n && n < n_max) {
        bytes += otlp_queue_at(queue, n).n + 1;
        if (n && bytes > bytes_max)
            break;
        n++;
    }
    return n;
}

void otlp_queue_drop(struct otlp_queue *queue, size_t n)
{
    assert(n <= queue->n);
    for (; n; n--) {
        struct otlp_item *item = &queue->items[queue->first];

        queue->bytes -= item->n;
        free(item->p);
        item->p = NULL;
        queue->first = (queue->first + 1) % queue->max;
        queue->n--;
    }
}

uint64_t otlp_wait_ms(unsigned attempts, uint64_t retry_after_s, uint32_t chance)
{
    uint64_t most = WAIT_FIRST_MS;

    if (retry_after_s)
        return 1000U * (retry_after_s < ASKED_MOST_S ? retry_after_s : ASKED_MOST_S) +
               chance % WAIT_FIRST_MS; /* not all of us at the same moment */
    while (attempts-- > 1 && most < WAIT_MOST_MS)
        most *= 2;
    most = most < WAIT_MOST_MS ? most : WAIT_MOST_MS;
    return most / 2 + chance % (most / 2 + 1);
}

bool otlp_is_passing(long http_status)
{
    return http_status == 429 || http_status == 502 || http_status == 503 || http_status == 504;
}
