/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "lib/advisory/advisory-private.h"
#include "lib/base/attrs.h"

TEST(what_looks_like_ascii_becomes_it)
{
    static const struct {
        const char *text, *plain;
        unsigned flags;
        bool is_confusable;
    } cases[] = {
        {"rm x",                             "rm x",             15,                      false},
        {"\xef\xbd\x92\xef\xbd\x8d x",       "rm x",             0,                       true }, /* fullwidth */
        {"r\xe2\x80\x8bm x",                 "rm x",             FOLD_INVISIBLE,          true }, /* zero width space */
        {"r\xe2\x80\x8bm x",                 "r\xe2\x80\x8bm x", 0,                       false}, /* unless it may stay */
        {"\x1b[31mrm\x1b[0m x",              "rm x",             FOLD_ANSI,               true }, /* colours */
        {"\x1b]0;title\x07ls",               "ls",               FOLD_ANSI,               false}, /* a title */
        {"\xf0\x9d\x90\xab\xf0\x9d\x90\xa6", "rm",               0,                       true }, /* mathematical letters */
        {"\xe2\x80\xa5/x",                   "../x",             0,                       false}, /* two dot leader */
        {"I\xe2\x80\x99ll GO",               "i'll go",          FOLD_QUOTES | FOLD_CASE, false},
        {"na\xc3\xafve",                     "na\xc3\xafve",     15,                      false},
        {"\xff\xc0\xaf",                     "\xff\xc0\xaf",     15,                      false}, /* no UTF-8 stays what it is */
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        AUTO_ARENA struct arena mem = ARENA(1 << 20);
        struct copy copy = {0};

        fold_copy(&mem, str_of(cases[i].text), cases[i].flags, &copy);
        CHECK_TEXT(arena_text(&mem, copy_str(&copy)), cases[i].plain);
        CHECK_INT(copy.is_confusable, cases[i].is_confusable);
        CHECK_INT(copy.at[copy.n], strlen(cases[i].text));
    }
}

TEST(places_are_those_of_the_first_text)
{
    AUTO_ARENA struct arena mem = ARENA(1 << 20);
    struct copy once = {0}, twice = {0};

    fold_copy(&mem, STR_LIT("a\xe2\x80\x8b\xef\xbd\x92z"), FOLD_INVISIBLE, &once);
    fold_again(&mem, &once, 0, &twice);
    CHECK_INT(twice.n, 3);
    CHECK_INT(twice.at[0], 0);
    CHECK_INT(twice.at[1], 4);
    CHECK_INT(twice.at[2], 7);
    CHECK_INT(twice.at[3], 8);
}
