/* SPDX-License-Identifier: Apache-2.0 */
#include "flow/execute/files.h"

#include "lib/base/buf.h"
#include "test.h"

TEST(paths_are_cleaned_or_refused)
{
    static const struct {
        const char *path;
        const char *clean; /* NULL: refused */
    } cases[] = {
        {"a",           "a"    },
        {"./a//b/./c/", "a/b/c"},
        {"./",          ""     },
        {".",           ""     },
        {"",            ""     },
        {"...",         "..."  },
        {"/a",          NULL   },
        {"..",          NULL   },
        {"a/..",        NULL   },
        {"a/../b",      NULL   },
        {"./../b",      NULL   },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        char path[64];

        (void)strcpy(path, cases[i].path);
        CHECK_INT(tar_path_clean(path), cases[i].clean != NULL);
        if (cases[i].clean)
            CHECK_TEXT(path, cases[i].clean);
    }
}

TEST(what_is_written_reads_the_same)
{
    AUTO_BUF struct buf headers = BUF(64UL << 10);
    static struct tar_entry entry = {
        .kind = TAR_LINK, .mode = 0640, .mtime_s = 1700000000, .mtime_ns = 123456789};
    static struct tar_entry head, back;
    struct err err;

    memset(entry.path, 'p', 1000);
    memset(entry.target, 't', 101);
    CHECK_INT(tar_header_write(&entry, &headers, &err), 0);
    CHECK_INT(headers.n % TAR_BLOCK, 0);
    CHECK_INT(tar_header_read(headers.p, &head, &err), 1);
    CHECK_INT(head.kind, TAR_EXTENDED);
    CHECK_INT(tar_header_read(headers.p + headers.n - TAR_BLOCK, &back, &err), 1);
    CHECK_INT(
        tar_extended_read((struct str){headers.p + TAR_BLOCK, (size_t)head.size}, &back, &err), 0);
    CHECK_INT(back.kind, TAR_LINK);
    CHECK_INT(back.mode, 0640);
    CHECK_TEXT(back.path, entry.path);
    CHECK_TEXT(back.target, entry.target);
    CHECK_INT(back.mtime_s, entry.mtime_s);
    CHECK_INT(back.mtime_ns, entry.mtime_ns);
}

TEST(sizes_beyond_eight_gibibytes_are_kept)
{
    AUTO_BUF struct buf headers = BUF(64UL << 10);
    static struct tar_entry entry = {.kind = TAR_FILE, .size = 1ULL << 40, .path = "big"};
    static struct tar_entry head, back;
    struct err err;

    CHECK_INT(tar_header_write(&entry, &headers, &err), 0);
    CHECK_INT(tar_header_read(headers.p, &head, &err), 1);
    CHECK_INT(tar_header_read(headers.p + headers.n - TAR_BLOCK, &back, &err), 1);
    CHECK_INT(
        tar_extended_read((struct str){headers.p + TAR_BLOCK, (size_t)head.size}, &back, &err), 0);
    CHECK_INT(back.size, 1LL << 40);
}

TEST(damaged_extended_headers_are_refused)
{
    static const struct {
        const char *text;
        const char *says;
    } cases[] = {
        {"999 path=x\n",            "an extended header of the archive is damaged"          },
        {"11 path=xy\n",            NULL                                                    },
        {"10 path=xy\n",            "an extended header of the archive is damaged"          },
        {"path=x\n",                "an extended header of the archive is damaged"          },
        {"0 \n",                    "an extended header of the archive is damaged"          },
        {"12 size=-12\n",           "a size in the archive is none"                         },
        {"14 mtime=x.y1\n",         "a time in the archive is none"                         },
        {"22 GNU.sparse.major=1\n", "sparse archives are not read; make it without --sparse"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        static struct tar_entry entry;
        struct err err = {.text = ""};

        CHECK_INT(tar_extended_read(str_of(cases[i].text), &entry, &err), cases[i].says ? -1 : 0);
        CHECK_TEXT(err.text, cases[i].says ? cases[i].says : "");
    }
}

TEST(a_block_that_is_no_header_is_refused)
{
    char block[TAR_BLOCK] = {0};
    static struct tar_entry entry;
    struct err err;

    CHECK_INT(tar_header_read(block, &entry, &err), 0);
    block[0] = 'x';
    CHECK_INT(tar_header_read(block, &entry, &err), -1);
    CHECK_TEXT(err.text, "this is no tar archive, or a damaged one");
}
