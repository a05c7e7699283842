/* SPDX-License-Identifier: Apache-2.0 */

/* Layers as an attacker writes them, built byte by byte: each is refused for its reason, and
 * nothing outside of the layer's folder changes. */

#include "test.h"

#include "cmd/image/extract.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"

#include <fcntl.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#define BLOCK 512

struct item {
    char type; /* of ustar; 'X': a pax header with the attribute in link */
    const char *name;
    const char *link;
    const char *data;
    unsigned mode;
    uint64_t size; /* when it is not that of the data */
};

#define ITEMS_MAX 8

/* ---- tar ---- */

static void put_header(struct buf *out, const struct item *item, const char *name, char type,
                       uint64_t size)
{
    char h[BLOCK] = {0};
    unsigned sum = 0;
    struct err err;

    (void)snprintf(h, 100, "%s", name);
    (void)snprintf(h + 100, 8, "%07o", item->mode);
    (void)snprintf(h + 108, 8, "%07o", 0U);
    (void)snprintf(h + 116, 8, "%07o", 0U);
    if (size < 8589934592ULL) {
        (void)snprintf(h + 124, 12, "%011llo", (unsigned long long)size);
    } else {
        h[124] = (char)0x80; /* base 256 */
        for (int i = 0; i < 8; i++)
            h[124 + 11 - i] = (char)(size >> (8 * i));
    }
    (void)snprintf(h + 136, 12, "%011o", 1700000000U);
    h[156] = type;
    if (item->link && type != 'x')
        (void)snprintf(h + 157, 100, "%s", item->link);
    memcpy(h + 257, "ustar\00000", 8);
    memset(h + 148, ' ', 8);
    for (size_t i = 0; i < BLOCK; i++)
        sum += (unsigned char)h[i];
    (void)snprintf(h + 148, 8, "%06o", sum);
    CHECK_INT(buf_add(out, h, BLOCK, &err), 0);
}

static void put_data(struct buf *out, const char *data, size_t n)
{
    static const char zeros[BLOCK];
    struct err err;

    CHECK_INT(buf_add(out, data, n, &err), 0);
    CHECK_INT(buf_add(out, zeros, (BLOCK - n % BLOCK) % BLOCK, &err), 0);
}

static void put_item(struct buf *out, const struct item *item)
{
    size_t n = item->data ? strlen(item->data) : 0;
    char pax[400];

    if (item->type == 'X') {
        /* "LENGTH KEY=VALUE\n", the length counting itself */
        size_t length = strlen(item->link) + 2;

        length += length + 2 < 100 ? 2 : 3;
        (void)snprintf(pax, sizeof pax, "%zu %s\n", length, item->link);
        put_header(out, item, "pax", 'x', strlen(pax));
        put_data(out, pax, strlen(pax));
        return;
    }
    put_header(out, item, item->name, item->type, item->size ? item->size : n);
    if (n)
        put_data(out, item->data, n);
}

static int tar_fd(const struct item *items)
{
    AUTO_BUF struct buf out = BUF(1 << 20);
    int fd = memfd_create("layer", MFD_CLOEXEC);
    struct err err;

    for (size_t i = 0; i < ITEMS_MAX && items[i].type; i++)
        put_item(&out, &items[i]);
    for (int i = 0; i < 2; i++) {
        static const char zeros[BLOCK];

        CHECK_INT(buf_add(&out, zeros, BLOCK, &err), 0);
    }
    CHECK_INT(write_all(fd, out.p, out.n, &err), 0);
    (void)lseek(fd, 0, SEEK_SET);
    return fd;
}

/* ---- a place to unpack to, with something beside it ---- */

struct place {
    char dir[64];
    int dir_fd;
    int root_fd;
    struct job job;
};

