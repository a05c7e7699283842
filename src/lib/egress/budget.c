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

static uint64_t left_of(uint64_t limit, uint64_t used)
{
    if (limit == 0)
        return UINT64_MAX;
    return used < limit ? limit - used : 0;
}

/* The name of what is used up, with how much there was; NULL: there is some of everything. */
static const char *what_is_used_up(const struct counter *counter, const struct allowance *allowance,
                                   uint64_t *limit)
{
    if (left_of(allowance->requests, counter->requests) == 0) {
        *limit = allowance->requests;
        return "requests";
    }
    if (left_of(allowance->bytes_out, counter->bytes_out) == 0) {
        *limit = allowance->bytes_out;
        return "bytes_out";
    }
    if (left_of(allowance->bytes_in, counter->bytes_in) == 0) {
        *limit = allowance->bytes_in;
        return "bytes_in";
    }
    return NULL;
}

void net_budget_request(struct net_budget *budget, const struct net_rules *rules,
                        const struct net_verdict *by, uint64_t now_ms, struct net_verdict *out)
{
    const struct endpoint *endpoint = endpoint_of(rules, by);
    const struct allowance *allowance = endpoint ? &endpoint->allowance : NULL;
    const char *what;
    struct counter *counter;
    uint64_t limit;

    if (!endpoint || !is_limited(allowance)) {
        verdict_allow(out, NET_ALLOW, endpoint);
        return;
    }
    counter = counter_of(budget, endpoint);
    if (!counter) {
        used_up(endpoint, "endpoints", COUNTERS_MAX, out);
        return;
    }
    what = what_is_used_up(counter, allowance, &limit);
    if (what) {
        used_up(endpoint, what, limit, out);
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

/* ---- bytes ---- */

void net_budget_purse(struct net_budget *budget, const struct net_rules *rules,
                      const struct net_verdict *by, struct net_purse *out)
{
    const struct endpoint *endpoint = endpoint_of(rules, by);
    const struct counter *counter;

    *out = (struct net_purse){.is_open = !endpoint || !is_limited(&endpoint->allowance)};
    if (out->is_open)
        return;
    counter = counter_of(budget, endpoint);
    if (!counter)
        return;
    out->counter = (uint64_t)(counter - budget->v) + 1;
    out->limit_out = endpoint->allowance.bytes_out;
    out->limit_in = endpoint->allowance.bytes_in;
}

void net_budget_left(const struct net_budget *budget, const struct net_purse *purse,
                     uint64_t *bytes_out, uint64_t *bytes_in)
{
    const struct counter *counter;

    *bytes_out = *bytes_in = purse->is_open ? UINT64_MAX : 0;
    if (purse->is_open || purse->counter == 0)
        return;
    counter = &budget->v[purse->counter - 1];
    *bytes_out = left_of(purse->limit_out, counter->bytes_out);
    *bytes_in = left_of(purse->limit_in, counter->bytes_in);
}

void net_budget_bytes(struct net_budget *budget, const struct net_purse *purse, uint64_t bytes_out,
                      uint64_t bytes_in, struct net_verdict *out)
{
    uint64_t left_out, left_in;

    net_budget_left(budget, purse, &left_out, &left_in);
    if (bytes_out > left_out || bytes_in > left_in) {
        verdict_deny(out, NET_REASON_BUDGET, NULL,
                     "the budget of \"%s\" for this sandbox is used up; raise it, or make a new "
                     "sandbox",
                     bytes_out > left_out ? "bytes_out" : "bytes_in");
        return;
    }
    verdict_allow(out, NET_ALLOW, NULL);
    if (purse->counter == 0)
        return;
    budget->v[purse->counter - 1].bytes_out += bytes_out;
    budget->v[purse->counter - 1].bytes_in += bytes_in;
}
