/* SPDX-License-Identifier: Apache-2.0 */
/* One question to a decider outside of Brig.
 *
 * Everything about it is bounded: one deadline for names, connection, question and answer; an
 * answer of 64 KiB; no redirects, no second try; a number of them at once, of each decider, so that
 * one that hangs is in nobody's way but its own. The system's resolver does not keep deadlines, so
 * the question is asked by a thread of its own that is left alone when the time is over, and still
 * counts until it has ended. */
#include "flow/consult/consult.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/base/limits.h"
#include "lib/base/memory.h"
#include "lib/http/http-upstream.h"
#include "model/external.h"
#include "model/run.h"

#define AT_ONCE_MAX 32      /* put to one decider, */
#define AT_ONCE_MAX_ALL 256 /* and to all of them */
#define ANSWER_BYTES_MAX (64 * KIB)
#define QUESTION_BYTES_MAX (256 * KIB)
#define STACK_BYTES (512 * KIB)

struct job {
    atomic_int holders; /* whoever is last frees it */
    struct job *next;   /* under way; private to the room */
    struct http_origin origin;
    uint64_t ends_us;
    struct buf question;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool has_ended;
    int failed;
    struct buf answer;
    struct err err;
};

/* ---- how many at once ---- */

static struct {
    pthread_once_t once;
    pthread_mutex_t lock;
    pthread_cond_t left;
    struct job *first; /* those under way */
} room = {.once = PTHREAD_ONCE_INIT, .lock = PTHREAD_MUTEX_INITIALIZER};

static void make_cond(pthread_cond_t *cond)
{
    pthread_condattr_t attr;

    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(cond, &attr);
    (void)pthread_condattr_destroy(&attr);
}

static void make_room(void)
{
    make_cond(&room.left);
}

static bool has_room(const struct job *job)
{
    size_t all = 0, same = 0;

    for (const struct job *other = room.first; other; other = other->next) {
        all++;
        same += strcmp(other->origin.host, job->origin.host) == 0 &&
                strcmp(other->origin.port, job->origin.port) == 0;
    }
    return same < AT_ONCE_MAX && all < AT_ONCE_MAX_ALL;
}

/* False: there was none until then. */
static bool take_room(struct job *job, const struct timespec *end)
{
    int waited = 0;
    bool has;

    (void)pthread_once(&room.once, make_room);
    (void)pthread_mutex_lock(&room.lock);
    while (!(has = has_room(job)) && waited != ETIMEDOUT)
        waited = pthread_cond_timedwait(&room.left, &room.lock, end);
    if (has) {
        job->next = room.first;
        room.first = job;
    }
    (void)pthread_mutex_unlock(&room.lock);
    return has;
}

static void leave_room(const struct job *job)
{
    struct job **at = &room.first;

    (void)pthread_mutex_lock(&room.lock);
    while (*at != job)
        at = &(*at)->next;
    *at = job->next;
    /* All of them: whoever waits for another decider cannot use this place. */
    (void)pthread_cond_broadcast(&room.left);
    (void)pthread_mutex_unlock(&room.lock);
}

/* ---- the thread's side ---- */

static unsigned left_ms(const struct job *job)
{
    uint64_t now = clock_us();

    return now >= job->ends_us ? 1 : (unsigned)((job->ends_us - now) / 1000) + 1;
}

/* A body that says nothing of itself may be JSON; one that says it is something else is not. */
static int check_type(const struct http_head *head, struct err *err)
{
    struct str packed = http_find(head, "content-encoding");
    struct str rest = http_find(head, "content-type");
    struct str type = rest.n ? str_trim(str_cut(&rest, ';')) : rest;
    struct str end = type.n > 5 ? (struct str){type.p + type.n - 5, 5} : type;

    if (type.n && !http_name_is(type, "application/json") && !http_name_is(end, "+json"))
        return err_set(err, ERR_INTEGRITY, "its answer is \"%.*s\", not JSON",
                       (int)(type.n < 64 ? type.n : 64), type.p);
    if (packed.n && !http_name_is(packed, "identity"))
        return err_set(err, ERR_INTEGRITY, "its answer is packed, which it was not asked for");
    return 0;
}

