/* SPDX-License-Identifier: Apache-2.0 */
#include "surface/api/jobs.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "lib/base/memory.h"

#define IDLE_S 10

/* Jobs of one owner, in order. Lanes with jobs are a ring; the next job comes from `at`. */
struct lane {
    const void *owner;
    struct job *first, *last;
    struct lane *next;
};

struct jobs {
    struct jobs_config config;
    pthread_mutex_t lock;
    pthread_cond_t has_work;
    pthread_cond_t is_empty; /* no thread is left */
    struct lane *at;         /* the last lane that was served: the one behind it is next */
    struct jobs_numbers numbers;
    size_t idle; /* threads that wait for work */
    bool stopping;
};

int jobs_open(const struct jobs_config *config, struct jobs **out, struct err *err)
{
    struct jobs *jobs = xcalloc(1, sizeof *jobs);
    pthread_condattr_t attr;

    (void)err;
    jobs->config = *config;
    (void)pthread_mutex_init(&jobs->lock, NULL);
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&jobs->has_work, &attr);
    (void)pthread_condattr_destroy(&attr);
    (void)pthread_cond_init(&jobs->is_empty, NULL);
    *out = jobs;
    return 0;
}

/* ---- lanes, under the lock ---- */

static struct lane *lane_of(struct jobs *jobs, const void *owner)
{
    struct lane *lane = jobs->at;

    if (!lane)
        return NULL;
    do {
        if (lane->owner == owner)
            return lane;
        lane = lane->next;
    } while (lane != jobs->at);
    return NULL;
}

static void put_job(struct jobs *jobs, struct job *job)
{
    struct lane *lane = lane_of(jobs, job->owner);

    job->next = NULL;
    if (lane) {
        lane->last->next = job;
        lane->last = job;
    } else {
        lane = xcalloc(1, sizeof *lane);
        lane->owner = job->owner;
        lane->first = lane->last = job;
        lane->next = jobs->at ? jobs->at->next : lane;
        if (jobs->at)
            jobs->at->next = lane;
        jobs->at = lane; /* the newcomer is last in the round */
    }
    jobs->numbers.waiting++;
}

static struct job *next_job(struct jobs *jobs)
{
    struct lane *lane;
    struct job *job;

    if (!jobs->at)
        return NULL;
    lane = jobs->at->next;
    job = lane->first;
    lane->first = job->next;
    jobs->numbers.waiting--;
    if (lane->first) {
        jobs->at = lane;
        return job;
    }
    if (lane == jobs->at)
        jobs->at = NULL;
    else
        jobs->at->next = lane->next;
    free(lane);
    return job;
}

/* ---- the end ---- */

/* Told outside the lock: whoever is dropped may look at the pool. */
void jobs_stop(struct jobs *jobs)
{
    struct job *dropped = NULL, **last = &dropped, *job;

    (void)pthread_mutex_lock(&jobs->lock);
    jobs->stopping = true;
    while ((job = next_job(jobs))) {
        job->next = NULL;
        *last = job;
        last = &job->next;
    }
    (void)pthread_cond_broadcast(&jobs->has_work);
    (void)pthread_mutex_unlock(&jobs->lock);
    while ((job = dropped)) {
        dropped = job->next;
        job->drop(job);
    }
}

void jobs_free(struct jobs *jobs)
{
    if (!jobs)
        return;
    jobs_stop(jobs);
    (void)pthread_mutex_lock(&jobs->lock);
    while (jobs->numbers.threads > 0)
        (void)pthread_cond_wait(&jobs->is_empty, &jobs->lock);
    (void)pthread_mutex_unlock(&jobs->lock);
    (void)pthread_cond_destroy(&jobs->has_work);
    (void)pthread_cond_destroy(&jobs->is_empty);
    (void)pthread_mutex_destroy(&jobs->lock);
    free(jobs);
}

/* ---- threads ---- */

/* False: nothing came for a while, or the pool ends. */
static bool wait_for_work(struct jobs *jobs)
{
    struct timespec until;

    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += IDLE_S;
    jobs->idle++;
    while (!jobs->at && !jobs->stopping)
        if (pthread_cond_timedwait(&jobs->has_work, &jobs->lock, &until) == ETIMEDOUT)
            break;
    jobs->idle--;
    return jobs->at != NULL;
}

static void *work(void *context)
{
    struct jobs *jobs = context;
    struct job *job;

    (void)pthread_mutex_lock(&jobs->lock);
    while ((job = next_job(jobs)) || (wait_for_work(jobs) && (job = next_job(jobs)))) {
        jobs->numbers.running++;
        (void)pthread_mutex_unlock(&jobs->lock);
        job->run(job);
        (void)pthread_mutex_lock(&jobs->lock);
        jobs->numbers.running--;
    }
    if (--jobs->numbers.threads == 0)
        (void)pthread_cond_broadcast(&jobs->is_empty);
    (void)pthread_mutex_unlock(&jobs->lock);
    return NULL;
}

/* Signals are the loop's. */
static bool add_thread(struct jobs *jobs)
{
    pthread_attr_t attr;
    sigset_t all, before;
    pthread_t thread;
    int failed;

    (void)sigfillset(&all);
    (void)pthread_attr_init(&attr);
    (void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    (void)pthread_attr_setstacksize(&attr, jobs->config.stack_bytes);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    failed = pthread_create(&thread, &attr, work, jobs);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attr);
    if (failed)
        return false;
    (void)pthread_setname_np(thread, jobs->config.name);
    jobs->numbers.threads++;
    return true;
}

int jobs_take(struct jobs *jobs, struct job *job, struct err *err)
{
    int result = 0;

    (void)pthread_mutex_lock(&jobs->lock);
    if (jobs->stopping) {
        result = err_set(err, ERR_UNAVAILABLE, "the daemon is stopping");
    } else if (jobs->numbers.waiting >= jobs->config.waiting_max) {
        result = err_set(err, ERR_LIMIT, "%zu requests are waiting already; try again later",
                         jobs->numbers.waiting);
    } else {
        bool wants_thread =
            jobs->idle <= jobs->numbers.waiting && jobs->numbers.threads < jobs->config.threads_max;

        if (wants_thread && !add_thread(jobs) && jobs->numbers.threads == 0) {
            result = err_set(err, ERR_UNAVAILABLE, "no thread can be made; try again later");
        } else {
            put_job(jobs, job);
            (void)pthread_cond_signal(&jobs->has_work);
        }
    }
    (void)pthread_mutex_unlock(&jobs->lock);
    return result;
}

struct jobs_numbers jobs_look(struct jobs *jobs)
{
    struct jobs_numbers numbers;

    (void)pthread_mutex_lock(&jobs->lock);
    numbers = jobs->numbers;
    (void)pthread_mutex_unlock(&jobs->lock);
    return numbers;
}
