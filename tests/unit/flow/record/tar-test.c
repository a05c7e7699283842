/* SPDX-License-Identifier: Apache-2.0 */

#include "test.h"

#include <string.h>

#include "flow/record/tar.h"
#include "lib/base/limits.h"

static struct err err;

static void add(struct buf *tar, const char *name, const char *content)
{
    static const char zeros[TAR_BLOCK];
    char head[TAR_BLOCK];

    CHECK_INT(tar_head(name, strlen(content), head, &err), 0);
    CHECK_INT(buf_add(tar, head, sizeof head, &err), 0);
    CHECK_INT(buf_add_text(tar, content, &err), 0);
    CHECK_INT(buf_add(tar, zeros, tar_padding(strlen(content)), &err), 0);
}

static void end(struct buf *tar)
{
    static const char zeros[2 * TAR_BLOCK];

    CHECK_INT(buf_add(tar, zeros, sizeof zeros, &err), 0);
}

/* Files until the end or a fault; -1: a fault. */
static int count(struct str tar)
{
    struct tar_file file;
    int n = 0, got;

    while ((got = tar_next(&tar, &file, &err)) == 1)
        n++;
    return got < 0 ? -1 : n;
}

TEST(what_is_written_is_read)
{
    AUTO_BUF struct buf tar = BUF(64 * KIB);
    struct tar_file file;
    struct str rest;

    add(&tar, "00_INDEX.json", "{}");
    add(&tar, "empty", "");
    add(&tar, "folder/a", "hello");
    end(&tar);
    rest = buf_str(&tar);
    CHECK_INT(tar_next(&rest, &file, &err), 1);
    CHECK(str_is(file.name, "00_INDEX.json") && str_is(file.content, "{}"));
    CHECK_INT(tar_next(&rest, &file, &err), 1);
    CHECK(str_is(file.name, "empty") && file.content.n == 0);
    CHECK_INT(tar_next(&rest, &file, &err), 1);
    CHECK(str_is(file.name, "folder/a") && str_is(file.content, "hello"));
    CHECK_INT(tar_next(&rest, &file, &err), 0);
}

TEST(every_byte_of_a_head_counts)
{
    AUTO_BUF struct buf tar = BUF(64 * KIB);

    add(&tar, "name", "content");
    end(&tar);
    CHECK_INT(count(buf_str(&tar)), 1);
    for (size_t i = 0; i < TAR_BLOCK; i++) {
        tar.p[i] ^= 1;
        CHECK_INT(count(buf_str(&tar)), -1);
        tar.p[i] ^= 1;
    }
    /* and what stands between the files */
    tar.p[2 * TAR_BLOCK - 1] = 1;
    CHECK_INT(count(buf_str(&tar)), -1);
}

TEST(an_archive_that_is_cut_off_is_none)
{
    AUTO_BUF struct buf tar = BUF(64 * KIB);

    add(&tar, "name", "content");
    end(&tar);
    for (size_t n = 0; n < tar.n; n += 64)
        CHECK_INT(count((struct str){tar.p, n}), -1);
    CHECK_INT(buf_add_text(&tar, "more", &err), 0);
    CHECK_INT(count(buf_str(&tar)), -1);
}
