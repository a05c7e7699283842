/* SPDX-License-Identifier: Apache-2.0 */
/* Layers only take away: in tables, and in a few thousand random policies. */
#include "vectors.h"

#include "lib/crypto/crypto.h"

#define VECTORS SOURCE_ROOT "/tests/vectors/policy/layers/"

static struct policy *parse_as(const char *text, int layer, const char *file, unsigned line)
{
    struct policy *policy = NULL;
    struct mark where;
    struct err err;
    int failed = layer == 0   ? policy_parse(str_of(text), &policy, &where, &err)
                 : layer == 1 ? ceiling_parse(str_of(text), &policy, &where, &err)
                              : overlay_parse(str_of(text), &policy, &where, &err);

    if (failed)
        test_fail(file, (int)line, "%s", err.text);
    return failed ? NULL : policy;
}

/* The policy of a group with its overlays on it. */
static struct policy *parse_stack(struct arena *mem, const struct json *group, const char *file)
{
    AUTO_BUF struct buf stack = BUF(POLICY_TEXT_MAX);
    const struct json *overlays = json_get(group, "overlays");
    struct str texts[POLICY_OVERLAYS_MAX];
    size_t n = 0;
    struct err err;

    if (!overlays)
        return parse_as(vector_get(mem, group, "policy"), 0, file, group->mark.line);
    json_each(overlay, overlays) texts[n++] = overlay->text;
    if (policy_stack_text(json_get(group, "policy")->text, texts, n, &stack, &err) < 0) {
        test_fail(file, (int)group->mark.line, "%s", err.text);
        return NULL;
    }
    return parse_as(buf_text(&stack), 0, file, group->mark.line);
}

static void check_case(struct arena *mem, const struct policy *ceiling, const struct policy *policy,
                       const struct json *one, const char *file)
{
    static const char *const words[] = {"deny", "ask", "allow"};
    const char *text = vector_get(mem, one, "text"), *rule = vector_get(mem, one, "rule");
    const char *reason = vector_get(mem, one, "reason");
    int line = (int)one->mark.line;
    int64_t wanted = 0;
    struct run run;
    struct err err;

    run_init(&run);
    run.action.argv = vector_words(&run.mem, json_get(one, "run"));
    CHECK_INT(decide_under(ceiling, policy, &run, &err), 0);
    test_check_text(file, line, "verdict", words[run.verdict.kind], vector_get(mem, one, "expect"));
    test_check_text(file, line, "layer", run.verdict.layer, vector_get(mem, one, "layer"));
    if (rule)
        test_check_text(file, line, "rule", run.verdict.rule, rule);
    if (text)
        test_check_text(file, line, "text", run.verdict.text, text);
    if (reason)
        test_check_text(file, line, "reason", reason_code(run.verdict.reason), reason);
    if (json_is_int(json_get(one, "line"), &wanted))
        test_check_int(file, line, "line", run.verdict.line, wanted);
    run_done(&run);
}

TEST(the_strictest_layer_holds_and_is_named)
{
    static const char file[] = VECTORS "verdicts.yaml";
    AUTO_ARENA struct arena mem = ARENA(16 * MIB);
    const struct json *groups = vector_tree(&mem, file);

    CHECK(groups->n >= 4);
    json_each(group, groups)
    {
        const char *text = vector_get(&mem, group, "ceiling");
        AUTO(policy)
        struct policy *ceiling = text ? parse_as(text, 1, file, group->mark.line) : NULL;
        AUTO(policy) struct policy *policy = parse_stack(&mem, group, file);

        if (policy)
            json_each(one, json_get(group, "cases")) check_case(&mem, ceiling, policy, one, file);
    }
}

TEST(a_layer_refuses_what_it_cannot_hold)
{
    static const char file[] = VECTORS "refused.yaml";
    static const char *const names[] = {"ceiling", "overlay"};
    AUTO_ARENA struct arena mem = ARENA(16 * MIB);

    json_each(one, vector_tree(&mem, file))
    {
        const char *wanted = vector_get(&mem, one, "error");
        const char *at = strstr(wanted, "LAYER");
        struct str text = json_get(one, "text")->text;

        for (size_t i = 0; i < COUNT(names); i++) {
            AUTO(policy) struct policy *policy = NULL;
            struct mark where;
            struct err err = {0};

            CHECK_INT(i == 0 ? ceiling_parse(text, &policy, &where, &err)
                             : overlay_parse(text, &policy, &where, &err),
                      -1);
            test_check_text(
                file, (int)one->mark.line, "error", err.text,
                arena_printf(&mem, "%.*s%s%s", (int)(at - wanted), wanted, names[i], at + 5));
        }
    }
}

/* ---- what they demand of the sandbox ---- */

static void demand_of(const char *ceiling_text, const char *policy_text, struct run *run)
{
    AUTO(policy) struct policy *ceiling = parse_as(ceiling_text, 1, __FILE__, __LINE__);
    AUTO(policy) struct policy *policy = parse_as(policy_text, 0, __FILE__, __LINE__);
    static const char *const argv[] = {"true", NULL};
    struct err err;

    run_init(run);
    run->action.argv = (struct words){argv, 1};
    CHECK_INT(decide_under(ceiling, policy, run, &err), 0);
}

