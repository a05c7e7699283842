/* SPDX-License-Identifier: Apache-2.0 */
/* A policy with what is suggested, or was proposed, in it. The text stays as it was written,
 * comments and all; new entries are put behind the line "network_policies:". Each suggestion is
 * tried before it stays: the whole text has to load, and its rules have to allow what was refused.
 */
#include "flow/decide/decide.h"
#include "flow/decide/load.h"
#include "lib/egress/proposal.h"
#include "lib/egress/suggest.h"

#include <string.h>

#define ENTRY_INDENT 2

extern const char policy_default_text[];
extern const unsigned policy_default_bytes;

/* Where entries go: text up to `at`, perhaps the key, entries, text from `from`. */
struct gap {
    struct str text;
    size_t at, from;
    unsigned indent;
    const char *key;
    const struct json *present; /* entries that are there, or NULL */
};

static size_t end_of_line(struct str text, unsigned line)
{
    size_t at = 0;

    for (; at < text.n; at++)
        if (text.p[at] == '\n' && --line == 0)
            return at + 1;
    return text.n;
}

static size_t start_of_line(struct str text, unsigned line)
{
    return line > 1 ? end_of_line(text, line - 1) : 0;
}

static int find_gap(struct arena *mem, struct str text, struct gap *out, struct err *err)
{
    const struct json *root = NULL, *section;
    struct mark where;

    if (yaml_parse(mem, text, &root, &where, err) < 0)
        return -1;
    section = json_get(root, "network_policies");
    *out = (struct gap){text, text.n, text.n, ENTRY_INDENT, "network_policies:\n", NULL};
    if (!section)
        return 0;
    out->present = section->kind == JSON_OBJECT ? section : NULL;
    out->from = end_of_line(text, section->key_mark.line);
    out->at = out->from;
    if (!section->first) { /* "network_policies: {}" */
        out->at = start_of_line(text, section->key_mark.line);
        return 0;
    }
    if (section->first->key_mark.line <= section->key_mark.line)
        return err_set(err, ERR_INVALID,
                       "line %u: network_policies is written in one line; begin a line with each "
                       "entry, so that others can be put beside it",
                       section->key_mark.line);
    out->indent = section->first->key_mark.column - 1;
    out->key = "";
    return 0;
}

static int put_entries(const struct gap *gap, struct str entries, struct buf *out, struct err *err)
{
    bool broken = gap->at && gap->text.p[gap->at - 1] != '\n';

    buf_clear(out);
    if (buf_add(out, gap->text.p, gap->at, err) < 0)
        return -1;
    if (entries.n &&
        ((broken && buf_add_byte(out, '\n', err) < 0) || buf_add_text(out, gap->key, err) < 0))
        return -1;
    return buf_add_str(out, entries, err) < 0
               ? -1
               : buf_add(out, gap->text.p + gap->from, gap->text.n - gap->from, err);
}

static int fill_gap(const struct gap *gap, const struct suggest *suggest, struct buf *out,
                    struct err *err)
{
    AUTO_BUF struct buf entries = BUF(POLICY_TEXT_MAX);

    if (suggest_write(suggest, gap->present, gap->indent, &entries, err) < 0)
        return -1;
    return put_entries(gap, buf_str(&entries), out, err);
}

static int compile(struct str text, struct net_rules **out, struct err *err)
{
    AUTO(policy) struct policy *policy = NULL;
    struct str rules;
    struct mark where;

    if (policy_parse(text, &policy, &where, err) < 0)
        return -1;
    rules = policy_network_text(policy);
    return net_rules_read(rules.n ? rules : STR_LIT("{}"), out, err);
}

