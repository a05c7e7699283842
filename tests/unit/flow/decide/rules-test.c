/* SPDX-License-Identifier: Apache-2.0 */
/* The index finds what a look at every rule finds; the catalogue is as it is documented. */
#include "vectors.h"

#include "flow/decide/effects.h"
#include "flow/decide/policy.h"

static uint64_t seed;

static unsigned draw(unsigned n)
{
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (unsigned)(seed >> 33) % n;
}

#define ONE_OF(list) ((list)[draw(COUNT(list))])

static const char *const rule_programs[] = {
    "git",    "rm",  "\"git*\"",    "/usr/bin/git", "\"/opt/*/rm\"", "[git, rm]",
    "\"**\"", "env", "/bin/rm",     "./git",        "[cat, /x/cat]", "\"[gr]*\"",
    "cat/",   "a/.", "\"gi\\\\t\"", "timeout",      "\"/usr/**\"",   "sh",
};
static const char *const conditions[] = {
    "",
    "",
    "",
    ", principal: ana",
    ", risk: \">=E3\"",
    ", effect: [DATA_DELETE, E4]",
    ", paths: \"/workspace/**\"",
    ", when: 'size(command) > 2'",
    ", when: 'command[2] == \"x\"'",
    ", env: A",
};
static const char *const words[] = {"x", "-rf", "\"**\"", "\"*\"", "[x, y]", "push"};

static const char *random_rule(struct arena *mem, const char *kind)
{
    const char *condition = ONE_OF(conditions);
    bool wordless = *condition && draw(4) == 0;
    const char *text = arena_printf(mem, "  - {%s: [", kind);

    if (!wordless) {
        text = arena_printf(mem, "%s%s", text, ONE_OF(rule_programs));
        for (unsigned i = draw(3); i; i--)
            text = arena_printf(mem, "%s, %s", text, ONE_OF(words));
    }
    return arena_printf(mem, "%s]%s}\n", text, condition);
}

/* Some are refused, an allow rule over everything for one: then another is drawn. */
static struct policy *random_policy(struct arena *mem)
{
    static const char *const kinds[] = {"allow", "ask", "deny"};

    for (;;) {
        struct policy *policy = NULL;
        const char *text = arena_printf(mem, "version: 1\ndefault: %s\ncommands:\n", ONE_OF(kinds));
        struct mark where;
        struct err err;

        for (unsigned i = 1 + draw(8); i; i--)
            text = arena_printf(mem, "%s%s", text, random_rule(mem, ONE_OF(kinds)));
        if (policy_parse(str_of(text), &policy, &where, &err) == 0)
            return policy;
    }
}

static const char *const run_programs[] = {
    "git", "/usr/bin/git", "/bin/git", "./git",     "/x/git",  "rm", "/bin/rm/.", "/bin/../bin/rm",
    "/",   "cat",          "/x/cat",   "cat/",      "a/.",     ".",  "",          "/opt/k/rm",
    "env", "timeout",      "frob",     "/usr/bin/", "/bin/..", "sh", "gi\\t",     "a/..",
};
static const char *const run_words[] = {"x",   "y", "-rf",          "push", "rm",
                                        "git", "",  "/workspace/a", "-c",   "5s"};

static void compare(struct arena *mem, struct policy *policy, const struct rule_index *index,
                    unsigned round)
{
    const char *argv[6] = {ONE_OF(run_programs)};
    static const char *const env[] = {"A=b", NULL};
    struct verdict found[2];
    struct err err;
    size_t n = 1;

    for (unsigned more = draw(5); more; more--)
        argv[n++] = ONE_OF(run_words);
    argv[n] = NULL;
    for (int i = 0; i < 2; i++) {
        unsigned who = (unsigned)(round + n) % 3;
        struct run run;

        run_init(&run);
        run.action.argv = (struct words){argv, n};
        run.action.env = (struct words){env, round % 2};
        run.action.principal = who == 0 ? NULL : who == 1 ? "ana" : "bob";
        policy->index = i ? index : NULL;
        CHECK_INT(decide_run(policy, &run, &err), 0);
        found[i] = run.verdict;
        found[i].rule = run.verdict.rule ? arena_text(mem, str_of(run.verdict.rule)) : "";
        run_done(&run);
    }
    if (found[0].kind != found[1].kind || found[0].line != found[1].line ||
        strcmp(found[0].rule, found[1].rule) != 0)
        test_fail(__FILE__, __LINE__, "round %u: %s by line %u, with the index by line %u", round,
                  argv[0], found[0].line, found[1].line);
}

