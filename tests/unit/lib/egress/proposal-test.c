/* SPDX-License-Identifier: Apache-2.0 */
/* What a sandbox may ask for: refused by name where it is more than can be told in lines, and
 * otherwise an entry that allows what it says and nothing beside it. */
#include "lib/egress/proposal.h"

#include <stdio.h>
#include <string.h>

#include "flow/decide/decide.h"
#include "lib/base/limits.h"
#include "lib/egress/suggest.h"
#include "test.h"

#define BINARY "\"binaries\":[{\"path\":\"/usr/bin/curl\"}]"
#define RULE(endpoint) "{" BINARY ",\"endpoints\":[" endpoint "]}"
#define REST(host, rules)                                                                          \
    "{\"host\":\"" host "\",\"port\":443,\"protocol\":\"rest\",\"rules\":[" rules "]}"
#define ALLOW(method, path) "{\"allow\":{\"method\":\"" method "\",\"path\":\"" path "\"}}"
#define ADD(name, rule) "{\"addRule\":{\"ruleName\":\"" name "\",\"rule\":" rule "}}"

static int take(struct arena *mem, const char *text, struct proposal *out, struct err *err)
{
    const struct json *operation = NULL;
    struct mark where;

    if (json_parse(mem, str_of(text), &operation, &where, err) < 0)
        test_fail(__FILE__, __LINE__, "%s: %s", text, err->text);
    return proposal_read(mem, operation, out, err);
}

