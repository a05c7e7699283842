/* SPDX-License-Identifier: Apache-2.0 */
/* From a policy file to a verdict on a request: what decide writes is what lib/egress compiles.
 * The cases are in tests/vectors/egress. */
#include "lib/egress/rules.h"
#include "vectors.h"

#include <glob.h>
#include <stdio.h>
#include <string.h>

#define VECTORS SOURCE_ROOT "/tests/vectors/egress/"
#define HEADERS_MAX 16

static struct net_rules *compile(const struct json *one, const char *file)
{
    AUTO(policy) struct policy *policy = NULL;
    struct net_rules *rules = NULL;
    struct mark where;
    struct err err;

    if (policy_parse(json_get(one, "policy")->text, &policy, &where, &err) < 0 ||
        net_rules_read(policy_network_text(policy).n ? policy_network_text(policy) : STR_LIT("{}"),
                       &rules, &err) < 0) {
        test_fail(file, (int)one->mark.line, "%s", err.text);
        return NULL;
    }
    return rules;
}

/* "POST https://host:port/path?query" */
static bool read_request(struct arena *mem, struct str line, struct net_knock *knock,
                         struct net_request *out)
{
    struct str rest = line, authority;
    const char *at;

    out->method = str_cut(&rest, ' ');
    at = memmem(rest.p, rest.n, "://", 3);
    if (!at)
        return false;
    out->scheme = (struct str){rest.p, (size_t)(at - rest.p)};
    rest = (struct str){at + 3, rest.n - out->scheme.n - 3};
    at = memchr(rest.p, '/', rest.n);
    authority = at ? (struct str){rest.p, (size_t)(at - rest.p)} : rest;
    if (!net_authority_cut(authority, str_is(out->scheme, "https") ? 443 : 80, &knock->host,
                           &knock->port))
        return false;
    rest = at ? (struct str){at, rest.n - authority.n} : (struct str){"/", 1};
    out->has_query = memchr(rest.p, '?', rest.n) != NULL;
    out->path = str_cut(&rest, '?');
    out->query = out->has_query ? rest : (struct str){"", 0};
    (void)mem;
    return true;
}

static void read_headers(const struct json *map, struct net_header *headers,
                         struct net_request *out)
{
    out->headers = headers;
    if (!map)
        return;
    json_each(item, map)
    {
        if (str_is(item->key, "upgrade"))
            out->upgrade = item->text;
        headers[out->header_n++] = (struct net_header){item->key, item->text};
    }
}

static void judge(struct arena *mem, const struct net_rules *rules, const struct json *one,
                  struct net_verdict *v)
{
    const char *exe = vector_get(mem, one, "exe"), *script = vector_get(mem, one, "script");
    const struct json *message = json_get(one, "message"), *type = json_get(one, "type");
    const struct json *body = json_get(one, "body"), *parents = json_get(one, "parents");
    struct net_program ancestors[8];
    struct net_caller caller = {.flags = NET_CALLER_KNOWN | NET_CALLER_COMPLETE,
                                .ancestors = ancestors};
    struct net_knock knock = {.caller = &caller};
    struct net_header headers[HEADERS_MAX];
    struct net_request request = {0};
    struct net_addr dialled;

    caller.exe.path = str_of(exe ? exe : "/usr/bin/curl");
    if (script)
        caller.script.path = str_of(script);
    if (parents)
        json_each(item, parents) ancestors[caller.ancestor_n++] =
            (struct net_program){.path = item->text};
    if (json_get(one, "connect")) {
        CHECK(net_authority_cut(json_get(one, "connect")->text, 443, &knock.host, &knock.port));
        net_rules_connect(rules, &knock, v);
        if (v->kind == NET_DENY || !json_get(one, "address"))
            return;
        CHECK(net_addr_read(json_get(one, "address")->text, &dialled));
        net_rules_address(rules, &knock, &dialled, NULL, 0, v);
        return;
    }
    CHECK(read_request(mem, json_get(one, "request")->text, &knock, &request));
    read_headers(json_get(one, "headers"), headers, &request);
    net_rules_request(rules, &knock, &request, v);
    if (v->kind == NET_NEED_BODY && body)
        net_rules_body(rules, &knock, &request, body->text, v);
    if (v->kind == NET_ALLOW && message)
        net_rules_message(rules, &knock, &request, !json_get(one, "binary"), message->text, v);
    if (v->kind == NET_ALLOW && type)
        net_rules_response(rules, &knock, &request, UINT64_MAX, type->text, v);
}

