/* SPDX-License-Identifier: Apache-2.0 */
#include "flow/decide/layers.h"
#include "flow/decide/load.h"

#include "lib/base/io.h"

#include <fcntl.h>
#include <string.h>

/* Made from policies/default.yaml when Brig is built. */
extern const char policy_default_text[];
extern const unsigned policy_default_bytes;

struct sections {
    const struct json *version;
    const struct json *fallback;
    const struct json *commands;
    const struct json *filesystem_policy;
    const struct json *landlock;
    const struct json *process;
    const struct json *limits;
    const struct json *network_policies;
    const struct json *network_peers;
    const struct json *agent_proposals;
    const struct json *network_middlewares;
    const struct json *paths;
    const struct json *approvals;
    const struct json *budget;
    const struct json *elevated;
    const struct json *mode;
    const struct json *requires_release;
    const struct json *secrets;
    const struct json *external;
    const struct json *bundles;
};

#define SECTION(key, takes)                                                                        \
    {                                                                                              \
#key, offsetof(struct sections, key), takes, false                                         \
    }

static const struct field section_fields[] = {
    {"version", offsetof(struct sections, version),  TAKES_NUMBER, true },
    {"default", offsetof(struct sections, fallback), TAKES_TEXT,   false},
    SECTION(commands, TAKES_LIST),
    SECTION(filesystem_policy, TAKES_MAP),
    SECTION(landlock, TAKES_MAP),
    SECTION(process, TAKES_MAP),
    SECTION(limits, TAKES_MAP),
    SECTION(network_policies, TAKES_MAP | TAKES_NULL),
    SECTION(network_peers, TAKES_MAP | TAKES_NULL),
    SECTION(agent_proposals, TAKES_BOOL),
    SECTION(network_middlewares, TAKES_MAP | TAKES_NULL),
    SECTION(paths, TAKES_LIST),
    SECTION(approvals, TAKES_MAP | TAKES_NULL),
    SECTION(budget, TAKES_LIST),
    SECTION(elevated, TAKES_LIST),
    SECTION(mode, TAKES_TEXT),
    SECTION(requires_release, TAKES_TEXT | TAKES_MAP),
    SECTION(secrets, TAKES_LIST),
    SECTION(external, TAKES_MAP),
    SECTION(bundles, TAKES_TEXT),
};

/* ---- layers: what may stand in one that only takes away ---- */

static const char *role_name(enum policy_role role)
{
    switch (role) {
    case ROLE_POLICY:
        return "policy";
    case ROLE_CEILING:
        return "ceiling";
    case ROLE_OVERLAY:
        return "overlay";
    }
    return "policy";
}

/* Sections whose strictest reading is clear and held. Everything else is refused by name: a layer
 * that seems to restrict something and does not is worse than none. */
static bool may_take_away(const struct policy *policy, const struct json *member)
{
    static const char *const both[] = {"version", "default",           "commands",
                                       "paths",   "filesystem_policy", "limits",
                                       "budget",  "requires_release"};
    bool on = true;

    if (str_is(member->key, "bundles") || str_is(member->key, "external"))
        return policy->role == ROLE_CEILING;
    if (str_is(member->key, "mode"))
        return member->kind == JSON_STRING && str_is(member->text, "advisory");
    for (size_t i = 0; i < COUNT(both); i++)
        if (str_is(member->key, both[i]))
            return true;
    if (str_is(member->key, "network_policies") || str_is(member->key, "network_peers"))
        return member->n == 0;
    return str_is(member->key, "agent_proposals") && json_is_bool(member, &on) && !on;
}

static int refuse_in_layer(struct load *load, const struct json *member)
{
    const char *key = shown(load, member->key), *layer = role_name(load->policy->role);

    if (str_starts(member->key, "network_"))
        return load_bad(load, member->key_mark,
                        "%s with entries cannot stand in the %s: two sets of network rules are "
                        "not held at once; write \"network_policies: {}\" to close the network, or "
                        "put the entries into the policy",
                        key, layer);
    return load_bad(load, member->key_mark,
                    "%s cannot stand in the %s, which only takes away from a policy; put it into "
                    "the policy",
                    key, layer);
}