static int read_answer(struct http_upstream *client, struct buf *out, struct err *err)
{
    const struct http_head *head = NULL;
    struct str piece;
    int got;

    if (http_upstream_head(client, ANSWER_BYTES_MAX, &head, err) < 0)
        return -1;
    if (head->status >= 300 && head->status < 400)
        return err_set(err, ERR_UNAVAILABLE,
                       "it answered with status %d, and a redirect is not followed", head->status);
    if (head->status != 200)
        return err_set(err, ERR_UNAVAILABLE, "it answered with status %d", head->status);
    if (check_type(head, err) < 0)
        return -1;
    while ((got = http_upstream_read(client, &piece, err)) == 1)
        if (buf_add(out, piece.p, piece.n, err) < 0)
            return -1;
    return got;
}

static int ask(struct job *job, struct ssl_ctx_st *tls, struct err *err)
{
    AUTO(http_upstream) struct http_upstream *client = NULL;
    unsigned ms = left_ms(job);
    const struct http_upstream_config config = {.origin = &job->origin,
                                                .tls = tls,
                                                .cancel_fd = -1,
                                                .connect_ms = ms,
                                                .head_ms = ms,
                                                .idle_ms = ms,
                                                .all_ms = ms};
    const struct http_header headers[] = {
        {STR_LIT("content-type"),    STR_LIT("application/json")},
        {STR_LIT("accept"),          STR_LIT("application/json")},
        {STR_LIT("accept-encoding"), STR_LIT("identity")        },
        {STR_LIT("user-agent"),      STR_LIT("brig")            },
    };

    if (http_upstream_open(&config, &client, err) < 0 ||
        http_upstream_ask(client, "POST", job->origin.path[0] ? job->origin.path : "/", headers,
                          COUNT(headers), buf_str(&job->question), err) < 0)
        return -1;
    return read_answer(client, &job->answer, err);
}

static void let_go(struct job *job)
{
    if (atomic_fetch_sub(&job->holders, 1) != 1)
        return;
    buf_done(&job->question);
    buf_done(&job->answer);
    (void)pthread_cond_destroy(&job->ended);
    (void)pthread_mutex_destroy(&job->lock);
    free(job);
}

static void *work(void *context)
{
    struct job *job = context;
    struct ssl_ctx_st *tls = NULL;
    struct err err = {0};
    int failed = job->origin.is_tls ? http_upstream_tls(&tls, &err) : 0;

    if (!failed)
        failed = ask(job, tls, &err);
    http_upstream_tls_free(tls);
    (void)pthread_mutex_lock(&job->lock);
    job->failed = failed;
    job->err = err;
    job->has_ended = true;
    (void)pthread_cond_signal(&job->ended);
    (void)pthread_mutex_unlock(&job->lock);
    leave_room(job);
    let_go(job);
    return NULL;
}

/* ---- the caller's side ---- */

static struct job *job_new(unsigned timeout_ms)
{
    struct job *job = xcalloc(1, sizeof *job);

    atomic_init(&job->holders, 2);
    job->ends_us = clock_us() + timeout_ms * 1000ULL;
    job->question = BUF(QUESTION_BYTES_MAX);
    job->answer = BUF(ANSWER_BYTES_MAX);
    (void)pthread_mutex_init(&job->lock, NULL);
    make_cond(&job->ended);
    return job;
}

static struct timespec end_of(const struct job *job)
{
    struct timespec at;
    uint64_t left_us = (uint64_t)left_ms(job) * 1000;
    uint64_t ns;

    (void)clock_gettime(CLOCK_MONOTONIC, &at);
    ns = (uint64_t)at.tv_nsec + left_us * 1000;
    at.tv_sec += (time_t)(ns / 1000000000U);
    at.tv_nsec = (long)(ns % 1000000000U);
    return at;
}

static int too_late(const struct external *external, struct err *err)
{
    return err_set(err, ERR_TIMEOUT, "it did not answer within %u ms", external->timeout_ms);
}