TEST(what_cannot_be_asked_for_is_refused_by_name)
{
    /* clang-format off */
    static const struct {
        const char *operation;
        const char *says;
    } cases[] = {
        {"[]",                                              "an operation must be an object"},
        {"{\"removeRule\":{}}",                             "\"removeRule\" of an operation cannot be proposed"},
        {"{\"addRule\":{\"ruleName\":\"a\"}}",              "\"rule\" must be an object"},
        {ADD("", RULE(REST("a.example", ALLOW("GET", "/")))), "\"ruleName\" has 1 to 64 letters"},
        {ADD("9a", RULE(REST("a.example", ALLOW("GET", "/")))), "\"ruleName\" has 1 to 64 letters"},
        {ADD("a: {b", RULE(REST("a.example", ALLOW("GET", "/")))), "\"ruleName\" has 1 to 64 letters"},
        {ADD("_provider_x", RULE(REST("a.example", ALLOW("GET", "/")))), "\"ruleName\" has 1 to 64 letters"},
        {ADD("a", "{\"endpoints\":[]}"),                    "\"binaries\" must be a list of 1 to 8"},
        {ADD("a", "{" BINARY "}"),                          "\"endpoints\" must be a list of 1 to 8"},
        {ADD("a", "{\"binaries\":[{\"path\":\"/usr/bin/*\"}],\"endpoints\":[]}"), "is a pattern; name each program"},
        {ADD("a", "{\"binaries\":[{\"path\":\"curl\"}],\"endpoints\":[]}"), "is no absolute path"},
        {ADD("a", "{\"binaries\":[{\"path\":\"/usr/../bin/curl\"}],\"endpoints\":[]}"), "is no absolute path"},
        {ADD("a", "{\"binaries\":[{\"path\":\"/usr/bin/python3\"}],\"endpoints\":[]}"), "needs \"interpreter\": true"},
        {ADD("a", "{\"binaries\":[{\"path\":\"/usr/bin/curl\",\"children\":true}],\"endpoints\":[]}"), "\"children\" of a binary cannot be proposed"},
        {ADD("a", "{\"binaries\":[{\"path\":\"/usr/bin/curl\",\"writable\":true}],\"endpoints\":[]}"), "\"writable\" of a binary cannot be proposed"},
        {ADD("a", RULE(REST("*.example.com", ALLOW("GET", "/")))), "is a pattern; name each host"},
        {ADD("a", RULE(REST("localhost", ALLOW("GET", "/")))), "no rule can allow where it leads"},
        {ADD("a", RULE(REST("127.0.0.1", ALLOW("GET", "/")))), "not public"},
        {ADD("a", RULE(REST("2130706433", ALLOW("GET", "/")))), "two could read"},
        {ADD("a", RULE(REST("[::1]", ALLOW("GET", "/")))), "host [::1]"},
        {ADD("a", RULE(REST("169.254.169.254", ALLOW("GET", "/")))), "not public"},
        {ADD("a", RULE(REST("fe80::1", ALLOW("GET", "/")))), "not public"},
        {ADD("a", RULE(REST("10.0.0.1", ALLOW("GET", "/")))), "not public"},
        {ADD("a", RULE(REST("metadata.google.internal", ALLOW("GET", "/")))), "no rule can allow where it leads"},
        {ADD("a", RULE(REST("policy.local", ALLOW("GET", "/")))), "no rule can allow where it leads"},
        {ADD("a", RULE(REST("b.sandbox.internal", ALLOW("GET", "/")))), "another sandbox"},
        {ADD("a", RULE("{\"host\":\"a.example\",\"port\":6443}")), "control planes"},
        {ADD("a", RULE("{\"host\":\"a.example\",\"port\":0}")), "a port is a number"},
        {ADD("a", RULE("{\"host\":\"a.example\"}")),        "needs \"port\" or \"ports\""},
        {ADD("a", RULE("{\"host\":\"a.example\",\"port\":443,\"allowed_ips\":[\"10.0.0.0/8\"]}")), "\"allowed_ips\" of an endpoint cannot be proposed"},
        {ADD("a", RULE("{\"host\":\"a.example\",\"port\":443,\"tls\":\"skip\"}")), "\"tls\" of an endpoint cannot be proposed"},
        {ADD("a", RULE("{\"host\":\"a.example\",\"port\":443,\"protocol\":\"rest\",\"enforcement\":\"audit\",\"access\":\"full\"}")), "\"enforcement\" of a proposal"},
        {ADD("a", RULE("{\"host\":\"a.example\",\"port\":443,\"protocol\":\"graphql\"}")), "\"protocol\" of a proposal"},
        {ADD("a", RULE("{\"host\":\"a.example\",\"port\":443,\"protocol\":\"rest\"}")), "needs \"rules\" or \"access\""},
        {ADD("a", RULE("{\"host\":\"a.example\",\"port\":443,\"access\":\"full\"}")), "need \"protocol\": \"rest\""},
        {ADD("a", RULE(REST("a.example", ALLOW("get", "/")))), "no word of HTTP"},
        {ADD("a", RULE(REST("a.example", ALLOW("GET", "x")))), "must begin with \"/\""},
        {ADD("a", RULE(REST("a.example", ALLOW("GET", "/a b")))), "visible ASCII"},
        {ADD("a", RULE(REST("a.example", ALLOW("GET", "/\\u001b[2J")))), "visible ASCII"},
        {ADD("a", RULE(REST("a.example", "{\"deny\":{\"method\":\"GET\",\"path\":\"/\"}}"))), "\"deny\" of a rule cannot be proposed"},
    };
    /* clang-format on */

    for (size_t i = 0; i < COUNT(cases); i++) {
        AUTO_ARENA struct arena mem = ARENA(4 * MIB);
        struct proposal proposal;
        struct err err = {0};

        CHECK_INT(take(&mem, cases[i].operation, &proposal, &err), -1);
        if (!strstr(err.text, cases[i].says))
            test_fail(__FILE__, __LINE__, "%s: \"%s\" does not say \"%s\"", cases[i].operation,
                      err.text, cases[i].says);
    }
}

TEST(a_body_is_read_strictly)
{
    /* clang-format off */
    static const struct {
        const char *body;
        const char *says; /* NULL: it is one */
    } cases[] = {
        {"{\"intent_summary\":\"x\",\"operations\":[{}]}", NULL},
        {"", "line 1"},
        {"{\"intent_summary\":\"x\",\"operations\":[{}]} x", "line 1"},
        {"{\"intent_summary\":\"x\",\"intent_summary\":\"y\",\"operations\":[{}]}", "line 1"},
        {"{\"operations\":[{}]}", "intent_summary"},
        {"{\"intent_summary\":\"\",\"operations\":[{}]}", "intent_summary"},
        {"{\"intent_summary\":7,\"operations\":[{}]}", "intent_summary"},
        {"{\"intent_summary\":\"x\",\"operations\":[]}", "1 to 8"},
        {"{\"intent_summary\":\"x\",\"operations\":[1,2,3,4,5,6,7,8,9]}", "1 to 8"},
        {"{\"intent_summary\":\"x\",\"operations\":[{}],\"approve\":true}", "\"approve\" of the body cannot be proposed"},
    };
    /* clang-format on */

    for (size_t i = 0; i < COUNT(cases); i++) {
        AUTO_ARENA struct arena mem = ARENA(4 * MIB);
        struct proposal_request request;
        struct err err = {0};
        int failed = proposal_request_read(&mem, str_of(cases[i].body), &request, &err);

        CHECK_INT(failed, cases[i].says ? -1 : 0);
        if (cases[i].says && !strstr(err.text, cases[i].says))
            test_fail(__FILE__, __LINE__, "%s: \"%s\"", cases[i].body, err.text);
    }
}

