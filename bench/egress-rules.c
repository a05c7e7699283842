/* SPDX-License-Identifier: Apache-2.0 */
/* What the rules of the network cost: ninja -C build bench/egress-rules && build/bench/egress-rules
 *
 * Compiling 1 000 and 10 000 endpoints, and one judged connection and request with 10 and with
 * 10 000 hosts, in processor time. Medians of many rounds; a line's two figures for calls should be
 * alike. */
#include "lib/base/limits.h"
#include "lib/egress/rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROUNDS 201
#define CALLS 2000

static double now_us(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static double median(double *v, size_t n)
{
    qsort(v, n, sizeof *v, compare);
    return v[n / 2];
}

static void write_rules(struct buf *text, int hosts)
{
    struct err err;
    int bad =
        buf_add_text(text,
                     "{\"network_policies\":{\"a\":{\"binaries\":[{\"path\":\"/usr/bin/curl\"}],"
                     "\"endpoints\":[",
                     &err);

    for (int i = 0; i < hosts && !bad; i++)
        bad =
            buf_addf(text, &err,
                     "%s{\"host\":\"%shost-%d.example.com\",\"line\":%d,\"port\":443,"
                     "\"protocol\":\"rest\",\"rules\":[{\"allow\":{\"line\":%d,\"method\":\"GET\","
                     "\"path\":\"/api/**\"}}]}",
                     i ? "," : "", i % 10 == 9 ? "*." : "", i, i, i);
    if (bad || buf_add_text(text, "]}}}", &err) < 0) {
        (void)fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
}

static struct net_rules *compile(const struct buf *text)
{
    struct net_rules *rules = NULL;
    struct err err;

    if (net_rules_read(buf_str(text), &rules, &err) < 0) {
        (void)fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    return rules;
}

static double time_compile(int hosts)
{
    AUTO_BUF struct buf text = BUF(NET_RULES_TEXT_MAX);
    double v[21];

    write_rules(&text, hosts);
    for (size_t i = 0; i < COUNT(v); i++) {
        double start = now_us();
        struct net_rules *rules = compile(&text);

        v[i] = now_us() - start;
        net_rules_free(rules);
    }
    return median(v, COUNT(v));
}

static double time_calls(int hosts, bool with_request)
{
    AUTO_BUF struct buf text = BUF(NET_RULES_TEXT_MAX);
    AUTO(net_rules) struct net_rules *rules = NULL;
    struct net_caller caller = {.flags = NET_CALLER_KNOWN,
                                .exe = {.path = STR_LIT("/usr/bin/curl")}};
    struct net_header headers[] = {
        {STR_LIT("Host"),       STR_LIT("host-5.example.com")},
        {STR_LIT("User-Agent"), STR_LIT("curl/8.0")          },
        {STR_LIT("Accept"),     STR_LIT("*/*")               }
    };
    struct net_knock knock = {
        .host = STR_LIT("host-5.example.com"), .port = 443, .caller = &caller};
    struct net_request request = {.scheme = STR_LIT("https"),
                                  .method = STR_LIT("GET"),
                                  .path = STR_LIT("/api/projects/7/issues"),
                                  .headers = headers,
                                  .header_n = COUNT(headers)};
    struct net_verdict verdict;
    double v[ROUNDS];

    write_rules(&text, hosts);
    rules = compile(&text);
    for (size_t i = 0; i < COUNT(v); i++) {
        double start = now_us();

        for (int k = 0; k < CALLS; k++) {
            if (with_request)
                net_rules_request(rules, &knock, &request, &verdict);
            else
                net_rules_connect(rules, &knock, &verdict);
            if (verdict.kind == NET_DENY)
                exit(1);
        }
        v[i] = (now_us() - start) / CALLS;
    }
    return median(v, COUNT(v));
}

int main(void)
{
    (void)printf("compile    1000 endpoints %8.0f us    10000 endpoints %8.0f us\n",
                 time_compile(1000), time_compile(10000));
    (void)printf("connection   10 hosts %8.3f us    10000 hosts %8.3f us\n", time_calls(10, false),
                 time_calls(10000, false));
    (void)printf("request      10 hosts %8.3f us    10000 hosts %8.3f us\n", time_calls(10, true),
                 time_calls(10000, true));
    return 0;
}
