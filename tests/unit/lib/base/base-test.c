/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/clock.h"
#include "lib/base/io.h"
#include "lib/base/memory.h"
#include "lib/base/text.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

TEST(buffer_stops_at_its_ceiling_and_keeps_what_it_had)
{
    AUTO_BUF struct buf b = BUF(4);
    struct err err;

    CHECK_INT(buf_add_text(&b, "abc", &err), 0);
    CHECK_INT(buf_add_text(&b, "de", &err), -1);
    CHECK_INT(err.code, ERR_LIMIT);
    CHECK_TEXT(err.text, "more than 4 bytes");
    CHECK_TEXT(buf_text(&b), "abc");
    CHECK_INT(buf_add_text(&b, "d", &err), 0);
    CHECK_TEXT(buf_text(&b), "abcd");
}

TEST(who_waits_until_a_moment_does_not_wake_before_it)
{
    for (unsigned us = 0; us < 3000; us += 97) {
        uint64_t until_us = clock_us() + us;

        (void)poll(NULL, 0, clock_ms_until(until_us));
        CHECK(clock_us() >= until_us);
    }
    CHECK_INT(clock_ms_until(0), 0);
    CHECK_INT(clock_ms_until(UINT64_MAX), INT_MAX);
}

TEST(errors_read_outside_in)
{
    struct err err;

    errno = ENOENT;
    CHECK_INT(err_os(&err, "opening %s", "x"), -1);
    CHECK_INT(err_in(&err, "reloading"), -1);
    CHECK_TEXT(err.text, "reloading: opening x: No such file or directory");
    CHECK_INT(err.code, ERR_NOT_FOUND);
    CHECK_INT(err.os, ENOENT);
}

