/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/attrs.h"
#include "lib/net/addr.h"
#include "test.h"

TEST(every_range_is_known_by_its_addresses)
{
    static const struct {
        const char *text;
        enum net_range range;
    } cases[] = {
        {"0.0.0.0",                              NET_RANGE_UNSPECIFIED},
        {"0.1.2.3",                              NET_RANGE_UNSPECIFIED},
        {"127.0.0.1",                            NET_RANGE_LOOPBACK   },
        {"127.255.255.255",                      NET_RANGE_LOOPBACK   },
        {"169.254.1.1",                          NET_RANGE_LINK_LOCAL },
        {"169.254.169.254",                      NET_RANGE_METADATA   },
        {"169.254.170.2",                        NET_RANGE_METADATA   },
        {"100.100.100.200",                      NET_RANGE_METADATA   },
        {"168.63.129.16",                        NET_RANGE_METADATA   },
        {"192.0.0.192",                          NET_RANGE_METADATA   },
        {"fd00:ec2::254",                        NET_RANGE_METADATA   },
        {"fd20:ce::254",                         NET_RANGE_METADATA   },
        {"10.0.0.1",                             NET_RANGE_PRIVATE    },
        {"172.15.255.255",                       NET_RANGE_GLOBAL     },
        {"172.16.0.0",                           NET_RANGE_PRIVATE    },
        {"172.31.255.255",                       NET_RANGE_PRIVATE    },
        {"172.32.0.0",                           NET_RANGE_GLOBAL     },
        {"192.168.0.1",                          NET_RANGE_PRIVATE    },
        {"100.64.0.1",                           NET_RANGE_SHARED     },
        {"100.128.0.1",                          NET_RANGE_GLOBAL     },
        {"192.0.0.1",                            NET_RANGE_SPECIAL    },
        {"192.0.2.1",                            NET_RANGE_SPECIAL    },
        {"198.51.100.1",                         NET_RANGE_SPECIAL    },
        {"203.0.113.1",                          NET_RANGE_SPECIAL    },
        {"198.18.0.1",                           NET_RANGE_OURS       },
        {"198.19.255.255",                       NET_RANGE_OURS       },
        {"198.20.0.0",                           NET_RANGE_GLOBAL     },
        {"224.0.0.1",                            NET_RANGE_MULTICAST  },
        {"255.255.255.255",                      NET_RANGE_MULTICAST  },
        {"240.0.0.1",                            NET_RANGE_RESERVED   },
        {"192.88.99.1",                          NET_RANGE_TRANSITION },
        {"8.8.8.8",                              NET_RANGE_GLOBAL     },
        {"::",                                   NET_RANGE_UNSPECIFIED},
        {"::1",                                  NET_RANGE_LOOPBACK   },
        {"::ffff:127.0.0.1",                     NET_RANGE_LOOPBACK   },
        {"::ffff:8.8.8.8",                       NET_RANGE_GLOBAL     },
        {"::127.0.0.1",                          NET_RANGE_LOOPBACK   },
        {"::8.8.8.8",                            NET_RANGE_TRANSITION },
        {"::5",                                  NET_RANGE_TRANSITION },
        {"64:ff9b::7f00:1",                      NET_RANGE_LOOPBACK   },
        {"64:ff9b::a9fe:a9fe",                   NET_RANGE_METADATA   },
        {"64:ff9b::a00:1",                       NET_RANGE_PRIVATE    },
        {"64:ff9b::808:808",                     NET_RANGE_GLOBAL     },
        {"64:ff9b:1::808:808",                   NET_RANGE_RESERVED   },
        {"2002:7f00:1::",                        NET_RANGE_LOOPBACK   },
        {"2002:808:808::1",                      NET_RANGE_TRANSITION },
        {"2001:0:4136:e378:8000:63bf:80ff:fffe", NET_RANGE_LOOPBACK   },
        {"2001:0:4136:e378:8000:63bf:3fff:fdd2", NET_RANGE_TRANSITION },
        {"2a00:1450::5efe:a9fe:a9fe",            NET_RANGE_METADATA   },
        {"2a00:1450::200:5efe:808:808",          NET_RANGE_TRANSITION },
        {"fe80::1",                              NET_RANGE_LINK_LOCAL },
        {"febf::1",                              NET_RANGE_LINK_LOCAL },
        {"fec0::1",                              NET_RANGE_RESERVED   },
        {"fd12:3456::1",                         NET_RANGE_PRIVATE    },
        {"ff02::1",                              NET_RANGE_MULTICAST  },
        {"100::1",                               NET_RANGE_RESERVED   },
        {"4000::1",                              NET_RANGE_RESERVED   },
        {"2001:db8::1",                          NET_RANGE_SPECIAL    },
        {"3fff::1",                              NET_RANGE_SPECIAL    },
        {"2001:2::1",                            NET_RANGE_RESERVED   },
        {"2001:4860:4860::8888",                 NET_RANGE_GLOBAL     },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct net_addr addr;

        if (!net_addr_read(str_of(cases[i].text), &addr))
            test_fail(__FILE__, __LINE__, "%s is not read", cases[i].text);
        else if (net_range_of(&addr) != cases[i].range)
            test_fail(__FILE__, __LINE__, "%s is %s, not %s", cases[i].text,
                      net_range_name(net_range_of(&addr)), net_range_name(cases[i].range));
    }
}

