/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/egress/pool.h"

#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#include "lib/base/memory.h"

#define RULE_BYTES 256

struct pooled {
    struct side side; /* first: its watch is how it is found */
    struct pooled *next;
    struct pooled **at;
    struct timer timer;
    struct sandbox *sandbox;
    struct net_addr dialled;
    char rule[RULE_BYTES];
    char host[RESOLVER_NAME_BYTES];
    uint16_t port;
};

static void take_out(struct pooled *pooled)
{
    struct hub *hub = pooled->sandbox->hub;

    loop_cancel(&hub->loop, &pooled->timer);
    *pooled->at = pooled->next;
    if (pooled->next)
        pooled->next->at = pooled->at;
    hub->pool_n--;
    pooled->sandbox->pool_n--;
}

static void drop(struct pooled *pooled)
{
    struct loop *loop = &pooled->sandbox->hub->loop;

    take_out(pooled);
    side_close(loop, &pooled->side, false);
    free(pooled);
}

static void on_event(struct watch *watch, uint32_t events)
{
    (void)events;
    drop((struct pooled *)(void *)watch);
}

static void on_timer(struct timer *timer)
{
    drop((struct pooled *)((char *)timer - offsetof(struct pooled, timer)));
}

/* The one that waits longest makes room: of this sandbox, so that none takes from another. */
static void make_room(struct hub *hub, struct sandbox *sandbox)
{
    struct pooled *last = NULL;

    if (sandbox->pool_n < POOL_SANDBOX_MAX)
        return;
    for (struct pooled *p = hub->pool; p; p = p->next)
        if (p->sandbox == sandbox)
            last = p;
    if (last)
        drop(last);
}

static bool is_usable(const struct side *side)
{
    return side->watch.fd >= 0 && !side->ended && !side->broken && !side->shut && side->in.n == 0 &&
           side->raw.n == 0 && side_is_flushed(side);
}

void pool_put(const struct pool_key *key, const struct net_addr *dialled, struct side *side)
{
    struct hub *hub = key->sandbox->hub;
    struct pooled *pooled;
    struct err err;
    int fd = side->watch.fd;

    make_room(hub, key->sandbox);
    if (!is_usable(side) || hub->pool_n >= POOL_MAX || strlen(key->rule) >= RULE_BYTES) {
        side_close(&hub->loop, side, false);
        return;
    }
    loop_forget(&hub->loop, &side->watch);
    pooled = xcalloc(1, sizeof *pooled);
    pooled->side = *side;
    *side = (struct side){.watch.fd = -1};
    pooled->side.watch = (struct watch){.fd = fd, .on = on_event};
    pooled->timer.on = on_timer;
    pooled->sandbox = key->sandbox;
    pooled->dialled = *dialled;
    pooled->port = key->port;
    (void)snprintf(pooled->rule, sizeof pooled->rule, "%s", key->rule);
    (void)snprintf(pooled->host, sizeof pooled->host, "%s", key->host);
    pooled->next = hub->pool;
    pooled->at = &hub->pool;
    if (pooled->next)
        pooled->next->at = &pooled->next;
    hub->pool = pooled;
    hub->pool_n++;
    key->sandbox->pool_n++;
    loop_after(&hub->loop, &pooled->timer, POOL_MS);
    if (loop_watch(&hub->loop, &pooled->side.watch, EPOLLIN | EPOLLRDHUP, &err) < 0)
        drop(pooled);
}

static bool fits(const struct pooled *pooled, const struct pool_key *key)
{
    return pooled->sandbox == key->sandbox && pooled->port == key->port &&
           (pooled->side.tls != NULL) == key->tls && strcmp(pooled->host, key->host) == 0 &&
           strcmp(pooled->rule, key->rule) == 0;
}

bool pool_get(const struct pool_key *key, struct net_addr *dialled, struct side *out)
{
    struct hub *hub = key->sandbox->hub;
    struct pooled *pooled = hub->pool;

    while (pooled && !fits(pooled, key))
        pooled = pooled->next;
    if (!pooled)
        return false;
    loop_forget(&hub->loop, &pooled->side.watch);
    take_out(pooled);
    *dialled = pooled->dialled;
    *out = pooled->side;
    free(pooled);
    return true;
}

void pool_drop(struct hub *hub, struct sandbox *sandbox)
{
    struct pooled *next;

    for (struct pooled *p = hub->pool; p; p = next) {
        next = p->next;
        if (p->sandbox == sandbox)
            drop(p);
    }
}
