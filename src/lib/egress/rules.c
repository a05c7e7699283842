/* SPDX-License-Identifier: Apache-2.0 */
/* Verdicts, and what the rules are as a whole. */
#include "lib/base/text.h"
#include "lib/egress/rules-private.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *net_reason_code(enum net_reason reason)
{
    static const char *const codes[] = {
#define X(id, code, error) [NET_REASON_##id] = (code),
        NET_REASONS(X)
#undef X
    };

    return codes[reason];
}

const char *net_reason_error(enum net_reason reason)
{
    static const char *const errors[] = {
#define X(id, code, error) [NET_REASON_##id] = (error),
        NET_REASONS(X)
#undef X
    };

    return errors[reason];
}

static void name_decider(struct net_verdict *out, const struct endpoint *by)
{
    out->entry = by ? by->entry->name : "";
    out->line = by ? by->line : 0;
    out->endpoint = by ? by->number : UINT32_MAX;
    out->protocol = by ? by->protocol : NET_PROTOCOL_NONE;
}

void verdict_deny(struct net_verdict *out, enum net_reason reason, const struct endpoint *by,
                  const char *fmt, ...)
{
    va_list args;

    *out = (struct net_verdict){.kind = NET_DENY, .reason = reason};
    name_decider(out, by);
    va_start(args, fmt);
    (void)vsnprintf(out->text, sizeof out->text, fmt, args);
    va_end(args);
}

void verdict_allow(struct net_verdict *out, enum net_verdict_kind kind, const struct endpoint *by)
{
    *out = (struct net_verdict){.kind = kind};
    name_decider(out, by);
}

const char *show(struct shown *room, struct str s)
{
    AUTO_BUF struct buf out = BUF(4 * sizeof room->text);
    struct err err;

    if (s.n > sizeof room->text)
        s.n = sizeof room->text;
    if (text_escape(s, &out, &err) < 0)
        return "...";
    (void)snprintf(room->text, sizeof room->text, "%s", buf_text(&out));
    return room->text;
}

void net_rules_free(struct net_rules *rules)
{
    if (!rules)
        return;
    arena_done(&rules->mem);
    free(rules);
}

const char *net_rules_hash(const struct net_rules *rules)
{
    return rules->hash;
}

const uint16_t *net_rules_ports(const struct net_rules *rules, size_t *n)
{
    *n = rules->port_n;
    return rules->ports;
}

bool net_rules_takes_proposals(const struct net_rules *rules)
{
    return rules->takes_proposals;
}

struct str net_rules_text(const struct net_rules *rules)
{
    return rules->text;
}

bool net_rules_has_entry(const struct net_rules *rules, struct str key)
{
    for (size_t i = 0; i < rules->entry_n; i++)
        if (str_eq(rules->entries[i].key, key))
            return true;
    return false;
}

size_t net_rules_endpoint_count(const struct net_rules *rules)
{
    return rules->endpoint_n;
}

bool net_rules_name(const struct net_rules *rules, struct str name)
{
    struct net_host host;

    net_host_read(name, &host);
    return host.kind == NET_HOST_NAME && !host.is_odd &&
           !net_name_is_never((struct str){host.text, host.n}) &&
           index_has_name(rules, (struct str){host.text, host.n});
}
