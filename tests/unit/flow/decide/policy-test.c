/* SPDX-License-Identifier: Apache-2.0 */
#include "vectors.h"

#include <stdio.h>

#define VECTORS SOURCE_ROOT "/tests/vectors/policy/"

static int parse(const char *text, struct policy **out, struct mark *where, struct err *err)
{
    return policy_parse(str_of(text), out, where, err);
}

/* ---- refused ---- */

static void check_refused(struct arena *mem, const struct json *one, const char *file)
{
    const char *error = vector_get(mem, one, "error");
    const char *begins = vector_get(mem, one, "error_begins");
    struct str text = json_get(one, "policy")->text;
    AUTO(policy) struct policy *policy = NULL;
    struct mark where = {0, 0};
    unsigned line = 0, column = 0;
    struct err err;

    if (policy_parse(text, &policy, &where, &err) == 0) {
        test_fail(file, (int)one->mark.line, "loads");
        return;
    }
    CHECK(policy == NULL);
    if (err.code != ERR_INVALID)
        test_fail(file, (int)one->mark.line, "code %s", err_name(err.code));
    if (error)
        test_check_text(file, (int)one->mark.line, "text", err.text, error);
    if (begins && !str_starts(str_of(err.text), begins))
        test_fail(file, (int)one->mark.line, "\"%s\" does not begin with \"%s\"", err.text, begins);
    /* The mark and the sentence name the same place. */
    if (sscanf(err.text, "line %u, column %u: ", &line, &column) != 2 || line != where.line ||
        column != where.column)
        test_fail(file, (int)one->mark.line, "mark %u:%u, text \"%s\"", where.line, where.column,
                  err.text);
}

static void check_refused_file(const char *file)
{
    AUTO_ARENA struct arena mem = ARENA(16 * MIB);
    const struct json *cases = vector_tree(&mem, file);

    CHECK(cases->n > 0);
    json_each(one, cases) check_refused(&mem, one, file);
}

TEST(policies_of_a_wrong_shape_are_refused_with_their_place)
{
    check_refused_file(VECTORS "refused/shape.yaml");
}

TEST(wrong_walls_are_refused_with_their_place)
{
    check_refused_file(VECTORS "refused/walls.yaml");
}

TEST(wrong_command_rules_are_refused_with_their_place)
{
    check_refused_file(VECTORS "refused/commands.yaml");
}

TEST(wrong_conditions_are_refused_with_their_place)
{
    check_refused_file(VECTORS "refused/conditions.yaml");
}

TEST(wrong_network_rules_are_refused_with_their_place)
{
    check_refused_file(VECTORS "refused/network.yaml");
    check_refused_file(VECTORS "refused/budget.yaml");
}

TEST(wrong_secrets_and_paths_are_refused_with_their_place)
{
    check_refused_file(VECTORS "refused/secrets.yaml");
}

/* ---- ceilings ---- */

static void many_paths(struct buf *text, size_t read_only, size_t read_write)
{
    struct err err;

    CHECK_INT(buf_add_text(text, "version: 1\nfilesystem_policy:\n  read_only: [", &err), 0);
    for (size_t i = 0; i < read_only; i++)
        CHECK_INT(buf_addf(text, &err, "%s/a%zu", i ? "," : "", i), 0);
    CHECK_INT(buf_add_text(text, "]\n  read_write: [", &err), 0);
    for (size_t i = 0; i < read_write; i++)
        CHECK_INT(buf_addf(text, &err, "%s/b%zu", i ? "," : "", i), 0);
    CHECK_INT(buf_add_text(text, "]\n", &err), 0);
}

TEST(the_257th_path_is_refused)
{
    static const struct {
        size_t read_only;
        size_t read_write;
        int result;
    } cases[] = {
        {256, 0,   0 },
        {0,   256, 0 },
        {200, 56,  0 },
        {257, 0,   -1},
        {200, 57,  -1},
        {0,   257, -1},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        AUTO_BUF struct buf text = BUF(MIB);
        AUTO(policy) struct policy *policy = NULL;
        struct mark where;
        struct err err;

        many_paths(&text, cases[i].read_only, cases[i].read_write);
        CHECK_INT(policy_parse(buf_str(&text), &policy, &where, &err), cases[i].result);
        if (cases[i].result < 0)
            CHECK(strstr(err.text, "more than 256 paths in filesystem_policy"));
    }
}

TEST(a_path_of_4097_bytes_is_refused)
{
    for (int extra = 0; extra <= 1; extra++) {
        AUTO_BUF struct buf text = BUF(MIB);
        AUTO(policy) struct policy *policy = NULL;
        struct mark where;
        struct err err;

        CHECK_INT(buf_addf(&text, &err,
                           "version: 1\nfilesystem_policy:\n  read_only:\n    - /%0*d\n",
                           4095 + extra, 0),
                  0);
        CHECK_INT(policy_parse(buf_str(&text), &policy, &where, &err), -extra);
        if (extra)
            CHECK_TEXT(err.text, "line 4, column 7: a path is longer than 4096 bytes");
    }
}

