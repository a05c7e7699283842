/* SPDX-License-Identifier: Apache-2.0 */
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
    const struct json *mode;
    const struct json *secrets;
    const struct json *external;
};

#define TAKES_ANY (TAKES_NULL | TAKES_BOOL | TAKES_NUMBER | TAKES_TEXT | TAKES_LIST | TAKES_MAP)
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
    SECTION(paths, TAKES_ANY),
    SECTION(approvals, TAKES_ANY),
    SECTION(budget, TAKES_ANY),
    SECTION(mode, TAKES_ANY),
    SECTION(secrets, TAKES_ANY),
    SECTION(external, TAKES_ANY),
};

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

/* Sections of later versions: known by name, so that a policy which relies on one is refused
 * when something is to run under it, not taken for complete. An empty one relies on nothing,
 * but what an empty one means is not settled either. */
static void note_later_sections(struct load *load, const struct json *root)
{
    static const char *const later[] = {"paths", "approvals", "budget",
                                        "mode",  "secrets",   "external"};

    json_each(member, root)
    {
        for (size_t i = 0; i < COUNT(later); i++)
            if (str_is(member->key, later[i]))
                load_not_enforceable(load, member->key_mark, later[i]);
    }
}

static int load_sections(struct load *load, const struct json *root)
{
    struct sections in = {0};

    if (load_kind(load, root, TAKES_MAP, "a policy") < 0 ||
        load_map(load, root, section_fields, COUNT(section_fields), &in) < 0 ||
        load_version(load, in.version) < 0 || load_default(load, in.fallback) < 0 ||
        load_commands(load, in.commands) < 0 || load_filesystem(load, in.filesystem_policy) < 0 ||
        load_landlock(load, in.landlock) < 0 || load_process(load, in.process) < 0 ||
        load_limits(load, in.limits) < 0 ||
        load_network(load, in.network_policies, in.network_peers, in.agent_proposals) < 0 ||
        refuse_middlewares(load, in.network_middlewares) < 0)
        return -1;
    note_later_sections(load, root);
    return 0;
}

static int hash_policy(struct policy *policy, const struct json *root, struct err *err)
{
    /* Escapes can make one byte six. */
    AUTO_BUF struct buf canonical = BUF(8 * POLICY_TEXT_MAX);

    if (json_canonical(root, &canonical, err) < 0)
        return err_in(err, "canonical form");
    hash_text_of(buf_str(&canonical), policy->hash);
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

int policy_parse(struct str text, struct policy **out, struct mark *where, struct err *err)
{
    AUTO(policy) struct policy *policy = xcalloc(1, sizeof *policy);
    struct load load = {.policy = policy, .mem = &policy->mem, .err = err};
    const struct json *root = NULL;

    policy->mem = ARENA(POLICY_MEMORY_MAX);
    if (read_tree(&load, text, &root) < 0 || load_sections(&load, root) < 0 ||
        hash_policy(policy, root, err) < 0) {
        *where = load.where;
        return -1;
    }
    *out = TAKE(policy);
    return 0;
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