TEST(what_is_never_and_what_is_private)
{
    CHECK(net_range_is_never((enum net_range)0)); /* a range nobody filled in */
    CHECK(net_range_is_never(NET_RANGE_METADATA));
    CHECK(net_range_is_never(NET_RANGE_TRANSITION));
    CHECK(!net_range_is_never(NET_RANGE_PRIVATE));
    CHECK(net_range_is_private(NET_RANGE_PRIVATE));
    CHECK(net_range_is_private(NET_RANGE_SPECIAL));
    CHECK(!net_range_is_private(NET_RANGE_GLOBAL));
    CHECK(!net_range_is_private(NET_RANGE_LOOPBACK));
}

TEST(addresses_have_one_plain_spelling)
{
    static const char *const refused[] = {
        "",          "1",        "127.1", "0x7f000001", "0177.0.0.1", "01.2.3.4",
        "1.2.3.4.",  "1.2.3.4 ", "[::1]", "fe80::1%lo", "1.2.3",      "1.2.3.4.5",
        "256.1.1.1", "::g",      "1:2:3", "::1::",      "12345::",    "1.2.3.4/8",
    };
    struct net_addr addr, other;
    char text[NET_ADDR_TEXT_BYTES];

    for (size_t i = 0; i < COUNT(refused); i++)
        if (net_addr_read(str_of(refused[i]), &addr))
            test_fail(__FILE__, __LINE__, "\"%s\" is read", refused[i]);
    CHECK(net_addr_read(str_of("::ffff:192.0.2.7"), &addr));
    CHECK(net_addr_read(str_of("192.0.2.7"), &other));
    CHECK(net_addr_is_same(&addr, &other));
    CHECK(str_is(net_addr_text(&addr, text), "192.0.2.7"));
    CHECK(net_addr_read(str_of("FD00:0:0:0::1"), &addr));
    CHECK(str_is(net_addr_text(&addr, text), "fd00::1"));
}

TEST(networks_hold_their_addresses)
{
    static const struct {
        const char *block, *addr;
        bool has;
    } cases[] = {
        {"10.4.0.0/24",         "10.4.0.255",      true },
        {"10.4.0.0/24",         "10.4.1.0",        false},
        {"10.4.0.0/24",         "::ffff:10.4.0.1", true },
        {"::ffff:10.4.0.0/120", "10.4.0.9",        true },
        {"10.4.0.12",           "10.4.0.12",       true },
        {"10.4.0.12",           "10.4.0.13",       false},
        {"172.16.0.0/12",       "172.31.1.1",      true },
        {"fd00:1::/32",         "fd00:1:2::3",     true },
        {"fd00:1::/32",         "fd00:2::",        false},
        {"fd00:1::/32",         "10.0.0.1",        false},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct net_block block;
        struct net_addr addr;

        CHECK(net_block_read(str_of(cases[i].block), &block));
        CHECK(net_addr_read(str_of(cases[i].addr), &addr));
        if (net_block_has(&block, &addr) != cases[i].has)
            test_fail(__FILE__, __LINE__, "%s and %s", cases[i].block, cases[i].addr);
    }
}

TEST(networks_that_can_never_be_allowed)
{
    static const struct {
        const char *block;
        bool forbidden;
    } cases[] = {
        {"10.0.0.0/8",       false},
        {"100.64.0.0/10",    false}, /* one address in it is refused when it is dialled */
        {"100.100.100.200",  true },
        {"fd00::/8",         false},
        {"8.8.8.8",          false},
        {"127.0.0.0/8",      true },
        {"127.0.0.1",        true },
        {"126.0.0.0/7",      true },
        {"0.0.0.0/0",        true },
        {"169.254.0.0/16",   true },
        {"0.0.0.0",          true },
        {"198.18.0.0/15",    true },
        {"224.0.0.0/4",      true },
        {"::/0",             true },
        {"::1",              true },
        {"fe80::/10",        true },
        {"::ffff:127.0.0.1", true },
        {"::ffff:0:0/95",    true },
        {"64:ff9b::/96",     true },
        {"64:ff9b::a00:1",   true },
        {"2002::/16",        true },
        {"2001:db8::/32",    false},
        {"2a00::/12",        false},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct net_block block;

        CHECK(net_block_read(str_of(cases[i].block), &block));
        if ((net_block_forbidden(&block) != NULL) != cases[i].forbidden)
            test_fail(__FILE__, __LINE__, "%s: %s", cases[i].block,
                      cases[i].forbidden ? "could be allowed" : net_block_forbidden(&block));
    }
}

TEST(networks_are_written_plainly)
{
    static const char *const refused[] = {"10.0.0.0/33", "10.0.0.0/", "10.0.0.0/08",
                                          "10.0.0.0/+8", "/8",        "10.0.0.0/8/8",
                                          "fd00::/129",  "10/8"};
    struct net_block block;

    for (size_t i = 0; i < COUNT(refused); i++)
        if (net_block_read(str_of(refused[i]), &block))
            test_fail(__FILE__, __LINE__, "\"%s\" is read", refused[i]);
}
