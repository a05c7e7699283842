/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/linux/filters-tree.h"

#include <linux/seccomp.h>
#include <stdint.h>

#include "lib/linux/filters.h"
#include "test.h"

#define ARCH 0xc000003eU
#define LOAD(member) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
#define JEQ(k, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, k, yes, no)
#define JGE(k, yes, no) BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, k, yes, no)
#define RET(value) BPF_STMT(BPF_RET | BPF_K, value)

enum { KILL = 1, ALLOW = 2, REFUSE = 3 };

#define CHECK_FILTER(filter, n, ...)                                                               \
    do {                                                                                           \
        const struct sock_filter wanted_[] = {__VA_ARGS__};                                        \
        CHECK_INT(n, (int)(sizeof wanted_ / sizeof wanted_[0]));                                   \
        for (size_t i_ = 0; i_ < sizeof wanted_ / sizeof wanted_[0]; i_++) {                       \
            CHECK_INT((filter)[i_].code, wanted_[i_].code);                                        \
            CHECK_INT((filter)[i_].jt, wanted_[i_].jt);                                            \
            CHECK_INT((filter)[i_].jf, wanted_[i_].jf);                                            \
            CHECK_INT((filter)[i_].k, wanted_[i_].k);                                              \
        }                                                                                          \
    } while (0)

TEST(neighbours_with_one_answer_share_a_comparison)
{
    /* 4 to 8 are allowed, one by one. */
    static const struct sock_filter from[] = {
        LOAD(arch),   JEQ(ARCH, 0, 8), LOAD(nr),    JEQ(4, 5, 0), JEQ(5, 4, 0), JEQ(6, 3, 0),
        JEQ(7, 2, 0), JEQ(8, 1, 0),    RET(REFUSE), RET(ALLOW),   RET(KILL)};
    struct sock_filter out[16];
    const char *why = "";
    size_t n = filter_shrink(from, sizeof from / sizeof from[0], out, 16, &why);

    CHECK_FILTER(out, (int)n, LOAD(arch), JEQ(ARCH, 1, 0), RET(KILL), LOAD(nr), JGE(4, 0, 2),
                 JGE(9, 1, 0), RET(ALLOW), RET(REFUSE));
}

TEST(what_looks_at_arguments_is_kept)
{
    /* 5 is allowed when its first argument is 7; nothing else is. */
    static const struct sock_filter from[] = {
        LOAD(arch),   JEQ(ARCH, 0, 9), LOAD(nr),     JEQ(1, 6, 0), JEQ(2, 5, 0), JEQ(3, 4, 0),
        JEQ(5, 0, 3), LOAD(args),      JEQ(7, 0, 1), RET(ALLOW),   RET(REFUSE),  RET(KILL)};
    struct sock_filter out[16];
    const char *why = "";
    size_t n = filter_shrink(from, sizeof from / sizeof from[0], out, 16, &why);

    CHECK_FILTER(out, (int)n, LOAD(arch), JEQ(ARCH, 1, 0), RET(KILL), LOAD(nr), JGE(5, 0, 4),
                 JGE(6, 3, 0), LOAD(args), JEQ(7, 0, 1), RET(ALLOW), RET(REFUSE));
}

TEST(one_that_would_not_get_smaller_stays)
{
    static const struct sock_filter from[] = {LOAD(arch),   JEQ(ARCH, 0, 3), LOAD(nr),
                                              JEQ(9, 0, 1), RET(ALLOW),      RET(KILL)};
    struct sock_filter out[16];
    const char *why = "";
    size_t n = filter_shrink(from, sizeof from / sizeof from[0], out, 16, &why);

    CHECK_FILTER(out, (int)n, LOAD(arch), JEQ(ARCH, 0, 3), LOAD(nr), JEQ(9, 0, 1), RET(ALLOW),
                 RET(KILL));
}

TEST(what_is_not_understood_is_refused)
{
    static const struct {
        struct sock_filter third;
        const char *why;
    } cases[] = {
  /* a shift; a number that is masked, so that comparing it would not tell all */
        {BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 1), "it is not written as expected"},
        {BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 6), "it is not written as expected"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct sock_filter from[] = {LOAD(arch),   JEQ(ARCH, 0, 4), LOAD(nr), cases[i].third,
                                     JEQ(4, 0, 1), RET(ALLOW),      RET(KILL)};
        struct sock_filter out[16];
        const char *why = "";

        CHECK_INT(filter_shrink(from, sizeof from / sizeof from[0], out, 16, &why), 0);
        CHECK_TEXT(why, cases[i].why);
    }
}

TEST(the_allowlist_is_a_search_among_ranges)
{
    CHECK(seccomp_names_n < 128); /* it names over four hundred calls */
    CHECK(seccomp_arguments_n < 256);
}
