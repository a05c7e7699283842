/* SPDX-License-Identifier: Apache-2.0 */

/* Which files are protected, and what a git config names. */

#include "flow/equip/workspace.h"
#include "test.h"

#include <string.h>

TEST(paths_that_are_or_lie_in_something_protected)
{
    static const struct {
        const char *path;
        const char *rule;
    } cases[] = {
        {"/home/u/p/.git",                ".git"       },
        {"/home/u/p/.git/hooks",          ".git"       },
        {"/home/u/p/.husky/_",            ".husky"     },
        {"/home/u/p/.envrc",              ".envrc"     },
        {"/home/u/p/.cargo/config.toml",  "config.toml"},
        {"/home/u/p/.claude",             ".claude"    },
        {"/home/u/p/.claude/worktrees/w", NULL         },
        {"/home/u/p/config.toml",         NULL         },
        {"/home/u/p/.github/workflows",   NULL         },
        {"/home/u/p/git",                 NULL         },
        {"/home/u/p/.envrc.d",            NULL         },
        {"/",                             NULL         },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct protected_rule *rule = rule_covering(cases[i].path);

        CHECK((rule != NULL) == (cases[i].rule != NULL));
        if (rule && cases[i].rule)
            CHECK_TEXT(rule->name, cases[i].rule);
    }
}

TEST(every_rule_has_a_name_and_a_reason_once)
{
    size_t n = 0;
    const struct protected_rule *rules = equip_protected_rules(&n);

    CHECK(n > 20);
    for (size_t i = 0; i < n; i++) {
        CHECK(rules[i].name[0] != '\0');
        CHECK(rules[i].why[0] != '\0');
        CHECK(strcmp(rules[i].name, "Makefile") != 0);
        for (size_t j = 0; j < i; j++)
            CHECK(strcmp(rules[i].name, rules[j].name) != 0 ||
                  (rules[i].holder && rules[j].holder));
    }
}

TEST(a_git_config_names_hooks_and_further_config)
{
    static const struct {
        const char *text;
        const char *hooks;   /* joined by "|" */
        const char *include; /* the same */
    } cases[] = {
        {"[core]\n\thooksPath = a/b\n",                                          "a/b",    ""   },
        {"[CORE]\nHOOKSPATH=a",                                                  "a",      ""   },
        {"[core] hooksPath = x # y\n",                                           "x",      ""   },
        {"[core]\nhooksPath = \"a # b\" ; c\n",                                  "a # b",  ""   },
        {"[core]\nhooksPath = a\\\n/b\n",                                        "a/b",    ""   },
        {"[core]\nhooksPath = \"a\\\\\\\"b\"\n",                                 "a\\\"b", ""   },
        {"[core]\nhooksPath\n[core]\nhooksPath = z",                             "z",      ""   },
        {"[core]\nhooksPathX = a\nXhooksPath = b\n",                             "",       ""   },
        {"[other]\nhooksPath = a\n",                                             "",       ""   },
        {"[core \"sub\"]\nhooksPath = a\n",                                      "a",      ""   },
        {"; c\n# d\n[include]\npath = i\n[includeIf \"gitdir:]x\"]\npath = j\n", "",       "i|j"},
        {"[core]\nhooksPath = a\n[core]\nhooksPath = b\n",                       "a|b",    ""   },
        {"[core\nhooksPath = a\n",                                               "a",      ""   },
        {"[",                                                                    "",       ""   },
        {"=",                                                                    "",       ""   },
        {"[core]\nhooksPath = \\",                                               "\\",     ""   },
        {"",                                                                     "",       ""   },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct str rest = str_of(cases[i].text), section = {"", 0};
        char value[PATH_BYTES_MAX], hooks[64] = "", include[64] = "";
        bool is_hooks = false;

        while (git_config_next(&rest, &section, &is_hooks, value)) {
            char *to = is_hooks ? hooks : include;

            if (*to)
                (void)strcat(to, "|");
            (void)strcat(to, value);
        }
        CHECK_TEXT(hooks, cases[i].hooks);
        CHECK_TEXT(include, cases[i].include);
    }
}