TEST(a_text_past_1_mib_is_refused_whatever_it_says)
{
    AUTO_BUF struct buf text = BUF(2 * MIB);
    AUTO(policy) struct policy *policy = NULL;
    struct mark where;
    struct err err;

    CHECK_INT(buf_add_text(&text, "version: 1\n#", &err), 0);
    while (text.n < POLICY_TEXT_MAX)
        CHECK_INT(buf_add_byte(&text, 'x', &err), 0);
    CHECK_INT(policy_parse(buf_str(&text), &policy, &where, &err), 0);
    policy_free(TAKE(policy));
    CHECK_INT(buf_add_byte(&text, 'x', &err), 0);
    CHECK_INT(policy_parse(buf_str(&text), &policy, &where, &err), -1);
    CHECK_INT(err.code, ERR_LIMIT);
    CHECK_TEXT(err.text, "a policy may have at most 1048576 bytes, this has 1048577");
    CHECK_INT(where.line, 0);
}

TEST(the_16385th_rule_is_refused)
{
    for (size_t extra = 0; extra <= 1; extra++) {
        AUTO_BUF struct buf text = BUF(2 * MIB);
        AUTO(policy) struct policy *policy = NULL;
        struct mark where;
        struct err err;

        CHECK_INT(buf_add_text(&text, "version: 1\ncommands:\n", &err), 0);
        for (size_t i = 0; i < POLICY_RULES_MAX + extra; i++)
            CHECK_INT(buf_addf(&text, &err, "  - {name: r%zu, deny: [p%zu]}\n", i, i), 0);
        CHECK_INT(policy_parse(buf_str(&text), &policy, &where, &err), extra ? -1 : 0);
        if (extra)
            CHECK_TEXT(err.text, "line 3, column 3: more than 16384 rules");
        else
            CHECK_INT(policy_rule_count(policy), POLICY_RULES_MAX);
    }
}

TEST(as_many_patterns_as_the_text_can_hold_fit_into_memory)
{
    AUTO_BUF struct buf text = BUF(2 * MIB);
    AUTO(policy) struct policy *policy = NULL;
    struct mark where;
    struct err err;

    CHECK_INT(buf_add_text(&text, "version: 1\ncommands:\n", &err), 0);
    for (size_t rule = 0; text.n < POLICY_TEXT_MAX - 400; rule++) {
        CHECK_INT(buf_add_text(&text, "- deny: [[/a", &err), 0);
        for (size_t i = 1; i < POLICY_ALTERNATIVES_MAX; i++)
            CHECK_INT(buf_add_text(&text, ",/a", &err), 0);
        CHECK_INT(buf_add_text(&text, "]]\n", &err), 0);
    }
    CHECK(policy_parse(buf_str(&text), &policy, &where, &err) == 0 || err.code == ERR_LIMIT ||
          err.code == ERR_INVALID);
}

/* ---- loads ---- */

TEST(openshell_policies_load)
{
    AUTO_ARENA struct arena mem = ARENA(16 * MIB);
    const char *file = VECTORS "loads/openshell.yaml";
    const struct json *cases = vector_tree(&mem, file);

    CHECK(cases->n > 0);
    json_each(one, cases)
    {
        AUTO(policy) struct policy *policy = NULL;
        struct mark where;
        struct err err;

        if (policy_parse(json_get(one, "policy")->text, &policy, &where, &err) < 0)
            test_fail(file, (int)one->mark.line, "%s", err.text);
        else
            test_check_text(file, (int)one->mark.line, "not enforceable",
                            policy_not_enforceable(policy),
                            vector_get(&mem, one, "not_enforceable"));
    }
}

static struct run decided(const struct policy *policy)
{
    static const char *const argv[] = {"true", NULL};
    struct run run;
    struct err err;

    run_init(&run);
    run.action.argv = (struct words){argv, 1};
    CHECK_INT(decide_run(policy, &run, &err), 0);
    return run;
}

