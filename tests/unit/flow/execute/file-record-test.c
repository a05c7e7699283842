/* SPDX-License-Identifier: Apache-2.0 */
#include "flow/execute/files.h"

#include "test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/stat.h>

static struct str put_record(char *at, const struct file_record *record, const char *texts)
{
    size_t n = strlen(texts);

    memcpy(at, record, sizeof *record);
    memcpy(at + sizeof *record, texts, n);
    return (struct str){at, sizeof *record + n};
}

TEST(records_follow_each_other)
{
    char bytes[512];
    struct file_record first = {.mode = S_IFREG | 0644, .size = 7, .name_n = 4, .mtime_s = -5};
    struct file_record second = {.mode = S_IFLNK | 0777, .name_n = 2, .target_n = 3};
    struct str rest = put_record(bytes, &first, "name");
    struct file_entry entry;
    struct err err;

    rest.n += put_record(bytes + rest.n, &second, "abxyz").n;
    CHECK_INT(file_record_next(&rest, &entry, &err), 1);
    CHECK(str_is(entry.name, "name") && entry.target.n == 0);
    CHECK_INT(entry.size, 7);
    CHECK_INT(entry.mtime_s, -5);
    CHECK_INT(file_record_next(&rest, &entry, &err), 1);
    CHECK(str_is(entry.name, "ab") && str_is(entry.target, "xyz"));
    CHECK_INT(file_record_next(&rest, &entry, &err), 0);
}

TEST(records_that_are_cut_or_lie_are_refused)
{
    static const struct {
        struct file_record record;
        size_t n;
        const char *text;
    } cases[] = {
        {{.name_n = 1},                                  3,                          "a listing ends in the middle of a record"},
        {{.name_n = 9},                                  sizeof(struct file_record), "a listing ends in the middle of a name"  },
        {{.target_n = 9},                                sizeof(struct file_record), "a listing ends in the middle of a name"  },
        {{.name_n = UINT16_MAX, .target_n = UINT16_MAX},
         200,                                                                        "a listing ends in the middle of a name"  },
        {{.mtime_ns = 1000000000U},
         sizeof(struct file_record),
         "a listing has a time that is none"                                                                                   },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        char bytes[256] = {0};
        struct str rest = {bytes, cases[i].n};
        struct file_entry entry;
        struct err err;

        memcpy(bytes, &cases[i].record, sizeof cases[i].record);
        CHECK_INT(file_record_next(&rest, &entry, &err), -1);
        CHECK_INT(err.code, ERR_INTEGRITY);
        CHECK_TEXT(err.text, cases[i].text);
    }
}

TEST(a_name_is_one_component)
{
    static const char long_name[257] = {[0 ... 255] = 'x'};

    CHECK(file_name_is_safe(STR_LIT("a")));
    CHECK(file_name_is_safe(STR_LIT("...")));
    CHECK(file_name_is_safe(STR_LIT("\xff\n")));
    CHECK(file_name_is_safe((struct str){long_name, 255}));
    CHECK(!file_name_is_safe((struct str){long_name, 256}));
    CHECK(!file_name_is_safe(STR_LIT("")));
    CHECK(!file_name_is_safe(STR_LIT(".")));
    CHECK(!file_name_is_safe(STR_LIT("..")));
    CHECK(!file_name_is_safe(STR_LIT("a/b")));
    CHECK(!file_name_is_safe(STR_LIT("/")));
    CHECK(!file_name_is_safe(STR_LIT("a\0b")));
}

TEST(links_stay_in_their_tree)
{
    static const struct {
        const char *target;
        unsigned depth;
        bool stays;
    } cases[] = {
        {"a",               0, true },
        {"./a//b/",         0, true },
        {"..",              0, false},
        {"..",              1, true },
        {"../../x",         1, false},
        {"../../x",         2, true },
        {"a/..",            5, false}, /* a may be a link itself */
        {"../a/../..",      5, false},
        {"/etc/passwd",     9, false},
        {"",                9, false},
        {"./../x",          0, false},
        {"...",             0, true },
        {"../../../../../", 4, false},
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        CHECK_INT(file_link_stays(str_of(cases[i].target), cases[i].depth), cases[i].stays);
}

TEST(ports_are_listened_to_on_loopback_only)
{
    static const struct {
        const char *text;
        int family; /* 0: refused */
        unsigned port;
    } cases[] = {
        {"127.0.0.1:80",        AF_INET,  80   },
        {"127.1.2.3:0",         AF_INET,  0    },
        {"8080",                AF_INET,  8080 },
        {"[::1]:65535",         AF_INET6, 65535},
        {"0.0.0.0:80",          0,        0    },
        {"[::]:80",             0,        0    },
        {"::1:80",              0,        0    },
        {"128.0.0.1:80",        0,        0    },
        {"localhost:80",        0,        0    },
        {"127.0.0.1",           0,        0    },
        {"127.0.0.1:",          0,        0    },
        {"127.0.0.1:65536",     0,        0    },
        {"127.0.0.1:-1",        0,        0    },
        {":80",                 0,        0    },
        {"",                    0,        0    },
        {"127.1:80",            0,        0    },
        {"[::ffff:1.1.1.1]:80", 0,        0    },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct sockaddr_storage address;
        struct sockaddr_in four;
        struct err err;
        int got = port_listen_parse(str_of(cases[i].text), &address, &err);

        if (!cases[i].family) {
            CHECK_INT(got, -1);
            CHECK_INT(err.code, ERR_INVALID);
            continue;
        }
        CHECK_INT(got, 0);
        CHECK_INT(address.ss_family, cases[i].family);
        memcpy(&four, &address, sizeof four); /* the port is at the same place in both */
        CHECK_INT(ntohs(four.sin_port), cases[i].port);
    }
}
