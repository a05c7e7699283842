/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/attrs.h"
#include "lib/net/addr.h"
#include "test.h"

#include <string.h>

TEST(hosts_are_read_as_anybody_could)
{
    static const struct {
        const char *text;
        enum net_host_kind kind;
        bool odd;
        const char *plain;
    } cases[] = {
        {"example.com",                                NET_HOST_NAME,    false, "example.com"          },
        {"EXAMPLE.com",                                NET_HOST_NAME,    false, "example.com"          },
        {"xn--bcher-kva.example",                      NET_HOST_NAME,    false, "xn--bcher-kva.example"},
        {"_dmarc.example.com",                         NET_HOST_NAME,    false, "_dmarc.example.com"   },
        {"localhost",                                  NET_HOST_NAME,    false, "localhost"            },
        {"example.com.",                               NET_HOST_NAME,    true,  "example.com"          },
        {"example%2ecom",                              NET_HOST_NAME,    true,  "example.com"          },
        {"example\xe3\x80\x82"
         "com",                               NET_HOST_NAME,    true,  "example.com"          },
        {"\xef\xbd\x85xample.com",                     NET_HOST_NAME,    true,  "example.com"          },
        {"192.0.2.7",                                  NET_HOST_ADDRESS, false, "192.0.2.7"            },
        {"127.0.0.1",                                  NET_HOST_ADDRESS, false, "127.0.0.1"            },
        {"127.0.0.1.",                                 NET_HOST_ADDRESS, true,  "127.0.0.1"            },
        {"127.1",                                      NET_HOST_ADDRESS, true,  "127.0.0.1"            },
        {"127.0.1",                                    NET_HOST_ADDRESS, true,  "127.0.0.1"            },
        {"2130706433",                                 NET_HOST_ADDRESS, true,  "127.0.0.1"            },
        {"0x7f000001",                                 NET_HOST_ADDRESS, true,  "127.0.0.1"            },
        {"0X7F.0.0.1",                                 NET_HOST_ADDRESS, true,  "127.0.0.1"            },
        {"0177.0.0.01",                                NET_HOST_ADDRESS, true,  "127.0.0.1"            },
        {"017700000001",                               NET_HOST_ADDRESS, true,  "127.0.0.1"            },
        {"0251.0376.0251.0376",                        NET_HOST_ADDRESS, true,  "169.254.169.254"      },
        {"0xa9fea9fe",                                 NET_HOST_ADDRESS, true,  "169.254.169.254"      },
        {"0x",                                         NET_HOST_ADDRESS, true,  "0.0.0.0"              },
        {"0",                                          NET_HOST_ADDRESS, true,  "0.0.0.0"              },
        {"%31%32%37.0.0.1",                            NET_HOST_ADDRESS, true,  "127.0.0.1"            },
        {"\xef\xbc\x91\xef\xbc\x92\xef\xbc\x97.0.0.1", NET_HOST_ADDRESS, true,  "127.0.0.1"            },
        {"127\xef\xbc\x8e"
         "0.0.1",                             NET_HOST_ADDRESS, true,  "127.0.0.1"            },
        {"[::1]",                                      NET_HOST_ADDRESS, false, "::1"                  },
        {"::1",                                        NET_HOST_ADDRESS, false, "::1"                  },
        {"[0:0::1]",                                   NET_HOST_ADDRESS, true,  "::1"                  },
        {"[::ffff:127.0.0.1]",                         NET_HOST_ADDRESS, true,  "127.0.0.1"            },
        {"[::ffff:7f00:1]",                            NET_HOST_ADDRESS, true,  "127.0.0.1"            },
        {"[fe80::1%25lo]",                             NET_HOST_ADDRESS, true,  "fe80::1"              },
        {"fe80::1%lo",                                 NET_HOST_ADDRESS, true,  "fe80::1"              },
        {"[127.0.0.1]",                                NET_HOST_ADDRESS, true,  "127.0.0.1"            },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct net_host host;

        net_host_read(str_of(cases[i].text), &host);
        if (host.kind != cases[i].kind || host.is_odd != cases[i].odd ||
            strcmp(host.text, cases[i].plain) != 0)
            test_fail(__FILE__, __LINE__, "\"%s\": kind %d, odd %d, \"%s\" (%s)", cases[i].text,
                      (int)host.kind, host.is_odd, host.text, host.fault ? host.fault : "");
        CHECK_INT(host.n, strlen(host.text));
    }
}

