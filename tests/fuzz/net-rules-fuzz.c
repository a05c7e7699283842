/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of strangers under fixed rules. The input is lines: method, path, query, content type,
 * then the body. Whatever it is, there is a verdict, and a refusal has a reason. */
#include "fuzz.h"

#include "lib/egress/rules.h"

#include <stdlib.h>
#include <string.h>

static const char policy[] =
    "{\"network_policies\":{\"a\":{\"binaries\":[{\"path\":\"/bin/a\"}],\"endpoints\":["
    "{\"host\":\"r.example.com\",\"port\":443,\"protocol\":\"rest\",\"secret_shapes\":\"deny\","
    "\"rules\":[{\"allow\":{\"body\":{\"/a\":\"x*\"},\"method\":\"POST\",\"path\":\"/a/**\","
    "\"query\":{\"q\":\"*\"},\"strict\":true}},{\"allow\":{\"method\":\"GET\",\"path\":\"/**\"}}],"
    "\"deny_rules\":[{\"path\":\"/admin/*\"}]},"
    "{\"host\":\"g.example.com\",\"port\":443,\"protocol\":\"graphql\",\"access\":\"read-only\"},"
    "{\"host\":\"m.example.com\",\"port\":443,\"protocol\":\"mcp\","
    "\"mcp\":{\"allow_all_known_mcp_methods\":true}},"
    "{\"host\":\"w.example.com\",\"port\":443,\"protocol\":\"websocket\",\"rules\":["
    "{\"allow\":{\"operation_type\":\"query\"}}]}]}}}";

static struct str next_line(struct str *rest)
{
    return str_cut(rest, '\n');
}

static void check(const struct net_verdict *verdict)
{
    if (verdict->kind == NET_DENY && (verdict->reason == NET_REASON_NONE || !verdict->text[0]))
        abort();
    if (memchr(verdict->text, '\0', sizeof verdict->text) == NULL)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static const char *const hosts[] = {"r.example.com", "g.example.com", "m.example.com",
                                        "w.example.com"};
    static struct net_rules *rules;
    struct str rest = {(const char *)bytes, n};
    struct net_caller caller = {.flags = NET_CALLER_KNOWN, .exe = {.path = STR_LIT("/bin/a")}};
    struct net_knock knock = {.port = 443, .caller = &caller};
    struct net_header headers[1] = {
        {STR_LIT("Content-Type"), {0}}
    };
    struct net_request request = {.has_query = true, .headers = headers, .header_n = 1};
    struct net_verdict verdict;
    struct err err;

    if (!rules && net_rules_read(str_of(policy), &rules, &err) < 0)
        abort();
    request.method = next_line(&rest);
    request.path = next_line(&rest);
    request.query = next_line(&rest);
    headers[0].value = next_line(&rest);
    for (size_t i = 0; i < COUNT(hosts); i++) {
        knock.host = str_of(hosts[i]);
        request.upgrade = i == 3 ? STR_LIT("websocket") : (struct str){0};
        net_rules_request(rules, &knock, &request, &verdict);
        check(&verdict);
        if (verdict.kind == NET_NEED_BODY) {
            net_rules_body(rules, &knock, &request, rest, &verdict);
            check(&verdict);
            if (verdict.kind == NET_NEED_BODY)
                abort();
        }
        if (i == 3) {
            net_rules_message(rules, &knock, &request, true, rest, &verdict);
            check(&verdict);
        }
    }
    return 0;
}