static const char policy_text[] = "version: 1\n"
                                  "agent_proposals: true\n"
                                  "network_policies:\n"
                                  "  # what it has\n"
                                  "  own:\n"
                                  "    binaries: [{path: /usr/bin/curl}]\n"
                                  "    endpoints: [{host: a.example.com, port: 443, protocol: "
                                  "rest, rules: [{allow: {method: GET, path: /a}}]}]\n";

static enum net_verdict_kind ask(const struct net_rules *rules, const char *binary,
                                 const char *host, const char *method, const char *path)
{
    struct net_caller caller = {.flags = NET_CALLER_KNOWN | NET_CALLER_COMPLETE,
                                .exe = {.path = str_of(binary)}};
    struct net_knock knock = {.host = str_of(host), .port = 443, .caller = &caller};
    struct net_request request = {
        .scheme = STR_LIT("https"), .method = str_of(method), .path = str_of(path)};
    struct net_verdict verdict;

    net_rules_connect(rules, &knock, &verdict);
    if (verdict.kind == NET_INSPECT)
        net_rules_request(rules, &knock, &request, &verdict);
    return verdict.kind;
}

TEST(what_is_asked_for_stands_in_the_policy_and_allows_that_alone)
{
    AUTO_ARENA struct arena mem = ARENA(4 * MIB);
    AUTO_BUF struct buf text = BUF(POLICY_TEXT_MAX);
    AUTO(net_rules) struct net_rules *before = NULL;
    AUTO(net_rules) struct net_rules *after = NULL;
    struct proposal proposal;
    struct err err = {0};

    CHECK_INT(
        take(&mem, ADD("more", RULE(REST("A.example.com", ALLOW("PUT", "/b/*")))), &proposal, &err),
        0);
    CHECK_INT(policy_proposal_check(&proposal, &err), 0);
    CHECK_INT(policy_propose(str_of(policy_text), &proposal, &text, &before, &after, &err), 0);
    CHECK(strstr(buf_text(&text), "# what it has") != NULL);
    CHECK_INT(ask(before, "/usr/bin/curl", "a.example.com", "PUT", "/b/c"), NET_DENY);
    CHECK_INT(ask(after, "/usr/bin/curl", "a.example.com", "PUT", "/b/c"), NET_ALLOW);
    CHECK_INT(ask(after, "/usr/bin/curl", "a.example.com", "GET", "/a"), NET_ALLOW);
    CHECK_INT(ask(after, "/usr/bin/curl", "a.example.com", "PUT", "/b/c/d"), NET_DENY);
    CHECK_INT(ask(after, "/usr/bin/curl", "a.example.com", "POST", "/b/c"), NET_DENY);
    CHECK_INT(ask(after, "/usr/bin/wget", "a.example.com", "PUT", "/b/c"), NET_DENY);
    CHECK_INT(ask(after, "/usr/bin/curl", "b.example.com", "PUT", "/b/c"), NET_DENY);
    CHECK(net_rules_takes_proposals(after));
    CHECK(net_rules_has_entry(after, STR_LIT("more")));
    CHECK(!net_rules_has_entry(before, STR_LIT("more")));
}

TEST(a_name_that_is_taken_is_a_conflict)
{
    AUTO_ARENA struct arena mem = ARENA(4 * MIB);
    AUTO_BUF struct buf text = BUF(POLICY_TEXT_MAX);
    struct net_rules *before = NULL, *after = NULL;
    struct proposal proposal;
    struct err err = {0};

    CHECK_INT(
        take(&mem, ADD("own", RULE(REST("b.example.com", ALLOW("GET", "/")))), &proposal, &err), 0);
    CHECK_INT(policy_propose(str_of(policy_text), &proposal, &text, &before, &after, &err), -1);
    CHECK_INT(err.code, ERR_CONFLICT);
}

struct told {
    size_t n, known;
    char lines[1024];
};

static void on_grant(void *context, const struct proposal_grant *grant)
{
    struct told *told = context;
    size_t at = strlen(told->lines);

    told->n++;
    told->known += grant->is_known;
    (void)snprintf(told->lines + at, sizeof told->lines - at, STR_FMT STR_FMT "%s;",
                   STR_ARG(grant->method), STR_ARG(grant->path), grant->is_known ? "!" : "");
}