TEST(hosts_nobody_should_read)
{
    static const struct {
        const char *text;
        size_t n;
    } cases[] = {
        {"",                      0 },
        {".",                     1 },
        {"a..b",                  4 },
        {".example.com",          12},
        {"exa mple.com",          12},
        {"example.com\0.org",     16},
        {"example.com%00",        14},
        {"example.com%0a",        14},
        {"example.com%",          12},
        {"example.com%2",         13},
        {"b\xc3\xbc"
         "cher.example", 15},
        {"*.example.com",         13},
        {"user@example.com",      16},
        {"example.com/x",         13},
        {"example.com:443",       15},
        {"[::1",                  4 },
        {"[]",                    2 },
        {"1.2.3.4.5",             9 },
        {"256.0.0.1",             9 },
        {"4294967296",            10},
        {"a.0x7f",                6 },
        {"\xff\xfe",              2 },
    };
    char label[70];
    struct net_host host;

    for (size_t i = 0; i < COUNT(cases); i++) {
        net_host_read((struct str){cases[i].text, cases[i].n}, &host);
        if (host.kind != NET_HOST_BAD || !host.fault)
            test_fail(__FILE__, __LINE__, "\"%s\" is read as \"%s\"", cases[i].text, host.text);
    }
    memset(label, 'a', sizeof label);
    net_host_read((struct str){label, 64}, &host);
    CHECK_INT(host.kind, NET_HOST_BAD);
    net_host_read((struct str){label, 63}, &host);
    CHECK_INT(host.kind, NET_HOST_NAME);
}

TEST(patterns_match_whole_labels)
{
    static const struct {
        const char *pattern, *name;
        bool matches;
    } cases[] = {
        {"example.com",         "example.com",         true },
        {"example.com",         "wexample.com",        false},
        {"example.com",         "a.example.com",       false},
        {"*.example.com",       "a.example.com",       true },
        {"*.example.com",       "example.com",         false},
        {"*.example.com",       "a.b.example.com",     false},
        {"*.example.com",       "a.example.com.evil",  false},
        {"**.example.com",      "a.example.com",       true },
        {"**.example.com",      "a.b.c.example.com",   true },
        {"**.example.com",      "example.com",         false},
        {"**.example.com",      "aexample.com",        false},
        {"api-*.example.com",   "api-1.example.com",   true },
        {"api-*.example.com",   "api-.example.com",    true },
        {"api-*.example.com",   "xapi-1.example.com",  false},
        {"*-api-*.example.com", "a-api-b.example.com", true },
        {"s3.*.example.com",    "s3.eu.example.com",   true },
        {"s3.*.example.com",    "s3.example.com",      false},
        {"s3.*.example.com",    "s3.a.b.example.com",  false},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        CHECK(net_pattern_fault(str_of(cases[i].pattern)) == NULL);
        if (net_pattern_match(str_of(cases[i].pattern), str_of(cases[i].name)) != cases[i].matches)
            test_fail(__FILE__, __LINE__, "%s and %s", cases[i].pattern, cases[i].name);
    }
}

TEST(patterns_that_are_refused)
{
    static const char *const cases[] = {
        "*",
        "**",
        "*.com",
        "**.com",
        "a.**.example.com",
        "a.x*.example.com",
        "example.*",
        "***.example.com",
        "*.*.com",
        "shop*.com",
        "example.com.",
        "a..b",
        "1.2.3",
        "",
        "a.*b.c.d",
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        if (!net_pattern_fault(str_of(cases[i])))
            test_fail(__FILE__, __LINE__, "\"%s\" is taken", cases[i]);
}

TEST(authorities_are_cut_where_everybody_cuts_them)
{
    static const struct {
        const char *text;
        uint16_t fallback;
        const char *host;
        int port; /* -1: refused */
    } cases[] = {
        {"example.com:443", 0,   "example.com", 443 },
        {"example.com",     80,  "example.com", 80  },
        {"example.com",     0,   "",            -1  },
        {"[::1]:8080",      0,   "[::1]",       8080},
        {"[::1]",           443, "[::1]",       443 },
        {"::1:8080",        0,   "",            -1  },
        {"a:0",             0,   "",            -1  },
        {"a:080",           0,   "",            -1  },
        {"a:65536",         0,   "",            -1  },
        {"a:",              0,   "",            -1  },
        {":80",             0,   "",            -1  },
        {"a:+1",            0,   "",            -1  },
        {"u@a:1",           0,   "",            -1  },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct str host = {"", 0};
        uint16_t port = 0;
        bool cut = net_authority_cut(str_of(cases[i].text), cases[i].fallback, &host, &port);

        if (cut != (cases[i].port > 0) ||
            (cut && (port != cases[i].port || !str_is(host, cases[i].host))))
            test_fail(__FILE__, __LINE__, "\"%s\": %d, " STR_FMT ", %u", cases[i].text, cut,
                      STR_ARG(host), port);
    }
}

TEST(names_that_lead_home_or_to_metadata)
{
    CHECK(net_name_is_never(str_of("localhost")));
    CHECK(net_name_is_never(str_of("a.localhost")));
    CHECK(net_name_is_never(str_of("metadata.google.internal")));
    CHECK(!net_name_is_never(str_of("example.com")));
    CHECK(!net_name_is_never(str_of("metadata.example.com")));
}