static int load_role(struct load *load, const struct json *root)
{
    struct policy *policy = load->policy;

    if (policy->role == ROLE_POLICY)
        return 0;
    json_each(member, root)
    {
        if (!may_take_away(policy, member))
            return refuse_in_layer(load, member);
        policy->network_none |= str_is(member->key, "network_policies");
    }
    /* These close what the whole network closes, and nothing alone. */
    json_each(closed, root)
    {
        if (!policy->network_none &&
            (str_is(closed->key, "network_peers") || str_is(closed->key, "agent_proposals")))
            return load_bad(
                load, closed->key_mark,
                "%s alone takes nothing away in the %s; write \"network_policies: {}\", "
                "which closes the network, or put it into the policy",
                shown(load, closed->key), role_name(policy->role));
    }
    /* Nothing matched: no objection, unless it says otherwise. */
    if (!policy->has_default)
        policy->fallback = VERDICT_ALLOW;
    return 0;
}

static int load_bundles(struct load *load, const struct json *value)
{
    static const char *const words[] = {"required", NULL};
    size_t at;

    if (!value)
        return 0;
    if (load->policy->role == ROLE_POLICY)
        return load_bad(load, value->key_mark,
                        "bundles can only stand in the ceiling: brig policy ceiling set");
    if (load_choice(load, value, words, "\"bundles\"", &at) < 0)
        return -1;
    load->policy->wants_bundles = true;
    return 0;
}

static int load_version(struct load *load, const struct json *value)
{
    int64_t version;

    if (!json_is_int(value, &version) || version != 1)
        return load_bad(load, value->mark, "version %s is not known; it must be 1",
                        shown(load, value->text));
    return 0;
}

static int load_default(struct load *load, const struct json *value)
{
    static const char *const words[] = {
        [VERDICT_DENY] = "deny", [VERDICT_ASK] = "ask", [VERDICT_ALLOW] = "allow", NULL};
    size_t at;

    if (!value)
        return 0;
    if (load_choice(load, value, words, "\"default\"", &at) < 0)
        return -1;
    load->policy->has_default = true;
    load->policy->fallback = (enum verdict_kind)at;
    load->policy->fallback_line = value->key_mark.line;
    return 0;
}

/* Stages that read and change traffic. A policy that counts on them must not seem to load. */
static int refuse_middlewares(struct load *load, const struct json *section)
{
    if (!section || section->n == 0)
        return 0;
    return load_bad(load, section->key_mark,
                    "network_middlewares is not enforceable by Brig; remove the section, or keep "
                    "traffic that needs it away with network_policies");
}

struct release_keys {
    const struct json *agent;
    const struct json *runs;
};

/* The agent, or {agent, runs}. */
static int load_release(struct load *load, const struct json *release)
{
    static const struct field fields[] = {
        {"agent", offsetof(struct release_keys, agent), TAKES_TEXT,   true },
        {"runs",  offsetof(struct release_keys, runs),  TAKES_NUMBER, false},
    };
    struct release_keys keys = {.agent = release};
    struct demand *demand = &load->policy->demand;
    int64_t runs = RELEASE_RUNS;

    if (release->kind == JSON_OBJECT &&
        (load_map(load, release, fields, COUNT(fields), &keys) < 0 ||
         (keys.runs && load_int(load, keys.runs, 1, RELEASE_RUNS_MAX, "\"runs\"", &runs) < 0)))
        return -1;
    if (!is_agent_id(keys.agent->text))
        return load_bad(load, keys.agent->mark,
                        "requires_release names an agent: 1 to %d " AGENT_ID_TEXT
                        ", as in \"brig advisory run --agent-id\"",
                        POLICY_AGENT_MAX);
    demand->requires_release = arena_text(load->mem, keys.agent->text);
    demand->release_runs = (unsigned)runs;
    return 0;
}