/* Each place alone on top of those that stay, so that one that cannot be had costs no other. */
static void try_place(const struct gap *gap, struct suggest *suggest, struct suggest_place *place,
                      const struct net_rules *before)
{
    AUTO_BUF struct buf text = BUF(POLICY_TEXT_MAX);
    AUTO(net_rules) struct net_rules *after = NULL;
    struct net_verdict why;
    struct err err;

    place->taken = true;
    if (fill_gap(gap, suggest, &text, &err) < 0 || compile(buf_str(&text), &after, &err) < 0)
        suggest_leave(suggest, place, err.text);
    else if (!suggest_holds(place, before, after, &why))
        suggest_leave(suggest, place,
                      why.kind == NET_DENY ? why.text : "it would change what passes unseen now");
}

static void try_places(const struct gap *gap, struct suggest *suggest,
                       const struct net_rules *before)
{
    bool wanted[SUGGEST_PLACES_MAX];

    for (size_t i = 0; i < suggest->place_n; i++) {
        wanted[i] = suggest->places[i].taken;
        suggest->places[i].taken = false;
    }
    for (size_t i = 0; i < suggest->place_n; i++)
        if (wanted[i])
            try_place(gap, suggest, &suggest->places[i], before);
}

/* What is signed, or lies in layers, is changed where it was made. */
static int not_plain(struct err *err)
{
    return err_set(err, ERR_CONFLICT,
                   "this policy is a bundle or has overlays, into which no rule can be put; change "
                   "the policy it was made of, and make it again");
}

int policy_suggest(struct str text, struct suggest *suggest, struct buf *out,
                   struct net_rules **before, struct net_rules **after, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(POLICY_MEMORY_MAX);
    AUTO(net_rules) struct net_rules *now = NULL;
    AUTO(net_rules) struct net_rules *then = NULL;
    struct gap gap;

    if (text.n == 0)
        text = (struct str){policy_default_text, policy_default_bytes};
    if (!policy_is_plain(text))
        return not_plain(err);
    if (compile(text, &now, err) < 0 || find_gap(&mem, text, &gap, err) < 0)
        return -1;
    suggest_screen(suggest, now);
    try_places(&gap, suggest, now);
    if (fill_gap(&gap, suggest, out, err) < 0 || compile(buf_str(out), &then, err) < 0)
        return -1;
    *before = TAKE(now);
    *after = TAKE(then);
    return 0;
}

/* ---- proposals ---- */

static int check_name(const struct gap *gap, struct str name, struct err *err)
{
    if (gap->present)
        json_each(entry, gap->present)
        {
            if (str_eq(entry->key, name))
                return err_set(err, ERR_CONFLICT,
                               "the policy has an entry \"" STR_FMT "\"; propose another name",
                               STR_ARG(name));
        }
    return 0;
}

int policy_propose(struct str text, const struct proposal *proposal, struct buf *out,
                   struct net_rules **before, struct net_rules **after, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(POLICY_MEMORY_MAX);
    AUTO_BUF struct buf entry = BUF(POLICY_TEXT_MAX);
    AUTO(net_rules) struct net_rules *now = NULL;
    AUTO(net_rules) struct net_rules *then = NULL;
    struct gap gap;

    if (text.n == 0)
        text = (struct str){policy_default_text, policy_default_bytes};
    if (!policy_is_plain(text))
        return not_plain(err);
    if (compile(text, &now, err) < 0 || find_gap(&mem, text, &gap, err) < 0 ||
        check_name(&gap, proposal->name, err) < 0 ||
        proposal_write(proposal, gap.indent, &entry, err) < 0 ||
        put_entries(&gap, buf_str(&entry), out, err) < 0 || compile(buf_str(out), &then, err) < 0)
        return -1;
    *before = TAKE(now);
    *after = TAKE(then);
    return 0;
}

int policy_proposal_check(const struct proposal *proposal, struct err *err)
{
    AUTO_BUF struct buf text = BUF(POLICY_TEXT_MAX);
    AUTO(net_rules) struct net_rules *before = NULL;
    AUTO(net_rules) struct net_rules *after = NULL;

    return policy_propose(STR_LIT("version: 1\n"), proposal, &text, &before, &after, err);
}
