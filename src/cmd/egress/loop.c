/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/egress/loop.h"

#include <errno.h>
#include <sys/epoll.h>

#include "cmd/egress/ceilings.h"
#include "lib/base/clock.h"

int loop_init(struct loop *loop, struct err *err)
{
    *loop = (struct loop){.epoll_fd = epoll_create1(EPOLL_CLOEXEC), .now_ms = clock_us() / 1000};
    loop->tick = loop->now_ms / TICK_MS;
    return loop->epoll_fd < 0 ? err_os(err, "making an epoll") : 0;
}

/* ---- descriptors ---- */

int loop_watch(struct loop *loop, struct watch *watch, uint32_t events, struct err *err)
{
    struct epoll_event event = {.events = events, .data.ptr = watch};

    if (watch->known && watch->armed == events)
        return 0;
    if (epoll_ctl(loop->epoll_fd, watch->known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, watch->fd, &event))
        return err_os(err, "watching a descriptor");
    watch->known = true;
    watch->armed = events;
    return 0;
}

void loop_forget(struct loop *loop, struct watch *watch)
{
    if (!watch->known)
        return;
    (void)epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, watch->fd, NULL); /* it is known */
    watch->known = false;
    watch->armed = 0;
    for (int i = 0; i < loop->batch_n; i++)
        if (loop->batch[i] == watch)
            loop->batch[i] = NULL;
}

/* ---- deadlines: a wheel; what is due in a later round goes round once more ---- */

void loop_cancel(struct loop *loop, struct timer *timer)
{
    if (!timer->at)
        return;
    *timer->at = timer->next;
    if (timer->next)
        timer->next->at = timer->at;
    timer->at = NULL;
    loop->timers--;
}

static void put(struct loop *loop, struct timer *timer)
{
    uint64_t tick = timer->due_ms / TICK_MS + 1; /* never early */
    struct timer **slot;

    if (tick <= loop->tick)
        tick = loop->tick + 1;
    slot = &loop->slots[tick % LOOP_SLOTS];
    timer->next = *slot;
    timer->at = slot;
    if (timer->next)
        timer->next->at = &timer->next;
    *slot = timer;
    loop->timers++;
}

void loop_after(struct loop *loop, struct timer *timer, uint64_t ms)
{
    uint64_t due_ms = loop->now_ms + ms;

    /* Pushed back, as with every byte that moves: it is found out when the slot comes. */
    if (timer->at && due_ms >= timer->due_ms) {
        timer->due_ms = due_ms;
        return;
    }
    loop_cancel(loop, timer);
    timer->due_ms = due_ms;
    put(loop, timer);
}

static void turn_slot(struct loop *loop)
{
    struct timer *due = loop->slots[loop->tick % LOOP_SLOTS];

    loop->slots[loop->tick % LOOP_SLOTS] = NULL;
    if (due)
        due->at = &due;
    while (due) {
        struct timer *timer = due;

        loop_cancel(loop, timer); /* takes it out of this list, as its own callback may do others */
        if (timer->due_ms > loop->now_ms)
            put(loop, timer);
        else
            timer->on(timer);
    }
}

static void turn(struct loop *loop)
{
    uint64_t now = loop->now_ms / TICK_MS;

    if (loop->timers == 0 || now - loop->tick > LOOP_SLOTS) {
        /* Nothing to meet on the way, or every slot is met once. */
        uint64_t behind = loop->timers ? LOOP_SLOTS : 0;

        loop->tick = now - behind;
    }
    while (loop->tick < now) {
        loop->tick++;
        turn_slot(loop);
    }
}

/* ---- waiting ---- */

static int wait_ms(const struct loop *loop)
{
    return loop->timers ? (int)(TICK_MS - loop->now_ms % TICK_MS) : -1;
}

int loop_run(struct loop *loop, struct err *err)
{
    struct epoll_event events[LOOP_BATCH];

    while (!loop->over) {
        int n = epoll_wait(loop->epoll_fd, events, LOOP_BATCH, wait_ms(loop));

        if (n < 0 && errno != EINTR)
            return err_os(err, "waiting for events");
        loop->now_ms = clock_us() / 1000;
        loop->batch_n = n < 0 ? 0 : n;
        for (int i = 0; i < loop->batch_n; i++)
            loop->batch[i] = events[i].data.ptr;
        for (int i = 0; i < loop->batch_n; i++)
            if (loop->batch[i])
                loop->batch[i]->on(loop->batch[i], events[i].events);
        loop->batch_n = 0;
        turn(loop);
    }
    return 0;
}
