/* SPDX-License-Identifier: Apache-2.0 */

/* Signing is half of the work of a receipt and the only part that needs nothing of the others: a
 * hash is over the body, and the next body needs the hash, never the signature. So in a batch the
 * signatures are made by all processors. */

#include "flow/record/ledger.h"

#include <pthread.h>
#include <unistd.h>

#define HELPERS_MAX 3
#define WORTH_SHARING 8 /* below this, waking a helper costs more than it saves */
#define PORTION 4

struct signers {
    pthread_mutex_t lock;
    pthread_cond_t more;
    pthread_cond_t finished;
    pthread_t helpers[HELPERS_MAX];
    unsigned helper_n;
    /* Under the lock: */
    const struct signing_key *key;
    struct receipt *receipts;
    size_t n;
    size_t next; /* the first that nobody has taken */
    size_t done;
    bool leave;
};

/* Takes a few and signs them, with the lock given back meanwhile. Nobody waits for a helper that
 * has taken nothing, so one that the system keeps waiting holds up no batch. */
static void sign_some(struct signers *s)
{
    struct receipt *first = s->receipts + s->next;
    size_t left = s->n - s->next;
    size_t n = left < PORTION ? left : PORTION;

    s->next += n;
    (void)pthread_mutex_unlock(&s->lock);
    for (size_t i = 0; i < n; i++)
        signing_key_sign(s->key, &first[i].hash, &first[i].signature);
    (void)pthread_mutex_lock(&s->lock);
    s->done += n;
    if (s->done == s->n)
        (void)pthread_cond_signal(&s->finished);
}

static void *help(void *of_signers)
{
    struct signers *s = of_signers;

    (void)pthread_mutex_lock(&s->lock);
    while (!s->leave) {
        if (s->next < s->n)
            sign_some(s);
        else
            (void)pthread_cond_wait(&s->more, &s->lock);
    }
    (void)pthread_mutex_unlock(&s->lock);
    return NULL;
}

static struct signers *signers_new(void)
{
    struct signers *s = xcalloc(1, sizeof *s);
    long processors = sysconf(_SC_NPROCESSORS_ONLN);

    (void)pthread_mutex_init(&s->lock, NULL);
    (void)pthread_cond_init(&s->more, NULL);
    (void)pthread_cond_init(&s->finished, NULL);
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
    (void)pthread_cond_broadcast(&s->more);
    (void)pthread_mutex_unlock(&s->lock);
    for (unsigned i = 0; i < s->helper_n; i++)
        (void)pthread_join(s->helpers[i], NULL);
    (void)pthread_cond_destroy(&s->more);
    (void)pthread_cond_destroy(&s->finished);
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
    s->next = 0;
    s->done = 0;
    (void)pthread_cond_broadcast(&s->more);
    while (s->next < s->n)
        sign_some(s);
    while (s->done < s->n)
        (void)pthread_cond_wait(&s->finished, &s->lock);
    (void)pthread_mutex_unlock(&s->lock);
}
