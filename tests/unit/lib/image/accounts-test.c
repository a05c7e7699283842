/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "lib/base/buf.h"
#include "lib/base/io.h"
#include "lib/image/image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

static const char passwd[] = "root:x:0:0:root:/root:/bin/sh\n"
                             "broken\n"
                             "octal:x:0100:0100::/:/bin/sh\n"
                             ":x:7:7::/:/bin/sh\n"
                             "far:x:4294967295:1::/:/bin/sh\n"
                             "node:x:1500:1501:Node:/home/node:/bin/sh\n"
                             "node:x:9:9:again:/:/bin/sh\n"
                             "last:x:12:13::";

TEST(a_user_is_found_by_name_and_by_number)
{
    static const struct {
        const char *who;
        uint32_t uid, gid;
        const char *name, *home;
    } cases[] = {
        {"root", 0,    0,    "root", "/root"     },
        {"node", 1500, 1501, "node", "/home/node"},
        {"1500", 1500, 1501, "node", "/home/node"},
        {"last", 12,   13,   "last", ""          },
        {"12",   12,   13,   "last", ""          },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct account account = {0};

        CHECK(account_find(str_of(passwd), str_of(cases[i].who), &account));
        CHECK_INT(account.uid, cases[i].uid);
        CHECK_INT(account.gid, cases[i].gid);
        CHECK(str_is(account.name, cases[i].name));
        CHECK(str_is(account.home, cases[i].home));
    }
}

TEST(lines_that_are_none_count_for_nobody)
{
    static const char *const nobody[] = {"broken", "octal", "",           "far", "nod",
                                         "nodee",  "100",   "4294967295", "7",   "node:x"};

    for (size_t i = 0; i < COUNT(nobody); i++) {
        struct account account = {.uid = 77};

        CHECK(!account_find(str_of(passwd), str_of(nobody[i]), &account));
        CHECK_INT(account.uid, 77); /* outputs are untouched */
    }
}

TEST(a_group_is_found_by_name)
{
    static const char groups[] = "root:x:0:\nbad:x:\nwheel:x:10:a,b\nwheel:x:11:\nend:x:12";
    uint32_t gid = 77;

    CHECK(!account_find_group(str_of(groups), str_of("bad"), &gid));
    CHECK(!account_find_group(str_of(groups), str_of(""), &gid));
    CHECK(!account_find_group(str_of(groups), str_of("a"), &gid));
    CHECK_INT(gid, 77);
    CHECK(account_find_group(str_of(groups), str_of("wheel"), &gid));
    CHECK_INT(gid, 10);
    CHECK(account_find_group(str_of(groups), str_of("end"), &gid));
    CHECK_INT(gid, 12);
}

/* ---- layers ---- */

#define LAYERS 3

struct stack {
    char dir[64];
    char paths[LAYERS][80];
    struct image_layer layers[LAYERS];
    struct image image;
};

static void stack_make(struct stack *stack)
{
    (void)snprintf(stack->dir, sizeof stack->dir, "/tmp/accounts.XXXXXX");
    CHECK(mkdtemp(stack->dir) != NULL);
    for (size_t i = 0; i < LAYERS; i++) {
        char etc[100];

        (void)snprintf(stack->paths[i], sizeof stack->paths[i], "%s/%zu", stack->dir, i);
        CHECK_INT(mkdir(stack->paths[i], 0700), 0);
        (void)snprintf(etc, sizeof etc, "%s/etc", stack->paths[i]);
        CHECK_INT(mkdir(etc, 0700), 0);
        stack->layers[i].path = stack->paths[i];
    }
    stack->image = (struct image){.layers = stack->layers, .layer_n = LAYERS};
}

static const char *in(const struct stack *stack, size_t layer, const char *name)
{
    static char path[128];

    (void)snprintf(path, sizeof path, "%s/%s", stack->paths[layer], name);
    return path;
}

