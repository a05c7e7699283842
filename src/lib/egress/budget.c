/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/egress/budget.h"

#include "lib/egress/rules-private.h"

#include <string.h>

/* Endpoints with a budget, over the life of a sandbox. */
#define COUNTERS_MAX 4096

struct counter {
    struct hash id;
    uint64_t requests;
    uint64_t bytes_out;
    uint64_t bytes_in;
    uint64_t tokens; /* of the rate, in thousandths of a request */
    uint64_t filled_ms;
    bool is_filled;
};

struct net_budget {
    struct counter *v;
    size_t n;
};

struct net_budget *net_budget_new(void)
{
    return xcalloc(1, sizeof(struct net_budget));
}

void net_budget_free(struct net_budget *budget)
{
    if (!budget)
        return;
    free(budget->v);
    free(budget);
}

static void add_text(struct hasher *hasher, struct str text)
{
    uint64_t n = text.n;

    hasher_add(hasher, &n, sizeof n);
    hasher_add(hasher, text.p, text.n);
}

/* What makes an endpoint the same one under other rules: where it goes and by which entry. */
static void identify(const struct endpoint *endpoint, struct hash *out)
{
    struct hasher hasher;

    hasher_init(&hasher);
    add_text(&hasher, endpoint->entry->key);
    add_text(&hasher, endpoint->host);
    add_text(&hasher, endpoint->path_text);
    add_text(&hasher, (struct str){(const char *)endpoint->ports,
                                   endpoint->port_n * sizeof endpoint->ports[0]});
    hasher_end(&hasher, out);
}

static const struct endpoint *endpoint_of(const struct net_rules *rules,
                                          const struct net_verdict *by)
{
    return by->endpoint < rules->endpoint_n ? rules->endpoints[by->endpoint] : NULL;
}

static bool is_limited(const struct allowance *allowance)
{
    return allowance->requests || allowance->bytes_out || allowance->bytes_in ||
           allowance->rate_requests;
}

/* NULL: too many to count, and then nothing is allowed. */
static struct counter *counter_of(struct net_budget *budget, const struct endpoint *endpoint)
{
    struct hash id;

    identify(endpoint, &id);
    for (size_t i = 0; i < budget->n; i++)
        if (hash_is_same(&budget->v[i].id, &id))
            return &budget->v[i];
    if (budget->n == COUNTERS_MAX)
        return NULL;
    if ((budget->n & (budget->n - 1)) == 0)
        budget->v = xrealloc(budget->v, (budget->n ? 2 * budget->n : 1) * sizeof budget->v[0]);
    budget->v[budget->n] = (struct counter){.id = id};
    return &budget->v[budget->n++];
}

static void used_up(const struct endpoint *endpoint, const char *what, uint64_t limit,
                    struct net_verdict *out)
{
    verdict_deny(out, NET_REASON_BUDGET, endpoint,
                 "the budget of entry %s for this sandbox is used up (\"%s\": %llu); raise it, or "
                 "make a new sandbox",
                 endpoint->entry->name, what, (unsigned long long)limit);
}

/* A bucket that holds one period's worth and fills steadily. */
static bool take_token(struct counter *counter, const struct allowance *allowance, uint64_t now_ms)
{
    uint64_t full = allowance->rate_requests * 1000;
    uint64_t passed =
        counter->is_filled && now_ms > counter->filled_ms ? now_ms - counter->filled_ms : 0;

    if (!counter->is_filled || passed >= allowance->rate_ms)
        counter->tokens = full;
    else
        counter->tokens += passed * full / allowance->rate_ms;
    if (counter->tokens > full)
        counter->tokens = full;
    /* What was too little for a thousandth is not lost: the clock stays where it counted. */
    if (!counter->is_filled || passed * full / allowance->rate_ms > 0 || passed == 0)
        counter->filled_ms = now_ms > counter->filled_ms ? now_ms : counter->filled_ms;
    counter->is_filled = true;
    if (counter->tokens < 1000)
        return false;
    counter->tokens -= 1000;
    return true;
}

void net_budget_request(struct net_budget *budget, const struct net_rules *rules,
                        const struct net_verdict *by, uint64_t now_ms, struct net_verdict *out)
{
    const struct endpoint *endpoint = endpoint_of(rules, by);
    const struct allowance *allowance = endpoint ? &endpoint->allowance : NULL;
    struct counter *counter;

    if (!endpoint || !is_limited(allowance)) {
        verdict_allow(out, NET_ALLOW, endpoint);
        return;
    }
    counter = counter_of(budget, endpoint);
    if (!counter) {
        used_up(endpoint, "endpoints", COUNTERS_MAX, out);
        return;
    }
    if (allowance->requests && counter->requests >= allowance->requests) {
        used_up(endpoint, "requests", allowance->requests, out);
        return;
    }
    if (allowance->rate_requests && !take_token(counter, allowance, now_ms)) {
        verdict_deny(out, NET_REASON_RATE, endpoint,
                     "entry %s allows %llu requests in %llu ms; wait, or raise \"rate\"",
                     endpoint->entry->name, (unsigned long long)allowance->rate_requests,
                     (unsigned long long)allowance->rate_ms);
        return;
    }
    counter->requests++;
    verdict_allow(out, NET_ALLOW, endpoint);
}

static uint64_t left_of(uint64_t limit, uint64_t used)
{
    if (limit == 0)
        return UINT64_MAX;
    return used < limit ? limit - used : 0;
}

void net_budget_left(struct net_budget *budget, const struct net_rules *rules,
                     const struct net_verdict *by, uint64_t *bytes_out, uint64_t *bytes_in)
{
    const struct endpoint *endpoint = endpoint_of(rules, by);
    struct counter *counter;

    *bytes_out = *bytes_in = UINT64_MAX;
    if (!endpoint || !is_limited(&endpoint->allowance))
        return;
    counter = counter_of(budget, endpoint);
    *bytes_out = counter ? left_of(endpoint->allowance.bytes_out, counter->bytes_out) : 0;
    *bytes_in = counter ? left_of(endpoint->allowance.bytes_in, counter->bytes_in) : 0;
}

void net_budget_bytes(struct net_budget *budget, const struct net_rules *rules,
                      const struct net_verdict *by, uint64_t bytes_out, uint64_t bytes_in,
                      struct net_verdict *out)
{
    const struct endpoint *endpoint = endpoint_of(rules, by);
    struct counter *counter;
    uint64_t left_out, left_in;

    verdict_allow(out, NET_ALLOW, endpoint);
    if (!endpoint || !is_limited(&endpoint->allowance))
        return;
    net_budget_left(budget, rules, by, &left_out, &left_in);
    counter = counter_of(budget, endpoint);
    if (!counter) {
        used_up(endpoint, "endpoints", COUNTERS_MAX, out);
        return;
    }
    if (bytes_out > left_out) {
        used_up(endpoint, "bytes_out", endpoint->allowance.bytes_out, out);
        return;
    }
    if (bytes_in > left_in) {
        used_up(endpoint, "bytes_in", endpoint->allowance.bytes_in, out);
        return;
    }
    counter->bytes_out += bytes_out;
    counter->bytes_in += bytes_in;
}