/* Whether agents run under it at all, and which one (docs/advisory.md). */
static int load_mode(struct load *load, const struct json *mode, const struct json *release)
{
    static const char *const words[] = {"governed", "advisory", NULL};
    struct demand *demand = &load->policy->demand;
    size_t at = 0;

    if (mode && load_choice(load, mode, words, "\"mode\"", &at) < 0)
        return -1;
    demand->advisory_only = at == 1;
    return release ? load_release(load, release) : 0;
}

static int load_sections(struct load *load, const struct json *root)
{
    struct sections in = {0};

    if (load_kind(load, root, TAKES_MAP, "a policy") < 0 ||
        load_map(load, root, section_fields, COUNT(section_fields), &in) < 0 ||
        load_version(load, in.version) < 0 || load_default(load, in.fallback) < 0 ||
        load_approvals(load, in.approvals) < 0 || load_commands(load, in.commands, in.paths) < 0 ||
        load_filesystem(load, in.filesystem_policy) < 0 || load_landlock(load, in.landlock) < 0 ||
        load_process(load, in.process) < 0 || load_limits(load, in.limits) < 0 ||
        load_budgets(load, in.budget) < 0 || load_elevated(load, in.elevated) < 0 ||
        load_network(load, in.network_policies, in.network_peers, in.agent_proposals, in.secrets) <
            0 ||
        refuse_middlewares(load, in.network_middlewares) < 0 || load_role(load, root) < 0 ||
        load_mode(load, in.mode, in.requires_release) < 0 || load_bundles(load, in.bundles) < 0 ||
        load_external(load, in.external) < 0)
        return -1;
    return 0;
}

static int hash_policy(struct policy *policy, const struct json *root, struct err *err)
{
    /* Escapes can make one byte six. */
    AUTO_BUF struct buf canonical = BUF(8 * POLICY_TEXT_MAX);

    if (json_canonical(root, &canonical, err) < 0)
        return err_in(err, "canonical form");
    hash_text_of(buf_str(&canonical), policy->own_hash);
    layers_hash(NULL, policy, policy->hash);
    return 0;
}

static int read_tree(struct load *load, struct str text, const struct json **root)
{
    if (text.n > POLICY_TEXT_MAX)
        return err_set(load->err, ERR_LIMIT, "a policy may have at most %lu bytes, this has %zu",
                       POLICY_TEXT_MAX, text.n);
    if (yaml_parse(load->mem, text, root, &load->where, load->err) == 0)
        return 0;
    if (load->where.line && !str_starts(str_of(load->err->text), "line "))
        return err_in(load->err, "line %u, column %u", load->where.line, load->where.column);
    return -1;
}

int policy_parse_plain(struct str text, enum policy_role role, struct policy **out,
                       struct mark *where, struct err *err)
{
    AUTO(policy) struct policy *policy = xcalloc(1, sizeof *policy);
    struct load load = {.policy = policy, .mem = &policy->mem, .text = text, .err = err};
    const struct json *root = NULL;

    policy->mem = ARENA(POLICY_MEMORY_MAX);
    policy->role = role;
    if (read_tree(&load, text, &root) < 0 || load_sections(&load, root) < 0 ||
        hash_policy(policy, root, err) < 0) {
        *where = load.where;
        return -1;
    }
    *out = TAKE(policy);
    return 0;
}

int ceiling_parse(struct str text, struct policy **out, struct mark *where, struct err *err)
{
    return policy_parse_plain(text, ROLE_CEILING, out, where, err);
}

int overlay_parse(struct str text, struct policy **out, struct mark *where, struct err *err)
{
    return policy_parse_plain(text, ROLE_OVERLAY, out, where, err);
}

/* On top of those it has. */
static int add_overlays(struct policy *policy, const struct stack_parts *parts, struct mark *where,
                        struct err *err)
{
    for (size_t i = 0; i < parts->overlay_n; i++) {
        size_t at = policy->overlay_n;

        if (at == POLICY_OVERLAYS_MAX)
            return err_set(err, ERR_LIMIT, "there are more than %d overlays", POLICY_OVERLAYS_MAX);
        if (overlay_parse(parts->overlays[i], &policy->overlays[at], where, err) < 0)
            return err_in(err, "overlay %zu", at + 1);
        policy->overlay_n++;
    }
    layers_hash(NULL, policy, policy->hash);
    return 0;
}

