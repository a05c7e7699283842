/* SPDX-License-Identifier: Apache-2.0 */
#include "vectors.h"

#define VECTORS SOURCE_ROOT "/tests/vectors/policy/decisions/"

static void check_decisions(const char *file)
{
    AUTO_ARENA struct arena mem = ARENA(16 * MIB);
    const struct json *groups = vector_tree(&mem, file);

    CHECK(groups->n > 0);
    json_each(group, groups)
    {
        const struct json *cases = json_get(group, "cases");
        AUTO(policy) struct policy *policy = NULL;
        struct mark where;
        struct err err;

        if (policy_parse(json_get(group, "policy")->text, &policy, &where, &err) < 0) {
            test_fail(file, (int)group->mark.line, "%s", err.text);
            continue;
        }
        CHECK(cases && cases->n > 0);
        json_each(one, cases) vector_decide(&mem, policy, one, file);
    }
}

TEST(rules_match_words_and_the_strictest_decides)
{
    check_decisions(VECTORS "words.yaml");
}

TEST(carriers_are_looked_through_or_count_as_unseen)
{
    check_decisions(VECTORS "carriers.yaml");
}

TEST(conditions_narrow_a_rule_and_count_closed_when_unknown)
{
    check_decisions(VECTORS "conditions.yaml");
}

TEST(paths_are_those_of_the_folder_a_run_begins_in)
{
    check_decisions(VECTORS "paths.yaml");
}

TEST(no_command_is_a_denial_and_an_error)
{
    AUTO(policy) struct policy *policy = NULL;
    struct run run;
    struct err err;

    CHECK_INT(policy_builtin(&policy, &err), 0);
    run_init(&run);
    run.verdict.kind = VERDICT_ALLOW; /* left over from something else */
    CHECK_INT(decide_run(policy, &run, &err), -1);
    CHECK_INT(err.code, ERR_INVALID);
    CHECK_TEXT(err.text, "deciding: there is no command");
    CHECK_INT(run.verdict.kind, VERDICT_DENY);
    CHECK_INT(run.verdict.reason, REASON_DECISION_ERROR);
    run_done(&run);
}

static enum verdict_kind judge_words(const struct policy *policy, const char *const *v, size_t n)
{
    enum verdict_kind kind;
    struct run run;
    struct err err;

    run_init(&run);
    run.action.argv = (struct words){v, n};
    CHECK_INT(decide_run(policy, &run, &err), 0);
    kind = run.verdict.kind;
    run_done(&run);
    return kind;
}

/* What could be a path is looked for in all of a long word, and given up, which is a match, only
 * where there is more than anybody means. */
TEST(paths_in_long_words_are_found_in_bounded_time)
{
    static const char text[] =
        "version: 1\ndefault: allow\ncommands: [{deny: [], paths: [/etc/shadow]}]\n";
    static char tail[10000], colons[4001], json[4001];
    const char *words[257] = {"ls"};
    AUTO(policy) struct policy *policy = NULL;
    struct mark where;
    struct err err;

    CHECK_INT(policy_parse(str_of(text), &policy, &where, &err), 0);
    memset(tail, 'a', sizeof tail - 1);
    memset(colons, ':', sizeof colons - 1);
    for (size_t i = 0; i < sizeof json - 1; i++)
        json[i] = "\"ab\":12,"[i % 8];
    words[1] = tail;
    CHECK_INT(judge_words(policy, words, 2), VERDICT_ALLOW);
    memcpy(tail + sizeof tail - 13, ":/etc/shadow", 13);
    CHECK_INT(judge_words(policy, words, 2), VERDICT_DENY);
    words[1] = colons;
    CHECK_INT(judge_words(policy, words, 2), VERDICT_ALLOW);
    for (size_t i = 1; i < COUNT(words); i++)
        words[i] = json;
    CHECK_INT(judge_words(policy, words, COUNT(words)), VERDICT_ALLOW);
    for (size_t i = 1; i < COUNT(words); i++)
        words[i] = colons;
    CHECK_INT(judge_words(policy, words, COUNT(words)), VERDICT_DENY);
}

/* The largest request Linux would run, under rules that look at all of it. */
TEST(the_largest_command_is_decided)
{
    static const char rules[] =
        "version: 1\ndefault: allow\ncommands:\n"
        "  - {name: end, deny: [\"**\", a, \"**\", b, \"**\", \"*x*y*z\"]}\n"
        "  - {deny: [strace, \"**\", \"*a*a*a*b*\"]}\n";
    AUTO(policy) struct policy *policy = NULL;
    AUTO_FREE const char **v = xcalloc(ARGV_WORDS_MAX + 1, sizeof *v);
    AUTO_FREE char *big = xcalloc(1, 128 * KIB);
    struct mark where;
    struct run run;
    struct err err;

    memset(big, 'a', 128 * KIB - 1);
    for (size_t i = 0; i < ARGV_WORDS_MAX; i++)
        v[i] = i % 2 ? "a" : "b";
    v[0] = "strace";
    v[7] = big;
    CHECK_INT(policy_parse(str_of(rules), &policy, &where, &err), 0);
    run_init(&run);
    run.action.argv = (struct words){v, ARGV_WORDS_MAX};
    CHECK_INT(decide_run(policy, &run, &err), 0);
    CHECK_INT(run.verdict.kind, VERDICT_ASK);
    v[ARGV_WORDS_MAX - 1] = "xyz";
    CHECK_INT(decide_run(policy, &run, &err), 0);
    CHECK_INT(run.verdict.kind, VERDICT_DENY);
    CHECK_TEXT(run.verdict.rule, "end");
    run.action.argv.n = ARGV_WORDS_MAX + 1;
    CHECK_INT(decide_run(policy, &run, &err), -1);
    CHECK_INT(run.verdict.kind, VERDICT_DENY);
    run_done(&run);
}
