/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <stdio.h>

#include "cmd/egress/ceilings.h"
#include "cmd/egress/names.h"

TEST(a_name_keeps_its_address)
{
    struct names *names = names_new();
    unsigned char a[4], b[4], again[4];

    names_give(names, STR_LIT("a.test"), a);
    names_give(names, STR_LIT("b.test"), b);
    names_give(names, STR_LIT("a.test"), again);
    CHECK(memcmp(a, again, 4) == 0 && memcmp(a, b, 4) != 0);
    CHECK(a[0] == 198 && a[1] == 18 && a[2] == 1 && a[3] == 0);
    CHECK_TEXT(names_find(names, a), "a.test");
    CHECK_TEXT(names_find(names, b), "b.test");
    names_free(names);
}

TEST(an_address_that_was_not_given_is_nobodys)
{
    static const unsigned char none[][4] = {
        {198, 18, 0,  1 },
        {198, 18, 1,  1 },
        {198, 19, 9,  9 },
        {198, 17, 1,  0 },
        {198, 20, 1,  0 },
        {127, 0,  0,  1 },
        {45,  33, 32, 10}
    };
    struct names *names = names_new();
    unsigned char a[4];

    names_give(names, STR_LIT("a.test"), a);
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        CHECK(names_find(names, none[i]) == NULL);
    names_free(names);
}

/* More names than fit: the oldest are forgotten, and their addresses lead nowhere until the
 * numbers have gone round. */
TEST(forgotten_names_have_no_address)
{
    struct names *names = names_new();
    unsigned char first[4], last[4];
    char name[32];

    names_give(names, STR_LIT("first.test"), first);
    for (unsigned i = 0; i < 3 * NAMES_MAX; i++) {
        (void)snprintf(name, sizeof name, "n%u.test", i);
        names_give(names, str_of(name), last);
    }
    CHECK(names_find(names, first) == NULL);
    CHECK_TEXT(names_find(names, last), name);
    for (unsigned i = 2 * NAMES_MAX + 1; i < 3 * NAMES_MAX; i += 511) {
        unsigned char had[4];

        (void)snprintf(name, sizeof name, "n%u.test", i);
        names_give(names, str_of(name), had);
        CHECK_TEXT(names_find(names, had), name);
    }
    for (unsigned i = 0; i < 2 * NAMES_LAST; i++) { /* all the way round, twice */
        (void)snprintf(name, sizeof name, "r%u.test", i);
        names_give(names, str_of(name), last);
    }
    CHECK_TEXT(names_find(names, last), name);
    CHECK(names_is_ours(last) && !(last[1] == 18 && last[2] == 0));
    names_free(names);
}