static const char *kind_name(const struct net_verdict *v)
{
    static const char *const names[] = {
        [NET_DENY] = "deny",   [NET_TUNNEL] = "tunnel",  [NET_INSPECT] = "inspect",
        [NET_ALLOW] = "allow", [NET_NEED_BODY] = "body",
    };

    return v->kind == NET_ALLOW && v->flags & NET_FLAG_AUDIT          ? "audit"
           : v->kind == NET_ALLOW && v->flags & NET_FLAG_SECRET_SHAPE ? "flag"
                                                                      : names[v->kind];
}

static void check_case(struct arena *mem, const struct net_rules *rules, const struct json *one,
                       const char *file)
{
    const char *expect = vector_get(mem, one, "expect"), *reason = vector_get(mem, one, "reason");
    const char *entry = vector_get(mem, one, "entry"), *text = vector_get(mem, one, "text");
    int line = (int)one->mark.line;
    struct net_verdict v;
    int64_t wanted;

    judge(mem, rules, one, &v);
    if (strcmp(kind_name(&v), expect) != 0)
        test_fail(file, line, "%s, not %s: %s %s", kind_name(&v), expect, net_reason_code(v.reason),
                  v.text);
    if (reason && strcmp(net_reason_code(v.reason), reason) != 0)
        test_fail(file, line, "reason %s: %s", net_reason_code(v.reason), v.text);
    if (entry && strcmp(v.entry, entry) != 0)
        test_fail(file, line, "entry %s", v.entry);
    if (json_is_int(json_get(one, "line"), &wanted) && v.line != (unsigned)wanted)
        test_fail(file, line, "line %u", v.line);
    if (text && !strstr(v.text, text))
        test_fail(file, line, "text \"%s\"", v.text);
    if (v.kind == NET_DENY && (v.reason == NET_REASON_NONE || !v.text[0]))
        test_fail(file, line, "a refusal without a reason");
}

static void check_file(const char *file)
{
    AUTO_ARENA struct arena mem = ARENA(64 * MIB);
    const struct json *blocks = vector_tree(&mem, file);

    CHECK(blocks->n > 0);
    json_each(block, blocks)
    {
        AUTO(net_rules) struct net_rules *rules = compile(block, file);

        if (rules)
            json_each(one, json_get(block, "cases")) check_case(&mem, rules, one, file);
    }
}

TEST(connections)
{
    check_file(VECTORS "connect.yaml");
}

TEST(requests)
{
    check_file(VECTORS "rest.yaml");
}

TEST(calls_and_queries)
{
    check_file(VECTORS "protocols.yaml");
}

TEST(what_openshell_does_not_have)
{
    check_file(VECTORS "beyond.yaml");
}

/* ---- what ships ---- */