TEST(openshell_example_a_loads_and_demands_its_walls)
{
    static const char *const read_only[] = {"/usr", "/lib", "/lib64", "/bin", "/etc"};
    AUTO(policy) struct policy *policy = NULL;
    struct run run;
    struct err err;

    CHECK_INT(policy_open(VECTORS "openshell/a-offline-build.yaml", &policy, &err), 0);
    run = decided(policy);
    policy_free(TAKE(policy)); /* what the run was given is its own */
    CHECK_INT(run.verdict.kind, VERDICT_ALLOW);
    CHECK(run.demand.has_filesystem && run.demand.include_workdir);
    CHECK_INT(run.demand.read_only.n, 5);
    for (size_t i = 0; i < COUNT(read_only); i++)
        CHECK_TEXT(run.demand.read_only.v[i], read_only[i]);
    CHECK(run.demand.read_only.v[5] == NULL);
    CHECK_INT(run.demand.read_write.n, 2);
    CHECK_TEXT(run.demand.read_write.v[1], "/dev/null");
    CHECK(!run.demand.landlock_best_effort);
    CHECK_INT(run.demand.run_as_uid, 1500);
    CHECK_INT(run.demand.run_as_gid, 1500);
    CHECK(run.demand.not_enforceable == NULL);
    run_done(&run);
}

TEST(openshell_example_b_loads_and_demands_its_network)
{
    static const char begin[] = "{\"network_policies\":{";
    AUTO(policy) struct policy *policy = NULL;
    struct run run;
    struct err err;

    CHECK_INT(policy_open(VECTORS "openshell/b-issue-tracker.yaml", &policy, &err), 0);
    run = decided(policy);
    policy_free(TAKE(policy)); /* what the run was given is its own */
    CHECK_INT(run.verdict.kind, VERDICT_ALLOW);
    CHECK(run.demand.not_enforceable == NULL);
    CHECK(str_starts(run.demand.network_rules, begin));
    run_done(&run);
}

TEST(openshell_example_c_is_refused_for_its_middleware)
{
    AUTO(policy) struct policy *policy = NULL;
    struct err err;

    CHECK_INT(policy_open(VECTORS "openshell/c-mcp-database.yaml", &policy, &err), -1);
    CHECK_INT(err.code, ERR_INVALID);
    CHECK(strstr(err.text, "c-mcp-database.yaml: line 22, column 1: network_middlewares is not "
                           "enforceable by Brig"));
    CHECK(policy == NULL);
}

TEST(limits_arrive_in_their_units)
{
    static const struct {
        const char *limits;
        enum limit_kind kind;
        uint64_t value;
    } cases[] = {
        {"cpu: 1.5",       LIMIT_CPU,    1500         },
        {"cpu: 2",         LIMIT_CPU,    2000         },
        {"cpu: 0.001",     LIMIT_CPU,    1            },
        {"cpu: 1024",      LIMIT_CPU,    1024000      },
        {"memory: 512M",   LIMIT_MEMORY, 512ULL << 20 },
        {"memory: 1.5G",   LIMIT_MEMORY, 1536ULL << 20},
        {"memory: 4096",   LIMIT_MEMORY, 4096         },
        {"pids: 10",       LIMIT_PIDS,   10           },
        {"disk: 10MiB",    LIMIT_DISK,   10ULL << 20  },
        {"inodes: 5000",   LIMIT_INODES, 5000         },
        {"timeout: 30s",   LIMIT_WALL,   30000        },
        {"timeout: 90",    LIMIT_WALL,   90000        },
        {"timeout: 720h",  LIMIT_WALL,   2592000000   },
        {"timeout: 250ms", LIMIT_WALL,   250          },
        {"output: 1M",     LIMIT_OUTPUT, 1ULL << 20   },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        AUTO(policy) struct policy *policy = NULL;
        char text[128];
        struct mark where;
        struct run run;
        struct err err;

        (void)snprintf(text, sizeof text, "version: 1\nlimits: {%s}\n", cases[i].limits);
        CHECK_INT(parse(text, &policy, &where, &err), 0);
        run = decided(policy);
        for (unsigned kind = 0; kind < LIMIT_COUNT; kind++) {
            const struct limit *limit = &run.demand.limits.of[kind];

            CHECK_INT(limit->value, kind == cases[i].kind ? cases[i].value : 0);
            CHECK_INT(limit->origin, kind == cases[i].kind ? ORIGIN_POLICY : ORIGIN_DEFAULT);
        }
        run_done(&run);
    }
}

TEST(landlock_is_required_unless_best_effort_is_written)
{
    static const struct {
        const char *text;
        bool best_effort;
    } cases[] = {
        {"version: 1",                                              false},
        {"version: 1\nlandlock: {}",                                false},
        {"version: 1\nlandlock: {compatibility: hard_requirement}", false},
        {"version: 1\nlandlock: {compatibility: best_effort}",      true },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        AUTO(policy) struct policy *policy = NULL;
        struct mark where;
        struct run run;
        struct err err;

        CHECK_INT(parse(cases[i].text, &policy, &where, &err), 0);
        run = decided(policy);
        CHECK_INT(run.demand.landlock_best_effort, cases[i].best_effort);
        run_done(&run);
    }
}

/* ---- hash ---- */

