/* SPDX-License-Identifier: Apache-2.0 */

/* Signing is half of the work of a receipt and the only part that needs nothing of the others: a
 * hash is over the body, and the next body needs the hash, never the signature. So while one
 * thread seals and inserts, others sign. */

#include "flow/record/ledger.h"

#include <pthread.h>
#include <unistd.h>

#define HELPERS_MAX 3
#define WORTH_SHARING 8 /* below this, waking a helper costs more than it saves */

struct signers {
    pthread_mutex_t lock;
    pthread_cond_t more;
    pthread_cond_t less;
    pthread_t helpers[HELPERS_MAX];
    unsigned helper_n;
    /* Under the lock: */
    struct signer *signer;
    struct receipt *receipts;
    size_t sealed; /* so many may be signed */
    size_t taken;  /* so many somebody signs or has signed */
    size_t done;
    bool shared;  /* the batch is worth waking helpers for */
    bool waiting; /* the writer can do nothing until somebody is done */
    bool leave;
    bool failed; /* and why: */
    struct err why;
};

/* As many as the signer likes at once, outside the lock. */
static int sign_some(struct signer *signer, struct receipt *receipts, size_t n, struct err *err)
{
    struct hash hashes[SIGNER_BATCH_MAX] = {0};
    struct signature signatures[SIGNER_BATCH_MAX];

    for (size_t i = 0; i < n; i++)
        hashes[i] = receipts[i].hash;
    if (signer->sign(signer, hashes, n, signatures, err) < 0)
        return -1;
    for (size_t i = 0; i < n; i++)
        receipts[i].signature = signatures[i];
    return 0;
}

/* Takes the next ones and signs them, with the lock given back meanwhile. Nobody waits for a helper
 * that has taken nothing, so one that the system keeps waiting holds up no batch. */
static void sign_next(struct signers *s)
{
    struct receipt *receipts = &s->receipts[s->taken];
    size_t waiting = s->sealed - s->taken;
    size_t n = waiting < s->signer->batch ? waiting : s->signer->batch;
    struct err err;
    int failed;

    s->taken += n;
    (void)pthread_mutex_unlock(&s->lock);
    failed = sign_some(s->signer, receipts, n, &err);
    (void)pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < n; i++)
        receipts[i].is_signed = failed == 0;
    if (failed && !s->failed)
        s->why = err;
    s->failed |= failed != 0;
    s->done += n;
    if (s->waiting)
        (void)pthread_cond_signal(&s->less);
}

static void *help(void *of_signers)
{
    struct signers *s = of_signers;

    (void)pthread_mutex_lock(&s->lock);
    while (!s->leave) {
        if (s->shared && s->taken < s->sealed)
            sign_next(s);
        else
            (void)pthread_cond_wait(&s->more, &s->lock);
    }
    (void)pthread_mutex_unlock(&s->lock);
    return NULL;
}

static struct signers *signers_new(void)
{
    struct signers *s = xcalloc(1, sizeof *s);

    (void)pthread_mutex_init(&s->lock, NULL);
    (void)pthread_cond_init(&s->more, NULL);
    (void)pthread_cond_init(&s->less, NULL);
    return s;
}

/* With fewer helpers than wanted, or none, it only takes longer. */
static void start_helpers(struct signers *s)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);

    while (s->helper_n < HELPERS_MAX && (long)s->helper_n + 1 < processors &&
           pthread_create(&s->helpers[s->helper_n], NULL, help, s) == 0)
        s->helper_n++;
}

void signers_free(struct signers *s)
{
    if (!s)
        return;
    (void)pthread_mutex_lock(&s->lock);
    s->leave = true;
    (void)pthread_cond_broadcast(&s->more);
    (void)pthread_mutex_unlock(&s->lock);
    for (unsigned i = 0; i < s->helper_n; i++)
        (void)pthread_join(s->helpers[i], NULL);
    (void)pthread_cond_destroy(&s->more);
    (void)pthread_cond_destroy(&s->less);
    (void)pthread_mutex_destroy(&s->lock);
    free(s);
}

void signers_begin(struct signers **signers, struct signer *signer, struct receipt *receipts,
                   size_t n)
{
    struct signers *s = *signers ? *signers : (*signers = signers_new());
    bool shared = n >= WORTH_SHARING && signer->batch == 1;

    if (shared && !s->helper_n)
        start_helpers(s);
    (void)pthread_mutex_lock(&s->lock);
    s->signer = signer;
    s->receipts = receipts;
    s->sealed = s->taken = s->done = 0;
    s->shared = shared;
    s->failed = false;
    (void)pthread_mutex_unlock(&s->lock);
}

void signers_offer(struct signers *s, size_t sealed)
{
    (void)pthread_mutex_lock(&s->lock);
    s->sealed = sealed;
    if (s->shared)
        (void)pthread_cond_signal(&s->more); /* costs nothing while they are all at work */
    (void)pthread_mutex_unlock(&s->lock);
}

int signers_await(struct signers *s, size_t i, struct err *err)
{
    int failed = 0;

    (void)pthread_mutex_lock(&s->lock);
    while (!s->receipts[i].is_signed && !s->failed) {
        if (s->taken < s->sealed) {
            sign_next(s);
            continue;
        }
        s->waiting = true;
        (void)pthread_cond_wait(&s->less, &s->lock);
        s->waiting = false;
    }
    if (!s->receipts[i].is_signed) {
        *err = s->why;
        failed = -1;
    }
    (void)pthread_mutex_unlock(&s->lock);
    return failed;
}

void signers_end(struct signers *s)
{
    (void)pthread_mutex_lock(&s->lock);
    s->sealed = s->taken; /* what nobody has taken stays unsigned */
    s->waiting = true;
    while (s->done < s->taken)
        (void)pthread_cond_wait(&s->less, &s->lock);
    s->waiting = false;
    (void)pthread_mutex_unlock(&s->lock);
}