/* One path of a pattern may be allowed already: the pattern is new all the same. */
TEST(everything_it_allows_is_told)
{
    AUTO_ARENA struct arena mem = ARENA(4 * MIB);
    AUTO_BUF struct buf text = BUF(POLICY_TEXT_MAX);
    AUTO(net_rules) struct net_rules *before = NULL;
    AUTO(net_rules) struct net_rules *after = NULL;
    struct proposal proposal;
    struct told told = {0};
    struct err err = {0};

    CHECK_INT(
        take(&mem,
             ADD("more",
                 "{" BINARY ",\"endpoints\":[" REST(
                     "a.example.com",
                     ALLOW("GET", "/a") "," ALLOW("GET", "/*") "," ALLOW(
                         "*",
                         "/a")) ","
                                "{\"host\":\"b.example.com\",\"ports\":[5432,443]},"
                                "{\"host\":\"c.example.com\",\"port\":443,\"protocol\":\"rest\","
                                "\"access\":\"read-only\"}]}"),
             &proposal, &err),
        0);
    CHECK_INT(policy_propose(str_of(policy_text), &proposal, &text, &before, &after, &err), 0);
    proposal_each_grant(&proposal, before, on_grant, &told);
    CHECK_TEXT(told.lines, "GET/a!;GET/*;*/a;;;GET**;OPTIONS**;");
    CHECK_INT(told.known, 1);
    CHECK_INT(proposal_warnings(&proposal), 1U << SUGGEST_WARN_AT_WIRE |
                                                1U << SUGGEST_WARN_AT_WIDE |
                                                1U << SUGGEST_WARN_AT_DATABASE);
}

TEST(what_is_kept_of_it_is_read_as_the_same)
{
    AUTO_ARENA struct arena mem = ARENA(4 * MIB);
    AUTO_BUF struct buf first = BUF(64 * KIB);
    AUTO_BUF struct buf again = BUF(64 * KIB);
    struct proposal proposal, kept;
    struct err err = {0};

    CHECK_INT(take(&mem, ADD("more", RULE(REST("a.example.com", ALLOW("PUT", "/b/\\\"*")))),
                   &proposal, &err),
              0);
    CHECK_INT(json_canonical(proposal_json(&mem, &proposal), &first, &err), 0);
    CHECK_INT(proposal_read_rule(&mem, proposal.name, proposal_json(&mem, &proposal), &kept, &err),
              0);
    CHECK_INT(json_canonical(proposal_json(&mem, &kept), &again, &err), 0);
    CHECK_TEXT(buf_text(&first), buf_text(&again));
}

TEST(a_digest_is_of_both)
{
    char hash[HASH_TEXT_BYTES], other[HASH_TEXT_BYTES], a[HASH_TEXT_BYTES], b[HASH_TEXT_BYTES];

    hash_text_of(STR_LIT("one"), hash);
    hash_text_of(STR_LIT("two"), other);
    proposal_digest(str_of(hash), str_of(other), a);
    proposal_digest(str_of(hash), str_of(other), b);
    CHECK_TEXT(a, b);
    proposal_digest(str_of(other), str_of(hash), b);
    CHECK(strcmp(a, b) != 0);
}

TEST(who_may_ask_is_part_of_the_rules)
{
    AUTO(net_rules) struct net_rules *on = NULL;
    AUTO(net_rules) struct net_rules *off = NULL;
    const uint16_t *ports;
    struct err err = {0};
    size_t n = 0;

    CHECK_INT(
        net_rules_read(STR_LIT("{\"agent_proposals\":true,\"network_policies\":{}}"), &on, &err),
        0);
    CHECK_INT(net_rules_read(STR_LIT("{\"network_policies\":{}}"), &off, &err), 0);
    CHECK(net_rules_takes_proposals(on) && !net_rules_takes_proposals(off));
    CHECK(net_rules_opens_tls(on) && !net_rules_opens_tls(off));
    ports = net_rules_ports(on, &n);
    CHECK(n == 1 && ports[0] == 80);
    CHECK(strcmp(net_rules_hash(on), net_rules_hash(off)) != 0);
    CHECK_INT(net_rules_read(STR_LIT("{\"agent_proposals\":1,\"network_policies\":{}}"), &on, &err),
              -1);
    /* The name itself is nobody's to allow. */
    CHECK(!net_rules_name(on, STR_LIT("policy.local")));
}
