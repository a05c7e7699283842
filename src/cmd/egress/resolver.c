/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/egress/resolver.h"

#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "lib/base/memory.h"

static struct kept_name *place_of(struct resolver *resolver, const char *name)
{
    uint32_t hash = 2166136261U; /* FNV-1a */

    for (const char *p = name; *p; p++)
        hash = (hash ^ (unsigned char)*p) * 16777619U;
    return &resolver->kept[hash % LOOKUP_KEPT];
}

/* A short while only: it saves the second of two connections a lookup, and every one of them has
 * its address checked all the same. */
static void keep(struct resolver *resolver, const char *name, const struct resolver_answer *answer)
{
    struct kept_name *kept = place_of(resolver, name);

    (void)snprintf(kept->name, sizeof kept->name, "%s", name);
    kept->until_ms = resolver->loop->now_ms + LOOKUP_KEPT_MS;
    kept->n = answer->n;
    memcpy(kept->addrs, answer->addrs, sizeof kept->addrs);
}

static const char *why_of(int failed)
{
    switch (failed) {
    case EAI_NONAME:
#ifdef EAI_NODATA
    case EAI_NODATA:
#endif
        return "the name does not exist";
    case EAI_AGAIN:
        return "no name server answers";
    default:
        return "the name could not be looked up";
    }
}

void lookup_cancel(struct resolver *resolver, struct lookup *lookup)
{
    if (!lookup->at)
        return;
    *lookup->at = lookup->next;
    if (lookup->next)
        lookup->next->at = lookup->at;
    lookup->at = NULL;
    resolver->waiting_n--;
}

static void deliver(struct resolver *resolver, struct resolver_answer *answer)
{
    struct lookup *lookup = resolver->waiting;

    while (lookup && lookup->serial != answer->serial)
        lookup = lookup->next;
    if (!lookup)
        return; /* given up meanwhile */
    if (answer->n > ADDRESSES_MAX)
        answer->n = 0;
    lookup_cancel(resolver, lookup);
    if (answer->n)
        keep(resolver, lookup->name, answer);
    lookup->on(lookup, answer->addrs, answer->n, why_of(answer->failed));
}

static void on_answer(struct watch *watch, uint32_t events)
{
    struct resolver *resolver =
        (struct resolver *)((char *)watch - offsetof(struct resolver, watch));
    struct resolver_answer answer;
    ssize_t got;

    (void)events;
    while ((got = recv(watch->fd, &answer, sizeof answer, MSG_DONTWAIT)) > 0)
        if (got == (ssize_t)sizeof answer)
            deliver(resolver, &answer);
    if (got == 0)
        resolver->loop->over = true; /* without names there is no egress: the next one has them */
}

int resolver_init(struct resolver *resolver, struct loop *loop, int fd, struct err *err)
{
    *resolver = (struct resolver){
        .loop = loop, .watch = {.fd = fd, .on = on_answer}
    };
    resolver->kept = xcalloc(LOOKUP_KEPT, sizeof *resolver->kept);
    return loop_watch(loop, &resolver->watch, EPOLLIN, err);
}

static int send_question(struct resolver *resolver, struct lookup *lookup, struct err *err)
{
    struct resolver_question question = {.serial = ++resolver->serial};

    memcpy(question.name, lookup->name, sizeof question.name);
    if (resolver->waiting_n >= LOOKUPS_MAX ||
        send(resolver->watch.fd, &question, sizeof question, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
        return err_set(err, ERR_LIMIT, "too many names are being looked up");
    lookup->serial = question.serial;
    lookup->next = resolver->waiting;
    lookup->at = &resolver->waiting;
    if (lookup->next)
        lookup->next->at = &lookup->next;
    resolver->waiting = lookup;
    resolver->waiting_n++;
    return 0;
}

int resolver_ask(struct resolver *resolver, struct lookup *lookup, const char *name,
                 struct err *err)
{
    const struct kept_name *kept = place_of(resolver, name);

    if (strlen(name) >= sizeof lookup->name)
        return err_set(err, ERR_INVALID, "a name of %zu bytes", strlen(name));
    memset(lookup->name, 0, sizeof lookup->name);
    memcpy(lookup->name, name, strlen(name));
    if (kept->until_ms > resolver->loop->now_ms && strcmp(kept->name, name) == 0) {
        lookup->on(lookup, kept->addrs, kept->n, "");
        return 0;
    }
    return send_question(resolver, lookup, err);
}
