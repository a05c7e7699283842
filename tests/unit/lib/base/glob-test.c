/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/glob.h"
#include "lib/base/limits.h"
#include "test.h"

static bool matches(enum glob_kind kind, const char *pattern, const char *text)
{
    AUTO_ARENA struct arena mem = ARENA(MIB);
    const struct glob *glob = NULL;
    struct err err;

    if (glob_new(&mem, str_of(pattern), kind, &glob, &err) < 0) {
        test_fail(__FILE__, __LINE__, "\"%s\": %s", pattern, err.text);
        return false;
    }
    return glob_match(glob, str_of(text));
}

struct glob_case {
    const char *pattern;
    const char *text;
    bool matches;
};

static void check_table(enum glob_kind kind, const struct glob_case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (matches(kind, cases[i].pattern, cases[i].text) != cases[i].matches)
            test_fail(__FILE__, __LINE__, "\"%s\" %s \"%s\"", cases[i].pattern,
                      cases[i].matches ? "does not match" : "matches", cases[i].text);
}

TEST(word_patterns_match_what_they_say)
{
    static const struct glob_case cases[] = {
        {"",            "",            true },
        {"",            "a",           false},
        {"git",         "git",         true },
        {"git",         "Git",         false},
        {"git",         "gi",          false},
        {"git",         "gitk",        false},
        {"*",           "",            true },
        {"*",           "a/b c",       true },
        {"**",          "a/b",         true },
        {"a*",          "a",           true },
        {"a*",          "abc/d",       true },
        {"a*",          "ba",          false},
        {"*a",          "bba",         true },
        {"*a",          "ab",          false},
        {"a*b*c",       "a--b--c",     true },
        {"a*b*c",       "acb",         false},
        {"*.[ch]",      "main.c",      true },
        {"*.[ch]",      "main.cc",     false},
        {"?",           "",            false},
        {"?",           "x",           true },
        {"?",           "/",           true },
        {"?",           "xy",          false},
        {"?",           "\xc3\xa9",    true },
        {"??",          "\xc3\xa9",    false},
        {"?",           "\xff",        true },
        {"\xc3\xa9*",   "\xc3\xa9t",   true },
        {"\xc3\xa9*",   "\xc3",        false},
        {"[a-c]x",      "bx",          true },
        {"[a-c]x",      "dx",          false},
        {"[!a-c]x",     "dx",          true },
        {"[^a-c]x",     "ax",          false},
        {"[!a]",        "\xc3\xa9",    true },
        {"[]]",         "]",           true },
        {"[!]]",        "]",           false},
        {"[a-]",        "-",           true },
        {"[\\]]",       "]",           true },
        {"\\*",         "*",           true },
        {"\\*",         "x",           false},
        {"\\[a]",       "[a]",         true },
        {"a\\b",        "ab",          true },
        {"{a,b}",       "a",           false},
        {"{a,b}",       "{a,b}",       true },
        {"*a*a*a*a*a*", "aaaa",        false},
        {"*a*a*a*a*a*", "xaxaxaxaxax", true },
    };

    check_table(GLOB_WORD, cases, COUNT(cases));
}

TEST(path_patterns_stay_inside_a_component)
{
    static const struct glob_case cases[] = {
        {"/usr/bin/*", "/usr/bin/git", true },
        {"/usr/bin/*", "/usr/bin/a/b", false},
        {"/usr/bin/*", "/usr/bin/",    true },
        {"/usr/bin/?", "/usr/bin//",   false},
        {"/a/[!x]/b",  "/a///b",       false},
        {"/usr/**",    "/usr/bin/a/b", true },
        {"/usr/**",    "/usr",         false},
        {"/**/b",      "/x/y/b",       true },
        {"/**/b*/c",   "/b1/x/b2/c",   true },
        {"/**/b*/c",   "/b1/x/b2/x/c", false},
        {"**",         "/x/y",         true },
        {"/api/*/c",   "/api/7/c",     true },
        {"/api/*/c",   "/api/7/8/c",   false},
        {"/api/*/*",   "/api/7",       false},
        {"**a*b/c**d", "aab/xab/c//d", true },
    };

    check_table(GLOB_PATH, cases, COUNT(cases));
}