static int parse_bundle(struct str text, struct policy **out, struct mark *where, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(POLICY_MEMORY_MAX);
    AUTO(policy) struct policy *policy = NULL;
    struct policy_bundle bundle;
    struct stack_parts parts;

    if (bundle_read(&mem, text, &bundle, &parts, err) < 0 ||
        policy_parse_plain(parts.policy, ROLE_POLICY, &policy, where, err) < 0 ||
        add_overlays(policy, &parts, where, err) < 0)
        return err_in(err, "bundle");
    policy->bundle = bundle;
    *out = TAKE(policy);
    return 0;
}

static int parse_below(struct str text, struct policy **out, struct mark *where, struct err *err)
{
    if (text.n == 0)
        return policy_builtin(out, err);
    return is_bundle_text(text) ? parse_bundle(text, out, where, err)
                                : policy_parse_plain(text, ROLE_POLICY, out, where, err);
}

static int parse_stack(struct str text, struct policy **out, struct mark *where, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(POLICY_MEMORY_MAX);
    AUTO(policy) struct policy *policy = NULL;
    struct stack_parts parts;

    if (stack_read(&mem, text, &parts, err) < 0 ||
        parse_below(parts.policy, &policy, where, err) < 0 ||
        add_overlays(policy, &parts, where, err) < 0)
        return -1;
    *out = TAKE(policy);
    return 0;
}

int policy_parse(struct str text, struct policy **out, struct mark *where, struct err *err)
{
    bool is_plain = policy_is_plain(text);

    *where = (struct mark){0};
    if (!is_plain && text.n > POLICY_TEXT_MAX)
        return err_set(err, ERR_LIMIT, "a policy and its overlays may have at most %lu bytes",
                       POLICY_TEXT_MAX);
    if (is_plain)
        return policy_parse_plain(text, ROLE_POLICY, out, where, err);
    if ((is_stack_text(text) ? parse_stack(text, out, where, err)
                             : parse_bundle(text, out, where, err)) == 0)
        return 0;
    *where = (struct mark){0}; /* the place is one of a text inside */
    return -1;
}

bool ceiling_wants_bundles(const struct policy *ceiling)
{
    return ceiling->wants_bundles;
}

void policy_problem_done(struct policy_problem *problem)
{
    buf_done(&problem->text);
}

int policy_open_showing(const char *path, struct policy **out, struct policy_problem *problem,
                        struct err *err)
{
    problem->text = BUF(POLICY_TEXT_MAX);
    if (file_read(AT_FDCWD, path, &problem->text, err) < 0)
        return err_in(err, "policy");
    if (policy_parse(buf_str(&problem->text), out, &problem->mark, err) < 0)
        return err_in(err, "%s", path);
    return 0;
}

int policy_open(const char *path, struct policy **out, struct err *err)
{
    AUTO_POLICY_PROBLEM struct policy_problem problem = {0};

    return policy_open_showing(path, out, &problem, err);
}

int policy_builtin(struct policy **out, struct err *err)
{
    struct mark where;

    if (policy_parse((struct str){policy_default_text, policy_default_bytes}, out, &where, err) < 0)
        return err_in(err, "built-in policy");
    return 0;
}

void policy_free(struct policy *policy)
{
    if (!policy)
        return;
    for (size_t i = 0; i < policy->overlay_n; i++)
        policy_free(policy->overlays[i]);
    arena_done(&policy->mem);
    free(policy);
}

const char *policy_hash(const struct policy *policy)
{
    return policy->hash;
}

size_t policy_rule_count(const struct policy *policy)
{
    return policy->rule_n;
}

const char *policy_not_enforceable(const struct policy *policy)
{
    return policy->demand.not_enforceable;
}