TEST(utf8_is_checked_strictly)
{
    static const struct {
        const char *bytes;
        bool ok;
    } cases[] = {
        {"",                 true },
        {"plain",            true },
        {"\xc3\xa9",         true },
        {"\xe2\x82\xac",     true },
        {"\xf0\x9f\x98\x80", true },
        {"\xc0\x80",         false},
        {"\xe0\x80\x80",     false},
        {"\xed\xa0\x80",     false},
        {"\xf4\x90\x80\x80", false},
        {"\xff",             false},
        {"\xc3",             false},
        {"a\x80",            false},
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        CHECK_INT(str_is_utf8(str_of(cases[i].bytes)), cases[i].ok);
}

TEST(sizes_and_durations)
{
    static const struct {
        const char *text;
        bool duration;
        int64_t value; /* -1: refused */
    } cases[] = {
        {"512M",         false, 512 << 20 },
        {"1.5G",         false, 1610612736},
        {"4096",         false, 4096      },
        {"10KiB",        false, 10240     },
        {"",             false, -1        },
        {"-1",           false, -1        },
        {"1X",           false, -1        },
        {"1 M",          false, -1        },
        {"99999999999T", false, -1        },
        {"1.",           false, -1        },
        {"30s",          true,  30000     },
        {"500ms",        true,  500       },
        {"2m",           true,  120000    },
        {"1h",           true,  3600000   },
        {"1.5s",         true,  1500      },
        {"7",            true,  7000      },
        {"1d",           true,  -1        },
        {"s",            true,  -1        },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        uint64_t value = 0;
        struct err err;
        int got = cases[i].duration ? duration_parse(str_of(cases[i].text), &value, &err)
                                    : size_parse(str_of(cases[i].text), &value, &err);

        CHECK_INT(got, cases[i].value < 0 ? -1 : 0);
        CHECK_INT(value, cases[i].value < 0 ? 0 : cases[i].value);
    }
}

TEST(escapes_keep_a_terminal_safe)
{
    AUTO_BUF struct buf b = BUF(256);
    struct err err;

    CHECK_INT(text_escape(str_of("a\x1b[31m\\\n\xc2\x9b é"), &b, &err), 0);
    CHECK_TEXT(buf_text(&b), "a\\x1b[31m\\\\\\x0a\\xc2\\x9b é");
}

TEST(escapes_show_what_would_mislead_a_reader)
{
    AUTO_BUF struct buf b = BUF(256);
    struct err err;

    CHECK_INT(text_escape(str_of("a\u202eb\u200bc\u2066d\ufeffe\u061c “ё” \u2190"), &b, &err), 0);
    CHECK_TEXT(buf_text(&b), "a\\xe2\\x80\\xaeb\\xe2\\x80\\x8bc\\xe2\\x81\\xa6d\\xef\\xbb\\xbfe"
                             "\\xd8\\x9c “ё” \u2190");
}

TEST(escapes_show_what_is_drawn_as_nothing)
{
    static const struct {
        const char *hidden;
        const char *shown;
    } cases[] = {
        {"\u00ad",     "\\xc2\\xad"          }, /* soft hyphen */
        {"\u00a0",     "\\xc2\\xa0"          }, /* blanks that are none to a shell */
        {"\u2003",     "\\xe2\\x80\\x83"     },
        {"\u3000",     "\\xe3\\x80\\x80"     },
        {"\u2800",     "\\xe2\\xa0\\x80"     },
        {"\u034f",     "\\xcd\\x8f"          }, /* joiners and fillers */
        {"\u115f",     "\\xe1\\x85\\x9f"     },
        {"\u17b4",     "\\xe1\\x9e\\xb4"     },
        {"\u180e",     "\\xe1\\xa0\\x8e"     },
        {"\u3164",     "\\xe3\\x85\\xa4"     },
        {"\uffa0",     "\\xef\\xbe\\xa0"     },
        {"\ufe0f",     "\\xef\\xb8\\x8f"     }, /* selectors, notes */
        {"\ufff9",     "\\xef\\xbf\\xb9"     },
        {"\U0001d173", "\\xf0\\x9d\\x85\\xb3"},
        {"\U000e0041", "\\xf3\\xa0\\x81\\x81"}, /* letters nobody sees */
        {"\U000e0100", "\\xf3\\xa0\\x84\\x80"},
        {"\u00a1",     "\u00a1"              }, /* and what is next to them */
        {"\u00ae",     "\u00ae"              },
        {"\u2010",     "\u2010"              },
        {"\u2070",     "\u2070"              },
        {"\u2801",     "\u2801"              },
        {"\ufffd",     "\ufffd"              },
        {"\U0001f600", "\U0001f600"          },
        {"\U0010fffd", "\U0010fffd"          },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        AUTO_BUF struct buf b = BUF(256);
        struct err err;

        CHECK_INT(text_escape(str_of(cases[i].hidden), &b, &err), 0);
        CHECK_TEXT(buf_text(&b), cases[i].shown);
    }
}

TEST(a_mark_shows_its_line_with_a_caret)
{
    AUTO_BUF struct buf b = BUF(256);
    struct err err;

    CHECK_INT(mark_show((struct mark){2, 3}, str_of("one\ntwo three\n"), &b, &err), 0);
    CHECK_TEXT(buf_text(&b), "    2 | two three\n      |   ^\n");
}

TEST(hex_and_base64)
{
    AUTO_BUF struct buf b = BUF(2 * 1024);
    unsigned char bytes[2] = {0};
    char hex[5];
    struct err err;

    hex_encode("\xde\xad", 2, hex);
    CHECK_TEXT(hex, "dead");
    CHECK(hex_decode(str_of("dead"), bytes, 2) && bytes[0] == 0xde && bytes[1] == 0xad);
    CHECK(!hex_decode(str_of("DEAD"), bytes, 2));
    CHECK(!hex_decode(str_of("dea"), bytes, 2));
    CHECK_INT(base64_encode(str_of("fooba"), &b, &err), 0);
    CHECK_TEXT(buf_text(&b), "Zm9vYmE=");
    /* As many groups as are encoded at once, and one more or less. */
    for (size_t n = 3 * 256 - 4; n < 3 * 256 + 5; n++) {
        char zeros[3 * 256 + 5] = {0};

        buf_clear(&b);
        CHECK_INT(base64_encode((struct str){zeros, n}, &b, &err), 0);
        CHECK_INT(b.n, (n + 2) / 3 * 4);
        CHECK_INT(strspn(buf_text(&b), "A"), b.n - (3 - n % 3) % 3);
    }
}

TEST(arena_pieces_are_zeroed_and_aligned)
{
    AUTO_ARENA struct arena mem = ARENA(1 << 20);

    for (size_t n = 1; n < 9000; n += 777) {
        char *p = arena_alloc(&mem, n);

        CHECK_INT((uintptr_t)p % _Alignof(max_align_t), 0);
        CHECK_INT(p[0] | p[n - 1], 0);
        memset(p, 0xff, n);
    }
}

/* How a process ends that takes so many pieces of 100 bytes, which are 112, and adopts as much. */
static int end_of_taking(unsigned pieces, size_t adopted)
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        struct arena mem = ARENA(10000);

        (void)close(STDERR_FILENO);
        arena_adopt(&mem, adopted ? xmalloc(adopted) : NULL, adopted);
        for (unsigned i = 0; i < pieces; i++)
            memset(arena_take(&mem, 100), 1, 100);
        arena_done(&mem);
        _exit(0);
    }
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

TEST(an_arena_stops_at_its_ceiling_and_not_before)
{
    CHECK_INT(end_of_taking(89, 0), 0);
    CHECK_INT(end_of_taking(90, 0), SIGABRT);
    CHECK_INT(end_of_taking(44, 5000), 0); /* and 16 for what remembers it */
    CHECK_INT(end_of_taking(45, 5000), SIGABRT);
}

TEST(nothing_at_all_can_be_taken_as_well)
{
    AUTO_ARENA struct arena mem = ARENA(100);

    for (int i = 0; i < 100; i++)
        CHECK(arena_take(&mem, 0) != NULL);
    CHECK_INT(mem.used, 0);
}