TEST(the_index_finds_what_a_look_at_every_rule_finds)
{
    for (unsigned round = 0; round < 3000; round++) {
        AUTO_ARENA struct arena mem = ARENA(64 * MIB);
        AUTO(policy) struct policy *policy = NULL;
        const struct rule_index *index;

        seed = round + 1;
        policy = random_policy(&mem);
        index = policy->index;
        CHECK(index != NULL);
        for (unsigned i = 0; i < 12; i++)
            compare(&mem, policy, index, round);
    }
}

/* ---- the catalogue ---- */

TEST(the_catalogue_is_the_documented_one)
{
    AUTO_ARENA struct arena mem = ARENA(4 * MIB);
    struct str reference = vector_text(&mem, SOURCE_ROOT "/docs/policy.md");
    size_t n;
    const struct effect *all = effect_catalogue(&n);

    CHECK_INT(n, 34);
    for (size_t i = 0; i < n; i++) {
        const char *entry = arena_printf(&mem, "`%s` E%u", all[i].id, all[i].risk);

        if (!memmem(reference.p, reference.n, entry, strlen(entry)))
            test_fail(__FILE__, __LINE__, "docs/policy.md does not list %s", entry);
        CHECK(effect_find(str_of(all[i].id)) == &all[i]);
    }
    CHECK(effect_find(str_of("SHELL")) == NULL);
}

/* Tables that are searched by halves have to be in order: every entry is found. */
TEST(programs_and_tools_have_their_effects)
{
    static const struct {
        const char *argv[4];
        const char *effect;
        unsigned risk;
        bool certain;
    } cases[] = {
        {{"ansible-playbook"},                        "INFRA_CHANGE",            3, true },
        {{"zsh"},                                     "SHELL_EXEC",              4, true },
        {{"claude"},                                  "AGENT_INVOKE_PRIVILEGED", 3, true },
        {{"clang"},                                   "DATA_WRITE",              2, true },
        {{"python3", "x.py"},                         "CODE_EXEC",               3, true },
        {{"pip", "install", "x"},                     "MODULE_INSTALL",          4, true },
        {{"pip", "list"},                             "DATA_READ",               0, true },
        {{"npm", "i"},                                "MODULE_INSTALL",          4, true },
        {{"npm", "run", "build"},                     "CODE_EXEC",               3, true },
        {{"rm", "x"},                                 "DATA_DELETE",             3, true },
        {{"kubectl", "get", "pods"},                  "DATA_READ",               0, true },
        {{"kubectl", "get", "secrets"},               "SECRET_READ",             2, true },
        {{"kubectl", "delete", "ns"},                 "INFRA_DESTROY",           4, true },
        {{"find", ".", "-delete"},                    "DATA_DELETE",             3, true },
        {{"find", ".", "-fls", "x"},                  "DATA_WRITE",              2, true },
        {{"git", "diff", "--output=x"},               "DATA_WRITE",              2, true },
        {{"git", "diff", "--output-indicator-new=x"}, "DATA_READ",               0, true },
        {{"curl", "-fsSL", "u"},                      "EXTERNAL_API_CALL",       1, true },
        {{"curl", "-fsSLo", "x", "u"},                "DATA_WRITE",              2, true },
        {{"curl", "-sSd@x", "u"},                     "DATA_EGRESS",             4, true },
        {{"wget", "--post-file=x", "u"},              "DATA_EGRESS",             4, true },
        {{"/usr/bin/cat"},                            "DATA_READ",               0, true },
        {{"/tmp/cat"},                                "DATA_READ",               3, false},
        {{"./zsh"},                                   "SHELL_EXEC",              4, false},
        {{"nothing-like-it"},                         "UNKNOWN",                 3, false},
        {{"tool:Bash"},                               "SHELL_EXEC",              4, true },
        {{"tool:write_file"},                         "DATA_WRITE",              2, true },
        {{"tool:ls"},                                 "DATA_READ",               0, true },
        {{"tool:rm"},                                 "UNKNOWN",                 3, false},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct slice words_of = {cases[i].argv, 0};
        struct effect_seen seen;

        while (words_of.n < 4 && cases[i].argv[words_of.n])
            words_of.n++;
        seen = effect_of(words_of, strncmp(words_of.v[0], "tool:", 5) == 0, true);
        CHECK_TEXT(seen.effect->id, cases[i].effect);
        CHECK_INT(seen.risk, cases[i].risk);
        CHECK_INT(seen.certain, cases[i].certain);
    }
}