TEST(a_layer_that_asks_wants_the_word_of_the_policys_default_group)
{
    struct run run;

    demand_of("version: 1\ncommands: [{ask: [\"**\"]}]\n",
              "version: 1\ndefault: allow\n"
              "approvals: {default: {by: [\"custodian:*\"], quorum: 2}, other: {by: [ana]}}\n",
              &run);
    CHECK_INT(run.verdict.kind, VERDICT_ASK);
    CHECK_TEXT(run.verdict.layer, "ceiling");
    CHECK(run.verdict.terms != NULL);
    CHECK_TEXT(run.verdict.terms->group, "default");
    CHECK_INT(run.verdict.terms->quorum, 2);
    run_done(&run);
}

TEST(the_smaller_limit_and_the_common_paths_hold)
{
    struct run run;

    demand_of("version: 1\n"
              "limits: {memory: 1G, pids: 10}\n"
              "filesystem_policy:\n"
              "  read_only: [/usr/share, /etc]\n"
              "  read_write: [/tmp/a, /var]\n"
              "network_policies: {}\n",
              "version: 1\n"
              "limits: {memory: 2G, cpu: 2}\n"
              "filesystem_policy:\n"
              "  include_workdir: true\n"
              "  read_only: [/usr, /var/lib]\n"
              "  read_write: [/tmp, /etc/x, /variable]\n"
              "network_policies:\n"
              "  a:\n"
              "    endpoints: [{host: example.org, port: 443}]\n"
              "    binaries: [{path: /usr/bin/curl}]\n",
              &run);
    CHECK_INT(run.verdict.kind, VERDICT_ALLOW);
    CHECK_INT(run.demand.limits.of[LIMIT_MEMORY].value, 1ULL << 30);
    CHECK_INT(run.demand.limits.of[LIMIT_CPU].value, 2000);
    CHECK_INT(run.demand.limits.of[LIMIT_PIDS].value, 0); /* the default, and never more than: */
    CHECK_INT(run.demand.most[LIMIT_PIDS], 10);
    CHECK(!run.demand.include_workdir);
    CHECK_INT(run.demand.read_only.n, 3);
    CHECK_TEXT(run.demand.read_only.v[0], "/usr/share");
    CHECK_TEXT(run.demand.read_only.v[1], "/var/lib");
    CHECK_TEXT(run.demand.read_only.v[2], "/etc/x");
    CHECK_INT(run.demand.read_write.n, 1);
    CHECK_TEXT(run.demand.read_write.v[0], "/tmp/a");
    CHECK_INT(run.demand.network_rules.n, 0);
    run_done(&run);
}

TEST(paths_are_not_taken_from_a_policy_that_lists_none)
{
    struct run run;

    demand_of("version: 1\nfilesystem_policy: {read_only: [/usr]}\n", "version: 1\n", &run);
    CHECK_INT(run.verdict.kind, VERDICT_DENY);
    CHECK_INT(run.verdict.reason, REASON_POLICY_NOT_ENFORCEABLE);
    CHECK_TEXT(run.verdict.text, "ceiling: filesystem_policy takes away from that of the policy, "
                                 "which has none; give the policy one");
    run_done(&run);
}

/* ---- the hash ---- */

TEST(the_hash_is_over_all_layers)
{
    static const char text[] = "version: 1\ndefault: allow\n";
    AUTO(policy) struct policy *policy = parse_as(text, 0, __FILE__, __LINE__);
    struct run run;
    char wanted[HASH_TEXT_BYTES];
    AUTO_BUF struct buf preimage = BUF(KIB);
    struct err err;

    demand_of(text, text, &run);
    CHECK_INT(buf_add(&preimage, "brig/policy-layers/1", 21, &err), 0);
    CHECK_INT(buf_add_text(&preimage, "{\"ceiling\":\"", &err), 0);
    CHECK_INT(buf_add_text(&preimage, policy_hash(policy), &err), 0);
    CHECK_INT(buf_add_text(&preimage, "\",\"overlays\":[],\"policy\":\"", &err), 0);
    CHECK_INT(buf_add_text(&preimage, policy_hash(policy), &err), 0);
    CHECK_INT(buf_add_text(&preimage, "\"}", &err), 0);
    hash_text_of(buf_str(&preimage), wanted);
    CHECK_TEXT(run.policy_hash, wanted);
    run_done(&run);
}