TEST(bad_patterns_are_refused)
{
    static const struct {
        const char *pattern;
        const char *text;
    } cases[] = {
        {"[",          "\"[\" without its \"]\""                     },
        {"a[]",        "\"[\" without its \"]\""                     },
        {"[!",         "\"[\" without its \"]\""                     },
        {"[a\\",       "\"[\" without its \"]\""                     },
        {"[z-a]",      "range z-a in a class is backwards"           },
        {"[\xc3\xa9]", "a class [...] may list ASCII characters only"},
        {"a\\",        "\"\\\" at the end of a pattern"              },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        AUTO_ARENA struct arena mem = ARENA(MIB);
        const struct glob *glob = NULL;
        struct err err;

        CHECK_INT(glob_new(&mem, str_of(cases[i].pattern), GLOB_WORD, &glob, &err), -1);
        CHECK_INT(err.code, ERR_INVALID);
        CHECK_TEXT(err.text, cases[i].text);
        CHECK(glob == NULL);
    }
}

TEST(plain_part_of_a_pattern_is_known)
{
    AUTO_ARENA struct arena mem = ARENA(MIB);
    const struct glob *glob = NULL;
    struct err err;

    CHECK_INT(glob_new(&mem, STR_LIT("py\\*\xc3\xa9*"), GLOB_WORD, &glob, &err), 0);
    CHECK_INT(glob_plain_length(glob), 4);
    CHECK(str_is(glob_plain(glob), "py*\xc3\xa9"));
    CHECK(!glob_is_literal(glob));
    CHECK_INT(glob_new(&mem, STR_LIT("\\*"), GLOB_WORD, &glob, &err), 0);
    CHECK(glob_is_literal(glob));
}

TEST(pattern_longer_than_its_ceiling_is_refused)
{
    AUTO_ARENA struct arena mem = ARENA(MIB);
    AUTO_FREE char *pattern = xcalloc(1, GLOB_TEXT_MAX + 1);
    const struct glob *glob = NULL;
    struct err err;

    memset(pattern, 'a', GLOB_TEXT_MAX + 1);
    CHECK_INT(glob_new(&mem, (struct str){pattern, GLOB_TEXT_MAX + 1}, GLOB_WORD, &glob, &err), -1);
    CHECK_INT(err.code, ERR_LIMIT);
    memset(pattern, '*', GLOB_TEXT_MAX);
    CHECK_INT(glob_new(&mem, (struct str){pattern, GLOB_TEXT_MAX}, GLOB_WORD, &glob, &err), 0);
    CHECK(glob_match(glob, STR_LIT("x")));
}

/* A matcher that goes back and tries again needs more than the age of the universe for this. */
TEST(hostile_text_takes_no_longer_than_text_times_pattern)
{
    AUTO_ARENA struct arena mem = ARENA(MIB);
    AUTO_FREE char *text = xcalloc(1, 20000);
    const struct glob *glob = NULL;
    struct err err;

    memset(text, 'a', 20000);
    CHECK_INT(glob_new(&mem, STR_LIT("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b"), GLOB_WORD, &glob, &err),
              0);
    CHECK(!glob_match(glob, (struct str){text, 20000}));
    CHECK_INT(glob_new(&mem, STR_LIT("**a*a**a*a**a*a**b"), GLOB_PATH, &glob, &err), 0);
    CHECK(!glob_match(glob, (struct str){text, 20000}));
}

TEST(an_example_matches_its_pattern)
{
    static const struct {
        const char *pattern, *many, *example;
    } cases[] = {
        {"git",        "",  "git"       },
        {"test-*",     "",  "test-"     },
        {"test-*",     "x", "test-x"    },
        {"a?c",        "",  "axc"       },
        {"[abc]d",     "",  "ad"        },
        {"[!xab]",     "",  "c"         },
        {"\\*",        "",  "*"         },
        {"f\xc3\xbcr", "",  "f\xc3\xbcr"},
    };
    AUTO_ARENA struct arena mem = ARENA(64 * KIB);
    char out[16];

    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct glob *glob = NULL;
        struct err err;

        CHECK_INT(glob_new(&mem, str_of(cases[i].pattern), GLOB_WORD, &glob, &err), 0);
        CHECK(glob_example(glob, cases[i].many, out, sizeof out));
        CHECK_TEXT(out, cases[i].example);
        CHECK(glob_match(glob, str_of(out)));
        CHECK(!glob_example(glob, "", out, 1) || out[0] == '\0');
    }
}