TEST(hash_is_about_what_is_said_not_how)
{
    static const char *const same[] = {
        "version: 1\ndefault: allow\nlimits: {pids: 5, cpu: 1.5}\n",
        "# a comment\nlimits:\n  cpu: 1.50   # and another\n  pids: 5\ndefault: \"allow\"\nversion: 1\n",
        "{\"limits\": {\"cpu\": 1.5, \"pids\": 5}, \"version\": 1, \"default\": \"allow\"}",
    };
    static const char *const different[] = {
        "version: 1\ndefault: allow\nlimits: {pids: 6, cpu: 1.5}\n",
        "version: 1\ndefault: deny\nlimits: {pids: 5, cpu: 1.5}\n",
        "version: 1\ndefault: allow\nlimits: {pids: 5}\n",
        "version: 1\ndefault: allow\nlimits: {pids: 5, cpu: 1.5}\nnetwork_policies: {}\n",
    };
    AUTO(policy) struct policy *first = NULL;
    struct mark where;
    struct err err;

    CHECK_INT(parse(same[0], &first, &where, &err), 0);
    CHECK_INT(strlen(policy_hash(first)), 71);
    /* SHA-256 of {"default":"allow","limits":{"cpu":1.5,"pids":5},"version":1} */
    CHECK_TEXT(policy_hash(first),
               "sha256:8022698f596a918872d08653955cf758da4d91ecc03a33e3676cf3d8bba5eb31");
    for (size_t i = 1; i < COUNT(same); i++) {
        AUTO(policy) struct policy *policy = NULL;

        CHECK_INT(parse(same[i], &policy, &where, &err), 0);
        CHECK_TEXT(policy_hash(policy), policy_hash(first));
    }
    for (size_t i = 0; i < COUNT(different); i++) {
        AUTO(policy) struct policy *policy = NULL;

        CHECK_INT(parse(different[i], &policy, &where, &err), 0);
        CHECK(strcmp(policy_hash(policy), policy_hash(first)) != 0);
    }
}

/* ---- files ---- */

TEST(a_wrong_file_is_shown_with_a_caret)
{
    static const char text[] = "version: 1\ncommands:\n  - exce: [ls]\n";
    AUTO_POLICY_PROBLEM struct policy_problem problem = {0};
    AUTO(policy) struct policy *policy = NULL;
    AUTO_BUF struct buf shown = BUF(4096);
    char path[] = "/tmp/brig-policy-test-XXXXXX";
    AUTO_FD int fd = mkstemp(path);
    char wanted[512];
    struct err err;

    CHECK(fd >= 0);
    CHECK_INT(write_all(fd, text, sizeof text - 1, &err), 0);
    CHECK_INT(policy_open_showing(path, &policy, &problem, &err), -1);
    (void)unlink(path);
    (void)snprintf(
        wanted, sizeof wanted,
        "%s: line 3, column 5: unknown key \"exce\"; known keys here: name, allow, ask, "
        "deny, reason, principal, tenant, provider, tool, env, paths, effect, risk, time, "
        "cost, when, approval",
        path);
    CHECK_TEXT(err.text, wanted);
    CHECK_INT(mark_show(problem.mark, buf_str(&problem.text), &shown, &err), 0);
    CHECK_TEXT(buf_text(&shown), "    3 |   - exce: [ls]\n      |     ^\n");
}

TEST(a_file_that_is_not_there_says_so)
{
    AUTO_POLICY_PROBLEM struct policy_problem problem = {0};
    AUTO(policy) struct policy *policy = NULL;
    struct err err;

    CHECK_INT(policy_open_showing("/nonexistent/policy.yaml", &policy, &problem, &err), -1);
    CHECK_INT(err.code, ERR_NOT_FOUND);
    CHECK_TEXT(err.text, "policy: opening /nonexistent/policy.yaml: No such file or directory");
    CHECK_INT(problem.mark.line, 0);
    CHECK(policy == NULL);
}

TEST(the_built_in_policy_is_the_shipped_file_and_allows_without_demands)
{
    AUTO(policy) struct policy *built_in = NULL;
    AUTO(policy) struct policy *file = NULL;
    struct run run;
    struct err err;

    CHECK_INT(policy_builtin(&built_in, &err), 0);
    CHECK_INT(policy_open(SOURCE_ROOT "/policies/default.yaml", &file, &err), 0);
    CHECK_TEXT(policy_hash(built_in), policy_hash(file));
    run = decided(built_in);
    CHECK_INT(run.verdict.kind, VERDICT_ALLOW);
    CHECK_INT(run.verdict.reason, REASON_POLICY_DEFAULT_ALLOW);
    CHECK(!run.demand.has_filesystem && !run.demand.not_enforceable);
    for (unsigned kind = 0; kind < LIMIT_COUNT; kind++)
        CHECK_INT(run.demand.limits.of[kind].value, 0);
    run_done(&run);
}
