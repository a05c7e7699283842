/* SPDX-License-Identifier: Apache-2.0 */
/* The sections network_policies, network_peers and secrets as they travel: canonical JSON with the
 * keys of the policy, "line" beside everything that can decide, sizes in bytes and durations in
 * milliseconds. Whoever compiles it (lib/egress) need not know how people write those. */
#include "flow/decide/load.h"

#include <string.h>

#define RULES_TEXT_MAX (16 * POLICY_TEXT_MAX)

static struct json *copy_value(struct load *load, const struct json *from)
{
    struct json *to = arena_new(load->mem, struct json);

    *to = *from;
    to->next = NULL;
    return to;
}

/* Members are shared with the tree that was read: only the nodes themselves are new. */
static struct json *copy_map(struct load *load, const struct json *from)
{
    struct json *to = json_object(load->mem);

    json_each(member, from)
    {
        if (member->kind != JSON_NULL)
            json_put(to, arena_text(load->mem, member->key), copy_value(load, member));
    }
    return to;
}

static void replace(struct json *map, const char *key, struct json *value)
{
    for (struct json *member = map->first; member; member = member->next) {
        struct json *next = member->next;
        struct str name = member->key;

        if (!str_is(name, key))
            continue;
        *member = *value;
        member->next = next;
        member->key = name;
        return;
    }
}

static void put_line(struct load *load, struct json *map, struct mark mark)
{
    json_put_int(load->mem, map, "line", mark.line);
}

/* ---- numbers ---- */

static void put_bytes(struct load *load, struct json *map, const char *key)
{
    const struct json *value = json_get(map, key);
    uint64_t bytes;
    struct err err;

    if (value && value->kind == JSON_STRING && size_parse(value->text, &bytes, &err) == 0)
        replace(map, key, json_int(load->mem, (int64_t)bytes));
}

static void put_map(struct load *load, struct json *map, const char *key,
                    void (*change)(struct load *, struct json *))
{
    const struct json *value = json_get(map, key);
    struct json *copy;

    if (!value)
        return;
    copy = copy_map(load, value);
    change(load, copy);
    replace(map, key, copy);
}

static void change_budget(struct load *load, struct json *map)
{
    put_bytes(load, map, "bytes_out");
    put_bytes(load, map, "bytes_in");
}

static void change_response(struct load *load, struct json *map)
{
    put_bytes(load, map, "max_bytes");
}

static struct json *rate_of(struct load *load, const struct json *from)
{
    struct json *to = json_object(load->mem);
    uint64_t per_ms;
    struct err err;

    /* Both have been checked with the endpoint. */
    if (duration_parse(json_get(from, "per")->text, &per_ms, &err) == 0)
        json_put_int(load->mem, to, "per_ms", (int64_t)per_ms);
    json_put(to, "requests", copy_value(load, json_get(from, "requests")));
    return to;
}

/* ---- rules, endpoints, entries ---- */

static struct json *rules_of(struct load *load, const struct json *list, bool is_allow)
{
    struct json *to = json_array(load->mem);

    json_each(item, list)
    {
        const struct json *from = is_allow ? json_get(item, "allow") : item;
        struct json *rule = copy_map(load, from), *around;

        put_line(load, rule, from->mark);
        if (!is_allow) {
            json_push(to, rule);
            continue;
        }
        around = json_object(load->mem);
        json_put(around, "allow", rule);
        json_push(to, around);
    }
    return to;
}

static struct json *endpoint_of(struct load *load, const struct json *from)
{
    struct json *to = copy_map(load, from);
    const struct json *allow = json_get(from, "rules"), *deny = json_get(from, "deny_rules");

    put_line(load, to, from->mark);
    if (allow)
        replace(to, "rules", rules_of(load, allow, true));
    if (deny)
        replace(to, "deny_rules", rules_of(load, deny, false));
    put_bytes(load, to, "max_body_bytes");
    put_map(load, to, "budget", change_budget);
    put_map(load, to, "response", change_response);
    if (json_get(from, "rate"))
        replace(to, "rate", rate_of(load, json_get(from, "rate")));
    return to;
}

static struct json *entry_of(struct load *load, const struct json *from)
{
    struct json *to = copy_map(load, from);
    const struct json *endpoints = json_get(to, "endpoints");
    struct json *list = json_array(load->mem);

    put_line(load, to, from->key_mark);
    if (!endpoints)
        return to;
    json_each(endpoint, endpoints) json_push(list, endpoint_of(load, endpoint));
    replace(to, "endpoints", list);
    return to;
}

static struct json *peer_of(struct load *load, const struct json *from)
{
    struct json *to = copy_map(load, from);

    put_line(load, to, from->key_mark);
    return to;
}

static void put_section(struct load *load, struct json *root, const char *key,
                        const struct json *section,
                        struct json *(*make)(struct load *, const struct json *))
{
    struct json *entries = json_object(load->mem);

    if (section)
        json_each(entry, section)
            json_put(entries, arena_text(load->mem, entry->key), make(load, entry));
    json_put(root, key, entries);
}

static struct json *secrets_of(struct load *load, const struct json *section)
{
    struct json *list = json_array(load->mem);

    json_each(from, section)
    {
        struct json *to = copy_map(load, from);

        put_line(load, to, from->mark);
        json_push(list, to);
    }
    return list;
}

int load_network_text(struct load *load, const struct json *section, const struct json *peers,
                      const struct json *secrets, bool takes_proposals)
{
    AUTO_BUF struct buf text = BUF(RULES_TEXT_MAX);
    struct json *root = json_object(load->mem);

    if (takes_proposals)
        json_put_bool(load->mem, root, "agent_proposals", true);
    if (peers)
        put_section(load, root, "network_peers", peers, peer_of);
    put_section(load, root, "network_policies", section, entry_of);
    if (secrets)
        json_put(root, "secrets", secrets_of(load, secrets));
    if (json_canonical(root, &text, load->err) < 0)
        return err_in(load->err, "network rules");
    load->policy->demand.network_rules = arena_str(load->mem, buf_str(&text));
    return 0;
}

struct str policy_network_text(const struct policy *policy)
{
    for (size_t i = 0; i < policy->overlay_n; i++)
        if (policy->overlays[i]->network_none)
            return (struct str){"", 0};
    return policy->demand.network_rules;
}
