/* SPDX-License-Identifier: Apache-2.0 */

/* Signing is half of the work of a receipt and the only part that needs nothing of the others: a
 * hash is over the body, and the next body needs the hash, never the signature. So in a batch the
 * signatures are made by all processors. */

#include "flow/record/ledger.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#define HELPERS_MAX 3
#define WORTH_SHARING 8 /* below this, waking a helper costs more than it saves */

struct signers {
    pthread_mutex_t lock;
    pthread_cond_t begin;
    pthread_cond_t end;
    pthread_t helpers[HELPERS_MAX];
    unsigned helper_n;
    /* Under the lock: */
    unsigned round; /* counts up with each batch */
    unsigned busy;  /* helpers that have not finished the round */
    bool leave;
    /* Of the round: */
    const struct signing_key *key;
    struct receipt *receipts;
    size_t n;
    atomic_size_t next;
};

static void sign_some(struct signers *s)
{
    size_t i;

    while ((i = atomic_fetch_add(&s->next, 1)) < s->n)
        signing_key_sign(s->key, &s->receipts[i].hash, &s->receipts[i].signature);
}

static void *help(void *of_signers)
{
    struct signers *s = of_signers;
    unsigned seen = 0;

    (void)pthread_mutex_lock(&s->lock);
    for (;;) {
        while (s->round == seen && !s->leave)
            (void)pthread_cond_wait(&s->begin, &s->lock);
        if (s->leave)
            break;
        seen = s->round;
        (void)pthread_mutex_unlock(&s->lock);
        sign_some(s);
        (void)pthread_mutex_lock(&s->lock);
        if (--s->busy == 0)
            (void)pthread_cond_signal(&s->end);
    }
    (void)pthread_mutex_unlock(&s->lock);
    return NULL;
}

static struct signers *signers_new(void)
{
    struct signers *s = xcalloc(1, sizeof *s);
    long processors = sysconf(_SC_NPROCESSORS_ONLN);

    (void)pthread_mutex_init(&s->lock, NULL);
    (void)pthread_cond_init(&s->begin, NULL);
    (void)pthread_cond_init(&s->end, NULL);
    /* With fewer helpers than wanted, or none, it only takes longer. */
    while (s->helper_n < HELPERS_MAX && (long)s->helper_n + 1 < processors &&
           pthread_create(&s->helpers[s->helper_n], NULL, help, s) == 0)
        s->helper_n++;
    return s;
}

void signers_free(struct signers *s)
{
    if (!s)
        return;
    (void)pthread_mutex_lock(&s->lock);
    s->leave = true;
    (void)pthread_cond_broadcast(&s->begin);
    (void)pthread_mutex_unlock(&s->lock);
    for (unsigned i = 0; i < s->helper_n; i++)
        (void)pthread_join(s->helpers[i], NULL);
    (void)pthread_cond_destroy(&s->begin);
    (void)pthread_cond_destroy(&s->end);
    (void)pthread_mutex_destroy(&s->lock);
    free(s);
}

void signers_sign(struct signers **signers, const struct signing_key *key, struct receipt *receipts,
                  size_t n)
{
    struct signers *s;

    if (n < WORTH_SHARING) {
        for (size_t i = 0; i < n; i++)
            signing_key_sign(key, &receipts[i].hash, &receipts[i].signature);
        return;
    }
    if (!*signers)
        *signers = signers_new();
    s = *signers;
    (void)pthread_mutex_lock(&s->lock);
    s->key = key;
    s->receipts = receipts;
    s->n = n;
    atomic_store(&s->next, 0);
    s->busy = s->helper_n;
    s->round++;
    (void)pthread_cond_broadcast(&s->begin);
    (void)pthread_mutex_unlock(&s->lock);
    sign_some(s);
    (void)pthread_mutex_lock(&s->lock);
    while (s->busy)
        (void)pthread_cond_wait(&s->end, &s->lock);
    (void)pthread_mutex_unlock(&s->lock);
}
