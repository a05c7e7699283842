/* SPDX-License-Identifier: Apache-2.0 */

/* Two texts as a unified diff. */

#include "lib/base/buf.h"
#include "surface/cli/sandbox.h"
#include "test.h"

#include <string.h>

static void fill(struct buf *b, const char *text)
{
    struct err err;

    CHECK_INT(buf_add(b, text, strlen(text), &err), 0);
}

TEST(hunks_say_what_diff_says)
{
    static const struct {
        const char *from;
        const char *to;
        const char *patch; /* behind the two names */
    } cases[] = {
        {"a\nb\nc\n",                               "a\nx\nc\n",                              "@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n"                      },
        {"",                                        "a\n",                                    "@@ -0,0 +1,1 @@\n+a\n"                                  },
        {"a\n",                                     "",                                       "@@ -1,1 +0,0 @@\n-a\n"                                  },
        {"a",                                       "a\n",                                    "@@ -1,1 +1,1 @@\n-a\n\\ No newline at end of file\n+a\n"},
        {"1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n", "x\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\ny\n",
         "@@ -1,4 +1,4 @@\n-1\n+x\n 2\n 3\n 4\n@@ -9,4 +9,4 @@\n 9\n 10\n 11\n-12\n+y\n"                                                               },
        {"1\n2\n3\n4\n5\n6\n7\n8\n",                "x\n2\n3\n4\n5\n6\n7\ny\n",
         "@@ -1,8 +1,8 @@\n-1\n+x\n 2\n 3\n 4\n 5\n 6\n 7\n-8\n+y\n"                                                                                   },
        {"a\nb\nc\nd\n",                            "b\nc\nd\na\n",                           "@@ -1,4 +1,4 @@\n-a\n b\n c\n d\n+a\n"                  },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        AUTO_BUF struct buf from = BUF(1024), to = BUF(1024), out = BUF(4096);
        struct err err;

        fill(&from, cases[i].from);
        fill(&to, cases[i].to);
        CHECK_INT(patch_write(&out, "f", &from, &to, &err), 0);
        CHECK_TEXT(strncmp(buf_text(&out), "--- a/f\n+++ b/f\n", 16) == 0 ? buf_text(&out) + 16
                                                                          : "",
                   cases[i].patch);
    }
}

TEST(what_is_the_same_says_nothing_and_bytes_are_not_shown)
{
    AUTO_BUF struct buf from = BUF(64), to = BUF(64), out = BUF(4096);
    struct err err;

    fill(&from, "same\n");
    fill(&to, "same\n");
    CHECK_INT(patch_write(&out, "f", &from, &to, &err), 0);
    CHECK_INT((int)out.n, 0);
    CHECK_INT(buf_add(&to, "\0", 1, &err), 0);
    CHECK_INT(patch_write(&out, "f", &from, &to, &err), 0);
    CHECK_TEXT(buf_text(&out), "Binary files a/f and b/f differ\n");
    buf_clear(&out);
    CHECK_INT(patch_write(&out, "f", NULL, &from, &err), 0);
    CHECK_TEXT(buf_text(&out), "--- /dev/null\n+++ b/f\n@@ -0,0 +1,1 @@\n+same\n");
}

TEST(a_patch_stops_at_the_ceiling_of_its_buffer)
{
    AUTO_BUF struct buf to = BUF(4096), out = BUF(100);
    struct err err;

    for (unsigned i = 0; i < 100; i++)
        fill(&to, "a line\n");
    CHECK_INT(patch_write(&out, "f", NULL, &to, &err), -1);
    CHECK_INT(err.code, ERR_LIMIT);
}