TEST(a_text_of_layers_is_exactly_as_brig_writes_it)
{
    static const char *const bad[] = {
        "{\"layers\":1}",
        "{\"layers\":2,\"overlays\":[]}",
        "{\"layers\":1,\"overlays\":[1]}",
        "{\"layers\":1, \"overlays\":[]}",
        "{\"layers\":1,\"overlays\":[],\"policy\":\"version: 1\",\"x\":1}",
        "{\"layers\":1,\"overlays\":[],\"policy\":7}",
        "{\"layers\":1,\"overlays\":[\"version: 1\\nprocess: {}\\n\"]}",
    };

    for (size_t i = 0; i < COUNT(bad); i++) {
        struct policy *policy = NULL;
        struct mark where;
        struct err err;

        CHECK_INT(policy_parse(str_of(bad[i]), &policy, &where, &err), -1);
        CHECK(policy == NULL);
    }
}

/* ---- nothing widens ---- */

static uint64_t seed;

static unsigned draw(unsigned n)
{
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (unsigned)(seed >> 33) % n;
}

static const char *const programs[] = {"git", "rm", "sh", "env", "cat"};
static const char *const others[] = {"push", "-c", "rm", "x", "--force"};

static const char *random_policy(struct arena *mem)
{
    static const char *const kinds[] = {"allow", "ask", "deny"};
    const char *text = "version: 1\n";
    unsigned rules = draw(4);

    if (draw(2))
        text = arena_printf(mem, "%sdefault: %s\n", text, kinds[draw(3)]);
    if (rules)
        text = arena_printf(mem, "%scommands:\n", text);
    for (unsigned i = 0; i < rules; i++)
        text = arena_printf(
            mem, "%s  - %s: [%s, %s%s]\n", text, kinds[draw(3)], programs[draw(COUNT(programs))],
            draw(2) ? arena_printf(mem, "\"%s\", ", others[draw(COUNT(others))]) : "",
            draw(2) ? "\"**\"" : "\"x\"");
    return text;
}

static enum verdict_kind verdict_by(const struct policy *ceiling, const struct policy *policy,
                                    struct words argv)
{
    enum verdict_kind kind;
    struct run run;
    struct err err;

    run_init(&run);
    run.action.argv = argv;
    CHECK_INT(decide_under(ceiling, policy, &run, &err), 0);
    kind = run.verdict.kind;
    run_done(&run);
    return kind;
}

TEST(no_layer_allows_more_than_any_other)
{
    for (unsigned round = 0; round < 3000; round++) {
        AUTO_ARENA struct arena mem = ARENA(16 * MIB);
        AUTO_BUF struct buf stack = BUF(POLICY_TEXT_MAX);
        const char *plain, *text;
        struct str overlay;
        const char *argv[4];
        struct words words = {argv, 1 + round % 3};
        enum verdict_kind alone, both, all;
        struct err err;

        seed = round + 1;
        plain = random_policy(&mem);
        text = random_policy(&mem);
        overlay = str_of(text);
        CHECK_INT(policy_stack_text(str_of(plain), &overlay, 1, &stack, &err), 0);
        {
            AUTO(policy) struct policy *policy = parse_as(plain, 0, __FILE__, __LINE__);
            AUTO(policy) struct policy *stacked = parse_as(buf_text(&stack), 0, __FILE__, __LINE__);
            AUTO(policy)
            struct policy *ceiling = parse_as(random_policy(&mem), 1, __FILE__, __LINE__);

            argv[0] = programs[draw(COUNT(programs))];
            argv[1] = draw(2) ? others[draw(COUNT(others))] : programs[draw(COUNT(programs))];
            argv[2] = others[draw(COUNT(others))];
            argv[words.n] = NULL;
            alone = verdict_by(NULL, policy, words);
            both = verdict_by(NULL, stacked, words);
            all = verdict_by(ceiling, stacked, words);
            if (both > alone || all > both || all > verdict_by(ceiling, policy, words))
                test_fail(__FILE__, __LINE__, "round %u: %d, with a layer %d, with two %d", round,
                          alone, both, all);
        }
    }
}

TEST(overlays_stay_when_the_policy_below_changes)
{
    static const char plain[] = "version: 1\ndefault: deny\n", other[] = "version: 1\n";
    struct str overlay = STR_LIT("version: 1\ncommands: [{deny: [rm]}]\n");
    AUTO_ARENA struct arena mem = ARENA(16 * MIB);
    AUTO_BUF struct buf stack = BUF(POLICY_TEXT_MAX);
    AUTO_BUF struct buf wanted = BUF(POLICY_TEXT_MAX);
    const char *text = NULL;
    struct err err;

    CHECK_INT(policy_stack_text(str_of(plain), &overlay, 1, &stack, &err), 0);
    CHECK_INT(policy_stack_text(str_of(other), &overlay, 1, &wanted, &err), 0);
    CHECK_INT(policy_restack(&mem, buf_str(&stack), str_of(other), &text, &err), 0);
    CHECK_TEXT(text, buf_text(&wanted));
    CHECK_INT(policy_restack(&mem, str_of(plain), str_of(other), &text, &err), 0);
    CHECK_TEXT(text, other);
    /* Two sets of overlays are not put on top of each other unasked. */
    CHECK_INT(policy_restack(&mem, buf_str(&stack), buf_str(&wanted), &text, &err), -1);
    CHECK_INT(err.code, ERR_CONFLICT);
}
