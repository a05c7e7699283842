/* SPDX-License-Identifier: Apache-2.0 */
/* The section approvals: groups of people, and what their word takes. */
#include "flow/decide/load.h"

#include <string.h>

#define GROUPS_MAX 64
#define BY_MAX 64
#define GROUP_NAME_MAX 64
#define PRINCIPAL_PATTERN_MAX 128
#define WAIT_MAX_MS (7ULL * 24 * 60 * 60 * 1000)
#define USE_MAX_MS (24ULL * 60 * 60 * 1000)
#define LEAST_MS 1000

struct group_keys {
    const struct json *by;
    const struct json *quorum;
    const struct json *timeout;
    const struct json *use_within;
    const struct json *reason_required;
    const struct json *allow_unbound;
};

/* clang-format off */
static const struct field group_fields[] = {
    {"by",              offsetof(struct group_keys, by),              TAKES_LIST,   true },
    {"quorum",          offsetof(struct group_keys, quorum),          TAKES_NUMBER, false},
    {"timeout",         offsetof(struct group_keys, timeout),         TAKES_TEXT,   false},
    {"use_within",      offsetof(struct group_keys, use_within),      TAKES_TEXT,   false},
    {"reason_required", offsetof(struct group_keys, reason_required), TAKES_BOOL,   false},
    {"allow_unbound",   offsetof(struct group_keys, allow_unbound),   TAKES_BOOL,   false},
};
/* clang-format on */

static bool has_wildcard(struct str pattern)
{
    for (size_t i = 0; i < pattern.n; i++)
        if (strchr("*?[", pattern.p[i]))
            return true;
    return false;
}

/* Whether so many different people can match at all. */
static int check_reachable(struct load *load, const struct json *list, unsigned quorum)
{
    size_t distinct = 0;

    json_each(item, list)
    {
        bool seen = false;

        if (has_wildcard(item->text))
            return 0;
        for (const struct json *before = list->first; before != item; before = before->next)
            seen |= str_eq(before->text, item->text);
        distinct += !seen;
    }
    if (distinct >= quorum)
        return 0;
    return load_bad(load, list->mark,
                    "\"by\" names %zu who may confirm and the quorum is %u: it could never be "
                    "reached",
                    distinct, quorum);
}

static int load_by(struct load *load, const struct json *list, struct words *out)
{
    const char **v = arena_array(load->mem, const char *, list->n + 1);
    size_t n = 0;

    if (list->n == 0)
        return load_bad(load, list->mark,
                        "\"by\" is empty, so nobody could confirm; name principals, "
                        "\"custodian:NAME\", or write a rule that denies");
    if (list->n > BY_MAX)
        return load_bad(load, list->mark, "more than %d entries in \"by\"", BY_MAX);
    json_each(item, list)
    {
        if (load_kind(load, item, TAKES_TEXT, "an entry of \"by\"") < 0 ||
            load_text(load, item, PRINCIPAL_PATTERN_MAX, "an entry of \"by\"") < 0 ||
            load_glob(load, item, GLOB_WORD, "an entry of \"by\"") < 0)
            return -1;
        v[n++] = arena_text(load->mem, item->text);
    }
    *out = (struct words){v, n};
    return 0;
}

static int load_time(struct load *load, const struct json *value, const char *key, uint64_t max_ms,
                     uint64_t *out_s)
{
    struct err ignored; /* ours has the bounds in it */
    uint64_t ms = 0;

    if (!value)
        return 0;
    if (duration_parse(value->text, &ms, &ignored) < 0 || ms < LEAST_MS || ms > max_ms)
        return load_bad(load, value->mark, "\"%s\" must be a duration from 1s to %lluh, not \"%s\"",
                        key, (unsigned long long)(max_ms / 3600000), shown(load, value->text));
    *out_s = ms / 1000;
    return 0;
}

static int check_group_name(struct load *load, const struct json *group)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    bool good = group->key.n > 0 && group->key.n <= GROUP_NAME_MAX;

    if (str_is(group->key, "notify"))
        return load_bad(load, group->key_mark,
                        "whom to notify is not the policy's to say; this section holds "
                        "groups of people who confirm");
    for (size_t i = 0; good && i < group->key.n; i++)
        good = memchr(plain, group->key.p[i], sizeof plain - 1) != NULL;
    if (!good)
        return load_bad(load, group->key_mark,
                        "approvals \"%s\": a group is named with letters, digits, \"-\", \"_\" and "
                        "\".\"",
                        shown(load, group->key));
    return 0;
}

static int load_group(struct load *load, const struct json *group, struct approvers *out)
{
    struct group_keys keys = {0};
    int64_t quorum = 1;

    out->line = group->key_mark.line;
    if (check_group_name(load, group) < 0 || load_kind(load, group, TAKES_MAP, "a group") < 0 ||
        load_map(load, group, group_fields, COUNT(group_fields), &keys) < 0 ||
        load_by(load, keys.by, &out->terms.by) < 0 ||
        (keys.quorum &&
         load_int(load, keys.quorum, 1, APPROVAL_QUORUM_MAX, "\"quorum\"", &quorum) < 0) ||
        check_reachable(load, keys.by, (unsigned)quorum) < 0 ||
        load_time(load, keys.timeout, "timeout", WAIT_MAX_MS, &out->terms.wait_s) < 0 ||
        load_time(load, keys.use_within, "use_within", USE_MAX_MS, &out->terms.use_s) < 0)
        return -1;
    out->terms.group = arena_text(load->mem, group->key);
    out->terms.quorum = (unsigned)quorum;
    out->terms.reason_required = keys.reason_required && keys.reason_required->boolean;
    out->terms.allow_unbound = keys.allow_unbound && keys.allow_unbound->boolean;
    return 0;
}

int load_approvals(struct load *load, const struct json *section)
{
    struct policy *policy = load->policy;

    if (!section || section->kind == JSON_NULL)
        return 0;
    if (section->n > GROUPS_MAX)
        return load_bad(load, section->mark, "more than %d groups in approvals", GROUPS_MAX);
    policy->approvers = arena_array(load->mem, struct approvers, section->n + 1);
    json_each(group, section)
    {
        if (load_group(load, group, &policy->approvers[policy->approvers_n]) < 0)
            return -1;
        policy->approvers_n++;
    }
    return 0;
}

int load_approval_name(struct load *load, const struct json *value, const struct approvers **out)
{
    for (size_t i = 0; i < load->policy->approvers_n; i++) {
        if (!str_is(value->text, load->policy->approvers[i].terms.group))
            continue;
        *out = &load->policy->approvers[i];
        return 0;
    }
    return load_bad(load, value->mark, "approvals has no group \"%s\"", shown(load, value->text));
}