static void place_open(struct place *p)
{
    struct err err;

    (void)setlocale(LC_CTYPE, "C.UTF-8");
    (void)umask(0);
    (void)strcpy(p->dir, "/tmp/brig-extract-XXXXXX");
    CHECK(mkdtemp(p->dir) != NULL);
    p->dir_fd = open(p->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK_INT(mkdirat(p->dir_fd, "layer", 0755), 0);
    CHECK_INT(mkdirat(p->dir_fd, "folder", 0755), 0);
    CHECK_INT(close(openat(p->dir_fd, "outside", O_CREAT | O_WRONLY, 0644)), 0);
    CHECK_INT(file_write(p->dir_fd, "outside", "safe", &err), 0);
    p->root_fd = openat(p->dir_fd, "layer", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    p->job = (struct job){.mem = ARENA(1 << 24), .deadline_us = clock_us() + 60000000U};
}

static void place_check(const struct place *p)
{
    AUTO_BUF struct buf text = BUF(100);
    struct err err;
    struct stat st;

    CHECK_INT(file_read(p->dir_fd, "outside", &text, &err), 0);
    CHECK_TEXT(buf_text(&text), "safe");
    CHECK_INT(fstatat(p->dir_fd, "outside", &st, 0), 0);
    CHECK_INT(st.st_nlink, 1);
    CHECK_INT(st.st_mode & 07777, 0644);
    CHECK_INT(fstatat(p->dir_fd, "folder", &st, 0), 0);
    CHECK_INT(st.st_nlink, 2);
    /* Only an empty folder can be removed. */
    CHECK_INT(unlinkat(p->dir_fd, "folder", AT_REMOVEDIR), 0);
    CHECK_INT(fstatat(p->dir_fd, "evil", &st, AT_SYMLINK_NOFOLLOW), -1);
}

static void place_close(struct place *p)
{
    struct err err;

    CHECK_INT(dir_remove(AT_FDCWD, p->dir, &err), 0);
    (void)close(p->root_fd);
    (void)close(p->dir_fd);
    arena_done(&p->job.mem);
}

static int unpack(struct place *p, const struct item *items, bool skip_devices,
                  struct unpack_report *report, struct err *err)
{
    AUTO_FD int fd = tar_fd(items);

    return unpack_layer(&p->job, fd, 4096, p->root_fd, skip_devices, report, err);
}

/* Version 14 of clang-format spreads tables of mixed rows over the whole line. */
/* clang-format off */

/* ---- attacks ---- */

TEST(hostile_layers_are_refused_for_their_reason)
{
    static const struct {
        struct item items[ITEMS_MAX];
        enum err_code code;
        const char *says;
    } cases[] = {
        {{{'0', "../evil", .data = "x"}}, ERR_INVALID, "entry \"../evil\": \"..\" in the path"},
        {{{'0', "a/../../evil", .data = "x"}}, ERR_INVALID, "\"..\" in the path"},
        {{{'0', "a/..", .data = "x"}}, ERR_INVALID, "\"..\" in the path"},
        {{{'0', "/tmp/evil", .data = "x"}}, ERR_INVALID, "an absolute path"},
        {{{'2', "s", .link = ".."}, {'0', "s/evil", .data = "x"}}, ERR_INVALID, "symbolic link"},
        {{{'2', "s", .link = "/tmp"}, {'0', "s/evil", .data = "x"}}, ERR_INVALID, "symbolic link"},
        {{{'5', "d", .mode = 0755}, {'2', "d/s", .link = "../.."}, {'0', "d/s/evil", .data = "x"}},
         ERR_INVALID, "symbolic link"},
        {{{'2', "s", .link = "../folder"}, {'5', "s/evil", .mode = 0755}},
         ERR_INVALID, "symbolic link"},
        {{{'2', "s", .link = "../folder"}, {'2', "s/evil", .link = "x"}},
         ERR_INVALID, "symbolic link"},
        {{{'2', "s", .link = "../folder"}, {'0', .name = "s/.wh.evil"}}, ERR_INVALID, "symbolic link"},
        {{{'2', "s", .link = "../folder"}, {'0', .name = "s/.wh..wh..opq"}}, ERR_INVALID, "symbolic link"},
        {{{'0', "f", .data = "x"}, {'0', "f/g", .data = "x"}}, ERR_INVALID, "no folder"},
        {{{'1', "h", .link = "../outside"}}, ERR_INVALID, "\"..\" in the path"},
        {{{'1', "h", .link = "/etc/passwd"}}, ERR_INVALID, "an absolute path"},
        {{{'2', "s", .link = "../outside"}, {'1', "h", .link = "s"}},
         ERR_INVALID, "no file placed earlier"},
        {{{'2', "s", .link = ".."}, {'1', "h", .link = "s/outside"}},
         ERR_INVALID, "no file placed earlier"},
        {{{'1', "h", .link = "later"}, {'0', "later", .data = "x"}},
         ERR_INVALID, "no file placed earlier"},
        {{{'5', "d", .mode = 0755}, {'1', "h", .link = "d"}},
         ERR_INVALID, "no file placed earlier"},
        {{{'1', "h", .link = "h"}}, ERR_INVALID, "to itself"},
        {{{'0', .name = ".wh.w"}, {'1', "h", .link = "w"}}, ERR_INVALID, "no file placed earlier"},
        {{{'3', "dev", .mode = 0666}}, ERR_INVALID, "a device node"},
        {{{'4', "dev", .mode = 0666}}, ERR_INVALID, "a device node"},
        {{{'6', "pipe", .mode = 0666}}, ERR_INVALID, "a named pipe"},
        {{{'5', "d", .mode = 0755}, {'0', "d", .data = "x"}}, ERR_INVALID, "replace a folder"},
        {{{'5', "d", .mode = 0755}, {'2', "d", .link = ".."}}, ERR_INVALID, "replace a folder"},
        {{{'0', ".", .data = "x"}}, ERR_INVALID, "in place of the root"},
        {{{'0', .name = ".wh.."}}, ERR_INVALID, "a whiteout of nothing"},
        {{{'0', .name = ".wh..."}}, ERR_INVALID, "a whiteout of nothing"},
        {{{'0', .name = ".wh."}}, ERR_INVALID, "a whiteout of nothing"},
        {{{'0', .name = ".wh..wh..opq"}}, ERR_INVALID, "hides all layers below"},
        {{{'0', "big", .size = 1ULL << 45}}, ERR_LIMIT, "a file of more than"},
        {{{'0', "short", .size = 100000}}, ERR_INTEGRITY, "runcated"},
        {{{'X', .link = "SCHILY.xattr.user.overlay.opaque=y"}, {'5', "d", .mode = 0755}},
         ERR_INVALID, "overlay file systems"},
        {{{'X', .link = "SCHILY.xattr.user.overlay.redirect=/x"}, {'0', "f", .data = "x"}},
         ERR_INVALID, "overlay file systems"},
        {{{'X', .link = "GNU.sparse.major=1"},
          {'X', .link = "GNU.sparse.realsize=99999999999999"},
          {'0', "f", .data = "x"}},
         ERR_INVALID, NULL},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct unpack_report report = {.entries = 77};
        struct place place;
        struct err err;

        place_open(&place);
        if (unpack(&place, cases[i].items, false, &report, &err) == 0) {
            if (cases[i].says) /* without: no harm is enough */
                test_fail(__FILE__, __LINE__, "case %zu was unpacked", i);
        } else if (cases[i].says) {
            if (err.code != cases[i].code || !strstr(err.text, cases[i].says))
                test_fail(__FILE__, __LINE__, "case %zu: %s: \"%s\", should say \"%s\"", i,
                          err_name(err.code), err.text, cases[i].says);
            CHECK_INT(report.entries, 77);
        }
        place_check(&place);
        place_close(&place);
    }
}

/* clang-format on */

TEST(names_past_their_ceilings_are_refused)
{
    char path[PATH_BYTES_MAX], given[6000];
    struct err err;

    memset(given, 'a', sizeof given);
    CHECK_INT(layer_path((struct str){given, 255}, path, &err), 0);
    CHECK_INT(layer_path((struct str){given, 256}, path, &err), -1);
    CHECK_INT(err.code, ERR_LIMIT);
    for (size_t i = 1; i < sizeof given; i += 2)
        given[i] = '/';
    CHECK_INT(layer_path((struct str){given, 2 * 256}, path, &err), 0);
    CHECK_INT(layer_path((struct str){given, 2 * 257}, path, &err), -1);
    CHECK_INT(layer_path(STR_LIT("./usr//bin/."), path, &err), 0);
    CHECK_TEXT(path, "usr/bin");
    CHECK_INT(layer_path(STR_LIT("./"), path, &err), 0);
    CHECK_TEXT(path, "");
    CHECK_INT(layer_path((struct str){"a\0b", 3}, path, &err), -1);
}

/* ---- what is right ---- */

static bool is_opaque(int root_fd, const char *name)
{
    AUTO_FD int fd = openat(root_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    char value[4] = "";

    return fd >= 0 && fgetxattr(fd, "user.overlay.opaque", value, sizeof value) == 1 &&
           value[0] == 'y';
}

static bool is_whiteout(int root_fd, const char *name)
{
    struct stat st;

    return fstatat(root_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISCHR(st.st_mode) &&
           st.st_rdev == makedev(0, 0);
}

static mode_t mode_of(int root_fd, const char *name)
{
    struct stat st = {0};

    (void)fstatat(root_fd, name, &st, AT_SYMLINK_NOFOLLOW);
    return st.st_mode;
}

/* clang-format off */
TEST(modes_lose_what_is_dangerous_and_keep_the_rest)
{
    static const struct item items[ITEMS_MAX] = {
        {'5', "./", .mode = 0711},
        {'0', "su", .data = "x", .mode = 06755},
        {'0', "secret", .data = "x", .mode = 0000},
        {'5', "tmp", .mode = 01777},
        {'5', "closed",.mode = 0000},
        {'0', "closed/f", .data = "y", .mode = 0111},
        {'0', "no/one/named/this",.mode = 0644},
    };
    struct unpack_report report;
    struct place place;
    struct stat st;
    struct err err;

    place_open(&place);
    CHECK_INT(unpack(&place, items, false, &report, &err), 0);
    CHECK_INT(report.entries, 7);
    CHECK_INT(report.bytes, 3);
    CHECK_INT(mode_of(place.dir_fd, "layer") & 07777, 0711);
    CHECK_INT(mode_of(place.root_fd, "su") & 07777, 0755);
    CHECK_INT(mode_of(place.root_fd, "secret") & 07777, 0400);
    CHECK_INT(mode_of(place.root_fd, "tmp") & 07777, 01777);
    CHECK_INT(mode_of(place.root_fd, "closed") & 07777, 0700);
    CHECK_INT(mode_of(place.root_fd, "closed/f") & 07777, 0511);
    CHECK_INT(mode_of(place.root_fd, "no/one") & 07777, 0755);
    CHECK_INT(fstatat(place.root_fd, "closed", &st, 0), 0);
    CHECK_INT(st.st_mtim.tv_sec, 1700000000);
    CHECK_INT(fstatat(place.root_fd, "no/one", &st, 0), 0);
    CHECK_INT(st.st_mtim.tv_sec, 0);
    place_check(&place);
    place_close(&place);
}

TEST(whiteouts_mean_the_same_in_every_order)
{
    static const struct item before[ITEMS_MAX] = {
        {'0', .name = ".wh.file"},
        {'0', .name = ".wh.dir"},
        {'0', .name = ".wh.deep"},
        {'0', .name = ".wh.gone"},
        {'0', "file", .data = "new"},
        {'5', "dir", .mode = 0755},
        {'0', "deep/one",.data = "x"},
        {'0', .name = ".wh..wh.plnk/7"},
    };
    static const struct item after[ITEMS_MAX] = {
        {'0', "file", .data = "new"},
        {'5', "dir", .mode = 0755},
        {'0', "deep/one",.data = "x"},
        {'0', .name = ".wh.file"},
        {'0', .name = ".wh.dir"},
        {'0', .name = ".wh.deep"},
        {'0', .name = ".wh.gone"},
        {'0', .name = ".wh..wh.aufs"},
    };
    const struct item *const orders[] = {before, after};

    for (size_t i = 0; i < COUNT(orders); i++) {
        struct unpack_report report;
        struct place place;
        struct err err;

        place_open(&place);
        if (unpack(&place, orders[i], false, &report, &err) < 0) {
            if (err.code == ERR_UNAVAILABLE)
                test_skip("no user attributes in /tmp");
            test_fail(__FILE__, __LINE__, "%s", err.text);
        }
        CHECK(S_ISREG(mode_of(place.root_fd, "file")));
        CHECK(is_opaque(place.root_fd, "dir"));
        CHECK(is_opaque(place.root_fd, "deep"));
        CHECK(is_whiteout(place.root_fd, "gone"));
        CHECK_INT(report.left_out, 1);
        place_check(&place);
        place_close(&place);
    }
}

TEST(the_last_entry_of_a_name_counts)
{
    static const struct item items[ITEMS_MAX] = {
        {'0', "f", .data = "first"},
        {'1', "h", .link = "f"},
        {'0', "f", .data = "second"},
        {'2', "s", .link = "../outside"},
        {'0', "s", .data = "mine"},
        {'0', "file", .data = "x"},
        {'5', "file", .mode = 0755},
        {'0', "file/inside", .data = "z"},
    };
    AUTO_BUF struct buf text = BUF(100);
    struct unpack_report report;
    struct place place;
    struct err err;

    place_open(&place);
    CHECK_INT(unpack(&place, items, false, &report, &err), 0);
    CHECK_INT(file_read(place.root_fd, "f", &text, &err), 0);
    CHECK_INT(file_read(place.root_fd, "h", &text, &err), 0);
    CHECK_INT(file_read(place.root_fd, "s", &text, &err), 0);
    CHECK_INT(file_read(place.root_fd, "file/inside", &text, &err), 0);
    CHECK_TEXT(buf_text(&text), "secondfirstminez");
    place_check(&place);
    place_close(&place);
}

TEST(devices_can_be_left_out)
{
    static const struct item items[ITEMS_MAX] = {
        {'3', "null", .mode = 0666},
        {'6', "pipe", .mode = 0666},
        {'0', "f", .data = "x"},
    };
    struct unpack_report report;
    struct place place;
    struct err err;

    place_open(&place);
    CHECK_INT(unpack(&place, items, true, &report, &err), 0);
    CHECK_INT(report.left_out, 2);
    CHECK_INT(mode_of(place.root_fd, "null"), 0);
    CHECK(S_ISREG(mode_of(place.root_fd, "f")));
    place_check(&place);
    place_close(&place);
}

TEST(attributes_of_users_stay_and_others_go)
{
    static const struct item items[ITEMS_MAX] = {
        {'X', .link = "SCHILY.xattr.user.note=hello"},
        {   '0',                                    "f",                            .data = "x"},
        {   'X', .link = "SCHILY.xattr.trusted.x=hello"                                      },
        { '0',                            "g",                                                                  .data = "x"},
    };
    struct unpack_report report;
    char value[16] = "", path[128];
    struct place place;
    struct err err;

    place_open(&place);
    CHECK_INT(unpack(&place, items, false, &report, &err), 0);
    (void)snprintf(path, sizeof path, "%s/layer/f", place.dir);
    CHECK_INT(getxattr(path, "user.note", value, sizeof value), 5);
    CHECK_TEXT(value, "hello");
    (void)snprintf(path, sizeof path, "%s/layer/g", place.dir);
    CHECK_INT(getxattr(path, "trusted.x", value, sizeof value), -1);
    place_check(&place);
    place_close(&place);
}

/* clang-format on */

TEST(what_is_no_layer_is_refused)
{
    static const struct {
        const char *bytes;
        size_t n;
    } cases[] = {
        {"nonsense that is not a tar at all", 33},
        {"\x1f\x8b\x08\0\0\0\0\0",            8 },
        {"\x28\xb5\x2f\xfd\0\0",              6 },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        AUTO_FD int fd = memfd_create("layer", MFD_CLOEXEC);
        struct unpack_report report;
        struct place place;
        struct err err;

        place_open(&place);
        CHECK_INT(write(fd, cases[i].bytes, cases[i].n), (int64_t)cases[i].n);
        (void)lseek(fd, 0, SEEK_SET);
        CHECK_INT(unpack_layer(&place.job, fd, cases[i].n, place.root_fd, false, &report, &err),
                  -1);
        place_check(&place);
        place_close(&place);
    }
}

TEST(a_layer_past_its_deadline_ends)
{
    static const struct item items[ITEMS_MAX] = {
        {'0', "f", .data = "x"}
    };
    struct unpack_report report;
    struct place place;
    struct err err;

    place_open(&place);
    place.job.deadline_us = 1;
    CHECK_INT(unpack(&place, items, false, &report, &err), -1);
    CHECK_INT(err.code, ERR_TIMEOUT);
    place_close(&place);
}
