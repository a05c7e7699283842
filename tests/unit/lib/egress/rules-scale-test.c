/* SPDX-License-Identifier: Apache-2.0 */
/* The index against the plain comparison of patterns, for many hosts. */
#include "lib/base/limits.h"
#include "lib/egress/rules.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

#define HOSTS 300

static void host_text(char *out, size_t size, int i)
{
    int form = i % 5;

    (void)snprintf(out, size, "%s%d%s",
                   form == 0   ? "h"
                   : form == 1 ? "*.w"
                   : form == 2 ? "**.d"
                   : form == 3 ? "p"
                               : "a.*.m",
                   i,
                   form == 3   ? "-*.example.org"
                   : form == 4 ? ".example.net"
                               : ".example.com");
}

TEST(the_index_finds_what_the_patterns_say)
{
    static const char *const probes[] = {
        "h%d.example.com",     "x.h%d.example.com", "x.w%d.example.com",   "w%d.example.com",
        "x.y.w%d.example.com", "x.d%d.example.com", "x.y.d%d.example.com", "d%d.example.com",
        "p%d-.example.org",    "p%d-x.example.org", "p%d.example.org",     "a.x.m%d.example.net",
        "b.x.m%d.example.net", "a.m%d.example.net"};
    AUTO_BUF struct buf text = BUF(MIB);
    AUTO(net_rules) struct net_rules *rules = NULL;
    struct err err;
    char host[64], name[64];
    size_t matches = 0;

    CHECK_INT(buf_add_text(&text, "{\"network_policies\":{\"a\":{\"endpoints\":[", &err), 0);
    for (int i = 0; i < HOSTS; i++) {
        host_text(host, sizeof host, i);
        CHECK_INT(buf_addf(&text, &err, "%s{\"host\":\"%s\",\"port\":443}", i ? "," : "", host), 0);
    }
    CHECK_INT(buf_add_text(&text, "]}}}", &err), 0);
    CHECK_INT(net_rules_read(buf_str(&text), &rules, &err), 0);
    for (size_t p = 0; rules && p < COUNT(probes); p++)
        for (int i = 0; i < HOSTS + 5; i++) {
            const char *hole = strstr(probes[p], "%d");
            bool wanted = false;

            (void)snprintf(name, sizeof name, "%.*s%d%s", (int)(hole - probes[p]), probes[p], i,
                           hole + 2);
            for (int k = 0; k < HOSTS; k++) {
                host_text(host, sizeof host, k);
                wanted = wanted || net_pattern_match(str_of(host), str_of(name));
            }
            matches += wanted;
            if (net_rules_name(rules, str_of(name)) != wanted)
                test_fail(__FILE__, __LINE__, "%s", name);
        }
    CHECK(matches > HOSTS);
}
