/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/snapshot/tree.h"

#include "lib/base/io.h"
#include "test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

/* A scratch folder with layers in it; each layer is written as a list of entries:
 * "d path", "f path=content", "l path=target", "w path" (whiteout), "o path" (opaque folder). */
struct scratch {
    char path[64];
    int fd;
};

static void scratch_open(struct scratch *scratch)
{
    (void)strcpy(scratch->path, "/tmp/brig-tree-XXXXXX");
    CHECK(mkdtemp(scratch->path) != NULL);
    scratch->fd = open(scratch->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(scratch->fd >= 0);
}

static void scratch_close(struct scratch *scratch)
{
    struct err err;

    CHECK_INT(dir_remove(AT_FDCWD, scratch->path, &err), 0);
    (void)close(scratch->fd);
}

static void make_entry(int layer_fd, const char *entry)
{
    char path[256];
    const char *value = strchr(entry, '=');
    size_t n = value ? (size_t)(value - entry) - 2 : strlen(entry) - 2;
    int fd;

    memcpy(path, entry + 2, n);
    path[n] = '\0';
    switch (entry[0]) {
    case 'o':
    case 'd':
        CHECK_INT(mkdirat(layer_fd, path, 0755), 0);
        fd = openat(layer_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (entry[0] == 'o')
            CHECK_INT(fsetxattr(fd, "user.overlay.opaque", "y", 1, 0), 0);
        (void)close(fd);
        return;
    case 'f':
        fd = openat(layer_fd, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        CHECK_INT(write(fd, value + 1, strlen(value + 1)), (long)strlen(value + 1));
        (void)close(fd);
        return;
    case 'l':
        CHECK_INT(symlinkat(value + 1, layer_fd, path), 0);
        return;
    default:
        CHECK_INT(mknodat(layer_fd, path, S_IFCHR, makedev(0, 0)), 0);
    }
}

static int make_layer(const struct scratch *scratch, const char *name, const char *const *entries)
{
    int fd;

    CHECK_INT(mkdirat(scratch->fd, name, 0755), 0);
    fd = openat(scratch->fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; entries && entries[i]; i++)
        make_entry(fd, entries[i]);
    return fd;
}

/* What the merge of some layers must be: the same tree, and the same hash, as one layer. */
TEST(layers_merge_as_overlayfs_shows_them)
{
    static const struct {
        const char *upper[8];
        const char *lower[8];
        const char *merged[8];
    } cases[] = {
        {{"f a=1"},           {"f b=2"},                     {"f a=1", "f b=2"}           },
        {{"f a=1"},           {"f a=2"},                     {"f a=1"}                    },
        {{"w a"},             {"f a=2", "f b=3"},            {"w a", "f b=3"}             },
        {{"w d"},             {"d d", "f d/x=1"},            {"w d"}                      },
        {{"d d", "f d/y=2"},  {"d d", "f d/x=1"},            {"d d", "f d/x=1", "f d/y=2"}},
        {{"o d", "f d/y=2"},  {"d d", "f d/x=1"},            {"o d", "f d/y=2"}           },
        {{"d d", "w d/x"},    {"d d", "f d/x=1", "f d/z=1"}, {"d d", "w d/x", "f d/z=1"}  },
        {{"f d=file"},        {"d d", "f d/x=1"},            {"f d=file"}                 },
        {{"d d", "f d/y=2"},  {"f d=file"},                  {"d d", "f d/y=2"}           },
        {{"l a=/etc/passwd"}, {"d a", "f a/x=1"},            {"l a=/etc/passwd"}          },
        {{"d d"},             {"o d", "f d/x=1"},            {"o d", "f d/x=1"}           },
        {{NULL},              {"d d", "d d/e", "f d/e/x=1"}, {"d d", "d d/e", "f d/e/x=1"}},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct tree_result of_layers, of_copy, of_merged;
        struct scratch scratch;
        int layers[2], copy, merged;
        struct err err;

        scratch_open(&scratch);
        layers[0] = make_layer(&scratch, "upper", cases[i].upper);
        layers[1] = make_layer(&scratch, "lower", cases[i].lower);
        merged = make_layer(&scratch, "merged", cases[i].merged);
        copy = make_layer(&scratch, "copy", NULL);
        CHECK_INT(tree_merge(layers, 2, copy, geteuid() == 0, &of_layers, &err), 0);
        CHECK_INT(tree_merge(&copy, 1, -1, false, &of_copy, &err), 0);
        CHECK_INT(tree_merge(&merged, 1, -1, false, &of_merged, &err), 0);
        CHECK_TEXT(of_layers.digest, of_copy.digest);
        CHECK_TEXT(of_layers.digest, of_merged.digest);
        for (size_t j = 0; j < 2; j++)
            (void)close(layers[j]);
        (void)close(copy);
        (void)close(merged);
        scratch_close(&scratch);
    }
}

TEST(a_hash_tells_every_difference)
{
    static const char *const base[] = {"d d", "f d/x=1", "l l=t", NULL};
    static const char *const others[][5] = {
        {"d d",      "f d/x=2", "l l=t", NULL},
        {"d d",      "f d/y=1", "l l=t", NULL},
        {"d d",      "f d/x=1", "l l=u", NULL},
        {"d d",      "f d/x=1", "f l=t", NULL},
        {"d d",      "l l=t",   "f x=1", NULL},
        {"d d",      "f d/x=1", NULL   },
        {"d d", "f d/x=1",   "l l=t",   "w q",     NULL},
        {"o d",      "f d/x=1", "l l=t", NULL},
    };
    struct tree_result result, other;
    struct scratch scratch;
    struct err err;
    int fd;

    scratch_open(&scratch);
    fd = make_layer(&scratch, "base", base);
    CHECK_INT(tree_merge(&fd, 1, -1, false, &result, &err), 0);
    CHECK_INT((long)result.entries, 3);
    CHECK_INT((long)result.bytes, 1);
    (void)close(fd);
    for (size_t i = 0; i < COUNT(others); i++) {
        char name[16];

        (void)snprintf(name, sizeof name, "other%zu", i);
        fd = make_layer(&scratch, name, others[i]);
        CHECK_INT(tree_merge(&fd, 1, -1, false, &other, &err), 0);
        CHECK(strcmp(other.digest, result.digest) != 0);
        (void)close(fd);
    }
    scratch_close(&scratch);
}

TEST(modes_times_links_and_holes_are_kept_and_set_id_bits_are_not)
{
    static const char *const entries[] = {"f a=content", NULL};
    struct timespec times[2] = {
        {1000, 5},
        {2000, 7}
    };
    struct tree_result result;
    struct scratch scratch;
    int from, to, fd;
    struct stat a, b;
    struct err err;

    scratch_open(&scratch);
    from = make_layer(&scratch, "from", entries);
    to = make_layer(&scratch, "to", NULL);
    CHECK_INT(linkat(from, "a", from, "b", 0), 0);
    CHECK_INT(fchmodat(from, "a", 06751, 0), 0);
    CHECK_INT(utimensat(from, "a", times, 0), 0);
    fd = openat(from, "holes", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK_INT(ftruncate(fd, 16 << 20), 0);
    CHECK_INT(pwrite(fd, "x", 1, 8 << 20), 1);
    (void)close(fd);

    CHECK_INT(tree_merge(&from, 1, to, geteuid() == 0, &result, &err), 0);
    CHECK_INT(fstatat(to, "a", &a, 0), 0);
    CHECK_INT(fstatat(to, "b", &b, 0), 0);
    CHECK_INT((long)a.st_ino, (long)b.st_ino);
    CHECK_INT(a.st_mode & 07777, 0751);
    CHECK_INT(a.st_mtim.tv_sec, 2000);
    CHECK_INT(a.st_mtim.tv_nsec, 7);
    CHECK_INT(fstatat(to, "holes", &a, 0), 0);
    CHECK_INT(a.st_size, 16 << 20);
    CHECK(a.st_blocks < 1024);
    (void)close(from);
    (void)close(to);
    scratch_close(&scratch);
}

TEST(what_is_too_deep_is_refused)
{
    struct tree_result result;
    struct scratch scratch;
    struct err err;
    int top, at;

    scratch_open(&scratch);
    top = make_layer(&scratch, "deep", NULL);
    at = fcntl(top, F_DUPFD_CLOEXEC, 0);
    for (int i = 0; i < 300; i++) {
        int next;

        CHECK_INT(mkdirat(at, "d", 0755), 0);
        next = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        (void)close(at);
        at = next;
    }
    (void)close(at);
    CHECK_INT(tree_merge(&top, 1, -1, false, &result, &err), -1);
    CHECK_INT(err.code, ERR_LIMIT);
    (void)close(top);
    scratch_close(&scratch);
}