static void put(const struct stack *stack, size_t layer, const char *text)
{
    FILE *file = fopen(in(stack, layer, "etc/passwd"), "w");

    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static int shown(const struct stack *stack, char *out, size_t n, struct err *err)
{
    AUTO_BUF struct buf text = BUF(64);

    if (image_accounts(&stack->image, "etc/passwd", &text, err) < 0)
        return -1;
    (void)snprintf(out, n, "%s", buf_text(&text));
    return 0;
}

static void stack_remove(const struct stack *stack)
{
    struct err err;

    CHECK_INT(dir_remove(AT_FDCWD, stack->dir, &err), 0);
}

TEST(the_uppermost_layer_that_has_it_is_read)
{
    struct stack stack = {0};
    struct err err;
    char text[65];

    stack_make(&stack);
    CHECK_INT(shown(&stack, text, sizeof text, &err), -1);
    CHECK_INT(err.code, ERR_NOT_FOUND);
    put(&stack, 0, "below");
    CHECK_INT(shown(&stack, text, sizeof text, &err), 0);
    CHECK_TEXT(text, "below");
    put(&stack, 1, "above");
    CHECK_INT(shown(&stack, text, sizeof text, &err), 0);
    CHECK_TEXT(text, "above");
    stack_remove(&stack);
}

TEST(what_an_upper_layer_takes_away_is_gone)
{
    struct stack stack = {0};
    struct err err;
    char text[65];

    stack_make(&stack);
    put(&stack, 0, "below");
    CHECK_INT(mknod(in(&stack, 1, "etc/passwd"), S_IFCHR | 0600, makedev(0, 0)), 0);
    CHECK_INT(shown(&stack, text, sizeof text, &err), -1);
    CHECK_INT(err.code, ERR_NOT_FOUND);
    CHECK_INT(unlink(in(&stack, 1, "etc/passwd")), 0);
    if (setxattr(in(&stack, 1, "etc"), "user.overlay.opaque", "y", 1, 0) == 0) {
        CHECK_INT(shown(&stack, text, sizeof text, &err), -1);
        CHECK_INT(err.code, ERR_NOT_FOUND);
    }
    CHECK_INT(rmdir(in(&stack, 1, "etc")), 0);
    CHECK_INT(mknod(in(&stack, 1, "etc"), S_IFCHR | 0600, makedev(0, 0)), 0);
    CHECK_INT(shown(&stack, text, sizeof text, &err), -1);
    CHECK_INT(err.code, ERR_NOT_FOUND);
    stack_remove(&stack);
}

TEST(what_is_no_ordinary_file_is_refused)
{
    struct stack stack = {0};
    struct err err;
    char text[65];

    stack_make(&stack);
    put(&stack, 0, "below");
    CHECK_INT(symlink("/etc/passwd", in(&stack, 2, "etc/passwd")), 0);
    CHECK_INT(shown(&stack, text, sizeof text, &err), -1);
    CHECK_INT(err.os, ELOOP);
    CHECK_INT(unlink(in(&stack, 2, "etc/passwd")), 0);
    CHECK_INT(mkfifo(in(&stack, 2, "etc/passwd"), 0600), 0);
    CHECK_INT(shown(&stack, text, sizeof text, &err), -1);
    CHECK_INT(err.code, ERR_INVALID);
    CHECK_INT(unlink(in(&stack, 2, "etc/passwd")), 0);
    CHECK_INT(rmdir(in(&stack, 2, "etc")), 0);
    CHECK_INT(symlink("/etc", in(&stack, 2, "etc")), 0);
    CHECK_INT(shown(&stack, text, sizeof text, &err), -1);
    CHECK_INT(err.os, ELOOP);
    stack_remove(&stack);
}

TEST(a_file_beyond_the_ceiling_is_refused)
{
    struct stack stack = {0};
    struct err err;
    char text[65];

    stack_make(&stack);
    put(&stack, 0, "0123456789012345678901234567890123456789012345678901234567890123456789");
    CHECK_INT(shown(&stack, text, sizeof text, &err), -1);
    CHECK_INT(err.code, ERR_LIMIT);
    stack_remove(&stack);
}