TEST(shipped_network_policies_pass_the_tables_next_to_them)
{
    AUTO_ARENA struct arena mem = ARENA(64 * MIB);
    glob_t found = {0};
    size_t policies = 0;

    CHECK_INT(glob(SOURCE_ROOT "/policies/network/*.yaml", 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        const char *file = found.gl_pathv[i];
        const char *table = arena_printf(&mem, "%.*s.test.yaml", (int)strlen(file) - 5, file);
        AUTO(policy) struct policy *policy = NULL;
        AUTO(net_rules) struct net_rules *rules = NULL;
        struct err err;

        if (str_ends(str_of(file), ".test.yaml"))
            continue;
        policies++;
        if (policy_open(file, &policy, &err) < 0 ||
            net_rules_read(policy_network_text(policy).n ? policy_network_text(policy)
                                                         : STR_LIT("{}"),
                           &rules, &err) < 0) {
            test_fail(file, 0, "%s", err.text);
            continue;
        }
        json_each(one, vector_tree(&mem, table)) check_case(&mem, rules, one, table);
    }
    globfree(&found);
    CHECK(policies >= 5);
}

/* ---- why ---- */

struct told {
    size_t steps;
    size_t matched;
    bool named;
};

static void on_step(void *ctx, const struct net_step *step)
{
    struct told *told = ctx;

    told->steps++;
    told->matched += step->matched;
    told->named =
        told->named || strstr(step->why, "it names host and port, but its binaries do not");
    CHECK(step->entry[0] && step->line && step->why[0]);
}

TEST(every_endpoint_says_why_it_does_or_does_not_match)
{
    static const char policy_text[] =
        "version: 1\n"
        "network_policies:\n"
        "  a:\n"
        "    binaries: [{path: /usr/bin/curl}]\n"
        "    endpoints:\n"
        "      - {host: a.example.com, port: 443, protocol: rest, access: read-only}\n"
        "      - {host: b.example.com, port: 443}\n"
        "  b:\n"
        "    binaries: [{path: /usr/bin/git}]\n"
        "    endpoints: [{host: a.example.com, port: 443, protocol: rest, access: full}]\n";
    AUTO(policy) struct policy *policy = NULL;
    AUTO(net_rules) struct net_rules *rules = NULL;
    struct net_caller caller = {.flags = NET_CALLER_KNOWN,
                                .exe = {.path = STR_LIT("/usr/bin/curl")}};
    struct net_knock knock = {.host = STR_LIT("a.example.com"), .port = 443, .caller = &caller};
    struct net_request get = {.method = STR_LIT("GET"), .path = STR_LIT("/x")};
    struct told told = {0};
    struct net_verdict v;
    struct mark where;
    struct err err;

    CHECK_INT(policy_parse(str_of(policy_text), &policy, &where, &err), 0);
    CHECK_INT(net_rules_read(policy_network_text(policy), &rules, &err), 0);
    net_rules_explain(rules, &knock, &get, NULL, on_step, &told, &v);
    CHECK_INT(v.kind, NET_ALLOW);
    CHECK_INT(told.steps, 3);
    CHECK_INT(told.matched, 1);
    CHECK(told.named);
    get.method = STR_LIT("DELETE");
    told = (struct told){0};
    net_rules_explain(rules, &knock, &get, NULL, on_step, &told, &v);
    CHECK_INT(v.reason, NET_REASON_REQUEST);
    CHECK_INT(told.matched, 0);
}

/* ---- sets of rules that contradict themselves ---- */

TEST(contradictions_are_refused_whole)
{
    const char *file = VECTORS "contradictions.yaml";
    AUTO_ARENA struct arena mem = ARENA(64 * MIB);
    const struct json *blocks = vector_tree(&mem, file);

    json_each(one, blocks)
    {
        const char *wanted = vector_get(&mem, one, "error");
        AUTO(policy) struct policy *policy = NULL;
        AUTO(net_rules) struct net_rules *rules = NULL;
        struct mark where;
        struct err err = {0};
        int got = policy_parse(json_get(one, "policy")->text, &policy, &where, &err);

        if (got == 0)
            got = net_rules_read(policy_network_text(policy), &rules, &err);
        if (wanted && got == 0)
            test_fail(file, (int)one->mark.line, "loads");
        else if (wanted)
            test_check_text(file, (int)one->mark.line, "text", err.text, wanted);
        else if (got < 0)
            test_fail(file, (int)one->mark.line, "%s", err.text);
    }
}
