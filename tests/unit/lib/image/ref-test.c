/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "lib/image/image.h"

#include <string.h>

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

TEST(names_are_read_as_docker_reads_them)
{
    static const struct {
        const char *given;
        const char *full;
    } cases[] = {
        {"busybox",                  "docker.io/library/busybox:latest" },
        {"busybox:1.36",             "docker.io/library/busybox:1.36"   },
        {"library/busybox",          "docker.io/library/busybox:latest" },
        {"someone/app",              "docker.io/someone/app:latest"     },
        {"docker.io/busybox",        "docker.io/library/busybox:latest" },
        {"index.docker.io/busybox",  "docker.io/library/busybox:latest" },
        {"ghcr.io/org/app:v1",       "ghcr.io/org/app:v1"               },
        {"localhost/app",            "localhost/app:latest"             },
        {"localhost:5000/app",       "localhost:5000/app:latest"        },
        {"127.0.0.1:5000/a/b/c:x",   "127.0.0.1:5000/a/b/c:x"           },
        {"[::1]:5000/app",           "[::1]:5000/app:latest"            },
        {"[::1]/app",                "[::1]/app:latest"                 },
        {"a/b:5000",                 "docker.io/a/b:5000"               },
        {"app@sha256:" HEX,          "docker.io/library/app@sha256:" HEX},
        {"x.io/app:1@sha256:" HEX,   "x.io/app:1@sha256:" HEX           },
        {"a__b/c--d.e_f",            "docker.io/a__b/c--d.e_f:latest"   },
        {"x.io/app:A_b.c-D",         "x.io/app:A_b.c-D"                 },
        {"REGISTRY.Example.org/app", "REGISTRY.Example.org/app:latest"  },
    };
    AUTO_ARENA struct arena mem = ARENA(1 << 20);

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct image_ref ref;
        struct err err;

        CHECK_INT(image_ref_parse(&mem, str_of(cases[i].given), &ref, &err), 0);
        CHECK_TEXT(image_ref_name(&mem, &ref), cases[i].full);
        /* The full name means the same. */
        CHECK_INT(image_ref_parse(&mem, str_of(cases[i].full), &ref, &err), 0);
        CHECK_TEXT(image_ref_name(&mem, &ref), cases[i].full);
    }
}

TEST(what_is_no_name_is_refused)
{
    static const char *const cases[] = {
        "",         "UPPER",        "a b",         "a//b",
        "/a",       "a/",           "-a",          "a-",
        ".a",       "a..b",         "a_-b",        "a___b",
        "../etc",   "a/../b",       "a:",          "a:-x",
        "a:b:c",    "a@sha256:abc", "a@md5:" HEX,  "a@sha256:" HEX "0",
        "a@",       "x.io/",        "x.io:/a",     "x.io:99999/a",
        "x.io:0/a", "x..io/a",      "user@x.io/a", "http://x.io/a",
        "[::1/a",   "[]/a",         "[::1]x/a",    "[::1]:/a",
        "x_y.io/a", "a\nb",         "host\tx/a",   "a?b",
        "a#b",      "a%2fb",
    };
    AUTO_ARENA struct arena mem = ARENA(1 << 20);
    char longest[600];

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct image_ref ref = {.registry = "untouched"};
        struct err err;

        if (image_ref_parse(&mem, str_of(cases[i]), &ref, &err) == 0)
            test_fail(__FILE__, __LINE__, "accepted: \"%s\"", cases[i]);
        CHECK_INT(err.code, ERR_INVALID);
        CHECK_TEXT(ref.registry, "untouched");
    }
    memset(longest, 'a', sizeof longest);
    {
        struct image_ref ref;
        struct err err;

        CHECK_INT(image_ref_parse(&mem, (struct str){longest, 300}, &ref, &err), -1);
        CHECK_INT(image_ref_parse(&mem, (struct str){longest, sizeof longest}, &ref, &err), -1);
        CHECK_INT(image_ref_parse(&mem, (struct str){"a\0b", 3}, &ref, &err), -1);
    }
}

TEST(only_loopback_is_local)
{
    static const struct {
        const char *registry;
        bool local;
    } cases[] = {
        {"localhost",          true },
        {"localhost:5000",     true },
        {"127.0.0.1",          true },
        {"127.255.0.3:80",     true },
        {"[::1]",              true },
        {"[::1]:5000",         true },
        {"127.0.0.1.evil.org", false},
        {"localhost.evil.org", false},
        {"127.1",              false},
        {"0127.0.0.1",         false},
        {"128.0.0.1",          false},
        {"[::2]",              false},
        {"[::ffff:127.0.0.1]", false},
        {"docker.io",          false},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct image_ref ref = {.registry = cases[i].registry};

        if (image_ref_is_local(&ref) != cases[i].local)
            test_fail(__FILE__, __LINE__, "wrong about %s", cases[i].registry);
    }
}