TEST(what_an_arena_gives_back_is_used_again)
{
    AUTO_ARENA struct arena mem = ARENA(1 << 20);
    struct arena_mark empty = arena_mark(&mem);
    char *kept = arena_text(&mem, STR_LIT("kept"));
    struct arena_mark mark = arena_mark(&mem);
    const char *next = arena_alloc(&mem, 16);

    for (int i = 0; i < 100; i++) { /* more than its ceiling, were it kept */
        memset(arena_alloc(&mem, 100), 0xff, 100);
        memset(arena_alloc(&mem, 100000), 0xff, 100000);
        arena_rewind(&mem, mark);
    }
    CHECK_TEXT(kept, "kept");
    arena_adopt(&mem, NULL, 0);
    arena_adopt(&mem, xmalloc(100000), 100000); /* freed with the rest, or a sanitizer says so */
    CHECK(mem.used > 100000);
    arena_rewind(&mem, mark);
    arena_adopt(&mem, xmalloc(100), 100);
    arena_rewind(&mem, mark);
    CHECK(arena_alloc(&mem, 16) == next);
    CHECK_INT(next[0] | next[15], 0);
    arena_rewind(&mem, empty);
    CHECK(mem.first == NULL);
    CHECK_INT(mem.used, 0);
}

#define REPLACERS 8
#define REPLACED 200

static void *replace_often(void *of_path)
{
    const char *path = of_path;
    struct err err;

    for (unsigned i = 0; i < REPLACED; i++)
        CHECK_INT(file_exchange(path, "text", 4, 0600, &err), 0);
    return NULL;
}

TEST(threads_replace_one_file)
{
    char root[] = "/tmp/brig-base-XXXXXX";
    AUTO_BUF struct buf text = BUF(64);
    pthread_t threads[REPLACERS];
    char path[64];
    struct err err;

    if (!mkdtemp(root))
        test_skip("no temporary folder");
    (void)snprintf(path, sizeof path, "%s/file", root);
    for (size_t i = 0; i < REPLACERS; i++)
        CHECK_INT(pthread_create(&threads[i], NULL, replace_often, path), 0);
    for (size_t i = 0; i < REPLACERS; i++)
        CHECK_INT(pthread_join(threads[i], NULL), 0);
    CHECK_INT(file_read(AT_FDCWD, path, &text, &err), 0);
    CHECK_TEXT(buf_text(&text), "text");
    CHECK_INT(dir_remove(AT_FDCWD, root, &err), 0);
}

TEST(a_tree_is_removed_without_leaving_it)
{
    char root[] = "/tmp/brig-base-XXXXXX";
    char path[128];
    struct err err;

    if (!mkdtemp(root))
        test_skip("no temporary folder");
    (void)snprintf(path, sizeof path, "%s/tree/a/b", root);
    CHECK_INT(dir_make(path, 0700, &err), 0);
    (void)snprintf(path, sizeof path, "%s/kept", root);
    CHECK_INT(file_replace(path, "x", 1, 0600, &err), 0);
    (void)snprintf(path, sizeof path, "%s/tree/a/link", root);
    CHECK_INT(symlink("../..", path), 0);
    (void)snprintf(path, sizeof path, "%s/tree/a/b", root);
    CHECK_INT(chmod(path, 0), 0);
    (void)snprintf(path, sizeof path, "%s/tree", root);
    CHECK_INT(dir_remove(AT_FDCWD, path, &err), 0);
    CHECK_INT(access(path, F_OK), -1);
    (void)snprintf(path, sizeof path, "%s/kept", root);
    CHECK_INT(access(path, F_OK), 0);
    CHECK_INT(dir_remove(AT_FDCWD, root, &err), 0);
}

TEST(folders_that_have_nothing_to_do_with_each_other_are_laid_apart)
{
    char root[] = "/tmp/brig-base-XXXXXX";
    char path[128];
    struct statfs fs;
    struct err err;
    int flags = 0;

    if (!mkdtemp(root))
        test_skip("no temporary folder");
    (void)snprintf(path, sizeof path, "%s/none/boxes", root);
    CHECK_INT(dir_make_apart(AT_FDCWD, path, &err), -1);
    CHECK(strstr(err.text, "creating ") == err.text);
    (void)snprintf(path, sizeof path, "%s/boxes", root);
    CHECK_INT(dir_make_apart(AT_FDCWD, path, &err), 0);
    CHECK_INT(dir_make_apart(AT_FDCWD, path, &err), 0); /* there already */
    if (statfs(path, &fs) == 0 && fs.f_type == EXT4_SUPER_MAGIC) {
        AUTO_FD int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        CHECK_INT(ioctl(fd, FS_IOC_GETFLAGS, &flags), 0);
        CHECK(flags & FS_TOPDIR_FL);
    }
    CHECK_INT(dir_remove(AT_FDCWD, root, &err), 0);
}

TEST(ids_are_distinct_and_plain)
{
    char a[ID_BYTES], b[ID_BYTES];

    id_new(a);
    id_new(b);
    CHECK_INT(strlen(a), 20);
    CHECK(strcmp(a, b) != 0);
    CHECK_INT(strspn(a, "abcdefghijklmnopqrstuvwxyz234567"), 20);
}
