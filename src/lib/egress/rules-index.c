/* SPDX-License-Identifier: Apache-2.0 */
/* From a host to the endpoints that name it.
 *
 * Names are a tree of labels, the last label first; its edges are one hash table, so a look-up
 * costs one probe a label, whatever the number of hosts. A whole label "*" is an edge of its own;
 * patterns that end the tree's way ("**", "a*") hang on the node before them. Who fills the table
 * is who writes policies, so the hash needs no secret. */
#include "lib/egress/rules-private.h"

#include <string.h>

static uint32_t hash_bytes(uint32_t seed, const void *bytes, size_t n)
{
    const unsigned char *b = bytes;
    uint32_t h = 2166136261U ^ seed * 2654435761U;

    for (size_t i = 0; i < n; i++)
        h = (h ^ b[i]) * 16777619U;
    return h ^ h >> 15;
}

static uint32_t power_of_two(size_t at_least)
{
    uint32_t n = 16;

    while (n < at_least)
        n *= 2;
    return n;
}

/* ---- the tree ---- */

static uint32_t *slot_of(const struct index *index, uint32_t parent, struct str label)
{
    uint32_t at = hash_bytes(parent, label.p, label.n) & (index->slot_n - 1);

    for (;; at = (at + 1) & (index->slot_n - 1)) {
        const struct node *node = &index->nodes[index->slots[at]];

        if (index->slots[at] == 0 || (node->parent == parent && str_eq(node->label, label)))
            return &index->slots[at];
    }
}

static uint32_t add_node(struct index *index, uint32_t parent, struct str label)
{
    index->nodes[index->node_n] = (struct node){.parent = parent, .label = label};
    return index->node_n++;
}

static uint32_t step_to(struct index *index, uint32_t parent, struct str label)
{
    uint32_t *slot;

    if (str_is(label, "*")) {
        if (!index->nodes[parent].star)
            index->nodes[parent].star = add_node(index, parent, label);
        return index->nodes[parent].star;
    }
    slot = slot_of(index, parent, label);
    if (*slot == 0)
        *slot = add_node(index, parent, label);
    return *slot;
}

static struct str cut_last_label(struct str *rest)
{
    size_t at = rest->n;
    struct str label;

    while (at > 0 && rest->p[at - 1] != '.')
        at--;
    label = (struct str){rest->p + at, rest->n - at};
    rest->n = at ? at - 1 : 0;
    return label;
}

static void hook_to(struct arena *mem, struct hook **list, const struct endpoint *endpoint,
                    struct str label)
{
    struct hook *hook = arena_new(mem, struct hook);

    *hook = (struct hook){endpoint, label, *list};
    *list = hook;
}

static void add_name(struct arena *mem, struct index *index, const struct endpoint *endpoint)
{
    struct str rest = endpoint->host;
    uint32_t at = 0;

    while (rest.n) {
        struct str label = cut_last_label(&rest);
        bool is_first = rest.n == 0;

        if (is_first && str_is(label, "**")) {
            hook_to(mem, &index->nodes[at].deep, endpoint, label);
            return;
        }
        if (is_first && label.n > 1 && memchr(label.p, '*', label.n)) {
            hook_to(mem, &index->nodes[at].partial, endpoint, label);
            return;
        }
        at = step_to(index, at, label);
    }
    hook_to(mem, &index->nodes[at].here, endpoint, (struct str){0});
}

static void add_addr(struct arena *mem, struct index *index, const struct endpoint *endpoint)
{
    uint32_t at = hash_bytes(0, endpoint->addr.b, sizeof endpoint->addr.b) & (index->addr_n - 1);

    hook_to(mem, &index->addrs[at], endpoint, (struct str){0});
}

static size_t labels_of(struct str host)
{
    size_t n = 1;

    for (size_t i = 0; i < host.n; i++)
        n += host.p[i] == '.';
    return n;
}

void index_build(struct net_rules *rules)
{
    struct index *index = &rules->index;
    size_t labels = 1, addrs = 0;

    for (size_t i = 0; i < rules->endpoint_n; i++) {
        labels += labels_of(rules->endpoints[i]->host);
        addrs += rules->endpoints[i]->host_kind == HOST_ADDRESS;
    }
    index->nodes = arena_array(&rules->mem, struct node, labels + 1);
    index->node_n = 1;
    index->slot_n = power_of_two(2 * labels);
    index->slots = arena_array(&rules->mem, uint32_t, index->slot_n);
    index->addr_n = power_of_two(addrs);
    index->addrs = arena_array(&rules->mem, struct hook *, index->addr_n);
    /* From the last to the first, since each goes to the front of its list. */
    for (size_t i = rules->endpoint_n; i-- > 0;) {
        const struct endpoint *endpoint = rules->endpoints[i];

        switch (endpoint->host_kind) {
        case HOST_ANY:
            hook_to(&rules->mem, &index->any, endpoint, (struct str){0});
            break;
        case HOST_NAME:
        case HOST_PATTERN:
            add_name(&rules->mem, index, endpoint);
            break;
        case HOST_ADDRESS:
            add_addr(&rules->mem, index, endpoint);
            break;
        }
    }
}

/* ---- looking up ---- */

static void take(struct found *found, const struct endpoint *endpoint)
{
    if (found->n < FOUND_MAX)
        found->v[found->n++] = endpoint;
    else
        found->too_many = true;
}

static void take_all(struct found *found, const struct hook *hook)
{
    for (; hook; hook = hook->next)
        take(found, hook->endpoint);
}

static void take_partial(struct found *found, const struct hook *hook, struct str label)
{
    for (; hook; hook = hook->next)
        if (net_pattern_match(hook->label, label))
            take(found, hook->endpoint);
}

/* The depth is that of the name; it forks only where patterns have a whole "*". */
static void walk(const struct index *index, uint32_t at, struct str rest, struct found *found)
{
    const struct node *node = &index->nodes[at];
    struct str label;
    uint32_t next;

    if (rest.n == 0) {
        take_all(found, node->here);
        return;
    }
    take_all(found, node->deep);
    label = cut_last_label(&rest);
    if (rest.n == 0)
        take_partial(found, node->partial, label);
    next = *slot_of(index, at, label);
    if (next)
        walk(index, next, rest, found);
    if (node->star)
        walk(index, node->star, rest, found);
}

void index_find(const struct net_rules *rules, const struct net_host *host, struct found *out)
{
    const struct index *index = &rules->index;

    out->n = 0;
    out->too_many = false;
    if (host->kind == NET_HOST_NAME)
        walk(index, 0, (struct str){host->text, host->n}, out);
    if (host->kind == NET_HOST_ADDRESS) {
        uint32_t at = hash_bytes(0, host->addr.b, sizeof host->addr.b) & (index->addr_n - 1);

        for (const struct hook *hook = index->addrs[at]; hook; hook = hook->next)
            if (net_addr_is_same(&hook->endpoint->addr, &host->addr))
                take(out, hook->endpoint);
    }
    take_all(out, index->any);
}

bool index_has_name(const struct net_rules *rules, struct str name)
{
    struct found found;

    found.n = 0;
    found.too_many = false;
    walk(&rules->index, 0, name, &found);
    if (!net_host_is_sandbox(name))
        return found.n > 0;
    for (size_t i = 0; i < found.n; i++)
        if (found.v[i]->is_sandbox)
            return true;
    return false;
}
