/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "surface/api/call.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* The signal of the next order that is there, 0: none. */
static unsigned next_order(const struct call *call)
{
    struct signalfd_siginfo order;

    return read(call->orders[0], &order, sizeof order) == (ssize_t)sizeof order ? order.ssi_signo
                                                                                : 0;
}

TEST(a_call_that_waits_has_no_descriptor)
{
    struct call call = {0};

    call_orders_init(&call);
    CHECK_INT(call.orders[0], -1);
    CHECK_INT(call.orders[1], -1);
    call_orders_done(&call);
}

TEST(orders_from_before_come_first_and_in_order)
{
    struct call call = {0};
    struct err err;

    call_orders_init(&call);
    CHECK_INT(call_order(&call, ORDER_SIGNAL, SIGUSR1, &err), 0);
    CHECK_INT(call_order(&call, ORDER_CANCEL, SIGINT, &err), 0);
    CHECK_INT(call_begin(&call, &err), 0);
    CHECK_INT(call_order(&call, ORDER_SIGNAL, SIGUSR2, &err), 0);
    CHECK_INT(next_order(&call), SIGUSR1);
    CHECK_INT(next_order(&call), SIGINT);
    CHECK_INT(next_order(&call), SIGUSR2);
    CHECK_INT(next_order(&call), 0);
    CHECK(!call.early.has_left);
    call_orders_done(&call);
}

TEST(of_sizes_the_last_one_counts)
{
    struct signalfd_siginfo order = {0};
    struct call call = {0};
    struct err err;

    call_orders_init(&call);
    for (unsigned i = 1; i <= 100; i++)
        CHECK_INT(call_order(&call, ORDER_RESIZE, i << 16 | 80, &err), 0);
    CHECK_INT(call_begin(&call, &err), 0);
    CHECK_INT(read(call.orders[0], &order, sizeof order), sizeof order);
    CHECK_INT(order.ssi_signo, SIGWINCH);
    CHECK_INT(order.ssi_int, 100 << 16 | 80);
    CHECK_INT(next_order(&call), 0);
    call_orders_done(&call);
}

TEST(too_many_are_refused_but_leaving_is_always_heard)
{
    struct call call = {0};
    struct err err;

    call_orders_init(&call);
    for (unsigned i = 0; i < CALL_EARLY_MAX; i++)
        CHECK_INT(call_order(&call, ORDER_SIGNAL, SIGUSR1, &err), 0);
    CHECK_INT(call_order(&call, ORDER_SIGNAL, SIGUSR1, &err), -1);
    CHECK_INT(err.code, ERR_LIMIT);
    CHECK_TEXT(err.text, "too many orders to a command that has not begun");
    call_leave(&call, ORDER_LEFT);
    CHECK_INT(call_begin(&call, &err), 0);
    for (unsigned i = 0; i < CALL_EARLY_MAX; i++)
        CHECK_INT(next_order(&call), SIGUSR1);
    CHECK_INT(next_order(&call), SIGTERM);
    CHECK(call.early.has_left);
    call_orders_done(&call);
}

/* One gives an order while the other begins: whichever is first, it is heard once. */
static void *leave(void *context)
{
    call_leave(context, ORDER_LEFT);
    return NULL;
}

TEST(leaving_while_it_begins_is_heard_once)
{
    for (unsigned i = 0; i < 500; i++) {
        struct call call = {0};
        pthread_t thread;
        struct err err;

        call_orders_init(&call);
        CHECK_INT(pthread_create(&thread, NULL, leave, &call), 0);
        CHECK_INT(call_begin(&call, &err), 0);
        CHECK_INT(pthread_join(thread, NULL), 0);
        CHECK_INT(next_order(&call), SIGTERM);
        CHECK_INT(next_order(&call), 0);
        call_orders_done(&call);
    }
}
