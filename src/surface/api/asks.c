/* SPDX-License-Identifier: Apache-2.0 */
#include "surface/api/asks.h"

#include <pthread.h>

#include "lib/base/limits.h"
#include "model/run.h"
#include "surface/api/api-private.h"

#define TOGETHER_MAX ASKED_TOGETHER_MAX /* questions in one round */
#define ROUNDS_MAX 64                   /* until the clerk of another tenant may have the thread */

struct asks {
    struct api *api;
    struct jobs *jobs;
    pthread_mutex_t lock; /* of every clerk, too */
    size_t waiting;
};

int asks_open(struct api *api, struct asks **out, struct err *err)
{
    const struct jobs_config config = {"brig-ask", API_CLERKS_MAX, API_WAITING_MAX,
                                       API_STACK_BYTES};
    struct asks *asks = xcalloc(1, sizeof *asks);

    asks->api = api;
    (void)pthread_mutex_init(&asks->lock, NULL);
    *out = asks;
    return jobs_open(&config, &asks->jobs, err);
}

void asks_free(struct asks *asks)
{
    if (!asks)
        return;
    jobs_free(asks->jobs);
    (void)pthread_mutex_destroy(&asks->lock);
    free(asks);
}

/* ---- one round ---- */

static void put_off(struct http_exchange *x, void *argument)
{
    struct call *call = argument;
    struct err err;

    if (x && call_start(call, &err) == 0) {
        call_drop(call); /* its job holds it */
        return;
    }
    if (x)
        call_fail(call, &err);
    call_finish(x, call);
}

/* All of them, or each by itself: what is wrong with one may be nobody else's. */
static void record(struct call **calls, size_t n)
{
    struct run *runs[TOGETHER_MAX];
    struct lent lent;
    struct err err, why;
    bool has_govern = call_govern(calls[0], &lent, &err) == 0;
    bool together;

    for (size_t i = 0; i < n; i++)
        runs[i] = calls[i]->question;
    together = has_govern && govern_record_asked(lent.govern, runs, n, &err) == 0;
    for (size_t i = 0; i < n; i++) {
        const struct err *failed = NULL;

        if (!together && (!has_govern || n == 1))
            failed = &err;
        else if (!together && govern_record_asked(lent.govern, &runs[i], 1, &why) < 0)
            failed = &why;
        if (calls[i]->route->conclude(calls[i], failed, &why) < 0)
            call_fail(calls[i], &why);
        run_done(runs[i]);
    }
    if (has_govern)
        call_release(calls[0], &lent);
}

static void answer(struct asks *asks, struct call **calls, size_t n)
{
    struct posted posted[TOGETHER_MAX];
    struct call *judged[TOGETHER_MAX];
    size_t judged_n = 0;

    for (size_t i = 0; i < n; i++) {
        bool is_judged = calls[i]->route->judge(calls[i]) == ASKED_RECEIPT;

        posted[i] =
            (struct posted){calls[i]->exchange, is_judged ? call_finish : put_off, calls[i]};
        if (is_judged)
            judged[judged_n++] = calls[i];
    }
    if (judged_n)
        record(judged, judged_n);
    posts_add_many(asks->api->posts, posted, n);
}

/* ---- whose turn it is ---- */

/* None: and nobody is busy any more. */
static size_t take_waiting(struct clerk *clerk, struct call **out)
{
    struct asks *asks = clerk->asks;
    size_t n = 0;

    (void)pthread_mutex_lock(&asks->lock);
    while (n < TOGETHER_MAX && clerk->first) {
        out[n] = clerk->first;
        clerk->first = out[n++]->next_asked;
    }
    asks->waiting -= n;
    clerk->is_busy = n > 0;
    (void)pthread_mutex_unlock(&asks->lock);
    return n;
}

static void run_clerk(struct job *job)
{
    struct clerk *clerk = (struct clerk *)job;
    struct call *calls[TOGETHER_MAX];
    struct err ignored; /* then it goes on here */
    unsigned rounds = 0;
    size_t n;

    while ((n = take_waiting(clerk, calls))) {
        answer(clerk->asks, calls, n);
        if (++rounds % ROUNDS_MAX == 0 && jobs_take(clerk->asks->jobs, job, &ignored) == 0)
            return;
    }
}

static void put(struct clerk *clerk, struct call *call)
{
    call->next_asked = NULL;
    if (clerk->first)
        clerk->last->next_asked = call;
    else
        clerk->first = call;
    clerk->last = call;
}

/* Nobody else adds, and an idle clerk has nothing: what is taken back is all there is. */
static int take_back(struct asks *asks, struct clerk *clerk)
{
    (void)pthread_mutex_lock(&asks->lock);
    clerk->first = clerk->last = NULL;
    clerk->is_busy = false;
    asks->waiting--;
    (void)pthread_mutex_unlock(&asks->lock);
    return -1;
}

int asks_take(struct asks *asks, struct call *call, struct err *err)
{
    struct clerk *clerk = tenant_clerk(call->tenant);
    bool has_room, was_idle;

    (void)pthread_mutex_lock(&asks->lock);
    has_room = asks->waiting < API_WAITING_MAX;
    was_idle = !clerk->is_busy;
    if (has_room) {
        if (was_idle)
            clerk->job = (struct job){.run = run_clerk, .drop = run_clerk, .owner = clerk};
        clerk->asks = asks;
        clerk->is_busy = true;
        put(clerk, call);
        asks->waiting++;
    }
    (void)pthread_mutex_unlock(&asks->lock);
    if (!has_room)
        return err_set(err, ERR_LIMIT, "%d questions are waiting already; try again later",
                       API_WAITING_MAX);
    if (was_idle && jobs_take(asks->jobs, &clerk->job, err) < 0)
        return take_back(asks, clerk);
    call->holders++;
    return 0;
}
