/* SPDX-License-Identifier: Apache-2.0 */
/* What is suggested for a refusal allows that and not its neighbours: other method, path, program,
 * port or host. Every suggestion goes the whole way, through the text of a policy. */
#include "lib/egress/suggest.h"

#include <stdio.h>
#include <string.h>

#include "flow/decide/decide.h"
#include "lib/base/limits.h"
#include "test.h"

struct made {
    struct suggest *suggest;
    struct net_rules *before, *after;
    struct buf text;
    struct arena mem;
};

static void made_done(struct made *made)
{
    suggest_free(made->suggest);
    net_rules_free(made->before);
    net_rules_free(made->after);
    buf_done(&made->text);
    arena_done(&made->mem);
}
#define AUTO_MADE __attribute__((cleanup(made_done)))

/* refusals: a JSON list */
static void make(struct made *made, const char *policy, const char *refusals)
{
    const struct json *list = NULL;
    struct mark where;
    struct err err = {0};

    made->suggest = suggest_new();
    made->text = BUF(POLICY_TEXT_MAX);
    made->mem = ARENA(4 * MIB);
    if (json_parse(&made->mem, str_of(refusals), &list, &where, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    json_each(item, list) CHECK_INT(suggest_add(made->suggest, item, &err), 0);
    if (policy_suggest(str_of(policy), made->suggest, &made->text, &made->before, &made->after,
                       &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
}

/* "deny", "tunnel", "inspect" for a connection, "allow" or "deny" for a request. */
static const char *ask(const struct net_rules *rules, const char *binary, const char *host,
                       unsigned port, const char *method, const char *path)
{
    struct net_caller caller = {.flags = NET_CALLER_KNOWN | NET_CALLER_COMPLETE,
                                .exe = {.path = str_of(binary)}};
    struct net_knock knock = {.host = str_of(host), .port = (uint16_t)port, .caller = &caller};
    struct net_request request = {.scheme = STR_LIT("https")};
    struct net_verdict verdict;

    net_rules_connect(rules, &knock, &verdict);
    if (!method || verdict.kind == NET_DENY)
        return verdict.kind == NET_DENY     ? "deny"
               : verdict.kind == NET_TUNNEL ? "tunnel"
                                            : "inspect";
    request.method = str_of(method);
    request.path = str_of(path);
    net_rules_request(rules, &knock, &request, &verdict);
    return verdict.kind == NET_ALLOW ? "allow" : "deny";
}

#define CURL "/usr/bin/curl"
#define API "api.example.com"
#define REFUSED(host, port, method, path, binary, reason)                                          \
    "[{\"host\":\"" host "\",\"port\":" port ",\"method\":\"" method "\",\"path\":\"" path         \
    "\",\"binary\":\"" binary "\",\"reason\":\"" reason "\",\"count\":3}]"

TEST(a_request_is_allowed_and_its_neighbours_are_not)
{
    /* clang-format off */
    static const struct {
        const char *asked; /* path of the refusal */
        const char *path;  /* asked for afterwards */
        const char *method;
        const char *then;
    } cases[] = {
        {"/v1/items",       "/v1/items",       "POST",    "allow"},
        {"/v1/items",       "/v1/items",       "GET",     "deny" },
        {"/v1/items",       "/v1/items",       "DELETE",  "deny" },
        {"/v1/items",       "/v1/items/",      "POST",    "deny" },
        {"/v1/items",       "/v1/items/x",     "POST",    "deny" },
        {"/v1/items",       "/v1",             "POST",    "deny" },
        {"/v1/items",       "/v1/itemsx",      "POST",    "deny" },
        {"/v1/items",       "/V1/items",       "POST",    "deny" },
        {"/",               "/",               "POST",    "allow"},
        {"/",               "/x",              "POST",    "deny" },
        {"/users/17/keys",  "/users/17/keys",  "POST",    "allow"},
        {"/users/17/keys",  "/users/4/keys",   "POST",    "allow"},
        {"/users/17/keys",  "/users/me/keys",  "POST",    "deny" },
        {"/users/17/keys",  "/users//keys",    "POST",    "deny" },
        {"/users/17/keys",  "/users/1/2/keys", "POST",    "deny" },
        {"/users/17/keys",  "/users/17",       "POST",    "deny" },
        {"/u/17",           "/u/",             "POST",    "deny" },
        {"/o/3f2504e0-4f89-11d3-9a0c-0305e82c3301", "/o/00000000-4f89-11d3-9a0c-0305e82c3301", "POST", "allow"},
        {"/o/3f2504e0-4f89-11d3-9a0c-0305e82c3301", "/o/list", "POST", "deny"},
        {"/c/0123456789abcdef0123", "/c/abcdef0123456789", "POST", "allow"},
        {"/c/0123456789abcdef0123", "/c/zzz",  "POST",    "deny" },
        {"/n/{}/x",         "/n/42/x",         "POST",    "allow"},
        {"/n/{}/x",         "/n/me/x",         "POST",    "deny" },
        {"/a/*",            "/a/*",            "POST",    "allow"},
        {"/a/*",            "/a/b",            "POST",    "deny" },
        {"/a/%c3%a9",       "/a/%c3%a9",       "POST",    "allow"},
        {"/a/%c3%a9",       "/a/%C3%A9",       "POST",    "allow"},
        {"/a/%c3%a9",       "/a/e",            "POST",    "deny" },
        {"/deadbeef",       "/deadbeee",       "POST",    "deny" },
    };
    /* clang-format on */

    for (size_t i = 0; i < COUNT(cases); i++) {
        AUTO_MADE struct made made = {0};
        char refusals[1024];

        (void)snprintf(refusals, sizeof refusals,
                       REFUSED(API, "443", "POST", "%s", CURL, "EGRESS_NO_RULE"), cases[i].asked);
        make(&made, "", refusals);
        CHECK_TEXT(ask(made.after, CURL, API, 443, cases[i].method, cases[i].path), cases[i].then);
        CHECK_TEXT(ask(made.before, CURL, API, 443, "POST", cases[i].asked), "deny");
        CHECK_TEXT(ask(made.after, "/usr/bin/wget", API, 443, NULL, NULL), "deny");
        CHECK_TEXT(ask(made.after, "/bin/curl", API, 443, NULL, NULL), "deny");
        CHECK_TEXT(ask(made.after, CURL, API, 80, NULL, NULL), "deny");
        CHECK_TEXT(ask(made.after, CURL, API, 8443, NULL, NULL), "deny");
        CHECK_TEXT(ask(made.after, CURL, "example.com", 443, NULL, NULL), "deny");
        CHECK_TEXT(ask(made.after, CURL, "x." API, 443, NULL, NULL), "deny");
        CHECK_TEXT(ask(made.after, CURL, API, 443, NULL, NULL), "inspect");
    }
}

TEST(programs_do_not_get_each_others_places)
{
    AUTO_MADE struct made made = {0};

    make(&made, "",
         "[{\"host\":\"a.example.com\",\"port\":443,\"method\":\"GET\",\"path\":\"/a\","
         "\"binary\":\"/usr/bin/curl\",\"reason\":\"EGRESS_NO_RULE\"},"
         "{\"host\":\"b.example.com\",\"port\":443,\"method\":\"GET\",\"path\":\"/b\","
         "\"binary\":\"/opt/curl\",\"reason\":\"EGRESS_NO_RULE\"},"
         "{\"host\":\"b.example.com\",\"port\":443,\"method\":\"PUT\",\"path\":\"/b/c\","
         "\"binary\":\"/opt/curl\",\"reason\":\"EGRESS_NO_RULE\"}]");
    CHECK_TEXT(ask(made.after, "/usr/bin/curl", "a.example.com", 443, "GET", "/a"), "allow");
    CHECK_TEXT(ask(made.after, "/opt/curl", "b.example.com", 443, "GET", "/b"), "allow");
    CHECK_TEXT(ask(made.after, "/opt/curl", "b.example.com", 443, "PUT", "/b/c"), "allow");
    CHECK_TEXT(ask(made.after, "/opt/curl", "b.example.com", 443, "PUT", "/b"), "deny");
    CHECK_TEXT(ask(made.after, "/opt/curl", "a.example.com", 443, NULL, NULL), "deny");
    CHECK_TEXT(ask(made.after, "/usr/bin/curl", "b.example.com", 443, NULL, NULL), "deny");
    CHECK(strstr(buf_text(&made.text), "  suggested-curl:\n") != NULL);
    CHECK(strstr(buf_text(&made.text), "  suggested-curl-2:\n") != NULL);
}

TEST(a_connection_is_a_wire_only_where_no_http_is_spoken)
{
    /* clang-format off */
    static const struct {
        const char *host, *port;
        const char *then;
        unsigned warning;
    } cases[] = {
        {"git.example.com", "22",    "tunnel",  1U << SUGGEST_WARN_AT_TUNNEL},
        {"db.example.com",  "5432",  "tunnel",  1U << SUGGEST_WARN_AT_TUNNEL | 1U << SUGGEST_WARN_AT_DATABASE},
        {"x.example.com",   "51000", "tunnel",  1U << SUGGEST_WARN_AT_TUNNEL | 1U << SUGGEST_WARN_AT_HIGH_PORT},
        {"8.8.8.8",         "853",   "tunnel",  1U << SUGGEST_WARN_AT_TUNNEL},
        {API,               "443",   "inspect", 1U << SUGGEST_WARN_AT_LOOK},
        {API,               "80",    "inspect", 1U << SUGGEST_WARN_AT_LOOK},
    };
    /* clang-format on */

    for (size_t i = 0; i < COUNT(cases); i++) {
        AUTO_MADE struct made made = {0};
        char refusals[1024];
        unsigned port = 0;

        (void)sscanf(cases[i].port, "%u", &port); /* NOLINT(cert-err34-c): of the table above */
        (void)snprintf(refusals, sizeof refusals,
                       REFUSED("%s", "%s", "", "", CURL, "EGRESS_NO_RULES"), cases[i].host,
                       cases[i].port);
        make(&made, "", refusals);
        CHECK_INT(made.suggest->place_n, 1);
        CHECK_TEXT(ask(made.after, CURL, cases[i].host, port, NULL, NULL), cases[i].then);
        CHECK_TEXT(ask(made.after, CURL, cases[i].host, port + 1, NULL, NULL), "deny");
        CHECK_TEXT(ask(made.after, "/usr/bin/wget", cases[i].host, port, NULL, NULL), "deny");
        CHECK_INT(made.suggest->places[0].warnings, cases[i].warning);
        if (strcmp(cases[i].then, "inspect") == 0)
            CHECK_TEXT(ask(made.after, CURL, cases[i].host, port, "GET", "/"), "deny");
    }
}

TEST(an_interpreter_is_named_as_one)
{
    AUTO_MADE struct made made = {0};

    make(&made, "", REFUSED(API, "443", "GET", "/x", "/usr/bin/python3.11", "EGRESS_INTERPRETER"));
    CHECK_TEXT(ask(made.after, "/usr/bin/python3.11", API, 443, "GET", "/x"), "allow");
    CHECK_TEXT(ask(made.after, "/usr/bin/python3", API, 443, NULL, NULL), "deny");
    CHECK_INT(made.suggest->places[0].warnings, 1U << SUGGEST_WARN_AT_INTERPRETER);
}

TEST(what_must_not_be_suggested_is_left_with_the_reason)
{
    /* clang-format off */
    static const struct {
        const char *host, *port, *path, *binary, *reason, *why;
    } cases[] = {
        {"10.0.0.7",        "443", "/", CURL, "EGRESS_NO_RULE", "not public"},
        {"192.168.1.1",     "80",  "/", CURL, "EGRESS_NO_RULE", "not public"},
        {"127.0.0.1",       "80",  "/", CURL, "EGRESS_ADDRESS", "no rule can allow"},
        {"127.0.0.1",       "80",  "/", CURL, "EGRESS_NO_RULE", "not public"},
        {"169.254.169.254", "80",  "/", CURL, "EGRESS_NO_RULE", "not public"},
        {"fe80::1",         "80",  "/", CURL, "EGRESS_NO_RULE", "not public"},
        {"::ffff:10.0.0.1", "80",  "/", CURL, "EGRESS_NO_RULE", "t"},
        {"2130706433",      "80",  "/", CURL, "EGRESS_NO_RULE", "spelled"},
        {"metadata.google.internal", "80", "/", CURL, "EGRESS_NO_RULE", "no rule can allow"},
        {"localhost",       "80",  "/", CURL, "EGRESS_NO_RULE", "no rule can allow"},
        {"db.sandbox.internal", "80", "/", CURL, "EGRESS_NO_RULE", "another sandbox"},
        {API,               "443", "/", CURL, "EGRESS_ADDRESS_PRIVATE", "private"},
        {API,               "6443", "/", CURL, "EGRESS_NO_RULE", "control plane"},
        {API,               "443", "/", CURL, "EGRESS_DENY_RULE", "forbids"},
        {API,               "443", "/", CURL, "EGRESS_BUDGET", "budget"},
        {API,               "443", "/", CURL, "EGRESS_PATH_FORM", "spelled"},
        {API,               "443", "/", CURL, "EGRESS_UNREACHABLE", "no rule was the reason"},
        {API,               "443", "/", CURL, "", "no rule was the reason"},
        {API,               "443", "/", "", "EGRESS_NO_RULE", "which program"},
        {API,               "443", "/", "curl", "EGRESS_NO_RULE", "not known completely"},
        {API,               "443", "/", "/usr/b?n/curl", "EGRESS_NO_RULE", "not known completely"},
        {API,               "0",   "/", CURL, "EGRESS_NO_RULE", "no port"},
        {API,               "443", "/a?b", CURL, "EGRESS_NO_RULE", "not known completely"},
        {API,               "443", "*", CURL, "EGRESS_NO_RULE", "not known completely"},
        {API,               "443", "/a/../b", CURL, "EGRESS_NO_RULE", ".. segment"},
        {API,               "443", "/a%2Fb", CURL, "EGRESS_NO_RULE", ""},
        {API,               "443", "/a;b", CURL, "EGRESS_NO_RULE", ";"},
    };
    /* clang-format on */

    for (size_t i = 0; i < COUNT(cases); i++) {
        AUTO_MADE struct made made = {0};
        char refusals[1024];

        (void)snprintf(refusals, sizeof refusals, REFUSED("%s", "%s", "GET", "%s", "%s", "%s"),
                       cases[i].host, cases[i].port, cases[i].path, cases[i].binary,
                       cases[i].reason);
        make(&made, "", refusals);
        CHECK_INT(made.suggest->left_n, 1);
        if (!strstr(made.suggest->left[0].why, cases[i].why))
            test_fail(__FILE__, __LINE__, "case %zu: %s", i, made.suggest->left[0].why);
        CHECK_INT(made.suggest->left[0].count, 3);
        CHECK_INT(net_rules_endpoint_count(made.after), 0);
    }
}

/* ---- into a policy that is there ---- */

static const char standing[] =
    "# ours\n"
    "version: 1\n"
    "network_policies:\n"
    "    # reading\n"
    "    suggested-curl:\n"
    "        binaries: [{path: /usr/bin/curl}]\n"
    "        endpoints:\n"
    "            - {host: " API ", port: 443, protocol: rest, rules: [{allow: {method: GET, path: "
    "\"/**\"}}], deny_rules: [{path: \"/admin/**\"}]}\n"
    "default: allow\n";

TEST(a_policy_keeps_its_words_and_gets_entries)
{
    AUTO_MADE struct made made = {0};

    make(&made, standing, REFUSED(API, "443", "POST", "/v1/x", CURL, "EGRESS_REQUEST"));
    CHECK_TEXT(ask(made.after, CURL, API, 443, "POST", "/v1/x"), "allow");
    CHECK_TEXT(ask(made.after, CURL, API, 443, "GET", "/anything"), "allow");
    CHECK_TEXT(ask(made.after, CURL, API, 443, "POST", "/v1/y"), "deny");
    CHECK(strstr(buf_text(&made.text), "\n    suggested-curl-2:\n") != NULL);
    CHECK(strstr(buf_text(&made.text), "    # reading\n") != NULL);
    CHECK(strncmp(buf_text(&made.text), "# ours\n", 7) == 0);
}

TEST(what_a_policy_forbids_or_allows_already_is_left)
{
    AUTO_MADE struct made forbidden = {0};
    AUTO_MADE struct made allowed = {0};

    make(&forbidden, standing, REFUSED(API, "443", "POST", "/admin/x", CURL, "EGRESS_REQUEST"));
    CHECK_INT(forbidden.suggest->left_n, 1);
    CHECK_TEXT(net_rules_hash(forbidden.after), net_rules_hash(forbidden.before));
    CHECK_TEXT(buf_text(&forbidden.text), standing);
    make(&allowed, standing, REFUSED(API, "443", "GET", "/x", CURL, "EGRESS_BINARY"));
    CHECK_INT(allowed.suggest->left_n, 1);
    CHECK(strstr(allowed.suggest->left[0].why, "allows it already") != NULL);
}

TEST(one_that_cannot_stand_costs_no_other)
{
    AUTO_MADE struct made made = {0};

    /* The host speaks GraphQL there for somebody else: one place is read in one way. */
    make(&made,
         "version: 1\n"
         "network_policies:\n"
         "  g:\n"
         "    binaries: [{path: /usr/bin/git}]\n"
         "    endpoints: [{host: " API ", port: 443, protocol: graphql, access: read-only}]",
         "[{\"host\":\"" API "\",\"port\":443,\"method\":\"GET\",\"path\":\"/a\","
         "\"binary\":\"/usr/bin/curl\",\"reason\":\"EGRESS_BINARY\"},"
         "{\"host\":\"b.example.com\",\"port\":443,\"method\":\"GET\",\"path\":\"/b\","
         "\"binary\":\"/usr/bin/curl\",\"reason\":\"EGRESS_NO_RULE\"}]");
    CHECK_INT(made.suggest->left_n, 1);
    CHECK(strstr(made.suggest->left[0].why, "protocol") != NULL);
    CHECK_TEXT(ask(made.after, CURL, "b.example.com", 443, "GET", "/b"), "allow");
    CHECK_TEXT(ask(made.after, CURL, API, 443, NULL, NULL), "deny");
}

TEST(a_section_in_one_line_is_not_guessed_at)
{
    AUTO(suggest) struct suggest *suggest = suggest_new();
    AUTO_BUF struct buf text = BUF(POLICY_TEXT_MAX);
    struct net_rules *before = NULL, *after = NULL;
    struct err err;

    CHECK_INT(policy_suggest(STR_LIT("version: 1\nnetwork_policies: {a: {binaries: [{path: /x}], "
                                     "endpoints: [{host: a.example.com, port: 1}]}}\n"),
                             suggest, &text, &before, &after, &err),
              -1);
    CHECK_INT(err.code, ERR_INVALID);
    CHECK(before == NULL && after == NULL);
}

/* ---- what it newly allows ---- */

struct told {
    char text[4096];
    size_t n;
};

static void on_grant(void *ctx, const struct suggest_grant *grant)
{
    struct told *told = ctx;

    told->n += (size_t)snprintf(told->text + told->n, sizeof told->text - told->n,
                                STR_FMT " " STR_FMT " %llu%s%s;", STR_ARG(grant->method),
                                STR_ARG(grant->path), (unsigned long long)grant->asked,
                                grant->any_query ? " query" : "", grant->is_tunnel ? " bytes" : "");
}

static void tell(const char *policy, const char *refusals, const char *expected)
{
    AUTO_MADE struct made made = {0};
    struct told told = {0};

    make(&made, policy, refusals);
    suggest_compare(made.suggest, made.before, made.after, on_grant, &told);
    CHECK_TEXT(told.text, expected);
}

TEST(what_comes_along_is_told)
{
    tell("", REFUSED(API, "443", "GET", "/u/7", CURL, "EGRESS_NO_RULE"),
         "  3;GET /u/[0-9]* 3 query;HEAD /u/[0-9]* 0 query;");
    tell("", REFUSED(API, "443", "POST", "/u", CURL, "EGRESS_NO_RULE"), "  3;POST /u 3 query;");
    tell("", REFUSED(API, "443", "PROPFIND", "/u", CURL, "EGRESS_NO_RULE"),
         "  3;PROPFIND /u 3 query;");
    tell("", REFUSED(API, "22", "", "", CURL, "EGRESS_NO_RULE"), "  3 bytes;");
    tell("", REFUSED(API, "443", "", "", CURL, "EGRESS_NO_RULE"), "  3;HEAD / 0 query;");
    /* What is allowed already is nothing new. */
    tell(standing, REFUSED(API, "443", "POST", "/u", CURL, "EGRESS_REQUEST"), "POST /u 3 query;");
}

TEST(what_is_no_refusal_is_refused)
{
    static const char *const cases[] = {
        "[1]", "[{\"host\":1}]", "[{\"port\":70000}]", "[{\"port\":-1}]", "[{\"count\":\"x\"}]",
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        AUTO(suggest) struct suggest *suggest = suggest_new();
        AUTO_ARENA struct arena mem = ARENA(1 * MIB);
        const struct json *list = NULL;
        struct mark where;
        struct err err;

        CHECK_INT(json_parse(&mem, str_of(cases[i]), &list, &where, &err), 0);
        CHECK_INT(suggest_add(suggest, list->first, &err), -1);
        CHECK_INT(err.code, ERR_INVALID);
        CHECK_INT(suggest->place_n, 0);
    }
}

TEST(there_is_an_end_to_what_is_kept)
{
    AUTO(suggest) struct suggest *suggest = suggest_new();
    AUTO_ARENA struct arena mem = ARENA(64 * MIB);
    struct err err;

    for (int i = 0; i < 2000; i++) {
        struct json *refusal = json_object(&mem);

        json_put_text(&mem, refusal, "host", arena_printf(&mem, "h%d.example.com", i));
        json_put_int(&mem, refusal, "port", i % 2 ? 443 : 0);
        json_put_text(&mem, refusal, "binary", CURL);
        json_put_text(&mem, refusal, "reason", "EGRESS_NO_RULE");
        CHECK_INT(suggest_add(suggest, refusal, &err), 0);
    }
    CHECK_INT(suggest->place_n, SUGGEST_PLACES_MAX);
    CHECK_INT(suggest->left_n, SUGGEST_LEFT_MAX);
    CHECK_INT(suggest->refusals, 2000);
    CHECK_INT(suggest->left_out, 2000 - SUGGEST_PLACES_MAX - SUGGEST_LEFT_MAX);
}
