/* SPDX-License-Identifier: Apache-2.0 */

/* Who wants to know that a ledger grew. A few listen, many write: without listeners a ring costs
 * one look at a counter. */

#include "flow/record/record.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "flow/record/ledger.h"

struct record_bell {
    char *dir;
    int fd;
    struct record_bell *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct record_bell *bells;
static atomic_uint bell_n;

int record_bell_open(const char *state_dir, struct record_bell **out, int *fd, struct err *err)
{
    struct record_bell *bell;
    int made = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    if (made < 0)
        return err_os(err, "making a bell");
    bell = xcalloc(1, sizeof *bell);
    bell->dir = xstrdup(state_dir);
    bell->fd = made;
    (void)pthread_mutex_lock(&lock);
    bell->next = bells;
    bells = bell;
    atomic_fetch_add(&bell_n, 1);
    (void)pthread_mutex_unlock(&lock);
    *out = bell;
    *fd = made;
    return 0;
}

void record_bell_free(struct record_bell *bell)
{
    struct record_bell **at = &bells;

    if (!bell)
        return;
    (void)pthread_mutex_lock(&lock);
    while (*at != bell)
        at = &(*at)->next;
    *at = bell->next;
    atomic_fetch_sub(&bell_n, 1);
    (void)pthread_mutex_unlock(&lock);
    (void)close(bell->fd);
    free(bell->dir);
    free(bell);
}

void bell_ring(const char *dir)
{
    const uint64_t one = 1;

    if (atomic_load(&bell_n) == 0)
        return;
    (void)pthread_mutex_lock(&lock);
    for (const struct record_bell *bell = bells; bell; bell = bell->next)
        if (strcmp(bell->dir, dir) == 0)
            (void)!write(bell->fd, &one, sizeof one); /* full: it rings already */
    (void)pthread_mutex_unlock(&lock);
}