static int start(struct job *job, struct err *err)
{
    pthread_attr_t attr;
    pthread_t thread;
    sigset_t all, before;
    int error;

    (void)sigfillset(&all);
    (void)pthread_attr_init(&attr);
    (void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    (void)pthread_attr_setstacksize(&attr, STACK_BYTES);
    /* Signals are for those who wait for them. */
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&thread, &attr, work, job);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attr);
    if (!error)
        return 0;
    errno = error;
    return err_os(err, "starting a thread");
}

static int wait_for(const struct external *external, struct job *job, struct err *err)
{
    const struct timespec end = end_of(job);
    int waited = 0, failed;

    (void)pthread_mutex_lock(&job->lock);
    while (!job->has_ended && waited != ETIMEDOUT)
        waited = pthread_cond_timedwait(&job->ended, &job->lock, &end);
    failed = !job->has_ended ? too_late(external, err) : job->failed;
    if (job->has_ended && failed)
        *err = job->err;
    (void)pthread_mutex_unlock(&job->lock);
    /* Either of the two may notice first that the time is over. */
    if (failed && err->code == ERR_TIMEOUT)
        return too_late(external, err);
    return failed ? -1 : 0;
}

/* Two hold the job: the thread, once it runs, and whoever waits for it. */
static int ask_in_time(const struct external *external, struct job *job, struct err *err)
{
    const struct timespec end = end_of(job);

    if (!take_room(job, &end)) {
        let_go(job);
        return err_set(err, ERR_LIMIT, "as many questions as there may be wait for an answer");
    }
    if (start(job, err) < 0) {
        leave_room(job);
        let_go(job);
        return -1;
    }
    return wait_for(external, job, err);
}

static int consult(const struct external *external, const struct run *run, enum consult_word *out,
                   char reason[CONSULT_REASON_BYTES], struct err *err)
{
    struct job *job = job_new(external->timeout_ms);
    int failed;

    if (http_origin_parse(external->url, &job->origin, err) < 0 ||
        consult_question(external, run, &job->question, err) < 0) {
        let_go(job);
        let_go(job);
        return -1;
    }
    failed = ask_in_time(external, job, err) < 0 ||
             consult_read(external, buf_str(&job->answer), out, reason, err) < 0;
    let_go(job);
    return failed ? -1 : 0;
}

/* ---- the verdict ---- */

bool consult_is_due(const struct external *external, const struct run *run)
{
    switch (run->verdict.kind) {
    case VERDICT_DENY:
        return false;
    case VERDICT_ASK:
        /* Without walls a person is asked even where the rules allow the command. */
        return external->on_ask || run->action.kind == ACTION_ELEVATE;
    case VERDICT_ALLOW:
        return external->on_allow;
    }
    return false;
}

static void judge(const struct external *external, const char *layer, struct run *run,
                  enum verdict_kind kind, enum reason reason, const char *text)
{
    run->verdict = (struct verdict){
        .kind = kind,
        .reason = reason,
        .rule = "external",
        .line = external->line,
        .text = arena_printf(&run->mem, "the outside decider %s: %s", external->url, text),
        .layer = layer};
}

void consult_run(const struct external *external, const char *layer, struct run *run)
{
    char reason[CONSULT_REASON_BYTES] = "";
    enum consult_word word = CONSULT_NO;
    struct err err;

    if (!consult_is_due(external, run))
        return;
    if (consult(external, run, &word, reason, &err) < 0) {
        judge(external, layer, run, VERDICT_DENY, REASON_PDP_ERROR, err.text);
        return;
    }
    switch (word) {
    case CONSULT_NO:
        judge(external, layer, run, VERDICT_DENY, REASON_PDP_DENY, *reason ? reason : "it says no");
        break;
    case CONSULT_ASK:
        if (run->verdict.kind == VERDICT_ALLOW)
            judge(external, layer, run, VERDICT_ASK, REASON_PDP_ASK,
                  *reason ? reason : "a person must confirm it");
        break;
    case CONSULT_YES:
        break;
    }
}
