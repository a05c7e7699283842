/* SPDX-License-Identifier: Apache-2.0 */

/* Orders to a handler: over a pipe while it runs; before that, in the call. Both sides look at
 * which of the two it is under one lock, so that no order falls between them. */

#include "surface/api/call.h"

#include <fcntl.h>
#include <unistd.h>

void call_orders_init(struct call *call)
{
    (void)pthread_mutex_init(&call->early.lock, NULL);
    call->orders[0] = call->orders[1] = -1;
}

void call_orders_done(struct call *call)
{
    for (size_t i = 0; i < 2; i++)
        if (call->orders[i] >= 0)
            (void)close(call->orders[i]);
    (void)pthread_mutex_destroy(&call->early.lock);
}

/* Of sizes only the last one counts. */
static int keep_order(struct early_orders *early, enum order_kind kind, unsigned value,
                      struct err *err)
{
    unsigned i = 0;

    while (i < early->n && !(kind == ORDER_RESIZE && early->list[i].kind == ORDER_RESIZE))
        i++;
    if (i == CALL_EARLY_MAX)
        return err_set(err, ERR_LIMIT, "too many orders to a command that has not begun");
    early->list[i].kind = kind;
    early->list[i].value = value;
    if (i == early->n)
        early->n++;
    return 0;
}

int call_order(struct call *call, enum order_kind kind, unsigned value, struct err *err)
{
    int failed;

    (void)pthread_mutex_lock(&call->early.lock);
    failed = call->orders[1] >= 0 ? order_give(call->orders[1], kind, value, err)
                                  : keep_order(&call->early, kind, value, err);
    (void)pthread_mutex_unlock(&call->early.lock);
    return failed;
}

void call_leave(struct call *call, enum order_kind kind)
{
    struct err
        ignored; /* a pipe full of orders has one to end among them, or a reader that is gone */

    (void)pthread_mutex_lock(&call->early.lock);
    if (call->orders[1] >= 0)
        (void)!order_give(call->orders[1], kind, 0, &ignored);
    else
        call->early.has_left = true;
    (void)pthread_mutex_unlock(&call->early.lock);
}

static int pass_early(const struct early_orders *early, int fd, struct err *err)
{
    for (unsigned i = 0; i < early->n; i++)
        if (order_give(fd, early->list[i].kind, early->list[i].value, err) < 0)
            return -1;
    return early->has_left ? order_give(fd, ORDER_LEFT, 0, err) : 0;
}

int call_begin(struct call *call, struct err *err)
{
    int ends[2];
    int failed;

    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return err_os(err, "making a pipe");
    (void)pthread_mutex_lock(&call->early.lock);
    call->orders[0] = ends[0];
    call->orders[1] = ends[1];
    failed = pass_early(&call->early, ends[1], err);
    (void)pthread_mutex_unlock(&call->early.lock);
    return failed;
}
